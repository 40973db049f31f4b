"""What coordination costs: `python -m bench.coordination`.

Deployments of three Ready replicas each on clusters of one pool, everything at rest: a warm call about the
one created last, to which all others come first, with each of the settings in one process. First where some
pool has another size than in the call before, so that everything is decided anew; then where nothing changed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any

import structlog

from function.boundary.memory import Memory
from function.runner import Function
from tests.support import build
from tests.support.world import World

SIZES = ((100, 200), (500, 500))
"""Deployments and clusters."""
SETTINGS: dict[str, dict[str, str]] = {
    "neither": {},
    "Yield": {"overcommit": "Yield"},
    "Yield and GlobalOrder": {"overcommit": "Yield", "coordination": "GlobalOrder"},
}
REPLICAS, NODES, CALLS = 3, 4, 9
REMEMBERED = 256 * 1024 * 1024

Plain = dict[str, Any]


def created(number: int) -> str:
    """The creation time of a deployment."""
    return f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"


def world(deployments: int, clusters: int, settings: Plain) -> World:
    """Return the request about the last deployment."""
    fleet = [build.cluster(f"c{number:03}", [build.pool("p", NODES)]) for number in range(clusters)]
    made, running = [], []
    for number in range(deployments):
        one = build.deployment(f"m-{number:03}", REPLICAS)
        one["metadata"] |= {"creationTimestamp": created(number), "uid": build.uid("bench", str(number))}
        made.append(one)
        on = [f"c{(REPLICAS * number + index) % clusters:03}" for index in range(REPLICAS)]
        running += [build.replica(one, cluster, 0, pools="p", ready=True) for cluster in on]
    observed = build.observed(*running[-REPLICAS:])
    return World(
        made[-1], fleet, running, observed, input=settings, more={"all-deployments": made, "all-caches": []}
    )


def resized(before: World) -> World:
    """Return the same with a node more on one cluster."""
    made = before.copy()
    cluster = (made.clusters or ())[0]
    cluster["metadata"]["resourceVersion"] = "2"
    cluster["status"]["gpuPools"][0]["nodes"] += 1
    return made


def milliseconds(*contents: bytes) -> float:
    """The median of warm calls, one content after the other."""
    function = Function(structlog.get_logger(), memory=Memory(REMEMBERED))
    taken = []
    for turn in range(CALLS + len(contents)):
        started = time.perf_counter()
        function.answer(contents[turn % len(contents)])
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[len(contents) :]) * 1000


def measured(made: World) -> str:
    """Return the times of calls between which a pool changes, and of calls between which nothing does."""
    before, after = (which.message().SerializeToString() for which in (made, resized(made)))
    return f"{milliseconds(before, after):.0f} ms, unchanged {milliseconds(before):.0f} ms"


def main() -> None:
    """Print one line for each size."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    for deployments, clusters in SIZES:
        for name, settings in SETTINGS.items():
            said = measured(world(deployments, clusters, settings))
            sys.stdout.write(f"{deployments} deployments on {clusters} clusters, {name}: {said}\n")


if __name__ == "__main__":
    main()

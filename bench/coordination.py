"""What coordination costs: `python -m bench.coordination`.

Deployments of three Ready replicas each on clusters of one pool, everything at rest: a warm call about the
one created last, to which all others come first, with each of the settings in one process.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import structlog

from function.boundary.parse_cache import Memory
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


def milliseconds(content: bytes) -> float:
    """The median of warm calls."""
    function = Function(structlog.get_logger(), memory=Memory(REMEMBERED))
    taken = []
    for _ in range(CALLS + 1):
        started = time.perf_counter()
        function.answer(content)
        taken.append(time.perf_counter() - started)
    return sorted(taken[1:])[CALLS // 2] * 1000


def main() -> None:
    """Print one line for each size."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    for deployments, clusters in SIZES:
        results = {
            name: milliseconds(world(deployments, clusters, settings).message().SerializeToString())
            for name, settings in SETTINGS.items()
        }
        said = ", ".join(f"{name} {taken:.0f} ms" for name, taken in results.items())
        sys.stdout.write(f"{deployments} deployments on {clusters} clusters: {said}\n")


if __name__ == "__main__":
    main()

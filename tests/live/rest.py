"""A fleet at rest: what writes to it wake, what the hour's resync costs, and how soon a change is acted on.

`python -m tests.live.rest` starts a control plane of its own, installs the Configuration as shipped, and has
a hundred deployments serve on two hundred clusters. Then it writes to clusters and replicas that are none of
theirs, also on their clusters, and counts the reconciles of those at rest and the tokens of all circuit
breakers. Meanwhile an answer at rest holds for hours, so that no reconcile is by its time to live. In the end
that is taken back, a cluster is tainted, one is deleted and a node is freed, and nobody asks anybody to look.

CROSSPLANE_VERSION=2.4.0 takes that Crossplane. CORE_FLAGS="--sync-interval=2m" has a resync come within
`--quiet` seconds, in which nothing is written. The exit code is 1 when a write woke a deployment at rest, or
when a breaker opened while one was woken. Those whose replicas are written a hundred times lose their own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tests.live import burst, day, fleet, load, plane
from tests.live.function_log import FunctionLog
from tests.live.scene import Scene
from tests.live.shipped import NAMESPACE, change_step, shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tests.live.plane import ControlPlane, Plain

CALM = 15.0
"""Seconds without a call about those at rest until they are at rest."""
AFTER = 10.0
"""Seconds in which a write is followed by what it wakes."""
SHOWN = 5
HOURS = 20_000
"""Seconds that an answer at rest holds while it is counted what else wakes a deployment."""
HEADINGS = (
    "what",
    "writes",
    "reconciles at rest",
    "calls",
    "tokens",
    "dropped",
    "opened",
    "core s",
    "function s",
)
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Rest:
    """Deployments at rest, and others that are written to."""

    living: ControlPlane
    resting: set[str]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    woken: int = 0
    """Reconciles of those at rest after writes that are none of theirs."""
    opened: int = 0

    def settle(self, seconds: float = 600.0) -> None:
        """Wait until nobody at rest is called about."""
        log, started = FunctionLog(self.living), time.monotonic()
        while time.monotonic() - started < seconds:
            time.sleep(CALM)
            late = {line["name"] for line in log.answers()} & self.resting
            if not late:
                return
        for name in sorted(late)[:SHOWN]:
            conditions = (self.living.get("ModelDeployment", name, NAMESPACE) or {})["status"]["conditions"]
            sys.stderr.write(f"{name}: {[(row['type'], row['reason']) for row in conditions]}\n")
        raise AssertionError(f"deployments are still called about after {seconds:.0f} s")

    def watch(
        self, what: str, act: Callable[[], int], seconds: float = AFTER, *, theirs: bool = False
    ) -> None:
        """Do something, wait, and add a row of what it took. `theirs`: it concerns those at rest."""
        log, before, cpu = FunctionLog(self.living), burst.metrics(), processor_seconds(self.living)
        writes = act()
        time.sleep(seconds)
        spent, used = Counter(burst.metrics()), processor_seconds(self.living)
        spent.subtract(before)
        calls = [line for line in log.answers() if line["name"] in self.resting]
        reconciles = sum(not line["repeated"] for line in calls)
        tokens = sum(number for name, number in spent.items() if name.startswith("events "))
        opened = int(spent["circuit_breaker_opens_total"])
        self.woken += 0 if theirs else reconciles
        self.opened += opened if reconciles else 0  # Else it is that of somebody written to.
        counts = (writes, reconciles, len(calls), int(tokens), int(spent["events Dropped"]), opened)
        row = (what, *map(str, counts), *(f"{now - then:.1f}" for now, then in zip(used, cpu, strict=True)))
        self.rows.append(row)
        sys.stderr.write("  ".join(row) + "\n")

    def touch(self, kind: str, names: Iterable[str], namespace: str = "") -> int:
        """Write to objects what nobody reads, one after the other; return how many."""
        written = 0
        for name in names:
            annotations = {"example.com/touched": str(time.time())}
            where, body = plane.path(kind, name, namespace), {"metadata": {"annotations": annotations}}
            self.living.request("PATCH", where, body, "application/merge-patch+json")
            written += 1
        return written


def processor_seconds(living: ControlPlane) -> tuple[float, ...]:
    """Return the processor seconds of Crossplane and of the function so far."""
    return tuple(_seconds(living.state / "pids" / name) for name in ("core", "function"))


def _seconds(pid: Path) -> float:
    """Return the processor time of a process in seconds."""
    fields = Path("/proc", pid.read_text().strip(), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def repeated(names: list[str], count: int) -> Iterator[str]:
    """Yield names in turn, so many in all."""
    for number in range(count):
        yield names[number % len(names)]


def others(living: ControlPlane, resting: set[str]) -> tuple[list[str], list[str]]:
    """Return the clusters that nobody at rest is on, and the replicas that are not theirs."""
    replicas = living.list("ModelReplica", NAMESPACE)
    owner = {plane.name_of(one): one["metadata"]["labels"]["modelplane.ai/deployment"] for one in replicas}
    used = {one["spec"]["clusterName"] for one in replicas if owner[plane.name_of(one)] in resting}
    clusters = {plane.name_of(one) for one in living.list("InferenceCluster", labels="fleet=burst")}
    return sorted(clusters - used), sorted(name for name, of in owner.items() if of not in resting)


def shared_with(living: ControlPlane, resting: set[str]) -> list[str]:
    """Return the replicas that are not theirs on clusters of those at rest."""
    replicas = living.list("ModelReplica", NAMESPACE)
    theirs = [one for one in replicas if one["metadata"]["labels"]["modelplane.ai/deployment"] in resting]
    used = {one["spec"]["clusterName"] for one in theirs}
    others_there = (one for one in replicas if one not in theirs and one["spec"]["clusterName"] in used)
    return sorted(map(plane.name_of, others_there))


def beside(living: ControlPlane, count: int) -> None:
    """Create deployments that are written to, and let them serve.

    They take both nodes of their clusters, an odd one the first nodes of the next three.
    """
    made: list[Plain] = [burst.deployment(f"busy-{number:02}", 3) for number in range(count)]
    living.apply(*made)
    for deployment in made:
        fleet.until_placed(living, deployment, 3, 600)
        fleet.until_serving(living, deployment, 600)


@click.command()
@click.option("--deployments", default=100, help="How many are at rest.")
@click.option("--clusters", default=200, help="Clusters of one pool with two nodes.")
@click.option("--busy", default=11, help="Deployments of three replicas beside them; an odd number.")
@click.option("--writes", default=100, help="Of each kind.")
@click.option("--quiet", default=60.0, help="Seconds in which nothing is written.")
@click.option("--seed", default=1, help="How many replicas each deployment has.")
@click.option("--running", is_flag=True, help="Use a control plane that runs and has the packages.")
def main(
    deployments: int, clusters: int, busy: int, writes: int, quiet: float, seed: int, *, running: bool
) -> None:
    """Print what was counted as a table, and the seconds of each change as a line of JSON."""
    with shipped(running=running) as living:
        change_step(living, lambda step: step["input"].update(ttl={"settled": HOURS, "waiting": 5}))
        burst.publish_fleet(living, clusters)
        beside(living, busy)
        loaded = load.started_load(living, deployments, clusters, seed)
        rest = Rest(living, {plane.name_of(deployment) for deployment in loaded.deployments})
        rest.settle()
        empty, replicas = others(living, rest.resting)
        used = living.list("ModelReplica", NAMESPACE)[-1]["spec"]["clusterName"]
        shared = shared_with(living, rest.resting)
        assert shared, "no cluster has replicas of both"
        rest.watch("nothing", lambda: 0, quiet, theirs=True)
        rest.settle()
        rest.watch(
            "clusters that are not theirs", lambda: rest.touch("InferenceCluster", repeated(empty, writes))
        )
        rest.watch(
            "replicas that are not theirs",
            lambda: rest.touch("ModelReplica", repeated(replicas, writes), NAMESPACE),
        )
        rest.watch(
            "the same, on their clusters",
            lambda: rest.touch("ModelReplica", repeated(shared, writes), NAMESPACE),
        )
        rest.watch("one cluster of theirs", lambda: rest.touch("InferenceCluster", [used]), theirs=True)
        change_step(living, lambda step: step["input"].update(ttl={"waiting": 5}))
        scene = Scene("rest")
        scene.set_up(living)
        seconds = scene.change(living)
    sys.stdout.write(day.columns([HEADINGS, *rest.rows]))
    sys.stdout.write(json.dumps({what: round(value, 1) for what, value in seconds.items()}) + "\n")
    sys.exit(bool(rest.woken or rest.opened))


if __name__ == "__main__":
    main()

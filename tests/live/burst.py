"""A burst: many deployments created within seconds on an empty fleet, watched until all is quiet.

`python -m tests.live.burst --deployments 40 --replicas 3 --clusters 200 --seed 1` starts a control plane of
its own, installs the Configuration as shipped, creates the deployments, and prints one line: how many pools
were overcommitted on the way and in the end, how soon the conditions said so, how soon everything was
placed, calls and bytes for each reconcile. In the end it prints all bursts as a table. The exit code is 1
when a pool stays overcommitted, a replica stays unplaced, a Ready one was removed, or a call got no answer.
`--kept FILE` adds each line to a file; bursts that are in it are not played again.
"""

from __future__ import annotations

import json
import random
import re
import sys
import threading
import time
import urllib.request
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from tests.live import day, fleet, plane
from tests.live.crowds import NODES, Crowds, Nodes, crowded
from tests.live.function_log import FunctionLog
from tests.live.shipped import NAMESPACE, shipped
from tests.support import build

Plain = dict[str, Any]

FLEET = {"fleet": "burst"}
"""Labels of its clusters: other clusters of the control plane take no part."""
POOL = "h100"
RECONCILES = 2
"""A burst is over when every deployment was reconciled so often since anything changed. The first may have
begun on a snapshot from before the last change. The next one begins after it, so when that changes nothing
either, nothing ever will: an answer follows from the fleet alone. On a control plane that has no processor
time to spare that takes minutes in which nobody is answered at all."""
METRICS = "http://127.0.0.1:28080/metrics"
LOST = b'"error": "cannot run Composition pipeline step'
"""What Crossplane logs, once, when a call got no answer."""
CONTROLLER = "composite/modeldeployments.modelplane.ai"
THREADS = 8
COLUMNS = {
    "deployments": "deployments",
    "seed": "seed",
    "placed in s": "placed",
    "pools over": "most",
    "nodes over": "excess",
    "for s": "longest",
    "unsaid for s": "silent",
    "given way": "yielded",
    "over in the end": "left",
    "calls": "calls",
    "lost": "lost",
    "kB a call": "kilobytes",
    "opened": "opened",
}
"""The columns of the table, and what of `Seen` stands there."""


@dataclass(frozen=True)
class Plan:
    """What is created."""

    deployments: int
    replicas: int
    clusters: int
    seed: int
    within: float
    """Seconds in which the deployments are created."""
    start: float
    """Mean seconds until a replica that has nodes becomes Ready; 0: none does."""

    @property
    def identity(self) -> tuple[int, ...]:
        """What tells it from another burst in a file."""
        return (self.deployments, self.replicas, self.clusters, self.seed)

    def burst(self) -> list[Plain]:
        """The deployments, in the order in which they are created: names say nothing of it."""
        names = [f"model-{number:03}" for number in range(self.deployments)]
        random.Random(self.seed).shuffle(names)
        return [deployment(name, self.replicas) for name in names]


def deployment(name: str, replicas: int) -> Plain:
    """A deployment that goes to the clusters of the burst."""
    return fleet.applicable(build.deployment(name, replicas, namespace=NAMESPACE, match=FLEET))


def publish_fleet(living: plane.ControlPlane, clusters: int) -> None:
    """Create so many clusters of one pool each, all alike and empty, where they are not there yet."""
    listed = living.list("InferenceCluster")
    there = {
        plane.name_of(manifest)
        for manifest in listed
        if FLEET.items() <= manifest["metadata"].get("labels", {}).items()
    }
    pools = [build.pool(POOL, NODES)]
    made = [build.cluster(f"c-{number:03}", pools, labels=FLEET) for number in range(clusters)]
    missing = [manifest for manifest in made if plane.name_of(manifest) not in there]
    if missing:
        fleet.create_fleet(living, missing)


@dataclass
class Seen:
    """What was seen of a burst."""

    deployments: int
    replicas: int
    clusters: int
    seed: int
    created: float = 0.0
    """Seconds it took to create the deployments."""
    placed: float = 0.0
    """Seconds from the first create until every replica had a place that it kept."""
    most: int = 0
    """Pools that were overcommitted at one moment, at most."""
    excess: int = 0
    """Nodes held beyond what there is at one moment, at most."""
    longest: float = 0.0
    """Seconds that a pool was overcommitted, at most."""
    silent: float = 0.0
    """Seconds that a pool was overcommitted before a condition named it, or it was mended, at most."""
    unsaid: int = 0
    """Pools that were overcommitted for longer than `WINDOW` before a condition named them."""
    left: int = 0
    """Pools that are overcommitted in the end."""
    missing: int = 0
    """Replicas without a place in the end."""
    yielded: int = 0
    """Replicas that were removed again."""
    ready_removed: int = 0
    """Of those, how many were Ready."""
    reconciles: int = 0
    """Reconciles that ended, some of them without a call: the API server refused a stale write."""
    calls: int = 0
    repeated: int = 0
    """Of the calls, how many were made because the answer before them stated requirements."""
    errors: int = 0
    lost: int = 0
    """Calls that got no answer, by Crossplane's log."""
    kilobytes: float = 0.0
    """Received by the function in one call."""
    opened: int = 0
    """Deployments whose circuit breaker opened."""

    @property
    def fine(self) -> bool:
        """Whether it ended as it must."""
        return not (self.left or self.missing or self.ready_removed or self.errors or self.lost)


def is_ready(replica: Plain) -> bool:
    """Whether a replica says that it is Ready."""
    return plane.is_true(replica, "Ready")


@dataclass
class Kubelets:
    """Plays the workload clusters: a replica becomes Ready some time after a node of its pool is free."""

    living: plane.ControlPlane
    draw: random.Random
    mean: float
    due: dict[str, float] = field(default_factory=dict)
    nodes: Nodes = field(default_factory=Nodes)

    def look(self, replicas: list[Plain], now: float) -> None:
        """Start what there is room for."""
        self.nodes.free(replicas)
        for replica in replicas:
            name = plane.name_of(replica)
            if name in self.nodes.running:
                continue
            due = self.due.setdefault(name, now + self.draw.expovariate(1 / self.mean))
            if now >= due and self.nodes.take(replica):
                fleet.make_ready(self.living, [replica])


def create(living: plane.ControlPlane, plan: Plan) -> float:
    """Create the deployments within the time that is given; return how long it took."""
    waiting = plan.burst()
    started = time.monotonic()
    pace = plan.within / max(1, len(waiting))
    where = plane.path("ModelDeployment", namespace=NAMESPACE)
    lock = threading.Lock()

    def work() -> None:
        connection = plane.ControlPlane(living.scripts, living.state)
        while True:
            with lock:
                if not waiting:
                    return
                item, number = waiting.pop(0), plan.deployments - len(waiting)
            time.sleep(max(0.0, started + number * pace - time.monotonic()))
            connection.request("POST", where, item)

    workers = [threading.Thread(target=work) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.monotonic() - started


def metrics(controller: str = CONTROLLER) -> dict[str, float]:
    """What Crossplane counts for composites of a kind, deployments where nobody says another."""
    with urllib.request.urlopen(METRICS, timeout=10) as page:
        lines = page.read().decode().splitlines()
    ours = [line for line in lines if f'controller="{controller}"' in line]
    counted: Counter[str] = Counter()
    for item in ours:
        named, _, value = item.rpartition(" ")
        name = named.partition("{")[0]
        if name in ("controller_runtime_reconcile_total", "circuit_breaker_opens_total"):
            counted[name] += float(value)
        if name == "circuit_breaker_events_total":
            counted["events " + re.sub(r'.*result="([^"]*)".*', r"\1", named)] += float(value)
    return dict(counted)


class Asked:
    """How often each deployment was reconciled since something changed, by the function's log."""

    def __init__(self, log: FunctionLog) -> None:
        """Count from now on."""
        self._log = log
        self._counts: Counter[str] = Counter()

    def forget(self) -> None:
        """Something changed: what was answered before says nothing any more."""
        self._log.skip()
        self._counts.clear()

    def often(self, deployments: set[str]) -> bool:
        """Whether every one of these deployments was reconciled `RECONCILES` times."""
        answered = (line for line in self._log.answers() if line["event"] == "answered")
        # A repeated call is one more of the same reconcile, on the same snapshot of what was stated before.
        first = (line for line in answered if not line["repeated"])
        self._counts.update(line["name"] for line in first if line["namespace"] == NAMESPACE)
        return all(self._counts[name] >= RECONCILES for name in deployments)


def lost_calls(state: Path) -> int:
    """Calls of the function that got no answer, by the log of Crossplane."""
    return (state / "logs" / "core.log").read_bytes().count(LOST)


def watch(living: plane.ControlPlane, plan: Plan, seen: Seen, patience: float) -> None:
    """Look at the replicas until everybody was answered and nothing changed, or patience ends."""
    started = time.monotonic()
    kubelets = Kubelets(living, random.Random(plan.seed), plan.start) if plan.start else None
    crowds = Crowds(living, NAMESPACE)
    before: dict[str, bool] = {}
    asked, deployments = Asked(FunctionLog(living)), {plane.name_of(item) for item in plan.burst()}
    while time.monotonic() - started < patience:
        replicas, now = living.list("ModelReplica", NAMESPACE), time.monotonic()
        if kubelets:
            kubelets.look(replicas, now)
        alive = {
            plane.name_of(replica): is_ready(replica)
            for replica in replicas
            if "deletionTimestamp" not in replica["metadata"]
        }
        gone = before.keys() - alive.keys()
        seen.yielded += len(gone)
        seen.ready_removed += sum(before[name] for name in gone)
        if alive != before:
            asked.forget()
        elif asked.often(deployments):
            break
        if alive.keys() != before.keys():
            seen.placed = now - started
        before = alive
        crowds.look(replicas, now)
        time.sleep(0.5)
    replicas = living.list("ModelReplica", NAMESPACE)
    seen.most, seen.excess, seen.unsaid = crowds.most, crowds.excess, len(crowds.late)
    seen.longest, seen.silent = crowds.longest, crowds.silent
    seen.left = len(crowded(replicas))
    seen.missing = plan.deployments * plan.replicas - len(before)


def run(living: plane.ControlPlane, plan: Plan, patience: float) -> Seen:
    """Play one burst on a fleet that is there already."""
    seen = Seen(plan.deployments, plan.replicas, plan.clusters, plan.seed)
    counted, log, lost = metrics(), FunctionLog(living), lost_calls(living.state)
    creator = threading.Thread(target=lambda: setattr(seen, "created", create(living, plan)))
    creator.start()
    watch(living, plan, seen, patience)
    creator.join()
    after = metrics()
    lines = list(log.answers())
    name = "controller_runtime_reconcile_total"
    seen.reconciles = int(after.get(name, 0) - counted.get(name, 0))
    seen.calls = len(lines)
    seen.errors = sum(line["event"] == "failed" for line in lines)
    seen.repeated = sum(line.get("repeated", False) for line in lines)
    seen.kilobytes = sum(line.get("received", 0) for line in lines) / 1000 / max(1, len(lines))
    seen.lost = lost_calls(living.state) - lost
    name = "circuit_breaker_opens_total"
    seen.opened = int(after.get(name, 0) - counted.get(name, 0))
    return seen


def clear(living: plane.ControlPlane, seconds: float = 300) -> None:
    """Delete the deployments and wait until their replicas are gone."""
    living.kubectl("delete", "modeldeployments", "--all", "-n", NAMESPACE, "--wait=false")
    plane.until(
        lambda: not living.list("ModelDeployment", NAMESPACE) and not living.list("ModelReplica", NAMESPACE),
        "the end of the deployments",
        seconds,
    )


@click.command()
@click.option("--deployments", multiple=True, type=int, default=(40,), help="How many; may be given again.")
@click.option("--replicas", default=3, help="Replicas of each.")
@click.option("--clusters", default=200, help="Clusters of one pool with two nodes.")
@click.option("--seed", "seeds", multiple=True, type=int, default=(1,), help="May be given again.")
@click.option("--within", default=4.0, help="Seconds in which the deployments are created.")
@click.option("--start", default=0.0, help="Mean seconds until a replica is Ready; 0: none ever is.")
@click.option("--patience", default=400.0, help="Seconds until a burst that is not quiet is given up.")
@click.option("--settings", default=None, help="JSON: the function's input instead of the shipped one.")
@click.option("--kept", type=click.Path(dir_okay=False, path_type=Path), help="File of what was played.")
@click.option("--running", is_flag=True, help="Use a control plane that runs and has the packages.")
def main(
    deployments: tuple[int, ...],
    seeds: tuple[int, ...],
    settings: str | None,
    *,
    kept: Path | None,
    running: bool,
    patience: float,
    **given: Any,
) -> None:
    """Play bursts and print what was seen, one line of JSON each."""
    plans = [Plan(number, seed=seed, **given) for number in deployments for seed in seeds]
    seen = earlier(kept)
    if any(plan.identity not in seen for plan in plans):
        with shipped(json.loads(settings) if settings else None, running=running) as living:
            for plan in plans:
                if plan.identity not in seen:
                    seen[plan.identity] = played(living, plan, patience, kept)
    bursts = [seen[plan.identity] for plan in plans]
    sys.stdout.write(table(bursts))
    sys.exit(not all(seen.fine for seen in bursts))


def table(bursts: list[Seen]) -> str:
    """Bursts as a table of text, a row each."""
    rows = [tuple(f"{getattr(seen, name):.0f}" for name in COLUMNS.values()) for seen in bursts]
    return day.columns([tuple(COLUMNS), *rows])


def earlier(kept: Path | None) -> dict[tuple[int, ...], Seen]:
    """Return what was seen of the bursts in a file, by what was played."""
    lines = kept.read_text().splitlines() if kept is not None and kept.exists() else []
    bursts = [Seen(**json.loads(line)) for line in lines]
    return {(one.deployments, one.replicas, one.clusters, one.seed): one for one in bursts}


def played(living: plane.ControlPlane, plan: Plan, patience: float, kept: Path | None) -> Seen:
    """Play one burst from an empty fleet, print its line, and return what was seen."""
    publish_fleet(living, plan.clusters)
    seen = run(living, plan, patience)
    line = json.dumps({key: round(value, 1) for key, value in asdict(seen).items()}) + "\n"
    sys.stdout.write(line)
    sys.stdout.flush()
    if kept is not None:
        with kept.open("a") as file:
            file.write(line)
    clear(living)
    return seen


if __name__ == "__main__":
    main()

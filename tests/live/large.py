"""A large fleet at rest: what Crossplane and the function take of the processor while nothing happens.

`python -m tests.live.large` starts a control plane of its own, installs the Configuration as shipped, and has
1,000 deployments serve on 1,000 clusters. Nobody places them, which is another measurement: deployments,
replicas and endpoints are created by hand as they end up, while Crossplane is told to leave them alone. Then
it is let loose on the deployments, and once each has been answered the minutes are counted. Replicas,
endpoints and clusters stay paused: what their own composites take is not in the figures.

CROSSPLANE_VERSION=2.4.0 takes that Crossplane. The exit code is 1 when a deployment does not come to rest,
when a replica changes, or when a breaker opens.
"""

from __future__ import annotations

import sys
import threading
import time
from itertools import cycle
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import click

from function.api.names import PAUSED_ANNOTATION
from tests.live import burst, day, fleet, plane
from tests.live.crowds import NODES
from tests.live.function_log import FunctionLog
from tests.live.rest import processor_seconds
from tests.live.shipped import NAMESPACE, shipped
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.live.plane import ControlPlane, Plain

COMPOSED_AS = "crossplane.io/composition-resource-name"
THREADS = 4
LOOK = 5.0
"""Seconds between two looks at all deployments."""
MINUTE = 60.0
HEADINGS = ("minute", "reconciles", "calls", "kB a call", "Crossplane s", "function s", "of one core")
PAUSED = {PAUSED_ANNOTATION: "true"}


def everywhere(
    living: ControlPlane, what: str, act: Callable[[ControlPlane, Plain], object], on: Iterable[Plain]
) -> None:
    """Do something with each of many objects, some at a time."""
    waiting: SimpleQueue[Plain] = SimpleQueue()
    for plain in on:
        waiting.put(plain)
    failed: list[Exception] = []

    def work() -> None:
        connection = plane.ControlPlane(living.scripts, living.state)
        while not failed:
            try:
                act(connection, waiting.get_nowait())
            except Empty:
                return
            except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
                failed.append(error)

    sys.stderr.write(f"{what}: {waiting.qsize()}\n")
    workers = [threading.Thread(target=work) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed:
        raise failed[0]


def paused(plain: Plain) -> Plain:
    """Return an object that Crossplane leaves alone, as it is created."""
    made = fleet.applicable(plain)
    made["metadata"]["annotations"] = made["metadata"].get("annotations", {}) | PAUSED
    return made


def create(living: ControlPlane, plain: Plain) -> None:
    """Create an object and publish its status, where it is not there yet."""
    metadata = plain["metadata"]
    where = plane.path(plain["kind"], namespace=metadata.get("namespace", ""))
    if living.request("GET", f"{where}/{metadata['name']}") is None:
        living.request("POST", where, plain)
    if "status" in plain:
        living.publish(plain)


def parts(deployment: Plain, clusters: Iterable[str]) -> list[tuple[str, Plain]]:
    """Return the replicas and endpoints that a deployment ends up with, each with its key."""
    made = []
    for on in clusters:
        replica = build.replica(deployment, on, 0, pools=burst.POOL)
        endpoint = build.endpoint(replica)
        for prefix, plain in (("replica", replica), ("endpoint", endpoint)):
            made.append((f"{prefix}-{on}-0", plain))
    return made


def furnish(living: ControlPlane, deployments: int, clusters: int) -> None:
    """Create everything as it ends up: every deployment has two replicas, every cluster is full."""
    names = [f"c-{number:04}" for number in range(clusters)]
    pools = [build.pool(burst.POOL, NODES)]
    empty = [build.cluster(name, pools, labels=burst.FLEET) for name in names]
    everywhere(living, "clusters", create, [{**paused(one), "status": one["status"]} for one in empty])
    turn = cycle(names)
    made = [
        build.deployment(f"model-{number:04}", NODES, namespace=NAMESPACE, match=burst.FLEET)
        for number in range(deployments)
    ]
    composed = {plane.name_of(one): parts(one, [next(turn) for _ in range(NODES)]) for one in made}
    for one in made:
        references = [
            {"apiVersion": plain["apiVersion"], "kind": plain["kind"], "name": plane.name_of(plain)}
            for _, plain in composed[plane.name_of(one)]
        ]
        one["spec"]["crossplane"] = {"resourceRefs": references}
    everywhere(living, "deployments", create, map(paused, made))
    owners = {plane.name_of(one): one for one in living.list("ModelDeployment", NAMESPACE)}
    children = [
        child(owners[name], key, plain)
        for name, composed_by in composed.items()
        for key, plain in composed_by
    ]
    everywhere(living, "replicas and endpoints", create, children)


def child(owner: Plain, key: str, plain: Plain) -> Plain:
    """Return a replica or an endpoint as its deployment composed it, Ready."""
    made = paused({**plain, "metadata": {**plain["metadata"], "namespace": NAMESPACE}})
    made["metadata"]["ownerReferences"] = [build.owner(owner)]
    made["metadata"]["labels"] |= {"crossplane.io/composite": plane.name_of(owner)}
    made["metadata"]["annotations"] |= {COMPOSED_AS: key}
    return {**made, "status": {"conditions": [fleet.ready_condition(ready=True)]}}


def let_loose(living: ControlPlane, deployment: Plain) -> None:
    """Have Crossplane reconcile a deployment again."""
    where = plane.path("ModelDeployment", plane.name_of(deployment), NAMESPACE)
    patch = {"metadata": {"annotations": {PAUSED_ANNOTATION: None}}}
    living.request("PATCH", where, patch, "application/merge-patch+json")


def until_answered(living: ControlPlane, seconds: float) -> None:
    """Wait until every deployment says that all its replicas are ready."""

    def answered() -> bool:
        time.sleep(LOOK)
        listed = living.list("ModelDeployment", NAMESPACE)
        return all(plane.is_true(one, "ReplicasReady") for one in listed)

    plane.until(answered, "ReplicasReady of every deployment", seconds)


def specs(living: ControlPlane) -> dict[str, Plain]:
    """Return what every replica is to run."""
    return {plane.name_of(one): one["spec"] for one in living.list("ModelReplica", NAMESPACE)}


@click.command(context_settings={"show_default": True})
@click.option("--deployments", default=1000, help="Of two replicas each, as every cluster has two nodes.")
@click.option("--clusters", default=1000)
@click.option("--minutes", default=5, help="How long it is watched.")
@click.option("--patience", default=1200.0, help="Seconds until all must be at rest.")
@click.option("--running", is_flag=True, help="Use a control plane that runs and has the packages.")
def main(deployments: int, clusters: int, minutes: int, patience: float, *, running: bool) -> None:
    """Print what each minute took as a table."""
    rows = []
    with shipped(running=running) as living:
        furnish(living, deployments, clusters)
        before = specs(living)
        everywhere(living, "let loose", let_loose, living.list("ModelDeployment", NAMESPACE))
        until_answered(living, patience)
        time.sleep(MINUTE)  # What the last ones wrote wakes them once more.
        opened = burst.metrics().get("circuit_breaker_opens_total", 0.0)
        for number in range(1, minutes + 1):
            rows.append(watched(living, str(number)))
            sys.stderr.write("  ".join(rows[-1]) + "\n")
        opened = burst.metrics().get("circuit_breaker_opens_total", 0.0) - opened
        changed = specs(living) != before
    sys.stdout.write(day.columns([HEADINGS, *rows, total(rows)]))
    sys.stdout.write(f"{deployments} deployments, {clusters} clusters, breakers opened: {opened:.0f}\n")
    sys.exit(bool(opened) or changed)


def watched(living: ControlPlane, label: str) -> tuple[str, ...]:
    """Wait a minute, and return what it took as a row."""
    log, started = FunctionLog(living), time.monotonic()
    before = processor_seconds(living)
    time.sleep(MINUTE)
    core, function = (now - then for now, then in zip(processor_seconds(living), before, strict=True))
    calls = list(log.answers())
    reconciles = sum(not line["repeated"] for line in calls)
    size = sum(line["received"] for line in calls) / 1000 / max(1, len(calls))
    share = (core + function) / (time.monotonic() - started)
    seconds = (f"{core:.1f}", f"{function:.1f}", f"{share:.1%}")
    return (label, f"{reconciles}", f"{len(calls)}", f"{size:.1f}", *seconds)


def total(rows: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the row of all minutes: sums, and means of the size of a call and of the share."""
    figures = [[float(text.rstrip("%")) for text in row[1:]] for row in rows]
    reconciles, calls, size, core, function, share = zip(*figures, strict=True)
    count = len(rows)
    return (
        "all",
        f"{sum(reconciles):.0f}",
        f"{sum(calls):.0f}",
        f"{sum(size) / count:.1f}",
        f"{sum(core):.1f}",
        f"{sum(function):.1f}",
        f"{sum(share) / count:.1f}%",
    )


if __name__ == "__main__":
    main()

"""What a deployment on its way to Ready costs of its circuit breaker: events by object, and what changed.

`python -m tests.live.events --replicas 20` starts a control plane, creates one deployment, turns its replicas
and endpoints Ready one by one, and prints what changed in each event with the tokens it took: one for a
create, two for an update, of the composite itself and of everything it composes. A composite has 100 of them,
and gets one more each second; without any, Crossplane opens the breaker.

With `--pods` it is one replica on a workload cluster instead, until it has an endpoint: what a ModelReplica
costs, whose Objects provider-kubernetes writes to.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from tests.live import burst, fleet, plane, workload
from tests.live.shipped import NAMESPACE, shipped

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]

KINDS = ("ModelDeployment", "ModelReplica", "ModelEndpoint")
TOKENS = {"ADDED": 1, "MODIFIED": 2, "DELETED": 0}
IGNORED = frozenset({"managedFields", "resourceVersion", "generation"})


def changes(before: Any, after: Any, path: str = "") -> list[str]:
    """The paths at which two values differ; list elements by their position."""
    if before == after:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted((before.keys() | after.keys()) - IGNORED)
        return [one for key in keys for one in changes(before.get(key), after.get(key), f"{path}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [one for left, right in pairs for one in changes(left, right, f"{path}[]")]
    return [path.lstrip(".")]


@dataclass
class Watch:
    """Follows every object of a kind in a namespace."""

    kind: str
    namespace: str = NAMESPACE
    seen: list[tuple[float, str, str, tuple[str, ...]]] = field(default_factory=list)
    """Time, event type, name, changed paths."""
    held: dict[str, Plain] = field(default_factory=dict)

    def start(self) -> None:
        """Begin, from now on."""
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while True:
            try:
                for event in self._events():
                    if event["type"] == "ERROR":  # The kind is so new that the server cannot watch it yet.
                        time.sleep(0.5)
                        break
                    self._note(event["type"], event["object"])
            except (http.client.HTTPException, OSError, ValueError):
                return  # The control plane has ended, in the middle of a line perhaps.

    def _events(self) -> Iterator[Plain]:
        context = ssl._create_unverified_context()  # noqa: S323 - its own certificate, on loopback
        connection = http.client.HTTPSConnection("127.0.0.1", plane.PORT, context=context)
        where = plane.path(self.kind, namespace=self.namespace)
        connection.request("GET", f"{where}?watch=1", headers={"Authorization": "Bearer admin-token"})
        yield from map(json.loads, connection.getresponse())

    def _note(self, kind: str, now: Plain) -> None:
        name = plane.name_of(now)
        paths = changes(self.held.get(name, {}), now) if kind == "MODIFIED" else []
        self.held[name] = now
        self.seen.append((time.monotonic(), kind, name, tuple(dict.fromkeys(paths))))


def tokens(watches: list[Watch], name: str = "model") -> int:
    """The tokens that the events of a deployment took: its own, and those of what it composes."""
    return sum(TOKENS[kind] for watch in watches for _, kind, of, _ in watch.seen if of.startswith(name))


def notified(watches: list[Watch], name: str = "model") -> Counter[str]:
    """How often each thing changed, by kind."""
    return Counter(
        f"{watch.kind} {kind} {' '.join(sorted(paths))}".strip()
        for watch in watches
        for _, kind, of, paths in watch.seen
        if of.startswith(name)
    )


def bystanders(living: plane.ControlPlane, count: int) -> None:
    """Create deployments of one replica each, and wait until they are at rest."""
    made = [burst.deployment(f"other-{number:02}", 1) for number in range(count)]
    if made:
        living.apply(*made)
    for manifest in made:
        fleet.until_placed(living, manifest, 1, 300)
        fleet.until_serving(living, manifest, 300)
    time.sleep(20 if made else 0)


def to_ready(living: plane.ControlPlane, replicas: int, pause: float, others: int) -> Plain:
    """Play one deployment until all its replicas are Ready, and return what was seen."""
    bystanders(living, others)
    watches = [Watch(kind) for kind in KINDS]
    for watch in watches:
        watch.start()
    time.sleep(1)
    before, started = burst.metrics(), time.monotonic()
    made = burst.deployment("model", replicas)
    living.apply(made)
    standing = fleet.until_placed(living, made, replicas, 120)
    time.sleep(5)
    placed = tokens(watches)
    for item in standing:
        fleet.make_ready(living, [item])
        time.sleep(pause)
        for one in fleet.endpoints(living, made):
            if not plane.is_true(one, "Ready"):
                fleet.make_ready(living, [one])
    plane.until(lambda: len(fleet.endpoints(living, made)) == replicas, "an endpoint of each", 400)
    fleet.make_ready(
        living,
        [endpoint for endpoint in fleet.endpoints(living, made) if not plane.is_true(endpoint, "Ready")],
    )
    fleet.until_reason(living, made, "AllReplicasReady", "ReplicasReady", 400)
    plane.until(lambda: plane.is_true(fleet.current(living, made), "Ready"), "the deployment Ready", 400)
    elapsed = time.monotonic() - started
    time.sleep(max(5, 150 - elapsed) if others else 5)  # Everybody's settled ttl has run out by then.
    after, responsive = burst.metrics(), fleet.reason(living, made, "Responsive")
    started = time.monotonic()
    living.apply({**made, "spec": {**made["spec"], "replicas": replicas + 1}})
    fleet.until_placed(living, made, replicas + 1, 400)
    spent = {key: int(after[key] - before.get(key, 0)) for key in after if after[key] != before.get(key, 0)}
    return {
        "replicas": replicas,
        "seconds": round(elapsed, 1),
        "tokens to placed": placed,
        "tokens to Ready": tokens(watches),
        "tokens per replica": round(tokens(watches) / replicas, 1),
        "breaker then": responsive,
        "seconds until one more replica is placed": round(time.monotonic() - started, 1),
        "tokens of the others": tokens(watches, "other"),
        "metrics": spent,
        "events": dict(notified(watches).most_common()),
        "events of the others": dict(notified(watches, "other").most_common()),
    }


def to_pods(living: plane.ControlPlane) -> Plain:
    """Play one replica on a workload cluster until it has an endpoint, and return what was seen."""
    with workload.running(living):
        workload.give_the_platforms_part_back(living)
        living.apply(fleet.applicable(workload.declared_class()))
        living.apply(workload.declared_cluster("events", "events", 1))
        plane.until(lambda: plane.is_true(living.get("InferenceCluster", "events"), "Ready"), "Ready", 120)
        watches = [Watch(kind) for kind in ("ModelReplica", "Object", "ObservedObjectCollection")]
        for watch in watches:
            watch.start()
        time.sleep(1)
        made = fleet.small_deployment("model", "events", 1, NAMESPACE)
        living.apply(made)
        plane.until(lambda: fleet.endpoints(living, made), "an endpoint", 120)
        time.sleep(30)
    by_kind = {watch.kind: tokens([watch]) for watch in watches}
    return {"tokens": by_kind, "events": dict(notified(watches).most_common())}


@click.command()
@click.option("--replicas", multiple=True, type=int, default=(20,), help="How many; may be given again.")
@click.option("--clusters", default=40, help="Clusters of one pool with two nodes.")
@click.option("--pause", default=0.5, help="Seconds between a replica's Ready and the next one's.")
@click.option("--others", default=0, help="Deployments at rest beside it.")
@click.option("--pods", is_flag=True, help="One replica on a workload cluster (make provider).")
@click.option("--running", is_flag=True, help="Use a control plane that runs and has the packages.")
def main(
    replicas: tuple[int, ...], clusters: int, pause: float, others: int, *, pods: bool, running: bool
) -> None:
    """Print what was seen, one object of JSON for each number of replicas."""
    if pods and (reason := workload.missing()):
        sys.exit(reason)
    with shipped(running=running) as living:
        if pods:
            sys.stdout.write(json.dumps(to_pods(living), indent=1) + "\n")
            return
        burst.publish_fleet(living, clusters)
        for number in replicas:
            sys.stdout.write(json.dumps(to_ready(living, number, pause, others), indent=1) + "\n")
            burst.clear(living)


if __name__ == "__main__":
    main()

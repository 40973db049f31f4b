"""Gangs that PodGroups bind together, on the real scheduler and controllers: `--only groups`.

Where the cluster has PodGroups, and LeaderWorkerSets with the field, every case is a pool with a device a
node, and as many nodes as it needs or one less. Elsewhere the handler must say what is missing, and the gang
must come up without a group once the cluster asks for none. The handler's answer is applied and reported as
provider-kubernetes does it, and the handler is asked again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.referee import cluster
from tests.referee.kserve import Unexpected, is_true, kubectl
from tests.referee.kueue import PODS, Queued
from tests.referee.worlds import entry
from tests.replica import build

if TYPE_CHECKING:
    from collections.abc import Callable

Plain = dict[str, Any]
ANY = 'device.driver == "gpu.nvidia.com"'
HELD = {"metadata": {"finalizers": ["example.com/still-stopping"]}}
"""A pod that a kubelet has not stopped yet."""
MERGE = "application/merge-patch+json"
CLAIMS = cluster.PATHS["ResourceClaim"]


class Pool:
    """Nodes with one device each, and what runs there."""

    def __init__(self, name: str, nodes: int) -> None:
        """Make the nodes."""
        self.name, self.made, self.replicas = name, [], []
        for _ in range(nodes):
            self.add_node()

    made: list[tuple[str, str]]
    replicas: list[Grouped]

    def add_node(self) -> None:
        """Add a node."""
        name = f"{self.name}-{len(self.made) // 2}"
        self.made += cluster.add_node(name, {"modelplane.ai/pool": self.name}, [entry("gpu", 1)])

    def claiming(self, role: str = "Standalone", **options: Any) -> Plain:
        """Return a member that takes a node of the pool."""
        return build.member(role, [build.claim("gpu", 1, ANY)], pool=self.name, **options)

    def gang(self, workers: int = 1, copies: int = 1, **options: Any) -> Plain:
        """Return an engine of groups."""
        members = self.claiming("Leader", **options), self.claiming("Worker", nodes=workers, **options)
        return build.engine("main", *members, copies=copies)

    def declared(self, gangs: str = "PodGroup") -> Plain:
        """Return the cluster."""
        stated = {"scheduling": {"gangs": gangs}} if gangs else {}
        return build.cluster({"name": self.name, "className": "any", "nodeCount": 9}, **stated)

    def replica(self, name: str, *engines: Plain, gangs: str = "PodGroup") -> Grouped:
        """Return a replica that is not on the cluster yet."""
        made = build.replica(*engines, name=f"{self.name}-{name}")
        scene = build.Scene(made, self.declared(gangs), input=build.config(diagnose="Pods"))
        self.replicas.append(Grouped(scene))
        return self.replicas[-1]

    def rival(self) -> Grouped:
        """Return a replica of one pod."""
        return self.replica("rival", build.engine("main", self.claiming()))

    def remove(self) -> None:
        """Delete everything."""
        for replica in self.replicas:
            replica.leave()
        for kind, name in self.made:
            cluster.delete(kind, name)


class Grouped(Queued):
    """A replica whose pods and devices are counted."""

    def put(self, manifest: Plain) -> str:
        """Apply a manifest; return why it is refused, as provider-kubernetes says it."""
        refused = super().put(manifest)
        return f"create failed: {refused}" if refused else ""

    def holds(self) -> tuple[int, int, int]:
        """Return how many pods there are, how many have a node, and how many claims have devices."""
        pods = [pod for pod in self.pods() if "deletionTimestamp" not in pod["metadata"]]
        names = {pod["metadata"]["name"] for pod in pods}
        claims = [
            claim
            for claim in cluster.call("GET", CLAIMS)["items"]
            if names & {owner["name"] for owner in claim["metadata"].get("ownerReferences", ())}
        ]
        bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
        return len(pods), bound, sum("allocation" in claim.get("status", {}) for claim in claims)

    def becomes(self, pods: int, bound: int, what: str) -> None:
        """Wait until so many pods have nodes and devices; raise Unexpected where that does not last."""
        wanted = pods, bound, bound
        self.until(lambda _: self.holds() == wanted, f"{what}: {wanted}")
        self.settle()
        if (held := self.holds()) != wanted:
            raise Unexpected(f"{what}: {held} instead of {wanted}")

    def runs(self, pods: int, what: str) -> None:
        """Wait until all pods run as it is wanted."""
        self.becomes(pods, pods, what)
        self.until(lambda answer: is_true(answer, "ModelUpdated"), what)

    def edit(self, *engines: Plain) -> None:
        """Edit the engines."""
        self.scene = self.scene.edited(engines=list(engines))

    def patch(self, pod: Plain, change: Plain) -> None:
        """Change a pod."""
        cluster.call("PATCH", f"{PODS}/{pod['metadata']['name']}", change, MERGE)

    def groups(self) -> int:
        """Return how many PodGroups are composed."""
        return sum(one["kind"] == "PodGroup" for one in self.applied.values())

    def leave(self) -> None:
        """Delete everything of it."""
        for pod in self.all_pods():
            self.patch(pod, {"metadata": {"finalizers": None}})
        for one in self.applied.values():
            words = ("--namespace=default", "--wait=false", "--ignore-not-found")
            kubectl("delete", one["kind"], one["metadata"]["name"], *words)
        self.applied = {}
        cluster.wait(lambda: not self.all_pods(), 60)


def waits_whole(pool: Pool) -> None:
    """With a node less than it needs it holds none, another replica gets it, and it comes up once it can."""
    gang, rival = pool.replica("gang", pool.gang(2)), pool.rival()
    gang.becomes(3, 0, "one of three devices is missing")
    rival.runs(1, "what fits gets a device that the gang does not hold")
    pool.add_node()
    gang.becomes(3, 0, "one is missing still")
    pool.add_node()
    gang.runs(3, "all are there")


def is_edited(pool: Pool) -> None:
    """While a pod of before is stopping no new one is bound, and what is free meanwhile goes to who fits."""
    gang, rival = pool.replica("gang", pool.gang()), pool.rival()
    gang.runs(2, "at first")
    worker = next(pod for pod in gang.pods() if pod["metadata"]["name"].endswith("-0-1"))
    gang.patch(worker, HELD)
    gang.edit(pool.gang(image="vllm:v2"))
    gang.until(
        lambda _: any(pod["spec"]["containers"][0]["image"] == "vllm:v2" for pod in gang.pods()),
        "a leader of the edit",
    )
    gang.becomes(1, 0, "the worker of before is stopping")
    rival.runs(1, "what fits gets the device")
    gang.patch(worker, {"metadata": {"finalizers": None}})
    gang.becomes(2, 0, "a device is missing")
    rival.leave()
    gang.runs(2, "as edited")
    if gang.groups() != 1:
        raise Unexpected(f"{gang.groups()} PodGroups are left")


def changes_its_size(pool: Pool) -> None:
    """With more workers than there are devices it waits whole; with fewer again it comes up."""
    gang = pool.replica("gang", pool.gang())
    gang.runs(2, "at first")
    gang.edit(pool.gang(2))
    gang.becomes(3, 0, "three pods, two devices")
    gang.edit(pool.gang(1))
    gang.runs(2, "two pods, two devices")


def loses_a_node(pool: Pool) -> None:
    """A gang that lost a node waits whole, until there is another."""
    gang = pool.replica("gang", pool.gang())
    gang.runs(2, "at first")
    pod = gang.pods()[-1]
    where = f"{cluster.PATHS['Node']}/{pod['spec']['nodeName']}"
    cluster.call("PATCH", where, {"spec": {"unschedulable": True}}, MERGE)
    cluster.delete("Pod", pod["metadata"]["name"], gracePeriodSeconds=0)
    gang.becomes(2, 0, "a node is lost")
    pool.add_node()
    gang.runs(2, "another node is there")


def is_scaled(pool: Pool) -> None:
    """Copies restart no pod; with the next edit several copies have no group."""
    gang = pool.replica("gang", pool.gang())
    gang.runs(2, "at first")
    before = {pod["metadata"]["uid"] for pod in gang.pods()}
    gang.edit(pool.gang(copies=2))
    gang.runs(4, "two copies")
    if not before <= {pod["metadata"]["uid"] for pod in gang.pods()}:
        raise Unexpected("copies restart pods")
    gang.edit(pool.gang(copies=2, image="vllm:v2"))
    gang.runs(4, "two copies, edited")
    if gang.groups():
        raise Unexpected("two copies have a PodGroup")
    gang.edit(pool.gang(image="vllm:v3"))
    gang.runs(2, "one copy, edited")
    if gang.groups() != 1:
        raise Unexpected(f"one copy has {gang.groups()} PodGroups")


def is_switched_on(pool: Pool) -> None:
    """What runs without a group goes on, and gets one with its next edit."""
    gang = pool.replica("gang", pool.gang(), gangs="")
    gang.runs(2, "without")
    before = {pod["metadata"]["uid"] for pod in gang.pods()}
    gang.scene = gang.scene.but(cluster=pool.declared())
    gang.runs(2, "switched on")
    if gang.groups() or before != {pod["metadata"]["uid"] for pod in gang.pods()}:
        raise Unexpected("switching it on changes what runs")
    gang.edit(pool.gang(image="vllm:v2"))
    gang.runs(2, "edited")
    if gang.groups() != 1:
        raise Unexpected("an edit gives it no group")


CASES: dict[str, tuple[Callable[[Pool], None], int]] = {
    "comes up whole": (waits_whole, 2),
    "an image, while a pod stops": (is_edited, 2),
    "more workers, then fewer": (changes_its_size, 2),
    "a lost node": (loses_a_node, 2),
    "copies": (is_scaled, 4),
    "switched on": (is_switched_on, 2),
}
"""What is tried, each with the nodes that there are at first."""


def cannot(pool: Pool) -> None:
    """Where a part is missing the handler says so, and without a group the gang comes up."""
    gang = pool.replica("gang", pool.gang())
    answer = gang.settle()
    said = {answer.conditions[kind][2] for kind in ("ModelAccepted", "ModelUpdated")}
    if not any("schedulingGroup" in text or "PodGroup" in text for text in said):
        raise Unexpected(f"nothing says what is missing: {said}")
    gang.scene = gang.scene.but(cluster=pool.declared(""))
    gang.runs(2, "switched off")


def report(say: Callable[[str], None]) -> list[str]:
    """Try every case, and return what differs."""
    elsewhere = cluster.add_node("elsewhere", {}, [])  # For the pickers, which claim nothing.
    served = cluster.call("GET", "/apis/scheduling.k8s.io/v1beta1").get("resources", [])
    cases = CASES if served else {"there is no PodGroup": (cannot, 2)}
    differ = []
    for at, (what, (ask, nodes)) in enumerate(cases.items()):
        pool, said = Pool(f"groups-{at}", nodes), "as it should"
        try:
            ask(pool)
        except Unexpected as unexpected:
            said = f"DIFFERS: {unexpected}"
            differ.append(f"{what}: {unexpected}")
        finally:
            pool.remove()
        say(f"{what:42}  {said}")
    for kind, name in elsewhere:
        cluster.delete(kind, name)
    return differ

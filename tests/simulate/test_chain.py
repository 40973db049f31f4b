"""From a ModelDeployment to a served endpoint, and everything that happens to it: the loop is closed.

What serves is lost for a listed reason only, and once its pods stand still a replica is at rest within five
reconciles.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from function.api.names import PAUSED_ANNOTATION
from function.objects import MEMBERSHIP_LABEL
from tests.replica.build import config
from tests.simulate.chain import COMPOSITES, ClosedLoop
from tests.simulate.workers import Cluster, condition, image_of
from tests.support import build
from tests.support.crossplane import VERSIONS, name_of
from tests.support.scale import seeds

Plain = dict[str, Any]

PROVIDER_CONFIG, NAME = "use1-kubeconfig", "use1"
LAGS, QUEUES = ((0.0, 0.0), (0.0, 0.1), (0.0, 2.0)), ((0.0, 0.0), (0.0, 5.0))
AT_REST = 5
"""Reconciles until nothing changes, once the pods stand still."""


def cluster(nodes: int = 2) -> Plain:
    """Return an InferenceCluster whose Composition is the platform's."""
    made = build.cluster(NAME, [build.pool("h100", nodes)])
    made["status"]["providerConfigRef"] = {"name": PROVIDER_CONFIG}
    return made


def plane(
    deployment: Plain,
    nodes: int = 2,
    *,
    there: int | None = None,
    version: str = "2.3",
    late: Plain | None = None,
    **settings: Any,
) -> ClosedLoop:
    """Return a control plane with one cluster of `nodes` nodes, of which `there` are up."""
    up = nodes if there is None else there
    labels = {"modelplane.ai/pool": "h100"}
    clusters = {PROVIDER_CONFIG: Cluster({f"n{number}": dict(labels) for number in range(up)})}
    inputs = {"ModelReplica": config(**settings)} if settings else {}
    made = ClosedLoop(clusters, inputs, version, **(late or {}))
    made.plane.write(cluster(nodes))
    made.plane.write(deployment)
    return made


def single(copies: int = 1, replicas: int = 1) -> Plain:
    engine = build.engine(members=[build.member(devices=[build.request("gpu", 8)])], copies=copies)
    return build.deployment("chat", replicas, [engine])


def gang(copies: int = 1) -> Plain:
    return build.deployment("large", 1, [build.gang(nodes=1, copies=copies)])


def worker(made: ClosedLoop) -> Cluster:
    return made.clusters[PROVIDER_CONFIG]


def serving(made: ClosedLoop) -> int:
    """Return how many copies take requests."""
    return sum(number for place, number in worker(made).serving().items() if "epp" not in place[3])


def reason(made: ClosedLoop, kind: str) -> str:
    (replica,) = made.of_kind("ModelReplica")
    listed = replica["status"]["conditions"]
    return str(next(row["reason"] for row in listed if row["type"] == kind))


def edit(made: ClosedLoop, image: str) -> None:
    """Change the image of a deployment."""
    with made.editing("ModelDeployment") as deployment:
        for engine in deployment["spec"]["template"]["spec"]["engines"]:
            for member in engine["members"]:
                member["template"]["spec"]["containers"][0]["image"] = image


def images(made: ClosedLoop) -> set[str]:
    return {image_of(pod.template) for pod in worker(made).pods if "epp" not in pod.workload[3]}


def endpoints_lead_somewhere(made: ClosedLoop) -> None:
    """Traffic never reaches a replica without a copy that takes it, but for a cluster that cannot be seen."""
    if worker(made).reachable and made.of_kind("ModelEndpoint"):
        assert serving(made), "an endpoint of nothing that serves"


SHAPES = {"a pod": single(), "copies": single(copies=2), "a gang": gang()}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("readiness", ["Available", "AvailableCopies"])
def test_a_deployment_becomes_an_endpoint(shape: str, readiness: str) -> None:
    made = plane(SHAPES[shape], readiness=readiness)
    for _ in range(40):
        changed = made.round()
        if made.of_kind("ModelEndpoint"):
            endpoints_lead_somewhere(made)
        if not changed:
            break
    (replica,) = made.of_kind("ModelReplica")
    assert condition(replica, "Ready") == "True"
    assert reason(made, "ModelReady") == "Serving"
    assert reason(made, "ModelUpdated") == "UpToDate"
    assert len(made.of_kind("ModelEndpoint")) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_an_image_edit_on_a_full_pool_completes(shape: str) -> None:
    nodes = {"a pod": 1, "copies": 2, "a gang": 2}[shape]
    made = plane(SHAPES[shape], nodes)
    made.settle()
    edit(made, "registry.example.com/vllm:new")
    made.settle()
    assert images(made) == {"registry.example.com/vllm:new"}
    assert reason(made, "ModelReady") == "Serving"
    assert reason(made, "ModelUpdated") == "UpToDate"


def test_with_surge_it_needs_a_node_more() -> None:
    """What NoSurge is for: the pod on top waits for devices that nobody will free."""
    made = plane(single(), 1, rollout="Surge")
    made.settle()
    edit(made, "registry.example.com/vllm:new")
    made.settle()
    assert reason(made, "ModelUpdated") == "Updating"
    assert serving(made) == 1


def test_copies_are_replaced_one_at_a_time() -> None:
    made = plane(single(copies=2), 2)
    made.settle()
    edit(made, "registry.example.com/vllm:new")
    while made.round():
        assert serving(made) >= 1
        assert made.of_kind("ModelEndpoint")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cluster_that_is_cut_off_loses_nothing(shape: str) -> None:
    made = plane(SHAPES[shape])
    made.settle()
    before, pods = set(made.plane.objects), serving(made)
    worker(made).reachable = False
    for _ in range(10):
        made.round()
        assert set(made.plane.objects) == before
        assert not made.deleted
        assert serving(made) == pods
    assert reason(made, "ModelReady") == "Serving"
    worker(made).reachable = True
    assert made.settle() <= AT_REST


@pytest.mark.parametrize("shape", SHAPES)
def test_a_withdrawn_status_loses_nothing(shape: str) -> None:
    """What deleting one InferenceClass does to v0.3: every status of its clusters goes away."""
    made = plane(SHAPES[shape])
    made.settle()
    before, pods = set(made.plane.objects), serving(made)
    publish(made, {})
    for _ in range(5):
        made.round()
        assert set(made.plane.objects) == before
        assert not made.deleted
        assert serving(made) == pods
    assert reason(made, "ModelAccepted") == "WaitingForCluster"
    assert reason(made, "ModelReady") == "Serving"
    publish(made)
    assert made.settle() <= AT_REST
    assert reason(made, "ModelAccepted") == "Accepted"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_composite_is_reconciled_in_a_round(version: str) -> None:
    made = plane(gang(), version=version)
    made.settle()
    made.plane.forget_counts()
    made.round()
    assert {name.kind for name in made.plane.composites} == {*COMPOSITES} - {"ModelService"}
    assert not [name for name, of in made.plane.composites.items() if not of.counts["reconciles"]]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_requirement_that_does_not_arrive_loses_nothing(version: str) -> None:
    made = plane(gang(), version=version)
    made.settle()
    before = set(made.plane.objects)
    made.plane.withheld = {"cluster", "clusters", "all-replicas"}
    for _ in range(5):
        made.round()
        assert set(made.plane.objects) == before
        assert not made.deleted
    made.plane.withheld = ()
    assert made.settle() <= AT_REST


def test_half_a_gang_says_what_it_waits_for_and_serves_once_it_is_whole() -> None:
    made = plane(gang(), 2, there=1, diagnose="Pods")
    made.settle()
    assert reason(made, "ModelReady") == "Unschedulable"
    (replica,) = made.of_kind("ModelReplica")
    (said,) = [
        condition_row
        for condition_row in replica["status"]["conditions"]
        if condition_row["type"] == "PodsScheduled"
    ]
    assert "cannot allocate all claims" in said["message"]
    assert not made.of_kind("ModelEndpoint")
    worker(made).nodes["late"] = {"modelplane.ai/pool": "h100"}
    made.settle()
    assert reason(made, "ModelReady") == "Serving"
    assert made.of_kind("ModelEndpoint")
    assert not made.of_kind("ObservedObjectCollection"), "nobody looks at the pods of what serves"


def test_a_lost_node_takes_its_endpoint_and_brings_it_back() -> None:
    made = plane(single(), 1)
    made.settle()
    labels = worker(made).lose("n0")
    made.settle()
    assert not made.of_kind("ModelEndpoint"), "nothing serves: reason replica not Ready"
    assert len(made.of_kind("ModelReplica")) == 1
    worker(made).nodes["n1"] = labels
    made.settle()
    assert made.of_kind("ModelEndpoint")


def test_a_changed_claim_completes_and_no_pod_ever_misses_its_template() -> None:
    made = plane(single(copies=2), 2)
    made.settle()
    with made.editing("ModelDeployment") as deployment:  # So that nobody takes the edit back.
        deployment["metadata"]["annotations"] = {PAUSED_ANNOTATION: "true"}
    with made.editing("ModelReplica") as replica:
        replica["spec"]["engines"][0]["members"][0]["deviceRequests"][0]["count"] = 4
    while made.round():
        assert not [pod.why for pod in worker(made).pods if "not found" in pod.why]
        assert serving(made) >= 1
    templates = [place for place in worker(made).objects if place[1] == "ResourceClaimTemplate"]
    assert len(templates) == 1
    assert reason(made, "ModelUpdated") == "UpToDate"


def test_a_deployment_that_is_deleted_leaves_nothing_behind() -> None:
    made = plane(gang(), budget=True)
    made.settle()
    assert worker(made).objects
    (deployment,) = made.of_kind("ModelDeployment")
    made.plane.delete(name_of(deployment), by_hand=True)
    made.settle()
    assert not worker(made).objects
    assert {name.kind for name in made.plane.objects} == {"InferenceCluster"}


def publish(made: ClosedLoop, status: Plain | None = None) -> None:
    """Publish this of the cluster, or what it had in the beginning."""
    with made.editing("InferenceCluster") as plain:
        (pool,) = plain["spec"]["nodePools"]
        plain["status"] = cluster(pool["nodeCount"])["status"] if status is None else status


EVENTS = ("image", "cut", "join", "lose", "return", "withdraw", "publish", "copies", "withhold", "deliver")


def happen(made: ClosedLoop, draw: random.Random, lost: list[Plain]) -> str:
    """Let something happen; return what."""
    what = draw.choice(EVENTS)
    held = worker(made)
    if what == "image":
        edit(made, f"registry.example.com/vllm:{draw.random()}")
    elif what in ("cut", "join"):
        held.reachable = what == "join"
    elif what == "lose" and len(held.nodes) > 1:
        lost.append(held.lose(min(held.nodes)))
    elif what == "return" and lost:
        held.nodes[f"n{draw.random()}"] = lost.pop()
    elif what in ("withdraw", "publish"):
        publish(made, None if what == "publish" else {})
    elif what == "copies":
        with made.editing("ModelDeployment") as deployment:
            deployment["spec"]["template"]["spec"]["engines"][0]["copies"] = draw.choice((1, 2))
    elif what in ("withhold", "deliver"):
        made.plane.withheld = {"cluster"} if what == "withhold" else ()
    return what


def owned(made: ClosedLoop) -> None:
    """Every remote object has its Object: nothing is orphaned."""
    held = {
        (manifest["kind"], manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])
        for plain in made.of_kind("Object")
        for manifest in [plain["spec"]["forProvider"]["manifest"]]
    }
    assert {place[1:] for place in worker(made).objects} <= held


@pytest.mark.parametrize("shape", SHAPES)
def test_whatever_happens_nothing_is_orphaned_and_everything_comes_to_rest(shape: str) -> None:
    for seed in seeds(quick=4, gate=120):
        draw = random.Random(seed)
        late = {"lag": draw.choice(LAGS), "queue": draw.choice(QUEUES)}
        settings = {"diagnose": "Pods", "status": "Engines", "budget": True}
        made = plane(SHAPES[shape], 3, version=draw.choice(VERSIONS), late=late, **settings)
        made.settle()
        lost, happened = [], []
        objects = {
            name_of(plain)
            for plain in made.of_kind("Object")
            if MEMBERSHIP_LABEL not in plain["metadata"].get("labels", {})
        }
        for _ in range(12):
            happened.append(happen(made, draw, lost))
            for _ in range(draw.randint(1, 3)):
                made.round()
                owned(made)
                gone = {name.name for name in objects & made.deleted if "budget" not in name.name}
                assert not gone, (seed, happened)
        worker(made).reachable, made.plane.withheld = True, ()
        publish(made)
        for number, labels in enumerate(lost):
            worker(made).nodes[f"back-{number}"] = labels
        pods_rest(made)
        assert made.settle() <= AT_REST, (seed, happened)
        assert reason(made, "ModelReady") == "Serving", (seed, happened)
        assert reason(made, "ModelUpdated") == "UpToDate", (seed, happened)


def pods_rest(made: ClosedLoop) -> None:
    """Run rounds until no pod changes any more."""
    for _ in range(60):
        before = worker(made).standing()
        made.round()
        if before == worker(made).standing():
            return
    raise AssertionError("the pods never stand still")


def test_a_staged_rollout_waits_for_the_pods_of_each_replica() -> None:
    """From the edit to the pods: what replicas publish of their pods is what the next one waits for."""
    deployment = single(replicas=3)
    deployment["spec"]["placement"] = {"rollout": {"maxUnavailable": 1}}
    made = plane(deployment, nodes=3, status="Engines")
    made.settle()
    assert serving(made) == 3
    edit(made, "vllm/vllm-openai:v9")
    seen = []
    for _ in range(60):
        changed = made.round()
        engines = [replica["spec"]["engines"][0] for replica in made.of_kind("ModelReplica")]
        stamped = [image_of(one["members"][0]["template"]) == "vllm/vllm-openai:v9" for one in engines]
        seen.append((sum(stamped), serving(made)))
        if not changed:
            break
    assert [least for _, least in seen if least < 2] == [], seen
    assert sorted({stamped for stamped, _ in seen}) == [1, 2, 3], "one after the other"
    assert seen[-1] == (3, 3)
    (chat,) = made.of_kind("ModelDeployment")
    assert condition(chat, "ReplicasUpdated") == "True"

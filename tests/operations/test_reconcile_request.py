"""The step of a WatchOperation: which deployments a change of the fleet concerns, and their tokens."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from crossplane.function.proto.v1 import run_function_pb2 as pb

from function import dispatch
from function.api.names import RECONCILE_ANNOTATION
from function.boundary import PlainDocument, Request
from function.operations import handler
from function.operations.handler import FLEET, ROUTED, WATCHED
from function.runner import Function
from tests.support import build
from tests.support.crossplane import Step, run_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.boundary import Response

Plain = dict[str, Any]

POOLS = [build.pool("h100")]
A, B = build.cluster("a", POOLS), build.cluster("b", POOLS)
DRAINED = build.cluster("a", POOLS, taints=[build.taint("maintenance", "NoExecute")])
ENDPOINT = {"apiVersion": build.API, "kind": "ModelEndpoint", "metadata": {"name": "chat-1"}}
SCHEDULED = build.condition("ReplicasScheduled", status=True, reason="ReplicasCreated")
SHORT = build.condition("ReplicasScheduled", status=False, reason="PartiallyScheduled")


def deployment(name: str, total: int = 1, condition: Plain = SCHEDULED, **metadata: Any) -> Plain:
    made = build.deployment(name, replicas=1)
    made["metadata"] |= metadata
    return made | {"status": {"replicas": {"total": total}, "conditions": [condition]}}


def replica(name: str, cluster: str, deployment: str, **metadata: Any) -> Plain:
    labels = {"modelplane.ai/deployment": deployment, "modelplane.ai/cluster": cluster}
    return {
        "apiVersion": build.API,
        "kind": "ModelReplica",
        "metadata": {"name": name, "namespace": build.NAMESPACE, "uid": build.uid(name), "labels": labels}
        | metadata,
        "spec": {"clusterName": cluster},
    }


ON_A, ON_B = deployment("on-a"), deployment("on-b")
WAITING = deployment("waiting", total=0, condition=SHORT)
REPLICAS = (replica("on-a-1", "a", "on-a"), replica("on-b-1", "b", "on-b"))


def run(
    watched: Plain | None,
    clusters: Sequence[Plain] = (A, B),
    replicas: Sequence[Plain] = REPLICAS,
    deployments: Sequence[Plain] = (ON_A, ON_B, WAITING),
) -> Response:
    """Run the step with everything delivered."""
    delivered = {
        WATCHED: [watched] if watched else [],
        **dict(zip(FLEET, (clusters, replicas, deployments), strict=True)),
    }
    required = {name: tuple(map(PlainDocument, items)) for name, items in delivered.items()}
    return handler.run(Request(PlainDocument({}), required=required))


def tokens(response: Response) -> dict[str, str]:
    """The value of the annotation by name of the deployment."""
    metadata = [resource.resource["metadata"] for resource in response.desired.values()]
    return {entry["name"]: entry["annotations"][RECONCILE_ANNOTATION] for entry in metadata}


@dataclass(frozen=True)
class Case:
    reason: str
    watched: Plain | None
    asked: set[str]
    clusters: Sequence[Plain] = (A, B)
    replicas: Sequence[Plain] = REPLICAS
    deployments: Sequence[Plain] = (ON_A, ON_B, WAITING)
    _: None = field(default=None, repr=False)


CASES = [
    Case("a changed cluster concerns whoever is on it, and whoever waits for room", A, {"on-a", "waiting"}),
    Case("the other cluster likewise", B, {"on-b", "waiting"}),
    Case("a deleted cluster concerns whoever was on it", None, {"on-a", "waiting"}, clusters=(B,)),
    Case(
        "the last cluster deleted: its deployments learn that they are kept",
        None,
        {"on-a", "on-b", "waiting"},
        (),
    ),
    Case("a deleted replica frees room for whoever waits", None, {"waiting"}, replicas=REPLICAS[1:]),
    Case("a replica that is there frees nothing", REPLICAS[0], set()),
    Case(
        "a deployment that is being deleted wants nothing",
        A,
        set(),
        deployments=[deployment("on-a", deletionTimestamp=build.CREATED)],
    ),
    Case(
        "fewer placed than wanted is short, whatever the condition says (minReplicas is met)",
        B,
        {"on-a"},
        deployments=[deployment("on-a", total=0)],
    ),
    Case(
        "a replica of the same name in another namespace is another deployment's",
        A,
        set(),
        replicas=[replica("on-a-1", "a", "on-a", namespace="elsewhere")],
        deployments=[ON_A],
    ),
    Case(
        "a deployment that was never decided has nothing placed",
        B,
        {"new"},
        deployments=[build.deployment("new")],
    ),
    Case(
        "a deployment without a uid cannot be told from one of the same name made anew",
        A,
        set(),
        deployments=[deployment("on-a", uid=None)],
    ),
    Case("nothing is deployed", A, set(), deployments=[], replicas=[]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_who_is_asked(case: Case) -> None:
    response = run(case.watched, case.clusters, case.replicas, case.deployments)
    assert tokens(response).keys() == case.asked
    assert len(response.results) == bool(case.asked)


def test_only_the_annotation_is_desired() -> None:
    (desired,) = run(A, deployments=[ON_A]).desired.values()
    assert desired.resource == {
        "apiVersion": build.API,
        "kind": "ModelDeployment",
        "metadata": {
            "name": "on-a",
            "namespace": build.NAMESPACE,
            "uid": ON_A["metadata"]["uid"],
            "annotations": {
                RECONCILE_ANNOTATION: desired.resource["metadata"]["annotations"][RECONCILE_ANNOTATION]
            },
        },
    }


def test_a_deployment_is_asked_once_for_one_state_of_the_fleet() -> None:
    first = tokens(run(DRAINED, (DRAINED, B)))
    asked = [
        deployment(
            manifest["metadata"]["name"],
            manifest["status"]["replicas"]["total"],
            manifest["status"]["conditions"][0],
            annotations={RECONCILE_ANNOTATION: first.get(manifest["metadata"]["name"], "")},
        )
        for manifest in (ON_A, ON_B, WAITING)
    ]
    assert run(DRAINED, (DRAINED, B), deployments=asked).desired == {}
    assert tokens(run(A, (A, B), deployments=asked)).keys() == {"on-a", "waiting"}, "the taint is gone again"


SAME: list[tuple[str, Plain]] = [
    ("a resource version says nothing", A | {"metadata": A["metadata"] | {"resourceVersion": "9"}}),
    (
        "the time of a condition says nothing",
        A
        | {
            "status": A["status"]
            | {"conditions": [A["status"]["conditions"][0] | {"lastTransitionTime": "x"}]}
        },
    ),
    ("a field that no placement reads says nothing", A | {"status": A["status"] | {"heartbeat": "12:00"}}),
]


@pytest.mark.parametrize(("reason", "cluster"), SAME, ids=[reason for reason, _ in SAME])
def test_a_change_that_no_placement_depends_on_gives_the_same_token(reason: str, cluster: Plain) -> None:
    assert tokens(run(cluster, (cluster, B))) == tokens(run(A, (A, B)))


OTHER: list[tuple[str, Plain]] = [
    ("a taint", DRAINED),
    ("not Ready", build.cluster("a", POOLS, ready=False)),
    ("more nodes", build.cluster("a", [build.pool("h100", nodes=5)])),
    ("a gateway", build.cluster("a", POOLS, gateway="203.0.113.11")),
    ("unreadable", A | {"spec": {"taints": "none"}}),
    ("being deleted", build.cluster("a", POOLS, deleting=True)),
]


@pytest.mark.parametrize(("reason", "cluster"), OTHER, ids=[reason for reason, _ in OTHER])
def test_a_change_that_placements_depend_on_gives_another_token(reason: str, cluster: Plain) -> None:
    before, after = tokens(run(A, (A, B))), tokens(run(cluster, (cluster, B)))
    assert before.keys() == after.keys() == {"on-a", "waiting"}
    assert all(before[name] != after[name] for name in before)


def test_the_order_of_delivery_changes_nothing() -> None:
    draw = random.Random(1)
    clusters, replicas, deployments = [A, B], [*REPLICAS], [ON_A, ON_B, WAITING]
    expected = run(A)
    for _ in range(10):
        for cluster in (clusters, replicas, deployments):
            draw.shuffle(cluster)
        assert run(A, clusters, replicas, deployments) == expected


UNREADABLE: list[Any] = [None, 1, "x", [], {}, {"labels": 1}, {"name": 1, "namespace": [], "uid": {}}]


@pytest.mark.parametrize("metadata", UNREADABLE, ids=repr)
def test_an_unreadable_object_costs_only_itself(metadata: Any) -> None:
    odd = {"metadata": metadata, "spec": metadata, "status": {"replicas": metadata, "conditions": metadata}}
    response = run(A, (A, B, odd), (*REPLICAS, odd), (ON_A, ON_B, odd))
    assert tokens(response) == tokens(run(A, deployments=(ON_A, ON_B)))


def fetch(selector: pb.ResourceSelector) -> pb.Resources:
    """What a control plane has of a kind."""
    named = [
        manifest for manifest in (A, B, *REPLICAS, ON_A, ON_B, WAITING) if manifest["kind"] == selector.kind
    ]
    resources = pb.Resources()
    for manifest in named:
        if selector.match_name in ("", manifest["metadata"]["name"]):
            resources.items.add().resource.update(manifest)
    if selector.match_name and not resources.items:
        resources.items.add()  # Some versions deliver an empty item for what does not exist.
    return resources


CALLS = [
    ("InferenceCluster", "a", 2, {f"{build.NAMESPACE}/on-a", f"{build.NAMESPACE}/waiting"}),
    ("InferenceCluster", "gone", 2, {f"{build.NAMESPACE}/waiting"}),
    ("ModelReplica", "on-a-1", 1, set()),
]


@pytest.mark.parametrize(("kind", "name", "calls", "asked"), CALLS)
def test_an_operation_settles(kind: str, name: str, calls: int, asked: set[str]) -> None:
    """The watched resource alone is sent first; the fleet only where it is needed."""
    watched = pb.ResourceSelector(api_version=build.API, kind=kind, match_name=name)
    function = Function(log=structlog.get_logger())
    ran = run_step(Step(function.answer, {WATCHED: watched}), pb.RunFunctionRequest(), fetch)
    assert ran.calls == calls
    assert ran.response.desired.resources.keys() == asked
    assert not ran.response.conditions
    assert all(result.severity == pb.SEVERITY_NORMAL for result in ran.response.results)


def test_a_composite_is_no_operation_whatever_it_requires() -> None:
    request = Request(PlainDocument(ON_A), required={WATCHED: (PlainDocument(A),)})
    assert not handler.is_operation(request)


def test_a_composite_that_cannot_be_read_is_no_operation() -> None:
    """It may be of any kind, and what it composed stays."""
    observed = {"replica-a-0": PlainDocument(REPLICAS[0])}
    request = Request(PlainDocument({}), observed=observed, required={WATCHED: (PlainDocument(A),)})
    assert not handler.is_operation(request)
    assert dispatch.run(request).desired.keys() == observed.keys()


@pytest.mark.parametrize(
    ("watched", "names"), [(A, set(FLEET)), (ENDPOINT, set(ROUTED)), (REPLICAS[0], set())]
)
def test_an_operation_that_fails_says_what_it_needs_and_has_no_conditions(
    watched: Plain, names: set[str]
) -> None:
    def fails(*_: Any, **__: Any) -> Response:
        raise RuntimeError

    message = pb.RunFunctionRequest()
    message.required_resources[WATCHED].items.add().resource.update(watched)
    answer = Function(log=structlog.get_logger(), run=fails).answer(message.SerializeToString())
    response = pb.RunFunctionResponse.FromString(answer)
    assert response.requirements.resources.keys() == names
    assert not response.conditions
    assert not response.desired.resources
    assert [result.reason for result in response.results] == ["InternalError"]

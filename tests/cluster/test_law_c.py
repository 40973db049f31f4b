"""Law C for clusters: doubt deletes nothing, and no Object becomes another remote object."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from function.api.model import mapping
from function.api.names import DNS_SUBDOMAIN
from function.boundary import PlainDocument
from function.cluster import handler, names
from function.fail_static import base_of
from function.objects import identity_of
from tests.cluster.build import LEASE, Case, cluster, looked_at, reason, replica, running
from tests.fuzz.mutate import mutated
from tests.support.scale import BATCHES, batch

if TYPE_CHECKING:
    from function.boundary import Response

Plain = dict[str, Any]
CONDITIONS = ["ClusterReady", "BackendReady", "ClusterReachable", "PoolsPublished"]
PUBLISHED = ("providerConfigRef", "gateway")
SEEN = {"kind": "Gateway", "status": {"addresses": [{"value": "203.0.113.9"}]}}


def disturbed(draw: random.Random, case: Case) -> str:
    """Withdraw or mutate something around the cluster; returns what."""
    what = draw.choice(
        ["class", "undelivered", "replicas", "replica", "composite", "status", "observed", "input"]
    )
    name = draw.choice(sorted(case.classes))
    match what:
        case "class":
            case.classes[name] = draw.choice([None, mutated(draw, case.classes[name])])
        case "undelivered":
            case.undelivered = (name,)
        case "replicas":
            case.replicas = None
        case "replica":
            case.replicas = [mutated(draw, content) for content in case.replicas or [replica()]]
        case "composite":
            case.cluster["spec"] = mutated(draw, case.cluster["spec"])
        case "status":
            case.cluster["status"] = mutated(draw, {"status": case.cluster["status"]}).get("status")
        case "observed":
            key = draw.choice(sorted(case.observed))
            for part in ("status", "spec"):
                case.observed[key][part] = mutated(draw, case.observed[key].get(part) or {"a": 1})
        case _:
            case.input = {
                **(case.input or {}),
                draw.choice(["stack", "publish", "x"]): draw.choice([1, "y", {}]),
            }
    return what


def allowed_to_leave(key: str, case: Case, response: Response) -> bool:
    """The listed reasons: what it belongs to is gone from a spec that was read."""
    if key == names.GUARD:
        return not case.replicas and case.replicas is not None
    readable = reason(response, "ClusterReady") not in ("SecretInvalid", "InvalidNodePool", "Malformed")
    return (
        key.startswith(names.CLASS_PREFIX) and readable and reason(response, "PoolsPublished") == "Published"
    )


@pytest.mark.parametrize("number", range(BATCHES))
def test_nothing_leaves_but_for_a_listed_reason(number: int) -> None:
    for seed in batch(number, quick=400):
        draw = random.Random(seed)
        case = running(draw)
        before = copy.deepcopy(case)
        what = [disturbed(draw, case) for _ in range(draw.randint(1, 2))]
        response = case.answer()
        lost = set(before.observed) - set(response.desired)
        assert not {key for key in lost if not allowed_to_leave(key, case, response)}, (seed, what)
        assert [condition.type for condition in response.conditions] == CONDITIONS
        for field in PUBLISHED:
            if field in before.cluster["status"] and not {"composite", "status"} & set(what):
                assert response.status[field] == before.cluster["status"][field], (seed, what, field)
        for key, desired in response.desired.items():
            if key.startswith(names.OBSERVATIONS) and key in case.observed:
                assert _tie(desired.resource) == _tie(case.observed[key]), (seed, what, key)


def _tie(composed: Plain) -> Any:
    spec = mapping(composed.get("spec"))
    manifest = mapping(mapping(spec.get("forProvider")).get("manifest"))
    return identity_of(manifest), mapping(spec.get("providerConfigRef")).get("name")


@pytest.mark.parametrize("number", range(BATCHES))
def test_an_answer_applied_and_asked_again_is_the_same(number: int) -> None:
    for seed in batch(number, quick=100):
        settled = running(random.Random(seed))
        first = settled.answer()
        again = settled.settled().answer()
        assert {key: resource.resource for key, resource in again.desired.items()} == {
            key: resource.resource for key, resource in first.desired.items()
        }, seed
        assert again.status == first.status, seed


@pytest.mark.parametrize("undelivered", [(), ("h200",)], ids=["absent", "undelivered"])
def test_a_cluster_gets_its_guard_while_a_class_is_missing(undelivered: tuple[str, ...]) -> None:
    """Its pools stay published, so replicas come, and nobody may delete it under them."""
    case = Case().settled()
    case.classes, case.undelivered = {"h200": None}, undelivered
    assert names.GUARD not in case.answer().desired
    case.replicas = [replica()]
    assert case.answer().desired.keys() - case.observed.keys() == {names.GUARD}
    before = case.settled()
    before.observed[names.GUARD]["spec"]["reason"] = "as v0.3 has it"
    kept = before.answer().desired[names.GUARD].resource
    assert kept["spec"]["reason"] == "as v0.3 has it", "in doubt as observed"
    before.replicas = None
    assert names.GUARD in before.answer().desired


UNREADABLE: list[tuple[str, dict[str, Any]]] = [
    ("a pool without a name", {"nodePools": [{"className": "h200"}]}),
    ("no Secret with a kubeconfig", {"cluster": {"source": "Existing"}}),
    ("no object", {"nodePools": "x"}),
]


@pytest.mark.parametrize("spec", [spec for _, spec in UNREADABLE], ids=[reason for reason, _ in UNREADABLE])
def test_a_cluster_that_cannot_be_read_gets_its_guard_and_nothing_else(spec: dict[str, Any]) -> None:
    """Law C 2: a guard deletes nothing, and a cluster in doubt that holds replicas must not be deleted."""
    case = Case(replicas=[replica()])
    case.cluster["spec"] |= spec
    answer = case.answer()
    assert reason(answer, "ClusterReady") in ("InvalidNodePool", "SecretInvalid", "Malformed")
    assert answer.desired.keys() == {names.GUARD}
    assert answer.desired[names.GUARD].resource["spec"]["of"]["resourceRef"]["name"] == "east"
    for nobody in ([], None):
        case.replicas = nobody
        assert not case.answer().desired
    broken_input = Case(replicas=[replica()], input={"stack": "x"})
    assert broken_input.answer().desired.keys() == {names.GUARD}


FOREIGN = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}


@pytest.mark.parametrize("key", [*names.KINDS, f"{names.CLASS_PREFIX}h200.example.com"])
def test_a_foreign_resource_under_a_key_of_ours_stays_and_is_named(key: str) -> None:
    """Desired under the same key as another kind, it would be left on the control plane for ever."""
    case = running(random.Random(1))
    case.observed[key] = FOREIGN
    response = case.answer()
    assert response.desired[key].resource["data"] == {"a": "b"}
    assert response.desired.keys() == case.observed.keys()
    assert response.conditions[0].reason == "Malformed"
    assert key in response.conditions[0].message
    assert response.status["gpuPools"] == case.cluster["status"]["gpuPools"]


@pytest.mark.parametrize("key", [names.PROVIDER_CONFIG, names.GUARD, names.GATEWAY, names.STACK])
def test_what_an_earlier_step_desires_is_left_to_it(key: str) -> None:
    case = Case(replicas=[replica()], input={"stack": "Modelplane"}, desired=frozenset({key}))
    assert key not in case.answer().desired
    assert key not in case.settled().answer().desired


RENAMED = {
    names.GATEWAY: {"gateway": {"namespace": "edge", "name": "public"}},
    names.LEADER_WORKER_SET: {"leaderWorkerSet": {"namespace": "kueue", "name": "lws"}},
    names.HEARTBEAT: {"heartbeat": {"namespace": "kube-system", "name": "scheduler"}},
}


@pytest.mark.parametrize("base", RENAMED)
def test_what_the_input_names_anew_is_looked_at_under_another_key(base: str) -> None:
    """Law C 4 forbids to change what a key looks at, and the input must not be ignored for that."""
    before = Case(input={"heartbeat": LEASE}).settled()
    before.input = {"heartbeat": LEASE, **RENAMED[base]}
    first = before.answer().desired
    (successor,) = first.keys() - before.observed.keys()
    (wanted,) = RENAMED[base].values()
    assert base_of(successor) == base
    assert first[successor].resource["spec"]["forProvider"]["manifest"]["metadata"] == wanted
    assert first[base].resource["spec"] == before.observed[base]["spec"], "until the successor is observed"
    second = before.settled()
    assert second.answer().desired.keys() == first.keys() - {base}
    assert second.settled().answer().desired.keys() == first.keys() - {base}


def test_the_address_is_that_of_the_gateway_the_input_names() -> None:
    case = Case(input=RENAMED[names.GATEWAY], observed=looked_at(names.GATEWAY, synced=True, remote=SEEN))
    assert "gateway" not in case.answer().status, "another gateway's"
    case = case.settled()
    (key,) = (key for key in case.observed if base_of(key) == names.GATEWAY and key != names.GATEWAY)
    case.observed[key]["status"] = {"atProvider": {"manifest": SEEN}}
    assert case.answer().status["gateway"] == {"address": "203.0.113.9"}


ODD_POOLS: list[tuple[Any, str]] = [
    ("x", "a text for the list"),
    (2.0**53, "a number for the list"),
    (None, "null for the list"),
    ([None, "x", []], "pools that are none"),
    ([{"name": ["pool-0"], "nodes": 1}], "a name that is a list"),
    ([{"name": "pool-0", "nodes": [0], "devices": []}], "a count that is a list"),
    ([{"name": "pool-0", "nodes": float("nan"), "devices": [{"count": {}}]}], "counts that are none"),
    ([{"name": "pool-0", "nodes": 1, "devices": "x"}], "a text for devices"),
    ([{"name": "pool-0", "nodes": 1, "devices": ["x", None]}], "devices that are none"),
    ([{"name": "pool-0", "nodes": 1, "devices": [{"attributes": {"a": "x"}}]}], "an attribute without type"),
    ([{"name": "pool-0", "nodes": 1, "charged": "x"}], "a text for the charge"),
]


@pytest.mark.parametrize(("published", "why"), ODD_POOLS, ids=[row[1] for row in ODD_POOLS])
@pytest.mark.parametrize("spec", [{}, {"spec": "x"}], ids=["readable", "unreadable"])
def test_an_odd_status_of_its_own_is_answered(published: Any, why: str, spec: Plain) -> None:
    """No class is delivered, so what was published is published again and held against drift."""
    case = running(random.Random(2))
    case.cluster["spec"]["drift"] = {"mode": "Observe"}
    manifest = {"metadata": {"name": "n", "labels": {"modelplane.ai/pool": "pool-0"}}}
    device = {"name": "g0", "attributes": {"a": {"string": "y"}}, "capacity": {}}
    content = {"nodeName": "n", "driver": "None", "pool": {"generation": "x"}, "devices": [device, "x"]}
    request = case.request()
    composite = {**case.cluster, "status": {"gpuPools": published}, **spec}
    seen = {
        "slices": ({"status": {"atProvider": {"manifest": {"spec": content}}}},),
        "nodes": ({"status": {"atProvider": {"manifest": manifest}}},),
    }
    required = {name: tuple(map(PlainDocument, items)) for name, items in seen.items()}
    response = handler.run(replace(request, composite=PlainDocument(composite), required=required))
    assert set(response.desired) == set(case.observed), why
    assert len(response.conditions) >= len(CONDITIONS), why


def test_a_class_of_another_name_is_no_delivery() -> None:
    case = running(random.Random(3))
    name = min(case.classes)
    case.classes[name] = {**(case.classes[name] or {}), "metadata": {"name": "other"}}
    response = case.answer()
    assert reason(response, "PoolsPublished") == "ClassMissing"
    assert response.status["gpuPools"] == case.cluster["status"]["gpuPools"]


@pytest.mark.parametrize(
    "name", ["east", "4.east", f"{'a' * 56}.b", f"{'a' * 55}.{'b' * 60}", "a." * 40 + "b"]
)
def test_what_is_named_after_a_cluster_has_a_name_that_kubernetes_takes(name: str) -> None:
    made = (names.provider_config_name(name), names.provider_config_name(name, "serving-stack"))
    assert all(DNS_SUBDOMAIN.fullmatch(one) and len(one) <= 63 for one in made), made


@pytest.mark.parametrize("doubt", [{"stack": 7}, {"publish": "Attributes", "x": 1}])
def test_an_invalid_input_withdraws_nothing_from_the_status(doubt: Plain) -> None:
    case = Case(input={"publish": "Attributes"}, observed=looked_at("see-lws", synced=True, remote={}))
    before = case.answer().status
    case = replace(case, cluster={**case.cluster, "status": before}, input=doubt)
    assert case.answer().status == before


def test_the_order_of_replicas_decides_nothing_of_what_is_charged() -> None:
    """Also of one that is listed twice, once without its uid: both give way, and the first is named."""
    twice = [replica("chat-1"), replica("chat-1"), replica("chat-2")]
    del twice[1]["metadata"]["uid"]
    pools = {"name": "gpu", "className": "h200", "nodeCount": 1}
    answers = [
        Case(cluster(pools), replicas=list(order), input={"publish": "Attributes"}).answer().status
        for order in permutations(twice)
    ]
    assert "givesWay" in answers[0]["gpuPools"][0]["charged"]
    assert all(status == answers[0] for status in answers)

"""What a cluster publishes, condition by condition and field by field."""

from __future__ import annotations

from typing import Any

import pytest

from function.api import InferenceCluster
from function.boundary import PlainDocument
from function.cluster import names
from function.deployment.snapshot.charges import read_cluster
from function.objects import GONE
from tests.cluster.build import Case, cluster, inference_class, looked_at, reason, replica

Plain = dict[str, Any]
GATEWAY = {"address": "203.0.113.7"}

NO_OBJECT = "observe failed: external resource does not exist"
NO_KIND = 'observe failed: cannot get object: no matches for kind "Gateway" in version "example.com/v1"'
NO_SECRET = (
    "connect failed: cannot build kube client for provider config: cannot get credentials: "
    'cannot get credentials secret: secrets "byo" not found'
)
NO_CONFIG = (
    "connect failed: cannot get provider config: "
    'ClusterProviderConfig.kubernetes.m.crossplane.io "east-cluster-kubeconfig-0a1b2" not found'
)
"""As provider-kubernetes 1.4 says it."""


@pytest.mark.parametrize(
    ("pool", "nodes", "why"),
    [
        ({"nodeCount": 3}, 3, "what it has"),
        ({"nodeCount": 3, "maxNodeCount": 8}, 8, "what it can grow to"),
        ({}, 1, "the default of the API"),
        ({"nodeCount": 0}, 0, "none is a number too"),
        ({"nodeCount": 2.0}, 2, "a Struct carries doubles"),
    ],
)
def test_nodes_are_the_most_a_pool_can_have(pool: Plain, nodes: int, why: str) -> None:
    response = Case(cluster({"name": "gpu", "className": "h200", **pool})).answer()
    assert [item["nodes"] for item in response.status["gpuPools"]] == [nodes], why


def test_devices_are_published_verbatim_with_the_defaults() -> None:
    lists = {"modes": {"list": {"string": ["a", "b"]}}}
    devices = [
        {"name": "nic", "driver": "dra.net", "deviceClassName": "n", "attributes": lists},
        {"name": "link", "driver": "x", "claim": "Synthetic", "count": 2, "capacity": None},
    ]
    (pool,) = Case(classes={"h200": inference_class(devices=devices)}).answer().status["gpuPools"]
    assert pool["devices"] == [
        {**devices[0], "claim": "DRA", "count": 1},
        {"name": "link", "driver": "x", "claim": "Synthetic", "count": 2},
    ]


def test_a_pool_without_devices_is_not_published() -> None:
    made = Case(
        cluster({"name": "cpu", "className": "cpu"}, {"name": "gpu", "className": "h200"}),
        classes={"h200": inference_class(), "cpu": inference_class("cpu", devices=[])},
    )
    assert [pool["name"] for pool in made.answer().status["gpuPools"]] == ["gpu"]


@pytest.mark.parametrize(
    ("gone", "expected", "why"),
    [
        ({"classes": {"h200": None}}, "ClassMissing", "deleted"),
        ({"undelivered": ("h200",)}, "ClassMissing", "not delivered"),
        ({"classes": {"h200": inference_class(devices="odd")}}, "ClassUnreadable", "not a class any more"),
    ],
)
def test_a_class_that_is_gone_takes_nothing_away(gone: Plain, expected: str, why: str) -> None:
    settled = Case(cluster(gateway=GATEWAY), replicas=[replica()]).settled()
    for name, value in gone.items():
        setattr(settled, name, value)
    response = settled.answer()
    assert response.status["gpuPools"] == settled.cluster["status"]["gpuPools"], why
    assert response.status["providerConfigRef"] == settled.cluster["status"]["providerConfigRef"]
    assert response.status["gateway"] == GATEWAY
    assert set(response.desired) == set(settled.observed)
    assert reason(response, "PoolsPublished") == expected
    assert reason(response, "ClusterReady") == "ClusterRunning", "what was published still runs"


SECRET = {"name": "use1", "key": "kubeconfig"}


def test_one_missing_class_of_two_leaves_the_other_pool_as_it_is() -> None:
    pools = ({"name": "a", "className": "h200"}, {"name": "b", "className": "l4"})
    response = Case(cluster(*pools), classes={"h200": inference_class(), "l4": None}).answer()
    assert [pool["name"] for pool in response.status["gpuPools"]] == ["a"]
    assert reason(response, "PoolsPublished") == "ClassMissing"


@pytest.mark.parametrize(
    ("broken", "expected", "why"),
    [
        ({"cluster": {"source": "Existing"}}, "SecretInvalid", "no kubeconfig is named"),
        (
            {"cluster": {"source": "Existing", "existing": {"secretRef": {"name": "x"}}}},
            "SecretInvalid",
            "key",
        ),
        (
            {"cluster": {"source": "Existing", "existing": {"secretRef": SECRET, "gateway": "10.1.0.7"}}},
            "Malformed",
            "a gateway is no map",
        ),
        (
            {
                "cluster": {
                    "source": "Existing",
                    "existing": {"secretRef": SECRET, "gateway": {"address": "http://10.1.0.7"}},
                }
            },
            "Malformed",
            "endpoints would have two schemes",
        ),
        ({"nodePools": [{"name": "gpu"}]}, "InvalidNodePool", "no class is named"),
        ({"nodePools": [{"name": "gpu", "className": "h200", "nodeCount": 1.5}]}, "InvalidNodePool", "1.5"),
        ({"nodePools": "odd"}, "InvalidNodePool", "no list"),
    ],
)
def test_a_cluster_that_cannot_be_read_keeps_everything(broken: Plain, expected: str, why: str) -> None:
    settled = Case(cluster(gateway=GATEWAY), replicas=[replica()]).settled()
    settled.cluster["spec"] = {**settled.cluster["spec"], **broken}
    response = settled.answer()
    assert set(response.desired) == set(settled.observed), why
    before = settled.cluster["status"]
    assert {key: response.status[key] for key in ("gpuPools", "providerConfigRef", "gateway")} == {
        key: before[key] for key in ("gpuPools", "providerConfigRef", "gateway")
    }
    assert reason(response, "ClusterReady") == expected
    assert response.unready


@pytest.mark.parametrize(
    ("stated", "config", "published"),
    [
        (None, {}, None),
        (None, {"accounting": "Device"}, "Device"),
        ("Node", {"accounting": "Device"}, "Node"),
        ("Device", {"accounting": "Node"}, "Device"),
        ("Device", {}, "Device"),
    ],
)
def test_pools_that_do_not_say_are_charged_as_the_input_says(
    stated: str | None, config: Plain, published: str | None
) -> None:
    pool = {"name": "gpu", "className": "h200", **({"accounting": stated} if stated else {})}
    made = Case(cluster(pool), input={"publish": "Attributes", **config}).answer()
    assert made.status["gpuPools"][0].get("accounting") == published


def test_how_pools_are_charged_needs_attributes_to_be_published() -> None:
    """Modelplane's XRD would drop it, so it would be silently ignored."""
    response = Case(input={"accounting": "Device"}).answer()
    assert "published only with publish: Attributes" in str(response)


def test_an_invalid_input_is_said_and_keeps_everything() -> None:
    settled = Case().settled()
    settled.input = {"stack": "Mine"}
    response = settled.answer()
    assert set(response.desired) == set(settled.observed)
    assert "stack" in next(condition.message for condition in response.conditions)


def test_the_guard_stands_while_there_are_replicas() -> None:
    guarded = Case(replicas=[replica()])
    assert names.GUARD in guarded.answer().desired
    settled = guarded.settled()
    settled.replicas = None
    assert names.GUARD in settled.answer().desired, "undelivered is doubt"
    settled.replicas = []
    assert names.GUARD not in settled.answer().desired, "told that there are none"


def test_the_stack_is_kept_composed_or_withdrawn_as_the_input_says() -> None:
    assert names.STACK not in Case().answer().desired
    asked = Case(input={"stack": "Modelplane"})
    settled = asked.settled()
    for choice, stays in ((None, True), ({"stack": "Modelplane"}, True), ({"stack": "None"}, False)):
        settled.input = choice
        assert (names.STACK in settled.answer().desired) is stays, choice


def test_the_provider_config_never_changes_its_name() -> None:
    settled = Case().settled()
    settled.observed[names.PROVIDER_CONFIG]["metadata"]["name"] = "made-by-hand"
    response = settled.answer()
    assert response.desired[names.PROVIDER_CONFIG].resource["metadata"]["name"] == "made-by-hand"
    assert response.status["providerConfigRef"] == {"name": "made-by-hand"}


def test_a_new_secret_reaches_the_provider_config() -> None:
    settled = Case().settled()
    settled.cluster["spec"]["cluster"]["existing"]["secretRef"]["name"] = "rotated"
    spec = settled.answer().desired[names.PROVIDER_CONFIG].resource["spec"]
    assert spec["credentials"]["secretRef"]["name"] == "rotated"


@pytest.mark.parametrize(
    ("observed", "expected", "why"),
    [
        ({}, (False, "NotObserved"), "nothing was looked at"),
        (looked_at("see-lws", synced=True, remote={"kind": "Deployment"}), (True, "Reachable"), "an answer"),
        (
            looked_at("see-lws", synced=False, message=NO_OBJECT),
            (True, "Reachable"),
            "an answer too",
        ),
        (
            looked_at("see-lws", synced=False, message=NO_KIND),
            (True, "Reachable"),
            "it answers that it has no such kind",
        ),
        (looked_at("see-lws", synced=False, message=NO_SECRET), (False, "Unreachable"), "no kubeconfig"),
        (looked_at("see-lws", synced=False, message=NO_CONFIG), (False, "Unreachable"), "no ProviderConfig"),
        (looked_at("see-lws", synced=False, message="dial tcp: timeout"), (False, "Unreachable"), "silence"),
    ],
)
def test_a_cluster_is_reachable_when_it_answers(
    observed: dict[str, Plain], expected: tuple[bool, str], why: str
) -> None:
    response = Case(observed=observed).answer()
    reachable = next(condition for condition in response.conditions if condition.type == "ClusterReachable")
    assert (reachable.status, reachable.reason) == expected, why


def test_a_cluster_that_does_not_answer_names_the_secret_it_was_tried_with() -> None:
    denied = looked_at("see-lws", synced=False, message="observe failed: cannot get object: Unauthorized")
    (said,) = [one for one in Case(observed=denied).answer().conditions if one.type == "ClusterReachable"]
    by = "By key kubeconfig of Secret modelplane-system/byo"
    assert said.message == f"{by}: observe failed: cannot get object: Unauthorized"


DENIED = "observe failed: cannot get object: Unauthorized"
BY_SECRET = f"By key kubeconfig of Secret modelplane-system/byo: {DENIED}"


@pytest.mark.parametrize(
    ("reason", "ours", "observers", "expected"),
    [
        ("each is named by what it was tried with", False, None, (False, "Unreachable", BY_SECRET)),
        (
            "nodes are looked at with the credentials of the other",
            None,
            False,
            (False, "Unreachable", f"Through ClusterProviderConfig east-reader: {DENIED}"),
        ),
        ("the other's answer says nothing of the kubeconfig", False, True, (False, "Unreachable", BY_SECRET)),
        ("nor does its failure", True, False, (True, "Reachable", "")),
        ("where nothing else is looked at it counts", None, True, (True, "Reachable", "")),
    ],
)
def test_what_is_looked_at_through_another_configuration_does_not_blame_the_kubeconfig(
    reason: str, *, ours: bool | None, observers: bool | None, expected: tuple[bool, str, str]
) -> None:
    observed: dict[str, Plain] = {}
    for synced, key, through in ((ours, "see-lws", "p"), (observers, names.GATEWAY, "east-reader")):
        if synced is not None:
            look = looked_at(key, synced=synced, message="" if synced else DENIED)
            look[key]["spec"]["providerConfigRef"]["name"] = through
            observed |= look
    made = Case(cluster(observerConfigRef={"name": "east-reader"}), observed=observed)
    (said,) = [one for one in made.answer().conditions if one.type == "ClusterReachable"]
    assert (said.status, said.reason, said.message) == expected, reason


def test_the_address_is_the_stacks_the_declared_the_observed_or_the_last() -> None:
    stack = {"kind": "ServingStack", "status": {"gateway": {"address": "stack"}}}
    remote = {"status": {"addresses": [{"value": "seen"}]}}
    seen = looked_at(names.GATEWAY, synced=True, remote=remote)
    before = {"status": {"gateway": {"address": "last"}}}
    cases: list[tuple[Case, str]] = [
        (Case(cluster(gateway=GATEWAY), observed={names.STACK: stack, **seen}), "stack"),
        (Case(cluster(gateway=GATEWAY), observed=seen), "203.0.113.7"),
        (Case({**cluster(), **before}, observed=seen), "seen"),
        (Case({**cluster(), **before}), "last"),
    ]
    for made, address in cases:
        assert made.answer().status["gateway"] == {"address": address}


@pytest.mark.parametrize("gateway", [None, {}, {"address": ""}, {"address": 7}, "x"])
def test_without_an_address_a_cluster_is_not_ready(gateway: Any) -> None:
    response = Case({**cluster(), "status": {"gateway": gateway}}).answer()
    assert response.unready
    assert reason(response, "BackendReady") == "WaitingForCluster"


def test_a_gateway_that_the_cluster_does_not_have_is_told_from_one_without_an_address() -> None:
    said = {
        "is not on the cluster": looked_at(names.GATEWAY, synced=False, message=GONE),
        "has no address yet": looked_at(names.GATEWAY, synced=True, remote={}),
    }
    for text, seen in said.items():
        (backend,) = [c for c in Case(observed=seen).answer().conditions if c.type == "BackendReady"]
        assert backend.message == f"Gateway modelplane-system/inference-gateway {text}"


def test_attributes_charges_and_capabilities_only_where_the_input_asks() -> None:
    pool = {"name": "gpu", "className": "h200", "attributes": {"modelplane.ai/tier": {"string": "a"}}}
    made = Case(cluster(pool), replicas=[replica()], observed=looked_at("see-lws", synced=True, remote={}))
    plain = made.answer().status
    assert "capabilities" not in plain
    assert set(plain["gpuPools"][0]) == {"name", "nodes", "devices"}
    made.input = {"publish": "Attributes"}
    asked = made.answer().status
    assert asked["gpuPools"][0]["attributes"] == pool["attributes"]
    assert asked["gpuPools"][0]["className"] == "h200"
    assert asked["gpuPools"][0]["charged"]["nodes"] == 1
    assert asked["capabilities"] == {"gateway": "Unknown", "leaderWorkerSet": "Present"}


def test_the_version_of_kserve_is_looked_at_where_it_is_asked_for() -> None:
    made = Case(cluster(), input={"publish": "Attributes"})
    assert "see-kserve" not in made.answer().desired
    made.cluster["spec"] |= {"stack": "KServe", "kserve": {"apiVersion": "v1alpha2"}}
    first = made.answer()
    manifest = first.desired["see-kserve"].resource["spec"]["forProvider"]["manifest"]
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("APIService", "v1alpha2.serving.kserve.io")
    assert "kserve" not in first.status["capabilities"]
    answered = {"conditions": [{"type": "Synced", "status": "True"}], "atProvider": {"manifest": manifest}}
    made.observed = {"see-kserve": first.desired["see-kserve"].resource | {"status": answered}}
    assert made.answer().status["capabilities"]["kserve"] == "Present"
    made.cluster["spec"]["kserve"] = {"apiVersion": 7}
    assert reason(made.answer(), "ClusterReady") == "ClusterRunning", "no fault of what is published"


@pytest.mark.parametrize(
    ("of_pool", "of_class", "published", "why"),
    [
        ({}, {"a/x": {"int": 1}}, {"a/x": {"int": 1}}, "those of the class"),
        ({"a/x": {"int": 2}}, {"a/x": {"int": 1}}, {"a/x": {"int": 2}}, "the pool's own win"),
        ({"a/y": {"int": 2}}, {"a/x": {"int": 1}}, {"a/x": {"int": 1}, "a/y": {"int": 2}}, "both"),
        ({}, {}, None, "none"),
        (
            {f"a/p{at}": {"int": at} for at in range(32)},
            {"a/x": {"int": 1}},
            {f"a/p{at}": {"int": at} for at in range(32)},
            "no more than the API server takes",
        ),
    ],
)
def test_a_pool_is_published_with_the_attributes_of_its_class(
    of_pool: Plain, of_class: Plain, published: Plain | None, why: str
) -> None:
    pool = {"name": "gpu", "className": "h200", **({"attributes": of_pool} if of_pool else {})}
    classes: dict[str, Plain | None] = {"h200": inference_class(attributes=of_class)}
    made = Case(cluster(pool), classes=classes)
    made.input = {"publish": "Attributes"}
    assert made.answer().status["gpuPools"][0].get("attributes") == published, why


@pytest.mark.parametrize(
    ("message", "presence"),
    [
        (NO_OBJECT, "Absent"),
        (NO_KIND, "Absent"),
        (NO_SECRET, "Unknown"),
        (NO_CONFIG, "Unknown"),
        ("dial tcp", "Unknown"),
    ],
)
def test_a_capability_is_absent_only_where_the_cluster_said_so(message: str, presence: str) -> None:
    observed = looked_at("see-gateway", synced=False, message=message)
    response = Case(observed=observed, input={"publish": "Attributes"}).answer()
    assert response.status["capabilities"]["gateway"] == presence


def test_another_source_is_published_and_not_made() -> None:
    other = Case(cluster(source="GKE"), desired_status={"providerConfigRef": {"name": "theirs"}})
    response = other.answer()
    assert not response.desired
    assert response.status["gpuPools"]
    assert reason(response, "ClusterReady") == "ClusterRunning"
    alone = Case(cluster(source="GKE")).answer()
    assert reason(alone, "ClusterReady") == "UnsupportedSource"


def test_events_are_transitions() -> None:
    first = Case()
    assert [result.reason for result in first.answer().results] == ["ClusterRunning"]
    settled = first.settled()
    settled.cluster["status"]["conditions"] = [
        {"type": condition.type, "status": str(condition.status), "reason": condition.reason}
        for condition in first.answer().conditions
    ]
    assert settled.answer().results == ()


def test_the_scheduler_reads_what_is_published() -> None:
    pool = {"name": "gpu", "className": "h200", "nodeCount": 4}
    settled = Case(cluster(pool, gateway=GATEWAY)).settled()
    read = read_cluster(PlainDocument(settled.cluster))
    assert isinstance(read, InferenceCluster)
    assert read.gateway == GATEWAY["address"]
    assert [(candidate.name, candidate.nodes, candidate.class_name) for candidate in read.pools] == [
        ("gpu", 4, "h200")
    ]
    assert [device.device_class_name for device in read.pools[0].devices or ()] == ["gpu.nvidia.com"]


def test_a_pool_that_holds_more_than_it_has_is_marked_and_nothing_is_written_with_each_placement() -> None:
    def published(*replicas: Plain | None) -> Plain:
        made = Case(input={"publish": "Attributes", "charges": "Overcommitted"})
        made.replicas = None if None in replicas else list(replicas)
        made.cluster["status"] = {"gpuPools": [{"name": "gpu", "overcommitted": True}]}
        (pool,) = made.answer().status["gpuPools"]
        return {key: pool[key] for key in ("overcommitted", "charged") if key in pool}

    holding = [replica(f"chat-{number}") for number in range(3)]
    leaving = {
        **holding[2],
        "metadata": {**holding[2]["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }
    assert published(*holding) == {"overcommitted": True}
    assert published(*holding[:2]) == published() == {}
    assert published(*holding[:2], leaving) == {}, "one that leaves makes no pool overcommitted"
    assert published(None) == {"overcommitted": True}, (
        "Law C 3: while replicas are not delivered, the last word"
    )

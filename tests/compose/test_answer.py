"""The answer around the decision: counts, readiness, requirements, events, what is emitted again as it is."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from function.boundary import PlainDocument, Unreadable
from function.deployment import handler
from tests.support import build
from tests.support.cases import ask, clusters
from tests.support.drive import of_core, run
from tests.support.world import World

Plain = dict[str, Any]


def test_an_answer_counts_what_was_read_and_decided() -> None:
    """Two kept, of which one is held; one dropped, one placed; a cluster that cannot be read."""
    wanted = ask(4)
    own_replicas = [build.replica(wanted, name, at, pools="p0", ready=True) for at, name in enumerate("abc")]
    own_replicas[1]["spec"]["engines"][0]["name"] = "renamed"
    foreign = [build.replica(build.deployment("other"), "a", at, pools="p0") for at in range(5)]
    fleet = clusters(a=7, b=1, c={"taints": [build.taint("x", "NoExecute")]}, d=1)
    fleet[1]["spec"]["taints"] = [build.taint("y")]
    fleet.append({**build.cluster("e"), "status": {"gpuPools": 1}})
    made = World(wanted, fleet, [*own_replicas, *foreign], build.observed(*own_replicas))
    answer = run(made.but(deployment=ask(4, gpus=8)))
    assert answer.counts == {
        "clusters": 5,
        "clusters_unreadable": 1,
        "replicas_charged": 8,
        "wanted": 4,
        "kept": 2,
        "held": 1,
        "placed": 2,
        "dropped": 1,
        "cel_evaluations": 1,
        "cel_reused": 0,
        "pool_matches": 1,
    }


def test_only_an_observed_replica_that_is_ready_is_reported_ready() -> None:
    """What is only listed may be gone: Crossplane would be told of a resource it has not seen."""
    wanted = ask(3)
    own_replicas = [build.replica(wanted, "a", at, pools="p0", ready=at != 1) for at in range(3)]
    answer = run(World(wanted, clusters(a=4), own_replicas, build.observed(*own_replicas[:2])))
    assert {key for key in answer.ready if key.startswith("replica-")} == {"replica-a-0"}
    assert set(answer.replicas) == {"replica-a-0", "replica-a-1", "replica-a-2"}


def test_a_replica_that_is_only_listed_and_not_wanted_is_left_alone() -> None:
    """To desire it would create it again where the list is older than its deletion; nobody leaves for it."""
    own_replicas = [build.replica(ask(3), name, 0, pools="p0", ready=True) for name in "abc"]
    fleet, seen = clusters(a=1, b=1, c=1), build.observed(*own_replicas[:2])
    surplus = run(World(ask(2), fleet, own_replicas, seen))
    assert set(surplus.replicas) == {"replica-a-0", "replica-b-0"}
    wanted = run(World(ask(3), fleet, own_replicas, seen))
    assert wanted.replicas["replica-c-0"]["metadata"]["name"] == own_replicas[2]["metadata"]["name"]


YIELD = {"overcommit": "Yield"}


@pytest.mark.parametrize(
    ("metadata", "wanted", "again", "reason"),
    [
        ({}, 2, True, "Crossplane cannot delete what it does not refer to"),
        ({"deletionTimestamp": build.CREATED}, 2, False, "it leaves already"),
        ({"ownerReferences": []}, 2, False, "nobody says that this deployment made it"),
        ({}, 4, False, "something is placed: the pass after this one does it"),
    ],
)
def test_a_replica_that_crossplane_lost_sight_of_is_desired_once_more_to_leave(
    metadata: Plain, wanted: int, reason: str, *, again: bool
) -> None:
    """An answer on reads from before the latest one left it out, so no later one would delete it."""
    own_replicas = [build.replica(ask(3), name, 0, pools="p0", ready=True) for name in "abc"]
    lost = own_replicas[2]
    lost["metadata"] |= metadata
    taints = [build.taint("maintenance", "NoExecute")]
    fleet = clusters(a=1, b=1, c={"nodes": 1, "taints": taints}, d=2)
    seen = build.observed(*own_replicas[:2])
    made = World(ask(wanted), fleet, own_replicas, seen, input=YIELD)
    answer = run(made)
    assert ("replica-c-0" in answer.replicas) is again, reason
    if again:
        assert answer.replicas["replica-c-0"]["spec"] == lost["spec"]
        assert "replica-c-0" in answer.ready, "the deployment does not wait for what leaves it"
        assert "replica-c-0" not in run(made.but(observed=build.observed(*own_replicas))).replicas


def test_an_endpoint_that_is_emitted_as_it_is_is_as_ready_as_it_was() -> None:
    """While the list is not delivered, its replica may be one that is only listed."""
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    for ready in (True, False):
        seen = build.observed(endpoints=[build.endpoint(own_replica, ready=ready)])
        answer = run(World(ask(), clusters(a=4), None, seen))
        assert set(answer.desired) == {"endpoint-a-0"}
        assert answer.ready == ({"endpoint-a-0"} if ready else set())


@pytest.mark.parametrize("key", ["endpoint-a-0", "endpoint-!"])
@pytest.mark.parametrize(
    ("status", "ready", "reason"),
    [
        ({"conditions": [build.condition("Ready", status=True)]}, True, "as it says"),
        ({"conditions": [build.condition("Ready", status=False)]}, False, "as it says"),
        ({"conditions": [build.condition("Synced", status=True)]}, False, "another condition says nothing"),
        ({"conditions": "x"}, False, "conditions that are none"),
        ({"conditions": ["x", build.condition("Ready", status=True)]}, True, "one that is none"),
        ("x", False, "a status that is none"),
        (None, False, "no status"),
    ],
)
def test_an_endpoint_whose_gateway_is_not_known_stays_as_it_is(
    key: str, status: Any, reason: str, *, ready: bool
) -> None:
    """Without what others manage on it; traffic goes on while it cannot be told where to."""
    own_replica = build.replica(ask(), "a", 0, pools="p0", ready=True)
    seen = {**build.endpoint(own_replica), "status": status}
    [observed] = build.observed(endpoints=[seen]).values()
    observed["spec"]["crossplane"] = {"x": 1}
    plain = {name: manifest for name, manifest in observed["spec"].items() if name != "crossplane"}
    made = World(
        ask(), clusters(a={"gateway": None}), [own_replica], {**build.observed(own_replica), key: observed}
    )
    answer = run(made)
    assert answer.desired[key]["kind"] == "ModelEndpoint"
    assert answer.desired[key]["spec"] == plain, reason
    assert (key in answer.ready) is ready, reason


def test_a_stamped_member_without_a_role_is_a_standalone() -> None:
    """So the schema defaults it; the image of such a replica is updated in place as of any other."""
    was = ask(engines=[build.engine("main", [build.member(None, [build.request()])])])
    own_replica = build.replica(was, "a", 0, pools="p0", ready=True)
    del own_replica["spec"]["engines"][0]["members"][0]["role"]
    now = ask(engines=[build.engine("main", [build.member(None, [build.request()], image="new")])])
    [updated] = run(World(now, clusters(a=4), [own_replica], build.observed(own_replica))).replicas.values()
    [member] = updated["spec"]["engines"][0]["members"]
    assert member["template"] == build.template("new")
    assert (member["role"], member["nodePoolName"]) == ("Standalone", "p0")


def test_each_replica_claims_what_its_own_pool_publishes() -> None:
    """One engine, two clusters that call the same devices differently."""
    fleet = [
        build.cluster(name, [build.pool("p0", 1, [build.gpu(8, device_class=f"gpu-of-{name}")])])
        for name in "ab"
    ]
    answer = run(World(ask(2), fleet))
    assert {
        replica["spec"]["clusterName"]: asked["deviceClassName"]
        for replica in answer.replicas.values()
        for asked in replica["spec"]["engines"][0]["members"][0]["deviceRequests"]
    } == {"a": "gpu-of-a", "b": "gpu-of-b"}


class Damaged(PlainDocument):
    """An object of which a part that nobody needs cannot be read."""

    def plain(self) -> Plain:
        raise Unreadable("deep inside")


@pytest.mark.parametrize(
    ("observed", "emitted", "reason"),
    [
        (True, {"replica-a-0"}, "Crossplane would delete what it observes and nobody desires"),
        (False, set(), "what is only listed cannot be written again, and is not deleted for that"),
    ],
)
def test_a_replica_that_cannot_be_read_in_whole(*, observed: bool, emitted: set[str], reason: str) -> None:
    was = ask()
    own_replica = build.replica(was, "a", 0, pools="p0", ready=True)
    own_replica["spec"]["engines"][0]["name"] = "renamed"
    world = World(was, clusters(a=0), [own_replica], build.observed(own_replica) if observed else {})
    plain = world.request()
    request = dataclasses.replace(
        plain,
        required={**plain.required, "all-replicas": (Damaged(own_replica),)},
        observed={key: Damaged(own_replica) for key in plain.observed},
    )
    assert set(of_core(handler.run(request)).replicas) == emitted, reason


@pytest.mark.parametrize(("key", "kind"), [("replica-a-0", "ConfigMap"), ("replica-!", "ModelReplica")])
def test_an_object_under_our_key_is_emitted_without_what_others_wrote_on_it(key: str, kind: str) -> None:
    """The server's metadata, the status and what Crossplane manages: writing them would claim them."""
    seen = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": "by-hand",
            "namespace": "elsewhere",
            "uid": "u",
            "labels": {"crossplane.io/composite": "x", "team": "ml"},
        },
        "spec": {"clusterName": "a", "engines": [], "crossplane": {"x": 1}},
        "status": {"conditions": []},
    }
    emitted = run(World(ask(), clusters(a=4), [], {key: seen})).desired[key]
    assert emitted["metadata"] == {"name": "by-hand", "namespace": "elsewhere", "labels": {"team": "ml"}}
    assert "status" not in emitted
    assert ("crossplane" in emitted["spec"]) is (kind == "ConfigMap")


def test_an_object_without_a_namespace_is_emitted_in_that_of_the_deployment() -> None:
    own_replica = build.replica(ask(), "a", 0, pools="p0")
    del own_replica["metadata"]["namespace"]
    for delivered in ([own_replica], None):
        answer = run(World(ask(), clusters(a=4), delivered, build.observed(own_replica)))
        assert answer.desired["replica-a-0"]["metadata"]["namespace"] == build.NAMESPACE


@pytest.mark.parametrize(
    ("given", "unready", "reason"),
    [
        ({}, False, "all is well"),
        ({"typo": True}, True, "a selector that does not compile"),
        ({"input": {"explian": "x"}}, True, "an input that is invalid"),
        ({"replicas": None}, True, "a list that is not delivered"),
    ],
)
def test_a_deployment_is_not_called_ready_on_what_is_invalid_or_unknown(
    given: Plain, *, unready: bool, reason: str
) -> None:
    """However well its replicas run."""
    was = ask()
    own_replica = build.replica(was, "a", 0, pools="p0", ready=True)
    wanted = ask(engines=[build.engine("main", [build.member(devices=[build.request("gpu", 8, "typo(")])])])
    made = World(
        wanted if given.pop("typo", False) else was, clusters(a=4), [own_replica], build.observed(own_replica)
    )
    answer = run(made.but(**given))
    assert (answer.unready, answer.settled) == (unready, not unready), reason


def test_the_report_opens_with_what_the_condition_says() -> None:
    """Whatever that is: the selector that does not compile, not how many are placed."""
    typo = build.member(devices=[build.request("gpu", 8, "typo(")])
    for wanted in (ask(3), ask(engines=[build.engine("main", [typo])])):
        answer = run(World(wanted, clusters(a=1), input={"explain": "Status"}))
        assert answer.status["placement"]["summary"] == answer.conditions["ReplicasScheduled"][2]
        assert answer.status["replicas"] == {"total": len(answer.replicas), "ready": 0}


def test_what_crossplane_must_fetch() -> None:
    """Nothing runs yet, so the fleet is needed: two lists, and with GlobalOrder what others want and need."""
    own_replicas = [("own-replicas/my-model", "ModelReplica", None, build.NAMESPACE)]
    both = [
        ("fleet-clusters", "InferenceCluster", None, None),
        ("fleet-replicas", "ModelReplica", None, None),
    ]
    cache = [("cache/weights", "ModelCache", "weights", build.NAMESPACE)]
    others = [
        ("fleet-deployments", "ModelDeployment", None, None),
        ("fleet-caches", "ModelCache", None, None),
    ]
    for name, given, expected in (
        (None, None, [*own_replicas, *both]),
        ("weights", None, [*own_replicas, *cache, *both]),
        (None, {"coordination": "GlobalOrder"}, [*own_replicas, *both, *others]),
        ("weights", {"coordination": "GlobalOrder"}, [*own_replicas, *cache, *both, *others]),
    ):
        asked = run(World(ask(cache=name), None, None, input=given)).requirements
        requirements = [
            (manifest["name"], manifest["kind"], manifest["matchName"], manifest["namespace"])
            for manifest in asked
        ]
        assert requirements == expected
        assert {item["apiVersion"] for item in asked} == {"modelplane.ai/v1alpha1"}


@pytest.mark.parametrize(
    ("delivered", "reason", "events", "why"),
    [
        (True, "InvalidInput", ("FATAL", "UnreadableComposite"), "nothing can be done but mending it"),
        (False, "InputsUnresolved", None, "a fatal result would keep Crossplane from fetching"),
    ],
)
def test_a_deployment_that_cannot_be_read_changes_nothing(
    reason: str, events: tuple[str, str] | None, why: str, *, delivered: bool
) -> None:
    wanted = ask()
    own_replica = build.replica(wanted, "a", 0, pools="p0", ready=True)
    wanted["spec"]["replicas"] = 1.5
    fleet = clusters(a=4) if delivered else None
    answer = run(World(wanted, fleet, [own_replica] if delivered else None, build.observed(own_replica)))
    text = "The ModelDeployment cannot be read: spec.replicas: expected a whole number, found 1.5"
    assert answer.conditions == {
        "ReplicasScheduled": (False, reason, text),
        "ReplicasReady": (False, "ModelStarting", text),
    }, why
    assert answer.events == (() if events is None else ((*events, text),)), why
    assert (set(answer.desired), answer.unready) == ({"replica-a-0"}, True), why


def _drained(made: World) -> World:
    made.clusters[0]["spec"]["taints"] = [build.taint("x", "NoExecute")]
    return made


def _gone(made: World) -> World:
    return made.but(clusters=made.clusters[1:])


def _fewer(made: World) -> World:
    made.deployment["spec"]["replicas"] = 1
    return made


def _reshaped(made: World) -> World:
    made.deployment["spec"]["template"]["spec"]["engines"] = [build.engine("other")]
    return made


NAMES = [f"a/{build.composed_name('my-model', 'a', at)}" for at in range(8)]
TAINT = "NoExecute taint (x:NoExecute)"
FIVE = ", ".join(NAMES[:5])


@pytest.mark.parametrize(
    ("edit", "running", "event"),
    [
        (
            _drained,
            1,
            (
                "WARNING",
                "ReplicaDrained",
                f"Removing 1 replica, its cluster has an untolerated {TAINT}: {NAMES[0]}",
            ),
        ),
        (
            _gone,
            6,
            (
                "WARNING",
                "ReplicaClusterGone",
                f"Removing 6 replicas, its cluster no longer exists (cluster a): {FIVE} and 1 more",
            ),
        ),
        (
            _fewer,
            6,
            (
                "NORMAL",
                "ReplicaScaledDown",
                f"Removing 5 replicas, scaled down: {', '.join(reversed(NAMES[1:6]))}",
            ),
        ),
        (
            _reshaped,
            1,
            (
                "NORMAL",
                "ReplicaReplaced",
                f"Removing 1 replica, replaced (the engines changed shape): {NAMES[0]}",
            ),
        ),
    ],
    ids=["drained", "cluster gone", "scaled down", "replaced"],
)
def test_what_leaves_is_told_once_for_each_cause(
    edit: Any, running: int, event: tuple[str, str, str]
) -> None:
    wanted = ask(running)
    own_replicas = [build.replica(wanted, "a", at, pools="p0", ready=True) for at in range(running)]
    made = edit(World(wanted, clusters(a=9, b=9), own_replicas, build.observed(*own_replicas)))
    assert run(made).events[0] == event


@pytest.mark.parametrize(
    ("replicas", "names", "text"),
    [
        (1, "a", "Placed 1 replica on 1 cluster: {0}"),
        (2, "a", "Placed 2 replicas on 1 cluster: {0}, {1}"),
        (2, "ab", "Placed 2 replicas on 2 clusters: {0}, {1}"),
        (7, "a", "Placed 7 replicas on 1 cluster: {0}, {1}, {2}, {3}, {4} and 2 more"),
    ],
)
def test_what_is_new_is_told_with_its_places(replicas: int, names: str, text: str) -> None:
    answer = run(World(ask(replicas), clusters(**dict.fromkeys(names, 9))))
    made = [
        f"{replica['spec']['clusterName']}/{replica['metadata']['name']}"
        for _, replica in sorted(answer.replicas.items(), key=lambda item: item[0][::-1])
    ]
    assert answer.events == (("NORMAL", "ReplicasPlaced", text.format(*made)),)


@pytest.mark.parametrize(
    ("given", "selector", "reason"),
    [
        ({}, None, "Modelplane's XRD closes status.replicas: nothing is written unless asked for"),
        ({"scaleSelector": "Status"}, "modelplane.ai/deployment=chat", "an HPA refuses a target without it"),
    ],
)
def test_the_selector_of_the_scale_subresource_is_opt_in(
    given: Plain, selector: str | None, reason: str
) -> None:
    config = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}
    deployment = build.deployment("chat", 2)
    for fleet in (clusters(a=4), [], None):
        stated = run(World(deployment, fleet, [], input=config | given)).status["replicas"]
        assert stated.get("selector") == selector, reason


def test_the_selector_selects_every_replica_and_no_other() -> None:
    config = {"apiVersion": "fleet-scheduler.fn.modelplane.ai/v1alpha1", "kind": "SchedulerConfig"}
    answer = run(
        World(build.deployment("chat", 2), clusters(a=4), [], input=config | {"scaleSelector": "Status"})
    )
    key, _, value = answer.status["replicas"]["selector"].partition("=")
    assert [replica["metadata"]["labels"][key] for replica in answer.replicas.values()] == [value, value]

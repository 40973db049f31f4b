"""Law C: doubt deletes nothing, and no Object ever becomes another remote object."""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from function import dispatch, wire
from function.api.model import mapping
from function.boundary import PlainDocument, Shape, Unreadable
from function.boundary.memory import Memory, Session
from function.fail_static import base_of
from function.objects import ObjectIdentity, ObservedObject
from function.replica import compose, handler, names, state
from tests.fuzz.mutate import mutated
from tests.replica import generate
from tests.replica.build import (
    PROVIDER_CONFIG,
    Scene,
    claim,
    cluster,
    config,
    engine,
    gang,
    manifests,
    member,
    replica,
    run,
    run_bytes,
)
from tests.replica.provider import STAGES, applied
from tests.support import drive
from tests.support.build import condition
from tests.support.scale import BATCHES, batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.support.any_request import AnyRequest
    from tests.support.drive import Answer

Plain = dict[str, Any]

CONDITIONS = ["ModelAccepted", "ModelReady", "ModelUpdated"]


def identity(composed: Plain) -> Plain:
    """What ties an Object to one remote object on one cluster."""
    spec = mapping(composed.get("spec"))
    manifest = mapping(mapping(spec.get("forProvider")).get("manifest"))
    metadata = mapping(manifest.get("metadata"))
    version = manifest.get("apiVersion")
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    return {
        "kind": (composed.get("kind"), group, manifest.get("kind")),
        "place": (metadata.get("namespace"), metadata.get("name")),
        "cluster": {key: mapping(spec.get("providerConfigRef")).get(key) for key in ("kind", "name")},
    }


def lost_owner(key: str, spec: Plain) -> bool:
    """Whether the spec no longer has what a key belongs to: its engine, or any mention of a Secret."""
    read = names.read_key(base_of(key))
    if read is None:
        return False
    if read.what == names.SECRET:
        return f'"{read.of}"' not in json.dumps(spec)
    return read.what in (names.WORKLOAD, names.CLAIM) and read.of not in {
        entry["name"] for entry in spec["engines"]
    }


def unheld(key: str) -> bool:
    """Whether a key stands for what holds nothing that runs: a budget, or what something is seen through."""
    read = names.read_key(base_of(key))
    return read is not None and read.what in (names.BUDGET, names.PODS, names.SEEN)


def holds(scene: Scene, answer: Answer) -> None:
    """Nothing that was observed moves to another remote object; every condition is there."""
    for key in scene.observed.keys() & answer.desired.keys():
        assert identity(scene.observed[key]) == identity(answer.desired[key]), key
    assert list(answer.conditions)[:3] == CONDITIONS
    assert not answer.fatal
    if not answer.desired:
        assert answer.unready


def running(seed: int) -> tuple[random.Random, Scene]:
    """Return a random replica whose Objects were applied, each at some stage; every third is on KServe."""
    scene = generate.scene(seed) if seed % 3 else generate.kserve_scene(seed)
    draw = random.Random(-seed)
    stage = draw.choice(STAGES)
    observed = applied(run(scene), stage)
    if draw.random() < 0.3:
        key = draw.choice(sorted(observed))
        observed[key].pop("status", None)
    return draw, scene.but(observed=observed)


def restacked(made: Plain) -> Plain:
    """Return a cluster with the other stack."""
    other = "Standard" if made["spec"].get("stack") == "KServe" else "KServe"
    return {**made, "spec": {**made["spec"], "stack": other}}


DOUBTS = {
    "not delivered": lambda scene: scene.but(cluster=None),
    "absent": lambda scene: scene.but(absent=True),
    "without status": lambda scene: scene.but(cluster={**scene.cluster, "status": {}}),
    "without a ProviderConfig": lambda scene: scene.but(cluster=cluster(provider_config=None)),
    "on another ProviderConfig": lambda scene: scene.but(cluster=cluster(provider_config="another")),
    "of another name": lambda scene: scene.but(cluster={**scene.cluster, "metadata": {"name": "other"}}),
    "of another stack": lambda scene: scene.but(cluster=restacked(scene.cluster)),
    "without a spec": lambda scene: scene.but(cluster={**scene.cluster, "spec": None}),
    "not an object": lambda scene: scene.but(cluster={**scene.cluster, "spec": "x"}),
    "an input with a typo": lambda scene: scene.but(input=config(drainSecond=3)),
    "an unreadable spec": lambda scene: scene.edited(engines="none"),
    "no spec": lambda scene: scene.but(
        replica={key: scene.replica[key] for key in scene.replica if key != "spec"}
    ),
    "naming no cluster": lambda scene: scene.but(
        observed={
            key: {**one, "spec": {**one["spec"], "providerConfigRef": {}}} if key == "epp" else one
            for key, one in scene.observed.items()
        }
    ),
}
WAITING, ALL_KEPT = "WaitingForCluster", "everything is kept as it is"
NO_CONFIG = (WAITING, "InferenceCluster cluster-a has no status.providerConfigRef yet")
WAY_OUT = "delete the replica to have it placed anew"
SAID = {
    "not delivered": (WAITING, "Waiting for InferenceCluster cluster-a"),
    "absent": (WAITING, "InferenceCluster cluster-a does not exist"),
    "without status": NO_CONFIG,
    "without a ProviderConfig": NO_CONFIG,
    "on another ProviderConfig": (
        "ClusterChanged",
        f"Objects of this replica are on {PROVIDER_CONFIG}, its cluster is on another: {ALL_KEPT}",
    ),
    "naming no cluster": (
        "ClusterChanged",
        f"An Object of this replica names no cluster, its cluster is on {PROVIDER_CONFIG}: {ALL_KEPT}",
    ),
    "of another name": (WAITING, "InferenceCluster cluster-a was not delivered"),
    "of another stack": (
        "StackChanged",
        f"This replica runs on the stack Standard, its cluster now has KServe: {ALL_KEPT}; {WAY_OUT}",
    ),
    "without a spec": (WAITING, "InferenceCluster cluster-a cannot be read: spec: required, but missing"),
    "not an object": (
        WAITING,
        "InferenceCluster cluster-a cannot be read: spec: expected a map, found a string",
    ),
    "an input with a typo": (
        "Malformed",
        "The function's input is invalid: WorkloadConfig: drainSecond: no such field",
    ),
    "an unreadable spec": (
        "Malformed",
        "The ModelReplica cannot be read: spec.engines: expected a list, found a string",
    ),
    "no spec": ("Malformed", "The ModelReplica cannot be read: spec: required, but missing"),
}
ENDS = {
    WAITING: "; everything running is kept, nothing new is composed",
    "Malformed": "; everything running is kept",
}


@pytest.mark.parametrize("doubt", DOUBTS)
@pytest.mark.parametrize("level", ["plain", "wire"])
def test_in_doubt_everything_stays_as_it_is_and_goes_on_serving(doubt: str, level: str) -> None:
    scene = Scene(replica(engine("a"), gang("b", copies=2), cache="weights"))
    settled = scene.but(observed=applied(run(scene)))
    doubted = DOUBTS[doubt](settled)
    answer = run(doubted, level=level)
    assert answer.desired.keys() == settled.observed.keys()
    for key, manifest in doubted.observed.items():
        assert answer.desired[key]["spec"] == manifest["spec"]
        assert answer.desired[key]["metadata"]["name"] == manifest["metadata"]["name"]
    reason, text = SAID[doubt]
    assert answer.conditions["ModelAccepted"] == (False, reason, text + ENDS.get(reason, ""))
    assert answer.reason("ModelReady") == "Serving"
    assert answer.ready == settled.observed.keys()
    assert level == "wire" or answer.counts["objects_kept"] == len(settled.observed)
    assert not answer.unready


class Undecodable(PlainDocument):
    """A composite nothing of which can be decoded."""

    def plain(self) -> Plain:
        raise Unreadable("deep inside")

    def project(self, _shape: Shape) -> Plain:
        return self.plain()


def test_of_a_composite_that_cannot_be_decoded_all_stays_and_nothing_is_believed() -> None:
    """That its gang was updated stands in its status; without that the gang's own status proves nothing."""
    made = replica(gang(), conditions=[condition("ModelUpdated", status=True)])
    seen = applied(run(Scene(made)))
    seen["model-serving-main"]["status"]["atProvider"]["manifest"]["metadata"]["generation"] = 2
    asked = Scene(made, observed=seen).asked.request()
    assert drive.of_core(handler.run(asked)).conditions["ModelUpdated"][0]
    answer = drive.of_core(handler.run(dataclasses.replace(asked, composite=Undecodable(made))))
    assert {key: one["spec"] for key, one in answer.desired.items()} == {
        key: one["spec"] for key, one in seen.items()
    }
    said = {key: value[:2] for key, value in answer.conditions.items()}
    assert said == dict(
        zip(CONDITIONS, [(False, "Malformed"), (True, "Serving"), (False, "Updating")], strict=True)
    )


def test_a_namesake_that_cannot_be_decoded_takes_no_name() -> None:
    made = replica()
    labels = {"modelplane.ai/deployment": "my-model", "modelplane.ai/cluster": made["spec"]["clusterName"]}
    made["metadata"]["labels"] = labels
    asked = Scene(made, input=config(namesakes="Refuse"), more={"namesakes": [made]}).asked.request()
    alone = drive.of_core(handler.run(asked))
    required = {**asked.required, "namesakes": (*asked.required["namesakes"], Undecodable(made))}
    answer = drive.of_core(handler.run(dataclasses.replace(asked, required=required)))
    assert answer.conditions["ModelAccepted"] == alone.conditions["ModelAccepted"]
    assert answer.desired == alone.desired
    assert answer.desired


@pytest.mark.parametrize(
    ("reason", "seen", "metadata", "expected"),
    [
        ("another version", {"apiVersion": "kubernetes.m.crossplane.io/v2"}, {}, {}),
        ("labels", {}, {"labels": {"team": "x"}}, {}),
        ("no namespace", {}, {"namespace": ""}, {"namespace": "ml-team"}),
        ("no version", {"apiVersion": None}, {}, {"apiVersion": "kubernetes.m.crossplane.io/v1alpha1"}),
        ("no kind", {"kind": None}, {}, {"kind": "Object"}),
    ],
)
def test_in_doubt_an_object_is_said_again_as_it_stands(
    reason: str, seen: Plain, metadata: Plain, expected: Plain
) -> None:
    """In the version that it was applied in, where the composite is; what Crossplane manages is not ours."""
    scene = Scene(replica())
    observed = applied(run(scene))
    held = {**observed["epp"], **seen, "metadata": {**observed["epp"]["metadata"], **metadata}}
    held["spec"] = {**held["spec"], "crossplane": {}}
    answer = run(scene.but(cluster=None, observed={**observed, "epp": held})).desired["epp"]
    wanted = {**held, **{key: expected[key] for key in expected.keys() & {"apiVersion", "kind"}}}
    wanted["metadata"] = {**held["metadata"], **{k: v for k, v in expected.items() if k == "namespace"}}
    wanted["spec"] = observed["epp"]["spec"]
    assert answer == {key: value for key, value in wanted.items() if key != "status"}, reason


@pytest.mark.parametrize("doubt", DOUBTS)
def test_in_doubt_nothing_new_is_composed(doubt: str) -> None:
    answer = run(DOUBTS[doubt](Scene(replica())))
    if SAID[doubt][0] == "ClusterChanged":  # Nothing is observed, so nothing is on another one.
        assert answer.desired
        return
    assert not answer.desired
    assert answer.unready


@pytest.mark.parametrize("number", range(BATCHES))
def test_a_mutation_of_anything_but_the_spec_deletes_nothing(number: int) -> None:
    for seed in batch(number, quick=240, gate=20_000):
        draw, scene = running(seed)
        made = struck(draw, scene)
        answer = run(made)
        missing = [key for key in made.observed if key not in answer.desired and ours(made, key)]
        assert not [key for key in missing if not unheld(key)], seed
        holds(made, answer)


@pytest.mark.parametrize("number", range(BATCHES))
def test_an_edit_deletes_only_what_lost_its_owner(number: int) -> None:
    for seed in batch(number, quick=160, gate=8_000):
        draw, scene = running(seed)
        spec = draw.choice(list(edits(draw, scene)))
        made = scene.edited(**spec)
        answer = run(made)
        missing = [key for key in made.observed if key not in answer.desired]
        assert not [
            key for key in missing if not lost_owner(key, made.replica["spec"]) and not unheld(key)
        ], seed
        holds(made, answer)


@pytest.mark.parametrize("number", range(BATCHES))
def test_a_mutated_spec_moves_nothing_to_another_remote_object(number: int) -> None:
    for seed in batch(number, quick=160, gate=8_000):
        draw, scene = running(seed)
        made = scene.but(replica=mutated(draw, scene.replica, keep=(("metadata", "name"),)))
        answer = run(made) if made.replica.get("kind") == "ModelReplica" else None
        if answer is not None:
            holds(made, answer)
            if answer.reason("ModelAccepted") == "Malformed":
                assert answer.desired.keys() >= made.observed.keys(), seed


def struck(draw: random.Random, scene: Scene) -> Scene:
    """Return a scene with one mutation of what is observed, required, or asked for."""
    kind = draw.random()
    if kind < 0.25:
        return scene.but(cluster=mutated(draw, scene.cluster))
    if kind < 0.35 and scene.input is not None:
        return scene.but(input=mutated(draw, scene.input))
    if kind < 0.5:
        return draw.choice(list(DOUBTS.values())[:8])(scene)
    observed = dict(scene.observed)
    key = draw.choice(sorted(observed))
    if kind < 0.6:
        del observed[key]
    elif kind < 0.7:
        observed[key] = {**observed[key], "kind": draw.choice(("ConfigMap", "Thing", ""))}
    else:
        observed[key] = mutated(draw, observed[key], keep=(("metadata", "name"), ("kind",)))
    return scene.but(observed=observed)


def ours(scene: Scene, key: str) -> bool:
    return names.read_key(base_of(key)) is not None


def edits(draw: random.Random, scene: Scene) -> Iterator[Plain]:
    """Yield edits of a spec that users make."""
    engines = scene.replica["spec"]["engines"]
    first = copy.deepcopy(engines[0])
    for one_member in first["members"]:
        one_member["deviceRequests"] = [claim(count=4)]
    yield {"engines": [first, *engines[1:]]}
    yield {"engines": [{**engines[0], "copies": 3}, *engines[1:]]}
    yield {"engines": [*engines, engine("added")]}
    yield {"engines": [gang(engines[0]["name"]), *engines[1:]]}
    yield {"engines": [engine(engines[0]["name"]), *engines[1:]]}
    yield {"engines": engines[1:] or [engine("other")]}
    yield {"serving": {"mode": "PrefillDecode"}}
    yield {"serving": {"mode": "Unified"}}
    yield {"modelCacheRef": {"name": "another"}}
    again = copy.deepcopy(engines)
    again[0]["members"][0]["template"]["spec"]["containers"][0]["image"] = "registry.example.com/new:v2"
    yield {"engines": again}
    yield {"engines": [{**engines[0], "members": [member(claims=[])]}, *engines[1:]]}


def test_a_workload_of_another_kind_gets_another_key_and_the_old_one_serves_until_it_is_ready() -> None:
    scene = Scene(replica(engine("main")))
    before = run(scene)
    switched = scene.but(observed=applied(before)).edited(engines=[gang("main")])
    first = run(switched)
    (successor,) = (
        first.desired.keys()
        - before.desired.keys()
        - {key for key in first.desired if key.startswith(names.CLAIM)}
    )
    assert base_of(successor) == "model-serving-main"
    assert manifests(first)["model-serving-main"]["kind"] == "Deployment"
    assert manifests(first)[successor]["kind"] == "LeaderWorkerSet"
    assert first.reason("ModelReady") == "Serving"
    assert not first.unready

    starting = switched.but(observed=applied(first, **{successor: "started"}))
    assert run(starting).desired.keys() == first.desired.keys()

    second = run(switched.but(observed=applied(first)))
    assert "model-serving-main" not in second.desired
    assert successor in second.desired
    third = run(switched.but(observed=applied(second)))
    assert third.settled
    assert third.desired.keys() == second.desired.keys() - {"resource-claim-main-standalone"}


@pytest.mark.parametrize("where", ["the Object", "its remote object"])
def test_a_successor_that_is_being_deleted_supersedes_nothing(where: str) -> None:
    before = run(Scene(replica(engine("main"))))
    switched = Scene(replica(engine("main")), observed=applied(before)).edited(engines=[gang("main")])
    first = run(switched)
    (successor,) = (key for key in first.desired if base_of(key) == "model-serving-main" and "." in key)
    observed = applied(first)
    assert "model-serving-main" not in run(switched.but(observed=observed)).desired
    holder = observed[successor]
    if where != "the Object":
        holder = holder["status"]["atProvider"]["manifest"]
    holder["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"
    answer = run(switched.but(observed=observed))
    assert answer.desired.keys() == observed.keys()
    assert answer.reason("ModelReady") == "Serving"


def test_a_namespace_whose_name_cannot_be_read_stays() -> None:
    scene = Scene(replica(), input=config(remoteNamespace="Same"))
    observed = applied(run(scene))
    observed["namespace"]["spec"]["forProvider"] = {}
    assert "namespace" in run(scene.but(observed=observed, input=None)).desired


def test_a_workload_whose_namespace_cannot_be_read_moves_nothing() -> None:
    scene = Scene(replica(engine("a"), engine("b")))
    observed = applied(run(scene))
    del observed["model-serving-a"]["spec"]["forProvider"]["manifest"]["metadata"]["namespace"]
    for seen in (observed, {"model-serving-a": observed["model-serving-a"]}):
        made = manifests(run(scene.but(observed=seen)))
        assert {
            one["metadata"].get("namespace") for key, one in made.items() if key != "model-serving-a"
        } == {"default"}


def test_a_namespace_that_a_key_stands_for_does_not_become_another() -> None:
    """Law C 4 at the last gate: the one key that is not made of what it leads to."""
    scene = Scene(replica(), input=config(remoteNamespace="Same"))
    observed = applied(run(scene))
    manifest = observed["namespace"]["spec"]["forProvider"]["manifest"]
    manifest["metadata"] = {"name": "another"}
    assert manifests(run(scene.but(observed=observed)))["namespace"] == manifest


def test_a_foreign_resource_under_a_key_of_ours_stays_and_is_named() -> None:
    scene = Scene(replica())
    observed = applied(run(scene))
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}
    answer = run(scene.but(observed={**observed, "model-route": foreign}))
    assert answer.desired.keys() == observed.keys()
    assert answer.desired["model-route"]["data"] == {"a": "b"}
    text = (
        "Something else stands under a key of this replica: composed resource model-route: expected an"
        " Object of provider-kubernetes; everything running is kept"
    )
    assert answer.conditions["ModelAccepted"] == (False, "Malformed", text)


@pytest.mark.parametrize("level", ["plain", "wire"])
@pytest.mark.parametrize("settled", [True, False], ids=["observed", "new"])
def test_what_an_earlier_step_desires_is_left_to_it(level: str, *, settled: bool) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}
    scene = Scene(replica())
    asked = scene.but(observed=applied(run(scene)) if settled else {}).asked
    answer = asked.but(earlier={"epp": theirs, "model-serving-main": theirs}).answer(level=level)
    for key in ("epp", "model-serving-main"):
        assert answer.desired.get(key) in (None, theirs)
    assert "model-route" in answer.desired


THERE = ObservedObject(remote={}, ready=True)
ABSENT, UNREADY, DELETED = (
    ObservedObject(),
    ObservedObject(remote={}, ready=False),
    ObservedObject(remote={}, ready=True, leaving=True),
)
AT_REST = state.EngineState("a", 1, *(True, True, True), 1, 1, 1, up_to_date=True)
STARTING = state.EngineState("a", 1, *(True, True, False), 1, 0, 1)
OF_A, OF_B = "model-serving-a", "model-serving-b"
WANTED = {OF_A: THERE}
ROUTE, ROUTED = "model-route", {"epp": THERE, "model-route.0badcafe": THERE}


def held(name: str, namespace: str = "") -> ObservedObject:
    return ObservedObject(identity=ObjectIdentity("", "x", namespace, name), remote={})


class Unwanted(NamedTuple):
    """Observed objects that nothing wants any more, beside those that are wanted."""

    reason: str
    unwanted: tuple[str, ...]
    wanted: dict[str, ObservedObject]
    stays: bool
    states: tuple[state.EngineState, ...] = (AT_REST,)
    stack: str = "Standard"


UNWANTED = (
    Unwanted("what cannot be read is doubt", ("thing",), WANTED, stays=True),
    Unwanted("an engine that is gone takes its workload with it", (OF_B,), WANTED, stays=False),
    Unwanted("its successor takes requests", (OF_A,), {f"{OF_A}.0badcafe": THERE}, stays=False),
    Unwanted("its successor takes none", (OF_A,), {f"{OF_A}.0badcafe": THERE}, True, (STARTING,)),
    Unwanted("its successor is not there", (OF_A,), {f"{OF_A}.0badcafe": ABSENT}, stays=True),
    Unwanted("its successor is being deleted", (OF_A,), {f"{OF_A}.0badcafe": DELETED}, stays=True),
    Unwanted("a service whose engines take requests elsewhere", ("model-serving",), WANTED, stays=False),
    Unwanted("a service, and none takes its place yet", ("model-serving",), WANTED, True, (STARTING,)),
    Unwanted("a claim that every pod has left", ("resource-claim-a-leader",), WANTED, stays=False),
    Unwanted("a claim that pods may have", ("resource-claim-a-leader",), WANTED, True, (STARTING,)),
    Unwanted(
        "a claim whose successor is not there",
        ("resource-claim-a-leader",),
        WANTED | {"resource-claim-a-leader.0badcafe": ABSENT},
        stays=True,
    ),
    Unwanted("a claim of another engine", ("resource-claim-b-leader",), WANTED, False, (STARTING,)),
    Unwanted(
        "one service has the pods of every engine",
        ("resource-claim-b-leader",),
        {"model-serving": THERE},
        True,
        (STARTING,),
        "KServe",
    ),
    Unwanted("a Secret that no pod refers to", ("secret-s",), WANTED, stays=False),
    Unwanted("a Secret that pods may refer to", ("secret-s",), WANTED, True, (STARTING,)),
    Unwanted("a Secret, and two workloads run", ("secret-s", OF_A), {f"{OF_A}.0badcafe": ABSENT}, stays=True),
    Unwanted("a route whose successor works", (ROUTE,), WANTED | ROUTED, stays=False),
    Unwanted("a route whose successor has no picker", (ROUTE,), {"model-route.0badcafe": THERE}, stays=True),
    Unwanted("the picker is not Ready", (ROUTE,), WANTED | ROUTED | {"epp": UNREADY}, stays=True),
    Unwanted("the picker is not there", (ROUTE,), WANTED | ROUTED | {"epp": ABSENT}, stays=True),
    Unwanted("no route of a stack without any", (ROUTE,), {"model-serving": THERE}, stays=True),
    Unwanted(
        "a pool that is not there takes no requests",
        (ROUTE,),
        WANTED | ROUTED | {"inference-pool.0badcafe": ABSENT},
        stays=True,
    ),
    Unwanted("a budget holds nothing that runs", ("budget-a",), WANTED, False, (STARTING,)),
    Unwanted("nor do seen pods", ("pods-a",), {"pods-a.0badcafe": ABSENT}, False, (STARTING,)),
    Unwanted("nor do workloads of KServe", ("see-serving-a",), {"see-serving-a.0badcafe": ABSENT}, False),
    Unwanted("a namespace with something wanted", ("namespace",), {OF_A: held("a", "n")}, stays=True),
    Unwanted("an empty namespace", ("namespace",), {OF_A: held("a", "other")}, stays=False),
    Unwanted(
        "a namespace with a Secret that stays",
        ("namespace", "secret-s"),
        WANTED,
        True,
        (STARTING,),
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", UNWANTED, ids=[case.reason for case in UNWANTED])
def test_what_nothing_wants_stays_until_nothing_that_runs_needs_it(case: Unwanted) -> None:
    """The rules one by one; of two keys, the first is the one that the case is about."""
    kept = dict.fromkeys(case.unwanted, held("s", "n")) | {"namespace": held("n")}
    cluster = SimpleNamespace(spec=SimpleNamespace(stack=case.stack))
    observed = {key: kept[key] for key in case.unwanted} | case.wanted
    snapshot = SimpleNamespace(observed=observed, cluster=cluster)
    states = {one.name: one for one in case.states}
    remaining = state.remaining(snapshot, case.wanted, states)
    assert (case.unwanted[0] in remaining) is case.stays, case.reason


def test_a_pool_that_leaves_the_declaration_restarts_no_pod() -> None:
    labelled = {"name": "frontier", "nodeSelector": {"pool": "h"}, "tolerations": [{"operator": "Exists"}]}
    scene = Scene(replica(engine("a"), gang("b")), cluster(labelled))
    before = run(scene)
    gone = scene.but(cluster=cluster({"name": "other"}), observed=applied(before))
    assert run(gone).desired == before.desired


def test_switching_the_serving_mode_composes_the_new_routing_first() -> None:
    scene = Scene(replica(engine("main")))
    before = run(scene)
    engines = [engine("prefill", phase="Prefill"), engine("decode", phase="Decode")]
    switched = scene.but(observed=applied(before)).edited(engines=engines, serving={"mode": "PrefillDecode"})
    first = run(switched)
    assert first.desired.keys() == before.desired.keys()
    assert manifests(first)["epp-config"] != manifests(before)["epp-config"]
    assert manifests(first)["model-serving-main"] == manifests(before)["model-serving-main"]
    assert not first.settled
    second = run(switched.but(observed=applied(first)))
    assert {"model-serving-prefill", "model-serving-decode"} < second.desired.keys()
    assert "model-serving-main" not in second.desired


def test_of_bytes_all_is_read_that_an_answer_stands_on() -> None:
    """Only those fields of an object are decoded that are asked for: the answer is that of the whole."""
    for seed in range(12):
        _, scene = running(seed)
        assert run(scene, level="wire").desired == run(scene).desired, seed


def test_the_answer_is_the_same_bytes_every_time() -> None:
    for seed in range(20):
        scene = generate.scene(seed)
        settled = scene.but(observed=applied(run(scene)))
        shuffled = settled.but(observed=dict(reversed(list(settled.observed.items()))))
        assert run_bytes(settled) == run_bytes(shuffled)


def test_a_remembered_composition_is_the_one_that_would_be_made() -> None:
    """Mutated between calls, with a memory and without one: the same bytes."""
    memory = Memory(16 << 20)
    for seed in range(60):
        draw, scene = running(seed)
        scene = stored(scene, f"{seed}")
        for turn in range(4):
            call = wire.decode(scene.message().SerializeToString())
            remembering = dispatch.run(call.request, reuse=Session(memory, dispatch.COSTS))
            assert wire.encode(call, remembering, wire.Ttl()) == run_bytes(scene), (seed, turn)
            scene = stored(struck(draw, scene), f"{seed}", version=turn + 2) if turn % 2 else scene


AT_REST_SCENE = Scene(
    replica(engine("main") | {"adapters": {"slots": 2, "maxRank": 8}}), more={"adapters": []}
)
PLACED = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "ModelAdapterPlacement",
    "metadata": {"name": "a", "namespace": "ml-team", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"adapter": "a", "replica": "my-model-5ab63", "source": "acme/a"},
}


class Fact(NamedTuple):
    """What a remembered composition stands on besides the replica; `None`: nothing of it changes."""

    reason: str
    change: Callable[[AnyRequest], AnyRequest] | None


FACTS = (
    Fact("nothing changes", None),
    Fact("the input", lambda asked: asked.but(input=config(budget=True, watch=True))),
    Fact("what an earlier step desires", lambda asked: asked.but(earlier={"epp": {"kind": "ConfigMap"}})),
    Fact("what is observed", lambda asked: asked.but(observed=dict(list(asked.observed.items())[:-1]))),
    Fact("an observed object", lambda asked: asked.but(observed=again(asked.observed, "model-serving-main"))),
    Fact(
        "the cluster",
        lambda asked: asked.but(
            required=asked.required | {"cluster": [queued(asked.required["cluster"][0])]}
        ),
    ),
    Fact("the adapters", lambda asked: asked.but(required=asked.required | {"adapters": [PLACED]})),
)


def again(observed: Mapping[str, Plain], key: str) -> dict[str, Plain]:
    """Return what is observed, one of it seen again with a provider that failed."""
    held = copy.deepcopy(observed[key])
    held["status"]["conditions"] = [{"type": "Synced", "status": "False", "message": "x"}]
    held["metadata"]["resourceVersion"] = "2"
    return {**observed, key: held}


def queued(held: Plain) -> Plain:
    """Return a cluster whose pods have another scheduler from now on."""
    metadata = {**held["metadata"], "resourceVersion": "2"}
    return {**held, "metadata": metadata, "spec": {**held["spec"], "scheduling": {"schedulerName": "x"}}}


@pytest.mark.parametrize("fact", FACTS, ids=[fact.reason for fact in FACTS])
def test_a_composition_is_remembered_as_long_as_all_that_it_stands_on(
    fact: Fact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a settled replica is made once; with any fact changed alone, it is made anew."""
    made: list[object] = []
    original = compose._composed
    monkeypatch.setattr(compose, "_composed", lambda *args: made.append(args) or original(*args))
    settled = AT_REST_SCENE.but(observed=applied(run(AT_REST_SCENE)))
    asked = stored(settled, "x").asked
    later = asked if fact.change is None else fact.change(asked)
    memory = Memory(16 << 20)
    made.clear()
    answers = []
    for one in (asked, asked, later, later):
        call = wire.decode(one.message().SerializeToString())
        session = Session(memory, dispatch.COSTS)
        answers.append(wire.encode(call, dispatch.run(call.request, reuse=session), wire.Ttl()))
        session.settle()
    assert len(made) == (1 if fact.change is None else 2), fact.reason
    assert answers[0] == answers[1] == asked.answer_bytes()
    assert answers[2] == answers[3] == later.answer_bytes(), fact.reason


def stored(scene: Scene, owner: str, version: int = 1) -> Scene:
    """Return a scene whose objects have what an API server gives them."""

    def given(plain: Plain, uid: str) -> Plain:
        metadata = mapping(plain.get("metadata"))
        return {**plain, "metadata": {**metadata, "uid": uid, "resourceVersion": str(version)}}

    held = {key: given(manifest, f"{owner}/{key}") for key, manifest in scene.observed.items()}
    delivered = None if scene.cluster is None else given(scene.cluster, f"{owner}/cluster")
    return scene.but(observed=held, replica=given(scene.replica, owner), cluster=delivered)

"""Crossplane as it is played: what is called again, what is watched and seeded, and what that costs.

The rules are those of Crossplane's source; `python -m tests.live.burst` looks at the living one.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import structlog
import yaml
from crossplane.function.proto.v1 import run_function_pb2 as pb

from example.caller import COMPOSITION
from function.api.names import KEY_ANNOTATION
from function.runner import Function
from tests.support import build, crossplane, drive
from tests.support.crossplane import (
    DYING,
    OWN_WRITES,
    VERSIONS,
    WATCHING,
    ControlPlane,
    Name,
    Ran,
    Step,
    run_step,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Plain = dict[str, Any]
API = "example.com/v1"
ASKER = Name("Asker", "team", "asker")


def thing(name: str, **labels: str) -> Plain:
    """Return an object that somebody may require."""
    return {"apiVersion": API, "kind": "Thing", "metadata": {"name": name, "labels": labels}}


def selector(name: str = "", **labels: str) -> pb.ResourceSelector:
    """Return a selector of things: by name, or by labels."""
    made = pb.ResourceSelector(api_version=API, kind="Thing")
    if name:
        made.match_name = name
    else:
        made.match_labels.SetInParent()
        made.match_labels.labels.update(labels)
    return made


def asking(
    state: Callable[[pb.RunFunctionRequest], dict[str, pb.ResourceSelector]],
) -> Callable[[bytes], bytes]:
    """Return a function that requires what `state` says, and composes nothing."""

    def answer(content: bytes) -> bytes:
        request = pb.RunFunctionRequest.FromString(content)
        response = pb.RunFunctionResponse(desired=request.desired, context=request.context)
        response.context.update({"called": True} | dict.fromkeys(request.required_resources, True))
        for name, required in state(request).items():
            response.requirements.resources[name].CopyFrom(required)
        return response.SerializeToString()

    return answer


def always(request: pb.RunFunctionRequest) -> dict[str, pb.ResourceSelector]:
    """State the same on every call."""
    return {"things": selector(watched="yes")}


def silent(request: pb.RunFunctionRequest) -> dict[str, pb.ResourceSelector]:
    """State nothing where everything came with the first call, as if a block had brought it."""
    unasked = "things" in request.required_resources and "called" not in request.context
    return {} if unasked else always(request)


def less(request: pb.RunFunctionRequest) -> dict[str, pb.ResourceSelector]:
    """Read all of a kind, and state one of them once it was read."""
    read = "all" in request.required_resources or "all" in request.context
    return {"one": selector("a")} | ({} if read else {"all": selector()})


def plane(
    version: str, state: Callable[[pb.RunFunctionRequest], dict[str, pb.ResourceSelector]]
) -> ControlPlane:
    """Return a control plane with one composite that requires things."""
    made = ControlPlane({"Asker": [Step(asking(state))]}, version)
    for name in ("a", "b"):
        made.write(thing(name, watched="yes"))
    made.write({"apiVersion": API, "kind": "Asker", "metadata": {"name": "asker", "namespace": "team"}})
    made.run(200.0)
    made.forget_counts()
    return made


def wrote(made: ControlPlane, names: Iterable[str]) -> list[tuple[int, int, int]]:
    """Write to things, one after the other; return reconciles, calls and tokens of each write."""
    spent = []
    for name in names:
        made.forget_counts()
        made.touch(Name("Thing", "", name))
        made.run(1.0)
        counts = made.composites[ASKER].counts
        spent.append((counts["reconciles"], counts["calls"], counts["tokens"]))
    return spent


class Case(NamedTuple):
    """A function, a version, and what three writes to a thing cost: reconciles, calls, tokens."""

    reason: str
    version: str
    state: Callable[[pb.RunFunctionRequest], dict[str, pb.ResourceSelector]]
    cost: list[tuple[int, int, int]]


CASES = [
    Case("nothing required is watched", "2.0", always, [(0, 0, 0)] * 3),
    Case("nor is it in 2.3", "2.3", always, [(0, 0, 0)] * 3),
    Case("what is stated is watched and seeded: one call, two tokens", "2.4", always, [(1, 1, 2)] * 3),
    Case("a silent answer is final and drops the watch", "2.4", silent, [(0, 0, 0)] * 3),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_what_a_write_costs(case: Case) -> None:
    made = plane(case.version, case.state)
    assert wrote(made, "aaa") == case.cost


def test_up_to_2_3_a_reconcile_takes_two_calls_and_from_2_4_on_one_at_rest() -> None:
    for version, calls in (("2.0", 2), ("2.3", 2), ("2.4", 1)):
        made = plane(version, always)
        made.touch(ASKER)
        made.run(1.0)
        assert made.composites[ASKER].counts["calls"] == calls, version


def test_stating_less_than_what_came_is_free_and_unwatched() -> None:
    made = plane("2.4", less)
    assert wrote(made, "b") == [(0, 0, 0)]
    assert wrote(made, "a") == [(1, 3, 2)], "read all, state less, and once more because it is less"


def test_a_breaker_opens_after_fifty_writes_and_lets_one_in_thirty_seconds_through() -> None:
    made = plane("2.4", always)
    for _ in range(51):
        made.touch(Name("Thing", "", "a"))
    counts = made.composites[ASKER].counts
    assert (counts["opened"], counts["tokens"]) == (1, 102)
    made.run(200.0)
    made.composites[ASKER].counts.clear()
    for _ in range(3):
        made.touch(Name("Thing", "", "a"))
    made.run(1.0)
    assert counts == {"tokens": 6, "dropped": 5, "reconciles": 1, "calls": 1, "bytes": counts["bytes"]}


def test_a_deletion_passes_an_open_breaker() -> None:
    made = plane("2.4", always)
    for _ in range(60):
        made.touch(Name("Thing", "", "a"))
    made.run(1.0)
    made.composites[ASKER].counts.clear()
    made.delete(Name("Thing", "", "b"))
    made.run(10.0)
    assert made.composites[ASKER].counts["reconciles"] == 2, "when it is asked for, and when it is gone"


def test_the_resync_is_an_update_of_everything_that_is_watched() -> None:
    made = plane("2.4", always)
    made.resync()
    assert made.composites[ASKER].counts["tokens"] == 2 + 2 * 2, "itself and two things"


def test_a_new_composite_is_written_to_before_anything_was_decided() -> None:
    made = ControlPlane({"Asker": [Step(asking(always))]}, "2.3")
    made.write({"apiVersion": API, "kind": "Asker", "metadata": {"name": "asker", "namespace": "team"}})
    assert made.composites[ASKER].counts["tokens"] == 1 + 2 * OWN_WRITES


def repeating(lag: float) -> tuple[ControlPlane, list[Plain]]:
    """Return a control plane with a composite that repeats its spec in its status, and what that was read."""
    read: list[Plain] = []

    def answer(content: bytes) -> bytes:
        request = pb.RunFunctionRequest.FromString(content)
        read.append(drive.plain(request.observed.composite.resource))
        response = pb.RunFunctionResponse()
        words = read[-1]["spec"]["says"]
        response.desired.composite.resource.update({"status": {"said": words} if words else {}})
        return response.SerializeToString()

    made = ControlPlane({"Asker": [Step(answer)]}, lag=(lag, lag))
    say(made, "hello")
    made.run(200.0)
    made.forget_counts()
    read.clear()
    return made, read


def say(made: ControlPlane, words: str) -> None:
    """Edit the composite."""
    before = made.objects.get(ASKER, {"metadata": {"name": ASKER.name, "namespace": ASKER.namespace}})
    spec = {**before.get("spec", {}), "says": words}
    made.write({**before, "apiVersion": API, "kind": ASKER.kind, "spec": spec})


@pytest.mark.parametrize(
    ("lag", "said"),
    [
        pytest.param(0.0, ["hello", "goodbye"], id="all it wrote is read at once"),
        pytest.param(1.0, ["hello", "goodbye", "goodbye"], id="its status shows before its conditions do"),
    ],
)
def test_a_reconcile_that_began_before_a_write_was_seen_is_repeated(lag: float, said: list[str]) -> None:
    made, read = repeating(lag)
    say(made, "goodbye")
    made.run(100.0)
    assert [plain["status"]["said"] for plain in read] == said
    generations = [plain["status"]["conditions"][-1]["observedGeneration"] for plain in read]
    assert generations == [2] * (len(said) - 1) + [3]


def test_conditions_are_refused_where_somebody_wrote_since_the_status() -> None:
    made, read = repeating(1.0)
    say(made, "goodbye")
    made.run(3.5)
    assert made.objects[ASKER]["status"]["said"] == "goodbye"
    made.touch(ASKER)
    made.run(1.0)
    assert made.objects[ASKER]["status"]["conditions"][-1]["observedGeneration"] == 2
    made.run(100.0)
    assert made.objects[ASKER]["status"]["conditions"][-1]["observedGeneration"] == 3
    assert len(read) > 2


def reading() -> tuple[ControlPlane, Name, list[tuple[str, str, str]]]:
    """Return a control plane with a slow cache, a composed thing, and what every call read that it says.

    It is read as it is observed, as it is listed, and by its name.
    """
    name, read = Name("Thing", ASKER.namespace, "mine"), list[tuple[str, str, str]]()
    named = selector(name.name)
    named.namespace = name.namespace

    def says(resources: Iterable[pb.Resource]) -> str:
        return "".join(drive.plain(one.resource)["metadata"]["labels"].get("says", "") for one in resources)

    def answer(content: bytes) -> bytes:
        request = pb.RunFunctionRequest.FromString(content)
        required = request.required_resources
        read.append((says(request.observed.resources.values()), *(says(required[of].items) for of in "ab")))
        response = pb.RunFunctionResponse()
        response.desired.resources["mine"].resource.update(thing(name.name, watched="yes"))
        response.requirements.resources["a"].CopyFrom(selector(watched="yes"))
        response.requirements.resources["b"].CopyFrom(named)
        return response.SerializeToString()

    made = ControlPlane({"Asker": [Step(answer)]}, lag=(1.0, 1.0))
    made.write({"apiVersion": API, "kind": "Asker", "metadata": {"name": "asker", "namespace": "team"}})
    made.run(200.0)
    read.clear()
    return made, name, read


def relabel(made: ControlPlane, name: Name, words: str) -> None:
    """Let somebody else write to a thing."""
    metadata = made.objects[name]["metadata"]
    made.patch(name, metadata={**metadata, "labels": {**metadata["labels"], "says": words}})


def test_what_is_required_is_read_from_the_cache_when_the_function_is_called() -> None:
    """The first write shows when the reconcile begins, the second before the call, the third after it."""
    made, name, read = reading()
    relabel(made, name, "first")
    made.run(0.5)
    relabel(made, name, "second")
    made.lag = (3.0, 3.0)
    relabel(made, name, "third")
    made.lag = (1.0, 1.0)
    made.run(2.0)
    assert read == [("first", "second", "second")]


def test_a_crossplane_that_starts_anew_reads_everything_afresh() -> None:
    made, name, read = reading()
    relabel(made, name, "now")
    made.restart()
    made.run(1.0)
    assert read[0] == ("now", "", "")
    assert read[1] == ("now", "now", "now")


class Applied(NamedTuple):
    """A status, what Crossplane applied of it last, what it applies now, and what is left."""

    reason: str
    held: Plain
    before: Plain
    now: Plain
    left: Plain


APPLIED = [
    Applied("what an answer leaves out goes", {"a": 1, "b": 2}, {"a": 1, "b": 2}, {"b": 2}, {"b": 2}),
    Applied("so does an object in which nothing is left", {"n": {"x": 1}}, {"n": {"x": 1}}, {}, {}),
    Applied("a field of another writer stays", {"a": 1, "user": 2}, {"a": 1}, {}, {"user": 2}),
    Applied("so does one beside ours", {"n": {"x": 1, "y": 2}}, {"n": {"x": 1}}, {}, {"n": {"y": 2}}),
    Applied("and one in what is applied empty", {"n": {"y": 2}}, {}, {"n": {}}, {"n": {"y": 2}}),
    Applied("what another changed is theirs", {"a": 2}, {"a": 1}, {}, {"a": 2}),
    Applied("unless it is applied once more", {"a": 2}, {"a": 1}, {"a": 1}, {"a": 1}),
    Applied("a list is one value", {"rows": [1, 2]}, {"rows": [1, 2]}, {"rows": [2]}, {"rows": [2]}),
    Applied("what is applied empty is there", {"n": {"x": 1}}, {"n": {"x": 1}}, {"n": {}}, {"n": {}}),
    Applied("what another took away is gone", {"b": 2}, {"a": 1, "b": 2}, {"b": 2}, {"b": 2}),
]


@pytest.mark.parametrize("case", APPLIED, ids=lambda case: case.reason)
def test_what_an_apply_leaves_of_a_status(case: Applied) -> None:
    assert crossplane.applied(case.held, case.before, case.now) == case.left


def let(made: ControlPlane, happens: str) -> None:
    """Let a control plane start anew, or be restored, or neither."""
    if happens == "a restart":
        made.restart()
    elif happens == "a restore":
        made.restore(made.backup())


@pytest.mark.parametrize("happens", ["nothing", "a restart", "a restore"])
def test_what_an_answer_leaves_out_of_the_status_goes(happens: str) -> None:
    """Which fields are Crossplane's is kept with the object: neither a restart nor a restore forgets it."""
    made, _ = repeating(0.0)
    status = made.objects[ASKER]["status"]
    made.patch(ASKER, status={**status, "noted": "by hand"})
    made.run(10.0)
    let(made, happens)
    say(made, "")
    made.run(10.0)
    left = made.objects[ASKER]["status"]
    assert left == {"noted": "by hand", "conditions": left["conditions"]}
    assert [row["type"] for row in left["conditions"]] == ["Ready", "Responsive", "Synced"]


@pytest.mark.parametrize("happens", ["nothing", "a restart", "a restore"])
def test_an_annotation_that_an_answer_leaves_out_goes(happens: str) -> None:
    """As above, of what is composed; one of another writer stays."""

    def answer(content: bytes) -> bytes:
        composite = pb.RunFunctionRequest.FromString(content).observed.composite.resource
        words = drive.plain(composite)["spec"]["says"]
        response = pb.RunFunctionResponse()
        noted = {"name": "noted", "annotations": {"says": words} if words else {}}
        response.desired.resources["thing"].resource.update({**thing("noted"), "metadata": noted})
        return response.SerializeToString()

    made, name = ControlPlane({"Asker": [Step(answer)]}), Name("Thing", ASKER.namespace, "noted")
    say(made, "hello")
    made.run(10.0)
    made.touch(name)
    assert made.objects[name]["metadata"]["annotations"].keys() == {KEY_ANNOTATION, "says", "touched"}
    let(made, happens)
    say(made, "")
    made.run(10.0)
    assert made.objects[name]["metadata"]["annotations"].keys() == {KEY_ANNOTATION, "touched"}


def test_what_somebody_deletes_is_observed_until_it_is_gone() -> None:
    """It is referred to, and Crossplane reads what is referred to, whatever becomes of it."""
    read: list[list[Plain]] = []

    def answer(content: bytes) -> bytes:
        observed = pb.RunFunctionRequest.FromString(content).observed.resources
        read.append([drive.plain(observed[key].resource) for key in observed])
        response = pb.RunFunctionResponse()
        response.desired.resources["thing"].resource.update(thing("composed"))
        return response.SerializeToString()

    made = ControlPlane({"Asker": [Step(answer)]})
    say(made, "hello")
    made.run(10.0)
    read.clear()
    made.delete(Name("Thing", ASKER.namespace, "composed"), by_hand=True)
    made.run(DYING + 1.0)
    (leaving,), (afresh,) = read[0], read[-1]
    assert "deletionTimestamp" in leaving["metadata"]
    assert "deletionTimestamp" not in afresh["metadata"]


def test_what_was_given_up_is_observed_until_the_cache_refers_to_it_no_more() -> None:
    """The write that takes the reference away shows late, as does everything of the kind by then."""
    observed: list[list[str]] = []

    def answer(content: bytes) -> bytes:
        request = pb.RunFunctionRequest.FromString(content)
        observed.append(sorted(request.observed.resources))
        response = pb.RunFunctionResponse()
        if drive.plain(request.observed.composite.resource)["spec"]["says"]:
            response.desired.resources["thing"].resource.update(thing("noted"))
        return response.SerializeToString()

    made = ControlPlane({"Asker": [Step(answer)]}, lag=(1.0, 1.0))
    say(made, "hello")
    made.run(100.0)
    say(made, "")
    made.run(1.5)
    made.lag = (9.0, 9.0)
    made.write({**made.objects[ASKER], "metadata": {"name": "other", "namespace": "team"}})
    made.lag = (1.0, 1.0)
    observed.clear()
    made.run(3.0)
    made.resync()
    made.run(3.0)
    assert observed == [["thing"], ["thing"]], "when it is given up, and once more"
    made.run(100.0)
    assert observed[-1] == []


MINE = Name("ModelDeployment", build.NAMESPACE, "mine")
CACHE = Name("ModelCache", build.NAMESPACE, "weights")


def fleet_at_rest(version: str) -> ControlPlane:
    """Return a control plane with the Composition we ship, and two deployments at rest, all Ready."""
    [step] = yaml.safe_load(COMPOSITION.read_text())["spec"]["pipeline"]
    function = Function(structlog.get_logger()).answer
    made = ControlPlane({"ModelDeployment": [Step(function, input=step["input"])]}, version)
    for name in ("a", "b", "c", "d"):
        made.write(build.cluster(name, [build.pool("p", 4)]))
    made.write(build.cache("weights"))
    for name, wanted, weights in (("mine", 2, "weights"), ("theirs", 4, None)):
        plain = build.deployment(name, wanted, cache=weights)
        made.write({**plain, "metadata": {"name": name, "namespace": build.NAMESPACE}})
        made.run(30.0)
    for name in [name for name in made.objects if name.kind in ("ModelReplica", "ModelEndpoint")]:
        made.patch(name, status={"conditions": [build.condition("Ready", status=True)]})
        made.run(5.0)
    for name in [name for name in made.objects if name.kind == "ModelEndpoint"]:
        made.patch(name, status={"conditions": [build.condition("Ready", status=True)]})
    made.run(1_500.0)
    made.forget_counts()
    return made


def test_at_rest_a_deployment_is_woken_by_what_it_stands_on_and_by_nothing_else() -> None:
    made = fleet_at_rest("2.4")
    counts = made.composites[MINE].counts
    ours = {CACHE, *made.composites[MINE].composed.values()}
    hosts = {made.objects[name]["spec"]["clusterName"] for name in ours if name.kind == "ModelReplica"}
    others = [
        name
        for name in made.objects
        if name not in {MINE, *ours} and not (name.kind == "InferenceCluster" and name.name in hosts)
    ]
    assert {name.kind for name in others} > {"InferenceCluster", "ModelReplica", "ModelDeployment"}
    for name in others * 20:
        made.touch(name)
    made.run(5.0)
    assert (counts["reconciles"], counts["tokens"]) == (0, 0)
    made.touch(Name("InferenceCluster", "", min(hosts)))
    made.run(5.0)
    assert (counts["reconciles"], counts["calls"], counts["tokens"]) == (1, 1, 2)
    made.forget_counts()
    made.resync()
    made.run(60.0)
    assert counts["opened"] == 0


@cache
def at_rest(version: str) -> ControlPlane:
    """Return the control plane of a version, set up once."""
    return fleet_at_rest(version)


def one_of(made: ControlPlane, kind: str, *, mine: bool) -> Name:
    """Return an object of a kind that is the deployment's, or is not."""
    ours = {MINE, CACHE, *made.composites[MINE].composed.values()}
    hosts = {made.objects[name]["spec"]["clusterName"] for name in ours if name.kind == "ModelReplica"}
    return next(
        name
        for name in sorted(made.objects)
        if name.kind == kind and (name in ours or name.name in hosts) == mine
    )


Cost = tuple[int, int, int]
WRITES: list[tuple[str, bool, Cost, Cost]] = [
    ("InferenceCluster", True, (0, 0, 0), (1, 1, 2)),
    ("ModelReplica", True, (1, 2, 2), (1, 1, 2)),
    ("ModelEndpoint", True, (1, 2, 2), (1, 1, 2)),
    ("ModelCache", True, (0, 0, 0), (1, 1, 2)),
    ("InferenceCluster", False, (0, 0, 0), (0, 0, 0)),
    ("ModelReplica", False, (0, 0, 0), (0, 0, 0)),
    ("ModelEndpoint", False, (0, 0, 0), (0, 0, 0)),
    ("ModelDeployment", False, (0, 0, 0), (0, 0, 0)),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("kind", "mine", "before", "watching"), WRITES)
def test_what_one_write_takes_of_a_deployment_at_rest(
    kind: str, before: Cost, watching: Cost, version: str, *, mine: bool
) -> None:
    """Reconciles, calls and tokens."""
    made = at_rest(version)
    made.forget_counts()
    made.touch(one_of(made, kind, mine=mine))
    made.run(1.0)
    counts = made.composites[MINE].counts
    spent = (counts["reconciles"], counts["calls"], counts["tokens"])
    assert spent == (watching if version >= WATCHING else before)


def test_at_rest_a_reconcile_takes_two_calls_up_to_2_3_and_one_on_2_4() -> None:
    for version, calls in (("2.0", 2), ("2.3", 2), ("2.4", 1)):
        made = fleet_at_rest(version)
        made.touch(MINE)
        made.run(1.0)
        assert made.composites[MINE].counts["calls"] == calls, version


def scale(made: ControlPlane) -> None:
    """Ask for one replica more."""
    made.patch(MINE, spec={**made.objects[MINE]["spec"], "replicas": 3})


def edit(made: ControlPlane) -> None:
    """Ask for more devices than any node has: the replicas are mismatched, and nothing takes their place."""
    spec = copy.deepcopy(made.objects[MINE]["spec"])
    engine = spec["template"]["spec"]["engines"][0]
    engine["members"] = [build.member(devices=[build.request("gpu", 64)])]
    made.patch(MINE, spec=spec)


def host(made: ControlPlane) -> Name:
    """Return a cluster with a replica of ours."""
    ours = [name for name in made.composites[MINE].composed.values() if name.kind == "ModelReplica"]
    return Name("InferenceCluster", "", made.objects[ours[0]]["spec"]["clusterName"])


def drain(made: ControlPlane) -> None:
    """Taint a cluster of ours."""
    of = host(made)
    made.patch(of, spec={**made.objects[of]["spec"], "taints": [build.taint("x", "NoExecute")]})


class Needing(NamedTuple):
    """A change, and the most calls that a reconcile takes then: 2.0 and 2.3, and 2.4."""

    reason: str
    change: Callable[[ControlPlane], None]
    before: int
    watching: int
    last: frozenset[str]
    """What the last call is sent, by kind of requirement."""


STANDING = frozenset({"cluster", "own-replicas", "cache"})
NEEDING = [
    Needing("at rest", lambda made: made.touch(MINE), 2, 1, STANDING),
    Needing("the deployment shows that one is missing", scale, 3, 3, STANDING),
    Needing("only a cluster shows that one must leave", drain, 4, 3, STANDING),
    Needing("only a cluster that is gone does", lambda made: made.delete(host(made)), 4, 3, STANDING),
    Needing("only clusters show what no longer matches", edit, 4, 3, STANDING | {"fleet-clusters"}),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", NEEDING, ids=lambda case: case.reason)
def test_the_fleet_is_there_after_two_calls_or_three_and_one_small_call_takes_it_back(
    case: Needing, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fleet_at_rest(version)
    reconciles: list[list[set[str]]] = []

    def counted(step: Step, request: pb.RunFunctionRequest, *words: Any, **how: Any) -> Ran:
        calls: list[set[str]] = []

        def call(content: bytes) -> bytes:
            required = pb.RunFunctionRequest.FromString(content).required_resources
            calls.append({name.partition("/")[0] for name in required})
            return step.function(content)

        if request.observed.composite.resource["metadata"]["name"] == MINE.name:
            reconciles.append(calls)
        return run_step(replace(step, function=call), request, *words, **how)

    monkeypatch.setattr(crossplane, "run_step", counted)
    case.change(made)
    made.run(20.0)
    most = max(reconciles, key=len)
    assert len(most) == (case.watching if version >= WATCHING else case.before)
    assert case.before == 2 or most[-2] >= {"fleet-clusters", "fleet-replicas"}
    assert most[-1] == case.last


@pytest.mark.parametrize(("version", "most"), [("2.3", 150), ("2.4", 12)])
def test_who_waits_for_room_asks_seldom_where_a_freed_node_is_heard_of(version: str, most: int) -> None:
    made = fleet_at_rest(version)
    waits = Name("ModelDeployment", build.NAMESPACE, "waits")
    plain = build.deployment("waits", 11)
    made.write({**plain, "metadata": {"name": waits.name, "namespace": build.NAMESPACE}})
    for _ in range(2):  # Ten find a place; all of them turn Ready.
        made.run(30.0)
        for name in [name for name in made.objects if name.kind in ("ModelReplica", "ModelEndpoint")]:
            made.patch(name, status={"conditions": [build.condition("Ready", status=True)]})
    made.run(600.0)
    made.forget_counts()
    made.run(600.0)
    counts = made.composites[waits].counts
    assert 5 <= counts["reconciles"] <= most
    assert counts["calls"] <= 3 * counts["reconciles"]
    made.delete(MINE)
    made.run(DYING + 6.0)
    placed = [name for name in made.composites[waits].composed.values() if name.kind == "ModelReplica"]
    assert len(placed) == 11


def test_a_drained_and_a_deleted_cluster_are_seen_at_once_on_2_4() -> None:
    made = fleet_at_rest("2.4")
    for change in ("drain", "delete"):
        own_replica = next(
            name for name in made.composites[MINE].composed.values() if name.kind == "ModelReplica"
        )
        host = Name("InferenceCluster", "", made.objects[own_replica]["spec"]["clusterName"])
        if change == "drain":
            made.patch(host, spec={**made.objects[host]["spec"], "taints": [build.taint("x", "NoExecute")]})
        else:
            made.delete(host)
        made.run(20.0)
        replicas = [name for name in made.composites[MINE].composed.values() if name.kind == "ModelReplica"]
        assert len(replicas) == 2, change
        assert host.name not in {made.objects[name]["spec"]["clusterName"] for name in replicas}, change

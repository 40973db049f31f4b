"""How often Crossplane calls the function in one reconcile, and what it is asked to fetch."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import structlog
import yaml
from crossplane.function.proto.v1 import run_function_pb2 as pb

from example.caller import COMPOSITION
from function.runner import Function
from function.wire.request import CARRIED, REQUIREMENTS_STATED
from tests.support import build
from tests.support.crossplane import Step, run_pipeline, run_step
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Plain = dict[str, Any]
CACHE = build.cache("weights")
CLUSTERS = [build.cluster("a", [build.pool("p", 4)])]
ORDER = {"coordination": "GlobalOrder"}
KINDS = {
    "clusters": "InferenceCluster",
    "all-replicas": "ModelReplica",
    "all-deployments": "ModelDeployment",
    "all-caches": "ModelCache",
}
FLEET = ("clusters", "all-replicas")


def everything_of(kind: str) -> pb.ResourceSelector:
    """Select every object of a kind, as a bootstrap block does."""
    selector = pb.ResourceSelector(api_version="modelplane.ai/v1alpha1", kind=kind)
    selector.match_labels.SetInParent()
    return selector


def block(*names: str) -> dict[str, pb.ResourceSelector]:
    """Return a bootstrap block."""
    return {name: everything_of(KINDS[name]) for name in names}


def fetch(selector: pb.ResourceSelector) -> pb.Resources:
    """Return what a control plane with one cluster, one deployment and one cache holds."""
    held = {"InferenceCluster": CLUSTERS, "ModelDeployment": [build.deployment()], "ModelCache": [CACHE]}
    resources = pb.Resources()
    for manifest in held.get(selector.kind, []):
        if selector.match_name in ("", manifest["metadata"]["name"]):
            resources.items.add().resource.update(manifest)
    return resources


def first_call(given: dict[str, Any] | None = None, cache: str = "") -> pb.RunFunctionRequest:
    """Return the request of a first call, nothing fetched yet."""
    return World(build.deployment(cache=cache or None), None, None, input=given).message()


def function(**more: Any) -> Function:
    """Return the function, quiet."""
    return Function(structlog.get_logger(), **more)


def step(*names: str) -> Step:
    """Return a step of the function with a bootstrap block, or without one."""
    return Step(function().answer, block(*names))


def other(content: bytes) -> bytes:
    """Answer as another function does: pass everything on, and put something into the context."""
    request = pb.RunFunctionRequest.FromString(content)
    response = pb.RunFunctionResponse(desired=request.desired, context=request.context)
    response.context["theirs"] = "a"
    return response.SerializeToString()


@dataclass(frozen=True)
class Case:
    """A reconcile, and the calls it takes."""

    reason: str
    calls: int
    bootstrap: tuple[str, ...] = ()
    input: Mapping[str, str] | None = None
    cache: str = ""


CASES = (
    Case("everything came with the first call", 1, FLEET),
    Case("nothing came with the first call", 3),
    Case("a part of it came", 3, ("clusters",)),
    Case("coordination has a block of its own", 1, tuple(KINDS), ORDER),
    Case("the block is older than the input", 2, FLEET, ORDER),
    Case("coordination without a block", 3, (), ORDER),
    Case("more came than is needed", 1, tuple(KINDS)),
    Case("a block cannot name the cache", 2, FLEET, cache="weights"),
    Case("the cache is among all caches", 1, tuple(KINDS), ORDER, cache="weights"),
    Case("the same, whether coordinated or not", 1, (*FLEET, "all-caches"), cache="weights"),
    Case("there is no such cache", 1, tuple(KINDS), ORDER, cache="nobodys"),
    Case("no block, and a cache", 3, (), None, cache="weights"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_calls_of_a_reconcile(case: Case) -> None:
    request = first_call(dict(case.input) if case.input else None, case.cache)
    ran = run_step(step(*case.bootstrap), request, fetch)
    assert ran.calls == case.calls, case.reason
    scheduled = next(
        condition for condition in ran.response.conditions if condition.type == "ReplicasScheduled"
    )
    assert scheduled.reason != "InputsUnresolved", "the last answer knows everything"


@pytest.mark.parametrize("cache", ["", "weights"])
@pytest.mark.parametrize("given", [None, ORDER], ids=["alone", "coordinated"])
def test_the_answer_does_not_depend_on_how_many_calls_it_took(
    given: dict[str, str] | None, cache: str
) -> None:
    one, two = (run_step(step(*names), first_call(given, cache), fetch) for names in (tuple(KINDS), ()))
    assert (one.calls, two.calls) == (1, 3)
    assert not one.response.HasField("requirements")
    for field in ("context", "requirements"):
        two.response.ClearField(field)
    assert one.response == two.response
    assert one.response.desired.resources


def test_one_call_sends_half_the_bytes() -> None:
    """An answer to the first call that states what it was given would be asked for again."""
    one, two = (run_step(step(*names), first_call(), fetch) for names in (FLEET, ()))
    assert one.sent < two.sent


def test_a_block_whose_empty_labels_are_lost_is_asked_for_again() -> None:
    """`crossplane render` up to 2.2 reads such a selector as one that selects nothing."""
    lost = {
        name: pb.ResourceSelector(api_version="modelplane.ai/v1alpha1", kind=KINDS[name]) for name in KINDS
    }

    def as_old_cli(selector: pb.ResourceSelector) -> pb.Resources:
        return fetch(selector) if selector.WhichOneof("match") else pb.Resources()

    ran = run_step(Step(function().answer, lost), first_call(ORDER), as_old_cli)
    assert ran.calls == 3
    assert ran.response.desired.resources


def test_in_a_longer_pipeline() -> None:
    """The context of earlier steps is passed on, and does not count as ours."""
    before, ours, after = run_pipeline([Step(other), step(*FLEET), Step(other)], first_call(), fetch)
    assert (before.calls, ours.calls, after.calls) == (1, 1, 1)
    assert set(after.response.context.fields) == {"theirs"}
    before, ours, after = run_pipeline([Step(other), step(), Step(other)], first_call(), fetch)
    assert (before.calls, ours.calls, after.calls) == (1, 3, 1)
    assert set(after.response.context.fields) == {"theirs", REQUIREMENTS_STATED}


def test_after_a_step_of_the_same_function_it_starts_afresh() -> None:
    """What that one stated is not delivered to this one, so the key does not count."""
    first, second, third = run_pipeline([step(), step(*FLEET), step()], first_call(), fetch)
    assert (first.calls, second.calls, third.calls) == (3, 1, 3)


def test_a_context_that_cannot_be_read_is_passed_on_as_it_came() -> None:
    content = World(build.deployment(), None, None).message().SerializeToString() + b"\x2a\x02\xff\xff"
    answered = function().answer(content)
    tail = b"\x22\x02\xff\xff"  # Field 4 of the answer.
    assert tail in answered
    assert b"fleet-replicas" in answered


def boom(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError


@pytest.mark.parametrize("given", [None, ORDER], ids=["alone", "coordinated"])
def test_an_error_of_our_own_is_fatal_only_when_everything_was_delivered(
    given: dict[str, str] | None,
) -> None:
    failing = function(run=boom).answer
    early = pb.RunFunctionResponse.FromString(failing(first_call(given).SerializeToString()))
    assert [result.severity for result in early.results] == [pb.SEVERITY_WARNING]
    assert [
        run_step(Step(failing, names), first_call(given), fetch).calls for names in (block(*KINDS), {})
    ] == [
        1,
        2,
    ]


def test_a_composite_that_cannot_be_read_is_fatal_only_when_everything_was_delivered() -> None:
    request = first_call(ORDER)
    request.observed.composite.resource["spec"]["replicas"] = 1.5
    for names, calls in ((tuple(KINDS), 1), (FLEET, 1), ((), 2)):
        ran = run_step(step(*names), request, fetch)
        assert ran.calls == calls
        assert [result.severity for result in ran.response.results] == [pb.SEVERITY_FATAL]


def test_the_shipped_composition_leaves_it_to_the_function() -> None:
    [shipped] = yaml.safe_load(COMPOSITION.read_text())["spec"]["pipeline"]
    assert "requirements" not in shipped
    ran = run_step(step(), first_call(shipped["input"], "weights"), fetch)
    assert ran.calls == 3
    assert {*ran.response.requirements.resources} == {
        "own-replicas/my-model",
        "cache/weights",
        "cluster/a",
    }, "the fleet is read to place a replica, and once that has a place nobody is woken by it"


def at_rest(**more: Any) -> World:
    """Return a deployment with all it wants, on a fleet of which it has one cluster."""
    wanted = build.deployment()
    replica = build.replica(wanted, "a", 0, pools="p", ready=True)
    clusters = [*CLUSTERS, *(build.cluster(name, [build.pool("p", 4)]) for name in "bcd")]
    return World(
        wanted, clusters, [replica], build.observed(replica, endpoints=[build.endpoint(replica)]), **more
    )


def held_by(world: World) -> Callable[[pb.ResourceSelector], pb.Resources]:
    """Return what fetches the clusters and the replicas of a world."""
    held = {"InferenceCluster": world.clusters, "ModelReplica": world.replicas}

    def fetch(selector: pb.ResourceSelector) -> pb.Resources:
        resources = pb.Resources()
        for manifest in held[selector.kind] or ():
            if selector.match_name in ("", manifest["metadata"]["name"]):
                resources.items.add().resource.update(manifest)
        return resources

    return fetch


STANDING = {"cluster/a", "own-replicas/my-model"}
MOVED = {"cluster/b", "own-replicas/my-model"}
WAITING = {*STANDING, "fleet-clusters", "fleet-replicas"}
"""What makes room is watched by who waits for it. Everybody else reads it, and takes that back."""


@pytest.mark.parametrize(
    ("change", "calls", "stated", "reason"),
    [
        ({}, 2, STANDING, "at rest it asks for what it stands on"),
        (
            {"replicas": 2},
            3,
            {*STANDING, "cluster/b"},
            "one more is wanted: the deployment and what is observed show it",
        ),
        ({"replicas": 99}, 2, WAITING, "as many have no place"),
        ({"engines": 2}, 3, STANDING, "so is another shape"),
        ({"copies": 2}, 3, STANDING, "and a larger cost"),
        ({"gone": True}, 4, MOVED, "that its cluster is gone only the delivered objects show"),
        ({"taint": True}, 4, MOVED, "as a drain"),
    ],
)
def test_who_needs_the_fleet_asks_for_it(change: Plain, calls: int, stated: set[str], reason: str) -> None:
    world = at_rest().copy()
    world.deployment["spec"]["replicas"] = change.get("replicas", 1)
    engines = world.deployment["spec"]["template"]["spec"]["engines"]
    engines[0]["copies"] = change.get("copies", 1)
    engines.extend(build.engine(f"more-{number}") for number in range(1, change.get("engines", 1)))
    if "taint" in change:
        (world.clusters or ())[0]["spec"]["taints"] = [build.taint("x", "NoExecute")]
    if "gone" in change:
        world = world.but(clusters=(world.clusters or ())[1:])
    first = world.but(clusters=None, replicas=None).asked.first_message()
    ran = run_step(step(), first, held_by(world))
    assert (ran.calls, {*ran.response.requirements.resources}) == (calls, stated), reason


def test_what_is_seeded_is_stated_again_and_holds_for_longer() -> None:
    """Crossplane 2.4 hands over at once what the last reconcile stated, and watches it."""
    world = at_rest()
    handed = {"cluster/a": (world.clusters or ())[:1], "own-replicas/my-model": world.replicas or ()}
    seeded = World(world.deployment, None, None, world.observed, more=handed).asked.first_message()
    answer = pb.RunFunctionResponse.FromString(function().answer(seeded.SerializeToString()))
    assert {*answer.requirements.resources} == STANDING
    asked = run_step(step(), world.but(clusters=None, replicas=None).asked.first_message(), held_by(world))
    assert (answer.meta.ttl.seconds, asked.response.meta.ttl.seconds) == (600, 60)


def test_at_rest_the_size_of_the_fleet_is_no_matter() -> None:
    sent = set()
    for others in (3, 300):
        world = at_rest()
        more = [build.cluster(f"z{number:03}", [build.pool("p", 4)]) for number in range(others)]
        world = world.but(clusters=[*(world.clusters or ()), *more])
        first = world.but(clusters=None, replicas=None).asked.first_message()
        sent.add(run_step(step(), first, held_by(world)).sent)
    assert len(sent) == 1


def carried() -> tuple[pb.RunFunctionRequest, pb.RunFunctionResponse]:
    """Return the last call of a reconcile that places something, and the answer to the one before."""
    seen: list[pb.RunFunctionRequest] = []

    def noting(content: bytes) -> bytes:
        seen.append(pb.RunFunctionRequest.FromString(content))
        return function().answer(content)

    run_step(Step(noting), first_call(), fetch)
    before = function().answer(seen[-2].SerializeToString())
    return seen[-1], pb.RunFunctionResponse.FromString(before)


def test_the_last_call_repeats_the_answer_of_the_one_before_it() -> None:
    last, before = carried()
    answer = pb.RunFunctionResponse.FromString(function().answer(last.SerializeToString()))
    assert CARRIED in before.context
    assert CARRIED not in answer.context, "a later step does not get it"
    for response in (answer, before):
        response.ClearField("context")
    assert answer == before
    assert answer.desired.resources


def test_without_a_tag_nothing_is_left_for_the_next_call_and_nothing_left_counts() -> None:
    last, before = carried()
    assert CARRIED in before.context
    last.context.Clear()
    last.context.update(
        {
            REQUIREMENTS_STATED: list(before.requirements.resources),
            CARRIED: b64encode(pb.RunFunctionResponse().SerializeToString()).decode(),
        }
    )
    last.meta.tag = ""
    answer = pb.RunFunctionResponse.FromString(function().answer(last.SerializeToString()))
    assert answer.requirements.resources, "an empty answer with an empty tag lay there"
    assert answer.context[CARRIED] == last.context[CARRIED], "passed on as it came"


@pytest.mark.parametrize(
    ("left", "tag"),
    [("not base64", "tested"), ("AAAA", "tested"), (None, "another reconcile"), (7, "tested")],
)
def test_an_answer_that_was_not_left_for_this_call_is_found_anew(left: Any, tag: str) -> None:
    last, _ = carried()
    last.meta.tag = tag
    if left is not None:
        last.context[CARRIED] = left
    calls = run_step(step(), last, fetch).calls
    assert calls == 2, "nothing is left a second time in one reconcile"

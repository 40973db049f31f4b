"""How often Crossplane calls the function in one reconcile: once with the bootstrap block, twice without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import structlog
import yaml
from crossplane.function.proto.v1 import run_function_pb2 as pb

from example.caller import COMPOSITION
from function.runner import Function
from function.wire.request import REQUIREMENTS_STATED
from tests.support import build
from tests.support.crossplane import Step, run_pipeline, run_step
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    Case("nothing came with the first call", 2),
    Case("a part of it came", 2, ("clusters",)),
    Case("coordination has a block of its own", 1, tuple(KINDS), ORDER),
    Case("the block is older than the input", 2, FLEET, ORDER),
    Case("coordination without a block", 2, (), ORDER),
    Case("more came than is needed", 1, tuple(KINDS)),
    Case("a block cannot name the cache", 2, FLEET, cache="weights"),
    Case("the cache is among all caches", 1, tuple(KINDS), ORDER, cache="weights"),
    Case("the same, whether coordinated or not", 1, (*FLEET, "all-caches"), cache="weights"),
    Case("there is no such cache", 1, tuple(KINDS), ORDER, cache="nobodys"),
    Case("no block, and a cache", 2, (), None, cache="weights"),
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
    assert (one.calls, two.calls) == (1, 2)
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
    assert ran.calls == 2
    assert ran.response.desired.resources


def test_in_a_longer_pipeline() -> None:
    """The context of earlier steps is passed on, and does not count as ours."""
    before, ours, after = run_pipeline([Step(other), step(*FLEET), Step(other)], first_call(), fetch)
    assert (before.calls, ours.calls, after.calls) == (1, 1, 1)
    assert set(after.response.context.fields) == {"theirs"}
    before, ours, after = run_pipeline([Step(other), step(), Step(other)], first_call(), fetch)
    assert (before.calls, ours.calls, after.calls) == (1, 2, 1)
    assert set(after.response.context.fields) == {"theirs", REQUIREMENTS_STATED}


def test_after_a_step_of_the_same_function_it_is_called_twice() -> None:
    """The key is there already, and nobody can tell whose it is: one call too many, and the same answer."""
    first, second = run_pipeline([step(), step(*FLEET)], first_call(), fetch)
    assert (first.calls, second.calls) == (2, 2)


def test_a_context_that_cannot_be_read_counts_as_a_later_call() -> None:
    """Its key could not be told from a missing one, so the requirements are stated on every call."""
    content = World(build.deployment(), CLUSTERS).message().SerializeToString() + b"\x2a\x02\xff\xff"
    answered = function().answer(content)
    tail = b"\x22\x02\xff\xff"  # Passed on as it came: field 4 of the answer.
    assert tail in answered
    assert b"all-replicas" in answered


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
    for names, calls in ((tuple(KINDS), 1), (FLEET, 2), ((), 2)):
        ran = run_step(step(*names), request, fetch)
        assert ran.calls == calls
        assert [result.severity for result in ran.response.results] == [pb.SEVERITY_FATAL]


def test_the_shipped_composition_takes_one_call() -> None:
    [shipped] = yaml.safe_load(COMPOSITION.read_text())["spec"]["pipeline"]
    selected = {
        manifest["requirementName"]: everything_of(manifest["kind"])
        for manifest in shipped["requirements"]["requiredResources"]
    }
    ran = run_step(Step(function().answer, selected), first_call(shipped["input"], "weights"), fetch)
    assert ran.calls == 1
    assert not ran.response.HasField("requirements")

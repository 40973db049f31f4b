"""A member on the devices of one pool: every way to claim, the preferred first; and why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.reasons import Reason, Rejection, combined
from function.scheduler.budget import Budget
from function.scheduler.device_matching import MAX_VARIANTS, Match, Refusal, resolve, resolve_every
from tests.support import build
from tests.support.cases import ask, gap_of, one, single
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
ROOT = "resource.kubernetes.io/pcieRoot"
ROOTED = '"pcieRoot" in device.attributes["resource.kubernetes.io"]'
ANY = "true"
STEPS = 1_000


def entry(
    name: str, count: int, *, claim: str = "DRA", root: str | None = None, architecture: str = "Hopper"
) -> Plain:
    """A device entry of a class of its own."""
    made = build.gpu(count, name=name, claim=claim, architecture=architecture, device_class=name)
    if root is not None:
        made["attributes"][ROOT] = {"string": root}
    return made


def part(name: str, count: int, *, root: str | None = None, claim: str = "DRA") -> Plain:
    """One of several entries of one class."""
    return entry(name, count, claim=claim, root=root) | (
        {"deviceClassName": build.GPU} if claim == "DRA" else {}
    )


def publishing(name: str, attribute: str, value: str) -> Plain:
    made = entry(name, 1)
    made["attributes"][attribute] = {"string": value}
    return made


def arguments(requests: list[Plain], devices: list[Plain], **selector: Any) -> tuple[Any, Any, Any]:
    """What evaluates selectors, the member and the devices of the pool."""
    fleet = [one("a", pools=[build.pool("p0", 1, devices)])]
    inputs = decide(World(ask(engines=[single(*requests, **selector)]), fleet)).inputs
    [engine] = inputs.deployment.shapes[0].engines
    return inputs.evaluations, engine.members[0], inputs.fleet.clusters["a"].pools[0].devices


def refused(requests: list[Plain], devices: list[Plain], *, steps: int = STEPS, **selector: Any) -> Rejection:
    """Why there is none."""
    evaluations, member, listed = arguments(requests, devices, **selector)
    outcome = resolve(evaluations, member, listed, budget=Budget(steps))
    assert isinstance(outcome, Refusal)
    return outcome.explained(evaluations)


def names(match: Match) -> str:
    """The entries taken, in the order of the requests; what is not claimed in small letters."""
    taken = ["+".join(device.name for device in item.devices) for item in match.resolved]
    claimed = [item.device.claimable for item in match.resolved]
    return " ".join(name.upper() if claims else name for name, claims in zip(taken, claimed, strict=True))


def one_of(name: str, count: int = 1) -> Plain:
    return build.request(name, count, ANY)


EVERY = [
    ([one_of("x")], [entry("a", 1), entry("b", 1)], {}, ["A", "B"], "every entry that covers the request"),
    ([one_of("x", 2)], [entry("a", 1), entry("b", 2)], {}, ["B"], "one that is too small does not"),
    (
        [one_of("x"), one_of("y")],
        [entry("a", 1), entry("b", 1), entry("c", 1)],
        {},
        ["A B", "A C", "B C"],
        "each once: who of the requests has which makes no other claim",
    ),
    (
        [one_of("x"), one_of("y")],
        [entry("a", 2), entry("b", 1)],
        {},
        ["A A", "A B"],
        "an entry may serve two",
    ),
    ([one_of("x", 2), one_of("y", 2)], [entry("a", 3), entry("b", 2)], {}, ["A B"], "while it has devices"),
    (
        [one_of("x"), one_of("y")],
        [entry("s", 1, claim="Synthetic"), entry("a", 1)],
        {},
        ["s A"],
        "a fact next to a claim",
    ),
    ([one_of("x")], [entry("s", 1, claim="Synthetic")], {}, [], "and never without one"),
    (
        [one_of("x"), build.request("y", 1, 'device.driver == "dra.net"')],
        [build.nic(2, name="s"), entry("a", 1)],
        {},
        ["A s"],
        "the fact that came first is taken back when nothing after it claims",
    ),
    (
        [one_of("x"), one_of("y")],
        [entry("a", 1, root="r"), entry("b", 1, root="q"), entry("c", 1, root="r")],
        {"constraints": [{"matchAttribute": ROOT}]},
        ["A C"],
        "within the constraints",
    ),
    (
        [one_of("x"), one_of("y"), one_of("z")],
        [entry("a", 1, root="r"), entry("b", 1, root="q"), entry("c", 1, root="q")],
        {"constraints": [{"requests": ["x", "z"], "matchAttribute": ROOT}]},
        ["B A C"],
        "of the requests they name",
    ),
    ([one_of("x", 5)], [part("a", 4), part("b", 4)], {}, ["A+B"], "several entries of one class together"),
    ([one_of("x", 3)], [part("a", 2), part("b", 3)], {}, ["B"], "one that will do before several"),
    (
        [one_of("x", 3), one_of("y", 5)],
        [part("a", 4), part("b", 4)],
        {},
        ["A+B A+B"],
        "dealt out to requests that share them",
    ),
    (
        [one_of("x", 1), build.request("y", 3, ROOTED), build.request("z", 2, ROOTED)],
        [part("a", 2, root="r"), part("b", 2, root="r"), part("c", 5)],
        {},
        [],
        "as long as those that some must share are enough for them",
    ),
    (
        [one_of("x", 6)],
        [part("a", 4, root="r"), part("b", 4, root="q"), part("c", 2, root="r")],
        {"constraints": [{"matchAttribute": ROOT}]},
        ["A+C"],
        "that share what the constraint asks for",
    ),
    (
        [one_of("x", 3), one_of("y", 2)],
        [part("a", 2, root="r"), part("b", 2, root="r"), part("c", 9, root="q"), part("n", 1, root="r")],
        {"constraints": [{"requests": ["y"], "matchAttribute": ROOT}]},
        ["C A"],
        "a constraint binds the requests that it names",
    ),
    (
        [one_of("x", 4)],
        [part("a", 2, claim="Synthetic"), part("b", 2)],
        {},
        [],
        "never with what nobody claims",
    ),
]


@pytest.mark.parametrize(("requests", "devices", "selector", "expected", "reason"), EVERY)
def test_every_way_to_claim(
    requests: list[Plain], devices: list[Plain], selector: Plain, expected: list[str], reason: str
) -> None:
    matches, cut_short = resolve_every(*arguments(requests, devices, **selector), budget=Budget(STEPS))
    assert ([names(match) for match in matches], cut_short) == (expected, False), reason


def test_the_preferred_way_is_the_first_of_every() -> None:
    for requests, devices, selector, ways, reason in EVERY:
        first = resolve(*arguments(requests, devices, **selector), budget=Budget(STEPS))
        assert not ways or (isinstance(first, Match) and names(first) == ways[0]), reason


def test_what_only_repeats_is_not_tried_again() -> None:
    """Eight requests on eight equal entries: orders of the same are as good as one."""
    requests = [one_of(f"r{at}") for at in range(6)]
    devices = [build.gpu(1, name=f"g{at}") for at in range(6)]
    matches, cut_short = resolve_every(*arguments(requests, devices), budget=Budget(2_000))
    assert (len(matches), cut_short) == (1, False)


def test_so_many_ways_to_claim_are_tried_and_no_more() -> None:
    """What is left out is said: where devices are charged, one of those may have been free."""
    for requests, classes, cut in ((["x"], MAX_VARIANTS, False), (["x", "y"], 7, True)):
        devices, wanted = [entry(f"d{at}", 1) for at in range(classes)], [*map(one_of, requests)]
        matches, cut_short = resolve_every(*arguments(wanted, devices), budget=Budget(STEPS))
        assert (len(matches), cut_short) == (MAX_VARIANTS, cut)


def test_constraints_on_many_values_take_steps() -> None:
    """Every value of every entry is looked at for each constraint: 16 entries, 64 values each."""
    devices = [build.gpu(1, name=f"g{at}") for at in range(16)]
    for at, device in enumerate(devices):
        device["attributes"] = {
            f"a{on}": {"list": {"string": [f"v{(at * 7 + value * (on + 1)) % 97}" for value in range(64)]}}
            for on in range(32)
        }
    constraints = [{"matchAttribute": f"{build.GPU}/a{on}"} for on in range(32)]
    said = refused([one_of("x", 9)], devices, steps=5_000, constraints=constraints)
    assert said == Rejection(Reason.SearchBudgetExceeded, detail="5000 steps")


def test_a_dead_end_is_not_tried_from_every_side() -> None:
    """Eight requests on seven equal entries: which of them have one makes no difference to the eighth."""
    requests = [one_of(f"r{at}") for at in range(8)]
    devices = [build.gpu(1, name=f"g{at}") for at in range(7)]
    assert refused(requests, devices, steps=3_000).reason is Reason.DeviceContention


def test_a_budget_that_runs_out_says_that_some_may_be_missing() -> None:
    devices = [entry(name, 1) for name in "abc"]
    matches, cut_short = resolve_every(*arguments([one_of("x")], devices), budget=Budget(2))
    assert ([names(match) for match in matches], cut_short) == (["A", "B"], True)
    outcome = refused([one_of("x", 1), one_of("y", 1)], [entry("a", 1)], steps=1)
    assert outcome == Rejection(Reason.SearchBudgetExceeded, detail="1 steps")


def rejected(reason: Reason, detail: str = "", **more: Any) -> Rejection:
    return Rejection(reason, detail, **{"request": "x", **more})


ODD = {"deviceClassName": build.GPU, "attributes": {}}
NO_ARCHITECTURE = "no such key: architecture (the device has no attribute gpu.nvidia.com/architecture)"
WHY = [
    (
        [build.request("x", 4, ANY)],
        [entry("a", 2), entry("b", 3)],
        {},
        rejected(Reason.DeviceCountShort, device="a", needs=4, free=2),
        "a count that no entry has; the first of equals is told of",
    ),
    (
        [build.request("x", 4, ANY)],
        [entry("a", 2), entry("x", 3)],
        {},
        rejected(Reason.DeviceCountShort, device="x", needs=4, free=3),
        "the entry of the request's own name is nearer",
    ),
    (
        [build.request("x", 1, build.GPUS, build.HOPPER)],
        [entry("a", 1, architecture="Ada")],
        {},
        rejected(Reason.NoMatchingDevice, gap=gap_of("architecture Ada", "Hopper"), device="a", selector=1),
        "the first selector that does not match, and what it found",
    ),
    (
        [build.request("x", 1, build.GPUS, build.HOPPER)],
        [build.nic(1), entry("a", 1, architecture="Ada")],
        {},
        rejected(Reason.NoMatchingDevice, gap=gap_of("architecture Ada", "Hopper"), device="a", selector=1),
        "the entry that came furthest is told of",
    ),
    (
        [build.request("x", 1, 'device.attributes["dra.net"].rdma')],
        [build.nic(1, name="a", claim="DRA", rdma=False)],
        {},
        rejected(Reason.NoMatchingDevice, gap=gap_of("rdma false", "rdma"), device="a", selector=0),
        "a truth is written as it is published",
    ),
    (
        [build.request("x", 1, 'has(device.attributes["gpu.nvidia.com"].nosuch)')],
        [entry("a", 1)],
        {},
        rejected(Reason.NoMatchingDevice, gap=gap_of("no nosuch", "has(nosuch)"), device="a", selector=0),
        "an attribute that is asked for and not there",
    ),
    (
        [build.request("x", 1, 'device.attributes["example.com"].kind == "y"')],
        [entry("a", 1), publishing("b", "example.com/kind", "x")],
        {},
        rejected(Reason.NoMatchingDevice, gap=gap_of("kind x", "y"), device="b", selector=0),
        "an entry that publishes nothing in the domain is not what is meant",
    ),
    (
        [build.request("x", 1, 'device.attributes["example.com"].kind == "y"')],
        [entry("a", 1)],
        {},
        rejected(
            Reason.DeviceSelectorError,
            "no such key: kind (the device has no attribute example.com/kind)",
            device="a",
            selector=0,
        ),
        "unless none does: then it is misspelt, perhaps",
    ),
    (
        [one_of("x"), one_of("y", 2)],
        [entry("a", 2)],
        {},
        rejected(Reason.DeviceContention, "x takes 1, y takes 2", request="x+y"),
        "each alone, and not together",
    ),
    (
        [one_of("x"), one_of("y")],
        [entry("a", 1, root="r"), entry("b", 1, root="q")],
        {"constraints": [{"matchAttribute": ROOT}]},
        rejected(Reason.ConstraintUnsatisfied, f"no common {ROOT}", request="x+y"),
        "together, and not under the constraint",
    ),
    (
        [one_of("x")],
        [entry("a", 1, root="r")],
        {"constraints": [{"requests": ["nobody"], "matchAttribute": ROOT}]},
        rejected(Reason.ConstraintUnsatisfied, f"no common {ROOT}"),
        "a constraint on a request that is not there can never hold",
    ),
    (
        [one_of("x")],
        [],
        {},
        rejected(Reason.NoMatchingDevice),
        "a pool without devices",
    ),
    (
        [one_of("x", 9)],
        [part("a", 4), part("b", 4)],
        {},
        rejected(Reason.DeviceCountShort, device="a+b", needs=9, free=8),
        "a count that all entries of the class do not cover",
    ),
    (
        [one_of("x", 6)],
        [part("a", 4, root="r"), part("b", 4, root="q")],
        {"constraints": [{"matchAttribute": ROOT}]},
        rejected(Reason.ConstraintUnsatisfied, f"no common {ROOT}"),
        "a count that they would cover, were it not for the constraint",
    ),
    (
        [build.request("x", 4, build.HOPPER)],
        [part("a", 4), publishing("odd", "example.com/x", "y") | ODD],
        {},
        rejected(Reason.DeviceSelectorError, NO_ARCHITECTURE, device="odd", selector=0),
        "the entry that a selector errs on, which is not the one that would do",
    ),
    (
        [build.request("x", 4, build.HOPPER)],
        [entry("b", 2), part("a", 4), publishing("odd", "example.com/x", "y") | ODD],
        {},
        rejected(Reason.DeviceSelectorError, NO_ARCHITECTURE, device="odd", selector=0),
        "rather than another that would do and is too small",
    ),
    (
        [build.request("x", 9, build.HOPPER)],
        [part("a", 4), publishing("odd", "example.com/x", "y") | ODD],
        {},
        rejected(Reason.DeviceCountShort, device="a", needs=9, free=4),
        "a count that is short stands in the way of more",
    ),
    (
        [one_of("x", 33)],
        [part("a", 40)],
        {},
        rejected(
            Reason.ClaimTooLarge,
            "33 devices, a claim holds 32",
            device="a",
        ),
        "more devices than a claim holds",
    ),
    (
        [build.request("x", 1, *[ANY] * 33)],
        [part("a", 40)],
        {},
        rejected(Reason.ClaimTooLarge, "33 selectors of a request, a claim holds 32", device="a"),
        "more selectors",
    ),
    (
        [one_of("x")],
        [part("a", 40, root="r")],
        {"constraints": [{"matchAttribute": ROOT}] * 33},
        rejected(Reason.ClaimTooLarge, "33 constraints, a claim holds 32", device="a"),
        "more constraints",
    ),
    (
        [one_of("x", 17), one_of("y", 16)],
        [part("a", 40)],
        {},
        rejected(Reason.ClaimTooLarge, "x takes 17, y takes 16, a claim holds 32", request="x+y"),
        "more devices together",
    ),
]


@pytest.mark.parametrize(("requests", "devices", "selector", "why", "reason"), WHY)
def test_why_there_is_none(
    requests: list[Plain], devices: list[Plain], selector: Plain, why: Rejection, reason: str
) -> None:
    assert refused(requests, devices, **selector) == why, reason


def test_several_requests_without_a_device_are_all_on_record() -> None:
    outcome = refused([one_of("x", 3), one_of("y", 4)], [entry("a", 2)])
    assert [(leaf.request, leaf.needs) for leaf in outcome.leaves] == [("x", 3), ("y", 4)]
    assert (outcome.request, len(outcome.parts)) == ("x", 2)
    alone = Rejection(Reason.DeviceCountShort, request="x")
    assert combined([alone]) == alone, "one speaks for itself"

"""A member on the devices of one pool: every way to claim, the preferred first; and why there is none."""

from __future__ import annotations

from typing import Any

import pytest

from function.api.reasons import Reason, Rejection, combined
from function.api.replica import StampedRequest
from function.cel.library import DEFAULT
from function.scheduler.budget import Budget
from function.scheduler.device_matching import MAX_VARIANTS, Match, Refusal, errs, resolve, resolve_every
from function.scheduler.selectors import Evaluations
from tests.support import build
from tests.support.cases import ask, gap_of, one, single
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
ROOT = "resource.kubernetes.io/pcieRoot"
ROOTED = '"pcieRoot" in device.attributes["resource.kubernetes.io"]'
ANY = "true"
ON = f'device.attributes["{build.GPU}"].architecture == "{{}}"'
ON_A = ON.format("A")
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


CLASS = {"deviceClassName": build.GPU}


def publishing(name: str, attribute: str, value: str | int) -> Plain:
    made = entry(name, 1)
    made["attributes"][attribute] = {"string" if isinstance(value, str) else "int": value}
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


def subrequest(name: str, count: int, selector: str) -> Plain:
    return {"name": name, "count": count, "selectors": [{"cel": selector}]}


EITHER = {"name": "x", "firstAvailable": [subrequest("rooted", 1, ROOTED), subrequest("any", 1, ANY)]}
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
    (
        [one_of("x", 6)],
        [part("a", 4, root="r"), part("b", 4, root="q"), part("c", 2, root="r"), part("d", 4, root="p")],
        {"constraints": [{"matchAttribute": ROOT}]},
        ["A+C"],
        "of one value, however many there are",
    ),
    (
        [one_of("x", 2)],
        [part("a", 1, root="r"), publishing("b", ROOT, 3) | CLASS, publishing("c", ROOT, 3) | CLASS],
        {"constraints": [{"matchAttribute": ROOT}]},
        ["B+C"],
        "also where values are of several kinds",
    ),
    (
        [one_of("x"), one_of("y")],
        [entry("a", 1, root="r"), entry("b", 1, root="q")],
        {"constraints": [{"requests": [name], "matchAttribute": ROOT} for name in "yx"]},
        ["A B"],
        "every constraint is looked at for the requests it names, in whatever order they stand",
    ),
    (
        [one_of("x", 5)],
        [part("a", 4), part("b", 4), entry("c", 1), entry("d", 1) | {"deviceClassName": "c"}],
        {},
        ["A+B"],
        "of each class by itself",
    ),
    (
        [one_of("x", 2)],
        [entry("s", 2, claim="Synthetic"), part("a", 1), part("b", 1)],
        {},
        ["A+B"],
        "several that are claimed before one that nobody claims",
    ),
    (
        [EITHER],
        [part("a", 1, root="r"), part("b", 1, root="r")],
        {},
        ["A", "A"],
        "what selects otherwise claims otherwise, where a class has several entries",
    ),
    ([EITHER], [part("a", 1, root="r")], {}, ["A"], "and not where it has one"),
    (
        [EITHER, one_of("y")],
        [part("a", 2, root="r"), part("b", 1)],
        {},
        ["A A", "A A"],
        "whatever the next request makes of it",
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
    sides = {"x": ("A", 5), "y": ("B", 4)}
    devices = [
        entry(f"e{at}{side.lower()}", 1, architecture=side)
        for side, number in sides.values()
        for at in range(number)
    ]
    wanted = [build.request(name, 1, ON.format(side)) for name, (side, _) in sides.items()]
    matches, cut_short = resolve_every(*arguments(wanted, devices), budget=Budget(STEPS))
    assert (len(matches), cut_short) == (MAX_VARIANTS, True), "where none repeats another"


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


TAINTED = {
    "taints": [
        {"key": "old", "value": "yes", "effect": "NoSchedule"},
        {"key": "drain", "effect": "NoExecute"},
    ]
}
OTHERS_TAINTED = rejected(
    Reason.UntoleratedDeviceTaint,
    "x takes 1, y takes 1; the others have {drain:NoExecute, old=yes:NoSchedule}",
    request="x+y",
)
ODD = {**CLASS, "attributes": {}}
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
    (
        [one_of("x", 20), one_of("y", 20)],
        [part("a", 30)],
        {},
        rejected(Reason.DeviceContention, "x takes 20, y takes 20", request="x+y"),
        "and more than there are: a larger claim would not help",
    ),
    (
        [one_of("x"), one_of("y")],
        [entry("a", 1), entry("b", 1) | TAINTED],
        {},
        OTHERS_TAINTED,
        "together, were it not for the taints of others",
    ),
    (
        [one_of("x"), one_of("y")],
        [part("a", 1), part("b", 1) | TAINTED],
        {},
        OTHERS_TAINTED,
        "of the same class, too",
    ),
    (
        [build.request("x", 1, ON_A), build.request("y", 2, ON_A)],
        [entry("a", 2, architecture="A"), entry("b", 9) | TAINTED],
        {},
        rejected(Reason.DeviceContention, "x takes 1, y takes 2", request="x+y"),
        "taints of what would not do are in nobody's way",
    ),
    (
        [one_of("x", 2)],
        [part("a", 1), part("b", 1) | TAINTED],
        {},
        rejected(
            Reason.UntoleratedDeviceTaint,
            "{drain:NoExecute, old=yes:NoSchedule}",
            device="a",
            needs=2,
            free=1,
        ),
        "a count that those without a taint do not cover",
    ),
    (
        [one_of("x", 2)],
        [part("a", 1, root="r"), part("b", 1, root="q"), part("c", 1, root="p") | TAINTED],
        {"constraints": [{"matchAttribute": ROOT}]},
        rejected(Reason.ConstraintUnsatisfied, f"no common {ROOT}"),
        "a count that those without a taint cover, were it not for the constraint",
    ),
    (
        [{"name": "x", "firstAvailable": [subrequest("p", 1, ON_A), subrequest("q", 4, ANY)]}],
        [entry("a", 2)],
        {},
        rejected(Reason.DeviceCountShort, device="a", needs=4, free=2, rank=1),
        "of several ways to serve it the one that comes nearest",
    ),
    (
        [one_of("x"), one_of("y")],
        [entry(name, 1, claim="Synthetic", root=name) for name in "ab"],
        {"constraints": [{"matchAttribute": ROOT}, {"matchAttribute": "example.com/x"}]},
        rejected(Reason.ConstraintUnsatisfied, f"no common {ROOT}, example.com/x", request="x+y"),
        "of what nobody claims, too, and every constraint is named",
    ),
    (
        [one_of("x", 2)],
        [part("a", 1), part("b", 0)],
        {},
        rejected(Reason.DeviceCountShort, device="a", needs=2, free=1),
        "an entry without devices covers nothing with others",
    ),
    (
        [one_of("x")],
        [part("a", 0)],
        {},
        rejected(Reason.DeviceCountShort, device="a", needs=1, free=0),
        "an entry without devices",
    ),
]


@pytest.mark.parametrize(("requests", "devices", "selector", "why", "reason"), WHY)
def test_why_there_is_none(
    requests: list[Plain], devices: list[Plain], selector: Plain, why: Rejection, reason: str
) -> None:
    assert refused(requests, devices, **selector) == why, reason


@pytest.mark.parametrize(
    ("requests", "constraints"),
    [
        ([one_of("x", 32)], 0),
        ([build.request("x", 1, *[ANY] * 32)], 0),
        ([one_of("x")], 32),
        ([one_of("x", 16), one_of("y", 16)], 0),
    ],
    ids=["devices", "selectors", "constraints", "devices of two requests"],
)
def test_a_claim_may_be_as_large_as_kubernetes_allows(requests: list[Plain], constraints: int) -> None:
    stated = {"constraints": [{"matchAttribute": ROOT}] * constraints}
    made = resolve(*arguments(requests, [part("a", 40, root="r")], **stated), budget=Budget(STEPS))
    assert isinstance(made, Match)


def test_what_a_claim_may_hold_is_no_question_of_one_that_is_there() -> None:
    made = arguments([one_of("x", 33)], [part("a", 40)])
    assert isinstance(resolve(*made, budget=Budget(STEPS), allowed=lambda *_: True), Match)


@pytest.mark.parametrize(
    ("reason", "requests", "devices", "order"),
    [
        ("one of 8 before three of 4", [("y", 3), ("x", 1)], [("x", 8), ("y", 4)], "xy"),
        ("three of 3 before two of 8", [("x", 2), ("y", 3)], [("x", 8), ("y", 3)], "yx"),
        ("all entries of the class count", [("x", 1), ("y", 1)], [("x", 4), ("x", 4), ("y", 6)], "yx"),
        ("between equals as declared", [("y", 1), ("x", 1)], [("x", 2), ("y", 2)], "yx"),
    ],
)
def test_a_claim_is_written_with_the_fewest_ways_to_allocate_first(
    reason: str, requests: list[tuple[str, int]], devices: list[tuple[str, int]], order: str
) -> None:
    asked = [build.request(name, count, ON.format(name)) for name, count in requests]
    listed = [
        entry(f"e{at}", count, architecture=name) | {"deviceClassName": name}
        for at, (name, count) in enumerate(devices)
    ]
    match = resolve(*arguments(asked, listed), budget=Budget(STEPS))
    assert isinstance(match, Match)
    assert "".join(item.request for item in match.claimed) == order, reason
    cel = {item["name"]: (item["selectors"][0]["cel"],) for item in asked}
    counts = dict(requests)
    assert match.stamped == tuple(StampedRequest(name, name, counts[name], cel[name]) for name in order)


def test_a_selector_that_is_too_dear_for_another_entry_of_the_class_bars_them_all() -> None:
    """The allocator gives up on the node there, as where a selector errs."""
    dear = f"{build.HOPPER} || {list(range(99))}.all(x, x < 99)"
    listed = [part("a", 4), part("odd", 1) | {"attributes": {"architecture": {"string": "Ada"}}}]
    evaluations, member, devices = arguments([build.request("x", 4, dear)], listed)
    outcome = resolve(evaluations, member, devices, budget=Budget(STEPS))
    assert isinstance(outcome, Match), "within the units that evaluations share it has an answer"
    few = Evaluations(DEFAULT)
    outcome = resolve(few, member, devices, budget=Budget(STEPS))
    assert isinstance(outcome, Refusal)
    said = outcome.explained(few)
    assert (said.reason, said.device) == (Reason.SelectorCostExceeded, "odd")
    assert (errs(few, member, devices), errs(evaluations, member, devices)) == (True, False), "a doubt, too"


def test_why_is_found_out_once_unless_it_took_units_that_a_pass_shares() -> None:
    for dear, looks in ((0, 1), (1, 2)):
        asked: list[bool] = []

        def explain(evaluations: Evaluations, dear: int = dear, asked: list[bool] = asked) -> Rejection:
            asked.append(True)
            evaluations.dear += dear
            return Rejection(Reason.NoMatchingDevice, detail=str(len(asked)))

        refusal, evaluations = Refusal(explain), Evaluations(DEFAULT)
        said = [refusal.explained(evaluations).detail for _ in range(2)]
        assert (len(asked), said) == (looks, ["1", str(looks)])


def test_several_requests_without_a_device_are_all_on_record() -> None:
    outcome = refused([one_of("x", 3), one_of("y", 4)], [entry("a", 2)])
    assert [(leaf.request, leaf.needs) for leaf in outcome.leaves] == [("x", 3), ("y", 4)]
    assert (outcome.request, len(outcome.parts)) == ("x", 2)
    alone = Rejection(Reason.DeviceCountShort, request="x")
    assert combined([alone]) == alone, "one speaks for itself"

"""What selectors may cost a call, in units: whoever wrote them, and whatever is remembered of others."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from function.api import Device, ModelDeployment
from function.api.deployment import CelSelector
from function.api.reasons import Gap
from function.boundary.memory import Memory
from function.cel import compile_device
from function.cel.selector import Outcome, Program
from function.runner import Function
from function.scheduler.selectors import (
    ALLOWANCE,
    MAX_LENGTH,
    PEER_LENGTH,
    SELECTOR_OVERHEAD,
    UNITS,
    Evaluations,
    Probe,
    Share,
    check_selectors,
    programs_of,
)
from tests.support import build
from tests.support.cases import ask, one, single
from tests.support.coordinated import EARLY, called, coordinated
from tests.support.drive import run
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from function.cel import Subject

Plain = dict[str, Any]
UUID = f'device.attributes["{build.GPU}"].uuid'
REASON = "SelectorCostExceeded"


def dear(number: int, *, size: int = 400) -> str:
    """A selector that takes over a million units, or fewer for a smaller size, and matches every device."""
    loops = f"lists.range({size}).all(x, lists.range({size}).all(y, x + y >= -{number}))"
    return f'{loops} && {UUID} != "{number}"'


def device(number: int) -> Plain:
    """GPUs that are like no other."""
    made = build.gpu(8)
    made["attributes"]["uuid"] = {"string": f"GPU-{number:06}"}
    return made


def fleet(number: int, pools: int = 1) -> list[Plain]:
    """So many clusters, every device of which is like no other."""
    return [
        one(f"c{at:04}", pools=[build.pool(f"p{on}", 9, [device(at * pools + on)]) for on in range(pools)])
        for at in range(number)
    ]


def asking(*selectors: str, replicas: int = 1, **more: Any) -> Plain:
    """A deployment with a request for each selector, so that none of them spares another."""
    requests = [build.request(f"r{at}", 1, selector) for at, selector in enumerate(selectors)]
    by_engine = [requests[at : at + 8] for at in range(0, len(requests), 8)]
    engines = [single(*some, name=f"e{at}") for at, some in enumerate(by_engine)]
    return ask(replicas, engines=engines, **more)


class Spent:
    """What evaluations were allowed to spend: an upper bound of what they did."""

    units = 0
    evaluations = 0


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Spent:
    """Count every evaluation of a selector, or of a term of it, wherever it is asked for."""
    made, real = Spent(), Program.evaluate

    def evaluate(self: Program, subject: Subject, limit: int = 1_000_000) -> Outcome:
        made.units += limit
        made.evaluations += 1
        return real(self, subject, limit)

    monkeypatch.setattr(Program, "evaluate", evaluate)
    return made


CLUSTER = [
    f'cluster.name != "{at}" && lists.range(400).all(x, lists.range(400).all(y, true))' for at in range(8)
]
POOL = [cel.replace("cluster", "node") for cel in CLUSTER]


@pytest.mark.parametrize(
    ("deployment", "count"),
    [
        (asking(*map(dear, range(2))), 20),
        (asking(*map(dear, range(16))), 160),
        (asking(*[f'device.driver == "gpu.nvidia.con" && {dear(at)}' for at in range(16)]), 160),
        (ask(selector={"cel": CLUSTER}), 80),
        (ask(engines=[single(build.request(), selectors=[{"cel": cel} for cel in POOL])]), 80),
        (ask(placement={"preferences": [{"weight": 1, "cel": cel} for cel in CLUSTER]}), 80),
    ],
    ids=["two", "sixteen", "behind a misspelt driver", "clusters", "pools", "preferences"],
)
@pytest.mark.parametrize("explain", ["Conditions", "Status"])
def test_all_evaluations_of_a_call_share_one_budget(
    deployment: Plain, count: int, explain: str, spent: Spent
) -> None:
    """Deciding spends it at most once, and hints, the lint and the report spend no shared units on top."""
    run(World(deployment, fleet(10), input={"explain": explain}))
    allowances = ALLOWANCE * max(spent.evaluations, count)
    assert spent.units <= UNITS + allowances


def test_a_cheap_selector_is_never_short_however_large_the_fleet() -> None:
    """67 units are the most that a real one costs; those of a call together cost far more than it shares."""
    terms = " && ".join(f'{UUID} != "{at}"' for at in range(12))
    selectors = [f"{terms} && {at} == {at}" for at in range(8)]
    decision = decide(World(asking(*selectors, replicas=3), fleet(150, 4)))
    assert len(decision.placed) == 3
    assert decision.inputs.evaluations.outcomes.evaluated == 8 * 600
    assert not decision.inputs.evaluations.dear


def test_a_dear_selector_has_its_part_where_there_are_few() -> None:
    """Ten thousand units each: 30 evaluations may have a hundred thousand, 6,000 may not."""
    wanted = asking(dear(0, size=60), dear(1, size=60), dear(2, size=60))
    assert len(decide(World(wanted, fleet(10))).placed) == 1
    assert {
        rejection.reason.name for rejection in decide(World(wanted, fleet(500, 4))).rejections.values()
    } == {REASON}


def test_who_is_short_is_told_so_in_numbers() -> None:
    answer = run(World(asking(*map(dear, range(4))), fleet(3)))
    _, reason, message = answer.conditions["ReplicasScheduled"]
    assert reason == "InsufficientCapacity"
    assert "3 selector cost exceeded (" in message
    assert "the evaluation costs more than 131072 units" in message


def test_what_runs_stays_as_it_is_observed() -> None:
    """Law 2: a selector that runs out of budget on the pinned pool is doubt."""
    was, now = asking('device.driver != "x"'), asking(dear(0))
    running = build.replica(was, "c0000", 0, pools="p0", ready=True)
    decision = decide(World(now, fleet(20), [running], build.observed(running)))
    [kept] = decision.kept
    assert (kept.mismatch, kept.own_replica.key) == (None, "replica-c0000-0")
    assert "selector cost exceeded: the evaluation costs more than 131072 units" in kept.doubt


@pytest.mark.parametrize(
    ("count", "part", "reason"),
    [
        (None, 128, "where evaluations share nothing each has its own units"),
        (0, 200_000, "where none are counted, as many as Kubernetes allows one"),
        (1, 200_000, "nor has the only one more"),
        (45, 65_536, "of 66,666 the power of two below"),
        (46, 32_768, "of 65,217 too"),
        (11_718, 256, "of 256 all"),
        (11_719, 128, "of 255"),
        (100_000, 128, "never fewer than its own"),
    ],
)
def test_the_part_of_an_evaluation(
    count: int | None, part: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("function.scheduler.selectors.LIMIT", 200_000)
    evaluations = Evaluations("1.36", None if count is None else lambda: count)
    said = evaluations.outcome(compile_device(dear(0)), Device.parse(device(0)).subject)
    assert said == Outcome("cost", f"the evaluation costs more than {part} units"), reason


CHEAP, LOOP, WRONG = "true", "lists.range(30).all(x, x >= 0)", 'device.driver == "x"'


@pytest.mark.parametrize(
    ("selectors", "said", "reason"),
    [
        ([], Probe("match"), "without selectors nothing is asked"),
        ([CHEAP, CHEAP], Probe("match"), "what costs no more than its own units took none of the others"),
        ([LOOP, CHEAP], Probe("match", dear=True), "the first of several took some"),
        ([CHEAP, LOOP], Probe("match", dear=True), "the last did"),
        ([LOOP, WRONG], Probe("nomatch", 1, dear=True), "one that matches before one that does not"),
        ([WRONG, LOOP], Probe("nomatch", 0), "what comes after the first that does not match is not asked"),
    ],
)
def test_whether_a_request_took_units_that_evaluations_share(
    selectors: list[str], said: Probe, reason: str
) -> None:
    """Each time that it is said: who remembers what rests on it looks if it was said meanwhile."""
    asked = {"name": "gpu", "selectors": [{"cel": selector} for selector in selectors]}
    [request] = ModelDeployment.parse(ask(engines=[single(asked)])).requests
    evaluations, entry = Evaluations("1.36", lambda: 1_000), Device.parse(device(0))
    for times in (1, 2):
        assert evaluations.probe(request.sub, entry) == said, reason
        assert evaluations.dear == times * said.dear, reason
    before = evaluations.dear
    for selector in selectors:
        evaluations.outcome(compile_device(selector), entry.subject)
    assert evaluations.dear == before + selectors.count(LOOP), reason


def test_a_gap_is_that_of_a_selector_and_of_what_it_reads() -> None:
    evaluations = Evaluations("1.36")
    subjects = [Device.parse(build.gpu(1, architecture=name)).subject for name in ("Ada", "Hopper")]
    wanted = [compile_device(f'device.attributes["{build.GPU}"].architecture == "{name}"') for name in "xy"]
    assert [evaluations.gap(selector, subject) for selector in wanted for subject in subjects] == [
        Gap(f"architecture {name}", wants) for wants in "xy" for name in ("Ada", "Hopper")
    ]


def test_a_deployment_holds_the_programs_of_its_preferences_too() -> None:
    wish, wanted = 'cluster.name == "a"', 'device.driver == "gpu.nvidia.com"'
    made = ModelDeployment.parse(
        ask(
            engines=[single(build.request("gpu", 1, wanted))],
            placement={"preferences": [{"weight": 1, "cel": wish}]},
        )
    )
    assert not [*programs_of(ModelDeployment.parse(ask())), *programs_of(made)], "nothing is compiled yet"
    assert made.spec.placement is not None
    check_selectors(made, made.spec.placement.preferences or (), "1.36")
    assert [program.source for program in programs_of(made)] == [wish, wanted]


def many(number: int) -> Plain:
    """A deployment with so many cheap selectors."""
    return asking(*[f'{UUID} != "{at}"' for at in range(number)])


@pytest.mark.parametrize(
    ("number", "most", "valid", "reason"),
    [
        (17, 340, True, "17 on 20 devices are 340"),
        (17, 339, False, "one evaluation too many"),
        (16, 1, True, "16 may be evaluated however many devices there are"),
    ],
)
def test_many_selectors_are_evaluated_so_often_and_no_more(
    number: int, most: int, *, valid: bool, reason: str, monkeypatch: pytest.MonkeyPatch, spent: Spent
) -> None:
    monkeypatch.setattr("function.scheduler.selectors.WHOLE", Share(most, MAX_LENGTH))
    running = build.replica(many(number), "c0003", 0, pools="p0", ready=True)
    decision = decide(World(many(number) | {}, fleet(20), [running], build.observed(running)))
    assert [kept.own_replica.key for kept in decision.kept] == ["replica-c0003-0"], "Law 2: it stays"
    invalid = decision.inputs.selectors.invalid
    assert bool(invalid) != valid, reason
    if invalid:
        assert f"{number} different selectors may be evaluated {most} times" in str(invalid[0].error)
        assert spent.evaluations <= number, "only the claims of what runs are looked at"


def served(requests: int, ways: int, engines: int = 1) -> Plain:
    """A deployment whose engines ask for different things, each request in several ways."""
    made = []
    for engine in range(engines):
        ranked = [build.request(f"w{at}", 1 + at) for at in range(ways)]
        asked = [{"name": f"e{engine}-r{at}", "firstAvailable": ranked} for at in range(requests)]
        made.append(single(*asked, name=f"e{engine}"))
    return ask(engines=made)


@pytest.mark.parametrize(
    ("deployment", "most", "valid", "reason"),
    [
        (served(9, 1, 2), 160, True, "18 ways and 2 combinations on 20 devices: 400 of 50,000 looks"),
        (served(9, 1, 2), 159, False, "one too many"),
        (served(3, 6), 1872, True, "18 ways, combined in 216"),
        (served(3, 6), 1871, False, "one too many"),
        (served(16, 8, 2), 6048, True, "2 x 128 ways, each member tries 250 combinations at most"),
        (served(16, 8, 2), 6047, False, "one too many"),
        (served(4, 4), 1, True, "16 may be looked at however many devices there are"),
    ],
)
def test_many_ways_are_looked_at_so_often_and_no_more(
    deployment: Plain, most: int, *, valid: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else eight engines of 16 requests with 8 ways each take ten seconds on 400 devices."""
    monkeypatch.setattr("function.scheduler.selectors.WHOLE", Share(most, MAX_LENGTH))
    running = build.replica(ask(), "c0003", 0, pools="p0", ready=True)
    decision = decide(World(deployment, fleet(20), [running], build.observed(running)))
    invalid = decision.inputs.selectors.invalid
    assert bool(invalid) != valid, reason
    if invalid:
        assert [kept.own_replica.key for kept in decision.kept] == ["replica-c0003-0"], "Law 2: it stays"
        said = f"ways to serve device requests may take {most * 50_000 // 20_000} looks"
        assert said in str(invalid[0].error)


def test_members_that_ask_for_the_same_are_looked_at_once() -> None:
    deployment = served(9, 1)
    first = deployment["spec"]["template"]["spec"]["engines"][0]
    deployment["spec"]["template"]["spec"]["engines"] = [{**first, "name": name} for name in ("a", "b")]
    selectors = decide(World(deployment, fleet(1))).inputs.selectors
    assert (selectors.ways, selectors.looks) == (9, 10)


def test_a_preference_that_costs_too_much_is_named() -> None:
    """It counts as no match; nothing is placed wrongly, but silently it would read as one."""
    wishes = [{"weight": 1, "cel": cel} for cel in (*CLUSTER[:3], "true")]
    answer = run(World(ask(1, placement={"preferences": wishes}), fleet(150)))
    said = answer.conditions["ReplicasScheduled"][2]
    counted = ", ".join(f"preferences[{at}] on 150 clusters" for at in range(3))
    assert f"counted as no match, because evaluating it costs too much: {counted}" in said
    fine = run(World(ask(1, placement={"preferences": wishes[3:]}), fleet(2)))
    assert "no match" not in fine.conditions["ReplicasScheduled"][2]


def test_equal_devices_count_once() -> None:
    """A thousand pools of one class are one device."""
    equal = [one(f"c{at:03}", pools=[build.pool("p0", 1, [device(7)])]) for at in range(50)]
    selectors = decide(World(many(20), equal)).inputs.selectors
    clusters = decide(World(many(20), equal)).inputs.fleet.clusters.values()
    assert selectors.evaluations(clusters) == 20


# One answer, whatever was asked before and in whatever order


def answered(made: World, memory: Memory | None = None) -> bytes:
    class Silent:
        def info(self, *_: object, **__: object) -> None: ...

        warning = error = info

    return Function(log=Silent(), memory=memory).answer(made.message().SerializeToString())


@pytest.mark.parametrize("seed", range(6))
def test_what_is_remembered_of_smaller_and_larger_fleets_changes_no_byte(seed: int) -> None:
    """The part of an evaluation depends on the fleet, so nothing that drew on it outlives the call."""
    draw = Random(seed)
    sizes = [draw.choice((5, 30, 60, 150, 250)) for _ in range(4)]
    selectors = [*[dear(at, size=size) for at, size in enumerate(sizes)], f'{UUID} != "a"']
    draw.shuffle(selectors)
    wanted = asking(*selectors, replicas=3)
    running = build.replica(asking('device.driver != "x"'), "c0001", 0, pools="p0", ready=True)
    memory = Memory(64 * 1024 * 1024)
    for number in (3, 40, 12, 3, 40):
        clusters = fleet(number)
        given = {"explain": "Status"}
        made = World(wanted, clusters, [running], build.observed(running), input=given)
        fresh = answered(made)
        draw.shuffle(clusters)
        assert answered(made.but(clusters=clusters), memory) == fresh, number
        assert answered(made, memory) == fresh, "the second time"


# Deployments that place before ours


def test_a_dear_deployment_before_ours_costs_its_own_units_only_and_is_named(spent: Spent) -> None:
    hostile = asking(*map(dear, range(16)))
    hostile["metadata"] |= {"name": "hostile", "uid": build.uid("hostile"), "creationTimestamp": EARLY}
    answer = coordinated(called("ours"), [hostile, called("ours")], fleet(10))
    assert len(answer.replicas) == 1
    assert spent.units <= 2 * ALLOWANCE * spent.evaluations
    assert spent.evaluations <= 2 * 160 + 20
    assert (
        "nothing is reserved for ml-team/hostile: their selectors cost more than a call spends on others"
        in answer.conditions["ReplicasScheduled"][2]
    )


def test_the_selectors_of_all_before_ours_are_compiled_up_to_a_length_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first call about many deployments compiles those of all: 20 with 30 kB each took eight seconds."""
    compiled: Counter[str] = Counter()
    real = CelSelector.compiled

    def counting(self: CelSelector, release: str) -> Any:
        compiled[self.cel] = len(self.cel)
        return real(self, release)

    monkeypatch.setattr(CelSelector, "compiled", counting)
    hostile = []
    for number in range(8):
        long = [f'{UUID} != "{"x" * 900}-{number}-{at}"' for at in range(30)]
        hostile.append(called(f"h{number}", 1, EARLY))
        hostile[-1]["spec"] = asking(*long)["spec"]
    answer = coordinated(called("ours"), [*hostile, called("ours")], fleet(2))
    assert compiled.total() <= 8 * PEER_LENGTH + MAX_LENGTH
    assert "nothing is reserved for ml-team/h0, " in answer.conditions["ReplicasScheduled"][2]


def test_an_honest_deployment_before_ours_is_placed_first() -> None:
    first = called("first", 1, EARLY)
    answer = coordinated(called("ours"), [first, called("ours")], [one("a", 1)])
    assert len(answer.replicas) == 0
    assert "reserved" not in answer.conditions["ReplicasScheduled"][2]


def test_deployments_before_ours_share_what_many_selectors_may_be_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 2,000 evaluations the first may make 1,000 and makes 900. The next has half of 1,100."""
    monkeypatch.setattr("function.scheduler.schedule.MOST", 2_000)
    earlier = []
    for at, number in enumerate((45, 16, 25, 17)):
        made = many(number)
        name = f"d{at}"
        made["metadata"] |= {"name": name, "uid": build.uid(name), "creationTimestamp": EARLY}
        earlier.append(made)
    decision = coordinated(called("ours"), [*earlier, called("ours")], fleet(20)).decision
    assert decision is not None
    assert decision.left_out == ("ml-team/d3",)


HALF, QUARTER = MAX_LENGTH // 2, MAX_LENGTH // 4


def as_long(name: str, length: int) -> Plain:
    """A deployment that places before ours, with selectors that count as so many characters."""
    heads = [f'device.driver != "{at}' for at in range(5)]
    rest = length - sum(len(head) + 1 + SELECTOR_OVERHEAD for head in heads)
    middle, more = divmod(rest, len(heads))
    selectors = [head + "x" * (middle + more * (not at)) + '"' for at, head in enumerate(heads)]
    return called(name, 1, EARLY, engines=[single(build.request("gpu", 1, *selectors))])


@pytest.mark.parametrize(
    ("beyond", "left_out", "reason"),
    [
        ([HALF], (), "half of what all have together, beyond what everybody may have"),
        ([HALF + 1], ("d0",), "a character more"),
        ([HALF, QUARTER], (), "the second has half of what is left"),
        ([HALF, QUARTER + 1], ("d1",), "a character more"),
        ([0, HALF], (), "one that is short takes nothing"),
        ([-500, HALF + 1], ("d1",), "nor does it leave more"),
        ([QUARTER, QUARTER, QUARTER], (), "what is left gets less by what each has, and no more"),
        ([HALF + 1, QUARTER], ("d0",), "one that is left out takes its half"),
        ([HALF + 1, QUARTER + 1], ("d0", "d1"), "and no more nor less"),
    ],
)
def test_a_deployment_before_ours_may_be_as_long_as_half_of_what_is_left(
    beyond: list[int], left_out: tuple[str, ...], reason: str
) -> None:
    earlier = [as_long(f"d{at}", PEER_LENGTH + more) for at, more in enumerate(beyond)]
    decision = coordinated(called("ours"), [*earlier, called("ours")], [one("a", 9)]).decision
    assert decision is not None
    assert decision.left_out == tuple(f"ml-team/{name}" for name in left_out), reason

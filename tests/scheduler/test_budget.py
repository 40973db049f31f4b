"""What a call may take: easy searches take few steps, hard ones share one budget, who runs out says so."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from function.api.deployment import Engine
from function.scheduler.budget import ALLOWANCE, UNITS, Budget, CallBudget, OutOfSteps
from function.scheduler.device_accounting import Demand, PodLayout
from function.scheduler.engine_options import ClusterFit, EngineFit, EngineOption, PoolDemand
from function.scheduler.ledger import Ledger, NodeCapacity, Overcommitted
from function.scheduler.schedule import schedule
from function.scheduler.search import search
from tests.support import build
from tests.support.cases import HARD, TIGHT, ask, one, pools_of, single, sized
from tests.support.coordinated import EARLY, ORDER, called
from tests.support.drive import run
from tests.support.preempting import ON, of, running
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]


def step_count(made: World) -> int:
    budget = decide(made).budget
    assert budget is not None
    return budget.taken


def test_an_engine_that_fits_one_pool_only_is_seen_to_before_the_others_are_tried() -> None:
    """The first seven fit pool 1; the last needs all of pool 0. Every order of the seven was tried before."""
    copies = [1, 2, 4, 8, 16, 32, 64, 500]
    made = World(
        ask(engines=sized(*copies)), [one("a", pools=pools_of(500, 499, 499, 499, 499, 499, 499, 499))]
    )
    decision = decide(made)
    [placed] = decision.placed
    assert [option.pools[0] for option in placed.candidate.options] == [1] * 7 + [0]
    assert step_count(made) < ALLOWANCE


def _option(pool: int, nodes: int) -> EngineOption:
    engine = Engine.parse({"name": "e", "members": [{}]})
    return EngineOption(engine, (pool,), (), (PoolDemand(pool, Demand(nodes)),))


def _earliest(options: list[list[EngineOption]], free: tuple[int, ...]) -> tuple[EngineOption, ...] | None:
    """The first choice in declaration order that fits: all of them are gone through."""
    for chosen in product(*options):
        left = list(free)
        for item in chosen:
            for pool, demand in item.demands:
                left[pool] -= demand.nodes
        if min(left) >= 0:
            return chosen
    return None


@pytest.mark.parametrize("seed", range(40))
def test_the_answer_is_the_first_complete_choice_in_declaration_order(seed: int) -> None:
    draw = Random(seed)
    for _ in range(10):
        count = draw.randint(1, 4)
        sizes = [draw.randint(1, 4) for _ in range(draw.randint(1, 5))]
        options = [
            [_option(at, size) for at in sorted(draw.sample(range(count), draw.randint(1, count)))]
            for size in sizes
        ]
        free = tuple(draw.randint(0, 8) for _ in range(count))
        fit = ClusterFit("", tuple(EngineFit(option[0].engine, tuple(option), ()) for option in options))
        expected = _earliest(options, free)
        choice = search(fit, tuple(map(NodeCapacity, free)), budget=Budget(100_000))
        assert (choice if isinstance(choice, tuple) else None) == expected


@pytest.mark.parametrize(
    ("clusters", "allowance", "reason"),
    [
        (0, 1_000, "nothing to share"),
        (256, 1_000, "enough for all"),
        (257, 512, "a power of two"),
        (500, 512, "which stays while a fleet grows a little"),
        (501, 256, "and is halved"),
        (100_000, 128, "and never less than an easy search needs"),
    ],
)
def test_the_steps_of_every_searchs_own_are_fewer_in_a_large_fleet(
    clusters: int, allowance: int, reason: str
) -> None:
    budget = CallBudget(100_000, clusters)
    assert budget.allowance == allowance, reason
    assert budget.open().steps == min(100_000, allowance + 100_000)
    assert budget.most == 100_000 + allowance * max(1, clusters)


@pytest.mark.parametrize("seed", range(20))
def test_a_search_takes_what_it_has_and_not_a_unit_more(seed: int) -> None:
    """A step is so many units; what goes beyond the last of them ends the search."""
    draw = Random(seed)
    for _ in range(20):
        budget = Budget(steps := draw.randint(0, 6))
        left, ended = steps * UNITS + UNITS - 1, False
        for _ in range(draw.randint(1, 30)):
            units = draw.choice((None, 0, 1, UNITS - 1, UNITS, draw.randint(0, 3 * UNITS)))
            assert (budget.units, budget.left) == (left, left // UNITS)
            try:
                budget.step() if units is None else budget.spend(units)
            except OutOfSteps:
                ended = True
            if units is None:
                assert ended is (left < UNITS)
            else:
                assert ended is (units > left)
            if ended:
                break
            left -= UNITS if units is None else units
        assert budget.left == (0 if ended else left // UNITS)
        assert (budget.steps, budget.taken, budget.cut) == (steps, steps - budget.left, False)


def taken_by(budget: CallBudget, steps: int) -> tuple[int, bool]:
    """Search on, for so many steps or to the end: the steps that there were, and if others bound them."""
    opened = budget.open()
    for _ in range(min(steps, opened.left)):
        opened.step()
    return opened.steps, budget.settle(opened)


TURNS: list[tuple[str, int, int, bool, str]] = [
    ("", 0, 8_000, False, "before any turn a search has all there is"),
    ("a", 900, 3_000, False, "a quarter, and within the steps of its own nothing is drawn"),
    ("a", 1_000, 3_000, False, "so all of its quarter is left"),
    ("a", 2_500, 3_000, True, "1,500 of it are drawn"),
    ("a", 500, 1_500, False, "and 500 are left: a turn that goes on is divided no further"),
    ("b", 9_999, 3_166, True, "a third of the 6,500 that are left; all of it is drawn"),
    ("b", 0, 1_000, False, "then it has the steps of its own, and needs none"),
    ("b", 1_000, 1_000, True, "or all of them: with a larger part it might have found more"),
    ("a", 1_001, 2_444, True, "who had its turn leaves their parts to the two that had none"),
    ("c", 0, 3_166, False, "half of the 4,333 that are left"),
    ("d", 0, 5_333, False, "all of them"),
    ("e", 3_333, 5_333, True, "one that was not counted has as much, and not less than that"),
    ("f", 0, 3_000, False, "what it left"),
]


def test_the_clusters_of_a_call_take_turns() -> None:
    budget = CallBudget(8_000, 4)
    drawn = taken = 0
    for cluster, steps, had, bounded, reason in TURNS:
        budget.turn(cluster)
        assert taken_by(budget, steps) == (had, bounded), reason
        taken += min(steps, had)
        drawn += max(0, min(steps, had) - ALLOWANCE)
        assert (budget.taken, budget.drawn) == (taken, drawn), reason


@pytest.mark.parametrize(
    ("limit", "most", "steps", "had", "bounded", "reason"),
    [
        (500, None, 500, 500, False, "a search that took the whole budget has nothing more to wait for"),
        (500, 2_000, 500, 500, False, "so too where the steps of the call are bounded elsewhere"),
        (8_000, 700, 700, 700, True, "what bounds all steps bounds this search"),
        (8_000, 700, 699, 700, False, "unless it ends before"),
        (8_000, 0, 0, 0, True, "none are left"),
    ],
)
def test_what_a_search_may_take_is_bounded_by_the_budget_and_by_the_call(
    *, limit: int, most: int | None, steps: int, had: int, bounded: bool, reason: str
) -> None:
    assert taken_by(CallBudget(limit, 1, most=most), steps) == (had, bounded), reason


@pytest.mark.parametrize(
    ("most", "had", "reason"),
    [
        (None, [5_000, 3_750, 6_500, 1_000], "half of what is left, and the steps of its own"),
        (5_000, [5_000, 1_500, 500, 0], "what others took is taken from the bound of all"),
    ],
)
def test_a_portion_is_half_of_what_is_left(most: int | None, had: list[int], reason: str) -> None:
    whole = CallBudget(8_000, 1, most=most)
    for portion, steps in ((True, 3_500), (True, 1_000), (False, 9_999), (True, 9_999)):
        part = whole.portion() if portion else whole
        part.turn("a")
        assert taken_by(part, steps)[0] == had.pop(0), reason
        assert whole.with_portion(part) is whole
    assert whole.taken == (most or 3_500 + 1_000 + 6_500 + 1_000)


def hard(name: str, less: int = 0) -> Plain:
    """A cluster on which the search is hard; `less` makes it unlike the others."""
    return one(name, pools=pools_of(*TIGHT[:-1], TIGHT[-1] - less))


def test_clusters_share_the_budget_of_a_call() -> None:
    """Sixty clusters on which the search is hard cost no sixty budgets."""
    fleet = [hard(f"c{at:02}", at % 20) for at in range(60)]
    limit = 10_000
    made = World(ask(engines=sized(*HARD)), fleet, input={"searchBudget": limit})
    assert limit < step_count(made) <= limit + ALLOWANCE * len(fleet)
    assert {rejection.reason.name for rejection in decide(made).rejections.values()} == {
        "SearchBudgetExceeded"
    }


def test_a_hard_cluster_leaves_their_part_to_the_others() -> None:
    """The first by name uses its part up and says so; the others are placed as if it were not there."""
    alone = World(ask(3, engines=sized(*HARD)), [one("b", pools=pools_of(900))])
    made = alone.but(clusters=[hard("a"), *alone.clusters], input={"searchBudget": 2_000})
    assert set(run(made).replicas) == set(run(alone).replicas)
    decision = decide(made)
    assert decision.rejections["a"].reason.name == "SearchBudgetExceeded"


@pytest.mark.parametrize("to_come", [0, 1])
def test_equal_clusters_are_searched_once_and_share_what_was_found(to_come: int) -> None:
    """Also where nodes are still to come, so that those that are there are looked at first."""

    def cluster(name: str) -> Plain:
        pools = pools_of(*TIGHT)
        pools[0] |= {"usable": {"nodes": TIGHT[0], "toCome": to_come}}
        return one(name, pools=pools)

    made = World(ask(engines=sized(*HARD)), [cluster("a")], input={"searchBudget": 900_000})
    again = made.but(clusters=[cluster(name) for name in "abcdef"])
    assert step_count(again) == step_count(made)


def test_a_search_that_ran_out_is_begun_again_only_with_more_steps() -> None:
    made = World(ask(engines=sized(*HARD)), [hard("a")], input={"searchBudget": 2_000})
    again = made.but(clusters=[hard("a"), hard("b")])
    assert step_count(again) == step_count(made)
    assert {row.reason.name for row in decide(again).rejections.values()} == {"SearchBudgetExceeded"}


def test_looking_for_those_who_would_give_way_takes_steps_of_the_same_budget() -> None:
    """Two of some 45,000 steps for each set of pools: what is free, and what would be without the others."""
    fleet = [hard("a")]
    fleet[0]["status"]["givesWay"] = []
    ours = of("chat", engines=sized(*HARD))
    listed = [running(of("train", "batch"), "a")]
    for steps, reason in ((300_000, "JointCapacity"), (2_000, "SearchBudgetExceeded")):
        decision = decide(World(ours, fleet, listed, input=ON | {"searchBudget": steps}))
        assert decision.rejections["a"].reason.name == reason
        assert decision.budget is not None
        assert decision.budget.drawn <= steps


def test_the_packing_of_shared_nodes_takes_steps_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight pods of eight requests on sixteen different entries: so many ways that no step counted them."""
    split, looks = PodLayout._split, []

    def counted(*args: Any) -> Any:
        for load in split(*args):
            looks.append(None)
            yield load

    monkeypatch.setattr(PodLayout, "_split", counted)
    devices = [build.gpu(1 + at % 8, name=f"g{at}", memory=f"{8 * at + 8}Gi") for at in range(16)]
    memory = f'device.capacity["{build.GPU}"].memory'
    requests = [
        build.request(f"r{at}", 1, f'{memory}.compareTo(quantity("{8 * at + 8}Gi")) >= 0') for at in range(8)
    ]
    fleet = [one("a", pools=pools_of(3, 4, devices=devices), accounting="Device")]
    engines = [single(*requests, name=f"e{at}") for at in range(8)]
    made = World(ask(2, engines=engines), fleet, input={"searchBudget": 1_000})
    decision = decide(made)
    assert decision.budget is not None
    assert decision.budget.drawn <= 1_000
    assert {rejection.reason.name for rejection in decision.rejections.values()} == {"SearchBudgetExceeded"}
    assert len(looks) <= UNITS * decision.budget.taken


def test_explaining_takes_no_more_than_deciding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hint is tried out; all tries together have one budget."""
    from function.deployment.explain import hints as module

    spent: list[int] = []
    real = module.schedule  # type: ignore[attr-defined]

    def counted(*args: Any, **more: Any) -> Any:
        decision = real(*args, **more)
        spent.append(decision.budget.taken if decision.budget else 0)
        return decision

    monkeypatch.setattr(module, "schedule", counted)
    fleet = [
        one(f"c{at}", pools=pools_of(*TIGHT[:-1], at), taints=[build.taint(f"t{at}")]) for at in range(5)
    ]
    given = {"searchBudget": 3_000, "explain": "Status"}
    made = World(ask(engines=sized(*HARD)), [*fleet, hard("d")], input=given)
    run(made)
    assert len(spent) > 1
    assert sum(spent) <= CallBudget(3_000, 6).most


@pytest.mark.parametrize(
    ("needs", "looks", "reason"),
    [
        ((1, 2), 0, "no pool is called short where every engine has room alone"),
        ((1, 9), 2, "the pools of the engine that lacks room"),
        ((9, 8), 2, "and a pool that two engines lack is looked at once"),
    ],
)
def test_who_holds_a_pool_is_counted_once_where_it_is_short(
    needs: tuple[int, ...], looks: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Explaining a thousand clusters asked for every engine on every pool, whether it lacked nodes or not."""
    counted: list[object] = []
    real = Ledger.overcommitment

    def counting(ledger: Ledger, *pool: str) -> Overcommitted:
        counted.append(pool)
        return real(ledger, *pool)

    monkeypatch.setattr(Ledger, "overcommitment", counting)
    fleet = [one("a", pools=pools_of(2, 0))]
    assert set(decide(World(ask(engines=sized(*needs)), fleet)).rejections) == {"a"}
    assert len(counted) == looks, reason


def test_earlier_deployments_leave_half_of_what_is_left() -> None:
    """With GlobalOrder their passes run first; each has the same budget in every instance."""
    whole = CallBudget(8_000, 1)
    first = whole.portion()
    first.turn("a")
    budget = first.open()
    while budget.left:
        budget.step()
    first.settle(budget)
    whole.with_portion(first)
    assert (budget.steps, whole.taken) == (4_000 + ALLOWANCE, 4_000 + ALLOWANCE)
    second = whole.portion()
    second.turn("a")
    assert second.open().steps == 2_000 + ALLOWANCE


@pytest.mark.parametrize(
    ("config", "left", "reason"),
    [
        ({}, 1_000, "alone it may draw on all, and a search takes no more than 10,000 steps"),
        (ORDER, 2_500, "in the common order the first draws on half, and ours on half of what is left"),
    ],
)
def test_what_the_passes_of_earlier_deployments_take_is_taken_from_the_call(
    config: Plain, left: int, reason: str
) -> None:
    mine = called("mine", engines=sized(*HARD))
    first = called("first", created=EARLY, engines=sized(*HARD))
    more = {"all-deployments": [first, mine], "all-caches": []}
    given = {**config, "searchBudget": 10_000}
    budget = run(World(mine, [hard("a")], [], input=given, more=more)).decision.budget
    budget.turn("a")
    assert budget.open().steps == left + ALLOWANCE, reason


def test_a_decision_that_may_take_so_many_steps_takes_no_more() -> None:
    inputs = decide(World(ask(engines=sized(*HARD)), [hard("a"), hard("b")])).inputs
    for most in (10, 500):
        budget = schedule(inputs, most=most).budget
        assert budget is not None
        assert budget.taken == most


def test_resolving_requests_on_devices_draws_on_the_same_budget() -> None:
    """Synthetic entries: each covers a request alone, and no claim bounds how many there are."""
    devices = [build.gpu(count, name=f"g{at}", claim="Synthetic") for at, count in enumerate(TIGHT)]
    requests = [build.request(f"r{at}", count) for at, count in enumerate(HARD)]
    turned = [[*devices[at:], *devices[:at]] for at in range(len(devices))]
    fleet = [one(f"c{at}", pools=[build.pool("p", 1, item)]) for at, item in enumerate(turned)]
    limit = 10_000
    made = World(ask(engines=[single(*requests)]), fleet, input={"searchBudget": limit})
    assert limit < step_count(made) <= limit + ALLOWANCE * len(fleet)
    assert {rejection.reason.name for rejection in decide(made).rejections.values()} == {
        "SearchBudgetExceeded"
    }

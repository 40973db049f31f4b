"""What a call may take: easy searches take few steps, hard ones share one budget, who runs out says so."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from function.api.deployment import Engine
from function.scheduler.budget import ALLOWANCE, UNITS, Budget, CallBudget
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

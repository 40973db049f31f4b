"""What was found about one pool serves every equal one, and no other."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from function.api.devices import SharedDevices
from function.api.replica import StampedMember, StampedRequest
from function.scheduler.budget import CallBudget
from function.scheduler.device_matching import Match
from function.scheduler.matcher import Matcher
from function.scheduler.selectors import Evaluations
from tests.support import build
from tests.support.cases import HARD, TIGHT, ask, clusters, one, pools_of, single, sized, where
from tests.support.drive import run
from tests.support.optins import INPUT
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from function.scheduler.scheduling_input import SchedulingInput

Plain = dict[str, Any]
OTHER = {**build.gpu(1, name="other"), "deviceClassName": "other"}


def landed(deployment: Plain, fleet: list[Plain], *existing: Plain) -> list[str]:
    answer = run(World(deployment, fleet, list(existing)))
    return sorted(replica["spec"]["clusterName"] for replica in answer.replicas.values())


def on_fabrics(name: str, first: str, second: str) -> Plain:
    """A cluster of two pools of one node each, on these fabrics."""
    return one(
        name,
        pools=[
            build.pool(pool, 1) | {"attributes": {"modelplane.ai/fabric": {"string": fabric}}}
            for pool, fabric in (("p0", first), ("p1", second))
        ],
    )


@pytest.mark.parametrize(("a", "b"), [("fg", "ff"), ("ff", "fg")])
def test_clusters_of_equal_pools_are_told_apart_by_their_fabrics(a: str, b: str) -> None:
    """A gang that needs both pools has its place where they are on one fabric, whichever comes first."""
    engine = build.gang(nodes=1) | {"poolPolicy": "SameFabric"}
    fleet = [on_fabrics("a", *a), on_fabrics("b", *b)]
    assert landed(ask(2, engines=[engine]), fleet) == ["a" if a == "ff" else "b"]


@pytest.mark.parametrize(("a", "b"), [("Node", "Device"), ("Device", "Node")])
def test_clusters_of_equal_pools_are_told_apart_by_what_they_charge(a: str, b: str) -> None:
    """With Device accounting the devices of the other class are still free; a whole node is not."""
    devices = [build.gpu(1), OTHER]
    fleet = [
        one(name, pools=[build.pool("p0", 1, devices)], accounting=accounting)
        for name, accounting in (("a", a), ("b", b))
    ]
    there = build.deployment("there")
    existing = [build.replica(there, name, 0, pools="p0") for name in "ab"]
    assert landed(ask(2, gpus=1), fleet, *existing) == ["a" if a == "Device" else "b"]


def test_equal_pools_are_matched_once_whatever_they_are_called() -> None:
    fleet = [one(name, pools=[build.pool(f"{name}0"), build.pool(f"{name}1", 9)]) for name in "abc"]
    assert run(World(ask(3), fleet)).counts["pool_matches"] == 1


def test_pools_with_other_devices_are_matched_by_themselves() -> None:
    fleet = clusters(
        a={"pools": [build.pool("p0", 4, [build.gpu(8)]), build.pool("p1", 4, [build.gpu(4)])]},
        b={"pools": [build.pool("p0", 4, [build.gpu(8)])]},
    )
    assert run(World(ask(), fleet)).counts["pool_matches"] == 2


@pytest.mark.parametrize(
    ("worker", "matches", "reason"),
    [
        (build.request("gpu", 8), 1, "both roles ask for the same"),
        (build.request("gpu", 4), 2, "the workers ask for fewer"),
    ],
)
def test_what_several_roles_ask_for_is_matched_once(worker: Plain, matches: int, reason: str) -> None:
    members = [
        build.member("Leader", [build.request("gpu", 8)]),
        build.member("Worker", [worker], nodes=1),
    ]
    fleet = clusters(a=4)
    answer = run(World(ask(engines=[build.engine("main", members)]), fleet))
    assert answer.counts["pool_matches"] == matches, reason


def test_each_role_is_named_where_it_does_not_fit() -> None:
    members = [build.member(role, [build.request("gpu", 9)]) for role in ("Leader", "Worker")]
    decided = decide(World(ask(engines=[build.engine("main", members)]), clusters(a=4)))
    [rejection] = decided.rejections.values()
    assert [leaf.member for leaf in rejection.leaves] == ["Leader", "Worker"]


MEMORY = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0'
HBM: Plain = build.gpu(8)


def _with(**changed: Any) -> Plain:
    return copy.deepcopy(HBM) | changed


def _publishing(name: str, value: str) -> Plain:
    return _with(attributes={**HBM["attributes"], name: {"string": value}})


@pytest.mark.parametrize(
    ("other", "matches", "reason"),
    [
        (copy.deepcopy(HBM), 1, "the same content"),
        (_publishing("driverVersion", "575.57.8"), 2, "another version of the driver"),
        (_with(capacity={"memory": {"value": "141Gi"}}), 2, "a selector reads the memory"),
        (_with(count=4), 2, "how many there are"),
        (_with(name="accelerator"), 2, "the entry is named where it does not do"),
        (_with(deviceClassName="mig.nvidia.com"), 2, "a claim names the class"),
        (_with(claim="Synthetic"), 2, "what no claim can bind is no match to be charged"),
        (_with(driver="gpu.amd.com"), 2, "its names belong to another domain"),
        (_publishing("fabric.example.com/id", "a"), 2, "it publishes in one domain more"),
        (_publishing("rack", "a"), 2, "a constraint compares the rack"),
    ],
)
def test_pools_are_told_apart_by_what_they_publish(other: Plain, matches: int, reason: str) -> None:
    """Equal device lists are matched once; a selector is asked once for all lists."""
    asking = single(build.request("gpu", 8, MEMORY), constraints=[{"matchAttribute": "rack"}])
    fleet = clusters(a={"pools": [build.pool("p0", 4, [HBM])]}, b={"pools": [build.pool("p0", 4, [other])]})
    assert run(World(ask(engines=[asking]), fleet)).counts["pool_matches"] == matches, reason


def _of_memory(size: str) -> Plain:
    """A cluster of one pool whose devices have so much memory."""
    return {"pools": [build.pool("p0", 4, [_with(capacity={"memory": {"value": size}})])]}


ASKING = ask(engines=[single(build.request("gpu", 8, MEMORY))])


@pytest.mark.parametrize(
    ("first", "second", "shared", "reason"),
    [
        ("80Gi", "141Gi", True, "both have enough"),
        ("24Gi", "32Gi", True, "neither has"),
        ("24Gi", "80Gi", False, "one fits, the other does not"),
    ],
)
def test_clusters_share_a_fit_where_the_same_fits(
    first: str, second: str, reason: str, *, shared: bool
) -> None:
    """Whatever their devices are otherwise; so they are searched once, too."""
    inputs = decide(World(ASKING, clusters(a=_of_memory(first), b=_of_memory(second)))).inputs
    matcher, [shape] = Matcher(inputs), inputs.deployment.shapes
    a, b = (matcher.fit(shape, cluster) for cluster in inputs.fleet.clusters.values())
    assert (a is b) is shared, reason


def test_clusters_that_share_a_fit_say_what_they_lack_themselves() -> None:
    fleet = clusters(a=_of_memory("24Gi"), b=_of_memory("32Gi"))
    rejections = decide(World(ASKING, fleet)).rejections
    lacks = {name: [leaf.has for leaf in rejection.leaves] for name, rejection in rejections.items()}
    assert lacks == {"a": ["memory 24Gi"], "b": ["memory 32Gi"]}


def test_pools_are_matched_by_themselves_where_a_selector_reads_their_names() -> None:
    member = single(build.request(), selectors=[{"cel": 'node.name == "fast"'}])
    fleet = [one("a", pools=[build.pool("slow"), build.pool("fast")])]
    answer = run(World(ask(engines=[member]), fleet))
    assert answer.counts["pool_matches"] == 2
    [replica] = answer.replicas.values()
    assert replica["spec"]["engines"][0]["members"][0]["nodePoolName"] == "fast"


def _by_devices(version: str) -> Plain:
    """A cluster that charges devices: a pool without nodes, and one with a node. A driver nobody asks for."""
    devices = [_with(attributes={**HBM["attributes"], "driverVersion": {"version": version}})]
    pools = [build.pool(name, nodes, devices) for name, nodes in (("p0", 0), ("p1", 1))]
    return one("b", pools=pools, accounting="Device")


def test_the_match_of_a_like_pool_is_no_other_way_to_claim() -> None:
    """Where devices are charged, every other way to claim is tried, and each takes a step of the budget.

    Not the same way once more because it was found on another pool, in this call or in an earlier one.
    """
    alone = World(ask(gpus=8), [_by_devices("560.0.0")], [])
    budgets = (INPUT | {"searchBudget": steps} for steps in range(1, 100))
    enough = next(budget for budget in budgets if run(alone.but(input=budget)).replicas)
    other = one("a", pools=[build.pool("p0", 0, _by_devices("550.0.0")["status"]["gpuPools"][0]["devices"])])
    both = alone.but(clusters=[other, *alone.clusters], input=enough)
    assert list(run(both).replicas) == ["replica-b-0"]


@pytest.mark.parametrize("hard", [False, True])
def test_a_search_serves_what_is_equal_and_nothing_else(*, hard: bool) -> None:
    """Pools that publish the same in lists of their own share what was hard: it drew on the call's budget."""
    pools = [build.pool("p0", 1, [build.gpu(4), OTHER]), build.pool("p1", 1, [])]
    fleet = [one(name, pools=pools[:many], accounting="Device") for name, many in (("a", 1), ("b", 2))]
    asking = ask(engines=[single(build.request("gpu", count), name=f"of-{count}") for count in (4, 1)])
    inputs = decide(World(asking, fleet)).inputs
    budget, [shape], fleet_of = CallBudget(1_000, 1), inputs.deployment.shapes, inputs.fleet.clusters
    budget.allowance = 0 if hard else 500  # Not that of any call, so nothing is known yet.
    matcher, [pool] = Matcher(inputs, budget), fleet_of["a"].pools
    four, any_one = (engine.members[0] for engine in shape.engines)
    its_own, other = (
        StampedMember("Standalone", "p0", 1, (StampedRequest("gpu", name, count),))
        for name, count in ((build.GPU, 4), ("other", 1))
    )
    apart = replace(pool, shared=SharedDevices(pool.devices or (), 0))
    renamed = replace(apart, name="p1", shared=SharedDevices(pool.devices or (), 0))
    for verdict, searched, fits, reason in (
        (partial(matcher.member, four, pool), True, True, "nothing is known yet"),
        (partial(matcher.member, four, pool), False, True, "the same again"),
        (partial(matcher.member, four, apart), not hard, True, "a pool of equal content"),
        (partial(matcher.member, four, renamed), True, True, "a pool of another name"),
        (partial(matcher.member, any_one, pool), True, True, "another member"),
        (partial(matcher.as_stamped, four, other, pool), False, False, "a claim that no entry gives"),
        (partial(matcher.as_stamped, four, its_own, pool), True, True, "its claim"),
        (partial(matcher.as_stamped, four, its_own, pool), False, True, "the same claim again"),
        (partial(matcher.as_stamped, four, its_own, apart), not hard, True, "on a pool of equal content"),
        (partial(matcher.as_stamped, any_one, other, pool), True, True, "the claim of another member"),
    ):
        before = budget.taken
        assert isinstance(verdict(), Match) is fits, reason
        assert (budget.taken > before) is searched, reason
    matcher.fit(shape, fleet_of["a"])
    before = budget.taken
    matcher.fit(shape, fleet_of["b"])
    assert (budget.taken > before) is not hard, "every way to claim, where another pool is beside it"


def _of_release(inputs: SchedulingInput, release: str, steps: int = 100) -> SchedulingInput:
    """The same input of the same deployment, as another input of the function reads it."""
    config = inputs.config.model_copy(update={"cel_version": release, "search_budget": steps})
    return replace(inputs, config=config, evaluations=Evaluations(release))


@pytest.mark.parametrize("less", [0, 1])
def test_what_ran_out_of_a_small_budget_is_tried_again_with_a_larger_one(*, less: int) -> None:
    """Calls share what was found only where each search has the same steps of its own."""
    devices = [build.gpu(1, name=f"g{at}", claim="Synthetic") for at in range(3)] + [
        build.gpu(1, name="last")
    ]
    asking = ask(engines=[single(*(build.request(f"r{at}") for at in range(4)))])
    inputs = decide(World(asking, [one("a", pools=[build.pool("p0", 1, devices)])])).inputs
    [member], [pool] = inputs.deployment.shapes[0].engines[0].members, inputs.fleet.clusters["a"].pools

    def within(steps: int, most: int) -> tuple[bool, int]:
        """Match in a call of so many steps, where a search shares no more than those beyond `most`."""
        budget = CallBudget(steps, 1)
        budget.allowance = most
        verdict = Matcher(_of_release(inputs, "1.36", steps), budget).member(member, pool)
        return isinstance(verdict, Match), budget.taken

    fits, needed = within(100, 90)
    fewer = needed - 1
    assert (fits, within(fewer - less, fewer)[0], within(100, fewer)) == (True, False, (True, needed))


def test_what_a_release_makes_of_a_selector_is_not_what_another_makes_of_it() -> None:
    changed = 'dyn(device.attributes["gpu.nvidia.com"].architecture).orValue("") == "Hopper"'
    asking = ask(engines=[single(build.request("gpu", 8, changed))])
    inputs = decide(World(asking, [one("a", pools=[build.pool("p0")])])).inputs
    [member], [pool] = inputs.deployment.shapes[0].engines[0].members, inputs.fleet.clusters["a"].pools
    verdicts = [
        Matcher(_of_release(inputs, release)).member(member, pool) for release in ("1.36", "1.37", "1.36")
    ]
    assert [isinstance(verdict, Match) for verdict in verdicts] == [True, False, True]


@pytest.mark.parametrize(("a", "b"), [("slow", "fast"), ("fast", "slow")])
def test_clusters_of_equal_pools_are_told_apart_by_the_names_that_a_selector_reads(a: str, b: str) -> None:
    member = single(build.request(), selectors=[{"cel": 'node.name == "fast"'}])
    fleet = [one(name, pools=[build.pool(pool)]) for name, pool in (("a", a), ("b", b))]
    assert landed(ask(engines=[member]), fleet) == ["a" if a == "fast" else "b"]


def test_a_hard_search_for_one_shape_says_nothing_of_another() -> None:
    """The engines of the first have no room together; the other asks for one pod."""
    wanted = ask(engines=sized(*HARD), alternatives=[{"name": "small", "engines": sized(1)}])
    answer = run(World(wanted, [one("a", pools=pools_of(*TIGHT))], input={"searchBudget": 2_000}))
    assert where(answer) == ["a/small"]


def test_options_that_no_two_fits_share_are_counted() -> None:
    """A deployment is charged for them. Those of an engine on one pool alone are shared."""
    engine = build.gang(nodes=1) | {"poolPolicy": "SameFabric"}
    fleet = [on_fabrics("a", *"ff"), on_fabrics("b", *"fg"), on_fabrics("c", *"gg")]
    fleet[2]["status"]["gpuPools"][1]["devices"] = [build.gpu(4)]
    inputs = decide(World(ask(engines=[engine, build.engine("other")]), fleet)).inputs
    budget = CallBudget(1_000, 1)
    budget.allowance = 500
    matcher, [shape] = Matcher(inputs, budget), inputs.deployment.shapes
    counted = [
        (matcher.fit(shape, cluster), matcher._memo.fits.options)[1]
        for cluster in inputs.fleet.clusters.values()
    ]
    [first, *_] = inputs.fleet.clusters.values()
    assert matcher.fit(shape, first) is matcher.fit(shape, first), "what is known is not fitted again"
    assert counted == [2, 2, 2], (
        "two ways over both pools of one fabric, and none where it is not one or unfit"
    )

"""Work, counted. A counter does not depend on the machine, so it can be a test.

At most: CEL evaluations = distinct selectors x distinct device contents; pool matches = what distinct members
ask for x distinct pool shapes; objects parsed when warm = objects changed. Work and bytes grow with the
fleet; nothing is explained that nobody reads.
"""

from __future__ import annotations

import copy
import json
import pkgutil
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from bench import rest
from bench.encode import Requests
from bench.fleets import Fleet, Size, by_charges, churn, fleet, misspelt
from function.api.names import Identity, desired_key
from function.boundary.memory import Memory
from function.deployment import handler
from function.runner import Function
from function.scheduler.ledger import ReplicaCounts
from function.scheduler.memo import PlacementMemo
from function.scheduler.placer import Placer
from function.wire import response
from tests.support import build, drive
from tests.support.cases import ask, one
from tests.support.scale import seeds
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

MEBI = 1 << 20
SMALL, DOUBLE = Size(40, 4, 200), Size(80, 4, 400)


class Counting:
    """A log that keeps what the latest call said."""

    said: dict[str, Any]

    def info(self, _: str, **said: Any) -> None:
        self.said = said

    warning = error = info


def counters(function: Function, content: bytes) -> dict[str, int]:
    """Return the counters of a call."""
    function.answer(content)
    said = function.log.said
    return {**said["counts"], "parsed": said["parsed"], "reused": said["reused"]}


@pytest.fixture(scope="module")
def small() -> Requests:
    return Requests(fleet(SMALL))


def selectors(fleet: Fleet) -> set[str]:
    return {
        selector["cel"]
        for engine in fleet.deployment["spec"]["template"]["spec"]["engines"]
        for member in engine["members"]
        for request in member["nodeSelector"]["devices"]
        for selector in request["selectors"]
    }


def asked_for(fleet: Fleet) -> set[str]:
    """Return what the members ask for: the two of the gang ask for the same."""
    engines = fleet.deployment["spec"]["template"]["spec"]["engines"]
    return {
        json.dumps(member["nodeSelector"], sort_keys=True)
        for engine in engines
        for member in engine["members"]
    }


def shapes(fleet: Fleet) -> tuple[set[str], set[str]]:
    """Return the distinct device contents and the distinct pool shapes of a fleet."""
    pools = [pool for cluster in fleet.clusters for pool in cluster["status"]["gpuPools"]]
    devices = {json.dumps(device, sort_keys=True) for pool in pools for device in pool["devices"]}
    return devices, {json.dumps(pool["devices"], sort_keys=True) for pool in pools}


def test_evaluations_are_bounded_by_distinct_selectors_and_distinct_devices(small: Requests) -> None:
    devices, pools = shapes(small.fleet)
    work = counters(Function(log=Counting()), small.next())
    assert 0 < work["cel_evaluations"] <= len(selectors(small.fleet)) * len(devices)
    assert 0 < work["pool_matches"] <= len(asked_for(small.fleet)) * len(pools)


def test_a_request_asks_about_a_device_entry_once(small: Requests) -> None:
    """Not once for every pool that has such an entry, nor again to say why it does not do."""
    devices, _ = shapes(small.fleet)
    work = counters(Function(log=Counting()), small.next())
    stated = sum(
        len(request["selectors"])
        for engine in small.fleet.deployment["spec"]["template"]["spec"]["engines"]
        for member in engine["members"]
        for request in member["nodeSelector"]["devices"]
    )
    assert 0 < work["cel_evaluations"] + work["cel_reused"] <= stated * len(devices)


def test_warm_only_what_changed_is_parsed(small: Requests) -> None:
    function = Function(log=Counting(), memory=Memory(2**28))
    everything = len(small.fleet.clusters) + len(small.fleet.replicas)
    assert counters(function, small.next())["parsed"] >= everything
    assert counters(function, small.next())["parsed"] == 0
    small.refresh(churn(random.Random(1), small.fleet, 7))
    assert 0 < counters(function, small.next())["parsed"] <= 7 + len(small.fleet.observed)


def test_warm_nothing_is_matched_again_until_the_deployment_or_a_pool_changes() -> None:
    requests = Requests(fleet(SMALL, seed=9))
    function = Function(log=Counting(), memory=Memory(256 << 20))
    cold, warm = (counters(function, requests.next())["pool_matches"] for _ in range(2))
    current_fleet = requests.fleet
    pool = current_fleet.clusters[0]["status"]["gpuPools"][0]
    pool["devices"][0]["attributes"]["driverVersion"] = {"version": "999.0.0"}
    current_fleet.clusters[0]["metadata"]["resourceVersion"] = "changed"
    requests.refresh([current_fleet.clusters[0]])
    another_pool = counters(function, requests.next())["pool_matches"]
    current_fleet.deployment["metadata"]["resourceVersion"] = "changed"
    requests.refresh([current_fleet.deployment])
    another_deployment = counters(function, requests.next())["pool_matches"]
    assert warm == 0
    assert 0 < another_pool <= len(asked_for(current_fleet)), "one new shape"
    assert another_deployment >= cold


def test_warm_an_answer_that_is_given_again_is_written_once(
    small: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = Function(log=Counting(), memory=Memory(2**28))
    composed = response._composed
    times: Counter[str] = Counter()

    def counted(*args: Any) -> Any:
        times["composed"] += 1
        return composed(*args)

    monkeypatch.setattr(response, "_composed", counted)
    answers = {function.answer(small.next()) for _ in range(6)}
    assert len(answers) == 1
    assert times["composed"] <= 2, "as it was decided, and as it is given again"


def test_warm_no_charge_is_read_again_but_of_clusters_that_changed() -> None:
    """Published charges are remembered as what they take: those of 10,000 clusters fit into 512 MB."""
    requests = Requests(by_charges(fleet(Size(40, 8, 400))))
    device_lists, deployment = 2 * MEBI, MEBI
    function = Function(log=Counting(), memory=Memory(device_lists + deployment + 40 * 40_000))
    counters(function, requests.next())
    assert counters(function, requests.next())["parsed"] == 0
    requests.refresh(churn(random.Random(1), requests.fleet, 7))
    assert 0 < counters(function, requests.next())["parsed"] <= 7 + len(requests.fleet.observed)


def test_what_crosses_the_wire_grows_with_the_fleet_alone() -> None:
    """Published charges weigh a quarter of the replicas they stand for; an answer weighs what is placed."""
    sizes = Size(40, 8, 400), Size(80, 8, 800)
    once, twice = (len(Requests(fleet(size)).next()) for size in sizes)
    published = len(Requests(by_charges(fleet(sizes[0]))).next())
    answers = [len(Function(log=Counting()).answer(Requests(fleet(size)).next())) for size in sizes]
    assert twice <= 2.2 * once
    assert published <= 0.3 * once
    assert max(answers) <= 1.1 * min(answers) < MEBI


PLACEMENTS = {
    "as shipped": None,
    "domains": {"topologySpread": [{"topologyKey": "modelplane.ai/region", "maxSkew": 3}]},
    "preferences": {"preferences": [{"weight": 5, "matchLabels": {"tier": "prod"}}], "strategy": "BinPack"},
    "budgets": {"disruption": {"maxUnavailable": 1, "maxSurge": 1}, "rollout": {"maxUnavailable": 1}},
    "at most one on a cluster": {"maxReplicasPerCluster": 1, "tieBreak": "Hash"},
    "evacuation": {"evacuate": {"afterSeconds": 3600}},
}


@pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=PLACEMENTS)
def test_at_rest_no_policy_has_the_fleet_sent(placement: dict[str, Any] | None) -> None:
    """The Composition's input has GlobalOrder and Yield; nothing of either is read at rest."""
    sent = []
    for clusters in (10, 80):
        world = rest.World(clusters, 1, placement=placement)
        function = Function(Counting())
        seeds = world.settle(function.answer)
        before, watching = (rest.reconcile(world.request, function.answer, given) for given in ({}, seeds))
        assert (before.calls, watching.calls) == (2, 1)
        assert {name.partition("/")[0] for name in watching.stated} == {"cluster", "own-replicas"}
        sent.append((before.sent, watching.sent))
        assert placement or watching.sent <= 60_000, "three replicas of one engine"
    few, many = sent
    assert all(more < 1.2 * less for less, more in zip(few, many, strict=True))


class Passes(NamedTuple):
    """A world, and how often the deployment is taken through a pass in one call about it."""

    reason: str
    wanted: int
    delivered: bool
    drained: bool
    passes: int


PASSES = [
    Passes("at rest", 2, True, False, 1),
    Passes("one is missing, which nobody has to look for", 3, True, False, 1),
    Passes("one is missing, and the fleet is asked for", 3, False, False, 1),
    Passes("the first pass finds that one must leave", 2, True, True, 2),
]


@pytest.mark.parametrize("case", PASSES, ids=lambda case: case.reason)
def test_a_need_that_is_visible_takes_no_pass_to_be_found(
    case: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = counting(monkeypatch, {"schedule": "function.deployment.handler.schedule"})
    taints = [build.taint("x", "NoExecute")] if case.drained else []
    on = [one("a", taints=taints), one("b"), one("c")]
    deployment = ask(case.wanted)
    held = {
        desired_key("replica", Identity(name, 0)): build.replica(deployment, name, 0, pools="p0")
        for name in ("a", "b")
    }
    world = World(deployment, on, list(held.values()), held)
    if not case.delivered:
        world = world.but(clusters=None, replicas=None)
    handler.run(world.request())
    assert passes["schedule"] == case.passes


def test_without_reuse_everything_is_parsed_every_time(small: Requests) -> None:
    function = Function(log=Counting())
    assert counters(function, small.next())["parsed"] == counters(function, small.next())["parsed"] > 0


def test_twice_the_fleet_is_at_most_twice_the_work() -> None:
    once, twice = (
        counters(Function(log=Counting()), Requests(fleet(size)).next()) for size in (SMALL, DOUBLE)
    )
    for counter in ("parsed", "pool_matches", "cel_reused"):
        assert twice[counter] <= 2.2 * once[counter], counter
    assert twice["cel_evaluations"] <= 2.2 * once["cel_evaluations"]


EXPLAINING = {
    "refusals": "function.scheduler.device_matching.Refusal.explained",
    "gaps": "function.api.reasons.DeferredGap.gap",
    "hints": "function.deployment.explain.report.hints",
    "tries": "function.deployment.explain.hints._Trial.gain",
    "phrases": "function.deployment.explain.clusters.rejection_phrase",
    "diagnoses": "function.scheduler.placer.below_gates",
    "reports": "function.deployment.compose.response.report",
}
"""What explanations are made of, where it is called."""


def counting(monkeypatch: pytest.MonkeyPatch, watched: Mapping[str, str]) -> Counter[str]:
    """Count the calls of functions, from now on."""
    times: Counter[str] = Counter()
    for what, path in watched.items():
        where, _, name = path.rpartition(".")
        holder = pkgutil.resolve_name(where)
        of = getattr(holder, name)
        function = of.fget if isinstance(of, property) else of

        def counted(*args: Any, what: str = what, function: Any = function, **more: Any) -> Any:
            times[what] += 1
            return function(*args, **more)

        monkeypatch.setattr(holder, name, property(counted) if isinstance(of, property) else counted)
    return times


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is made to explain."""
    return counting(monkeypatch, EXPLAINING)


def test_replicas_of_an_answer_share_the_engines_that_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What differs between them is the cluster, which no engine states."""
    made = counting(monkeypatch, {"engines": "function.scheduler.stamp.engine_spec"})
    on = [one(f"c{number:02}") for number in range(10)]
    answer = drive.run(World(ask(10), on), level="plain")
    assert len({replica["spec"]["clusterName"] for replica in answer.replicas.values()}) == 10
    assert made["engines"] == 1


@pytest.mark.parametrize("mode", ["DoNotSchedule", "ScheduleAnyway"])
def test_domains_are_counted_once_for_each_replica_placed(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not for each of the clusters that it may go to."""
    by, counted = ReplicaCounts.by, []
    monkeypatch.setattr(ReplicaCounts, "by", lambda *args: counted.append(1) or by(*args))
    spread = {"topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": mode}
    on = [one(f"c{number:02}", labels={"region": f"r{number % 4}"}) for number in range(40)]
    answer = drive.run(World(ask(10, placement={"topologySpread": [spread]}), on), level="plain")
    assert len(answer.replicas) == 10
    assert 0 < len(counted) <= 10 + 1


def test_what_a_placement_elsewhere_does_not_change_is_found_out_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A preferred domain is compared for every cluster and replica; who fits where is not."""
    fit, asked = Placer._fit_first, []
    monkeypatch.setattr(Placer, "_fit_first", lambda *args: asked.append(1) or fit(*args))
    spread = {"topologyKey": "region", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    on = [one(f"c{number:02}", labels={"region": f"r{number % 4}"}) for number in range(40)]
    answer = drive.run(World(ask(10, placement={"topologySpread": [spread]}), on), level="plain")
    assert len(answer.replicas) == 10
    assert len(asked) <= 40 + 10


def drawn(draw: random.Random) -> World:
    """A world in which what is placed on one cluster changes what is said of others."""
    spread = [
        {"topologyKey": key, "maxSkew": draw.randint(1, 2), "whenUnsatisfiable": mode}
        for key, mode in (
            ("region", "ScheduleAnyway"),
            ("zone", draw.choice(("ScheduleAnyway", "DoNotSchedule"))),
        )
        if draw.random() < 0.6
    ]
    on = []
    for name in "abcdef":
        labels = {"region": draw.choice("xyz"), "zone": draw.choice("pq")}
        pools = [build.pool(f"p{at}", draw.randint(0, 4)) for at in range(2)]
        on.append(one(name, pools=pools, labels=labels))
    quotas = [
        {
            "name": f"q{at}",
            "namespaces": [build.NAMESPACE],
            "atMost": {draw.choice(("nodes", "devices")): most},
        }
        | draw.choice(({}, {"cel": 'node.name == "p0"'}))
        for at, most in enumerate(draw.sample(range(20), draw.randint(0, 2)))
    ]
    placement = {"strategy": draw.choice(("BinPack", "Spread")), "topologySpread": spread}
    shapes = [{"name": "small", "engines": [build.engine()]}] if draw.random() < 0.3 else []
    engine = build.engine(copies=draw.randint(1, 3))
    wanted = ask(draw.randint(1, 9), engines=[engine], placement=placement, alternatives=shapes)
    return World(wanted, on, input={"quotas": quotas})


def test_a_memory_of_one_pass_changes_no_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Held beside a placer that finds out everything anew whenever anything changes."""
    worlds = [drawn(random.Random(seed)) for seed in seeds(80)]
    answers = [drive.run(world) for world in worlds]

    def forget(memo: PlacementMemo) -> None:
        if memo._read == len(memo._ledger.journal):
            return
        memo._read = len(memo._ledger.journal)
        for part in (memo._fitted, memo._scored, memo._before, memo._made, memo._rejected):
            part.clear()
        memo._rejections = None

    monkeypatch.setattr(PlacementMemo, "_catch_up", forget)
    for seed, (world, answer) in enumerate(zip(worlds, answers, strict=True)):
        assert drive.run(world).same(answer), f"seed {seed}"


def test_nothing_is_explained_where_nothing_is_missing_and_nobody_asks(
    small: Requests, made: Counter[str]
) -> None:
    """Cold or warm: most pools do not fit, and a phrase for each of them would be read by nobody."""
    function = Function(log=Counting(), memory=Memory(2**28))
    for _ in range(2):
        work = counters(function, small.next())
        assert work["placed"] + work["kept"] == work["wanted"]
    assert made == {}


def test_what_is_missing_is_explained_without_trying_anything_out(made: Counter[str]) -> None:
    """The message of a condition says why; what would help is tried out for who asks (`explain: Status`)."""
    work = counters(Function(log=Counting()), Requests(misspelt(fleet(SMALL))).next())
    assert work["placed"] + work["kept"] < work["wanted"]
    assert made["diagnoses"] > 0
    assert made["gaps"] > 0
    assert made.keys() <= {"refusals", "diagnoses", "gaps", "phrases"}


def test_who_asks_gets_every_explanation(made: Counter[str]) -> None:
    """Without it, the two tests above would pass with counters that count nothing."""
    hinted = replace(misspelt(fleet(SMALL)), input={"explain": "Status"})
    counters(Function(log=Counting()), Requests(hinted).next())
    assert made.keys() == EXPLAINING.keys()


def test_a_refusal_of_an_earlier_call_is_explained_as_one_of_this_call(made: Counter[str]) -> None:
    """What an earlier call matched is remembered without an explanation; whoever asks gets the same one."""
    quiet = fleet(SMALL)
    reusing = Function(log=Counting(), memory=Memory(2**28))
    reusing.answer(Requests(quiet).next())
    assert made["refusals"] == 0
    asking = Requests(replace(quiet, input={"explain": "Status"})).next()
    warm = reusing.answer(asking)
    assert reusing.log.said["counts"]["pool_matches"] == 0
    assert made["refusals"] > 0
    assert warm == Function(log=Counting()).answer(asking)


def test_reuse_never_changes_an_answer_over_a_churning_fleet() -> None:
    """Restored objects included: what an object was, it may be again, under the version it had then."""
    draw = random.Random(5)
    requests = Requests(fleet(Size(12, 3, 60)))
    before = copy.deepcopy(requests.fleet)
    reusing, plain = Function(log=Counting(), memory=Memory(2**26)), Function(log=Counting())
    for step in range(12):
        content = requests.next()
        assert reusing.answer(content) == plain.answer(content)
        changed = churn(draw, requests.fleet, draw.choice((0, 1, 20)))
        for manifest in draw.sample(changed, len(changed) // 2):
            manifest["status"]["conditions"][1]["status"] = draw.choice(("True", "False"))
        requests.refresh(changed)
        if step % 4 == 3:
            requests.refresh(restored(requests.fleet, before))


def restored(fleet: Fleet, before: Fleet) -> list[dict[str, Any]]:
    """Make every object what it was before, and return them."""
    pairs = zip([*fleet.clusters, *fleet.replicas], [*before.clusters, *before.replicas], strict=True)
    changed = []
    for item, was in pairs:
        item.clear()
        item.update(copy.deepcopy(was))
        changed.append(item)
    return changed


def test_the_same_fleet_in_other_bytes_gets_the_same_answer(small: Requests) -> None:
    function = Function(log=Counting(), memory=Memory(2**28))
    first, second = small.next(), small.next()
    assert first != second
    assert function.answer(first) == function.answer(second)
    assert len(drive.answer(drive.pb.RunFunctionResponse.FromString(function.answer(first))).replicas) == 8

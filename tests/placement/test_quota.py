"""Quota: how much the deployments of some namespaces may hold of some pools."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pytest

from function.api import InferenceCluster, ModelReplica
from function.api.inputs import Quota, SchedulerConfig
from function.api.reasons import Reason
from function.api.replica import parse
from function.boundary import PlainDocument
from function.scheduler import quota as quota_rules
from function.scheduler.price import price_of
from function.scheduler.quota import UNITS, QuotaHolding, QuotaUsage
from tests.support import build
from tests.support.cases import Case, ask, clusters, one, where
from tests.support.coordinated import EARLY, LATE, called
from tests.support.drive import run
from tests.support.scale import seeds
from tests.support.world import World

Plain = dict[str, Any]
NAMESPACE = build.NAMESPACE
NODE = "modelplane.ai/centsPerNodeHour"


def quota(name: str = "team", *namespaces: str, cel: str = "", kind: str = "", **at_most: int) -> Plain:
    made: Plain = {"name": name, "namespaces": [*(namespaces or (NAMESPACE,))], "atMost": at_most}
    return made | ({"cel": cel} if cel else {}) | ({"deviceClassName": kind} if kind else {})


def under(*quotas: Plain) -> Plain:
    return {"quotas": [*quotas]}


def priced(name: str, cents: int | None, nodes: int = 4) -> Plain:
    pool = build.pool("p0", nodes)
    return one(name, pools=[pool if cents is None else pool | {"attributes": {NODE: {"int": cents}}}])


def stranger(name: str, cluster: str, namespace: str = NAMESPACE, *, terminating: bool = False) -> Plain:
    parent = ask(1)
    parent["metadata"] |= {"name": name, "namespace": namespace, "uid": build.uid(name)}
    return build.replica(parent, cluster, 0, pools="p0", ready=True, terminating=terminating)


TWO = [build.pool("p0", 2), build.pool("p1", 2)]
FULL = {"a": "QuotaExceeded"}
CASES = [
    Case("nodes", clusters(a=4), ask(4), ["a"] * 3, FULL, "PartiallyScheduled", input=under(quota(nodes=3))),
    Case("devices", clusters(a=4), ask(4), ["a"] * 2, FULL, input=under(quota(devices=23))),
    Case("replicas", clusters(a=4), ask(4), ["a"], FULL, input=under(quota(replicas=1))),
    Case("cents", [priced("a", 150)], ask(4), ["a"] * 2, FULL, input=under(quota(centsPerHour=449))),
    Case("nothing at all", clusters(a=4), ask(1), [], FULL, input=under(quota(nodes=0))),
    Case(
        "another namespace is under none",
        clusters(a=4),
        ask(4),
        ["a"] * 4,
        input=under(quota("x", "other", nodes=1)),
    ),
    Case(
        "of several the one that is short decides",
        clusters(a=4),
        ask(4),
        ["a"] * 2,
        FULL,
        input=under(quota("wide", nodes=9), quota("narrow", replicas=2)),
    ),
    Case(
        "a pool that is not covered takes the rest",
        [one("a", pools=TWO)],
        ask(4),
        ["a"] * 3,
        FULL,
        input=under(quota(cel='node.name == "p0"', nodes=1), quota("all", nodes=3)),
    ),
    Case(
        "nodes that are there come before those to come, but for those that a quota closes",
        [one("a", pools=[*TWO[:1], TWO[1] | {"usable": {"nodes": 2, "toCome": 2}}])],
        ask(3),
        ["a"] * 3,
        input=under(quota(cel='node.name == "p0"', nodes=1)),
    ),
    Case(
        "an expression that fails on a pool does not cover it",
        clusters(a=4),
        ask(4),
        ["a"] * 4,
        input=under(quota(cel='node.attributes["x/y"] == "z"', nodes=1)),
    ),
    Case(
        "a device class that no pool publishes covers none",
        clusters(a=4),
        ask(4),
        ["a"] * 4,
        input=under(quota(kind="other.example.com", nodes=1)),
    ),
    Case(
        "one that is published does",
        clusters(a=4),
        ask(4),
        ["a"],
        FULL,
        input=under(quota(kind=build.GPU, nodes=1)),
    ),
    Case(
        "money goes to no pool without a price, and to the others",
        [priced("a", None), priced("b", 100)],
        ask(3),
        ["b"] * 3,
        input=under(quota(centsPerHour=1_000)),
    ),
    Case(
        "another deployment of the namespace counts",
        clusters(a=4),
        ask(2),
        ["a"],
        FULL,
        others=[stranger("x", "a")],
        input=under(quota(nodes=2)),
    ),
    Case(
        "so does one of another namespace under it",
        clusters(a=4),
        ask(2),
        ["a"],
        FULL,
        others=[stranger("x", "a", "other")],
        input=under(quota("team", NAMESPACE, "other", nodes=2)),
    ),
    Case(
        "one of a namespace that is not under it does not",
        clusters(a=4),
        ask(2),
        ["a"] * 2,
        others=[stranger("x", "a", "other")],
        input=under(quota(nodes=2)),
    ),
    Case(
        "what is being deleted counts until it is gone",
        clusters(a=4),
        ask(2),
        ["a"],
        FULL,
        others=[stranger("x", "a", terminating=True)],
        input=under(quota(nodes=2)),
    ),
    Case(
        "what is on a cluster that is not known counts",
        clusters(a=4),
        ask(2),
        ["a"],
        FULL,
        others=[stranger("x", "gone")],
        input=under(quota(nodes=2)),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_quota_lets_in(case: Case) -> None:
    case.check()


def test_what_runs_stays_when_the_quota_is_lowered() -> None:
    parent = ask(3)
    running = [build.replica(parent, "a", index, pools="p0", ready=True) for index in range(3)]
    world = World(parent, clusters(a=4), running, build.observed(*running), input=under(quota(nodes=1)))
    answer = run(world)
    assert len(answer.replicas) == 3
    assert answer.reason() == "ReplicasCreated"


def test_a_replacement_stands_in_for_what_it_replaces() -> None:
    parent = ask(2)
    running = [build.replica(parent, "a", index, pools="gone", ready=True) for index in range(2)]
    world = World(parent, clusters(a=4), running, build.observed(*running), input=under(quota(nodes=2)))
    assert len(run(world).decision.placed) == 2


def test_the_message_has_the_numbers() -> None:
    answer = run(World(ask(3), clusters(a=4, b=4), [], input=under(quota("team-a-h100", nodes=2))))
    assert answer.conditions["ReplicasScheduled"][2] == (
        "Scheduled 2 of 3 replicas; 0/2 clusters can host another: 2 quota exceeded "
        "(quota team-a-h100 holds 2 of 2 nodes, one more takes 1)"
    )


def test_deployments_that_are_placed_in_one_order_keep_to_it_together() -> None:
    first, second = called("first", 2, EARLY), called("second", 2, LATE)
    more = {"all-deployments": [first, second], "all-caches": []}
    config = {"coordination": "GlobalOrder", **under(quota(nodes=3))}
    placed = {}
    for parent in (first, second):
        answer = run(World(parent, clusters(a=9), [], input=config, more=more))
        placed[parent["metadata"]["name"]] = len(answer.replicas)
    assert placed == {"first": 2, "second": 1}


def starting(name: str, second: int, *, ready: bool = False) -> tuple[Plain, Plain]:
    """A deployment of one replica, and that replica on cluster a, created at a second."""
    parent = called(name, 1)
    replica = build.replica(parent, "a", 0, pools="p0", ready=ready)
    replica["metadata"]["creationTimestamp"] = f"2026-03-01T08:00:{second:02}Z"
    return parent, replica


PASSED: list[tuple[str, bool, Plain, str]] = [
    ("the youngest gives way", False, {"overcommit": "Yield"}, "second"),
    ("one that is Ready stays, and the other goes", True, {"overcommit": "Yield"}, "first"),
    ("without Yield nobody does", False, {}, ""),
    (
        "so it is beside a guarantee",
        False,
        {
            "overcommit": "Yield",
            "quotas": [{"name": "more", "namespaces": [NAMESPACE], "guaranteed": {"nodes": 9}}],
        },
        "second",
    ),
]


@pytest.mark.parametrize(("reason", "ready", "config", "leaves"), PASSED, ids=[row[0] for row in PASSED])
def test_two_that_passed_a_quota_at_once(reason: str, config: Plain, leaves: str, *, ready: bool) -> None:
    first, second = starting("first", 1), starting("second", 2, ready=ready)
    listed = [first[1], second[1]]
    for parent, replica in (first, second):
        settings = config | under(quota("few", nodes=1), *config.get("quotas", ()))
        answer = run(World(parent, clusters(a=4), listed, build.observed(replica), input=settings))
        gone = parent["metadata"]["name"] == leaves
        assert (not answer.replicas) == gone, reason
        events = [text for _, kind, text in answer.events if kind == "ReplicaOverQuota"]
        name = replica["metadata"]["name"]
        text = "Removing 1 replica, gave way where deployments passed a quota at once (quota few): a/"
        assert events == [f"{text}{name}"] * gone, reason


@pytest.mark.parametrize("where", ["a", "b"])
def test_what_stands_on_a_cluster_that_cannot_be_read_makes_nobody_give_way(where: str) -> None:
    """Nobody says whether its pool is one of those that the quota covers (Law 2)."""
    (_, older), (parent, younger) = starting("first", 1), starting("second", 2)
    for replica in (older, younger):
        replica["spec"]["clusterName"] = "b"
    younger["spec"]["clusterName"] = where
    fleet = clusters(a=4, b=4)
    settings = {"overcommit": "Yield"} | under(quota("few", nodes=1))
    world = World(parent, fleet, [older, younger], build.observed(younger), input=settings)
    assert not run(world).replicas, "where all can be read, the younger gives way"
    unreadable = [plain | {"spec": 7} if plain["metadata"]["name"] == "b" else plain for plain in fleet]
    world = World(parent, unreadable, [older, younger], build.observed(younger), input=settings)
    assert len(run(world).replicas) == 1


def test_a_deployment_under_a_quota_reads_all_replicas_until_its_own_were_ready() -> None:
    """Who passed it at once is seen of all that are under it."""
    for ready in (False, True):
        parent, replica = starting("first", 1, ready=ready)
        settings = {"overcommit": "Yield"} | under(quota("few", nodes=1))
        world = World(parent, None, None, build.observed(replica), input=settings)
        answer = run(world.but(more={"cluster/a": clusters(a=4), "own-replicas/first": [replica]}))
        names = {needed["name"] for needed in answer.requirements}
        assert ("fleet-replicas" in names) is not ready


BAD = [
    ({"atMost": {}}, "expected nodes, devices, replicas or centsPerHour"),
    ({"atMost": {"nodes": -1}}, "greater than or equal to 0"),
    ({"namespaces": []}, "at least 1 item"),
    ({"cel": "node.name =="}, "cel"),
    ({"cel": "node.name"}, "cel"),
    ({"atmost": {"nodes": 1}}, "no such field"),
]


@pytest.mark.parametrize(("change", "text"), BAD)
def test_a_bad_quota_is_an_invalid_input_and_keeps_what_runs(change: Plain, text: str) -> None:
    parent = ask(2)
    running = [build.replica(parent, "a", 0, pools="p0", ready=True)]
    config = under(quota(nodes=5) | change)
    answer = run(World(parent, clusters(a=4), running, build.observed(*running), input=config))
    assert answer.reason() == "InvalidInput"
    assert len(answer.replicas) == 1
    assert "quotas[0]" in answer.conditions["ReplicasScheduled"][2]


def test_two_of_one_name_and_published_charges_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        SchedulerConfig.parse(under(quota(nodes=1), quota(nodes=2)))
    with pytest.raises(ValueError, match="capacity: Published"):
        SchedulerConfig.parse({"capacity": "Published", **under(quota(nodes=1))})
    with pytest.raises(ValueError, match="quotas: the expressions of all quotas have 36432 characters"):
        SchedulerConfig.parse(
            under(*(quota(f"q{at}", cel="true && " * 1138 + "true", nodes=1) for at in range(4)))
        )


def _fleet(draw: random.Random) -> tuple[World, list[Plain], dict[str, int], dict[str, tuple[int, int]]]:
    """A small fleet of one pool for each cluster, with what every cluster has left."""
    nodes = {name: draw.randint(0, 4) for name in "abc"}
    held = {name: draw.randint(0, nodes[name]) for name in nodes}
    gpus = draw.choice((1, 8))
    owners = [draw.choice((NAMESPACE, "other", "third")) for _ in range(sum(held.values()))]
    places = [name for name in held for _ in range(held[name])]
    others = [
        stranger(f"s{at}", place, owner) for at, (place, owner) in enumerate(zip(places, owners, strict=True))
    ]
    quotas = []
    for at in range(draw.randint(1, 3)):
        namespaces = draw.sample([NAMESPACE, "other", "third"], draw.randint(1, 2))
        cel = draw.choice(("", "", 'node.name == "p0"', 'node.className == "h100"'))
        unit = draw.choice(("nodes", "devices", "replicas"))
        quotas.append(quota(f"q{at}", *namespaces, cel=cel, **{unit: draw.randint(0, 12)}))
    parent = ask(draw.randint(1, 6), gpus=gpus)
    world = World(parent, clusters(**nodes), others, input=under(*quotas))
    left = {name: nodes[name] - held[name] for name in nodes}
    return world, quotas, left, {"gpus": (gpus, 0)}


def expected(world: World, quotas: list[Plain], left: dict[str, int], gpus: int) -> int:
    """How many replicas are placed, by the sentences of docs/priority.md: every pool is alike."""
    most = min(world.deployment["spec"]["replicas"], sum(left.values()))
    for limit in quotas:
        covered = limit.get("cel", "") != 'node.className == "h100"'  # Pools here have no class.
        if NAMESPACE not in limit["namespaces"] or not covered:
            continue
        count = sum(
            replica["metadata"]["namespace"] in limit["namespaces"] for replica in world.replicas or ()
        )
        ((unit, at_most),) = limit["atMost"].items()
        share, held = (gpus, 8 * count) if unit == "devices" else (1, count)
        most = min(most, max(0, at_most - held) // share)
    return most


def test_as_many_are_placed_as_the_fleet_and_its_quotas_allow() -> None:
    for seed in seeds(200):
        world, quotas, left, facts = _fleet(random.Random(seed))
        placed = len(run(world).replicas)
        assert placed == expected(world, quotas, left, facts["gpus"][0]), f"seed {seed}"


# How much is held, by itself: what placements, shares and turns are decided by.

NOTES = {f"modelplane.ai/{key}": text for key, text in (("priority-class", "batch"), ("priority", "10"))}


def existing(pool: str = "p0", *, noted: bool = False, deleting: bool = False) -> ModelReplica:
    manifest = build.replica(ask(1), "a", 0, pools=pool, ready=True, terminating=deleting)
    manifest["metadata"]["annotations"] = NOTES if noted else {}
    return parse(PlainDocument(manifest))


def usage_of(*quotas: Plain) -> QuotaUsage:
    clusters = {"a": InferenceCluster.parse(build.cluster("a", TWO))}
    return QuotaUsage(map(Quota.parse, quotas), clusters)


def amounts(number: int) -> dict[str, int]:
    return {"nodes": number, "devices": 8 * number, "replicas": number, "cents_per_hour": 0}


COUNTED = [
    ("one without a class counts above all", existing(), 1, 1),
    ("one of a class counts up to it", existing(noted=True), 1, 0),
    ("one that is being deleted holds, and stays nowhere", existing(deleting=True), 1, 0),
    ("one on a pool that is not covered is nothing", existing("p1"), 0, 0),
]


@pytest.mark.parametrize(("reason", "held", "holds", "stays"), COUNTED, ids=[row[0] for row in COUNTED])
def test_what_an_existing_replica_counts_for(reason: str, held: ModelReplica, holds: int, stays: int) -> None:
    """A pool that states no price costs nothing where something stands on it already."""
    limits = {"nodes": 1, "devices": 8, "replicas": 1, "centsPerHour": 9}
    usage = usage_of(quota(cel='node.name == "p0"', **limits) | {"guaranteed": limits})
    (limit,) = usage.team(NAMESPACE).quotas
    assert usage.amounts(limit, "a", held) == (amounts(1) if holds else {}), reason
    before = usage.copy()
    usage.count(held, "a")
    together = before.copy()
    together.count_all([("a", held), ("a", held)])
    assert +together.held["team"] == +Counter(amounts(2 * holds)), reason
    assert +usage.held["team"] == +Counter(amounts(holds)), reason
    assert +usage.living(limit, 11) == +Counter(amounts(stays)), reason
    assert not before.held["team"], "a copy is what was counted before it"
    copied = usage.copy()
    copied.count(held, "a", -1)
    left = [*copied.held["team"].values(), *copied.living(limit).values()]
    assert not any(left), "what leaves counts no more"
    assert usage.held["team"] == (Counter(amounts(holds)) if holds else Counter())
    assert usage.limits(limit) == {"nodes": 1, "devices": 8, "replicas": 1, "cents_per_hour": 9}


def test_what_stands_on_a_cluster_that_is_not_known_counts_without_its_price() -> None:
    usage = usage_of(quota(nodes=1))
    (limit,) = usage.team(NAMESPACE).quotas
    assert usage.amounts(limit, "gone", existing()) == amounts(1)


def test_one_that_starts_takes_its_place_from_the_next_on_the_pools_that_are_covered() -> None:
    usage = usage_of(quota(cel='node.name == "p0"', nodes=1))
    pools = {"x": "p1", "y": "p0", "z": "p0"}
    starting = [("a", existing(pool)._replace(name=name)) for name, pool in pools.items()]
    assert usage.passed_by(starting) == {(NAMESPACE, "z"): "team"}


def test_what_stays_is_summed_over_classes() -> None:
    usage = usage_of(quota(nodes=9) | {"guaranteed": {"nodes": 9}})
    for held in (existing(), existing(noted=True), existing(noted=True), existing(deleting=True)):
        usage.count(held, "a")
    (limit,) = usage.team(NAMESPACE).quotas
    assert (usage.living(limit), usage.living(limit, 10)) == (Counter(nodes=3), Counter(nodes=3))


SHARES: list[tuple[str, list[dict[str, int]], bool | None]] = [
    ("within one", [{"nodes": 1}], False),
    ("beyond one", [{"nodes": 0}], True),
    ("beyond the first of two", [{"nodes": 0}, {"nodes": 1}], True),
    ("beyond the last of two", [{"nodes": 1}, {"nodes": 0}], True),
    ("what it does not hold is within nothing", [{"nodes": 1, "devices": 0}], False),
    ("money, where no price is stated", [{"centsPerHour": 900}], None),
]


@pytest.mark.parametrize(("reason", "guarantees", "borrowed"), SHARES, ids=[row[0] for row in SHARES])
def test_how_one_more_stands_to_what_is_guaranteed(
    reason: str, guarantees: list[dict[str, int]], *, borrowed: bool | None
) -> None:
    usage = usage_of(
        *(
            {"name": f"q{index}", "namespaces": [NAMESPACE], "guaranteed": guaranteed}
            for index, guaranteed in enumerate(guarantees)
        )
    )
    share = usage.share(NAMESPACE, "a", QuotaHolding({"p0": 1}, {}))
    assert (share and share.borrowed) is borrowed, reason


def test_a_pool_without_a_price_is_named_as_what_a_quota_of_money_lacks() -> None:
    usage = usage_of(quota(centsPerHour=900))
    ((shortage, pools),) = usage.shortages(NAMESPACE, "a", QuotaHolding({"p0": 1}, {"p0": 8}))
    rejection = shortage.rejection
    wanted = (Reason.QuotaExceeded, "quota team: a pool states no price")
    assert (rejection.reason, rejection.detail) == wanted
    assert pools == {"p0", "p1"}
    both = usage_of(quota(nodes=0), quota("x", NAMESPACE, nodes=0))
    short = both.shortages(NAMESPACE, "a", QuotaHolding({"p0": 1}, {}))
    assert [shortage.quota for shortage, _ in short] == ["team", "x"]
    elsewhere = usage_of(quota(cel='node.name == "p0"', centsPerHour=900))
    assert not [*elsewhere.shortages(NAMESPACE, "a", QuotaHolding({"p1": 1}, {"p1": 8}))]


# What quotas cost, and that nothing of it shows.

UNDER: list[tuple[str, Plain]] = [
    ("all", {}),
    ("p0", {"cel": 'node.name == "p0"'}),
    ("all but p0", {"cel": 'node.name != "p0"'}),
    ("what fails", {"cel": "node.attributes.x == 1"}),
    ("those of a class", {"deviceClassName": build.GPU}),
    ("those of another class", {"deviceClassName": "other"}),
]


def drawn(draw: random.Random, name: str) -> Quota:
    bounds = draw.sample(["nodes", "devices", "replicas", "centsPerHour"], 2)
    fields = draw.choice((["atMost"], ["guaranteed"], ["atMost", "guaranteed"]))
    amounts = {unit: draw.choice((0, 2, 10, 80)) for unit in bounds}
    where = draw.choice(UNDER)[1]
    names = draw.choice((["x"], ["x", "y"], ["y", "z"]))
    return Quota.parse({"name": name, "namespaces": names, **where, **dict.fromkeys(fields, amounts)})


@dataclass
class Alone:
    """One quota by itself, by the rules: all that was counted is summed up anew."""

    quota: Quota
    clusters: dict[str, InferenceCluster]
    counted: list[tuple[int, str, str, QuotaHolding, int | None]]

    def worth(self, cluster: str, held: QuotaHolding) -> dict[str, int | None]:
        there, kind, program = self.clusters[cluster], self.quota.device_class_name, self.quota.program
        pools = there.pools if kind in (None, build.GPU) else ()
        covered = {pool.name for pool in pools if program is None or program.evaluate(pool.node).matched}
        nodes = {pool: number for pool, number in held.nodes.items() if pool in covered and number}
        devices = {pool: held.devices[pool] for pool in nodes}
        sums = (sum(nodes.values()), sum(devices.values()), 1, price_of(there, nodes, devices))
        return dict(zip(UNITS, sums, strict=True)) if nodes else {}

    def sums(self, *, living: bool, above: int | None = None) -> Counter[str]:
        total: Counter[str] = Counter()
        for sign, namespace, cluster, held, value in self.counted:
            counts = not living or (value is not None and (above is None or value >= above))
            if counts and namespace in self.quota.namespaces:
                for unit, number in self.worth(cluster, held).items():
                    total[unit] += sign * (number or 0)
        return total

    def short(self, cluster: str, held: QuotaHolding) -> str | None:
        worth, total = self.worth(cluster, held), self.sums(living=False)
        for unit in UNITS if worth else ():
            most, needs = getattr(self.quota.at_most, unit, None), worth[unit]
            if most is not None and (needs is None or (needs and total[unit] + needs > most)):
                return f"{self.quota.name} {unit} {total[unit]} {most} {needs}"
        return None

    def borrowed(self, cluster: str, held: QuotaHolding, above: int | None) -> bool | None:
        worth, total, limits = (
            self.worth(cluster, held),
            self.sums(living=True, above=above),
            QuotaUsage.limits,
        )
        if not worth or any(worth[unit] is None for unit in limits(self.quota)):
            return None
        return any(total[unit] + (worth[unit] or 0) > limit for unit, limit in limits(self.quota).items())


def test_quotas_are_counted_together_as_if_each_were_alone() -> None:
    """And where nothing is said to have changed, what was said of a holding holds."""
    for seed in seeds(150):
        draw = random.Random(seed)
        pools = [build.pool(f"p{at}", 9) for at in range(3)]
        for pool in pools[: draw.randint(0, 3)]:
            pool["attributes"] = {NODE: {"int": draw.randint(0, 3)}}
        clusters = {name: InferenceCluster.parse(one(name, pools=pools)) for name in "ab"}
        quotas, counted = [drawn(draw, f"q{at}") for at in range(6)], list[Any]()
        alone = [Alone(quota, clusters, counted) for quota in quotas]
        usage, said = QuotaUsage(quotas, clusters), dict[Any, Any]()
        for _ in range(25):
            nodes = {pool: draw.randint(0, 2) for pool in draw.sample(("p0", "p1", "p2"), 2)}
            namespace, cluster, above = draw.choice("xyz"), draw.choice("ab"), draw.choice((None, 1, 2))
            if said and draw.random() < 0.7:  # Something that was asked before.
                namespace, cluster, *held = draw.choice([*said])[1]
                nodes = dict(held)
            holding = QuotaHolding(nodes, {pool: 8 * number for pool, number in nodes.items()})
            under_it = [one for one in alone if namespace in one.quota.namespaces]
            shortages = [*usage.shortages(namespace, cluster, holding)]
            short = [" ".join(map(str, shortage)) for shortage, _ in shortages]
            assert short == [text for one in under_it if (text := one.short(cluster, holding))], (
                f"seed {seed}"
            )
            key, outcome = (
                (namespace, cluster, *nodes.items()),
                {*chain(*(covered for _, covered in shortages))},
            )
            assert said.setdefault((usage.version, key), outcome) == outcome, f"seed {seed}"
            guaranteed = [one for one in under_it if one.quota.guaranteed is not None]
            shares = [one.borrowed(cluster, holding, above) for one in guaranteed]
            share = usage.share(namespace, cluster, holding, above)
            wanted = None if {*shares} <= {None} else True in shares
            assert (share and share.borrowed) is wanted, f"seed {seed}"
            change = (1, namespace, cluster, holding, draw.choice((None, 1, 2)))
            change = (-1, *draw.choice(counted)[1:]) if counted and draw.random() < 0.2 else change
            usage.add(*change[1:4], change[0], living=change[4])
            counted.append(change)
            if draw.random() < 0.1:
                usage, said = usage.copy(), {}


def test_a_replica_is_priced_once_whatever_the_number_of_quotas(monkeypatch: pytest.MonkeyPatch) -> None:
    priced_at: list[object] = []

    def price(*arguments: Any) -> int | None:
        priced_at.append(arguments)
        return price_of(*arguments)

    monkeypatch.setattr(quota_rules, "price_of", price)
    usage = usage_of(*(quota(f"q{at}", cel=f'node.name != "{at % 2}"', nodes=9) for at in range(500)))
    for _ in range(30):
        usage.count(existing(), "a")
    assert len(priced_at) == 30
    usage.count_all([("a", existing())] * 30)
    assert len(priced_at) == 31, "equal ones are priced together"
    assert {held["nodes"] for held in usage.held.values()} == {60}
    assert len({id(held) for held in usage.held.values()}) == 2, "quotas of one scope share a counter"


def test_a_quota_with_room_asks_of_a_cluster_only_what_changed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    shortages = QuotaUsage.shortages

    def counting(usage: QuotaUsage, namespace: str, cluster: str, holding: QuotaHolding) -> Any:
        asked.append(cluster)
        return shortages(usage, namespace, cluster, holding)

    monkeypatch.setattr(QuotaUsage, "shortages", counting)
    fleet = clusters(**{f"c{at}": 2 for at in range(20)})
    assert len(run(World(ask(30), fleet, input=under(quota(nodes=90)))).replicas) == 30
    assert len(asked) <= 20 + 30
    del asked[:]
    answer = run(World(ask(30), fleet, input=under(quota(nodes=10))))
    assert len(answer.replicas) == 10
    assert len(asked) <= 3 * 20 + 30


def test_an_expression_that_costs_too_much_covers_every_pool() -> None:
    """Its part of a call's units shrinks as the fleet grows, and that must not lift a limit."""
    dear = 'lists.range(400).all(x, lists.range(400).all(y, x + y >= -1)) && node.name == "p0"'
    usage = usage_of(quota("dear", cel=dear, nodes=0), quota("cheap", cel='node.name == "p0"', nodes=0))
    pools = {limit.name: usage.pools(limit, "a") for limit in usage.team(NAMESPACE).quotas}
    assert pools == {"dear": {"p0", "p1"}, "cheap": {"p0"}}


def test_what_a_cluster_publishes_uses_up_the_quotas_of_teams_that_have_replicas_there() -> None:
    """Its class, attributes and price decide whether these count, and how dear they are."""
    fleet = [priced("a", 10**12), priced("b", 10)]
    for cluster in fleet:
        cluster["status"]["gpuPools"][0]["className"] = "h100"
    for limited in (quota(centsPerHour=100), quota(cel='node.className == "h100"', centsPerHour=100)):
        there, nowhere = (
            run(World(ask(1), fleet, on, input=under(limited))) for on in ([stranger("x", "a")], [])
        )
        assert (where(there), where(nowhere)) == ([], ["b"])
    counted = quota(replicas=2)
    assert where(run(World(ask(1), fleet, [stranger("x", "a")], input=under(counted)))) != []

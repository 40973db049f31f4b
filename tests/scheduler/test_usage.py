"""Quotas are counted as a pass goes on; here against sums that are made afresh of all that is held."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from function.api import replica as replica_api
from function.api.inputs import Quota
from function.api.replica import GuaranteeShare, ModelReplica, PriorityNotes
from function.boundary import PlainDocument
from function.cel.library.charges import LIMIT
from function.scheduler import quota as quotas_of
from function.scheduler.price import devices_of, price_of
from function.scheduler.quota import FIRST, UNITS, QuotaHolding, QuotaShortage, QuotaUsage
from tests.support import build
from tests.support.cases import ask, one
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]
NODE, DEVICE = "modelplane.ai/centsPerNodeHour", "modelplane.ai/centsPerDeviceHour"
ERRS = "int(node.name) == 1"
NIC = build.nic(2, claim="DRA")
WRITTEN = {"nodes": "nodes", "devices": "devices", "replicas": "replicas", "centsPerHour": "cents_per_hour"}


def fleet() -> Any:
    """Two clusters; a pool of each states no price, and some have no GPUs or no cards."""

    def pool(name: str, devices: list[Plain], **prices: int) -> Plain:
        return build.pool(name, 9, devices) | {
            "attributes": {of: {"int": cents} for of, cents in prices.items()}
        }

    pools = [
        pool("p0", [build.gpu(8)], **{NODE: 5, DEVICE: 2}),
        pool("p1", [build.gpu(8), NIC], **{DEVICE: 3}),
        pool("p2", [build.gpu(8, claim="Synthetic"), NIC], **{NODE: 0}),
        pool("p3", [build.gpu(8)]),
    ]
    made = [one("a", pools=pools), one("b", pools=[pools[3], pools[0]])]
    return decide(World(ask(), made)).inputs.fleet.clusters


CLUSTERS = fleet()


def amounts(draw: random.Random, least: int, most: int) -> Plain:
    chosen = draw.sample(list(WRITTEN), draw.choice((1, 1, 2, 4)))
    return {unit: draw.randrange(least, most) * (9 if unit == "centsPerHour" else 1) for unit in chosen}


def quota(draw: random.Random, name: str) -> Quota:
    written: Plain = {"name": name, "namespaces": draw.sample(["x", "y"], draw.choice((1, 2)))}
    if draw.random() < 0.4:
        written["deviceClassName"] = draw.choice((build.GPU, "rdma.dra.net", "other"))
    if draw.random() < 0.3:
        written["cel"] = draw.choice(('node.name == "p0"', 'node.name != "p1"', ERRS))
    kinds = draw.choice((["atMost"], ["guaranteed"], ["atMost", "guaranteed"]))
    bounds = {"atMost": (3, 20), "guaranteed": (0, 3)}
    return Quota.parse(written | {kind: amounts(draw, *bounds[kind]) for kind in kinds})


@dataclass(frozen=True)
class Held:
    """A replica that is counted, and where."""

    cluster: str
    replica: ModelReplica


def held_replica(draw: random.Random, number: int) -> Held:
    pools = draw.sample(["p0", "p1", "p2", "p3"], 2)
    engines = [
        build.engine(
            f"e{at}", [build.member(devices=[build.request("gpu", draw.choice((1, 2)))])], copies=copies
        )
        for at, copies in enumerate(draw.choice(((1,), (2,), (1, 1))))
    ]
    made = build.replica(
        ask(engines=engines), draw.choice(("a", "a", "b", "gone")), number, pools=pools[: len(engines)]
    )
    replica = replica_api.parse(PlainDocument(made))
    value = draw.choice(("", "0", "7", "9", None))
    return Held(
        replica.cluster,
        replica._replace(
            namespace=draw.choice("xyz"),
            deleting=draw.random() < 0.2,
            notes=None if value is None else PriorityNotes("some", value),
        ),
    )


def covered(of: Quota, cluster: str, replica: ModelReplica) -> list[str]:
    """The pools on which a replica holds something that a quota counts."""
    pools = [pool for pool, number in replica.nodes.items() if number]
    if cluster not in CLUSTERS:
        return pools
    counted = []
    for pool in (pool for pool in CLUSTERS[cluster].pools if pool.name in pools):
        classes = [device.device_class_name for device in pool.devices or () if device.claimable]
        text = {None: True, ERRS: False, 'node.name == "p0"': pool.name == "p0"}.get(
            of.cel, pool.name != "p1"
        )
        if text and of.device_class_name in (None, *classes):
            counted.append(pool.name)
    return counted


def counts(of: Quota, cluster: str, replica: ModelReplica) -> dict[str, int | None]:
    """How much a replica counts for, by unit; nothing where the quota covers none of its pools."""
    pools = covered(of, cluster, replica)
    if not pools:
        return {}
    nodes, devices = (
        {pool: of_pool.get(pool, 0) for pool in pools} for of_pool in (replica.nodes, devices_of(replica))
    )
    cents = price_of(CLUSTERS[cluster], nodes, devices) if cluster in CLUSTERS else 0
    return {
        "nodes": sum(nodes.values()),
        "devices": sum(devices.values()),
        "replicas": 1,
        "cents_per_hour": cents,
    }


def stated(of: Any) -> Iterator[tuple[str, int]]:
    """The units that are bounded, in order."""
    return ((unit, getattr(of, unit)) for unit in UNITS if of is not None and getattr(of, unit) is not None)


def total(of: Quota, unit: str, holders: list[Held]) -> int:
    mine = (held for held in holders if held.replica.namespace in of.namespaces)
    return sum(counts(of, held.cluster, held.replica).get(unit) or 0 for held in mine)


def staying(holders: list[Held], above: int | None) -> list[Held]:
    """Those that are not being deleted, of classes of a value and above; an unknown one is above all."""

    def value(held: Held) -> int:
        notes = held.replica.notes
        return FIRST if notes is None or notes.value is None else notes.value

    return [held for held in holders if not held.replica.deleting and (above is None or value(held) >= above)]


def short_of(under: list[Quota], holders: list[Held], asking: Held) -> list[Any]:
    """Every quota without room for one more, in order, by the first unit that it lacks."""
    lacking = []
    for of in under:
        needs = counts(of, asking.cluster, asking.replica)
        for unit, most in stated(of.at_most) if needs else ():
            number, has = needs[unit], total(of, unit, holders)
            if number is None or (number and has + number > most):
                pools = (
                    {pool.name for pool in CLUSTERS[asking.cluster].pools}
                    if asking.cluster in CLUSTERS
                    else set()
                )
                every = asking.replica._replace(nodes=dict.fromkeys(pools, 1))
                lacking.append(
                    (
                        QuotaShortage(of.name, unit, has, most, number),
                        frozenset(covered(of, asking.cluster, every)),
                    )
                )
                break
    return lacking


def share_of(under: list[Quota], holders: list[Held], asking: Held) -> GuaranteeShare | None:
    """Say if one more would be borrowed; None where no guarantee covers it."""
    borrowed, any_covers = False, False
    for of in (of for of in under if of.guaranteed):
        needs = counts(of, asking.cluster, asking.replica)
        bounds = dict(stated(of.guaranteed))
        if needs and not ("cents_per_hour" in bounds and needs["cents_per_hour"] is None):
            any_covers = True
            borrowed |= any(
                total(of, unit, holders) + (needs[unit] or 0) > most for unit, most in bounds.items()
            )
    names = frozenset(of.name for of in under if of.guaranteed)
    return GuaranteeShare(names, borrowed) if any_covers else None


def held_by(usage: QuotaUsage, quotas: list[Quota], holders: list[Held]) -> None:
    """Compare all that is said of what is held with sums made afresh."""
    for of in quotas:
        for unit, _ in stated(of.at_most):
            assert usage.held[of.name][unit] == total(of, unit, holders)
        for above in (None, 0, 8, 9, 10):
            sums = usage.living(of, above)
            for unit, _ in stated(of.guaranteed):
                assert sums[unit] == total(of, unit, staying(holders, above))


def test_what_is_held_of_quotas_is_what_sums_made_afresh_say() -> None:
    """Replicas come and go; what was said to be within, or short, holds as long as the version does."""
    short = borrowed = 0
    for seed in range(25):
        draw = random.Random(seed)
        quotas = [quota(draw, f"q{at}") for at in range(draw.randrange(1, 6))]
        twin = draw.choice(quotas)
        quotas.append(
            twin.model_copy(update={"name": "twin", "at_most": draw.choice(quotas).at_most or twin.at_most})
        )
        holders = draw.choices([held_replica(draw, number) for number in range(4)], k=draw.randrange(7))
        usage, waiting = (
            QuotaUsage(quotas, CLUSTERS),
            [held_replica(draw, 100 + number) for number in range(6)],
        )
        usage.count_all((held.cluster, held.replica) for held in holders)
        said: dict[Any, bool] = {}
        for step in range(14):
            held_by(usage, quotas, holders)
            for at, asking in enumerate(waiting):
                namespace = asking.replica.namespace
                under = [of for of in quotas if namespace in of.namespaces]
                holding = QuotaHolding(asking.replica.nodes, devices_of(asking.replica))
                expected = short_of(under, holders, asking) if asking.cluster in CLUSTERS else None
                if expected is not None:
                    assert said.get((at, usage.version), not expected) is not bool(expected), (seed, step)
                    assert list(usage.shortages(namespace, asking.cluster, holding)) == expected, (seed, step)
                    said[at, usage.version] = not expected
                    short += bool(expected)
                for above in (None, 8):
                    share = usage.share(namespace, asking.cluster, holding, above)
                    assert share == share_of(under, staying(holders, above), asking), (seed, step)
                    borrowed += bool(share and share.borrowed)
                team, guarantees = usage.team(namespace), [of for of in under if of.guaranteed]
                assert (team.quotas, team.guarantees) == (under, guarantees)
                for of in quotas:
                    made = {
                        unit: number or 0
                        for unit, number in counts(of, asking.cluster, asking.replica).items()
                    }
                    assert usage.amounts(of, asking.cluster, asking.replica) == made
                    assert QuotaUsage.limits(of) == dict(stated(of.guaranteed))
            if holders and draw.random() < 0.4:
                left = holders.pop(draw.randrange(len(holders)))
                usage.count(left.replica, left.cluster, -1)
            else:
                holders.append(draw.choice([held_replica(draw, step), *waiting]))
                usage.count(holders[-1].replica, holders[-1].cluster)
            if draw.random() < 0.2:
                other, emptied = usage.copy(), usage.copy(empty=True)
                other.count(waiting[0].replica, waiting[0].cluster)
                held_by(other, quotas, [*holders, waiting[0]])
                held_by(emptied, quotas, [])
    assert min(short, borrowed) > 100, "else the test would prove nothing"


def test_who_never_was_ready_leaves_where_a_quota_is_passed_the_most_senior_first() -> None:
    """A price that nobody knows makes nobody leave: it is asked of new replicas alone."""
    for seed in range(40):
        draw = random.Random(seed)
        quotas = [quota(draw, f"q{at}") for at in range(3)]
        starting = [held_replica(draw, number) for number in range(9)]
        starting = [held for held in starting if held.cluster in CLUSTERS]
        kept: list[Held] = []
        leaving: dict[Any, str] = {}
        for held in starting:
            under = [of for of in quotas if held.replica.namespace in of.namespaces]
            passed = [short.quota for short, _ in short_of(under, kept, held) if short.needs is not None]
            if passed:
                leaving[held.replica.namespace, held.replica.name] = passed[0]
            else:
                kept.append(held)
        usage = QuotaUsage(quotas, CLUSTERS)
        assert usage.passed_by([(held.cluster, held.replica) for held in starting]) == leaving, seed
        held_by(usage, quotas, kept)


def limited(**more: Any) -> Quota:
    return Quota.parse({"name": "q", "namespaces": ["x"]} | more)


def test_the_version_stays_while_what_was_within_is_within() -> None:
    """Up to three more of one node have room; the third that is counted leaves none for two."""
    usage = QuotaUsage([limited(atMost={"nodes": 5})], CLUSTERS)
    holding, two = QuotaHolding({"p0": 1}, {}), QuotaHolding({"p0": 2}, {})
    usage.add("x", "a", two, living=None)
    assert (
        usage.version,
        list(usage.shortages("x", "a", two)),
        list(usage.shortages("x", "a", holding)),
    ) == (0, [], [])
    usage.add("x", "a", holding, living=None)
    assert usage.version == 0, "two still have room"
    usage.add("x", "a", holding, living=None)
    assert usage.version == 1, "and have none any more"
    usage.add("x", "a", holding, living=None)
    assert usage.version == 1, "which was said before"
    usage.add("x", "a", holding, -1, living=None)
    assert usage.version == 2, "what is given back may let others in"


def test_who_asks_for_one_is_remembered_too_and_nodes_claim_no_devices_by_themselves() -> None:
    usage = QuotaUsage([limited(atMost={"nodes": 2, "devices": 0})], CLUSTERS)
    holding = QuotaHolding({"p0": 1}, {})
    for version, short in ((0, 0), (0, 0), (1, 1)):
        assert (usage.version, len(list(usage.shortages("x", "a", holding)))) == (version, short)
        usage.add("x", "a", holding, living=None)


def test_what_costs_nothing_is_within_what_is_guaranteed() -> None:
    usage = QuotaUsage([limited(guaranteed={"centsPerHour": 0})], CLUSTERS)
    shares = [usage.share("x", "a", QuotaHolding({pool: 1}, {})) for pool in ("p2", "p0", "p3")]
    names = frozenset("q")
    assert shares == [GuaranteeShare(names), GuaranteeShare(names, borrowed=True), None]


@pytest.mark.parametrize(
    ("share", "covers", "reason"),
    [
        (1, True, "it takes more than its part: a fleet that grows lifts no limit"),
        (100_000, False, "it has its part"),
    ],
)
def test_an_expression_that_takes_too_much_covers_the_pool(
    monkeypatch: pytest.MonkeyPatch,
    share: int,
    covers: bool,  # noqa: FBT001
    reason: str,
) -> None:
    digits = [*range(30, 40)]
    monkeypatch.setattr(quotas_of, "LEAST_PART", share)
    monkeypatch.setattr(quotas_of, "EVALUATION_UNITS", 1)
    of = limited(cel=f"{digits}.exists(a, {digits}.exists(b, a * b == 7))", atMost={"nodes": 1})
    assert bool(QuotaUsage([of], CLUSTERS).pools(of, "a")) is covers, reason


def test_units_are_shared_by_expressions_on_all_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas_of, "EVALUATION_UNITS", 12_001)
    texts = ["true", "false", None]
    made = [limited(name=f"q{at}", atMost={"nodes": 1}) for at in range(3)]
    made = [of.model_copy(update={"cel": text}) for of, text in zip(made, texts, strict=True)]
    assert QuotaUsage(made, CLUSTERS)._units_each == 12_001 // (2 * 6)
    assert QuotaUsage(made[2:], CLUSTERS)._units_each == 12_001
    monkeypatch.setattr(quotas_of, "EVALUATION_UNITS", 1)
    assert QuotaUsage(made, CLUSTERS)._units_each == quotas_of.LEAST_PART
    monkeypatch.setattr(quotas_of, "EVALUATION_UNITS", 10**12)
    assert QuotaUsage(made, {})._units_each == LIMIT

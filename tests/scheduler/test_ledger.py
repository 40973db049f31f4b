"""The ledger against what adding up afresh says, whatever was opened, charged, given back or copied."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from function.api import InferenceCluster, ModelReplica
from function.api.inputs import Quota
from function.api.ownership import OwnReplica
from function.api.replica import StampedEngine, StampedMember, StampedRequest, nodes_by_pool
from function.boundary import PlainDocument
from function.scheduler.budget import PACKING, Budget
from function.scheduler.device_accounting import (
    Demand,
    DeviceCapacity,
    PoolDevices,
    minus,
    stamped_gangs,
    total,
)
from function.scheduler.ledger import (
    Ledger,
    NodeCapacity,
    Overcommitted,
    ReplicaCounts,
    Rooms,
    may_yield,
    overcommitted_pools,
    yielding,
)
from function.scheduler.quota import QuotaUsage
from tests.support import build, scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.scheduler.device_accounting import Gangs

Plain = dict[str, Any]
PoolKey = tuple[str, str]


@dataclass
class Sums:
    """What stands on a fleet and what was charged beside it, to be added up whenever it is asked for."""

    clusters: dict[str, InferenceCluster]
    standing: list[tuple[str, ModelReplica]] = field(default_factory=list)
    charged: list[tuple[str, Mapping[str, Demand]]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def copy(self) -> Sums:
        return Sums(self.clusters, list(self.standing), list(self.charged), Counter(self.counts))

    def demands(self, replica: ModelReplica) -> dict[str, Demand]:
        """What a replica takes of each pool; its pods only count where some pool of the fleet has devices."""
        apart = [
            pool.name
            for pool in self.clusters[replica.cluster].pools
            if pool.across_nodes and pool.accounting == "Device"
        ]
        some = any(pool.accounting == "Device" for one in self.clusters.values() for pool in one.pools)
        gangs = stamped_gangs(replica.engines, apart=apart) if some else {}
        return {name: Demand(nodes, gangs.get(name, ())) for name, nodes in replica.nodes.items()}

    def check(self, ledger: Ledger) -> None:
        """Hold everything that a ledger says of its pools against the sums."""
        over = [key for key in sorted(self.keys) if self._over(*key)]
        assert ledger.overcommitted_pools() == over
        for name, cluster in self.clusters.items():
            for pool in cluster.pools:
                self._check_pool(ledger, name, pool.name)
            free = tuple(self.free(name, pool.name) for pool in cluster.pools)
            assert ledger.capacities(cluster) == tuple(ledger.rooms(cluster).values()) == free
            assert list(ledger.rooms(cluster)) == [(name, pool.name) for pool in cluster.pools]
            came = tuple(
                capacity.grown(-pool.to_come) for capacity, pool in zip(free, cluster.pools, strict=True)
            )
            assert ledger.present(cluster) == (came if cluster.nodes_to_come else None)
            here = [one for on, one in self.standing if on == name]
            assert ledger.living(name) == [one for one in here if not one.deleting]
            assert ledger.living(name, deleting=True) == [one for one in here if one.deleting]
            assert ledger.counts[name] == self.counts[name]
        assert set(ledger.holding_clusters) == {on for on, _ in self.standing}
        nodes, devices, levels, quotas = ledger.levels("ml")
        assert nodes == {key: self._free_nodes(*key) for key in self.keys}
        assert devices == {key: self.free(*key) for key in self.keys if self.by_devices(*key)}
        assert (levels, quotas) == (over, [])

    @property
    def keys(self) -> list[PoolKey]:
        return [(name, pool.name) for name, cluster in self.clusters.items() for pool in cluster.pools]

    def by_devices(self, cluster: str, pool: str) -> bool:
        return self.clusters[cluster].by_name[pool].accounting == "Device"

    def _taken(self, cluster: str, pool: str) -> list[Demand]:
        standing = [(on, self.demands(one)) for on, one in self.standing]
        both = [demands for on, demands in [*standing, *self.charged] if on == cluster]
        return [demands[pool] for demands in both if pool in demands]

    def _free_nodes(self, cluster: str, pool: str) -> int:
        made = self.clusters[cluster].by_name[pool]
        return made.nodes - made.unusable - sum(taken.nodes for taken in self._taken(cluster, pool))

    def _capacity(self, cluster: str, pool: str, unusable: int, gangs: list[Gangs]) -> DeviceCapacity:
        made = self.clusters[cluster].by_name[pool]
        return DeviceCapacity(made.nodes - unusable, PoolDevices(made), total(gangs))

    def free(self, cluster: str, pool: str, unusable: int | None = None) -> NodeCapacity | DeviceCapacity:
        made = self.clusters[cluster].by_name[pool]
        lost = made.unusable if unusable is None else unusable
        if self.by_devices(cluster, pool):
            return self._capacity(cluster, pool, lost, [taken.gangs for taken in self._taken(cluster, pool)])
        return NodeCapacity(self._free_nodes(cluster, pool) + made.unusable - lost)

    def _holding(self, cluster: str, pool: str) -> list[ModelReplica]:
        return [one for on, one in self.standing if on == cluster and pool in one.nodes]

    def _over(self, cluster: str, pool: str) -> bool:
        living = [one for one in self._holding(cluster, pool) if not one.deleting]
        if not self.by_devices(cluster, pool):
            return sum(one.nodes[pool] for one in living) > self.clusters[cluster].by_name[pool].nodes
        gangs = [self.demands(one)[pool].gangs for one in living]
        return self._capacity(cluster, pool, 0, gangs).stranded(Budget(PACKING)) is not None

    def _check_pool(self, ledger: Ledger, cluster: str, pool: str) -> None:
        made, holding = self.clusters[cluster].by_name[pool], self._holding(cluster, pool)
        assert ledger.capacity(cluster, pool) == self.free(cluster, pool)
        assert ledger.declared(cluster, pool) == self.free(cluster, pool, unusable=0)
        empty = Sums(self.clusters).free(cluster, pool, unusable=0)
        assert ledger.initial(cluster, pool) == empty
        assert ledger.by_devices(cluster, pool) is self.by_devices(cluster, pool)
        assert ledger.overcommitted(cluster, pool) is self._over(cluster, pool)
        assert ledger.holding(cluster, pool) == holding
        held: Counter[str] = Counter()
        for one in holding:
            held[one.holder] += one.nodes[pool]
        holders = ledger.holders(cluster, pool)
        assert list(holders.items()) == sorted(held.items(), key=lambda item: (-item[1], item[0]))
        nodes = sum(one.nodes[pool] for one in holding if not one.deleting)
        said = Overcommitted(cluster, pool, nodes, made.nodes, by_devices=self.by_devices(cluster, pool))
        assert ledger.overcommitment(cluster, pool) == said


class Drawn:
    """A random fleet, and replicas for it."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        accounting = self.draw.choice((["Node"], ["Device"], ["Node", "Device"]))
        self.clusters = {name: self._cluster(name, accounting) for name in "abc"[: self.draw.randint(1, 3)]}
        self._names = 0

    def _cluster(self, name: str, accounting: list[str]) -> InferenceCluster:
        pools = []
        for at in range(self.draw.randint(1, 3)):
            nodes = self.draw.randint(0, 4)
            devices = [build.gpu(self.draw.choice((6, 8)))]
            pool = build.pool(f"p{at}", nodes, devices) | {"accounting": self.draw.choice(accounting)}
            if self.draw.random() < 0.4:
                pool["usable"] = {"nodes": self.draw.randint(0, nodes), "toCome": self.draw.randint(0, 2)}
            pools.append(pool)
        made = build.cluster(name, pools)
        for declared in made["spec"]["nodePools"]:
            if self.draw.random() < 0.5:
                declared["acrossNodes"] = "Required"
        return InferenceCluster.parse(made)

    def replica(self) -> ModelReplica:
        """A replica of one or two engines, of which some stand on a pool that is not published."""
        cluster = self.draw.choice([*self.clusters])
        names = [*(pool.name for pool in self.clusters[cluster].pools), "gone"]
        engines = tuple(self._engine(names) for _ in range(self.draw.randint(1, 2)))
        self._names += 1
        return ModelReplica(
            name=f"m-{self._names}",
            namespace=self.draw.choice(("ml", "team")),
            deployment=self.draw.choice(("m", "n", "")),
            cluster=cluster,
            deleting=self.draw.random() < 0.2,
            engines=engines,
            nodes=nodes_by_pool(engines),
        )

    def _engine(self, names: list[str]) -> StampedEngine:
        claims = tuple(
            StampedRequest("gpu", build.GPU, self.draw.choice((1, 4, 5, 8)))
            for _ in range(self.draw.choice((0, 1, 1, 1)))
        )
        leader = StampedMember("Leader", self.draw.choice(names), 1, claims)
        worker = StampedMember("Worker", self.draw.choice(names), self.draw.randint(1, 2), claims)
        members = (leader, worker) if self.draw.random() < 0.4 else (leader,)
        return StampedEngine("e", self.draw.randint(1, 2), members)


def step(drawn: Drawn, ledger: Ledger, sums: Sums, touched: list[str]) -> None:
    """Change both in one way, on one of the clusters that may be touched."""
    draw, replica = drawn.draw, drawn.replica()
    on = replica.cluster
    demands = sums.demands(replica)
    match draw.choice(("open", "open", "open", "close", "charge", "release", "count", "occupy", "vacate")):
        case "open" if on in touched:
            ledger.open(replica, on)
            sums.standing += [(on, replica)] if replica.nodes else []
        case "close" if leaving := [entry for entry in sums.standing if entry[0] in touched][:2]:
            ledger.close([one for _, one in leaving])
            sums.standing = [entry for entry in sums.standing if entry not in leaving]
        case "charge" | "occupy" as how:
            ledger.charge(on, demands) if how == "charge" else ledger.occupy(replica, on)
            sums.charged.append((on, demands))
            assert ledger.journal[-1] == on
        case "release" | "vacate" as how:
            ledger.release(on, demands) if how == "release" else ledger.vacate(replica, on)
            back = {name: Demand(-one.nodes, minus(one.gangs)) for name, one in demands.items()}
            sums.charged.append((on, back))
            assert ledger.journal[-1] == on
        case "count":
            number = draw.choice((1, 1, 2, -1))
            ledger.count(on, number) if number != 1 else ledger.count(on)
            sums.counts[on] += number
            assert ledger.journal[-1] == on


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_the_ledger_says_what_adding_up_says(number: int) -> None:
    """A fork takes what is opened on its touched clusters alone; the ledger before stays as it was."""
    for seed in scale.batch(number, quick=120):
        drawn = Drawn(seed)
        ledger, sums, touched = Ledger(drawn.clusters.values()), Sums(drawn.clusters), [*drawn.clusters]
        before: list[tuple[Ledger, Sums]] = []
        for at in range(12):
            step(drawn, ledger, sums, touched)
            assert ledger.demands(one := drawn.replica()) == sums.demands(one)
            if at % 3 == 0:
                sums.check(ledger)
            if at in (4, 8):
                before.append((ledger, sums))
                sums = sums.copy()
                if drawn.draw.random() < 0.5:
                    ledger = ledger.copy()
                else:
                    touched = drawn.draw.sample([*drawn.clusters], drawn.draw.randint(0, len(drawn.clusters)))
                    ledger = ledger.fork(touched)
                    sums.counts.clear()
        for said, expected in (*before, (ledger, sums)):
            expected.check(said)


GPUS_5 = (StampedRequest("gpu", build.GPU, 5),)


def standing(name: str, cluster: str, *pools: str, **more: Any) -> ModelReplica:
    """A replica with a pod of five devices on a node of each pool."""
    engines = tuple(StampedEngine("e", 1, (StampedMember("Standalone", pool, 1, GPUS_5),)) for pool in pools)
    return ModelReplica(name, "ml", cluster=cluster, engines=engines, nodes=nodes_by_pool(engines), **more)


def fleet(**pools: dict[str, tuple[int, str]]) -> dict[str, InferenceCluster]:
    """Clusters by name, and of each its pools with nodes and accounting."""
    return {
        name: InferenceCluster.parse(
            build.cluster(
                name, [build.pool(pool, nodes) | {"accounting": how} for pool, (nodes, how) in held.items()]
            )
        )
        for name, held in pools.items()
    }


TWO = fleet(a={"p": (1, "Node"), "q": (1, "Device")}, b={"p": (1, "Node")})


@pytest.mark.parametrize(
    ("without", "expected", "reason"),
    [
        ((), ["a1", "a3", "b1"], "the youngest by name of each pool, and by seniority of all"),
        (("a",), ["b1"], "a cluster that says itself who gives way is left out"),
        (("a", "b"), [], "so are all"),
    ],
)
def test_who_gives_way_in_the_fleet(without: tuple[str, ...], expected: list[str], reason: str) -> None:
    ledger = Ledger(TWO.values())
    for one in (
        *(standing(name, "a", "p") for name in ("a0", "a1")),
        *(standing(name, "a", "q") for name in ("a2", "a3")),
        *(standing(name, "b", "p") for name in ("b0", "b1")),
    ):
        ledger.open(one, one.cluster)
    assert [one.replica.name for one in yielding(ledger, without=without)] == expected, reason
    assert {one.pool for one in yielding(ledger)} == {"p", "q"}


@pytest.mark.parametrize(
    ("more", "may", "reason"),
    [
        ({}, True, "nothing says that it was Ready"),
        ({"ready": False}, True, "it is not Ready yet"),
        ({"ready": True}, False, "it is Ready"),
        ({"ready": False, "was_ready": True}, False, "it was Ready once"),
        ({"whole": False}, False, "it cannot be read"),
    ],
)
def test_who_may_be_asked_to_give_way(more: Plain, *, may: bool, reason: str) -> None:
    assert may_yield(standing("m", "a", "p", **more)) is may, reason


def test_rooms_charge_what_they_watch_and_nothing_else() -> None:
    ledger = Ledger(TWO.values())
    rooms = ledger.rooms(TWO["a"])
    budgets = {key: Budget(PACKING) for key in rooms}
    both, second = standing("m", "a", "p", "q"), standing("n", "a", "q")
    assert rooms.lacking("a", both, budgets) is None
    rooms.occupy("a", both)
    rooms.occupy("b", standing("o", "b", "p"))
    assert set(rooms) == {("a", "p"), ("a", "q")}
    assert (rooms["a", "p"], rooms["a", "q"].free_nodes) == (NodeCapacity(0), 0)
    assert (rooms.lacking("a", both, budgets), rooms.lacking("a", second, budgets)) == ("p", "q")
    assert rooms.lacking("b", standing("o", "b", "p"), budgets) is None, "nobody watches it"
    rooms.occupy("a", both, -1)
    assert rooms == Rooms(ledger, {key: ledger.initial(*key) for key in rooms})
    assert rooms.lacking("a", both, budgets) is None


@pytest.mark.parametrize("free", [-1, 0, 2])
@pytest.mark.parametrize("asked", [0, 1, 2, 3])
def test_a_pool_of_whole_nodes_has_room_for_as_many_as_are_free(free: int, asked: int) -> None:
    pool, demand, budget = NodeCapacity(free), Demand(asked), Budget(0)
    assert pool.charged(demand) == pool.grown(-asked) == (free - asked,)
    assert pool.fits(demand, budget) is (asked <= free)
    assert pool.take(demand, budget) == (pool.charged(demand) if asked <= free else None)
    assert pool.shortage(demand, budget) == (None if asked <= free else (asked, free))


@pytest.mark.parametrize(
    ("apart", "over", "reason"),
    [
        (False, False, "two pods of one device share the node"),
        (True, True, "kept on different nodes, one of them has none"),
    ],
)
def test_what_strands_a_pod_goes_by_where_the_pods_of_an_engine_may_be(
    *, apart: bool, over: bool, reason: str
) -> None:
    made = build.cluster("a", [build.pool("p", 1) | {"accounting": "Device"}, build.pool("q", 1)])
    made["spec"]["nodePools"][0] |= {"acrossNodes": "Required"} if apart else {}
    made["spec"]["nodePools"][1] |= {} if apart else {"acrossNodes": "Required"}
    ledger = Ledger([InferenceCluster.parse(made)])
    engine = StampedEngine(
        "e", 2, (StampedMember("Standalone", "p", 1, (StampedRequest("gpu", build.GPU, 1),)),)
    )
    ledger.open(ModelReplica("m", "ml", cluster="a", engines=(engine,), nodes={"p": 2}), "a")
    assert ledger.overcommitted("a", "p") is over, reason


def test_who_holds_most_of_a_pool_comes_first() -> None:
    ledger = Ledger(TWO.values())
    held = [("m", 1, "x"), ("n", 2, "y"), ("o", 2, "x"), ("p", 2, "")]
    for name, nodes, deployment in held:
        ledger.open(ModelReplica(name, "ml", deployment=deployment, cluster="b", nodes={"p": nodes}), "b")
    assert list(ledger.holders("b", "p").items()) == [("ml/x", 3), ("ml/p", 2), ("ml/y", 2)]


def test_what_quotas_limit_is_counted_with_what_is_held() -> None:
    """From then on: what stands is counted at once, and what comes and goes as it does."""
    ledger = Ledger(TWO.values())
    kept, gone, new = (standing(name, "a", "p", "q") for name in ("kept", "gone", "new"))
    for one in (kept, gone):
        ledger.open(one, "a")
    assert ledger.levels("ml")[-1] == []
    stated = {"name": "team", "namespaces": ["ml"], "cel": 'node.name == "p"', "atMost": {"nodes": 9}}
    quota = Quota.parse(stated)
    ledger.limit(QuotaUsage([quota], TWO))
    assert ledger.levels("ml")[-1] == [(quota, {"nodes": 2})]
    assert ledger.levels("other")[-1] == []
    before = ledger.copy()
    ledger.occupy(new, "a")
    ledger.occupy(new, "a")
    assert ledger.levels("ml")[-1] == [(quota, {"nodes": 4})]
    ledger.vacate(new, "a")
    ledger.close([gone])
    assert ledger.levels("ml")[-1] == [(quota, {"nodes": 2})]
    ledger.close([kept])
    assert (ledger.levels("ml")[-1], before.levels("ml")[-1]) == (
        [(quota, {"nodes": 1})],
        [(quota, {"nodes": 2})],
    )


def test_a_pool_that_is_not_published_has_nothing_and_is_charged_nothing() -> None:
    ledger = Ledger(TWO.values())
    ledger.charge("a", {"gone": Demand(2)})
    ledger.open(standing("m", "a", "gone"), "a")
    assert ledger.capacity("a", "gone") == ledger.initial("a", "gone") == NodeCapacity(0)
    assert ledger.declared("a", "gone") == NodeCapacity(0)
    assert (ledger.overcommitted("a", "gone"), ledger.overcommitted_pools()) == (False, [])
    assert ledger.overcommitment("a", "gone") == Overcommitted("a", "gone", 1, 0)


def ours(replica: ModelReplica, *, terminating: bool = False) -> OwnReplica:
    """A replica of this deployment, whose key cannot be read."""
    return OwnReplica("", None, replica, PlainDocument({}), observed=True, terminating=terminating)


@pytest.mark.parametrize(
    ("ours_on", "publishing", "expected", "reason"),
    [
        (
            [("m", "b", "p", False), ("m", "a", "q", False), ("n", "a", "q", False)],
            "",
            ["a/q holds 2 pods, and some packing on its 1 node strands one", "b/p holds 2 of 1 node"],
            "each pool once, in order",
        ),
        ([("m", "b", "p", True), ("m", "a", "p", False)], "", [], "one that leaves, and a pool with room"),
        ([("m", "c", "p", False)], "", [], "c says so, but is not asked"),
        ([("m", "c", "p", False)], "c", ["c/p holds more than its 2 nodes"], "c is taken at its word"),
        (
            [("m", "c", "r", False)],
            "c",
            ["c/r holds more than its 0 nodes"],
            "r is no longer declared",
        ),
        ([("m", "c", "q", False)], "c", [], "it does not say so of q"),
        ([("m", "b", "p", False)], "bc", ["b/p holds 2 of 1 node"], "what is known is said before it"),
    ],
)
def test_which_pools_of_ours_are_overcommitted(
    ours_on: list[tuple[str, str, str, bool]], publishing: str, expected: list[str], reason: str
) -> None:
    stated = [build.pool(name, nodes) | {"overcommitted": over} for name, nodes, over in STATED]
    made = build.cluster("c", stated)
    made["spec"]["nodePools"].pop()
    clusters = {**TWO, "c": InferenceCluster.parse(made)}
    ledger = Ledger(clusters.values())
    for one in (*(standing(name, "a", "q") for name in "xy"), *(standing(name, "b", "p") for name in "xy")):
        ledger.open(one, one.cluster)
    held = [ours(standing(name, on, pool), terminating=leaves) for name, on, pool, leaves in ours_on]
    said = overcommitted_pools(held, ledger, {name: clusters[name] for name in publishing})
    assert [str(one) for one in said] == expected, reason
    assert {one.nodes for one in said} <= {0 if one.published else 2 for one in said}


STATED = (("p", 2, True), ("q", 2, False), ("r", 3, True))


def test_counts_of_one_version_are_equal() -> None:
    counts = ReplicaCounts(["a", "a", "b"])
    other = counts.copy()
    assert (other.version, other.key) == (counts.version, frozenset({("a", 2), ("b", 1)}))
    counts.add("b", -1)
    counts.add("c")
    assert (counts.key, other["b"]) == (frozenset({("a", 2), ("c", 1)}), 1)
    changed = counts.version
    counts.add("a", 0)
    assert len({counts.version, changed, other.version, ReplicaCounts().version}) == 4
    assert counts.by({"a": "x", "c": "x", "d": "y", "b": "y"}) == {"x": 3, "y": 0}
    assert counts.by({"c": "z"}) == {"z": 1}, "a cluster of no group is counted nowhere"


def test_counting_for_another_deployment_names_the_clusters_of_both() -> None:
    ledger = Ledger(TWO.values())
    ledger.count("a")
    before = ledger.counts
    read = len(ledger.journal)
    assert ledger.count_for(ReplicaCounts(["b", "b"])) is before
    assert (ledger.counts["a"], ledger.counts["b"], sorted(ledger.journal[read:])) == (0, 2, ["a", "b"])
    assert ledger.count_for(before)["b"] == 2
    assert (ledger.counts["a"], sorted(ledger.journal[read:])) == (1, ["a", "a", "b", "b"])


def test_what_is_opened_is_in_the_journal_where_devices_are_charged() -> None:
    """Elsewhere a ledger is opened before any memo reads it."""
    ledger = Ledger(TWO.values())
    one = standing("m", "a", "p")
    ledger.open(one, "a")
    ledger.open(ModelReplica("none", cluster="a"), "a")
    copy = ledger.copy()
    ledger.close([one, ModelReplica("none", cluster="a")])
    assert (ledger.journal, copy.journal) == (["a", "a"], ["a"])

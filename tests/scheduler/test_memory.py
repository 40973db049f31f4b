"""Memory changes no answer: it holds what would be found out now, which is found out no oftener."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from function.api import replica as replica_api
from function.api.reasons import Reason, Rejection
from function.boundary import PlainDocument
from function.scheduler import memo
from function.scheduler.device_accounting import Demand
from function.scheduler.engine_options import Candidate, ClusterFit
from function.scheduler.ledger import Ledger, NodeCapacity
from function.scheduler.memo import (
    EasySearches,
    FitMemo,
    FitMemos,
    HardSearches,
    MatchMemo,
    PlacementMemo,
    Scored,
    Shared,
    fit_memo,
)
from function.scheduler.selectors import programs_of
from tests.support import build
from tests.support.cases import ask, clusters, one, single
from tests.support.scarce import decide
from tests.support.world import World

Plain = dict[str, Any]
NAMES = ("a", "b", "c", "d")
SHAPES = tuple(cast("Any", SimpleNamespace(name=name)) for name in ("", "other"))


class Fleet:
    """A ledger and quotas that change, and what would be found out about its clusters at any time."""

    def __init__(self, *, local: bool, limited: bool) -> None:
        self.clusters = list(
            decide(World(ask(), clusters(**dict.fromkeys(NAMES, 9)))).inputs.fleet.clusters.values()
        )
        self.ledger, self.local = Ledger(self.clusters), local
        self.quotas: Any = SimpleNamespace(version=3) if limited else None
        self.memo = PlacementMemo(self.ledger, self.quotas, local=local)
        self.outcomes: dict[Any, Any] = {}
        """On what rested what was found out last."""

    def change(self, draw: random.Random) -> None:
        """Place a replica, or take one away; what quotas let in may change with it."""
        name, sign = draw.choice(NAMES), draw.choice((1, -1))
        self.ledger.charge(name, {"p0": Demand(sign)})
        if draw.random() < 0.7:
            self.ledger.count(name, sign)
        if self.quotas and draw.random() < 0.3:
            self.quotas.version += 1

    def here(self, cluster: Any) -> Any:
        counts = self.ledger.counts
        return self.ledger.capacity(cluster.name, "p0"), counts[cluster.name]

    def limits(self) -> Any:
        return self.quotas and self.quotas.version

    def everywhere(self) -> Any:
        """What depends on placements elsewhere, where anything does."""
        return None if self.local else self.ledger.counts.key

    def find(self, what: str, of: Any, cluster: Any, answer: Any, before: Any = None) -> Any:
        """Nothing is found out twice while nothing changed that it may rest on."""
        journal = self.ledger.journal
        rests: Any = max((at for at, name in enumerate(journal) if name == cluster.name), default=-1)
        if what == "score":
            rests = rests, self.limits(), None if self.local else len(journal)
        if what == "why":
            rests = rests, self.ledger.counts.key if self.quotas or not self.local else None
        earlier, last = self.outcomes.get((what, of, cluster.name), (None, None))
        assert earlier != rests
        if what == "score":
            same = earlier is not None and earlier[:2] == rests[:2]
            assert before is (last if same else None), "what was scored before is handed on while it holds"
        self.outcomes[what, of, cluster.name] = rests, answer
        return answer

    def ask(self, draw: random.Random) -> None:
        """Ask for everything, and compare with what is found out now."""
        shape, cluster = draw.choice(SHAPES), draw.choice(self.clusters)
        fitted: Any = (shape.name, self.here(cluster))
        read: Any = self.memo.fitted(shape, cluster, lambda *of: self.find("fit", of[0].name, of[1], fitted))
        assert read == fitted
        made: Any = None if self.here(cluster)[1] % 2 else fitted
        assert self.memo.made(shape, cluster, lambda *of: self.find("room", of[0].name, of[1], made)) == made
        shapes = draw.choice((SHAPES, SHAPES[:1]))
        expected = [self._scored(asked, shapes) for asked in self.clusters]
        scored = self.memo.scored(
            shapes,
            self.clusters,
            lambda *of: self.find("score", len(of[1]), of[0], self._scored(*of[:2]), of[2]),
        )
        assert Counter(scored) == Counter(filter(None, expected))
        gated = {"gone": Rejection(Reason.ClusterNotReady)}
        now = {asked.name: self._rejected(asked) for asked in self.clusters}
        said = self.memo.rejections(
            gated, self.clusters, lambda asked: self.find("why", "", asked, self._rejected(asked))
        )
        assert said == gated | {name: rejection for name, rejection in now.items() if rejection}
        assert list(said) == sorted(said)

    def _scored(self, cluster: Any, shapes: Any) -> Scored | None:
        local = (tuple(shape.name for shape in shapes), self.here(cluster), self.limits())
        if self.here(cluster)[1] == 1:
            return None
        return Scored((self.everywhere(),), cast("Candidate", (cluster.name, *local)))

    def _rejected(self, cluster: Any) -> Rejection | None:
        if self.here(cluster)[1] == 2:
            return None
        anywhere = self.ledger.counts.key if self.quotas else self.everywhere()
        return Rejection(
            Reason.MaxReplicasPerCluster, detail=str((self.here(cluster), anywhere and sorted(anywhere)))
        )


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("local", [False, True])
def test_what_is_known_of_a_cluster_is_what_would_be_found_out_now(local: bool, limited: bool) -> None:  # noqa: FBT001
    for seed in range(15):
        draw, made = random.Random(seed), Fleet(local=local, limited=limited)
        for _ in range(30):
            for _ in range(draw.randrange(3)):
                made.change(draw)
            made.ask(draw)


# Searches, and what fits


def some_clusters(*gpus: int) -> list[Any]:
    """Clusters of one pool whose nodes have so many GPUs."""
    fleet = [one(f"c{at}", pools=[build.pool("p0", 2, [build.gpu(count)])]) for at, count in enumerate(gpus)]
    return list(decide(World(ask(), fleet)).inputs.fleet.clusters.values())


def test_a_hard_search_is_begun_again_only_with_more_steps_than_it_ran_out_of() -> None:
    """And only for the same shape on equal pools with the same free capacity."""
    first, equal, other = some_clusters(8, 8, 4)
    fit, shape = ClusterFit("", ()), ClusterFit("other", ())
    free, less = (NodeCapacity(2),), (NodeCapacity(1),)
    searches = HardSearches()
    assert searches.ended(first, fit, free, 9) is None
    searches.put(first, fit, free, 9, Reason.SearchBudgetExceeded)
    for steps, expected in ((8, Reason.SearchBudgetExceeded), (9, Reason.SearchBudgetExceeded), (10, None)):
        assert searches.ended(first, fit, free, steps) is expected
    searches.put(first, fit, free, 10, Reason.JointCapacity)
    assert searches.ended(first, fit, free, 10_000) is Reason.JointCapacity, "it came to an end"
    assert searches.ended(equal, fit, free, 0) is Reason.JointCapacity, "equal pools"
    assert searches.ended(other, fit, free, 0) is None, "other pools"
    assert searches.ended(first, fit, less, 0) is None, "less is free"
    assert searches.ended(first, shape, free, 0) is None, "another shape"


def filled() -> tuple[FitMemo, list[dict[Any, Any]]]:
    """A memo with one thing in each of its maps, and the maps."""
    made = FitMemo()
    maps = [value for value in vars(made).values() if isinstance(value, dict)]
    for number, held in enumerate(maps):
        held[number] = number
    return made, maps


def test_a_copy_remembers_the_same_and_goes_its_own_way() -> None:
    memory, maps = filled()
    assert memory.entries == len(maps) > 1
    copied = memory.copy()
    assert [value for value in vars(copied).values() if isinstance(value, dict)] == maps
    assert copied.numbers is memory.numbers, "no kind of row is numbered twice"
    copied.kinds["more"] = 8
    assert (memory.entries, copied.entries) == (len(maps), len(maps) + 1)


def test_what_a_hard_search_found_ends_with_the_pass() -> None:
    lasting = FitMemo()
    pool, equal, other = (cluster.pools[0] for cluster in some_clusters(8, 8, 4))
    matches = MatchMemo(lasting)
    assert (matches.fits, matches.hard("of", pool)) == (lasting, None)
    matches.note_hard("of", pool, "found")
    passing = matches.fits
    assert passing is not lasting
    passing.kinds["more"] = 1
    matches.note_hard("other", pool, "else")
    matches.end_with_pass()
    assert matches.fits is passing, "what was noted since stays for the pass"
    assert not lasting.entries, "and does not outlive it"
    assert [matches.hard(of, on) for of in ("of", "other") for on in (pool, equal, other)] == [
        *("found", "found", None),
        *("else", "else", None),
    ]


def test_what_fits_is_remembered_for_each_budget_and_release_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployment = decide(World(ask(), clusters(a=1))).inputs.deployment
    deployment.memos.clear()
    first = fit_memo(deployment, 9, "1.34")
    others = [fit_memo(deployment, 8, "1.34"), fit_memo(deployment, 9, "1.35")]
    assert fit_memo(deployment, 9, "1.34") is first
    assert len({id(kept) for kept in (first, *others)}) == 3
    monkeypatch.setattr(memo, "MOST", 2)
    first.kinds |= {"one": 1, "other": 2}
    assert fit_memo(deployment, 9, "1.34") is first, "as many as are kept"
    first.kinds["more"] = 3
    deployment.memos[EasySearches] = EasySearches()
    begun = fit_memo(deployment, 9, "1.34")
    assert begun is not first
    assert set(deployment.memos) == {FitMemos}, "what else is remembered may hold devices that are gone"
    assert deployment.memos[FitMemos] == {(9, "1.34"): begun}


def test_a_deployment_is_charged_for_what_is_remembered_of_it() -> None:
    """For the device lists of pools that it was matched on, also as it was stamped, and for its selectors."""
    wanted = ask(2, engines=[single(build.request("gpu", 1))])
    fleet = [
        one(name, pools=[build.pool("p0", 2, [build.gpu(count)])]) for name, count in (("a", 2), ("b", 4))
    ]
    inputs = decide(World(wanted, fleet)).inputs
    [memory] = inputs.deployment.memo_of(FitMemos).values()
    assert memory.options == 0
    memory.options = 3
    (looked, verdict), *others = memory.matches.items()
    memory.matches = dict(others)
    memory.stamped[looked[0], (), looked[1]] = verdict
    memory.matches[None, ((None, ""), None)] = verdict
    extent, *parts = memo.parts_of(inputs.deployment)
    assert (cast("Any", extent).owner, extent.size) == (memory, 800 * memory.entries + 1_400 * 3)
    lists = [cluster.pools[0].shared for cluster in inputs.fleet.clusters.values()]
    programs = list(programs_of(inputs.deployment))
    assert programs
    assert Counter(map(id, parts)) == Counter(map(id, [*lists, *programs]))


# Deployments of one run


def test_what_is_read_of_a_fleet_is_read_again_under_another_key_only() -> None:
    shared, reads = Shared(), []

    def read() -> int:
        reads.append(1)
        return len(reads)

    assert [shared.once(key, read) for key in ("x", "x", "y", "y", "x", None, None)] == [1, 1, 2, 2, 3, 4, 4]


def test_a_list_is_read_on_where_it_goes_on_and_is_read_alike() -> None:
    fleet = decide(World(ask(), clusters(a=1))).inputs.fleet.clusters
    documents = [PlainDocument(build.replica(ask(), "a", at)) for at in range(4)]
    shared, parsed = Shared(), Counter[int]()

    def parse(document: Any) -> Any:
        parsed[documents.index(document)] += 1
        return replica_api.parse(document)

    first = shared.listing(tuple(documents[:2]), fleet, parse, of="one way")
    assert shared.listing(tuple(documents), fleet, parse, of="one way") is first
    assert parsed == dict.fromkeys(range(4), 1), "each is read once"
    assert len(first.replicas) == 4
    for asked, of, reason in (
        (documents[1:], "one way", "another beginning"),
        (documents[1:], "another way", "read otherwise"),
    ):
        parsed.clear()
        begun = shared.listing(tuple(asked), fleet, parse, of=of)
        assert begun is not first, reason
        assert begun.replicas == [replica_api.parse(document) for document in asked], reason
        assert parsed.total() == len(asked), reason
        assert shared.listing(tuple(asked), fleet, parse, of=of) is begun, "and that is read on from now on"
    other = decide(World(ask(), clusters(a=2))).inputs.fleet.clusters
    assert shared.listing(tuple(documents[1:]), other, parse, of="another way") is not begun


HIGH = {"searchBudget": 9_000}
TEMPLATE = build.engine(members=[build.member(devices=[build.request("gpu", 8)], image="other:1")])
ASKING = [
    (ask(3), {}, True, "how many it wants"),
    (ask(engines=[TEMPLATE]), {}, True, "its images"),
    (ask(alternatives=[{"name": "x", "engines": [TEMPLATE]}]), {}, False, "an alternative more"),
    (ask(selector={"matchLabels": {"region": "us"}}), {}, True, "it wants other clusters"),
    (ask(gpus=7), {}, False, "it asks for other devices"),
    (ask(placement={"strategy": "BinPack"}), {}, False, "it searches otherwise"),
    (ask(placement={"maxReplicasPerCluster": 1}), {}, True, "another policy"),
    (ask(), HIGH, False, "it has more steps"),
    (ask(), {"celVersion": "1.37"}, False, "another release reads its selectors"),
    (
        ask(engines=[single(build.request("gpu", 8, "device.driver =="))]),
        {},
        False,
        "nobody knows what it reads",
    ),
]


@pytest.mark.parametrize(("asked", "given", "same", "reason"), ASKING, ids=[row[-1] for row in ASKING])
def test_who_asks_for_the_same_shares_what_was_found_out(
    asked: Plain,
    given: Plain,
    same: bool,  # noqa: FBT001
    reason: str,
) -> None:
    shared = Shared()
    joined = []
    for deployment, more in ((ask(), {}), (asked, given), (asked, given)):
        inputs = decide(World(deployment, clusters(a=1), input=more)).inputs
        kept = dict(inputs.deployment.memos)
        shared.join(inputs)
        memos = [inputs.deployment.memos[kind] for kind in (FitMemos, EasySearches)]
        assert [type(held) for held in memos] == [FitMemos, EasySearches]
        assert not any(held is before for held in memos for before in kept.values()), "none of its own stays"
        joined.append(memos)
    for first, second, third in zip(*joined, strict=True):
        assert (first is second) is same, reason
        assert (second is third) is not bool(inputs.selectors.invalid), "one that is not readable is alone"


def test_alternatives_share_whatever_their_images_are() -> None:
    shared, joined = Shared(), []
    for image in ("one:1", "other:1"):
        engine = build.engine(members=[build.member(devices=[build.request("gpu", 8)], image=image)])
        inputs = decide(World(ask(alternatives=[{"name": "x", "engines": [engine]}]), clusters(a=1))).inputs
        shared.join(inputs)
        joined.append(inputs.deployment.memos[FitMemos])
    assert joined[0] is joined[1]

"""A pass reads which replicas are in service, whom a deployment sees, what is gone, and what time it is."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from function.api import replica as replica_api
from function.api.names import Identity
from function.api.ownership import OwnReplica
from function.api.workload import serving_digest
from function.boundary import PlainDocument, Resolution
from function.scheduler import scheduling_input, selectors
from function.scheduler.scheduling_input import (
    Evacuation,
    Fleet,
    Listing,
    OthersListed,
    Peers,
    Serving,
    Unshared,
    evacuation,
    suspects,
    unready_since,
)
from function.scheduler.selectors import Share
from function.wire import write
from function.wire.request import WireDocument
from tests.support import build
from tests.support.cases import ask, one, single
from tests.support.scarce import decide
from tests.support.world import World

if TYPE_CHECKING:
    from function.scheduler.ledger import Ledger

Plain = dict[str, Any]
PARENT = build.deployment()
SPEC: Plain = build.replica(PARENT, "a", 0)["spec"]
RUNS, OTHER = serving_digest(SPEC), "0123456789abcdef"


def running(made: Plain, *, observed: bool = True, terminating: bool = False) -> OwnReplica:
    document = WireDocument(write.struct(made))
    identity = Identity(made["spec"]["clusterName"], 0)
    return OwnReplica("replica-a-0", identity, replica_api.parse(document), document, observed, terminating)


def reporting(*, ready: bool | None = True, generation: Any = None, seen: Any = None, **status: Any) -> Plain:
    """A replica with a status; `seen` is the generation that its Ready is of."""
    made = build.replica(PARENT, "a", 0, ready=ready)
    if generation is not None:
        made["metadata"]["generation"] = generation
    if seen is not None:
        made["status"]["conditions"][0]["observedGeneration"] = seen
    made.setdefault("status", {}).update(status)
    return made


def engines(*counts: tuple[Any, Any]) -> list[Plain]:
    return [{"name": f"e{at}", "available": a, "updated": u} for at, (a, u) in enumerate(counts)]


REPORTS = [
    (reporting(), True, False, "without a digest Ready counts"),
    (reporting(ready=None), True, False, "nothing says otherwise"),
    (reporting(servingDigest=RUNS), True, False, "its pods run its spec"),
    (reporting(servingDigest=OTHER), False, False, "they run another"),
    (reporting(servingDigest=""), True, False, "an empty digest is none"),
    (reporting(servingDigest=7, engines=[]), True, False, "a number is none either"),
    (reporting(engines=engines((1, 0))), False, False, "a platform with engines and no digest does not know"),
    (reporting(engines=engines((1, 0)), servingDigest=RUNS), True, False, "with one it does"),
    (reporting(engines=engines((1, 1)), servingDigest=OTHER), False, True, "some serve, some are updated"),
    (reporting(engines=engines((1, 1))), False, True, "also where nobody knows what they run"),
    (reporting(engines=engines((1, 1), (1, 0)), servingDigest=OTHER), False, False, "not in every engine"),
    (reporting(engines=engines((0, 1)), servingDigest=OTHER), False, False, "nothing serves"),
    (reporting(engines=engines(("x", 1)), servingDigest=OTHER), False, False, "no number is none"),
    (reporting(engines=engines((2, 1)), servingDigest=RUNS), True, False, "it is not in doubt"),
    (reporting(engines=engines((1, 1)), servingDigest=OTHER, ready=False), False, False, "it is lost"),
    (reporting(generation=2, seen=1), False, False, "its Ready is of the spec of before"),
    (reporting(generation=2, seen=1, engines=engines((1, 1))), False, False, "and so are its counts"),
    (reporting(generation=2, seen=2), True, False, "it is of this spec"),
    (reporting(generation=2, seen=0), True, False, "generations begin at 1: 0 says nothing"),
    (reporting(generation=1, seen=2), True, False, "a later one than the object has says nothing"),
    (reporting(generation="2", seen=1), True, False, "a generation that is no number says nothing"),
    (reporting(generation=2, seen="1"), True, False, "nor does what is observed"),
]


def test_a_status_says_whether_pods_run_the_spec() -> None:
    for made, runs, half, reason in REPORTS:
        serving, replica = Serving(by_template=True), running(made)
        assert serving.runs_its_template(replica) is runs, reason
        assert serving.half_updated(replica) is half, reason
        assert serving(replica) is (runs and replica.replica.ready is True), reason
        assert Serving(by_template=False).runs_its_template(replica), "nobody asks where nothing is staged"


def test_replicas_are_told_apart() -> None:
    """A status is read once for each, whatever is asked of it first."""
    half = running(reporting(engines=engines((1, 1)), servingDigest=OTHER))
    none = replace(running(reporting(engines=engines((1, 0)), servingDigest=OTHER)), key="none")
    runs = replace(running(reporting(servingDigest=RUNS)), key="runs")
    for order in permutations((half, none, runs)):
        for first, second in permutations((Serving.half_updated, Serving.runs_its_template)):
            serving = Serving(by_template=True)
            said = {
                (ask.__name__, replica.key)
                for ask in (first, second)
                for replica in order
                if ask(serving, replica)
            }
            assert said == {("half_updated", half.key), ("runs_its_template", "runs")}


def test_only_the_condition_ready_says_which_generation_was_looked_at() -> None:
    made = reporting(generation=2, seen=2)
    made["status"]["conditions"].insert(0, build.condition("Synced", status=True) | {"observedGeneration": 1})
    assert Serving(by_template=True).runs_its_template(running(made))


def test_a_status_that_cannot_be_read_says_nothing() -> None:
    class Broken(PlainDocument):
        def project(self, _shape: Any) -> Any:
            raise ValueError

    made = reporting(servingDigest=OTHER)
    broken = OwnReplica("k", None, replica_api.parse(PlainDocument(made)), Broken(made), True, False)
    assert Serving(by_template=True)(broken), "then Ready counts"
    assert unready_since(broken) is None


@pytest.mark.parametrize(
    ("ready", "observed", "in_service", "seems", "lost", "reason"),
    [
        (True, True, True, True, False, "Ready"),
        (True, False, False, True, False, "it is only listed: it may be gone"),
        (False, True, False, False, True, "not Ready"),
        (None, True, False, False, True, "it does not say"),
    ],
)
def test_who_is_in_service(
    ready: bool | None,  # noqa: FBT001
    observed: bool,  # noqa: FBT001
    in_service: bool,  # noqa: FBT001
    seems: bool,  # noqa: FBT001
    lost: bool,  # noqa: FBT001
    reason: str,
) -> None:
    serving, replica = Serving(by_template=False), running(reporting(ready=ready), observed=observed)
    said = (serving(replica), serving.seems_to(replica), serving.lost(replica))
    assert said == (in_service, seems, lost), reason


# The replicas of others


CLUSTERS = ("a", "b", "c")
POOLS = [(cluster, pool) for cluster in (*CLUSTERS, "gone") for pool in ("p0", "p1")]


def fleet_of(nodes: int) -> Any:
    pools = [build.pool("p0", nodes), build.pool("p1", 2) | {"accounting": "Device"}]
    made = World(ask(), [one(name, pools=pools) for name in CLUSTERS])
    return decide(made).inputs.fleet.clusters


def said_by(ledger: Ledger) -> Any:
    """Everything that a ledger says, in any order of the replicas."""
    return (
        [ledger.capacity(*key) for key in POOLS],
        [ledger.holders(*key) for key in POOLS],
        [sorted(replica.uid for replica in ledger.living(cluster)) for cluster in (*CLUSTERS, "gone")],
        ledger.overcommitted_pools(),
    )


def replica_of(draw: random.Random, number: int) -> Plain:
    parent = build.deployment(draw.choice("xyz"))
    cluster, pool = draw.choice((*CLUSTERS, "gone")), draw.choice(("p0", "p1"))
    return build.replica(parent, cluster, number, pools=pool, name=f"r{draw.randrange(4)}-{number % 3}")


def test_a_deployment_sees_of_a_shared_list_what_it_would_see_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Deployments ask one after the other about a list that grows, each without its own, and charge them."""
    for seed in range(12):
        draw = random.Random(seed)
        clusters, elsewhere = fleet_of(3), fleet_of(4)
        documents = tuple(PlainDocument(replica_of(draw, number)) for number in range(14))
        replicas = [replica_api.parse(document) for document in documents]
        names = sorted({replica.name for replica in replicas} | {"none"})
        listing, parsed, forks = Listing(clusters), [], []

        def parse(document: Any, parsed: list[Any] = parsed) -> Any:
            parsed.append(document)
            return replica_api.parse(document)

        length, seen = 0, []
        while length < len(documents):
            length = min(len(documents), length + draw.randrange(1, 6))
            assert listing.read(documents[:length], clusters, parse)
            left_out = draw.sample(range(length), draw.randrange(min(4, length)))
            rest = [replicas[at] for at in left_out if draw.random() < 0.5]
            view = OthersListed(listing, length, frozenset(left_out), tuple(rest))
            others = [replicas[at] for at in range(length) if at not in left_out] + rest
            seen.append((view, Unshared(others)))
            for shared, alone in draw.sample(seen, len(seen)):
                touched = {draw.choice(CLUSTERS)}
                assert (list(shared), len(shared)) == (list(alone), len(alone)), seed
                for name in names:
                    assert list(shared.named(name)) == list(alone.named(name)), (seed, name)
                for asked in (clusters, elsewhere):
                    ledger = shared.charged(asked, touched)
                    assert said_by(ledger) == said_by(alone.charged(asked, touched)), seed
                    for cluster in touched:
                        ledger.open(replicas[0]._replace(cluster=cluster), cluster)
                    forks.append((ledger, said_by(ledger)))
            for ledger, said in forks:
                assert said_by(ledger) == said, "what another forks changes no ledger of before"
            for deployment in "xyz":
                chosen = draw.sample(names, 2)
                places = [
                    at
                    for at in range(length)
                    if replicas[at].deployment == deployment or replicas[at].name in chosen
                ]
                assert listing.concerning(deployment, chosen) == places, seed
        assert parsed == list(documents), "each is read once"
        with monkeypatch.context() as patched:
            patched.delattr(scheduling_input, "Ledger")
            assert seen[-1][0].charged(clusters, ()), "and charged once"
        assert not listing.read(documents[1:], clusters, parse), "another beginning is another list"
        assert not listing.read(documents[:-1], clusters, parse), "and so is a shorter one"
        assert not listing.read(documents, elsewhere, parse), "nor is it of other clusters"
        assert (listing.replicas, parsed) == (replicas, list(documents)), "nothing was read of those"


# How a policy and its selectors are read

BAD = {"preferences": [{"weight": 1, "cel": "cluster.nme"}]}
ASKED = [
    (BAD, None, ["placement.preferences[0].cel"], "the deployment's own"),
    (None, BAD, ["the function's input, defaults.placement.preferences[0].cel"], "of the input"),
    (
        {"strategy": "BinPack"},
        BAD,
        ["the function's input, defaults.placement.preferences[0].cel"],
        "of the input beside a policy of its own",
    ),
    ({"preferences": []}, BAD, [], "its own are none"),
]


@pytest.mark.parametrize(("stated", "default", "paths", "reason"), ASKED)
def test_a_preference_that_does_not_compile_is_named_where_it_is_stated(
    stated: Plain | None, default: Plain | None, paths: list[str], reason: str
) -> None:
    given = None if default is None else {"defaults": {"placement": default}}
    inputs = decide(World(ask(placement=stated), [one("a")], input=given)).inputs
    assert [invalid.path for invalid in inputs.selectors.invalid] == paths, reason


SURGE = {"disruption": {"maxUnavailable": 0, "maxSurge": 1}}
STAGES = [
    (None, False, "nothing is staged"),
    ({"disruption": {"maxUnavailable": 1}}, False, "nobody comes beside the old"),
    (SURGE, True, "the new is awaited"),
    ({"rollout": {"maxUnavailable": 1}}, True, "one after the other"),
]


@pytest.mark.parametrize(("stated", "staged", "reason"), STAGES)
def test_pods_must_run_the_spec_where_a_rollout_is_staged(
    stated: Plain | None,
    staged: bool,  # noqa: FBT001
    reason: str,
) -> None:
    serving = decide(World(ask(placement=stated), [one("a")])).inputs.serving
    assert serving.runs_its_template(running(reporting(servingDigest=OTHER))) is not staged, reason


def test_a_deployment_before_ours_has_its_share_of_evaluations_and_their_own_units() -> None:
    """Seventeen selectors and four devices are 68 evaluations."""
    cels = [f'{at} != 99 && device.driver == "gpu.nvidia.com"' for at in range(17)]
    entries = [build.gpu(2, name=f"e{at}", architecture=str(at)) for at in range(4)]
    made = World(
        ask(engines=[single(build.request("gpu", 1, *cels))]), [one("a", pools=[build.pool("p", 1, entries)])]
    )
    of = decide(made).inputs

    def read(share: Share | None) -> Any:
        return scheduling_input.scheduling_input(of.deployment, of.fleet, of.config, share=share)

    enough, short = read(Share(68, 10_000)), read(Share(67, 10_000))
    assert (enough.selectors.too_many, short.selectors.too_many, read(None).selectors.too_many) == (
        *(False, True),
        False,
    )
    assert read(Share(68, 10)).selectors.too_long
    assert enough.evaluations._part == selectors.ALLOWANCE
    assert read(None).evaluations._part == 1 << (selectors.UNITS // 68).bit_length() - 1


def test_what_a_decision_depends_on_is_handed_on() -> None:
    of = decide(World(ask(), [one("a")], input={"searchBudget": 9_000, "celVersion": "1.37"})).inputs
    peers = Peers({"x": Resolution.ABSENT})
    made = scheduling_input.scheduling_input(of.deployment, of.fleet, of.config, "odd", peers)
    handed = (made.deployment, made.fleet, made.config, made.config_fault, made.peers)
    for value, expected in zip(handed, (of.deployment, of.fleet, of.config, "odd", peers), strict=True):
        assert value is expected
    assert made.evaluations._release == "1.37"


# What is there, and what time it is

RESOLVED = [Resolution.UNRESOLVED, Resolution.ABSENT, Resolution.DELIVERED]


def fleet(**more: Any) -> Fleet:
    given: Plain = {
        "clusters": {"here": object()},
        "unreadable": {"odd": object()},
        "nameless": False,
        "clusters_resolution": Resolution.DELIVERED,
        "replicas_resolution": Resolution.DELIVERED,
        "cache_resolution": None,
        "cache": None,
        "cache_fault": "",
        "own_replicas": (),
        "other_replicas": Unshared(),
        "endpoints": {},
    }
    return Fleet(**given | more)


def test_inputs_are_there_when_neither_clusters_nor_replicas_are_still_to_come() -> None:
    for clusters in RESOLVED:
        for replicas in RESOLVED:
            made = fleet(clusters_resolution=clusters, replicas_resolution=replicas)
            assert made.inputs_delivered is (Resolution.UNRESOLVED not in (clusters, replicas))


@pytest.mark.parametrize(
    ("cluster", "more", "gone", "reason"),
    [
        ("away", {}, True, "the list came whole and lacks it"),
        ("here", {}, False, "it is there"),
        ("odd", {}, False, "it is there and cannot be read"),
        ("away", {"nameless": True}, False, "it may be the one without a name"),
        ("away", {"whole": False}, False, "only some clusters were asked for"),
        ("away", {"clusters_resolution": Resolution.UNRESOLVED}, False, "the list is still to come"),
        ("away", {"clusters_resolution": Resolution.ABSENT}, False, "an empty list proves nothing"),
    ],
)
def test_a_cluster_is_gone_only_where_nothing_leaves_a_doubt(
    cluster: str,
    more: Plain,
    gone: bool,  # noqa: FBT001
    reason: str,
) -> None:
    assert fleet(**more).gone(cluster) is gone, reason


def cluster(beat: int | None = None, *, reached: bool = False, deleting: bool = False, **more: Any) -> Any:
    return SimpleNamespace(
        heartbeat=beat, reached=reached, deleting=deleting, **{"unready_since": None} | more
    )


def asking(after: int | None, clusters: Plain, *own_replicas: OwnReplica) -> Any:
    stated = None if after is None else SimpleNamespace(after_seconds=after)
    return SimpleNamespace(
        policy=SimpleNamespace(evacuate=stated),
        fleet=SimpleNamespace(clusters=clusters, own_replicas=own_replicas),
    )


def clock(beats: list[int], after: int) -> int | str:
    """Before when is too long ago, by the three rules; or the first word of why nobody knows."""
    if len(beats) < 2:
        return "NoClock"
    if 2 * sum(beat >= max(beats) - after for beat in beats) < len(beats):
        return "EvacuationPaused"
    return max(now for now in beats if 2 * sum(beat >= now for beat in beats) > len(beats)) - after


def test_now_is_what_more_than_half_of_the_heartbeats_have_reached() -> None:
    draw = random.Random(3)
    outcomes = set()
    for _ in range(300):
        beats = [draw.choice((0, 50, 60, 61, 99, 100, 160)) for _ in range(draw.randrange(8))]
        after = draw.choice((39, 40, 41, 100))
        made = {f"c{at}": cluster(beat) for at, beat in enumerate(beats)}
        others = {"silent": cluster(), "leaving": cluster(10_000, deleting=True)}
        read, expected = evacuation(asking(after, made | others)), clock(beats, after)
        assert read.after == after
        if isinstance(expected, int):
            assert (read.before, read.paused) == (expected, ""), (beats, after)
        else:
            assert (read.before, read.paused.partition(":")[0]) == (None, expected), (beats, after)
        outcomes.add(type(expected) if isinstance(expected, int) else expected)
    assert outcomes == {int, "NoClock", "EvacuationPaused"}
    assert evacuation(asking(None, made)) == Evacuation(0, None, "")


@pytest.mark.parametrize(
    ("beats", "said"),
    [
        ([], "NoClock: no cluster publishes a heartbeat"),
        ([9], "NoClock: only one cluster publishes a heartbeat"),
        (
            [0, 0, 99],
            "EvacuationPaused: only 1 of 3 heartbeats is within 9 s of the newest (c2)",
        ),
        (
            [99, 0, 0, 90, 0],
            "EvacuationPaused: only 2 of 5 heartbeats are within 9 s of the newest (c0, c3)",
        ),
        (
            [9] * 4 + [0] * 5,
            "EvacuationPaused: only 4 of 9 heartbeats are within 8 s of the newest (c0, c1, c2 and 1 more)",
        ),
    ],
)
def test_why_nobody_knows_what_time_it_is(beats: list[int], said: str) -> None:
    made = {f"c{at}": cluster(beat) for at, beat in reversed(list(enumerate(beats)))}
    assert evacuation(asking(8 if 9 in beats else 9, made)).paused == f"{said}, so nothing is evacuated"


@pytest.mark.parametrize(
    ("made", "before", "lost", "reason"),
    [
        (cluster(9), 10, True, "not heard of since before"),
        (cluster(10), 10, False, "heard of just then"),
        (cluster(9), None, False, "nobody knows what time it is"),
        (cluster(), 10, False, "it publishes no heartbeat"),
        (cluster(9, reached=True), 10, False, "it is reached: its clock is behind"),
    ],
)
def test_a_cluster_is_lost_when_it_was_not_heard_of_for_too_long(
    made: Any,
    before: int | None,
    lost: bool,  # noqa: FBT001
    reason: str,
) -> None:
    assert Evacuation(5, before).lost(made) is lost, reason


def unready(since: Any, created: Any = build.CREATED, *, status: bool | str | None = False) -> Plain:
    made = build.replica(PARENT, "a", 0, ready=status)
    made["metadata"]["creationTimestamp"] = created
    if status is not None:
        made["status"]["conditions"][0]["lastTransitionTime"] = since
    return made


AT_8, AT_9 = "1970-01-01T08:00:00Z", "1970-01-01T09:00:00Z"
EIGHT, NINE = 8 * 3600, 9 * 3600


@pytest.mark.parametrize(
    ("made", "since", "reason"),
    [
        (unready(AT_9, AT_8), NINE, "since its condition says so"),
        (unready(AT_8, AT_9), NINE, "at most as long as it exists"),
        (unready(AT_9, None), NINE, "it does not say since when it exists"),
        (unready(AT_9, "yesterday"), None, "a time that cannot be read is doubt"),
        (unready("yesterday", AT_9), None, "and so is the other"),
        (unready(None, AT_9), None, "a condition without a time is doubt"),
        (unready(AT_9, AT_8, status=True), None, "it is Ready"),
        (unready(AT_9, AT_8, status="Unknown"), None, "it may be Ready"),
        (unready(AT_9, AT_8, status=None), None, "it does not say"),
    ],
)
def test_since_when_a_replica_is_not_ready(made: Plain, since: int | None, reason: str) -> None:
    assert unready_since(running(made)) == since, reason


def test_other_conditions_say_nothing_about_since_when() -> None:
    made = unready(AT_8, AT_8)
    made["status"]["conditions"].append(
        build.condition("Synced", status=False) | {"lastTransitionTime": AT_9}
    )
    assert unready_since(running(made)) == EIGHT


WELL, SICK = running(build.replica(PARENT, "a", 0, ready=True)), running(unready(AT_9))


@pytest.mark.parametrize(
    ("own_replicas", "on", "suspected", "reason"),
    [
        ([], {"a": cluster(unready_since=3)}, False, "nothing of ours"),
        ([WELL], {"a": cluster()}, False, "all is well"),
        ([WELL, SICK], {"a": cluster()}, True, "one is not Ready"),
        ([running(unready(AT_9), terminating=True), WELL], {"a": cluster()}, False, "it is leaving already"),
        ([running(unready(AT_9), terminating=True), SICK], {"a": cluster()}, True, "but the next one is not"),
        ([WELL], {}, False, "its cluster is not there"),
        ([WELL, SICK], {}, True, "and the next is not Ready"),
        ([WELL], {"a": cluster(unready_since=3)}, True, "its cluster is not Ready"),
        ([WELL], {"a": cluster(unready_since=0)}, True, "since 1970"),
        ([WELL], {"a": cluster(7)}, True, "its cluster may be lost"),
        ([WELL], {"a": cluster(7, reached=True)}, False, "it is reached"),
        ([WELL], {"b": cluster(7)}, False, "of another cluster"),
    ],
)
def test_what_time_it_is_matters_only_where_something_may_be_wrong(
    own_replicas: list[OwnReplica],
    on: Plain,
    suspected: bool,  # noqa: FBT001
    reason: str,
) -> None:
    assert suspects(asking(5, on, *own_replicas)) is suspected, reason
    assert not suspects(asking(None, on, *own_replicas)), "nobody asks for it"

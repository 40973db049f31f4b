"""The independent checker: it certifies decisions on random worlds, and finds those that are spoilt."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from function.api.adapter import PLACEMENT_KIND, ModelAdapter, placement_name
from function.api.replica import LEAVING_ANNOTATION
from function.cli.worlds.adapters import in_turn, placed
from function.cli.worlds.manifest import Manifest, Manifests
from function.verify import AdapterState, check_adapters, read_host, read_place
from function.verify.adapters import AdapterPlace
from tests.adapter.plane import NAMESPACE, adapter, replica
from tests.support.scale import seeds

Plain = dict[str, Any]


def random_manifests(seed: int) -> Manifests:
    """Return up to five replicas of a base on three clusters, up to four adapters, and places of some."""
    draw = random.Random(seed)
    replicas, places = [], []
    for number in range(draw.randint(1, 5)):
        slots = draw.choice((None, 1, 1, 2, 3))
        room: Plain = {"maxRank": draw.choice((8, 16, 64)), "capabilities": draw.choice(([], ["tools"]))}
        made = replica(f"r{number}", draw.choice("abc"), slots, **({} if slots is None else room))
        if draw.random() < 0.15:
            made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        if draw.random() < 0.15:
            made["metadata"]["annotations"] = {LEAVING_ANNOTATION: "drain"}
        made["status"]["adapters"] = [{"name": name} for name in "abcd" if draw.random() < 0.2]
        replicas.append(made)
    adapters = []
    for name in "abcd"[: draw.randint(1, 4)]:
        wanted = draw.randint(0, 4)
        spec = {"minReplicas": draw.randint(0, wanted), "rank": draw.choice((8, 16, 32))}
        made = adapter(name, replicas=wanted, requirements=draw.choice(([], [], ["tools"])), **spec)
        made["metadata"]["creationTimestamp"] = f"2026-01-0{draw.randint(1, 9)}T00:00:00Z"
        adapters.append(made)
        places += [placement(name, one["metadata"]["name"]) for one in replicas if draw.random() < 0.25]
    by_kind = {"ModelReplica": replicas, "ModelAdapter": adapters, PLACEMENT_KIND: places}
    return Manifests({kind: [Manifest(one, "f.yaml") for one in listed] for kind, listed in by_kind.items()})


def placement(name: str, on: str) -> Plain:
    """Return the place of an adapter, as it stands."""
    metadata = {
        "name": placement_name(name, on),
        "namespace": NAMESPACE,
        "creationTimestamp": "2026-02-01T00:00:00Z",
    }
    return {"kind": PLACEMENT_KIND, "metadata": metadata, "spec": {"adapter": name, "replica": on}}


def judged(manifests: Manifests) -> tuple[AdapterState, list[AdapterPlace]]:
    """Return what stands, and the places that are decided on it."""
    replicas, places = ([one.content for one in manifests[kind]] for kind in ("ModelReplica", PLACEMENT_KIND))
    answers = placed(manifests, replicas, ())
    adapters = [ModelAdapter.parse(one.content) for one in in_turn(manifests)]
    state = AdapterState(adapters, list(map(read_host, replicas)), list(map(read_place, places)))
    return state, [read_place(item) for answer in answers for item in answer.placements]


def test_every_decision_is_certified() -> None:
    places = 0
    for seed in seeds(150, 5_000, 20_000):
        state, decided = judged(random_manifests(seed))
        assert check_adapters(state, decided) == [], seed
        places += len(decided)
    assert places


def test_a_new_place_that_is_left_out_is_missed() -> None:
    """Unless so few remain that minReplicas forbids them, the free slot is one that could be taken.

    Who of too many on one replica gives way is not judged, so an adapter on such a replica is left out here.
    """
    spoilt = 0
    for seed in seeds(150, 2_000, 5_000):
        state, decided = judged(random_manifests(seed))
        held = Counter(
            replica for replica, _ in {(one.replica, one.adapter) for one in (*state.places, *decided)}
        )
        crowded = {host.name for host in state.hosts if held[host.name] > host.slots}
        new = [place for place in decided if place not in state.places]
        last = {adapter.name: adapter for adapter in state.adapters}
        for place in new:
            others = [one for one in decided if one != place]
            total = sum(one.adapter == place.adapter for one in decided)
            contested = any(one.adapter == place.adapter and one.replica in crowded for one in others)
            if total > (last[place.adapter].spec.min_replicas or 0) and not contested:
                rules = {finding.rule for finding in check_adapters(state, others)}
                assert "LeftOut" in rules, (seed, place)
                spoilt += 1
    assert spoilt


def test_a_place_on_a_replica_that_leaves_or_cannot_load_it_is_one_too_many() -> None:
    spoilt = 0
    for seed in seeds(150, 2_000, 5_000):
        state, decided = judged(random_manifests(seed))
        for adapter_of in state.adapters:
            for host in state.hosts:
                place = AdapterPlace(NAMESPACE, adapter_of.name, host.name)
                if place not in (*decided, *state.places) and (host.obstacle(adapter_of) or host.leaving):
                    rules = {finding.rule for finding in check_adapters(state, [*decided, place])}
                    assert rules & {"CannotLoad", "Leaving"}, (seed, place)
                    spoilt += 1
    assert spoilt

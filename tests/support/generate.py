"""Random small worlds, the same for the same seed: `world(seed)`.

A world has one deployment and up to four clusters of up to three pools; its replicas are in every state a
control plane leaves them in: terminating, only observed, only listed, stamped from an older spec, pinned to
pools that are gone, of other deployments, of a deployment of the same name in another namespace.
"""

from __future__ import annotations

from typing import Any

from tests.support import build, existing, optins, vocabulary
from tests.support.parts import (
    CALM,
    CLUSTERS,
    TASTE,
    Source,
    Taste,
    cluster,
    deployment,
    members_of,
    requests_of,
)
from tests.support.world import World

Plain = dict[str, Any]

__all__ = ["CALM", "TASTE", "Source", "Taste", "world"]


def world(seed: int, taste: Taste = TASTE) -> World:
    """Return the world of a seed."""
    draw = Source(seed)
    clusters = [cluster(draw, name, taste) for name in CLUSTERS[: draw.choice((1, 2, 2, 3, 3, 4))]]
    parent = deployment(draw, clusters, taste)
    store = existing.Store()
    if draw.odds(taste.own_replicas):
        existing.add_own(draw, parent, clusters, store, taste)
    existing.strangers(draw, clusters, store)
    draw.shuffle(clusters)
    draw.shuffle(store.listed)
    made = World(parent, clusters, store.listed, store.observed, caches(draw, parent))
    made = doubted(draw, made, taste)
    return optins.opted(Source(f"opted {seed}"), made) if taste.opted else made


def doubted(draw: Source, made: World, taste: Taste) -> World:
    """Return the world with, perhaps, something undelivered, emptied or invalid."""
    if not draw.odds(taste.doubt):
        return made
    doubt = draw.choice(("clusters", "replicas", "cache", "no clusters", "no cache", "selector"))
    if doubt == "selector":
        return made.but(deployment=_with_typo(draw, made.copy().deployment))
    changes: dict[str, Any] = {
        "clusters": {"clusters": None},
        "replicas": {"replicas": None},
        "cache": {"cache": None},
        "no clusters": {"clusters": ()},
        "no cache": {"cache": () if made.cache is not None else None},
    }[doubt]
    return made.but(**changes)


def _with_typo(draw: Source, parent: Plain) -> Plain:
    requests = [item for member in members_of(parent) for item in requests_of(member)]
    draw.choice(requests)["selectors"][0]["cel"] = vocabulary.INVALID
    return parent


def caches(draw: Source, parent: Plain) -> list[Plain] | None:
    """Return the model cache that the deployment asks for."""
    if "modelCacheRef" not in parent["spec"]["template"]["spec"]:
        return None
    return [build.cache("weights", {"region": draw.choice(("eu", "us"))} if draw.odds(0.7) else None)]

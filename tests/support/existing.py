"""The replicas that random worlds start with, in every state a control plane leaves them in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support import build, vocabulary
from tests.support.parts import CALM, CLUSTERS, Source, Taste, address, engine, requests_of, ways_of
from tests.support.world import World

Plain = dict[str, Any]


def edited(draw: Source, parent: Plain) -> Plain:
    """Return an older version of a deployment, from which its replicas were stamped."""
    older: Plain = World(parent).copy().deployment
    engines = older["spec"]["template"]["spec"]["engines"]
    chosen = draw.choice(engines)
    what = draw.choice(
        ("selector", "selector", "count", "copies", "nodes", "image", "name", "engine", "cache")
    )
    requests = ways_of(draw.choice(chosen["members"]))
    if what == "selector" and requests:
        draw.choice(requests)["selectors"] = [{"cel": draw.choice(list(vocabulary.MEANINGS))}]
    elif what == "count" and requests:
        draw.choice(requests)["count"] = draw.choice((1, 2, 4))
    elif what == "copies":
        chosen["copies"] = draw.choice((1, 2, 3))
    elif what == "nodes" and chosen["members"][-1].get("role") == "Worker":
        chosen["members"][-1]["worker"] = {"nodes": draw.choice((1, 2, 3))}
    elif what == "image":
        chosen["members"][0]["template"] = build.template("vllm/vllm-openai:v0.20.0")
    elif what == "name" and all(entry["name"] != "old" for entry in engines):
        chosen["name"] = "old"
    elif what == "engine" and len(engines) > 1:
        engines.pop()
    elif what == "cache":
        older["spec"]["template"]["spec"]["modelCacheRef"] = {"name": "old-weights"}
    return older


@dataclass
class Store:
    """The replicas of a world while it is made."""

    listed: list[Plain] = field(default_factory=list)
    observed: dict[str, Plain] = field(default_factory=dict)


def add_own(draw: Source, parent: Plain, clusters: list[Plain], store: Store, taste: Taste) -> None:
    """Add replicas of the deployment, some observed, some only listed, some stamped from an older version."""
    older = edited(draw, parent) if draw.odds(taste.edits) else parent
    for _ in range(draw.choice((1, 2, 2, 3, 4, 5))):
        on = draw.choice(clusters)
        where = "gone" if draw.odds(taste.oddity / 2) else on["metadata"]["name"]
        index = draw.choice((0, 0, 0, 1, 1, 2, 3))
        key = build.key("replica", where, index)
        if key in store.observed:
            continue
        source = older if draw.odds(0.6) else parent
        if not suits(source, on) and not draw.odds(taste.oddity):
            continue
        made = existing(draw, source, where, index, on, taste)
        made["metadata"]["ownerReferences"] = [build.owner(parent)]
        place(draw, made, key, store, taste)


def place(draw: Source, made: Plain, key: str, store: Store, taste: Taste) -> None:
    """Put an own replica where Crossplane would show it, or where a stale cache would."""
    if draw.odds(taste.oddity):
        _list_only(draw, made, store)
        return
    store.observed[key] = made
    if not draw.odds(taste.oddity):
        store.listed.append(World(made).copy().deployment)
    if draw.odds(taste.oddity / 2):
        made["metadata"]["labels"]["modelplane.ai/replica-index"] = "9"
    if "status" in made and draw.odds(0.7):
        store.observed[key.replace("replica-", "endpoint-", 1)] = _endpoint(made)


def _list_only(draw: Source, made: Plain, store: Store) -> None:
    """Put a replica into the list only, perhaps without an owner."""
    if any(made["metadata"]["name"] == manifest["metadata"]["name"] for manifest in store.listed):
        return
    if draw.odds(0.3):
        del made["metadata"]["ownerReferences"]
    elif draw.odds(0.2):
        made["metadata"]["ownerReferences"][0]["uid"] = build.uid("an earlier deployment of this name")
    store.listed.append(made)


def _endpoint(made: Plain) -> Plain:
    """Return the observed endpoint of a replica."""
    on = made["spec"]["clusterName"]
    return build.endpoint(made, address(on) if on in CLUSTERS else "203.0.113.99")


def existing(draw: Source, source: Plain, where: str, index: int, on: Plain, taste: Taste) -> Plain:
    """Return a replica as an earlier pass stamped it, on pools that mostly exist."""
    pools = on.get("status", {}).get("gpuPools") or [build.pool("p0")]
    engines = source["spec"]["template"]["spec"]["engines"]
    homes = [home(draw, one_engine, pools) for one_engine in engines]
    made = build.replica(
        source,
        where,
        index,
        pools=[("vanished" if draw.odds(taste.oddity / 2) else entry["name"]) for entry in homes],
        ready=draw.choice((True, True, True, False, None)),
        terminating=draw.odds(taste.oddity),
        name=f"adopted-{where}-{index}" if draw.odds(taste.oddity / 2) else None,
    )
    for stamped, pool in zip(made["spec"]["engines"], homes, strict=True):
        for one in stamped["members"]:
            claim(one, pool)
    if source["spec"]["template"]["spec"].get("serving"):
        made["spec"]["serving"] = dict(source["spec"]["template"]["spec"]["serving"])
    return made


def home(draw: Source, item: Plain, pools: list[Plain]) -> Plain:
    """Return a pool for an engine: one that serves it, if there is one."""
    fitting = [pool for pool in pools if serves(item, pool)]
    return draw.choice(fitting if fitting and draw.odds(0.95) else pools)


def suits(source: Plain, on: Plain) -> bool:
    """Say whether a cluster has a pool for every engine of a deployment."""
    pools = on.get("status", {}).get("gpuPools", [])
    engines = source["spec"]["template"]["spec"]["engines"]
    return all(any(serves(one_engine, pool) for pool in pools) for one_engine in engines)


def serves(item: Plain, pool: Plain) -> bool:
    """Say whether a pool has a device for every request of an engine, each looked at alone."""
    return all(first_device(asked, pool) for one in item["members"] for asked in requests_of(one))


def first_device(asked: Plain, pool: Plain) -> Plain | None:
    """Return the first device that satisfies a request on its own."""
    for device in pool.get("devices", []):
        meanings = [vocabulary.MEANINGS[one["cel"]](device) for one in asked["selectors"]]
        if all(meanings) and device.get("count", 1) >= asked.get("count", 1):
            entry: Plain = device
            return entry
    return None


def claim(stamped: Plain, pool: Plain) -> None:
    """Keep only the device requests that a DRA device of the pool satisfies, with its class."""
    kept = []
    for asked in stamped.pop("deviceRequests", []):
        entry = first_device(asked, pool)
        if entry is None:
            kept.append(asked)
        elif entry.get("claim", "DRA") == "DRA":
            kept.append(asked | {"deviceClassName": entry["deviceClassName"]})
    if kept:
        stamped["deviceRequests"] = kept


def strangers(draw: Source, clusters: list[Plain], store: Store) -> None:
    """Add replicas of other deployments, one of them of our name in another namespace."""
    for number in range(draw.choice((0, 0, 1, 2, 3))):
        name, namespace = draw.choice((("other", "ml-team"), ("my-model", "ads"), ("batch", "research")))
        engines = [engine(draw, "main")]
        stranger = build.deployment(name, 1, engines, namespace=namespace)
        on = draw.choice(clusters)
        made = existing(draw, stranger, on["metadata"]["name"], number, on, CALM)
        store.listed.append(made)

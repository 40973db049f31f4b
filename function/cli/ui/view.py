"""A fleet as entries: one plain value for each cluster, deployment and adapter, and for the fleet as a whole.

The values are those of the map (`render.fleet_map`), with devices, prices and the state of replicas beside
them. A page keeps the entries by key, so that a change is sent as the entries that differ. `happenings` says
in words what changed between two looks: which replica was placed, moved, drained, or gave way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from function.api import InferenceCluster, ModelReplica
from function.api.model import mapping, number
from function.boundary import PlainDocument, frozen
from function.cli.render.fleet_map import ClusterCard, DeploymentCard, FleetMap, draw, tracked_replicas
from function.cli.text import printable
from function.cli.worlds.settling import standing, unready_of
from function.deployment.forecast import read_cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from function.cli.worlds.inputs import Inputs
    from function.cli.worlds.world import Planned, PlannedAdapter, Simulation, World

Entries = dict[str, Any]
"""Plain values by key: `fleet`, `cluster/use1`, `deployment/ml/chat`, `adapter/ml/support`."""
VERBS = {
    "Drained": "drained",
    "Evacuated": "drained",
    "ClusterGone": "lost",
    "Yielded": "gave way",
    "GaveWay": "gave way",
    "Returned": "gave way",
    "ScaledDown": "scaled down",
    "Replaced": "replaced",
}
"""The word for a replica that leaves, by the cause on record; any other is `leaving`."""


class Tracked(NamedTuple):
    """Where a replica is, and what becomes of it."""

    deployment: str
    cluster: str
    state: str
    """`running`, `new` or `leaving`."""
    verb: str = ""
    """Why it leaves, in a word."""
    why: str = ""
    """Why it leaves, in a line."""


class Happening(NamedTuple):
    """One thing that changed from one look to the next."""

    verb: str
    deployment: str
    text: str
    kind: str = "deployment"
    """`deployment`, or `adapter` where that is what `deployment` names."""


@frozen
class Look:
    """The fleet at one moment."""

    entries: Entries = field(default_factory=dict)
    replicas: dict[str, Tracked] = field(default_factory=dict)
    """By `namespace/name`."""
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Replicas that have a place, and those that are wanted, by deployment."""
    adapters: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The same by adapter."""
    places: dict[str, dict[str, str]] = field(default_factory=dict)
    """Clusters by adapter and replica."""


def look_at(inputs: Inputs, settled: Simulation, where: str, adapters: Iterable[PlannedAdapter] = ()) -> Look:
    """Describe a fleet as it stands, and as it will stand once it has settled.

    `adapters`: as their handler answers on the fleet as it stands.
    """
    chosen = inputs.titles(())
    picture = draw(inputs.world, settled, chosen)
    now = dict(_tracked(inputs.world, settled))
    claimed = _claimed(replica for replica, _ in tracked_replicas(inputs.world, settled.world))
    replicas = _by_deployment(now)
    plans = {plan.title: plan for plan in settled.rounds[0]}
    entries: Entries = {"fleet": _fleet(picture, where)}
    for card in picture.cards:
        entries[f"cluster/{card.name}"] = _cluster(card, picture)
    for name, devices in _devices(inputs.world, claimed):
        entries[f"cluster/{name}"]["devices"] = devices
    for model in picture.models:
        standing_replicas = replicas.get(model.name, {})
        entries[f"deployment/{model.name}"] = _deployment(model, plans[model.name], standing_replicas)
    counts = {model.name: (model.placed, model.wanted) for model in picture.models}
    places: dict[str, dict[str, str]] = {}
    adapter_counts: dict[str, tuple[int, int]] = {}
    for adapter in sorted(adapters, key=lambda adapter: adapter.title):
        entries[f"adapter/{adapter.title}"] = _adapter(adapter)
        adapter_counts[adapter.title] = adapter.placed, adapter.wanted
        places[adapter.title] = {replica: cluster for replica, cluster, _ in adapter.places}
        for replica, cluster in places[adapter.title].items():
            if f"cluster/{cluster}" in entries:
                loaded = entries[f"cluster/{cluster}"].setdefault("adapters", {})
                loaded.setdefault(f"{adapter.manifest.namespace}/{replica}", []).append(adapter.title)
    return Look(_shown(entries), now, counts, adapter_counts, places)


def _shown(value: Any) -> Any:
    """Every text in a printable form: a name must not reverse the line that it stands in."""
    if isinstance(value, dict):
        return {printable(key): _shown(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(entry) for entry in value]
    return printable(value) if isinstance(value, str) else value


def _fleet(picture: FleetMap, where: str) -> dict[str, Any]:
    """The fleet as a whole: nodes, price, problems, and holders whose deployment is not given."""
    total = picture.totals.get("", {}).get("")
    return {
        "where": where,
        "nodes": total.nodes if total else 0,
        "held": total.held if total else 0,
        "price": picture.price,
        "problems": picture.problems,
        "notes": picture.notes,
        "strangers": [[who, colour, why] for who, colour, why in picture.strangers],
    }


def _cluster(card: ClusterCard, picture: FleetMap) -> dict[str, Any]:
    """One cluster with its pools, in the colours of the map."""
    total = card.total
    return {
        "region": card.region,
        "notes": card.notes,
        "problems": card.problems,
        "level": total.level,
        "nodes": total.nodes,
        "held": total.held,
        "pools": [
            {
                "name": pool.name,
                "class": pool.kind,
                "nodes": pool.nodes,
                "free": pool.free,
                "over": pool.over,
                "unusable": pool.unusable,
                "text": pool.text,
                "shares": [[who, state, nodes, picture.colours[who]] for who, state, nodes in pool.shares],
            }
            for pool in card.pools
        ],
    }


def _deployment(model: DeploymentCard, plan: Planned, replicas: dict[str, Tracked]) -> dict[str, Any]:
    """One deployment: where its replicas are, how far, and the word that sums it up."""
    observed = (document.plain() for document in plan.request.observed.values())
    stands = standing(plan.manifest.content, (one for one in observed if one.get("kind") == "ModelReplica"))
    ready = sum(replica.state == "ready" for replica in stands.replicas.values())
    states = {replica.state for replica in replicas.values()}
    return {
        "wanted": model.wanted,
        "placed": model.placed,
        "ready": ready,
        "state": _state(model, ready, states),
        "reason": model.reason,
        "message": model.message,
        "price": str(model.price),
        "colour": model.colour,
        "stalled": standing(plan.manifest.content, ()).stalled,
        "unready": [f"{row.name} on {row.cluster}: {row.why or 'starting'}" for row in unready_of(plan)],
        "replicas": [
            [name.partition("/")[2], replica.cluster, replica.state, replica.why]
            for name, replica in sorted(replicas.items())
        ],
    }


def _adapter(adapter: PlannedAdapter) -> dict[str, Any]:
    """Where an adapter is, with the states of a deployment."""
    scheduled, ready = adapter.forecast.response.conditions
    if scheduled.reason == "Malformed":
        state = "refused"
    elif adapter.placed < adapter.wanted:
        state = "waiting"
    elif scheduled.reason == "Replacing":
        state = "moving"
    elif any(action == "new" for *_, action in adapter.places):
        state = "placing"
    else:
        state = "ready" if ready.status else "starting"
    said = ready if state in ("placing", "starting") else scheduled
    return {
        "wanted": adapter.wanted,
        "placed": adapter.placed,
        "ready": number(mapping(adapter.forecast.response.status.get("replicas")).get("ready"), 0),
        "state": state,
        "reason": said.reason,
        "message": said.message,
        "scheduled": scheduled.reason,
        "places": [list(place) for place in adapter.places],
    }


def _state(model: DeploymentCard, ready: int, states: set[str]) -> str:
    """One word for a deployment, the most urgent first."""
    if model.reason.startswith(("Invalid", "Malformed", "Unknown")):
        return "refused"
    if model.placed < model.wanted:
        return "waiting"
    if "leaving" in states:
        return "moving" if "new" in states else "leaving"
    return "placing" if "new" in states else "ready" if ready >= model.wanted else "starting"


def _tracked(world: World, settled: Simulation) -> Iterator[tuple[str, Tracked]]:
    """Yield every replica with its state, and with the cause where it leaves."""
    causes = {
        (plan.title, row.name): (VERBS.get(row.cause, "leaving"), row.phrase)
        for plan in settled.plans
        for row in plan.forecast.leaving
    }
    for replica, state in tracked_replicas(world, settled.world):
        cause = causes.get((replica.holder, replica.name), ("leaving", "")) if state == "leaving" else ()
        yield (
            f"{replica.namespace}/{replica.name}",
            Tracked(replica.holder, replica.cluster, state, *cause),
        )


def _by_deployment(tracked: Mapping[str, Tracked]) -> dict[str, dict[str, Tracked]]:
    """Sort replicas by the deployment that holds them."""
    replicas: dict[str, dict[str, Tracked]] = defaultdict(dict)
    for name, replica in tracked.items():
        replicas[replica.deployment][name] = replica
    return replicas


# Devices: what is claimed of a class on a pool, and what its nodes have.

Claims = Counter[tuple[str, str, str]]
"""Devices by cluster, pool and device class."""


def _claimed(replicas: Iterator[ModelReplica]) -> Claims:
    """Count the devices that replicas claim, of each class on each pool."""
    claims: Claims = Counter()
    for replica in replicas:
        for engine in replica.engines:
            for member in engine.members:
                for request in member.requests:
                    where = replica.cluster, member.pool, request.device_class
                    claims[where] += request.count * member.pods * engine.copies
    return claims


def _devices(world: World, claimed: Claims) -> Iterator[tuple[str, list[list[Any]]]]:
    """Of every readable cluster: pool, device class, how many are claimed, and how many there are.

    Devices that no pod can claim are not counted.
    """
    for content in world.clusters:
        cluster = world.memo.parsed(PlainDocument(content), read_cluster)
        if not isinstance(cluster, InferenceCluster):
            continue
        rows = []
        for pool in cluster.pools:
            totals: Counter[str] = Counter()
            for device in pool.devices or ():
                if device.claimable:
                    totals[device.device_class_name] += device.count * pool.nodes
            rows += [
                [pool.name, kind, claimed[cluster.name, pool.name, kind], total]
                for kind, total in sorted(totals.items())
            ]
        yield cluster.name, rows


# The difference of two looks.


def difference(before: Entries, after: Entries) -> tuple[Entries, list[str]]:
    """The entries that are new or differ, and the keys that are gone."""
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return changed, [key for key in before if key not in after]


def happenings(before: Look, after: Look) -> Iterator[Happening]:
    """Say what changed: replicas first, then deployments whose numbers differ.

    Only differences of two looks are known: a replica that came and went in between is never seen.
    """
    arrived, left = defaultdict(list), defaultdict(list)
    for name, replica in after.replicas.items():
        was = before.replicas.get(name)
        if was is None and replica.state != "leaving":
            arrived[replica.deployment].append((name, replica))
        elif was is not None and was.state != "leaving" and replica.state == "leaving":
            left[replica.deployment].append((name, replica))
    for name, replica in before.replicas.items():
        if name not in after.replicas:
            gone = replica._replace(verb=replica.verb or "gone")
            if replica.state == "leaving":
                yield Happening("gone", replica.deployment, f"{_short(name)} is gone from {replica.cluster}")
            else:
                left[replica.deployment].append((name, gone))
    for deployment in sorted({*arrived, *left}):
        yield from _moves(deployment, arrived[deployment], left[deployment])
    yield from _numbers(before.counts, after.counts)
    for adapter in sorted({*before.places, *after.places}):
        had, has = before.places.get(adapter, {}), after.places.get(adapter, {})
        away = [f"{name} on {cluster}" for name, cluster in had.items() if name not in has]
        new = [f"{name} on {cluster}" for name, cluster in has.items() if name not in had]
        verb = "moved" if away and new else "placed" if new else "left"
        if away or new:
            text = ", now ".join(", ".join(names) for names in (away, new) if names)
            yield Happening(verb, adapter, printable(text), "adapter")
    yield from _numbers(before.adapters, after.adapters, "adapter")


def _short(name: str) -> str:
    """The name without its namespace: a line is about one deployment."""
    return printable(name.partition("/")[2])


def _moves(
    deployment: str, arrived: list[tuple[str, Tracked]], left: list[tuple[str, Tracked]]
) -> Iterator[Happening]:
    """Pair replicas that leave with those that come: a pair moved."""
    for at, (name, replica) in enumerate(left):
        why = f": {replica.why}" if replica.why else ""
        text = f"{_short(name)} leaves {replica.cluster}"
        if at < len(arrived):
            successor, place = arrived[at]
            text = f"{_short(name)} on {replica.cluster} moves to {place.cluster} as {_short(successor)}"
        verb = "moved" if at < len(arrived) and replica.verb in ("gone", "leaving") else replica.verb
        yield Happening(verb, deployment, f"{text}{printable(why)}")
    for name, replica in arrived[len(left) :]:
        yield Happening("placed", deployment, f"{_short(name)} on {replica.cluster}")


def _numbers(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]], kind: str = "deployment"
) -> Iterator[Happening]:
    """Say which deployments came and went, and whose counts are others."""
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if was is None and now is not None:
            yield Happening("added", name, f"{now[0]} of {now[1]} replicas placed", kind)
        elif was is not None and now is None:
            yield Happening("deleted", name, f"the {kind} is gone", kind)
        elif was is not None and now is not None and was != now:
            missing = max(0, was[1] - was[0]), max(0, now[1] - now[0])
            if was[1] != now[1]:
                yield Happening("edited", name, f"wants {now[1]} replicas, not {was[1]}", kind)
            if missing[1] > missing[0]:
                yield Happening("waiting", name, f"{missing[1]} of {now[1]} replicas have no place", kind)
            elif missing[0] and not missing[1]:
                yield Happening("complete", name, f"all {now[1]} replicas have a place", kind)

"""Check adapters: where they stand, and a decision about them. No code is shared with their handler.

The rules are those of docs/adapters.md, each tried on all replicas of the base. What stands is checked first:
more adapters on a replica than it holds, one that its engines cannot load, one on what is not there. Then the
decisions, in the order in which they were made, since each takes slots from the later ones.

Limits: a slot is what the deployment says it is, and who gives way in a race is not judged: the decision may
keep a placement that has to be replaced, or give it up once others are placed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from function.api.adapter import ADAPTER_LABEL, REPLICA_LABEL, AdapterRoom, ModelAdapter
from function.api.fault import Malformed
from function.api.model import mapping, mappings, string
from function.api.replica import DEPLOYMENT_LABEL, LEAVING_ANNOTATION
from function.boundary import frozen
from function.verify.state import Violation


@frozen
class Host:
    """A replica that adapters can be on."""

    namespace: str
    name: str
    cluster: str
    labels: Mapping[str, Any]
    leaving: bool
    """Whether it is being deleted, or about to be."""
    rooms: tuple[AdapterRoom, ...]
    """Of each engine that declares one."""
    readable: bool
    configured: frozenset[str]
    """Adapters that its status names."""

    @property
    def slots(self) -> int:
        """How many adapters it holds: each is loaded into every engine with room."""
        return min((room.slots * room.overcommit for room in self.rooms), default=0)

    def obstacle(self, adapter: ModelAdapter) -> str:
        """Return why its engines cannot load an adapter, whoever else is there; empty where they can."""
        if not self.rooms:
            return "no engine has room for adapters"
        rank = min(room.max_rank for room in self.rooms)
        if adapter.spec.rank > rank:
            return f"rank {adapter.spec.rank} is above {rank}"
        lacking = [
            word
            for word in adapter.spec.requirements
            if any(word not in room.capabilities for room in self.rooms)
        ]
        return f"an engine does not offer {lacking[0]}" if lacking else ""


def read_host(replica: Mapping[str, Any]) -> Host:
    """Read one ModelReplica as a host. Room that cannot be read takes nothing new and keeps what is there."""
    metadata, spec, status = (mapping(replica.get(key)) for key in ("metadata", "spec", "status"))
    rooms, readable = [], True
    for engine in mappings(spec.get("engines")):
        if engine.get("adapters"):
            try:
                rooms.append(AdapterRoom.parse(engine["adapters"]))
            except Malformed:
                readable = False
    return Host(
        namespace=string(metadata.get("namespace")),
        name=string(metadata.get("name")),
        cluster=string(spec.get("clusterName")),
        labels=mapping(metadata.get("labels")),
        leaving=bool(
            metadata.get("deletionTimestamp") or mapping(metadata.get("annotations")).get(LEAVING_ANNOTATION)
        ),
        rooms=tuple(rooms),
        readable=readable,
        configured=frozenset(string(entry.get("name")) for entry in mappings(status.get("adapters"))),
    )


@frozen(order=True)
class AdapterPlace:
    """An adapter on a replica."""

    namespace: str
    adapter: str
    replica: str
    leaving: bool = False


def read_place(placement: Mapping[str, Any]) -> AdapterPlace:
    """Read one ModelAdapterPlacement; its labels stand in for what its spec does not say."""
    metadata, spec = mapping(placement.get("metadata")), mapping(placement.get("spec"))
    labels = mapping(metadata.get("labels"))
    return AdapterPlace(
        string(metadata.get("namespace")),
        string(spec.get("adapter")) or string(labels.get(ADAPTER_LABEL)),
        string(spec.get("replica")) or string(labels.get(REPLICA_LABEL)),
        bool(metadata.get("deletionTimestamp")),
    )


@frozen
class AdapterState:
    """The state that is checked: adapters, the replicas that they can be on, and their places."""

    adapters: Sequence[ModelAdapter]
    """In the order in which they were decided about."""
    hosts: Sequence[Host]
    places: Sequence[AdapterPlace]


def check_adapter_state(state: AdapterState) -> list[Violation]:
    """Say what is wrong with the adapters as they stand."""
    findings = []
    hosts = {(host.namespace, host.name): host for host in state.hosts}
    adapters = {(adapter.namespace, adapter.name): adapter for adapter in state.adapters}
    on: dict[tuple[str, str], list[AdapterPlace]] = defaultdict(list)
    for place in state.places:
        where = f"{place.namespace}/{place.adapter}"
        host, adapter = (
            hosts.get((place.namespace, place.replica)),
            adapters.get((place.namespace, place.adapter)),
        )
        if place.leaving:
            continue  # Whatever is wrong with it ends with it.
        on[place.namespace, place.replica].append(place)
        # An empty list is doubt, not a fleet without adapters: nothing is concluded from it.
        if adapter is None and state.adapters:
            findings.append(Violation("NoSuchAdapter", where, f"it is on {place.replica}, and is not there"))
        if host is None and state.hosts:
            findings.append(Violation("NoSuchReplica", where, f"on {place.replica}, which is not there"))
        if host is not None and host.readable and adapter is not None and host.obstacle(adapter):
            text = f"on {host.name}, and {host.obstacle(adapter)}"
            findings.append(Violation("CannotLoad", where, text))
    for key, places in on.items():
        host = hosts.get(key)
        if host is not None and host.readable and host.rooms and len(places) > host.slots:
            names = ", ".join(sorted(place.adapter for place in places))
            text = f"{len(places)} adapters on {host.slots} slots: {names}"
            findings.append(Violation("Slots", f"{host.namespace}/{host.name}", text))
    return sorted(findings)


def check_adapters(state: AdapterState, desired: Iterable[AdapterPlace]) -> list[Violation]:
    """Check the decisions about all adapters. No finding: they keep every rule.

    They are checked in the order in which they were made: each takes slots that later ones do not have.
    """
    wanted: dict[tuple[str, str], set[str]] = defaultdict(set)
    for place in desired:
        wanted[place.namespace, place.adapter].add(place.replica)
    taken = {(place.namespace, place.replica, place.adapter) for place in state.places}
    findings: list[Violation] = []
    for adapter in state.adapters:
        after = wanted[adapter.namespace, adapter.name]
        findings += _decision(state, adapter, after, taken)
        taken |= {(adapter.namespace, replica, adapter.name) for replica in after}
    return sorted(set(findings))


def _is_base(adapter: ModelAdapter, host: Host) -> bool:
    """Tell whether a replica is of the base: by the label of its deployment, or by any labels."""
    base = adapter.spec.base
    labels = {DEPLOYMENT_LABEL: base.deployment_name} if base.deployment_name else base.match_labels
    return host.namespace == adapter.namespace and labels.items() <= host.labels.items()


def _new_place(
    title: str, adapter: ModelAdapter, name: str, host: Host | None, used: int
) -> Iterator[Violation]:
    """Check one new place. `used`: how many adapters its replica has already."""
    if host is None:
        yield Violation("Base", title, f"placed on {name}, which is no replica of its base")
    elif host.leaving:
        yield Violation("Leaving", title, f"placed on {name}, which leaves")
    elif not host.readable or host.obstacle(adapter):
        why = host.obstacle(adapter) or "its room cannot be read"
        yield Violation("CannotLoad", title, f"placed on {name}, and {why}")
    elif used >= host.slots:
        yield Violation("Slots", title, f"placed on {name}, where {used} of {host.slots} are taken")


def _decision(
    state: AdapterState, adapter: ModelAdapter, after: set[str], taken: set[tuple[str, str, str]]
) -> Iterator[Violation]:
    """Check the decision about one adapter. `taken`: namespace, replica and adapter of every place so far."""
    title, spec = f"{adapter.namespace}/{adapter.name}", adapter.spec
    named = {host.name: host for host in state.hosts if host.namespace == adapter.namespace}
    base = {name: host for name, host in named.items() if _is_base(adapter, host)}
    used = Counter(replica for namespace, replica, _ in taken if namespace == adapter.namespace)
    mine = [
        place
        for place in state.places
        if (place.namespace, place.adapter) == (adapter.namespace, adapter.name)
    ]
    before = {place.replica for place in mine if not place.leaving}
    held = {place.replica for place in mine}
    new = after - held
    stays = {
        name
        for name in after & named.keys()
        if not named[name].leaving and (not named[name].readable or not named[name].obstacle(adapter))
    }
    # Who of too many on one replica gives way is not judged: any of them may have to be replaced.
    contested = {name for name in stays if named[name].readable and used[name] > named[name].slots}
    for name in sorted(new):
        yield from _new_place(title, adapter, name, base.get(name), used[name])
    if new and len(stays - contested) > spec.replicas:
        yield Violation("TooMany", title, f"on {len(stays)} replicas, {spec.replicas} wanted, {len(new)} new")
    least = spec.min_replicas or 0
    if new and len(after) < least:
        yield Violation("MinReplicas", title, f"{len(new)} new below minReplicas {least}")
    # Law 2, for places: one goes where its replica is gone, or enough others have it.
    for name in sorted(before - after):
        has_others = len(after) >= spec.replicas
        if name in named and not (has_others or not named[name].readable):
            yield Violation("Lost", title, f"leaves {name} for no reason that allows it")
    open_hosts = [
        host
        for name, host in sorted(base.items())
        if name not in after | held
        and not (host.leaving or not host.readable or host.obstacle(adapter))
        and used[name] < host.slots
    ]
    # Nothing is left out where a replica could take it, unless `minReplicas` would still not be reached.
    missing = spec.replicas - len(stays)
    if missing > 0 and open_hosts and len(after) + min(missing, len(open_hosts)) >= least:
        text = f"on {len(stays)} of {spec.replicas} replicas, and {open_hosts[0].name} could take it"
        yield Violation("LeftOut", title, text)
    clusters = Counter(named[name].cluster for name in stays if name in named)
    for name in sorted(new & base.keys()):
        cluster = base[name].cluster
        # Spread before packing, by clusters; an adapter that is loaded already goes where it is.
        better = [host for host in open_hosts if clusters[host.cluster] < clusters[cluster] - 1]
        if better and not contested and adapter.name not in base[name].configured:
            text = f"placed on {name} of {cluster}, which has {clusters[cluster]} of its places"
            other = better[0].cluster
            yield Violation("Spread", title, f"{text}; {other} has {clusters[other]}")

"""Publish a cluster: its pools with their devices, how it is reached, and what it can do.

Law C 3: what another kind relies on keeps its last value until it is observed to be different. A pool whose
class is undelivered, gone or unreadable is published as before; one that never was is left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from function.api import InferenceCluster, ModelReplica
from function.api.charge import digest, holder, stray
from function.api.declared_cluster import DeclaredCluster, DeclaredPool
from function.api.inputs import ClusterConfig
from function.api.model import mapping, mappings, string
from function.api.names import SYSTEM_NAMESPACE
from function.api.text import seconds_of, text_of
from function.boundary import JsonObject
from function.cluster.names import CLASS_PREFIX, GATEWAY, HEARTBEAT, LEADER_WORKER_SET, with_class
from function.cluster.snapshot import ClusterSnapshot, MissingClass
from function.fail_static import base_of, key_of
from function.gateway_api import first_address
from function.objects import GONE, OBSERVE, ObservedObject, composed_object, identity_of
from function.scheduler.device_accounting import Copies, PodClaims, Pods
from function.scheduler.ledger import Ledger, Yielding, yielding

# Observe-only Objects: what a cluster must have, looked at and never touched.
#
# CustomResourceDefinitions are never observed: the one of LeaderWorkerSet would put over 600 kB into a
# status.

_ABSENT = (
    GONE,
    "no matches for kind",
    "could not find the requested resource",
)
"""What provider-kubernetes says where a cluster answered that there is no such object, or no such kind."""
_UNCONNECTED = "connect failed"
"""How it begins where it did not get that far: what is missing then is a Secret or a ProviderConfig."""


def observations(snapshot: ClusterSnapshot) -> dict[str, dict[str, Any]]:
    """Return the Objects that look at the gateway, at LeaderWorkerSet and at every device class, by key.

    Law C 4: where the input names another gateway, controller or lease, another key looks at that.
    """
    manifests = {
        key_of(base, manifest, snapshot.observed): manifest
        for base, manifest in _named_by_input(snapshot.config).items()
    }
    manifests |= {
        f"{CLASS_PREFIX}{name}": _named("resource.k8s.io/v1", "DeviceClass", name)
        for name in _device_classes(snapshot)
    }
    return {key: _observed(manifest, snapshot.provider_config) for key, manifest in manifests.items()}


def look(snapshot: ClusterSnapshot, base: str) -> ObservedObject | None:
    """Return the observation of what the input names, None while there is none.

    `base` is `GATEWAY`, `LEADER_WORKER_SET` or `HEARTBEAT`. In doubt any observation of it counts.
    """
    observed = [observation for key, observation in snapshot.observed.items() if base_of(key) == base]
    wanted = identity_of(_named_by_input(snapshot.config).get(base, {}))
    named = [observation for observation in observed if observation.identity == wanted]
    in_doubt = not isinstance(snapshot.cluster, DeclaredCluster)
    return next(iter(named or (observed if in_doubt else ())), None)


def _named_by_input(config: ClusterConfig) -> dict[str, dict[str, Any]]:
    """Return the manifests of what the input names, by the base of their keys."""
    gateway, controller, lease = config.gateway, config.leader_worker_set, config.heartbeat
    manifests = {
        GATEWAY: _named("gateway.networking.k8s.io/v1", "Gateway", gateway.name, gateway.namespace),
        LEADER_WORKER_SET: _named("apps/v1", "Deployment", controller.name, controller.namespace),
    }
    if lease is not None:
        manifests[HEARTBEAT] = _named("coordination.k8s.io/v1", "Lease", lease.name, lease.namespace)
    return manifests


def _device_classes(snapshot: ClusterSnapshot) -> list[str]:
    names = {
        device.get("deviceClassName")
        for devices in snapshot.classes.values()
        if not isinstance(devices, MissingClass)
        for device in devices
        if device.get("claim") == "DRA"
    }
    return sorted(name for name in names if isinstance(name, str) and name)


def _named(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _observed(manifest: Mapping[str, Any], provider_config: str) -> dict[str, Any]:
    made = composed_object(manifest, provider_config, management=OBSERVE)
    return {**made, "metadata": {"namespace": SYSTEM_NAMESPACE}}


def presence(observed_object: ObservedObject | None) -> str:
    """Return whether something is on the cluster: Present, Absent, or Unknown."""
    if observed_object is None:
        return "Unknown"
    if observed_object.synced is not False and observed_object.remote is not None:
        return "Present"
    return "Absent" if is_absent(observed_object) else "Unknown"


def is_absent(observed_object: ObservedObject) -> bool:
    """Tell whether the cluster answered that there is no such object."""
    message = observed_object.synced_message
    if observed_object.synced is not False or message.startswith(_UNCONNECTED):
        return False
    return any(phrase in message for phrase in _ABSENT)


# Sum up what the replicas on a cluster hold of its pools, for deployments that do not read all replicas.
#
# Whether that is more than a pool has is all that most of them want to know (`flag`). The form of the rest
# is in `function.api.charge`. Who gives way in an overcommitted pool is published here too, by the
# scheduler's own rule: that takes every replica on the pool, and a deployment has only its own.

NAMED = 8
"""Holders of a pool that are named; explanations show five besides the deployment's own."""
NAMED_SHARES = 32
"""Shares that are named at most: a holder whose replicas all differ has as many as replicas."""
OVERCOMMITTED = "overcommitted"
USABLE, EXCEEDED, AWAITING = "usable", "exceeded", "awaiting"
YIELDING = 100
"""Replicas of a pool that are asked to give way at a time, the last created."""

MAX_SELECTORS = 2_000
"""Characters of the selectors of one pod. Longer ones are left out, and what it binds is not known."""

EngineClaims = tuple[Copies, ...]
"""Copies of each engine and the pods of its members; empty where the pool charges nodes."""


class ReplicaHolding(NamedTuple):
    """The holding of one replica on a pool. Replicas with equal holdings hold the same."""

    nodes: int
    leaving: bool
    claims: EngineClaims


class HolderShare(NamedTuple):
    """The holding of each of some equal replicas of one holder."""

    holder: str
    held: ReplicaHolding


def charge(
    cluster: str, pools: Sequence[Mapping[str, Any]], replicas: Iterable[ModelReplica]
) -> list[dict[str, Any]]:
    """Return published pools with what the replicas on the cluster hold of each."""
    here = [replica for replica in replicas if replica.cluster == cluster]
    made = [{**pool, "charged": charged(pool, here)} for pool in pools]
    for pool, leaving in _giving_way(cluster, pools, here).items():
        for entry in made:
            if entry.get("name") == pool:
                entry["charged"]["givesWay"] = leaving
    return made


def charged(pool: Mapping[str, Any], replicas: Iterable[ModelReplica]) -> JsonObject:
    """Return the charge of one pool, the largest holders first, then by name."""
    name, by_devices = str(pool.get("name")), pool.get("accounting") == "Device"
    classes = Counter(str(device.get("deviceClassName")) for device in mappings(pool.get("devices")))
    several = {device_class for device_class, entries in classes.items() if entries > 1}
    shares: Counter[HolderShare] = Counter()
    for replica in replicas:
        if replica.nodes.get(name):
            claims = _claims(replica, name, several) if by_devices else ()
            shares[
                HolderShare(holder(replica), ReplicaHolding(replica.nodes[name], replica.deleting, claims))
            ] += 1
    totals: Counter[str] = Counter()
    for share, number in shares.items():
        totals[share.holder] += share.held.nodes * number
    rank = {key: at for at, key in enumerate(sorted(totals, key=lambda key: (-totals[key], key)))}
    ordered = sorted(shares.items(), key=lambda entry: (rank[entry[0].holder], entry[0].held))
    named = [entry for entry in ordered if rank[entry[0].holder] < NAMED][:NAMED_SHARES]
    by = [{**_who(share.holder), **_holding(number, share.held)} for share, number in named]
    others = list(_others(ordered[len(named) :]))
    return {
        "nodes": sum(totals.values()),
        **({"by": by} if by else {}),
        **({"others": others} if others else {}),
    }


def _who(key: str) -> JsonObject:
    unnamed = key.removeprefix(stray(""))
    return {"deployment": key} if unnamed == key else {"replica": unnamed}


def _holding(number: int, held: ReplicaHolding) -> JsonObject:
    return {
        "replicas": number,
        "nodes": held.nodes * number,
        **({"leaving": True} if held.leaving else {}),
        **({"engines": [_engine(*engine) for engine in held.claims]} if held.claims else {}),
    }


def _engine(members: Iterable[Pods], copies: int) -> JsonObject:
    return {"copies": copies, "members": [_member(*pods) for pods in members]}


def _member(pod: PodClaims, pods: int) -> JsonObject:
    requests = [
        {
            "deviceClassName": claim.device_class,
            "count": claim.number,
            **({"selectors": list(claim.selectors)} if claim.selectors else {}),
        }
        for claim in pod.claims
    ]
    shared = [{"matchAttribute": rule.attribute, "requests": list(rule.claims)} for rule in pod.shared]
    return {"pods": pods, "requests": requests, **({"constraints": shared} if shared else {})}


def _claims(replica: ModelReplica, pool: str, several: Collection[str]) -> EngineClaims:
    """Return the claims of one replica on a pool, sorted: equal values claim the same.

    Which entries it can bind is a question only for classes of which the pool has several.
    """
    engines = []
    for engine in replica.engines:
        members = [
            Pods(_told_apart(PodClaims.of(member.requests, member.constraints), several), member.pods)
            for member in engine.members
            if member.pool == pool and member.requests
        ]
        if members:
            engines.append(Copies(tuple(sorted(members, key=_order)), engine.copies))
    return tuple(sorted(engines, key=lambda engine: (engine.number, [_order(pods) for pods in engine.gang])))


def _order(pods: Pods) -> tuple[object, ...]:
    return pods.number, pods.claims


def _told_apart(pod: PodClaims, several: Collection[str]) -> PodClaims:
    """Return what a pod claims, with selectors and constraints only where they make a difference."""
    short = sum(len(text) for claim in pod.claims for text in claim.selectors) <= MAX_SELECTORS
    claims = [
        claim if short and claim.device_class in several else claim._replace(selectors=())
        for claim in pod.claims
    ]
    matters = any(claim.device_class in several for claim in pod.claims)
    return PodClaims(tuple(claims), pod.shared if matters else ())


def _others(shares: Iterable[tuple[HolderShare, int]]) -> Iterator[JsonObject]:
    """The shares of holders that are not named, equal ones together."""
    groups: dict[tuple[int, ReplicaHolding], list[str]] = defaultdict(list)
    for share, number in shares:
        groups[number, share.held].append(digest(share.holder))
    for (number, held), digests in sorted(groups.items(), reverse=True):
        yield {**_holding(number, held), "digests": " ".join(sorted(digests))}


def _opened(cluster: str, pools: Sequence[Mapping[str, Any]], replicas: Iterable[ModelReplica]) -> Ledger:
    """The ledger of a cluster; one of pools that cannot be read has none of them."""
    try:
        published = InferenceCluster.parse(
            {"metadata": {"name": cluster}, "status": {"gpuPools": list(pools)}}
        )
    except ValueError:
        return Ledger([])
    ledger = Ledger([published])
    for replica in replicas:
        ledger.open(replica, cluster)
    return ledger


def flag(
    cluster: str, pools: Sequence[Mapping[str, Any]], replicas: Iterable[ModelReplica]
) -> list[dict[str, Any]]:
    """Return published pools, those marked that hold more than they have.

    It is written when it turns, not with every placement: whoever runs on the cluster is woken by it.
    """
    ledger = _opened(cluster, pools, (replica for replica in replicas if replica.cluster == cluster))
    marked = {pool for _, pool in ledger.overcommitted_pools()}
    unmarked = ({key: pool[key] for key in pool if key != OVERCOMMITTED} for pool in pools)
    return [{**pool, OVERCOMMITTED: True} if pool.get("name") in marked else pool for pool in unmarked]


def _giving_way(
    cluster: str, pools: Sequence[Mapping[str, Any]], replicas: Iterable[ModelReplica]
) -> dict[str, list[JsonObject]]:
    """Who gives way on each pool that holds more than it has, the most senior first."""
    ledger = _opened(cluster, pools, replicas)
    entries: dict[str, list[JsonObject]] = defaultdict(list)
    for yielding_replica in yielding(ledger):
        entries[yielding_replica.pool].append(_gives_way(yielding_replica))
    return {pool: leaving[-YIELDING:] for pool, leaving in entries.items()}


def _gives_way(yielding_replica: Yielding) -> JsonObject:
    replica = yielding_replica.replica
    entries = {"deployment": replica.deployment, "uid": replica.uid, "created": replica.created}
    return {
        "replica": f"{replica.namespace}/{replica.name}",
        **{key: value for key, value in entries.items() if value},
    }


HEARTBEAT_STEP = 300
"""Seconds between two published heartbeats: far below the least that an evacuation may wait for."""

MIRRORED = ("className", "attributes", "accounting", "fabric")
"""Fields of a declared pool that are published with it where our XRD declares them."""


def publish(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """Return the status."""
    cluster, before = snapshot.cluster, snapshot.status
    status: dict[str, Any] = {
        key: before[key] for key in ("providerConfigRef", "namespace", "gateway", "cache") if key in before
    }
    if isinstance(cluster, DeclaredCluster):
        published = pools(snapshot, cluster)
        if published or not snapshot.missing or "gpuPools" in before:
            status["gpuPools"] = published
        if cluster.existing is not None and not snapshot.missing:
            status |= {"providerConfigRef": {"name": snapshot.provider_config}, "namespace": SYSTEM_NAMESPACE}
            if cluster.existing.cache.storage_class_name:
                status["cache"] = {"storageClassName": cluster.existing.cache.storage_class_name}
    elif "gpuPools" in before:
        status["gpuPools"] = before["gpuPools"]
    address = gateway_address(snapshot)
    if address:
        status["gateway"] = {"address": address}
    beat = heartbeat(snapshot)
    if beat:
        status["heartbeat"] = beat
    if snapshot.config.publish == "Attributes":
        status["capabilities"] = capabilities(snapshot)
    elif "capabilities" in before and not isinstance(cluster, DeclaredCluster):
        status["capabilities"] = before["capabilities"]
    return status


def heartbeat(snapshot: ClusterSnapshot) -> str:
    """Return when the cluster was last seen alive; the last that was published while nothing new is legible.

    Cut to whole steps: the lease is renewed every few seconds, and each new value is a write that whoever
    watches the cluster receives.
    """
    if snapshot.config.heartbeat is None and isinstance(snapshot.cluster, DeclaredCluster):
        return ""
    observed = look(snapshot, HEARTBEAT)
    renewed = seconds_of(mapping((observed.remote or {}).get("spec")).get("renewTime")) if observed else None
    if renewed is None:
        last = snapshot.before.get("heartbeat")
        return string(last)
    return text_of(renewed - renewed % HEARTBEAT_STEP)


def pools(snapshot: ClusterSnapshot, cluster: DeclaredCluster) -> list[dict[str, Any]]:
    """Return the pools in the order of the spec: those whose class has devices, or that were published."""
    last = {string(pool.get("name")): pool for pool in mappings(snapshot.before.get("gpuPools"))}
    published = (_pool(snapshot, pool, last.get(pool.name)) for pool in cluster.spec.node_pools)
    here = [replica for replica in snapshot.replicas or () if replica.cluster == cluster.name]
    made = [
        _with_usable(snapshot, pool, last.get(string(pool.get("name")), {}), here)
        for pool in published
        if pool is not None
    ]
    if snapshot.config.publish != "Attributes" or snapshot.replicas is None:
        return made
    summed = flag if snapshot.config.charges == "Overcommitted" else charge
    return summed(cluster.name, made, snapshot.replicas)


def _with_usable(
    snapshot: ClusterSnapshot,
    pool: dict[str, Any],
    last: Mapping[str, Any],
    here: Sequence[ModelReplica],
) -> dict[str, Any]:
    """Return a pool with what can be used of it; without, where that is in doubt or unasked.

    That more is held than can be used is said and takes nothing away (Law 2). `last`: as published last.
    `here`: the replicas on the cluster.
    """
    declared = {key: pool[key] for key in pool if key != USABLE}
    observed = snapshot.usable if isinstance(snapshot.usable, tuple) else ()
    seen = next((seen for seen in observed if seen.name == pool.get("name")), None)
    cluster = snapshot.cluster
    if seen is None or not isinstance(cluster, DeclaredCluster):
        return declared
    made: dict[str, Any] = {"nodes": seen.nodes}
    marks = {EXCEEDED: seen.nodes}
    if seen.to_come:
        made["toCome"] = seen.to_come
        marks[AWAITING] = seen.nodes - seen.to_come
    for mark, nodes in marks.items():
        if snapshot.replicas is None:
            held = mapping(last.get(USABLE)).get(mark) is True
        else:
            held = bool(_opened(cluster.name, [{**declared, "nodes": nodes}], here).overcommitted_pools())
        if held:
            made[mark] = True
    return {**declared, USABLE: made}


def overcommitted(status: dict[str, Any]) -> bool:
    """Tell whether some pool holds more than it has: the next reading should come soon."""
    return any(
        pool.get(OVERCOMMITTED) is True or "givesWay" in mapping(pool.get("charged"))
        for pool in mappings(status.get("gpuPools"))
    )


def _pool(
    snapshot: ClusterSnapshot, declared: DeclaredPool, last: dict[str, Any] | None
) -> dict[str, Any] | None:
    devices = snapshot.classes.get(declared.class_name)
    if devices is None or isinstance(devices, MissingClass):
        return last
    if not devices:
        return None
    pool: dict[str, Any] = {"name": declared.name, "nodes": declared.nodes, "devices": list(devices)}
    if snapshot.config.publish == "Attributes":
        stated = declared.model_dump(mode="json", by_alias=True, exclude_unset=True)
        stated["accounting"] = stated.get("accounting") or snapshot.config.accounting
        of_class = snapshot.class_attributes[declared.class_name]
        if of_class:
            stated["attributes"] = with_class(stated.get("attributes"), of_class)
        pool |= {key: stated[key] for key in MIRRORED if stated.get(key) is not None}
        kept = OVERCOMMITTED if snapshot.config.charges == "Overcommitted" else "charged"
        if last is not None and kept in last:
            pool[kept] = last[kept]
    return pool


def gateway_address(snapshot: ClusterSnapshot) -> str:
    """Return where replicas are reached: the stack's word, the declared one, the Gateway's, the last one."""
    from_stack = mapping(snapshot.stack_status.get("gateway")).get("address")
    cluster = snapshot.cluster
    existing = cluster.existing if isinstance(cluster, DeclaredCluster) else None
    observed = look(snapshot, GATEWAY)
    first = first_address(observed.remote_status) if observed else ""
    declared = existing.gateway.address if existing else ""
    last = mapping(snapshot.status.get("gateway")).get("address")
    candidates = (from_stack, declared, first, last)
    return next((address for address in candidates if isinstance(address, str) and address), "")


def capabilities(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """Return what was seen on the cluster: Present, Absent, or Unknown."""
    classes = {
        key.removeprefix(CLASS_PREFIX): presence(observed_object)
        for key, observed_object in snapshot.observed.items()
        if key.startswith(CLASS_PREFIX)
    }
    return {
        "gateway": presence(look(snapshot, GATEWAY)),
        "leaderWorkerSet": presence(look(snapshot, LEADER_WORKER_SET)),
        **({"deviceClasses": classes} if classes else {}),
    }

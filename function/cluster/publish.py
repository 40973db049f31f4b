"""Publish a cluster: its pools with their devices, how it is reached, and what it can do.

The status of an InferenceCluster is what everybody else reads of it. The scheduler places by `gpuPools`,
replicas are applied through `providerConfigRef`, endpoints lead to `gateway.address`. So a value that is
wrong for one call moves replicas, and one that flaps wakes every deployment of the fleet.

    publish ▶ pools (devices by class, usable nodes, what replicas hold) ▶ address, heartbeat, capabilities

Law C 3: what another kind relies on keeps its last value until it is observed to be different. A pool whose
class is undelivered, gone or unreadable is published as before; one that never was is left out.

What is not declared is observed, through Objects of provider-kubernetes that only look (`observations`).
CustomResourceDefinitions are never looked at: the one of LeaderWorkerSet would put over 600 kB into a status.

Limits: no time is read from a clock, only from the lease of a heartbeat. What an earlier step of the pipeline
desires in the status counts as published before: a provisioner may know better how a cluster is reached.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from function.api import InferenceCluster, ModelReplica
from function.api.charge import STRAY, digest, holder
from function.api.declared_cluster import DeclaredCluster, DeclaredPool
from function.api.inputs import ClusterConfig
from function.api.model import mapping, mappings, string
from function.api.names import SYSTEM_NAMESPACE
from function.api.text import seconds_of, text_of
from function.boundary import JsonObject
from function.cluster.arbiter import GIVES_WAY, gives_way
from function.cluster.classes import with_class
from function.cluster.names import CLASS_PREFIX, GATEWAY, HEARTBEAT, KSERVE_API, LEADER_WORKER_SET
from function.cluster.snapshot import ClusterSnapshot, MissingClass
from function.fail_static import Doubt, base_of, key_of
from function.gateway_api import first_address
from function.objects import GONE, OBSERVE, ObservedObject, composed_object, identity_of
from function.scheduler.device_accounting import Copies, PodClaims, Pods
from function.scheduler.ledger import Ledger, yielding

_ABSENT = (
    GONE,
    "no matches for kind",
    "could not find the requested resource",
)
"""Messages of provider-kubernetes where a cluster answered that there is no such object or kind."""
_UNCONNECTED = "connect failed"
"""How it begins where it did not get that far: what is missing then is a Secret or a ProviderConfig."""


def observations(snapshot: ClusterSnapshot) -> dict[str, dict[str, Any]]:
    """Return the Objects that look at the gateway, at LeaderWorkerSet and at every device class, by key.

    Where the cluster asks for v1alpha2 of KServe, that is looked at through its APIService, which is small.

    Law C 4: where the input names another gateway, controller or lease, another key looks at that.
    """
    manifests = {
        key_of(base, manifest, snapshot.observed): manifest
        for base, manifest in _named_by_input(snapshot.config).items()
    }
    names = {
        device.get("deviceClassName")
        for devices in snapshot.classes.values()
        if not isinstance(devices, MissingClass)
        for device in devices
        if device.get("claim") == "DRA"
    }
    for name in sorted(name for name in names if isinstance(name, str) and name):
        manifests[f"{CLASS_PREFIX}{name}"] = _named("resource.k8s.io/v1", "DeviceClass", name)
    cluster = snapshot.cluster
    if isinstance(cluster, DeclaredCluster) and mapping(cluster.spec.kserve).get("apiVersion") == "v1alpha2":
        name = "v1alpha2.serving.kserve.io"
        manifests[KSERVE_API] = _named("apiregistration.k8s.io/v1", "APIService", name)
    return {
        key: {
            **composed_object(manifest, snapshot.provider_config, management=OBSERVE),
            "metadata": {"namespace": SYSTEM_NAMESPACE},
        }
        for key, manifest in manifests.items()
    }


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


def _named(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    """Return the head of a manifest."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


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
    """Return published pools with what the replicas on the cluster hold of each.

    Who gives way in a pool that holds more than it has is published with it, the most senior first.
    """
    here = [replica for replica in replicas if replica.cluster == cluster]
    made = [{**pool, "charged": charged(pool, here)} for pool in pools]
    leaving: dict[str, list[JsonObject]] = defaultdict(list)
    for one in yielding(_opened(cluster, pools, here)):
        replica = one.replica
        stated = {"deployment": replica.deployment, "uid": replica.uid, "created": replica.created}
        entry: JsonObject = {"replica": f"{replica.namespace}/{replica.name}"}
        leaving[one.pool].append(entry | {key: value for key, value in stated.items() if value})
    for pool in made:
        if pool.get("name") in leaving:
            pool["charged"]["givesWay"] = leaving[str(pool["name"])][-YIELDING:]
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
            held = ReplicaHolding(replica.nodes[name], replica.deleting, claims)
            shares[HolderShare(holder(replica), held)] += 1
    totals: Counter[str] = Counter()
    for share, number in shares.items():
        totals[share.holder] += share.held.nodes * number
    # The largest first, ties by name, so that the order of delivery decides nothing (Law 1).
    rank = {key: at for at, key in enumerate(sorted(totals, key=lambda key: (-totals[key], key)))}
    ordered = sorted(shares.items(), key=lambda entry: (rank[entry[0].holder], entry[0].held))
    named = [entry for entry in ordered if rank[entry[0].holder] < NAMED][:NAMED_SHARES]
    by = []
    for share, number in named:
        unnamed = share.holder.removeprefix(STRAY)
        who = {"deployment": share.holder} if unnamed == share.holder else {"replica": unnamed}
        by.append({**who, **_holding(number, share.held)})
    # Holders that are not named are told by a digest, those that hold the same in one entry: the sum stays
    # small, and a deployment still finds its own replicas in it.
    groups: dict[tuple[int, ReplicaHolding], list[str]] = defaultdict(list)
    for share, number in ordered[len(named) :]:
        groups[number, share.held].append(digest(share.holder))
    others = [
        {**_holding(number, held), "digests": " ".join(sorted(digests))}
        for (number, held), digests in sorted(groups.items(), reverse=True)
    ]
    return {
        "nodes": sum(totals.values()),
        **({"by": by} if by else {}),
        **({"others": others} if others else {}),
    }


def _holding(number: int, held: ReplicaHolding) -> JsonObject:
    """Return a share as it is written: what so many equal replicas hold."""
    engines = []
    for gang, copies in held.claims:
        members = []
        for pod, pods in gang:
            requests = [
                {
                    "deviceClassName": claim.device_class,
                    "count": claim.number,
                    **({"selectors": list(claim.selectors)} if claim.selectors else {}),
                }
                for claim in pod.claims
            ]
            shared = [
                {"matchAttribute": rule.attribute, "requests": list(rule.claims)} for rule in pod.shared
            ]
            constraints = {"constraints": shared} if shared else {}
            members.append({"pods": pods, "requests": requests, **constraints})
        engines.append({"copies": copies, "members": members})
    return {
        "replicas": number,
        "nodes": held.nodes * number,
        **({"leaving": True} if held.leaving else {}),
        **({"engines": engines} if engines else {}),
    }


def _claims(replica: ModelReplica, pool: str, several: Collection[str]) -> EngineClaims:
    """Return the claims of one replica on a pool, sorted: equal values claim the same.

    Which entries it can bind is a question only for classes of which the pool has several. So selectors and
    constraints are left out where they make no difference.
    """
    engines = []
    for engine in replica.engines:
        members = []
        for member in engine.members:
            if member.pool != pool or not member.requests:
                continue
            pod = PodClaims.of(member.requests, member.constraints)
            short = sum(len(text) for claim in pod.claims for text in claim.selectors) <= MAX_SELECTORS
            matters = [claim.device_class in several for claim in pod.claims]
            claims = tuple(
                claim if short and of_several else claim._replace(selectors=())
                for claim, of_several in zip(pod.claims, matters, strict=True)
            )
            members.append(Pods(PodClaims(claims, pod.shared if any(matters) else ()), member.pods))
        if members:
            members.sort(key=lambda pods: (pods.number, pods.claims))
            engines.append(Copies(tuple(members), engine.copies))
    engines.sort(key=lambda copies: (copies.number, [(pods.number, pods.claims) for pods in copies.gang]))
    return tuple(engines)


def _opened(cluster: str, pools: Sequence[Mapping[str, Any]], replicas: Iterable[ModelReplica]) -> Ledger:
    """Return the scheduler's ledger of a cluster; one of pools that cannot be read has none of them.

    It is the scheduler's own, so that what is published and what deployments compute agree.
    """
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


HEARTBEAT_STEP = 300
"""Seconds between two published heartbeats: far below the least that an evacuation may wait for."""

MIRRORED = ("className", "attributes", "accounting", "fabric")
"""Fields of a declared pool that are published with it where our XRD declares them."""


def publish(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """Return the status: what was published before, with everything that is known now in its place.

    `capabilities` and fields of pools beyond Modelplane's are declared by our XRD only, so an input must ask
    for them (`publish: Attributes`).
    """
    cluster, before = snapshot.cluster, snapshot.status
    status: dict[str, Any] = {
        key: before[key] for key in ("providerConfigRef", "namespace", "gateway", "cache") if key in before
    }
    if isinstance(cluster, DeclaredCluster):
        published = _pools(snapshot, cluster)
        # An empty list would be published while a class is awaited, and read as a cluster without pools.
        if published or not snapshot.missing or "gpuPools" in before:
            status["gpuPools"] = published
        if cluster.existing is not None and not snapshot.missing:
            status |= {"providerConfigRef": {"name": snapshot.provider_config}, "namespace": SYSTEM_NAMESPACE}
            if cluster.existing.cache.storage_class_name:
                status["cache"] = {"storageClassName": cluster.existing.cache.storage_class_name}
    elif "gpuPools" in before:
        # Law C 3: a cluster that cannot be read has the pools that it had.
        status["gpuPools"] = before["gpuPools"]
    address = gateway_address(snapshot)
    if address:
        status["gateway"] = {"address": address}
    beat = _heartbeat(snapshot)
    if beat:
        status["heartbeat"] = beat
    status |= arbitrated(snapshot, cluster, mappings(status.get("gpuPools")))
    if snapshot.config.publish == "Attributes":
        classes = {
            key.removeprefix(CLASS_PREFIX): presence(observed_object)
            for key, observed_object in snapshot.observed.items()
            if key.startswith(CLASS_PREFIX)
        }
        kserve = snapshot.observed.get(KSERVE_API)
        status["capabilities"] = {
            "gateway": presence(look(snapshot, GATEWAY)),
            "leaderWorkerSet": presence(look(snapshot, LEADER_WORKER_SET)),
            **({"kserve": presence(kserve)} if kserve else {}),
            **({"deviceClasses": classes} if classes else {}),
        }
    elif "capabilities" in before and not isinstance(cluster, DeclaredCluster):
        status["capabilities"] = before["capabilities"]
    return status


def victims(
    cluster: str, pools: Sequence[Mapping[str, Any]], replicas: Iterable[ModelReplica]
) -> tuple[list[JsonObject], bool]:
    """Return who gives way on a cluster, and whether some pool holds more than it has."""
    ledger = _opened(cluster, pools, (replica for replica in replicas if replica.cluster == cluster))
    return gives_way(ledger, cluster), bool(ledger.overcommitted_pools())


def arbitrated(
    snapshot: ClusterSnapshot, cluster: DeclaredCluster | Doubt, pools: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return who gives way to replicas that preempt, where the input asks the cluster to arbitrate.

    Law C 3: while the cluster or its replicas are in doubt, the last word stands.
    """
    if snapshot.config.preemption == "Arbitrate" and isinstance(cluster, DeclaredCluster):
        if snapshot.replicas is not None:
            return {GIVES_WAY: victims(cluster.metadata.name, pools, snapshot.replicas)[0]}
    elif isinstance(cluster, DeclaredCluster):
        return {}
    return {key: snapshot.before[key] for key in (GIVES_WAY,) if key in snapshot.before}


def _heartbeat(snapshot: ClusterSnapshot) -> str:
    """Return when the cluster was last seen alive; the last that was published while nothing new is legible.

    Cut to whole steps: the lease is renewed every few seconds, and each new value is a write that whoever
    watches the cluster receives.
    """
    if snapshot.config.heartbeat is None and isinstance(snapshot.cluster, DeclaredCluster):
        return ""
    observed = look(snapshot, HEARTBEAT)
    renewed = seconds_of(mapping(observed.remote, "spec").get("renewTime")) if observed else None
    if renewed is None:
        return string(snapshot.before.get("heartbeat"))
    return text_of(renewed - renewed % HEARTBEAT_STEP)


def _pools(snapshot: ClusterSnapshot, cluster: DeclaredCluster) -> list[dict[str, Any]]:
    """Return the pools in the order of the spec: those whose class has devices, or that were published."""
    last = {string(pool.get("name")): pool for pool in mappings(snapshot.before.get("gpuPools"))}
    here = [replica for replica in snapshot.replicas or () if replica.cluster == cluster.metadata.name]
    made = []
    for declared in cluster.spec.node_pools:
        pool = _pool(snapshot, declared, last.get(declared.name))
        if pool is not None:
            made.append(_with_usable(snapshot, pool, last.get(string(pool.get("name")), {}), here))
    if snapshot.config.publish != "Attributes" or snapshot.replicas is None:
        return made
    summed = flag if snapshot.config.charges == "Overcommitted" else charge
    return summed(cluster.metadata.name, made, snapshot.replicas)


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
    # Two bounds: what can be used at all, and what of that is there already.
    marks = {EXCEEDED: seen.nodes}
    if seen.to_come:
        made["toCome"] = seen.to_come
        marks[AWAITING] = seen.nodes - seen.to_come
    for mark, nodes in marks.items():
        if snapshot.replicas is None:  # Law C 3: the last word stands until the replicas are delivered.
            held = mapping(last.get(USABLE)).get(mark) is True
        else:
            pools = [{**declared, "nodes": nodes}]
            held = bool(_opened(cluster.metadata.name, pools, here).overcommitted_pools())
        if held:
            made[mark] = True
    if seen.tainted and declared.get("devices"):
        declared["devices"] = [
            {
                **device,
                "taints": [
                    *device.get("taints", ()),
                    *(taint.model_dump(exclude_defaults=True) for taint in taints),
                ],
            }
            if taints
            else device
            for device in declared["devices"]
            for taints in (dict(seen.tainted).get(string(device.get("name")), ()),)
        ]
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
    """Return what is published of one declared pool; `last` is what was published of it before.

    None where nothing is to be published: a class without devices leaves nothing to claim.
    """
    devices = snapshot.classes.get(declared.class_name)
    if devices is None or isinstance(devices, MissingClass):
        return last  # Law C 3.
    if not devices:
        return None  # No replica could claim anything of it.
    pool: dict[str, Any] = {"name": declared.name, "nodes": declared.nodes, "devices": list(devices)}
    if snapshot.config.publish == "Attributes":
        stated = declared.model_dump(mode="json", by_alias=True, exclude_unset=True)
        stated["accounting"] = stated.get("accounting") or snapshot.config.accounting
        of_class = snapshot.class_attributes[declared.class_name]
        if of_class:
            stated["attributes"] = with_class(stated.get("attributes"), of_class)
        pool |= {key: stated[key] for key in MIRRORED if stated.get(key) is not None}
        # While the replicas are not delivered, the last sum stands; once they are, it is replaced.
        kept = OVERCOMMITTED if snapshot.config.charges == "Overcommitted" else "charged"
        if last is not None and kept in last:
            pool[kept] = last[kept]
    return pool


def gateway_address(snapshot: ClusterSnapshot) -> str:
    """Return where replicas are reached: the stack's word, the declared one, the Gateway's, the last one."""
    from_stack = mapping(snapshot.stack, "status", "gateway").get("address")
    cluster = snapshot.cluster
    existing = cluster.existing if isinstance(cluster, DeclaredCluster) else None
    observed = look(snapshot, GATEWAY)
    first = first_address(observed.remote_status) if observed else ""
    declared = existing.gateway.address if existing else ""
    last = mapping(snapshot.status.get("gateway")).get("address")
    candidates = (from_stack, declared, first, last)
    return next((address for address in candidates if isinstance(address, str) and address), "")

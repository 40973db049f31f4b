"""The answer about a cluster beside its pools: the resources that are desired, and the conditions.

    ClusterProviderConfig ▶ how provider-kubernetes reaches it        ClusterUsage ▶ the guard
    ServingStack ▶ only where the input asks for Modelplane's         Objects, collections ▶ what is looked at

    ClusterReady ▶ it can be read, is reached and publishes      BackendReady ▶ requests can be served there
    ClusterReachable ▶ it answered, if only that something is absent
    PoolsPublished ▶ every class could be read
    DevicesVerified, CapacityUsable ▶ opt-in: its nodes have what its classes say, and can be used

Law C 2: while a class, the cluster or the input is in doubt, everything observed is desired as observed and
nothing new is composed. Modelplane would let all of it go (row `KeptCluster` of docs/compatibility.md), and
with the ProviderConfig every workload on the cluster becomes unreachable. The guard is the exception: it
changes nothing that runs, and doubt is what it protects from.

A serving stack that is observed is kept as observed unless the input withdraws it: a swap of the function
must not uninstall a cluster.

A condition that a call leaves out would keep its last value and lie. So each is in every answer, and says
False with what is in doubt where nothing can be said. The same problem has the same text, without a time. No
condition takes anything away: what a doubt keeps is decided in `compose` and in `publish.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from function import objects
from function.api.declared_cluster import EXISTING, DeclaredCluster, SecretRef
from function.api.model import mapping, plain_of
from function.api.names import API_VERSION, SYSTEM_NAMESPACE
from function.api.text import counted, joined
from function.boundary import Condition, Desired, Request, Resolution, Unreadable, text_at
from function.cluster import names
from function.cluster.drift import drift
from function.cluster.names import NODES, OBSERVATIONS, REQUIRED, SLICES, observes_drift
from function.cluster.publish import gateway_address, is_absent, look, observations, presence
from function.cluster.snapshot import ClusterSnapshot
from function.cluster.usable import NOT_OBSERVED
from function.fail_static import Doubt, as_observed, base_of, steadfast
from function.transitions import unmet

# The resources.


def compose(request: Request, snapshot: ClusterSnapshot) -> dict[str, Desired]:
    """Return everything desired, by key."""
    ours = [key for key in sorted(request.observed) if names.kind_of(key) and key not in request.desired]
    stays = [key for key in ours if not (key == names.STACK and snapshot.config.stack == "None")]
    cluster, name = snapshot.cluster, text_at(request.composite, "metadata", "name")
    made: dict[str, Desired] = {}
    if name and snapshot.replicas:
        # Law C 2: the guard is composed in every doubt, about a class, the cluster or the input. Replicas
        # come to the pools that stay published, and stay on a cluster that can be read no more.
        of = {"apiVersion": API_VERSION, "kind": "InferenceCluster", "resourceRef": {"name": name}}
        usage = {
            "apiVersion": "protection.crossplane.io/v1beta1",
            "kind": "ClusterUsage",
            "spec": {"of": of, "reason": "ModelReplicas run on this cluster", "replayDeletion": True},
        }
        made[names.GUARD] = Desired(usage, ready=True)
    if not isinstance(cluster, DeclaredCluster) or snapshot.missing:
        made = {} if names.GUARD in stays else made
    else:
        made |= _reached(request, snapshot, cluster)
        stays = [key for key in stays if _stays(key, cluster, snapshot, made)]
    made = {key: made[key] for key in made if key not in request.desired}
    looked_at = {key: snapshot.observed[key] for key in snapshot.observed if key.startswith(OBSERVATIONS)}

    def again(key: str) -> Desired:
        """Desire what is observed under a key, as it is."""
        document = request.observed[key]
        ready = text_at(document, "kind") != "ServingStack" or snapshot.stack_ready[0]
        kind, version = names.kind_of(key) or "", text_at(document, "apiVersion")
        return Desired(as_observed(document, kind=kind, namespace="", api_version=version), ready=ready)

    desired = {key: again(key) for key in stays} | steadfast(made, looked_at, again)
    return dict(sorted(desired.items()))


def _stays(
    key: str, cluster: DeclaredCluster, snapshot: ClusterSnapshot, made: Mapping[str, Desired]
) -> bool:
    """Tell whether something observed stays beside what is wanted, which would win under the same key.

    Law C 1: a guard while nobody knows of replicas, and an observation until its successor is observed. Of a
    cluster that an earlier step makes, everything else.
    """
    if key == names.GUARD:
        return snapshot.replicas is None
    if key == names.STACK or cluster.existing is None:
        return True
    return any(base_of(other) == base_of(key) and other not in snapshot.observed for other in made)


def _reached(request: Request, snapshot: ClusterSnapshot, cluster: DeclaredCluster) -> dict[str, Desired]:
    """Return what makes an existing cluster reachable and looks at it; nothing for another source."""
    existing = cluster.existing
    if existing is None:
        return {}

    def secret(ref: SecretRef) -> dict[str, str]:
        """Return a reference to a key of a Secret, which the platform keeps in its own namespace."""
        return {"name": ref.name, "namespace": SYSTEM_NAMESPACE, "key": ref.key}

    kubeconfig, identity = existing.secret_ref, existing.identity_secret_ref
    spec: dict[str, Any] = {"credentials": {"source": "Secret", "secretRef": secret(kubeconfig)}}
    secrets = [{"type": "Kubeconfig", "name": kubeconfig.name, "key": kubeconfig.key}]
    if identity is not None:
        spec["identity"] = {"type": identity.type, "source": "Secret", "secretRef": secret(identity)}
        secrets.append({"type": identity.type, "name": identity.name, "key": identity.key})
    provider_config = {
        "apiVersion": objects.API_VERSION,
        "kind": "ClusterProviderConfig",
        "metadata": {"name": snapshot.provider_config},
        "spec": spec,
    }
    made = {names.PROVIDER_CONFIG: Desired(provider_config, ready=True)}
    if snapshot.config.stack == "Modelplane":
        stack = {
            "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
            "kind": "ServingStack",
            "metadata": {
                "name": names.provider_config_name(cluster.metadata.name, "serving-stack"),
                "namespace": SYSTEM_NAMESPACE,
            },
            "spec": {"secrets": secrets},
        }
        made[names.STACK] = Desired(stack, ready=snapshot.stack_ready[0])
    looks = observations(snapshot)
    own_labels = any(pool.node_selector for pool in cluster.spec.node_pools)
    observer = existing.observer_config_ref
    through = snapshot.provider_config if observer is None else observer.name
    looks |= names.collections(request, through, own_labels=own_labels)
    # What is looked at is always ready: a cluster does not wait for what it may not have.
    return made | {key: Desired(resource, ready=True) for key, resource in looks.items()}


# The conditions.

CLUSTER_READY, BACKEND_READY = "ClusterReady", "BackendReady"
REACHABLE, PUBLISHED = "ClusterReachable", "PoolsPublished"
VERIFIED, USABLE = "DevicesVerified", "CapacityUsable"


def condition_types(request: Request) -> tuple[str, ...]:
    """Return the conditions that every answer to this request carries, in their order."""
    asked = {VERIFIED: observes_drift(request), USABLE: request.asks("capacity", "Usable")}
    return (CLUSTER_READY, BACKEND_READY, REACHABLE, PUBLISHED, *(kind for kind in asked if asked[kind]))


def conditions(request: Request, snapshot: ClusterSnapshot, status: dict[str, Any]) -> tuple[Condition, ...]:
    """Return all conditions, from what is published in this answer."""
    return (
        cluster_ready(snapshot, status),
        backend_ready(snapshot),
        reachable(snapshot),
        pools_published(snapshot),
        *((verified(request, status),) if observes_drift(request) else ()),
        *((capacity_usable(snapshot),) if request.asks("capacity", "Usable") else ()),
    )


def cluster_ready(snapshot: ClusterSnapshot, status: dict[str, Any]) -> Condition:
    """ClusterReady: it can be read, is reached, and publishes something."""
    cluster = snapshot.cluster
    if not isinstance(cluster, DeclaredCluster):
        text = f"{cluster.message}; everything composed and published stays"
        return unmet(CLUSTER_READY, cluster.reason, text)
    source = cluster.spec.cluster.source
    if source != EXISTING and "providerConfigRef" not in status:
        text = f"Source {source} needs an earlier step of the pipeline that makes the cluster; only Existing"
        return unmet(CLUSTER_READY, "UnsupportedSource", f"{text} is made here")
    # One class that can be read is enough to be Ready: `PoolsPublished` says which others are awaited.
    if snapshot.missing and not status.get("gpuPools"):
        classes = ", ".join(sorted(snapshot.missing))
        return unmet(CLUSTER_READY, "WaitingForClasses", f"Waiting for InferenceClasses: {classes}")
    return Condition(CLUSTER_READY, status=True, reason="ClusterRunning")


def backend_ready(snapshot: ClusterSnapshot) -> Condition:
    """BackendReady: the stack is Ready; without one, the gateway has an address."""
    if not isinstance(snapshot.cluster, DeclaredCluster):
        return unmet(BACKEND_READY, "WaitingForCluster", "The InferenceCluster cannot be read")
    # A stack that the input no longer wants is still what serves, until it is gone.
    if snapshot.stack or snapshot.config.stack == "Modelplane":
        ready, message = snapshot.stack_ready
        if ready:
            return Condition(BACKEND_READY, status=True, reason="BackendHealthy")
        return unmet(BACKEND_READY, "Installing", message or "The ServingStack is not Ready yet")
    if gateway_address(snapshot):
        return Condition(BACKEND_READY, status=True, reason="BackendHealthy")
    gateway = snapshot.config.gateway
    is_there = presence(look(snapshot, names.GATEWAY)) != "Absent"
    missing = "has no address yet" if is_there else "is not on the cluster"
    text = f"Gateway {gateway.namespace}/{gateway.name} {missing}"
    return unmet(BACKEND_READY, "WaitingForCluster", text)


def reachable(snapshot: ClusterSnapshot) -> Condition:
    """ClusterReachable: the cluster answered about one thing that is looked at, if only that it is absent.

    Where nodes are looked at through another ClusterProviderConfig, that one's answers say nothing of the
    kubeconfig by which replicas are applied. They count where nothing else is looked at.
    """
    looks = [observed for key, observed in snapshot.observed.items() if key.startswith(OBSERVATIONS)]
    declared = snapshot.cluster
    existing = declared.existing if isinstance(declared, DeclaredCluster) else None
    observer = existing.observer_config_ref.name if existing and existing.observer_config_ref else ""
    looks = [look for look in looks if not observer or look.provider_config != observer] or looks
    # An answer that something is absent came from the cluster, so it is reached.
    if any(look.synced or is_absent(look) for look in looks):
        return Condition(REACHABLE, status=True, reason="Reachable")
    failed = next((look for look in looks if look.synced is False), None)
    if failed is not None:
        text = failed.synced_message or "No observation succeeds"
        # Named first: the provider's words may be long, and do not say with what it tried.
        if observer and failed.provider_config == observer:
            text = f"Through ClusterProviderConfig {observer}: {text}"
        elif existing is not None:
            kubeconfig = existing.secret_ref
            text = f"By key {kubeconfig.key} of Secret {SYSTEM_NAMESPACE}/{kubeconfig.name}: {text}"
        return unmet(REACHABLE, "Unreachable", text)
    return unmet(REACHABLE, "NotObserved", "Nothing was looked at on the cluster yet")


def pools_published(snapshot: ClusterSnapshot) -> Condition:
    """PoolsPublished: every pool's class could be read.

    False takes no pool away (Law C 3): a pool whose class is missing stays published as it was.
    """
    if not isinstance(snapshot.cluster, DeclaredCluster):
        text = "The InferenceCluster cannot be read; its pools stay published as they were"
        return unmet(PUBLISHED, "ClusterUnreadable", text)
    missing = snapshot.missing
    if not missing:
        return Condition(PUBLISHED, status=True, reason="Published")
    first = missing[min(missing)]
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    text = f"{first.why}{more}; its pools stay published as they were"
    return unmet(PUBLISHED, first.reason, text)


def verified(request: Request, published: Mapping[str, Any]) -> Condition:
    """DevicesVerified: what the drivers publish has what the pools claim. One phrase a pool, worst first."""
    required = (REQUIRED[SLICES], REQUIRED[NODES])
    if any(request.resolution(name) is not Resolution.DELIVERED for name in required):
        text = "No ResourceSlice and no node of the cluster was observed yet"
        return Condition(VERIFIED, status=False, reason="NotObserved", message=text)
    manifests: dict[str, list[dict[str, Any]]] = {name: [] for name in required}
    for name, seen in manifests.items():
        for document in request.required[name]:
            try:
                plain = document.project({"status": {"atProvider": {"manifest": None}}})
            except Unreadable:
                continue  # One Object less is a node less that is seen, which the phrase counts.
            seen.append(mapping(plain, "status", "atProvider", "manifest"))
    slices, nodes = manifests.values()
    # What is published in this very answer is what the nodes are held against.
    cluster = {**plain_of(request.composite), "status": published}
    pools = [pool for pool in drift(cluster, slices, nodes) if pool.drifts]
    if not pools:
        return Condition(VERIFIED, status=True, reason="Verified")
    pools.sort(key=lambda pool: (pool.findings[0].order, pool.name))
    return unmet(VERIFIED, "Drift", ". ".join(pool.phrase() for pool in pools))


def capacity_usable(snapshot: ClusterSnapshot) -> Condition:
    """CapacityUsable: every node that is declared can be used. Where that is in doubt, they count."""
    usable = snapshot.usable
    if usable is None or isinstance(usable, Doubt):
        why = usable.message if usable else "The InferenceCluster cannot be read"
        return unmet(USABLE, NOT_OBSERVED, f"{why}; every declared node counts")
    short = [str(pool) for pool in usable if pool.nodes < pool.declared]
    doubtful = max((pool.doubtful for pool in usable), default=0)
    doubt = f"{counted(doubtful, 'node')} cannot be looked at now and count as usable" if doubtful else ""
    tainted = [pool.taints for pool in usable if pool.taints]
    unseen = max((pool.unseen for pool in usable), default="")
    parts = (*short, *tainted, doubt, f"{unseen}; nothing is taken away for them" if unseen else "")
    # Fewer nodes come before taints, and both before doubt: doubt takes nothing away.
    reason = "NodesUnusable" if short else "DevicesTainted" if tainted else NOT_OBSERVED
    if not any(parts):
        return Condition(USABLE, status=True, reason="Usable")
    return unmet(USABLE, reason, joined(*parts, by=". "))

"""Desired resources of a cluster: how it is reached, a guard against deletion, what is looked at.

Law C: while a class, the cluster or the input is in doubt, everything observed is desired as observed and
nothing new is composed, but for the guard: it changes nothing that runs and keeps what holds replicas from
being deleted, which is what doubt asks for. A serving stack that is observed is kept as observed unless the
input withdraws it: a swap of the function must not uninstall a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from function.api.declared_cluster import DeclaredCluster, Existing, SecretRef
from function.api.names import API_VERSION, SYSTEM_NAMESPACE
from function.boundary import Desired, Request, text_at
from function.cluster.names import GUARD, OBSERVATIONS, PROVIDER_CONFIG, STACK, kind_of, stack_name
from function.cluster.publish import observations
from function.cluster.snapshot import ClusterSnapshot
from function.cluster.verification import collections, observes_nodes
from function.fail_static import as_observed, base_of, steadfast
from function.objects import API_VERSION as PROVIDER_API_VERSION

STACK_API_VERSION = "infrastructure.modelplane.ai/v1alpha1"
GUARD_API_VERSION = "protection.crossplane.io/v1beta1"
GUARD_REASON = "ModelReplicas run on this cluster"


def compose(request: Request, snapshot: ClusterSnapshot) -> dict[str, Desired]:
    """Return everything desired, by key."""
    ours = [key for key in sorted(request.observed) if kind_of(key) and key not in request.desired]
    stays = [key for key in ours if not (key == STACK and snapshot.config.stack == "None")]
    cluster = snapshot.cluster
    guard = _guarded(snapshot, text_at(request.composite, "metadata", "name"))
    if not isinstance(cluster, DeclaredCluster) or snapshot.missing:
        made = {} if GUARD in stays else guard
    else:
        made = guard | _reached(request, snapshot, cluster)
        stays = [key for key in stays if _stays(key, cluster, snapshot, made)]
    made = {key: made[key] for key in made if key not in request.desired}
    looked_at = {key: snapshot.observed[key] for key in snapshot.observed if key.startswith(OBSERVATIONS)}
    desired = steadfast(made, looked_at, lambda key: _again(request, snapshot, key))
    return dict(sorted({**{key: _again(request, snapshot, key) for key in stays}, **desired}.items()))


def _stays(
    key: str, cluster: DeclaredCluster, snapshot: ClusterSnapshot, made: Mapping[str, Desired]
) -> bool:
    """Tell whether something observed stays beside what is wanted, which would win under the same key.

    Law C 1: a guard while nobody knows of replicas, and an observation until its successor is observed. Of a
    cluster that an earlier step makes, everything else.
    """
    if key == GUARD:
        return snapshot.replicas is None
    if key == STACK or cluster.existing is None:
        return True
    return any(base_of(other) == base_of(key) and other not in snapshot.observed for other in made)


def _again(request: Request, snapshot: ClusterSnapshot, key: str) -> Desired:
    """Desire what is observed under a key, as it is."""
    document = request.observed[key]
    ready = text_at(document, "kind") != "ServingStack" or snapshot.stack_ready[0]
    kind, version = kind_of(key) or "", text_at(document, "apiVersion")
    return Desired(as_observed(document, kind=kind, namespace="", api_version=version), ready=ready)


def _guarded(snapshot: ClusterSnapshot, name: str) -> dict[str, Desired]:
    """Return the guard that keeps a cluster with replicas from being deleted.

    Law C 2: it is composed in every doubt, about a class, the cluster or the input. Replicas come to the
    pools that stay published, and stay on a cluster that can be read no more.
    """
    return {GUARD: Desired(_guard(name), ready=True)} if name and snapshot.replicas else {}


def _reached(request: Request, snapshot: ClusterSnapshot, cluster: DeclaredCluster) -> dict[str, Desired]:
    """Return what makes an existing cluster reachable and looks at it; nothing for another source."""
    existing = cluster.existing
    if existing is None:
        return {}
    made = {PROVIDER_CONFIG: Desired(_provider_config(snapshot.provider_config, existing), ready=True)}
    if snapshot.config.stack == "Modelplane":
        made[STACK] = Desired(_stack(cluster.name, existing), ready=snapshot.stack_ready[0])
    looks = observations(snapshot)
    if observes_nodes(request):
        own_labels = any(pool.node_selector for pool in cluster.spec.node_pools)
        looks |= collections(snapshot.provider_config, own_labels=own_labels)
    made |= {key: Desired(resource, ready=True) for key, resource in looks.items()}
    return made


def _secret(ref: SecretRef) -> dict[str, str]:
    return {"name": ref.name, "namespace": SYSTEM_NAMESPACE, "key": ref.key}


def _provider_config(name: str, existing: Existing) -> dict[str, Any]:
    spec: dict[str, Any] = {"credentials": {"source": "Secret", "secretRef": _secret(existing.secret_ref)}}
    identity = existing.identity_secret_ref
    if identity is not None:
        spec["identity"] = {"type": identity.type, "source": "Secret", "secretRef": _secret(identity)}
    return {
        "apiVersion": PROVIDER_API_VERSION,
        "kind": "ClusterProviderConfig",
        "metadata": {"name": name},
        "spec": spec,
    }


def _stack(cluster: str, existing: Existing) -> dict[str, Any]:
    identity = existing.identity_secret_ref
    kubeconfig = {"type": "Kubeconfig", "name": existing.secret_ref.name, "key": existing.secret_ref.key}
    secrets = [kubeconfig]
    if identity is not None:
        secrets.append({"type": identity.type, "name": identity.name, "key": identity.key})
    return {
        "apiVersion": STACK_API_VERSION,
        "kind": "ServingStack",
        "metadata": {"name": stack_name(cluster), "namespace": SYSTEM_NAMESPACE},
        "spec": {"secrets": secrets},
    }


def _guard(cluster: str) -> dict[str, Any]:
    of = {"apiVersion": API_VERSION, "kind": "InferenceCluster", "resourceRef": {"name": cluster}}
    return {
        "apiVersion": GUARD_API_VERSION,
        "kind": "ClusterUsage",
        "spec": {"of": of, "reason": GUARD_REASON, "replayDeletion": True},
    }

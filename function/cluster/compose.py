"""Desired resources of a cluster: how it is reached, a guard against deletion, what is looked at.

    ClusterProviderConfig ▶ how provider-kubernetes reaches it        ClusterUsage ▶ the guard
    ServingStack ▶ only where the input asks for Modelplane's         Objects, collections ▶ what is looked at

Law C 2: while a class, the cluster or the input is in doubt, everything observed is desired as observed and
nothing new is composed. Modelplane would let all of it go (row `KeptCluster` of docs/compatibility.md), and
with the ProviderConfig every workload on the cluster becomes unreachable. The guard is the exception: it
changes nothing that runs, and doubt is what it protects from.

A serving stack that is observed is kept as observed unless the input withdraws it: a swap of the function
must not uninstall a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from function import objects
from function.api.declared_cluster import DeclaredCluster, SecretRef
from function.api.names import API_VERSION, SYSTEM_NAMESPACE
from function.boundary import Desired, Request, text_at
from function.cluster import names
from function.cluster.publish import observations
from function.cluster.snapshot import ClusterSnapshot
from function.fail_static import as_observed, base_of, steadfast


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
    looked_at = {
        key: snapshot.observed[key] for key in snapshot.observed if key.startswith(names.OBSERVATIONS)
    }

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
                "name": names.provider_config_name(cluster.name, "serving-stack"),
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

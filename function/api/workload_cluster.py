"""InferenceCluster as a workload needs it: how to reach it, and what its nodes ask of pods."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from function.api.model import Model, Name
from function.api.stack import STANDARD, Stack

if TYPE_CHECKING:
    from function.boundary import Document, Shape

RESERVED_PREFIX = "modelplane.ai/"
"""Labels and annotations that nobody but this system sets."""


def _unreserved(pairs: dict[str, str]) -> dict[str, str]:
    """Leave out what decides where requests go and which pods belong to whom. Our XRD refuses it."""
    return {key: pairs[key] for key in pairs if not key.startswith(RESERVED_PREFIX)}


Stamps = Annotated[dict[str, str], AfterValidator(_unreserved)]


class PoolNodes(Model):
    """How pods get onto the nodes of a pool."""

    name: Name
    node_selector: dict[str, str] = {}
    """Labels that its nodes have; empty: the label modelplane.ai/pool."""
    tolerations: tuple[dict[str, Any], ...] = ()


class Scheduling(Model):
    """What every pod on the cluster is stamped with: for Kueue, KAI, Volcano."""

    scheduler_name: str = ""
    priority_class_name: str = ""
    labels: Stamps = {}
    annotations: Stamps = {}


class ProviderConfigRef(Model):
    """The ClusterProviderConfig of provider-kubernetes that reaches the cluster."""

    name: str = ""


class _Spec(Model):
    node_pools: tuple[PoolNodes, ...] = ()
    scheduling: Scheduling = Scheduling()
    stack: Stack = STANDARD


class _Status(Model):
    provider_config_ref: ProviderConfigRef = ProviderConfigRef()


class WorkloadCluster(Model):
    """One cluster, read for the pods on it."""

    spec: _Spec
    """Required: without it nobody knows what its nodes ask of pods, and those that run would restart."""
    status: _Status = _Status()

    @property
    def provider_config(self) -> str:
        """The name of its ClusterProviderConfig; empty while it has none."""
        return self.status.provider_config_ref.name

    @property
    def scheduling(self) -> Scheduling:
        """What its pods are stamped with."""
        return self.spec.scheduling

    @property
    def stack(self) -> Stack:
        """What turns replicas into pods there."""
        return self.spec.stack

    @cached_property
    def pools(self) -> dict[str, PoolNodes]:
        """The declared pools by name."""
        return {pool.name: pool for pool in self.spec.node_pools}


SHAPE: Shape = {
    "spec": {
        "nodePools": {"name": None, "nodeSelector": None, "tolerations": None},
        "scheduling": None,
        "stack": None,
    },
    "status": {"providerConfigRef": {"name": None}},
}


def read_workload_cluster(document: Document) -> WorkloadCluster:
    """Read one InferenceCluster. Raises Malformed, and Unreadable for what cannot be decoded."""
    return WorkloadCluster.parse(document.project(SHAPE))

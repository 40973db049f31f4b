"""Compose replicas as their clusters would see them: one request per replica, with what the files hold of it.

The composed resources of a replica are the Objects in the files that Crossplane labelled as its own. A
cluster without a ProviderConfig gets a placeholder, so that what would be applied can be looked at before
there is a platform.

The handler of replicas is asked through `dispatch`, as a server would ask it. Its answer is shown by
`render.workloads`, and tells `why` which workload does not serve and what its first pending pod waits for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from function.api.model import condition_of, mapping
from function.api.names import KEY_ANNOTATION
from function.boundary import JsonObject, PlainDocument, Request, Requirement, Response
from function.cli.worlds.derive import Assumption
from function.dispatch import run
from function.objects import COLLECTION, KIND, OBSERVE, read_object
from function.replica.handler import declared
from function.replica.snapshot import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.cli.worlds.inputs import Inputs

COMPOSITE_LABEL = "crossplane.io/composite"


@dataclass(frozen=True, slots=True)
class ReplicaWorkloads:
    """One replica, and what the handler of replicas answers about it."""

    replica: JsonObject
    request: Request
    response: Response
    assumed: tuple[Assumption, ...] = ()
    """What had to be assumed of its cluster."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.replica["metadata"]["name"])

    @property
    def cluster(self) -> str:
        """The cluster it is on."""
        return str(mapping(self.replica.get("spec")).get("clusterName"))

    def manifests(self) -> Iterator[tuple[str, JsonObject]]:
        """Yield key and manifest of everything that would be applied on its cluster."""
        for key, desired in self.response.desired.items():
            if mapping(desired.resource.get("spec")).get("managementPolicies") == list(OBSERVE):
                continue
            manifest = mapping(mapping(desired.resource.get("spec")).get("forProvider")).get("manifest")
            if isinstance(manifest, dict):
                yield key, manifest

    def pending_pods(self) -> Iterator[tuple[str, str]]:
        """Yield name and reason of every pod that could not be scheduled, by name."""
        members = (document for name in self.request.required for document in self.request.required[name])
        pods = sorted((read_object(document) for document in members), key=lambda pod: pod.identity.name)
        for pod in pods:
            scheduled, message = condition_of(pod.remote_status, "PodScheduled")
            if pod.identity.kind == "Pod" and scheduled is False:
                yield pod.identity.name, message


def workloads_of(inputs: Inputs, replicas: Iterable[JsonObject]) -> list[ReplicaWorkloads]:
    """Ask the handler of replicas about each, with the pods it would be told of (`diagnose: Pods`)."""
    configs = inputs.manifests["WorkloadConfig"]
    config = {**(configs[0].content if configs else {}), "diagnose": "Pods"}
    answers = []
    for replica in replicas:
        first = Request(PlainDocument(replica), _observed(inputs, replica), input=config)
        clusters, assumed = _cluster(inputs, replica)
        required = {
            requirement.name: tuple(map(PlainDocument, _delivered(inputs, requirement, clusters)))
            for requirement in declared(first)
        }
        request = replace(first, required=required)
        answers.append(ReplicaWorkloads(replica, request, run(request), assumed))
    return answers


def _observed(inputs: Inputs, replica: JsonObject) -> dict[str, PlainDocument]:
    """Return the composed resources of a replica that the files hold, by their keys."""
    observed = {}
    for kind in (KIND, COLLECTION):
        for manifest in inputs.manifests[kind]:
            labels, annotations = (
                mapping(manifest.metadata.get(field_name)) for field_name in ("labels", "annotations")
            )
            key = annotations.get(KEY_ANNOTATION)
            is_own = labels.get(COMPOSITE_LABEL) == replica["metadata"]["name"]
            if is_own and isinstance(key, str) and manifest.namespace == replica["metadata"].get("namespace"):
                observed[key] = PlainDocument(manifest.content)
    return observed


def _cluster(inputs: Inputs, replica: JsonObject) -> tuple[list[JsonObject], tuple[Assumption, ...]]:
    """Return the replica's cluster, and what had to be assumed of it."""
    name = mapping(replica.get("spec")).get("clusterName")
    objects = [
        cluster for cluster in inputs.world.clusters if mapping(cluster.get("metadata")).get("name") == name
    ]
    if not objects or mapping(mapping(objects[0].get("status")).get("providerConfigRef")).get("name"):
        return objects, ()
    status = {**mapping(objects[0].get("status")), "providerConfigRef": {"name": name}}
    assumption = Assumption(str(name), ("has", "have"), "no providerConfigRef: assumed one of its name")
    return [{**objects[0], "status": status}], (assumption,)


def _delivered(inputs: Inputs, requirement: Requirement, clusters: list[JsonObject]) -> list[JsonObject]:
    """Return what Crossplane would fetch: the cluster, the members of a collection, or namesakes."""
    if requirement.name == CLUSTER:
        return clusters
    wanted = dict(requirement.match_labels or ())
    return [
        manifest.content
        for manifest in inputs.manifests[requirement.kind]
        if wanted.items() <= mapping(manifest.metadata.get("labels")).items()
        and requirement.namespace in (None, manifest.namespace)
        and requirement.match_name in (None, manifest.name)
    ]

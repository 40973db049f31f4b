"""Place the adapters of the files on the replicas that a plan desires, as their handler would.

One request for each ModelAdapter, the oldest first, once all deployments are planned. Each sees the slots
that the earlier ones took. The handler is asked through `dispatch`, as a server would ask it. A replica that
is only planned takes adapters too, so that a whole folder can be planned before anything runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.adapter.snapshot import PLACEMENT_KEY, fleet, standing
from function.api.adapter import PLACEMENT_KIND
from function.api.model import mapping
from function.api.ownership import turn
from function.boundary import PlainDocument, Request
from function.cli.worlds.settling import plain_conditions
from function.cli.worlds.workloads import replicas_of
from function.dispatch import run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.boundary import JsonObject, Requirement, Response
    from function.cli.worlds.inputs import Inputs
    from function.cli.worlds.manifest import Manifest
    from function.cli.worlds.world import Planned


@dataclass(frozen=True, slots=True)
class PlannedAdapter:
    """One adapter, and what its handler answers."""

    manifest: Manifest
    response: Response
    places: tuple[tuple[str, str, str], ...]
    """Replica, cluster, and `new` or `retained`."""

    @property
    def title(self) -> str:
        """`namespace/name`."""
        return f"{self.manifest.namespace}/{self.manifest.name}"

    @property
    def plain(self) -> dict[str, Any]:
        """The answer as plain data."""
        replicas = [
            {"name": name, "cluster": cluster, "action": "Placed" if action == "new" else "Retained"}
            for name, cluster, action in self.places
        ]
        head = {"namespace": self.manifest.namespace, "name": self.manifest.name}
        return {**head, "conditions": plain_conditions(self.response), "replicas": replicas}


def adapters_of(inputs: Inputs, plans: Iterable[Planned]) -> list[PlannedAdapter]:
    """Ask about every adapter of the files, the oldest first."""
    adapters = inputs.manifests["ModelAdapter"]
    if not adapters:
        return []
    replicas = [replica for planned in plans for replica in replicas_of(planned)]
    clusters = {
        replica["metadata"]["name"]: str(mapping(replica.get("spec")).get("clusterName"))
        for replica in replicas
    }
    held: dict[str, list[JsonObject]] = {
        "ModelReplica": replicas,
        "ModelEndpoint": list(inputs.world.endpoints),
        PLACEMENT_KIND: [manifest.content for manifest in inputs.manifests[PLACEMENT_KIND]],
    }

    def deliver(requirement: Requirement) -> tuple[PlainDocument, ...]:
        wanted = dict(requirement.match_labels)
        return tuple(
            PlainDocument(item)
            for item in held[requirement.kind]
            if requirement.match_name in (None, item["metadata"].get("name"))
            and requirement.namespace in (None, item["metadata"].get("namespace"))
            and wanted.items() <= mapping(item["metadata"].get("labels")).items()
        )

    answers = []
    for manifest in sorted(adapters, key=_turn):
        observed = {
            f"{PLACEMENT_KEY}{item.spec.get('replica')}": PlainDocument(item.content)
            for item in inputs.manifests[PLACEMENT_KIND]
            if item.namespace == manifest.namespace and item.spec.get("adapter") == manifest.name
        }
        first = Request(PlainDocument(manifest.content), observed)
        required = {item.name: deliver(item) for item in (*standing(first), *fleet(first))}
        response = run(Request(first.composite, observed, required))
        places = []
        for key, desired in sorted(response.desired.items()):
            if key.startswith(PLACEMENT_KEY):
                name = key.removeprefix(PLACEMENT_KEY)
                places.append((name, clusters.get(name, ""), "retained" if key in observed else "new"))
                if key not in observed:
                    held[PLACEMENT_KIND].append(desired.resource)
        answers.append(PlannedAdapter(manifest, response, tuple(places)))
    return answers


def _turn(manifest: Manifest) -> tuple[str, str, str]:
    created = str(manifest.metadata.get("creationTimestamp") or "")
    return turn(created, manifest.namespace, manifest.name)

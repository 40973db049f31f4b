"""Claims: one ResourceClaimTemplate for each member that claims devices, and its generations.

A template's spec is immutable. So a wanted spec that is observed already is used as it is, key and name
included, and any other one becomes a new object under a new key and a new name. The old one stays until no
pod refers to it (`succession`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from function.fail_static import base_of, key_of
from function.objects import composed_object
from function.replica import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.api.workload import ClaimedRequest, WorkloadMember
    from function.objects import ObservedObject
    from function.replica.snapshot import ReplicaSnapshot

DIGEST = 8
"""Hex digits that tell the generations of a template apart."""


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """The template that a member's pods refer to."""

    key: str
    name: str
    resource: dict[str, Any]


def claim_templates(snapshot: ReplicaSnapshot) -> dict[tuple[str, str], ClaimTemplate]:
    """Return the template of every member that claims devices, by engine and role."""
    return {
        (engine.name, member.role): _template(snapshot, engine.name, member)
        for engine in snapshot.replica.engines
        for member in engine.members
        if member.claims
    }


def _template(snapshot: ReplicaSnapshot, engine: str, member: WorkloadMember) -> ClaimTemplate:
    spec = {"spec": {"devices": _devices(member)}}
    replica, role = snapshot.replica.name, member.role
    generations = dict(_generations(snapshot.observed, engine, role))
    key, name = names.claim_key(engine, role), names.claim_name(replica, engine, role)
    same = [
        generation
        for generation, observed in generations.items()
        if observed.manifest.get("spec") == spec and _is_usable(observed, snapshot.remote_namespace)
    ]
    if same:
        key = min(same, key=lambda candidate: (len(candidate), candidate))
        name = generations[key].identity.name
    elif generations:
        digest = sha256(json.dumps(spec, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:DIGEST]
        key, name = names.claim_key(engine, role, digest), names.claim_name(replica, engine, role, digest)
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": snapshot.remote_namespace},
        "spec": spec,
    }
    key = key_of(base_of(key), manifest, snapshot.observed)
    return ClaimTemplate(key, name, composed_object(manifest, snapshot.cluster.provider_config))


def _generations(
    observed: Mapping[str, ObservedObject], engine: str, role: str
) -> Iterator[tuple[str, ObservedObject]]:
    """Yield the observed templates of a member."""
    for key, observed_object in observed.items():
        read = names.read_key(base_of(key))
        if read == names.Key(names.CLAIM, engine, role.lower()):
            yield key, observed_object


def _is_usable(observed: ObservedObject, namespace: str) -> bool:
    """Whether pods in a namespace can refer to an observed template."""
    return bool(observed.identity.name) and observed.identity.namespace == namespace


def _devices(member: WorkloadMember) -> dict[str, Any]:
    devices: dict[str, Any] = {"requests": [_request(request) for request in member.device_requests]}
    if member.device_constraints:
        devices["constraints"] = [
            {
                **({"requests": list(constraint.requests)} if constraint.requests else {}),
                "matchAttribute": constraint.match_attribute,
            }
            for constraint in member.device_constraints
        ]
    return devices


def _request(request: ClaimedRequest) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": request.device_class_name, "count": request.count}
    if request.selectors:
        exactly["selectors"] = [{"cel": {"expression": selector.cel}} for selector in request.selectors]
    return {"name": request.name, "exactly": exactly}

"""Say what stays desired while something is unknown: Law 2 and Law C, for every handler.

Crossplane deletes every observed composed resource that is missing from the desired state. So doubt is
answered by desiring again what is observed:

- `foreign`: an object of another kind under a key of ours is doubt about everything there.
- `as_observed`: one object, exactly as it was last applied. For an object whose fate is in doubt.
- `everything_observed`: all that is ours. For a composite that cannot be read.
- `key_of`, `steadfast`: an Object of provider-kubernetes never becomes another remote object (Law C).
- `InternalError`: an error of our own. Every condition says so, the composite is not Ready, nothing leaves.

What is in doubt is decided where it is read (`scheduler.schedule`, a handler's reader); what doubt does is
decided here and nowhere else.

Law 2 is about replicas: none leaves but for one of the eight reasons of docs/how-it-schedules.md. Law C is
about whatever the other handlers compose, and is cited by these numbers:

1. An object leaves the desired state only where the spec was read and no longer has what the object belongs
   to, or where its successor is observed in use.
2. While a requirement is undelivered, absent or unreadable, everything observed stays exactly as it is,
   nothing is composed anew, and a condition says what is waited for. A guard against deletion is the
   exception: it changes nothing that runs, and doubt is what it protects from.
3. A field of the status that others rely on keeps its last value until another is observed.
4. The remote object behind a key never becomes another: another identity is another key.
5. Nor does the ProviderConfig of a key: a cluster that suddenly names another one is doubt.
6. A new release or a changed default changes no pod template, claim, Secret or namespace of a workload that
   is observed. Pods that run stay until the replica's own next edit, which a rollout paces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypeVar

from function import boundary
from function.api.model import mapping, plain_of
from function.api.names import API_VERSION
from function.api.reasons import INTERNAL_ERROR
from function.boundary import Condition, Desired, Document, Plain, Request, Requirement, Shape, text_at
from function.objects import KIND as OBJECT_KIND, NOTE, ObservedObject, identity_of

INTERNAL_ERROR_TEXT = (
    "The fleet scheduler failed on this request; nothing was changed. Its log has the details."
)
"""All that a client learns of an unexpected error: an exception's text may quote what it was given."""

T = TypeVar("T")

KEY_DIGEST = 8
"""Hex digits in the key of a successor."""

_SUCCESSOR = re.compile(rf"(?<=.)\.[0-9a-f]{{{KEY_DIGEST}}}\Z", re.ASCII)
"""What `key_of` adds to a key. Names that keys are made of may have dots too."""
_MANAGED_PREFIX = "crossplane.io/"
_MANAGED_SPEC = "crossplane"
_APPLIED: Shape = {
    "*": None,
    "metadata": {"namespace": None, "name": None, "labels": None, "annotations": None},
    "status": {},
}
"""What is read of an object that stays: nobody applies a status, mostly a copy of what a cluster has."""


@boundary.frozen
class Doubt:
    """Why a handler composes nothing anew: a reason of its first condition, and the message (Law C 2)."""

    reason: str
    message: str


def internal_error(
    request: Request, requirements: tuple[Requirement, ...], condition_types: tuple[str, ...]
) -> boundary.InternalError:
    """Return the answer to an error of our own (Law 2: that is doubt too, and removes nothing)."""
    undelivered = not all(requirement.delivered(request) for requirement in requirements)
    conditions = tuple(
        Condition(kind, status=False, reason=INTERNAL_ERROR, message=INTERNAL_ERROR_TEXT)
        for kind in condition_types
    )
    return boundary.InternalError(requirements, conditions, INTERNAL_ERROR_TEXT, undelivered=undelivered)


def everything_observed(
    request: Request, kind_of: Callable[[str, Document], str | None], namespace: str
) -> dict[str, Desired]:
    """Desire every observed resource of ours again, exactly as observed.

    `kind_of` returns the kind that stands under a key of ours, None for what belongs to another step.
    """
    observed: Mapping[str, Document] = request.observed
    return {
        key: Desired(as_observed(observed[key], kind=kind, namespace=namespace))
        for key in sorted(observed)
        if key not in request.desired and (kind := kind_of(key, observed[key])) is not None
    }


def as_observed(
    document: Document,
    *,
    kind: str,
    namespace: str,
    api_version: str = API_VERSION,
    fields: Sequence[str] = ("spec",),
) -> dict[str, Any]:
    """Emit an observed object again, exactly as it was last applied.

    What others own is left out: labels and spec fields that Crossplane manages, and everything the API
    server adds. An object without a readable name is emitted without one; Crossplane knows it by its key.
    An object of another kind under a key of ours stays what it is. `fields` hold what we apply.
    """
    plain = plain_of(document, _APPLIED)
    stated = mapping(plain.get("metadata"))
    namespace = stated.get("namespace") or namespace
    metadata: dict[str, Any] = {"namespace": namespace} if namespace else {}
    if isinstance(stated.get("name"), str):
        metadata["name"] = stated["name"]
    labelled = mapping(stated.get("labels")).items()
    labels = {key: value for key, value in labelled if not key.startswith(_MANAGED_PREFIX)}
    if labels:
        metadata["labels"] = labels
    note = mapping(stated.get("annotations")).get(NOTE)
    if note:
        metadata["annotations"] = {NOTE: note}
    if isinstance(plain.get("kind"), str) and plain["kind"] != kind:
        kept = {key: value for key, value in plain.items() if key != "status"}
        return {**kept, "metadata": metadata}
    again = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    applied = {field: plain[field] for field in fields if field in plain}
    if "spec" in fields:
        spec = mapping(plain.get("spec"))
        applied["spec"] = {key: value for key, value in spec.items() if key != _MANAGED_SPEC}
    return again | applied


def foreign(request: Request, kinds: Mapping[str, str]) -> str:
    """Return what is wrong where something of another kind stands under a key of ours, "" where nothing.

    `kinds`: what we compose, by key. Desiring ours there would orphan that object (Law C 4).
    """
    for key in sorted(kinds):
        is_ours = key in request.observed and key not in request.desired
        if is_ours and text_at(request.observed[key], "kind") != kinds[key]:
            return f"Something else stands under the key {key}: expected a composed {kinds[key]}"
    return ""


# What is composed on another cluster, through Objects of provider-kubernetes


def until_edited(wanted: T, earlier: T, running: object) -> T:
    """Return what is wanted, unless what an earlier rule made of the same spec is running (Law C 6)."""
    return earlier if running == earlier else wanted


def key_of(base: str, manifest: Mapping[str, Plain], observed: Mapping[str, ObservedObject]) -> str:
    """Return the key for a manifest: `base`, unless another remote object stands there.

    Law C 4: then it is `base.<digest of the identity>`, and stays that as long as it is observed.
    """
    identity = identity_of(manifest)
    successor = f"{base}.{sha256('/'.join(identity).encode()).hexdigest()[:KEY_DIGEST]}"
    if successor in observed:
        return successor
    holder = observed.get(base)
    return base if holder is None or holder.identity == identity else successor


def base_of(key: str) -> str:
    """Return the key that a successor's key was made of; any other key is its own base."""
    return _SUCCESSOR.sub("", key)


def steadfast(
    desired: Mapping[str, Desired], observed: Mapping[str, ObservedObject], keep: Callable[[str], Desired]
) -> dict[str, Desired]:
    """Keep as observed what would become another remote object, or one on another cluster.

    Law C 4 and 5, for whatever a handler composed: the last gate before the answer.
    """
    held = {}
    for key, wanted in desired.items():
        resource, holder = wanted.resource, observed.get(key)
        spec = mapping(resource.get("spec"))
        manifest = mapping(spec, "forProvider", "manifest")
        moves = holder is not None and (
            resource.get("kind") != holder.kind
            or (holder.kind == OBJECT_KIND and identity_of(manifest) != holder.identity)
            or mapping(spec.get("providerConfigRef")).get("name") != holder.provider_config
        )
        held[key] = keep(key) if moves else wanted
    return held

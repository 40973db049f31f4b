"""Objects of provider-kubernetes: make one of a manifest, and read an observed one.

An Object carries the manifest of one object of another cluster (`spec.forProvider.manifest`), applied with
the credentials that its ProviderConfig names. What was found there comes back in
`status.atProvider.manifest`. It is all that a function of the control plane can do and know on a workload
cluster.

    composed_object, observing_collection ▶ what is desired        read_object, read_briefly ▶ what was seen

The provider finds the remote object by what the manifest says it is. So a manifest that becomes another under
the same Object leaves the old remote object behind, for ever: see `fail_static`, Law C 4 and 5.

Limits: what is seen is as old as the provider's last look, at most ten minutes where nothing is watched. An
Object whose manifest is applied may still have the status of before; `replica.state` says when that counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, NamedTuple

from function.api.model import condition_of, mapping, mappings, number, plain_of, string
from function.boundary import Document, Plain, Shape, frozen

API_VERSION = "kubernetes.m.crossplane.io/v1alpha1"
KIND = "Object"
COLLECTION = "ObservedObjectCollection"
MEMBERSHIP_LABEL = "kubernetes.crossplane.io/owned-by-collection"
"""The label that the provider puts on the Objects of a collection; its value is the collection's name."""
PROVIDER_CONFIG_KIND = "ClusterProviderConfig"


def condition_query(kind: str) -> str:
    """Return the readiness query of what is ready when a condition of it is True."""
    return (
        "has(object.status.conditions) && object.status.conditions.exists("
        f'c, c.type == "{kind}" && c.status == "True")'
    )


AVAILABLE = condition_query("Available")
"""The readiness query of what has a condition Available."""

OBSERVE = ("Observe",)
"""Management policies of what is looked at and never touched."""
GONE = "external resource does not exist"
"""What Synced says of what is only looked at and is not there. What was seen before stays in the status."""
REFUSALS = (
    *("create failed: ", "update failed: ", "cannot resolve resource references: "),
    *("cannot get desired state: ", " is forbidden: ", "no matches for "),
)
"""What Synced says where an API server refuses an object, or what it is made from is not there."""
UNREACHED = re.compile(r'\b(Get|Put|Patch|Post|Delete) "https?://|context deadline exceeded')
"""What the provider says of a request without an answer. An API server says it of a webhook."""
WEBHOOK = " webhook "
_REFUSED_FIELDS = re.compile(r"(?<= is invalid: \[)(?:.*(?=\])|.*)|(?<=errors:\n  ).*", re.DOTALL)
"""The fields that are refused. Without a bracket behind them it is all the rest, so that a text of openings
is not read once for each."""
_NEXT_FIELD = re.compile(r"\n\s*|, (?=[^\s:]+: [A-Z])")
CONFLICT = "the object has been modified"
"""What an API server says of a write that came too late: the next one mends it."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation with the manifest that was applied last, on objects that are not applied server-side."""
NOTE = "modelplane.ai/evidence"
"""The annotation with what was known of pods when they were edited last: on an Object, or where that only
looks, in its manifest.
"""
COPIES_WAIT = " copies wait"
"""Ends the note of a gang whose pods become fewer: until its groups are replaced, no copies are added."""
KEEP_REMOTE = ("Observe", "Create", "Update", "LateInitialize")
"""Management policies without Delete: the remote object outlives its Object."""


class ObjectIdentity(NamedTuple):
    """The identity by which the provider finds a remote object. The version is no part of it."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`PodDisruptionBudget default/chat-5ab63-main`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


NOTHING = ObjectIdentity("", "", "", "")


def identity_of(manifest: Mapping[str, Plain]) -> ObjectIdentity:
    """Return what a manifest says it is; what it does not say is empty."""
    metadata = mapping(manifest.get("metadata"))
    return ObjectIdentity(
        group=string(manifest.get("apiVersion")).rpartition("/")[0],
        kind=string(manifest.get("kind")),
        namespace=string(metadata.get("namespace")),
        name=string(metadata.get("name")),
    )


def composed_object(
    manifest: Mapping[str, Plain],
    provider_config: str,
    *,
    readiness: str = "",
    watch: bool = False,
    references: Sequence[Mapping[str, Plain]] = (),
    management: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the Object that applies a manifest. `readiness` is a CEL query; without one, created is ready.

    Its name is left to Crossplane, and fields that are not asked for are left out: what is emitted is owned.
    """
    spec: dict[str, Any] = {
        "forProvider": {"manifest": manifest},
        "providerConfigRef": {"kind": PROVIDER_CONFIG_KIND, "name": provider_config},
        "readiness": {"policy": "SuccessfulCreate"},
    }
    if readiness:
        spec["readiness"] = {"policy": "DeriveFromCelQuery", "celQuery": readiness}
    if watch:
        spec["watch"] = True
    if references:
        spec["references"] = [dict(reference) for reference in references]
    if management:
        spec["managementPolicies"] = list(management)
    return {"apiVersion": API_VERSION, "kind": KIND, "spec": spec}


def observing_collection(
    observed: Mapping[str, Plain],
    match_labels: Mapping[str, str],
    provider_config: str,
    annotations: Mapping[str, str],
) -> dict[str, Any]:
    """Return the collection that watches objects by their labels. `observed`: apiVersion, kind, namespace.

    `annotations` go to its members. When they change, the collection looks for members again.
    """
    spec: dict[str, Any] = {
        "observeObjects": {**observed, "selector": {"matchLabels": dict(match_labels)}},
        "providerConfigRef": {"kind": PROVIDER_CONFIG_KIND, "name": provider_config},
    }
    if annotations:
        spec["objectTemplate"] = {"metadata": {"annotations": dict(annotations)}}
    return {"apiVersion": API_VERSION, "kind": COLLECTION, "spec": spec}


@frozen
class ObservedObject:
    """One observed composed resource, as far as it can be read. Maps are as decoded and never changed."""

    name: str = ""
    """The name of the Object itself."""
    kind: str = ""
    """`Object`, `ObservedObjectCollection`; empty for what is neither, or cannot be read."""
    manifest: Mapping[str, Plain] = field(default_factory=dict)
    """What was last applied."""
    provider_config: str = ""
    """Empty where it names none, or one that is no ClusterProviderConfig."""
    remote: Mapping[str, Plain] | None = None
    """What was last seen on the cluster; None: nothing yet."""
    ready: bool | None = None
    synced: bool | None = None
    synced_message: str = ""
    identity: ObjectIdentity = NOTHING
    """What the provider finds its remote object by."""
    pending: bool = False
    """Whether the provider says that it has not acted on the latest manifest yet."""
    leaving: bool = False
    """Whether it, or its remote object, is being deleted."""
    note: str = ""
    """What was known of its pods when it was edited last, see `replica.state`."""
    copies_wait: bool = False
    """Whether more copies waited for its groups to become smaller, when it was last composed."""
    only_seen: bool = False
    """Whether it looks at its remote object and never touches it: what that does is another's doing."""

    @property
    def remote_status(self) -> Mapping[str, Plain]:
        """The status of the remote object, empty while there is none."""
        return mapping(self.remote, "status")

    @property
    def refusal(self) -> str:
        """The provider's words where this object could not be applied although its cluster was reached.

        "" for a failing network or credentials: every object has those at once, and the cluster says them.
        "" for a conflict as well, which passes.
        """
        message = self.synced_message
        refused = self.synced is False and any(words in message for words in REFUSALS)
        unreached = UNREACHED.search(message) is not None and WEBHOOK not in message
        return message if refused and not unreached and CONFLICT not in message else ""

    def is_applied(self, *, was_applied: bool) -> bool:
        """Tell whether the remote object is what the manifest says, and stays.

        One that has everything may still have what the manifest left out since: hence `pending`. Where the
        provider failed, what it applied last decides, if it noted that on the remote object. Else the failure
        establishes nothing: what `was_applied` before still is.
        """
        if self.remote is None or self.pending or self.leaving:
            return False
        if self.synced is False:
            annotations = mapping(self.remote, "metadata", "annotations")
            try:
                last = json.loads(string(annotations.get(LAST_APPLIED)))
            except (ValueError, RecursionError):
                last = None  # Applied server-side, the remote object has no such note.
            last = last if isinstance(last, dict) else None
            if last != self.manifest and not (was_applied and last is None):
                return False
        return covers(self.remote.get("spec"), self.manifest.get("spec"))


_METADATA: Mapping[str, Shape | None] = {
    "name": None,
    "namespace": None,
    "generation": None,
    "deletionTimestamp": None,
}
_HEAD: Shape = {"apiVersion": None, "kind": None, "metadata": _METADATA}
_WRITES: Shape = {"subresource": None, "time": None, "fieldsV1": {"f:spec": {"f:leaderWorkerTemplate": {}}}}
"""When the parts of a remote object were written, as far as that is evidence."""
_REMOTE: Shape = {
    **_HEAD,
    "metadata": {**_METADATA, "annotations": {LAST_APPLIED: None}, "managedFields": _WRITES},
    "spec": None,
    "data": None,
    "status": None,
}


def _shape(manifest: Shape | None, remote: Shape) -> Shape:
    """The paths that are read of an Object, with the parts of its manifest and of the remote object."""
    return {
        "apiVersion": None,
        "kind": None,
        "metadata": {
            "name": None,
            "generation": None,
            "deletionTimestamp": None,
            "annotations": {NOTE: None},
        },
        "spec": {
            "forProvider": {"manifest": manifest},
            "providerConfigRef": None,
            "managementPolicies": None,
        },
        "status": {"conditions": None, "atProvider": {"manifest": remote}},
    }


SHAPE = _shape(None, _REMOTE)
BRIEF_SHAPE = _shape(_HEAD, {**_HEAD, "status": None})


def read_object(document: Document, shape: Shape = SHAPE) -> ObservedObject:
    """Read one observed composed resource as far as it can be.

    What is not certain of it is left out: doubt removes nothing. What cannot be read has no kind, which is
    doubt to every handler.
    """
    plain = plain_of(document, shape)
    metadata = mapping(plain.get("metadata"))
    name = string(metadata.get("name"))
    if string(plain.get("apiVersion")).partition("/")[0] != API_VERSION.partition("/")[0]:
        return ObservedObject(name=name)
    spec, status = mapping(plain.get("spec")), mapping(plain.get("status"))
    reference = mapping(spec.get("providerConfigRef"))
    kind = string(plain.get("kind"))
    synced, synced_message = condition_of(status, "Synced")
    # An API server lists the fields that it refuses in another order each time, and a text that changes wakes
    # everybody who reads it.
    synced_message = _REFUSED_FIELDS.sub(
        lambda fields: ", ".join(sorted(_NEXT_FIELD.split(fields[0]))), synced_message
    )
    manifest = mapping(spec, "forProvider", "manifest")
    identity = identity_of(manifest)
    # The provider leaves what it saw last in the status: also of an object that is gone since, or of another
    # one than the manifest now names. Neither is anything seen of this one.
    remote = mapping(status.get("atProvider")).get("manifest")
    is_gone = synced is False and GONE in synced_message
    if not isinstance(remote, dict) or is_gone:
        remote = None
    elif any(
        has != wanted for has, wanted in zip(identity_of(remote), identity, strict=True) if has and wanted
    ):
        remote = None  # A part of an identity that one of them leaves out is no difference.
    # Synced may be about an earlier generation than the Object has, or not say which it is about.
    generations = [
        number(condition.get("observedGeneration"), 0)
        for condition in mappings(status.get("conditions"))
        if condition.get("type") == "Synced"
    ]
    remote_metadata = mapping(remote, "metadata")
    notes = (
        mapping(held.get("annotations")).get(NOTE) for held in (metadata, mapping(manifest.get("metadata")))
    )
    note = next(filter(None, map(string, notes)), "")
    return ObservedObject(
        name=name,
        kind=kind if kind in (KIND, COLLECTION) else "",
        manifest=manifest,
        identity=identity,
        provider_config=(
            string(reference.get("name")) if reference.get("kind") == PROVIDER_CONFIG_KIND else ""
        ),
        remote=remote,
        ready=condition_of(status, "Ready")[0],
        synced=synced,
        synced_message=synced_message,
        pending=min(generations, default=0) < number(metadata.get("generation"), 0),
        note=note.removesuffix(COPIES_WAIT),
        copies_wait=note.endswith(COPIES_WAIT),
        leaving=any(bool(held.get("deletionTimestamp")) for held in (metadata, remote_metadata)),
        only_seen=spec.get("managementPolicies") == [*OBSERVE],
    )


read_briefly = partial(read_object, shape=BRIEF_SHAPE)
"""Read the same without specs: what it is, where it is, and the status of its remote object."""


def covers(remote: Plain, wanted: Plain) -> bool:
    """Tell whether a remote value has everything that is wanted of it.

    An API server adds fields and drops empty ones.
    """
    if isinstance(wanted, dict):
        held = remote if isinstance(remote, dict) else {}
        return all(covers(held.get(key), wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        held_items = remote if isinstance(remote, list) else []
        return len(held_items) == len(wanted) and all(map(covers, held_items, wanted))
    return bool(remote == wanted)

"""Say whether a workload's status is about the spec that stands beside it.

A provider reports what the API server answered to its own write: the new spec beside the status of before.
The controller of the workload may act a moment, an hour or never later. So a status counts only with evidence
that whoever wrote it had seen this spec:

1. `observedGeneration`, where the controller reports one, is that of the object.
2. The object has only ever had one spec: its generation is 1.
3. The status was written after the template, by the API server's own clock (`metadata.managedFields`). The
   controller of LeaderWorkerSets writes its status with the version of the object that it read, so a write
   that was based on an earlier spec is refused. Times have seconds; within the same one nothing is known.
4. The pods were known to run this template before, and no other one was asked for since. A change of `copies`
   or of a label restarts no pod, and the controller may have nothing to write for it.
5. The pods were known to run this template before, another one was asked for and taken back, and the status
   is still the one of before: the controller never acted on the other.

LeaderWorkerSet 0.8 reports no `observedGeneration`. What 4 and 5 need to know is noted on the Object that
carries an edit, in the same write as the edit (`noted`): neither can be lost without the other. Where there
is no evidence, nothing is known, and nothing that waits for it happens.

An Object without a note was not edited by a release that leaves one. Of such a one it is believed, once, that
its pods run what ModelUpdated says they do; from then on that is noted.
"""

from __future__ import annotations

import json
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from function.api.model import mapping, mappings, string

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Plain
    from function.objects import ObservedObject

DIGEST_LENGTH = 16
"""Hex digits of a template, or of a status, in a note."""
UNKNOWN = "unknown"
"""The note of a workload of whose pods nothing was known when it was edited."""


class Edit(Enum):
    """The change that an answer makes to a workload."""

    NOTHING = 0
    NO_TEMPLATE = 1
    """Copies, labels of the workload: nothing that restarts a pod."""
    TEMPLATE = 2


def is_about_spec(workload: ObservedObject, template: str, *, was_updated: bool) -> bool:
    """Tell whether the status of a workload is about its spec.

    `template`: what `digest_of` says of it. `was_updated`: ModelUpdated was True.
    """
    generation = mapping((workload.remote or {}).get("metadata")).get("generation")
    if not isinstance(generation, int):
        return False
    reported = workload.remote_status.get("observedGeneration")
    if isinstance(reported, int) or workload.identity.kind != "LeaderWorkerSet":
        return isinstance(reported, int) and reported >= generation
    if generation == 1 or _written_after_template(workload):
        return True
    believed = was_updated and not workload.note
    return believed or workload.note in (template, f"{template} {digest_of(workload.remote_status)}")


def says_when(workload: ObservedObject) -> bool:
    """Tell whether a workload tells when its parts were written: a provider may be told to leave that out."""
    return bool(mappings(mapping((workload.remote or {}).get("metadata")).get("managedFields")))


def noted(workload: ObservedObject, template: str, edit: Edit, *, evident: bool) -> str:
    """Return the note for an Object that is edited now, "" for none.

    `template`: that of the workload as it is observed. `evident`: its status is about that.
    """
    note = workload.note
    match edit:
        case Edit.NOTHING:
            believed = evident and not note and not is_about_spec(workload, template, was_updated=False)
            return template if believed else note
        case Edit.NO_TEMPLATE:
            return template if evident else note or UNKNOWN
        case Edit.TEMPLATE:
            taken_back = note if " " in note else UNKNOWN
            return f"{template} {digest_of(workload.remote_status)}" if evident else taken_back


def template_of(spec: Plain) -> Plain:
    """Return a workload's spec without its copies: what restarts pods."""
    return {key: value for key, value in mapping(spec).items() if key != "replicas"}


def digest_of(value: Plain | Mapping[str, Any]) -> str:
    """Return the digest of a template or of a status."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def _written_after_template(workload: ObservedObject) -> bool:
    """Tell whether the status was written in a later second than the template."""
    writes = mappings(mapping((workload.remote or {}).get("metadata")).get("managedFields"))
    templates, statuses = [""], [""]
    for write in writes:
        if write.get("subresource") == "status":
            statuses.append(string(write.get("time")))
        elif "f:leaderWorkerTemplate" in mapping(mapping(write.get("fieldsV1")).get("f:spec")):
            templates.append(string(write.get("time")))
    return "" < max(templates) < max(statuses)

"""Every way in which the replica handler answers otherwise than v0.3: rows of docs/compatibility.md.

A deviation is as narrow as it can be: what it does not explain is a defect of one side or a missing row.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from function.fail_static import base_of
from function.replica import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.chain.difference import Difference
    from tests.chain.pair import Pair

Plain = dict[str, Any]

SPEC = ".spec.forProvider.manifest.spec"


class Deviation(Enum):
    """The deviations that recorded answers can show, named as in docs/compatibility.md."""

    Deadline = "weights take longer than ten minutes"
    ModelUpdated = "a condition says how far an update is"
    NoSurge = "an update takes no devices that nobody charged"
    NothingIsNotReady = "a replica without any resource is not ready"
    PickerCounts = "a replica serves when its picker works"
    ValidNames = "a name that Kubernetes refuses is mended"


def explanations(pair: Pair, difference: Difference) -> list[Deviation]:
    """Return the deviations that explain a difference, none when it is unexplained."""
    return [item for item in Deviation if _EXPLAINS[item](pair, difference)]


def _deployment(pair: Pair, key: str) -> Plain:
    manifest = pair.theirs.desired.get(key, {}).get("spec", {}).get("forProvider", {}).get("manifest", {})
    return dict(manifest) if manifest.get("kind") == "Deployment" and key != names.PICKER else {}


def _claims(manifest: Plain) -> bool:
    return "resourceClaims" in manifest.get("spec", {}).get("template", {}).get("spec", {})


def _deadline(pair: Pair, difference: Difference) -> bool:
    added = difference.path == f"{SPEC}.progressDeadlineSeconds" and difference.ours == 7200
    return difference.what == "desired" and added and bool(_deployment(pair, difference.key))


def _no_surge(pair: Pair, difference: Difference) -> bool:
    wanted = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    added = difference.path == f"{SPEC}.strategy" and difference.ours == wanted
    return difference.what == "desired" and added and _claims(_deployment(pair, difference.key))


def _updated(pair: Pair, difference: Difference) -> bool:
    return (difference.what, difference.key, difference.theirs) == ("condition", "ModelUpdated", None)


def _nothing(pair: Pair, difference: Difference) -> bool:
    return difference.what == "readiness" and difference.ours is True and not pair.ours.desired


def _picker(pair: Pair, difference: Difference) -> bool:
    if (difference.what, difference.key) == ("ready", names.PICKER):
        conditions = pair.observed[names.PICKER]["status"]["conditions"]
        ready = [condition["status"] for condition in conditions if condition["type"] == "Ready"]
        return ready != ["True"] and difference.ours is False
    starting = (difference.ours, difference.theirs) == ((False, "PickerStarting"), (True, "Serving"))
    return (difference.what, difference.key) == ("condition", "ModelReady") and starting


def _names(pair: Pair, difference: Difference) -> bool:
    """A refused name is another remote object under another key; the old key stays until it is replaced."""
    replica = pair.composite["metadata"]["name"]
    refused = replica[0].isdigit() or len(f"{replica}-pool") > 63
    if not refused:
        return False
    if difference.what == "condition":
        moved = difference.key == "ModelAccepted" and difference.ours == (False, "Deploying")
        return moved and any("." in key for key in pair.ours.desired if key.startswith(names.WORKLOAD))
    if difference.what == "ready":
        return base_of(difference.key) != difference.key or difference.ours is True
    named = difference.path.endswith((".name", ".metadata", ".app"))
    named = named or difference.path.startswith((f"{SPEC}.selector", f"{SPEC}.template"))
    key = difference.key
    return difference.what == "desired" and (base_of(key) != key or named)


_EXPLAINS: dict[Deviation, Callable[[Pair, Difference], bool]] = {
    Deviation.Deadline: _deadline,
    Deviation.ModelUpdated: _updated,
    Deviation.NoSurge: _no_surge,
    Deviation.NothingIsNotReady: _nothing,
    Deviation.PickerCounts: _picker,
    Deviation.ValidNames: _names,
}

"""Every way in which the replica handler answers otherwise than v0.3: rows of docs/compatibility.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.fail_static import base_of
from function.replica import names
from tests.support.deviation import Deviation

if TYPE_CHECKING:
    from tests.chain.difference import Difference
    from tests.chain.pair import Pair

Plain = dict[str, Any]

SPEC = ".spec.forProvider.manifest.spec"


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


def _label(pair: Pair, difference: Difference) -> bool:
    """Where the picker is new, its pods have a label of ours, by which its Service selects them."""
    own_path = {
        names.PICKER: f"{SPEC}.template.metadata.labels.modelplane.ai/picker",
        names.PICKER_SERVICE: f"{SPEC}.selector.modelplane.ai/picker",
    }
    key, path = difference.key, difference.path
    if difference.what != "desired" or base_of(key) in pair.observed:
        return False
    selects_no_app = (key, path) == (names.PICKER_SERVICE, f"{SPEC}.selector.app")
    return path == own_path.get(key) or selects_no_app


def _reads(pair: Pair, difference: Difference) -> bool:
    """A new picker's Role has the rules that it had, and more; its pods have probes."""
    if difference.what != "desired" or base_of(difference.key) in pair.observed:
        return False
    if difference.key == names.PICKER_ROLE and difference.path == f"{SPEC.removesuffix('.spec')}.rules":
        return bool(difference.ours[: len(difference.theirs)] == difference.theirs)
    return difference.key == names.PICKER and difference.path.endswith("Probe")


DEVIATIONS: tuple[Deviation[Pair, Difference], ...] = (
    Deviation("Deadline", "weights take longer than ten minutes", _deadline),
    Deviation("ModelUpdated", "a condition says how far an update is", _updated),
    Deviation("NoSurge", "an update takes no devices that nobody charged", _no_surge),
    Deviation("NothingIsNotReady", "a replica without any resource is not ready", _nothing),
    Deviation("OwnSelectors", "what we select by is nothing that a user can set", _label),
    Deviation("PickerCounts", "a replica serves when its picker works", _picker),
    Deviation("PickerReads", "a picker reads every kind that it waits for", _reads),
    Deviation("ValidNames", "a name that Kubernetes refuses is mended", _names),
)

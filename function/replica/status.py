"""The status of the replica, only where our XRD declares it and the input asks for it.

Crossplane applies the status with one owner, so a field that is left out is removed: in doubt it is written
again as it was (Law C 3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.lenient import mapping
from function.api.serving_digest import serving_digest
from function.fail_static import Doubt
from function.replica.composition import CompositionCache
from function.replica.state import all_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Request
    from function.replica.snapshot import ReplicaSnapshot
    from function.replica.state import EngineState

_FIELDS = ("engines", "servingDigest")


def status(
    request: Request,
    snapshot: ReplicaSnapshot | Doubt,
    states: tuple[EngineState, ...],
    composite: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the fields of the status to write."""
    before = {key: value for key, value in mapping(composite.get("status")).items() if key in _FIELDS}
    if isinstance(snapshot, Doubt):
        return before
    if snapshot.config.status != "Engines":
        return {}
    engines = [
        {"name": state.name, "copies": state.copies, "available": state.available, "updated": state.updated}
        for state in states
    ]
    if all_of(state.rolled_out for state in states):
        return {"engines": engines, "servingDigest": _digest(request, snapshot)}
    return {**{key: before[key] for key in before if key == "servingDigest"}, "engines": engines}


def _digest(request: Request, snapshot: ReplicaSnapshot) -> str:
    """Return the digest of what the pods run. It stays with the replica, which is read once."""
    cache = snapshot.replica.cache_of(CompositionCache)
    if cache.digest is None:
        cache.digest = serving_digest(mapping(request.composite.project({"spec": None}).get("spec")))
    return cache.digest

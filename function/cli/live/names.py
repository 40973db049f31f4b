"""The names of what a control plane has: what a shell completes, and where a deployment is looked for."""

from __future__ import annotations

from function.cli.live.connection import ControlPlane, Target
from function.cli.live.resources import FLEET


def names_of(target: Target, kind: str) -> list[tuple[str, str]]:
    """Namespace and name of every object of a kind of a control plane. Raises BadInput."""
    return identities(ControlPlane(target), kind)


def identities(plane: ControlPlane, kind: str) -> list[tuple[str, str]]:
    """The same, of one that is connected to."""
    resource = next(resource for resource in FLEET if resource.kind == kind)
    metadata = (plain["metadata"] for plain in plane.objects(resource))
    return [(str(entry.get("namespace") or ""), str(entry["name"])) for entry in metadata]

"""Everything ours that is observed, emitted again as it is: the answer when nothing may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.names import read_key
from function.compose import endpoints, replicas
from function.compose.objects import as_observed
from function.exchange import Desired

if TYPE_CHECKING:
    from function.exchange import Document, Request


def _kind(key: str, document: Document) -> str | None:
    read = read_key(key)
    if read is not None:
        return replicas.KIND if read[0] == "replica" else endpoints.KIND
    try:
        kind = document.project({"kind": None}).get("kind")
    except ValueError:
        return None
    return kind if kind in (replicas.KIND, endpoints.KIND) else None


def _namespace(request: Request) -> str:
    try:
        metadata: Any = request.composite.project({"metadata": {"namespace": None}}).get("metadata")
    except ValueError:
        return ""
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    return namespace if isinstance(namespace, str) else ""


def untouched(request: Request) -> dict[str, Desired]:
    """All observed replicas and endpoints of ours, exactly as observed."""
    namespace = _namespace(request)
    found = {}
    for key in sorted(request.observed):
        kind = _kind(key, request.observed[key])
        if kind is not None and key not in request.desired:
            found[key] = Desired(as_observed(request.observed[key], kind=kind, namespace=namespace))
    return found

"""Everything ours that is observed, emitted again as it is: the answer when nothing may change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.names import read_key
from function.compose import endpoints, replicas
from function.compose.objects import as_observed
from function.exchange import Desired, text_at

if TYPE_CHECKING:
    from function.exchange import Document, Request


def _kind(key: str, document: Document) -> str | None:
    read = read_key(key)
    if read is not None:
        return replicas.KIND if read[0] == "replica" else endpoints.KIND
    kind = text_at(document, "kind")
    return kind if kind in (replicas.KIND, endpoints.KIND) else None


def referenced(request: Request) -> tuple[str, str]:
    """The name of the ModelCache the composite references and its namespace, as far as they can be read."""
    cache = text_at(request.composite, "spec", "template", "spec", "modelCacheRef", "name")
    return cache, text_at(request.composite, "metadata", "namespace")


def untouched(request: Request) -> dict[str, Desired]:
    """All observed replicas and endpoints of ours, exactly as observed."""
    _, namespace = referenced(request)
    found = {}
    for key in sorted(request.observed):
        kind = _kind(key, request.observed[key])
        if kind is not None and key not in request.desired:
            found[key] = Desired(as_observed(request.observed[key], kind=kind, namespace=namespace))
    return found

"""Read services for an Operation: what each would route to, as a token.

A service follows its endpoints when its ttl runs out. Asked at once, it takes a failed replica out of its
route within a second. The token is a digest of all endpoints that its selectors match: a change of what no
route says, such as a condition, asks nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.lenient import mapping
from function.api.model_endpoint import read_endpoint
from function.api.names import RECONCILE_ANNOTATION
from function.boundary import Unreadable, text_at
from function.deployment.explain.digest import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Document, Request, Reuse, Shape

SERVICES, ENDPOINTS = "services", "endpoints"
ROUTED: Mapping[str, str] = {SERVICES: "ModelService", ENDPOINTS: "ModelEndpoint"}
"""What must be delivered: requirement name and kind."""

_LABELS: Shape = {"metadata": {"labels": None}}
_SELECTORS: Shape = {"spec": {"endpoints": None}}


@dataclass(frozen=True, slots=True)
class Service:
    """A service, as far as it is asked."""

    namespace: str
    name: str
    uid: str
    requested: str
    """The token it was last asked with."""


def service_tokens(request: Request, reuse: Reuse) -> dict[Service, str]:
    """Return the token of every service that is not being deleted, by namespace and name."""
    facts = [(_labels(document), _fact(document, reuse)) for document in request.required[ENDPOINTS]]
    tokens = {}
    for document in request.required[SERVICES]:
        namespace, name, uid = (text_at(document, "metadata", key) for key in ("namespace", "name", "uid"))
        requested = text_at(document, "metadata", "annotations", RECONCILE_ANNOTATION)
        if uid and not text_at(document, "metadata", "deletionTimestamp"):
            tokens[Service(namespace, name, uid, requested)] = digest(
                sorted(
                    f"{number} {fact}"
                    for number, selector in enumerate(_selectors(document))
                    for labels, fact in facts
                    if selector and selector.items() <= labels.items()
                )
            )
    return {service: tokens[service] for service in sorted(tokens, key=lambda one: (one.namespace, one.name))}


def _fact(document: Document, reuse: Reuse) -> str:
    """Return what a route may say of an endpoint; of one that cannot be read, its version."""
    where = "/".join(text_at(document, "metadata", key) for key in ("namespace", "name"))
    try:
        endpoint = reuse.parsed(document, read_endpoint)
    except ValueError:
        return f"{where} unreadable {text_at(document, 'metadata', 'resourceVersion')}"
    return f"{where} {endpoint.backend} {endpoint.spec.url} {endpoint.spec.rewrite_path}"


def _labels(document: Document) -> dict[str, str]:
    try:
        return mapping(mapping(document.project(_LABELS).get("metadata")).get("labels"))
    except Unreadable:
        return {}


def _selectors(service: Document) -> list[dict[str, str]]:
    """Return the labels that each group selects by, in whatever namespace: asking in vain costs a call."""
    try:
        groups = mapping(service.project(_SELECTORS).get("spec")).get("endpoints")
    except Unreadable:
        return []
    return [
        mapping(mapping(mapping(group).get("selector")).get("matchLabels"))
        for group in (groups if isinstance(groups, list) else ())
    ]

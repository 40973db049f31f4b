"""The gateway of the control plane: what it reports about routes, and where it would send requests."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.crossplane import ControlPlane, Store

Plain = dict[str, Any]

NAME = {"namespace": "modelplane-system", "name": "modelplane"}
SERVICE_LABEL = "kubernetes.io/service-name"


def report(plane: ControlPlane) -> None:
    """Write what a gateway says of every route: accepted, and whether each backend is a Service."""
    there = {
        (name.namespace, name.name)
        for name, plain in plane.objects.of_kind("Service").items()
        if "deletionTimestamp" not in plain["metadata"]
    }
    for name, route in list(plane.objects.of_kind("HTTPRoute").items()):
        missing = [backend for backend in backends(route) if (name.namespace, backend) not in there]
        text = f"Service {missing[0]} not found" if missing else ""
        conditions = [
            {"type": "Accepted", "status": "True", "message": ""},
            {"type": "ResolvedRefs", "status": str(not missing), "message": text},
        ]
        if "deletionTimestamp" not in route["metadata"]:
            plane.patch(name, status={"parents": [{"parentRef": NAME, "conditions": conditions}]})


def backends(route: Plain) -> dict[str, Plain]:
    """Return the references of a route, by Service."""
    (rule,) = route["spec"]["rules"]
    return {reference["name"]: reference for reference in rule.get("backendRefs", ())}


def shares(store: Store, route: Plain) -> dict[str, Fraction]:
    """Return which part of the requests goes where, by address and path; to "" goes what is answered 500."""
    namespace, references = route["metadata"]["namespace"], backends(route)
    total = sum(reference["weight"] for reference in references.values())
    counts: Counter[str] = Counter()
    for name, reference in references.items():
        (rewrite,) = reference["filters"]
        path = rewrite["urlRewrite"]["path"]["replacePrefixMatch"]
        address = leads_to(store, namespace, name)
        counts[f"{address}{path}" if address else ""] += reference["weight"]
    return {where: Fraction(weight, total) for where, weight in sorted(counts.items())}


def leads_to(store: Store, namespace: str, service: str) -> str:
    """Return the address behind a Service, "" where there is none."""
    for name, plain in sorted(store.of_kind("EndpointSlice").items()):
        if (name.namespace, plain["metadata"].get("labels", {}).get(SERVICE_LABEL)) == (namespace, service):
            return str(plain["endpoints"][0]["addresses"][0])
    return ""

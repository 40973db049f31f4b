"""The ModelService handler: the endpoints that a service selects become one route, the model's one address.

Replicas come and go, each with a URL of its own. A service keeps one address in front of them: an HTTPRoute
on a gateway of the control plane, with a backend for every ready endpoint (docs/routing.md).

    declared ▶ read_snapshot (groups of endpoints, or doubt) ▶ read_traffic (priority, weights)
             ▶ compose (the route) ▶ status (the address) ▶ conditions

Doubt keeps the observed route as it is (Law C 2): a service, an input or an endpoint that cannot be read, a
selection that is not delivered, somebody else's object under the key of the route. So does a service none of
whose endpoints is ready. Without backends a gateway answers every request with 500, and without a route with
404, while endpoints of yesterday may still answer.

Limits: one route of one rule, so at most 16 backends. Whether an endpoint of another namespace may be used
is for a ReferenceGrant there, which this handler neither reads nor writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from function import boundary, gateway_api
from function.api.fault import Malformed
from function.api.inputs import ANY_NAMESPACE, RoutingConfig, invalid_input
from function.api.model import condition_of, mapping, mappings, plain_of, string
from function.api.names import API_VERSION, bracketed
from function.api.routing import EndpointGroup, ModelEndpoint, read_endpoint, read_service
from function.api.text import joined, listed, one_line
from function.boundary import Condition, Cost, Desired, DocumentIdentity, Request, Requirement, Reuse, text_at
from function.fail_static import Doubt, as_observed, foreign
from function.routing.traffic import Selection, Traffic, read_traffic
from function.transitions import circuit_open, transitions, unmet

__all__ = ["CONDITION_TYPES", "COSTS", "KIND", "declared", "run"]

KIND = "ModelService"
ROUTE_KEY = "httproute"
RESOLVED, READY = "EndpointsResolved", "RoutingReady"
CONDITION_TYPES = (RESOLVED, READY)
"""The conditions that every answer carries, in their order."""
INFERENCE_GATEWAY, GATEWAY = "inference-gateway", "gateway"
"""Requirements that say where the gateway is reached: Modelplane's object, or the Gateway itself."""
INFERENCE_GATEWAY_NAME = "default"
MALFORMED, WAITING = "Malformed", "WaitingForEndpoints"
SHOWN = 3
"""How many endpoints a message names."""
COSTS: boundary.Costs = {read_endpoint: Cost(factor=8)}
"""The memory that a remembered endpoint takes."""


def declared(request: Request) -> tuple[Requirement, ...]:
    """Declare the endpoints of every group by their labels, and the object that says the address.

    Endpoints of other namespaces are asked for only where the input allows some: else whoever copies a label
    would fill this service's requests, and wake it with every write. Where it does, all are delivered and
    sorted out where they are read, so that a condition can say which ones are left out. All is read
    leniently: Crossplane must go on fetching while a part of the service is wrong, or the mended service
    would answer with doubt first.
    """
    requirements = []
    try:
        config: RoutingConfig | None = RoutingConfig.parse(request.input)
    except Malformed:
        config = None
    namespace = text_at(request.composite, "metadata", "namespace")
    within = None if config and config.allow_namespaces else namespace
    groups = mapping(plain_of(request.composite).get("spec")).get("endpoints")
    for number, group in enumerate(groups if isinstance(groups, list) else ()):
        labels = mapping(group, "selector", "matchLabels")
        # A requirement without labels would fetch every endpoint there is.
        if labels and all(isinstance(value, str) for value in labels.values()):
            match_labels = tuple(sorted(labels.items()))
            requirements.append(
                Requirement(
                    *(f"endpoints-{number}", API_VERSION, "ModelEndpoint"),
                    namespace=within,
                    match_labels=match_labels,
                )
            )
    if config is None:
        return tuple(requirements)
    if not config.gateway_address:
        name, namespace = config.gateway.name, config.gateway.namespace
        requirements.append(
            Requirement(
                GATEWAY, gateway_api.API_VERSION, gateway_api.GATEWAY, match_name=name, namespace=namespace
            )
            if config.address_from == "Gateway"
            else Requirement(
                INFERENCE_GATEWAY, API_VERSION, "InferenceGateway", match_name=INFERENCE_GATEWAY_NAME
            )
        )
    return tuple(requirements)


@boundary.frozen
class ServiceSnapshot:
    """All that one request tells about a service."""

    namespace: str
    name: str
    config: RoutingConfig
    selections: tuple[Selection, ...] | Doubt
    matched: int
    """Endpoints that the selectors match, each counted once; 0 in doubt."""
    route: Mapping[str, boundary.Plain] | None
    """The observed route; None while none of ours is."""
    status: Mapping[str, boundary.Plain]
    """The service's status as it is."""


def read_snapshot(request: Request, reuse: Reuse) -> ServiceSnapshot:
    """Read one request. Doubt about the endpoints is part of the snapshot: the route stays as it is then."""
    config, selections = _read(request, reuse)
    is_observed = ROUTE_KEY in request.observed and ROUTE_KEY not in request.desired
    fault = foreign(request, {ROUTE_KEY: gateway_api.ROUTE})
    if fault:
        selections = Doubt(MALFORMED, fault)
    matched: set[tuple[str, str]] = set()
    if not isinstance(selections, Doubt):
        matched = {(entry.namespace, entry.name) for selection in selections for entry in selection.endpoints}
    return ServiceSnapshot(
        namespace=text_at(request.composite, "metadata", "namespace"),
        name=text_at(request.composite, "metadata", "name"),
        config=config,
        selections=selections,
        matched=len(matched),
        route=plain_of(request.observed[ROUTE_KEY]) if is_observed else None,
        status=mapping(plain_of(request.composite).get("status")),
    )


def _read(request: Request, reuse: Reuse) -> tuple[RoutingConfig, tuple[Selection, ...] | Doubt]:
    """Read the input, the service and its endpoints; the first that cannot be read is the doubt."""
    try:
        config = RoutingConfig.parse(request.input)
    except Malformed as error:
        return RoutingConfig(), Doubt(MALFORMED, invalid_input(request, error))
    try:
        service = reuse.parsed(request.composite, read_service)
    except ValueError as error:
        return config, Doubt(MALFORMED, f"The ModelService cannot be read: {error}")
    allowed = {service.namespace, *config.allow_namespaces}
    selections = []
    read: dict[DocumentIdentity, ModelEndpoint] = {}
    for number, group in enumerate(service.spec.endpoints):
        name = f"endpoints-{number}"
        if request.resolution(name) is boundary.Resolution.UNRESOLVED:
            return config, Doubt(WAITING, f"The endpoints of spec.endpoints[{number}] are not delivered yet")
        selection = _selected(group, request.required[name], allowed, read, reuse)
        if isinstance(selection, Doubt):
            return config, selection
        selections.append(selection)
    return config, tuple(selections)


def _selected(
    group: EndpointGroup,
    documents: Iterable[boundary.Document],
    allowed: set[str],
    read: dict[DocumentIdentity, ModelEndpoint],
    reuse: Reuse,
) -> Selection | Doubt:
    """Read the endpoints of one group. `read`: those of groups before it, delivered for each group anew."""
    endpoints, left_out, faults = [], [], []
    for delivered in documents:
        document = delivered.opened()
        identity = document.identity
        if identity is not None and identity in read:
            endpoints.append(read[identity])
            continue
        of = text_at(document, "metadata", "namespace")
        # Of another namespace without a word of the platform team it is left out, whatever it says.
        if of not in allowed and ANY_NAMESPACE not in allowed:
            left_out.append(f"{of}/{text_at(document, 'metadata', 'name')}")
            continue
        try:
            endpoint = reuse.parsed(document, read_endpoint)
        except ValueError as error:
            end = text_at(document, "metadata", "name")
            faults.append((of, end, f"ModelEndpoint {of or '?'}/{end or '?'} cannot be read: {error}"))
            continue
        endpoints.append(endpoint)
        if identity is not None:
            read[identity] = endpoint
    if faults:
        return Doubt("EndpointUnreadable", min(faults)[2])
    # Law 1: the order of delivery decides nothing, so one that is listed twice is sorted by what it says.
    endpoints.sort(
        key=lambda end: (end.namespace, end.name, end.backend, end.spec.url, end.spec.rewrite_path)
    )
    return Selection(group, tuple(endpoints), tuple(left_out))


def compose(
    request: Request, snapshot: ServiceSnapshot, traffic: Traffic, *, ready: bool
) -> dict[str, Desired]:
    """Desire the route: anew while an endpoint is ready, else as it is observed."""
    if ROUTE_KEY in request.desired:
        # An earlier step of the pipeline desires it: then it is that step's.
        return {}
    if snapshot.route is not None and not traffic.backends:
        # Law C 2, for doubt and for no ready endpoint alike: see the top of this file.
        document, namespace = request.observed[ROUTE_KEY], snapshot.namespace
        kept = as_observed(
            document, kind=gateway_api.ROUTE, namespace=namespace, api_version=gateway_api.API_VERSION
        )
        return {ROUTE_KEY: Desired(kept, ready=ready)}
    if not snapshot.matched:
        return {}
    config = snapshot.config
    rule: dict[str, Any] = {"matches": [gateway_api.prefix_match(f"/{snapshot.namespace}/{snapshot.name}/")]}
    if config.request_timeout:
        rule["timeouts"] = {"request": config.request_timeout}
    references: list[dict[str, Any]] = []
    for backend in sorted(traffic.backends):
        reference = {
            "name": backend.service,
            "port": backend.port,
            "weight": traffic.backends[backend],
            "filters": [
                gateway_api.url_rewrite(backend.rewrite, backend.host if config.rewrite_host else "")
            ],
        }
        if backend.namespace != snapshot.namespace:
            reference["namespace"] = backend.namespace
        references.append(reference)
    if references:
        # A route without any is composed too: a service whose first endpoint becomes ready then changes a
        # route that the gateway has accepted already.
        rule["backendRefs"] = references
    gateway = {"namespace": config.gateway.namespace, "name": config.gateway.name}
    route = gateway_api.http_route({"namespace": snapshot.namespace}, gateway, rule)
    return {ROUTE_KEY: Desired(route, ready=ready)}


def status(request: Request, snapshot: ServiceSnapshot) -> dict[str, Any]:
    """Return the address of the model, as the status shall say it.

    Clients have it in their configuration. So the last one is written until another is observed (Law C 3),
    and while the input or the service cannot be read, for then it is not known where to look.
    """
    selections, config, host = snapshot.selections, snapshot.config, ""
    if not (isinstance(selections, Doubt) and selections.reason == MALFORMED):
        host = config.gateway_address
        # The Composition's bootstrap block may deliver the other object too: the input says which one counts.
        name = GATEWAY if config.address_from == "Gateway" else INFERENCE_GATEWAY
        if not host and request.resolution(name) is boundary.Resolution.DELIVERED:
            observed = mapping(plain_of(request.required[name][0]).get("status"))
            host = gateway_api.first_address(observed) if name == GATEWAY else string(observed.get("address"))
    if host and snapshot.name:
        base = host if "://" in host else f"http://{bracketed(host)}"
        return {"address": f"{base}/{snapshot.namespace}/{snapshot.name}"}
    last = snapshot.status.get("address")
    return {"address": last} if isinstance(last, str) and last else {}


# The conditions: both on every path, the same text for the same problem, and no time in them. A text that
# changed while the problem did not would be a write, which wakes whoever watches the service.


def endpoints_resolved(snapshot: ServiceSnapshot, traffic: Traffic) -> Condition:
    """EndpointsResolved: the selectors match endpoints, and those of the first priority take requests."""
    selections = snapshot.selections
    kept = "the route stays as it is" if snapshot.route is not None and not traffic.backends else ""
    if isinstance(selections, Doubt):
        return unmet(RESOLVED, selections.reason, joined(selections.message, kept))
    names = sorted({name for selection in selections for name in selection.left_out})
    others = (
        f"left out, of namespaces that allowNamespaces does not name: {listed(names, SHOWN)}" if names else ""
    )
    if not snapshot.matched:
        where = "" if snapshot.config.allow_namespaces else " of this namespace"
        text = joined(f"No ModelEndpoints{where} matched the configured selectors", others, kept)
        return unmet(RESOLVED, "NoEndpoints", text)
    beyond = listed(traffic.beyond, SHOWN)
    text = joined(
        f"Matched {snapshot.matched} endpoint(s)",
        f"{traffic.waiting} waiting for Backend" if traffic.waiting else "",
        f"requests go to priority {traffic.priority}" if traffic.failed_over else "",
        f"a route has room for {gateway_api.MAX_BACKENDS}, so no requests go to {beyond}" if beyond else "",
        others,
        kept,
    )
    if kept:
        return unmet(RESOLVED, "NoReadyEndpoint", text)
    # Failover is what the user asked for, so the condition stays True: the reason tells.
    reason = "FailedOver" if traffic.failed_over else "Resolved"
    return Condition(RESOLVED, status=True, reason=reason, message=one_line(text))


def routing_ready(snapshot: ServiceSnapshot, traffic: Traffic) -> Condition:
    """RoutingReady: the gateway took the route, and something is behind it."""
    if snapshot.route is None:
        if snapshot.matched:
            return unmet(READY, "Configuring", "The route is not observed yet")
        return unmet(READY, WAITING, "There is no endpoint to route to")
    route_status = mapping(snapshot.route.get("status"))
    refusal = next(gateway_api.rejections(route_status), "")
    if refusal:
        return unmet(READY, "RouteRejected", refusal)
    gateway = snapshot.config.gateway
    if not any(condition_of(parent, "Accepted")[0] for parent in mappings(route_status.get("parents"))):
        text = f"Gateway {gateway.namespace}/{gateway.name} has not accepted the route yet"
        return unmet(READY, "Configuring", text)
    # A route that is kept leads to backends of an earlier call: those it has, not those of this call, count.
    rules = mappings(mapping(snapshot.route.get("spec")).get("rules"))
    if not traffic.backends and not any(rule.get("backendRefs") for rule in rules):
        return unmet(READY, "Configuring", "The route has no backend yet")
    return Condition(READY, status=True, reason="RouteAccepted")


def run(request: Request, *, reuse: Reuse = boundary.NO_REUSE) -> boundary.Response:
    """Answer one request. The same request gets the same answer, whatever was asked before (Law 1)."""
    requirements = declared(request)
    snapshot = read_snapshot(request, reuse)
    traffic = Traffic(backends={})
    if not isinstance(snapshot.selections, Doubt):
        traffic = read_traffic(snapshot.selections, snapshot.route)
    conditions = endpoints_resolved(snapshot, traffic), routing_ready(snapshot, traffic)
    is_ready = conditions[1].status
    desired = compose(request, snapshot, traffic, ready=is_ready)
    is_settled = (
        all(requirement.delivered(request) for requirement in requirements)
        and all(condition.status for condition in conditions)
        and not traffic.waiting
        and not circuit_open(snapshot.status)
    )
    return boundary.Response(
        requirements=requirements,
        desired=desired,
        status=status(request, snapshot),
        # A resource that is not ready makes the composite unready by itself; where none is desired, we must.
        unready=not is_ready and all(composed.ready for composed in desired.values()),
        conditions=conditions,
        results=tuple(transitions(KIND, conditions, snapshot.status)),
        settled=is_settled,
        ttl=(snapshot.config.ttl.pending, snapshot.config.ttl.settled),
        counts={"endpoints": snapshot.matched, "backends": len(traffic.backends)},
    )

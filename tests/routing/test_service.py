"""ModelService: one address in front of the endpoints that its selectors match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from function.api import routing
from function.routing import service as handler, traffic
from tests.routing.build import (
    NAMESPACE,
    applied,
    config,
    endpoint,
    gateway,
    group,
    inference_gateway,
    observed,
    references,
    request_about,
    service,
    settled,
)

if TYPE_CHECKING:
    from tests.support.any_request import AnyRequest

Plain = dict[str, Any]

TWO = [endpoint("a"), endpoint("b")]


def rule(answer: Any) -> Plain:
    (made,) = answer.desired["httproute"]["spec"]["rules"]
    return dict(made)


@pytest.mark.parametrize("level", ["plain", "wire"])
def test_a_service_becomes_a_route_that_spreads_requests(level: str) -> None:
    answer = request_about(service(), TWO).answer(level=level)
    route = answer.desired["httproute"]
    assert route["spec"]["parentRefs"] == [{"name": "modelplane", "namespace": "modelplane-system"}]
    assert rule(answer)["matches"] == [{"path": {"type": "PathPrefix", "value": "/ml-team/chat/"}}]
    assert references(answer) == {"svc-a": 1, "svc-b": 1}
    assert answer.status == {"address": "http://198.51.100.9/ml-team/chat"}
    assert answer.conditions["EndpointsResolved"] == (True, "Resolved", "Matched 2 endpoint(s)")
    assert answer.conditions["RoutingReady"][:2] == (False, "Configuring")


def test_what_is_required() -> None:
    requirements = (
        request_about(service(group(), group(tier="external")), [], []).answer(level="wire").requirements
    )
    assert {
        requirement["name"]: (requirement["kind"], requirement["matchLabels"] or requirement["matchName"])
        for requirement in requirements
    } == {
        "endpoints-0": ("ModelEndpoint", {"app": "chat"}),
        "endpoints-1": ("ModelEndpoint", {"tier": "external"}),
        "inference-gateway": ("InferenceGateway", "default"),
    }


@pytest.mark.parametrize(
    ("settings", "within", "reason"),
    [
        ({}, NAMESPACE, "those of others with the same labels take no token, and no byte of a request"),
        ({"allowNamespaces": ["team-b"]}, None, "those of others are read, and what is left out is said"),
        ({"allowNamespaces": "team-b"}, NAMESPACE, "an input that cannot be read allows nobody"),
    ],
)
def test_whose_endpoints_are_required(settings: Plain, within: str | None, reason: str) -> None:
    answer = request_about(service(), TWO, settings=config(**settings)).answer(level="wire")
    required = {requirement["name"]: requirement for requirement in answer.requirements}
    assert required["endpoints-0"].get("namespace") == within, reason


@pytest.mark.parametrize("labels", [None, {}, "x", {"app": 3}])
def test_no_endpoints_are_required_without_labels_to_choose_them(labels: Any) -> None:
    """A requirement without labels fetches every endpoint of the control plane."""
    unlabelled = {"selector": {"matchLabels": labels}}
    answer = request_about(service(unlabelled, group(tier="external"))).answer()
    assert [requirement["name"] for requirement in answer.requirements] == [
        "endpoints-1",
        "inference-gateway",
    ]


PATHS = [
    ({"rewrite": "/ml-team/chat-1/"}, "/ml-team/chat-1/", "the path that the endpoint states"),
    ({"url": "https://api.example.com/v1"}, "/", "the version is part of what clients send"),
    ({"url": "https://api.example.com/api/v1/"}, "/api/", "the path above the version"),
    ({"url": "http://203.0.113.7"}, "/", "no path at all"),
]


@pytest.mark.parametrize(("fields", "path", "reason"), PATHS)
def test_the_prefix_is_rewritten(fields: Plain, path: str, reason: str) -> None:
    (reference,) = rule(request_about(service(), [endpoint(**fields)]).answer())["backendRefs"]
    (rewrite,) = reference["filters"]
    assert rewrite == {
        "type": "URLRewrite",
        "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": path}},
    }, reason


def test_the_host_is_rewritten_for_names_on_request() -> None:
    ends = [endpoint("a", "https://api.example.com/v1"), endpoint("b")]
    settings = config(rewriteHost=True, requestTimeout="0s")
    made = rule(request_about(service(), ends, settings=settings).answer())
    hosts = {
        backendref["name"]: backendref["filters"][0]["urlRewrite"].get("hostname")
        for backendref in made["backendRefs"]
    }
    assert hosts == {"svc-a": "api.example.com", "svc-b": None}
    assert made["timeouts"] == {"request": "0s"}


ADDRESSES: list[tuple[str, Plain, Plain, str | None]] = [
    ("the InferenceGateway's", {}, {}, "http://198.51.100.9/ml-team/chat"),
    ("IPv6 in brackets", {}, {"inference-gateway": [inference_gateway("2001:db8::1")]},
     "http://[2001:db8::1]/ml-team/chat"),
    ("none yet", {}, {"inference-gateway": [inference_gateway(None)]}, None),
    ("no InferenceGateway", {}, {"inference-gateway": []}, None),
    ("said by hand", {"gatewayAddress": "models.example.com"}, {}, "http://models.example.com/ml-team/chat"),
    ("said with its scheme", {"gatewayAddress": "https://models.example.com"}, {"inference-gateway": []},
     "https://models.example.com/ml-team/chat"),
    ("the Gateway's", {"addressFrom": "Gateway"}, {"inference-gateway": [], "gateway": [gateway()]},
     "http://198.51.100.9/ml-team/chat"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "settings", "required", "address"), ADDRESSES)
def test_the_address(reason: str, settings: Plain, required: Plain, address: str | None) -> None:
    request = request_about(service(), TWO, settings=config(**settings), required=required)
    if "gatewayAddress" in settings:
        request = request.but(required={"endpoints-0": TWO})
    answer = request.answer()
    assert answer.status.get("address") == address, reason
    last = request.but(composite=service(address="http://last")).answer()
    assert last.status["address"] == (address or "http://last"), "the last one stays until another is known"
    for hostile in ("", 3, {"x": "y"}):
        unreadable = request.but(composite=service(address=hostile)).answer()
        assert unreadable.status == ({"address": address} if address else {})


def test_who_says_the_address_is_required_and_nobody_else() -> None:
    """A control plane without Modelplane does not serve InferenceGateways: to require one would fail."""
    for settings, expected in (
        ({}, {"inference-gateway"}),
        ({"gatewayAddress": "x.example.com"}, set()),
        ({"addressFrom": "Gateway"}, {"gateway"}),
    ):
        answer = request_about(service(), TWO, settings=config(**settings)).answer(level="wire")
        requirements = {requirement["name"]: requirement for requirement in answer.requirements}
        assert requirements.keys() - {"endpoints-0"} == expected
        if "gateway" in requirements:
            assert requirements["gateway"]["namespace"] == "modelplane-system"
            assert requirements["gateway"]["matchName"] == "modelplane"


ELSEWHERE = endpoint("elsewhere", namespace="team-b")


@pytest.mark.parametrize("allowed", [[], ["team-c"], ["team-b"], ["*"]])
def test_endpoints_of_other_namespaces_are_used_where_that_is_allowed(allowed: list[str]) -> None:
    settings = config(allowNamespaces=allowed)
    answer = request_about(service(), [*TWO, ELSEWHERE], settings=settings).answer()
    refused = allowed in ([], ["team-c"])
    assert ("svc-elsewhere" in references(answer)) is not refused
    message = answer.conditions["EndpointsResolved"][2]
    assert ("team-b/elsewhere" in message) is refused, "what is left out is said"
    namespaces = {backendref.get("namespace") for backendref in rule(answer)["backendRefs"]}
    assert namespaces == ({None} if refused else {None, "team-b"})


def test_an_endpoint_of_many_selectors_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """16 selectors of 2,000 endpoints took 2.3 CPU seconds, each endpoint read for each selector."""
    reads: list[Any] = []
    looks: list[Any] = []
    parse, backend = routing.read_endpoint, traffic._backend
    monkeypatch.setattr(handler, "read_endpoint", lambda of: reads.append(of) or parse(of))
    monkeypatch.setattr(traffic, "_backend", lambda of, on: looks.append(of) or backend(of, on))
    stored = [endpoint("a"), endpoint("b"), endpoint("c", namespace="team-b")]
    for at, made in enumerate(stored):
        made["metadata"] |= {"uid": f"u{at}", "resourceVersion": "7"}
    groups = [group(weight=at + 1) for at in range(16)]
    asked = request_about(service(*groups), *[stored] * 16)
    answer = asked.answer(level="wire")
    assert (len(reads), len(looks)) == (2, 2)
    assert answer.desired == asked.answer().desired, "read again each time, for want of an identity"
    assert (len(reads), len(looks)) == (2 + 32, 2 + 32)


def test_of_one_identity_another_version_is_read_again() -> None:
    """Requirements are fetched one after the other, so an endpoint may have moved between two of them."""
    before, after = endpoint("a"), endpoint("a", url="http://203.0.113.8:8080/v1")
    for version, made in (("7", before), ("8", after)):
        made["metadata"] |= {"uid": "u", "resourceVersion": version}
    asked = request_about(service(group(), group()), [before], [after])
    answer = asked.answer(level="wire")
    assert {backend["port"] for backend in rule(answer)["backendRefs"]} == {80, 8080}
    assert answer.desired == asked.answer().desired


def test_a_gateway_decides_whether_the_route_serves() -> None:
    first = request_about(service(), TWO)
    answer = first.answer()

    def after(*parents: Plain) -> Any:
        return first.but(observed=observed(answer, parents)).answer()

    waiting = after()
    assert waiting.conditions["RoutingReady"][:2] == (False, "Configuring")
    assert "Gateway modelplane-system/modelplane" in waiting.conditions["RoutingReady"][2]
    assert not waiting.ready
    refused = {"type": "ResolvedRefs", "status": "False", "message": "Service svc-a not found"}
    rejected = after({"conditions": [{"type": "Accepted", "status": "True"}, refused]})
    assert rejected.conditions["RoutingReady"] == (False, "RouteRejected", "Service svc-a not found")
    accepted = after({"conditions": [{"type": "Accepted", "status": "True"}]})
    assert accepted.conditions["RoutingReady"][:2] == (True, "RouteAccepted")
    assert accepted.ready == {"httproute"}
    assert accepted.settled


def test_the_gateway_s_word_and_a_backend_make_a_route_ready() -> None:
    """The texts tell what a route waits for; an answer is settled where it waits for nothing."""
    none = request_about(service(), [])
    assert none.answer().conditions["EndpointsResolved"] == (
        False,
        "NoEndpoints",
        "No ModelEndpoints of this namespace matched the configured selectors",
    )
    anywhere = request_about(service(), [], settings=config(allowNamespaces=["team-b"])).answer()
    text = "No ModelEndpoints matched the configured selectors"
    assert anywhere.conditions["EndpointsResolved"][2] == text
    waiting = (False, "WaitingForEndpoints", "There is no endpoint to route to")
    assert none.answer().conditions["RoutingReady"] == waiting
    unready = request_about(service(), [endpoint("a", backend="")])
    unobserved = (False, "Configuring", "The route is not observed yet")
    assert unready.answer().conditions["RoutingReady"] == unobserved
    empty = settled(unready)
    assert empty.answer().conditions["RoutingReady"] == (False, "Configuring", "The route has no backend yet")
    assert not empty.answer().settled
    now = empty.but(required={**empty.required, "endpoints-0": TWO}).answer()
    assert now.conditions["RoutingReady"][:2] == (True, "RouteAccepted"), "the route of this call has one"
    serving = settled(request_about(service(), TWO))
    assert serving.answer().settled
    undelivered = serving.but(required={"endpoints-0": TWO}).answer()
    assert all(status for status, *_ in undelivered.conditions.values())
    assert not undelivered.settled, "who says the address is asked for again"
    joining = request_about(service(), [*TWO, endpoint("z", backend="")])
    assert settled(joining).answer().conditions["RoutingReady"][:2] == (True, "RouteAccepted")
    assert not settled(joining).answer().settled, "an endpoint still waits for its Service"


@pytest.mark.parametrize(("ready", "seconds"), [(False, 7), (True, 90)])
def test_the_input_says_how_long_an_answer_holds(ready: bool, seconds: int) -> None:  # noqa: FBT001
    request = request_about(service(), TWO, settings=config(ttl={"pending": "7s", "settled": "90s"}))
    answer = (settled(request) if ready else request).answer(level="wire")
    assert answer.raw.meta.ttl.seconds == seconds


def failover(*ready: str, weights: tuple[int, int] = (1, 1)) -> AnyRequest:
    groups = group(weights[0], 0, tier="fleet"), group(weights[1], 1, tier="external")
    backends = {name: (None if name in ready else "") for name in ("a", "b", "x")}
    ends = {name: endpoint(name, backend=backends[name]) for name in backends}
    return request_about(service(*groups), [ends["a"], ends["b"]], [ends["x"]])


def test_the_best_priority_with_a_ready_endpoint_takes_all_requests() -> None:
    assert references(failover("a", "b", "x").answer()) == {"svc-a": 1, "svc-b": 1}
    assert references(failover("b", "x").answer()) == {"svc-b": 1}
    away = failover("x").answer()
    assert references(away) == {"svc-x": 1}
    assert away.conditions["EndpointsResolved"][:2] == (True, "FailedOver")
    assert "priority 1" in away.conditions["EndpointsResolved"][2]


def test_failing_over_and_back_are_events_once() -> None:
    request, reasons = settled(failover("a", "b", "x")), []
    for ready in (("a", "b", "x"), ("x",), ("x",), ("b", "x"), ("a", "b", "x")):
        request = request.but(required=failover(*ready).required)
        answer = request.answer()
        reasons.append([event[1] for event in answer.events])
        request = applied(request, answer)
    assert reasons == [[], ["FailedOver"], [], ["Resolved"], []]


def test_a_group_without_weight_is_no_reason_to_fail_over() -> None:
    answer = failover("a", "x", weights=(0, 5)).answer()
    assert references(answer) == {"svc-x": 1}
    assert answer.reason("EndpointsResolved") == "Resolved"


BAD = [
    ({"endpoints": []}, "must not be empty", "a service of nothing"),
    ({"endpoints": [{"weight": 1}]}, "spec.endpoints[0].selector: required", "everything would match"),
    ({"endpoints": [{"selector": {"matchLabels": {}}}]}, "must not be empty", "everything would match"),
    ({"endpoints": [group(-1)]}, "spec.endpoints[0].weight", "less than none"),
    ({"endpoints": [group(0)]}, "a weight above 0", "nobody would answer"),
    ({"endpoints": [group(1_000_001)]}, "at most 1000000", "Gateway API takes no more"),
    ({"endpoints": [group(1, -1)]}, "spec.endpoints[0].priority", "priorities begin with 0"),
    ({"endpoints": [group(1.5)]}, "expected a whole number", "no half weights"),
    ({}, "spec.endpoints: required", "no endpoints"),
]


@pytest.mark.parametrize(("spec", "said", "reason"), BAD)
def test_a_service_that_cannot_be_read_names_the_field_and_keeps_the_route(
    spec: Plain, said: str, reason: str
) -> None:
    request = settled(request_about(service(), TWO))
    answer = request.but(composite={**request.composite, "spec": spec}).answer()
    status, name, message = answer.conditions["EndpointsResolved"]
    assert (status, name) == (False, "Malformed"), reason
    assert said in message, reason
    assert answer.desired["httproute"]["spec"] == request.observed["httproute"]["spec"]
    assert answer.conditions["RoutingReady"][:2] == (True, "RouteAccepted")
    assert not answer.unready
    fresh = request_about({**service(), "spec": spec}).answer()
    assert not fresh.desired
    assert fresh.unready


INPUTS = [
    ({"gatewayAddress": "ftp://x"}, "expected a host"),
    ({"gatewayAddress": "https://x/"}, "without a / at its end"),
    ({"requestTimeout": "soon"}, "a duration of Gateway API"),
    ({"addressFrom": "Service"}, "expected 'InferenceGateway' or 'Gateway'"),
    ({"allowNamespace": ["a"]}, "allowNamespace: no such field"),
]


@pytest.mark.parametrize(("fields", "said"), INPUTS)
def test_an_input_that_cannot_be_read_is_named(fields: Plain, said: str) -> None:
    answer = request_about(service(), TWO, settings=config(**fields)).answer()
    assert answer.reason("EndpointsResolved") == "Malformed"
    assert said in answer.conditions["EndpointsResolved"][2]
    assert not answer.desired


def test_the_namespace_of_the_route_is_the_service_s() -> None:
    assert request_about(service(), TWO).answer().desired["httproute"]["metadata"] == {"namespace": NAMESPACE}


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        (None, "http://198.51.100.9/ml-team/chat"),
        (config(addressFrom="InferenceGateway"), "http://198.51.100.9/ml-team/chat"),
        (config(addressFrom="Gateway"), "http://203.0.113.99/ml-team/chat"),
    ],
)
def test_the_address_is_that_of_the_object_the_input_names(settings: Plain | None, address: str) -> None:
    """Whatever else the Composition's bootstrap block delivers."""
    both = {"gateway": [gateway("203.0.113.99")]}
    request = request_about(service(), [endpoint()], settings=settings, required=both)
    assert request.answer().status["address"] == address


@pytest.mark.parametrize(
    "doubt",
    [{"input": config(gatewayAdress="x")}, {"composite": {"spec": "x"}}],
    ids=["an input with a typo", "a spec that cannot be read"],
)
def test_in_doubt_the_address_is_the_last_whatever_is_delivered(doubt: Plain) -> None:
    running = settled(
        request_about(service(), [endpoint()], settings=config(gatewayAddress="llm.example.com"))
    )
    if "composite" in doubt:
        doubt = {"composite": {**running.composite, **doubt["composite"]}}
    answer = running.but(**doubt).answer()
    assert answer.reason("EndpointsResolved") == "Malformed"
    assert answer.status == {"address": "http://llm.example.com/ml-team/chat"}

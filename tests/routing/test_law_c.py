"""Law C: doubt deletes nothing, and no composed resource becomes another one."""

from __future__ import annotations

import random
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from function import dispatch, wire
from function.boundary.memory import Memory, Session
from function.gateway_api import MAX_REPLACEMENT
from tests.fuzz.mutate import mutated
from tests.routing import generate
from tests.routing.build import applied, config, endpoint, observed, request_about, service, settled
from tests.support.any_request import AnyRequest
from tests.support.scale import BATCHES, batch

if TYPE_CHECKING:
    from tests.support.drive import Answer

Plain = dict[str, Any]

CONDITIONS = {
    "ModelEndpoint": ["RoutingReady"],
    "ModelService": ["EndpointsResolved", "RoutingReady"],
}
TWO = [endpoint("a"), endpoint("b")]
UNREADY = [endpoint("a", backend=""), endpoint("b", backend="")]


def unreadable(name: str = "a") -> Plain:
    return {**endpoint(name), "spec": "x"}


def deleted(name: str) -> Plain:
    made = endpoint(name)
    made["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"
    return made


DOUBTS: list[tuple[str, dict[str, Any], str]] = [
    ("not delivered", {"required": {}}, "WaitingForEndpoints"),
    ("delivered empty", {"required": {"endpoints-0": []}}, "NoEndpoints"),
    ("none of them ready", {"required": {"endpoints-0": UNREADY}}, "NoReadyEndpoint"),
    ("all of them being deleted", {"required": {"endpoints-0": [deleted("a")]}}, "NoReadyEndpoint"),
    ("one that cannot be read", {"required": {"endpoints-0": [unreadable(), TWO[1]]}}, "EndpointUnreadable"),
    ("an input with a typo", {"input": config(gatway={})}, "Malformed"),
    ("a spec that cannot be read", {"composite": {**service(), "spec": "x"}}, "Malformed"),
    (
        "no spec",
        {"composite": {key: value for key, value in service().items() if key != "spec"}},
        "Malformed",
    ),
]


@pytest.mark.parametrize(("doubt", "changes", "reason"), DOUBTS, ids=[pair[0] for pair in DOUBTS])
@pytest.mark.parametrize("level", ["plain", "wire"])
def test_in_doubt_the_observed_route_stays_and_serves(
    doubt: str, changes: dict[str, Any], reason: str, level: str
) -> None:
    running = settled(request_about(service(), TWO))
    if "composite" in changes:
        changes = {"composite": {**changes["composite"], "status": running.composite["status"]}}
    answer = running.but(**changes).answer(level=level)
    assert answer.desired["httproute"]["spec"] == running.observed["httproute"]["spec"], doubt
    assert answer.desired["httproute"]["metadata"]["name"] == "observed-httproute"
    assert answer.reason("EndpointsResolved") == reason
    assert "stays as it is" in answer.conditions["EndpointsResolved"][2]
    assert answer.conditions["RoutingReady"][:2] == (True, "RouteAccepted")
    assert answer.ready == {"httproute"}
    assert not answer.unready
    assert answer.status["address"] == running.composite["status"]["address"]
    assert [event[:2] for event in answer.events] == [("WARNING", reason)]


@pytest.mark.parametrize(("doubt", "changes", "reason"), DOUBTS, ids=[pair[0] for pair in DOUBTS])
def test_in_doubt_nothing_new_is_composed(doubt: str, changes: dict[str, Any], reason: str) -> None:
    answer = request_about(service(), TWO).but(**changes).answer()
    if reason == "NoReadyEndpoint":  # Nothing is in doubt: the route is there before its first backend.
        assert "backendRefs" not in answer.desired["httproute"]["spec"]["rules"][0]
        return
    assert not answer.desired, doubt
    assert answer.unready


def test_an_endpoint_whose_url_became_invalid_goes_on_taking_requests() -> None:
    other = endpoint("b", "http://203.0.113.8:8080/v1")
    running = settled(request_about(service(), [other, endpoint("a", rewrite="/a/")]))
    typo = endpoint("a", "http://vllm", rewrite="/a/")
    answer = running.but(required={"endpoints-0": [typo, other]}).answer()
    assert answer.desired["httproute"]["spec"] == running.observed["httproute"]["spec"]
    fresh = request_about(service(), [typo, endpoint("b")]).answer()
    (reference,) = fresh.desired["httproute"]["spec"]["rules"][0]["backendRefs"]
    assert reference["name"] == "svc-b", "nobody knows the port of one that never took any"
    pathless = running.but(required={"endpoints-0": [endpoint("a", "http://vllm"), other]}).answer()
    (reference,) = pathless.desired["httproute"]["spec"]["rules"][0]["backendRefs"]
    assert reference["name"] == "svc-b", "nor the path of one that states none"


@pytest.mark.parametrize(("length", "ready"), [(MAX_REPLACEMENT, True), (MAX_REPLACEMENT + 1, False)])
def test_a_path_longer_than_a_route_takes_is_not_ready(length: int, ready: bool) -> None:  # noqa: FBT001
    ends = [endpoint("a", rewrite="/".ljust(length, "x")), endpoint("b")]
    backends = request_about(service(), ends).answer().desired["httproute"]["spec"]["rules"][0]["backendRefs"]
    assert ("svc-a" in {backend["name"] for backend in backends}) is ready


def test_an_unreadable_endpoint_of_another_namespace_holds_nobody_up() -> None:
    """It is left out whatever it says: another team's object must not freeze this route."""
    running = settled(request_about(service(), TWO))
    theirs = {**endpoint("c", namespace="team-b"), "spec": "x"}
    answer = running.but(required={"endpoints-0": [theirs, endpoint("a"), UNREADY[1]]}).answer()
    assert answer.conditions["EndpointsResolved"][:2] == (True, "Resolved")
    assert "team-b/c" in answer.conditions["EndpointsResolved"][2]
    (reference,) = answer.desired["httproute"]["spec"]["rules"][0]["backendRefs"]
    assert reference["name"] == "svc-a", "b takes no requests any more"
    allowed = running.but(required={"endpoints-0": [theirs, *TWO]}, input=config(allowNamespaces=["team-b"]))
    assert allowed.answer().reason("EndpointsResolved") == "EndpointUnreadable"
    nowhere = {**unreadable("c"), "metadata": {"name": "c"}}
    anybody = running.but(required={"endpoints-0": [nowhere]}, input=config(allowNamespaces=["*"])).answer()
    assert "ModelEndpoint ?/c cannot be read" in anybody.conditions["EndpointsResolved"][2]


NONE = "No ModelEndpoints of this namespace matched the configured selectors; left out, of namespaces that"
TEXTS: list[tuple[str, list[Plain] | None, str]] = [
    ("not delivered", None, "The endpoints of spec.endpoints[0] are not delivered yet"),
    (
        "none of them ready",
        [*UNREADY],
        "Matched 2 endpoint(s); 2 waiting for Backend",
    ),
    (
        "another team's alone",
        [endpoint("c", namespace="team-b")],
        f"{NONE} allowNamespaces does not name: team-b/c",
    ),
    (
        "one that cannot be read",
        [unreadable()],
        "ModelEndpoint ml-team/a cannot be read: spec: expected a map, found a string",
    ),
    (
        "several, in any order",
        [unreadable("b"), unreadable("a")],
        "ModelEndpoint ml-team/a cannot be read: spec: expected a map, found a string",
    ),
    (
        "one without a name",
        [{**endpoint(), "metadata": {"namespace": "ml-team"}}],
        "ModelEndpoint ml-team/? cannot be read: metadata.name: required, but missing",
    ),
]


@pytest.mark.parametrize(("doubt", "delivered", "text"), TEXTS, ids=[row[0] for row in TEXTS])
def test_a_doubt_is_told_with_what_becomes_of_the_route(
    doubt: str, delivered: list[Plain] | None, text: str
) -> None:
    running = settled(request_about(service(), TWO))
    required = {key: items for key, items in running.required.items() if key != "endpoints-0"}
    required |= {} if delivered is None else {"endpoints-0": delivered}
    message = running.but(required=required).answer().conditions["EndpointsResolved"][2]
    assert message == f"{text}; the route stays as it is", doubt


def test_an_endpoint_that_is_listed_twice_counts_as_one_whatever_the_order() -> None:
    twice = [endpoint("a", "http://203.0.113.1/v1"), endpoint("a", "http://203.0.113.2:81/v1")]
    twice.append(endpoint("a", backend=""))
    answers = [request_about(service(), items).answer() for items in permutations([*twice, TWO[1]])]
    assert all(answer.same(answers[0]) for answer in answers)


INVALID = [({"url": url}, "InvalidURL") for url in ("http://vllm", "ftp://x.example.com", "http://127.0.0.1")]


@pytest.mark.parametrize(("spec", "reason"), [*INVALID, ("x", "Malformed"), ({"url": 3}, "Malformed")])
def test_an_invalid_url_keeps_the_service_and_its_slice(spec: Any, reason: str) -> None:
    running = settled(AnyRequest(endpoint(backend="")))
    before = running.answer()
    answer = running.but(composite={**running.composite, "spec": spec}).answer()
    assert answer.desired.keys() == {"service", "endpointslice"}
    assert answer.desired["service"]["spec"] == before.desired["service"]["spec"], "no address of Kubernetes"
    for field in ("addressType", "endpoints", "ports"):
        assert answer.desired["endpointslice"][field] == before.desired["endpointslice"][field]
    assert answer.status == {"routing": {"backendName": "observed-service"}}
    assert answer.conditions["RoutingReady"][:2] == (False, reason)
    message = answer.conditions["RoutingReady"][2]
    assert message.startswith(("spec.url: ", "The ModelEndpoint cannot be read: spec"))
    assert message.endswith("; what is composed stays as it is")
    assert answer.unready


def test_what_is_observed_without_its_fields_stays_what_it_was_in_its_namespace() -> None:
    """Law C 4: the kinds and the namespace are ours to say where an observed object does not."""
    metadata = {"namespace": "ml-team"}
    api_version = "gateway.networking.k8s.io/v1"
    kept = request_about(service(), TWO).but(observed={"httproute": {}}).answer().desired
    route = {"apiVersion": api_version, "kind": "HTTPRoute", "metadata": metadata, "spec": {}}
    assert kept == {"httproute": route}
    answer = AnyRequest(endpoint(backend=""), {"service": {}, "endpointslice": {}}).answer()
    assert answer.desired == {
        "service": {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": []}},
        "endpointslice": {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": metadata,
        },
    }


@pytest.mark.parametrize("kind", ["ConfigMap", ""])
def test_a_foreign_resource_under_a_key_of_ours_stays_and_is_named(kind: str) -> None:
    foreign = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "data": {"a": "b"}}
    for request, key in (
        (request_about(service(), TWO), "httproute"),
        (AnyRequest(endpoint(backend="")), "service"),
    ):
        answer = request.but(observed={key: foreign}).answer()
        assert answer.desired[key]["data"] == {"a": "b"}
        assert "spec" not in answer.desired[key]
        condition = next(iter(answer.conditions.values()))
        assert condition[:2] == (False, "Malformed")
        assert key in condition[2]


STATUSES: list[tuple[str, Any]] = [
    ("no status", None),
    ("a text", "x"),
    ("a list", []),
    ("parents that are none", {"parents": "x"}),
    ("a parent that is none", {"parents": [None, 3, []]}),
    ("a parent without conditions", {"parents": [{}]}),
    ("conditions that are none", {"parents": [{"conditions": {"type": "Accepted"}}]}),
    ("a condition that is none", {"parents": [{"conditions": ["Accepted"]}]}),
    ("a status that is none", {"parents": [{"conditions": [{"type": "Accepted", "status": True}]}]}),
    ("unknown", {"parents": [{"conditions": [{"type": "Accepted", "status": "Unknown"}]}]}),
]


@pytest.mark.parametrize(("reason", "status"), STATUSES, ids=[pair[0] for pair in STATUSES])
def test_a_hostile_status_of_a_route_decides_nothing(reason: str, status: Any) -> None:
    running = settled(request_about(service(), TWO))
    route = {**running.observed["httproute"], "status": status}
    answer = running.but(observed={"httproute": route}).answer()
    assert answer.desired["httproute"]["spec"] == running.answer().desired["httproute"]["spec"], reason
    assert answer.conditions["RoutingReady"][:2] == (False, "Configuring"), reason


BACKENDS: list[tuple[str, Any]] = [
    ("no name of a Service", "Not_A_Name"),
    ("too long", "x" * 64),
    ("a path", "../x"),
    ("white space", " "),
]


@pytest.mark.parametrize(("reason", "name"), BACKENDS, ids=[backend[0] for backend in BACKENDS])
def test_a_hostile_backend_name_is_not_ready(reason: str, name: str) -> None:
    """One reference that Kubernetes refuses would take the whole route with it."""
    answer = request_about(service(), [endpoint("a", backend=name), endpoint("b")]).answer()
    (reference,) = answer.desired["httproute"]["spec"]["rules"][0]["backendRefs"]
    assert reference["name"] == "svc-b", reason
    assert "1 waiting for Backend" in answer.conditions["EndpointsResolved"][2]


def running(seed: int) -> tuple[random.Random, AnyRequest]:
    """Return a random composite at some stage of its life."""
    draw = random.Random(-seed)
    request = generate.random_request(seed)
    for _ in range(draw.randint(1, 3)):
        request = applied(request)
    return draw, request


def identity(resource: Plain) -> tuple[Any, ...]:
    """What makes a composed resource the one that it is. A kind that is no text is none."""
    kind = resource.get("kind")
    named = kind if isinstance(kind, str) else None
    return named, resource.get("metadata", {}).get("namespace"), resource.get("addressType")


def holds(request: AnyRequest, answer: Answer, *, composite: str) -> None:
    """Nothing that was observed leaves or becomes another; every condition is there."""
    assert answer.desired.keys() >= request.observed.keys() - successors(request)
    for key in request.observed.keys() & answer.desired.keys():
        before, after = identity(request.observed[key]), identity(answer.desired[key])
        assert all(old in (None, new) for old, new in zip(before, after, strict=True)), key
    assert list(answer.conditions) == CONDITIONS[composite]
    assert not answer.fatal
    if not answer.desired:
        assert answer.unready


def successors(request: AnyRequest) -> set[str]:
    """Slices, of which the one that the URL does not want may leave once the other is observed."""
    slices = {key for key in request.observed if key.startswith("endpointslice")}
    return slices if len(slices) > 1 else set()


@pytest.mark.parametrize("number", range(BATCHES))
def test_a_mutation_of_anything_deletes_nothing(number: int) -> None:
    """Also of the spec: nothing in it says that an address is not wanted any more."""
    for seed in batch(number, quick=400, gate=20_000):
        draw, request = running(seed)
        made = struck(draw, request)
        holds(made, made.answer(), composite=request.composite["kind"])


def struck(draw: random.Random, request: AnyRequest) -> AnyRequest:
    """Return a request with one mutation of anything it holds."""
    kind, key = draw.random(), next(iter(request.observed), None)
    if kind < 0.3:
        keep = (("kind",), ("metadata", "name"), ("metadata", "namespace"))
        return request.but(composite=mutated(draw, request.composite, keep=keep))
    if kind < 0.4:
        return request.but(input=mutated(draw, request.input or config(requestTimeout="0s")))
    if kind < 0.8 and request.required:
        name = draw.choice(sorted(request.required))
        others = {item: request.required[item] for item in request.required if item != name}
        items = [item for item in mutated(draw, list(request.required[name])) if isinstance(item, dict)]
        return request.but(required=others if draw.random() < 0.3 else {**others, name: items})
    if key is not None:
        keep = (("metadata", "name"), ("metadata", "namespace"), ("addressType",))
        made = mutated(draw, request.observed[key], keep=keep)
        return request.but(observed={**request.observed, key: made})
    return request


@pytest.mark.parametrize("number", range(BATCHES))
def test_an_answer_applied_and_asked_again_is_the_same(number: int) -> None:
    for seed in batch(number, quick=120, gate=5_000):
        request = settled(generate.random_request(seed))
        first = request.answer()
        again = applied(request, first)
        assert again.answer().same(first) or request.composite["status"] != again.composite["status"], seed
        assert observed(again.answer()).keys() == again.observed.keys(), seed


def test_the_answer_is_the_same_bytes_with_a_memory_and_without() -> None:
    memory = Memory(16 << 20)
    for seed in range(60):
        draw, request = running(seed)
        request = stored(request, seed)
        for turn in range(3):
            call = wire.decode(request.message().SerializeToString())
            remembering = dispatch.run(call.request, reuse=Session(memory, dispatch.COSTS))
            assert wire.encode(call, remembering, wire.Ttl()) == request.answer_bytes(), (seed, turn)
            request = stored(struck(draw, request), seed, turn + 2)


def stored(request: AnyRequest, owner: int, version: int = 1) -> AnyRequest:
    """Return a request whose objects have what an API server gives them."""

    def given(plain: Plain, uid: str) -> Plain:
        metadata = plain.get("metadata")
        stated = {
            **(metadata if isinstance(metadata, dict) else {}),
            "uid": uid,
            "resourceVersion": f"{version}",
        }
        return {**plain, "metadata": stated}

    return request.but(
        composite=given(request.composite, f"{owner}"),
        observed={key: given(request.observed[key], f"{owner}/{key}") for key in request.observed},
        required={
            name: [given(item, f"{owner}/{name}/{at}") for at, item in enumerate(request.required[name])]
            for name in request.required
        },
    )

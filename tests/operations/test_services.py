"""The step of a WatchOperation on ModelEndpoints: which services are asked, and with what."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from function.api.names import RECONCILE_ANNOTATION
from function.api.text import digest
from function.boundary import PlainDocument, Request
from function.operations import handler
from function.operations.handler import ENDPOINTS, SERVICES, WATCHED
from tests.routing.build import endpoint, group, service
from tests.support import scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from function.boundary import Response

Plain = dict[str, Any]

A, B = endpoint("a", labels={"app": "chat"}), endpoint("b", labels={"app": "code"})


def stored(name: str, *groups: Plain, token: str = "", **metadata: Any) -> Plain:
    """Return a service as the control plane holds it."""
    made = service(*groups, name=name)
    annotations = {"annotations": {RECONCILE_ANNOTATION: token}} if token else {}
    made["metadata"] |= {"uid": f"uid-{name}", **annotations, **metadata}
    return made


CHAT, CODE = stored("chat", group(app="chat")), stored("code", group(app="code"))
BOTH = stored("both", group(app="chat"), group(1, 1, app="code"))


def run(services: Sequence[Plain], endpoints: Sequence[Plain] = (A, B), watched: Plain = A) -> Response:
    """Run the step with everything delivered."""
    delivered = {WATCHED: [watched], SERVICES: services, ENDPOINTS: endpoints}
    required = {name: tuple(map(PlainDocument, items)) for name, items in delivered.items()}
    return handler.run(Request(PlainDocument({}), required=required))


def tokens(response: Response) -> dict[str, str]:
    """Return the value of the annotation by name of the service."""
    resources = [desired.resource for desired in response.desired.values()]
    assert {resource["kind"] for resource in resources} <= {"ModelService"}
    return {
        manifest["metadata"]["name"]: manifest["metadata"]["annotations"][RECONCILE_ANNOTATION]
        for manifest in resources
    }


def asked_before(*services: Plain) -> list[Plain]:
    """Return services that were asked with what their endpoints are now."""
    written = tokens(run(services))
    return [stored_again(one, written[one["metadata"]["name"]]) for one in services]


def stored_again(service: Plain, token: str) -> Plain:
    return {**service, "metadata": {**service["metadata"], "annotations": {RECONCILE_ANNOTATION: token}}}


def test_everything_is_required_before_anybody_is_asked() -> None:
    response = handler.run(Request(PlainDocument({}), required={WATCHED: (PlainDocument(A),)}))
    assert {one.name: one.kind for one in response.requirements} == {
        SERVICES: "ModelService",
        ENDPOINTS: "ModelEndpoint",
    }
    assert not response.desired


def test_what_is_desired_is_the_annotation_and_nothing_else() -> None:
    (desired,) = run([CHAT]).desired.values()
    assert desired.resource["metadata"].keys() == {"name", "namespace", "uid", "annotations"}
    assert desired.resource.keys() == {"apiVersion", "kind", "metadata"}


CHANGES: list[tuple[str, Plain, set[str]]] = [
    ("its Service is there", {"status": {"routing": {"backendName": "svc-other"}}}, {"chat", "both"}),
    ("another URL", {"spec": {"url": "http://203.0.113.99/v1"}}, {"chat", "both"}),
    ("it is being deleted", {"metadata": {**A["metadata"], "deletionTimestamp": "2026-03-01T08:00:00Z"}},
     {"chat", "both"}),
    ("other labels", {"metadata": {**A["metadata"], "labels": {"app": "code"}}},
     {"chat", "code", "both"}),
    ("another condition", {"status": {**A["status"], "conditions": [{"type": "Ready", "status": "False"}]}},
     set()),
    ("another version", {"metadata": {**A["metadata"], "resourceVersion": "9"}}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "change", "asked"), CHANGES, ids=[change[0] for change in CHANGES])
def test_a_change_asks_whom_it_concerns(reason: str, change: Plain, asked: set[str]) -> None:
    before = asked_before(CHAT, CODE, BOTH)
    assert not run(before).desired, "nobody is asked twice for the same"
    changed = {**A, **change}
    assert tokens(run(before, (changed, B), changed)).keys() == asked, reason


def test_a_service_that_is_being_deleted_or_has_no_uid_is_not_asked() -> None:
    leaving = stored("leaving", group(app="chat"), deletionTimestamp="2026-03-01T08:00:00Z")
    unknown = stored("unknown", group(app="chat"), uid="")
    assert not run([leaving, unknown]).desired


@pytest.mark.parametrize(
    "odd", [{"spec": "x"}, {"spec": {"endpoints": "x"}}, {"spec": {"endpoints": [None, {}]}}]
)
def test_an_odd_service_or_endpoint_stops_nobody(odd: Plain) -> None:
    strange = {**stored("strange"), **odd}
    assert tokens(run([strange, CHAT], (A, {**B, "spec": 3}))).keys() >= {"chat"}


def test_the_order_of_delivery_decides_nothing() -> None:
    assert tokens(run([CHAT, BOTH], (A, B))) == tokens(run([BOTH, CHAT], (B, A)))


def test_a_token_is_of_what_the_selectors_match_and_of_nothing_else() -> None:
    """Held against the sentence itself, for random labels."""
    for seed in scale.seeds(60, 2_000, 10_000):
        draw = random.Random(seed)
        labels = [{key: draw.choice("xy") for key in "abc" if draw.random() < 0.8} for _ in range(6)]
        endpoints = [endpoint(f"e{at}", labels=held) for at, held in enumerate(labels) if held]
        wanted = {key: draw.choice("xy") for key in "abc" if draw.random() < 0.5} or {"a": "x"}
        service = stored("s", group(**wanted))
        before = tokens(run([service], endpoints))
        for at, changed in enumerate(endpoints):
            others = [
                *endpoints[:at],
                {**changed, "spec": {"url": "http://203.0.113.9/"}},
                *endpoints[at + 1 :],
            ]
            matches = wanted.items() <= changed["metadata"]["labels"].items()
            assert (tokens(run([service], others)) != before) == matches, seed


def test_what_is_said_of_endpoints_is_digested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """500 services of 16 selectors and 3,000 endpoints took 27 seconds."""
    digested = []

    def counted(texts: Iterable[str]) -> str:
        listed = list(texts)
        digested.extend(listed)
        return digest(listed)

    monkeypatch.setattr("function.operations.handler.digest", counted)
    endpoints = [endpoint(f"e{at}", labels={"app": "chat"}) for at in range(20)]
    services = [stored(f"s{at}", *(group(1, on, app="chat") for on in range(16))) for at in range(20)]
    assert len(tokens(run(services, endpoints))) == 20
    assert len(digested) == 20 + 20 * 16

"""ModelEndpoint: from a URL to a Service that leads there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.routing.build import applied, config, endpoint, settled
from tests.support.any_request import AnyRequest
from tests.support.circuit import with_circuit

Plain = dict[str, Any]


def ask(url: str, **more: Any) -> AnyRequest:
    return AnyRequest(endpoint(url=url, backend=""), **more)


URLS = [
    ("http://203.0.113.7/a/v1", "IPv4", "203.0.113.7", 80, "an IPv4 address and the port of its scheme"),
    ("https://203.0.113.7", "IPv4", "203.0.113.7", 443, "the port of https"),
    ("http://203.0.113.7:8080/", "IPv4", "203.0.113.7", 8080, "a port of its own"),
    ("http://[2001:db8::1]:8000/v1", "IPv6", "2001:db8::1", 8000, "an IPv6 address without its brackets"),
    ("https://api.example.com/v1", "FQDN", "api.example.com", 443, "a DNS name"),
    ("https://API.Example.COM./v1", "FQDN", "api.example.com", 443, "a name has no case and no root"),
]


@pytest.mark.parametrize(("url", "family", "address", "port", "reason"), URLS)
def test_a_url_becomes_a_service_and_its_slice(
    url: str, family: str, address: str, port: int, reason: str
) -> None:
    first = ask(url).answer()
    assert first.desired.keys() == {"service"}, "the slice needs the Service's name, which Crossplane gives"
    assert first.desired["service"]["spec"] == {"ports": [{"port": port, "protocol": "TCP"}]}, reason
    assert first.desired["service"]["metadata"] == {"namespace": "ml-team"}
    assert not first.status, "no backend before there is one"
    waiting = (False, "WaitingForBackend")
    assert first.conditions["RoutingReady"] == (*waiting, "The Service is not observed yet")
    request = applied(ask(url))
    second = request.answer()
    assert second.conditions["RoutingReady"] == (*waiting, "The EndpointSlice is not observed yet")
    made = second.desired["endpointslice"]
    assert made["metadata"]["namespace"] == "ml-team"
    assert made["ports"] == [{"name": "", "port": port, "protocol": "TCP"}], "named as in the Service: not"
    assert not second.status, "no backend before its slice is observed"
    assert made["addressType"] == family, reason
    assert made["endpoints"] == [{"addresses": [address], "conditions": {"ready": True}}], reason
    assert made["metadata"]["labels"] == {"kubernetes.io/service-name": "observed-service"}
    third = applied(request, second).answer()
    assert third.status == {"routing": {"backendName": "observed-service"}}
    assert third.conditions["RoutingReady"][:2] == (True, "BackendConfigured")
    assert third.ready == {"service", "endpointslice"}
    assert third.settled
    assert not third.unready


INVALID = [
    ("ftp://203.0.113.7", "http:// or https://", "a gateway speaks HTTP"),
    ("203.0.113.7/v1", "no scheme", "a scheme decides the port"),
    ("http://", "a host is required", "nowhere"),
    ("http://vllm/v1", "a DNS name with a dot", "the API server takes no name of one label"),
    ("http://127.0.0.1/v1", "loopback", "the gateway itself"),
    ("http://169.254.169.254/latest", "link-local", "the metadata of the gateway's machine"),
    ("http://[fe80::1]/v1", "link-local", "an address of one link"),
    ("http://[fd00::1%25eth0]/v1", "without a zone", "a zone is of one machine"),
    ("http://[::ffff:10.0.0.1]/v1", "an IPv4 address in it", "it would be an IPv4 address"),
    ("http://0.0.0.0/v1", "loopback", "no address"),
    ("http://[::1/v1", "no URL can be read", "a bracket is missing"),
    ("http://203.0.113.7:99999", "a port from 1", "no such port"),
    ("http://203.0.113.7:x", "a port from 1", "no number"),
    ("http://203.0.113.300/v1", "a DNS name with a dot", "an address that is none"),
    ("http://user:hunter2@example.com/v1", "credentials", "they would not be sent"),
    ("http://under_score.example.com", "a DNS name", "no name of DNS"),
]


@pytest.mark.parametrize(("url", "said", "reason"), INVALID)
def test_a_url_that_leads_nowhere_is_named(url: str, said: str, reason: str) -> None:
    answer = ask(url).answer()
    assert not answer.desired, reason
    assert answer.unready
    status, name, message = answer.conditions["RoutingReady"]
    assert (status, name) == (False, "InvalidURL")
    assert message.startswith("spec.url: ")
    assert said in message, reason
    assert "hunter2" not in message
    assert [event[:2] for event in answer.events] == [("WARNING", "InvalidURL")]


def test_another_family_is_another_slice_and_the_first_leaves_when_it_is_observed() -> None:
    """The addressType of an EndpointSlice is immutable."""
    before = settled(ask("http://203.0.113.7/v1"))
    edited = before.but(
        composite={**before.composite, "spec": {"url": "https://api.example.com/v1"}},
    )
    first = edited.answer()
    assert first.desired.keys() == {"endpointslice", "endpointslice-fqdn", "service"}
    assert first.desired["endpointslice"]["addressType"] == "IPv4"
    assert first.status["routing"] == {"backendName": "observed-service"}, "routes go on referring to it"
    second = applied(edited, first).answer()
    assert second.desired.keys() == {"endpointslice-fqdn", "service"}
    assert second.conditions["RoutingReady"][:2] == (True, "BackendConfigured")
    swapped = applied(applied(edited, first), second)
    assert swapped.answer().desired == second.desired, "the slice keeps its key: nothing flaps"
    assert swapped.answer().conditions["RoutingReady"][:2] == (True, "BackendConfigured")
    back = settled(swapped)
    again = back.but(composite={**back.composite, "spec": {"url": "http://203.0.113.7/v1"}})
    assert settled(again).answer().desired.keys() == {"endpointslice", "service"}


NAMES = [
    ("chat-5ab63", "", "Crossplane makes one of it that a Service may have"),
    ("70b-chat-5ab63", "m-70b-chat-5ab63-service-352b7", "a leading digit"),
    ("llama-3.1", "llama-3-1-service-7725e", "a dot"),
    ("4." + "a" * 80, "m-4-" + "a" * 53 + "-15a0c", "too long for a Service"),
]


@pytest.mark.parametrize(("name", "expected", "reason"), NAMES)
def test_a_service_has_a_name_that_the_api_server_takes(name: str, expected: str, reason: str) -> None:
    request = AnyRequest(endpoint(name, "http://203.0.113.7/v1", backend=""))
    first = request.answer()
    assert first.desired["service"]["metadata"].get("name", "") == expected, reason
    last = settled(request).answer()
    assert last.desired["service"] == first.desired["service"], reason
    if expected:
        assert last.desired["endpointslice"]["metadata"]["labels"] == {"kubernetes.io/service-name": expected}


def test_a_service_that_is_there_keeps_its_name() -> None:
    # An API server with RelaxedServiceNameValidation has taken the name that Crossplane gave.
    request = settled(AnyRequest(endpoint("70b-chat-5ab63", "http://203.0.113.7/v1", backend="")))
    request.observed["service"]["metadata"]["name"] = "70b-chat-5ab63-c1f3e"
    assert request.answer().desired["service"]["metadata"]["name"] == "70b-chat-5ab63-c1f3e"


def test_an_edited_address_changes_the_slice_in_place() -> None:
    before = settled(ask("http://203.0.113.7/v1"))
    edited = before.but(composite={**before.composite, "spec": {"url": "http://203.0.113.8:81/v1"}})
    answer = edited.answer()
    assert answer.desired.keys() == before.observed.keys()
    assert answer.desired["endpointslice"]["endpoints"][0]["addresses"] == ["203.0.113.8"]
    assert answer.desired["endpointslice"]["ports"][0]["port"] == 81
    assert answer.desired["service"]["spec"]["ports"][0]["port"] == 81


def test_events_come_on_a_transition_only() -> None:
    request, events = ask("http://203.0.113.7/v1"), []
    for _ in range(5):
        answer = request.answer()
        events += [event[1] for event in answer.events]
        request = applied(request, answer)
    assert events == ["BackendConfigured"]


def test_an_input_with_a_typo_is_named() -> None:
    answer = ask("http://203.0.113.7/v1", input=config(gatewayAdress="x")).answer()
    assert answer.reason("RoutingReady") == "Malformed"
    assert "gatewayAdress: no such field" in answer.conditions["RoutingReady"][2]
    assert not answer.desired


def test_while_the_circuit_is_open_an_answer_holds_as_short_as_it_may() -> None:
    serving = settled(AnyRequest(endpoint()))
    assert serving.answer().settled
    assert not serving.but(composite=with_circuit(serving.composite, opened=True)).answer().settled
    assert serving.but(composite=with_circuit(serving.composite, opened=False)).answer().settled

"""One address for a model: installed as docs/install.md says, through failure, failover and back.

Nothing here implements Gateway API, so the tests say in a gateway's stead that it accepts the route.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from example import caller
from package import build
from tests.live import fleet, install
from tests.live.plane import condition, is_true, name_of, until

if TYPE_CHECKING:
    from tests.live.day import Day
    from tests.live.plane import ControlPlane, Plain

pytestmark = pytest.mark.live

NAMESPACE = "routing"
CRDS = json.loads((Path(__file__).parent / "gateway-api.json").read_text())
"""Of Gateway API, written by hack/schemas.py."""
MODEL = fleet.small_deployment("routed", NAMESPACE, 2, NAMESPACE)
FALLBACK = {"example.com/fallback": "routed"}
ADDRESS = "198.51.100.9"
FOLLOWS = 40.0
"""Seconds until a route follows its endpoints: the settled ttl of the Composition, and a queue."""


def calling(plain: Plain, steps: list[Plain]) -> Plain:
    """Return an example whose steps call the function by the name that it has here."""
    for step in steps:
        step["functionRef"]["name"] = install.FUNCTION
    return plain


def service() -> Plain:
    """Return the example's service, for this model."""
    made, _ = caller.objects(caller.HERE / "routing" / "service.yaml")
    made["metadata"] = {"name": "routed", "namespace": NAMESPACE}
    first, second = made["spec"]["endpoints"]
    first["selector"]["matchLabels"] = {"modelplane.ai/deployment": "routed"}
    second["selector"]["matchLabels"] = FALLBACK
    return made


def elsewhere() -> Plain:
    """Return the example's endpoint of a model that runs elsewhere."""
    _, made = caller.objects(caller.HERE / "routing" / "service.yaml")
    made["metadata"] = {"name": "elsewhere", "namespace": NAMESPACE, "labels": FALLBACK}
    return made


def test_the_gateway_is_there(living: ControlPlane) -> None:
    for crd in CRDS:
        living.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    living.shell(
        "\n".join(install.commands("install.md", "crd/httproutes.gateway.networking.k8s.io crd/gateways"))
    )
    living.shell("\n".join(install.commands("install.md", "namespace modelplane-system")))
    for line in install.commands("install.md", "-f example/routing/"):
        if "gateway.yaml" in line or "rbac.yaml" in line:
            living.shell(line)
    (composition,) = caller.objects(caller.HERE / "routing" / "endpoints.yaml")
    living.apply(calling(composition, composition["spec"]["pipeline"]))
    gateway = living.get("Gateway", "modelplane", "modelplane-system")
    assert gateway is not None
    addresses = [{"type": "IPAddress", "value": ADDRESS}]
    living.publish({**gateway, "status": {"addresses": addresses}}, manager="gateway")
    assert build.installed_name(install.REGISTRY) == install.FUNCTION


def test_a_model_gets_one_address(living: ControlPlane, day: Day) -> None:
    fleet.create_namespace(living, NAMESPACE)
    fleet.create_fleet(living, [fleet.small_cluster(f"routing-{number}", NAMESPACE) for number in (1, 2)])
    living.apply(MODEL, elsewhere())
    fleet.until_placed(living, MODEL, 2)
    fleet.make_ready(living, fleet.replicas(living, MODEL))
    with day.step("two replicas turn Ready", "a Service for each, Ready without anybody's doing"):
        until(lambda: len(ready_backends(living)) == 2, "two endpoints with a backend")
    with day.step("create a ModelService", "an HTTPRoute with equal weights"):
        living.apply(service())
        until(lambda: weights(living) == dict.fromkeys(ready_backends(living), 1), "the route", FOLLOWS)
    accept(living)
    until(lambda: is_true(current(living), "Ready"), "the service Ready", FOLLOWS)
    assert current(living)["status"]["address"] == f"http://{ADDRESS}/{NAMESPACE}/routed"
    until(
        lambda: condition(current(living), "EndpointsResolved")["reason"] == "Resolved", "Resolved", FOLLOWS
    )


def test_a_replica_that_fails_takes_no_requests(living: ControlPlane, day: Day) -> None:
    first, second = fleet.replicas(living, MODEL)
    with day.step("one of two replicas fails", "the route has the other one only"):
        fleet.make_ready(living, [first], ready=False)
        until(lambda: list(endpoints_of(living)) == [name_of(second)], "one backend", FOLLOWS)


def test_requests_go_elsewhere_when_none_is_left_and_come_back(living: ControlPlane, day: Day) -> None:
    standing = fleet.replicas(living, MODEL)
    with day.step("the other one fails too", "FailedOver: the route has the endpoint elsewhere"):
        fleet.make_ready(living, standing, ready=False)
        until(lambda: list(endpoints_of(living)) == ["elsewhere"], "the fallback", FOLLOWS)
    # Crossplane applies the route first and writes the status last.
    until(
        lambda: condition(current(living), "EndpointsResolved")["reason"] == "FailedOver",
        "FailedOver",
        FOLLOWS,
    )
    with day.step("both recover", "the route has both again"):
        fleet.make_ready(living, standing)
        until(lambda: list(endpoints_of(living)) == sorted(map(name_of, standing)), "both", FOLLOWS)
    accept(living)


def test_with_a_watch_operation_the_route_follows_at_once(living: ControlPlane, day: Day) -> None:
    (watch,) = caller.objects(caller.HERE / "routing" / "watch-endpoints.yaml")
    living.apply(calling(watch, watch["spec"]["operationTemplate"]["spec"]["pipeline"]))
    name = name_of(watch)
    until(lambda: is_true(living.get("WatchOperation", name), "Watching"), f"{name} watching")
    first, second = fleet.replicas(living, MODEL)
    with day.step("one fails, with a WatchOperation on ModelEndpoints", "the route has the other one only"):
        fleet.make_ready(living, [first], ready=False)
        until(lambda: list(endpoints_of(living)) == [name_of(second)], "one backend", FOLLOWS)
    living.kubectl("delete", "watchoperation", name)


def test_nothing_is_left_of_it(living: ControlPlane) -> None:
    fleet.leave(living, NAMESPACE)
    until(lambda: not routes(living), "no route left")


def current(plane: ControlPlane) -> Plain:
    service = plane.get("ModelService", "routed", NAMESPACE)
    assert service is not None
    return service


def routes(plane: ControlPlane) -> list[Plain]:
    return plane.list("HTTPRoute", NAMESPACE)


def ready_backends(plane: ControlPlane) -> dict[str, str]:
    """Return the endpoint of each Service of a Ready endpoint of the model."""
    return {
        endpoint["status"]["routing"]["backendName"]: name_of(endpoint)
        for endpoint in fleet.endpoints(plane, MODEL)
        if is_true(endpoint, "Ready") and "routing" in endpoint["status"]
    }


def weights(plane: ControlPlane) -> dict[str, int]:
    """Return the weight of every Service in the route."""
    return {
        reference["name"]: reference["weight"]
        for route in routes(plane)
        for rule in route["spec"]["rules"]
        for reference in rule.get("backendRefs", ())
    }


def endpoints_of(plane: ControlPlane) -> dict[str, int]:
    """Return the weight of every endpoint in the route, by name, all of whose Services must be there."""
    backends = {}
    names = weights(plane)
    for endpoint in plane.list("ModelEndpoint", NAMESPACE):
        service = endpoint.get("status", {}).get("routing", {}).get("backendName")
        if service in names and plane.get("Service", service, NAMESPACE):
            backends[name_of(endpoint)] = names[service]
    return backends if len(backends) == len(names) else {}


def accept(plane: ControlPlane) -> None:
    """Say that the gateway took the route."""
    for route in routes(plane):
        parent = {"name": "modelplane", "namespace": "modelplane-system"}
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": kind,
                "message": "",
                "lastTransitionTime": fleet.SINCE,
            }
            for kind in ("Accepted", "ResolvedRefs")
        ]
        said = {"parentRef": parent, "controllerName": "example.com/gateway", "conditions": conditions}
        plane.publish({**route, "status": {"parents": [said]}}, manager="gateway")

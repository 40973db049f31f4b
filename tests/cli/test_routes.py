"""`plan --workloads` shows the route of every service, with its address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from tests.cli.command import run, write
from tests.replica import schemas
from tests.routing.build import config, group, service
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]

SETTINGS = config(gatewayAddress="models.example.com", requestTimeout="0s")


def fleet(*, ready: bool) -> list[Plain]:
    """Return two clusters and a deployment with a replica on each, perhaps Ready."""
    parent = build.deployment("chat", 2)
    clusters = [build.cluster(name, [build.pool("h100", 1)]) for name in ("east", "west")]
    for number, cluster in enumerate(clusters):
        cluster["status"]["gateway"] = {"address": f"203.0.113.{number}"}
    replicas = [build.replica(parent, name, 0, ready=ready) for name in ("east", "west")]
    return [parent, *clusters, *replicas]


def routed(**labels: str) -> Plain:
    made = service(group(1, **labels))
    made["metadata"]["namespace"] = build.deployment("chat", 1)["metadata"]["namespace"]
    return made


def routes(out: str) -> list[Plain]:
    """Return the routes of services: those on clusters have timeouts of their own and a pool behind."""
    manifests = [document for document in yaml.safe_load_all(out) if document["kind"] == "HTTPRoute"]
    return [document for document in manifests if document["spec"]["parentRefs"][0]["name"] == "modelplane"]


def test_the_route_of_a_service_is_printed_with_its_address(tmp_path: Path) -> None:
    objects = [*fleet(ready=True), routed(**{"modelplane.ai/deployment": "chat"}), SETTINGS]
    ran = run("plan", "--workloads", write(tmp_path / "f.yaml", objects))
    assert ran.code == 0, ran.err
    (made,) = routes(ran.out)
    made["metadata"]["name"] = "given"
    assert not list(schemas.findings(made))
    (rule,) = made["spec"]["rules"]
    assert [reference["weight"] for reference in rule["backendRefs"]] == [1, 1]
    namespace = made["metadata"]["namespace"]
    line = f"# control plane: {namespace}/chat: httproute, http://models.example.com/{namespace}/chat"
    assert line in ran.out.splitlines()
    assert "# Matched 2 endpoint(s)" in ran.out
    assert "no Service yet of" in ran.err, "what is assumed is said"


def test_a_service_without_endpoints_is_named_and_not_fine(tmp_path: Path) -> None:
    objects = [*fleet(ready=False), routed(**{"modelplane.ai/deployment": "chat"})]
    ran = run("plan", "--workloads", write(tmp_path / "f.yaml", objects))
    assert not routes(ran.out)
    assert "ModelService ml-team/chat: no route: No ModelEndpoints of this namespace matched" in ran.err
    assert "a replica has its endpoint once it is Ready" in ran.err, "a first plan has none that is"
    assert ran.code == 2


def test_an_endpoint_that_the_plan_drops_is_in_no_route(tmp_path: Path) -> None:
    """The replica on a drained cluster leaves in this plan, and its endpoint with it."""
    parent, east, west, *replicas = fleet(ready=True)
    west["spec"]["taints"] = [build.taint("drain", "NoExecute")]
    standing = [build.endpoint(replica) for replica in replicas]
    objects = [parent, east, west, *replicas, *standing, routed(**{"modelplane.ai/deployment": "chat"})]
    ran = run("plan", "--workloads", write(tmp_path / "f.yaml", [*objects, SETTINGS]))
    (made,) = routes(ran.out)
    (rule,) = made["spec"]["rules"]
    names = [reference["name"] for reference in rule["backendRefs"]]
    assert names == [build.composed_name("chat", "east", 0)]


def test_a_bad_service_is_bad_input(tmp_path: Path) -> None:
    broken = routed(app="x")
    broken["spec"]["endpoints"][0]["weight"] = -1
    ran = run("plan", write(tmp_path / "f.yaml", [*fleet(ready=True), broken]))
    assert ran.code == 1
    assert "spec.endpoints[0].weight" in ran.err


def test_endpoints_of_another_namespace_are_delivered_as_on_a_control_plane(tmp_path: Path) -> None:
    """Nobody asks for them, so nothing is assumed or said of them, unless the input allows some."""
    strange = build.endpoint(build.replica(build.deployment("chat", 1), "east", 0))
    strange["metadata"] |= {"name": "strange", "namespace": "team-b"}
    objects = [*fleet(ready=True), strange, routed(**{"modelplane.ai/deployment": "chat"})]
    ran = run("plan", "--workloads", write(tmp_path / "f.yaml", [*objects, SETTINGS]))
    assert "strange" not in ran.out + ran.err
    settings = {**SETTINGS, "allowNamespaces": ["team-c"]}
    ran = run("plan", "--workloads", write(tmp_path / "f.yaml", [*objects, settings]))
    assert "left out, of namespaces that allowNamespaces does not name: team-b/strange" in ran.out

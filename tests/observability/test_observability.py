"""What example/observability has people apply: rules, dashboards, metrics of our kinds, in a Prometheus."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
import yaml
from crossplane.function import resource
from crossplane.function.proto.v1 import run_function_pb2 as fnv1, run_function_pb2_grpc as grpcv1

from example import caller
from function.boundary.memory import Memory
from function.server.metrics import Metrics
from hack import dashboards
from tests.observability.kube_state_metrics import exposed
from tests.observability.prometheus import PROMTOOL, Prometheus, exposing, needed, scraping
from tests.schema.crds import schema_of
from tests.serve.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]

FOLDER = caller.HERE / "observability"
CASES = Path(__file__).with_name("rules_test.yaml")
RULES: Plain = caller.objects(FOLDER / "rules.yaml")[0]["spec"]
CONFIG: Plain = yaml.safe_load(caller.objects(FOLDER / "kube-state-metrics.yaml")[0]["data"]["config.yaml"])
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule]
RECORDS = {rule["record"] for group in RULES["groups"] for rule in group["rules"] if "record" in rule}
METRIC = re.compile(r"\b(?:fleet_[a-z_]+|fleet:[a-z_:]+|up|process_[a-z_]+)\b")
SUFFIX = re.compile(r"_(?:total|bucket|sum|count)$")
ANY_TIME = "$__rate_interval"
"""Grafana's word for a time that holds some scrapes."""


@needed
def test_the_rules_are_what_prometheus_takes_and_ring_when_they_should(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(RULES))
    shutil.copy(CASES, tmp_path)
    for words in (("check", "rules", "rules.yaml"), ("test", "rules", CASES.name)):
        ended = subprocess.run(
            [str(PROMTOOL), *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_alert_has_a_case_in_which_it_rings() -> None:
    cases = yaml.safe_load(CASES.read_text())["tests"]
    ringing = {case["alertname"] for test in cases for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert {rule["alert"] for rule in ALERTS} == ringing


def test_every_alert_is_described() -> None:
    text = (caller.ROOT / "docs" / "operations.md").read_text()
    assert [rule["alert"] for rule in ALERTS if f"`{rule['alert']}`" not in text] == []


def exported() -> set[str]:
    """Return the names of all metrics that there can be."""
    metrics = Metrics()
    metrics.watch(Memory(1))
    ours = {family.name for family in metrics.registry.collect()} | {"fleet_scheduler_held_bytes"}
    state = {
        f"{kind['metricNamePrefix']}_{metric['name']}"
        for kind in CONFIG["spec"]["resources"]
        for metric in kind["metrics"]
    }
    return ours | state | RECORDS | {"up"}


def test_rules_and_dashboards_ask_for_metrics_that_exist() -> None:
    rules = [rule["expr"] for group in RULES["groups"] for rule in group["rules"]]
    asked = {name for query in (*rules, *queries()) for name in METRIC.findall(query)}
    assert {
        name for name in asked if SUFFIX.sub("", name) not in exported() and name not in exported()
    } == set()


def test_the_dashboards_are_those_of_the_tables() -> None:
    assert dashboards.FILE.read_text() == dashboards.written()


@pytest.mark.parametrize("name", dashboards.BOARDS)
def test_panels_do_not_overlap(name: str) -> None:
    taken = [
        (panel["gridPos"]["x"] + column, panel["gridPos"]["y"] + row)
        for panel in dashboards.board(name)["panels"]
        for column in range(panel["gridPos"]["w"])
        for row in range(panel["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(column for column, _ in taken) < dashboards.WIDTH


def queries() -> list[str]:
    """Return every query of every panel of the file."""
    boards = [json.loads(text) for text in caller.objects(dashboards.FILE)[0]["data"].values()]
    return [target["expr"] for board in boards for panel in board["panels"] for target in panel["targets"]]


def paths(metric: Plain) -> Iterator[list[str]]:
    """Yield every path that a metric reads."""
    rule = metric["each"][metric["each"]["type"].lower()]
    start = rule.get("path", [])
    yield start
    for path in rule.get("labelsFromPath", {}).values():
        yield [*start, *path]
    if "valueFrom" in rule:
        yield [*start, *rule["valueFrom"]]


@pytest.mark.parametrize("kind", CONFIG["spec"]["resources"], ids=lambda kind: kind["metricNamePrefix"])
def test_the_state_metrics_read_fields_that_the_schemas_have(kind: Plain) -> None:
    """Conditions and metadata are the API server's and Crossplane's; the rest is declared by us."""
    schema = schema_of(kind["groupVersionKind"]["kind"])
    for metric in kind["metrics"]:
        for path in paths(metric):
            if path[:1] == ["metadata"] or path[:2] == ["status", "conditions"]:
                continue
            field = schema
            for key in path:
                field = field.get("items", field)["properties"][key]
            assert field is not None, (metric["name"], path)


def fleet(address: str) -> list[Plain]:
    """Return the example fleet with its deployments as the function answers them, one of them too large."""
    clusters = caller.objects(caller.FLEET)
    clusters[next(at for at, plain in enumerate(clusters) if plain["kind"] == "InferenceCluster")]["status"][
        "gpuPools"
    ][0]["overcommitted"] = True
    objects = list(clusters)
    with grpc.insecure_channel(address) as channel:
        stub = grpcv1.FunctionRunnerServiceStub(channel)  # type: ignore[no-untyped-call] # generated
        for folder in caller.deployments():
            deployment = caller.objects(folder / "xr.yaml")[0]
            if folder.name == "kimi-k2":
                deployment["spec"]["replicas"] = 9
            observed = caller.observed_in(folder)
            answer = caller.call(stub, deployment, observed, clusters)
            composite = resource.struct_to_dict(answer.response.desired.composite.resource)
            status = {**composite.get("status", {}), "conditions": conditions(answer.response)}
            objects += [{**deployment, "status": status}, *observed.values(), *answer.desired.values()]
    failing = {"type": "RoutingReady", "status": "False", "reason": "RouteRejected"}
    service = caller.objects(caller.HERE / "routing" / "service.yaml")[0]
    return [*objects, {**service, "status": {"conditions": [failing]}}]


def conditions(response: fnv1.RunFunctionResponse) -> list[Plain]:
    """Return the conditions of an answer, as Crossplane writes them."""
    words = {fnv1.STATUS_CONDITION_TRUE: "True", fnv1.STATUS_CONDITION_FALSE: "False"}
    return [
        {"type": said.type, "status": words.get(said.status, "Unknown"), "reason": said.reason}
        for said in response.conditions
    ]


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that scrapes the function, and the state of the example fleet."""
    flags = ("--insecure", "--metrics-address", "127.0.0.1:0", "--reuse-size", "64")
    with Server(*flags) as server, exposing(exposed(CONFIG, fleet(server.address))) as state:
        function = f"127.0.0.1:{server.started['metrics_port']}"
        targets = {"function-fleet-scheduler": function, "kube-state-metrics": state}
        with scraping(tmp_path_factory.mktemp("prometheus"), targets, RULES) as started:
            started.until("fleet:replicas_missing:reason")
            started.until("rate(fleet_scheduler_requests_total[30s])")
            started.until("process_resident_memory_bytes")
            yield started


@needed
def test_every_panel_has_an_answer(prometheus: Prometheus) -> None:
    asked = [query.replace(ANY_TIME, "30s") for query in queries()]
    assert [query for query in asked if not prometheus.query(query)] == []


@needed
def test_missing_replicas_have_their_deployment_and_reason(prometheus: Prometheus) -> None:
    (missing,) = prometheus.query("fleet:replicas_missing:reason")
    labels = missing["metric"]
    assert (labels["namespace"], labels["deployment"]) == ("ml-research", "kimi-k2")
    assert labels["reason"] == "PartiallyScheduled"
    assert missing["value"][1] == "4"


@needed
def test_a_drained_cluster_is_seen_with_what_is_still_there(prometheus: Prometheus) -> None:
    (drained,) = prometheus.query("fleet:replicas_on_drained")
    assert (drained["metric"]["cluster"], drained["value"][1]) == ("gke-us-central1", "1")


@needed
def test_an_overcommitted_pool_is_on_its_way_to_an_alert(prometheus: Prometheus) -> None:
    (alert,) = prometheus.until('ALERTS{alertname="PoolOvercommitted"}')
    assert alert["metric"]["alertstate"] == "pending"


@needed
def test_no_rule_fails(prometheus: Prometheus) -> None:
    rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
    assert len(rules) == len(ALERTS) + len(RECORDS)
    assert [rule["name"] for rule in rules if rule["health"] == "err"] == []


def test_the_monitor_finds_the_pods_of_the_runtime() -> None:
    service, monitor = caller.objects(FOLDER / "servicemonitor.yaml")
    config = caller.objects(caller.HERE / "operate" / "runtime.yaml")[0]
    pod = config["spec"]["deploymentTemplate"]["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    (container,) = pod["spec"]["containers"]
    (port,) = service["spec"]["ports"]
    assert container["args"] == ["--metrics-address", f"0.0.0.0:{port['port']}"]
    assert port["targetPort"] == container["readinessProbe"]["httpGet"]["port"]
    selected = monitor["spec"]["selector"]["matchLabels"]
    assert selected.items() <= service["metadata"]["labels"].items()
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "function-fleet-scheduler"
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == [port["name"]]

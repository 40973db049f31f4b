"""docs/operations.md names what there is: every flag with its default, every metric."""

from __future__ import annotations

import re
from typing import Any

import click
import yaml

from example.caller import ROOT
from function.boundary.memory import Memory
from function.main import main
from function.server.metrics import Metrics
from function.server.serve import NOTICE

TEXT = (ROOT / "docs" / "operations.md").read_text()
ELSEWHERE = {"--version", "--help"}
NOT_OURS = "process_"
ROW = re.compile(r"^\| `(--[a-z-]+)`[^|]*\|([^|]*)\|", re.MULTILINE)


def flags() -> dict[str, click.Option]:
    return {parameter.opts[0]: parameter for parameter in main.params if isinstance(parameter, click.Option)}


def test_every_flag_is_described_and_no_other() -> None:
    described = {name for name, _ in ROW.findall(TEXT)} | set(re.findall(r"`(--no-[a-z-]+)`", TEXT))
    assert described == flags().keys() - ELSEWHERE


def test_defaults_are_those_of_the_flags() -> None:
    for name, documented in ROW.findall(TEXT):
        default = flags()[name].default
        if isinstance(default, (int, float, str)) and not isinstance(default, bool):
            assert documented.strip("` ") == str(default), name


def test_every_metric_is_described() -> None:
    metrics = Metrics()
    metrics.watch(Memory(1))
    missing = [
        family.name
        for family in metrics.registry.collect()
        if not family.name.startswith(NOT_OURS) and family.name.removeprefix("fleet_scheduler") not in TEXT
    ]
    assert missing == []


def test_the_runtime_config_uses_flags_that_exist() -> None:
    (config,) = [block for block in blocks() if block.get("kind") == "DeploymentRuntimeConfig"]
    (container,) = config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "package-runtime", "the name that Crossplane gives the function's container"
    assert {word for word in container["args"] if word.startswith("--")} <= flags().keys()


def blocks() -> list[dict[str, Any]]:
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]


def test_the_runtime_config_is_the_example() -> None:
    """The pod's labels are what the spread and the disruption budget select by."""
    config, budget = yaml.safe_load_all((ROOT / "example" / "operate" / "runtime.yaml").read_text())
    (shown,) = [block for block in blocks() if block.get("kind") == "DeploymentRuntimeConfig"]
    assert shown == config
    template = config["spec"]["deploymentTemplate"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert template["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] == labels
    assert template["spec"]["terminationGracePeriodSeconds"] > flags()["--grace"].default + NOTICE

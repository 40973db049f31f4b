"""Replicas of the examples through the real `crossplane render`: what `plan --workloads` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from example import caller, compare
from tests.replica import schemas

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.real_cli import Cli

pytestmark = pytest.mark.e2e

COMPOSITION = caller.ROOT / "apis" / "modelreplicas" / "composition.yaml"
EXAMPLES = {
    "small-model": ("example/fleet", "example/small-model"),
    "tensor-pipeline": ("example/fleet", "example/tensor-pipeline"),
    "prefill-decode": ("example/fleet", "example/prefill-decode"),
    "numa": ("example/numa/fleet.yaml", "example/numa/deployment.yaml"),
    "kserve": ("example/kserve/fleet.yaml", "example/kserve/deployment.yaml"),
}
"""A single GPU, a gang on two nodes, prefill and decode apart, a gang on KServe: fleet and deployment."""

Plain = dict[str, Any]


@pytest.mark.parametrize("example", EXAMPLES)
def test_render_and_plan_agree(cli: Cli, functions: Path, tmp_path: Path, example: str) -> None:
    files = EXAMPLES[example]
    _, planned = compare.command_line("plan", "-o", "yaml", *files)
    replica = next(document for document in yaml.safe_load_all(planned) if document["kind"] == "ModelReplica")
    composite, *composed = render(cli, functions, tmp_path, replica, files[0])
    manifests = [
        manifest["spec"]["forProvider"]["manifest"]
        for manifest in composed
        if manifest["kind"] == "Object" and manifest["spec"].get("managementPolicies") != ["Observe"]
    ]
    assert all(not list(schemas.findings(manifest)) for manifest in manifests)

    step = caller.objects(COMPOSITION)[0]["spec"]["pipeline"][0]["input"]
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(step))
    _, text = compare.command_line("plan", "--workloads", *files, str(config))
    expected = [
        document for document in yaml.safe_load_all(text) if replica["metadata"]["name"] in str(document)
    ]
    assert sorted(map(str, map(ordered, manifests))) == sorted(map(str, map(ordered, expected)))
    reasons = {condition["type"]: condition["reason"] for condition in composite["status"]["conditions"]}
    assert reasons["ModelAccepted"] == "Deploying"


def ordered(value: Any) -> Any:
    """Return a value with its maps in the order of their keys."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value)}
    return [ordered(item) for item in value] if isinstance(value, list) else value


def render(cli: Cli, functions: Path, folder: Path, replica: Plain, fleet: str) -> list[Plain]:
    """Render a replica on a fleet: the composite first, then what it composes."""
    file = folder / "replica.yaml"
    file.write_text(yaml.safe_dump(replica))
    words = [file, COMPOSITION, functions, f"--required-resources={caller.ROOT / fleet}", *cli.core_flags]
    return [document for document in yaml.safe_load_all(cli.run(*cli.render_words, *words)) if document]

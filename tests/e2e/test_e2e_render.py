"""The examples through the real `crossplane render`: the same placements as `fleet-scheduler plan`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from example import caller, compare
from hack.refresh_docs import refreshed
from tests.schema.admission import refusals
from tests.schema.crds import schema_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.real_cli import Cli

pytestmark = pytest.mark.e2e

PAGES = sorted(caller.HERE.glob("*/README.md"))
RENDERED = [page for page in PAGES if "crossplane render" in page.read_text()]
COMMAND = re.compile(r"```console\ncrossplane .*?```text\n.*?```", re.DOTALL)


@pytest.mark.parametrize("page", RENDERED, ids=lambda page: page.parent.name)
def test_the_page_of_an_example_shows_what_crossplane_prints(
    cli: Cli, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (core,) = [flag.partition("=")[2] for flag in cli.core_flags] or [""]
    monkeypatch.setenv("CROSSPLANE", cli.binary)
    monkeypatch.setenv("CROSSPLANE_CORE", core)
    (shown,) = COMMAND.findall(page.read_text())
    assert refreshed(shown) == shown


@pytest.mark.parametrize("folder", caller.deployments(), ids=lambda path: path.name)
def test_render_and_plan_agree(cli: Cli, functions: Path, folder: Path) -> None:
    composite, *composed = cli.render(folder, functions, *observed(folder))
    planned = compare.plan(folder)
    assert compare.placements(composed) == planned
    assert planned, "an example places something"
    assert composite["status"]["replicas"]["total"] == sum(
        manifest["kind"] == "ModelReplica" for manifest in composed
    )


@pytest.mark.parametrize("folder", caller.deployments(), ids=lambda path: path.name)
def test_what_is_rendered_is_accepted_by_the_schemas(cli: Cli, functions: Path, folder: Path) -> None:
    composite, *composed = cli.render(folder, functions, *observed(folder))
    for manifest in composed:
        assert refusals(manifest, schema_of(manifest["kind"])) == []
    status = {"status": composite["status"], **deployment(folder)}
    assert refusals(status, schema_of("ModelDeployment")) == []


def test_what_leaves_is_not_rendered(cli: Cli, functions: Path) -> None:
    folder = caller.HERE / "scale-drain"
    names = {
        manifest["metadata"]["name"] for manifest in cli.render(folder, functions, *observed(folder))[1:]
    }
    running = caller.observed_in(folder).values()
    left = [manifest for manifest in running if manifest["metadata"]["name"] not in names]
    assert [manifest["spec"]["clusterName"] for manifest in left if manifest["kind"] == "ModelReplica"] == [
        "gke-us-central1"
    ]


def deployment(folder: Path) -> dict[str, Any]:
    return caller.objects(folder / "xr.yaml")[0]


def observed(folder: Path) -> list[str]:
    """The flag for what is observed of the example, if anything is."""
    file = caller.observed_file(folder)
    return [f"--observed-resources={file}"] if file else []

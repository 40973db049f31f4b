"""The example files can be given to kubectl, twice, and to every version of `crossplane render`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from example import caller
from tests.schema.crds import ROOT

DEPLOYMENTS = [caller.objects(folder / "xr.yaml")[0] for folder in caller.deployments()]
FILES = sorted(path.relative_to(ROOT) for path in caller.HERE.rglob("*.yaml"))
SERVER_GIVEN = {
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
}
"""Metadata that an API server gives. It refuses a second apply that says otherwise, and its garbage collector
deletes what names an owner that does not exist."""


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_example_says_what_only_an_api_server_can(path: Path) -> None:
    for plain in caller.objects(ROOT / path):
        assert plain["metadata"].keys() & SERVER_GIVEN == set()


@pytest.mark.parametrize("path", FILES, ids=str)
def test_no_example_has_an_empty_document(path: Path) -> None:
    """Crossplane's command line takes comments before a first `---` for an object without a name."""
    documents = re.split(r"^---\s*$", (ROOT / path).read_text(), flags=re.MULTILINE)
    assert all(yaml.safe_load(document) for document in documents if document.strip())


def test_what_is_observed_is_apart_from_what_is_applied() -> None:
    """Composed resources of an example stand beside it: applying the fleet must not make them."""
    names = {deployment["metadata"]["name"] for deployment in DEPLOYMENTS}
    others = [plain for plain in caller.objects(caller.FLEET) if plain["kind"].startswith("Model")]
    assert all(plain["metadata"]["labels"]["modelplane.ai/deployment"] not in names for plain in others)
    assert [folder.name for folder in caller.deployments() if caller.observed_in(folder)] == ["scale-drain"]


def test_a_published_status_leaves_to_crossplane_what_is_its_own() -> None:
    """Crossplane owns these conditions: applying them by hand is refused as a conflict."""
    for plain in caller.objects(caller.FLEET):
        types = {condition["type"] for condition in plain.get("status", {}).get("conditions", ())}
        assert types & {"Synced", "Responsive"} == set(), plain["metadata"]["name"]


def test_install_creates_the_namespaces_it_uses() -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    files = {Path(name) for name in re.findall(r"-f (example/\S+)", text)}
    plains = [plain for file in files for plain in caller.objects(ROOT / file)]
    used = {plain["metadata"]["namespace"] for plain in plains if "namespace" in plain["metadata"]}
    used.discard("crossplane-system")  # Crossplane's own is there before anything of ours.
    assert used == set(re.findall(r"kubectl create namespace (\S+)", text))
    assert used


def test_the_composition_for_endpoints_is_one_for_endpoints() -> None:
    function, composition = caller.objects(caller.HERE / "platform" / "endpoints.yaml")
    (step,) = composition["spec"]["pipeline"]
    assert step["functionRef"]["name"] == function["metadata"]["name"]
    definition = caller.objects(ROOT / "apis" / "modelendpoints" / "definition.yaml")[0]["spec"]
    assert composition["spec"]["compositeTypeRef"] == {
        "apiVersion": f"{definition['group']}/{definition['versions'][0]['name']}",
        "kind": definition["names"]["kind"],
    }

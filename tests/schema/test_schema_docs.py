"""Every example in the API reference and the guide: accepted by the schema, understood by the scheduler."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from example.compare import command_line
from tests.schema.admission import refusals
from tests.schema.bad import made
from tests.schema.crds import DEFINITIONS, INPUTS, ROOT, objects, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

from tests.schema.blocks import BLOCKS, PAGES, PLACES, whole

KNOWN_SHORTFALL = 2
SCHEMAS = {
    manifest["spec"]["names"]["kind"]: manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for manifest in objects(*DEFINITIONS, *INPUTS)
}
"""What we declare of each kind and input, without what Crossplane adds."""


def test_every_block_says_what_it_is_of() -> None:
    assert len(BLOCKS) == PAGES.count("```yaml")
    assert {what for what, _ in BLOCKS} >= set(PLACES)


@pytest.mark.parametrize(("what", "text"), BLOCKS, ids=[f"{n}-{what}" for n, (what, _) in enumerate(BLOCKS)])
def test_block_is_accepted(what: str, text: str) -> None:
    plain = whole(what, text)
    assert refusals(plain, schema_of(plain["kind"])) == []


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_is_in_the_reference(kind: str) -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    words = {*re.findall(r"[A-Za-z][A-Za-z0-9]*", text), *re.findall(r"[a-z]+-[A-Za-z0-9]+", text)}
    assert sorted({path for path in _fields(SCHEMAS[kind]) if path.rpartition(".")[2] not in words}) == []


def _fields(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from _fields(below, f"{path}.{name}")
    for within in ("items", "additionalProperties"):
        if isinstance(schema.get(within), dict):
            yield from _fields(schema[within], path)


def test_blocks_are_planned(tmp_path: Path) -> None:
    """All deployments of the reference on the example fleet: none of them is bad input."""
    deployments = [whole(*block) for block in BLOCKS if PLACES.get(block[0], block)[0] == "ModelDeployment"]
    for number, plain in enumerate(deployments):
        plain["metadata"] |= {"name": f"block-{number}", "namespace": "docs"}
    cache = made("ModelCache") | {"metadata": {"name": "weights", "namespace": "docs"}}
    files = tmp_path / "docs.yaml"
    files.write_text(yaml.safe_dump_all([*deployments, cache]))
    code, printed = command_line("plan", "example/fleet", str(files))
    assert code in (0, KNOWN_SHORTFALL)
    for plain in deployments:
        assert plain["metadata"]["name"] in printed
    assert "Invalid" not in printed

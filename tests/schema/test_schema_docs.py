"""Every example in the API reference and the guide: accepted by the schema, understood by the scheduler."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from example.compare import command_line
from tests.schema.admission import children, refusals
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


WALKS = [
    yaml.safe_load(text)
    for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "kinds.md").read_text(), re.DOTALL)
]
"""The whole objects of the page that shows each kind from top to bottom."""
ELSEWHERE = re.compile(r"\.attributes\.(?!list$)|\.alternatives\.engines\.")
"""Fields that no walk needs: types of values, which a class shows, and engines of an alternative again."""


@pytest.mark.parametrize("plain", WALKS, ids=lambda plain: f"{plain['kind']}-{plain['metadata']['name']}")
def test_a_walk_is_accepted(plain: dict[str, Any]) -> None:
    assert refusals(plain, schema_of(plain["kind"])) == []


@pytest.mark.parametrize("kind", sorted({plain["kind"] for plain in WALKS}))
def test_a_walk_shows_every_field(kind: str) -> None:
    spec = {"properties": {"spec": SCHEMAS[kind]["properties"]["spec"]}}
    shown = {path for plain in WALKS if plain["kind"] == kind for path in _written(plain, spec)}
    assert [path for path in _fields(spec) if path not in shown and not ELSEWHERE.search(path)] == []


def test_the_walks_are_one_fleet_with_room_for_all(tmp_path: Path) -> None:
    (tmp_path / "kinds.yaml").write_text(yaml.safe_dump_all(WALKS))
    for verb in ("lint", "plan"):
        assert command_line(verb, str(tmp_path))[0] == 0


def _written(plain: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """The fields that an object sets, under the names that `_fields` gives them."""
    for step, value, below in children(plain, schema):
        here = f"{path}{step}" if step[1:] in schema.get("properties", {}) else path
        if here != path:
            yield here
        yield from _written(value, below, here)


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

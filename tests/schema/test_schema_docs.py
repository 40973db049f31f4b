"""Every example in the API reference: accepted by the schema, understood by the scheduler."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from example.compare import command_line
from tests.schema.admission import refusals
from tests.schema.bad import ENGINES, FIRST, made
from tests.schema.crds import ROOT, schema_of

if TYPE_CHECKING:
    from pathlib import Path

PLACES = {
    "engine": ("ModelDeployment", f"{ENGINES}.0"),
    "member": ("ModelDeployment", FIRST),
    "device request": ("ModelDeployment", f"{FIRST}.nodeSelector.devices.0"),
    "node pool": ("InferenceCluster", "spec.nodePools.0"),
    "device": ("InferenceClass", "spec.devices.0"),
}
"""What a block is a piece of, when it is not a whole object."""
KEPT = {"member": ("template",)}
"""What a piece leaves to the object it is put in."""
BLOCKS = re.findall(r"```yaml\n# ([^\n]+)\n(.*?)```", (ROOT / "docs" / "api.md").read_text(), re.DOTALL)
KNOWN_SHORTFALL = 2


def whole(what: str, text: str) -> dict[str, Any]:
    """The object that a block is a piece of."""
    piece = yaml.safe_load(text)
    if what not in PLACES:
        return _merged(made(what), piece)
    kind, place = PLACES[what]
    base: Any = made(kind)
    for step in place.split("."):
        base = base[int(step) if step.isdigit() else step]
    return made(kind, (place, {key: base[key] for key in KEPT.get(what, ())} | piece))


def _merged(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return deepcopy(over)
    return base | {key: _merged(base.get(key), value) for key, value in over.items()}


def test_every_block_says_what_it_is_of() -> None:
    assert len(BLOCKS) == (ROOT / "docs" / "api.md").read_text().count("```yaml")
    assert {what for what, _ in BLOCKS} >= set(PLACES)


@pytest.mark.parametrize(("what", "text"), BLOCKS, ids=[f"{n}-{what}" for n, (what, _) in enumerate(BLOCKS)])
def test_block_is_accepted(what: str, text: str) -> None:
    plain = whole(what, text)
    assert refusals(plain, schema_of(plain["kind"])) == []


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

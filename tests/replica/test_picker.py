"""The routing of a replica, word by word. How it follows an edit is in `test_strangers.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from function.replica.names import ROUTING
from tests.replica.build import Plain, Scene, engine, manifests, member, replica, run

AS_IT_IS, APART = yaml.safe_load_all((Path(__file__).parent / "picker.yaml").read_text(encoding="utf-8"))
PREFILL, DECODE = (
    engine(phase.lower(), member(args=[f"--block-size={size}"]), phase=phase)
    for phase, size in (("Prefill", 32), ("Decode", 64))
)

CASES: list[tuple[str, Plain, Plain]] = [
    ("an engine that does everything", replica(), AS_IT_IS),
    (
        "phases apart: blocks are those of the decode engine",
        replica(PREFILL, DECODE, mode="PrefillDecode"),
        APART,
    ),
]


@pytest.mark.parametrize(("reason", "made", "expected"), CASES, ids=[case[0] for case in CASES])
def test_the_routing_is_what_is_written_down(reason: str, made: Plain, expected: Plain) -> None:
    """Another word here is another object on every cluster, or restarts the picker of every replica."""
    composed = manifests(run(Scene(made)))
    assert {key: composed[key] for key in ROUTING if key in expected} == expected


def test_without_a_decode_engine_blocks_are_those_of_the_first() -> None:
    first = engine("a", member(args=["--block-size=32"]), phase="Prefill")
    made = manifests(run(Scene(replica(first, engine("b"), mode="PrefillDecode"))))
    assert "blockSizeTokens: 32\n" in made["epp-config"]["data"]["epp-config.yaml"]


def test_the_pool_asks_the_picker_by_the_name_of_its_service() -> None:
    """A Service may not begin with a digit, so it has another name than the picker's other objects."""
    made = manifests(run(Scene(replica(name="4bit-llama-5ab63"))))
    reference = made["inference-pool"]["spec"]["endpointPickerRef"]["name"]
    assert reference == made["epp-service"]["metadata"]["name"] == "m-4bit-llama-5ab63-epp"
    assert made["epp"]["metadata"]["name"] == "4bit-llama-5ab63-epp"

"""Whatever stands in the files, every command answers or says what is wrong: it never breaks.

One value somewhere in a fleet is replaced by an odd one, or left out; then every command is asked.
"""

from __future__ import annotations

import copy
import os
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.command import run, write
from tests.cli.fleets import fleet
from tests.support import build
from tests.support.odd_values import ODD, paths_of

if TYPE_CHECKING:
    from pathlib import Path

TRIES = {"quick": 60, "gate": 1_000, "soak": 30_000}[os.environ.get("FLEET_SCALE", "quick")]


def _mutated(draw: random.Random, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    changed = copy.deepcopy(objects)
    for _ in range(draw.randint(1, 2)):
        target: Any = draw.choice(changed)
        *parents, last = draw.choice(paths_of(target))
        for part in parents:
            target = target[part]
        if isinstance(target, dict) and draw.random() < 0.3:
            del target[last]
        else:
            target[last] = copy.deepcopy(draw.choice(ODD))
    return changed


def _with_all(seed: int) -> list[dict[str, Any]]:
    objects = fleet(seed)
    running = [manifest for manifest in objects if manifest["kind"] == "ModelReplica"]
    cache = build.cache("weights", {"region": "eu"})
    return [*objects, *(build.endpoint(replica) for replica in running), cache]


@pytest.mark.parametrize("seed", range(TRIES))
def test_no_command_breaks_on_an_odd_value(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    path = write(tmp_path / "f.yaml", _mutated(draw, _with_all(seed % 20)))
    commands: tuple[tuple[str, ...], ...] = (
        ("plan",),
        ("plan", "-o", "json"),
        ("whatif", "--drain", "cluster-a"),
        ("headroom",),
        ("verify", "-o", "json"),
        ("map",),
        ("map", "-o", "svg"),
        ("advise", "--max-moves", "1"),
        ("snapshot",),
    )
    name, *options = draw.choice(commands)
    ran = run(name, path, *options)
    assert ran.code in (0, 1, 2)
    assert ran.out or ran.err


DEPLOYMENT = "apiVersion: modelplane.ai/v1alpha1\r\nkind: ModelCache\r\nmetadata: {name: x}\r\nspec: {}\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_another_system_wrote_is_read(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(DEPLOYMENT.encode(encoding))
    assert run("lint", path).code == 0


def test_what_is_no_text_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: b\nc: \xe9t\xe9\n")
    ran = run("plan", path)
    assert (ran.code, ran.err) == (
        1,
        f"error: {path}: line 2: byte 0xe9 is not UTF-8: save the file as UTF-8\n",
    )


@pytest.mark.parametrize("namespace", [0, {}, [], False])
def test_a_namespace_that_is_no_text_is_not_taken_for_none(namespace: object, tmp_path: Path) -> None:
    cache = build.cache("weights")
    cache["metadata"]["namespace"] = namespace
    ran = run("lint", write(tmp_path / "f.yaml", [cache]))
    assert ran.code == 1
    assert "metadata.namespace: expected a string" in ran.out

"""What commands cost, counted: a fleet of a thousand clusters is answered about in seconds, not minutes."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import yaml
from rich.progress import Progress

from function.api import replica as replica_api
from function.cli.group import Patient
from function.cli.render import fleet_map
from function.cli.sizing import manifest
from function.cli.worlds import inputs, manifests, world
from function.cli.worlds.parsing import parse_documents
from function.scheduler.engine_options import EngineOption
from function.scheduler.filters import StateGate
from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from function.api import ModelReplica
    from function.boundary import Document

DEPLOYMENTS = 6


def _fleet() -> list[dict[str, object]]:
    clusters = [build.cluster(name, [build.pool("h100", 4)]) for name in ("east", "north", "west")]
    deployments = [build.deployment(f"model-{at}", 2) for at in range(DEPLOYMENTS)]
    return [*clusters, *deployments, *(build.replica(parent, "east", 0) for parent in deployments)]


def test_a_replica_is_parsed_once_and_not_for_every_deployment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parsed: Counter[int] = Counter()
    held: list[object] = []

    def parse(document: Document) -> ModelReplica:
        held.append(document.plain())  # Kept, so that no id is used twice.
        parsed[id(held[-1])] += 1
        return replica_api.parse(document)

    monkeypatch.setattr(world, "replica_api", SimpleNamespace(parse=parse))
    monkeypatch.setattr(inputs, "replica_api", SimpleNamespace(parse=parse))
    monkeypatch.setattr(fleet_map, "parse_replica", parse)
    fleet = write(tmp_path / "fleet.yaml", _fleet())
    for words in (["plan"], ["why", "model-5"], ["map", "-o", "svg"], ["headroom"]):
        parsed.clear()
        run(*words, fleet)
        assert len(parsed) >= DEPLOYMENTS, words
        assert set(parsed.values()) == {1}, words


def test_size_presents_the_fleet_once_for_all_splits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    presented: list[world.World] = []
    of_world = manifest.Presented  # type: ignore[attr-defined]
    monkeypatch.setattr(manifest, "Presented", lambda of: presented.append(of) or of_world(of))
    answer = run("size", "kimi-k2", write(tmp_path / "fleet.yaml", _fleet()), "-o", "json").data
    assert len(answer["splits"]) > 1 == len(presented)


def test_a_ledger_is_copied_without_the_replicas_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fleet = write(tmp_path / "fleet.yaml", _fleet())
    whole = run("map", "-o", "svg", fleet).out
    copied: list[object] = []
    monkeypatch.setattr(copy, "deepcopy", lambda value, *_: copied.append(value) or value)
    assert run("map", "-o", "svg", fleet).out == whole
    assert not [value for value in copied if not isinstance(value, dict)]


def test_the_garbage_collector_looks_through_nothing(tmp_path: Path) -> None:
    """What was imported and read is held to the end: walking through it took a third of a plan."""
    path = write(tmp_path / "fleet.yaml", _fleet())
    program = f"""
import atexit, gc, sys
from function.start import fleet_scheduler
runs = lambda: [generation["collections"] for generation in gc.get_stats()]
before = runs()
atexit.register(lambda: print(runs() == before, gc.get_count()[0], gc.get_freeze_count(), file=sys.stderr))
sys.argv = ["fleet-scheduler", "plan", {str(path)!r}]
fleet_scheduler()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    untouched, young, frozen = ran.stderr.split()
    assert untouched == "True"
    assert int(frozen) > 10_000 > int(young), "what is frozen at the end is looked through by no collection"


def test_what_is_preferred_is_found_out_for_devices_and_not_for_every_cluster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[EngineOption] = []
    real = EngineOption.preference.fget  # type: ignore[attr-defined]
    assert real is not None
    monkeypatch.setattr(
        EngineOption, "preference", property(lambda option: asked.append(option) or real(option))
    )
    clusters = [build.cluster(f"c{n}", [build.pool("a", n), build.pool("b", 1)]) for n in range(1, 9)]
    run("plan", write(tmp_path / "fleet.yaml", [*clusters, build.deployment("chat", 1)]))
    assert len(asked) == 2, "two pools, whose devices are those of every cluster"


def test_where_nothing_is_missing_no_cluster_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Most passes find all as it should be: why clusters take no more is asked where one is missing."""
    asked: list[str] = []
    real = StateGate.reject
    monkeypatch.setattr(
        StateGate, "reject", lambda gate, cluster: asked.append(cluster.name) or real(gate, cluster)
    )
    settled = _fleet()
    for item in settled:
        if item["kind"] == "ModelDeployment":
            item["spec"] |= {"replicas": 1}
    run("plan", write(tmp_path / "settled.yaml", settled))
    assert asked == []
    run("plan", write(tmp_path / "short.yaml", _fleet()))
    assert {*asked} == {"east", "north", "west"}


def test_lint_parses_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To name a file that cannot be read, and to look at all of them, one parsing is enough."""
    parsed: list[str] = []
    parse = manifests.parse_documents  # type: ignore[attr-defined]

    def counted(name: str, text: str) -> Iterator[object]:
        parsed.append(name)
        return parse(name, text)

    monkeypatch.setattr(manifests, "parse_documents", counted)
    for name in ("a", "b"):
        write(tmp_path / f"{name}.yaml", [build.cluster(name, [build.pool("h100", 2)])])
    assert run("lint", tmp_path).code == 0
    assert parsed == [str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")]


LARGE_FLEET = (
    *(("lint",), ("plan",), ("why", "model-0"), ("whatif", "--drain", "east"), ("headroom",), ("advise",)),
    *(("verify",), ("verify", "--standing"), ("map", "-o", "fleet.html"), ("snapshot",)),
    *(("history", "model-0"), ("size", "qwen3-8b"), ("reconcile", "--all")),
)
"""Verbs that read a fleet."""


@pytest.mark.parametrize("words", LARGE_FLEET, ids=" ".join)
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_a_large_file_shows_progress_before_its_first_object_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], suffix: str
) -> None:
    events: list[str] = []

    def parse(name: str, text: str) -> Iterator[object]:
        events.append("parsed")
        return parse_documents(name, text)

    monkeypatch.setattr(manifests, "SLOW", 0)
    monkeypatch.setattr(manifests, "parse_documents", parse)
    monkeypatch.setattr(Patient, "isatty", lambda _: True, raising=False)
    monkeypatch.setattr(Progress, "start", lambda _: events.append("shown"))
    monkeypatch.chdir(tmp_path)
    fleet = tmp_path / f"fleet.{suffix}"
    as_text = json.dumps if suffix == "json" else yaml.safe_dump
    fleet.write_text(as_text({"apiVersion": "v1", "kind": "List", "items": _fleet()}))
    run(*words, fleet)
    assert events[:2] == ["shown", "parsed"]

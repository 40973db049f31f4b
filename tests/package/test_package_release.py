"""What a release refuses, what it writes, and that the workflows call the commands that people call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml
from click.testing import CliRunner

from example.caller import ROOT
from package import build, release

if TYPE_CHECKING:
    from pathlib import Path

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
ELSEWHERE = {"coverage", "provider", "live", "referee"}
"""Targets of .ci/run that need more than a runner of a forge has, or that are reported and never judged."""


@pytest.mark.parametrize(
    ("version", "reason"),
    [("v0.2.0", "a tag"), ("0.2", "two numbers"), ("0.2.0rc1", "no release"), ("0.02.0", "a leading zero")],
)
def test_a_version_is_three_numbers(version: str, reason: str) -> None:
    refused = CliRunner().invoke(release.main, [version])
    assert refused.exit_code == 1, reason
    assert f'three numbers, as in 0.2.0; found "{version}"' in refused.output


def test_a_tree_with_changes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "run", lambda command: " M function/main.py\n")
    refused = CliRunner().invoke(release.main, ["0.2.0"])
    assert refused.exit_code == 1
    assert "commit or remove first:\nM function/main.py" in refused.output


def test_what_was_unreleased_stands_under_the_version() -> None:
    text = "# Changelog\n\n## Unreleased\n\n- Faster.\n\n## 0.1.0 - 2026-01-01\n\n- First.\n"
    dated = release._dated(text, "0.2.0")
    assert re.sub(r"\d{4}-\d\d-\d\d", "DAY", dated) == (
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 - DAY\n\n- Faster.\n\n## 0.1.0 - DAY\n\n- First.\n"
    )


@pytest.mark.parametrize("text", ["# Changelog\n", "## Unreleased\n\n## 0.1.0 - 2026-01-01\n\n- First.\n"])
def test_a_release_without_notes_is_refused(text: str) -> None:
    with pytest.raises(click.ClickException, match='nothing under "Unreleased"'):
        release._dated(text, "0.2.0")


def test_the_changelog_can_be_released() -> None:
    assert release._dated(release.CHANGELOG.read_text(), "0.2.0")


def test_nothing_is_published_that_cannot_be_signed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(click.ClickException, match="cosign is missing"):
        next(release.publish("registry.example.com/fleet", None, private=False))


@pytest.mark.parametrize(
    ("setting", "origin", "address"),
    [
        ("https://git.example.com/a/b", "git@elsewhere.example:c/d", "https://git.example.com/a/b"),
        ("", "git@git.example.com:a/b.git", "https://git.example.com/a/b"),
        ("", "ssh://git@git.example.com/a/b.git", "https://git.example.com/a/b"),
        ("", "https://token@git.example.com/a/b.git", "https://git.example.com/a/b"),
        ("", "/srv/git/b", None),
        ("", "", None),
    ],
)
def test_the_source_of_a_package_is_one_setting(
    monkeypatch: pytest.MonkeyPatch, setting: str, origin: str, address: str | None
) -> None:
    monkeypatch.setenv("SOURCE", setting)
    monkeypatch.setattr(build, "_origin", lambda: origin)
    assert build.source() == address


@pytest.mark.parametrize("meta", [ROOT / "crossplane.yaml", ROOT / "package" / "crossplane.yaml"], ids=str)
def test_a_package_says_what_it_is(meta: Path) -> None:
    annotations = yaml.safe_load(meta.read_text())["metadata"]["annotations"]
    said = {f"meta.crossplane.io/{name}" for name in ("maintainer", "license", "description", "readme")}
    assert said <= annotations.keys()
    assert build.SOURCE not in annotations, "each build knows its own address"


def test_the_workflows_call_the_commands_of_the_script() -> None:
    ours = set(
        re.findall(r"^\s*(?:.*= )?make ([a-z0-9-]+)", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    )
    called = set(re.findall(r"run: make ([a-z0-9-]+)", "".join(path.read_text() for path in WORKFLOWS)))
    assert {"lint", "lint-files", "test", "e2e"} <= ours, "the script is read"
    assert ours - ELSEWHERE <= called
    made = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert called <= made


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_do_little_and_runs_what_was_reviewed(path: Path) -> None:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        used = [step["uses"] for step in job["steps"] if "uses" in step]
        assert [action for action in used if not re.search(r"@[0-9a-f]{40}$", action)] == []

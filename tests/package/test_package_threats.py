"""docs/threats.md names a test for what it says bounds somebody, and that test is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "threats.md").read_text()
NAMED = sorted(set(re.findall(r"`(\w+/\w+\.py)(?:::(\w+))?`", TEXT)))


@pytest.mark.parametrize(("file", "test"), NAMED, ids=["::".join(item) for item in NAMED])
def test_a_test_that_is_named_is_there(file: str, test: str) -> None:
    source = (ROOT / "tests" / file).read_text()
    assert (f"\ndef {test}(" if test else "\ndef test_") in source


def test_what_stops_a_team_is_held_by_a_test() -> None:
    """A row without a test says that nothing stops it."""
    _, section = TEXT.split("## What one team can do to another")
    rows = [line.split("|") for line in section.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    bounds = [(wish, stops, tests) for _, wish, stops, tests, *_ in rows if wish.strip() != "one team wants"]
    assert len(bounds) >= 20
    assert [wish for wish, stops, tests in bounds if "`" not in tests and "nothing" not in stops] == []


def test_the_flags_that_are_named_are_there() -> None:
    flags = set(re.findall(r"`(--[\w-]+)`", TEXT))
    assert flags
    page = (ROOT / "docs" / "operations.md").read_text()
    assert [flag for flag in sorted(flags) if f"`{flag}`" not in page] == []


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md", "docs/operations.md"])
def test_whoever_has_to_know_is_led_there(page: str) -> None:
    assert "threats.md)" in (ROOT / page).read_text()

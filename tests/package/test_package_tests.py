"""The tests as a tree: helpers stand where any test may use them."""

from __future__ import annotations

import re

from example.caller import ROOT

IMPORT = re.compile(
    r"^\s*(?:from tests\.(?:\w+\.)*test_\w+ import|from tests\.[\w.]+ import .*\btest_\w+)", re.MULTILINE
)


def test_nothing_is_imported_from_a_test_module() -> None:
    importing = [
        str(path.relative_to(ROOT))
        for folder in ("tests", "bench", "hack", "example")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if IMPORT.search(path.read_text())
    ]
    assert importing == []


def test_every_test_that_the_track_record_and_the_deviations_name_exists() -> None:
    record = (ROOT / "tests" / "REGRESSIONS.md").read_text()
    named = re.findall(r"`(?:tests/)?((?:\w+/)+\w+\.py)(?:::(?:\w+::)?(\w+))?`", record)
    deviations = (ROOT / "docs" / "compatibility.md").read_text()
    named += [(path, "") for path in re.findall(r"`tests/([\w/.]+)`", deviations)]
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (file := ROOT / "tests" / path).exists() or (name and f"def {name}(" not in file.read_text())
    ]
    assert len(named) > len(record.splitlines()), "the pages have another form: little would be looked up"
    assert missing == []

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

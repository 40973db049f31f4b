"""Every example of docs/selectors.md says what it says."""

import re
from pathlib import Path

import pytest

from tests.cel import devices
from tests.cel.devices import outcome, says

TEXT = (Path(__file__).parents[2] / "docs" / "selectors.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```cel\n(.*?)\n// => (.*?)\n```", TEXT, re.DOTALL)
REFUSED = "does not compile: "


def test_every_block_is_an_example() -> None:
    assert len(BLOCKS) == TEXT.count("```cel") > 20


@pytest.mark.parametrize(("expression", "answer"), BLOCKS)
def test_the_example_says_what_it_says(expression: str, answer: str) -> None:
    if answer.startswith(REFUSED):
        result = outcome(expression)
        assert result.kind == "compile"
        assert answer.removeprefix(REFUSED) in result.message
        return
    expected = dict(part.split(": ") for part in answer.split("; "))
    assert {name: says(expression, getattr(devices, name)) for name in expected} == expected

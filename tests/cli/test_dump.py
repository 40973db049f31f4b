"""Documents are written without PyYAML where that makes no difference: to a byte what PyYAML writes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from function.cli import dump
from function.cli.text import as_yaml
from tests.support import build

ODD = (
    *("", " ", "~", "yes", "No", "true", "null", "=", "<<", "1", "08", "0x1F", "1e3", "1.5", "12:30", ".inf"),
    *("2026-01-01", "10.0.0.7", "x: y", "a:", "- a", "-", "?", "? x", "#c", "a #b", "a,b", "[x]", "{", "%y"),
    *("@a", "`", "!t", "&a", "*a", "|", ">", "---", "...", "--- a", "'q'", '"d"', " lead", "trail ", "\t"),
    *(
        "a\nb",
        "a\n",
        "\n",
        "é",
        "😀",
        "\u0085",
        "a\u2028b",
        "\u200b",
        "\ufeff",
        "{{x}}",
        "false",
        "falsehood",
    ),
    *("x" * 129, "x" * 2_000, "a b " * 300, "'" * 600 + " x", "modelplane.ai/v1", "123e4567-e89b-12d3-a456"),
)
_text = st.sampled_from(ODD) | st.text(max_size=6)
_scalar = _text | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_value = st.recursive(
    _scalar,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(_text, below, max_size=3),
    max_leaves=12,
)
_documents = st.lists(st.dictionaries(_text, _value, max_size=3) | _value, max_size=3)


def _plainly(documents: list[object], **how: Any) -> str:
    return str(dump.dumped(documents, **how))


@given(_documents)
def test_documents_are_written_as_pyyaml_writes_them(documents: list[object]) -> None:
    assert dump.written(tuple(documents)) == _plainly(documents, allow_unicode=True)


@pytest.mark.parametrize("odd", ODD)
def test_every_odd_text_is_written_so_wherever_it_stands(odd: str) -> None:
    documents: list[object] = [
        {"a": odd},
        {odd: 1},
        {odd: {odd: [odd]}},
        {"a": [odd, [odd], {odd: odd}]},
        odd,
    ]
    assert dump.written(tuple(documents)) == _plainly(documents, allow_unicode=True)


def test_what_stands_very_deep_is_written_so_too() -> None:
    deep: object = {"a": "b " * 240}
    for _ in range(300):
        deep = {"a": deep}
    assert dump.written((deep,)) == _plainly([deep], allow_unicode=True)


def test_one_character_that_a_terminal_obeys_is_escaped_and_then_all_is_ascii() -> None:
    documents: list[object] = [{"a": "é"}, {"b": "x\u200by"}]
    assert as_yaml(*documents) == 'a: "\\xE9"\n---\nb: "x\\u200By"\n'


def test_a_value_that_two_fields_share_is_written_twice() -> None:
    shared = {"b": [1]}
    assert dump.written(({"x": shared, "y": shared},)) == "x:\n  b:\n  - 1\ny:\n  b:\n  - 1\n"


def test_pyyaml_writes_what_is_new_and_nothing_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the fleet costs nothing more where it repeats itself, and nothing for a name of its own."""
    asked: list[object] = []

    def counted(documents: list[object], **how: Any) -> str:
        asked.extend(documents)
        return str(yaml.dump_all(documents, Dumper=dump._Dumper, sort_keys=False, width=dump.WIDTH, **how))

    monkeypatch.setattr(dump, "dumped", counted)

    def fleet(size: int) -> list[object]:
        return [build.cluster(f"cluster-{at}", [build.pool("h100", 4)]) for at in range(size)]

    def asked_for(documents: list[object]) -> int:
        asked.clear()
        text = dump.written(tuple(documents))
        assert [*yaml.safe_load_all(text)] == documents
        return len(asked)

    assert asked_for(fleet(2)) == asked_for(fleet(40)) > 0
    assert not any(isinstance(document, dict) and document.get("metadata") for document in asked)

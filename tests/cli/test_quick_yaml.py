"""A quicker parser reads YAML: what it answers, the slow one answers too, or it is not asked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import ryaml
import yaml
from hypothesis import given, strategies as st

from function import catalogue
from function.cli.admission.kinds import shipped
from function.cli.bad_input import BadInput
from function.cli.worlds import parsing, yaml_loader
from tests.cli.command import run, write
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

ODD = (
    *("{a: b, 4}", "[?4, b]", "[?:, b]", "{~}", "{? [a]: b}", "# only a comment"),
    *(
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "true",
        "TRUE",
        "tRue",
        "~",
        "null",
        "NULL",
        "",
        "=",
        "<<",
        "-",
        ".",
        "_",
    ),
    *(
        "0",
        "-0",
        "+1",
        "1",
        "-7",
        "00",
        "010",
        "-010",
        "08",
        "0o17",
        "0x1F",
        "0b11",
        "0xZ",
        "1_000",
        "1_",
        "_1",
    ),
    *("1e3", "1.5e3", "1.5e+3", ".5", "-.5", "._5", "1.", "1.50", "-1.0", "00.5", "1.5_0", ".inf", "-.INF"),
    *(".nan", "inf", "nan", "12:30", "1:2:3.5", "12:30:45", "2026-01-01", "2026-01-01T00:00:00Z", "1 000"),
    *("123456789012345678", "9223372036854775808", "123456789012345678901234567890", "1.2.3", "8080", "80Gi"),
    *("&a 1", "*a", "&a", "!!str 1", "!foo x", "! x", "!<tag:yaml.org,2002:int> 1", "!!binary aGk=", "% x"),
    *("'it''s'", '"a\\nb"', '"\\ud800"', '"\\u00e9"', "'010'", '"yes"', "'a\n  b'", '"a\n  b"', "'a\nb'"),
    *(
        "[1, 010, yes]",
        "{a: 010}",
        '{"a":010}',
        '{"a": yes, b: no}',
        "{a, b: }",
        "[a: 1, b]",
        "{1: 2}",
        "[",
        "{}",
    ),
    *(
        "[]",
        "|\n    x\n    y",
        ">-\n    x\n\n    y",
        "|2\n     x",
        "x #y",
        "x#y",
        "#y",
        "a: b",
        "@x",
        "`x",
        "\tx",
    ),
    *(
        "é",
        "\u2028",
        "a\u0085b",
        "\ufeff",
        "\x07",
        "b c\n   d",
        "device.x && !has(y)",
        "a ? !b : c",
        "--- x",
        "...",
    ),
)
KEYS = (
    "a",
    "b",
    "name",
    '"a"',
    "'b'",
    "1",
    "yes",
    "~",
    "true",
    "1.5",
    "010",
    "12:30",
    "<<",
    "? a",
    "",
    "[x]",
    "é",
    "&k a",
)
_value = st.sampled_from(ODD) | st.text(alphabet="019-+._:eExyno~ \"'#&*!?[]{},a\n\t", max_size=8)
_key = st.sampled_from(KEYS) | st.text(alphabet="ab01:?-~ ", max_size=3)
_line = st.one_of(
    st.builds("{}{}: {}".format, st.sampled_from(("", "  ", "- ", "  - ", "\t")), _key, _value),
    st.builds("{}{}:".format, st.sampled_from(("", "  ", "- ")), _key),
    st.builds("{}{}".format, st.sampled_from(("- ", "  - ", "- - ", "  ", "")), _value),
    st.sampled_from(("---", "...", "", "# a comment", "  # no", "#010\x85- on", "%YAML 1.1", "--- # x")),
)
_documents = st.lists(_line, min_size=1, max_size=6).map("\n".join)


def _slowly(text: str) -> str | None:
    try:
        return repr(list(yaml_loader.loaded(text)))
    except (BadInput, RecursionError):
        return None


def _quickly(text: str) -> str | None:
    read = parsing.read_quickly(text, parsing.lines_of(text))
    return None if read is None else repr(read)


_listed = st.builds(
    "apiVersion: v1\nitems:\n- {}{}{}".format,
    _documents,
    st.sampled_from(("\n", "\n- ", "\n- a:\n    b\n- ", "\x85", "\r- ", "\u2028---\n- ")),
    st.sampled_from(("kind: List\n", "x\nkind: List", '"\nkind: L\nb: {}\n', "items:\n- a\nkind: A\n")),
)


@given(_documents | _listed)
def test_what_is_read_quickly_is_read_as_slowly(text: str) -> None:
    quickly = _quickly(text)
    assert quickly is None or quickly == _slowly(text), text


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "form", ["a: {}\n", "- {}\n", "[{}]\n", '{{"a":{}, b: {}}}\n', "a:\n  {}\n", "{}: x\n"]
)
def test_every_odd_value_is_read_as_slowly_wherever_it_stands(form: str, value: str) -> None:
    text = form.format(value, value)
    quickly = _quickly(text)
    assert quickly is None or quickly == _slowly(text), text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: yes\n", "a truth for 1.1 and a text for 1.2"),
        ("a: 010\n", "eight for 1.1"),
        ("a: 1_000\n", "a number for 1.1"),
        ("a: 12:30\n", "a number of seconds for 1.1"),
        ("1: x\n", "a key must be a text, and the other reader says so"),
        ("a: &x 1\nb: *x\n", "aliases are counted by the other reader"),
        ("a: !!binary aGk=\n", "tags are refused by the other reader"),
        ("<<: {a: 1}\n", "merges are a matter of 1.1"),
        ("a: 1\na: 2\n", "a key that is given twice has a message with its line"),
        ("a: [\n", "a text that is no YAML has a message with its line"),
    ],
)
def test_doubt_is_left_to_the_reader_with_messages(text: str, reason: str) -> None:
    assert parsing.read_quickly(text, parsing.lines_of(text)) is None, reason


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028", "\u2029"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("|!x y", "a tag begins a line"),
        ("{|~|}", "a key that is no text stands alone on its line"),
        ("{a: 1,|~}", "or behind another"),
        ("# a|1: no", "a comment ends with its line"),
        ("\ufeffNO", "a mark before a truth"),
        ("\ufeff12:|", "or before a key that is no text"),
        ("\ufeff1e3", "or before what is a number for one reader alone"),
    ],
)
def test_lines_end_for_either_reader_as_in_yaml(text: str, reason: str, end: str) -> None:
    text = text.replace("|", end)
    quickly = _quickly(text)
    assert quickly is None or quickly == _slowly(text), reason


def test_lines_of_windows_are_read_quickly() -> None:
    text = "a: 1\r\nb:\r\n- c: x\r\n"
    assert parsing.read_quickly(text, parsing.lines_of(text)) == [{"a": 1, "b": [{"c": "x"}]}]


def test_an_ordinary_dump_is_read_quickly() -> None:
    objects = [build.cluster("east", [build.pool("h100", 4)]), build.deployment("chat", 2)]
    objects[0]["metadata"]["managedFields"] = [{"fieldsV1": {"f:spec": {'k:{"type":"Ready"}': {".": {}}}}}]
    text = yaml.safe_dump_all(objects)
    assert parsing.read_quickly(text, parsing.lines_of(text)) == objects


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "apiVersion: v1\nitems:\n- a\n- b: c\n- \nkind: List\n",
            "as kubectl prints it, an item is empty",
        ),
        (
            "apiVersion: v1\nitems:\n- a: |+\n    b\n\n\n- - c\nkind: List\n",
            "empty lines end a text",
        ),
        ('apiVersion: v1\nitems:\n- "a\n- b"\nkind: List\n', "a line in quotes is no item"),
        ("apiVersion: v1\nitems:\n- 'a\nkind: B'\n", "a line in quotes is no field of the list"),
        ("apiVersion: v1\nitems:\n- a\n...\n- b\nkind: List\n", "another document"),
        (
            "apiVersion: v1\nitems:\n- a\x85...\n- b\nkind: List\n",
            "a document behind another line end",
        ),
        ("apiVersion: v1\nitems:\n- a\nitems:\n- b\nkind: List\n", "a field that is given twice"),
    ],
)
def test_a_list_is_read_as_slowly(text: str, reason: str) -> None:
    quickly = _quickly(text)
    assert quickly is None or quickly == _slowly(text), reason


_ENTRY = "  spec:\n    engines:\n    - name: a"
_further = st.sampled_from(
    (
        *(
            "      b: |+\n        text",
            "      b: >-\n        text\n        more",
            "      c: [1,\n        2]",
            "",
        ),
        *("    - name: b", "    -x", "    -", "    # no", "    other: 1", "  status: x", "  spec: {}", "   "),
        *(
            "      - c",
            "        d",
            '      q: "a',
            '    b"',
            "  data: |",
            "  data: '",
            "    '",
            "    engines:",
        ),
        f"    engines: {parsing._STAND_IN}",
    )
)
_replica = st.tuples(
    st.sampled_from((_ENTRY, f"  data: |\n{_ENTRY}", f"  data: '\n{_ENTRY}", "  spec:\n    a: 1")),
    st.lists(_further, max_size=4),
).map(lambda parts: "\n".join((parts[0], *parts[1])))


@given(st.lists(_replica, min_size=1, max_size=2))
def test_engines_that_several_items_have_are_read_as_slowly(items: list[str]) -> None:
    listed = "".join(f"- kind: R\n{item}\n" for item in items * 2)
    text = f"apiVersion: v1\nitems:\n{listed}kind: List\n"
    quickly = _quickly(text)
    assert quickly is None or quickly == _slowly(text), text


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (
            f"{_ENTRY}\n      b: |+\n        text\n\n  status: x",
            "an empty line belongs to the text before it",
        ),
        ("  spec:\n    engines:\n    -x", "a word that begins with a dash is no entry"),
        ("  spec: {}\n  data: |\n    engines:\n    - a", "they stand in a text"),
        ("  spec: {}\n  data: '\n\n    engines:\n    - a'", "they stand in quotes"),
        (
            f"  spec: {{engines: {parsing._STAND_IN}}}\n  data:\n    engines:\n    - a",
            "the words stand there",
        ),
        (f"{_ENTRY}\n      name: b", "a name that is given twice"),
        ("  spec:\n    engines:\n      >-\n    - a", "a text is not as far in as its field"),
        ("  spec:\n    engines:\n        a\n    -", "a text goes on where the next field would begin"),
        (f"{_ENTRY}\n    engines: []", "a field that is given twice"),
        (f"{_ENTRY}\n      b:\n       c\n\n       d", "a text goes on behind an empty line"),
    ],
)
def test_what_only_looks_like_engines_is_read_as_slowly(item: str, reason: str) -> None:
    text = f"apiVersion: v1\nitems:\n- kind: R\n{item}\n- kind: R\n{item}\nkind: List\n"
    quickly = _quickly(text)
    assert quickly is None or quickly == _slowly(text), reason


def test_engines_that_several_items_have_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are half of the text of a fleet, and a deployment has thousands of replicas."""
    items = [{"kind": "R", "spec": {"engines": [{"name": "main"}]}, "status": {"at": at}} for at in range(9)]
    text = yaml.safe_dump({"apiVersion": "v1", "items": items, "kind": "List"})
    read: list[str] = []
    at_once = ryaml.loads_all  # type: ignore[attr-defined]
    monkeypatch.setattr(ryaml, "loads_all", lambda part: read.append(part) or at_once(part))
    assert parsing.read_quickly(text, parsing.lines_of(text)) == [yaml.safe_load(text)]
    assert "".join(read).count("name: main") == 1


def test_a_list_is_read_item_by_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ryaml holds a whole text a second time, which took a quarter of the time and most of the memory."""
    items = [build.cluster(name, [build.pool("h100", 4)]) for name in ("east", "north", "west")]
    text = yaml.safe_dump({"apiVersion": "v1", "items": items, "kind": "List", "metadata": {}})
    read: list[str] = []
    at_once = ryaml.loads_all  # type: ignore[attr-defined]
    monkeypatch.setattr(ryaml, "loads_all", lambda part: read.append(part) or at_once(part))
    assert parsing.read_quickly(text, parsing.lines_of(text)) == [yaml.safe_load(text)]
    assert max(map(len, read)) < len(text) / 2


def test_a_file_gives_the_same_answer_with_either_reader(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fleet = write(
        tmp_path / "fleet.yaml", [build.cluster("east", [build.pool("h100", 4)]), build.deployment("chat", 2)]
    )
    quickly = run("plan", fleet)
    monkeypatch.setattr(parsing, "read_quickly", lambda *_: None)
    assert run("plan", fleet).out == quickly.out


def test_a_comment_is_no_doubt() -> None:
    text = "# no doubt: on *all* 010 lines\na: 1\n  # &yes\nb: |\n  # no\n"
    assert parsing.read_quickly(text, parsing.lines_of(text)) == [{"a": 1, "b": "# no\n"}]


SHIPPED = [*catalogue.HERE.glob("*/*.yaml"), *(kind.file for kind in shipped().values())]


@pytest.mark.parametrize("missing", ["yaml", "ryaml"])
def test_what_is_shipped_is_read_alike(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schemas have anchors and `<<`, which `ryaml` does not know."""
    monkeypatch.setitem(sys.modules, missing, None)
    for file in SHIPPED:
        assert catalogue.read(file) == yaml.safe_load(file.read_text(encoding="utf-8")), file

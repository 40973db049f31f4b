"""What files say is shown and never obeyed: by a terminal, by a reader of XML, in any form of output."""

from __future__ import annotations

import json
from io import StringIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from hypothesis import given, strategies as st
from rich.table import Table

from function.cli.text import GAP, Screen, escape
from tests.cli.command import run
from tests.support import build

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import JustifyMethod

Plain = dict[str, Any]

HOSTILE = {
    "escape": "\x1b[2Jgone",
    "control sequence introducer": "\x9b2Jgone",
    "bell": "ring\x07",
    "right-to-left override": "use\u202e1",
    "isolate": "use\u20661\u2069",
    "line separator": "use\u20281",
    "zero width": "use\u200b1",
    "line end": "use1\n✓ everything is placed",
    "not in XML": "use\uffff1",
}
"""Names no Kubernetes API server would take; a file may hold them all the same."""

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("plan",),
    ("plan", "-o", "json"),
    ("plan", "-o", "yaml"),
    ("why", "chat"),
    ("why", "chat", "-o", "json"),
    ("why", "chat", "-o", "yaml"),
    ("whatif", "--replicas", "ml-team/chat=9"),
    ("whatif", "--replicas", "ml-team/chat=9", "-o", "yaml"),
    ("headroom",),
    ("headroom", "-o", "json"),
    ("advise",),
    ("verify",),
    ("map",),
    ("map", "-o", "svg"),
    ("snapshot",),
    ("reconcile", "--all"),
)


def _fleet(name: str) -> list[Plain]:
    """A fleet in which the name stands wherever a message might quote it."""
    cluster = build.cluster(name, [build.pool(name, 2)], labels={"modelplane.ai/region": name})
    cluster["spec"]["taints"] = [build.taint(name, "NoSchedule")]
    parent, other = build.deployment("chat", 4), build.deployment(name, 2)
    room = build.cluster("room", [build.pool("h100", 1)])
    running = build.replica(parent, "room", 0, ready=True)
    return [cluster, room, parent, other, running]


def _written(path: Path, objects: list[Plain]) -> Path:
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}))
    return path


def _obeyed(text: str) -> list[str]:
    return sorted({character for character in text if character != "\n" and not character.isprintable()})


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_nothing_a_file_says_reaches_the_terminal_as_a_command(
    command: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    ran = run(*command, _written(tmp_path / "f.json", _fleet(name)))
    assert ran.code in (0, 1, 2)
    assert _obeyed(ran.out) == []
    assert _obeyed(ran.err) == []
    assert "\n✓ everything" not in ran.out + ran.err, "nor does a name start a line of its own"


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_errors_quote_names_in_a_printable_form(name: str, tmp_path: Path) -> None:
    objects = _fleet(name)
    objects[0]["spec"]["taints"] = "none"
    file = _written(tmp_path / "f.json", objects)
    for ran in (run("plan", file), run("whatif", file, "--drain", "nowhere"), run("why", "nobody", file)):
        assert ran.code == 1
        assert _obeyed(ran.err) == []
    wrong = run("whatif", file, "--add-nodes", name)
    assert (wrong.code, _obeyed(wrong.err)) == (1, [])


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_data_says_the_name_as_it_is(name: str, tmp_path: Path) -> None:
    file = _written(tmp_path / "f.json", _fleet(name))
    clusters = run("why", "chat", file, "-o", "json").data["placement"]["clusters"]
    assert name in {cluster["name"] for cluster in clusters}
    listed = yaml.safe_load(run("why", "chat", file, "-o", "yaml").out)["placement"]["clusters"]
    assert name in {cluster["name"] for cluster in listed}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_the_picture_is_xml_whatever_the_names(name: str, tmp_path: Path) -> None:
    picture = run("map", _written(tmp_path / "f.json", _fleet(name)), "-o", "svg").out
    shown = [element.text or "" for element in ET.fromstring(picture).iter()]  # noqa: S314 - our own
    assert any(name[:3].strip("\x1b\x9b") in text for text in shown)


def test_brackets_and_colons_in_names_are_neither_markup_nor_emoji(tmp_path: Path) -> None:
    name = "[red]use:warning:1[/red]"
    file = _written(tmp_path / "f.json", _fleet(name))
    for command in (("why", "chat", file), ("plan", file), ("headroom", file)):
        assert ":warning:" in "".join(run(*command).out.split())


_cell = st.text(alphabet="ab c[]/\\é漢\u0301\n\t:", max_size=8).map(escape) | st.sampled_from(("", "x" * 40))
_rows = st.integers(1, 4).flatmap(lambda size: st.lists(st.tuples(*[_cell] * size), min_size=1, max_size=4))


@given(rows=_rows, width=st.integers(20, 200), header=st.booleans(), least=st.integers(0, 12))
def test_a_table_in_a_pipe_is_laid_out_as_rich_does(
    rows: list[tuple[str, ...]], width: int, least: int, *, header: bool
) -> None:
    def printed(screen: type[Screen]) -> str:
        table = Table(box=None, pad_edge=False, show_header=header, padding=GAP)
        for number in range(len(rows[0])):
            justify: JustifyMethod = "right" if number % 2 else "left"
            table.add_column(f"  C{number}", justify=justify, min_width=least, overflow="fold")
        for row in rows:
            table.add_row(*row, style="dim")
        out = StringIO()
        screen(file=out, width=width).print(table)
        return out.getvalue()

    assert printed(Screen) == printed(_AsRichDoes)


class _AsRichDoes(Screen):
    def _plain_lines(self, table: Table) -> None:
        return None


@pytest.mark.parametrize(
    "command", [("plan",), ("headroom",), ("verify",), ("advise",), ("size", "qwen3-8b")]
)
def test_no_line_of_a_narrow_pipe_ends_in_a_space(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    ran = run(*command, "example/three-teams")
    assert ran.out
    assert [line for line in ran.out.split("\n") if line.endswith(" ")] == []


def test_a_sentence_that_reassures_goes_on_as_far_in_as_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = run("verify", "example/three-teams").out.split("\n")
    after = [below for line, below in pairwise(lines) if line.startswith("  ✓ ")]
    assert after
    assert all(below.startswith("    ") for below in after)

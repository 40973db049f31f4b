"""Text for a terminal: what files say is shown, never obeyed, and long names keep the end that differs.

Every text that comes from a file or a server passes `escape` (for a line with markup) or `printable`: a
name may hold control characters, or brackets that rich would take for a style. `Screen` escapes once more
what was not passed through either.

Standard output holds the answer and nothing else; notes, warnings and errors go to standard error
(`complain`, `note`). Data in YAML and JSON carries the version of its schema, docs/answers.schema.json.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich import markup
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from function.cli.patience import after_patience

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping


UNBOUNDED = 100_000
"""Columns when the output is no terminal and COLUMNS says nothing: no line is ever wrapped."""
WIDEST = 30
"""Characters of a name in a table."""
ANSWERS = "answers.fleet-scheduler.modelplane.ai/v1"
"""The version of answers as data: a field that is added keeps it, another meaning changes it."""
NAMED = 3
"""How many names of a longer list a message gives."""
TAIL = 12
"""Characters of its end that are always shown: the part that tells replicas apart."""

LONGEST_NAME = 57
"""Characters of the name of an object: the names of replicas and workloads go on behind it."""
NARROWEST = 10
"""Columns that a sentence gets however far in it begins."""
GAP = (0, 2, 0, 0)
"""The padding of a cell: two columns between it and the next."""
SENTENCE = 24
"""Columns below which a sentence in a table reads worse than below its row."""

_LINE_ENDS = re.compile(r"(\n)")
_PADDING = re.compile(r"(?<! ) +\n")
_BEGINNING = re.compile(r"\s*(?:[✓✗!…•?+-] |(?:error|warning|note): )?")
"""How far in a line begins: its mark is before its text."""


def printable(text: str) -> str:
    """Escape what a terminal would obey or hide: control characters, line ends, bidirectional controls.

    A name from somebody's file must not move the cursor, nor read in another order than it is stored.
    """
    if text.isprintable():
        return text
    return "".join(part if part.isprintable() else repr(part)[1:-1] for part in text)


def escape(text: str) -> str:
    """Text from a file as part of a line with markup: printable, and its brackets are no markup."""
    return markup.escape(printable(text))


class Screen(Console):
    """A console that prints every text in a printable form; only line ends go through.

    `escape` is for single values; this is for whatever was not passed through it.
    """

    def __init__(self, **options: Any) -> None:
        """Print as is: no word is taken for an emoji or a number to highlight; under NO_COLOR, no style."""
        plain: dict[str, Any] = {"color_system": None} if os.environ.get("NO_COLOR") else {}
        super().__init__(highlight=False, emoji=False, **plain, **options)

    def render_str(self, text: str, **options: Any) -> Any:
        """Render text that came as a string: all that is printed, and every cell of a table."""
        lines = "".join(part if part == "\n" else printable(part) for part in _LINE_ENDS.split(text))
        return super().render_str(lines, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, without the spaces at the end of a line that cells are padded with and lines wrapped behind.

        Padding at the end of a line is invisible, breaks what people compare, and lengthens what they copy.
        """
        if not objects or self.is_terminal:
            super().print(*objects, **options)
            return
        is_plain = len(objects) == 1 and not options and isinstance(objects[0], Table)
        lines = self._plain_lines(objects[0]) if is_plain else None
        if lines is not None:
            self.file.write("".join(f"{line.rstrip()}\n" for line in lines))
            return
        with self.capture() as captured:
            super().print(*objects, **options)
        self.file.write(_PADDING.sub("\n", captured.get()))

    def _plain_lines(self, table: Table) -> list[str] | None:
        """Lay out a table whose cells stand on one line, as rich does; it takes a while for a thousand rows.

        None for one that is too wide, or has a frame.
        """
        if not table.columns or table.box or table.title or table.pad_edge or table.padding != GAP:
            return None
        columns = []
        for column in table.columns:
            given = [column.header, *column.cells] if table.show_header else [*column.cells]
            if not all(isinstance(cell, str) for cell in given):
                return None
            cells = [  # Without their styles, as the console shows them.
                text if text.isprintable() and "[" not in text else str(self.render_str(text).plain)
                for text in map(str, given)
            ]
            width = max(map(cell_len, cells), default=0)
            columns.append((cells, max(width, column.min_width or 0), column.justify))
        total = sum(width + GAP[1] for _, width, _ in columns)
        if total > self.width or any("\n" in cell for cells, _, _ in columns for cell in cells):
            return None
        padded = (
            [" " * (width - cell_len(end := cell.rstrip())) + end for cell in cells]
            if justify == "right"
            else [set_cell_size(cell, width) for cell in cells]
            for cells, width, justify in columns
        )
        return list(map("  ".join, zip(*padded, strict=True)))

    def say(self, text: str, *, markup: bool = True, style: str = "") -> None:
        """Print sentences: what is wider than the screen goes on below, as far in as its line began."""
        for line in map(partial(self.render_str, markup=markup), text.split("\n")):
            begins = _BEGINNING.match(line.plain)
            indent = begins.end() if begins else 0
            wrapped = line[indent:].wrap(self, max(self.width - indent, NARROWEST))
            for number, part in enumerate(wrapped or [Text()]):
                part.rstrip()
                before = Text(" " * indent) if number else line[:indent]
                self.print(before + part, style=style, soft_wrap=True)

    def show(self, table: Table, whole: int) -> None:
        """Print a table; where it is too wide, a paragraph for each row instead of columns that lose letters.

        A paragraph begins with the first cells, `whole` of them, and has the others below.
        """
        if sum(map(_least_width, table.columns)) <= self.width:
            self.print(table)
            return
        for row in zip(*(column.cells for column in table.columns), strict=True):
            titles = (str(column.header) if column.justify == "right" else "" for column in table.columns)
            cells = [f"{title} {cell}".strip() for title, cell in zip(titles, row, strict=True)]
            self.say("  ".join(filter(None, cells[:whole])))
            for text in filter(None, cells[whole:]):
                self.say(f"    {text}")


def _least_width(column: Column) -> int:
    """The columns of a terminal below which a column of a table would lose letters, with its gap."""
    widest = max((len(Text.from_markup(str(cell))) for cell in column.cells), default=0)
    title = len(str(column.header))
    return 2 + (max(widest, title) if column.no_wrap else min(widest, max(SENTENCE, title)))


def console(*, stderr: bool = False) -> Screen:
    """Where tables go: as wide as the terminal; in a pipe as wide as they are, or as COLUMNS says.

    A pipe has no width: what is wrapped for one would be cut for the program that reads it.
    """
    screen = Screen(stderr=stderr)
    if screen.is_terminal:
        return screen
    columns = os.environ.get("COLUMNS", "")
    return Screen(stderr=stderr, width=int(columns) if columns.isdecimal() and int(columns) else UNBOUNDED)


LEVELS = {"error": "red", "warning": "yellow", "note": "dim"}
"""How loud something is said, and its style."""


def complain(problems: Iterable[str], level: str = "error") -> None:
    """Say what is wrong, on standard error; a line end in a problem begins an indented line below it.

    Standard error, so that an answer in YAML or JSON stays readable by a program.
    """
    errors = console(stderr=True)
    for problem in problems:
        text = "\n    ".join(map(printable, f"{level}: {problem}".split("\n")))
        errors.say(text, markup=False, style=LEVELS[level])


def note(text: str) -> None:
    """Say what had to be assumed or left out, on standard error."""
    complain([text], "note")


def reassure(out: Screen, text: str, faults: Collection[str], indent: str = "") -> None:
    """Say that all is well; where something could not be read, say no more than is known."""
    if faults:
        out.say(f"{indent}? {escape(text)}, as far as the files can be read", style="yellow")
    else:
        out.say(f"{indent}✓ {escape(text)}", style="green")


def answered(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with its kind and version; docs/answers.schema.json has the schema of each kind."""
    return {"apiVersion": ANSWERS, "kind": kind, **data}


def emit(output: str, data: object) -> None:
    """Print data as `yaml` or `json`."""
    click.echo(as_yaml(data) if output == "yaml" else as_json(data), nl=output != "yaml")


def as_json(data: object) -> str:
    """JSON for people and programs: readable, and without a character that a terminal obeys."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    # Outside of strings JSON has only printable characters and line ends, so every other one is in a string.
    return "".join(part if part == "\n" or part.isprintable() else json.dumps(part)[1:-1] for part in text)


def as_yaml(*documents: object) -> str:
    """A stream of YAML, likewise."""
    from function.cli.dump import dumped, written  # noqa: PLC0415 - only for an answer in YAML

    # Letters stay as they are where all is printable; else all is ASCII, and YAML escapes the rest.
    text = written(documents)
    return text if text.replace("\n", "").isprintable() else str(dumped(documents))


def short(name: str) -> str:
    """Cut a long name in the middle.

    Names of replicas begin alike, and end in what tells them apart.
    """
    clean = printable(name)
    return clean if len(clean) <= WIDEST else f"{clean[: WIDEST - TAIL - 1]}…{clean[-TAIL:]}"


def slug(text: str, otherwise: str) -> str:
    """A text as the name of an object: lower case, with `-` for what a name cannot hold."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return name[:LONGEST_NAME].rstrip("-") or otherwise


def counted(number: int, noun: str) -> str:
    """`1 deployment`, `1,200 deployments`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: list[str], most: int = NAMED) -> str:
    """Name a few, and count the rest."""
    rest = len(names) - most
    return ", ".join([*names[:most], *([f"{rest} more"] if rest > 0 else [])])


# Progress on standard error, for people, and only when something takes longer than a second.

T = TypeVar("T")


def track(items: Iterable[T], what: str, total: int | None = None, *, at_once: bool = False) -> Iterator[T]:
    """Go through items; where that takes long and somebody watches, show how far it is.

    A clock shows it, whatever the first item takes. `at_once`: a call of another language takes that long,
    and lets no clock strike.
    """
    console = Screen(stderr=True)
    if not (
        console.is_terminal and console.file.isatty()
    ):  # A bar moves the cursor: colours alone may be forced.
        yield from items
        return
    from rich import progress as bars  # noqa: PLC0415 - only for a terminal

    described, counted_off = bars.TextColumn("{task.description}"), bars.MofNCompleteColumn()
    columns = (described, bars.BarColumn(), counted_off, bars.TimeRemainingColumn())
    progress = bars.Progress(*columns, console=console, transient=True)
    task = progress.add_task(escape(what), total=total)
    if at_once:
        progress.start()
    try:
        with nullcontext() if at_once else after_patience(progress.start):
            for item in items:
                yield item
                progress.advance(task)
    finally:
        progress.stop()

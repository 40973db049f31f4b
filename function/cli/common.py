"""What the commands share: their arguments, how they read files, how they print and how they end."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from function.cli.group import BAD_INPUT
from function.cli.text import Screen, as_json, as_yaml, escape, printable
from function.cli.worlds.faults import faults_of
from function.cli.worlds.manifests import Manifests, load
from function.cli.worlds.parsing import BadInput
from function.cli.worlds.world import World, world_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rich.console import Console

FINE, FINDINGS = 0, 2
"""Exit codes: all is well, the question could not be read, the answer is not the one hoped for."""
WIDTH = 120
"""Columns when the output is no terminal."""
SHOWN = 10
"""How many names a message lists."""

FILES = click.argument(
    "files", nargs=-1, required=True, metavar="FILE|DIR...", type=click.Path(allow_dash=True)
)
OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "yaml", "json"]),
    default="table",
    show_default=True,
    help="table for people; yaml and json hold the same answer as data.",
)


class Command(click.Command):
    """A command that ends with a clear line and exit code 1 when the files cannot be read."""

    def __init__(self, *args: Any, **more: Any) -> None:
        """Let a raw docstring mark paragraphs that are not to be wrapped."""
        super().__init__(*args, **more)
        self.help = (self.help or "").replace(r"\b", "\b")

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; BadInput is an answer, not a crash."""
        try:
            return super().invoke(ctx)
        except BadInput as error:
            complain([str(error)])
            sys.exit(BAD_INPUT)
        except RecursionError:
            complain(["the files are nested too deeply"])
            sys.exit(BAD_INPUT)


@dataclass(frozen=True, slots=True)
class Input:
    """The files, the world they describe, and what in them cannot be read."""

    manifests: Manifests
    world: World
    faults: tuple[str, ...]


def read(files: Iterable[str]) -> Input:
    """Read files and say on standard error what cannot be read. Raises BadInput."""
    return taken(load(files))


def taken(manifests: Manifests, *, quietly: bool = False) -> Input:
    """Take manifests as the state of a control plane. Raises BadInput."""
    world = world_of(manifests)
    faults = () if quietly else tuple(faults_of(manifests, world))
    complain(faults)
    return Input(manifests, world, faults)


def complain(problems: Iterable[str]) -> None:
    """Say what is wrong, on standard error."""
    errors = Screen(stderr=True, soft_wrap=True)
    for problem in problems:
        errors.print(f"error: {printable(problem)}", markup=False, style="red")


def reassure(out: Console, text: str, faults: Collection[str], indent: str = "") -> None:
    """Say that all is well; where something could not be read, say no more than is known."""
    if faults:
        out.print(f"{indent}? {escape(text)}, as far as the files can be read", style="yellow")
    else:
        out.print(f"{indent}✓ {escape(text)}", style="green")


def console() -> Console:
    """Where tables go: as wide as the terminal, or a fixed width so that output can be compared."""
    screen = Screen()
    return screen if screen.is_terminal else Screen(width=WIDTH)


def emit(output: str, told: object) -> None:
    """Print an answer as data."""
    click.echo(as_yaml(told) if output == "yaml" else as_json(told), nl=output != "yaml")


def closest(name: str, known: Iterable[str]) -> str:
    """Name what there is, for a message about what there is not."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    names = sorted(known)
    near = get_close_matches(name, names, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    shown = [*names[:SHOWN], *(["..."] if len(names) > SHOWN else [])]
    return f"there is {', '.join(shown)}" if shown else "there is none"


def deployments_named(world: World, wanted: Iterable[str]) -> list[str]:
    """Check the names of deployments (NAMESPACE/NAME, or NAME where it is the only one). Raises BadInput."""
    known = [f"{each.namespace}/{each.name}" for each in world.deployments]
    found = []
    for name in wanted:
        matching = [each for each in known if name in (each, each.partition("/")[2])]
        if not matching:
            full = name if "/" in name else f"{known[0].partition('/')[0]}/{name}"
            raise BadInput(f'no ModelDeployment "{name}" in the files; {closest(full, known)}')
        if len(matching) > 1:
            raise BadInput(f'"{name}" is ambiguous: {", ".join(matching)}')
        found.append(matching[0])
    return found

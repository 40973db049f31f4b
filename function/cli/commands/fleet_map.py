"""`map`: draw the fleet as an HTML page or an SVG picture.

The verb decides where the picture goes; what it shows is `render.fleet_map`. The drawn fleet is the
settled one, with replicas that will leave shown where they still are.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from function.cli.bad_input import BadInput
from function.cli.options import Command, end, reads_fleet
from function.cli.render.fleet_map import draw, html, svg
from function.cli.worlds.inputs import FLEET, Source, read
from function.cli.worlds.simulate import settle

if TYPE_CHECKING:
    from function.cli.worlds.world import PlannedAdapter


def _form(output: str) -> tuple[str, Path | None]:
    """The form and the file that an output names. Raises BadInput."""
    if output in ("html", "svg"):
        return output, None
    path = Path(output)
    if path.suffix not in (".html", ".svg"):
        raise BadInput(f'-o: expected html, svg, or a file that ends in one of them, found "{output}"')
    return path.suffix[1:], path


@click.command("map", cls=Command)
@reads_fleet
@click.option(
    "-o",
    "--output",
    default="html",
    show_default=True,
    metavar="html|svg|FILE",
    help="html or svg to standard output, or a file that ends in .html or .svg.",
)
@click.option(
    "--docs",
    default="",
    metavar="URL",
    help="Where reason codes link to, such as .../docs/reasons.md#; the code in lower case is appended. "
    "[default: no links]",
)
def fleet_map(source: Source, output: str, docs: str) -> None:
    r"""Draw the fleet: one static HTML page, or an SVG picture for a README.

    Clusters are grouped by region, pools are rows of nodes coloured by who holds them: running, new in this
    plan, leaving, free, all as it will be once the fleet has settled. The page has totals by class and
    region and an overview of a thousand clusters; it can be searched, sorted and filtered, says for every
    cluster why it takes no other replica, and needs no server and no network. It follows the reader's light
    or dark setting, and works with the keyboard and a screen reader.

    Exit codes: 0 drawn, 1 bad input (what could be read is drawn).

    \b
    Examples:
      fleet-scheduler map fleet.yaml -o fleet.html
      fleet-scheduler map fleet.yaml -o svg > fleet.svg
    """
    form, path = _form(output)
    if path is None and sys.stdout.isatty():
        raise BadInput(
            f"-o: a terminal shows no {form}: name a file (-o fleet.{form}), or redirect the output"
        )
    inputs = read(source, FLEET)
    settled_fleet = settle(inputs.world)
    adapters: list[PlannedAdapter] = []
    if inputs.manifests["ModelAdapter"]:
        from function.cli.worlds.adapters import settled  # noqa: PLC0415 - all handlers are needed

        only = inputs.origin.only
        every = settled(inputs.manifests, settled_fleet)
        listed = (one for one in every if only in ("", one.manifest.namespace))
        adapters = sorted(listed, key=lambda adapter: adapter.title)
    picture = draw(inputs.world, settled_fleet, inputs.titles(()), adapters)
    text = html(picture, docs) if form == "html" else svg(picture)
    if path is None:
        click.echo(text)
    else:
        try:
            path.write_text(f"{text}\n", encoding="utf-8")  # As on standard output.
        except OSError as error:
            raise BadInput(f"{path}: cannot be written: {error.strerror}") from None
    end(inputs.faults, findings=False)

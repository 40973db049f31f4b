"""Render the map: one self-contained page, or one picture. No network, no clock."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from function.cli.text import counted, printable

if TYPE_CHECKING:
    from function.cli.render.map.data import ClusterCard, FleetMap, Prospect

CELL = 14
"""Pixels of one node."""
MANY = 24
"""A fleet of so many clusters opens with the overview: fewer are seen at a glance as they are."""
SCALED = 12
"""A pool with more nodes than this is drawn to scale instead of node by node."""


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("function.cli.render", "map"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_shown,
    )
    environment.filters |= {"counted": counted, "grouped": "{:,}".format}
    return environment


def _shown(value: object) -> object:
    """Return texts of files in a printable form: XML has no other, and readers see what is there."""
    return printable(value) if type(value) is str else value


def _as_script(data: object) -> str:
    """JSON that can stand in a script element: nothing in it can end the element or start a comment."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _embedded(fleet: FleetMap) -> dict[str, Any]:
    """Verdicts for the script, every text once: of each deployment, one for each cluster, -1 for none."""
    texts: dict[tuple[str, str], int] = {}
    names = [card.name for card in fleet.cards]

    def number(prospect: Prospect | None) -> int:
        if prospect is None:
            return -1
        return texts.setdefault((prospect.code, printable(prospect.line)), len(texts))

    verdicts = {
        printable(model.name): [number(model.prospects.get(name)) for name in names] for model in fleet.models
    }
    return {"texts": [list(text) for text in texts], "verdicts": verdicts}


def html(fleet: FleetMap, docs: str) -> str:
    """One page. `docs` is the address that a reason code is appended to."""
    environment = _environment()
    loader = environment.loader
    assert loader is not None  # noqa: S101 - set above
    style, script = (loader.get_source(environment, name)[0] for name in ("fleet.css", "fleet.js"))
    return environment.get_template("fleet.html.j2").render(
        fleet=fleet,
        style=style,
        script=script,
        embedded=_as_script(_embedded(fleet)),
        docs=docs,
        scaled=SCALED,
        many=MANY,
    )


@dataclass(frozen=True, slots=True)
class PlacedCard:
    """A cluster's card and where it stands in the picture."""

    card: ClusterCard
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Heading:
    """A region's name and where it stands."""

    text: str
    x: int
    y: int


COLUMN, ROW, TOP, GAP = 280, 34, 30, 14
COLUMNS = 3


def _laid_out(fleet: FleetMap) -> tuple[list[Heading], list[PlacedCard], int]:
    """Lay cards out in columns, each region on the column that is shortest so far."""
    bottoms = [GAP] * COLUMNS
    headings, placed = [], []
    for region, cards in fleet.regions:
        column = bottoms.index(min(bottoms))
        x = GAP + column * COLUMN
        headings.append(Heading(region, x, bottoms[column] + 14))
        bottoms[column] += 24
        for card in cards:
            placed.append(PlacedCard(card, x, bottoms[column]))
            bottoms[column] += height(card) + GAP
    return headings, placed, max(bottoms)


def height(card: ClusterCard) -> int:
    """Pixels of a card."""
    return TOP + ROW * len(card.pools) + (18 if card.notes else 0)


def svg(fleet: FleetMap) -> str:
    """One picture."""
    headings, placed, bottom = _laid_out(fleet)
    legend = [
        *((model.name, model.colour) for model in fleet.models),
        *((who, colour) for who, colour, _ in fleet.strangers),
    ]
    short = {model.name: model for model in fleet.models}
    return (
        _environment()
        .get_template("fleet.svg.j2")
        .render(
            fleet=fleet,
            headings=headings,
            placed=placed,
            legend=legend,
            models=short,
            bottom=bottom,
            width=GAP + COLUMNS * COLUMN,
            height=bottom + 22 * ((len(legend) + 2) // 3) + 56,
            card_width=COLUMN - GAP,
            card_height=height,
            row=ROW,
            top=TOP,
            cell=CELL,
        )
    )

"""Draw the picture of the README from the decision it shows: `python -m hack.picture`.

One file for light pages and one for dark ones: a picture inside a page does not see which the page is.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from html import escape
from typing import Any, NamedTuple

from example.caller import ROOT
from example.compare import command_line

IMAGES = ROOT / "docs" / "images"
COMMAND = ("plan", "example/fleet", "example/small-model", "-o", "json")
WHY = {
    "NoMatchingDevice": "no L4 there",
    "ClusterNotReady": "not ready",
    "UntoleratedTaint": "in maintenance",
}
"""What a reason is called where there is room for three words."""
WIDTH, HEIGHT, CARD, ROW, TOP, LEFT = 920, 392, 330, 86, 10, 230
COLUMNS = 2
SQUARE = 13
FONT = 'font-family="system-ui, sans-serif" font-size="13"'

Plain = dict[str, Any]


class Colours(NamedTuple):
    """The colours of a picture."""

    text: str
    quiet: str
    card: str
    line: str
    free: str
    held: str
    new: str


SCHEMES = {
    "light": Colours("#1f2328", "#59636e", "#f6f8fa", "#d1d9e0", "#dde3ea", "#9aa4af", "#0969da"),
    "dark": Colours("#f0f6fc", "#9198a1", "#151b23", "#3d444d", "#2f3741", "#6e7681", "#4493f8"),
}


def drawn(scheme: str) -> str:
    """Return the picture in a colour scheme."""
    colours = SCHEMES[scheme]
    plan = json.loads(command_line(*COMMAND)[1])["deployments"][0]
    placement = plan["placement"]
    new = Counter((replica["cluster"], *replica["pools"].values()) for replica in placement["replicas"])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" {FONT}>',
        f"<title>{plan['name']}: three replicas, placed on two of eight clusters</title>",
        *_deployment(plan["name"], len(placement["replicas"]), colours),
    ]
    for number, cluster in enumerate(placement["clusters"]):
        row, column = divmod(number, COLUMNS)
        corner = (LEFT + column * (CARD + 14), TOP + row * ROW)
        parts += _cluster(cluster, new, corner, colours)
    return "\n".join([*parts, *_legend(colours), "</svg>"]) + "\n"


def _deployment(name: str, replicas: int, colours: Colours) -> list[str]:
    """Draw what the user wrote, and an arrow to where it went."""
    lines = ("ModelDeployment", name, f"{replicas} replicas,", "one NVIDIA L4 each")
    middle = TOP + 2 * ROW - 12
    texts = [
        _text((24, middle - 34 + 22 * at), line, colours.quiet if at == 0 else colours.text, bold=at == 1)
        for at, line in enumerate(lines)
    ]
    arrow = f"M172 {middle} h40 m-8 -6 l8 6 l-8 6"
    return [
        _card((10, middle - 60), (160, 120), colours.card, colours.new),
        *texts,
        f'<path d="{arrow}" fill="none" stroke="{colours.quiet}" stroke-width="2"/>',
    ]


def _cluster(
    cluster: Plain, new: Counter[tuple[str, ...]], corner: tuple[int, int], colours: Colours
) -> list[str]:
    """Draw a cluster with its nodes, and what became of it."""
    left, top = corner
    chosen = cluster["verdict"] == "Chosen"
    placed = sum(count for (name, *_), count in new.items() if name == cluster["name"])
    verdict = f"{placed} placed" if chosen else WHY[cluster["reason"]]
    parts = [
        _card(corner, (CARD, ROW - 10), colours.card, colours.new if chosen else colours.line),
        _text((left + 12, top + 22), cluster["name"], colours.text, bold=True),
        _text((left + CARD - 12, top + 22), verdict, colours.new if chosen else colours.quiet, end=True),
    ]
    start = left + 12
    for pool in cluster["pools"]:
        mine = new[cluster["name"], pool["name"]]
        held = pool["total"] - pool["free"] - mine
        fills = [colours.held] * held + [colours.new] * mine + [colours.free] * pool["free"]
        parts.append(_text((start, top + 46), pool["name"], colours.quiet))
        parts += [
            f'<rect x="{start + at * (SQUARE + 3)}" y="{top + 53}" width="{SQUARE}" height="{SQUARE}" '
            f'rx="2" fill="{fill}"/>'
            for at, fill in enumerate(fills)
        ]
        start += max(len(fills) * (SQUARE + 3), 70) + 20
    return parts


def _legend(colours: Colours) -> list[str]:
    """Say what a square is."""
    parts, left, top = [], LEFT + 12, HEIGHT - 18
    for words, colour in (
        ("a node, free", colours.free),
        ("held by somebody else", colours.held),
        ("a new replica", colours.new),
    ):
        parts.append(
            f'<rect x="{left}" y="{top}" width="{SQUARE}" height="{SQUARE}" rx="2" fill="{colour}"/>'
        )
        parts.append(_text((left + 20, top + 11), words, colours.quiet))
        left += 60 + 7 * len(words)
    return parts


def _card(corner: tuple[int, int], size: tuple[int, int], fill: str, line: str) -> str:
    (left, top), (width, height) = corner, size
    return (
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="{line}"/>'
    )


def _text(at: tuple[int, int], words: str, colour: str, *, bold: bool = False, end: bool = False) -> str:
    weight, anchor = (' font-weight="600"' if bold else ""), (' text-anchor="end"' if end else "")
    return f'<text x="{at[0]}" y="{at[1]}" fill="{colour}"{weight}{anchor}>{escape(words)}</text>'


def main() -> int:
    """Write both pictures. Returns the exit code."""
    for scheme in SCHEMES:
        (IMAGES / f"placed-{scheme}.svg").write_text(drawn(scheme))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Selectors: whatever the text and the subject, compiling ends in a selector or in a CompileError that points
into the text, and evaluating ends in match, nomatch, error or cost: always the same one, decided by what the
selector is known to read, and a match exactly where every term of the conjunction matches.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from function.cel import CompileError, Outcome, Selector, bind_cluster, bind_device, bind_node
from function.cel.checker import state
from function.cel.library.charges import LIMIT
from function.cel.selector import compiled
from tests.cel import devices
from tests.fuzz.guided.drawn import Drawn
from tests.fuzz.mutate import ODD
from tests.support import grammar, vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.cel import Subject

Plain = dict[str, Any]

LONGEST = 600
TOKENS = tuple(
    dict.fromkeys(
        [
            *(leaf for leaf in grammar.LEAVES if len(leaf) > 2),
            *(form.replace("{}", "x").replace("{{", "{").replace("}}", "}") for form in grammar.CALLS),
            *("." + form.replace("{}", "x") for form in grammar.METHODS),
            *(f" {item} " for item in (*grammar.BINARY, "?", ":")),
            *("cluster.labels", "cluster.attributes", "cluster.name", "node.attributes", "node.className"),
            *('"""', "r'", "b'", "\\u00e9", "\\x41", "0x7f", "1e9", "//", ".?", "[?", "-9223372036854775808"),
        ]
    )
)
TEXTS = (*vocabulary.MEANINGS, *(grammar.boolean(random.Random(seed)) for seed in range(200)))
SEEDS = tuple(bytes(5) + b"\x02" + text.encode() for text in TEXTS)
"""Texts as they stand, about two known devices."""
OUTCOMES = ("match", "nomatch", "error", "cost")
DEVICES = (devices.MIXED, devices.H200, devices.NETWORK, devices.TPU, devices.MIG)
LEVELS = {"device": state.DEVICE, "cluster": state.CLUSTER, "node": state.NODE}


def one(content: bytes) -> None:
    """Compile one text and ask it about two subjects."""
    draw = Drawn(content)
    level = draw.choice(("device", "device", "cluster", "node"))
    binds = [_subject(draw, level) for _ in range(2)]
    source = _source(draw)
    try:
        selector = compiled(source, LEVELS[level])
    except CompileError as error:
        _points_into(error, source)
        return
    assert 0 <= (selector.estimate() or 0) < 2**64, source
    assert all(str(item) for item in selector.reads), source
    outcomes = {selector.projection(bind()): _evaluated(selector, bind) for bind in binds}
    again = [outcomes[selector.projection(bind())] == selector.evaluate(bind()) for bind in binds]
    assert all(again), f"what it reads does not decide what it says: {source}"
    selector.comparisons()


def _source(draw: Drawn) -> str:
    """Return the text: as it stands, or put together by the grammar."""
    form = draw.randrange(4)
    if form == 0:
        return grammar.boolean(draw)
    if form == 1:
        return grammar.grammar_made(draw, 5)
    return draw.left.decode("utf-8", "replace")


def _subject(draw: Drawn, level: str) -> Callable[[], Subject]:
    """Return what makes a subject: one that is known, perhaps with an attribute or a capacity of its own."""
    device: Plain = draw.choice(DEVICES)
    attributes, capacity = dict(device["attributes"]), dict(device["capacity"])
    for _ in range(draw.randrange(3)):
        if draw.randrange(3):
            attributes[_name(draw, attributes)] = _attribute(draw)
        else:
            capacity[_name(draw, capacity)] = draw.choice(({"value": draw.text()}, draw.choice(ODD)))
    if level == "device":
        return lambda: bind_device(driver=device["driver"], attributes=attributes, capacity=capacity)
    if level == "cluster":
        labels = {"region": "eu", "tier": draw.text()}
        return lambda: bind_cluster(name="use1", labels=labels, attributes=attributes)
    return lambda: bind_node(name="frontier", class_name=device["driver"], attributes=attributes)


def _name(draw: Drawn, device: Plain) -> str:
    return draw.choice([*device, draw.text()])


def _attribute(draw: Drawn) -> Any:
    kind = draw.choice(("string", "version", "int", "bool", "strings", "versions", "ints", "bools", "list"))
    value = draw.choice((draw.text(), [draw.text()], draw.randrange(256), draw.choice(ODD)))
    return {kind: value} if draw.randrange(8) else value


def _points_into(refused: CompileError, source: str) -> None:
    lines = source.split("\n")
    assert 1 <= refused.line <= len(lines), source
    assert 1 <= refused.column <= len(lines[refused.line - 1]) + 1, source
    assert refused.message, source
    assert refused.caret().endswith("^"), source


def _evaluated(selector: Selector, bind: Callable[[], Subject]) -> Outcome:
    """Return what a selector says, when everything it says agrees."""
    outcome = selector.evaluate(bind())
    assert outcome.kind in OUTCOMES, selector.source
    assert (outcome.message == "") == (outcome.kind in ("match", "nomatch")), selector.source
    assert selector.evaluate(bind()) == outcome, selector.source
    if not bind().problem:
        assert (selector.cost(bind()) > LIMIT) == (outcome.kind == "cost"), selector.source
    if outcome.kind != "cost":
        kinds = {conjunct.evaluate(bind()).kind for conjunct in selector.conjuncts}
        assert outcome.matched == (kinds == {"match"}), selector.source
    return outcome

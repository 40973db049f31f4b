"""Texts that are made to hurt: a scan that takes for ever, a constant that no function of its name takes."""

import random
from contextlib import suppress

import pytest

from function.cel import CompileError, compile_device
from function.cel.syntax.lexer import Lexer
from function.cel.values import Mistake
from tests.cel.devices import says
from tests.support.scale import count

ESCAPES = 5_000
"""With a choice that can be read in two ways, 40 would take days."""


@pytest.mark.parametrize("opening", ['"""', "'''", 'r"""', "b'''", "rb'''", '"', "'", 'b"'])
@pytest.mark.parametrize("escape", [r"\a", r"\"", r"\x41", r"\\", r"\q", "a", '""', "\\"])
def test_a_string_that_does_not_end_is_refused_at_once(opening: str, escape: str) -> None:
    for before, after in (("", ""), ("true && (", ")"), ("[", ", 1]")):
        with pytest.raises(CompileError):
            compile_device((before + opening + escape * ESCAPES + after)[:10_240] + "x")


PIECES = ['"', "'", '"""', "'''", "r", "b", "R", "B", "\\", r"\a", r"\"", r"\\", r"\x41", r"\q", "\n", "\r"]
PIECES += [
    "//",
    "`",
    "`a`",
    "-",
    "1",
    "0x",
    ".",
    "e",
    "u",
    "in",
    "a",
    " ",
    "(",
    ")",
    "[",
    "]",
    "\u2603",
    "\x00",
]


def test_every_text_is_scanned_in_linear_time() -> None:
    """Each step of the lexer reads text that no other step reads: there are never more than characters."""
    pick = random.Random(1)
    for _ in range(count(500, 5_000, 50_000)):
        parts = pick.sample(PIECES, pick.randrange(1, 5))
        text = "".join(pick.choices(parts, k=pick.choice([3, 30, 300])))
        lexer = Lexer(text)
        with suppress(Mistake):
            lexer.tokens()
        assert lexer.steps <= len(text) + 1, text


@pytest.mark.parametrize(
    "expression",
    [
        'quantity(dyn(1)) == quantity("1")',
        'semver(dyn(1)) == semver("1.0.0")',
        'semver("1.0.0", dyn(1)) == semver("1.0.0")',
        'isQuantity(dyn(1)) == isQuantity("1")',
        'dyn(1).format([1]) == "1"',
        '"a".matches(dyn(1))',
        '"a".find(dyn(1)) == "a"',
        "1 in dyn(1)",
        '"%d".format(dyn(1)) == ""',
        'quantity(dyn(null)) == quantity("1")',
    ],
)
def test_a_constant_of_another_type_is_left_to_run_time(expression: str) -> None:
    assert says(expression) == "error"
    assert says(f"{expression} || true") == "match"

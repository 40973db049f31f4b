"""From text to nodes: the limits, cel-python's parser, and what a syntax error says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import lark

from function.cel.errors import Mistake
from function.cel.grammar import parser
from function.cel.walk import MAX_NESTING, TOO_DEEP, walk

if TYPE_CHECKING:
    from function.cel.nodes import Node

MAX_BYTES = 10 * 1024
"""The API's limit on a selector."""

_LEXEMES = re.compile(
    r"//[^\n]*|[rR]?[bB]?[rR]?(\"\"\"|''')(?:\\.|[^\\])*?\1|[rR]\"[^\"\n]*\"|[rR]'[^'\n]*'"
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|[()\[\]{}]",
    re.DOTALL,
)
"""No two branches of a choice begin with the same character, so that no text can be read in two ways."""


def parse(source: str) -> Node:
    """Return the tree of an expression. Raises Mistake."""
    if len(source.encode(errors="surrogatepass")) > MAX_BYTES:
        raise Mistake(f"the expression is longer than {MAX_BYTES} bytes", 0)
    refuse_deep_brackets(source)
    try:
        tree = parser().parse(source)
    except lark.exceptions.UnexpectedInput as error:
        raise _syntax_error(source, error) from None
    return walk(source, tree)


def refuse_deep_brackets(source: str) -> None:
    """Refuse nesting beyond the limit before anything recurses. Raises Mistake at the bracket too many."""
    depth = 0
    for match in _LEXEMES.finditer(source):
        lexeme = match.group()
        if lexeme in "([{":
            depth += 1
            if depth >= MAX_NESTING:
                raise Mistake(TOO_DEEP, match.start())
        elif lexeme in ")]}":
            depth -= 1


def _syntax_error(source: str, error: lark.exceptions.UnexpectedInput) -> Mistake:
    if isinstance(error, lark.exceptions.UnexpectedToken):
        if error.token.type == "$END":
            return Mistake("Syntax error: the expression ends too early", len(source))
        return Mistake(f"Syntax error: unexpected {str(error.token)!r}", error.token.start_pos or 0)
    at = error.pos_in_stream or 0
    if at >= len(source):
        return Mistake("Syntax error: the expression ends too early", len(source))
    if source[at] in "\"'":
        return Mistake("Syntax error: a string that does not end, or a bad escape in it", at)
    return Mistake(f"Syntax error: unexpected {source[at]!r}", at)

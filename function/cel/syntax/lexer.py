"""Split a text into tokens, in time linear in its length, by the lexical rules of cel-go.

Every scan is a repetition of one class of characters, which nothing can make go back (`++` and `*+` are
possessive), or reads a fixed number of them. A string is scanned piece by piece from its opening quote, and
one that does not end is a mistake at once: no other reading of its quotes is ever a selector.

A sign belongs to the number after it where exactly one stands there and no operand before it, as in cel-go's
grammar: `-9223372036854775808` is a number, `1 -1` is a difference, `-0u` is a minus before a number.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from function.cel.values import Mistake

IDENTIFIER, QUOTED_IDENTIFIER = "IDENT", "QUOTED_IDENT"
INT, UINT, DOUBLE, STRING, BYTES = "INT_LIT", "UINT_LIT", "FLOAT_LIT", "STRING_LIT", "BYTES_LIT"
BOOL, NULL, IN, END = "BOOL_LIT", "NULL_LIT", "IN", "$END"
KEYWORDS = {"true": BOOL, "false": BOOL, "null": NULL, "in": IN}
OPERATORS = {
    "?": "QMARK",
    ":": "COLON",
    "||": "OR",
    "&&": "AND",
    "<": "LT",
    "<=": "LE",
    ">": "GT",
    ">=": "GE",
    "==": "EQ",
    "!=": "NE",
    "+": "PLUS",
    "-": "MINUS",
    "*": "STAR",
    "/": "SLASH",
    "%": "PERCENT",
    "!": "NOT",
    ".": "DOT",
    ",": "COMMA",
    "(": "LPAR",
    ")": "RPAR",
    "[": "LSQB",
    "]": "RSQB",
    "{": "LBRACE",
    "}": "RBRACE",
}
OPERANDS = frozenset(
    [IDENTIFIER, QUOTED_IDENTIFIER, INT, UINT, DOUBLE, STRING, BYTES, BOOL, NULL, "RPAR", "RSQB", "RBRACE"]
)
"""Tokens that end an operand: a minus after one of them is an operator between two."""
SIGNED = frozenset({INT, DOUBLE})

_TOKEN = re.compile(
    r"(?P<space>[\t\n\f\r ]++|//[^\n]*+)"
    r"|(?P<opening>[bB]?[rR]?(?:\"\"\"|'''|\"|'))"
    r"|(?P<word>[_a-zA-Z][_a-zA-Z0-9]*+)"
    r"|(?P<operator>[=!<>]=|&&|\|\||(?!\.[0-9])[-+*/%<>!?:.,()\[\]{}])"
    r"|(?P<number>0x[0-9a-fA-F]++[uU]?"
    r"|[0-9]++(?:[uU]|(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)"
    r"|\.[0-9]++(?:[eE][+-]?[0-9]++)?+)"
    r"|(?P<quoted>`[a-zA-Z0-9_./ -]++`)"
)
_ESCAPE = re.compile(
    r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
)
_PLAIN = {
    '"': re.compile(r'[^"\\\n\r]*+'),
    "'": re.compile(r"[^'\\\n\r]*+"),
    '"""': re.compile(r'[^"\\]*+'),
    "'''": re.compile(r"[^'\\]*+"),
}
_RAW = {'"': re.compile(r'[^"\n\r]*+'), "'": re.compile(r"[^'\n\r]*+")}
_TRIPLE = 3
BAD_STRING = "Syntax error: a string that does not end, or a bad escape in it"


class Token(NamedTuple):
    """A word of the language: its kind as the grammar has it, its text, and where it stands."""

    kind: str
    text: str
    start: int
    end: int


class Lexer:
    """One scan of one text. `steps` counts what it did: one for each token and each piece of a string."""

    __slots__ = ("_source", "steps")

    def __init__(self, source: str) -> None:
        self._source = source
        self.steps = 0

    def tokens(self) -> list[Token]:
        """Return the tokens, the last one END. Raises Mistake."""
        source, at, tokens = self._source, 0, []
        match = _TOKEN.match(source)
        while match is not None:
            self.steps += 1
            kind, text = match.lastgroup, match.group()
            start, at = match.span()
            if kind == "opening":
                at = self._string_end(at, text)
                tokens.append(Token(BYTES if text[0] in "bB" else STRING, source[start:at], start, at))
            elif kind == "word":
                tokens.append(Token(KEYWORDS.get(text, IDENTIFIER), text, start, at))
            elif kind == "operator":
                tokens.append(Token(OPERATORS[text], text, start, at))
            elif kind == "number":
                self._number(tokens, text, start)
            elif kind == "quoted":
                tokens.append(Token(QUOTED_IDENTIFIER, text, start, at))
            match = _TOKEN.match(source, at)
        if at < len(source):
            raise Mistake(f"Syntax error: unexpected {source[at]!r}", at)
        tokens.append(Token(END, "", at, at))
        return tokens

    def _number(self, tokens: list[Token], text: str, start: int) -> None:
        """Append a number, with the sign before it if it has one."""
        if text[-1] in "uU":
            kind = UINT
        elif text.startswith("0x"):
            kind = INT
        else:
            kind = DOUBLE if "." in text or "e" in text or "E" in text else INT
        end = start + len(text)
        if kind in SIGNED and _is_sign(tokens):
            start = tokens.pop().start
            text = f"-{text}"
        tokens.append(Token(kind, text, start, end))

    def _string_end(self, at: int, opening: str) -> int:
        """Return the end of the string whose text begins at `at`. Raises Mistake for one that has none."""
        source = self._source
        quote = opening[-_TRIPLE:] if opening.endswith(('"""', "'''")) else opening[-1]
        raw = len(opening) > len(quote) and opening[-len(quote) - 1] in "rR"
        if raw and quote in _RAW:
            return self._closed(_RAW[quote].match(source, at), quote, at)
        if raw:
            self.steps += 1
            end = source.find(quote, at)
            if end < 0:
                raise Mistake(BAD_STRING, at - len(quote))
            return end + _TRIPLE
        return self._escaped_end(at, quote)

    def _closed(self, piece: re.Match[str] | None, quote: str, at: int) -> int:
        self.steps += 1
        end = at if piece is None else piece.end()
        if not self._source.startswith(quote, end):
            raise Mistake(BAD_STRING, at - len(quote))
        return end + len(quote)

    def _escaped_end(self, at: int, quote: str) -> int:
        source, plain, begin = self._source, _PLAIN[quote], at
        while True:
            self.steps += 1
            piece = plain.match(source, at)
            at = at if piece is None else piece.end()
            if source.startswith(quote, at):
                return at + len(quote)
            if source.startswith("\\", at):
                escape = _ESCAPE.match(source, at)
                if escape is None:
                    raise Mistake(BAD_STRING, begin - len(quote))
                at = escape.end()
            elif len(quote) == _TRIPLE and source.startswith(quote[0], at):
                at += 1  # One or two quotes inside of three.
            else:
                raise Mistake(BAD_STRING, begin - len(quote))


def _is_sign(tokens: list[Token]) -> bool:
    """Tell whether the last token is a single minus with no operand before it."""
    if not tokens or tokens[-1].kind != "MINUS":
        return False
    before = tokens[-2].kind if len(tokens) > 1 else ""
    if before != "MINUS":
        return before not in OPERANDS
    return len(tokens) > 2 and tokens[-3].kind in OPERANDS  # noqa: PLR2004 - operand, minus, sign

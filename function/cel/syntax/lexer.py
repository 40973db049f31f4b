r"""Split a text into tokens, in time linear in its length, and read the values of its literals.

The rules are the lexical ones of cel-go (`parser/gen/CEL.g4`, `parser/unescape.go`). They are stricter than
those of most languages: `"\d"`, `5.` and `+1` are errors, and there are no block comments.

Every scan is a repetition of one class of characters, which nothing can make go back (`++` and `*+` are
possessive), or reads a fixed number of them. A string is scanned piece by piece from its opening quote, and
one that does not end is a mistake at once: no other reading of its quotes is ever a selector. So a hostile
text of the largest size costs as many steps as an honest one; `Lexer.steps` counts them for a test.

A sign belongs to the number after it where exactly one stands there and no operand before it, as in cel-go's
grammar: `-9223372036854775808` is a number, `1 -1` is a difference, `-0u` is a minus before a number.

Strings are read twice: the scan finds the end of one, `literal` its value. Finding the end needs the same
escapes as reading it, so both use one pattern.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from function.cel.syntax import nodes
from function.cel.syntax.nodes import Literal, Span, Type
from function.cel.values import Mistake, UInt, is_int64, is_uint64

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
    r"\\(?:([abfnrtv\"'\\?`])|([0-3][0-7][0-7])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)
"""The escapes of cel-go: a simple one, three octal digits, or a code in hexadecimal."""
_PLAIN = {
    '"': re.compile(r'[^"\\\n\r]*+'),
    "'": re.compile(r"[^'\\\n\r]*+"),
    '"""': re.compile(r'[^"\\]*+'),
    "'''": re.compile(r"[^'\\]*+"),
}
_RAW = {'"': re.compile(r'[^"\n\r]*+'), "'": re.compile(r"[^'\n\r]*+")}
"""Text of a string up to its next quote or escape. Only three quotes may go on in the next line."""
_TRIPLE = 3
BAD_STRING = "Syntax error: a string that does not end, or a bad escape in it"


class Token(NamedTuple):
    """A word of the language: its kind as the grammar has it, its text, and where it stands."""

    kind: str
    text: str
    start: int
    end: int


class Lexer:
    """One scan of one text. `steps` counts what it did: one for each token and each piece of a string.

    A test holds `steps` to a multiple of the length, for texts that were made to be slow to read.
    """

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
        if raw:
            # A raw string has no escapes: it ends at the next quote, one of three also lines further down.
            self.steps += 1
            piece = _RAW[quote].match(source, at) if quote in _RAW else None
            end = source.find(quote, at) if piece is None else piece.end()
            if end < 0 or not source.startswith(quote, end):
                raise Mistake(BAD_STRING, at - len(quote))
            return end + len(quote)
        plain, begin = _PLAIN[quote], at
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
    """Tell whether the last token is a single minus with no operand before it.

    Of `1 - -1` the first minus is the operator and the second the sign; of `- -1` both are operators, because
    cel-go counts a run of them (`builders`).
    """
    if not tokens or tokens[-1].kind != "MINUS":
        return False
    before = tokens[-2].kind if len(tokens) > 1 else ""
    if before != "MINUS":
        return before not in OPERANDS
    return len(tokens) > 2 and tokens[-3].kind in OPERANDS  # noqa: PLR2004 - operand, minus, sign


# The value of a literal.

_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HIGHEST = 0x10FFFF
"""The last code point of Unicode."""
_LONGEST = 40
"""Digits of a number that are read: Python takes long over thousands, and twenty are already too many."""


def _number(text: str) -> int:
    """Return a number in decimal or, after 0x, in hexadecimal; leading zeros mean nothing."""
    if "x" in text:
        return int(text, 16)
    digits = text.lstrip("-").lstrip("0") or "0"
    return int(digits[:_LONGEST]) * (-1 if text[0] == "-" else 1)  # Cut, it is still too large.


def _double(text: str, at: int) -> float:
    """Return a double; one that rounds to infinity is refused, as cel-go's parser does."""
    value = float(text)
    if math.isinf(value):
        raise Mistake("invalid double literal: it is out of range", at)
    return value


def _int(text: str, at: int) -> int:
    """Return an int64. The sign is part of the literal, so the smallest number can be written."""
    value = _number(text)
    if not is_int64(value):
        raise Mistake("invalid int literal: it does not fit in 64 bits", at)
    return value


def _uint(text: str, at: int) -> UInt:
    """Return an unsigned integer, without the letter at its end."""
    value = _number(text[:-1])
    if not is_uint64(value):
        raise Mistake("invalid uint literal: it does not fit in 64 bits without a sign", at)
    return UInt(value)


def _unquoted(text: str) -> tuple[bool, str]:
    """Return whether the literal is raw, and what stands between its quotes.

    Three quotes hold whole lines, whose ends are one newline each, however the file ends its lines.
    """
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    if body[:_TRIPLE] in ('"""', "'''"):
        return raw, body[_TRIPLE:-_TRIPLE].replace("\r\n", "\n").replace("\r", "\n")
    return raw, body[1:-1]


def _string(text: str, at: int) -> str:
    r"""Return a text; in it `\x41` and `\101` are code points."""

    def character(match: re.Match[str]) -> str:
        """Return the character of one escape; half of a surrogate pair is none."""
        simple, octal, hexadecimal, short, long = match.groups()
        if simple:
            return _SIMPLE.get(simple, simple)
        if octal:
            return chr(int(octal, 8))
        code = int(hexadecimal or short or long, 16)
        if 0xD800 <= code <= 0xDFFF or code > _HIGHEST:  # noqa: PLR2004 - the surrogates
            raise Mistake("invalid unicode code point", at)
        return chr(code)

    raw, body = _unquoted(text)
    return body if raw else _ESCAPE.sub(character, body)


def _bytes(text: str, at: int) -> bytes:
    r"""Return bytes; in them `\x41` and `\101` are bytes, and what is written plainly is UTF-8."""
    raw, body = _unquoted(text[1:])
    if raw:
        return body.encode()
    parts, end = [], 0
    for match in _ESCAPE.finditer(body):
        simple, octal, hexadecimal, *unicode = match.groups()
        if any(unicode):
            raise Mistake("invalid bytes literal: \\u and \\U are for strings", at)
        parts.append(body[end : match.start()].encode())
        if simple:
            parts.append(_SIMPLE.get(simple, simple).encode())
        else:
            parts.append(bytes([int(octal, 8) if octal else int(hexadecimal, 16)]))
        end = match.end()
    return b"".join([*parts, body[end:].encode()])


_READERS: dict[str, tuple[Callable[[str, int], Any], Type]] = {
    INT: (_int, nodes.INT),
    UINT: (_uint, nodes.UINT),
    DOUBLE: (_double, nodes.DOUBLE),
    STRING: (_string, nodes.STRING),
    BYTES: (_bytes, nodes.BYTES),
    BOOL: (lambda text, _at: text == "true", nodes.BOOL),
    NULL: (lambda _text, _at: None, nodes.NULL),
}


def literal(token: Token, span: Span) -> Literal:
    """Return the node of a token, with its value. Raises Mistake at the token.

    The value is read when the node is built and not when the token is found: a text that does not parse is
    refused for that, whatever its literals hold.
    """
    value, type_ = _READERS[token.kind]
    return Literal(span, value(token.text, span.at), type_)

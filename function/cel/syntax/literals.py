"""Read the value of a literal from its text, with cel-go's lexical rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from function.cel.syntax.lexer import Token
from function.cel.syntax.nodes import BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT, Literal, Span, Type
from function.cel.values import Mistake, UInt, is_int64, is_uint64

_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\"'\\?`])|([0-3][0-7][0-7])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HIGHEST = 0x10FFFF
_TRIPLE = 3
_LONGEST = 40


def literal(token: Token, span: Span) -> Literal:
    """Return the node of a token. Raises Mistake."""
    value, type_ = _READERS[token.kind]
    return Literal(span, value(token.text, span.at), type_)


def _number(text: str) -> int:
    if "x" in text:
        return int(text, 16)
    digits = text.lstrip("-").lstrip("0") or "0"
    return int(digits[:_LONGEST]) * (-1 if text[0] == "-" else 1)  # Cut, it is still too large.


def _double(text: str, at: int) -> float:
    value = float(text)
    if math.isinf(value):
        raise Mistake("invalid double literal: it is out of range", at)
    return value


def _int(text: str, at: int) -> int:
    value = _number(text)
    if not is_int64(value):
        raise Mistake("invalid int literal: it does not fit in 64 bits", at)
    return value


def _uint(text: str, at: int) -> UInt:
    value = _number(text)
    if not is_uint64(value):
        raise Mistake("invalid uint literal: it does not fit in 64 bits without a sign", at)
    return UInt(value)


def _unquoted(text: str) -> tuple[bool, str]:
    """Return whether the literal is raw, and what stands between its quotes."""
    raw = text[0] in "rR"
    body = text[1:] if raw else text
    if body[:_TRIPLE] in ('"""', "'''"):
        return raw, body[_TRIPLE:-_TRIPLE].replace("\r\n", "\n").replace("\r", "\n")
    return raw, body[1:-1]


def _string(text: str, at: int) -> str:
    raw, body = _unquoted(text)
    return body if raw else _ESCAPE.sub(lambda match: _character(match, at), body)


def _character(match: re.Match[str], at: int) -> str:
    simple, octal, hexadecimal, short, long = match.groups()
    if simple:
        return _SIMPLE.get(simple, simple)
    if octal:
        return chr(int(octal, 8))
    code = int(hexadecimal or short or long, 16)
    if 0xD800 <= code <= 0xDFFF or code > _HIGHEST:  # noqa: PLR2004 - the surrogates
        raise Mistake("invalid unicode code point", at)
    return chr(code)


def _bytes(text: str, at: int) -> bytes:
    raw, body = _unquoted(text)
    if raw:
        return body.encode()
    parts, end = [], 0
    for match in _ESCAPE.finditer(body):
        parts += [body[end : match.start()].encode(), _byte(match, at)]
        end = match.end()
    return b"".join([*parts, body[end:].encode()])


def _byte(match: re.Match[str], at: int) -> bytes:
    simple, octal, hexadecimal, *unicode = match.groups()
    if any(unicode):
        raise Mistake("invalid bytes literal: \\u and \\U are for strings", at)
    if simple:
        return _SIMPLE.get(simple, simple).encode()
    return bytes([int(octal, 8) if octal else int(hexadecimal, 16)])


_READERS: dict[str, tuple[Callable[[str, int], Any], Type]] = {
    "INT_LIT": (_int, INT),
    "UINT_LIT": (lambda text, at: _uint(text[:-1], at), UINT),
    "FLOAT_LIT": (_double, DOUBLE),
    "STRING_LIT": (_string, STRING),
    "BYTES_LIT": (lambda text, at: _bytes(text[1:], at), BYTES),
    "BOOL_LIT": (lambda text, _at: text == "true", BOOL),
    "NULL_LIT": (lambda _text, _at: None, NULL),
}

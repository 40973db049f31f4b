"""Quoting a text as Go's `strconv.Quote` does."""

from __future__ import annotations

_SHORT = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_SPACE, _DELETE, _PLANE = 0x20, 0x7F, 0x10000


def quoted(text: str) -> str:
    """Return a text in double quotes, with what does not print escaped."""
    return '"' + "".join(c if c.isprintable() and c not in '\\"' else _escaped(c) for c in text) + '"'


def _escaped(character: str) -> str:
    short, code = _SHORT.get(character), ord(character)
    if short is not None:
        return short
    if code < _SPACE or code == _DELETE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _PLANE else f"\\U{code:08x}"

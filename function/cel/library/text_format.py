"""`"%s has %d".format([a, b])`: cel-go's verbs, and the check of a literal template."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from function.cel.cost import JOINED, MET, excess, tenth, weight
from function.cel.declarations import method
from function.cel.errors import CostExceeded, EvaluationError
from function.cel.library.conversions import to_string
from function.cel.values import Duration, Map, Timestamp, TypeValue, UInt, Value, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLAUSE = re.compile(r"%(?:(%)|(?:\.(\d+))?(.)?)", re.DOTALL)
_SUPERSCRIPT = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)
PRECISION, MAX_PRECISION = 6, 1000
VERBS: dict[str, frozenset[str]] = {
    "s": frozenset(
        [
            "list",
            "map",
            "int",
            "uint",
            "double",
            "bool",
            "string",
            "bytes",
            "timestamp",
            "duration",
            "null",
            "type",
        ]
    ),
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double"}),
    "e": frozenset({"double"}),
    "b": frozenset({"int", "uint", "bool"}),
    "o": frozenset({"int", "uint"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "X": frozenset({"int", "uint", "string", "bytes"}),
}
"""What each verb takes."""

_CLASSES: dict[type, str] = {
    list: "list",
    Map: "map",
    int: "int",
    UInt: "uint",
    float: "double",
    bool: "bool",
    str: "string",
    bytes: "bytes",
    Timestamp: "timestamp",
    Duration: "duration",
    type(None): "null",
    TypeValue: "type",
}


def clauses(template: str) -> Iterator[tuple[str, str, int]]:
    """Yield (text before, verb, precision) for each clause, and last the rest with no verb."""
    literal, end = "", 0
    for match in _CLAUSE.finditer(template):
        literal += template[end : match.start()]
        end = match.end()
        percent, precision, verb = match.groups()
        if percent:
            literal += "%"
            continue
        if verb is None:
            raise EvaluationError("unexpected end of string")
        if verb not in VERBS:
            raise EvaluationError(
                f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
            )
        yield literal, verb, min(int(precision[:5]), MAX_PRECISION + 1) if precision else PRECISION
        literal = ""
    yield literal + template[end:], "", 0


def format_text(template: str, values: list[Value]) -> str:
    """Return the template with its clauses filled in."""
    made = []
    for used, (literal, verb, precision) in enumerate(clauses(template)):
        made.append(literal)
        if not verb:
            break
        if used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        if precision > MAX_PRECISION:
            raise CostExceeded
        made.append(_clause(verb, values[used], precision))
    return "".join(made)


def _clause(verb: str, value: Value, precision: int) -> str:
    kind = _CLASSES.get(type(value), "")
    takes = VERBS[verb]
    if kind not in takes and not _lenient(verb, kind, value):
        raise EvaluationError(f"error during formatting: %{verb} does not take a {type_name(value)}")
    return WRITERS[verb](value, precision)


def _lenient(verb: str, kind: str, value: Value) -> bool:
    """Whether a verb takes at run time what a check of literals would refuse."""
    if verb == "d":
        return kind == "double" and (math.isnan(value) or math.isinf(value))
    return verb in "fe" and kind in ("int", "uint")


def _special(value: float, infinity: str) -> str | None:
    if math.isnan(value):
        return "NaN"
    return (infinity if value > 0 else f"-{infinity}") if math.isinf(value) else None


def _decimal(value: Value, _precision: int) -> str:
    return (_special(value, "Infinity") if type(value) is float else None) or str(int(value))


def _fixed(value: Value, precision: int) -> str:
    number = float(value)
    return _special(number, "\u221e") or f"{number:.{precision}f}"


def _scientific(value: Value, precision: int) -> str:
    """Write 1.5e3 as cel-go's English printer does: 1.5 x 10 to the superscript 03."""
    number = float(value)
    special = _special(number, "\u221e")
    if special:
        return special
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    power = exponent.removeprefix("+").translate(_SUPERSCRIPT)
    return f"{mantissa}\u202f\u00d7\u202f10{power}"


def _binary(value: Value, _precision: int) -> str:
    return f"{int(value):b}"


def _octal(value: Value, _precision: int) -> str:
    return f"{int(value):o}"


def _hexadecimal(value: Value, _precision: int) -> str:
    if type(value) is str:
        return value.encode(errors="surrogatepass").hex()
    return value.hex() if type(value) is bytes else f"{int(value):x}"


def text_of(value: Value, *, inner: bool = False) -> str:  # noqa: PLR0911 - one for each type
    """Return a value as %s writes it; `inner` is inside of a list or map."""
    kind = type(value)
    if kind is str:
        return f'"{value}"' if inner else str(value)
    if value is None:
        return "null"
    if kind is list:
        return f"[{', '.join(_inner(element) for element in value)}]"
    if kind is Map:
        return f"{{{', '.join(sorted(f'{_inner(k)}: {_inner(v)}' for k, v in value.entries.values()))}}}"
    if kind is TypeValue:
        return str(value.name)
    if kind is bytes:
        return str(value.decode(errors="replace"))
    if kind is float:
        return _double(value, inner=inner)
    text = to_string(value)
    return f'{_CLASSES[kind]}("{text}")' if inner and kind in (Duration, Timestamp) else text


def _inner(value: Value) -> str:
    if type(value) not in _CLASSES:
        raise EvaluationError(f"error during formatting: %s does not take a {type_name(value)}")
    return text_of(value, inner=True)


def _double(value: float, *, inner: bool) -> str:
    if inner:
        return _fixed(value, PRECISION)
    return _special(value, "Infinity") or to_string(value)


WRITERS: dict[str, Callable[[Value, int], str]] = {
    "s": lambda value, _precision: text_of(value),
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
}


def check_template(template: str, kinds: list[str]) -> None:
    """Refuse a literal template that its arguments cannot fill, by their types. Raises EvaluationError."""
    used = 0
    for _, verb, _ in clauses(template):
        if not verb:
            break
        if used >= len(kinds):
            raise EvaluationError(f"index {used} out of range")
        if kinds[used] != "dyn" and kinds[used] not in VERBS[verb]:
            raise EvaluationError(f"error during formatting: %{verb} does not take a {kinds[used]}")
        used += 1
    if used < len(kinds):
        raise EvaluationError(
            f"too many arguments supplied to string.format (expected {used}, got {len(kinds)})"
        )


def template_cost(_result: str, template: str, values: Value) -> int:
    """Cost of formatting: the template, and what goes into it if that is much."""
    if type(values) is not list:
        return tenth(len(template))
    texts = sum(len(value) for value in values if type(value) is str or type(value) is bytes)
    return tenth(len(template)) + excess(weight(values), MET) + excess(texts) // JOINED


DECLARATIONS = (method("format", "string, list<dyn> -> string", format_text, cost=template_cost),)

"""`"%s has %d".format([a, b])`: cel-go's verbs, and the check of a literal template.

The numbers are what cel-go's English printer makes of them: %f writes thousands in groups, and the precision
of %e is the width, for that is how cel-go hands it on.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from function.cel.errors import EvaluationError
from function.cel.library.charges import JOINED, MET, excess, tenth, weight
from function.cel.library.conversions import to_string
from function.cel.library.declarations import method
from function.cel.library.quoting import quoted
from function.cel.syntax.nodes import ListLiteral, MapLiteral
from function.cel.values import Duration, Map, Timestamp, TypeValue, UInt, Value, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from function.cel.syntax.nodes import Node
    from function.cel.syntax.types import Type

_CLAUSE = re.compile(r"%(?:(%)|(?:(\.)([0-9]*))?(.)?)", re.DOTALL)
_SUPERSCRIPT = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)
PRECISION, MAX_PRECISION = 6, 255
"""By default, and the most: Go's printer counts the digits in one byte, and starts again from zero."""
_TEXTUAL = frozenset({"list", "map", "int", "uint", "double", "bool", "string", "bytes", "timestamp"})
VERBS: Mapping[str, frozenset[str]] = {
    "s": _TEXTUAL | {"duration", "null", "type"},
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "o": frozenset({"int", "uint"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "X": frozenset({"int", "uint", "string", "bytes"}),
}
"""What each verb takes."""
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Texts that %f and %e take for a double."""
KEYS = frozenset({"string", "bool", "int", "uint"})

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


def clauses(template: str) -> Iterator[tuple[str, str, int | None]]:
    """Yield (text before, verb, precision) for each clause, and last the rest with no verb."""
    literal, end = "", 0
    for match in _CLAUSE.finditer(template):
        literal += template[end : match.start()]
        end = match.end()
        percent, point, precision, verb = match.groups()
        if percent:
            literal += "%"
            continue
        if verb is None:
            raise EvaluationError("unexpected end of string")
        if point and not precision:
            raise EvaluationError("could not parse formatting clause: error while parsing precision")
        if verb not in VERBS:
            raise EvaluationError(
                f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
            )
        yield literal, verb, _precision(precision) if precision else None
        literal = ""
    yield literal + template[end:], "", None


def _precision(digits: str) -> int:
    if len(digits.lstrip("0")) > len(str(2**63)) or int(digits) >= 2**63:
        raise EvaluationError("could not parse formatting clause: error while parsing precision")
    return min(int(digits), MAX_PRECISION + 1)


def format_text(template: str, values: list[Value]) -> str:
    """Return the template with its clauses filled in."""
    made = []
    for used, (literal, verb, precision) in enumerate(clauses(template)):
        made.append(literal)
        if not verb:
            break
        if used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        if precision is not None and precision > MAX_PRECISION and verb in "fe":
            raise EvaluationError(f"a precision beyond {MAX_PRECISION} is not supported")
        made.append(_clause(verb, values[used], precision))
    return "".join(made)


def _clause(verb: str, value: Value, precision: int | None) -> str:
    kind = _CLASSES.get(type(value), "")
    if verb in "fe" and kind == "string":
        value = SPECIAL.get(value, value)
    if kind not in VERBS[verb] or (verb in "fe" and type(value) is not float):
        raise EvaluationError(f"error during formatting: %{verb} does not take a {type_name(value)}")
    return WRITERS[verb](value, precision)


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    return ("\u221e" if value > 0 else "-\u221e") if math.isinf(value) else None


def _fixed(value: float, precision: int | None) -> str:
    digits = PRECISION if precision is None else precision
    return _special(value) or f"{value or 0.0:,.{digits}f}"


def _scientific(value: float, width: int | None) -> str:
    """Write 1.5e3 as cel-go's English printer does: 1.5 times 10 to the superscript 03."""
    text = _special(value)
    if text is None:
        mantissa, _, exponent = f"{value or 0.0:.{PRECISION}e}".partition("e")
        text = f"{mantissa}\u00d710{exponent.removeprefix('+').translate(_SUPERSCRIPT)}"
    return text.rjust(PRECISION if width is None else width)


def _hexadecimal(value: Value, _precision: int | None) -> str:
    if type(value) is str:
        return value.encode(errors="surrogatepass").hex()
    return value.hex() if type(value) is bytes else f"{int(value):x}"


def text_of(value: Value) -> str:
    """Return a value as %s writes it."""
    kind = type(value)
    if value is None:
        return "null"
    if kind is list:
        return f"[{', '.join(map(_inner, value))}]"
    if kind is Map:
        return (
            f"{{{', '.join(f'{key}:{inner}' for key, inner in sorted(map(_pair, value.entries.values())))}}}"
        )
    return str(value.name) if kind is TypeValue else to_string(value)


def _pair(entry: tuple[Value, Value]) -> tuple[str, str]:
    key, value = entry
    if _CLASSES.get(type(key)) not in KEYS:
        raise EvaluationError(f"no formatting function for map key of type {type_name(key)}")
    return _inner(key), _inner(value)


def _inner(value: Value) -> str:
    """Return a value inside of a list or map, as a literal where it is text, bytes or a time."""
    kind = type(value)
    if kind not in _CLASSES:
        raise EvaluationError(f"no formatting function for {type_name(value)}")
    if kind is str or kind is bytes:
        return f"{'b' if kind is bytes else ''}{quoted(to_string(value))}"
    if kind is Duration or kind is Timestamp:
        return f"{_CLASSES[kind]}({quoted(to_string(value))})"
    if kind is not float:
        return text_of(value)
    if math.isnan(value):
        return '"NaN"'
    return f'"{"+" if value > 0 else "-"}Inf"' if math.isinf(value) else f"{value:.{PRECISION}f}"


WRITERS: Mapping[str, Callable[[Value, int | None], str]] = {
    "s": lambda value, _precision: text_of(value),
    "d": lambda value, _precision: str(int(value)),
    "f": _fixed,
    "e": _scientific,
    "b": lambda value, _precision: f"{int(value):b}",
    "o": lambda value, _precision: f"{int(value):o}",
    "x": _hexadecimal,
    "X": lambda value, precision: _hexadecimal(value, precision).upper(),
}


def check_template(template: str, given: ListLiteral, types: Mapping[Node, Type]) -> None:
    """Refuse a literal template that its arguments cannot fill, by their types. Raises EvaluationError."""
    used, arguments = 0, [item.value for item in given.items]
    for _, verb, _ in clauses(template):
        if not verb:
            break
        if used >= len(arguments):
            raise EvaluationError(f"index {used} out of range")
        _check_argument(verb, arguments[used], types)
        used += 1
    if used < len(arguments):
        raise EvaluationError(
            f"too many arguments supplied to string.format (expected {used}, got {len(arguments)})"
        )


def _check_argument(verb: str, argument: Node, types: Mapping[Node, Type]) -> None:
    """Check an argument; for %s also what is written out inside of it."""
    todo = [argument]
    while todo:
        node = todo.pop()
        kind = types[node]
        name = kind.args[0].name if kind.name == "wrapper" else kind.name
        if name != "dyn" and name not in VERBS[verb]:
            raise EvaluationError(f"error during formatting: %{verb} does not take a {kind}")
        if verb == "s" and isinstance(node, ListLiteral):
            todo += [item.value for item in node.items]
        elif verb == "s" and isinstance(node, MapLiteral):
            todo += [part for entry in node.entries for part in (entry.key, entry.value)]


def template_cost(_result: str, template: str, values: Value) -> int:
    """Cost of formatting: the template, and what goes into it if that is much."""
    if type(values) is not list:
        return tenth(len(template))
    texts = sum(len(value) for value in values if type(value) is str or type(value) is bytes)
    return tenth(len(template)) + excess(weight(values), MET) + excess(texts) // JOINED


DECLARATIONS = (method("format", "string, list<dyn> -> string", format_text, cost=template_cost),)

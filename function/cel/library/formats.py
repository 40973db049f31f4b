"""Kubernetes' named formats, and the `format` of texts: two ways of saying what a text looks like.

`format.uuid().validate(text)` is none, or a list of what is wrong, in Kubernetes' own words. The formats are
the API server's `library/format.go`, which asks `k8s.io/apimachinery/pkg/util/validation` for names and
labels and `k8s.io/kube-openapi/pkg/validation/strfmt` for the rest. Their sentences reach a user through a
selector that shows them, so they are copied from what these functions return, with the regular expression
that each names.

`"%s has %d".format([a, b])` is cel-go's `ext/formatting.go`. See there, in the second half.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import ClassVar

from function.boundary import frozen
from function.cel.library import conversions, strings, times, urls
from function.cel.library.charges import JOINED, MET, excess, tenth, weight
from function.cel.library.declarations import function, method
from function.cel.syntax.nodes import ListLiteral, MapLiteral, Node, Type
from function.cel.values import (
    NONE,
    Duration,
    EvaluationError,
    Map,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    type_name,
)

Problems = list[str]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
LABEL, SUBDOMAIN = 63, 253
"""Bytes that a label and a subdomain may have."""
_ALPHANUMERIC = "must start and end with an alphanumeric character"
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
    f" and {_ALPHANUMERIC}"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    f" and {_ALPHANUMERIC}"
)
LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-',"
    " start with an alphabetic character, and end with an alphanumeric character"
)
NAME_RULE = f"must consist of alphanumeric characters, '-', '_' or '.', and {_ALPHANUMERIC}"
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    f" and {_ALPHANUMERIC}"
)
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_BASE64 = re.compile(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})([^\n][0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)
MONTHS, LAST_HOUR, LAST_SIXTIETH = 12, "23", "59"


def _pattern_problem(rule: str, pattern: str, *examples: str) -> str:
    """Return Kubernetes' sentence for a text that a pattern does not fit (`RegexError`).

    It shows the pattern and examples. A selector can show it to a user, so every character is part of the
    dialect.
    """
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({f'e.g. {shown}' if examples else ''}regex used for validation is '{pattern}')"


def _too_long(text: str, longest: int, unit: str) -> Problems:
    """Return the problem of a text that is too long, if it is: in bytes, as Go measures."""
    return (
        [f"must be no more than {longest} {unit}"]
        if len(text.encode(errors="surrogatepass")) > longest
        else []
    )


def _dns_label(text: str) -> Problems:
    """Check as `IsDNS1123Label` does, which has a sentence of its own for what would be a subdomain."""
    problems = _too_long(text, LABEL, "characters")
    if re.fullmatch(_LABEL, text):
        return problems
    if re.fullmatch(_SUBDOMAIN, text):
        return [*problems, "must not contain dots"]
    return [*problems, _pattern_problem(LABEL_RULE, _LABEL, "my-name", "123-abc")]


def _dns_subdomain(text: str, unit: str = "characters") -> Problems:
    """Check as `IsDNS1123Subdomain` does; a prefix of a label key has its length in bytes."""
    problems = _too_long(text, SUBDOMAIN, unit)
    if re.fullmatch(_SUBDOMAIN, text):
        return problems
    return [*problems, _pattern_problem(SUBDOMAIN_RULE, _SUBDOMAIN, "example.com")]


def _dns_1035_label(text: str) -> Problems:
    """Check as `IsDNS1035Label` does: as a label, but it begins with a letter."""
    problems = _too_long(text, LABEL, "characters")
    if re.fullmatch(_LABEL_1035, text):
        return problems
    return [*problems, _pattern_problem(LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123")]


def _prefix(problems: Callable[[str], Problems], text: str) -> Problems:
    """Check a text to which something may be appended: a dash at its end is no fault.

    Kubernetes checks generated names so (`maskTrailingDash`): the dash is replaced by a letter, and only
    behind another character.
    """
    return problems(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _qualified_name(text: str) -> Problems:
    """Check as `IsQualifiedName` does: a name, perhaps with a subdomain and a slash before it."""
    *prefixes, name = text.split("/")
    mismatch = _pattern_problem(NAME_RULE, _NAME, "MyName", "my.name", "123-abc")
    if len(prefixes) > 1:
        prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {mismatch} {prefixed}"]
    problems = []
    for prefix in prefixes:
        faults = _dns_subdomain(prefix, "bytes") if prefix else ["must be non-empty"]
        problems += [f"prefix part {problem}" for problem in faults]
    faults = _too_long(name, LABEL, "bytes") if name else ["must be non-empty"]
    problems += [f"name part {problem}" for problem in faults]
    return problems if re.fullmatch(_NAME, name) else [*problems, f"name part {mismatch}"]


def _label_value(text: str) -> Problems:
    """Check as `IsValidLabelValue` does: empty is fine, and the length is in bytes."""
    problems = _too_long(text, LABEL, "bytes")
    if re.fullmatch(_VALUE, text):
        return problems
    return [*problems, _pattern_problem(VALUE_RULE, _VALUE, "MyValue", "my_value", "12345")]


def _uri(text: str) -> Problems:
    """Check as the URL library does, and report what Go's parser would say."""
    problem = urls.url_problem(text)
    return [] if problem is None else [problem]


def _is_date(text: str) -> bool:
    """Tell if a text is a day that exists, as RFC 3339 writes it."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    return 1 <= month <= MONTHS and 1 <= day <= times.days_in(year, month)


def _is_datetime(text: str) -> bool:
    """Tell if a text is a date and a time of day, as strfmt reads them: only the first two parts count."""
    parts = text.lower().split("t")
    match = _CLOCK.fullmatch(parts[1]) if len(parts) > 1 and _is_date(parts[0]) else None
    return match is not None and match[1] <= LAST_HOUR and max(match[2], match[3]) <= LAST_SIXTIETH


def _unless(accepts: Callable[[str], object], problem: str) -> Callable[[str], Problems]:
    """Return a check that has one sentence for every text that is not accepted."""
    return lambda text: [] if accepts(text) else [problem]


@frozen
class Format:
    """A named format. `weight` is what Kubernetes takes its pattern for when it charges.

    Formats are values: a selector can choose one (`format.named(x)`) and compare two, which are equal by
    name. Validating is charged as matching a pattern of this length, a quarter of it for each tenth of the
    text.
    """

    TYPE_NAME: ClassVar = "kubernetes.NamedFormat"
    name: str
    problems: Callable[[str], Problems] = field(compare=False)
    """Returns the sentences about a text, none for one that fits."""
    weight: int = field(compare=False)


FORMATS = {
    listed.name: listed
    for listed in (
        Format("dns1123Label", _dns_label, 8),
        Format("dns1123Subdomain", _dns_subdomain, 15),
        Format("dns1035Label", _dns_1035_label, 8),
        Format("qualifiedName", _qualified_name, 15),
        Format("dns1123LabelPrefix", partial(_prefix, _dns_label), 8),
        Format("dns1123SubdomainPrefix", partial(_prefix, _dns_subdomain), 15),
        Format("dns1035LabelPrefix", partial(_prefix, _dns_1035_label), 8),
        Format("labelValue", _label_value, 10),
        Format("uri", _uri, 276),
        Format("uuid", _unless(_UUID.fullmatch, "does not match the UUID format"), 18),
        Format("byte", _unless(_BASE64.fullmatch, "invalid base64"), 21),
        Format("date", _unless(_is_date, "invalid date"), 18),
        Format("datetime", _unless(_is_datetime, "invalid datetime"), 18),
    )
}


def named(name: str) -> Optional:
    """Return the format of a name."""
    named_format = FORMATS.get(name)
    return NONE if named_format is None else Optional(named_format)


def validate(wanted: Format, text: str) -> Optional:
    """Return none if the text fits, else what is wrong with it."""
    problems = wanted.problems(text)
    return Optional(problems) if problems else NONE


def weighed(_result: Value, wanted: Format, text: str) -> int:
    """Cost of validating: as of matching the format's pattern."""
    return tenth(1 + len(text)) * wanted.weight


NAMED_FORMATS = (
    *(function(f"format.{one.name}", "-> Format", lambda one=one: one) for one in FORMATS.values()),
    function("format.named", "string -> optional<Format>", named),
    method("validate", "Format, string -> optional<list<string>>", validate, cost=weighed),
)


# `"%s has %d".format([a, b])`: cel-go's verbs, and the check of a literal template.
#
# The numbers are what cel-go's English printer makes of them: %f writes thousands in groups, and the
# precision of %e is the width, for that is how cel-go hands it on.
#
# A literal template is checked at compile time against the types of its arguments (`check_template`), with
# the messages that evaluating it would give: the API server refuses such a selector when it is written.

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
"""The types that each verb takes."""
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
    """Yield (text before, verb, precision) for each clause, and last the rest with no verb.

    A bad clause is an error where the text reaches it, so what stands before it is still looked at first.
    """
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
    """Return a precision as Go reads it; one that no printer reaches is cut to just beyond the largest."""
    if len(digits.lstrip("0")) > len(str(2**63)) or int(digits) >= 2**63:
        raise EvaluationError("could not parse formatting clause: error while parsing precision")
    return min(int(digits), MAX_PRECISION + 1)


def format_text(template: str, values: list[Value]) -> str:
    """Return the template with its clauses filled in.

    Clauses are filled from the left, and the first that cannot be is the error. Arguments that are left over
    are none: only a literal template is refused for having too many.
    """
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
    """Return one value as its verb writes it. %f and %e take three texts for the doubles without digits."""
    kind = _CLASSES.get(type(value), "")
    if verb in "fe" and kind == "string":
        value = SPECIAL.get(value, value)
    if kind not in VERBS[verb] or (verb in "fe" and type(value) is not float):
        raise EvaluationError(f"error during formatting: %{verb} does not take a {type_name(value)}")
    return WRITERS[verb](value, precision)


def _special(value: float) -> str | None:
    """Return the text of a double that has no digits, as the English printer writes it."""
    if math.isnan(value):
        return "NaN"
    return ("\u221e" if value > 0 else "-\u221e") if math.isinf(value) else None


def _fixed(value: float, precision: int | None) -> str:
    """Write a double with %f: digits in groups of thousands, -0 as 0, and no digits for NaN and infinity."""
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
    """Write a number, or the bytes of a text, with %x. A text is its UTF-8."""
    if type(value) is str:
        return value.encode(errors="surrogatepass").hex()
    return value.hex() if type(value) is bytes else f"{int(value):x}"


def text_of(value: Value) -> str:
    """Return a value as %s writes it.

    A list and a map are written as literals, a map sorted by the texts of its keys, so that the text is the
    same for equal maps. A single value is what `string()` makes of it.
    """
    kind = type(value)
    if value is None:
        return "null"
    if kind is list:
        return f"[{', '.join(map(_inner, value))}]"
    if kind is Map:
        return (
            f"{{{', '.join(f'{key}:{inner}' for key, inner in sorted(map(_pair, value.entries.values())))}}}"
        )
    return str(value.name) if kind is TypeValue else conversions.to_string(value)


def _pair(entry: tuple[Value, Value]) -> tuple[str, str]:
    """Return a key and its value as texts, by which %s sorts a map."""
    key, value = entry
    if _CLASSES.get(type(key)) not in KEYS:
        raise EvaluationError(f"no formatting function for map key of type {type_name(key)}")
    return _inner(key), _inner(value)


def _inner(value: Value) -> str:
    """Return a value inside of a list or map, as a literal where it is text, bytes or a time.

    Doubles have six digits there, and those without digits are in quotes: that is `formatList` of cel-go,
    whose rules for elements differ from those for single values.
    """
    kind = type(value)
    if kind not in _CLASSES:
        raise EvaluationError(f"no formatting function for {type_name(value)}")
    if kind is str or kind is bytes:
        return f"{'b' if kind is bytes else ''}{strings.quoted(conversions.to_string(value))}"
    if kind is Duration or kind is Timestamp:
        return f"{_CLASSES[kind]}({strings.quoted(conversions.to_string(value))})"
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
    """Refuse a literal template that its arguments cannot fill, by their types. Raises EvaluationError.

    cel-go does this with a validator of the checked tree (`stringFormatValidator`): the template and the list
    of arguments must both be written out, and an argument of type dyn passes.
    """
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
    """Cost of formatting: a tenth of the template, and what goes into it if that is much.

    Kubernetes charges for the template only. A list of texts can be far longer than its template, and writing
    it is work here.
    """
    if type(values) is not list:
        return tenth(len(template))
    texts = sum(len(value) for value in values if type(value) is str or type(value) is bytes)
    return tenth(len(template)) + excess(weight(values), MET) + excess(texts) // JOINED


DECLARATIONS = (method("format", "string, list<dyn> -> string", format_text, cost=template_cost),)

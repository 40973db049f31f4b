"""Kubernetes' named formats: `format.uuid().validate(text)` is none, or what is wrong, in its words."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from function.cel.library.charges import tenth
from function.cel.library.declarations import Overload, function, method
from function.cel.library.times import days_in
from function.cel.library.urls import url_problem
from function.cel.values import NONE, Optional, Value

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """Return Kubernetes' sentence for a text that a pattern does not fit."""
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({f'e.g. {shown}' if examples else ''}regex used for validation is '{pattern}')"


def _too_long(text: str, longest: int, unit: str) -> Problems:
    return (
        [f"must be no more than {longest} {unit}"]
        if len(text.encode(errors="surrogatepass")) > longest
        else []
    )


def _dns_label(text: str) -> Problems:
    problems = _too_long(text, LABEL, "characters")
    if re.fullmatch(_LABEL, text):
        return problems
    if re.fullmatch(_SUBDOMAIN, text):
        return [*problems, "must not contain dots"]
    return [*problems, _pattern_problem(LABEL_RULE, _LABEL, "my-name", "123-abc")]


def _dns_subdomain(text: str, unit: str = "characters") -> Problems:
    problems = _too_long(text, SUBDOMAIN, unit)
    if re.fullmatch(_SUBDOMAIN, text):
        return problems
    return [*problems, _pattern_problem(SUBDOMAIN_RULE, _SUBDOMAIN, "example.com")]


def _dns_1035_label(text: str) -> Problems:
    problems = _too_long(text, LABEL, "characters")
    if re.fullmatch(_LABEL_1035, text):
        return problems
    return [*problems, _pattern_problem(LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123")]


def _prefix(problems: Callable[[str], Problems], text: str) -> Problems:
    """Check a text to which something may be appended: a dash at its end is no fault."""
    return problems(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _qualified_name(text: str) -> Problems:
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
    problems = _too_long(text, LABEL, "bytes")
    if re.fullmatch(_VALUE, text):
        return problems
    return [*problems, _pattern_problem(VALUE_RULE, _VALUE, "MyValue", "my_value", "12345")]


def _uri(text: str) -> Problems:
    problem = url_problem(text)
    return [] if problem is None else [problem]


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    return 1 <= month <= MONTHS and 1 <= day <= days_in(year, month)


def _is_datetime(text: str) -> bool:
    """Whether a text is a date and a time of day, as strfmt reads them: only the first two parts count."""
    parts = text.lower().split("t")
    match = _CLOCK.fullmatch(parts[1]) if len(parts) > 1 and _is_date(parts[0]) else None
    return match is not None and match[1] <= LAST_HOUR and max(match[2], match[3]) <= LAST_SIXTIETH


def _unless(accepts: Callable[[str], object], problem: str) -> Callable[[str], Problems]:
    return lambda text: [] if accepts(text) else [problem]


class Format:
    """A named format. `weight` is what Kubernetes takes its pattern for when it charges."""

    TYPE_NAME = "kubernetes.NamedFormat"
    __slots__ = ("name", "problems", "weight")

    def __init__(self, name: str, problems: Callable[[str], Problems], weight: int) -> None:
        self.name = name
        self.problems = problems
        self.weight = weight

    def same(self, other: Value) -> bool:
        """Whether `other` is the same format."""
        return bool(self.name == other.name)


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


def _constant(one: Format) -> Overload:
    return function(f"format.{one.name}", "-> Format", lambda: one)


DECLARATIONS = (
    *map(_constant, FORMATS.values()),
    function("format.named", "string -> optional<Format>", named),
    method("validate", "Format, string -> optional<list<string>>", validate, cost=weighed),
)

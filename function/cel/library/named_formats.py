"""Kubernetes' named formats, such as `format.dns1123Label().validate(text)`: none, or what is wrong."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from function.cel.cost import tenth
from function.cel.declarations import Overload, function, method
from function.cel.errors import EvaluationError
from function.cel.library.urls import is_url
from function.cel.times import parse_timestamp
from function.cel.values import NONE, Optional, Value

if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL, SUBDOMAIN = 63, 253
"""Characters that a label and a subdomain may have."""


def _fits(pattern: str, longest: int, text: str) -> bool:
    return len(text) <= longest and re.fullmatch(pattern, text) is not None


def _prefix(fits: Callable[[str], bool], text: str) -> bool:
    """Whether something may be appended to a text to make a name: a dash at its end is no fault."""
    return fits(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


_dns_label = partial(_fits, _LABEL, LABEL)
_dns_subdomain = partial(_fits, rf"{_LABEL}(\.{_LABEL})*", SUBDOMAIN)
_dns_1035_label = partial(_fits, r"[a-z]([-a-z0-9]*[a-z0-9])?", LABEL)


def _qualified_name(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return _fits(_NAME, LABEL, name) and (not slash or _dns_subdomain(prefix))


def _date(text: str) -> bool:
    return _fits(r"\d{4}-\d\d-\d\d", 10, text) and _datetime(f"{text}T00:00:00Z")


def _datetime(text: str) -> bool:
    try:
        parse_timestamp(text)
    except EvaluationError:
        return False
    return True


class Format:
    """A named format. `weight` is what Kubernetes takes its pattern for when it charges."""

    TYPE_NAME = "kubernetes.NamedFormat"
    __slots__ = ("fits", "name", "weight")

    def __init__(self, name: str, fits: Callable[[str], bool], weight: int) -> None:
        self.name = name
        self.fits = fits
        self.weight = weight

    def same(self, other: Value) -> bool:
        """Whether `other` is the same format."""
        return type(other) is Format and self.name == other.name


FORMATS = {
    one.name: one
    for one in (
        Format("dns1123Label", _dns_label, 8),
        Format("dns1123Subdomain", _dns_subdomain, 15),
        Format("dns1035Label", _dns_1035_label, 8),
        Format("qualifiedName", _qualified_name, 15),
        Format("dns1123LabelPrefix", partial(_prefix, _dns_label), 8),
        Format("dns1123SubdomainPrefix", partial(_prefix, _dns_subdomain), 15),
        Format("dns1035LabelPrefix", partial(_prefix, _dns_1035_label), 8),
        Format("labelValue", partial(_fits, rf"({_NAME})?", LABEL), 10),
        Format("uri", is_url, 276),
        Format("uuid", partial(_fits, r"(?i:[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12})", 36), 18),
        Format(
            "byte", partial(_fits, r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", 10**7), 21
        ),
        Format("date", _date, 18),
        Format("datetime", _datetime, 18),
    )
}


def named(name: str) -> Optional:
    """Return the format of a name."""
    found = FORMATS.get(name)
    return NONE if found is None else Optional(found)


def validate(wanted: Format, text: str) -> Optional:
    """Return none if the text fits, else what is wrong with it."""
    return NONE if wanted.fits(text) else Optional([f"{text!r} is not a valid {wanted.name}"])


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

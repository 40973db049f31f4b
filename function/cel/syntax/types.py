"""Static types, as cel-go has them."""

from __future__ import annotations

from typing import NamedTuple


class Type(NamedTuple):
    """A type: a name and its parameters. `'A` is a declaration's parameter, `?3` a variable of one check."""

    name: str
    args: tuple[Type, ...] = ()

    def __str__(self) -> str:
        """Return the type as the API server's messages have it."""
        if self.name[0] in "'?":
            return "dyn"
        name = "optional_type" if self.name == "optional" else self.name
        return f"{name}({', '.join(map(str, self.args))})" if self.args else name

    def cannot_be(self, parameter: Type) -> bool:
        """Whether no value of this type may be given for a parameter, as the names alone tell."""
        one, other = self.name, parameter.name
        return one != other and one not in _OPEN and one[0] != "?" and other not in _OPEN and other[0] != "'"

    @property
    def is_variable(self) -> bool:
        """Whether the check has still to find out what this is."""
        return self.name[0] == "?"


_OPEN = frozenset({"dyn", "any", "null", "wrapper"})
"""Types whose names do not tell what they may stand for."""
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
NULL = Type("null")
DYN = Type("dyn")
ANY = Type("any")
"""An attribute to an API server that knows no lists of them: like dyn, but nothing to iterate over."""
TIMESTAMP = Type("timestamp")
DURATION = Type("duration")
QUANTITY = Type("kubernetes.Quantity")
SEMVER = Type("kubernetes.Semver")
IP = Type("net.IP")
CIDR = Type("net.CIDR")
URL = Type("kubernetes.URL")
FORMAT = Type("kubernetes.NamedFormat")


def list_of(element: Type) -> Type:
    """Return the type of lists of `element`."""
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optionals."""
    return Type("optional", (value,))


def type_of(value: Type) -> Type:
    """Return the type of type values."""
    return Type("type", (value,))


def wrapper_of(value: Type) -> Type:
    """Return the type of a protobuf wrapper: the value or null."""
    return Type("wrapper", (value,))


DYNAMIC = frozenset({"dyn", "any"})
NULLABLE = frozenset({"timestamp", "duration", "optional", "wrapper"})


def accepts_null(other: Type) -> bool:
    """Whether null may stand where `other` is expected."""
    return other.name in NULLABLE or "." in other.name or other.name == "null"


def has_parameter(kind: Type) -> bool:
    """Whether a declaration's type mentions a type parameter."""
    return kind.name[0] == "'" or any(map(has_parameter, kind.args))

"""Admission: what the API server would say about an object, from the XRDs that this project ships.

`kinds` finds the schema of an object by its apiVersion and kind, `structural` holds the object, its metadata
and its x-kubernetes-validations against it. The XRDs are read as data (`apis/` and `input/` are links to the
folders they ship from), so a field that is added there is known here.

What both make is a `Finding`: one field of one object that the API server would refuse, drop, or take for
something else. It has a code (docs/ci.md lists them), the path, what was expected, what was found and what
was probably meant. Values are shown as `api.fault.shown` does: short, and containers by their kind only, for
a value may be a secret.
"""

from __future__ import annotations

from function.boundary import frozen

FieldPath = tuple[str | int, ...]
"""Keys and indexes from the object down to a field."""

UNKNOWN_FIELD = "UnknownField"
INVALID = "InvalidValue"
RULE = "RuleBroken"
REQUIRED = "required, but missing"
UNKNOWN_KIND = "UnknownKind"
SELECTOR = "InvalidSelector"


@frozen
class Finding:
    """One field that the API server would refuse, and the reason."""

    path: FieldPath
    message: str
    value: str = ""
    """The value that was found there, as it is shown."""
    hint: str = ""
    """A guess at what was meant."""
    code: str = INVALID
    missing: FieldPath = ()
    """The required field that was meant, which is not there under its name."""
    excerpt: str = ""
    """The text it is about with a mark under the place, as two lines."""

    @property
    def field(self) -> str:
        """The field as users write it: `spec.engines[1].copies`."""
        return self.fields[0]

    @property
    def fields(self) -> tuple[str, ...]:
        """Every field that it explains, as users write them."""
        from function.api.fault import path_of  # noqa: PLC0415 - a completion finds nothing, and is quick

        return tuple(path_of(path) for path in ((self.path, self.missing) if self.missing else (self.path,)))

    def __str__(self) -> str:
        """`spec.engines[1].copies: expected a whole number, found "two"; did you mean 2?`."""
        value_text = f", found {self.value}" if self.value else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.field or 'object'}: {self.message}{value_text}{hint}"

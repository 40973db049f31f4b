"""The base of every parsed object: frozen, camelCase on the outside, null means not set."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from function.api.fault import Fault, Malformed, faults_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Effect = Literal["NoSchedule", "NoExecute"]
ClaimKind = Literal["DRA", "Synthetic"]
Role = Literal["Standalone", "Leader", "Worker"]
CelVersion = Literal["1.36", "1.37"]
"""Kubernetes releases whose selectors are known; see `function.cel.library.dialects`."""


class Model(BaseModel):
    """Base of all objects. Unknown fields are ignored: an API grows without breaking its readers."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_unset(cls, data: Any) -> Any:
        if isinstance(data, dict) and None in data.values():
            return {key: value for key, value in data.items() if value is not None}
        return data

    @classmethod
    def parse(cls, plain: object) -> Self:
        """Parse one object. Raises Malformed with every fault."""
        try:
            return cls.model_validate(plain)
        except ValidationError as error:
            raise Malformed(faults_of(error)) from None
        except RecursionError:
            raise Malformed([Fault("", "nested too deeply")]) from None


class Keyed(Model):
    """A value that serves as a key: its hash is computed once, and its fields are compared as one tuple."""

    @cached_property
    def values(self) -> tuple[object, ...]:
        """Its type and its fields."""
        return (type(self), *(getattr(self, name) for name in type(self).model_fields))

    @cached_property
    def digest(self) -> int:
        """The hash of its fields."""
        return hash(self.values)

    def __hash__(self) -> int:
        """Equal values have equal hashes."""
        return self.digest

    def __eq__(self, other: object) -> bool:
        """Whether both are of one type and have equal fields."""
        return isinstance(other, Keyed) and self.values == other.values


def refuse_twice(field: str, names: Sequence[str]) -> None:
    """Refuse a list in which a name stands twice. Raises ValueError."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise ValueError(f'{field}: the name "{twice}" is used twice')


def whole(value: object) -> int:
    """Accept 3 and 3.0, as a protobuf Struct carries them; refuse true, 1.5, NaN and "3"."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError("expected a whole number")
    return int(value)


def never_negative(value: object) -> int:
    """Read a published node count: negative counts as 0 (the rule of counting capacity)."""
    return max(0, whole(value))


MAX_COUNT, MAX_NODES = 1_000_000, 1_000_000_000

Whole = Annotated[int, BeforeValidator(whole)]
Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_COUNT)]
Nodes = Annotated[int, BeforeValidator(never_negative), Field(le=MAX_NODES)]
Flag = StrictBool
Name = Annotated[str, Field(min_length=1)]


class Metadata(Model):
    """The part of an object's metadata that scheduling reads."""

    name: Name
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class Named(Model):
    """An object with metadata."""

    metadata: Metadata

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Its namespace; what it composes lives there too."""
        return self.metadata.namespace


class ConditionStatus(Model):
    """One condition as an object reports it. One without a type is no condition at all."""

    type: str = ""
    status: str = ""
    last_transition_time: Any = None
    """Since when; whatever stands there, it is no fault of the object."""


C = TypeVar("C")


class CacheHolder(Named):
    """An object that what was found out about it lives with, and is forgotten with."""

    @cached_property
    def _caches(self) -> dict[type, object]:
        return {}

    def cache_of(self, kind: type[C]) -> C:
        """The one cache of a kind that lives as long as this object. It is no part of its value.

        Safe for many threads: at worst one of two caches that are made at once is forgotten.
        """
        cache = self._caches.get(kind)
        if cache is None:
            cache = self._caches[kind] = kind()
        return cast("C", cache)

    def adopt(self, cache: object) -> None:
        """Take a cache that it shares with others, in the place of its own of that kind."""
        self._caches[type(cache)] = cache

    def held(self, kind: type[C]) -> C | None:
        """The cache of a kind, if there is one."""
        return cast("C | None", self._caches.get(kind))

    def forget(self) -> None:
        """Empty its caches."""
        self._caches.clear()


def condition(conditions: tuple[ConditionStatus, ...], kind: str) -> bool | None:
    """Whether a condition is True, False, or (None) unknown: missing or Unknown.

    Listed twice, the worst of its statuses counts, so that the order of the list decides nothing.
    """
    statuses = {item.status for item in conditions if item.type == kind}
    if "False" in statuses:
        return False
    return True if statuses == {"True"} else None

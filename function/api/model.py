"""The base of every parsed object: frozen, camelCase on the outside, null means not set.

Parse, do not validate: past `Model.parse` there are only values that cannot be wrong, and `Malformed` has
every fault. Unknown fields are ignored, so that an API can grow without breaking its readers.

Numbers arrive through a protobuf Struct, as doubles: `whole` takes 3.0 for 3 and refuses 1.5, true and "3".

Some objects must be charged whether or not every field of them can be read: a replica holds nodes even if
one of its labels is a number. `Reader` and the functions around it read such objects, return what they can
and note the first fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self, TypeVar, cast, get_args, get_origin

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

from function.api.fault import Fault, Malformed, faults_of, shown, shown_type
from function.boundary import PACKED, Document, Packed, Shape, Unreadable

Effect = Literal["NoSchedule", "NoExecute"]
ClaimKind = Literal["DRA", "Synthetic"]
Role = Literal["Standalone", "Leader", "Worker"]
Stack = Literal["Standard", "KServe"]
STANDARD: Final = "Standard"
KSERVE: Final = "KServe"
KSERVE_V1ALPHA2: Final = "KServe v1alpha2"
"""The words of KServe's newer API, which has labels and annotations for the pods of every engine."""
CelVersion = Literal["1.36", "1.37"]
"""Kubernetes releases whose selectors are known; see `function.cel.library.dialects`."""


class Model(BaseModel):
    """Base of all objects. Unknown fields are ignored: an API grows without breaking its readers.

    Validators are built when a model first parses: to build those of all takes longer than most commands.
    So a default that is a model is made by `model_construct`, which needs none.
    """

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_unset(cls, data: Any) -> Any:
        """Drop nulls: YAML and server-side apply write one where a field is left out."""
        if isinstance(data, dict) and None in data.values():
            return {key: value for key, value in data.items() if value is not None}
        return data

    @classmethod
    def parse(cls, plain: object) -> Self:
        """Parse one object. Raises Malformed with every fault.

        Unknown fields are ignored or refused as `cls` says, at any depth; so are fields in our spelling.
        """
        try:
            return cls.model_validate(plain, extra=cls.model_config["extra"], by_alias=True, by_name=False)
        except ValidationError as error:
            raise Malformed(faults_of(error)) from None
        except RecursionError:
            raise Malformed([Fault("", "nested too deeply")]) from None

    def as_written(self) -> dict[str, Any]:
        """Return the fields that are set, under the names of the API."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


def build_validators(base: type[Model] = Model) -> None:
    """Build the validators of all models at once, which a server does before its first call."""
    for model in base.__subclasses__():
        model.model_rebuild()
        build_validators(model)


def shape_of(model: type[BaseModel]) -> dict[str, Shape | None]:
    """Return the paths that a model reads, so that what a reader of bytes decodes is said once.

    A list has the shape of its items. A field that is marked `Packed` is handed over undecoded.
    """
    return {info.alias or name: _shape_of(info.annotation) for name, info in model.model_fields.items()}


def _shape_of(annotation: object) -> Shape | None:
    """Return the shape of a field; None, which is all of it, where no model stands below."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return shape_of(annotation)
    if Packed in getattr(annotation, "__metadata__", ()):
        return PACKED
    below = (_shape_of(arg) for arg in get_args(annotation) if get_origin(annotation) is not dict)
    return next(filter(None, below), None)


M = TypeVar("M", bound=Model)


def reader_of(model: type[M], shape: Shape) -> Callable[[Document], M]:
    """Return what reads an object of this model, and decodes nothing of it but the paths of `shape`.

    It raises Malformed, and Unreadable for what cannot be decoded.
    """
    return lambda document: model.parse(document.project(shape))


class KServeSpec(Model):
    """The version of KServe's API in which new services are written on a cluster."""

    api_version: Literal["v1alpha1", "v1alpha2"] = "v1alpha1"


class StackSpec(Model):
    """The part of a cluster's spec that says what turns replicas into pods there."""

    stack: Stack = STANDARD
    kserve: KServeSpec = KServeSpec.model_construct()

    @property
    def dialect(self) -> str:
        """The stack, and the version of its API where that says more: what a replica there may ask for."""
        newer = self.stack == KSERVE and self.kserve.api_version == "v1alpha2"
        return KSERVE_V1ALPHA2 if newer else self.stack


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
        """Tell whether both are of one type and have equal fields."""
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


MAX_COUNT, MAX_NODES = 1_000_000, 1_000_000_000
"""Bounds above any fleet, whose sums are still exact in the doubles that a protobuf Struct carries."""

Whole = Annotated[int, BeforeValidator(whole)]
Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_COUNT)]
Nodes = Annotated[int, BeforeValidator(lambda value: max(0, whole(value))), Field(le=MAX_NODES)]
"""A published node count: a negative one counts as 0, the rule of counting capacity."""
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

    @cached_property
    def name(self) -> str:
        """Its name, at hand: that of a cluster is read at every step."""
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


class MemoHolder(Named):
    """An object that what was found out about it lives with, and is forgotten with."""

    @cached_property
    def memos(self) -> dict[type, object]:
        """The memos by kind. They are no part of its value, and deployments that ask alike may share some."""
        return {}

    def memo_of(self, kind: type[C]) -> C:
        """The memo of a kind, made where there is none yet.

        Safe for many threads: at worst one of two memos that are made at once is forgotten.
        """
        memo = self.memos.get(kind)
        if memo is None:
            memo = self.memos[kind] = kind()
        return cast("C", memo)


def condition(conditions: tuple[ConditionStatus, ...], kind: str) -> bool | None:
    """Tell whether a condition is True, False, or (None) unknown: missing or Unknown.

    Listed twice, the worst of its statuses counts, so that the order of the list decides nothing.
    """
    statuses = {item.status for item in conditions if item.type == kind}
    if "False" in statuses:
        return False
    return True if statuses == {"True"} else None


# Read fields leniently: return what can be read, and note the first fault.
#
# For objects that must be charged whether or not every field of them can be read.

_CONTAINERS = frozenset({"expected a map", "expected a list", "expected a list of maps"})
ROLES = ("Standalone", "Leader", "Worker")


def mapping(value: object, *path: str) -> dict[str, Any]:
    """Return the map at a path below a value, empty where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[dict[str, Any]]:
    """Return the maps of a list, without entries that are none; empty for what is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def number(value: object, otherwise: int) -> int:
    """Return a whole number, `otherwise` for what is none (`model.whole`)."""
    try:
        return whole(value)
    except ValueError:
        return otherwise


def string(value: object) -> str:
    """Return a text, empty for what is none."""
    return value if isinstance(value, str) else ""


def condition_of(status: Mapping[str, Any], kind: str) -> tuple[bool | None, str]:
    """Return whether a condition of a status is True, False or (None) unknown, and its message.

    Listed twice, the worst of its statuses counts, as of parsed ones (`model.condition`). (None, "") where it
    is missing.
    """
    worst: tuple[bool | None, str] | None = None
    for entry in mappings(status.get("conditions")):
        if entry.get("type") != kind:
            continue
        row = {"True": True, "False": False}.get(string(entry.get("status"))), string(entry.get("message"))
        if row[0] is False:
            return row
        if worst is None or (row[0] is None and worst[0]):
            worst = row
    return worst or (None, "")


def plain_of(document: Document, shape: Shape | None = None) -> dict[str, Any]:
    """Return an object, cut down to a shape; empty where it cannot be decoded: doubt to its reader anyway."""
    try:
        return document.plain() if shape is None else document.project(shape)
    except Unreadable:
        return {}


@dataclass(slots=True)
class Reader:
    """Reads fields of plain values and notes the first that was not what it should be."""

    fault: str = ""
    """The first field that could not be read, and what was found there; empty while all could."""

    def _odd(self, key: str, expected: str, value: object) -> None:
        """Note the first fault; the value is shown only where it is a scalar."""
        if self.fault:
            return
        missing = value in (None, "", [])
        shown_value = shown_type(value) if expected in _CONTAINERS else shown(value)
        self.fault = str(
            Fault(key, "required, but missing or empty") if missing else Fault(key, expected, shown_value)
        )

    def text(self, holder: Mapping[str, Any], key: str) -> str:
        """A text; empty when it is not set."""
        value = holder.get(key)
        if value is None or isinstance(value, str):
            return value or ""
        self._odd(key, "expected a string", value)
        return ""

    def map(self, holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """A map; empty when it is not set."""
        value = holder.get(key)
        if value is None or isinstance(value, dict):
            return value or {}
        self._odd(key, "expected a map", value)
        return {}

    def maps(self, holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        """A list of maps; empty when it is not set, without the items that are none."""
        value = holder.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._odd(key, "expected a list", value)
            return []
        if all(isinstance(item, dict) for item in value):
            return value
        self._odd(key, "expected a list of maps", value)
        return [item for item in value if isinstance(item, dict)]

    def given(self, holder: Mapping[str, Any], key: str) -> str:
        """A text that must be there."""
        value = self.text(holder, key)
        if not value:
            self._odd(key, "expected a string", holder.get(key))
        return value

    def listed(self, holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        """A list that must not be empty."""
        value = self.maps(holder, key)
        if not value:
            self._odd(key, "expected a list of maps", holder.get(key))
        return value

    def role(self, holder: Mapping[str, Any]) -> str:
        """A member's role; Standalone is the default."""
        value = self.text(holder, "role") or ROLES[0]
        if value not in ROLES:
            self._odd("role", f"expected one of {', '.join(ROLES)}", value)
        return value

    def number(self, holder: Mapping[str, Any], key: str) -> int:
        """A count of at least 1, which is also the default."""
        value = holder.get(key)
        if value is None:
            return 1
        try:
            read = whole(value)
        except ValueError:
            read = 0
        if read < 1:
            self._odd(key, "expected a whole number of at least 1", value)
            return 1
        return read

    def ready(self, plain: Mapping[str, Any]) -> bool | None:
        """The condition Ready of an object; None when the object does not say."""
        conditions = tuple(
            ConditionStatus.model_construct(type="Ready", status=self.text(entry, "status"))
            for entry in self.maps(self.map(plain, "status"), "conditions")
            if entry.get("type") == "Ready"
        )
        return condition(conditions, "Ready")

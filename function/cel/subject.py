"""Subjects of selectors: a device, a cluster or a node pool, with its values converted once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias

from function.cel.library.quantity import Quantity, quantity, semver
from function.cel.values import EvaluationError, Map, Value, is_int64

ReadPath = tuple[str, ...]
Layout: TypeAlias = "Callable[[Mapping[ReadPath, Value]], dict[str, Value]]"
"""What puts the fields of a variable together from its values."""


class Subject:
    """One subject. Equal content makes equal subjects.

    `values` are every single value by its path, `content` the same values as they were given, hashable.
    `layout` puts values together to the variable's fields. `problem` is set when a value cannot be
    converted: then every evaluation is an error. `release` is the Kubernetes release that reads the
    selectors, where it is known.
    """

    __slots__ = ("_fields", "content", "digest", "key", "kind", "layout", "problem", "release", "values")

    def __init__(
        self,
        kind: str,
        layout: Layout,
        values: dict[ReadPath, Value],
        content: dict[ReadPath, Hashable],
        problem: str,
        release: str = "",
    ) -> None:
        self.kind = kind
        self.layout = layout
        self.values = values
        self._fields: dict[str, Value] | None = None
        self.content = content
        self.problem = problem
        self.release = release
        self.key = (kind, frozenset(content.items()), problem, release)
        self.digest = hash(self.key)

    def __hash__(self) -> int:
        return self.digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Subject) and self.key == other.key

    @property
    def fields(self) -> dict[str, Value]:
        """The variable's fields, put together for the first that reads a whole one: few selectors do."""
        if self._fields is None:
            self._fields = self.layout(self.values)
        return self._fields

    @property
    def whole(self) -> Map:
        """The variable itself: to whoever does not read a field of it, it is a map."""
        return Map.of(self.fields)

    def lacks(self, path: ReadPath) -> EvaluationError:
        """Return the error of reading what is not there, by its name."""
        words = {"attributes": "attribute", "labels": "label"}
        name = "/".join(path[1:])
        return EvaluationError(
            f"no such key: {path[-1]} (the {self.kind} has no {words.get(path[0], path[0])} {name})"
        )

    def read_by(self, release: str) -> Subject:
        """Return the same subject where another Kubernetes release reads the selectors."""
        return Subject(self.kind, self.layout, self.values, self.content, self.problem, release)

    def owned(self) -> Subject:
        """Return a copy for one evaluation whose quantities may change their form."""
        copy = Subject.__new__(Subject)
        copy.kind, copy.content, copy.problem = self.kind, self.content, self.problem
        copy.layout, copy._fields = self.layout, None
        copy.key, copy.digest, copy.release = self.key, self.digest, self.release
        copy.values = {path: v.copy() if type(v) is Quantity else v for path, v in self.values.items()}
        return copy


EMPTY = Map({})


def _domains(field: str, values: Mapping[ReadPath, Value]) -> Map:
    """Return domain to (id to value). An unknown domain is an empty map."""
    domains: dict[str, Map] = {}
    for path, value in values.items():
        if path[0] == field:
            _, domain, name = path
            published = domains.get(domain)
            if published is None:
                published = domains[domain] = Map({}, of_texts=True)
            published.entries[name] = (name, value)
    return Map.of(domains, EMPTY)


def bind_device(
    *,
    driver: str,
    attributes: Mapping[str, Any],
    capacity: Mapping[str, Any],
    allow_multiple: bool = False,
) -> Subject:
    """Return a device as selectors see it. A bare name belongs to the driver's domain. Never raises."""
    binder = _Binder()
    binder.put(("driver",), driver)
    binder.put(("allowMultipleAllocations",), allow_multiple)
    for name, attribute in sorted(attributes.items()):
        binder.attribute(("attributes", *_qualified(name, driver)), name, attribute)
    for name, amount in sorted(capacity.items()):
        binder.capacity(("capacity", *_qualified(name, driver)), name, amount)
    return binder.subject("device", _device_fields)


def _device_fields(values: Mapping[ReadPath, Value]) -> dict[str, Value]:
    return {
        **_single("driver", "allowMultipleAllocations", values=values),
        "attributes": _domains("attributes", values),
        "capacity": _domains("capacity", values),
    }


def bind_cluster(*, name: str, labels: Mapping[str, Any], attributes: Mapping[str, Any]) -> Subject:
    """Return a cluster as selectors see it. Never raises."""
    binder = _Binder()
    binder.put(("name",), name)
    for key, value in sorted(labels.items()):
        binder.put(("labels", key), str(value))
    binder.attributes(attributes)
    return binder.subject("cluster", _cluster_fields)


def _cluster_fields(values: Mapping[ReadPath, Value]) -> dict[str, Value]:
    return {
        **_single("name", values=values),
        "labels": _below("labels", values),
        "attributes": _below("attributes", values),
    }


def bind_node(*, name: str, class_name: str, attributes: Mapping[str, Any]) -> Subject:
    """Return a node pool as selectors see it. Never raises."""
    binder = _Binder()
    binder.put(("name",), name)
    binder.put(("className",), class_name)
    binder.attributes(attributes)
    return binder.subject("node", _node_fields)


def _node_fields(values: Mapping[ReadPath, Value]) -> dict[str, Value]:
    return {**_single("name", "className", values=values), "attributes": _below("attributes", values)}


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _single(*fields: str, values: Mapping[ReadPath, Value]) -> dict[str, Value]:
    """Return the fields that are one value each."""
    return {field: values[(field,)] for field in fields}


def _below(field: str, values: Mapping[ReadPath, Value]) -> Map:
    """Return name to value."""
    return Map.of({path[1]: value for path, value in values.items() if path[0] == field})


SCALARS: Mapping[str, type] = {"int": int, "bool": bool, "string": str, "version": str}
LISTS: Mapping[str, str] = {"ints": "int", "bools": "bool", "strings": "string", "versions": "version"}
_KINDS = (*LISTS, *SCALARS)


class _Binder:
    """Collects the values of one subject."""

    def __init__(self) -> None:
        self.values: dict[ReadPath, Value] = {}
        self.content: dict[ReadPath, Hashable] = {}
        self.problem = ""

    def put(self, path: ReadPath, value: Value) -> None:
        self.values[path] = value
        self.content[path] = value

    def subject(self, kind: str, layout: Layout) -> Subject:
        return Subject(kind, layout, self.values, self.content, self.problem)

    def attributes(self, attributes: Mapping[str, Any]) -> None:
        for name, attribute in sorted(attributes.items()):
            self.attribute(("attributes", name), name, attribute)

    def attribute(self, path: ReadPath, name: str, attribute: Any) -> None:
        try:
            kind, given = _given(attribute)
            self.values[path] = _converted(kind, given)
            self.content[path] = (kind, tuple(given) if isinstance(given, list) else given)
        except (EvaluationError, TypeError) as error:
            self.fails(f"attribute {name}: {error}")

    def capacity(self, path: ReadPath, name: str, amount: Any) -> None:
        value = amount.get("value") if isinstance(amount, dict) else amount
        try:
            text = value if isinstance(value, str) else _number(value)
            self.values[path] = quantity(text)
            self.content[path] = text
        except EvaluationError as error:
            self.fails(f"capacity {name}: {error}")

    def fails(self, problem: str) -> None:
        self.problem = self.problem or problem


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise EvaluationError(f"unsupported value {value!r}")
    return str(value)


def _given(attribute: Any) -> tuple[str, Any]:
    """Return the kind of an attribute and its value in the API's form."""
    if isinstance(attribute, dict):
        for kind in _KINDS if len(attribute) > 1 else attribute:
            if kind in _KINDS and attribute.get(kind) is not None:
                return kind, attribute[kind]
        nested = attribute.get("list")
        if isinstance(nested, dict):
            kind, given = _given(nested)
            if isinstance(given, list):
                return (kind if kind in LISTS else f"{kind}s"), given
    raise EvaluationError("unsupported attribute value")


def _converted(kind: str, given: Any) -> Value:
    if kind not in LISTS:
        return _scalar(kind, given)
    if not isinstance(given, list):
        raise EvaluationError(f"unsupported attribute value: {kind} is not a list")
    return [_scalar(LISTS[kind], value) for value in given]


def _scalar(kind: str, value: Any) -> Value:
    if kind == "int" and type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not SCALARS[kind]:
        raise EvaluationError(f"unsupported attribute value: {value!r} is not a {kind}")
    if kind == "version":
        return semver(value)
    if isinstance(value, int) and not is_int64(value):
        raise EvaluationError(f"unsupported attribute value: {value} does not fit in 64 bits")
    return value

"""Subjects of selectors: a device, a cluster or a node pool, with its values converted once.

A fleet has thousands of devices and a call evaluates each selector on many of them. So the conversion from
what the API publishes to values that a selector reads happens once for each content, and the result is
shared.

A subject has its values twice over, by path (`("attributes", "gpu.nvidia.com", "architecture")`):

- `values` are what closures read. Most selectors read single values by a path that is written out, which is
  one look-up (`evaluator/calls.path_code`); the maps of a whole variable are put together only where a
  selector asks for one (`fields`);
- `content` is what the API said, hashable: by it two subjects are told apart, and what a selector reads of it
  decides its outcome (`checker/references.Projection`).

The rules of conversion are the allocator's (`dynamic-resource-allocation/cel/compile.go`): a name is split at
its first slash, a bare name belongs to the driver's domain (`parseQualifiedName`), and one value that cannot
be converted makes every selector on that device an error, even `true` (`DeviceMatches`). A subject keeps that
as its `problem` instead of raising it, because one device must not hide the others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from function.cel.library.quantity import Quantity, quantity, semver
from function.cel.values import EvaluationError, Map, Value, is_int64

ReadPath = tuple[str, ...]


class Subject:
    """One subject. Equal content makes equal subjects.

    `values` are every single value by its path, `content` the same values as they were given, hashable.
    `problem` is set when a value cannot be converted: then every evaluation is an error. `release` is the
    Kubernetes release that reads the selectors, where it is known.
    """

    __slots__ = ("_fields", "content", "digest", "key", "kind", "problem", "release", "values")

    def __init__(
        self,
        kind: str,
        values: dict[ReadPath, Value],
        content: dict[ReadPath, Hashable],
        problem: str,
        release: str = "",
    ) -> None:
        """Take the values, and a key that tells two subjects apart.

        `problem` says why every selector fails on it; `release` is the one of its cluster, "" for any.
        """
        self.kind = kind
        self.values = values
        self._fields: dict[str, Value] | None = None
        self.content = content
        self.problem = problem
        self.release = release
        self.key = (kind, frozenset(content.items()), problem, release)
        self.digest = hash(self.key)

    def __hash__(self) -> int:
        """Return what was computed once: a subject is looked up at every evaluation."""
        return self.digest

    def __eq__(self, other: object) -> bool:
        """Tell whether the API said the same of both, for the same release."""
        return isinstance(other, Subject) and self.key == other.key

    @property
    def fields(self) -> dict[str, Value]:
        """The variable's fields, put together for the first that reads a whole one: few selectors do."""
        if self._fields is None:
            rules = LAYOUTS[self.kind].items()
            self._fields = {field: put_together(field, self.values) for field, put_together in rules}
        return self._fields

    def lacks(self, path: ReadPath) -> EvaluationError:
        """Return the error of reading what is not there, by its name."""
        words = {"attributes": "attribute", "labels": "label"}
        name = "/".join(path[1:])
        return EvaluationError(
            f"no such key: {path[-1]} (the {self.kind} has no {words.get(path[0], path[0])} {name})"
        )

    def read_by(self, release: str) -> Subject:
        """Return the same subject where another Kubernetes release reads the selectors."""
        return Subject(self.kind, self.values, self.content, self.problem, release)

    def owned(self) -> Subject:
        """Return a copy for one evaluation whose quantities may change their form (`library/quantity`)."""
        copy = Subject.__new__(Subject)
        copy.kind, copy.content, copy.problem = self.kind, self.content, self.problem
        copy.key, copy.digest, copy.release, copy._fields = self.key, self.digest, self.release, None
        copy.values = {path: v.copy() if type(v) is Quantity else v for path, v in self.values.items()}
        return copy


EMPTY = Map({})


def _single(field: str, values: Mapping[ReadPath, Value]) -> Value:
    """Return the one value of a field."""
    return values[(field,)]


def _below(field: str, values: Mapping[ReadPath, Value]) -> Map:
    """Return name to value."""
    return Map.of({path[1]: value for path, value in values.items() if path[0] == field})


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


LAYOUTS: Mapping[str, Mapping[str, Callable[[str, Mapping[ReadPath, Value]], Value]]] = {
    "device": {
        "driver": _single,
        "allowMultipleAllocations": _single,
        "attributes": _domains,
        "capacity": _domains,
    },
    "cluster": {"name": _single, "labels": _below, "attributes": _below},
    "node": {"name": _single, "className": _single, "attributes": _below},
    "both": {"self": _single, "oldSelf": _single},
}
"""The fields of each variable, with the rule that puts one together from the values.

`both` is that of the rules of a schema (`cli.admission.structural`), bound there."""


def bind_device(
    *,
    driver: str,
    attributes: Mapping[str, Any],
    capacity: Mapping[str, Any],
    allow_multiple: bool = False,
) -> Subject:
    """Return a device as selectors see it. A bare name belongs to the driver's domain. Never raises.

    Names are bound in order, so that of several values that cannot be converted the same one is reported.
    """
    binder = _Binder()
    binder.put(("driver",), driver)
    binder.put(("allowMultipleAllocations",), allow_multiple)
    for name, attribute in sorted(attributes.items()):
        binder.attribute(("attributes", *_qualified(name, driver)), name, attribute)
    for name, amount in sorted(capacity.items()):
        binder.capacity(("capacity", *_qualified(name, driver)), name, amount)
    return binder.subject("device")


def bind_cluster(*, name: str, labels: Mapping[str, Any], attributes: Mapping[str, Any]) -> Subject:
    """Return a cluster as selectors see it. Never raises.

    Its attributes are keyed by their full name in one map; only a device's are split into domains.
    """
    binder = _Binder()
    binder.put(("name",), name)
    for key, value in sorted(labels.items()):
        binder.put(("labels", key), str(value))
    binder.attributes(attributes)
    return binder.subject("cluster")


def bind_node(*, name: str, class_name: str, attributes: Mapping[str, Any]) -> Subject:
    """Return a node pool as selectors see it. Never raises."""
    binder = _Binder()
    binder.put(("name",), name)
    binder.put(("className",), class_name)
    binder.attributes(attributes)
    return binder.subject("node")


def _qualified(name: str, driver: str) -> tuple[str, str]:
    """Return domain and name; a name without a domain is in the domain of its driver (cel.md)."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


SCALARS: Mapping[str, type] = {"int": int, "bool": bool, "string": str, "version": str}
LISTS: Mapping[str, str] = {"ints": "int", "bools": "bool", "strings": "string", "versions": "version"}
_KINDS = (*LISTS, *SCALARS)


class _Binder:
    """Collects the values of one subject. The first value that cannot be converted is the one it reports."""

    def __init__(self) -> None:
        """Start with nothing. The first problem that comes up is kept."""
        self.values: dict[ReadPath, Value] = {}
        self.content: dict[ReadPath, Hashable] = {}
        self.problem = ""

    def put(self, path: ReadPath, value: Value) -> None:
        """Put a value that is hashable as it is."""
        self.values[path] = value
        self.content[path] = value

    def subject(self, kind: str) -> Subject:
        """Return what was put together."""
        return Subject(kind, self.values, self.content, self.problem)

    def attributes(self, attributes: Mapping[str, Any]) -> None:
        """Put attributes in the order of their names, so that the first problem is always the same."""
        for name, attribute in sorted(attributes.items()):
            self.attribute(("attributes", name), name, attribute)

    def attribute(self, path: ReadPath, name: str, attribute: Any) -> None:
        """Put one typed attribute; one that cannot be converted is a problem of the whole subject."""
        try:
            kind, given = _given(attribute)
            self.values[path] = _converted(kind, given)
            self.content[path] = (kind, tuple(given) if isinstance(given, list) else given)
        except (EvaluationError, TypeError) as error:
            self.problem = self.problem or f"attribute {name}: {error}"

    def capacity(self, path: ReadPath, name: str, amount: Any) -> None:
        """Put one capacity as a Quantity; one that is none is a problem of the whole subject."""
        value = amount.get("value") if isinstance(amount, dict) else amount
        # A quantity may be written as a number in YAML; the API server makes a text of it.
        if not isinstance(value, str | int) or isinstance(value, bool):
            self.problem = self.problem or f"capacity {name}: unsupported value {value!r}"
            return
        try:
            self.values[path] = quantity(str(value))
            self.content[path] = str(value)
        except EvaluationError as error:
            self.problem = self.problem or f"capacity {name}: {error}"


def _given(attribute: Any) -> tuple[str, Any]:
    """Return the kind of an attribute and its value in the API's form.

    One field of an attribute is set (`{"string": "Hopper"}`); where several are, the allocator takes the
    first in its own order (`getAttributeValue`), lists before single values. A list may be nested under
    `list`.
    """
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
    """Return a list of scalars for the plural types, a scalar for the others."""
    if kind not in LISTS:
        return _scalar(kind, given)
    if not isinstance(given, list):
        raise EvaluationError(f"unsupported attribute value: {kind} is not a list")
    return [_scalar(LISTS[kind], value) for value in given]


def _scalar(kind: str, value: Any) -> Value:
    """Convert one value. JSON has no integers, so a double that holds one is one."""
    if kind == "int" and type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not SCALARS[kind]:
        raise EvaluationError(f"unsupported attribute value: {value!r} is not a {kind}")
    if kind == "version":
        return semver(value)
    if isinstance(value, int) and not is_int64(value):
        raise EvaluationError(f"unsupported attribute value: {value} does not fit in 64 bits")
    return value

"""A structural schema, compiled once, and a value held against it as the API server does.

What is checked: types, enums, patterns, bounds, required fields, keys of list maps and sets, fields that
are not declared, and the CEL rules. Nulls in a map are pruned before anything else, so null means not set.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from function.api.fault import shown, shown_type
from function.cel.checker.state import Environment, VariableField
from function.cel.selector import Outcome, Selector, compiled
from function.cel.subject import Subject
from function.cel.syntax import nodes
from function.cel.syntax.nodes import Type
from function.cel.values import Map
from function.cli.admission.finding import REQUIRED, RULE, UNKNOWN_FIELD, FieldPath, Finding
from function.cli.bad_input import closest, nearest
from function.recording.allowed import STRIPPED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import JsonObject
    from function.cel.subject import ReadPath
    from function.cel.values import Value


# `x-kubernetes-validations`, evaluated by our own CEL: `self` and `oldSelf` in place of `device`.

FIELDS = {name: VariableField(nodes.DYN, "value") for name in ("self", "oldSelf")}
BOTH = Environment("both", Type("schema.Both"), FIELDS)
"""One variable of an unknown type that holds the two: the dialect has one variable only."""


def holds(rule: str, value: Any, old: Any = None) -> bool:
    """Tell if the rule is true of the value. One that has no value does not hold, as for the API server."""
    return outcome(rule, value, old).matched


def outcome(rule: str, value: Any, old: Any = None) -> Outcome:
    """Evaluate a rule on a value, and on the one that it replaces."""
    values: dict[ReadPath, Value] = {("self",): _value(value), ("oldSelf",): _value(old)}
    return _program(rule).evaluate(Subject("both", _fields, values, {}, ""))


def _fields(values: Mapping[ReadPath, Value]) -> dict[str, Value]:
    return {path[0]: value for path, value in values.items()}


@lru_cache
def _program(rule: str) -> Selector:
    return compiled(re.sub(r"\b(self|oldSelf)\b", r"both.\1", rule), BOTH)


def _value(plain: Any) -> Any:
    if isinstance(plain, dict):
        return Map.of({key: _value(value) for key, value in plain.items() if value is not None})
    return [_value(item) for item in plain] if isinstance(plain, list) else plain


KEYWORDS = frozenset(
    {"type", "description", "default", "format", "properties", "additionalProperties", "items", "required"}
    | {"enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"}
    | {"minProperties", "maxProperties", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"}
    | {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "x-kubernetes-validations"}
)
"""Every keyword that is understood; a test holds the shipped schemas against it."""

EXPECTED = {
    "object": "expected a map",
    "array": "expected a list",
    "string": "expected a string",
    "integer": "expected a whole number",
    "number": "expected a number",
    "boolean": "expected true or false",
}
INT_OR_STRING = "expected a whole number or a string"
MOST_PLACES = 2
"""In how many places a field may be declared for a message to name them."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of x-kubernetes-validations."""

    source: str
    message: str


@dataclass(frozen=True, slots=True)
class Schema:
    """One level of a structural schema."""

    type: str = ""
    properties: Mapping[str, Schema] = field(default_factory=dict)
    values: Schema | None = None
    """The schema of every value of a map with free keys."""
    items: Schema | None = None
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    pattern: re.Pattern[str] | None = None
    bounds: tuple[tuple[str, int | float], ...] = ()
    list_keys: tuple[str, ...] | None = None
    """The fields that tell the items of a list map apart; empty for a set, None for an atomic list."""
    rules: tuple[Rule, ...] = ()
    open: bool = False
    """Whether fields that are not declared are kept."""
    int_or_string: bool = False


def compiled_schema(plain: JsonObject) -> Schema:
    """Compile a schema as it is written in an XRD or a CRD."""
    values, items = plain.get("additionalProperties"), plain.get("items")
    pattern = plain.get("pattern")
    return Schema(
        type=plain.get("type", ""),
        properties={name: compiled_schema(child) for name, child in plain.get("properties", {}).items()},
        values=compiled_schema(values) if isinstance(values, dict) else None,
        items=compiled_schema(items) if isinstance(items, dict) else None,
        required=tuple(plain.get("required", ())),
        enum=tuple(plain.get("enum", ())),
        pattern=_regular(pattern) if pattern else None,
        bounds=tuple((keyword, plain[keyword]) for keyword in _BOUNDS if keyword in plain),
        list_keys=_list_keys(plain),
        rules=tuple(
            Rule(rule["rule"], rule.get("message", f"failed rule: {rule['rule']}"))
            for rule in plain.get("x-kubernetes-validations", ())
        ),
        open=bool(plain.get("x-kubernetes-preserve-unknown-fields")),
        int_or_string=bool(plain.get("x-kubernetes-int-or-string")),
    )


def _regular(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of Go: its `$` does not match before a last line end."""
    return re.compile(rf"{pattern[:-1]}\Z" if pattern.endswith("$") else pattern)


def _list_keys(plain: JsonObject) -> tuple[str, ...] | None:
    kind = plain.get("x-kubernetes-list-type")
    return tuple(plain.get("x-kubernetes-list-map-keys", ())) if kind in ("map", "set") else None


_BOUNDS: Mapping[str, str] = {
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} keys",
    "maxProperties": "must have at most {} keys",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
}
"""How each bound is said."""


class Check:
    """One object held against the schema of its kind; what is wrong is collected in `findings`."""

    def __init__(self, root: Schema) -> None:
        """Take the schema of the whole object: what is unknown in one place may be known in another."""
        self.findings: list[Finding] = []
        self._root = root

    def value(self, schema: Schema, value: Any, path: FieldPath) -> None:
        """Hold a value against a schema, and everything below it."""
        if value == STRIPPED or (isinstance(value, dict) and STRIPPED in value):
            return  # A snapshot's stand-in for what is not read: nothing is known of the original.
        if not _is_of(schema, value):
            message = INT_OR_STRING if schema.int_or_string else EXPECTED[schema.type]
            shown_value = shown_type(value) if schema.type in ("object", "array") else shown(value)
            self.findings.append(Finding(path, message, shown_value))
            return
        before = len(self.findings)
        if isinstance(value, dict):
            self._map(schema, value, path)
        elif isinstance(value, list):
            self._list(schema, value, path)
        self._scalar(schema, value, path)
        if schema.rules and len(self.findings) == before:
            self._rules(schema, value, path)

    def _map(self, schema: Schema, value: JsonObject, path: FieldPath) -> None:
        explained: set[str] = set()
        for key, child in value.items():
            below = schema.properties.get(key) or schema.values
            if below is None:
                if not schema.open:
                    explained |= self._unknown(schema, key, value, path)
            elif child is not None:
                self.value(below, child, (*path, key))
        for name in schema.required:
            if value.get(name) is None and name not in explained:
                self.findings.append(Finding((*path, name), REQUIRED))

    def _list(self, schema: Schema, value: list[Any], path: FieldPath) -> None:
        if schema.items is not None:
            for index, item in enumerate(value):
                self.value(schema.items, item, (*path, index))
        if schema.list_keys is not None:
            self._duplicates(schema.list_keys, value, path)

    def _duplicates(self, keys: tuple[str, ...], value: list[Any], path: FieldPath) -> None:
        keys_before = set()
        for index, item in enumerate(value):
            plain = item if isinstance(item, dict) else {}
            values = [plain.get(key) for key in keys] if keys else [item]
            identity = repr(values)
            if identity in keys_before and values != [None]:
                key_text = " and ".join(
                    f"{key} {shown(part)}" for key, part in zip(keys or ("item",), values, strict=True)
                )
                self.findings.append(Finding((*path, index), f"duplicate {key_text}"))
            keys_before.add(identity)

    def _scalar(self, schema: Schema, value: Any, path: FieldPath) -> None:
        if schema.enum and value not in schema.enum:
            expected = _or([repr(choice) for choice in schema.enum])
            near = nearest(str(value), map(str, schema.enum), most=1)
            hint = f"did you mean {near[0]}?" if near else ""
            self.findings.append(Finding(path, f"expected {expected}", shown(value), hint))
        for keyword, limit in schema.bounds:
            if (message := _bound(keyword, limit, value)) is not None:
                shown_value = shown(value) if isinstance(value, str | int | float) and value != "" else ""
                self.findings.append(Finding(path, message, shown_value))
        if schema.pattern is not None and isinstance(value, str) and not schema.pattern.search(value):
            self._pattern(schema.pattern, value, path)

    def _pattern(self, pattern: re.Pattern[str], value: str, path: FieldPath) -> None:
        mended = re.sub(r"[^a-z0-9.-]+", "-", value.lower()).strip("-.")
        hint = f"did you mean {mended}?" if mended and pattern.search(mended) else ""
        written = pattern.pattern.replace(r"\Z", "$")
        self.findings.append(Finding(path, f"must match {written}", shown(value), hint))

    def _rules(self, schema: Schema, value: Any, path: FieldPath) -> None:

        for rule in schema.rules:
            if "oldSelf" not in rule.source and not holds(rule.source, value):
                self.findings.append(Finding(path, rule.message, code=RULE))

    def _unknown(self, schema: Schema, key: str, holder: JsonObject, path: FieldPath) -> set[str]:
        """Refuse a key; where it was probably meant for a required field that is missing, return that."""
        near = nearest(key, schema.properties, most=1)
        required = {name for name in near if name in schema.required and holder.get(name) is None}
        missing = (*path, *required) if required else ()
        hint = self._guess(schema, key, holder[key])
        self.findings.append(
            Finding((*path, key), "unknown field", hint=hint, code=UNKNOWN_FIELD, missing=missing)
        )
        return required

    def _guess(self, schema: Schema, key: str, value: Any) -> str:
        """Guess the meant key: another spelling, a map's entry beside it, another place."""
        if key in ELSEWHERE:
            return ELSEWHERE[key]
        if nearest(key, schema.properties):
            return closest(key, schema.properties)
        maps = [name for name, child in schema.properties.items() if child.values is not None]
        if len(maps) == 1 and isinstance(value, str) and schema.properties[maps[0]].values is not None:
            return f"did you mean {maps[0]}: {{{key}: {value}}}?"
        locations = list(places_of(self._root, key))
        if 0 < len(locations) <= MOST_PLACES:
            return f"it belongs to {_or(locations)}"
        return closest(key, schema.properties)


ELSEWHERE: Mapping[str, str] = {
    "deviceClassName": "leave it out: the InferenceClass has it, and a claim takes that of its device",
    "allocationMode": "leave it out: a request is for exactly `count` devices",
    "exactly": "write count and selectors beside the name",
    "resources": "leave it out: devices are asked for in nodeSelector.devices",
}
"""Fields of a ResourceClaim or a pod that need no counterpart here, and why."""


def places_of(schema: Schema, key: str, path: str = "") -> list[str]:
    """Return the paths of everything in a schema that declares a field of that name."""
    here = [path] if key in schema.properties and path else []
    for name, child in schema.properties.items():
        if name != "status":
            here += places_of(child, key, f"{path}.{name}" if path else name)
    if schema.items is not None:
        here += places_of(schema.items, key, f"{path}[]")
    return here


_TYPES: Mapping[str, tuple[type, ...]] = {
    "": (object,),
    "string": (str,),
    "object": (dict,),
    "array": (list,),
    "boolean": (bool,),
}


def _is_of(schema: Schema, value: Any) -> bool:
    if schema.int_or_string:
        return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))
    expected = _TYPES.get(schema.type)
    if expected is not None:
        return isinstance(value, expected)
    return _is_number(value) and (schema.type == "number" or value == value // 1)


def _is_number(value: Any) -> bool:
    """Tell whether it is a number that JSON has: not true, not NaN, not infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def _bound(keyword: str, limit: float, value: Any) -> str | None:
    """Return the violation of a bound; None where the bound is kept or does not apply."""
    if keyword in ("minimum", "maximum"):
        size = value if _is_number(value) else None
    else:
        measured = str if "Length" in keyword else list if "Items" in keyword else dict
        pruned = [item for item in value.values() if item is not None] if isinstance(value, dict) else value
        size = len(pruned) if isinstance(value, measured) else None
    if size is None or (size >= limit if keyword.startswith("min") else size <= limit):
        return None
    empty = size == 0 and limit == 1 and keyword != "minimum"
    return "must not be empty" if empty else _BOUNDS[keyword].format(limit)


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"

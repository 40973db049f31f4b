"""Check an object against its structural schema, compiled once, and its metadata, as the API server does.

What is checked: types, enums, patterns, bounds, required fields, keys of list maps and sets, fields that
are not declared, and the CEL rules. Nulls in a map are pruned before anything else, so null means not set.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema

What is not: defaulting, `oldSelf` rules (there is no object before this one), and the cost of rules. Rules
run on our own CEL, in which `self` is a field of one variable, since the dialect of selectors has one.

A person who checks files wants every mistake at once and a guess at what was meant, where the API server
stops at the first level that is wrong. So nothing here raises: each fault is a `Finding`, with a hint where
another spelling, another place or another kind of value would be right.

    compiled_schema (once a kind) ▶ Check.value (types, then fields, then bounds, then rules) ▶ findings
    check_metadata ▶ names, labels and annotations, which no schema of a kind describes

Fleets repeat themselves: an item of a list that was found without fault is recognised by its bytes.
"""

from __future__ import annotations

import json
import marshal
import re
from dataclasses import field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from function.api.fault import shown, shown_type
from function.api.names import DNS_LABEL, DNS_SUBDOMAIN
from function.api.text import STRIPPED, full_version
from function.boundary import frozen
from function.cel.checker.state import Environment, VariableField
from function.cel.selector import Outcome, Selector, compiled
from function.cel.subject import ReadPath, Subject
from function.cel.syntax import nodes
from function.cel.syntax.nodes import Type
from function.cel.values import Map, Value
from function.cli.admission import REQUIRED, RULE, UNKNOWN_FIELD, FieldPath, Finding
from function.cli.bad_input import closest, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.boundary import JsonObject


# `x-kubernetes-validations`, evaluated by our own CEL: `self` and `oldSelf` in place of `device`.

FIELDS = {name: VariableField(nodes.DYN, "value") for name in ("self", "oldSelf")}
BOTH = Environment("both", Type("schema.Both"), FIELDS)
"""One variable of an unknown type that holds the two: the dialect has one variable only."""


def outcome(rule: str, value: Any, old: Any = None) -> Outcome:
    """Evaluate a rule on a value, and on the one that it replaces.

    A rule that errs has no value, and `matched` is False: the API server refuses such an object too.
    """
    values: dict[ReadPath, Value] = {("self",): _value(value), ("oldSelf",): _value(old)}
    return _program(rule).evaluate(Subject("both", values, {}, ""))


@lru_cache
def _program(rule: str) -> Selector:
    """Compile a rule, once for all objects: `self` becomes a field of that variable."""
    return compiled(re.sub(r"\b(self|oldSelf)\b", r"both.\1", rule), BOTH)


_UNLESS_SET = re.compile(r"!has\(self\.(\w+)\) \|\| [^?]*")
"""A rule about a field that may be left out. `||` binds the least of all but `? :`."""


def holds_unset(rule: str, value: Any) -> bool:
    """Tell at a glance that a rule holds: a field is not set, or there would have to be an object before.

    Most rules are about a field that most objects leave out, and a small plan waits for each to be compiled.
    """
    unless = _UNLESS_SET.fullmatch(rule)
    return "oldSelf" in rule or (
        unless is not None and isinstance(value, dict) and value.get(unless[1]) is None
    )


def _value(plain: Any) -> Any:
    """Turn a plain value into one of CEL.

    A null in a map is left out, as the API server prunes it before its rules run.
    """
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


@frozen
class Rule:
    """One entry of x-kubernetes-validations."""

    source: str
    message: str


@frozen(slots=False)
class Schema:
    """One level of a structural schema.

    The level below is compiled once it is looked at: an object has a tenth of the fields of its kind.
    """

    type: str = ""
    below: JsonObject = field(default_factory=dict)
    """The fields of a map by name, as they are written."""
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
    """Fields that are not declared are kept."""
    int_or_string: bool = False
    expected: str = ""
    """The words for a value of another type, or of none of the choices."""
    without_limits: bool = False
    """A value of the type has no fault: nothing is asked of a text, or of what a map holds."""
    faultless: set[bytes] = field(default_factory=set, compare=False, repr=False)
    """Items of lists that nothing was wrong with: replicas of a deployment have equal engines, nodes equal
    devices. It spares nine tenths of the walk over a large fleet."""

    @cached_property
    def properties(self) -> Mapping[str, Schema]:
        """The fields of a map by name."""
        return {name: compiled_schema(child) for name, child in self.below.items()}


def compiled_schema(plain: JsonObject) -> Schema:
    """Compile a schema as it is written in an XRD or a CRD.

    Done once for a kind. What an object is held against at every level is then at hand: patterns are
    compiled, bounds have their order, and the words for a value of another type are put together.
    """
    values, items = plain.get("additionalProperties"), plain.get("items")
    pattern = plain.get("pattern")
    if pattern and pattern.endswith("$"):  # That of Go does not match before a last line end.
        pattern = rf"{pattern[:-1]}\Z"
    keyed = plain.get("x-kubernetes-list-type") in ("map", "set")
    either = bool(plain.get("x-kubernetes-int-or-string"))
    bounds = {**(INT64 if either or plain.get("type") == "integer" else {}), **plain}
    is_open = plain.get("type") == "object" and plain.get("x-kubernetes-preserve-unknown-fields")
    choices = tuple(plain.get("enum", ()))
    expected = INT_OR_STRING if either else EXPECTED.get(plain.get("type", ""), "")
    return Schema(
        type=plain.get("type", ""),
        below=plain.get("properties", {}),
        values=compiled_schema(values) if isinstance(values, dict) else None,
        items=compiled_schema(items) if isinstance(items, dict) else None,
        required=tuple(plain.get("required", ())),
        enum=choices,
        pattern=re.compile(pattern) if pattern else None,
        bounds=tuple((keyword, bounds[keyword]) for keyword in _BOUNDS if keyword in bounds),
        list_keys=tuple(plain.get("x-kubernetes-list-map-keys", ())) if keyed else None,
        rules=tuple(
            Rule(rule["rule"], rule.get("message", f"failed rule: {rule['rule']}"))
            for rule in plain.get("x-kubernetes-validations", ())
        ),
        open=bool(plain.get("x-kubernetes-preserve-unknown-fields")),
        without_limits=bool(is_open or plain.get("type") == "string") and not (plain.keys() & _LIMITS),
        int_or_string=either,
        expected=f"expected {_or(list(map(repr, choices)))}" if choices else expected,
    )


_LIMITS = KEYWORDS - {"type", "description", "default", "format", "x-kubernetes-preserve-unknown-fields"}
"""What may be wrong with a value of the right type."""

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
INT64: Mapping[str, int] = {"minimum": -(2**63), "maximum": 2**63 - 1}
"""The bounds of a whole number: beyond them, the API server reads no integer."""


ONE_FORM = 2
"""The format of marshal that writes equal values alike, and values of different types differently."""
MOST_FAULTLESS = 20_000
"""Items that a schema remembers: a few megabytes."""


class Check:
    """One object held against the schema of its kind; what is wrong is collected in `findings`."""

    def __init__(self, root: Schema) -> None:
        """Take the schema of the whole object: what is unknown in one place may be known in another."""
        self.findings: list[Finding] = []
        self._root = root

    def value(self, schema: Schema, value: Any, path: FieldPath) -> None:
        """Hold a value against a schema, and everything below it.

        Rules come last, and only where nothing else is wrong at or below this level. They are written for a
        value that keeps its schema, and would err on another.
        """
        if value == STRIPPED or (isinstance(value, dict) and STRIPPED in value):
            return  # A snapshot's stand-in for what is not read: nothing is known of the original.
        if not _is_of(schema, value):
            shown_value = shown_type(value) if schema.type in ("object", "array") else shown(value)
            self.findings.append(Finding(path, schema.expected, shown_value, _meant(schema, value)))
            return
        before = len(self.findings)
        if isinstance(value, dict):
            self._map(schema, value, path)
        elif isinstance(value, list):
            self._list(schema, value, path)
        self._scalar(schema, value, path)
        if len(self.findings) == before:  # A rule may count on what the schema says.
            for rule in schema.rules:
                if not (holds_unset(rule.source, value) or outcome(rule.source, value).matched):
                    self.findings.append(Finding(path, rule.message, code=RULE))

    def _map(self, schema: Schema, value: JsonObject, path: FieldPath) -> None:
        """Check every key of a map, then the fields that must be there.

        A required field that an unknown key was probably meant for is not reported a second time.
        """
        explained: set[str] = set()
        for key, child in value.items():
            below = schema.properties.get(key) or schema.values
            if below is None:
                if not schema.open:
                    explained |= self._unknown(schema, key, value, path)
            elif child is not None and not (below.without_limits and type(child) is _TYPES[below.type][0]):
                self.value(below, child, (*path, key))
        for name in schema.required:
            if value.get(name) is None and name not in explained:
                self.findings.append(Finding((*path, name), REQUIRED))

    def _list(self, schema: Schema, value: list[Any], path: FieldPath) -> None:
        """Check every item of a list, then that no two have the same keys.

        Items that were seen without fault are recognised by their bytes, and are not walked through again.
        """
        items = schema.items
        for index, item in enumerate(value if items is not None else ()):
            identity = marshal.dumps(item, ONE_FORM) if isinstance(item, dict) else None
            if items is None or identity in items.faultless:
                continue
            before = len(self.findings)
            self.value(items, item, (*path, index))
            is_faultless = len(self.findings) == before and len(items.faultless) < MOST_FAULTLESS
            if identity is not None and is_faultless:
                items.faultless.add(identity)
        if schema.list_keys is not None:
            self._duplicates(schema.list_keys, value, path)

    def _duplicates(self, keys: tuple[str, ...], value: list[Any], path: FieldPath) -> None:
        """Refuse a second item with the same keys; a server-side apply could not tell the two apart."""
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
        """Hold a value against its choices, its bounds and its pattern.

        A hint is given only where another spelling would be accepted: a near choice, or the name mended.
        """
        if schema.enum and value not in schema.enum:
            near = nearest(str(value), map(str, schema.enum), most=1)
            hint = f"did you mean {near[0]}?" if near else ""
            self.findings.append(Finding(path, schema.expected, shown(value), hint))
        for keyword, limit in schema.bounds:
            if (message := _bound(keyword, limit, value)) is not None:
                shown_value = shown(value) if isinstance(value, str | int | float) and value != "" else ""
                self.findings.append(Finding(path, message, shown_value))
        pattern = schema.pattern
        if pattern is not None and isinstance(value, str) and not pattern.search(value):
            written = pattern.pattern.replace(r"\Z", "$")
            name = re.sub(r"[^a-z0-9.-]+", "-", value.lower()).strip("-.")
            text, mended = _in_words(pattern, value) or (f"must match {written}", name)
            hint = f"did you mean {mended}?" if mended and pattern.search(mended) else ""
            self.findings.append(Finding(path, text, shown(value), hint))

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
        """Guess the meant key: another spelling, a map's entry beside it, another place.

        The first that applies is given, from the surest to the least sure. A wrong guess sends its reader
        astray, so a place is named only where few places declare the field.
        """
        if key in ELSEWHERE:
            return ELSEWHERE[key]
        # `count` and `nodes` stand for nodeCount, though accounting and zones are spelt more like them.
        ends = (f"{key.removesuffix('s')}count".casefold(), key.casefold())
        longer = [name for end in ends for name in schema.properties if name.casefold().endswith(end)]
        if longer:
            return f"did you mean {min(longer, key=len)}?"
        if nearest(key, schema.properties):
            return closest(key, schema.properties)
        maps = [name for name, child in schema.properties.items() if child.values is not None]
        if len(maps) == 1 and isinstance(value, str) and schema.properties[maps[0]].values is not None:
            return f"did you mean {maps[0]}: {{{key}: {value}}}?"
        everywhere = places_of(self._root, key)
        # An alternative has the fields of the first shape, which most deployments have alone.
        locations = [place for place in everywhere if "alternatives[]" not in place] or everywhere
        locations.sort(key=lambda place: place.count("."))
        if len(locations) > MOST_PLACES:  # The one nearest to the top, if it is alone there.
            depth = locations[0].count(".")
            locations = [place for place in locations if place.count(".") == depth]
        if 0 < len(locations) <= MOST_PLACES:
            return f"it belongs to {_or(locations)}"
        return closest(key, schema.properties)


_UNIT = re.compile(r"([0-9.]+) *([kmgtpe])(i?)b?", re.IGNORECASE)


def _in_words(pattern: re.Pattern[str], value: str) -> tuple[str, str] | None:
    """Say what a pattern is for, and what was probably meant; None for a pattern that says it itself.

    It is told by what it takes: patterns stand in several XRDs.
    """
    takes = [pattern.search(text) is not None for text in ("1.5Gi", "1.2.3", "Gi", "1.2")]
    if takes == [True, False, False, True]:
        unit = _UNIT.fullmatch(value.strip())
        number, prefix, binary = unit.groups() if unit else ("", "", "")
        scale = "k" if prefix in ("k", "K") and not binary else prefix.upper()
        return "must be a quantity, such as 80Gi or 500m", f"{number}{scale}{binary.lower()}"
    if takes == [False, True, False, False]:
        return "must be a version of three numbers, such as 9.0.0", full_version(value)
    return None


_MACHINERY = "Crossplane 2 has it in spec.crossplane"
ELSEWHERE: Mapping[str, str] = {
    "deviceClassName": "leave it out: the InferenceClass has it, and a claim takes that of its device",
    "allocationMode": "leave it out: a request is for exactly `count` devices",
    "exactly": "write count and selectors beside the name",
    "claims": "leave it out: the claim of nodeSelector.devices is added",
    "nvidia.com/gpu": "leave it out: devices are asked for in nodeSelector.devices",
    "amd.com/gpu": "leave it out: devices are asked for in nodeSelector.devices",
    "hostPath": "leave it out: a node is shared by teams; weights come with a modelCacheRef",
    "ports": "leave it out: requests and the probe come to 8000",
    **dict.fromkeys(
        ("livenessProbe", "readinessProbe", "startupProbe"),
        "leave it out: the engine is asked for /health on port 8000",
    ),
    **dict.fromkeys(
        ("affinity", "nodeName", "topologySpreadConstraints"),
        "leave it out: devices and nodeSelector choose the pool, placement the clusters",
    ),
    **dict.fromkeys(
        ("initContainers", "lifecycle", "hostNetwork", "hostIPC"),
        "leave it out: a pod has the one container called engine",
    ),
    "imagePullPolicy": "leave it out: Kubernetes pulls :latest at each start, and other tags once",
    "serviceAccountName": "leave it out: pods have the default account of their namespace on the cluster",
    "restartPolicy": "leave it out: the pods of a model are always started again",
    "tensorParallelSize": "write --tensor-parallel-size into the args of the engine",
    "autoscaling": "leave it out: a HorizontalPodAutoscaler or KEDA scales the deployment",
    "gpus": "leave it out: the InferenceClass says how many devices a node has",
    "forProvider": "leave it out: it is a field of managed resources, its content belongs to spec",
    "deletionPolicy": "leave it out: it is a field of managed resources",
    "managementPolicies": "leave it out: it is a field of managed resources",
    "compositionRef": _MACHINERY,
    "compositionSelector": _MACHINERY,
    "compositionRevisionRef": _MACHINERY,
    "compositionUpdatePolicy": _MACHINERY,
    "writeConnectionSecretToRef": "leave it out: composites of Crossplane 2 have no connection secrets",
}
"""Fields of a ResourceClaim, a pod or another version of Crossplane, and what is written in their stead."""


def _meant(schema: Schema, value: Any) -> str:
    """Guess the value that was meant where it is of another type: quotes, no quotes, a list of words.

    A guess is made where YAML is known to surprise: `yes` and `1` that stand for texts, numbers in quotes,
    and one line that was to be a list.
    """
    stands_for = not schema.enum or str(value) in schema.enum
    if schema.type == "string" and stands_for and isinstance(value, bool | int | float):
        written = ('"false" or "no"', '"true" or "yes"')[value] if isinstance(value, bool) else f'"{value}"'
        return f"did you mean {written}, in quotes?"
    if schema.type in ("integer", "boolean") and isinstance(value, str):
        plain = value.strip().lower()
        is_meant = plain in ("true", "false") if schema.type == "boolean" else _WHOLE.fullmatch(plain)
        return f"did you mean {plain}, without quotes?" if is_meant else ""
    if schema.type == "array" and isinstance(value, dict) and schema.items is not None:
        return _listed(schema.items, value)
    words = value.split() if isinstance(value, str) else []
    if schema.type == "array" and words and schema.items is not None and schema.items.type == "string":
        return f"did you mean {shown_list(words)}?"
    if schema.type == "object" and words:
        takers = [name for name, child in schema.properties.items() if _is_of(child, value)]
        guesses = [f"{{{name}: {words[0] if len(words) == 1 else '...'}}}" for name in takers]
        return f"did you mean {_or(guesses)}?" if 0 < len(takers) <= MOST_PLACES else ""
    return ""


def _listed(items: Schema, value: JsonObject) -> str:
    """Guess a list that was written as a map: its one item, or items by their names."""
    if items.type != "object" or not value:
        return ""
    if value.keys() <= items.properties.keys():
        return "did you mean a list of one item, with - before it?"
    key, content = next(iter(value.items()))
    if {"name", "value"} <= items.properties.keys() and not isinstance(content, dict | list):
        return f"did you mean - {{name: {key}, value: {json.dumps(str(content))}}}?"
    return ""


_WHOLE = re.compile(r"-?[0-9]{1,18}")


def shown_list(words: list[str]) -> str:
    """Write words as a list of YAML, a long one only by its beginning."""
    text = json.dumps(words, ensure_ascii=False)
    return text if len(text) <= LONGEST_LIST else f"[{json.dumps(words[0], ensure_ascii=False)}, ...]"


LONGEST_LIST = 80
"""Characters of a list that is written out."""


def places_of(schema: Schema, key: str, path: str = "") -> list[str]:
    """Return the paths of everything in a schema that declares a field of that name.

    `status` is left out: nobody writes it, so a field of it was not meant.
    """
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
    """Tell whether a value is of the type that a schema declares.

    JSON has one kind of number, so 2.0 is a whole number. A boolean is none, though Python counts it as one.
    """
    if schema.int_or_string and isinstance(value, str):
        return True
    expected = None if schema.int_or_string else _TYPES.get(schema.type)
    if expected is not None:
        return isinstance(value, expected)
    return _is_number(value) and (schema.type == "number" or value == value // 1)  # 2.0 is sent as 2.


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
    text = _BOUNDS[keyword].format(limit)
    return "must not be empty" if empty else text.removesuffix("s") if limit == 1 else text


def _or(words: list[str]) -> str:
    """Join words as a sentence has them: `a, b or c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


# The metadata of an object: names, labels and annotations as every API server demands them.

METADATA_FIELDS = frozenset(
    {"name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "uid"}
    | {"resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "managedFields"}
    | {"deletionGracePeriodSeconds", "selfLink"}
)
"""The fields of ObjectMeta."""
LONGEST_NAME = 63
"""Crossplane makes a label of the name of a composite, so it is no longer than a label's value."""
LONGEST_KEY, LONGEST_PREFIX = 63, 253

_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]+")

SUBDOMAIN_TEXT = "must be lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
LABEL_TEXT = "must be lower-case letters, digits and '-', with a letter or digit at both ends"
KEY_TEXT = "must be a label key: at most 63 letters, digits, '-', '_' and '.', after an optional domain and /"
VALUE_TEXT = "must be a label value: at most 63 letters, digits, '-', '_' and '.'"


def check_metadata(metadata: Mapping[str, Any], *, namespaced: bool) -> Iterator[Finding]:
    """Every finding on the metadata of one object.

    No schema describes metadata, so a field that is unknown here is one that the API server would drop.
    `namespaced` is the scope of the kind: a cluster-scoped object must have no namespace.
    """
    for key, value in metadata.items():
        if key not in METADATA_FIELDS:
            hint = closest(key, METADATA_FIELDS)
            if not nearest(key, METADATA_FIELDS) and isinstance(value, str):
                # A text under a name that no field is like was most often meant as a label.
                hint = f"did you mean labels: {{{key}: {value}}}?"
            yield Finding(("metadata", key), "unknown field", hint=hint, code=UNKNOWN_FIELD)
    yield from _name(metadata.get("name"), ("metadata", "name"), DNS_SUBDOMAIN, SUBDOMAIN_TEXT)
    namespace, path = metadata.get("namespace"), ("metadata", "namespace")
    if namespaced or namespace in (None, ""):
        yield from _name(namespace, path, DNS_LABEL, LABEL_TEXT)
    else:
        yield Finding(path, "the kind is cluster-scoped, it has no namespace", shown(namespace))
    yield from _labels(metadata.get("labels"))
    yield from _strings(metadata.get("annotations"), ("metadata", "annotations"))


def _name(value: Any, path: FieldPath, form: re.Pattern[str], text: str) -> Iterator[Finding]:
    """Findings on a name or a namespace: its type, its length and its letters.

    `form` is the rule that holds for it, and `text` says that rule in words.
    """
    if value is None:
        return
    if not isinstance(value, str):
        yield Finding(path, "expected a string", shown(value), _meant(TEXT, value))
    elif len(value) > LONGEST_NAME:
        yield Finding(path, f"must have at most {LONGEST_NAME} characters", shown(value))
    elif value and not form.fullmatch(value):
        mended = _NOT_IN_NAMES.sub("-", value.lower()).strip("-.")
        hint = f"did you mean {mended}?" if form.fullmatch(mended) else ""
        yield Finding(path, text, shown(value), hint)


TEXT = Schema(type="string")


def _strings(value: Any, path: FieldPath) -> Iterator[Finding]:
    """Findings on a map of texts: YAML reads `true` and `1` as something else."""
    if value is None:
        return
    if not isinstance(value, dict):
        yield Finding(path, "expected a map", shown_type(value))
        return
    for key, text in value.items():
        if text is not None and not isinstance(text, str):  # The API server reads null as an empty text.
            yield Finding((*path, key), "expected a string", shown(text), _meant(TEXT, text))


@lru_cache(maxsize=10_000)
def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    is_name = 0 < len(name) <= LONGEST_KEY and _VALUE.fullmatch(name) is not None
    return is_name and not (slash and not (len(prefix) <= LONGEST_PREFIX and DNS_SUBDOMAIN.fullmatch(prefix)))


def _labels(labels: Any) -> Iterator[Finding]:
    """Findings on labels: keys and values have the same form on every API server.

    A value that `snapshot` has replaced is not looked at, since the original may well be valid.
    """
    path: FieldPath = ("metadata", "labels")
    yield from _strings(labels, path)
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if not _is_label_key(key):
            yield Finding((*path, key), KEY_TEXT)
        readable = isinstance(value, str) and value != STRIPPED
        if readable and (len(value) > LONGEST_KEY or not _VALUE.fullmatch(value)):
            yield Finding((*path, key), VALUE_TEXT, shown(value))

"""The metadata of an object: names, labels and annotations as every API server demands them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from function.api.fault import shown, shown_type
from function.api.names import is_dns_label, is_dns_subdomain
from function.cli.admission.finding import UNKNOWN_FIELD, FieldPath, Finding
from function.cli.bad_input import closest, nearest
from function.recording.allowed import STRIPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

FIELDS = frozenset(
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


def check(metadata: Mapping[str, Any], *, namespaced: bool) -> Iterator[Finding]:
    """Every finding on the metadata of one object."""
    for key, value in metadata.items():
        if key not in FIELDS:
            yield Finding(("metadata", key), "unknown field", hint=_guess(key, value), code=UNKNOWN_FIELD)
    yield from _name(metadata.get("name"), ("metadata", "name"), is_dns_subdomain, SUBDOMAIN_TEXT)
    yield from _namespace(metadata.get("namespace"), namespaced=namespaced)
    yield from _labels(metadata.get("labels"))
    yield from _strings(metadata.get("annotations"), ("metadata", "annotations"))


def _guess(key: str, value: Any) -> str:
    if not nearest(key, FIELDS) and isinstance(value, str):
        return f"did you mean labels: {{{key}: {value}}}?"
    return closest(key, FIELDS)


def _name(value: Any, path: FieldPath, is_valid: Callable[[str], bool], text: str) -> Iterator[Finding]:
    if value is None:
        return
    if not isinstance(value, str):
        yield Finding(path, "expected a string", shown(value))
    elif len(value) > LONGEST_NAME:
        yield Finding(path, f"must have at most {LONGEST_NAME} characters", shown(value))
    elif value and not is_valid(value):
        mended = _NOT_IN_NAMES.sub("-", value.lower()).strip("-.")
        hint = f"did you mean {mended}?" if is_valid(mended) else ""
        yield Finding(path, text, shown(value), hint)


def _namespace(value: Any, *, namespaced: bool) -> Iterator[Finding]:
    path: FieldPath = ("metadata", "namespace")
    if namespaced or value in (None, ""):
        yield from _name(value, path, is_dns_label, LABEL_TEXT)
    else:
        yield Finding(path, "the kind is cluster-scoped, it has no namespace", shown(value))


def _strings(value: Any, path: FieldPath) -> Iterator[Finding]:
    """Findings on a map of texts: YAML reads `true` and `1` as something else."""
    if value is None:
        return
    if not isinstance(value, dict):
        yield Finding(path, "expected a map", shown_type(value))
        return
    for key, text in value.items():
        if text is not None and not isinstance(text, str):  # The API server reads null as an empty text.
            written = str(text).lower() if isinstance(text, bool) else str(text)
            scalar = isinstance(text, bool | int | float)
            hint = f'did you mean "{written}", in quotes?' if scalar else ""
            yield Finding((*path, key), "expected a string", shown(text), hint)


def _labels(labels: Any) -> Iterator[Finding]:
    path: FieldPath = ("metadata", "labels")
    yield from _strings(labels, path)
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if not _is_key(key):
            yield Finding((*path, key), KEY_TEXT)
        readable = isinstance(value, str) and value != STRIPPED
        if readable and (len(value) > LONGEST_KEY or not _VALUE.fullmatch(value)):
            yield Finding((*path, key), VALUE_TEXT, shown(value))


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= LONGEST_PREFIX and is_dns_subdomain(prefix)):
        return False
    return 0 < len(name) <= LONGEST_KEY and bool(_VALUE.fullmatch(name))

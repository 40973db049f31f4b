"""Redact: an object without what may be secret. What decides a placement stays, word for word.

Values of environment variables, arguments, commands, annotations and managed fields are taken out, and the
values below any key that speaks of a secret. Redacting twice changes nothing, and what is equal stays equal:
a decision on redacted objects is the redacted decision.
"""

from __future__ import annotations

import re
from typing import Any

STRIPPED = "(stripped)"
KEPT_ANNOTATIONS = frozenset({"crossplane.io/composition-resource-name", "modelplane.ai/was-ready"})
"""Annotations that a decision reads."""

_SECRET = re.compile(
    r"password|passwd|token|credential|api[-_]?key|private[-_]?key|authorization", re.IGNORECASE
)
_DROPPED = frozenset({"managedFields", "connectionDetails", "connection_details"})
_PLACEMENT = frozenset({"selectors", "attributes", "capacity", "labels", "matchLabels", "deviceRequests"})
"""Subtrees that placement reads; nothing in them is secret, and a changed word would change a decision."""


def redacted(value: Any) -> Any:
    """Return a JSON value without what may be secret."""
    if isinstance(value, list):
        return [redacted(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _field(key, held) for key, held in value.items() if key not in _DROPPED}


def _field(key: str, held: Any) -> Any:
    if key in _PLACEMENT:
        return held
    if key == "env" and isinstance(held, list):
        return [_variable(each) for each in held]
    if key in ("args", "command") and isinstance(held, list):
        return [STRIPPED] if held else held
    if key == "annotations" and isinstance(held, dict):
        return {name: text for name, text in held.items() if name in KEPT_ANNOTATIONS}
    if _SECRET.search(key):
        return _emptied(held)
    return redacted(held)


def _emptied(held: Any) -> Any:
    """Keep the type, so that a reader of the type is not surprised."""
    if isinstance(held, dict | list):
        return type(held)()
    return STRIPPED


def _variable(each: Any) -> Any:
    """An environment variable: its name, and that it has a value."""
    if not isinstance(each, dict):
        return STRIPPED
    return {key: held if key == "name" else STRIPPED for key, held in each.items()}

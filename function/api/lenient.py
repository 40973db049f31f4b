"""Read fields leniently: return what can be read, and note the first fault.

For objects that must be charged whether or not every field of them can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.api.fault import Fault, shown, shown_type
from function.api.model import ConditionStatus, condition, whole
from function.boundary import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Document

_CONTAINERS = frozenset({"expected a map", "expected a list", "expected a list of maps"})
ROLES = ("Standalone", "Leader", "Worker")


def mapping(value: object) -> dict[str, Any]:
    """Return a map, empty for what is none."""
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


def conditions_of(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions of a status, without entries that are no maps."""
    return mappings(status.get("conditions"))


def condition_of(status: Mapping[str, Any], kind: str) -> tuple[bool | None, str]:
    """Return whether a condition of a status is True, False or (None) unknown, and its message.

    Listed twice, the worst of its statuses counts, as of parsed ones (`model.condition`). (None, "") where it
    is missing.
    """
    worst: tuple[bool | None, str] | None = None
    for entry in conditions_of(status):
        if entry.get("type") != kind:
            continue
        row = {"True": True, "False": False}.get(string(entry.get("status"))), string(entry.get("message"))
        if row[0] is False:
            return row
        if worst is None or (row[0] is None and worst[0]):
            worst = row
    return worst or (None, "")


def plain_of(document: Document) -> dict[str, Any]:
    """Return an object, empty where it cannot be decoded: for what is doubt to its reader anyway."""
    try:
        return document.plain()
    except Unreadable:
        return {}


class Reader:
    """Reads fields of plain values and notes the first that was not what it should be."""

    __slots__ = ("fault",)

    def __init__(self) -> None:
        self.fault = ""

    @property
    def whole(self) -> bool:
        """Whether everything could be read."""
        return not self.fault

    def _odd(self, key: str, expected: str, value: object) -> None:
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

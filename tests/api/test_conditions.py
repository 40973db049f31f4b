"""A condition is read alike from a parsed object and from a plain one, whatever the order of the list."""

from __future__ import annotations

from itertools import product

import pytest

from function.api.model import ConditionStatus, condition, condition_of

STATUSES = ("True", "False", "Unknown", "")


@pytest.mark.parametrize("listed", [case for count in range(4) for case in product(STATUSES, repeat=count)])
def test_a_condition_reads_the_same_parsed_and_plain(listed: tuple[str, ...]) -> None:
    entries = [
        {"type": "Synced", "status": "False", "message": "another"},
        *({"type": "Ready", "status": status, "message": status} for status in listed),
    ]
    parsed = tuple(ConditionStatus(type=entry["type"], status=entry["status"]) for entry in entries)
    truth, message = condition_of({"conditions": entries}, "Ready")
    assert truth is condition(parsed, "Ready")
    assert message in listed if listed else not message
    assert {True: message == "True", False: message == "False", None: message in ("Unknown", "")}[truth]


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        (None, "no list"),
        ({"Ready": "True"}, "a map"),
        ("Ready", "a text"),
        (["Ready", None], "entries that are no maps"),
        ([{"type": ["Ready"], "status": "True"}], "a type that is no text"),
    ],
)
def test_what_is_no_condition_says_nothing(conditions: object, reason: str) -> None:
    assert condition_of({"conditions": conditions}, "Ready") == (None, ""), reason

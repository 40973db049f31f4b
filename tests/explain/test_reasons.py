"""Every reason code is produced, said, and explained in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from function.api.reasons import Reason
from tests.support import drive
from tests.support.rejected import CASES

DOCS = Path(__file__).parents[2] / "docs" / "troubleshooting.md"


@pytest.mark.parametrize("code", CASES)
def test_each_reason_is_produced_and_said(code: str) -> None:
    case = CASES[code]()
    answer = drive.run(case.world, level="plain")
    rejections = answer.decision.rejections
    others = {cluster["metadata"]["name"] for cluster in case.world.clusters or ()} - {"here"}
    assert {name: rejection.reason.name for name, rejection in rejections.items() if name not in others} == {
        "here": code
    }
    assert case.says in answer.conditions["ReplicasScheduled"][2]


def test_no_code_is_without_a_case() -> None:
    assert set(CASES) == {reason.name for reason in Reason}


def test_no_code_is_without_a_section_in_the_docs() -> None:
    """A section says what it means, what it looks like in kubectl, and what to do."""
    sections = re.split(r"^### ", DOCS.read_text(), flags=re.MULTILINE)[1:]
    told = {section.split("\n", 1)[0].strip(): section for section in sections}
    for reason in Reason:
        assert reason.name in told, f"docs/troubleshooting.md has no section {reason.name}"
        for part in ("**Means**", "**Looks like**", "**Do**"):
            assert part in told[reason.name], f"{reason.name}: no {part}"
        assert reason.value in told[reason.name], f"{reason.name}: its words are not shown"

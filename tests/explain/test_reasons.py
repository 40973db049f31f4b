"""Every reason code is produced, said, and explained in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from function.api.reasons import Reason
from tests.support import drive
from tests.support.rejected import CASES

DOCS = Path(__file__).parents[2] / "docs"


def sections_of(page: str) -> dict[str, str]:
    """Return the sections of a page of the documentation that are about one reason, by its code."""
    sections = re.split(r"^### ", (DOCS / page).read_text(), flags=re.MULTILINE)[1:]
    return {section.split("\n", 1)[0].strip(): section for section in sections}


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
    sections = sections_of("troubleshooting.md")
    for reason in Reason:
        assert reason.name in sections, f"docs/troubleshooting.md has no section {reason.name}"
        for part in ("**Means**", "**Looks like**", "**Do**"):
            assert part in sections[reason.name], f"{reason.name}: no {part}"
        assert reason.value in sections[reason.name], f"{reason.name}: its words are not shown"


def test_the_codes_say_whether_they_may_pass() -> None:
    """The page's "Resolvable" is what `status.placement` says, the size of the pool aside."""
    sections = sections_of("reasons.md")
    assert list(sections) == [reason.name for reason in Reason]
    said = {name: "Resolvable" in section for name, section in sections.items()}
    assert said == {reason.name: reason.passes for reason in Reason}

"""What is noted on the Object that carries an edit, so that the next answer knows what the pods run."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from function.objects import ObjectIdentity, ObservedObject
from function.replica.state import UNKNOWN, Edit, digest_of, noted

GANG = ObjectIdentity("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "ns", "m")
STATUS = {"readyReplicas": 1}
TEMPLATE = "7d8a1c0000000000"
AND_STATUS = f"{TEMPLATE} {digest_of(STATUS)}"


def test_a_digest_is_that_of_every_release() -> None:
    """A note that another release left is compared with the digest of this one: it never changes."""
    assert digest_of({"b": [1, "é"], "a": {"c": None}}) == "a57a81b3fa603895"
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})


class Note(NamedTuple):
    reason: str
    edit: Edit
    before: str
    after: str
    evident: bool = True
    generation: int = 2


NOTES = (
    Note("nothing is edited: the note stays", Edit.NOTHING, TEMPLATE, TEMPLATE),
    Note("nothing is edited and nothing is evident: no note", Edit.NOTHING, "", "", evident=False),
    Note("what is believed once is noted from then on", Edit.NOTHING, "", TEMPLATE),
    Note("what a generation shows needs no note", Edit.NOTHING, "", "", generation=1),
    Note("the copies change: the pods run what they ran", Edit.NO_TEMPLATE, "", TEMPLATE),
    Note(
        "the copies change and nothing is evident: the note stays",
        Edit.NO_TEMPLATE,
        "x y",
        "x y",
        evident=False,
    ),
    Note("the same, and there is none: nothing is known", Edit.NO_TEMPLATE, "", UNKNOWN, evident=False),
    Note("the template changes: what ran, and the status of then", Edit.TEMPLATE, "", AND_STATUS),
    Note(
        "a second edit before the first was acted on: the first note stays",
        Edit.TEMPLATE,
        "x y",
        "x y",
        evident=False,
    ),
    Note(
        "the same after an edit of copies: what would run is not known",
        Edit.TEMPLATE,
        "x",
        UNKNOWN,
        evident=False,
    ),
)


@pytest.mark.parametrize("case", NOTES, ids=[case.reason for case in NOTES])
def test_a_note_says_what_the_pods_ran_when_they_were_edited(case: Note) -> None:
    remote: dict[str, Any] = {"metadata": {"generation": case.generation}, "status": STATUS}
    workload = ObservedObject(identity=GANG, remote=remote, note=case.before)
    assert noted(workload, TEMPLATE, case.edit, evident=case.evident) == case.after, case.reason

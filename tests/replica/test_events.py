"""Events: on transitions only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.replica.build import CLUSTER, IMAGE, Scene, engine, gang, replica, run
from tests.replica.provider import applied

if TYPE_CHECKING:
    from tests.support.drive import Answer

SCENE = Scene(replica(engine("a"), gang("b")))


def reported(scene: Scene, answer: Answer) -> Scene:
    """Return the scene after the conditions of an answer were written."""
    conditions: list[dict[str, Any]] = [
        {"type": kind, "status": str(status), "reason": reason, "message": message}
        for kind, (status, reason, message) in answer.conditions.items()
    ]
    return scene.but(replica={**scene.replica, "status": {"conditions": conditions}})


def test_a_life_has_one_event_for_each_step() -> None:
    first = run(SCENE)
    [event] = first.events
    assert tuple(event) == ("NORMAL", "Composing", f"Composing {IMAGE} on {CLUSTER}")
    seen = [[event[1] for event in first.events]]
    scene = reported(SCENE, first)
    for stage in ("nothing", "created", "created", "available", "available"):
        scene = scene.but(observed=applied(first, stage))
        answer = run(scene)
        seen.append([event[1] for event in answer.events])
        scene = reported(scene, answer)
    assert seen == [["Composing"], [], ["Accepted"], [], ["Serving"], []]


def test_a_problem_is_reported_once() -> None:
    settled = SCENE.but(observed=applied(run(SCENE)))
    cut = reported(settled, run(settled)).but(absent=True)
    first = run(cut)
    assert [(event[0], event[1]) for event in first.events] == [("WARNING", "WaitingForCluster")]
    assert run(reported(cut, first)).events == ()

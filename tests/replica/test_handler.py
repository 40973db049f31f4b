"""An answer about a replica says, besides objects and conditions, when to ask again and how ready it is."""

from __future__ import annotations

from typing import Any

import pytest

from function.replica import handler
from tests.replica.build import Scene, config, replica, run
from tests.replica.provider import applied

STATED = {"pending": "30s", "settled": "10m", "waiting": "2m"}
SCENE = Scene(replica(), input=config(ttl=STATED))

TTLS: list[tuple[str, dict[str, Any], tuple[float | None, float | None]]] = [
    ("what is composed is pending, or settled", {}, (30, 600)),
    ("doubt waits", {"cluster": None}, (120, 600)),
    (
        "doubt is pending where no time is stated for it",
        {"cluster": None, "input": config(ttl={"pending": "30s"})},
        (30, None),
    ),
    (
        "doubt leaves it to the process where nothing is stated",
        {"cluster": None, "input": None},
        (None, None),
    ),
    (
        "an input that cannot be read leaves it to the process",
        {"input": config(ttl={**STATED, "x": 1})},
        (None, None),
    ),
]


@pytest.mark.parametrize(("reason", "changes", "expected"), TTLS, ids=[case[0] for case in TTLS])
def test_when_to_ask_again(
    reason: str, changes: dict[str, Any], expected: tuple[float | None, float | None]
) -> None:
    assert handler.run(SCENE.but(**changes).asked.request()).ttl == expected, reason


def test_an_answer_states_its_requirements_and_counts_what_it_composed() -> None:
    first = SCENE.asked.request()
    answer = handler.run(first)
    assert answer.requirements == handler.declared(first) != ()
    assert answer.counts == {"objects": len(answer.desired), "objects_kept": 0}
    seen = applied(run(SCENE))
    doubted = handler.run(SCENE.but(cluster=None, observed=seen).asked.request())
    assert doubted.counts == {"objects": len(seen), "objects_kept": len(seen)}


STAGES = [
    (
        "a workload is not ready, so Crossplane does not call the replica Ready",
        {"model_serving_main": "started"},
        False,
    ),
    ("the gateway refuses the route and all objects are there: Crossplane would", {}, True),
]


@pytest.mark.parametrize(("reason", "stages", "unready"), STAGES, ids=[case[0] for case in STAGES])
def test_a_replica_that_takes_no_requests_is_not_ready(
    reason: str,
    stages: dict[str, str],
    unready: bool,  # noqa: FBT001
) -> None:
    seen = applied(run(SCENE), **stages)
    parents = [{"conditions": [{"type": "Accepted", "status": "False", "reason": "No", "message": "x"}]}]
    seen["model-route"]["status"]["atProvider"]["manifest"]["status"] = {"parents": parents}
    answer = run(SCENE.but(observed=seen))
    assert not answer.conditions["ModelReady"][0]
    assert answer.unready is unready, reason


def test_what_is_kept_beside_what_is_wanted_keeps_an_answer_from_rest() -> None:
    """It leaves in a later call, which nothing but the time to live brings."""
    seen = applied(run(SCENE.but(input=config(ttl=STATED, remoteNamespace="Same"))))
    namespace = {"namespace": seen["namespace"]}
    namespace["namespace"]["spec"]["forProvider"] = {}
    seen = applied(run(SCENE))
    assert run(SCENE.but(observed=seen)).settled
    answer = run(SCENE.but(observed=seen | namespace))
    assert answer.desired.keys() == seen.keys() | namespace
    assert all(status for status, _, _ in answer.conditions.values())
    assert not answer.settled

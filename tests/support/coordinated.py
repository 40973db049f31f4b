"""Several deployments with GlobalOrder, asked one at a time as Crossplane does."""

from __future__ import annotations

from typing import Any

from function.boundary import PlainDocument, Request
from function.deployment import handler
from tests.support import build
from tests.support.cases import ask
from tests.support.drive import Answer, of_core

Plain = dict[str, Any]
EARLY, LATE = "2026-03-01T07:00:00Z", "2026-03-01T09:00:00Z"
"""Before and after the time at which everything else was created."""
ORDER = {"coordination": "GlobalOrder"}


def coordinated(
    ours_: Plain,
    all_: list[Plain] | None,
    fleet: list[Plain],
    *,
    listed: list[Plain] = (),
    caches: list[Plain] | None = (),
) -> Answer:
    """Ask with GlobalOrder; None for what was not delivered."""
    lists = {"clusters": fleet, "all-replicas": listed, "all-deployments": all_, "all-caches": caches}
    required = {k: tuple(PlainDocument(item) for item in v) for k, v in lists.items() if v is not None}
    made = handler.answer(Request(PlainDocument(ours_), {}, required, ORDER))
    return of_core(made.response, made.decision)


def called(name: str, replicas: int = 1, created: str = build.CREATED, **more: Any) -> Plain:
    made = ask(replicas, **more)
    made["metadata"] |= {"name": name, "uid": build.uid(name), "creationTimestamp": created}
    return made

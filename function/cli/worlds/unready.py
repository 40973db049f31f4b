"""What a replica that is not Ready says of itself: the one condition that tells why."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from function.api.lenient import conditions_of, mapping, string
from function.api.replica import parse as parse_replica
from function.boundary import PlainDocument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.boundary import JsonObject
    from function.cli.worlds.world import Planned

CROSSPLANE = ("Synced", "Ready")
"""Crossplane's own conditions, the one that names a cause first. Those of the replica's handler say more."""


class Unready(NamedTuple):
    """A replica that exists and is not Ready."""

    name: str
    cluster: str
    why: str
    """`ModelReady: Unschedulable: no node has 8 GPUs`; empty where nothing was said of it yet."""


def unready_of(planned: Planned) -> list[Unready]:
    """The replicas of a planned deployment that stay and are not Ready, by name."""
    staying = {row.name for row in planned.forecast.standing if not row.is_new}
    return sorted(unready for unready in _observed(planned) if unready.name in staying)


def _observed(planned: Planned) -> Iterator[Unready]:
    for document in planned.request.observed.values():
        plain = document.plain()
        if plain.get("kind") == "ModelReplica":
            replica = parse_replica(PlainDocument(plain))
            if replica.ready is not True:
                yield Unready(replica.name, replica.cluster, obstacle(plain))


def obstacle(plain: JsonObject) -> str:
    """What keeps a replica from being Ready, by the first of its conditions that is False; "" by none."""
    refused = {
        string(entry.get("type")): ": ".join(
            filter(None, (string(entry.get(key)) for key in ("type", "reason", "message")))
        )
        for entry in conditions_of(mapping(plain.get("status")))
        if entry.get("status") == "False"
    }
    of_handler = [text for kind, text in refused.items() if kind not in CROSSPLANE]
    return next(iter([*of_handler, *(refused[kind] for kind in CROSSPLANE if kind in refused)]), "")

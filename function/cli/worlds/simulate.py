"""Simulate: pass after pass over all deployments, as the control plane goes, until nothing changes any more.

One round is one `plan` of everything. Between two rounds, what is no longer desired is gone, what is new or
was updated by a staged rollout has become Ready, and what is desired stands as desired. Nothing else changes:
no clock, no failures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from function.api.names import KEY_ANNOTATION
from function.cli.text import track
from function.cli.worlds.memo import ParseMemo
from function.cli.worlds.world import Planned, World, identity_of, is_deleting, plan_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.boundary import JsonObject
    from function.cli.worlds.manifest import Manifest

ROUNDS = 100
"""A fleet that has not settled after so many rounds is said not to settle."""

ObjectKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of an object."""
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@dataclass(frozen=True, slots=True)
class Simulation:
    """All rounds, and the world as it stands after the last."""

    rounds: tuple[tuple[Planned, ...], ...]
    world: World
    settled: bool

    @property
    def last(self) -> tuple[Planned, ...]:
        """The round in which nothing changed any more."""
        return self.rounds[-1]

    @property
    def plans(self) -> Iterator[Planned]:
        """Every plan of every round."""
        return chain.from_iterable(self.rounds)


def one_round(world: World, reuse: ParseMemo) -> tuple[Planned, ...]:
    """Plan every deployment once; the world itself stays as it is."""
    world_copy = replace(world, replicas=list(world.replicas))
    return tuple(track(plan_all(world_copy, reuse=reuse), "Planning", total=len(world.deployments)))


def settle(world: World, reuse: ParseMemo | None = None) -> Simulation:
    """Go round after round until the world stays as it is."""
    reuse = reuse or ParseMemo()
    rounds: list[tuple[Planned, ...]] = []
    while len(rounds) < ROUNDS:
        rounds.append(one_round(world, reuse))
        following = after(world, rounds[-1])
        if (following.replicas, following.endpoints) == (world.replicas, world.endpoints):
            return Simulation(tuple(rounds), world, settled=True)
        world = following
    return Simulation(tuple(rounds), world, settled=False)


def after(world: World, planned: tuple[Planned, ...]) -> World:
    """Let Crossplane do what was planned."""
    changed = dict(_changes(planned))
    made = [resource for plan in planned for resource in _made(plan)]
    return replace(
        world,
        replicas=[*_standing(world.replicas, changed), *_of_kind(made, "ModelReplica")],
        endpoints=[*_standing(world.endpoints, changed), *_of_kind(made, "ModelEndpoint")],
    )


def _of_kind(made: list[JsonObject], kind: str) -> list[JsonObject]:
    return [resource for resource in made if resource["kind"] == kind]


def _changes(planned: tuple[Planned, ...]) -> Iterator[tuple[ObjectKey, JsonObject | None]]:
    """Yield every observed object with its desired form, or None when it is deleted."""
    for plan in planned:
        restarted = set(plan.forecast.updating) if plan.forecast.staged else set()
        for key, document in plan.request.observed.items():
            desired = plan.response.desired.get(key)
            observed = document.plain()
            if desired is None:
                yield _key(observed), None
            else:
                updated = _updated(observed, desired.resource)
                starts = desired.resource["metadata"].get("name") in restarted and _is_replica(observed)
                yield _key(observed), {**updated, "status": READY} if starts else updated


def _key(plain: JsonObject) -> ObjectKey:
    return str(plain.get("kind")), *identity_of(plain)


def _is_replica(plain: JsonObject) -> bool:
    return plain.get("kind") == "ModelReplica"


def _updated(observed: JsonObject, desired: JsonObject) -> JsonObject:
    """Write the desired spec and labels over an object; Crossplane keeps the rest, and so its name."""
    metadata = observed.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **(desired["metadata"].get("labels") or {})}
    updated = {**observed, "metadata": {**metadata, "labels": labels}, "spec": desired.get("spec")}
    return observed if updated == observed else updated


def _standing(objects: list[JsonObject], changed: dict[ObjectKey, JsonObject | None]) -> Iterator[JsonObject]:
    """Return the objects that remain: neither deleted now nor being deleted before."""
    for before in objects:
        now = changed.get(_key(before), before)
        if now is not None and not is_deleting(before):
            yield now


def _made(planned: Planned) -> Iterator[JsonObject]:
    """The objects that were not there before, as they stand once they are Ready."""
    for key, desired in sorted(planned.response.desired.items()):
        if key in planned.request.observed:
            continue
        metadata = {
            **desired.resource["metadata"],
            "annotations": {KEY_ANNOTATION: key},
            **_owners(planned.manifest),
        }
        yield {**desired.resource, "metadata": metadata, "status": READY}


def _owners(deployment: Manifest) -> JsonObject:
    uid = deployment.metadata.get("uid")
    return {"ownerReferences": [{"controller": True, "uid": uid}]} if uid else {}

"""P20: an answer that asked for what it stands on is the answer of one call that was handed everything.

Crossplane's loop is played on plain values: requirements are fetched until they settle, a bootstrap block
comes with every call, seeds (2.4) with the first. What a world has not delivered is never delivered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from function.boundary import PlainDocument, text_at
from function.deployment import handler
from function.deployment.requirements import BLOCK, ROWS
from tests.properties.worlds import each_batch
from tests.support import drive, generate
from tests.support.parts import Source
from tests.support.promises.opted_in import CROWDED, DOUBTFUL, OPTED
from tests.support.scale import batch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Requirement
    from tests.support.world import World

Plain = dict[str, Any]
Documents = tuple[PlainDocument, ...]
CALLS = 3
"""The most that a reconcile may take."""
SAID = ("desired", "ready", "conditions", "status", "unready", "fatal", "events", "settled")
TASTES = (generate.TASTE, OPTED, DOUBTFUL, CROWDED)


@dataclass(frozen=True)
class Held:
    """What a control plane holds: objects by kind, None for a kind that is never delivered."""

    kinds: Mapping[str, list[Plain] | None]

    @classmethod
    def of(cls, world: World) -> Held:
        """Return what was delivered of a world, by kind."""
        more = world.more
        caches = more.get("all-caches")
        named = None if world.cache is None else list(world.cache)
        cached = "modelCacheRef" in world.deployment["spec"]["template"]["spec"]
        coordinated = (world.input or {}).get("coordination") == "GlobalOrder"
        asked = "all-deployments" in more or not coordinated
        undelivered = named is None and caches is None and (cached or coordinated)
        return cls(
            {
                "InferenceCluster": None if world.clusters is None else list(world.clusters),
                "ModelReplica": None if world.replicas is None else list(world.replicas),
                "ModelDeployment": list(more.get("all-deployments", ())) if asked else None,
                "ModelCache": None if undelivered else [*(named or ()), *(caches or ())],
            }
        )

    def fetch(self, requirement: Requirement) -> Documents | None:
        """Return what a requirement selects; None where it is not delivered."""
        objects = self.kinds[requirement.kind]
        if objects is None:
            return None
        documents = (PlainDocument(manifest) for manifest in objects)
        return tuple(document for document in documents if _selects(requirement, document))


def _selects(requirement: Requirement, document: PlainDocument) -> bool:
    at = text_at(document, "metadata", "namespace")
    if requirement.namespace is not None and at != requirement.namespace:
        return False
    if requirement.match_name is not None:
        return text_at(document, "metadata", "name") == requirement.match_name
    return all(
        text_at(document, "metadata", "labels", key) == value for key, value in requirement.match_labels
    )


@dataclass
class Reconcile:
    """One reconcile of a deployment: what is handed over unasked, and what comes of it."""

    world: World
    block: tuple[str, ...] = ()
    """Names of the bootstrap block."""
    seeds: tuple[Requirement, ...] = ()
    """What the last reconcile stated, on Crossplane 2.4."""
    calls: int = 0
    stated: list[tuple[Requirement, ...]] = field(default_factory=list)

    def run(self) -> drive.Answer:
        """Call until what is stated settles."""
        held, base = Held.of(self.world), self.world.but(more={}).request()
        unasked = self._block()
        handed = _fetched(held, self.seeds)
        before: tuple[Requirement, ...] | None = None
        while True:
            request = replace(base, required={**unasked, **handed}, stated=self._names(unasked, handed))
            answer = drive.of_core(handler.run(request))
            self.calls += 1
            names = {item.name for item in answer.raw.requirements}
            stated = tuple(item for item in answer.raw.requirements if item.served_by not in names)
            self.stated.append(stated)
            if answer.fatal or stated == (before or ()):
                return answer
            fetched = _fetched(held, stated)
            if before is None and self.seeds and fetched.keys() <= handed.keys():
                return answer
            before, handed = stated, fetched

    def _names(self, unasked: Mapping[str, Any], handed: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what the context tells a later call."""
        names = [item.name for item in self.stated[-1]] if self.stated else []
        return tuple(names) if all(name in unasked or name in handed for name in names) else ()

    def _block(self) -> dict[str, Documents]:
        given = self.world.asked.request().required
        return {name: given[name] for name in self.block if name in given}


def _fetched(held: Held, requirements: tuple[Requirement, ...]) -> dict[str, Documents]:
    items = ((requirement.name, held.fetch(requirement)) for requirement in requirements)
    return {name: documents for name, documents in items if documents is not None}


def by_kind(world: World) -> World:
    """Return a world in which a kind is delivered or is not: caches by name and all of them are the same."""
    if (world.input or {}).get("coordination") != "GlobalOrder":
        return world
    if "all-caches" not in world.more:
        return world.but(cache=None)
    return world if world.cache is None else world.but(more={**world.more, "all-caches": world.cache})


def at_once(world: World) -> drive.Answer:
    """Return the answer of one call that was handed everything."""
    return drive.of_core(handler.run(world.request()))


def complaints(world: World, draw: Source) -> list[str]:
    """Return what is wrong with a reconcile of a world."""
    block = tuple(name for name in sorted(BLOCK) if draw.odds(0.5)) if draw.odds(0.5) else ()
    earlier = Reconcile(world, block)
    whole, first = at_once(world), earlier.run()
    seeds = earlier.stated[-1] if draw.odds(0.5) else earlier.stated[0]
    later = Reconcile(world, block, seeds)
    wrong = []
    for name, reconcile, answer in (("2.3", earlier, first), ("2.4", later, later.run())):
        if None not in Held.of(world).kinds.values():  # Else the context does not count.
            if reconcile.calls > CALLS:
                wrong.append(f"{name}: {reconcile.calls} calls")
            for one, other in zip(reconcile.stated, reconcile.stated[1:], strict=False):
                if not {*one} <= {*other}:
                    wrong.append(f"{name}: a later call asks for less")
        wrong.extend(
            f"{name}, block {block}: {part}: {getattr(answer, part)} instead of {getattr(whole, part)}"
            for part in SAID
            if getattr(answer, part) != getattr(whole, part)
        )
    return wrong


@each_batch
@pytest.mark.parametrize("taste", TASTES, ids=("plain", "opted", "doubtful", "crowded"))
def test_asked_for_or_handed_over_it_is_the_same_answer(taste: generate.Taste, number: int) -> None:
    for seed in batch(number, quick=96, gate=5_000, soak=25_000):
        wrong = complaints(by_kind(generate.world(seed, taste)), Source(f"staged {seed}"))
        if wrong:
            lines = "\n".join(wrong)
            pytest.fail(f"seed {seed}:\n{lines}\nThe world: generate.world({seed}, {taste})", pytrace=False)


def test_every_row_names_a_kind_that_is_held() -> None:
    held = Held.of(generate.world(0))
    assert {row.kind for row in ROWS.values()} == set(held.kinds)

"""Read what a command was given: the world it describes, and what in it cannot be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from function.cli.bad_input import BadInput, closest
from function.cli.live.connection import ControlPlane
from function.cli.text import complain
from function.cli.worlds.derive import folded
from function.cli.worlds.faults import faults_of
from function.cli.worlds.manifests import load
from function.cli.worlds.review import review
from function.cli.worlds.source import Origin, Source, gather, read_fleet
from function.cli.worlds.world import World, world_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.cli.live.connection import Target
    from function.cli.worlds.manifest import Manifests


@dataclass(frozen=True, slots=True)
class Inputs:
    """The objects, the world they describe, and what in them cannot be read."""

    manifests: Manifests
    world: World
    faults: tuple[str, ...]
    origin: Origin = field(default_factory=Origin)

    def titles(self, names: Iterable[str]) -> list[str]:
        """`namespace/name` of deployments, given so or by a name that only one has. Raises BadInput.

        Without names: those of the namespace that was asked about, and none where none was.
        """
        all_titles = [f"{manifest.namespace}/{manifest.name}" for manifest in self.world.deployments]
        if not self.origin.only:
            return [title_of(name, all_titles, self.origin) for name in names]
        inside = [title for title in all_titles if title.startswith(f"{self.origin.only}/")]
        if not inside:
            namespaces = {title.partition("/")[0] for title in all_titles}
            where = f'no ModelDeployment in namespace "{self.origin.only}" of {self.origin.where}'
            raise BadInput(f"{where}; {closest(self.origin.only, namespaces)}")
        return [title_of(name, inside, self.origin) for name in names] or inside


def title_of(name: str, titles: list[str], origin: Origin) -> str:
    """`namespace/name` of the deployment that a name means. Raises BadInput."""
    matching = [title for title in titles if name in (title, title.partition("/")[2])]
    if not matching:
        full = name if "/" in name else f"{titles[0].partition('/')[0]}/{name}"
        raise BadInput(f'no ModelDeployment "{name}" in {origin.where}; {closest(full, titles)}')
    if len(matching) > 1 and f"{origin.namespace}/{name}" in matching:
        return f"{origin.namespace}/{name}"
    if len(matching) > 1:
        raise BadInput(f'"{name}" is ambiguous: {", ".join(matching)}')
    return matching[0]


def read(source: Source) -> Inputs:
    """Read what was given, and say on standard error what of it cannot be read. Raises BadInput."""
    manifests, origin = gather(source)
    return taken(manifests, origin)


def read_manifests(files: Iterable[str], live: Target | None = None) -> tuple[Manifests, tuple[str, ...]]:
    """Read files, or a control plane, and say what is wrong. Returns it too. Raises BadInput."""
    manifests = load(files) if live is None else read_fleet(ControlPlane(live))
    return manifests, review(manifests)


def taken(manifests: Manifests, origin: Origin | None = None, *, quietly: bool = False) -> Inputs:
    """Take manifests as the state of a control plane. Raises BadInput."""
    origin = origin or Origin()
    try:
        if not manifests["ModelDeployment"]:
            raise BadInput(f"there is no ModelDeployment in {origin.where}")  # noqa: TRY301 - as the others
        world = world_of(manifests)
    except BadInput:
        if not quietly:  # What is wrong with the objects may be why.
            review(manifests)
        raise
    if quietly:
        return Inputs(manifests, world, (), origin)
    faults = {**world.faults, **faults_of(manifests, world)}
    errors = review(manifests, faults)
    explained = {place for issue in manifests.issues for place in issue.places}
    others = tuple(text for place, text in faults.items() if place not in explained)
    complain(others)
    complain(folded(world.assumptions), "note")
    return Inputs(manifests, world, (*errors, *others), origin)

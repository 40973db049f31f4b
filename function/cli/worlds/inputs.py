"""Read the files of a command: the world they describe, and what in them cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cli.bad_input import BadInput
from function.cli.text import complain
from function.cli.worlds.faults import faults_of
from function.cli.worlds.manifests import Manifests, load
from function.cli.worlds.world import World, world_of

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN = 10
"""How many names a message lists."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files, the world they describe, and what in them cannot be read."""

    manifests: Manifests
    world: World
    faults: tuple[str, ...]

    def titles(self, names: Iterable[str]) -> list[str]:
        """`namespace/name` of deployments, given so or by a name that only one has. Raises BadInput."""
        known = [f"{manifest.namespace}/{manifest.name}" for manifest in self.world.deployments]
        return [_title(name, known) for name in names]


def _title(name: str, known: list[str]) -> str:
    matching = [title for title in known if name in (title, title.partition("/")[2])]
    if not matching:
        full = name if "/" in name else f"{known[0].partition('/')[0]}/{name}"
        raise BadInput(f'no ModelDeployment "{name}" in the files; {closest(full, known)}')
    if len(matching) > 1:
        raise BadInput(f'"{name}" is ambiguous: {", ".join(matching)}')
    return matching[0]


def read(files: Iterable[str]) -> Inputs:
    """Read files and say on standard error what cannot be read. Raises BadInput."""
    return taken(load(files))


def taken(manifests: Manifests, *, quietly: bool = False) -> Inputs:
    """Take manifests as the state of a control plane. Raises BadInput."""
    world = world_of(manifests)
    faults = () if quietly else tuple(faults_of(manifests, world))
    complain(faults)
    return Inputs(manifests, world, faults)


def closest(name: str, known: Iterable[str]) -> str:
    """Name what there is, for a message about what there is not."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for an error

    names = sorted(known)
    near = get_close_matches(name, names, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    shown = [*names[:SHOWN], *(["..."] if len(names) > SHOWN else [])]
    return f"there is {', '.join(shown)}" if shown else "there is none"

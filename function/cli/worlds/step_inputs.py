"""Step inputs: what Compositions give to our steps, as the objects that a command takes them for.

A pipeline's step has its input written into the Composition. In files and in a control plane alike, the input
of the Composition in use counts, unless an object of its kind stands in a file by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.cli.admission.kinds import head
from function.cli.text import listed, note
from function.cli.worlds.manifest import map_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.boundary import JsonObject
    from function.cli.worlds.manifest import Manifest, Manifests

COMPOSITION = "Composition"
GROUP = "apiextensions.crossplane.io/"
COMPOSED = {
    "SchedulerConfig": ("ModelDeployment",),
    "WorkloadConfig": ("ModelReplica",),
    "RoutingConfig": ("ModelEndpoint", "ModelService"),
}
"""Inputs of a step, and the kinds whose Compositions have such a step."""


def is_composition(content: JsonObject) -> bool:
    """Whether an object is a Composition of Crossplane."""
    return content.get("kind") == COMPOSITION and str(content.get("apiVersion")).startswith(GROUP)


def inputs_of(composition: Manifest) -> Iterator[Manifest]:
    """Every input of a step that is ours, as an object that knows where it stands."""
    pipeline = map_at(composition.content, "spec").get("pipeline")
    for number, step in enumerate(pipeline if isinstance(pipeline, list) else ()):
        given = map_at(step, "input")
        kind, slip = head(given)
        if (kind is not None and kind.is_input) or slip is not None:
            title = step.get("step", number)
            yield composition.part(("spec", "pipeline", number, "input"), given, f"step {title}")


def take(manifests: Manifests, compositions: Iterable[Manifest]) -> None:
    """Let inputs of Compositions count where no object of their kind is given; all of them are checked."""
    inputs = [(composition, given) for composition in compositions for given in inputs_of(composition)]
    manifests.step_inputs += [given for _, given in inputs]
    for config, composed in COMPOSED.items():
        if manifests[config]:
            _note_several(manifests[config])
            continue
        chosen = _chosen(inputs, config, composed, manifests)
        if len({str(given.content) for given in chosen.values()}) > 1:
            names = ", ".join(chosen)
            note(f"the Compositions {names} have different {config}s; the first is taken for all")
        if chosen:
            manifests.by_kind[config] = [next(iter(chosen.values()))]


def _note_several(given: list[Manifest]) -> None:
    if len(given) > 1:
        titles = listed([manifest.title for manifest in given])
        note(f"{len(given)} {given[0].kind}s are given ({titles}); the first is taken for all")


def _chosen(
    inputs: Iterable[tuple[Manifest, Manifest]], config: str, composed: tuple[str, ...], manifests: Manifests
) -> dict[str, Manifest]:
    """The inputs by the name of the Composition: of those in use, or of all where none is yet."""
    by_name: dict[str, Manifest] = {}
    for composition, given in sorted(inputs, key=lambda pair: pair[0].name):
        type_ref = map_at(map_at(composition.content, "spec"), "compositeTypeRef")
        if given.kind == config and type_ref.get("kind") in composed:
            by_name[composition.name] = given
    used = {_composition(composite) for kind in composed for composite in manifests[kind]}
    return {name: given for name, given in by_name.items() if name in used} or by_name


def _composition(composite: Manifest) -> str:
    """The Composition of a composite; Crossplane 2 keeps it below spec.crossplane."""
    machinery = map_at(map_at(composite.content, "spec"), "crossplane")
    return str(map_at(machinery, "compositionRef").get("name"))

"""The CEL selectors of one deployment, compiled once. One that does not compile makes the input invalid."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from function.cel import CompileError, Evaluations, Selector, compile_cluster, compile_device, compile_node
from function.scheduler.matching.published_value import Gap, gap

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from function.api import Device, ModelDeployment
    from function.api.deployment import Engine, Member, SubRequest
    from function.api.placement import PlacementPolicy
    from function.cel import Subject
    from function.scheduler.matching.devices import Probe


MOST, EACH = 128 * 1024, 100
"""Characters the selectors of one deployment may have together, and how many each one counts for besides
its own. Compiling so many takes a few seconds; without a bound, one deployment could hold up all others."""


NOTE = "selectors"
"""Where a deployment notes its compiled selectors: they are remembered as long as it is."""


@dataclass(frozen=True, slots=True)
class InvalidSelector:
    """A selector that does not compile: where it stands and what is wrong with it."""

    path: str
    error: CompileError
    cluster_level: bool = False


Found = tuple[str, str]
"""A path and the source found there."""


def _member_devices(path: str, member: Member) -> Iterator[Found]:
    for number, request in enumerate(member.requests):
        base = f"{path}.nodeSelector.devices[{number}]"
        for rank, sub in enumerate(request.ranked):
            where = f"{base}.firstAvailable[{rank}]" if request.first_available else base
            for index, selector in enumerate(sub.selectors):
                yield f"{where}.selectors[{index}]", selector.cel


def _member_nodes(path: str, member: Member) -> Iterator[Found]:
    if member.node_selector:
        for index, selector in enumerate(member.node_selector.selectors):
            yield f"{path}.nodeSelector.selectors[{index}]", selector.cel


def _members(deployment: ModelDeployment) -> Iterator[tuple[str, Member]]:
    for number, shape in enumerate(deployment.shapes):
        base = f"alternatives[{number - 1}].engines" if number else "engines"
        for place, engine in enumerate(shape.engines):
            yield from _of_engine(f"{base}[{place}]", engine)


def _of_engine(path: str, engine: Engine) -> Iterator[tuple[str, Member]]:
    for place, member in enumerate(engine.members):
        yield f"{path}.members[{place}]", member


def _cluster_sources(deployment: ModelDeployment, policy: PlacementPolicy) -> Iterator[Found]:
    for index, source in enumerate(deployment.template.cluster_selector.cel):
        yield f"clusterSelector.cel[{index}]", source
    for index, preference in enumerate(policy.preferences or ()):
        if preference.cel:
            yield f"placement.preferences[{index}].cel", preference.cel


@dataclass(slots=True)
class Selectors:
    """Compiled selectors by source, the invalid ones, and the memory of what was evaluated."""

    device: dict[str, Selector] = field(default_factory=dict)
    node: dict[str, Selector] = field(default_factory=dict)
    cluster: dict[str, Selector] = field(default_factory=dict)
    invalid: list[InvalidSelector] = field(default_factory=list)
    evaluations: Evaluations = field(default_factory=Evaluations)
    probes: dict[tuple[int, int], tuple[SubRequest, Device, Probe]] = field(default_factory=dict)
    """What was found out in this pass, by what it is about; kept here, so that no other takes its place."""
    gaps: dict[tuple[Selector, Hashable], Gap] = field(default_factory=dict)
    length: int = 0
    """What they count for so far, see `MOST`; one that is stated twice counts once."""

    def gap(self, selector: Selector, subject: Subject) -> Gap:
        """What lies between a subject and a selector, found once for all subjects that it reads alike."""
        key = (selector, selector.projection(subject))
        found = self.gaps.get(key)
        if found is None:
            found = self.gaps[key] = gap(selector, subject)
        return found

    def _add(self, into: dict[str, Selector], build: Callable[[str], Selector], found: Found) -> None:
        path, source = found
        if source in into:
            return
        self.length += len(source) + EACH
        try:
            into[source] = (build if self.length <= MOST else _too_much)(source)
        except CompileError as error:
            # They hold this call's frames, and with them the request, until the collector comes by.
            error.__traceback__ = error.__context__ = None
            self.invalid.append(InvalidSelector(path, error, cluster_level=into is self.cluster))


def _too_much(source: str) -> Selector:
    """Refuse one selector more than may be compiled."""
    raise CompileError(f"the selectors of a deployment have over {MOST} characters", source, 0)


def compile_selectors(deployment: ModelDeployment, policy: PlacementPolicy, release: str) -> Selectors:
    """Compile everything the deployment and its policy select with. Never raises.

    Selectors of devices are read as Kubernetes `release` reads them; a cluster that says its own release has
    devices that make a selector read itself anew.
    """
    device = partial(compile_device, release=release)
    compiled = Selectors()
    for found in _cluster_sources(deployment, policy):
        compiled._add(compiled.cluster, compile_cluster, found)  # noqa: SLF001 - its own builder
    for path, member in _members(deployment):
        for found in _member_nodes(path, member):
            compiled._add(compiled.node, compile_node, found)  # noqa: SLF001
        for found in _member_devices(path, member):
            compiled._add(compiled.device, device, found)  # noqa: SLF001
    levels = (compiled.device, compiled.node, compiled.cluster)
    deployment.notes[NOTE] = tuple(selector for level in levels for selector in level.values())
    return compiled

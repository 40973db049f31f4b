"""Whether the CEL selectors of a deployment compile. One that does not makes the input invalid.

The programs are held by the fields that state them (`api.cel_selector`); here they are gone through once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.api.requests import requests_of
from function.cel import CompileError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from function.api import ModelDeployment
    from function.api.cel_selector import CelSelector
    from function.api.placement import Preference
    from function.cel import Selector

MAX_LENGTH, SELECTOR_OVERHEAD = 128 * 1024, 100
"""Characters the selectors of one deployment may have together, and how many each one counts for besides
its own; one that is stated twice counts once. Compiling so many takes a few seconds; without a bound, one
deployment could hold up all others."""

OF_DEPLOYMENT, OF_INPUT = "placement", "the function's input, defaults.placement"
"""Where the preferences that apply to a deployment are stated."""


class HeldPrograms:
    """The programs of a deployment's selectors, those of the policy that applies to it too.

    Law: a text has one program. Buys: they live as long as the deployment and are not compiled again.
    """

    programs: tuple[Selector, ...] = ()


@dataclass(frozen=True, slots=True)
class InvalidSelector:
    """A selector that does not compile: where it stands and what is wrong with it."""

    path: str
    error: CompileError
    cluster_level: bool = False


@dataclass(frozen=True, slots=True)
class Selectors:
    """What a deployment selects with, once it was gone through."""

    devices: tuple[Selector, ...] = ()
    """The different selectors over devices, in the order in which they are stated."""
    reads_pools: bool = False
    """Whether some selector reads the pool itself, so that its name and attributes decide a match."""
    invalid: tuple[InvalidSelector, ...] = ()
    programs: tuple[Selector, ...] = ()
    """All that compile, each different one once."""


@dataclass(frozen=True, slots=True)
class _Stated:
    """A selector and where it is stated."""

    path: str
    level: str
    """What it is about: `cluster`, `pool`, `device`, or `claim`, which is never matched in the fleet."""
    selector: CelSelector


def _stated(
    deployment: ModelDeployment, preferences: tuple[Preference, ...], origin: str
) -> Iterator[_Stated]:
    for index, expression in enumerate(deployment.template.cluster_selector.expressions):
        yield _Stated(f"clusterSelector.cel[{index}]", "cluster", expression)
    for index, preference in enumerate(preferences):
        if preference.cel:
            yield _Stated(f"{origin}.preferences[{index}].cel", "cluster", preference.expression)
    for reference in deployment.members:
        node_selector = reference.member.node_selector
        for index, pool_selector in enumerate(node_selector.selectors if node_selector else ()):
            yield _Stated(f"{reference.path}.nodeSelector.selectors[{index}]", "pool", pool_selector)
        for request in requests_of([reference]):
            for index, selector in enumerate(request.sub.selectors):
                yield _Stated(f"{request.path}.selectors[{index}]", "device", selector)
            for index, selector in enumerate(request.sub.claim_selectors):
                yield _Stated(f"{request.path}.claimSelectors[{index}]", "claim", selector)


def check_selectors(
    deployment: ModelDeployment,
    preferences: tuple[Preference, ...],
    release: str,
    origin: str = OF_DEPLOYMENT,
) -> Selectors:
    """Go through everything a deployment and the policy that applies to it select with. Never raises.

    Selectors of devices are read as Kubernetes `release` reads them; a cluster that says its own release has
    devices that make a selector read itself anew. `origin` says where the preferences are stated.
    """
    devices: list[Selector] = []
    programs: list[Selector] = []
    invalid: list[InvalidSelector] = []
    visited: set[tuple[str, str]] = set()
    length, reads_pools = 0, False
    for stated in _stated(deployment, preferences, origin):
        source = stated.selector.cel
        if (stated.level, source) in visited:
            continue
        length += len(source) + SELECTOR_OVERHEAD
        outcome = stated.selector.compiled(release) if length <= MAX_LENGTH else _too_long(source)
        if isinstance(outcome, CompileError):
            invalid.append(InvalidSelector(stated.path, outcome, cluster_level=stated.level == "cluster"))
            continue
        visited.add((stated.level, source))
        programs.append(outcome)
        reads_pools = reads_pools or stated.level == "pool"
        if stated.level == "device":
            devices.append(outcome)
    return Selectors(tuple(devices), reads_pools, tuple(invalid), tuple(programs))


def _too_long(source: str) -> CompileError:
    """Refuse one selector more than may be compiled."""
    return CompileError(f"the selectors of a deployment have over {MAX_LENGTH} characters", source, 0)

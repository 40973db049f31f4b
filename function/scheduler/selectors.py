"""Selectors: the CEL of a deployment, compiled once, and what it says of clusters, pools and devices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from function.api.engine import requests_of
from function.api.reasons import Gap
from function.cel import CompileError, OutcomeCache

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from function.api import Device, ModelDeployment
    from function.api.deployment import Preference
    from function.api.engine import CelSelector, SubRequest
    from function.cel import Comparison, Reference, Selector, Subject
    from function.cel.selector import Conjunct, Outcome


# Explain a failing selector: what a subject publishes where its first failing term reads.
#
# `memory 40Gi`, and `at least 80Gi`. A term that reads no name of its own (`"x" in device.attributes`) has
# nothing to show: it is what is asked for, as it stands.

MAX_WANTED = 60
"""Characters of a term that is shown as it stands."""

_DOMAIN = re.compile(r'\bdevice\.(?:attributes|capacity)\[(?:"[^"]*"|\'[^\']*\')\]\.(?=\w)')
_MAPS = {"attribute", "capacity", "label"}
_FIELDS = {"attribute": "attributes", "label": "labels"}
_PHRASES = {
    "==": "{}",
    "!=": "other than {}",
    ">=": "at least {}",
    ">": "more than {}",
    "<=": "at most {}",
    "<": "less than {}",
}


def gap(selector: Selector, subject: Subject) -> Gap:
    """The gap at the first failing term; empty when no term fails."""
    for term, compared in _terms(selector):
        if term.evaluate(subject).kind != "match":
            read = (name for name in term.named if name.id or name.kind not in _MAPS)
            has = ", ".join(_published(subject, reference) for reference in read)
            return Gap(has, _PHRASES[compared.operator].format(compared.literal) if compared else _cut(term))
    return Gap()


def _terms(selector: Selector) -> Iterator[tuple[Conjunct, Comparison | None]]:
    """Every term of a selector with the comparison it is, if it is one: the one that stands inside of it."""
    end = 0
    comparisons = selector.comparisons()
    for term in selector.conjuncts():
        start = selector.source.index(term.source, end)
        end = start + len(term.source)
        inside = (compared for compared in comparisons if start <= compared.start < end)
        yield term, next(inside, None)


def _cut(term: Conjunct) -> str:
    """A term on one line, without the domains of what it reads, and cut where it is long."""
    text = _DOMAIN.sub("", " ".join(term.source.split()))
    return text if len(text) <= MAX_WANTED else f"{text[: MAX_WANTED - 1]}…"


def _published(subject: Subject, reference: Reference) -> str:
    """`memory 80Gi`, or `no memory`; every value where the name is not written out."""
    path = tuple(part for part in _path(reference) if part is not None)
    values = sorted(_under(subject, path))
    return ", ".join(f"{name} {value}" for name, value in values) or f"no {reference.id or reference}"


def _path(reference: Reference) -> tuple[str | None, ...]:
    return (_FIELDS.get(reference.kind, reference.kind), reference.domain, reference.id)


def _under(subject: Subject, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if path in subject.content:
        yield path[-1], _text(subject.content[path])
        return
    for key, content in subject.content.items():
        if key[: len(path)] == path:
            yield key[-1], _text(content)


def _text(content: object) -> str:
    """A value as it was published: an attribute is kept with its kind."""
    value = content[1] if isinstance(content, tuple) else content
    if isinstance(value, tuple):
        return f"[{', '.join(_text(item) for item in value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


# Evaluate selectors on devices, pools and clusters, each pair once in a pass.


class Probe(NamedTuple):
    """What the selectors of a request said to one device entry."""

    kind: str
    """match, nomatch, error or cost."""
    selector: int = -1
    message: str = ""


class Evaluations:
    """What selectors said in one pass.

    Law: equal selectors say the same of subjects of which they read the same. Buys: a selector runs once
    for all the pools of a fleet that publish the same, not once for each.
    """

    def __init__(self, release: str) -> None:
        """Start with nothing, for the Kubernetes release that reads selectors."""
        self._release = release
        self.outcomes = OutcomeCache()
        self._probes: dict[tuple[SubRequest, Subject], Probe] = {}
        self._domains: dict[SubRequest, frozenset[str]] = {}
        self._gaps: dict[tuple[Selector, Hashable], Gap] = {}

    def program(self, selector: CelSelector) -> Selector:
        """The program of a selector that compiles. Raises CompileError."""
        return selector.program(self._release)

    def outcome(self, selector: Selector, subject: Subject) -> Outcome:
        """What one selector says of a subject."""
        return self.outcomes.outcome(selector, subject)

    def matches(self, selector: Selector, subject: Subject) -> bool:
        """Whether a selector matches a subject."""
        return self.outcomes.outcome(selector, subject).kind == "match"

    def probe(self, sub: SubRequest, device: Device) -> Probe:
        """Ask the selectors of a request about a device entry."""
        key = (sub, device.subject)
        probe = self._probes.get(key)
        if probe is None:
            probe = self._probes[key] = self._probe(sub, device.subject)
        return probe

    def _probe(self, sub: SubRequest, subject: Subject) -> Probe:
        """Ask the selectors in order; the first that does not match decides, as in Kubernetes."""
        for index, selector in enumerate(sub.selectors):
            outcome = self.outcomes.outcome(self.program(selector), subject)
            if outcome.kind != "match":
                return Probe(outcome.kind, index, outcome.message)
        return Probe("match")

    def domains(self, sub: SubRequest) -> frozenset[str]:
        """The domains in which the selectors of a request read something."""
        domains = self._domains.get(sub)
        if domains is None:
            reads = (read for selector in sub.selectors for read in self.program(selector).reads)
            domains = self._domains[sub] = frozenset(read.domain for read in reads if read.domain)
        return domains

    def gap(self, selector: Selector, subject: Subject) -> Gap:
        """What lies between a subject and a selector, computed once for all of which it reads the same."""
        key = (selector, selector.projection(subject))
        cached_gap = self._gaps.get(key)
        if cached_gap is None:
            cached_gap = self._gaps[key] = gap(selector, subject)
        return cached_gap


# Whether the CEL selectors of a deployment compile. One that does not makes the input invalid.
#
# The programs are held by the fields that state them (`api.engine`); here they are gone through once.

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

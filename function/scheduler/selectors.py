"""Selectors: the CEL of a deployment, compiled once, and what it says of clusters, pools and devices.

Tenants write selectors, and one process answers for all tenants. So their length, their number and what they
cost are bounded, in units and never in seconds: the same request gets the same answer on a slow machine.

1. `gap` explains a mismatch: what is published where the first failing term reads.
2. `Evaluations` asks a selector once of all subjects of which it reads the same.
3. `check_selectors` goes through a deployment once. Selectors that do not compile, or cost too much together,
   make its input invalid; nothing is placed then, and what runs stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import NamedTuple

from function.api.cluster import InferenceCluster
from function.api.deployment import CelSelector, ModelDeployment, Preference, SubRequest, requests_of
from function.api.devices import Device
from function.api.reasons import Gap
from function.boundary import frozen
from function.cel import CompileError, OutcomeMemo, Reference, Selector, Subject, published
from function.cel.library.charges import LIMIT
from function.cel.selector import Conjunct, Outcome, Program

MAX_LENGTH, SELECTOR_OVERHEAD = 32 * 1024, 200
"""Characters the selectors of one deployment may have together, and how many each one counts for besides its
own; one that is stated twice counts once. Without a bound, compiling them could hold up all others."""
PEER_LENGTH = 2 * 1024
"""Characters that the selectors of a deployment may have that places before ours, whatever others have."""
ALLOWANCE, UNITS = 128, 3_000_000
"""Units of every evaluation's own, and those that all evaluations of a pass share: see below."""
FEW, MOST = 16, 20_000
"""Selectors that may be asked of every device however many there are, and evaluations that more may make."""
LOOKS, TRIED = 50_000, 250
"""Looks that more than a FEW ways to serve device requests may take, and those of one search, at most."""


class Share(NamedTuple):
    """The bounds of what the selectors of one deployment may cost."""

    most: int
    """Evaluations of more than a FEW."""
    longest: int
    """Characters."""


WHOLE = Share(MOST, MAX_LENGTH)


# Explain a failing selector: what a subject publishes where its first failing term reads.
#
# `memory 40Gi`, and `at least 80Gi`. A term that reads no name of its own (`"x" in device.attributes`) has
# nothing to show: it is what is asked for, as it stands.

MAX_WANTED = 60
"""Characters of a term that is shown as it stands."""

_DOMAIN = re.compile(r'\bdevice\.(?:attributes|capacity)\[(?:"[^"]*"|\'[^\']*\')\]\.(?=\w)')
_MAPS = {"attribute", "capacity", "label"}
_PHRASES = {
    "==": "{}",
    "!=": "other than {}",
    ">=": "at least {}",
    ">": "more than {}",
    "<=": "at most {}",
    "<": "less than {}",
}


def gap(selector: Selector, subject: Subject) -> Gap:
    """The gap at the first failing term; empty when no term fails, or one takes too long to look at."""
    for term in selector.conjuncts:
        outcome = term.evaluate(subject, ALLOWANCE)
        if outcome.kind == "cost":
            break
        if outcome.kind != "match":
            read = (name for name in term.reads if name.id or name.kind not in _MAPS)
            has = ", ".join(_published(subject, reference) for reference in read)
            compared = term.comparison
            return Gap(has, _PHRASES[compared.operator].format(compared.literal) if compared else _cut(term))
    return Gap()


def _cut(term: Conjunct) -> str:
    """A term on one line, without the domains of what it reads, and cut where it is long."""
    text = _DOMAIN.sub("", " ".join(term.source.split()))
    return text if len(text) <= MAX_WANTED else f"{text[: MAX_WANTED - 1]}…"


def _published(subject: Subject, reference: Reference) -> str:
    """`memory 80Gi`, or `no memory`."""
    name, value = reference.id or reference.kind, published(subject, reference)
    return f"no {name}" if value is None else f"{name} {value}"


# Evaluate selectors on devices, pools and clusters, each pair once in a pass and within a budget.
#
# Units, not seconds, and nothing is counted while a pass runs: the same request must get the same answer,
# in whatever order it is looked at and whatever is remembered of earlier calls.
#
# 1. Every evaluation has ALLOWANCE units of its own, nearly twice what a real selector costs. What is found
#    out within them may be remembered from call to call.
# 2. An evaluation that needs more may take its part of UNITS: as much as any other that the pass could make,
#    of each selector on each different device, pool or cluster. One that needs more than that says `cost`.
#    What was found out with a part holds for this pass only (`dear`), because the part depends on the fleet.
# 3. A deployment with more than FEW selectors makes at most MOST evaluations; with more its input is invalid
#    in this fleet. One with fewer may ask all of them of every device.
#    So may one with that many ways to serve its requests; with more it takes at most LOOKS: one for each way
#    on each device entry, and as many as the ways can be combined in, up to TRIED for each member.
# 4. A deployment that places before ours (`coordination`) has the units of rule 1, and of the evaluations of
#    rule 3 half of those that the ones before it left. One that needs more is left out, and named. So is one
#    whose selectors are longer than PEER_LENGTH by more than half of what those before it left of MAX_LENGTH:
#    the first call about many deployments compiles the selectors of all.


class Probe(NamedTuple):
    """The answers of a request's selectors for one device entry."""

    kind: str
    """match, nomatch, error or cost."""
    selector: int = -1
    message: str = ""
    dear: bool = False
    """Whether some selector took units that evaluations share."""


class Evaluations:
    """The answers of selectors in one pass.

    Law: equal selectors say the same of subjects of which they read the same. Buys: a selector runs once
    for all the pools of a fleet that publish the same, not once for each.
    """

    def __init__(self, release: str, count: Callable[[], int] | None = None) -> None:
        """Start with nothing, for the Kubernetes release that reads selectors.

        `count` says how many evaluations the pass could make; without it, none has more than its own units.
        """
        self._release = release
        self._count = count
        self.outcomes = OutcomeMemo(self._evaluate)
        self.dear = 0
        """How often an outcome was returned that had taken units which evaluations share."""
        self.unjudged: dict[int, set[str]] = {}
        """The clusters on which a preference ran out of units and counts nothing, by its position."""
        self._probes: dict[tuple[SubRequest, Subject], Probe] = {}
        self._domains: dict[SubRequest, frozenset[str]] = {}
        self._gaps: dict[tuple[Selector, Hashable], Gap] = {}

    def program(self, selector: CelSelector) -> Selector:
        """The program of a selector that compiles. Raises CompileError."""
        return selector.program(self._release)

    @cached_property
    def _part(self) -> int:
        """Units of one evaluation: a power of two, so that few changes of a fleet change what is said."""
        part = UNITS // max(1, self._count()) if self._count else ALLOWANCE
        return min(LIMIT, max(ALLOWANCE, 1 << part.bit_length() >> 1))

    def _evaluate(self, selector: Program, subject: Subject) -> Outcome:
        """Evaluate within the units of its own first: only what they are too few for depends on the fleet."""
        outcome = selector.evaluate(subject, ALLOWANCE)
        if outcome.kind != "cost":
            return outcome
        return replace(selector.evaluate(subject, self._part), dear=True)

    def outcome(self, selector: Selector, subject: Subject) -> Outcome:
        """Return the outcome of one selector for a subject."""
        outcome = self.outcomes.outcome(selector, subject)
        self.dear += outcome.dear
        return outcome

    def probe(self, sub: SubRequest, device: Device) -> Probe:
        """Ask the selectors of a request about a device entry."""
        key = (sub, device.subject)
        probe = self._probes.get(key)
        if probe is None:
            probe = self._probes[key] = self._probe(sub, device.subject)
        self.dear += probe.dear
        return probe

    def _probe(self, sub: SubRequest, subject: Subject) -> Probe:
        """Ask the selectors in order; the first that does not match decides, as in Kubernetes."""
        dear = False
        for index, selector in enumerate(sub.selectors):
            outcome = self.outcomes.outcome(self.program(selector), subject)
            dear = dear or outcome.dear
            if outcome.kind != "match":
                return Probe(outcome.kind, index, outcome.message, dear)
        return Probe("match", dear=dear)

    def domains(self, sub: SubRequest) -> frozenset[str]:
        """The domains in which the selectors of a request read something."""
        domains = self._domains.get(sub)
        if domains is None:
            reads = (read for selector in sub.selectors for read in self.program(selector).reads)
            domains = self._domains[sub] = frozenset(read.domain for read in reads if read.domain)
        return domains

    def gap(self, selector: Selector, subject: Subject) -> Gap:
        """Return the gap between a subject and a selector, once for subjects that read the same."""
        key = (selector, selector.projection(subject))
        cached_gap = self._gaps.get(key)
        if cached_gap is None:
            cached_gap = self._gaps[key] = gap(selector, subject)
        return cached_gap


# Check that the CEL selectors of a deployment compile. One that does not makes the input invalid.
#
# The programs are held by the fields that state them (`CelSelector.by_release`), so they live as long as the
# parsed object does, and no later call compiles them again. Here they are gone through once.

OF_DEPLOYMENT, OF_INPUT = "placement", "the function's input, defaults.placement"
"""Where the preferences that apply to a deployment are stated."""


@frozen
class InvalidSelector:
    """A selector that does not compile: where it stands and what is wrong with it."""

    path: str
    error: CompileError
    cluster_level: bool = False


@frozen
class Selectors:
    """The selectors of a deployment, compiled once."""

    devices: int = 0
    """How many different ones are about devices."""
    pools: int = 0
    """How many different ones read the pool itself, so that its name and attributes decide a match."""
    clusters: int = 0
    """How many different ones are about clusters."""
    invalid: tuple[InvalidSelector, ...] = ()
    too_many: bool = False
    """Whether they are invalid because they would be evaluated too often."""
    ways: int = 0
    """In how many ways the device requests of different members are served."""
    looks: int = 0
    """Looks that matching all of them on one device entry takes."""
    length: int = 0
    """Characters that are compiled, as MAX_LENGTH counts them."""
    too_long: bool = False
    """Whether they are invalid because they have more."""

    @property
    def number(self) -> int:
        """How many different ones are matched in the fleet."""
        return self.devices + self.pools + self.clusters

    @property
    def many(self) -> bool:
        """Tell whether they are more than may be asked of everything, however much there is."""
        return max(self.number, self.ways) > FEW

    def work(self, clusters: Collection[InferenceCluster]) -> int:
        """Estimate what a pass could take of MOST: evaluations, or looks at device entries, as many."""
        if self.ways <= FEW:
            return self.evaluations(clusters)
        lists = {pool.device_key: pool.devices for cluster in clusters for pool in cluster.pools}
        entries = sum(len(devices or ()) for devices in lists.values())
        looks = -(-self.looks * entries * MOST // LOOKS)
        return looks if self.number <= FEW else max(looks, self.evaluations(clusters))

    def evaluations(self, clusters: Collection[InferenceCluster]) -> int:
        """How many evaluations a pass could make: of each selector on all that it is about.

        Equal devices count once, wherever they are.
        """
        pools = [pool for cluster in clusters for pool in cluster.pools]
        devices = {device.subject for pool in pools for device in pool.devices or () if self.devices}
        return self.devices * len(devices) + self.pools * len(pools) + self.clusters * len(clusters)


@frozen
class _Stated:
    """A selector and where it is stated."""

    path: str
    level: str
    """What it is about: `cluster`, `pool`, `device`, or `claim`, which is never matched in the fleet."""
    selector: CelSelector


def _stated(
    deployment: ModelDeployment, preferences: tuple[Preference, ...], origin: str = OF_DEPLOYMENT
) -> Iterator[_Stated]:
    """Yield every selector of a deployment with its path: the one walk that compiles, counts and charges."""
    for index, expression in enumerate(deployment.template.cluster_selector.expressions):
        yield _Stated(f"clusterSelector.cel[{index}]", "cluster", expression)
    for index, preference in enumerate(preferences):
        if preference.cel:
            yield _Stated(f"{origin}.preferences[{index}].cel", "cluster", preference.expression)
    for reference in deployment.members:
        for index, pool_selector in enumerate(reference.member.node_selector.selectors):
            yield _Stated(f"{reference.path}.nodeSelector.selectors[{index}]", "pool", pool_selector)
        for request in requests_of([reference]):
            for index, selector in enumerate(request.sub.selectors):
                yield _Stated(f"{request.path}.selectors[{index}]", "device", selector)
            for index, selector in enumerate(request.sub.claim_selectors):
                yield _Stated(f"{request.path}.claimSelectors[{index}]", "claim", selector)


def programs_of(deployment: ModelDeployment) -> Iterator[Selector]:
    """Yield the programs that the selectors of a deployment hold: its memory is charged for them."""
    stated = deployment.spec.placement.preferences if deployment.spec.placement else None
    for item in _stated(deployment, stated or ()):
        for outcome in item.selector.by_release.values():
            if isinstance(outcome, Selector):
                yield outcome


def check_selectors(
    deployment: ModelDeployment,
    preferences: tuple[Preference, ...],
    release: str,
    origin: str = OF_DEPLOYMENT,
    *,
    clusters: Collection[InferenceCluster] = (),
    share: Share = WHOLE,
) -> Selectors:
    """Go through everything a deployment and the policy that applies to it select with. Never raises.

    Selectors of devices are read as Kubernetes `release` reads them; a cluster that says its own release has
    devices that make a selector read itself anew. `origin` says where the preferences are stated, `share`
    how many evaluations on `clusters` more than a FEW may make, and how many characters they may have.
    """
    invalid: list[InvalidSelector] = []
    visited: set[tuple[str, str]] = set()
    length, last = 0, ""
    levels: Counter[str] = Counter()
    for stated in _stated(deployment, preferences, origin):
        source = stated.selector.cel
        if (stated.level, source) in visited:
            continue
        length += len(source) + SELECTOR_OVERHEAD
        if length <= share.longest:
            outcome = stated.selector.compiled(release)
        else:
            text = f"the selectors of a deployment have over {share.longest} characters"
            outcome = CompileError(text, source, 0)
        if isinstance(outcome, CompileError):
            invalid.append(InvalidSelector(stated.path, outcome, cluster_level=stated.level == "cluster"))
            continue
        visited.add((stated.level, source))
        levels[stated.level] += 1
        if stated.level != "claim":
            last = stated.path
    ways, looks = _looks(deployment)
    selectors = Selectors(
        *(levels["device"], levels["pool"], levels["cluster"], tuple(invalid)),
        ways=ways,
        looks=looks,
        length=min(length, share.longest),
        too_long=length > share.longest,
    )
    if not selectors.many or invalid or selectors.work(clusters) <= share.most:
        return selectors
    subject, take = f"{selectors.number} different selectors", f"be evaluated {share.most} times"
    if selectors.number <= FEW or selectors.evaluations(clusters) <= share.most:
        subject, take = f"{ways} ways to serve device requests", f"take {share.most * LOOKS // MOST} looks"
        last = deployment.requests[-1].path
    fault = CompileError(
        f"{subject} may {take} on all devices, pools and clusters together, and this fleet has more of them; "
        f"up to {FEW} may be as often as it takes",
        "",
        0,
    )
    return replace(selectors, invalid=(InvalidSelector(last, fault),), too_many=True)


def _looks(deployment: ModelDeployment) -> tuple[int, int]:
    """Return in how many ways requests are served, and how many looks that takes on a device entry.

    Members that ask for the same are matched once.
    """
    members = {reference.member.node_selector: reference.member for reference in deployment.members}
    ranks = [[len(request.ranked) for request in member.requests] for member in members.values()]
    ways = sum(map(sum, ranks))
    return ways, ways + sum(min(TRIED, prod(numbers)) for numbers in ranks)

"""Evaluate selectors on devices, pools and clusters, each pair once in a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from function.cel import OutcomeCache
from function.scheduler.selectors.published_value import gap

if TYPE_CHECKING:
    from collections.abc import Hashable

    from function.api import Device
    from function.api.cel_selector import CelSelector
    from function.api.engine import SubRequest
    from function.api.reasons import Gap
    from function.cel import Selector, Subject
    from function.cel.selector import Outcome


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

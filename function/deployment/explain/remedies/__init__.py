"""Remedies: changes that might let one more replica fit, read off the recorded rejections.

None is proved yet. Each proposer looks at one kind of rejection and gives its most promising changes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.deployment.explain.change import Effort
from function.deployment.explain.relax import Rewrite
from function.deployment.explain.remedies.capacity import holders, nodes
from function.deployment.explain.remedies.clusters import (
    caches,
    drains,
    gateways,
    hydration,
    labels,
    readiness,
    taints,
)
from function.deployment.explain.remedies.context import ProposalContext
from function.deployment.explain.remedies.limits import limits
from function.deployment.explain.remedies.requests import counts, rewritten, selectors
from function.deployment.explain.spelling import unflattened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from function.api.reasons import Rejection
    from function.deployment.explain.change import InputChange
    from function.scheduler.decision import Decision
    from function.scheduler.scheduling_input import SchedulingInput

PROPOSERS: tuple[Callable[[ProposalContext], Iterator[InputChange]], ...] = (
    selectors,
    labels,
    caches,
    hydration,
    limits,
    taints,
    holders,
    counts,
    readiness,
    gateways,
    nodes,
    drains,
)
"""In the order in which their changes are tried: the cheapest first, as far as a kind has one price."""


def corrections(inputs: SchedulingInput) -> Iterator[InputChange]:
    """What may be meant by device selectors that do not compile."""
    for invalid in inputs.selectors.invalid:
        new = unflattened(invalid.error.source, inputs.fleet)
        if new:
            yield rewritten(Rewrite(Effort.SPELLING, invalid.error.source, new, "correct the spelling"))


def proposals(decision: Decision, rejections: Mapping[str, Rejection]) -> Iterable[InputChange]:
    """Every proposal: the best of each kind first, then the second best of each."""
    context = ProposalContext(decision, rejections)
    columns = [list(proposer(context)) for proposer in PROPOSERS]
    for row in range(max(map(len, columns), default=0)):
        yield from (column[row] for column in columns if row < len(column))

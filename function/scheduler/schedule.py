"""One pass: retain, scale down, fill, replace, in this order. The whole placement, every time."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from function.fleet import Told
from function.scheduler.coordination import reserve
from function.scheduler.decision import Decision
from function.scheduler.fill import Placing, fill
from function.scheduler.fit import Fits
from function.scheduler.indices import Indices
from function.scheduler.ledger import Ledger
from function.scheduler.overcommit import overcommitted_pools
from function.scheduler.places import Places
from function.scheduler.replace import replace
from function.scheduler.retain import retain
from function.scheduler.scale_down import scale_down
from function.scheduler.tally import Tally

if TYPE_CHECKING:
    from function.api import ModelReplica
    from function.own import Own
    from function.scheduler.decision import Dropped, Kept, Placed
    from function.scheduler.question import Question
    from function.scheduler.reason import Rejection


def open_ledger(question: Question) -> Ledger:
    """Charge every replica that exists: everybody's, until it is really gone."""
    fleet = question.fleet
    ledger = Ledger(fleet.clusters.values())
    for replica in fleet.charged:
        ledger.open(replica, replica.cluster)
    for own in fleet.own:
        ledger.open(_known_to_leave(own), own.holds)
    return ledger


def _known_to_leave(own: Own) -> ModelReplica:
    """The replica, marked as being deleted where only the list knows that."""
    stale = own.terminating and not own.replica.deleting
    return own.replica._replace(deleting=True) if stale else own.replica


def may_place(question: Question) -> bool:
    """Whether anything new may be placed: everything told, nothing absent, every selector valid."""
    fleet = question.fleet
    fleet_known = fleet.inputs_told and fleet.told_clusters is Told.DELIVERED
    cache_known = fleet.told_cache in (None, Told.DELIVERED)
    known = fleet_known and cache_known and question.peers.resolved
    return known and not question.selectors.invalid and not question.config_fault


def schedule(question: Question, *, room: int | None = None) -> Decision:
    """Decide. `room` caps how many new replicas the answer can carry; None is no cap."""
    ledger = open_ledger(question)
    if may_place(question):
        reserve(question, ledger, run_pass)
    decision = run_pass(question, ledger, room=room)
    return dataclasses.replace(decision, overcommitted=overcommitted_pools(question.fleet.own, ledger))


def run_pass(question: Question, ledger: Ledger, *, room: int | None = None) -> Decision:
    """Take one deployment through its pass, on a ledger that may hold what others would take."""
    fits = Fits(question)
    retained = retain(question, fits, ledger)
    kept, scaled = scale_down(question, ledger, retained.kept)
    dropped = [*retained.dropped, *scaled]
    if not may_place(question):
        return Decision(question, ledger, kept, (), tuple(dropped), matched=fits.matched)
    tally = Tally(each.own.cluster for each in kept)
    placing = Placing(
        Places(question, fits, ledger, tally), ledger, Indices(question.deployment, question.fleet)
    )
    return _place(question, placing, fits, kept, dropped, room)


def _place(
    question: Question,
    placing: Placing,
    fits: Fits,
    kept: tuple[Kept, ...],
    dropped: list[Dropped],
    room: int | None,
) -> Decision:
    """Fill the shortfall, then replace the mismatched."""
    shortfall = max(0, question.deployment.wanted - len(kept))
    allowed = shortfall if room is None else min(shortfall, room)
    placed: list[Placed] = fill(placing, allowed)
    least = question.deployment.least
    enough = least is None or len(kept) + len(placed) >= least
    withheld, full = (0, {}) if enough else _withhold(placing, placed)
    if enough:
        done, kept = replace(question, placing, kept)
        placed.extend(each.placed for each in done)
        dropped.extend(each.dropped for each in done)
    return Decision(
        question,
        placing.ledger,
        kept,
        tuple(placed),
        tuple(dropped),
        full=full,
        stopped="the response would grow too large" if allowed < shortfall and len(placed) == allowed else "",
        withheld=withheld,
        matched=fits.matched,
        places=placing.places,
    )


def _withhold(placing: Placing, placed: list[Placed]) -> tuple[int, dict[str, Rejection]]:
    """Below minReplicas nothing new is placed, no replacement either; it never drops what runs.

    Returns how many had a place, and why no cluster took one more than those.
    """
    withheld, full = len(placed), placing.places.rejections() if placed else {}
    while placed:
        placing.undo(placed.pop())
    return withheld, full

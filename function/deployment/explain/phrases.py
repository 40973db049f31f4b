"""Phrase one recorded fact in one line: why a cluster takes no replica, why a replica went where it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.cache import Readiness
from function.api.reasons import Reason
from function.scheduler.causes import OUTDATED
from function.scheduler.outcomes import Update

if TYPE_CHECKING:
    from function.api.reasons import Rejection
    from function.scheduler.outcomes import Dropped, Kept, Placed

LAST_RESORT = "first by name"
"""The score that always applies: it is worth a word only where nothing else decided."""


def rejection_phrase(rejection: Rejection) -> str:
    """`main on frontier: needs 2, 1 free of 4`."""
    engine = rejection.engine
    if rejection.alternative:
        engine = f"{engine} ({rejection.alternative})" if engine else rejection.alternative
    where = " on ".join(part for part in (engine, rejection.pool) if part)
    return ": ".join(part for part in (where, particular_phrase(rejection)) if part)


def particular_phrase(rejection: Rejection) -> str:
    """`gpu: memory 40Gi (selector 2)`: the particulars without the place."""
    what = rejection.particular
    if rejection.request:
        role = f"{rejection.member}, " if rejection.member not in ("", "Standalone") else ""
        what = f"{role}{rejection.request}: {what}" if what else f"{role}{rejection.request}"
    if rejection.selector is not None:
        what += f" (selector {rejection.selector})"
    return f"{what}{', ' if what else ''}{numbers(rejection)}" if numbers(rejection) else what


def numbers(rejection: Rejection) -> str:
    """`needs 2, 1 free of 4`; empty without numbers."""
    if rejection.needs is None:
        return ""
    total = f" of {rejection.total}" if rejection.total is not None else ""
    if rejection.request:
        return f"needs {rejection.needs}, the device entry {rejection.device} has {rejection.free}"
    if rejection.reason is Reason.TopologySpread:
        return ""  # Its detail has them.
    if rejection.free is None:
        return f"would be {rejection.needs}, allowed {rejection.total}"
    return f"needs {rejection.needs}, {max(0, rejection.free)} free{total}"


def because_phrase(placed: Placed) -> str:
    """`fewest replicas of this deployment (0); next: use2`."""
    decisive = [(text, value) for text, value in placed.because if text != LAST_RESORT]
    text = "; ".join(f"{text} ({_value(value)})" for text, value in decisive[:2]) or LAST_RESORT
    after = f"; next: {placed.runner_up}" if placed.runner_up else "; no other place"
    replaced = f"; replaces {placed.replaces.replica.name}" if placed.replaces else ""
    return f"{text}{after}{replaced}"


def kept_phrase(kept: Kept) -> str:
    """Why an existing replica stays as it is."""
    if kept.waits and not kept.blocked:
        return f"waits for {kept.waits}, within placement.disruption.maxUnavailable"
    if kept.mismatch or kept.blocked:
        return f"no place for its replacement: {replacement_cause(kept)}"
    if kept.doubt:
        return f"kept in doubt: {kept.doubt}"
    if kept.update in (Update.Waits, Update.Superseded):
        return f"{kept.update.value}, within placement.rollout.maxUnavailable"
    return kept.update.value if kept.update else "stays where it is: nothing makes it leave"


def replacement_cause(kept: Kept) -> str:
    """Why a replica needs replacement: `the engines changed shape (...)`."""
    if kept.mismatch:
        return f"{kept.mismatch.value} ({kept.detail})" if kept.detail else kept.mismatch.value
    return kept.waits or OUTDATED


def dropped_phrase(dropped: Dropped) -> str:
    """Why a replica leaves."""
    return f"{dropped.cause.value}: {dropped.detail}" if dropped.detail else dropped.cause.value


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()[:8]
    if isinstance(value, tuple) and not isinstance(value, Readiness):
        return ", ".join(map(str, value))
    return str(abs(value)) if isinstance(value, int) else str(value)

"""The message every Kubernetes user reads: how many are placed, and why no cluster takes another.

Why. A user who waits for a model first asks if the platform, the policy or their own selector is in the
way. A list of a thousand clusters does not tell. So clusters are counted by their headline reason, and each
reason shows one particular: that of the cluster which comes nearest.

Theory of operation
1. Every rejected cluster has one headline, the first gate that it failed or the shape that came nearest.
2. `histogram` counts them, the deepest reason first: it is the nearest to fitting. Its order is the order of
   evaluation in `api.reasons`, so that it never depends on which cluster was looked at first.
3. Want of nodes adds the nearest miss, by nodes missing. Taints are counted apart, as each is an edit of its
   own. Any other reason adds the particular of the cluster that got furthest, by request and selector.
4. What does not fit into 512 characters is left out, particulars before counts; counts that do not fit are
   summed, so that no cluster is missing from the sum.

The same problem has the same text, in every call and on every machine (Law 1): it is one line, at most 512
characters, and ties go by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from function.api.cache import Readiness
from function.api.reasons import Reason, Rejection
from function.api.replica import ModelReplica
from function.api.taints import Taint, untolerated
from function.api.text import LIMIT, counted, joined, listed, one_line
from function.scheduler.decision import Decision
from function.scheduler.outcomes import OUTDATED, Kept, Placed, Update

# Phrase one recorded fact in one line: why a cluster takes no replica, why a replica went where it did.

LAST_RESORT = "first by name"
"""The score that always applies: it is worth a word only where nothing else decided."""


VICTIMS = 3
"""How many of those that give way are named."""


def rejection_phrase(rejection: Rejection) -> str:
    """`main on frontier: needs 2, 1 free of 4`."""
    engine = rejection.engine
    if rejection.alternative:
        engine = f"{engine} ({rejection.alternative})" if engine else rejection.alternative
    where = joined(engine, rejection.pool, by=" on ")
    return joined(where, particular_phrase(rejection), by=": ")


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
    total = f" of {_usable(rejection)}" if rejection.total is not None else ""
    if rejection.request:
        return f"needs {rejection.needs}, the device entry {rejection.device} has {rejection.free}"
    if rejection.reason is Reason.TopologySpread:
        return ""  # Its detail has them.
    if rejection.free is None:
        return f"would be {rejection.needs}, allowed {rejection.total}"
    return f"needs {rejection.needs}, {max(0, rejection.free)} free{total}"


def _usable(rejection: Rejection) -> str:
    """`4`, or `4 (1 unusable)` where the cluster knows of nodes that cannot be used."""
    return (
        f"{rejection.total} ({rejection.unusable} unusable)" if rejection.unusable else f"{rejection.total}"
    )


def because_phrase(placed: Placed) -> str:
    """`fewest replicas of this deployment (0); next: use2`."""
    decisive = [(text, value) for text, value in placed.because if text != LAST_RESORT]
    text = "; ".join(f"{text} ({_value(value)})" for text, value in decisive[:2]) or LAST_RESORT
    after = f"; next: {placed.runner_up}" if placed.runner_up else "; no other place"
    replaced = f"; replaces {placed.replaces.replica.name}" if placed.replaces else ""
    if placed.preempts is not None:
        return f"there is no free place, and the least is lost here: {preempted_phrase(placed)}"
    waits = "; waits for nodes to be added" if placed.candidate.grows else ""
    return f"{text}{after}{replaced}{waits}"


def preempted_phrase(placed: Placed) -> str:
    """Who is to give way to a replica: `ml/train, class batch`."""
    gone = dict.fromkeys(f"{replica.holder}, {_rank_phrase(replica)}" for replica in placed.preempts or ())
    return listed([*gone], VICTIMS) or "what is being deleted"


def _rank_phrase(replica: ModelReplica) -> str:
    """`class batch`; `borrowed` where it is held beyond a guarantee."""
    if replica.share is not None and replica.share.borrowed:
        return "borrowed"
    return f"class {(replica.notes and replica.notes.class_name) or 'none'}"


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


def _value(value: object) -> str:
    """Write the value of a score for people: a weight without its sign, the beginning of a hash."""
    if isinstance(value, bytes):
        return value.hex()[:8]
    if isinstance(value, tuple) and not isinstance(value, Readiness):
        return ", ".join(map(str, value))
    return str(abs(value)) if isinstance(value, int) else str(value)


EXAMPLE = 120
"""Characters of one reason's particular."""
TAINTS = 3
"""How many different taints are counted apart."""
HISTOGRAM = 200
"""Characters that the counts get at least, whatever stands before them."""


def placed_of(decision: Decision) -> str:
    """`Scheduled 2 of 3 replicas`."""
    return f"Scheduled {decision.total} of {counted(decision.wanted, 'replica')}"


def histogram(rejections: Mapping[str, Rejection]) -> dict[Reason, int]:
    """The number of clusters that every headline reason holds back, the nearest to fitting first."""
    counts = Counter(rejection.reason for rejection in rejections.values())
    return dict(sorted(counts.items(), key=lambda item: -item[0].depth))


def _nearest(rejections: Sequence[tuple[str, Rejection]], *, one_shape: bool) -> str:
    """The nearest miss of a capacity reason: `nearest: use1/frontier needs 2, 1 free of 4`.

    Where no pool has as many at all, nothing is gained by waiting for others to leave, which is said. A
    deployment of several shapes may get another one then, and a pool that is overcommitted has room again.
    """
    name, best = min(rejections, key=lambda item: (item[1].missing, item[0]))
    free = max(0, best.free or 0)
    pools = [leaf for _, rejection in rejections for leaf in rejection.leaves if leaf.reason.short_pool]
    never = one_shape and all((pool.needs or 0) > (pool.total or 0) for pool in pools)
    more = "; more than any of them has" if never else ""
    return f"nearest: {name}/{best.pool} needs {best.needs}, {free} free of {_usable(best)}{more}"


def _example(rejections: Iterable[tuple[str, Rejection]], decision: Decision) -> str:
    """The particular of a reason, when it is worth a word: a taint, a device's actual value.

    The nearest miss speaks for all: the one whose request stands last, since those before it are met.
    """
    place = {reference.request.name: at for at, reference in enumerate(decision.inputs.deployment.requests)}

    def farness(item: tuple[str, Rejection]) -> tuple[bool, int, int, str]:
        """Sort key: one with something to show first, then the last request, the last selector, the name."""
        name, rejection = item
        request, selector = place.get(rejection.request, -1), rejection.selector or 0
        return not rejection.particular, -request, -selector, name

    _, first = min(rejections, key=farness)
    if first.request:
        selector = "" if first.selector is None else f"selector {first.selector}"
        short = f"needs {first.needs}, has {first.free}" if first.needs is not None else ""
        particulars = joined(first.particular, short, selector, by=", ")
        return f"{first.request}: {particulars}" if particulars else first.request
    return first.particular


def _particular(reason: Reason, decision: Decision) -> str:
    """Return the most useful detail of one reason, for brackets; empty when there is none."""
    rejections = decision.rejections
    blamed = [(name, rejection) for name, rejection in rejections.items() if rejection.reason is reason]
    if reason.short_pool and all(rejection.needs is not None for _, rejection in blamed):
        return f" ({_nearest(blamed, one_shape=len(decision.inputs.deployment.shapes) == 1)})"
    example = one_line(_example(blamed, decision), EXAMPLE)
    if not example:
        return ""
    return f" {example}" if example.startswith("{") else f" ({example})"


def _taints(decision: Decision, rejections: Mapping[str, Rejection]) -> str:
    """One count per taint, most clusters first: `2 untolerated taint {dedicated: NoSchedule}, 1 ...`.

    A cluster counts for the first taint that is not tolerated. Its value is shown only where it is what tells
    two taints apart.
    """
    clusters, template = decision.inputs.fleet.clusters, decision.inputs.deployment.template
    counts = Counter(
        untolerated(clusters[name].spec.taints, template.tolerations)[0]
        for name, rejection in rejections.items()
        if rejection.reason is Reason.UntoleratedTaint
    )
    values: Counter[tuple[str, str]] = Counter((taint.key, taint.effect) for taint in counts)
    phrases = ((count, _taint(taint, values)) for taint, count in counts.items())
    named = sorted(phrases, key=lambda item: (-item[0], item[1]))
    texts = [f"{count} {Reason.UntoleratedTaint.value} {text}" for count, text in named[:TAINTS]]
    others = sum(count for count, _ in named[TAINTS:])
    return ", ".join([*texts, f"{others} other untolerated taints"] if others else texts)


def _taint(taint: Taint, values: Mapping[tuple[str, str], int]) -> str:
    """`{dedicated: NoSchedule}`; with its value where that alone tells two taints apart."""
    key = f"{taint.key}={taint.value}" if values[taint.key, taint.effect] > 1 else taint.key
    return f"{{{key}: {taint.effect}}}"


def _worded(reason: Reason, count: int, decision: Decision) -> str:
    """The count of one reason with what is worth knowing about it."""
    if reason is Reason.UntoleratedTaint:
        return _taints(decision, decision.rejections)
    return f"{count} {reason.value}{_particular(reason, decision)}"


def _fitted(counts: Mapping[Reason, int], worded: Mapping[Reason, str], room: int) -> str:
    """Counts with as many particulars as fit, the nearest to fitting first; then counts alone."""
    counted = {reason: f"{count} {reason.value}" for reason, count in counts.items()}
    left = room - len(", ".join(counted.values()))
    for reason, text in worded.items():
        more = len(text) - len(counted[reason])
        if more <= left:
            counted[reason] = text
            left -= more
    return ", ".join(counted.values()) if left >= 0 else _summed(counts, room)


def _summed(counts: Mapping[Reason, int], room: int) -> str:
    """As many counts as fit, and the sum of the others: no cluster is left out of the sum."""
    stated: list[str] = []
    for number, (reason, count) in enumerate(counts.items()):
        rest = f"{sum(list(counts.values())[number:])} for other reasons"
        following = f"{count} {reason.value}"
        if len(", ".join([*stated, following, rest])) > room:
            return ", ".join([*stated, rest])
        stated.append(following)
    return ", ".join(stated)


def unplaced(decision: Decision, room: int = LIMIT) -> str:
    """Why no cluster takes another: `0/5 clusters can host another: 2 insufficient nodes (...), ...`.

    What does not fit into `room` characters is left out: particulars before counts.
    """
    fleet = decision.inputs.fleet
    total = len(fleet.clusters) + len(fleet.unreadable)
    rejections = decision.rejections
    head = f"{total - len(rejections)}/{total} clusters can host another"
    if not rejections:
        return head
    counts = histogram(rejections)
    worded = {reason: _worded(reason, count, decision) for reason, count in counts.items()}
    return f"{head}: {_fitted(counts, worded, room - len(head) - 2)}"


def around(before: str, decision: Decision, after: str = "") -> str:
    """A sentence around why no cluster takes another, so that all of it fits into one message."""
    before, after = one_line(before), f"; {after}" if after else ""
    room = LIMIT - len(before) - len("; ") - len(after)
    if room < HISTOGRAM:
        before, room = one_line(before, len(before) - (HISTOGRAM - room)), HISTOGRAM
    return f"{before}; {unplaced(decision, room)}{after}"

"""The brute force scheduler with staged rollouts, disruption budgets and surge, in their plainest form.

What the rules leave open, this file decides as follows:

1.  A replica is in service if it is Ready, what it publishes as `status.servingDigest` (if anything) is the
    digest of its own spec, and its Ready is not about an older generation. Without `rollout` and without
    `maxSurge` Ready alone counts. One that publishes `status.engines` and no digest is not in service. One
    that is Ready has something to lose all the same. For budgets one that is only listed is not in service.
2.  The template is what the digest covers: engines without copies, pools and claims, cache, serving.
3.  Drains come first, then mismatches, then updates in place; each counts who is left in service.
4.  Without `disruption.maxUnavailable` there is no limit for drains, and 0 with `maxSurge`; mismatches go by
    `rollout.maxUnavailable` where nothing else is said.
5.  `rollout.maxUnavailable` of 0 replaces those in service; without surge it counts as 1.
6.  With surge what is not in service is the first to go, of all that may.
    Of those in doubt beyond the budget one that is half updated is updated in place, where all others that
    have the template are in service.
7.  Those that exist beyond wanted are the replacements of the first outgoing ones. Where none is wanted,
    nothing is replaced: all leave.
8.  What is not in service takes nothing with it: a mismatched one leaves for any place where a rollout is
    staged, and an outgoing one when its replacement serves, whatever the budget says.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.oracle.schedule import Scheduler

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.oracle.facts import Facts, Replica

Plain = dict[str, Any]


def staged(facts: Facts) -> bool:
    """Say whether a deployment stages anything."""
    return bool({"rollout", "disruption"} & facts.placement.keys())


def digest(spec: Plain) -> str:
    """Return the digest that a replica publishes when all its pods run a spec."""
    engines = [{key: value for key, value in one.items() if key != "copies"} for one in spec["engines"]]
    run = {"modelCacheRef": spec.get("modelCacheRef"), "serving": spec.get("serving"), "engines": engines}
    text = json.dumps(run, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Staged(Scheduler):
    """One pass that changes no more at a time than its budgets allow."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.waiting: set[str | None] = set()
        """Drained replicas that may not leave yet, and mismatched ones."""
        self.superseded: list[Replica] = []
        self.growth: dict[str | None, Any] = {}
        self.blocked: Replica | None = None
        rollout = facts.placement.get("rollout")
        self.drains = facts.disruption.get("maxUnavailable", 0 if facts.surge else None)
        self.updates = None
        if rollout is not None:
            self.updates = max(rollout.get("maxUnavailable", 1), 0 if facts.surge else 1)
        self.replacements = self.updates if self.drains is None else self.drains

    # Who serves

    def serving(self, replica: Replica) -> bool:
        """Say whether a replica is in service."""
        return replica.observed and self.reported(replica)

    def reported(self, replica: Replica) -> bool:
        """Say whether a replica reports that it is in service."""
        if replica.condition != "True" or (self.updates is None and not self.facts.surge):
            return replica.condition == "True"
        status = replica.plain["status"]
        published = status.get("servingDigest", "unknown" if status.get("engines") else None)
        if published is not None and published != digest(replica.plain["spec"]):
            return False
        generation = replica.plain["metadata"].get("generation", 0)
        ready = next(one for one in replica.plain["status"]["conditions"] if one["type"] == "Ready")
        return bool(ready.get("observedGeneration", generation) >= generation)

    def idle(self, replica: Replica) -> bool:
        """Say whether a replica takes no requests."""
        return replica.condition != "True"

    def half(self, replica: Replica) -> bool:
        """Say whether a replica is in doubt, and takes requests with some of its pods updated."""
        engines = replica.plain.get("status", {}).get("engines", [])
        some = [min(engine.get("available", 0), engine.get("updated", 0)) > 0 for engine in engines]
        return bool(some) and all(some) and not self.serving(replica) and not self.idle(replica)

    def enough(self, replicas: Iterable[Replica], without: Replica, budget: int | None) -> bool:
        """Say whether the others are enough in service."""
        serving = sum(self.serving(replica) for replica in replicas if replica is not without)
        return budget is None or self.facts.wanted - serving <= budget

    def replaced(self, replicas: list[Replica], outgoing: list[Replica]) -> bool:
        """Say whether more of those that last serve than would without replacements (only with surge)."""
        lasting = sum(self.serving(replica) for replica in replicas if replica not in outgoing)
        return bool(self.facts.surge) and lasting > self.facts.wanted - len(outgoing)

    def outgoing(self, replica: Replica) -> bool:
        """Say whether a replica stays only until the others can do without it."""
        return replica in self.plan.held or replica in self.superseded or replica.key in self.waiting

    def expendable(self, replica: Replica, on: Counter[str]) -> tuple[Any, ...]:
        held, sick, _, *rest = super().expendable(replica, on)
        idle = not self.reported(replica)
        return (bool(self.facts.surge) and idle, held, sick, idle, *rest)

    # The pass

    def act(self) -> None:
        self.retain()
        if self.updates == 0:
            ready = [one for one in self.plan.kept if not (self.idle(one) or self.half(one))]
            self.superseded = [one for one in ready if self.outdated(one)]
        self.scale_down()
        if self.resolved and not self.invalid:
            self.fill()
            self.replace()
        self.roll()

    def retain(self) -> None:
        reasons = {replica.key: self.leaves(replica) for replica in self.facts.own_replicas}
        staying = [one for one in self.facts.own_replicas if reasons[one.key] in ("", "drained")]
        drained = [one for one in staying if reasons[one.key] == "drained"]
        outgoing = list(drained)
        while drained:
            on = Counter(replica.cluster for replica in staying)
            first = max(
                drained, key=lambda one: (not self.serving(one), on[one.cluster], one.index, one.cluster)
            )
            drained.remove(first)
            idle = self.idle(first) and self.replaced(staying, outgoing)
            if idle or self.enough(staying, first, self.drains):
                staying.remove(first)
                outgoing.remove(first)
        for replica in sorted(self.facts.own_replicas, key=lambda one: (one.cluster, one.index)):
            if replica not in staying:
                self.plan.dropped[str(replica.key)] = reasons[replica.key]
                continue
            self.plan.kept.append(replica)
            if reasons[replica.key]:
                self.waiting.add(replica.key)
            if self.mismatched(replica):
                self.plan.held.append(replica)

    def grows(self, replica: Replica) -> bool:
        before = self.charged.copy()
        grown = super().grows(replica)
        self.growth[replica.key] = self.charged - before
        return grown

    def give_up(self, replica: Replica, why: str) -> None:
        """Let a replica go; it stays charged as it was stamped."""
        self.charged -= self.growth.get(replica.key, Counter())
        self.plan.dropped[str(replica.key)] = why
        self.plan.kept.remove(replica)
        for group in (self.plan.held, self.superseded):
            if replica in group:
                group.remove(replica)

    def scale_down(self) -> None:
        wanted, surge, kept = self.facts.wanted, self.facts.surge, self.plan.kept
        while True:
            lasting = [replica for replica in kept if not (surge and self.outgoing(replica))]
            if len(lasting) > wanted:
                self.give_up(self.victim(lasting), "scale down")
            elif len(kept) > wanted + (min(surge, len(kept) - len(lasting)) if wanted else 0):
                self.give_up(self.victim(kept), "scale down")
            else:
                return

    def replace(self) -> None:
        kept, new, wanted, surge = self.plan.kept, self.plan.new, self.facts.wanted, self.facts.surge
        needy = [*self.plan.held, *self.superseded]
        waiting = [one for one in kept if one in needy or (surge and self.outgoing(one))]
        beyond = 0
        uncounted: list[Replica] = []
        while waiting:
            replica = self.victim(waiting)
            waiting.remove(replica)
            standing = len(kept) + len(new)
            stands = bool(surge) and standing - wanted > beyond
            if not stands and wanted <= standing < wanted + surge:
                stands = self.beside(replica, uncounted)
            if stands:
                uncounted.append(replica)
            budget = self.replacements if replica in self.plan.held else self.updates
            idle = self.idle(replica) and (
                (replica in self.plan.held and self.updates is not None)
                or self.replaced(kept, [one for one in kept if self.outgoing(one)])
            )
            leaves = replica in needy and (idle or self.enough(kept, replica, budget))
            if replica in needy and not leaves:
                self.waiting.add(replica.key)
            if leaves and stands:
                self.give_up(replica, "replaced")
            elif leaves and replica in self.plan.held:
                self.instead(replica, uncounted)
            else:
                beyond += stands

    def beside(self, replica: Replica, uncounted: list[Replica]) -> bool:
        """Place another beside a replica."""
        placed = self.place([one for one in self.plan.kept if one is not replica and one not in uncounted])
        if placed is None:
            self.blocked = self.blocked or replica
            return False
        self.plan.new.append(placed)
        self.charged += placed.charge
        return True

    def instead(self, replica: Replica, uncounted: list[Replica]) -> None:
        """Place another on what a replica leaves."""
        cost = self.cost(replica)
        self.charged -= cost
        placed = self.place([one for one in self.plan.kept if one is not replica and one not in uncounted])
        if placed is None:
            self.charged += cost
            return
        self.charged += cost | placed.charge
        self.plan.new.append(placed)
        self.give_up(replica, "replaced")

    # Updates

    def outdated(self, replica: Replica) -> bool:
        """Say whether an update would restart the pods of a replica."""
        if replica in self.plan.held or not self.editable(replica):
            return False
        inner, spec = self.facts.inner, replica.plain["spec"]
        asked = {engine["name"]: engine for engine in inner["engines"]}
        same = spec.get("modelCacheRef") == inner.get("modelCacheRef")
        same = same and _mode(spec) == _mode(inner)
        for engine in replica.engines:
            same = same and engine.get("phase") == asked[engine["name"]].get("phase")
            for old, now in zip(engine["members"], asked[engine["name"]]["members"], strict=True):
                same = same and old["template"] == now["template"] and _pods(old) == _pods(now)
        return not same

    def roll(self) -> None:
        """Say which outdated replicas keep their template."""
        if self.updates is None:
            return
        serving = sum(map(self.serving, self.plan.kept))
        outdated = [one for one in self.plan.kept if self.outdated(one) and one not in self.superseded]
        waiting = [replica for replica in outdated if not self.idle(replica)]
        doubtful = [replica for replica in waiting if not self.serving(replica)]
        if self.facts.wanted - serving <= self.updates:
            waiting = [replica for replica in waiting if self.serving(replica)]
        elif all(self.serving(one) for one in self.plan.kept if one not in [*waiting, *self.superseded]):
            on = Counter(replica.cluster for replica in waiting)
            for first in sorted(filter(self.half, doubtful), key=lambda one: self.expendable(one, on))[-1:]:
                waiting.remove(first)
        while waiting and self.facts.wanted - (serving - 1) <= self.updates:
            on = Counter(replica.cluster for replica in waiting)
            lasting = [replica for replica in waiting if replica.key not in self.waiting]
            waiting.remove(max(lasting or waiting, key=lambda one: self.expendable(one, on)))
            serving -= 1
        self.plan.paused = [*waiting, *self.superseded]

    @property
    def stuck(self) -> bool:
        """Whether some replica has no place for its replacement."""
        return self.blocked in self.plan.kept or any(one.key not in self.waiting for one in self.plan.held)


def _mode(holder: Plain) -> str:
    return str(holder.get("serving", {}).get("mode", "Unified"))


def _pods(member: Plain) -> int:
    return int(member.get("worker", {}).get("nodes", 1))

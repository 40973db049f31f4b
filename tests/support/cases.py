"""Short words for cases: a fleet, a deployment with opt-in fields, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from function.api.reasons import DeferredGap, Gap
from tests.support import build
from tests.support.drive import Answer, run
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Plain = dict[str, Any]
US, EU = {"region": "us"}, {"region": "eu"}
HARD = (19, 22, 25, 32, 45, 47, 51, 60)
TIGHT = (62, 61, 62, 38, 17, 61, 32, 27)
"""Eight engines and eight pools with nodes enough for all of them, and no choice that has room: some 45,000
steps until that is known."""


def clusters(**nodes: int | Plain) -> list[Plain]:
    """Clusters by name: so many nodes of 8 GPUs in one pool `p0`, or the keywords of `one`."""
    return [
        one(name, **(node if isinstance(node, dict) else {"nodes": node})) for name, node in nodes.items()
    ]


def one(
    name: str,
    nodes: int = 4,
    *,
    pools: Sequence[Plain] | None = None,
    attributes: Plain | None = None,
    accounting: str | None = None,
    **more: Any,
) -> Plain:
    """One cluster."""
    made = build.cluster(name, [build.pool("p0", nodes)] if pools is None else pools, **more)
    if attributes is not None:
        made["spec"]["attributes"] = attributes
    if accounting is not None:
        for pool in made["spec"]["nodePools"]:
            pool["accounting"] = accounting
    return made


def ask(
    replicas: int = 1,
    *,
    gpus: int = 8,
    engines: Sequence[Plain] | None = None,
    placement: Plain | None = None,
    selector: Plain | None = None,
    alternatives: Sequence[Plain] = (),
    least: int | None = None,
    **more: Any,
) -> Plain:
    """A deployment whose replicas are one pod with so many GPUs, unless engines are given."""
    plain = [build.engine(members=[build.member(devices=[build.request("gpu", gpus)])])]
    made = build.deployment("my-model", replicas, engines or plain, **more)
    inner = made["spec"]["template"]["spec"]
    if placement is not None:
        made["spec"]["placement"] = placement
    if selector is not None:
        inner["clusterSelector"] = selector
    if alternatives:
        inner["alternatives"] = list(alternatives)
    if least is not None:
        made["spec"]["minReplicas"] = least
    return made


def single(*requests: Plain, name: str = "main", **selector: Any) -> Plain:
    """An engine of one pod with these requests; more of its nodeSelector by keyword."""
    made = build.member(devices=list(requests))
    made["nodeSelector"] |= selector
    return build.engine(name, [made])


def first_available(name: str, *ways: tuple[int, str]) -> Plain:
    """A request with a prioritized list of (count, selector)."""
    listed = [
        {"name": f"way-{rank}", "count": number, "selectors": [{"cel": cel}]}
        for rank, (number, cel) in enumerate(ways)
    ]
    return {"name": name, "firstAvailable": listed}


@dataclass(frozen=True)
class Case:
    """A fleet, a deployment, perhaps replicas that exist, and where its replicas are to be."""

    reason: str
    fleet: Sequence[Plain]
    deployment: Plain
    on: Sequence[str]
    """The clusters of the desired replicas, sorted, one for each; with `/name` for an alternative."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Reason code of clusters that take no other."""
    status: str = ""
    """Reason of ReplicasScheduled, when it matters."""
    running: Sequence[Plain] = ()
    """Own replicas that are observed."""
    others: Sequence[Plain] = ()
    cache: Sequence[Plain] | None = None
    input: Plain | None = None

    def __str__(self) -> str:
        """The name of the test: what it proves."""
        return self.reason

    def answer(self) -> Answer:
        """Ask the function."""
        observed = build.observed(*self.running)
        listed = [*self.running, *self.others]
        return run(World(self.deployment, self.fleet, listed, observed, self.cache, self.input))

    def check(self) -> Answer:
        """Ask, and compare."""
        answer = self.answer()
        assert where(answer) == sorted(self.on), (self.reason, answer.conditions)
        decision = answer.decision
        assert decision is not None or not self.why, (self.reason, answer.conditions)
        if decision is not None:
            reasons = {name: rejection.reason.name for name, rejection in decision.rejections.items()}
            assert {name: reasons.get(name, "") for name in self.why} == self.why, self.reason
        if self.status:
            assert answer.reason() == self.status, (self.reason, answer.conditions)
        return answer


def where(answer: Answer) -> list[str]:
    """The clusters of the desired replicas, with the alternative of each."""
    placed_on = []
    for replica in answer.replicas.values():
        alternative = replica["metadata"]["labels"].get("modelplane.ai/alternative")
        placed_on.append(replica["spec"]["clusterName"] + (f"/{alternative}" if alternative else ""))
    return sorted(placed_on)


def pools_of(*nodes: int, devices: list[Plain] | None = None) -> list[Plain]:
    return [build.pool(f"p{at}", number, devices or [build.gpu()]) for at, number in enumerate(nodes)]


def sized(*copies: int) -> list[Plain]:
    return [
        {**single(build.request("gpu", 8), name=f"e{at}"), "copies": number}
        for at, number in enumerate(copies)
    ]


def gap_of(has: str, wants: str) -> DeferredGap:
    """Return what lies between a subject and a selector."""
    return DeferredGap(lambda: Gap(has, wants))

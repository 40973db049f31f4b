"""The clusters of a decision in words, down to the selector that fails: what `why` prints as a tree.

The report has the same facts as data, bounded for a status; this has lines, and the texts of selectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.deployment.explain.clusters import ClusterVerdict, Survey, held_by
from function.deployment.explain.phrases import numbers, rejection_phrase
from function.deployment.explain.remedies.requests import source_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.api import InferenceCluster, Pool
    from function.api.reasons import Rejection
    from function.scheduler.decision import Decision
    from function.scheduler.diagnosis import OnPools


@dataclass(frozen=True, slots=True)
class EngineOutline:
    """One engine on one pool: whether it fits, and everything that keeps it off."""

    phrase: str
    fits: bool
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolOutline:
    """One pool: what is free and who holds the rest, and every engine on it."""

    phrase: str
    engines: tuple[EngineOutline, ...]


@dataclass(frozen=True, slots=True)
class ClusterOutline:
    """One cluster: what it is to the deployment, why, and its pools where they matter."""

    name: str
    verdict: ClusterVerdict
    reason: str
    """The code of what keeps another replica off; empty where none is kept off."""
    phrase: str
    """Its particulars."""
    pools: tuple[PoolOutline, ...] = ()


class Outline:
    """A decision seen from its clusters, the nearest miss first."""

    def __init__(self, decision: Decision, survey: Survey) -> None:
        self._decision, self._survey = decision, survey

    def names(self, pool: str | None = None) -> list[str]:
        """Every cluster; with `pool`, those that have a pool of that name."""
        names = self._survey.names()
        return names if pool is None else [name for name in names if self._has_pool(name, pool)]

    def _has_pool(self, name: str, pool: str) -> bool:
        cluster = self._decision.inputs.fleet.clusters.get(name)
        return cluster is not None and pool in cluster.by_name

    def phrase(self, name: str) -> str:
        """The verdict on a cluster in one line of its own."""
        rejection, verdict = self._survey.rejections.get(name), self._survey.verdict(name)
        if rejection is None:
            return f"cluster {name}: {verdict.name}, {verdict.value}"
        phrase = rejection_phrase(rejection)
        why = f"{rejection.reason.value}, {phrase}" if phrase else rejection.reason.value
        return f"cluster {name} takes no other replica: {why}"

    def cluster(self, name: str, *, pool: str | None = None, pools: bool | None = None) -> ClusterOutline:
        """One cluster, with its pools (those named `pool`): always, never, or (None) where they matter."""
        rejection, verdict = self._survey.rejections.get(name), self._survey.verdict(name)
        cluster = self._decision.inputs.fleet.clusters.get(name)
        gated = rejection is not None and not rejection.parts
        shown = not gated if pools is None else pools
        return ClusterOutline(
            name,
            verdict,
            rejection.reason.name if rejection else "",
            rejection_phrase(rejection) if rejection else "",
            tuple(self._pools(cluster, pool)) if cluster is not None and shown else (),
        )

    def _pools(self, cluster: InferenceCluster, wanted: str | None) -> Iterator[PoolOutline]:
        placer = self._decision.placer
        fitted = list(placer.on_pools(cluster)) if placer else []
        for pool in cluster.pools:
            if wanted in (None, pool.name):
                engines = (
                    self._engine(verdict, shape.name)
                    for shape, verdict in fitted
                    if verdict.pools == (pool.name,)
                )
                yield PoolOutline(self._pool_phrase(cluster, pool), tuple(engines))

    def _pool_phrase(self, cluster: InferenceCluster, pool: Pool) -> str:
        free = max(0, self._decision.ledger.free(cluster.name, pool.name))
        holders = held_by(self._decision, cluster.name, pool)
        held = ", ".join(f"{holder['deployment']} ({_amount(holder)})" for holder in holders)
        return f"pool {pool.name}: {free} free of {pool.nodes} nodes" + (f", held by {held}" if held else "")

    def _engine(self, verdict: OnPools, alternative: str) -> EngineOutline:
        name = f"{verdict.engine} ({alternative})" if alternative else verdict.engine
        rejection = verdict.rejection
        if rejection is None:
            return EngineOutline(f"engine {name}: needs {verdict.nodes}", fits=True)
        phrase = f"engine {name}: {rejection.reason.value}"
        if verdict.nodes is None:
            failures = dict.fromkeys(self._failures(rejection.leaves))
            return EngineOutline(phrase, fits=False, failures=tuple(failures))
        shortage = numbers(rejection)
        return EngineOutline(f"{phrase}, {shortage}" if shortage else phrase, fits=False)

    def _failures(self, leaves: Iterable[Rejection]) -> Iterator[str]:
        """What keeps members off, members with the same trouble together."""
        roles: dict[str, list[str]] = {}
        for leaf in leaves:
            roles.setdefault(self._failure(leaf), []).append(leaf.member)
        for phrase, members in roles.items():
            named = [member for member in members if member not in ("", "Standalone")]
            yield f"{', '.join(dict.fromkeys(named))}: {phrase}" if named else phrase

    def _failure(self, leaf: Rejection) -> str:
        """`request gpu: selector 1 fails on device gpu (architecture Ada Lovelace): device.attributes...`."""
        request = f"request {leaf.request}: " if leaf.request else ""
        failed = leaf.reason.value if leaf.selector is None else f"selector {leaf.selector} fails"
        compared = f"has {leaf.has}" if leaf.has else ""  # What it wants is the selector that follows.
        particular = (compared if leaf.wants else leaf.has) or numbers(leaf)
        on = f" on device {leaf.device}" if leaf.device and leaf.selector is not None else ""
        source = source_of(self._decision.inputs, leaf)
        detail = f" ({particular})" if particular else ""
        return f"{request}{failed}{on}{detail}{f': {source}' if source else ''}"


def _amount(holder: dict[str, Any]) -> str:
    return f"{holder['pods']} pods" if "pods" in holder else str(holder["nodes"])

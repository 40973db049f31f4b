"""Share what deployments that ask for the same find out, in one run over many of them.

The rules are those of `cache`. A server has nothing of it: each deployment there owns what it found out, and
nothing would bound what all of them share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from function.scheduler.cache import EasySearches
from function.scheduler.matching.cache import FitCaches
from function.scheduler.other_replicas import Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from function.api import InferenceCluster, ModelReplica
    from function.boundary import Document
    from function.scheduler.scheduling_input import SchedulingInput

T = TypeVar("T")

MOST_CLUSTERS = 100_000
"""Combinations of classes of pools that are remembered: a run ends."""
_MEMBERS: Any = {"__all__": {"members": {"__all__": {"template"}}}}
TEMPLATES: Any = {"engines": _MEMBERS, "alternatives": {"__all__": {"engines": _MEMBERS}}}
"""The fields of a replica's spec that hold pod templates."""


class Shared:
    """What fits, and what easy searches ended with, by what is asked; and the fleet, read and charged once.

    Law: both depend on the shapes of a replica without their templates, on the release that reads selectors,
    on the steps of a search and on the strategy, and on nothing else of a deployment.
    Buys: of 200 deployments on 1,000 clusters, the first that asks for something searches for all of them.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._caches: dict[tuple[str, ...], tuple[FitCaches, EasySearches]] = {}
        self._read: tuple[object, Any] | None = None
        self._listing: tuple[object, Listing] | None = None

    def once(self, key: object, read: Callable[[], T]) -> T:
        """Return what is read of the fleet, from the deployment before where its key was the same.

        Law: what is read depends on the key. Buys: a thousand clusters are sorted by name once.
        """
        if self._read is None or self._read[0] != key:
            self._read = key, read()
        value: T = self._read[1]
        return value

    def listing(
        self,
        documents: tuple[Document, ...],
        clusters: Mapping[str, InferenceCluster],
        parse: Callable[[Document], ModelReplica],
        *,
        of: object,
    ) -> Listing:
        """Return the listed replicas, read on from the deployment before where its list begins this one.

        `of` says how replicas are read: those that were read in another way are read again.
        """
        if (
            self._listing is None
            or self._listing[0] != of
            or not self._listing[1].goes_on(documents, clusters)
        ):
            self._listing = of, Listing(clusters)
        listing = self._listing[1]
        listing.read(documents, parse)
        return listing

    def join(self, inputs: SchedulingInput) -> None:
        """Give a deployment what others that ask for the same have found out, and find out for them.

        One with an invalid selector is alone: what it reads of devices is not known.
        """
        caches = FitCaches(MOST_CLUSTERS), EasySearches()
        if not inputs.selectors.invalid:
            caches = self._caches.setdefault(_question(inputs), caches)
        for cache in caches:
            inputs.deployment.adopt(cache)


def _question(inputs: SchedulingInput) -> tuple[str, ...]:
    template, config = inputs.deployment.template, inputs.config
    shapes = template.model_dump_json(include={"engines", "alternatives"}, exclude=TEMPLATES)
    return (shapes, config.cel_version, str(config.search_budget), str(inputs.policy.strategy))

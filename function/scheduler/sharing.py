"""Share what deployments that ask for the same find out, in one run over many of them.

The rules are those of `cache`. A server has nothing of it: each deployment there owns what it found out, and
nothing would bound what all of them share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.scheduler.cache import EasySearches
from function.scheduler.matching.cache import FitCaches

if TYPE_CHECKING:
    from function.scheduler.scheduling_input import SchedulingInput

MOST_CLUSTERS = 100_000
"""Combinations of classes of pools that are remembered: a run ends."""
_MEMBERS: Any = {"__all__": {"members": {"__all__": {"template"}}}}
TEMPLATES: Any = {"engines": _MEMBERS, "alternatives": {"__all__": {"engines": _MEMBERS}}}
"""The fields of a replica's spec that hold pod templates."""


class Shared:
    """What fits, and what easy searches ended with, by what is asked.

    Law: both depend on the shapes of a replica without their templates, on the release that reads selectors,
    on the steps of a search and on the strategy, and on nothing else of a deployment.
    Buys: of 200 deployments on 1,000 clusters, the first that asks for something searches for all of them.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._caches: dict[tuple[str, ...], tuple[FitCaches, EasySearches]] = {}

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

"""Say which replicas are in service: what every disruption and rollout budget counts.

A replica is in service when it is Ready. That is not enough after an edit of the template: a replica is still
Ready while its old pods serve, or until its controller has looked at it. So where a rollout is staged

- its `status.servingDigest`, if it is published, must be that of its own spec (its pods run what it says);
- its Ready, if both say of which generation they are, must be of the generation it has.

Neither is there on a platform that does not publish it; then Ready counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.api.lenient import conditions_of, mapping
from function.api.serving_digest import SERVING, serving_digest
from function.scheduler.pass_values import PassValues

if TYPE_CHECKING:
    from typing import Any

    from function.api.ownership import OwnReplica


class Serving:
    """Says of own replicas whether they are in service, for one pass."""

    def __init__(self, *, by_template: bool) -> None:
        """Take whether a replica must be seen to run the template it has: where a rollout is staged."""
        self._by_template = by_template
        self._running = PassValues(_runs_its_template)

    def __call__(self, own_replica: OwnReplica) -> bool:
        """Whether a replica is in service."""
        return own_replica.replica.ready is True and self.runs_its_template(own_replica)

    def runs_its_template(self, own_replica: OwnReplica) -> bool:
        """Whether nothing is observed that says that its pods run something else than its spec says."""
        if not self._by_template:
            return True
        return self._running.of(own_replica.key, own_replica)


def _runs_its_template(own_replica: OwnReplica) -> bool:
    try:
        plain = own_replica.document.project(SERVING)
    except ValueError:
        return True
    status = mapping(plain.get("status"))
    digest = status.get("servingDigest")
    if isinstance(digest, str) and digest and digest != serving_digest(mapping(plain.get("spec"))):
        return False
    generation = mapping(plain.get("metadata")).get("generation")
    return not _is_older(_ready_of(status), generation)


def _ready_of(status: dict[str, Any]) -> object:
    """The generation that the condition Ready is about; None where it does not say."""
    ready = (condition for condition in conditions_of(status) if condition.get("type") == "Ready")
    return next(ready, {}).get("observedGeneration")


def _is_older(observed: object, generation: object) -> bool:
    return isinstance(observed, int) and isinstance(generation, int) and 0 < observed < generation

"""Memory beside the handler: the latest answer about a deployment, and what it was made from.

Nothing here changes an answer; without it the same is decided and composed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from function.api import ModelDeployment
from function.api.deployment import PlacementPolicy
from function.boundary import DocumentIdentity, Request, Response
from function.deployment.compose import replicas
from function.scheduler.decision import Decision
from function.scheduler.scheduling_input import Fleet

REPLICA, STATUS = 6_000, 8
"""Bytes that a desired replica with its endpoint takes besides its templates, which its own cache holds, and
those that a character of a status takes, about. The answer as it is written is charged beside."""
WORK = ("cel_evaluations", "cel_reused", "pool_matches")
"""Counts of what a decision took to find. An earlier one took nothing."""


class Given(NamedTuple):
    """The facts that an answer depends on, besides its deployment. Equal facts have equal answers.

    A handler that reads a new field must add it here, or an old answer is given again after that field
    changed. Times and the documents of peers have no version to compare: evacuation reads them, and so do
    rollouts and disruption budgets of earlier deployments. Such an answer is never held
    (`_read_versions_only`).
    """

    required: bytes
    """The digest of what is read of the required objects and of the observed replicas. The memory of parsed
    objects gives it: versions that decide the same have one digest."""
    resolutions: tuple[tuple[str, bool], ...]
    """The delivered requirements, and whether there is anything in them."""
    documents: tuple[Hashable, ...]
    """Keys and versions of what is read again while composing: own replicas, and endpoints."""
    earlier_steps: frozenset[str]
    cache: object
    """What is known of the referenced ModelCache."""
    stated: tuple[str, ...]
    """The requirements that an earlier answer of the reconcile stated."""
    settings: object
    """The function's input, and what is to be returned."""

    @classmethod
    def of(cls, digest: bytes | None, request: Request, fleet: Fleet, settings: object) -> Given | None:
        """Return what an answer to a request depends on; None where something has no version."""
        versions = tuple(_versions(fleet))
        if digest is None or any(identity is None for _, identity in versions):
            return None
        return cls(
            digest,
            tuple(sorted((name, bool(items)) for name, items in request.required.items())),
            versions,
            request.desired,
            (fleet.cache_resolution, fleet.cache, fleet.cache_fault),
            request.stated,
            settings,
        )


def _versions(fleet: Fleet) -> Iterator[tuple[Hashable, DocumentIdentity | None]]:
    """Yield what composing reads again, with its version; None where nothing says whether it changed."""
    for own_replica in fleet.own_replicas:
        state = (own_replica.key, own_replica.observed, own_replica.terminating)
        yield state, own_replica.document.opened().identity
    for key, document in fleet.endpoints.items():
        yield key, document.opened().identity


@dataclass(eq=False, slots=True)
class LatestAnswer:
    """The latest answers about a deployment: to the first call of a reconcile, and to a later one.

    Law: an answer depends on the deployment, which owns this cache, and on what was given, which is compared
    by value; one that read anything else is not held (`_read_versions_only`). Buys: most calls are about a
    deployment of which nothing changed that a decision reads; there nothing is decided and composed anew.
    """

    held: dict[bool, tuple[Given, Response, int]] = field(default_factory=dict)
    """Each with what it was made from and the bytes that it takes, by whether requirements were stated."""

    def get(self, given: Given) -> Response | None:
        """Return the answer, if it was made from the same."""
        held = self.held.get(bool(given.stated))
        return held[1] if held is not None and held[0] == given else None

    def put(self, given: Given, response: Response, size: int) -> None:
        """Hold an answer in the place of the earlier one."""
        work_free = {name: 0 if name in WORK else number for name, number in response.counts.items()}
        self.held[bool(given.stated)] = given, replace(response, counts=work_free), size


def answered_once(
    deployment: ModelDeployment, given: Given | None, decide: Callable[[], tuple[Response, Decision]]
) -> Response:
    """Return the latest answer if it was made from the same, or decide."""
    latest = deployment.memo_of(LatestAnswer)
    earlier = None if given is None else latest.get(given)
    if earlier is not None:
        return earlier
    response, decision = decide()
    # An answer holds its replicas, so it is not held where they would outgrow what they may take.
    written = replicas.largest(deployment) * len(response.desired)
    as_observed = sum(map(replicas.observed_size, decision.kept)) * replicas.AS_OBSERVED
    bounded = written <= replicas.BOUND and as_observed <= replicas.MAX_AS_OBSERVED
    if given is not None and bounded and _read_versions_only(decision):
        size = written + REPLICA * len(response.desired) + STATUS * len(repr(response.status))
        latest.put(given, response, size)
    else:
        latest.held.clear()
    return response


def _read_versions_only(decision: Decision) -> bool:
    """Tell whether a decision read nothing but what `Given` tells.

    Evacuation reads times of the clusters; a rollout of a peer reads the documents of its replicas.
    """
    inputs = decision.inputs
    peers = [peer.deployment.spec.placement for peer in inputs.peers.earlier]
    return inputs.policy.evacuate is None and not any(
        _reads_documents(policy)
        for policy in (*peers, *([inputs.config.defaults.placement] if peers else ()))
    )


def _reads_documents(policy: PlacementPolicy | None) -> bool:
    """Tell whether a policy makes a decision read times, or documents that are no part of `Given`."""
    stated: Iterable[object] = (policy.evacuate, policy.rollout, policy.disruption) if policy else ()
    return any(part is not None for part in stated)

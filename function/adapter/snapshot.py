"""Read everything one request tells about an adapter, and state what the next call needs.

Requirements come in two sets, as those of a deployment do (`deployment.requirements`), and a name contains
what it selects:

- The *standing* set, always: each replica that has the adapter, and its endpoint, by name.
- The *fleet* beside it, while something is to be placed, replaced or is not configured yet: the replicas of
  the base, and all placements of the namespace, which hold the slots.

Crossplane's observed resources are the authority on which placements are ours; the key names the replica.
One that is only listed is ours if its adapter is, and its controller is ours or nobody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from function.adapter.schedule import AdapterDecision, AdapterInput, OwnPlacement
from function.api.adapter import (
    PLACEMENT_KIND,
    AdapterPlacement,
    BaseReplica,
    ModelAdapter,
    read_adapter,
    read_base,
    read_placements,
)
from function.api.model import mapping, plain_of
from function.api.names import API_VERSION
from function.api.replica import DEPLOYMENT_LABEL
from function.boundary import Document, Request, Requirement, Resolution, Reuse, Unreadable, frozen, text_at
from function.fail_static import Doubt, foreign

REPLICA, ENDPOINT, BASE, PLACEMENTS = "replica", "endpoint", "base-replicas", "placements"
"""Requirements. All but the last are followed by a slash and what they select."""
PLACEMENT_KEY, ENDPOINT_KEY = "placement-", "adapter-endpoint-"
"""Keys of what is composed: each is followed by the name of the replica."""
ENDPOINT_KIND = "ModelEndpoint"


def kind_of(key: str, _document: Document | None = None) -> str | None:
    """Return the kind that stands under a key of ours, None for another's."""
    if key.startswith(PLACEMENT_KEY):
        return PLACEMENT_KIND
    return ENDPOINT_KIND if key.startswith(ENDPOINT_KEY) else None


@frozen
class AdapterSnapshot:
    """An adapter that can be placed, and all that its pass depends on."""

    adapter: ModelAdapter
    inputs: AdapterInput
    undelivered: tuple[str, ...]
    """Requirements of the standing set that were not delivered."""


def own_replicas(request: Request) -> list[str]:
    """Return the replicas of the observed placements."""
    return sorted(
        key.removeprefix(PLACEMENT_KEY)
        for key in request.observed
        if key.startswith(PLACEMENT_KEY) and key not in request.desired
    )


def standing(request: Request) -> tuple[Requirement, ...]:
    """Return the requirements that every answer states."""
    namespace = text_at(request.composite, "metadata", "namespace")
    return tuple(
        Requirement(f"{name}/{replica}", API_VERSION, kind, match_name=replica, namespace=namespace)
        for replica in own_replicas(request)
        for name, kind in ((REPLICA, "ModelReplica"), (ENDPOINT, ENDPOINT_KIND))
    )


def fleet(request: Request) -> tuple[Requirement, ...]:
    """Return the requirements that placing needs; none for an adapter whose base cannot be read."""
    namespace = text_at(request.composite, "metadata", "namespace")
    base = mapping(plain_of(request.composite), "spec", "base")
    deployment, labels = base.get("deploymentName"), mapping(base.get("matchLabels"))
    if isinstance(deployment, str) and deployment:
        labels = {DEPLOYMENT_LABEL: deployment}
    if not labels or not all(isinstance(value, str) for value in labels.values()):
        return ()
    match_labels = tuple(sorted(labels.items()))
    text = ",".join(f"{key}={value}" for key, value in match_labels)
    return (
        Requirement(
            f"{BASE}/{text}", API_VERSION, "ModelReplica", namespace=namespace, match_labels=match_labels
        ),
        Requirement(PLACEMENTS, API_VERSION, PLACEMENT_KIND, namespace=namespace),
    )


def declared(request: Request) -> tuple[Requirement, ...]:
    """Return what a call without an answer states: the set that it was handed."""
    handed = [requirement for requirement in fleet(request) if requirement.name in request.required]
    return (*standing(request), *handed)


def stated(request: Request, decision: AdapterDecision) -> tuple[Requirement, ...]:
    """Return what an answer states. Within a reconcile no call asks for less than the one before."""
    whole = fleet(request)
    before = any(requirement.name in request.stated for requirement in whole)
    return (*standing(request), *(whole if before or decision.needs_fleet else ()))


def read_snapshot(request: Request, reuse: Reuse, *, whole: bool) -> AdapterSnapshot | Doubt:
    """Read the request, with the fleet (`whole`) or on what the adapter stands on alone."""
    kinds = {key: kind for key in request.observed if (kind := kind_of(key)) is not None}
    fault = foreign(request, kinds)
    if fault:
        return Doubt("Malformed", fault)
    try:
        adapter = reuse.parsed(request.composite, read_adapter)
    except ValueError as error:
        return Doubt("Malformed", f"The ModelAdapter cannot be read: {error}")
    requirements = fleet(request)
    complete = whole and all(requirement.delivered(request) for requirement in requirements)
    bases: dict[str, BaseReplica] = {}
    listed: tuple[AdapterPlacement, ...] = ()
    if complete:
        bases = _bases(request.required[requirements[0].name], reuse)
        listed = read_placements(request.required[PLACEMENTS], reuse)
    names, absent = own_replicas(request), set()
    for name in names:
        resolution = request.resolution(f"{REPLICA}/{name}")
        if resolution is Resolution.DELIVERED:
            by_name = _bases(request.required[f"{REPLICA}/{name}"], reuse)
            bases |= {name: by_name[name]} if name in by_name else {}
        elif resolution is Resolution.ABSENT:
            absent.add(name)
            bases.pop(name, None)
    existing = _existing(request, adapter, names, listed)
    spec = adapter.spec
    by_replica: dict[str, list[AdapterPlacement]] = defaultdict(list)
    for placement in listed:
        by_replica[placement.replica].append(placement)
    inputs = AdapterInput(
        name=adapter.name,
        wanted=spec.replicas,
        minimum=spec.min_replicas or 0,
        rank=spec.rank,
        requirements=spec.requirements,
        existing=existing,
        bases=bases,
        absent=frozenset(absent),
        placements={replica: tuple(placements) for replica, placements in by_replica.items()},
        complete=complete,
        routed=frozenset(name for name in names if f"{ENDPOINT_KEY}{name}" in request.observed),
    )
    undelivered = [item.name for item in standing(request) if not item.delivered(request)]
    return AdapterSnapshot(adapter, inputs, tuple(undelivered))


def _bases(documents: Iterable[Document], reuse: Reuse) -> dict[str, BaseReplica]:
    """Read replicas, by name. One that cannot be decoded is left out: its adapters stay (Law 2)."""
    bases = {}
    for document in documents:
        try:
            base = reuse.parsed(document, read_base)
        except Unreadable:
            continue
        if base.name:
            bases[base.name] = base
    return bases


def _existing(
    request: Request, adapter: ModelAdapter, names: Iterable[str], listed: Iterable[AdapterPlacement]
) -> tuple[OwnPlacement, ...]:
    """Return the placements of the adapter: the observed ones, then those that are only listed."""
    existing = {}
    for name in names:
        document = request.observed[f"{PLACEMENT_KEY}{name}"]
        is_leaving = bool(text_at(document, "metadata", "deletionTimestamp"))
        existing[name] = OwnPlacement(name, text_at(document, "metadata", "name"), terminating=is_leaving)
    uid = adapter.metadata.uid
    for placement in listed:
        is_ours = placement.adapter == adapter.name and (
            placement.owner is None or not uid or placement.owner == uid
        )
        if is_ours and placement.replica not in existing:
            existing[placement.replica] = OwnPlacement(
                placement.replica, placement.name, observed=False, terminating=placement.terminating
            )
    return tuple(existing[replica] for replica in sorted(existing))

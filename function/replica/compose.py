"""All desired resources of a replica: what is wanted, and what stays of what is observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any, NamedTuple

from function.api.model import KSERVE, condition_of, mapping
from function.boundary import Desired, JsonObject, Request, Reuse, text_at
from function.fail_static import as_observed, base_of, key_of, steadfast
from function.objects import (
    API_VERSION,
    AVAILABLE,
    KIND,
    ObservedObject,
    composed_object,
    observing_collection,
    read_object,
)
from function.replica import names
from function.replica import workloads as extras
from function.replica.kserve import observed_states_on_kserve, on_kserve, states_on_kserve
from function.replica.picker import CONFIG_FILE, inference_pool, is_disaggregated, model_route, picker
from function.replica.snapshot import ReplicaSnapshot, was_updated
from function.replica.state import EngineState, engine_state, observed_states, remaining
from function.replica.workloads import ClaimTemplate, EnginePods, claim_templates, engine_workloads

# What is composed for a replica, and a cache of the latest: most calls are about replicas at rest.


@dataclass(frozen=True, slots=True)
class Composition:
    """The desired resources of a replica, and the state of its engines."""

    desired: dict[str, Desired]
    states: tuple[EngineState, ...]
    kept: int
    """How many resources stay exactly as observed."""


class _Earlier(NamedTuple):
    """A composition, and what it was made of: values that were read, by identity, the rest by content."""

    values: tuple[object, ...]
    facts: tuple[object, ...]
    composition: Composition


class CompositionMemo:
    """The latest composition of one replica. It lives with the replica as it was read.

    Law: a composition is a pure function of the replica, of the other values that were read and of the facts.
    What was read is kept as long as uid, resource version and length are the same, so the same values are the
    same content. Buys: a settled replica, which is what most calls are about, composes and writes nothing
    anew.
    """

    __slots__ = ("_earlier", "digest")

    def __init__(self) -> None:
        """Start with nothing."""
        self._earlier: _Earlier | None = None
        self.digest: str | None = None
        """The digest of what its pods run."""

    def composed(
        self, values: tuple[object, ...], facts: tuple[object, ...], compose: Callable[[], Composition]
    ) -> Composition:
        """Return what is composed of these values and facts: as it was last, or anew."""
        earlier = self._earlier
        if earlier is not None and earlier.facts == facts and all(map(is_, earlier.values, values)):
            return earlier.composition
        made = compose()
        self._earlier = _Earlier(values, facts, made)
        return made


# Observe the pods of a workload that is not available, and pass on why the first is pending.
#
# A collection is composed for the workload's pods, its members are required, and the first pod that could
# not be scheduled gives its message. Nothing is changed on the cluster, so a collection leaves as soon as
# it has no use.
#
# provider-kubernetes looks at a collection, and at each member, when it changes, else every ten minutes.
# Pods come after their collection, and what a scheduler says of them comes later still. So the collection
# changes with every count that the workload reports, and its members ask to be looked at every 15 seconds.

POLL_INTERVAL = {"crossplane.io/poll-interval": "15s"}
"""Asks crossplane-runtime (2.3 or later; earlier ones ignore it) to look at a member this often."""
COUNTS = "modelplane.ai/copies"
"""The annotation whose change makes a collection look for pods again."""


def collections(
    snapshot: ReplicaSnapshot, workloads: Sequence[EnginePods], states: Mapping[str, EngineState]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the collection of pods of every workload that does not have all of its copies available."""
    for workload in workloads:
        state = states[workload.engine.name]
        if not (state.ready and state.available >= state.copies):
            observed = {"apiVersion": "v1", "kind": "Pod", "namespace": snapshot.remote_namespace}
            counts = f"{state.total} made, {state.updated} updated, {state.available} available"
            yield (
                f"{names.PODS}-{workload.engine.name}",
                observing_collection(
                    observed,
                    workload.pod_labels,
                    snapshot.cluster.provider_config,
                    {**POLL_INTERVAL, COUNTS: counts},
                ),
            )


def unschedulable(request: Request, reuse: Reuse) -> str | None:
    """Return why the first pod, by name, could not be scheduled.

    "" when all could, None when no pod is seen.
    """
    pods = [
        reuse.parsed(document, read_object)
        for name in sorted(request.required)
        if (read := names.read_key(base_of(name))) is not None and read.what == names.PODS
        for document in request.required[name]
    ]
    created_pods = [pod for pod in pods if pod.kind == KIND and pod.is_created]
    for pod in sorted(created_pods, key=lambda created_pod: created_pod.identity.name):
        scheduled, message = condition_of(pod.remote_status, "PodScheduled")
        if scheduled is False:
            return message or f"Pod {pod.identity.name} is not scheduled"
    return "" if created_pods else None


def compose(request: Request, snapshot: ReplicaSnapshot) -> Composition:
    """Desire what the replica wants, and of the rest what Law C keeps.

    A settled replica, which is what most calls are about, composes nothing anew: what was made of the same
    things for an earlier answer is that answer, and its resources are not written again either.
    """
    values = (snapshot.cluster, *snapshot.observed.values())
    facts = (tuple(snapshot.observed), request.input, request.desired, snapshot.was_updated)
    return snapshot.replica.memo_of(CompositionMemo).composed(
        values, facts, partial(_composed, request, snapshot)
    )


def _composed(request: Request, snapshot: ReplicaSnapshot) -> Composition:
    claims = claim_templates(snapshot)
    if snapshot.cluster.stack == KSERVE:
        return _composed_on_kserve(request, snapshot, claims)
    workloads = engine_workloads(snapshot, claims)
    states = {
        workload.engine.name: engine_state(
            workload.engine.name,
            workload.engine.copies,
            workload.key,
            workload.manifest,
            snapshot.observed,
            was_updated=snapshot.was_updated,
        )
        for workload in workloads
    }
    wanted = _routing(snapshot, edited=any(workload.is_edited for workload in workloads))
    if _is_switching(snapshot):
        # The new routing comes first: until it is observed, no pod changes its role and none is dropped.
        kept = [key for key in snapshot.observed if key not in wanted]
    else:
        wanted |= {workload.key: workload.resource for workload in workloads}
        wanted |= _beside(snapshot, claims, workloads, states)
        kept = remaining(snapshot, wanted, states)
    return _desired(request, snapshot.observed, tuple(states.values()), wanted, kept)


def _composed_on_kserve(
    request: Request, snapshot: ReplicaSnapshot, claims: Mapping[tuple[str, str], ClaimTemplate]
) -> Composition:
    """One service stands for workloads and routing; all else is as it is on our own stack."""
    replica = on_kserve(snapshot, claims)
    states = states_on_kserve(replica, snapshot.observed, was_updated=snapshot.was_updated)
    wanted = replica.resources | _beside(snapshot, claims, replica.engines, states)
    kept = remaining(snapshot, wanted, states)
    return _desired(request, snapshot.observed, tuple(states.values()), wanted, kept)


def _beside(
    snapshot: ReplicaSnapshot,
    claims: Mapping[tuple[str, str], ClaimTemplate],
    workloads: Sequence[EnginePods],
    states: Mapping[str, EngineState],
) -> dict[str, JsonObject]:
    """Return what pods refer to, and what the input asks for besides."""
    wanted = {claim.key: claim.resource for claim in claims.values()} | _extras(snapshot, workloads)
    if snapshot.config.diagnose == "Pods":
        wanted |= dict(collections(snapshot, workloads, states))
    return wanted


def keep_everything(request: Request, observed: Mapping[str, ObservedObject]) -> Composition:
    """Law C 2: in doubt everything stays as it is, and nothing is added."""
    updated = was_updated(request)
    states = (
        *observed_states(observed, was_updated=updated),
        *observed_states_on_kserve(observed, was_updated=updated),
    )
    return _desired(request, observed, states, {}, observed)


def _desired(
    request: Request,
    observed: Mapping[str, ObservedObject],
    states: tuple[EngineState, ...],
    wanted: Mapping[str, JsonObject],
    kept: Iterable[str],
) -> Composition:
    """Return the composition of what is wanted and what is kept, without keys that earlier steps desire."""
    keep = _keeper(request)
    as_wanted = {key: Desired(wanted[key]) for key in wanted if key not in request.desired}
    desired = steadfast(as_wanted, observed, keep) | {key: keep(key) for key in kept}
    ready_engines = {state.name for state in states if state.ready}
    for key, composed in desired.items():
        composed.ready = _is_ready(key, observed, ready_engines)
    number_kept = sum(1 for key, composed in desired.items() if as_wanted.get(key) is not composed)
    return Composition(dict(sorted(desired.items())), states, number_kept)


def _is_ready(key: str, observed: Mapping[str, ObservedObject], ready_engines: set[str]) -> bool:
    """Workloads and the picker are ready when they work, claims and routing once they are observed.

    A successor is as ready as what it supersedes, and what is composed besides holds nothing up: a replica
    that serves must not lose its endpoint because an object is added to it.
    """
    read = names.read_key(base_of(key))
    if read is None:
        return key in observed
    if read.what == names.WORKLOAD:
        return read.of in ready_engines
    if read.what == names.SERVICE:
        return bool(ready_engines)
    if read.what == names.PICKER:
        return picker_works(observed)
    if read.what == names.CLAIM or read.what in names.ROUTING:
        return key in observed or any(
            names.read_key(base_of(observed_key)) == read for observed_key in observed
        )
    return True


def picker_works(observed: Mapping[str, ObservedObject]) -> bool:
    """Tell whether an endpoint picker is available."""
    return any(observed[key].ready is True for key in observed if base_of(key) == names.PICKER)


def _keeper(request: Request) -> Callable[[str], Desired]:
    """Return what desires an observed resource again, exactly as observed.

    Of a Secret only what it is: its data is the provider's, who copied it there.
    """
    namespace = text_at(request.composite, "metadata", "namespace")

    def keep(key: str) -> Desired:
        document = request.observed[key]
        version = text_at(document, "apiVersion") or API_VERSION
        resource = as_observed(document, kind=KIND, namespace=namespace, api_version=version)
        provider = mapping(mapping(resource.get("spec")).get("forProvider"))
        if mapping(provider.get("manifest")).get("kind") != "Secret":
            return Desired(resource)
        shown = {k: v for k, v in provider["manifest"].items() if k not in ("data", "stringData")}
        spec = {**resource["spec"], "forProvider": {**provider, "manifest": shown}}
        return Desired({**resource, "spec": spec})

    return keep


def _routing(snapshot: ReplicaSnapshot, *, edited: bool) -> dict[str, JsonObject]:
    manifests = {
        names.POOL: inference_pool(snapshot),
        names.ROUTE: model_route(snapshot),
        **picker(snapshot, edited=edited),
    }
    return {
        key_of(base, manifest, snapshot.observed): composed_object(
            manifest,
            snapshot.cluster.provider_config,
            readiness=AVAILABLE if base == names.PICKER else "",
        )
        for base, manifest in manifests.items()
    }


def _extras(snapshot: ReplicaSnapshot, workloads: Sequence[EnginePods]) -> dict[str, JsonObject]:
    """Compose the extras that the input asks for."""
    config, provider_config = snapshot.config, snapshot.cluster.provider_config
    wanted: dict[str, JsonObject] = {}
    if config.remote_namespace == "Same" and snapshot.remote_namespace == snapshot.replica.namespace:
        wanted[names.NAMESPACE] = extras.namespace(snapshot)
    if config.budget:
        wanted |= {
            key_of(key, manifest, snapshot.observed): composed_object(manifest, provider_config)
            for key, manifest in extras.budgets(snapshot, workloads)
        }
    if config.secrets == "Mirror":
        wanted |= {
            key_of(key, resource["spec"]["forProvider"]["manifest"], snapshot.observed): resource
            for key, resource in extras.secrets(snapshot)
        }
    return wanted


def _is_switching(snapshot: ReplicaSnapshot) -> bool:
    """Tell whether the observed routing is for the other serving mode."""
    configs = [
        observed_object.manifest
        for key, observed_object in snapshot.observed.items()
        if base_of(key) == names.PICKER_CONFIG
    ]
    modes = {
        is_disaggregated(str(mapping(manifest.get("data")).get(CONFIG_FILE, ""))) for manifest in configs
    }
    return bool(modes) and snapshot.replica.is_disaggregated not in modes

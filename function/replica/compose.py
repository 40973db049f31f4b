"""All desired resources of a replica: what is wanted, and what stays of what is observed.

    compose ▶ claim templates ▶ workloads, or the service of KServe ▶ routing ▶ extras ▶ what remains

A key that is not desired is an object that Crossplane deletes. So everything observed that nothing wants any
more passes through `state.remaining` (Law C 1), and everything wanted through `fail_static.steadfast` (Law C
4 and 5) before it is desired. Whoever composes something new for a replica adds it here and nowhere else.

Limits: an edit takes several calls, for what it replaces leaves only when the successor was seen to work. The
composition of the latest call is remembered, because most calls are about replicas at rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_

from function import objects
from function.api.model import KSERVE, condition_of, mapping, mappings, number, string
from function.api.text import joined
from function.boundary import Desired, JsonObject, Request, Reuse, frozen, text_at
from function.fail_static import as_observed, key_of, steadfast
from function.objects import ObservedObject, composed_object
from function.replica import names
from function.replica.adapters import adapters_head, config_map
from function.replica.kserve import observed_states_on_kserve, on_kserve, states_on_kserve
from function.replica.picker import CONFIG_FILE, PHASES_PLUGIN, routing
from function.replica.pods import engine_port
from function.replica.snapshot import REMOTE_NAMESPACE, ReplicaSnapshot, was_updated
from function.replica.state import EngineState, engine_state, is_ready, observed_states, remaining
from function.replica.workloads import (
    ClaimTemplate,
    EnginePods,
    budgets,
    claim_template,
    engine_workloads,
    pod_groups,
    secrets,
)


@frozen
class Composition:
    """The desired resources of a replica, and the state of its engines."""

    desired: dict[str, Desired]
    states: tuple[EngineState, ...]
    kept: int
    """How many resources stay exactly as observed."""


class CompositionMemo:
    """The latest composition of one replica. It lives with the replica as it was read.

    Law: a composition is a pure function of the replica, of the other values that were read and of the facts.
    What was read is kept as long as uid, resource version and length are the same, so the same values are the
    same content. Buys: a settled replica, which is what most calls are about, composes and writes nothing
    anew.
    """

    __slots__ = ("digest", "latest")

    def __init__(self) -> None:
        """Start with nothing."""
        self.latest: tuple[tuple[object, ...], tuple[object, ...], Composition] | None = None
        """Values that were read, compared by identity; facts, compared by content; what was made of them."""
        self.digest: str | None = None
        """The digest of what its pods run."""


def compose(request: Request, snapshot: ReplicaSnapshot) -> Composition:
    """Desire what the replica wants, and of the rest what Law C keeps.

    Where nothing changed since the latest call, that is the latest composition.
    """
    values = (snapshot.cluster, *snapshot.observed.values())
    facts = (
        *(tuple(snapshot.observed), request.input, request.desired, snapshot.was_updated),
        snapshot.placements,
    )
    memo = snapshot.replica.memo_of(CompositionMemo)
    latest = memo.latest
    if latest is not None and latest[1] == facts and all(map(is_, latest[0], values)):
        return latest[2]
    composition = _composed(request, snapshot)
    memo.latest = values, facts, composition
    return composition


def _composed(request: Request, snapshot: ReplicaSnapshot) -> Composition:
    """Compose without the memo: claims, workloads, routing, what stands beside them, what remains."""
    observed = snapshot.observed
    claims: dict[tuple[str, str], ClaimTemplate] = {
        (engine.name, member.role): claim_template(snapshot, engine.name, member)
        for engine in snapshot.replica.spec.engines
        for member in engine.members
        if member.device_requests
    }
    if snapshot.cluster.spec.stack == KSERVE:
        # One service stands for workloads and routing; all else is as it is on our own stack.
        replica = on_kserve(snapshot, claims)
        states = states_on_kserve(replica, observed, was_updated=snapshot.was_updated)
        wanted = replica.resources | _beside(snapshot, claims, replica.engines, states)
        return _desired(request, observed, states.values(), wanted, remaining(snapshot, wanted, states))
    workloads = engine_workloads(snapshot, claims)
    states = {
        workload.engine.name: engine_state(
            *(workload.engine.name, workload.engine.copies, workload.key, workload.manifest, observed),
            was_updated=snapshot.was_updated,
        )
        for workload in workloads
    }
    wanted = {}
    for base, manifest in routing(snapshot, edited=any(workload.is_edited for workload in workloads)).items():
        readiness = objects.AVAILABLE if base == names.PICKER else ""
        provider_config = snapshot.cluster.provider_config
        key = key_of(base, manifest, observed)
        wanted[key] = composed_object(manifest, provider_config, readiness=readiness)
    modes = {
        PHASES_PLUGIN in str(mapping(config.manifest.get("data")).get(CONFIG_FILE))
        for config in names.among(observed, names.PICKER_CONFIG)
    }
    if modes and snapshot.replica.is_disaggregated not in modes:
        # Between the modes of serving the new routing comes first: until it is observed, no pod changes its
        # role and none is dropped. A picker of the other mode would find no pod for a phase.
        kept = [key for key in observed if key not in wanted]
    else:
        wanted |= {workload.key: workload.resource for workload in workloads}
        wanted |= dict(pod_groups(snapshot, workloads))
        wanted |= _beside(snapshot, claims, workloads, states)
        kept = remaining(snapshot, wanted, states)
    return _desired(request, observed, states.values(), wanted, kept)


_OF_ENGINE = (names.WORKLOAD, names.CLAIM, names.GROUP, names.BUDGET, names.SEEN)
"""Objects that are called by an engine."""


def let_go(request: Request, observed: Mapping[str, ObservedObject], engines: frozenset[str]) -> Composition:
    """Keep every Object, and manage nothing more by those that lead to another replica's objects.

    `engines`: the names of that one's engines, which its workloads are called by. Otherwise the
    Objects of both would undo each other for ever, and the deletion of this one would take its pods along.
    """
    kept = keep_everything(request, observed)
    desired = {}
    for key, composed in kept.desired.items():
        resource = dict(composed.resource)
        # Workloads and claims of an engine that the other has not are not shared, nor is another namespace.
        read = names.read_key(key)
        is_ours = read is not None and read.what in _OF_ENGINE and read.of not in engines
        is_theirs = not is_ours and observed[key].identity.namespace == REMOTE_NAMESPACE
        if resource.get("kind") == "Object" and is_theirs:
            policies = {"managementPolicies": list(objects.OBSERVE)}
            resource["spec"] = {**mapping(resource.get("spec")), **policies}
        desired[key] = Desired(resource, ready=composed.ready)
    return replace(kept, desired=desired)


def keep_everything(request: Request, observed: Mapping[str, ObservedObject]) -> Composition:
    """Law C 2: in doubt everything stays as it is, and nothing is added."""
    updated = was_updated(request)
    states = (
        *observed_states(observed, was_updated=updated),
        *observed_states_on_kserve(observed, was_updated=updated),
    )
    return _desired(request, observed, states, {}, observed)


def _beside(
    snapshot: ReplicaSnapshot,
    claims: Mapping[tuple[str, str], ClaimTemplate],
    workloads: Sequence[EnginePods],
    states: Mapping[str, EngineState],
) -> dict[str, JsonObject]:
    """Return what pods refer to, and what the input asks for besides."""
    config, provider_config = snapshot.config, snapshot.cluster.provider_config
    wanted: dict[str, JsonObject] = {claim.key: claim.resource for claim in claims.values()}
    ports = {
        engine.name: engine_port(snapshot.replica, engine)
        for engine in snapshot.replica.spec.engines
        if engine.adapters is not None
    }
    if ports and snapshot.cluster.spec.stack != KSERVE:
        namespace = snapshot.remote_namespace
        key = key_of(names.ADAPTERS, adapters_head(snapshot.replica, namespace), snapshot.observed)
        listed = config_map(snapshot.replica, snapshot.placements, snapshot.observed, ports, namespace)
        wanted[key] = composed_object(listed, provider_config)
    if config.remote_namespace == "Same" and snapshot.remote_namespace == snapshot.replica.namespace:
        # The namespace outlives the replica, because others may be in it.
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": snapshot.remote_namespace}}
        wanted[names.NAMESPACE] = composed_object(manifest, provider_config, management=objects.KEEP_REMOTE)
    if config.budget:
        wanted |= dict(budgets(snapshot, workloads))
    if config.secrets == "Mirror":
        wanted |= dict(secrets(snapshot))
    if config.diagnose == "Pods":
        for workload in workloads:
            state = states[workload.engine.name]
            if not (state.ready and state.available >= state.copies):
                # The counts make the collection change, which is when the provider looks for pods again.
                counts = f"{state.total} made, {state.updated} updated, {state.available} available"
                wanted[f"{names.PODS}-{workload.engine.name}"] = objects.observing_collection(
                    {"apiVersion": "v1", "kind": "Pod", "namespace": snapshot.remote_namespace},
                    workload.pod_labels,
                    provider_config,
                    {**POLL_INTERVAL, COUNTS: counts},
                )
    return wanted


def _desired(
    request: Request,
    observed: Mapping[str, ObservedObject],
    states: Iterable[EngineState],
    wanted: Mapping[str, JsonObject],
    kept: Iterable[str],
) -> Composition:
    """Return the composition of what is wanted and what is kept, without keys that earlier steps desire."""
    namespace, states = text_at(request.composite, "metadata", "namespace"), tuple(states)

    def keep(key: str) -> Desired:
        """Desire an observed resource again. Of a Secret only what it is: its data the provider copied."""
        document = request.observed[key]
        version = text_at(document, "apiVersion") or objects.API_VERSION
        resource = as_observed(document, kind=objects.KIND, namespace=namespace, api_version=version)
        provider = mapping(resource, "spec", "forProvider")
        if mapping(provider.get("manifest")).get("kind") != "Secret":
            return Desired(resource)
        shown = {k: v for k, v in provider["manifest"].items() if k not in ("data", "stringData")}
        spec = {**resource["spec"], "forProvider": {**provider, "manifest": shown}}
        return Desired({**resource, "spec": spec})

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
    read = names.read_key(key)
    if read is None:
        return key in observed
    if read.what == names.WORKLOAD:
        return read.of in ready_engines
    if read.what == names.SERVICE:
        return bool(ready_engines)
    if read.what == names.PICKER:
        return is_ready(observed, names.PICKER)
    if read.what == names.CLAIM or read.what in names.ROUTING:
        return any(names.read_key(observed_key) == read for observed_key in observed)
    return True


# With `diagnose: Pods`: observe the pods of a workload that is not available, and say why the first is
# pending, or cannot start.
#
# A collection is composed for the workload's pods, its members are required, and the first pod that could
# not be scheduled gives its message, as does the first with a container that cannot start. Nothing is
# changed on the cluster, so a collection leaves as soon as it has no use.
#
# provider-kubernetes looks at a collection, and at each member, when it changes, else every ten minutes.
# Pods come after their collection, and what a scheduler says of them comes later still. So the collection
# changes with every count that the workload reports, and its members ask to be looked at every 15 seconds.

POLL_INTERVAL = {"crossplane.io/poll-interval": "15s"}
"""Asks crossplane-runtime (2.3 or later; earlier ones ignore it) to look at a member this often."""
COUNTS = "modelplane.ai/copies"
"""The annotation whose change makes a collection look for pods again."""


def observed_pods(request: Request, reuse: Reuse) -> list[ObservedObject]:
    """Return the pods that are seen, in the order of their names: none where the input asks for none."""
    pods = [
        reuse.parsed(document, objects.read_object)
        for name in sorted(request.required)
        if names.what_of(name) == names.PODS
        for document in request.required[name]
    ]
    created = [pod for pod in pods if pod.kind == objects.KIND and pod.remote is not None]
    return sorted(created, key=lambda pod: pod.identity.name)


def unschedulable(pods: Sequence[ObservedObject]) -> str | None:
    """Return why the first pod could not be scheduled, and which gates hold it.

    "" when all could, None when no pod is seen.
    """
    for pod in pods:
        scheduled, message = condition_of(pod.remote_status, "PodScheduled")
        if scheduled is False:
            gates = mappings(mapping(pod.remote, "spec").get("schedulingGates"))
            held = ", ".join(string(gate.get("name")) for gate in gates)
            text = message or f"Pod {pod.identity.name} is not scheduled"
            return f"{text}: {held}" if held else text
    return "" if pods else None


IMAGE_FAULTS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
"""What kubelets say in turn of an image that they do not get. Their messages change with each try."""
CONTAINER_FAULTS = frozenset({"CreateContainerConfigError", "CreateContainerError"})
RUN_FAULT, START_FAULTS = "RunContainerError", frozenset({"StartError", "ContainerCannotRun"})
"""What kubelets say of a process that cannot be started: while they try, and once a try has ended. The first
takes turns with CrashLoopBackOff, beside the other of the try before.
"""


def failing(pods: Sequence[ObservedObject]) -> str:
    """Return why a container of the first pod that has one cannot start, or ended; "" for none.

    The text stays the same while a kubelet tries again, for each new one is a write.
    """
    for pod in pods:
        for key in () if pod.leaving else ("initContainerStatuses", "containerStatuses"):
            for status in mappings(pod.remote_status.get(key)):
                if status.get("ready") is not True and (fault := _fault(status)):
                    return f"Pod {pod.identity.name}, container {string(status.get('name'))}: {fault}"
    return ""


def _fault(status: JsonObject) -> str:
    """Return why a container does not run, or why it ended last."""
    state, last = mapping(status.get("state")), mapping(status.get("lastState"))
    waiting = mapping(state.get("waiting"))
    reason = string(waiting.get("reason"))
    said = joined(reason, string(waiting.get("message")))
    if reason in IMAGE_FAULTS:
        return "its image cannot be pulled"
    if reason in CONTAINER_FAULTS:
        return said
    ended = mapping(state.get("terminated")) or mapping(last.get("terminated"))
    code, why = number(ended.get("exitCode"), 0), string(ended.get("reason"))
    if code and why in START_FAULTS:
        return joined(why, string(ended.get("message")))
    if code:
        return f"it ended with exit code {code} ({why or 'no reason'})"
    return said if reason == RUN_FAULT else ""

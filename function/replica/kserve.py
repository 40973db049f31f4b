"""KServe: one LLMInferenceService for a replica, in place of its workloads and its routing.

Written for KServe v0.16, serving.kserve.io/v1alpha1. What its controller does decides what is written here:

- It lays presets (LLMInferenceServiceConfigs) under the spec, as a strategic merge: what is left out is the
  preset's, and empty is left out. So a container states its args, its probes and its shared memory itself.
- The merged spec is a Go template. What a user writes is quoted, so that braces stay braces (`quoted`).
- It adds the model to every container `main`, at /mnt/models, and refuses a service without one.
- A preset's liveness probe restarts a container after two minutes. A startup probe, which none of them has,
  holds it back until the weights are loaded.
- The size of a gang is `parallelism.pipeline`, or `data / dataLocal`.
- A route that is written out cannot be combined with `router.gateway`; it names its gateway itself.

What is made of it on the cluster has the service's name with a suffix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.api.expressible import PORT, command_of, parallelism_of, stack_engine
from function.api.model import condition_of, mapping, mappings
from function.fail_static import base_of, key_of
from function.gateway_api import prefix_match, url_rewrite
from function.objects import NOTE, OBSERVE, ObservedObject, composed_object, condition_query, covers
from function.replica import names
from function.replica.picker import GATEWAY
from function.replica.pods import (
    CLAIM,
    GANG_LABEL,
    arguments,
    drain,
    engine_port,
    environment,
    node_placement,
    pod_scheduling,
    pull_secrets,
    spread,
    with_side_channel,
)
from function.replica.state import (
    Edit,
    EngineState,
    copies_available,
    count,
    digest_of,
    fault_of,
    is_about_spec,
    is_updating,
    noted,
    replicas_of,
    stalled,
    template_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from function.api.workload import WorkloadEngine, WorkloadMember
    from function.boundary import Plain
    from function.replica.snapshot import ReplicaSnapshot
    from function.replica.workloads import ClaimTemplate


if TYPE_CHECKING:
    ClaimTemplates = Mapping[tuple[str, str], ClaimTemplate]

API_VERSION = "serving.kserve.io/v1alpha1"
KIND = "LLMInferenceService"
POOL_GROUP = "inference.networking.x-k8s.io"
MAIN = "main"
"""What the presets call the container that serves."""
SHARED_MEMORY = "shared-memory"
"""Our volume at /dev/shm. The presets' own has 1 GiB, and one of the same name would inherit that."""
WANTED = "modelplane.ai/wanted"
"""The annotation, in what is looked at, with the digest of what was wanted of the service last."""
PROBE_SECONDS = 10

_SINGLE, _GANG = ("apps/v1", "Deployment", ""), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "-mn")
_COMPONENT = "llminferenceservice-workload"


@dataclass(frozen=True, slots=True)
class KServeEngine:
    """One engine as KServe runs it."""

    engine: WorkloadEngine
    key: str
    """The key of what its workload is seen through."""
    pod_labels: dict[str, str]
    """The labels that all of its pods have, and no others."""
    pods: tuple[dict[str, Any], ...]
    """What is wanted of its pods, by member: the serving ones first."""
    resource: dict[str, Any]


@dataclass(frozen=True, slots=True)
class KServeReplica:
    """A replica on a cluster with KServe."""

    key: str
    manifest: dict[str, Any]
    engines: tuple[KServeEngine, ...]
    resources: dict[str, dict[str, Any]]
    """All of it, by key."""


def on_kserve(snapshot: ReplicaSnapshot, claims: ClaimTemplates) -> KServeReplica:
    """Return the service of a replica that KServe can express, and what its engines are seen through."""
    head = _head(snapshot)
    name, config = head["metadata"]["name"], snapshot.config
    key = key_of(names.SERVICE_KEY, head, snapshot.observed)
    running = mapping(snapshot.observed[key].manifest.get("spec")) if key in snapshot.observed else {}
    engines = tuple(_engine(snapshot, engine, claims, name, running) for engine in snapshot.replica.engines)
    parts = {_section(engine.engine): _workload(snapshot, engine) for engine in engines}
    spec = {"model": {"uri": _model(snapshot)}, **parts.pop(""), **parts, "router": _router(snapshot, name)}
    manifest = {**head, "spec": quoted(spec)}
    provider_config = snapshot.cluster.provider_config
    resource = composed_object(
        manifest, provider_config, readiness=condition_query("Ready"), watch=config.watch
    )
    looks = {engine.key: _looked_at(snapshot, engine, key, manifest) for engine in engines}
    return KServeReplica(key, manifest, engines, {key: resource, **looks})


def _looked_at(
    snapshot: ReplicaSnapshot, engine: KServeEngine, key: str, manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the Object that an engine's workload is seen through, with what is noted when it is edited.

    An edit of the service changes what this Object says of the workload, which nobody applies. So the
    provider looks again, and says so: what it saw before the edit cannot pass for what became of it.
    """
    service, workload = snapshot.observed.get(key), snapshot.observed.get(engine.key)
    resource = engine.resource
    if service is None or workload is None:
        return resource
    looks = resource["spec"]["forProvider"]
    annotations = dict(mapping(mapping(workload.manifest.get("metadata")).get("annotations")))
    template, wanted = _template_of(service.manifest), _template_of(manifest)
    edit = Edit.NOTHING if service.manifest == manifest else Edit.NO_TEMPLATE
    if template != wanted:
        edit, annotations[WANTED] = Edit.TEMPLATE, digest_of(wanted)
    if workload.identity.kind == "LeaderWorkerSet":
        evident = _is_acted_on(service, was_updated=snapshot.was_updated) and is_known_remotely(
            workload, was_updated=snapshot.was_updated
        )
        seen = digest_of(template_of((workload.remote or {}).get("spec")))
        annotations |= {NOTE: noted(workload, seen, edit, evident=evident)}
    annotations = {name: value for name, value in annotations.items() if value}
    if annotations:
        metadata = {**looks["manifest"]["metadata"], "annotations": annotations}
        looks["manifest"] = {**looks["manifest"], "metadata": metadata}
    return resource


def _template_of(service: Mapping[str, Any]) -> dict[str, Any]:
    """Return a service without its copies: what restarts pods."""
    spec = template_of(service.get("spec"))
    if "prefill" in spec:
        spec["prefill"] = template_of(spec["prefill"])
    return {**service, "spec": spec}


def quoted(value: Plain) -> Any:
    """Return a value as a Go template writes it: what opens an action there is written by one."""
    if isinstance(value, dict):
        return {key: quoted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [quoted(item) for item in value]
    return value.replace("{{", "{{`{{`}}") if isinstance(value, str) else value


def _head(snapshot: ReplicaSnapshot) -> dict[str, Any]:
    """Return what the service is, with the labels and annotations that KServe passes on to pods."""
    stamps, first = snapshot.cluster.scheduling, snapshot.replica.engines[0].serving.template.metadata
    metadata: dict[str, Any] = {
        "name": names.service_name(snapshot.replica.name),
        "namespace": snapshot.remote_namespace,
    }
    labels, annotations = {**first.labels, **stamps.labels}, {**first.annotations, **stamps.annotations}
    given = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {**metadata, **given}}


def _section(engine: WorkloadEngine) -> str:
    """Return where the spec has an engine: at its top, but for the one that prefills."""
    return "prefill" if engine.phase == "Prefill" else ""


def _model(snapshot: ReplicaSnapshot) -> str:
    """Return the address of the model: the volume of its cache, else what the deployment says."""
    replica, model = snapshot.replica, snapshot.replica.spec.serving.model
    if replica.cache:
        return f"pvc://{names.cache_claim_name(replica.namespace, replica.cache)}"
    return model.uri if model is not None else ""


def _workload(snapshot: ReplicaSnapshot, engine: KServeEngine) -> dict[str, Any]:
    """Return the section of an engine."""
    parallelism = parallelism_of(stack_engine(engine.engine), snapshot.replica.spec.serving.parallelism)
    section: dict[str, Any] = {"replicas": engine.engine.copies}
    stated = parallelism.model_dump(by_alias=True, exclude_none=True)
    if stated:
        section["parallelism"] = stated
    return section | dict(zip(("template", "worker"), engine.pods, strict=False))


def _engine(
    snapshot: ReplicaSnapshot,
    engine: WorkloadEngine,
    claims: ClaimTemplates,
    name: str,
    running: Mapping[str, Any],
) -> KServeEngine:
    api_version, kind, suffix = _GANG if engine.is_gang else _SINGLE
    role = "-prefill" if _section(engine) else ""
    metadata = {"name": f"{name}-kserve{suffix}{role}", "namespace": snapshot.remote_namespace}
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/component": f"{_COMPONENT}{role}"}
    if engine.is_gang:
        labels = {GANG_LABEL: metadata["name"]}
    section = mapping(running.get("prefill")) if role else running
    followers = () if engine.follower is None else (("worker", engine.follower),)
    pods = tuple(
        _pod(snapshot, engine, member, claims, labels, mapping(section.get(field)))
        for field, member in (("template", engine.serving), *followers)
    )
    resource = composed_object(
        manifest, snapshot.cluster.provider_config, watch=snapshot.config.watch, management=OBSERVE
    )
    key = key_of(f"{names.SEEN}-{engine.name}", manifest, snapshot.observed)
    return KServeEngine(engine, key, labels, pods, resource)


def _pod(
    snapshot: ReplicaSnapshot,
    engine: WorkloadEngine,
    member: WorkloadMember,
    claims: ClaimTemplates,
    labels: Mapping[str, str],
    running: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the PodSpec of a member. `running`: the one that was last applied."""
    claim = claims.get((engine.name, member.role))
    spec: dict[str, Any] = {
        "containers": [_container(snapshot, engine, member)],
        "volumes": [{"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory"}}],
        **node_placement(snapshot, member, running),
    }
    if claim is not None:
        spec["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": claim.name}]
    spec |= pull_secrets(snapshot, member) | pod_scheduling(snapshot)
    spec |= spread(snapshot, engine, labels, running)
    drain(snapshot, spec)
    return spec


def _container(snapshot: ReplicaSnapshot, engine: WorkloadEngine, member: WorkloadMember) -> dict[str, Any]:
    source, serves = member.template.container, member.role != "Worker"
    command, args = list(command_of(source)), arguments(snapshot, source, serves=serves)
    if not args:  # A preset's would be added to the command.
        command, args = command[:1], command[1:]
    container: dict[str, Any] = {
        "name": MAIN,
        "image": source.image,
        "command": command,
        "args": args,
        "volumeMounts": [{"name": SHARED_MEMORY, "mountPath": "/dev/shm"}],  # noqa: S108 - a mount
    }
    env = environment(snapshot, source, is_gang=engine.is_gang)
    if serves and engine.phase is not None:
        env = with_side_channel(env)
    if env:
        container["env"] = env
    if serves:
        container |= _listening(snapshot, engine_port(snapshot.replica, engine))
    if member.claims:
        container["resources"] = {"claims": [{"name": CLAIM}]}
    return container


def _listening(snapshot: ReplicaSnapshot, port: int) -> dict[str, Any]:
    """Return the port and the probes of a container that takes requests; a preset may have its own."""
    asks = {"httpGet": {"path": "/health", "port": port, "scheme": "HTTP"}, "periodSeconds": PROBE_SECONDS}
    patience = -(-snapshot.config.progress_deadline_seconds // PROBE_SECONDS)
    return {
        "ports": [{"containerPort": port, "protocol": "TCP"}],
        "startupProbe": {**asks, "timeoutSeconds": 5, "failureThreshold": patience},
        "readinessProbe": {**asks, "initialDelaySeconds": 30, "timeoutSeconds": 5, "failureThreshold": 3},
    }


def _router(snapshot: ReplicaSnapshot, name: str) -> dict[str, Any]:
    """Return KServe's endpoint picker, and the route that leads to it at the path that every replica has."""
    rule = {
        "matches": [prefix_match(f"/{snapshot.replica.namespace}/{snapshot.replica.name}/")],
        "filters": [url_rewrite("/")],
        "timeouts": {"request": "0s", "backendRequest": "0s"},
        "backendRefs": [
            {
                "group": POOL_GROUP,
                "kind": "InferencePool",
                "name": f"{name}-inference-pool",
                "port": PORT,
                "weight": 1,
            }
        ],
    }
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", **GATEWAY}
    return {"scheduler": {}, "route": {"http": {"spec": {"parentRefs": [parent], "rules": [rule]}}}}


# Read how far a replica is on KServe: the service says whether it is served, its workloads which copies
# run.
#
# The status of an LLMInferenceService counts nothing. So what its controller makes of each engine is looked
# at too, and a copy counts as updated only where the pods of that workload say what is wanted: both are
# seen at different times, and an older one must not pass for what became of a newer spec.

_ROUTER = {
    "HTTPRoutesReady": "RouteRejected",
    "GatewaysReady": "RouteRejected",
    "InferencePoolReady": "PickerStarting",
    "SchedulerWorkloadReady": "PickerStarting",
}
"""Conditions of a service about its way in, and the reason that each is for ModelReady."""
_WORKLOADS = (
    *("PresetsCombined", "MainWorkloadReady", "WorkerWorkloadReady"),
    *("PrefillWorkloadReady", "PrefillWorkerWorkloadReady"),
)


_STATED = ("image", "command", "args", "resources", "startupProbe", "readinessProbe", "lifecycle")
"""Fields of a container that no preset adds to, but for its variables."""


def states_on_kserve(
    replica: KServeReplica, observed: Mapping[str, ObservedObject], *, was_updated: bool
) -> dict[str, EngineState]:
    """Return the state of every engine by name."""
    service = observed.get(replica.key)
    ready = any(one.ready is True for one in services(observed))
    if service is None:
        return {
            name: EngineState(name, copies, *(False, ready, False), 0, 0, 0)
            for name, copies in ((engine.engine.name, engine.engine.copies) for engine in replica.engines)
        }
    applied = service.manifest == replica.manifest and _is_acted_on(service, was_updated=was_updated)
    return {
        engine.engine.name: _state(
            engine,
            service,
            observed.get(engine.key, ObservedObject()),
            ready=ready,
            applied=applied,
            was_updated=was_updated,
        )
        for engine in replica.engines
    }


def _state(
    engine: KServeEngine,
    service: ObservedObject,
    workload: ObservedObject,
    *,
    ready: bool,
    applied: bool,
    was_updated: bool,
) -> EngineState:
    copies = engine.engine.copies
    shown = applied and _runs(workload, engine)
    runs = shown and is_known_remotely(workload, was_updated=was_updated)
    updated, total = count(workload, "updatedReplicas") if runs else 0, count(workload, "replicas")
    refused = service.synced_message if service.synced is False else ""
    return EngineState(
        name=engine.engine.name,
        copies=copies,
        created=service.is_created,
        ready=ready and _takes_requests(workload),
        in_use=applied and service.ready is True and _takes_requests(workload),
        available=copies_available(workload, copies),
        updated=min(updated, copies),
        total=total,
        up_to_date=0 < updated == total and not is_updating(workload),
        stalled=refused or (stalled(workload) if runs else ""),
        fault=refused or fault_of(workload, is_unknown=shown and not runs),
    )


def _takes_requests(workload: ObservedObject) -> bool:
    """Tell if a workload has a copy, where it says. KServe may call a service Ready by what it was before."""
    return "conditions" not in workload.remote_status or copies_available(workload, 1) > 0


def is_known_remotely(workload: ObservedObject, *, was_updated: bool) -> bool:
    """Tell if the status of a workload that KServe writes is about its spec, and was seen after our edit."""
    if workload.pending or (workload.synced is False and not was_updated):
        return False
    template = digest_of(template_of((workload.remote or {}).get("spec")))
    return is_about_spec(workload, template, was_updated=was_updated)


def _is_acted_on(service: ObservedObject, *, was_updated: bool) -> bool:
    """Tell whether KServe has seen what was wanted of a service last."""
    return service.is_applied(was_applied=was_updated) and is_about_spec(service, "", was_updated=False)


def observed_states_on_kserve(
    observed: Mapping[str, ObservedObject], *, was_updated: bool
) -> tuple[EngineState, ...]:
    """Return the states of all engines that are observed, where nobody can say what is wanted: in doubt."""
    running = services(observed)
    if not running:
        return ()
    observed_engines = {
        read.of: observed[key]
        for key in sorted(observed)
        if (read := names.read_key(base_of(key))) is not None and read.what == names.SEEN
    }
    applied = all(_is_acted_on(service, was_updated=was_updated) for service in running)
    ready, created = (
        any(service.ready is True for service in running),
        any(service.is_created for service in running),
    )
    return tuple(
        _as_seen(engine, workload, created=created, ready=ready, applied=applied, was_updated=was_updated)
        for engine, workload in (observed_engines or {"model": ObservedObject()}).items()
    )


def _as_seen(
    engine: str, workload: ObservedObject, *, created: bool, ready: bool, applied: bool, was_updated: bool
) -> EngineState:
    """Return the state of an engine whose wanted copies are those of its workload."""
    copies = replicas_of(workload.remote or {})
    updated, total = count(workload, "updatedReplicas"), count(workload, "replicas")
    evident = applied and is_known_remotely(workload, was_updated=was_updated)
    return EngineState(
        name=engine,
        copies=copies,
        created=created,
        ready=ready,
        in_use=ready,
        available=copies_available(workload, copies),
        updated=min(updated, copies),
        total=total,
        up_to_date=evident and 0 < updated == total and not is_updating(workload),
        stalled=stalled(workload),
    )


def services(observed: Mapping[str, ObservedObject]) -> list[ObservedObject]:
    """Return the observed services of the replica: one, or it and its successor."""
    return [observed[key] for key in observed if base_of(key) == names.SERVICE_KEY]


def waits_for(observed: Mapping[str, ObservedObject]) -> tuple[str, str]:
    """Return why a service is not ready: a reason of ModelReady, and KServe's own words ("" for none)."""
    for service in services(observed):
        for kind in _WORKLOADS:
            holds, message = condition_of(service.remote_status, kind)
            if holds is False:
                return "ModelStarting", message
        for kind, reason in _ROUTER.items():
            holds, message = condition_of(service.remote_status, kind)
            if holds is False:
                return reason, message or f"KServe reports {kind} False"
    return "ModelStarting", ""


def _runs(workload: ObservedObject, engine: KServeEngine) -> bool:
    """Tell whether a workload's pods say all that is wanted of them, beside what the presets add."""
    made = list(_pod_specs(mapping((workload.remote or {}).get("spec"))))
    return len(made) >= len(engine.pods) and all(
        _carries(pod, wanted) for pod, wanted in zip(made, engine.pods, strict=False)
    )


def _pod_specs(spec: Mapping[str, Plain]) -> Iterator[dict[str, Any]]:
    """Yield the PodSpecs of a Deployment or a LeaderWorkerSet, the serving one first."""
    group = mapping(spec.get("leaderWorkerTemplate"))
    templates = (spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate"))
    for template in templates:
        if isinstance(template, dict):
            yield mapping(template.get("spec"))


def _carries(pod: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Tell whether a PodSpec has what is wanted; lists that a preset adds to are compared by name."""
    for key, value in wanted.items():
        held = pod.get(key)
        if key == "containers":
            if not _container_carries(_named(held).get(MAIN, {}), value[0]):
                return False
        elif key == "volumes":
            if not _names_cover(held, value):
                return False
        elif not covers(held, value):
            return False
    return True


def _container_carries(held: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return _names_cover(held.get("env"), wanted.get("env")) and all(
        covers(held.get(key), wanted[key]) for key in _STATED if key in wanted
    )


def _names_cover(held: Plain, wanted: Plain) -> bool:
    mine, theirs = _named(held), _named(wanted)
    return all(covers(mine.get(name), value) for name, value in theirs.items())


def _named(items: Plain) -> dict[str, dict[str, Any]]:
    """Return the entries of a list by name."""
    return {str(entry.get("name")): entry for entry in mappings(items)}

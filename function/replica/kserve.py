"""KServe: one LLMInferenceService for a replica, in place of its workloads and its routing.

Written for KServe v0.16 to v0.20, serving.kserve.io/v1alpha1, and v1alpha2 on clusters that ask for it. What
its controller does decides what is written here:

- It lays presets (LLMInferenceServiceConfigs) under the spec, as a strategic merge: what is left out is the
  preset's, and empty is left out. So a container states its args, its probes and its shared memory itself.
- The merged spec is a Go template. What a user writes is quoted, so that braces stay braces (`quoted`).
- It adds the model to every container `main`, at /mnt/models, and refuses a service without one.
- A preset's liveness probe restarts a container after two minutes. A startup probe, which none of them has,
  holds it back until the weights are loaded.
- The size of a gang is `parallelism.pipeline`, or `data / dataLocal`. From v0.20 on a parallelism that only
  says what is off is refused, and presets stop a container by `exec`, beside which a `sleep` is refused.
- In v1alpha2 labels and annotations of pods are fields of their engine. A Deployment selects its pods by all
  labels, so those of single pods are for life (`snapshot.py`).
- A route that is written out cannot be combined with `router.gateway`; it names its gateway itself.

What is made of it on the cluster has the service's name with a suffix. The status of an LLMInferenceService
counts nothing, so the workload of each engine is looked at too, by an Object that only observes. A copy
counts as updated only where the pods of that workload say what is wanted: service and workload are seen at
different times, and an older sight must not pass for what became of a newer spec (`state.py` has the
evidence).

    on_kserve ▶ the service, and what its engines are seen through        states_on_kserve ▶ how far they are

Limits: what KServe has no field for is refused before a replica is placed (`api.expressible`,
docs/kserve.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from function import gateway_api
from function.api.declared_cluster import Scheduling
from function.api.expressible import PORT, command_of, parallelism_of, stack_engine
from function.api.model import KSERVE_V1ALPHA2, condition_of, mapping, mappings
from function.api.workload import PodMetadata, WorkloadEngine, WorkloadMember, digest_of
from function.boundary import Plain, frozen
from function.fail_static import key_of, until_edited
from function.objects import NOTE, OBSERVE, ObservedObject, composed_object, condition_query, covers
from function.replica import names, pods, state
from function.replica.picker import GATEWAY
from function.replica.snapshot import ReplicaSnapshot
from function.replica.state import Edit, EngineState, copies_available, count, is_about_spec, template_of
from function.replica.workloads import ClaimTemplate

API_VERSION, NEWER = "serving.kserve.io/v1alpha1", "serving.kserve.io/v1alpha2"
KIND = "LLMInferenceService"
POOL_GROUP = "inference.networking.x-k8s.io"
"""The group of the InferencePool that KServe makes; ours is of another (`picker.py`)."""
MAIN = "main"
"""The name that the presets have for the container that serves."""
SHARED_MEMORY = "shared-memory"
"""Our volume at /dev/shm. The presets' own has 1 GiB, and one of the same name would inherit that."""
WANTED = "modelplane.ai/wanted"
"""The annotation, in what is looked at, with the digest of what was wanted of the service last."""
PROBE_SECONDS = 10

_SINGLE, _GANG = ("apps/v1", "Deployment", ""), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "-mn")
_COMPONENT = "llminferenceservice-workload"
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
"""Conditions of a service about its pods: while one is False, the model is still starting."""
_STATED = ("image", "command", "args", "resources", "startupProbe", "readinessProbe", "lifecycle")
"""Fields of a container that no preset adds to, but for its variables."""


@frozen
class KServeEngine:
    """One engine as KServe runs it."""

    engine: WorkloadEngine
    key: str
    """The key of what its workload is seen through."""
    pod_labels: dict[str, str]
    """The labels that all of its pods have, and no others."""
    pod_specs: tuple[dict[str, Any], ...]
    """The wanted spec of its pods, by member: the serving ones first."""
    resource: dict[str, Any]
    pod_metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    """The labels and annotations that the service has for its pods alone; none in v1alpha1."""

    @property
    def section(self) -> str:
        """Where the spec of the service has the engine: at its top (""), but for the one that prefills."""
        return "prefill" if self.engine.phase == "Prefill" else ""


@frozen
class KServeReplica:
    """A replica on a cluster with KServe."""

    key: str
    manifest: dict[str, Any]
    engines: tuple[KServeEngine, ...]
    resources: dict[str, dict[str, Any]]
    """All of it, by key."""


def on_kserve(snapshot: ReplicaSnapshot, claims: Mapping[tuple[str, str], ClaimTemplate]) -> KServeReplica:
    """Return the service of a replica that KServe can express, and what its engines are seen through."""
    replica, config, cluster = snapshot.replica, snapshot.config, snapshot.cluster
    name = names.service_name(replica.name)
    metadata: dict[str, Any] = {"name": name, "namespace": snapshot.remote_namespace}
    # Labels and annotations of the service are what KServe passes on to pods, of all engines alike.
    first, stamps = replica.spec.engines[0].serving.template.metadata, cluster.spec.scheduling
    labels, annotations = {**first.labels, **stamps.labels}, {**first.annotations, **stamps.annotations}
    given = _stated(PodMetadata(labels=labels, annotations=annotations))
    head = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {**metadata, **given}}
    key = key_of(names.SERVICE_KEY, head, snapshot.observed)
    running = mapping(snapshot.observed[key].manifest.get("spec")) if key in snapshot.observed else {}
    engines = tuple(_engine(snapshot, engine, claims, name, running) for engine in replica.spec.engines)
    model = replica.spec.serving.model
    uri = model.uri if model is not None else ""
    if replica.cache:
        uri = f"pvc://{names.cache_claim_name(replica.namespace, replica.cache)}"
    sections: dict[str, dict[str, Any]] = {}
    for engine in engines:
        parallelism = parallelism_of(stack_engine(engine.engine), replica.spec.serving.parallelism)
        section = sections[engine.section] = {"replicas": engine.engine.copies}
        stated = parallelism.model_dump(by_alias=True, exclude_none=True)
        if stated:
            section["parallelism"] = stated
        section |= dict(zip(("template", "worker"), engine.pod_specs, strict=False))
    rule = {
        "matches": [gateway_api.prefix_match(f"/{replica.namespace}/{replica.name}/")],
        "filters": [gateway_api.url_rewrite("/")],
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
    # KServe's own endpoint picker, and the route that leads to it at the path that every replica has.
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", **GATEWAY}
    router = {"scheduler": {}, "route": {"http": {"spec": {"parentRefs": [parent], "rules": [rule]}}}}
    written = {"model": {"uri": uri}, **sections.pop(""), **sections, "router": router}
    # Law C 6: what runs as an earlier release wrote it is not restarted for another spelling of the same.
    spec, earlier = _spelt(written), quoted(written)
    templates = [_template_of({"spec": one}) for one in (spec, earlier, running)]
    if until_edited(*templates) != templates[0]:
        spec = earlier
    elif spec != earlier:
        engines = tuple(
            replace(engine, pod_specs=tuple(map(_stopped_by_exec, engine.pod_specs))) for engine in engines
        )
    manifest = {**head, "spec": spec}
    # Law C 6: what runs in one version is written in the other one when its pods are edited anyway.
    before = snapshot.observed[key].manifest if key in snapshot.observed else {}
    wants_newer = cluster.spec.dialect == KSERVE_V1ALPHA2
    if wants_newer or before.get("apiVersion") == NEWER:
        newer = _newer({**head, "metadata": {**metadata, **_stated(stamps)}}, spec, engines)
        wanted, other = (newer, manifest) if wants_newer else (manifest, newer)
        manifest = other if _template_of(before) == _template_of(other) else wanted
        if manifest["apiVersion"] == NEWER:
            engines = tuple(
                replace(engine, pod_metadata=_stated(engine.engine.serving.template.metadata))
                for engine in engines
            )
    readiness = condition_query("Ready")
    resource = composed_object(manifest, cluster.provider_config, readiness=readiness, watch=config.watch)
    looks = {engine.key: _looked_at(snapshot, engine, key, manifest) for engine in engines}
    return KServeReplica(key, manifest, engines, {key: resource, **looks})


def _stated(source: PodMetadata | Scheduling) -> dict[str, dict[str, str]]:
    """Return labels and annotations, as far as there are some."""
    return {
        what: pairs
        for what, pairs in (("labels", source.labels), ("annotations", source.annotations))
        if pairs
    }


def _newer(
    head: Mapping[str, Any], spec: Mapping[str, Any], engines: Sequence[KServeEngine]
) -> dict[str, Any]:
    """Return a service in v1alpha2, where what is said of the pods of an engine stands in its section."""
    made = dict(spec)
    for engine in engines:
        stated = quoted(_stated(engine.engine.serving.template.metadata))
        made |= {"prefill": {**made["prefill"], **stated}} if engine.section else stated
    return {**head, "apiVersion": NEWER, "spec": made}


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
    annotations = dict(mapping(workload.manifest, "metadata", "annotations"))
    template, wanted = _template_of(service.manifest), _template_of(manifest)
    edit = Edit.NOTHING if service.manifest == manifest else Edit.NO_TEMPLATE
    if template != wanted:
        edit, annotations[WANTED] = Edit.TEMPLATE, digest_of(wanted)
    if workload.identity.kind == "LeaderWorkerSet":
        evident = _is_acted_on(service, was_updated=snapshot.was_updated) and is_known_remotely(
            workload, was_updated=snapshot.was_updated
        )
        seen = digest_of(template_of((workload.remote or {}).get("spec")))
        annotations |= {NOTE: state.noted(workload, seen, edit, applied=True, evident=evident)}
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


def _spelt(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a service in words that every KServe takes, v0.20 among them."""
    made: dict[str, Any] = quoted(dict(spec))
    for section in (made, *([made["prefill"]] if "prefill" in made else [])):
        if not any(section.get("parallelism", {}).values()):
            section.pop("parallelism", None)
        section |= {
            field: _stopped_by_exec(section[field]) for field in ("template", "worker") if field in section
        }
    return made


def _stopped_by_exec(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a PodSpec that waits by a command before it stops, as the presets of v0.20 do."""
    [container] = pod["containers"]
    stop = mapping(container, "lifecycle", "preStop")
    if "sleep" not in stop:
        return dict(pod)
    command = ["/bin/sleep", str(stop["sleep"]["seconds"])]
    return {**pod, "containers": [{**container, "lifecycle": {"preStop": {"exec": {"command": command}}}}]}


def quoted(value: Plain) -> Any:
    """Return a value as a Go template writes it: what opens an action there is written by one."""
    if isinstance(value, dict):
        return {key: quoted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [quoted(item) for item in value]
    return value.replace("{{", "{{`{{`}}") if isinstance(value, str) else value


def _engine(
    snapshot: ReplicaSnapshot,
    engine: WorkloadEngine,
    claims: Mapping[tuple[str, str], ClaimTemplate],
    name: str,
    running: Mapping[str, Any],
) -> KServeEngine:
    """Return one engine as KServe runs it: what its workload is seen through, and what its pods shall say.

    Names and labels are those that the controller of KServe gives its workloads.
    """
    api_version, kind, suffix = _GANG if engine.is_gang else _SINGLE
    role = "-prefill" if engine.phase == "Prefill" else ""
    metadata = {"name": f"{name}-kserve{suffix}{role}", "namespace": snapshot.remote_namespace}
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/component": f"{_COMPONENT}{role}"}
    if engine.is_gang:
        labels = {pods.GANG_LABEL: metadata["name"]}
    section = mapping(running.get("prefill")) if role else running
    followers = () if engine.follower is None else (("worker", engine.follower),)
    pod_specs = tuple(
        _pod(snapshot, engine, member, claims, labels, mapping(section.get(field)))
        for field, member in (("template", engine.serving), *followers)
    )
    resource = composed_object(
        manifest, snapshot.cluster.provider_config, watch=snapshot.config.watch, management=OBSERVE
    )
    key = key_of(f"{names.SEEN}-{engine.name}", manifest, snapshot.observed)
    return KServeEngine(engine, key, labels, pod_specs, resource)


def _pod(
    snapshot: ReplicaSnapshot,
    engine: WorkloadEngine,
    member: WorkloadMember,
    claims: Mapping[tuple[str, str], ClaimTemplate],
    labels: Mapping[str, str],
    running: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the PodSpec of a member. `running`: the one that was last applied."""
    source, serves = member.template.container, member.role != "Worker"
    command, args = list(command_of(source)), pods.arguments(snapshot, source, serves=serves)
    if not args:  # A preset's would be added to the command.
        command, args = command[:1], command[1:]
    container: dict[str, Any] = {
        "name": MAIN,
        "image": source.image,
        "command": command,
        "args": args,
        "volumeMounts": [
            {"name": SHARED_MEMORY, "mountPath": "/dev/shm"},  # noqa: S108 - a mount
            *(mount.as_written() for mount in source.volume_mounts),
        ],
    }
    env = pods.environment(snapshot, source, is_gang=engine.is_gang)
    if serves and engine.phase is not None:
        env = pods.with_side_channel(env)
    if env:
        container["env"] = env
    if serves:
        # Port and probes are stated whole, because a preset may have its own.
        port = pods.engine_port(snapshot.replica, engine)
        asks = {
            "httpGet": {"path": "/health", "port": port, "scheme": "HTTP"},
            "periodSeconds": PROBE_SECONDS,
            "timeoutSeconds": 5,
        }
        patience = -(-snapshot.config.progress_deadline_seconds // PROBE_SECONDS)
        container["ports"] = [{"containerPort": port, "protocol": "TCP"}]
        container["startupProbe"] = {**asks, "failureThreshold": patience}
        container["readinessProbe"] = {**asks, "initialDelaySeconds": 30, "failureThreshold": 3}
    resources = pods.resources_of(member)
    if resources:
        container["resources"] = resources
    claim = claims.get((engine.name, member.role))
    spec: dict[str, Any] = {
        "containers": [container],
        "volumes": [
            {"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory"}},
            *pods.volumes_of(snapshot, member),
        ],
    }
    if claim is not None:
        spec["resourceClaims"] = [{"name": pods.CLAIM, "resourceClaimTemplateName": claim.name}]
    pods.add_cluster_rules(spec, snapshot, engine, member, labels, running)
    return spec


@frozen
class _Served:
    """A service of KServe, and the evidence about its pods."""

    service: ObservedObject
    ready: bool
    """Whether it is, or one that it supersedes."""
    applied: bool
    """Whether KServe has seen what is wanted of it."""
    was_updated: bool
    """Whether ModelUpdated was True."""

    def engine(self, name: str, copies: int, workload: ObservedObject, *, shown: bool) -> EngineState:
        """Return the state of an engine. `shown`: its pods, as they were seen, say what is wanted."""
        runs = shown and is_known_remotely(workload, was_updated=self.was_updated)
        updated, total = count(workload, "updatedReplicas") if runs else 0, count(workload, "replicas")
        # KServe may call a service Ready by what it was before; where the workload counts, that decides.
        takes_requests = "conditions" not in workload.remote_status or copies_available(workload, 1) > 0
        refused = self.service.synced_message if self.service.synced is False else ""
        return EngineState(
            name=name,
            copies=copies,
            created=self.service.remote is not None,
            ready=self.ready and takes_requests,
            in_use=self.applied and self.service.ready is True and takes_requests,
            available=copies_available(workload, copies),
            updated=min(updated, copies),
            total=total,
            up_to_date=0 < updated == total and not state.is_updating(workload),
            stalled=refused or (state.said(workload, *state.TIMED_OUT) if runs else ""),
            fault=refused or state.fault_of(workload, is_unknown=shown and not runs),
            refused=state.said(workload, *state.PODS_REFUSED),
        )


def states_on_kserve(
    replica: KServeReplica, observed: Mapping[str, ObservedObject], *, was_updated: bool
) -> dict[str, EngineState]:
    """Return the state of every engine by name."""
    service = observed.get(replica.key)
    ready = state.is_ready(observed, names.SERVICE)
    if service is None:
        counts = {engine.engine.name: engine.engine.copies for engine in replica.engines}
        return {
            name: EngineState(name, copies, *(False, ready, False), 0, 0, 0)
            for name, copies in counts.items()
        }
    applied = service.manifest == replica.manifest and _is_acted_on(service, was_updated=was_updated)
    served, states = _Served(service, ready, applied, was_updated), {}
    for engine in replica.engines:
        name, workload = engine.engine.name, observed.get(engine.key, ObservedObject())
        shown = applied and _runs(workload, engine)
        states[name] = served.engine(name, engine.engine.copies, workload, shown=shown)
    return states


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
    """Return the states of all engines that are observed, where nobody can say what is wanted: in doubt.

    The wanted copies of an engine are those of its workload then, and what was applied last is wanted.
    """
    latest = max((key for key in observed if names.what_of(key) == names.SERVICE), default="")
    if not latest:
        return ()
    engines = {
        read.of: observed[key]
        for key in sorted(observed)
        if (read := names.read_key(key)) is not None and read.what == names.SEEN
    }
    applied = _is_acted_on(observed[latest], was_updated=was_updated)
    ready = state.is_ready(observed, names.SERVICE)
    served = _Served(observed[latest], ready, applied, was_updated)
    states = []
    for engine, workload in (engines or {"model": ObservedObject()}).items():
        shown = applied and workload.remote is not None
        states.append(served.engine(engine, state.replicas_of(workload.remote or {}), workload, shown=shown))
    return tuple(states)


def waits_for(observed: Mapping[str, ObservedObject]) -> tuple[str, str]:
    """Return why a service is not ready: a reason of ModelReady, and KServe's own words ("" for none)."""
    for service in names.among(observed, names.SERVICE):
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
    spec = mapping(workload.remote, "spec")
    group = mapping(spec.get("leaderWorkerTemplate"))
    templates = (spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate"))
    made = [template for template in templates if isinstance(template, dict)]
    if not all(covers(mapping(template.get("metadata")), engine.pod_metadata) for template in made):
        return False
    pod_specs = [mapping(template.get("spec")) for template in made]
    return len(made) >= len(engine.pod_specs) and all(map(_carries, pod_specs, engine.pod_specs))


def _carries(pod: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Tell whether a PodSpec has what is wanted; lists that a preset adds to are compared by name."""
    for key, value in wanted.items():
        held = pod.get(key)
        if key == "containers":
            main = _named(held).get(MAIN, {})
            stated = [name for name in _STATED if name in value[0]]
            if not _names_cover(main.get("env"), value[0].get("env")):
                return False
            if not all(covers(main.get(name), value[0][name]) for name in stated):
                return False
        elif not (_names_cover if key == "volumes" else covers)(held, value):
            return False
    return True


def _names_cover(held: Plain, wanted: Plain) -> bool:
    """Tell whether everything wanted is held under the same name; a preset may add others."""
    mine, theirs = _named(held), _named(wanted)
    return all(covers(mine.get(name), value) for name, value in theirs.items())


def _named(items: Plain) -> dict[str, dict[str, Any]]:
    """Return the entries of a list by name."""
    return {str(entry.get("name")): entry for entry in mappings(items)}

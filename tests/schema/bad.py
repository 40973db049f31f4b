"""Objects the API server must refuse, each for one reason, and some it must not."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

Plain = dict[str, Any]
DELETE = object()


@dataclass(frozen=True)
class Case:
    """An object of a kind with one change, and a part of what is said about it."""

    reason: str
    kind: str
    plain: Plain
    expected: str = ""
    old: Plain | None = None


CONTAINER: Plain = {
    "name": "engine",
    "image": "vllm/vllm-openai:v0.11.2",
    "args": ["--model=Qwen/Qwen3-8B"],
}
SELECTOR: Plain = {"cel": 'device.driver == "gpu.nvidia.com"'}
GPU: Plain = {"name": "gpu", "count": 1, "selectors": [SELECTOR]}
MEMBER: Plain = {"nodeSelector": {"devices": [GPU]}, "template": {"spec": {"containers": [CONTAINER]}}}
ENGINE: Plain = {"name": "main", "members": [MEMBER]}
DEVICE: Plain = {"name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com", "count": 8}
BASES: dict[str, Plain] = {
    "ModelDeployment": {"spec": {"replicas": 3, "template": {"spec": {"engines": [ENGINE]}}}},
    "ModelReplica": {
        "spec": {
            "clusterName": "a",
            "engines": [
                {"name": "main", "copies": 1, "members": [{"role": "Standalone", "nodePoolName": "h100"}]},
            ],
        }
    },
    "ModelEndpoint": {"spec": {"url": "http://192.0.2.1/ml/chat-1/v1", "rewritePath": "/ml/chat-1/"}},
    "ModelService": {"spec": {"endpoints": [{"selector": {"matchLabels": {"app": "chat"}}}]}},
    "ModelAdapter": {"spec": {"base": {"deploymentName": "chat"}, "source": "acme/support-lora"}},
    "ModelAdapterPlacement": {
        "spec": {"adapter": "support", "replica": "chat-5ab63", "source": "acme/support-lora"}
    },
    "ModelCache": {"spec": {"clusterSelector": {"matchLabels": {"tier": "production"}}}},
    "InferenceCluster": {
        "spec": {
            "cluster": {"source": "Existing"},
            "nodePools": [{"name": "h100", "className": "h100", "nodeCount": 2}],
        }
    },
    "InferenceClass": {"spec": {"devices": [DEVICE]}},
    "SchedulerConfig": {},
    "WorkloadConfig": {},
    "ClusterConfig": {},
    "RoutingConfig": {},
}


def made(kind: str, *changes: tuple[str, Any]) -> Plain:
    """The base object of a kind with values set at paths such as `spec.engines.0.copies`; DELETE removes."""
    groups = dict.fromkeys(
        ("SchedulerConfig", "WorkloadConfig", "ClusterConfig", "RoutingConfig"),
        "fleet-scheduler.fn.modelplane.ai",
    )
    plain = {
        "apiVersion": f"{groups.get(kind, 'modelplane.ai')}/v1alpha1",
        "kind": kind,
        "metadata": {"name": "x"},
    }
    plain |= deepcopy(BASES[kind])
    for path, value in changes:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        place: Any = plain
        for step in steps:
            place = place[step] if isinstance(step, int) else place.setdefault(step, {})
        if value is DELETE:
            del place[last]
        else:
            place[last] = deepcopy(value)
    return plain


def bad(kind: str, path: str, value: Any, expected: str, reason: str) -> Case:
    """A case with one change."""
    return Case(reason, kind, made(kind, (path, value)), expected)


ENGINES = "spec.template.spec.engines"
FIRST = f"{ENGINES}.0.members.0"
LEADER, WORKER = MEMBER | {"role": "Leader"}, MEMBER | {"role": "Worker"}
PREFILL, DECODE = ENGINE | {"name": "p", "phase": "Prefill"}, ENGINE | {"name": "d", "phase": "Decode"}
SPREAD: Plain = {"topologyKey": "modelplane.ai/region", "maxSkew": 1}


def _deployment(path: str, value: Any, expected: str, reason: str) -> Case:
    return bad("ModelDeployment", path, value, expected, reason)


def _selector(value: Plain, expected: str, reason: str) -> Case:
    return _deployment("spec.template.spec.clusterSelector", value, expected, reason)


BAD = [
    _deployment("spec.replicas", DELETE, "'replicas' is a required property", "how many is always said"),
    _deployment("spec.replicas", -1, "minimum", "less than none cannot be wanted"),
    _deployment("spec.replicas", 201, "maximum", "beyond the size an answer can have"),
    _deployment("spec.replicas", "3", "not of type 'integer'", "a number is not a text"),
    _deployment("spec.replicas", 1.5, "not of type 'integer'", "half a replica"),
    _deployment("spec.replica", 3, "spec.replica: no such field", "a typo would be dropped in silence"),
    _deployment("spec.minReplicas", 4, "minReplicas must not be above replicas", "it could never be met"),
    _deployment("spec.template", DELETE, "'template' is a required property", "nothing to run"),
    _deployment(
        "spec.template.metadata.labels",
        {"modelplane.ai/cluster": "a"},
        "set by the scheduler",
        "identity is not the user's",
    ),
    _deployment("spec.template.metadata.labels", {"team/": "a"}, "valid label key", "not a label key"),
    _deployment("spec.template.metadata.labels", {"team": "a b"}, "does not match", "not a label value"),
    _deployment(
        "spec.template.metadata.labels", {f"l{n}": "a" for n in range(33)}, "too many", "at most 32 labels"
    ),
    _deployment(ENGINES, [], "should be non-empty", "a replica has an engine"),
    _deployment(ENGINES, [ENGINE, ENGINE], "duplicate", "engines are told apart by name"),
    _deployment(ENGINES, [ENGINE | {"name": f"e{n}"} for n in range(9)], "is too long", "at most 8 engines"),
    *(
        _deployment(
            f"{FIRST}.template.metadata", {field: {key: "a"}}, "are reserved", f"pod {field} under {key}"
        )
        for field in ("labels", "annotations")
        for key in ("modelplane.ai/serving", "leaderworkerset.sigs.k8s.io/name")
    ),
    _deployment(f"{ENGINES}.0.name", "Main", "does not match", "names are DNS labels"),
    _deployment(f"{ENGINES}.0.copies", 0, "minimum", "an engine that never runs"),
    _deployment(f"{ENGINES}.0.copies", 65, "maximum", "at most 64 copies"),
    _deployment(f"{ENGINES}.0.poolPolicy", "AnyPool", "is not one of", "an unknown policy"),
    _deployment(f"{ENGINES}.0.phase", "Prefill", "no engine has a phase", "phases belong to PrefillDecode"),
    _deployment(
        f"{ENGINES}.0.members", [LEADER], "one Standalone, or one Leader and one Worker", "a leader alone"
    ),
    _deployment(
        f"{ENGINES}.0.members", [MEMBER, WORKER], "one Standalone, or one Leader", "a worker without a leader"
    ),
    _deployment(f"{ENGINES}.0.members", [LEADER, LEADER], "one Standalone, or one Leader", "two leaders"),
    _deployment(f"{ENGINES}.0.members", [LEADER, WORKER, WORKER], "is too long", "at most two members"),
    _deployment(
        f"{FIRST}.nodeSelector",
        DELETE,
        "at least one member needs a nodeSelector",
        "an engine claims something",
    ),
    _deployment(f"{FIRST}.worker", {"nodes": 1}, "only a Worker has worker.nodes", "a Standalone is one pod"),
    _deployment(f"{FIRST}.template", DELETE, "'template' is a required property", "nothing to run"),
    _deployment(
        f"{FIRST}.nodeSelector.devices",
        [],
        "should be non-empty",
        "a selector without devices selects nothing",
    ),
    _deployment(f"{FIRST}.nodeSelector.devices", [GPU, GPU], "duplicate", "requests are told apart by name"),
    _deployment(
        f"{FIRST}.nodeSelector.devices.0.name", "GPU_0", "does not match", "request names are DNS labels"
    ),
    _deployment(f"{FIRST}.nodeSelector.devices.0.count", 65, "maximum", "at most 64 devices"),
    _deployment(f"{FIRST}.nodeSelector.devices.0.selectors", [], "should be non-empty", "a list of nothing"),
    _deployment(
        f"{FIRST}.nodeSelector.devices.0.selectors",
        DELETE,
        "either selectors or firstAvailable",
        "any device at all",
    ),
    _deployment(
        f"{FIRST}.nodeSelector.devices.0.firstAvailable",
        [{"name": "a", "selectors": [SELECTOR]}],
        "either selectors or firstAvailable",
        "two ways to say it",
    ),
    _deployment(
        f"{FIRST}.nodeSelector.devices.0",
        {"name": "gpu", "count": 2, "firstAvailable": [{"name": "a", "selectors": [SELECTOR]}]},
        "beside firstAvailable there is no count",
        "every way has its own count",
    ),
    _deployment(
        f"{FIRST}.nodeSelector.devices.0",
        {
            "name": "gpu",
            "claimSelectors": [SELECTOR],
            "firstAvailable": [{"name": "a", "selectors": [SELECTOR]}],
        },
        "beside firstAvailable there are no claimSelectors",
        "every way has its own",
    ),
    _deployment(
        f"{FIRST}.nodeSelector.devices.0",
        {
            "name": "gpu",
            "tolerations": [{"operator": "Exists"}],
            "firstAvailable": [{"name": "a", "selectors": [SELECTOR]}],
        },
        "beside firstAvailable there are no tolerations",
        "every way has its own",
    ),
    _deployment(
        f"{FIRST}.nodeSelector.devices.0.tolerations",
        [{"value": "yes"}],
        "operator Equal needs a key",
        "a toleration of nothing",
    ),
    _deployment(
        f"{FIRST}.nodeSelector.devices.0.claimSelectors", [], "should be non-empty", "a list of nothing"
    ),
    _deployment(
        f"{FIRST}.nodeSelector.devices.0.selectors.0.cel",
        "x" * 10241,
        "is too long",
        "longer than Kubernetes allows",
    ),
    _deployment(
        f"{FIRST}.nodeSelector.constraints",
        [{"requests": ["gpu", "nic"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}],
        "only name requests of this nodeSelector",
        "nic is not requested",
    ),
    _deployment(
        f"{FIRST}.nodeSelector.constraints",
        [{"matchAttribute": "pcieRoot"}],
        "does not match",
        "an attribute needs its domain",
    ),
    _deployment(
        f"{FIRST}.template.spec.containers.0.name", "main", "is not one of", "the container is called engine"
    ),
    _deployment(f"{FIRST}.template.spec.containers", [CONTAINER, CONTAINER], "is too long", "one container"),
    _deployment(
        f"{FIRST}.template.spec.containers.0.image", DELETE, "'image' is a required", "nothing to run"
    ),
    *(
        _deployment(f"{FIRST}.template.spec.containers.0.resources", value, expected, reason)
        for value, expected, reason in (
            ({"claims": [{"name": "devices"}]}, "no such field", "claims are made by the scheduler"),
            ({"limits": {"nvidia.com/gpu": 1}}, "no such field", "devices of no ledger"),
            ({"requests": {"memory": "much"}}, "does not match", "no quantity"),
        )
    ),
    *(
        _deployment(f"{FIRST}.template.spec.volumes", value, expected, reason)
        for value, expected, reason in (
            ([{"name": "a", "hostPath": {"path": "/"}}], "no such field", "the files of a shared node"),
            ([{"name": "dshm", "emptyDir": {}}], "of this name already", "a volume of ours"),
            ([{"name": "kserve-a", "emptyDir": {}}], "of this name already", "a volume of KServe's"),
            ([{"name": "a"}], "does not have enough properties", "no source"),
            ([{"name": "a", "emptyDir": {}, "configMap": {"name": "c"}}], "too many", "two sources"),
            ([{"name": "a", "emptyDir": {}}] * 2, "duplicate", "a name stands once"),
            ([{"name": f"a{n}", "emptyDir": {}} for n in range(9)], "is too long", "at most 8 volumes"),
            (
                [{"name": "a", "persistentVolumeClaim": {"claimName": "modelcache-team-b-weights"}}],
                "modelCacheRef",
                "perhaps another team's cache",
            ),
        )
    ),
    *(
        _deployment(f"{FIRST}.template.spec.containers.0.volumeMounts", value, expected, reason)
        for value, expected, reason in (
            ([{"name": "a", "mountPath": "/dev/shm"}], "mounted already", "shared memory is there"),  # noqa: S108
            ([{"name": "a", "mountPath": "/mnt/models/x"}], "mounted already", "where weights come"),
            ([{"name": "a", "mountPath": "etc"}], "does not match", "no absolute path"),
            ([{"name": "a", "mountPath": "/etc/a"}] * 2, "duplicate", "two volumes at one place"),
        )
    ),
    _deployment(
        f"{FIRST}.template.spec.containers.0.env",
        [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "a value or a valueFrom",
        "two values",
    ),
    _deployment(
        f"{FIRST}.template.spec.containers.0.env",
        [{"name": "A"}, {"name": "A"}],
        "duplicate",
        "one value each",
    ),
    _deployment("spec.template.spec.serving", {"mode": "Both"}, "is not one of", "an unknown mode"),
    _deployment(
        "spec.template.spec.serving",
        {"mode": "PrefillDecode"},
        "exactly two engines",
        "one engine does not do both",
    ),
    Case(
        "two engines that both prefill",
        "ModelDeployment",
        made(
            "ModelDeployment",
            ("spec.template.spec.serving.mode", "PrefillDecode"),
            (ENGINES, [PREFILL, DECODE | {"phase": "Prefill"}]),
        ),
        "one with phase Prefill and one with phase Decode",
    ),
    _deployment(
        "spec.template.spec.alternatives",
        [{"name": "other", "engines": [PREFILL, DECODE]}],
        "every alternative must suit the serving mode",
        "an alternative is the same kind of replica",
    ),
    _deployment(
        "spec.template.spec.alternatives",
        [{"name": "a", "engines": [ENGINE]}, {"name": "a", "engines": [ENGINE]}],
        "duplicate",
        "alternatives are told apart by name",
    ),
    _deployment(
        "spec.template.spec.tolerations", [{"value": "a"}], "operator Equal needs a key", "equal to what"
    ),
    _deployment(
        "spec.template.spec.tolerations",
        [{"key": "a", "operator": "Exists", "value": "b"}],
        "Exists must not have a value",
        "a value that is not compared",
    ),
    _deployment(
        "spec.template.spec.tolerations",
        [{"key": "a", "effect": "Never"}],
        "is not one of",
        "an unknown effect",
    ),
    _selector({"matchLabels": {"tier": 1}}, "not of type 'string'", "labels are texts"),
    _selector(
        {"matchExpressions": [{"key": "a", "operator": "In"}]}, "In and NotIn need values", "in nothing"
    ),
    _selector(
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
        "In and NotIn need",
        "values unused",
    ),
    _selector(
        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
        "is not one of",
        "no such operator",
    ),
    _selector({"cel": [""]}, "should be non-empty", "an empty expression"),
    _deployment("spec.placement", {"strategy": "Random"}, "is not one of", "an unknown strategy"),
    _deployment(
        "spec.placement", {"topologySpread": [SPREAD | {"maxSkew": 0}]}, "minimum", "no skew cannot be kept"
    ),
    _deployment(
        "spec.placement",
        {"topologySpread": [SPREAD | {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}]},
        "minDomains only goes with",
        "a minimum that does not bind",
    ),
    _deployment(
        "spec.placement",
        {"preferences": [{"weight": 5}]},
        "needs matchLabels, cel or maxCentsPerHour",
        "a wish for nothing",
    ),
    _deployment(
        "spec.placement",
        {"preferences": [{"weight": 5, "maxCentsPerHour": -1}]},
        "minimum",
        "a wish for a price below nothing",
    ),
    _deployment(
        "spec.placement", {"preferences": [{"weight": 0, "cel": "true"}]}, "minimum", "a wish without weight"
    ),
    _deployment("spec.placement", {"priorityClassName": "Gold"}, "does not match", "no name of a class"),
    _deployment("spec.placement", {"maxReplicasPerCluster": 0}, "minimum", "a cluster that may host none"),
    _deployment(
        "spec.placement",
        {"disruption": {"maxUnavailable": 0}},
        "must be at least 1 where maxSurge is 0",
        "nothing could ever be drained",
    ),
    _deployment(
        "spec.placement",
        {"disruption": {"maxUnavailable": 0, "maxSurge": 0}},
        "must be at least 1 where maxSurge is 0",
        "no surge said aloud",
    ),
    _deployment("spec.placement", {"disruption": {"maxSurge": -1}}, "minimum", "fewer than none"),
    _deployment(
        "spec.placement",
        {"rollout": {"maxUnavailable": 0}},
        "needs disruption.maxSurge",
        "nothing could be updated",
    ),
    _deployment("spec.placement", {"rollout": {"maxUnavailable": -1}}, "minimum", "fewer than none"),
    bad("ModelReplica", "spec.clusterName", DELETE, "'clusterName' is a required", "a replica has a place"),
    bad(
        "ModelReplica",
        "spec.engines.0.members.0.nodePoolName",
        DELETE,
        "'nodePoolName' is a",
        "a member has a pool",
    ),
    bad(
        "ModelReplica",
        "spec.engines.0.members.0.deviceRequests",
        [],
        "should be non-empty",
        "omitted, never empty",
    ),
    bad(
        "ModelReplica",
        "spec.engines.0.poolPolicy",
        "SinglePool",
        "no such field",
        "policy is the deployment's",
    ),
    Case(
        "a replica never changes cluster",
        "ModelReplica",
        made("ModelReplica", ("spec.clusterName", "b")),
        "a replica never changes cluster",
        old=made("ModelReplica"),
    ),
    *(
        Case(f"an edit of {path}", kind, made(kind, (path, value)), expected, old=made(kind))
        for kind, path, value, expected in (
            ("ModelAdapter", "spec.source", "acme/other", "base and source are immutable"),
            ("ModelAdapter", "spec.base", {"deploymentName": "code"}, "base and source are immutable"),
            ("ModelAdapter", "spec.rank", 32, "rank is immutable"),
            ("ModelAdapterPlacement", "spec.replica", "chat-0a1b2", "a placement never changes"),
        )
    ),
    bad("ModelAdapter", "spec.base", {}, "expected either", "a base is one deployment or some labels"),
    _deployment(f"{ENGINES}.0.adapters", {}, "'slots' is a required property", "room is a number of slots"),
    _deployment(
        f"{ENGINES}.0.adapters", {"slots": 4, "maxRank": 20}, "is not one of", "no rank of an engine"
    ),
    bad("ModelEndpoint", "spec.url", "ftp://192.0.2.1/", "does not match", "not a way to a model"),
    bad("ModelEndpoint", "spec.rewritePath", "ml/", "does not match", "a path starts at the root"),
    bad(
        "ModelCache",
        "spec.clusterSelector.matchLabels.tier",
        ["a"],
        "not of type 'string'",
        "labels are texts",
    ),
    bad("InferenceCluster", "spec.stack", "Knative", "is not one of", "a stack that there is not"),
    Case(
        "a cluster that takes another stack",
        "InferenceCluster",
        made("InferenceCluster", ("spec.stack", "KServe")),
        "never changes",
        made("InferenceCluster"),
    ),
    bad(
        "InferenceCluster", "spec.kserve", {"apiVersion": "v1"}, "is not one of", "a version there is not yet"
    ),
    Case(
        "pod labels that KServe does not pass on",
        "InferenceCluster",
        made(
            "InferenceCluster",
            ("spec.stack", "KServe"),
            ("spec.scheduling", {"labels": {"kai.scheduler/queue": "ml"}}),
        ),
        "kueue.x-k8s.io",
    ),
    Case(
        "pod annotations that KServe does not pass on",
        "InferenceCluster",
        made(
            "InferenceCluster",
            ("spec.stack", "KServe"),
            ("spec.scheduling", {"annotations": {"example.com/a": "b"}}),
        ),
        "kueue.x-k8s.io",
    ),
    bad(
        "ModelDeployment",
        "spec.template.spec.serving",
        {"model": {"uri": "moonshotai/Kimi-K2"}},
        "does not match",
        "a model without a scheme",
    ),
    bad(
        "ModelDeployment",
        "spec.template.spec.serving",
        {"parallelism": {"data": 4}},
        "set together",
        "data parallelism that does not say how much of it is in a pod",
    ),
    bad(
        "ModelReplica",
        "spec.serving",
        {"parallelism": {"data": 4, "dataLocal": 2, "pipeline": 2}},
        "exclude",
        "two ways to make a gang",
    ),
    bad("InferenceCluster", "spec.nodePools", [], "should be non-empty", "a cluster without pools"),
    bad("InferenceCluster", "spec.nodePools.0.accounting", "Gpu", "is not one of", "unknown accounting"),
    bad("InferenceCluster", "spec.nodePools.0.nodeCount", -1, "minimum", "fewer than no nodes"),
    bad(
        "InferenceCluster",
        "spec.taints",
        [{"key": "a", "effect": "PreferNoSchedule"}],
        "is not one of",
        "no such effect",
    ),
    bad(
        "InferenceCluster",
        "spec.attributes",
        {"a/b": {}},
        "should be non-empty",
        "an attribute without a value",
    ),
    bad(
        "InferenceCluster",
        "spec.attributes",
        {"a/b": {"string": "x", "int": 1}},
        "too many",
        "an attribute with two",
    ),
    bad(
        "InferenceCluster",
        "spec.attributes",
        {"a/b": {"list": {"float": [1]}}},
        "no such field",
        "no such type",
    ),
    Case(
        "an autoscaler that cannot settle",
        "InferenceCluster",
        made("InferenceCluster", ("spec.nodePools.0.minNodeCount", 3), ("spec.nodePools.0.maxNodeCount", 2)),
        "minNodeCount must not be above maxNodeCount",
    ),
    bad(
        "InferenceClass",
        "spec.devices.0.deviceClassName",
        DELETE,
        "needs a deviceClassName",
        "DRA claims a class",
    ),
    bad(
        "InferenceClass",
        "spec.devices.0.attributes",
        {"a": {"version": "9.0"}},
        "does not match",
        "three parts",
    ),
    bad(
        "InferenceClass",
        "spec.devices.0.capacity",
        {"memory": {"value": "80 GB"}},
        "does not match",
        "not a quantity",
    ),
    bad(
        "InferenceClass",
        "spec.devices.0.taints",
        [{"key": "burn-in", "effect": "None"}],
        "not one of",
        "a taint that only informs is none",
    ),
    bad("InferenceClass", "spec.devices.0.taints", [{"effect": "NoSchedule"}], "key", "a taint has a key"),
    bad("InferenceClass", "spec.devices", DELETE, "devices are stated, or taken", "a class of nothing"),
    *(
        bad(kind, path, {name: value}, f"{name} is a whole number of cents", f"a price: {value}, of {kind}")
        for kind, path in (
            ("InferenceClass", "spec.attributes"),
            ("InferenceCluster", "spec.nodePools.0.attributes"),
        )
        for name in ("modelplane.ai/centsPerNodeHour", "modelplane.ai/centsPerDeviceHour")
        for value in ({"string": "98.32"}, {"int": -1})
    ),
    bad(
        "InferenceClass",
        "spec.devices.0.driver",
        DELETE,
        "a device needs a driver",
        "only an override of a machine type's device may leave its driver out",
    ),
    bad("InferenceClass", "spec.devices", [DEVICE, DEVICE], "duplicate", "devices are told apart by name"),
    bad(
        "InferenceCluster",
        "spec.scheduling",
        {"labels": {"modelplane.ai/serving": "x"}},
        "prefix modelplane.ai/ is reserved",
        "it decides where requests go",
    ),
    bad("InferenceCluster", "spec.scheduling", {"gangs": "Gang"}, "is not one of", "nothing else binds them"),
    Case(
        "PodGroups on KServe",
        "InferenceCluster",
        made("InferenceCluster", ("spec.stack", "KServe"), ("spec.scheduling", {"gangs": "PodGroup"})),
        "gives them no PodGroup",
    ),
    Case(
        "PodGroups of a Kubernetes that has not these",
        "InferenceCluster",
        made("InferenceCluster", ("spec.celVersion", "1.36"), ("spec.scheduling", {"gangs": "PodGroup"})),
        "from 1.37 on",
    ),
    bad("ModelService", "spec.endpoints", [], "non-empty", "a service of nothing"),
    bad(
        "ModelService", "spec.endpoints.0.selector", DELETE, "'selector' is a required", "everything matches"
    ),
    bad("ModelService", "spec.endpoints.0.weight", 0, "a weight above 0", "nobody would answer"),
    bad("ModelService", "spec.endpoints.0.weight", 1_000_001, "maximum", "beyond what a route takes"),
    bad("ModelService", "spec.endpoints.0.priority", -1, "minimum", "priorities begin with 0"),
    bad("ModelEndpoint", "spec.rewritePath", "v1", "does not match", "a path begins with a slash"),
    bad("RoutingConfig", "addressFrom", "Service", "is not one of", "nothing else says an address"),
    bad("RoutingConfig", "requestTimeout", "soon", "does not match", "no duration of Gateway API"),
    bad("WorkloadConfig", "rollout", "Recreate", "is not one of", "no such rollout"),
    bad("WorkloadConfig", "ttl", {"pending": "soon"}, "a duration such as 15s", "no duration"),
    bad("WorkloadConfig", "images", {"picker": "registry/epp"}, "images.picker", "it would be latest"),
    bad("WorkloadConfig", "images", {"loader": "https://registry/lora:v1"}, "images.loader", "a URL"),
    bad("WorkloadConfig", "images", {"sidecar": "sidecar:v1"}, "images.sidecar", "of no registry"),
    bad("SchedulerConfig", "explain", "Everything", "is not one of", "no such explanation"),
    bad(
        "SchedulerConfig",
        "defaults",
        {"placement": {"strategy": "Pack"}},
        "is not one of",
        "no such strategy",
    ),
    bad(
        "SchedulerConfig",
        "defaults",
        {"placement": {"preferences": [{"weight": 1}]}},
        "needs matchLabels",
        "for nothing",
    ),
    bad(
        "SchedulerConfig",
        "defaults",
        {
            "placement": {
                "topologySpread": [SPREAD | {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}]
            }
        },
        "minDomains only goes with",
        "the same rule as in a deployment",
    ),
    bad(
        "SchedulerConfig",
        "quotas",
        [{"name": "team-a", "namespaces": ["team-a"]}],
        "expected atMost or guaranteed",
        "it limits nothing",
    ),
    bad("SchedulerConfig", "searchBudget", 0, "minimum", "nothing would ever be found"),
    bad(
        "SchedulerConfig",
        "ttl",
        {"pending": "soon"},
        "a number of seconds up to 86400, or a duration",
        "no duration",
    ),
    bad(
        "SchedulerConfig",
        "ttl",
        {"settled": 0},
        "a number of seconds up to 86400, or a duration",
        "an answer must hold",
    ),
]

GOOD = [
    Case(
        "none wanted",
        "ModelDeployment",
        made("ModelDeployment", ("spec.replicas", 0), ("spec.minReplicas", 2)),
    ),
    Case("a gang", "ModelDeployment", made("ModelDeployment", (f"{ENGINES}.0.members", [WORKER, LEADER]))),
    Case(
        "a worker that claims nothing",
        "ModelDeployment",
        made(
            "ModelDeployment",
            (f"{ENGINES}.0.members", [LEADER, {"role": "Worker", "template": MEMBER["template"]}]),
        ),
    ),
    Case(
        "prefill and decode",
        "ModelDeployment",
        made(
            "ModelDeployment",
            ("spec.template.spec.serving.mode", "PrefillDecode"),
            (ENGINES, [PREFILL, DECODE]),
        ),
    ),
    Case(
        "every taint tolerated",
        "ModelDeployment",
        made("ModelDeployment", ("spec.template.spec.tolerations", [{"operator": "Exists"}])),
    ),
    Case(
        "a pool with no nodes",
        "InferenceCluster",
        made("InferenceCluster", ("spec.nodePools.0.nodeCount", 0)),
    ),
    Case("published, and none", "InferenceCluster", made("InferenceCluster", ("status.gpuPools", []))),
    Case(
        "a synthetic device has no class",
        "InferenceClass",
        made(
            "InferenceClass",
            ("spec.devices", [{"name": "nic", "claim": "Synthetic", "driver": "nic.nvidia.com"}]),
        ),
    ),
    Case(
        "the platform's own fields", "ModelCache", made("ModelCache", ("spec.huggingFace", {"repo": "a/b"}))
    ),
    Case(
        "a pool of reserved capacity",
        "InferenceCluster",
        made("InferenceCluster", ("spec.nodePools.0.capacityBlock", {"reservation": {"id": "cr-1"}})),
    ),
    Case(
        "a published entry without devices",
        "InferenceCluster",
        made(
            "InferenceCluster",
            ("status.gpuPools", [{"name": "h100", "nodes": 1, "devices": [{**DEVICE, "count": 0}]}]),
        ),
    ),
    Case(
        "what the router made of it",
        "ModelEndpoint",
        made("ModelEndpoint", ("status.routing", {"backendName": "my-service"})),
    ),
    *(
        Case(f"how far it is: {summary!r}", "ModelCache", made("ModelCache", ("status.summary", summary)))
        for summary in ("1 of 2 ready", {"ready": 1, "total": 2})
    ),
    Case(
        "why a cluster has no weights yet",
        "ModelCache",
        made(
            "ModelCache", ("status.clusters", [{"name": "a", "phase": "Failed", "message": "no such model"}])
        ),
    ),
    Case("input without anything", "SchedulerConfig", made("SchedulerConfig")),
    Case(
        "durations", "SchedulerConfig", made("SchedulerConfig", ("ttl", {"pending": "500ms", "settled": 120}))
    ),
]

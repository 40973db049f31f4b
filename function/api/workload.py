"""ModelReplica as a workload: every field that its pods are made of.

The scheduler reads a replica leniently and charges for what it can read (`api.replica`). Whoever makes pods
of it must understand all of it: what cannot be read is a fault that names the field, and nothing is composed.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from posixpath import normpath
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from function.api.adapter import AdapterRoom
from function.api.deployment import CacheRef, DeviceSelector, MatchConstraint, Worker
from function.api.fault import Fault, Malformed, shown_type
from function.api.model import Count, Flag, MemoHolder, Model, Name, Role, mapping, refuse_twice
from function.api.names import RESERVED_PREFIXES
from function.api.taints import DeviceToleration
from function.boundary import Document, Plain, Shape

# Stacks: what runs the replicas of a cluster, and what deployments say for their sake.


HUGGING_FACE = "hf://"
"""The scheme of a model that an engine can load by its name."""


class ServedModel(Model):
    """The model, where no ModelCache brings it."""

    uri: Name


class Parallelism(Model):
    """How an engine is spread over devices and pods, where its arguments do not say it."""

    tensor: Count | None = None
    pipeline: Count | None = None
    data: Count | None = None
    data_local: Count | None = None
    expert: Flag | None = None

    @property
    def fault(self) -> str:
        """The contradiction within the member, or an empty text."""
        if (self.data is None) != (self.data_local is None):
            return "data and dataLocal are set together"
        return "pipeline and data exclude each other" if self.pipeline and self.data else ""

    @property
    def size(self) -> int | None:
        """Pods of one copy; None where it does not say."""
        if self.data is not None and self.data_local is not None:
            return max(self.data // self.data_local, 1)
        return self.pipeline


Phase = Literal["Prefill", "Decode"]

_ENGINE_SHAPES = (("Standalone",), ("Leader", "Worker"))
"""The roles an engine may consist of, sorted."""


class PodMetadata(Model):
    """Metadata of a member's pods."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def reserved(self) -> tuple[str, ...]:
        """The keys that a user cannot set."""
        return tuple(
            sorted(key for key in {**self.labels, **self.annotations} if key.startswith(RESERVED_PREFIXES))
        )

    @property
    def unreserved(self) -> "PodMetadata":
        """The metadata without them."""
        labels, annotations = (
            {key: pairs[key] for key in pairs if not key.startswith(RESERVED_PREFIXES)}
            for pairs in (self.labels, self.annotations)
        )
        return PodMetadata(labels=labels, annotations=annotations)


NAMED_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "hugepages-1Gi"})
"""Resources a container may ask for besides devices: those of a driver would be in no ledger."""
# A quantity is handed on as it is written, so its form is checked and nothing is computed.
_QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?", re.ASCII)


def _quantities(value: object) -> dict[str, str]:
    """Read quantities by the name of a resource; a whole number is one, too."""
    if not isinstance(value, dict):
        raise ValueError(f"expected quantities by name, found {shown_type(value)}")
    for name in sorted(value):
        if name not in NAMED_RESOURCES:
            raise ValueError(f"{name}: devices are asked for in nodeSelector.devices, where they are counted")
        if isinstance(value[name], float) and value[name].is_integer():
            value = {**value, name: str(int(value[name]))}
        if isinstance(value[name], bool) or not _QUANTITY.fullmatch(str(value[name])):
            raise ValueError(f"{name}: expected a quantity such as 500m or 64Gi")
    return {name: str(value[name]) for name in value}


Quantities = Annotated[dict[str, str], BeforeValidator(_quantities)]


class Resources(Model):
    """The resources that a container asks for besides its devices."""

    requests: Quantities = {}
    limits: Quantities = {}

    @property
    def stated(self) -> dict[str, dict[str, str]]:
        """The fields that have anything."""
        fields = (("requests", self.requests), ("limits", self.limits))
        return {field: dict(quantities) for field, quantities in fields if quantities}


RESERVED_VOLUMES = frozenset(
    {"adapters", "dshm", "home", "model-cache", "nixl-shm", "shared-memory", "tls-certs"}
)
"""Names of volumes that pods have already, of ours and of KServe's presets."""
RESERVED_PREFIX = "kserve-"
"""How KServe calls the volumes that it adds."""
RESERVED_PATHS = ("/dev/shm/", "/mnt/models/")  # noqa: S108 - mounts, not our files
VOLUME_SOURCES = ("emptyDir", "configMap", "secret", "persistentVolumeClaim")
"""hostPath is none of them: a node is shared by teams, and its files are nobody's to hand out."""
CACHE_CLAIMS = "modelcache-"
"""How claims of ModelCaches begin. All of them are in one namespace of a cluster, whosever they are."""


class Mount(Model):
    """Where a volume is mounted."""

    name: Name
    mount_path: Name
    sub_path: str = ""
    read_only: Flag = False

    @model_validator(mode="after")
    def _free(self) -> Self:
        """Refuse a path that is relative, or where pods have a mount already."""
        if not self.mount_path.startswith("/"):
            raise ValueError("mountPath: expected an absolute path")
        if f"{self.place}/".startswith(RESERVED_PATHS):
            raise ValueError(f"mountPath: {self.place} is mounted already")
        return self

    @property
    def place(self) -> str:
        """The path as a container's runtime takes it, however it is written."""
        return normpath(f"/{self.mount_path.lstrip('/')}")


def _volume(value: object) -> dict[str, Any]:
    """Check one volume: a name that is free, and one source that may be mounted."""
    volume = mapping(value)
    name, sources = volume.get("name"), sorted(key for key in volume if key != "name")
    if not isinstance(name, str) or not name:
        raise ValueError("every volume needs a name")
    if name in RESERVED_VOLUMES or name.startswith(RESERVED_PREFIX):
        raise ValueError(f"pods have a volume {name} already")
    if len(sources) != 1 or sources[0] not in VOLUME_SOURCES:
        held = ", ".join(sources) or "none"
        raise ValueError(f"volume {name}: expected one of {', '.join(VOLUME_SOURCES)}, found {held}")
    claim = mapping(volume.get("persistentVolumeClaim")).get("claimName")
    if isinstance(claim, str) and claim.startswith(CACHE_CLAIMS):
        raise ValueError(f"volume {name}: {claim} is the volume of a ModelCache: set modelCacheRef")
    return volume


class Container(Model):
    """The engine's container."""

    image: Name
    resources: Resources = Resources.model_construct()
    volume_mounts: tuple[Mount, ...] = ()
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[dict[str, Any], ...] = ()
    """Verbatim: a value may come from a Secret, which is nobody's business here."""

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        """Refuse a variable without a name, or twice: a server-side apply is refused for it."""
        names = [variable.get("name") for variable in self.env]
        if not all(isinstance(name, str) and name for name in names):
            raise ValueError("env: every variable needs a name")
        twice = sorted(str(name) for name, times in Counter(names).items() if times > 1)
        if twice:
            raise ValueError(f'env: the name "{twice[0]}" is used twice')
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The words that start the container's process."""
        return (*self.command, *self.args)

    def flag(self, *names: str) -> str:
        """Return the value of the first of `names` that is given; "" when none is."""
        return flag_value(self.words, names)


LEADER_ADDRESS, RANK = "MODELPLANE_LEADER_ADDRESS", "MODELPLANE_RANK"
"""Variables of every pod of a gang: who leads it, and which of its pods it is."""


def flag_value(words: Sequence[str], names: Iterable[str]) -> str:
    """Return the value of the first of `names` that is given, written `--name value` or `--name=value`.

    "" when none is given; given several times, the last counts, as argument parsers have it.
    """
    for name in names:
        for index in range(len(words) - 1, -1, -1):
            if words[index].startswith(f"{name}="):
                return words[index].removeprefix(f"{name}=")
            if words[index] == name and index + 1 < len(words):
                return words[index + 1]
    return ""


class LocalReference(Model):
    """The name of an object in the pods' namespace."""

    name: Name


class PodSpec(Model):
    """The pod template of a member."""

    containers: Annotated[tuple[Container, ...], Field(min_length=1, max_length=1)]
    volumes: tuple[Annotated[dict[str, Any], BeforeValidator(_volume)], ...] = ()
    """Verbatim."""
    image_pull_secrets: tuple[LocalReference, ...] = ()

    @model_validator(mode="after")
    def _mounted(self) -> Self:
        """Refuse a mount without a volume, and two mounts at one place, as the API server would."""
        names = [str(volume["name"]) for volume in self.volumes]
        refuse_twice("volumes", names)
        for container in self.containers:
            refuse_twice("containers[0].volumeMounts", [mount.place for mount in container.volume_mounts])
            lacking = [mount.name for mount in container.volume_mounts if mount.name not in names]
            if lacking:
                raise ValueError(f'containers[0].volumeMounts: no volume "{lacking[0]}"')
        return self


class PodTemplate(Model):
    """The pods of a member."""

    metadata: PodMetadata = PodMetadata.model_construct()
    spec: PodSpec

    @property
    def container(self) -> Container:
        """The engine's container, the only one."""
        return self.spec.containers[0]


class ClaimedRequest(Model):
    """A device request as the scheduler resolved it: what one pod claims."""

    name: Name
    device_class_name: Name
    count: Count = 1
    selectors: tuple[DeviceSelector, ...] = ()
    tolerations: tuple[DeviceToleration, ...] = ()


class WorkloadMember(Model):
    """One role of an engine, pinned to its pool."""

    role: Role = "Standalone"
    node_pool_name: Name
    worker: Worker | None = None
    device_requests: tuple[ClaimedRequest, ...] = ()
    device_constraints: tuple[MatchConstraint, ...] = ()
    template: PodTemplate

    @property
    def unreserved(self) -> Self:
        """The member without labels and annotations that a user cannot set."""
        if not self.template.metadata.reserved:
            return self
        template = self.template.model_copy(update={"metadata": self.template.metadata.unreserved})
        return self.model_copy(update={"template": template})


class WorkloadEngine(Model):
    """One engine: copies of one pod, or of a gang of a leader and its workers."""

    name: Name
    copies: Count = 1
    phase: Phase | None = None
    adapters: AdapterRoom | None = None
    members: tuple[WorkloadMember, ...]

    @model_validator(mode="after")
    def _shape(self) -> Self:
        """Refuse what no workload can run: a Leader without Workers, or Workers alone."""
        if tuple(sorted(member.role for member in self.members)) not in _ENGINE_SHAPES:
            raise ValueError("members: expected one Standalone, or a Leader and a Worker")
        return self

    @property
    def is_gang(self) -> bool:
        """Tell whether each copy is a leader with workers."""
        return len(self.members) > 1

    @cached_property
    def serving(self) -> WorkloadMember:
        """The member that requests reach: the Standalone or the Leader."""
        return next(member for member in self.members if member.role != "Worker")

    @cached_property
    def follower(self) -> WorkloadMember | None:
        """The Worker of a gang."""
        return next((member for member in self.members if member.role == "Worker"), None)

    @property
    def pods(self) -> int:
        """Pods of one copy."""
        follower = self.follower
        return 1 if follower is None else 1 + ((follower.worker and follower.worker.nodes) or 1)


class ServingSpec(Model):
    """How the engines share the work."""

    mode: Literal["Unified", "PrefillDecode"] = "Unified"
    model: ServedModel | None = None
    parallelism: Parallelism | None = None


class WorkloadSpec(Model):
    """The engines of a replica and the cluster that they run on."""

    cluster_name: Name
    model_cache_ref: CacheRef | None = None
    serving: ServingSpec = ServingSpec.model_construct()
    engines: Annotated[tuple[WorkloadEngine, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _unique(self) -> Self:
        """Refuse a name twice: names and keys of workloads are made of it."""
        refuse_twice("engines", [engine.name for engine in self.engines])
        return self


class Workload(MemoHolder):
    """A ModelReplica, read for its pods: its name is R in every name below it."""

    spec: WorkloadSpec

    @property
    def cache(self) -> str:
        """The name of the ModelCache it mounts; empty without one."""
        return self.spec.model_cache_ref.name if self.spec.model_cache_ref else ""

    @property
    def is_disaggregated(self) -> bool:
        """Tell whether prefill and decode run in engines of their own."""
        return self.spec.serving.mode == "PrefillDecode"


def read_workload(document: Document) -> Workload:
    """Read one ModelReplica. Raises Malformed, and Unreadable for what cannot be decoded.

    Values of a pod's template are never quoted: one of them may be a secret.
    """
    try:
        return Workload.parse(document.plain())
    except Malformed as error:
        raise Malformed(
            Fault(fault.path, fault.message, "" if ".template." in fault.path else fault.value)
            for fault in error.faults
        ) from None


ROLES: tuple[str, ...] = get_args(Role)
"""Every role a member can have."""


# Digest what the pods of a replica run: equal digests serve the same.

SERVING: Shape = {
    "metadata": {"generation": None},
    "spec": None,
    "status": {
        "engines": {"available": None, "updated": None},
        "servingDigest": None,
        "conditions": {"type": None, "status": None, "observedGeneration": None},
    },
}
"""The fields that tell whether the pods of a ModelReplica run what its spec says."""
DIGEST_LENGTH = 16
"""Hex digits."""


def digest_of(value: Plain | Mapping[str, Any]) -> str:
    """Return the digest of plain data, a template or a status say, whatever the order of its maps."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def serving_digest(spec: Mapping[str, Any]) -> str:
    """Return the digest of a ModelReplica's spec, as far as it decides what its pods run.

    How many copies there are is no part of it: a copy more does not restart the others.
    """
    engines = spec.get("engines")
    run = {
        "modelCacheRef": spec.get("modelCacheRef"),
        "serving": spec.get("serving"),
        "engines": [
            {key: engine[key] for key in engine if key != "copies"} if isinstance(engine, dict) else engine
            for engine in (engines if isinstance(engines, list) else ())
        ],
    }
    return digest_of(run)

"""ModelReplica as a workload: every field that its pods are made of.

The scheduler reads a replica leniently and charges for what it can read (`api.replica`). Whoever makes pods
of it must understand all of it: what cannot be read is a fault that names the field, and nothing is composed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from function.api.adapter import AdapterRoom
from function.api.deployment import CacheRef, DeviceSelector, MatchConstraint, Worker
from function.api.fault import Fault, Malformed
from function.api.model import Count, Flag, MemoHolder, Model, Name, Role, refuse_twice
from function.api.names import RESERVED_PREFIXES
from function.api.taints import DeviceToleration
from function.boundary import Document, Shape

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
        return tuple(sorted(key for key in {**self.labels, **self.annotations} if _is_reserved(key)))

    @property
    def unreserved(self) -> PodMetadata:
        """The metadata without them."""
        labels, annotations = (
            {key: pairs[key] for key in pairs if not _is_reserved(key)}
            for pairs in (self.labels, self.annotations)
        )
        return PodMetadata(labels=labels, annotations=annotations)


def _is_reserved(key: str) -> bool:
    return key.startswith(RESERVED_PREFIXES)


class Container(Model):
    """The engine's container."""

    image: Name
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[dict[str, Any], ...] = ()
    """Verbatim: a value may come from a Secret, which is nobody's business here."""

    @model_validator(mode="after")
    def _named_once(self) -> Container:
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
    image_pull_secrets: tuple[LocalReference, ...] = ()


class PodTemplate(Model):
    """The pods of a member."""

    metadata: PodMetadata = PodMetadata()
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
    def claims(self) -> bool:
        """Tell whether its pods claim devices."""
        return bool(self.device_requests)

    @property
    def unreserved(self) -> WorkloadMember:
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
    def _shape(self) -> WorkloadEngine:
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
    serving: ServingSpec = ServingSpec()
    engines: Annotated[tuple[WorkloadEngine, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _unique(self) -> WorkloadSpec:
        refuse_twice("engines", [engine.name for engine in self.engines])
        return self


class Workload(MemoHolder):
    """A ModelReplica, read for its pods: its name is R in every name below it."""

    spec: WorkloadSpec

    @property
    def engines(self) -> tuple[WorkloadEngine, ...]:
        """The engines, in their order."""
        return self.spec.engines

    @property
    def cache(self) -> str:
        """The name of the ModelCache it mounts; empty without one."""
        return self.spec.model_cache_ref.name if self.spec.model_cache_ref else ""

    @property
    def is_disaggregated(self) -> bool:
        """Tell whether prefill and decode run in engines of their own."""
        return self.spec.serving.mode == "PrefillDecode"

    @cached_property
    def by_name(self) -> dict[str, WorkloadEngine]:
        """The engines by name."""
        return {engine.name: engine for engine in self.engines}


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
"""What it takes to tell whether the pods of a ModelReplica run what its spec says."""
DIGEST_LENGTH = 16
"""Hex digits."""


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
    text = json.dumps(run, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]

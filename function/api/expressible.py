"""Tell whether the stack of a cluster can express a replica, and what stands in the way.

`Standard`, the stack of this project, runs pods as they are written. `KServe` runs one LLMInferenceService
for each replica, whose controller puts presets under what is written and the model beside it. So there

K1. a Unified replica is one engine, PrefillDecode one of each phase;
K2. the model has an address: a ModelCache, or `serving.model.uri` of a scheme that KServe mounts, and no
    ModelCache's volume;
K3. a container says what it runs, in two words at least: to one without args the preset adds its own, and
    what an image would run by itself is replaced by the preset's command;
K4. the size of a gang follows from its parallelism: `pipeline`, or `data` over `dataLocal`, and never both;
K5. a decode engine listens where the preset's sidecar looks for it;
K7. an engine has no room for adapters: nothing on its pods loads them;
K6. pods get no labels and annotations but those that are passed on from the service, which all of them share;
    in v1alpha2 those of an engine are its own, and any but those that KServe finds its pods by.

`Standard` mounts nothing but a ModelCache: without one it can take a model only from where an engine loads it
by name, `hf://` (S1).

One rule for the scheduler, which refuses such a cluster to new replicas, and for the handler of replicas,
which composes nothing of what it cannot say. A replica that runs there stays: the rule gates what is new.
docs/kserve.md has the rules for users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from function.api.model import KSERVE, KSERVE_V1ALPHA2
from function.api.workload import (
    HUGGING_FACE,
    Container,
    Parallelism,
    PodTemplate,
    ServingSpec,
    Workload,
    WorkloadEngine,
)
from function.boundary import frozen

SCHEMES = (HUGGING_FACE, "s3://", "oci://", "pvc://")
"""Where KServe mounts a model from."""
CACHE_VOLUMES = "pvc://modelcache-"
"""How the volumes of ModelCaches are called. All of them are in one namespace of a cluster."""
PORT = 8000
"""Where a pod takes requests."""
DECODE_PORT = 8001
"""Where a decode engine listens unless it is started with another port, and where its sidecar expects it."""

PASSED_LABELS = ("kueue.x-k8s.io",)
PASSED_ANNOTATIONS = ("kueue.x-k8s.io", "k8s.v1.cni.cncf.io")
"""Prefixes of what KServe passes on from the service to its pods."""
RESERVED = (
    *("app.kubernetes.io/name", "app.kubernetes.io/component", "app.kubernetes.io/part-of"),
    *("kserve.io/", "serving.kserve.io/", "llm-d.ai/", "leaderworkerset.sigs.k8s.io/"),
)
"""Prefixes of what KServe and LeaderWorkerSet find pods by. What an engine says in v1alpha2 would win."""

VLLM = ("python3", "-m", "vllm.entrypoints.openai.api_server")
ENTRY_POINTS: Mapping[str, tuple[str, ...]] = {"vllm-openai": VLLM}
"""The command that an image runs by itself, by the last part of their name, in any registry."""
_ENOUGH_WORDS = 2


@frozen
class StackEngine:
    """One engine as a stack sees it."""

    name: str
    phase: str | None
    pods: int
    """Pods of one copy."""
    serving: PodTemplate
    follower: PodTemplate | None
    has_room: bool = False
    """Whether it has room for adapters."""

    @property
    def templates(self) -> tuple[PodTemplate, ...]:
        """Those of all its members."""
        return (self.serving,) if self.follower is None else (self.serving, self.follower)


@frozen
class ReplicaPods:
    """One replica as a stack sees it."""

    serving: ServingSpec
    cache: str
    engines: tuple[StackEngine, ...]


def pods_of(workload: Workload) -> ReplicaPods:
    """Return what a cluster's stack has to run of a ModelReplica."""
    return ReplicaPods(workload.spec.serving, workload.cache, tuple(map(stack_engine, workload.spec.engines)))


def stack_engine(engine: WorkloadEngine) -> StackEngine:
    """Return an engine of a ModelReplica as a stack sees it."""
    follower = engine.follower.template if engine.follower else None
    return StackEngine(
        engine.name, engine.phase, engine.pods, engine.serving.template, follower, engine.adapters is not None
    )


def obstacle(stack: str, replica: ReplicaPods) -> str:
    """Return why a stack cannot express a replica: the first thing in its way; empty for nothing.

    `stack` is the dialect of a cluster.
    """
    on_kserve = stack in (KSERVE, KSERVE_V1ALPHA2)
    text = next(_kserve(stack, replica) if on_kserve else _standard(replica), "")
    return f"{stack}: {text}" if text else ""


def command_of(container: Container) -> tuple[str, ...]:
    """Return what a container starts, without its args; empty where only its image knows."""
    if container.command:
        return container.command
    image = container.image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return ENTRY_POINTS.get(image, ())


def unfolded(container: Container) -> Container:
    """Return a container with each word by itself: arguments may stand in the script of a shell."""
    words = tuple(part for word in container.words for part in word.split())
    return container.model_copy(update={"command": (), "args": words})


def parallelism_of(engine: StackEngine, stated: Parallelism | None) -> Parallelism:
    """Return the parallelism of an engine: what its arguments say, else what the deployment does.

    What is no number there says nothing. Of an engine of one pod only what leaves it at that is told: KServe
    would take stages inside of a pod for pods.
    """
    container = unfolded(engine.serving.container)
    counted = {field: _number(container.flag(*flags)) for field, flags in _FLAGS.items()}
    base = stated or Parallelism()
    if any(counted[field] for field in ("pipeline", "data", "data_local")):
        base = Parallelism(tensor=base.tensor, expert=base.expert)
    expert = True if EXPERT_FLAG in container.words else base.expert
    parallelism = base.model_copy(update={**{k: v for k, v in counted.items() if v}, "expert": expert})
    if engine.follower is None and (parallelism.fault or parallelism.size not in (None, 1)):
        return Parallelism(tensor=parallelism.tensor, expert=parallelism.expert)
    return parallelism


_FLAGS: Mapping[str, tuple[str, ...]] = {
    "tensor": ("--tensor-parallel-size", "-tp", "--tp-size"),
    "pipeline": ("--pipeline-parallel-size", "-pp", "--pp-size"),
    "data": ("--data-parallel-size", "-dp", "--dp-size"),
    "data_local": ("--data-parallel-size-local", "-dpl"),
}
EXPERT_FLAG = "--enable-expert-parallel"


def _number(text: str) -> int | None:
    """Return a parallelism as written, None for what is no number or is absurdly large."""
    is_number = text.isascii() and text.isdigit() and len(text) < len("1000000")
    return int(text) or None if is_number else None


def _standard(replica: ReplicaPods) -> Iterator[str]:
    """Yield what stands in the way on our own stack: S1."""
    model = replica.serving.model
    if model is not None and not replica.cache and not model.uri.startswith(HUGGING_FACE):  # S1
        yield f"mounts no {_scheme(model.uri)} model: refer to a ModelCache"


def _kserve(stack: str, replica: ReplicaPods) -> Iterator[str]:
    """Yield what stands in the way on KServe, in the order of the rules: K1, then each engine, then K6."""
    phases = sorted(engine.phase or "" for engine in replica.engines)
    is_disaggregated = replica.serving.mode == "PrefillDecode"
    if not is_disaggregated and len(phases) != 1:  # K1
        yield f"a Unified replica is one engine, this one has {len(phases)}"
    if not is_disaggregated and any(phases):
        yield f"a Unified replica has no engine of phase {max(phases)}: set serving.mode to PrefillDecode"
    if is_disaggregated and phases != ["Decode", "Prefill"]:
        yield "PrefillDecode is one Prefill and one Decode engine"
    yield from _model(replica)
    for engine in replica.engines:
        for text in _engine(engine, replica.serving.parallelism):
            yield f"engine {engine.name}: {text}"
    engines = [engine.templates for engine in replica.engines]
    if stack == KSERVE:
        every = [template for templates in engines for template in templates]
        text = "passes on no {} like {} to pods"
        yield from _metadata(every, "a replica", text, lambda key, passed: not key.startswith(passed))
    for templates in engines if stack == KSERVE_V1ALPHA2 else ():
        text = "keeps {} like {} for itself"
        yield from _metadata(templates, "an engine", text, lambda key, _passed: key.startswith(RESERVED))


def _model(replica: ReplicaPods) -> Iterator[str]:
    """K2."""
    model = replica.serving.model
    if replica.cache:
        return
    if model is not None and model.uri.startswith(CACHE_VOLUMES):
        yield f"{CACHE_VOLUMES}... is the volume of a ModelCache, perhaps another team's: set modelCacheRef"
    if model is None:
        yield "no model to mount: set serving.model.uri or modelCacheRef"
    elif not any(model.uri.startswith(scheme) and model.uri != scheme for scheme in SCHEMES):
        yield f"mounts no {_scheme(model.uri)} model: serving.model.uri is one of {', '.join(SCHEMES)}"


def _engine(engine: StackEngine, stated: Parallelism | None) -> Iterator[str]:
    """Yield what stands in the way of one engine: K7, K3, K4, K5."""
    if engine.has_room:  # K7
        yield "its pods get no loader of adapters: leave adapters out"
    for template in engine.templates:  # K3
        command = command_of(template.container)
        if not command:
            yield "a command is needed: what its image runs is not known"
        elif len(command) + len(template.container.args) < _ENOUGH_WORDS:
            yield "a command of one word would be given the arguments of KServe's preset"
    parallelism = parallelism_of(engine, stated)
    if parallelism.fault:  # K4
        yield f"parallelism: {parallelism.fault}"
    elif engine.follower is not None and parallelism.size != engine.pods:
        size = "unknown" if parallelism.size is None else parallelism.size
        yield f"{engine.pods} pods, and a parallelism whose size is {size}: pipeline, or data / dataLocal"
    if engine.phase == "Decode":  # K5
        port = unfolded(engine.serving.container).flag("--port")
        if port not in ("", str(DECODE_PORT)):
            yield f"a Decode engine listens on {DECODE_PORT}, this one on {port}"


def _metadata(
    templates: Sequence[PodTemplate],
    owner: str,
    refusal: str,
    is_refused: Callable[[str, tuple[str, ...]], bool],
) -> Iterator[str]:
    """K6: what is the same for all pods of one owner, and without the keys that are refused there."""
    for what, passed in (("labels", PASSED_LABELS), ("annotations", PASSED_ANNOTATIONS)):
        held: list[dict[str, str]] = [getattr(template.metadata, what) for template in templates]
        refused = sorted({key for pairs in held for key in pairs if is_refused(key, passed)})
        if refused:
            yield refusal.format(what, refused[0])
        elif any(pairs != held[0] for pairs in held):
            yield f"gives all pods of {owner} the same {what}"


def _scheme(uri: str) -> str:
    """Return the scheme for a message, or the whole text in quotes where it has none."""
    scheme, separator, _ = uri.partition("://")
    return f"{scheme}://" if separator else f'"{uri}"'

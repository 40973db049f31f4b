"""What a stack can express: every rule of `function.api.expressible`, one obstacle each."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from function.api.expressible import StackEngine, command_of, obstacle, parallelism_of, pods_of
from function.api.model import KSERVE, STANDARD
from function.api.workload import Container, Parallelism, PodTemplate, Workload

Plain = dict[str, Any]
VLLM = "vllm/vllm-openai:v0.11.2"
HUGGING_FACE = {"model": {"uri": "hf://org/model"}}
BY_CACHE: Plain = {"modelCacheRef": {"name": "weights"}}


def pods(*words: str, command: tuple[str, ...] = (), image: str = VLLM, **metadata: Plain) -> Plain:
    """Return a member's template."""
    container = {"name": "engine", "image": image, "command": list(command), "args": list(words)}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def single(template: Plain | None = None, name: str = "main", **more: Any) -> Plain:
    """Return an engine of one pod."""
    member = {"role": "Standalone", "nodePoolName": "p", "template": template or pods("--seed=1")}
    return {"name": name, "members": [member], **more}


def gang(
    *words: str, workers: int = 1, name: str = "main", worker: Plain | None = None, **more: Any
) -> Plain:
    """Return an engine of a leader and workers."""
    leader = {"role": "Leader", "nodePoolName": "p", "template": pods(*words)}
    follower = {"role": "Worker", "nodePoolName": "p", "worker": {"nodes": workers}}
    follower["template"] = worker or pods("--headless")
    return {"name": name, "members": [leader, follower], **more}


def replica(*engines: Plain, serving: Plain | None = None, **more: Any) -> Workload:
    """Return a replica; unless it says otherwise, its model is at Hugging Face."""
    spec = {"clusterName": "c", "engines": list(engines), "serving": serving or HUGGING_FACE, **more}
    return Workload.parse({"metadata": {"name": "r", "namespace": "ml"}, "spec": deepcopy(spec)})


@dataclass(frozen=True)
class Case:
    """A replica, and a part of what is in its way; empty for nothing."""

    reason: str
    replica: Workload
    expected: str = ""
    stack: str = KSERVE


PREFILL, DECODE = single(name="p", phase="Prefill"), single(name="d", phase="Decode")
DISAGGREGATED = HUGGING_FACE | {"mode": "PrefillDecode"}
QUEUE = {"kueue.x-k8s.io/queue-name": "ml"}
CASES = [
    Case("one pod of a known image", replica(single())),
    Case("K1: two engines", replica(single(), single(name="draft")), "is one engine, this one has 2"),
    Case("K1: one that prefills for nobody", replica(single(phase="Prefill")), "no engine of phase Prefill"),
    Case("K1: one that decodes for nobody", replica(single(phase="Decode")), "no engine of phase Decode"),
    Case("K1: one of each phase", replica(PREFILL, DECODE, serving=DISAGGREGATED)),
    Case(
        "K1: twice the same phase",
        replica(PREFILL, PREFILL | {"name": "q"}, serving=DISAGGREGATED),
        "one Prefill",
    ),
    Case("K2: no model", replica(single(), serving={"mode": "Unified"}), "no model to mount"),
    Case("K2: a cache brings it", replica(single(), serving={"mode": "Unified"}, **BY_CACHE)),
    Case("K2: a volume", replica(single(), serving={"model": {"uri": "pvc://weights/llama"}})),
    Case(
        "K2: the volume of a ModelCache",
        replica(single(), serving={"model": {"uri": "pvc://modelcache-team-a-weights-0a1b2/x"}}),
        "set modelCacheRef",
    ),
    Case(
        "K2: an unknown scheme",
        replica(single(), serving={"model": {"uri": "ftp://x/y"}}),
        "mounts no ftp://",
    ),
    Case("K2: a path", replica(single(), serving={"model": {"uri": "/models"}}), 'mounts no "/models"'),
    Case(
        "K2: a scheme and nothing behind it",
        replica(single(), serving={"model": {"uri": "hf://"}}),
        "mounts no hf://",
    ),
    Case(
        "K3: an unknown image and no command",
        replica(single(pods("--x", image="sglang"))),
        "a command is needed",
    ),
    Case("K3: an unknown image with one", replica(single(pods("--x", image="sglang", command=("run",))))),
    Case("K3: a known image without args", replica(single(pods()))),
    Case(
        "K3: a known image of another registry",
        replica(single(pods(image="mirror.example:5000/a/vllm-openai@sha256:0"))),
    ),
    Case("K3: all words in the command", replica(single(pods(command=("sh", "-c", "exec serve"))))),
    Case("K3: one word alone", replica(single(pods(command=("/start",)))), "one word"),
    Case(
        "K3: a worker needs a command too",
        replica(gang("-pp", "2", worker=pods(image="x"))),
        "a command is needed",
    ),
    Case(
        "K4: a gang that does not say its size",
        replica(gang()),
        "2 pods, and a parallelism whose size is unknown",
    ),
    Case("K4: by its arguments", replica(gang("--pipeline-parallel-size", "4", workers=3))),
    Case("K4: data over dataLocal", replica(gang("--data-parallel-size=16", "--data-parallel-size-local=8"))),
    Case(
        "K4: another size",
        replica(gang("--pipeline-parallel-size=3")),
        "2 pods, and a parallelism whose size is 3",
    ),
    Case("K4: by the deployment", replica(gang(), serving=HUGGING_FACE | {"parallelism": {"pipeline": 2}})),
    Case("K4: half of data", replica(gang("--data-parallel-size=16")), "data and dataLocal are set together"),
    Case(
        "K4: both ways",
        replica(gang("-pp=2", "-dp=2", "-dpl=1")),
        "pipeline and data exclude each other",
    ),
    Case("K4: stages inside of one pod", replica(single(pods("--pipeline-parallel-size=2")))),
    Case("K4: copies inside of one pod", replica(single(pods("--data-parallel-size=8")))),
    Case(
        "K5: a decode engine elsewhere",
        replica(PREFILL, single(pods("--port=9000"), "d", phase="Decode"), serving=DISAGGREGATED),
        "a Decode engine listens on 8001, this one on 9000",
    ),
    Case(
        "K5: a decode engine elsewhere, by the script of a shell",
        replica(
            PREFILL,
            single(pods("exec vllm serve x --port 9000", command=("sh", "-c")), "d", phase="Decode"),
            serving=DISAGGREGATED,
        ),
        "a Decode engine listens on 8001, this one on 9000",
    ),
    Case(
        "K5: where it is looked for",
        replica(PREFILL, single(pods("--port", "8001"), "d", phase="Decode"), serving=DISAGGREGATED),
    ),
    Case("K6: a label", replica(single(pods("-x", labels={"team": "a"}))), "passes on no labels like team"),
    Case(
        "K6: an annotation",
        replica(single(pods("-x", annotations={"a": "b"}))),
        "passes on no annotations like a",
    ),
    Case("K6: what is passed on", replica(single(pods("-x", labels=QUEUE)))),
    Case(
        "K6: not of one pod only", replica(gang("-pp=2", worker=pods("-x", labels=QUEUE))), "the same labels"
    ),
    Case(
        "all of it is nothing to our own stack",
        replica(single(pods(image="x")), single(name="b")),
        stack=STANDARD,
    ),
    Case(
        "S1: our own stack mounts nothing",
        replica(single(), serving={"model": {"uri": "s3://bucket/model"}}),
        "Standard: mounts no s3:// model",
        STANDARD,
    ),
    Case(
        "S1: but a cache",
        replica(single(), serving={"model": {"uri": "s3://bucket/x"}}, **BY_CACHE),
        stack=STANDARD,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_the_first_thing_in_the_way(case: Case) -> None:
    text = obstacle(case.stack, pods_of(case.replica))
    assert bool(text) is bool(case.expected), text
    assert case.expected in text
    assert not text or text.startswith(f"{case.stack}: ")


@dataclass(frozen=True)
class Spread:
    """Arguments of an engine, what the deployment says, and the parallelism that follows."""

    reason: str
    words: tuple[str, ...]
    stated: Plain | None
    expected: Plain


SPREADS = [
    Spread("nothing is said", (), None, {}),
    Spread("the deployment says it", (), {"tensor": 8, "pipeline": 2}, {"tensor": 8, "pipeline": 2}),
    Spread("the arguments say it", ("-tp", "4", "-pp=2"), None, {"tensor": 4, "pipeline": 2}),
    Spread("the arguments win", ("--tensor-parallel-size=4",), {"tensor": 8}, {"tensor": 4}),
    Spread("another kind of gang is no mixture", ("-pp=2",), {"data": 4, "dataLocal": 2}, {"pipeline": 2}),
    Spread(
        "tensor and expert are of any kind",
        ("-pp=2",),
        {"tensor": 8, "expert": True},
        {"tensor": 8, "pipeline": 2, "expert": True},
    ),
    Spread("experts", ("--enable-expert-parallel",), None, {"expert": True}),
    Spread(
        "a script says it",
        ("-c", "exec vllm serve /mnt/models --tensor-parallel-size=8 --pipeline-parallel-size 2"),
        None,
        {"tensor": 8, "pipeline": 2},
    ),
    Spread(
        "a script that computes it says nothing",
        ("-c", "serve -pp=$((1 + N))"),
        {"pipeline": 4},
        {"pipeline": 4},
    ),
    Spread("what is no number is not said", ("-tp", "many", "-pp=0", "-dp=1e3"), None, {}),
    Spread("more than there can be", ("-tp", "9" * 40), None, {}),
]


@pytest.mark.parametrize("case", SPREADS, ids=lambda case: case.reason)
def test_parallelism_follows_from_arguments(case: Spread) -> None:
    template = PodTemplate.parse(pods(*case.words))
    engine = StackEngine("main", None, 2, template, template)
    stated = None if case.stated is None else Parallelism.parse(case.stated)
    emitted = parallelism_of(engine, stated).model_dump(by_alias=True, exclude_none=True)
    assert emitted == case.expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-pp=2", "-tp=4"), {"tensor": 4}),
        (("--data-parallel-size=8",), {}),
        (("-dp=8", "-dpl=8", "-tp=1"), {"tensor": 1, "data": 8, "dataLocal": 8}),
        (("-dp=8", "-dpl=4"), {}),
    ],
)
def test_what_is_inside_of_one_pod_makes_no_gang(words: tuple[str, ...], expected: Plain) -> None:
    """The size of a service never changes, and what is inside of a pod may."""
    engine = StackEngine("main", None, 1, PodTemplate.parse(pods(*words)), None)
    assert parallelism_of(engine, None).model_dump(by_alias=True, exclude_none=True) == expected


@pytest.mark.parametrize(
    ("image", "is_engine"),
    [
        ("vllm-openai", True),
        ("docker.io/vllm/vllm-openai:v0.11.2", True),
        ("localhost:5000/vllm-openai", True),
        ("vllm-openai-rocm:v1", False),
        ("vllm-openai/other", False),
    ],
)
def test_an_image_is_known_by_the_last_part_of_its_name(image: str, *, is_engine: bool) -> None:
    assert bool(command_of(Container(image=image, args=("--x",)))) is is_engine

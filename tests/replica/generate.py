"""Random replicas as our XRD allows them, random clusters and random inputs. The same for the same seed."""

from __future__ import annotations

import random
import string
from typing import Any

from function.replica.snapshot import required_namesakes
from tests.replica import build
from tests.replica.build import Scene

Plain = dict[str, Any]

POOLS = ("frontier", "h200", "a100-80gb")


def scene(seed: int) -> Scene:
    """Return a replica with its cluster and input, nothing observed."""
    draw = random.Random(seed)
    return unshared(Scene(replica(draw), cluster(draw), input=config(draw)))


def unshared(scene: Scene) -> Scene:
    """Return a scene in which no ModelCache is called like that of the replica; none is there at all."""
    asked = required_namesakes(scene.asked.request())
    return scene.but(more={one.name: () for one in asked if one.kind == "ModelCache"})


def kserve_scene(seed: int) -> Scene:
    """Return a replica that KServe can express, on a cluster that has it, with an input; nothing observed."""
    draw = random.Random(seed)
    on_kserve = cluster(draw)
    on_kserve["spec"] |= {"stack": "KServe"}
    if "scheduling" in on_kserve["spec"]:
        on_kserve["spec"]["scheduling"]["labels"] = {"kueue.x-k8s.io/queue-name": "ml"}
        del on_kserve["spec"]["scheduling"]["annotations"]
    return unshared(Scene(kserve_replica(draw), on_kserve, input=config(draw)))


def kserve_replica(draw: random.Random) -> Plain:
    """Return a ModelReplica of all that KServe has words for."""
    apart = draw.random() < 0.4
    names = list(dict.fromkeys(label(draw) for _ in range(2 if apart else 1)))
    if apart and len(names) < 2:
        names = ["prefill", "decode"]
    phases: tuple[str | None, ...] = ("Prefill", "Decode") if apart else (None,)
    queue = {"labels": {"kueue.x-k8s.io/queue-name": "ml"}} if draw.random() < 0.3 else None
    made = build.replica(
        *(kserve_engine(draw, item, phase, queue) for item, phase in zip(names, phases, strict=True)),
        name=f"{label(draw, 20)}.{label(draw, 20)}" if draw.random() < 0.1 else label(draw),
        namespace=draw.choice(("ml-team", "default", "a" * 63)),
        mode="PrefillDecode" if apart else draw.choice((None, "Unified")),
        cache=draw.choice((None, "weights", "w" * 63)),
    )
    serving = made["spec"].setdefault("serving", {})
    if "modelCacheRef" not in made["spec"] or draw.random() < 0.3:
        serving["model"] = {
            "uri": draw.choice(("hf://org/m", "hf://o/m:r", "s3://b/m", "oci://r/m:1", "pvc://c/m"))
        }
    if draw.random() < 0.5:
        serving["parallelism"] = draw.choice(
            ({"tensor": 8}, {"tensor": 2, "expert": True}, {"expert": False})
        )
    return made


def kserve_engine(draw: random.Random, name: str, phase: str | None, metadata: Plain | None) -> Plain:
    """Return an engine whose arguments say how it is spread."""

    def one(role: str, *args: str, nodes: int | None = None) -> Plain:
        words: Plain = draw.choice(
            (
                {"args": args or ("--headless",)},
                {"command": ("vllm", "serve"), "args": args},
                {"command": ("/bin/sh", "-c", 'exec vllm --template "{{ x }}{{{y}}}"', *args)},
            )
        )
        return build.member(
            *(role, claims(draw)),
            pool=draw.choice(POOLS),
            nodes=nodes,
            env=[*environment(draw), *braces(draw)],
            metadata=metadata,
            secrets=draw.choice(((), ("regcred",))),
            **words,
        )

    port = ("--port", "8001") if phase == "Decode" and draw.random() < 0.3 else ()
    copies = draw.choice((1, 1, 2, 7, 64))
    if draw.random() < 0.5:
        return build.engine(name, one("Standalone", *port), copies=copies, phase=phase)
    nodes = draw.choice((None, 1, 3, 63))
    pods = 1 + (nodes or 1)
    local = draw.choice((1, 4, 8))
    spread = draw.choice(
        (
            ("--pipeline-parallel-size", str(pods)),
            (f"-pp={pods}", "-tp=8"),
            (f"--data-parallel-size={pods * local}", f"-dpl={local}", "--enable-expert-parallel"),
        )
    )
    return build.engine(
        name, one("Leader", *spread, *port), one("Worker", nodes=nodes), copies=copies, phase=phase
    )


def braces(draw: random.Random) -> list[Plain]:
    """Return a variable that a template would read."""
    return [{"name": "TEMPLATE", "value": "{% if a %}{{ b }}{% endif %}"}] if draw.random() < 0.3 else []


def label(draw: random.Random, longest: int = 63) -> str:
    """Return a DNS label; short ones most of the time, digits and dashes anywhere they may be."""
    length = draw.choice((1, 2, 5, 8, 12, 30, longest))
    ends = string.ascii_lowercase + string.digits
    inner = "".join(draw.choice(ends + "-") for _ in range(max(0, length - 2)))
    return (draw.choice(ends) + inner + (draw.choice(ends) if length > 1 else ""))[:longest].rstrip("-")


def replica(draw: random.Random) -> Plain:
    """Return a ModelReplica."""
    apart = draw.random() < 0.3
    names = list(dict.fromkeys(label(draw) for _ in range(draw.randint(1, 3))))
    if apart and len(names) < 2:
        names = ["prefill", "decode"]
    phases: list[str | None] = [None] * len(names)
    if apart:
        phases = ["Prefill", "Decode", *(draw.choice((None, "Decode")) for _ in names[2:])]
    mode = "PrefillDecode" if apart else draw.choice((None, "Unified"))
    name = label(draw)
    if draw.random() < 0.1:
        name = f"{label(draw, 20)}.{label(draw, 20)}"
    return build.replica(
        *(engine(draw, item, phase) for item, phase in zip(names, phases, strict=True)),
        name=name,
        namespace=draw.choice(("ml-team", "default", "a" * 63)),
        mode=mode,
        cache=draw.choice((None, None, "weights", "w" * 63)),
    )


def engine(draw: random.Random, name: str, phase: str | None = None) -> Plain:
    """Return an engine."""
    members = [member(draw, "Standalone")]
    if draw.random() < 0.4:
        nodes = draw.choice((None, 1, 3, 63))
        members = [member(draw, "Leader"), member(draw, "Worker", nodes=nodes)]
        if nodes is None and draw.random() < 0.5:
            members[1]["worker"] = {}
    return build.engine(name, *members, copies=draw.choice((1, 1, 2, 7, 64)), phase=phase)


def member(draw: random.Random, role: str, nodes: int | None = None) -> Plain:
    """Return a member."""
    metadata: Plain = {}
    if draw.random() < 0.3:
        metadata["labels"] = {"team": "search", "modelplane.ai/serving": "mine"}
    if draw.random() < 0.3:
        metadata["annotations"] = {"prometheus.io/scrape": "true"}
    made = build.member(
        role,
        claims(draw),
        pool=draw.choice(POOLS),
        nodes=nodes,
        command=draw.choice(((), (), ("vllm", "serve"), ("/bin/sh", "-c", "exec vllm serve"))),
        args=draw.choice(((), ("--model=small",), ("--port", "9000"), ("--block-size=32", "--port=x"))),
        env=environment(draw),
        metadata=metadata or None,
        secrets=draw.choice(((), (), ("regcred",), ("regcred", "other.pull-secret"))),
    )
    constraints = draw.random() < 0.2 and "deviceRequests" in made
    return made | (
        {"deviceConstraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]} if constraints else {}
    )


def claims(draw: random.Random) -> list[Plain]:
    """Return the device requests of a member."""
    made = [build.claim("gpu", draw.choice((1, 2, 8)))]
    if draw.random() < 0.2:
        made.append({"name": "nic", "deviceClassName": "rdma.dra.net", "count": 1})
    return [] if draw.random() < 0.15 else made


def environment(draw: random.Random) -> list[Plain]:
    """Return environment variables."""
    return [
        item
        for item in (
            {"name": "A", "value": "1"},
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token"}}},
            {"name": "MODELPLANE_RANK", "value": "$(LWS_WORKER_INDEX)"},
            {"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "6000"},
        )
        if draw.random() < 0.25
    ]


def cluster(draw: random.Random) -> Plain:
    """Return an InferenceCluster with any of what it may ask of pods."""
    spec: Plain = {}
    if draw.random() < 0.3:
        spec["scheduling"] = {
            "schedulerName": "kai-scheduler",
            "priorityClassName": "serving",
            "labels": {"kai.scheduler/queue": "ml"},
            "annotations": {"example.com/team": "ml"},
        }
    return build.cluster(*(pool(draw, one_pool) for one_pool in POOLS if draw.random() < 0.8), **spec)


def pool(draw: random.Random, name: str) -> Plain:
    """Return a node pool as declared."""
    made: Plain = {"name": name, "className": "any", "nodeCount": 4}
    if draw.random() < 0.3:
        made["nodeSelector"] = {"cloud.google.com/gke-nodepool": name}
    if draw.random() < 0.3:
        made["tolerations"] = [
            {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}
        ]
    return made


def config(draw: random.Random) -> Plain | None:
    """Return the input of the step, None where there is none."""
    chosen: Plain = {
        "remoteNamespace": draw.choice(("Default", "Same")),
        "namesakes": draw.choice(("Ignore", "Refuse")),
        "rollout": draw.choice(("NoSurge", "Surge")),
        "progressDeadlineSeconds": draw.choice((600, 3600)),
        "readiness": draw.choice(("Available", "AvailableCopies")),
        "podsAcrossNodes": draw.choice(("Required", "Preferred")),
        "replicasAcrossNodes": draw.choice(("Required", "Preferred")),
        "drainSeconds": draw.choice((1, 120)),
        "budget": draw.random() < 0.5,
        "watch": draw.random() < 0.5,
        "secrets": "Mirror",
        "diagnose": "Pods",
        "status": "Engines",
    }
    if draw.random() < 0.3:
        return None
    return build.config(**{key: value for key, value in chosen.items() if draw.random() < 0.4})

"""What KServe does with an LLMInferenceService, v0.16 or v0.20, as far as it can be played without one.

Its webhook refuses (`refused`), its controller lays presets under the spec, runs what comes out through a Go
template, adds the model, and makes a Deployment or a LeaderWorkerSet of each section (`workloads`). Written
from its source, apart from the code under test. A preset has of everything what the shipped ones have of it.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from tests.support.build import condition

if TYPE_CHECKING:
    from collections.abc import Iterator

Plain = dict[str, Any]

PRESET: Plain = {
    "container": {
        "ports": [{"containerPort": 8000, "protocol": "TCP"}],
        "command": ["vllm", "serve", "/mnt/models"],
        "args": ["--served-model-name", "{{ .Spec.Model.Name }}"],
        "env": [{"name": "HOME", "value": "/home"}, {"name": "HF_HUB_CACHE", "value": "/models"}],
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8000}, "initialDelaySeconds": 120},
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "failureThreshold": 60},
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/sleep", "15"]}}},
        "volumeMounts": [
            {"mountPath": "/home", "name": "home"},
            {"mountPath": "/dev/shm", "name": "dshm"},  # noqa: S108 - a mount
            {"mountPath": "/models", "name": "model-cache"},
        ],
    },
    "volumes": [
        {"name": "home", "emptyDir": {}},
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "model-cache", "emptyDir": {}},
    ],
}
_BY = {"env": "name", "volumeMounts": "mountPath", "ports": "containerPort", "volumes": "name"}


def size(parallelism: Plain | None) -> int | None:
    """Return the pods of one copy, as KServe's GetSize."""
    stated = parallelism or {}
    if stated.get("data") or stated.get("dataLocal"):
        return int(max(stated.get("data", 1) // stated.get("dataLocal", 1), 1))
    pipeline = stated.get("pipeline")
    return None if pipeline is None else int(pipeline)


def refused(service: Plain, before: Plain | None = None) -> Iterator[str]:
    """Yield what the webhook has against a service."""
    spec = service["spec"]
    router = spec.get("router", {})
    if router.get("route", {}).get("http", {}).get("spec") and "gateway" in router:
        yield "a route that is written out and a gateway"
    if not re.fullmatch(r"(hf|s3|oci|pvc)://.+", spec["model"]["uri"]):
        yield "no model"
    for name, section in sections(spec):
        stated = section.get("parallelism")
        if stated is not None and not any(stated.values()):
            yield f"{name}: a parallelism of nothing (v0.20)"
        if "worker" in section and size(stated) is None:
            yield f"{name}: a worker without a size"
        if stated and stated.get("pipeline") and ("data" in stated or "dataLocal" in stated):
            yield f"{name}: pipeline and data"
        if stated and ("data" in stated) is not ("dataLocal" in stated):
            yield f"{name}: data without dataLocal"
    old = dict(sections(before["spec"])) if before else {}
    for name, section in sections(spec):
        if name in old and (size(old[name].get("parallelism")) or 1) != (
            size(section.get("parallelism")) or 1
        ):
            yield f"{name}: total parallelism size is immutable"


def sections(spec: Plain) -> Iterator[tuple[str, Plain]]:
    """Yield the section of each workload: the main one and the prefilling one."""
    yield "", spec
    if "prefill" in spec:
        yield "-prefill", spec["prefill"]


def workloads(service: Plain, stage: str = "available") -> dict[tuple[str, str], Plain]:
    """Return what the controller makes, by kind and name."""
    made = {}
    for role, section in sections(service["spec"]):
        pods = {key: pod(section[key], service) for key in ("template", "worker") if key in section}
        kind = "LeaderWorkerSet" if "worker" in pods else "Deployment"
        name = f"{service['metadata']['name']}-kserve{'-mn' if 'worker' in pods else ''}{role}"
        assert len(name) <= (46 if "worker" in pods else 63)
        labels = {"app.kubernetes.io/name": service["metadata"]["name"], **section.get("labels", {})}
        metadata_of_pods = {
            "labels": labels,
            "annotations": _template(section.get("annotations", {}), service),
        }
        if kind == "Deployment":
            spec: Plain = {"template": {"metadata": metadata_of_pods, "spec": pods["template"]}}
        else:
            group = {
                "size": size(section["parallelism"]),
                "leaderTemplate": {"metadata": metadata_of_pods, "spec": pods["template"]},
                "workerTemplate": {"metadata": metadata_of_pods, "spec": pods["worker"]},
            }
            spec = {"leaderWorkerTemplate": group}
        metadata = {"name": name, "namespace": service["metadata"]["namespace"]}
        made[kind, name] = {
            "apiVersion": "apps/v1" if kind == "Deployment" else "leaderworkerset.x-k8s.io/v1",
            "kind": kind,
            "metadata": metadata,
            "spec": {**spec, "replicas": section["replicas"]},
        }
    return made


def pod(written: Plain, service: Plain) -> Plain:
    """Return a PodSpec: merged over the preset, run through the template, with the model."""
    written = copy.deepcopy(written)
    [container] = written.pop("containers")
    merged = {**_merged(PRESET["container"], container), "name": container["name"]}
    volumes = _merged({"volumes": PRESET["volumes"]}, {"volumes": written.pop("volumes", [])})["volumes"]
    made: Plain = _template({**written, "containers": [merged], "volumes": volumes}, service)
    uri = service["spec"]["model"]["uri"]
    assert made["containers"][0]["name"] == "main"
    assert len(made["containers"][0]["lifecycle"]["preStop"]) == 1, "more than one handler"
    made["containers"][0]["volumeMounts"].append({"name": "model", "mountPath": "/mnt/models"})
    source = (
        {"persistentVolumeClaim": {"claimName": uri[6:]}} if uri.startswith("pvc://") else {"emptyDir": {}}
    )
    made["volumes"].append({"name": "model", **source})
    return made


def _merged(under: Plain, over: Plain) -> Plain:
    """Merge as a strategic merge patch does: lists with a merge key by it, others and empty ones whole."""
    made = copy.deepcopy(under)
    for key, value in over.items():
        if key in _BY:
            items = {item[_BY[key]]: item for item in made.get(key, [])}
            for item in value:
                held = items.get(item[_BY[key]], {})
                items[item[_BY[key]]] = _merged(held, item) if key != "env" else item
            made[key] = list(items.values())
        elif isinstance(value, dict) and isinstance(made.get(key), dict):
            made[key] = _merged(made[key], value)
        elif value or value == 0:
            made[key] = value
    return made


def _template(value: Any, service: Plain) -> Any:
    """Execute the actions of a Go template that there may be."""
    if isinstance(value, dict):
        return {key: _template(item, service) for key, item in value.items()}
    if isinstance(value, list):
        return [_template(item, service) for item in value]
    if not isinstance(value, str):
        return value
    text = re.sub(r"\{\{`(.*?)`\}\}|\{\{ \.Spec\.Model\.Name \}\}", lambda match: match[1] or "m", value)
    assert "{{" not in re.sub(r"\{\{`(.*?)`\}\}", "", value).replace("{{ .Spec.Model.Name }}", ""), value
    return text


def status(stage: str) -> Plain:
    """Return the status of a service."""
    if stage == "created":
        return {}
    kinds = (
        "PresetsCombined",
        "MainWorkloadReady",
        "WorkloadsReady",
        "RouterReady",
        "HTTPRoutesReady",
        "Ready",
    )
    held = {"PresetsCombined", "HTTPRoutesReady"} | (set(kinds) if stage == "available" else set())
    return {"observedGeneration": 1, "conditions": [condition(kind, status=kind in held) for kind in kinds]}


def runs_what_is_wanted(spec: Plain, workloads: dict[tuple[str, str], Plain], name: str, seed: int) -> None:
    """Every member's container runs what is written, in as many pods, and nothing else."""
    for one in spec["engines"]:
        members = {entry["role"]: entry for entry in one["members"]}
        role = "-prefill" if one.get("phase") == "Prefill" else ""
        if "Worker" in members:
            made = workloads["LeaderWorkerSet", f"{name}-kserve-mn{role}"]["spec"]
            group = made["leaderWorkerTemplate"]
            assert group["size"] == 1 + (members["Worker"].get("worker", {}).get("nodes") or 1), seed
            pods = {"Leader": group["leaderTemplate"]["spec"], "Worker": group["workerTemplate"]["spec"]}
        else:
            made = workloads["Deployment", f"{name}-kserve{role}"]["spec"]
            pods = {"Standalone": made["template"]["spec"]}
        assert made["replicas"] == one["copies"], seed
        for kind, pod in pods.items():
            _pod_runs(members[kind], pod, seed)


def _pod_runs(wanted: Plain, pod: Plain, seed: int) -> None:
    [written] = wanted["template"]["spec"]["containers"]
    [made] = [container for container in pod["containers"] if container["name"] == "main"]
    words = [*made["command"], *made["args"]]
    stated = [*written.get("command", ()), *written.get("args", ())]
    assert "--served-model-name" not in words, f"{seed}: a preset's argument"
    assert [word for word in words if word in stated] == stated, seed
    env = {variable["name"]: variable for variable in made["env"]}
    assert all(
        env[variable["name"]].get("value") == variable["value"]
        for variable in written.get("env", ())
        if "value" in variable
    ), seed
    paths = [mount["mountPath"] for mount in made["volumeMounts"]]
    assert len(set(paths)) == len(paths), f"{seed}: a path twice"
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    shared = next(mount["name"] for mount in made["volumeMounts"] if mount["mountPath"] == "/dev/shm")  # noqa: S108
    assert volumes[shared]["emptyDir"] == {"medium": "Memory"}, f"{seed}: a preset's limit"
    if wanted["role"] != "Worker":
        assert made["startupProbe"]["failureThreshold"] * made["startupProbe"]["periodSeconds"] >= 600, seed

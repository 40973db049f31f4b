"""What Crossplane does around a function: hand over what is observed, fetch what it asks for, call again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from crossplane.function import resource
from crossplane.function.proto.v1 import run_function_pb2 as fnv1, run_function_pb2_grpc as grpcv1

HERE = Path(__file__).parent
ROOT = HERE.parent
FLEET = HERE / "fleet"
COMPOSITION = ROOT / "apis" / "modeldeployments" / "composition.yaml"
KEY = "crossplane.io/composition-resource-name"
ROUNDS = 6
"""Crossplane gives up when the requirements have not settled after this many calls."""

CAPABILITIES = fnv1.Capability.keys()
"""Crossplane says what it can do; here, all that this SDK knows of."""

Plain = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """The last response to one deployment, and how many calls it took."""

    deployment: Plain
    observed: dict[str, Plain]
    response: fnv1.RunFunctionResponse
    calls: int

    @property
    def desired(self) -> dict[str, Plain]:
        """The desired composed resources by key. Crossplane keeps the name of what it observed."""
        made = {
            key: resource.struct_to_dict(desired.resource)
            for key, desired in self.response.desired.resources.items()
        }
        for key in made.keys() & self.observed.keys():
            made[key]["metadata"]["name"] = self.observed[key]["metadata"]["name"]
        return dict(sorted(made.items()))


def objects(*paths: Path) -> list[Plain]:
    """Every object in the files and folders, in order of file names."""
    files = [file for path in paths for file in (sorted(path.glob("*.yaml")) if path.is_dir() else [path])]
    return [document for file in files for document in yaml.safe_load_all(file.read_text()) if document]


def deployments() -> list[Path]:
    """The folders that hold a deployment."""
    return sorted(file.parent for file in HERE.glob("*/xr.yaml"))


def observed_file(folder: Path) -> Path | None:
    """The file with what is observed of the deployment in a folder; None where nothing of it exists yet."""
    file = folder / "observed.yaml"
    return file if file.exists() else None


def observed_in(folder: Path) -> dict[str, Plain]:
    """The composed resources of the deployment in a folder that exist already, by their key."""
    file = observed_file(folder)
    composed = objects(file) if file else []
    return {plain["metadata"]["annotations"][KEY]: plain for plain in composed}


def call(
    stub: grpcv1.FunctionRunnerServiceStub, deployment: Plain, observed: dict[str, Plain], fleet: list[Plain]
) -> Answer:
    """Run the function as Crossplane does. Raises RuntimeError when its requirements do not settle.

    `fleet` is what the function may ask for; what is observed is part of it, as on a control plane.
    """
    fleet = [*fleet, *observed.values()]
    step = _step()
    meta = fnv1.RequestMeta(tag="example", capabilities=CAPABILITIES)
    request = fnv1.RunFunctionRequest(meta=meta, input=resource.dict_to_struct(step["input"]))
    resource.update(request.observed.composite, deployment)
    for key, item in observed.items():
        resource.update(request.observed.resources[key], item)
    requirements: fnv1.Requirements | None = None
    for calls in range(1, ROUNDS + 1):
        response = stub.RunFunction(request, timeout=60)
        stated = response.requirements if response.HasField("requirements") else None
        if stated == requirements:
            return Answer(deployment, observed, response, calls)
        requirements = stated
        request.ClearField("required_resources")
        for name, selector in stated.resources.items() if stated is not None else ():
            request.required_resources[name].CopyFrom(_fetch(selector, fleet))
        request.context.CopyFrom(response.context)
    raise RuntimeError(f"{deployment['metadata']['name']}: requirements not settled after {ROUNDS} calls")


def _step() -> Plain:
    step: Plain = objects(COMPOSITION)[0]["spec"]["pipeline"][0]
    return step


def _fetch(selector: fnv1.ResourceSelector, fleet: list[Plain]) -> fnv1.Resources:
    resources = fnv1.Resources()
    for item in fleet:
        if _selected(selector, item):
            resource.update(resources.items.add(), item)
    return resources


def _selected(selector: fnv1.ResourceSelector, plain: Plain) -> bool:
    metadata = plain["metadata"]
    same_kind = (selector.api_version, selector.kind) == (plain["apiVersion"], plain["kind"])
    in_place = not selector.namespace or selector.namespace == metadata.get("namespace")
    if selector.WhichOneof("match") == "match_name":
        return same_kind and in_place and metadata["name"] == selector.match_name
    wanted = dict(selector.match_labels.labels)
    return same_kind and in_place and wanted.items() <= metadata.get("labels", {}).items()

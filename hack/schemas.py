"""Vendor the schemas of everything that is composed, on workload clusters and beside them, as test data.

python -m hack.schemas          # downloads the pinned modules, writes tests/replica/schemas.json
                                # and tests/live/gateway-api.json

The schemas come from Go modules, fetched by `go mod download` at the versions below, which `go` verifies. Of
each only the kinds in use are kept, without descriptions, and what repeats is kept once: the pods of a
LeaderWorkerSet are spelled out twice in its CRD. Unknown fields are refused, as the API server does with
strict field validation.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]

TESTS = Path(__file__).parents[1] / "tests"
TARGET = TESTS / "replica" / "schemas.json"
INSTALLABLE = TESTS / "live" / "gateway-api.json"
"""CRDs that a living control plane is given: whole but for prose, and of one version."""

PROVIDER = "github.com/crossplane-contrib/provider-kubernetes@v1.4.1"
KUBERNETES = "k8s.io/kubernetes@v1.36.3"
KSERVE = "github.com/kserve/kserve@v0.16.0"
GATEWAY_API = "sigs.k8s.io/gateway-api@v1.4.0"
CRDS = {
    PROVIDER: [
        "package/crds/kubernetes.m.crossplane.io_objects.yaml",
        "package/crds/kubernetes.m.crossplane.io_observedobjectcollections.yaml",
        "package/crds/kubernetes.m.crossplane.io_clusterproviderconfigs.yaml",
    ],
    "sigs.k8s.io/lws@v0.8.0": ["config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"],
    KSERVE: ["config/crd/full/llmisvc/serving.kserve.io_llminferenceservices.yaml"],
    "github.com/crossplane/crossplane/v2@v2.2.0": [
        "cluster/crds/protection.crossplane.io_clusterusages.yaml",
    ],
    GATEWAY_API: [
        "config/crd/standard/gateway.networking.k8s.io_gateways.yaml",
        "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
    ],
    "sigs.k8s.io/gateway-api-inference-extension@v1.3.0": [
        "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml"
    ],
}
"""Files with CRDs, by module and version."""
BUILT_IN = {
    "api__v1": ["ConfigMap", "Namespace", "Secret", "Service", "ServiceAccount"],
    "apis__apps__v1": ["Deployment"],
    "apis__discovery.k8s.io__v1": ["EndpointSlice"],
    "apis__policy__v1": ["PodDisruptionBudget"],
    "apis__rbac.authorization.k8s.io__v1": ["Role", "RoleBinding"],
    "apis__resource.k8s.io__v1": ["DeviceClass", "ResourceClaimTemplate"],
}
"""Kinds of Kubernetes itself, by file of its OpenAPI v3 documents."""

KEPT = {
    *("type", "properties", "items", "required", "additionalProperties", "enum", "$ref", "nullable"),
    *("pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"),
    *("minProperties", "maxProperties", "allOf", "anyOf", "oneOf", "not"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
}
SMALL = 120
"""Characters below which a repeated subtree is written again."""


def main() -> None:
    """Write the file."""
    kinds: dict[str, Schema] = {}
    for module, files in CRDS.items():
        folder = downloaded(module)
        for file in files:
            kinds |= of_crd(yaml.safe_load((folder / file).read_text()))
    folder = downloaded(KUBERNETES) / "api" / "openapi-spec" / "v3"
    for document, names in BUILT_IN.items():
        kinds |= of_openapi(json.loads((folder / f"{document}_openapi.json").read_text()), names)
    shared = shared_once(kinds)
    shared["sources"] = sorted([*CRDS, KUBERNETES])
    TARGET.write_text(json.dumps(shared, sort_keys=True, separators=(",", ":")) + "\n")
    print(f"{TARGET.name}: {len(kinds)} kinds, {TARGET.stat().st_size} bytes")  # noqa: T201 - it reports
    folder = downloaded(GATEWAY_API) / "config" / "crd" / "standard"
    crds = [
        installable(yaml.safe_load((folder / f"gateway.networking.k8s.io_{name}.yaml").read_text()))
        for name in ("gateways", "httproutes")
    ]
    INSTALLABLE.write_text(json.dumps(crds, sort_keys=True, separators=(",", ":")) + "\n")


def downloaded(module: str) -> Path:
    """Return the folder of a module in the cache of `go`. Raises CalledProcessError."""
    go = shutil.which("go") or "go"
    ran = subprocess.run(  # noqa: S603 - a fixed command
        [go, "mod", "download", "-json", module], check=False, capture_output=True, text=True
    )
    document = json.loads(ran.stdout)
    folder = document.get("Dir") or _unpacked(module)
    if not Path(folder).is_dir():
        raise RuntimeError(f"{module}: {document.get('Error', ran.stderr)}")
    return Path(folder)


def _unpacked(module: str) -> str:
    """Return where `go` unpacks a module: it does so too when it wants a newer `go` to build it."""
    cache = subprocess.run(["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True)  # noqa: S607
    return str(Path(cache.stdout.strip()) / module)


def installable(crd: Schema) -> Schema:
    """Return a CRD as it can be applied, without prose and with the stored version only."""
    versions = [
        {**version, "schema": without_prose(version["schema"])}
        for version in crd["spec"]["versions"]
        if version["storage"]
    ]
    metadata = {key: crd["metadata"][key] for key in ("name", "annotations")}
    kept = {"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": metadata}
    return {**kept, "spec": {**crd["spec"], "versions": versions}}


def without_prose(schema: Any) -> Any:
    """Return a schema without its descriptions. A property of that name is a map, not a text."""
    if isinstance(schema, list):
        return [without_prose(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_prose(value)
        for key, value in schema.items()
        if not (key == "description" and isinstance(value, str))
    }


def of_crd(crd: Schema) -> dict[str, Schema]:
    """Return the schemas of a CRD's served versions, by apiVersion and kind."""
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    return {
        f"{group}/{version['name']} {kind}": with_head(strict(version["schema"]["openAPIV3Schema"]))
        for version in crd["spec"]["versions"]
        if version["served"]
    }


def of_openapi(document: Schema, names: list[str]) -> dict[str, Schema]:
    """Return the schemas of some kinds of one group, all references resolved."""
    components = document["components"]["schemas"]
    definitions = {}
    for name, schema in components.items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            if kind["kind"] in names and name.endswith(f".{kind['kind']}"):
                version = "/".join(part for part in (kind["group"], kind["version"]) if part)
                definitions[f"{version} {kind['kind']}"] = strict(resolved(schema, components))
    missing = set(names) - {key.split()[1] for key in definitions}
    if missing:
        raise RuntimeError(f"no schema of {sorted(missing)}")
    return definitions


def resolved(schema: Any, components: Schema) -> Any:
    """Return a schema without references. Those of workloads are finite trees."""
    if isinstance(schema, list):
        return [resolved(item, components) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return resolved(components[schema["$ref"].rpartition("/")[2]], components)
    if len(schema.get("allOf", ())) == 1:
        return resolved(schema["allOf"][0], components)
    return {key: resolved(value, components) for key, value in schema.items()}


def strict(schema: Any) -> Any:
    """Return a schema without prose that refuses unknown fields, as JSON Schema has it."""
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return {"type": ["integer", "string"]}
    made = {key: value for key, value in schema.items() if key in KEPT}
    if "properties" in made:
        made["properties"] = {name: strict(child) for name, child in made["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    for key in ("items", "additionalProperties", "not"):
        if isinstance(made.get(key), dict):
            made[key] = strict(made[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if key in made:  # Rules on top of the fields that are declared outside.
            made[key] = [
                {name: value for name, value in entry.items() if name in KEPT} for entry in made[key]
            ]
    if made.pop("nullable", False) and "type" in made:
        made["type"] = [made["type"], "null"]
    return made


def with_head(schema: Schema) -> Schema:
    """Return the schema of a CRD with what every object's metadata may have."""
    properties = {**schema["properties"], "apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    labels = {"type": "object", "additionalProperties": {"type": "string"}}
    properties["metadata"] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 253},
            "namespace": {"type": "string", "minLength": 1, "maxLength": 63},
            "labels": labels,
            "annotations": labels,
        },
        "additionalProperties": False,
    }
    return {**schema, "properties": properties}


def shared_once(kinds: dict[str, Schema]) -> Schema:
    """Return the kinds with every subtree that repeats written once, under `$defs`."""
    texts: Counter[str] = Counter()

    def count(value: Any) -> None:
        for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            if isinstance(child, dict) and "type" in child:
                text = json.dumps(child, sort_keys=True)
                texts[text] += 1
                if texts[text] > 1:
                    continue
            count(child)

    count(kinds)
    repeated = {text for text, number in texts.items() if number > 1 and len(text) > SMALL}
    definitions: dict[str, Any] = {}

    def replaced(value: Any, *, top: bool = False) -> Any:
        if isinstance(value, list):
            return [replaced(item) for item in value]
        if not isinstance(value, dict):
            return value
        text = json.dumps(value, sort_keys=True)
        if not top and text in repeated:
            name = sha256(text.encode()).hexdigest()[:10]
            if name not in definitions:
                definitions[name] = {}
                definitions[name] = replaced(value, top=True)
            return {"$ref": f"#/$defs/{name}"}
        return {key: replaced(item) for key, item in value.items()}

    return {"kinds": {name: replaced(kinds[name]) for name in sorted(kinds)}, "$defs": definitions}


if __name__ == "__main__":
    main()

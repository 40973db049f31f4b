"""Manifests: YAML files, directories and kubectl lists, read into objects that know where they stand."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.cli.bad_input import BadInput
from function.cli.worlds.parsing import parse_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GROUP = "modelplane.ai/"
PROVIDER_GROUP = "kubernetes.m.crossplane.io/"
"""The group of provider-kubernetes: its Objects hold what is on a workload cluster."""
CLUSTER_SCOPED = frozenset({"InferenceCluster", "InferenceClass"})
KINDS = (
    "ModelDeployment",
    "InferenceCluster",
    "InferenceClass",
    "ModelReplica",
    "ModelEndpoint",
    "ModelCache",
    "SchedulerConfig",
    "WorkloadConfig",
    "Object",
    "ObservedObjectCollection",
)
API_VERSIONS = {"ResourceSlice": "resource.k8s.io/", "Node": "v1"}
"""Kinds of a workload cluster, and how their apiVersion begins: what `class` and `drift` read."""
CONFIGS = frozenset({"SchedulerConfig", "WorkloadConfig"})
"""Inputs of a step: their group is the function's, and they need no name."""
SUFFIXES = {".yaml", ".yml", ".json"}


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object and the file it came from."""

    content: dict[str, Any]
    file: str

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.content.get("kind"))

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata; empty when there is none to read."""
        metadata = self.content.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """Its namespace; empty for a cluster-scoped kind."""
        return str(self.metadata.get("namespace") or "")

    @property
    def identity(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def title(self) -> str:
        """`fleet.yaml: InferenceCluster use1`."""
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.file}: {self.kind} {where}"


@dataclass(slots=True)
class Manifests:
    """Everything the files hold, by kind."""

    by_kind: dict[str, list[Manifest]] = field(default_factory=lambda: defaultdict(list))
    ignored: int = 0
    """How many objects were of kinds that scheduling does not read."""

    def __getitem__(self, kind: str) -> list[Manifest]:
        return self.by_kind.get(kind, [])


def _files(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Name and text of every file, directories in the order of their names."""
    for path in paths:
        if path == "-":
            yield "standard input", sys.stdin.read()
            continue
        given = Path(path)
        if not given.exists():
            raise BadInput(f"{path}: no such file or directory")
        for file in _below(given):
            yield str(file), _text(file)


def _below(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read: {error}") from None


def _unlisted(name: str, document: object) -> Iterator[dict[str, Any]]:
    """The objects of a document: itself, or the items of a list."""
    if document is None:
        return
    if not isinstance(document, dict):
        raise BadInput(f"{name}: expected an object, found {type(document).__name__}")
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and (items is None or isinstance(items, list)):
        for item in items or []:
            yield from _unlisted(name, item)
    else:
        yield document


def _checked(name: str, content: dict[str, Any], number: int) -> Manifest | None:
    """The manifest of an object of ours; None for a kind that scheduling does not read."""
    kind, version = content.get("kind"), str(content.get("apiVersion") or "")
    ours = version.startswith((GROUP, PROVIDER_GROUP)) or kind in CONFIGS
    if not isinstance(kind, str) or not kind:
        raise BadInput(f"{name}: object {number}: kind: required, but missing")
    if kind in KINDS and not version:
        raise BadInput(f"{name}: {kind} (object {number}): apiVersion: required, but missing")
    if version.startswith(API_VERSIONS.get(kind, "\n")):
        return Manifest(content, name)
    if kind not in KINDS or not ours:
        return None
    manifest = Manifest(_placed(content, kind), name)
    if not manifest.name and kind not in CONFIGS:
        raise BadInput(f"{name}: {kind} (object {number}): metadata.name: required, but missing")
    return manifest


def _placed(content: dict[str, Any], kind: str) -> dict[str, Any]:
    """Give a namespaced object without a namespace the one kubectl would: default."""
    metadata = content.get("metadata")
    if kind in CLUSTER_SCOPED or not isinstance(metadata, dict) or metadata.get("namespace"):
        return content
    return {**content, "metadata": {**metadata, "namespace": "default"}}


def load(paths: Iterable[str]) -> Manifests:
    """Read files and directories. Raises BadInput; an object given twice must be given alike."""
    manifests = Manifests()
    by_identity: dict[tuple[str, str, str], Manifest] = {}
    for name, text in _files(paths):
        parsed = parse_documents(name, text)
        documents = (content for document in parsed for content in _unlisted(name, document))
        for number, content in enumerate(documents, start=1):
            manifest = _checked(name, content, number)
            if manifest is None:
                manifests.ignored += 1
                continue
            key = (manifest.kind, manifest.namespace, manifest.name)
            twin = by_identity.setdefault(key, manifest)
            if twin is manifest:
                manifests.by_kind[manifest.kind].append(manifest)
            elif twin.content not in (content, manifest.content):
                raise BadInput(f"{manifest.title}: is given differently in {twin.file}")
    return manifests

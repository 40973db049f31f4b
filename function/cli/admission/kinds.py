"""The kinds that this project ships: their XRDs and CRDs, found by what stands at the top of an object.

`head` tells an object of ours from somebody else's, and a slip (a wrong group, version or kind) from both.
`schema_of` puts the schema together that the API server would use: Crossplane adds `conditions` and its own
machinery to every composite, and metadata is checked apart.

Reading a schema takes longer than most commands need, so only heads are read until an object is checked.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from function import catalogue
from function.boundary import frozen
from function.cli.admission import UNKNOWN_KIND, Finding
from function.cli.bad_input import BadInput, closest, nearest

if TYPE_CHECKING:
    from function.boundary import JsonObject
    from function.cli.admission.structural import Schema


HERE = Path(__file__).parent
SOURCES = ("apis/*/definition.yaml", "input/*.yaml")

CONDITIONS: JsonObject = {
    "type": "array",
    "items": {"type": "object", "required": ["type"], "x-kubernetes-preserve-unknown-fields": True},
}
"""Added by Crossplane to the status of every composite."""
MACHINERY: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""`spec.crossplane` and `status.crossplane`: Crossplane's own."""

NEAR_GROUP, NEAR_KIND = 0.7, 0.8
"""How alike a group or a kind must be to one of ours to be taken for a slip."""

_GROUP = re.compile(r"^  group: (\S+)$", re.MULTILINE)
_KIND = re.compile(r"^    kind: (\S+)$", re.MULTILINE)
_SCOPE = re.compile(r"^  scope: (\S+)$", re.MULTILINE)
_VERSION = re.compile(r"^  - name: (\S+)$", re.MULTILINE)


@frozen
class Kind:
    """One kind, and the file that declares it."""

    group: str
    kind: str
    versions: tuple[str, ...]
    """Those that are served, the newest last."""
    namespaced: bool
    is_input: bool
    """It is the input of a step: never stored, and without a name."""
    file: Path


@lru_cache
def shipped() -> dict[str, Kind]:
    """Every kind by its name. Only the head of each file is read: a schema is parsed when it is asked for."""
    files = [file for source in SOURCES for file in sorted(HERE.glob(source))]
    return {kind.kind: kind for kind in map(_kind, files)}


def _kind(file: Path) -> Kind:
    """Read the head of a schema's file.

    The lines are looked for by pattern: parsing all XRDs takes longer than most commands.

    Raises:
        ValueError: where one of the lines is missing, for then the package is broken.
    """
    text = file.read_text(encoding="utf-8")
    group, kind, scope = (pattern.search(text) for pattern in (_GROUP, _KIND, _SCOPE))
    versions = _VERSION.findall(text)
    if not (group and kind and scope and versions):
        raise ValueError(f"{file}: is no XRD and no CRD")
    is_input = file.parent.name == "input"
    return Kind(group[1], kind[1], tuple(versions), scope[1] == "Namespaced", is_input, file)


@lru_cache
def schema_of(name: str, version: str) -> Schema:
    """Return the schema of a version of a shipped kind, as the API server holds objects against it.

    Metadata stays open here, as `check_metadata` looks at it. Crossplane's own fields are open too: they
    are declared by Crossplane, and no XRD that is shipped has them.

    Raises:
        KeyError: for a kind or a version that is not shipped, which `head` has ruled out.
    """
    from function.cli.admission import structural  # noqa: PLC0415 - only for an object that is checked

    kind = shipped()[name]
    declared = catalogue.read(kind.file)
    versions = {entry["name"]: entry for entry in declared["spec"]["versions"]}
    schema: JsonObject = versions[version]["schema"]["openAPIV3Schema"]
    properties = {**schema["properties"], "apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    properties["metadata"] = MACHINERY
    if not kind.is_input:
        for part, more in (("spec", {}), ("status", {"conditions": CONDITIONS})):
            holder = properties.get(part, {"type": "object"})
            below = {**holder.get("properties", {}), **more, "crossplane": MACHINERY}
            properties[part] = {**holder, "properties": below}
    return structural.compiled_schema({**schema, "properties": properties})


def head(content: JsonObject) -> tuple[Kind | None, Finding | None]:
    """Return the kind of an object, and what is wrong with its apiVersion or kind.

    Neither where it is an object of somebody else's.
    """
    name, version = content.get("kind"), content.get("apiVersion")
    group, _, number = str(version or "").rpartition("/")
    kind = shipped().get(str(name))
    if kind is not None:
        if group == kind.group and number in kind.versions:
            return kind, None
        # Inputs have names that others use too: only a group that is near is a slip.
        near = group == kind.group or nearest(group or number, [kind.group], most=1, cutoff=NEAR_GROUP)
        if kind.is_input and not near:
            return None, None
        return None, _slip("apiVersion", str(version), f"did you mean {kind.group}/{kind.versions[-1]}?")
    ours = {item.group for item in shipped().values()}
    if group in ours or nearest(group or number, ours, most=1, cutoff=NEAR_GROUP):
        candidates = [item.kind for item in shipped().values() if group == item.group or group not in ours]
        near = nearest(str(name), candidates, most=1, cutoff=NEAR_KIND)
        if near:
            return None, _slip("kind", str(name), closest(near[0], near))
    return None, None


def _slip(field: str, value: str, hint: str) -> Finding:
    """A finding on apiVersion or kind.

    An object of no kind that is read is left out, whatever its other fields say, and the message says so.
    """
    message = "is of no kind that is read, so the object is ignored"
    return Finding((field,), message, f'"{value}"', hint, UNKNOWN_KIND)


def writable(content: JsonObject) -> JsonObject:
    """Return an object that a command has made. Raises BadInput where an API server would refuse it."""
    kind, _ = head(content)
    findings = check(content, kind) if kind is not None else []
    if findings:
        raise BadInput(f"{content['kind']}: {'; '.join(map(str, findings))}")
    return content


def check(content: JsonObject, kind: Kind) -> list[Finding]:
    """Every finding on an object of a shipped kind: on its metadata, then in the order of its fields.

    Metadata that is no map is found by the schema, so that nothing more is said about it.
    """
    from function.cli.admission import structural  # noqa: PLC0415 - as above

    version = str(content.get("apiVersion", "")).rpartition("/")[2]
    schema = schema_of(kind.kind, version)
    checking = structural.Check(schema)
    checking.value(schema, content, ())
    given = content.get("metadata")
    about = structural.check_metadata(given, namespaced=kind.namespaced) if isinstance(given, dict) else ()
    return [*about, *checking.findings]

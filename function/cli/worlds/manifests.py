"""Manifests: YAML files, directories and kubectl lists, read into objects that know where they stand.

The way of a text: `texts` finds the files and decodes them, `objects_of` parses documents and takes lists
apart, `collect` sorts the objects by kind and notes contradictions, `issues_of` holds them against the
schemas that are shipped. `load` does all of it for paths, `load_texts` for texts that are at hand.

An object may stand in several files as long as its content is the same. A Composition is read for the
inputs that it gives to our steps. Objects of other kinds are counted and otherwise left alone, so that a
whole repository or a dump of a namespace can be given.
"""

from __future__ import annotations

import codecs
import os
import re
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from function.cli.admission import REQUIRED, RULE, SELECTOR, FieldPath, Finding
from function.cli.admission.kinds import check, head
from function.cli.bad_input import BadInput, nearest
from function.cli.text import counted, listed, note, track
from function.cli.worlds.manifest import SNAPSHOT, Contradiction, Issue, Manifest, Manifests, Position, map_at
from function.cli.worlds.parsing import parse_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# Step inputs: what Compositions give to our steps, as the objects that a command takes them for.
#
# A pipeline's step has its input written into the Composition. In files and in a control plane alike, the
# input of the Composition in use counts, unless an object of its kind stands in a file by itself.

COMPOSITION = "Composition"
COMPOSITION_GROUP = "apiextensions.crossplane.io/"
COMPOSED = {
    "SchedulerConfig": ("ModelDeployment",),
    "WorkloadConfig": ("ModelReplica",),
    "RoutingConfig": ("ModelEndpoint", "ModelService"),
    "ClusterConfig": ("InferenceCluster",),
}
"""Inputs of a step, and the kinds whose Compositions have such a step."""


def inputs_of(composition: Manifest) -> Iterator[Manifest]:
    """Every input of a step that is ours, as an object that knows where it stands."""
    pipeline = composition.spec.get("pipeline")
    for number, step in enumerate(pipeline if isinstance(pipeline, list) else ()):
        given = map_at(step, "input")
        kind, slip = head(given)
        if (kind is not None and kind.is_input) or slip is not None:
            title = step.get("step", number)
            yield composition.part(("spec", "pipeline", number, "input"), given, f"step {title}")


def take(manifests: Manifests, compositions: Iterable[Manifest], *, checked: bool = True) -> None:
    """Let inputs of Compositions count where no object of their kind is given; all of them are checked.

    Not `checked`, nothing is noted: the same objects are read again.
    """
    inputs = [(composition, given) for composition in compositions for given in inputs_of(composition)]
    for composition, given in inputs:
        composite = map_at(composition.spec, "compositeTypeRef").get("kind")
        taken = [config for config, composed in COMPOSED.items() if composite in composed]
        if taken and given.kind in COMPOSED and given.kind not in taken:
            message = f"expected '{taken[0]}', as a step for {composite} takes it"
            manifests.issues.append(Issue(given, Finding(("kind",), message, f'"{given.kind}"')))
        else:
            manifests.step_inputs.append(given)
    for config, composed in COMPOSED.items():
        if manifests[config]:
            if checked and len(manifests[config]) > 1:
                titles = listed([manifest.title for manifest in manifests[config]])
                note(f"{len(manifests[config])} {config}s are given ({titles}); the first is taken for all")
            continue
        chosen = _chosen(inputs, config, composed, manifests)
        if checked and len({str(given.content) for given in chosen.values()}) > 1:
            names = ", ".join(chosen)
            note(f"the Compositions {names} have different {config}s; the first is taken for all")
        if chosen:
            manifests.by_kind[config] = [next(iter(chosen.values()))]


def _chosen(
    inputs: Iterable[tuple[Manifest, Manifest]], config: str, composed: tuple[str, ...], manifests: Manifests
) -> dict[str, Manifest]:
    """The inputs by the name of the Composition: of those in use, or of all where none is yet."""
    by_name: dict[str, Manifest] = {}
    for composition, given in sorted(inputs, key=lambda pair: pair[0].name):
        type_ref = map_at(composition.spec, "compositeTypeRef")
        if given.kind == config and type_ref.get("kind") in composed:
            by_name[composition.name] = given
    # Crossplane 2 keeps the reference of a composite below spec.crossplane.
    machineries = (map_at(composite.spec, "crossplane") for kind in composed for composite in manifests[kind])
    used = {str(map_at(machinery, "compositionRef").get("name")) for machinery in machineries}
    return {name: given for name, given in by_name.items() if name in used} or by_name


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
    "ModelService",
    "ModelCache",
    "ModelAdapter",
    "ModelAdapterPlacement",
    "SchedulerConfig",
    "WorkloadConfig",
    "RoutingConfig",
    "ClusterConfig",
    "Object",
    "ObservedObjectCollection",
)
_RESOURCE_KINDS = ("ResourceSlice", "ResourceClaimTemplate", "DeviceClass", "DeviceTaintRule")
API_VERSIONS = {**dict.fromkeys(_RESOURCE_KINDS, "resource.k8s.io/"), "Node": "v1"}
"""Kinds of a workload cluster, and how their apiVersion begins: what `class` and `drift` read."""
CONFIGS = frozenset(COMPOSED)
"""Inputs of a step: their group is the function's, and they need no name."""
SUFFIXES = {".yaml", ".yml", ".json"}
_OBJECT = re.compile(r"""(?:^|["'{,\s-])(?i:kind|metadata|spec)["']?[ \t]*:|\0""")
"""What a file with an object has, even one that lacks its kind; workflows and values of Helm have none of it.
UTF-16 without its mark is not left out either."""


def texts(paths: Iterable[str], undecoded: list[BadInput] | None = None) -> Iterator[tuple[str, str]]:
    """Name and text of every file, directories in the order of their names. Raises BadInput.

    A file of a directory that has no Kubernetes object in it is left out: whole repositories are given.
    `undecoded`: takes what is wrong with files that are no text, which are refused without it.
    """
    for path in paths:
        if path == "-":
            yield "standard input", _decoded("standard input", _standard_input())
            continue
        given = Path(path)
        if not os.path.exists(path):  # noqa: PTH110 - a path that is too long is none
            raise BadInput(_missing(path, given))
        files = _below(given) if given.is_dir() else [given]
        if not files:
            note(f"{path}: has no file that ends in {', '.join(sorted(SUFFIXES))}")
        foreign = []
        for file in files:
            try:
                text = _text(file)
            except BadInput as error:
                if undecoded is None:
                    raise
                undecoded.append(error)
                continue
            if file == given or not text.strip() or _OBJECT.search(text):
                yield str(file), text
            else:
                foreign.append(str(file.relative_to(given)))
        if foreign:
            what = f"{counted(len(foreign), 'file')} without a Kubernetes object ({listed(foreign)})"
            note(f"{path}: left out {what}")


def _missing(path: str, given: Path) -> str:
    """Say that there is no such file, and what was probably meant."""
    if "://" in path:
        return f"{path}: files are read, no addresses; pipe it in: curl -L {path} | fleet-scheduler plan -"
    folder = given.parent
    listed_there = folder.iterdir() if os.path.isdir(folder) and os.access(folder, os.R_OK) else ()  # noqa: PTH112
    near = nearest(given.name, (file.name for file in listed_there), cutoff=0.8)
    meant = f"; did you mean {' or '.join(str(folder / name) for name in near)}?" if near else ""
    return f"{path}: no such file or directory{meant}"


def _below(path: Path) -> list[Path]:
    """The manifests below a directory, in the order of their names. Raises BadInput."""
    files = []
    for folder, _, names in os.walk(path, onerror=_unreadable):
        for file in (Path(folder, name) for name in names):
            if file.suffix not in SUFFIXES:
                continue
            if file.exists() and not file.is_file():
                note(f"{file}: left out, as it is no file")
            else:
                files.append(file)
    return sorted(files)


def _unreadable(error: OSError) -> None:
    """Stop at a folder that cannot be listed: `os.walk` would leave it out without a word."""
    raise BadInput(f"{error.filename}: cannot be read: {error.strerror}")


def _text(path: Path) -> str:
    """The text of a file. Raises BadInput."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
    return _decoded(str(path), content)


def _standard_input() -> bytes:
    """The bytes that are piped in. Raises BadInput where nothing can be."""
    if sys.stdin is None:  # As Python has it where the shell closed it.
        raise BadInput("standard input is closed")
    binary = getattr(sys.stdin, "buffer", None)
    content: bytes = sys.stdin.read().encode() if binary is None else binary.read()
    return content


def _decoded(name: str, content: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 that says so, as PowerShell writes what is redirected."""
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "UTF-16" if is_wide else "UTF-8"
    try:
        text = content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{content[error.start]:02x}"
        raise BadInput(f"{name}: line {line}: {byte} is not {encoding}: save the file as UTF-8") from None
    return text.replace("\r\n", "\n")


def _unlisted(
    name: str, document: object, items: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """The objects of a document, itself or the items of a list, with their indexes through the lists.

    Lists stand in lists where dumps of several kinds are joined.
    """
    if document is None and not items:
        return
    if not isinstance(document, dict):
        where = "".join(f".items[{index}]" for index in items).removeprefix(".")
        raise BadInput(f"{name}: {f'{where}: ' if where else ''}expected an object, found {_type(document)}")
    listed, kind = document.get("items"), document.get("kind")
    if kind == "List" and not isinstance(listed, list | None):
        raise BadInput(f"{name}: List: items: expected a list, found {_type(listed)}")
    if kind == "List" or (str(kind).endswith("List") and isinstance(listed, list)):
        for index, item in enumerate(listed or []):
            yield from _unlisted(name, item, (*items, index))
    else:
        yield items, document


def _type(value: object) -> str:
    """Return the kind of value that stands where another kind is expected."""
    kinds = {str: "a string", list: "a list", dict: "a map", type(None): "null", bool: "true or false"}
    return kinds.get(type(value), "a number")


def objects_of(files: Iterable[tuple[str, str]]) -> Iterator[Manifest]:
    """Every object of files, given by name and text. Raises BadInput."""
    for name, text in files:
        for number, document in enumerate(parse_documents(name, text)):
            for items, content in _unlisted(name, document):
                yield Manifest(content, name, Position(name, text, number, items))


SLOW = 3_000_000
"""Characters that take about a second to read: progress is shown from the beginning."""


def _is_read(manifest: Manifest, number: int) -> bool:
    """Tell whether scheduling reads the object. Raises BadInput for one that does not say what it is.

    A kind of ours with somebody else's group is not read: its name is no proof.
    """
    content, name = manifest.content, manifest.file
    kind, version = content.get("kind"), str(content.get("apiVersion") or "")
    if not isinstance(kind, str) or not kind:
        keys = f"; the object has {listed(list(map(str, content)))}" if content else ""
        wrong = f"expected a string, found {_type(kind)}" if kind else f"required, but missing{keys}"
        raise BadInput(f"{name}: object {number}: kind: {wrong}")
    if kind in KINDS and not version:
        raise BadInput(f"{name}: {kind} (object {number}): apiVersion: required, but missing")
    if version.startswith(API_VERSIONS.get(kind, "\n")):
        return True
    ours = version.startswith((GROUP, PROVIDER_GROUP)) or kind in CONFIGS
    if kind not in KINDS or not ours:
        return False
    metadata = content.get("metadata")
    if not isinstance(metadata, dict | None):
        wrong = f"expected a map, found {_type(metadata)}"
        raise BadInput(f"{name}: {kind} (object {number}): metadata: {wrong}")
    if not manifest.name and kind not in CONFIGS:
        raise BadInput(f"{name}: {kind} (object {number}): metadata.name: required, but missing")
    return True


def _placed(manifest: Manifest) -> Manifest:
    """Give a namespaced object without a namespace the one kubectl would: default."""
    content = manifest.content
    metadata = content.get("metadata")
    if manifest.kind not in KINDS or manifest.kind in CLUSTER_SCOPED or not isinstance(metadata, dict):
        return manifest
    if metadata.get("namespace") not in (None, ""):
        return manifest
    placed = {**content, "metadata": {**metadata, "namespace": "default"}}
    return Manifest(placed, manifest.file, manifest.position)


def load(paths: Iterable[str], *, checked: bool = True) -> Manifests:
    """Read files and directories. Raises BadInput; an object given twice must be given alike.

    Not `checked`, objects are only sorted by their kinds, which is quick: what their schemas would say is not
    asked.
    """
    return load_texts(texts(paths), checked=checked)


def load_texts(files: Iterable[tuple[str, str]], *, checked: bool = True) -> Manifests:
    """Read files that are given by name and text, likewise. Raises BadInput."""
    listed_files = [*files]
    at_once = sum(len(text) for _, text in listed_files) > SLOW
    manifests = collect(track(objects_of(listed_files), "Reading", at_once=at_once), checked=checked)
    for contradiction in manifests.contradictions:
        manifest = contradiction.manifest
        place = f"line {manifest.line()}: " if manifest.line() else ""
        raise BadInput(f"{manifest.file}: {place}{manifest.short_title}: {contradiction.message}")
    return manifests


def collect(objects: Iterable[Manifest], *, checked: bool = True) -> Manifests:
    """Sort objects likewise, and list contradictions beside what was read first. Raises BadInput.

    Objects of other kinds are counted, so that a whole repository can be given, and a folder without any of
    ours is noticed.
    """
    manifests = Manifests()
    by_identity: dict[tuple[str, str, str], Manifest] = {}
    numbers: Counter[str] = Counter()
    compositions: list[Manifest] = []
    for written in objects:
        numbers[written.file] += 1
        _, slip = head(written.content)
        if slip is not None and written.content.get("apiVersion"):
            manifests.issues.append(Issue(written, slip))
        elif (
            written.kind == COMPOSITION
            and str(written.content.get("apiVersion")).startswith(COMPOSITION_GROUP)
            and any(inputs_of(written))
        ):
            twin = by_identity.setdefault((written.kind, "", written.name), written)
            if twin is written:
                compositions.append(written)
            elif twin.content != written.content:
                manifests.contradictions.append(Contradiction(written, twin))
        elif not _is_read(written, numbers[written.file]):
            group = str(written.content.get("apiVersion") or "").rpartition("/")[0]
            manifests.ignored[f"{written.kind}.{group}" if group else written.kind] += 1
            manifests.unread.append(written)
        else:
            _add(manifests, by_identity, written)
    take(manifests, compositions, checked=checked)
    if checked:
        manifests.issues += issues_of(manifests)
    return manifests


def _add(manifests: Manifests, by_identity: dict[tuple[str, str, str], Manifest], written: Manifest) -> None:
    """Take an object, or note that it was read before with other content."""
    manifest = _placed(written)
    twin = by_identity.setdefault(manifest.key, manifest)
    if twin is manifest:
        manifests.by_kind[manifest.kind].append(manifest)
    elif twin.content not in (written.content, manifest.content):
        manifests.contradictions.append(Contradiction(manifest, twin))


def issues_of(manifests: Manifests) -> Iterator[Issue]:
    """Return the API server's complaints about objects of the kinds we ship, unread ones included.

    Objects that are not read are checked too: a slip in a kind may be why they are not.
    """
    configs = manifests["SchedulerConfig"]
    release = configs[0].content.get("celVersion") if configs else None
    alone = (manifest for manifest in chain.from_iterable(manifests.by_kind.values()) if not manifest.holder)
    everything = [*alone, *manifests.unread, *manifests.step_inputs]
    for manifest in track(everything, "Checking", total=len(everything)):
        kind, slip = head(manifest.content)
        if slip is not None and manifest.holder:
            yield Issue(manifest, slip)
        if kind is not None:
            findings = check(manifest.content, kind)
            if findings and SNAPSHOT in map_at(manifest.metadata, "annotations"):
                # A snapshot left out of it what no decision reads, and that may be all that is wrong.
                findings = [item for item in findings if item.code != RULE and item.message != REQUIRED]
            yield from (Issue(manifest, finding) for finding in findings)
        if manifest.kind == "ModelDeployment":
            yield from (Issue(manifest, finding) for finding in check_selectors(manifest.content, release))


# Check the CEL selectors in the files; one that does not compile is shown with a caret at the fault.

LONGEST = 128 * 1024
"""Characters of selectors of one object that are compiled; a deployment with more is invalid as it is."""


def check_selectors(content: dict[str, Any], release: object) -> Iterator[Finding]:
    """A finding for each selector of an object that does not compile as a Kubernetes release reads it.

    A selector that stands several times is compiled once. More text than a deployment may have is not
    looked at, as the deployment is invalid anyway.
    """
    from function.cel import DIALECTS, CompileError, compile_selector  # noqa: PLC0415 - for a selector

    supported = release if isinstance(release, str) and release in DIALECTS else next(iter(DIALECTS))
    length = 0
    visited = set()
    for path, level, source in stated(content.get("spec"), ("spec",)):
        if (level, source) in visited:
            continue
        visited.add((level, source))
        length += len(source)
        if length > LONGEST:
            return
        try:
            compile_selector(level, source, supported)
        except CompileError as error:
            excerpt = error.caret().replace("\t", " ")
            meant = _meant(level, source, supported) or _advice(str(error), source)
            yield Finding(path, str(error), hint=meant, code=SELECTOR, excerpt=excerpt)


def _meant(level: str, source: str, release: str) -> str:
    """Suggest a text for operators and quotes of other languages, where the selector then compiles."""
    from function.cel import CompileError, compile_selector, respelt_operators  # noqa: PLC0415 - as above

    text, advice = respelt_operators(source)
    try:
        return advice if text and compile_selector(level, text, release) else ""
    except CompileError:
        return ""


_ORDERED = re.compile(r"applied to '\(kubernetes\.(Quantity|Semver)")
_BARE_DOMAIN = re.compile(r"\[\s*([a-z0-9-]+(?:\.[a-z0-9-]+)+)\s*\]")
COMPARED = {
    "Quantity": 'compare it with .compareTo(quantity("80Gi")) >= 0',
    "Semver": 'compare it with .compareTo(semver("1.2.3")) >= 0',
}
"""How values without an order of their own are compared."""


def _advice(message: str, source: str) -> str:
    """Say what is written in place of two slips that no other spelling of operators mends."""
    ordered, bare = _ORDERED.search(message), _BARE_DOMAIN.search(source)
    if ordered:
        return COMPARED[ordered[1]]
    return f'write the domain in quotes: ["{bare[1]}"]' if bare and "undeclared reference" in message else ""


def stated(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str, str]]:
    """Every selector below a value: where it stands, over what it selects, and its text."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from stated(item, (*path, index))
    elif isinstance(value, dict):
        for key, child in value.items():
            if key == "cel" and isinstance(child, str):
                yield (*path, key), _level(path), child
            elif key == "cel" and isinstance(child, list):
                texts = ((index, text) for index, text in enumerate(child) if isinstance(text, str))
                yield from (((*path, key, index), _level(path), text) for index, text in texts)
            elif key != "template" or path == ("spec",):  # Not the pods: what is there is only copied.
                yield from stated(child, (*path, key))


def _level(path: FieldPath) -> str:
    """The kind of thing that a selector selects, told by where it stands."""
    if "devices" in path:
        return "device"
    return "node" if "nodeSelector" in path else "cluster"

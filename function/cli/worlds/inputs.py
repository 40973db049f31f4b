"""Read what a command was given: the objects, the world they describe, and what of them cannot be read.

`read` is the way of most verbs: gather the objects, complete the clusters, and say on standard error what
an API server would refuse, what the scheduler could not read, and what had to be assumed. The verb goes on
with what can be read; its exit code says that something could not (`options.end`).

Objects are from files, from a control plane, or from files put over a control plane (`gather`). Files alone
are the state of a control plane. With --context or --kubeconfig the control plane is read, and files are
applied over it as `kubectl apply` would, so that an edit can be planned against a live fleet. `Origin` keeps
where objects are from, for messages and for the command lines that are printed. A cluster in a control plane
counts as it publishes itself; only one in a file is completed.

A fault is said once. What a schema has explained is not said again when the parser meets the same field.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import field, replace
from shlex import join
from typing import TYPE_CHECKING

from function import api
from function.api import inputs as inputs_room, replica as replica_api
from function.api.fault import path_of
from function.boundary import PlainDocument, frozen
from function.cli import live
from function.cli.admission import SELECTOR, UNKNOWN_FIELD, UNKNOWN_KIND
from function.cli.bad_input import BadInput, closest, is_lenient
from function.cli.live import ControlPlane, Target
from function.cli.text import NAMED, complain, listed, note, track
from function.cli.worlds.advisories import mistakes_of
from function.cli.worlds.changes import Apply
from function.cli.worlds.derive import folded
from function.cli.worlds.manifest import Issue, Manifest, Manifests, map_at
from function.cli.worlds.manifests import COMPOSED, issues_of, load, take
from function.cli.worlds.world import World, world_of
from function.deployment.forecast import read_cluster

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from function.api.model import Model
    from function.boundary import JsonObject


@frozen
class Source:
    """The input of a command: files, a control plane, and a namespace."""

    files: tuple[str, ...] = ()
    target: Target = field(default_factory=Target)
    namespace: str = ""
    """Only deployments of this namespace are asked about; empty: of all."""

    @property
    def words(self) -> str:
        """The words of a command line that read the same again; many files are only hinted at."""
        files = self.files if len(self.files) <= NAMED else ()
        words = (join(files), *self.target.words, "" if files == self.files else "FILE...")
        return " ".join(filter(None, words))


@frozen
class Origin:
    """Where objects are from."""

    where: str = "the files"
    """For messages."""
    only: str = ""
    """The namespace that is asked about; empty: all of them."""
    namespace: str = ""
    """The namespace of the context: where a name is looked for first that several namespaces have."""
    plane: ControlPlane | None = None
    words: str = ""
    """What a command line would say to read the same again."""
    kubectl: str = "kubectl"
    """How the command lines begin that change what is there."""


def gather(source: Source) -> tuple[Manifests, Origin]:
    """Read the files and the control plane; a file's object is put over the live one. Raises BadInput.

    Files alone, a control plane alone, or the files over it as `kubectl apply` would put them.
    """
    files = load(source.files) if source.files else None
    if files is not None and not (source.target.context or source.target.kubeconfig):
        if not files["InferenceCluster"]:
            note("the files have no InferenceCluster; --context puts them over a control plane's")
        return files, Origin(only=source.namespace, words=source.words)
    plane = ControlPlane(source.target)
    stored = read_fleet(plane)
    words, kubectl = source.words, source.target.kubectl
    origin = Origin(plane.title, source.namespace, plane.namespace, plane, words, kubectl)
    if files is None:
        return stored, origin
    # A config is an input as a whole; one that is given replaces the one of the Composition.
    given = {kind for kind in COMPOSED if files[kind]}
    others = {kind: those for kind, those in stored.by_kind.items() if kind not in given}
    kept = replace(stored, by_kind=others)
    return Apply(files, source.files).apply(kept), replace(origin, where=f"{plane.title} and the files")


def read_fleet(plane: ControlPlane) -> Manifests:
    """Read everything that a decision reads. Raises BadInput.

    Kinds of adapters are read together: without their placements, adapters would seem to have no place.
    """
    manifests = Manifests()
    for resource in track(live.FLEET, "Reading", total=len(live.FLEET)):
        listed = (as_published(plain) for plain in plane.objects(resource))
        manifests.by_kind[resource.kind] = [Manifest(plain, plane.title) for plain in listed]
    try:
        # Both kinds or neither: adapters whose placements are not known would seem to have no place.
        manifests.by_kind |= {
            resource.kind: [Manifest(plain, plane.title) for plain in plane.objects(resource)]
            for resource in live.ADAPTERS
        }
    except BadInput as error:  # Whoever could read a fleet before there were adapters still can.
        note(f"adapters are not read: {error}")
    take(manifests, [Manifest(plain, plane.title) for plain in plane.objects(live.COMPOSITIONS)])
    manifests.issues += issues_of(manifests)
    return manifests


def add_workloads(manifests: Manifests, origin: Origin, namespace: str) -> None:
    """Read what the control plane has below the replicas of a namespace; a note where that is not allowed.

    A role may not allow Objects: the answer then ends at the cluster, and a note says why.
    """
    if origin.plane is None:
        return
    for resource in live.WORKLOADS:
        try:
            objects = origin.plane.objects(resource, namespace)
        except BadInput as error:
            note(f"what runs below the clusters is not shown: {error}")
            return
        titles = {manifest.identity for manifest in manifests[resource.kind]}
        listed = [Manifest(plain, origin.where) for plain in objects]
        manifests.by_kind[resource.kind] = [
            *manifests[resource.kind],
            *(manifest for manifest in listed if manifest.identity not in titles),
        ]


def as_published(plain: JsonObject) -> JsonObject:
    """Take a cluster as it stands: one that publishes nothing has nothing, and is not derived from its spec.

    In a file a missing status says that nobody wrote one; in a control plane it says that there is none yet.
    """
    if plain["kind"] != "InferenceCluster":
        return plain
    status = plain.get("status")
    status = status if isinstance(status, dict) else {}
    return {**plain, "status": {**status, "gpuPools": status.get("gpuPools") or []}}


# Faults in the files: every object that the scheduler could not read, by file, object, field and value.

Place = tuple[str, str]
"""Which object, by its title, and which field of it."""

_MODELS: dict[str, type[Model]] = {
    "ModelDeployment": api.ModelDeployment,
    "InferenceClass": api.InferenceClass,
    "ModelCache": api.ModelCache,
}
_INPUTS: dict[str, type[Model]] = {kind: getattr(inputs_room, kind) for kind in COMPOSED}
"""The parser of an input has the name of its kind."""


def _parsed(manifest: Manifest, model: type[Model], content: object) -> Iterator[tuple[Place, str]]:
    """Yield the faults of one object, as its parser has them."""
    try:
        model.parse(content)
    except api.Malformed as error:
        for fault in error.faults:
            yield (manifest.short_title, fault.path), f"{manifest.title}: {fault}"


def faults_of(manifests: Manifests, world: World) -> Iterator[tuple[Place, str]]:
    """Yield every fault, in the order of kinds and files. The plan goes on without what cannot be read.

    A fault of a pool is said where somebody wrote it, and not where the cluster publishes the pool.
    """
    for kind, model in _MODELS.items():
        for manifest in manifests[kind]:
            yield from _parsed(manifest, model, manifest.content)
    alone = (manifest for kind in _INPUTS for manifest in manifests[kind] if not manifest.holder)
    for manifest in (*alone, *manifests.step_inputs):
        if manifest.kind in _INPUTS:
            yield from _parsed(manifest, _INPUTS[manifest.kind], manifest.content)
    completed = {str(cluster["metadata"]["name"]): cluster for cluster in world.clusters}
    classes = {manifest.name: manifest for manifest in manifests["InferenceClass"]}
    for manifest in manifests["InferenceCluster"]:
        content = completed[manifest.name]
        cluster = world.memo.parsed(PlainDocument(content), read_cluster)
        if isinstance(cluster, api.InferenceCluster):
            faults = _values(manifest, cluster)
        else:
            faults = _parsed(manifest, api.InferenceCluster, content)
        derived = map_at(manifest.content, "status").get("gpuPools") is None
        yield from (_as_written(fault, manifest, classes) for fault in faults) if derived else faults
    for manifest in manifests["ModelReplica"]:
        fault = world.memo.parsed(PlainDocument(manifest.content), replica_api.parse).fault
        if fault:
            text = f"{manifest.title}: {fault}; it is charged for what can be read"
            yield (manifest.short_title, fault.partition(":")[0]), text


def _as_written(
    fault: tuple[Place, str], manifest: Manifest, classes: Mapping[str, Manifest]
) -> tuple[Place, str]:
    """Say a fault of pools that were derived where it is written: in the pool, or in its class.

    Nobody finds `status.gpuPools` in a file that has none.
    """
    (title, path), text = fault
    match = _DERIVED.fullmatch(path)
    if match is None:
        return fault
    message = text.removeprefix(f"{manifest.title}: ").removeprefix(f"{path}: ")
    pool = manifest.spec["nodePools"][int(match["pool"])] if match["pool"] else {}
    holder = classes.get(str(pool.get("className")))
    if match["devices"] and holder is not None and "from" not in holder.spec:
        where = f"spec.{match['devices']}"
        return (holder.short_title, where), f"{holder.title}: {where}: {message}"
    below = match["devices"] or match["rest"]
    where = f"spec.nodePools{match['at']}{'.' if below else ''}{'nodeCount' if below == 'nodes' else below}"
    return (title, where), f"{manifest.title}: {where}: {message}"


_DERIVED = re.compile(
    r"status\.gpuPools(?P<at>(?:\[(?P<pool>\d+)\])?)(?:\.(?:(?P<devices>devices\[.*)|(?P<rest>.*)))?"
)
"""A field of a pool as a cluster publishes it."""


def _values(manifest: Manifest, cluster: api.InferenceCluster) -> Iterator[tuple[Place, str]]:
    """Values that selectors cannot read, though the cluster can be: every selector errs on such a device."""
    for at, pool in enumerate(cluster.pools):
        for number, device in enumerate(pool.devices or ()):
            if device.subject.problem:
                where = f"status.gpuPools[{at}].devices[{number}]"
                yield (manifest.short_title, where), f"{manifest.title}: {where}: {device.subject.problem}"


# Review the files before anything is answered: errors, warnings and notes, equal ones folded.
#
# As for `kubectl apply`, a field that no schema declares is an error, since the API server would drop it.
# An object with a uid is held by a control plane, which admitted it by a schema of its own: about that one,
# all that its schema here does not know is a warning.

SHOWN = 20
"""How many different messages are shown."""

DROPPED = frozenset({UNKNOWN_FIELD, UNKNOWN_KIND})
"""Findings that --lenient makes warnings: what is written is left out, and the rest can be read."""


def level(issue: Issue, unreadable: Collection[tuple[str, str]] = ()) -> str:
    """How loud an issue is said: `error` or `warning`. A field that cannot be read is always an error."""
    if issue.finding.code == SELECTOR or any(place in unreadable for place in issue.places):
        return "error"
    lenient = is_lenient() and issue.finding.code in DROPPED
    return "warning" if issue.manifest.stored or lenient else "error"


def review(manifests: Manifests, unreadable: Collection[tuple[str, str]] = ()) -> tuple[str, ...]:
    """Say on standard error what the API server would. Returns the errors.

    `unreadable` has the fields that the scheduler cannot read either.
    """
    by_level: dict[str, list[Issue]] = defaultdict(list)
    for issue in manifests.issues:
        by_level[level(issue, unreadable)].append(issue)
    errors = tuple(folded_issues(by_level["error"]))
    complain(capped(errors))
    complain(capped(tuple(folded_issues(by_level["warning"]))), "warning")
    if manifests.ignored:
        complain([ignored_note(manifests.ignored)], "note")
    return errors


def folded_issues(issues: Iterable[Issue]) -> Iterable[str]:
    """A line for each different message: the first object in full, the others named or counted.

    A mistake is often made once and copied: a hundred lines of it would hide the others.
    """
    groups: dict[tuple[object, ...], list[Issue]] = defaultdict(list)
    for issue in issues:
        finding = issue.finding
        path = tuple("[]" if isinstance(step, int) else step for step in finding.path)
        key = issue.manifest.kind, path, finding.message, finding.hint
        groups[key].append(issue)
    for those in groups.values():
        first = those[0]
        titles = dict.fromkeys(issue.manifest.short_title for issue in those)
        others = [title for title in titles if title != first.manifest.short_title]
        also = f" (and {listed(others)})" if others else ""
        excerpt = f"\n{first.finding.excerpt}" if first.finding.excerpt else ""
        place = first.manifest.place(first.finding.path)
        yield f"{place}: {first.manifest.short_title}: {first.finding}{also}{excerpt}"


def capped(lines: Sequence[str]) -> Iterable[str]:
    """The first lines, and how many there are besides."""
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"{len(lines) - SHOWN} more like these: fleet-scheduler lint FILE... lists all"


def ignored_note(kinds: Mapping[str, int]) -> str:
    """Return a note about the kinds of objects that are not read."""
    total = sum(kinds.values())
    parts = listed([f"{count} {kind}" for kind, count in sorted(kinds.items())])
    noun = "object of a kind that is" if total == 1 else "objects of kinds that are"
    return f"ignored {total} {noun} not read: {parts}"


@frozen
class Inputs:
    """The objects, the world they describe, and what in them cannot be read."""

    manifests: Manifests
    world: World
    faults: tuple[str, ...]
    origin: Origin = field(default_factory=Origin)

    def titles(self, names: Iterable[str]) -> list[str]:
        """`namespace/name` of deployments, given so or by a name that only one has. Raises BadInput.

        Without names: those of the namespace that was asked about, and none where none was.
        """
        all_titles = [f"{manifest.namespace}/{manifest.name}" for manifest in self.world.deployments]
        if not self.origin.only:
            return [title_of(name, all_titles, self.origin) for name in names]
        inside = [title for title in all_titles if title.startswith(f"{self.origin.only}/")]
        if not inside:
            namespaces = {title.partition("/")[0] for title in all_titles}
            where = f'no ModelDeployment in namespace "{self.origin.only}" of {self.origin.where}'
            raise BadInput(f"{where}; {closest(self.origin.only, namespaces)}")
        return [title_of(name, inside, self.origin) for name in names] or inside


def title_of(name: str, titles: list[str], origin: Origin, kind: str = "ModelDeployment") -> str:
    """`namespace/name` of the deployment, or another kind, that a name means. Raises BadInput."""
    if not titles:
        raise BadInput(f"there is no {kind} in {origin.where}")
    matching = [title for title in titles if name in (title, title.partition("/")[2])]
    if not matching:
        like = titles if "/" in name else {title.partition("/")[2] for title in titles}
        raise BadInput(f'no {kind} "{name}" in {origin.where}; {closest(name, like)}')
    if len(matching) > 1 and f"{origin.namespace}/{name}" in matching:
        return f"{origin.namespace}/{name}"
    if len(matching) > 1:
        raise BadInput(f'"{name}" is ambiguous: {", ".join(matching)}')
    return matching[0]


DEPLOYMENTS = ("ModelDeployment",)
FLEET = (*DEPLOYMENTS, "InferenceCluster")
"""What a command needs at least one of: most ask about deployments, some about a fleet that may have none."""


def read(source: Source, needs: Sequence[str] = DEPLOYMENTS) -> Inputs:
    """Read what was given, and say on standard error what of it cannot be read. Raises BadInput."""
    manifests, origin = gather(source)
    return taken(manifests, origin, needs=needs)


def read_manifests(files: Iterable[str], live: Target | None = None) -> tuple[Manifests, tuple[str, ...]]:
    """Read files, or a control plane, and say what is wrong. Returns it too. Raises BadInput."""
    manifests = load(files) if live is None else read_fleet(ControlPlane(live))
    return manifests, review(manifests)


def taken(
    manifests: Manifests,
    origin: Origin | None = None,
    *,
    quietly: bool = False,
    needs: Sequence[str] = DEPLOYMENTS,
) -> Inputs:
    """Take manifests as the state of a control plane. Raises BadInput.

    `quietly` says nothing and looks for no faults: the objects were reviewed before. `needs` names kinds of
    which one must be there, so that a wrong file is no empty fleet.

    Raises:
        BadInput: where none is there, or a cluster cannot be completed.
    """
    origin = origin or Origin()
    try:
        if not any(manifests[kind] for kind in needs):
            raise BadInput(f"there is no ModelDeployment in {origin.where}")  # noqa: TRY301 - as the others
        world = world_of(manifests)
    except BadInput:
        if not quietly:  # What is wrong with the objects may be why.
            review(manifests)
        raise
    if quietly:
        return Inputs(manifests, world, (), origin)
    faults = {**world.faults, **dict(faults_of(manifests, world))}
    errors = review(manifests, faults)
    explained = {place for issue in manifests.issues for place in issue.places}
    others = tuple(text for place, text in faults.items() if place not in explained)
    pods = tuple(
        f"{manifest.place(path)}: {manifest.short_title}: {path_of(path)}: {message}"
        for manifest in manifests["ModelDeployment"]
        if not manifest.stored  # Of one that a control plane holds, the conditions say it.
        for path, _, message in mistakes_of(manifest)
    )
    complain(capped((*others, *pods)))
    complain(folded(world.assumptions), "note")
    return Inputs(manifests, world, (*errors, *others, *pods), origin)

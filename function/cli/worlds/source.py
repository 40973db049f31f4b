"""Read the objects of a command: from files, from a control plane, or from files put over a control plane.

Files alone are the state of a control plane. With --context or --kubeconfig the control plane is read, and
files are applied over it as `kubectl apply` would, so that an edit can be planned against a live fleet.
`Origin` keeps where objects are from, for messages and for the command lines that are printed.

A cluster in a control plane counts as it publishes itself; only one in a file is completed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from shlex import join
from typing import TYPE_CHECKING

from function.cli.bad_input import BadInput
from function.cli.live import ADAPTERS, COMPOSITIONS, FLEET, WORKLOADS, ControlPlane, Target
from function.cli.text import NAMED, note, track
from function.cli.worlds.changes import Apply
from function.cli.worlds.manifest import Manifest, Manifests
from function.cli.worlds.manifests import CONFIGS, issues_of, load, take

if TYPE_CHECKING:
    from function.boundary import JsonObject


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
    """Read the files and the control plane; a file's object is put over the live one. Raises BadInput."""
    files = load(source.files) if source.files else None
    if files is not None and not (source.target.context or source.target.kubeconfig):
        if not files["InferenceCluster"]:
            note("the files have no InferenceCluster; --context puts them over a control plane's")
        return files, Origin(only=source.namespace, words=source.words)
    plane = ControlPlane(source.target)
    live = read_fleet(plane)
    words, kubectl = source.words, source.target.kubectl
    origin = Origin(plane.title, source.namespace, plane.namespace, plane, words, kubectl)
    if files is None:
        return live, origin
    # A config is an input as a whole; one that is given replaces the one of the Composition.
    given = {kind for kind in CONFIGS if files[kind]}
    kept = replace(live, by_kind={kind: those for kind, those in live.by_kind.items() if kind not in given})
    return Apply(files, source.files).apply(kept), replace(origin, where=f"{plane.title} and the files")


def read_fleet(plane: ControlPlane) -> Manifests:
    """Read everything that a decision reads. Raises BadInput."""
    manifests = Manifests()
    for resource in track(FLEET, "Reading", total=len(FLEET)):
        listed = (as_published(plain) for plain in plane.objects(resource))
        manifests.by_kind[resource.kind] = [Manifest(plain, plane.title) for plain in listed]
    try:
        # Both kinds or neither: adapters whose placements are not known would seem to have no place.
        manifests.by_kind |= {
            resource.kind: [Manifest(plain, plane.title) for plain in plane.objects(resource)]
            for resource in ADAPTERS
        }
    except BadInput as error:  # Whoever could read a fleet before there were adapters still can.
        note(f"adapters are not read: {error}")
    take(manifests, [Manifest(plain, plane.title) for plain in plane.objects(COMPOSITIONS)])
    manifests.issues += issues_of(manifests)
    return manifests


def add_workloads(manifests: Manifests, origin: Origin, namespace: str) -> None:
    """Read what the control plane has below the replicas of a namespace; a note where that is not allowed."""
    if origin.plane is None:
        return
    for resource in WORKLOADS:
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

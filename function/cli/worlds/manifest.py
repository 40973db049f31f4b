"""A manifest: one object and where it is written; and the manifests of a command, by kind.

Contents are plain values as the parser returns them. They are never changed in place: an edit makes a
deep copy and a new manifest (`worlds.changes.edited`), because what was parsed is remembered by identity.
Its head is read leniently, since a manifest exists whether or not its fields have the right types.

Lines are looked up only for a message. Parsing with positions takes several times as long, so the text is
parsed again for the one object that has something to be said about it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from function.boundary import frozen

if TYPE_CHECKING:
    from function.cli.admission import FieldPath, FieldPath as Steps, Finding


# Positions: where an object stands in the files, and the line of a field of it.
#
# Lines are looked for when there is something to say about one: the file is parsed again, into nodes that
# know where they are.

LARGEST = 4_000_000
"""Characters of a file above which no lines are looked for: such a file is a dump that nobody edits."""


@frozen
class Position:
    """One object of a file."""

    file: str
    text: str = field(repr=False)
    document: int
    items: tuple[int, ...] = ()
    """Indexes through the lists that it is an item of."""
    below: FieldPath = ()
    """Keys and indexes down to it, where it is a part of an object."""

    def locate(self, path: FieldPath) -> tuple[int, int] | None:
        """Return line and column, from 1, of a field or of the nearest above it that is written."""
        if len(self.text) > LARGEST:
            return None
        from function.cli.worlds.yaml_loader import mark_of  # noqa: PLC0415 - only for a message

        whole = tuple(step for item in self.items for step in ("items", item))
        mark = mark_of(self.text, self.document, (*whole, *self.below, *path))
        return (mark.line + 1, mark.column + 1) if mark else None


SNAPSHOT = "fleet-scheduler.modelplane.ai/snapshot"
"""The annotation of an object that `snapshot` cut down: what it lacks, it may have had."""


def map_at(content: object, *path: str) -> dict[str, Any]:
    """Return the map at a path, empty where there is none; `api.model`, with the same, imports slowly."""
    for key in path:
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}


def _text(value: object) -> str:
    """Return a name as text; empty where there is none, or one number of more digits than Python writes."""
    try:
        return str(value or "")
    except ValueError:
        return ""


class Manifest:
    """One object and the file it came from."""

    __slots__ = (
        *("content", "file", "position", "holder", "kind", "metadata", "spec"),
        *("name", "namespace", "identity", "key", "short_title", "title", "replica_template", "stored"),
    )

    def __init__(
        self, content: dict[str, Any], file: str, position: Position | None = None, holder: str = ""
    ) -> None:
        """Read its head, leniently. `holder`: the object that it is a part of, and which part."""
        self.content, self.file, self.position = content, file, position
        self.kind, self.holder = str(content.get("kind")), holder
        self.metadata, self.spec = map_at(content, "metadata"), map_at(content, "spec")
        """Empty where there are none to read."""
        self.name, self.namespace = (_text(self.metadata.get(key)) for key in ("name", "namespace"))
        self.identity = self.namespace, self.name
        self.key = self.kind, *self.identity
        """What makes two manifests the same object."""
        title = f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}".rstrip()
        self.short_title = f"{title} of {holder}" if holder else title
        """`InferenceCluster use1`."""
        self.title = f"{file}: {self.short_title}"
        self.replica_template = map_at(self.spec, "template", "spec")
        """The spec that a deployment has for each of its replicas; empty when there is none to read."""
        self.stored = bool(self.metadata.get("uid") or self.metadata.get("resourceVersion"))
        """Whether a control plane holds it: one that was given a uid was admitted already."""

    def part(self, path: Steps, content: dict[str, Any], title: str) -> Manifest:
        """Return a part of it that is an object itself, such as the input of a step."""
        position = replace(self.position, below=path) if self.position is not None else None
        return Manifest(content, self.file, position, f"{self.short_title}, {title}")

    def line(self, path: Steps = ()) -> int | None:
        """The line of a field, or of the whole; None where it cannot be found."""
        place = self.position.locate(path) if self.position is not None else None
        return place[0] if place else None

    def place(self, path: Steps = ()) -> str:
        """`fleet.yaml:12`, or only the file."""
        line = self.line(path)
        return f"{self.file}:{line}" if line else self.file


@frozen
class Issue:
    """A fault of one object, as its schema has it."""

    manifest: Manifest
    finding: Finding

    @property
    def places(self) -> set[tuple[str, str]]:
        """Which object, by its title, and which fields of it are explained."""
        return {(self.manifest.short_title, field) for field in self.finding.fields}


@frozen
class Contradiction:
    """An object that another file, or the same one further up, has with other content."""

    manifest: Manifest
    earlier: Manifest
    """The one that was read first."""

    @property
    def message(self) -> str:
        """The fault, and the remedy."""
        return f"stands in {self.earlier.place()} too, with other content: keep one of the two"


@dataclass(slots=True)
class Manifests:
    """Everything the files hold, by kind."""

    by_kind: dict[str, list[Manifest]] = field(default_factory=lambda: defaultdict(list))
    ignored: Counter[str] = field(default_factory=Counter)
    """How many objects were of kinds that scheduling does not read, by kind and group."""
    unread: list[Manifest] = field(default_factory=list)
    """Those objects."""
    step_inputs: list[Manifest] = field(default_factory=list)
    """The inputs of our steps in Compositions, whether or not they count."""
    issues: list[Issue] = field(default_factory=list)
    """Faults that the API server would report."""
    contradictions: list[Contradiction] = field(default_factory=list)
    """Objects that were left out, because they were read before with other content."""

    def __getitem__(self, kind: str) -> list[Manifest]:
        return self.by_kind.get(kind, [])

    def having(self, kind: str, those: list[Manifest]) -> Manifests:
        """Return the manifests with those of one kind replaced."""
        return replace(self, by_kind={**self.by_kind, kind: those})

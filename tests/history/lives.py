"""A recording as lives: every object from its first version to its end, in the order of the API server.

The resourceVersions of one etcd are comparable between kinds, so they say in which order things happened
however late a watch was. Seconds are those of the recorder, made to agree with that order.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Plain = dict[str, Any]
LOST = "LOST"
"""The type of an event that says only that an object was gone when its kind was listed again."""
FOREGROUND = "foregroundDeletion"
"""The finalizer that Crossplane's deletions have, and those of kubectl and the garbage collector lack."""


@dataclass(frozen=True)
class Version:
    """An object as it stood from one moment to the next version."""

    turn: int
    """The place of its event among all events."""
    at: float
    plain: Plain


@dataclass
class Life:
    """One object, known by its uid."""

    kind: str
    versions: list[Version] = field(default_factory=list)
    removed: Version | None = None
    """The first version that is being deleted, or that of its end."""
    ended: Version | None = None
    unseen: bool = False
    """Its end fell between two lists: nothing says when it was, or by whom."""

    @property
    def last(self) -> Plain:
        """The object as it stood before it was removed, or stands."""
        return self.versions[-1].plain if self.removed is None else self.before(self.removed.turn)

    @property
    def name(self) -> str:
        """`namespace/name`, or the name."""
        metadata = self.versions[0].plain["metadata"]
        return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))

    @property
    def began(self) -> Version:
        """Its first version."""
        return self.versions[0]

    @property
    def owner(self) -> str:
        """The uid of its controller, "" for none."""
        references = self.versions[-1].plain["metadata"].get("ownerReferences") or []
        return next((reference["uid"] for reference in references if reference.get("controller")), "")

    def before(self, turn: int) -> Plain:
        """Return the object as it stood before an event; its first version if there was none."""
        earlier = [version.plain for version in self.versions if version.turn < turn]
        return earlier[-1] if earlier else self.versions[0].plain

    def during(self, start: float, end: float) -> Iterator[Plain]:
        """Yield the object as it stood at any moment between two."""
        for at, version in enumerate(self.versions):
            until = self.versions[at + 1].at if at + 1 < len(self.versions) else end
            if version.at <= end and until >= start:
                yield version.plain

    def stands(self, turn: int) -> bool:
        """Whether it is there at an event, and nobody has deleted it."""
        return self.began.turn <= turn and (self.removed is None or self.removed.turn > turn)

    def exists(self, turn: int) -> bool:
        """Whether it is there at an event, perhaps on its way out."""
        return self.began.turn <= turn and (self.ended is None or self.ended.turn > turn)

    @property
    def by_crossplane(self) -> bool:
        """Whether it was deleted as Crossplane deletes: in the foreground."""
        if self.removed is None:
            return False
        finalizers = self.removed.plain["metadata"].get("finalizers") or []
        return FOREGROUND in finalizers


@dataclass
class History:
    """All lives of a recording."""

    lives: dict[str, Life] = field(default_factory=dict)
    listed: dict[str, float] = field(default_factory=dict)
    """Since when a kind is followed."""
    until: float = 0.0
    events: int = 0
    closed: bool = False
    order: list[tuple[Life, Version]] = field(default_factory=list)

    def of(self, kind: str) -> list[Life]:
        """Every life of a kind, in the order in which they began."""
        return [life for life in self.lives.values() if life.kind == kind]

    def owned(self, owner: str, kind: str) -> list[Life]:
        """Every life of a kind that has a controller."""
        return [life for life in self.of(kind) if life.owner == owner]


def read(path: Path) -> History:
    """Read a recording. A last line that is cut off is left out."""
    lines = path.read_text().splitlines()
    rows = []
    for at, line in enumerate(lines):
        try:
            rows.append(json.loads(line))
        except ValueError:
            if at + 1 < len(lines):
                raise
    return ordered(rows)


def ordered(rows: Iterable[Plain]) -> History:
    """Put the lines of a recording in order."""
    history = History()
    events: list[tuple[int, float, str, str, Plain]] = []
    present: dict[str, dict[str, Plain]] = defaultdict(dict)
    for row in rows:
        at, event = float(row["at"]), row["type"]
        history.until = max(history.until, at)
        if event == "END":
            history.closed = True
        elif event == "LISTED":
            kind = row["kind"]
            history.listed.setdefault(kind, at)
            fresh = {plain["metadata"]["uid"]: plain for plain in row["objects"]}
            for uid, plain in present[kind].items():
                if uid not in fresh:
                    events.append((int(row["version"]), at, kind, LOST, plain))
            for uid, plain in fresh.items():
                if _version(present[kind].get(uid)) < _version(plain):
                    events.append((_version(plain), at, kind, "LISTED", plain))
            present[kind] = fresh
        else:
            kind, plain = row["kind"], row["object"]
            events.append((_version(plain), at, kind, event, plain))
            if event == "DELETED":
                present[kind].pop(plain["metadata"]["uid"], None)
            else:
                present[kind][plain["metadata"]["uid"]] = plain
    now = 0.0
    for turn, (_, at, kind, event, plain) in enumerate(sorted(events, key=lambda row: row[0])):
        now = now if event == "LISTED" else max(now, at)  # It may have stood so for long.
        version = Version(turn, now, plain)
        life = history.lives.setdefault(plain["metadata"]["uid"], Life(kind))
        _add(life, event, version)
        history.order.append((life, version))
    history.events = len(events)
    return history


def _version(plain: Plain | None) -> int:
    return int(plain["metadata"]["resourceVersion"]) if plain else -1


def _add(life: Life, event: str, version: Version) -> None:
    """Add a version to a life. What LOST has is what was last seen, and no new version."""
    if event != LOST or not life.versions:
        life.versions.append(version)
    if life.removed is None and (event in ("DELETED", LOST) or _leaving(version.plain)):
        life.removed = version
        life.unseen = event == LOST
    if event in ("DELETED", LOST):
        life.ended = version


def _leaving(plain: Plain) -> bool:
    return "deletionTimestamp" in plain["metadata"]

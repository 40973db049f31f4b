"""Days that two releases of the function answer: side by side, one after the other, or taken back.

The earlier release is one that `tests/upgrade` has a corpus of. Compositions are its own until the Function
is upgraded everywhere: the Function goes first, and on the way back last.

Crossplane calls all pods of a Function in turns (gRPC's `round_robin`), so each call of a reconcile may reach
another release. Where the two state different requirements, such a reconcile may not settle: it fails, and is
tried again.

A day ends as every other one does. Then nobody does anything, and the fleet goes from one release to both, to
the other one and back. Nothing is created or deleted, and nothing is written but status; on the way back, the
earlier release may put some of it into a form of its own (`PICKER`, `NOTES`), which is then left as it is.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from function.objects import NOTE
from tests.history.judge import WAS_READY
from tests.simulate.sights import is_said
from tests.simulate.swarm import SIZES, WINDOW
from tests.simulate.whole import WholeDay
from tests.support.crossplane import Away, Name, Unsettled, name_of, shipped
from tests.support.releases import THIS, Release
from tests.upgrade import recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.drive import Answer
    from tests.support.releases import Copy

Plain = dict[str, Any]

RELEASES = (*recorded.releases(), "b6edda20")
"""The recorded ones, and a commit of between that has adapters, priority classes and quotas."""
STILL = frozenset(range(max(size.events for size in SIZES)))
"""Left out of a day, these leave one on which nothing happens."""
COPIES = 2
"""Of each release."""
NEVER = float("inf")
HANDED = 240.0
"""Seconds until the fleet is handed on."""
PICKER, NOTES = "-epp", (NOTE, WAS_READY)
"""A part of the names of a picker's Objects, and annotations: where this release made them, the earlier one
writes them in the form that it knows."""


class Course(NamedTuple):
    """How a day goes from release to release: what answers is this one, the earlier one, or both."""

    first: str
    then: str
    """What answers from some moment on."""
    restored: bool = False
    """Whether etcd is restored after that moment."""
    last: str = "this"
    """What answers once everything is calm."""

    @property
    def handed(self) -> tuple[str, ...]:
        """To whom the fleet is handed while it stands still."""
        return ("both", "this") if self.last == "earlier" else ("both", "earlier", "both", "this")


COURSES = {
    "taken back": Course("earlier", "this", last="earlier"),
    "upgraded": Course("earlier", "this"),
    "side by side": Course("both", "both"),
    "upgraded and restored": Course("earlier", "this", restored=True),
}


@dataclass
class TwoReleases(WholeDay):
    """A day that two releases answer."""

    before: Release = THIS
    """The earlier release."""
    course: Course = COURSES["upgraded"]
    asked: Release = THIS
    """The release that was asked last."""
    alone: float = NEVER
    """Since when this release answers alone."""
    answering: list[tuple[list[Copy], dict[bytes, bytes], Release]] = field(default_factory=list)
    """Copies of each release that answers, and what they answered."""
    forms: dict[Name, Plain] | None = None
    """What stands without its status, while nothing of that may change."""
    spared: tuple[str, ...] = ()
    """Annotations that may change meanwhile, and pickers with them."""
    changed: Counter[Name] = field(default_factory=Counter)
    """How often something did."""

    def __post_init__(self) -> None:
        """Begin with what the course begins with."""
        super().__post_init__()
        turns = self.turns = random.Random(f"turns {self.seed}")
        self.in_turns = turns.random() < 0.5
        """Whether the calls of a reconcile go to the two in turns, as where no others are under way."""
        self.let_answer(self.course.first)
        self.compose(self.before)
        self.plane.after(turns.uniform(60.0, 60.0 + 40.0 * self.size.events), self.turn)

    def let_answer(self, which: str) -> None:
        """Let one release answer from now on, or both: copies start."""
        releases = {"this": (THIS,), "earlier": (self.before,), "both": (self.before, THIS)}[which]
        self.answering = [([release.started() for _ in range(COPIES)], {}, release) for release in releases]
        self.order = cycle(range(len(releases)))
        self.alone = min(self.alone, self.plane.now) if releases == (THIS,) else NEVER
        self.plane.failures = (Away, Unsettled) if which == "both" else (Away,)

    def compose(self, release: Release) -> None:
        """Let the Compositions of a release be there, of the kinds that it has."""
        kinds = [kind for kind in self.OURS if (release.tree / "apis" / f"{kind.lower()}s").exists()]
        self.plane.pipelines = shipped(kinds, self.ask, self.inputs(), release.tree)

    def turn(self) -> None:
        """Hand the day on, unless it is over."""
        if not self.is_calm:
            self.let_answer(self.course.then)
        if self.course.restored:
            self.restore()

    def ask(self, content: bytes) -> bytes:
        """Ask a copy of one of the releases that answer now."""
        number = next(self.order) if self.in_turns else self.turns.randrange(len(self.answering))
        self.copies, self.answers, self.asked = self.answering[number]
        return super().ask(content)

    def started(self) -> Copy:
        """Return a copy of the release that was asked last."""
        return self.asked.started()

    def forget(self) -> None:
        """Start every copy of each release anew."""
        for copies, answers, release in self.answering:
            copies[:] = [release.started() for _ in copies]
            answers.clear()

    def hear(self, name: Name, answer: Answer) -> None:
        """Take the earlier release at its word, also in answers that are on their way: so does this one.

        It takes over that a replica runs an edit, and that release says so of a gang too early.
        """
        if name.kind == "ModelReplica" and self.plane.now < self.alone + WINDOW:
            self.sights.ran |= {is_said(self.plane.composites[name], answer)} - {None}
        super().hear(name, answer)

    def complain(self, words: str) -> None:
        """Complain of this release alone: what the earlier one did wrong may be why there is a later one."""
        if self.alone < NEVER:
            super().complain(words)

    def calm(self) -> None:
        """Let one release be left."""
        super().calm()
        self.let_answer(self.course.last)

    def live(self) -> TwoReleases:
        """Live through the day, then hand the fleet on. Raises BrokenPromise."""
        super().live()
        for number, which in enumerate(self.course.handed):
            self.let_answer(which)
            self.stand_still(f"{which} answers", NOTES if self.course.last == "this" and number < 2 else ())
        self.compose(THIS)
        self.stand_still("its Compositions are new")
        return self

    def stand_still(self, when: str, spared: tuple[str, ...] = ()) -> None:
        """Let Crossplane look at everything again, and see what is written. Raises BrokenPromise."""
        self.spared = spared
        self.forms = {name: self.form(plain) for name, plain in self.plane.objects.items()}
        self.plane.forget_counts()
        self.plane.restart()
        self.plane.run(HANDED)
        self.forms = None
        opened = self.plane.counted("opened")
        changes = [f"{'/'.join(name)} changes {times} times" for name, times in sorted(self.changed.items())]
        changes += [f"breakers open: {opened}"] * bool(opened)
        self._hold([f"{change} at rest while {when}" for change in changes] + self.complaints)

    def record(self, event: str, plain: Plain) -> None:
        """Count what is no status and changes while nothing may."""
        super().record(event, plain)
        if self.forms is None or (self.spared and PICKER in plain["metadata"]["name"]):
            return
        name, form = name_of(plain), {} if event == "DELETED" else self.form(plain)
        self.changed[name] += self.forms.get(name, {}) != form
        self.changed += Counter()  # Without those that did not.
        self.forms[name] = form

    def form(self, plain: Plain) -> Plain:
        """Return an object without its status, what Crossplane touched in passing, and what is spared."""
        metadata = plain["metadata"]
        noted = {**metadata.get("annotations", {}), "touched": "", **dict.fromkeys(self.spared)}
        return {
            **{key: metadata.get(key, {}) for key in ("uid", "deletionTimestamp", "labels")},
            "annotations": noted,
            "spec": plain.get("spec", {}),
        }


class Lesser(TwoReleases):
    """A day of what every release knows: no adapters, and no classes."""

    RANKED: ClassVar[float] = 0.0
    ROOMY: ClassVar[float] = 0.0


def day(before: Release, seed: int, course: str, left_out: frozenset[int] = frozenset()) -> TwoReleases:
    """Return a day of all that the earlier release knows."""
    kind = TwoReleases if (before.tree / "apis" / "modeladapters").exists() else Lesser
    return kind(seed, left_out, happened=[course], before=before, course=COURSES[course])


def drawn(
    seed: int, left_out: frozenset[int] = frozenset(), *, release: Callable[[str], Release]
) -> TwoReleases:
    """Return the day of a seed: each of `RELEASES` has every course in turn."""
    turn, which = divmod(seed, len(RELEASES))
    made = day(release(RELEASES[which]), seed, [*COURSES][turn % len(COURSES)], left_out)
    made.happened.append(f"with {RELEASES[which]}")
    return made

"""Review the files before anything is answered: errors, warnings and notes, equal ones folded.

As for `kubectl apply`, a field that no schema declares is an error, since the API server would drop it. An
object with a uid is held by a control plane, which admitted it by a schema of its own: about that one, all
that its schema here does not know is a warning.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from function.cli.admission.finding import SELECTOR, UNKNOWN_FIELD, UNKNOWN_KIND
from function.cli.strictness import is_lenient
from function.cli.text import complain, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from function.cli.worlds.manifest import Issue, Manifests

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
    errors = tuple(folded(by_level["error"]))
    complain(capped(errors))
    complain(capped(tuple(folded(by_level["warning"]))), "warning")
    if manifests.ignored:
        complain([ignored_note(manifests.ignored)], "note")
    return errors


def folded(issues: Iterable[Issue]) -> Iterable[str]:
    """A line for each different message: the first object in full, the others named or counted."""
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


def capped(lines: tuple[str, ...]) -> Iterable[str]:
    """The first lines, and how many there are besides."""
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield f"{len(lines) - SHOWN} more like these: fleet-scheduler lint FILE... lists all"


def ignored_note(kinds: Mapping[str, int]) -> str:
    """What to say about objects that are not read, by kind."""
    total = sum(kinds.values())
    parts = listed([f"{count} {kind}" for kind, count in sorted(kinds.items())])
    noun = "object of a kind that is" if total == 1 else "objects of kinds that are"
    return f"ignored {total} {noun} not read: {parts}"

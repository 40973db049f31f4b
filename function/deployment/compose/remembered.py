"""Replicas remembered with their deployment: what is made of the same again is not made, nor written, again.

A settled deployment, which is what most calls are about, composes nothing anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from function.deployment.compose.size import largest

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.api import ModelDeployment
    from function.boundary import Desired

T = TypeVar("T", bound="Desired | None")

REMEMBERED = 512 * 1024
"""Bytes of replicas, about, that a deployment remembers from answer to answer."""


class MadeOf(NamedTuple):
    """What a desired replica was made of, besides its deployment."""

    things: tuple[object, ...]
    """Values that never change, compared by identity: kept here, so that no other takes their place."""
    facts: tuple[object, ...]
    """The rest, compared by content."""

    def same(self, other: MadeOf) -> bool:
        """Whether both make the same replica. A thing that is equal and not the same counts as another."""
        return (
            self.facts == other.facts
            and len(self.things) == len(other.things)
            and all(mine is theirs for mine, theirs in zip(self.things, other.things, strict=True))
        )


class _Earlier(NamedTuple):
    """What was desired, and what it was made of."""

    made_of: MadeOf
    desired: Desired


class _Replicas:
    """What was desired for earlier answers about one deployment, by key."""

    def __init__(self) -> None:
        self.by_key: dict[str, _Earlier] = {}


def remembered(deployment: ModelDeployment, key: str, made_of: MadeOf, make: Callable[[], T]) -> Desired | T:
    """Return what was desired under a key for an earlier answer if it is made of the same, or make it."""
    earlier = deployment.cache_of(_Replicas).by_key
    entry = earlier.get(key)
    if entry is not None and entry.made_of.same(made_of):
        return entry.desired
    made = make()
    if made is not None and (entry is not None or len(earlier) < REMEMBERED // largest(deployment)):
        earlier[key] = _Earlier(made_of, made)
    return made

"""An upgrade changes nothing that runs, whenever it happens, and while two releases answer in turns."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.simulate.swarm import broken
from tests.simulate.versions import COURSES, day
from tests.support import scale
from tests.support.releases import earlier
from tests.upgrade import recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.releases import Release

RELEASES = (*recorded.releases(), "b6edda20")
"""The recorded ones, and a commit of between that has adapters, priority classes and quotas."""


@pytest.fixture(scope="module")
def release() -> Iterator[Callable[[str], Release]]:
    """Return what unpacks a release, once."""
    with ExitStack() as stack:

        @cache
        def unpacked(commit: str) -> Release:
            try:
                return stack.enter_context(earlier(commit))
            except LookupError as error:
                pytest.skip(f"git fetch --unshallow brings the earlier release: {error}")

        yield unpacked


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_days_of_two_releases_keep_the_promises(number: int, release: Callable[[str], Release]) -> None:
    for seed in scale.batch(number, quick=1, gate=64, soak=1_600):
        turn, which = divmod(seed, len(RELEASES))
        course = [*COURSES][turn % len(COURSES)]
        if complaint := broken(day(release(RELEASES[which]), seed, course)):
            pytest.fail(f"{course} from {RELEASES[which]}: {complaint}", pytrace=False)


@pytest.mark.parametrize(
    ("changed", "now", "words", "reason"),
    [
        ("function.replica.picker.IMAGE", "next", "-epp changes", "a default in a template"),
        ("function.api.replica.WAS_READY_OF_OLD", "yes", "/model-0-", "a note that is not read"),
    ],
)
def test_what_a_release_may_not_change_is_noticed(
    changed: str, now: str, words: str, reason: str, release: Callable[[str], Release]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed, now)
        assert words in broken(day(release(RELEASES[-1]), 5, "taken back", still=True)), reason


def test_a_release_that_is_not_in_the_clone_is_named() -> None:
    with pytest.raises(LookupError, match="a-release"), earlier("a-release"):
        pass

"""An upgrade changes nothing that runs, whenever it happens, and while two releases answer in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulate.swarm import broken
from tests.simulate.versions import RELEASES, STILL, day, drawn
from tests.support import scale
from tests.support.releases import earlier, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.releases import Release


@pytest.fixture(scope="module")
def release() -> Iterator[Callable[[str], Release]]:
    """Return what unpacks a release, once."""
    with unpacked() as release:

        def found_or_skipped(commit: str) -> Release:
            try:
                return release(commit)
            except LookupError as error:
                pytest.skip(f"git fetch --unshallow brings the earlier release: {error}")

        yield found_or_skipped


@pytest.mark.parametrize("number", range(scale.BATCHES))
def test_days_of_two_releases_keep_the_promises(number: int, release: Callable[[str], Release]) -> None:
    for seed in scale.batch(number, quick=1, gate=64, soak=1_600):
        if complaint := broken(drawn(seed, release=release)):
            pytest.fail(complaint, pytrace=False)


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
        assert words in broken(day(release(RELEASES[-1]), 5, "taken back", STILL)), reason


def test_a_release_that_is_not_in_the_clone_is_named() -> None:
    with pytest.raises(LookupError, match="a-release"), earlier("a-release"):
        pass

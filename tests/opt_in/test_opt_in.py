"""With no opt-in field set there are none: the answers are those recorded in the corpus."""

from __future__ import annotations

import pytest

from tests.opt_in import corpus

PARTS = 8


@pytest.mark.parametrize("number", range(PARTS))
def test_answers_are_those_recorded(number: int) -> None:
    """If answers were changed on purpose, record them again: see `corpus`."""
    for seed, expected in list(corpus.recorded().items())[number::PARTS]:
        request, decided, said = corpus.line(seed)
        assert request == expected[0], f"seed {seed}: the generator of requests changed: record again"
        assert decided == expected[1], f"seed {seed}: another decision"
        assert said == expected[2], f"seed {seed}: the same decision in other words"


def test_the_corpus_is_large_and_varied() -> None:
    recorded = corpus.recorded()
    assert len(recorded) >= 500
    assert len({decided for _, decided, _ in recorded.values()}) > 500

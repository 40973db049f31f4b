"""The kept corpus of the coverage-guided fuzzer, looked at again without the fuzzer: what it once reached
stays answered as promised. `make fuzz` looks further.
"""

from __future__ import annotations

import base64
import importlib

import pytest

from tests.fuzz.guided import corpus
from tests.support.scale import BATCHES

FEWEST = 50
"""A corpus that is gone looks at nothing."""


@pytest.mark.parametrize("number", range(BATCHES))
@pytest.mark.parametrize("target", corpus.TARGETS)
def test_every_kept_input_keeps_the_promises(target: str, number: int) -> None:
    one = importlib.import_module(f"tests.fuzz.guided.{target}").one
    for content in corpus.read(target)[number::BATCHES]:
        try:
            one(content)
        except Exception as error:  # noqa: BLE001 - whatever it is, its input is to be shown
            text = base64.b64encode(content).decode()
            again = f"python -m tests.fuzz.guided {target} --input '{text}'"
            pytest.fail(f"{error!r}\nTo see it again: {again}", pytrace=False)


@pytest.mark.parametrize("target", corpus.TARGETS)
def test_the_corpus_is_kept_and_small(target: str) -> None:
    kept = corpus.read(target)
    assert len(kept) >= FEWEST
    assert len(set(kept)) == len(kept)
    assert corpus.path(target).stat().st_size < 150_000

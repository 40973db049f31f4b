"""The invariant: whatever the text, compiling ends in a selector or in a CompileError that points into the
text, and evaluating ends in match, nomatch, error or cost; nothing else, and within the limit of work.
"""

import os
import random

from function.cel import compile_device
from tests.cel.hostile import case, settle
from tests.support.scale import count

CASES = int(os.environ.get("FUZZ_CASES") or count(300, 20_000, 200_000))
SEED = int(os.environ.get("FUZZ_SEED", "1"))


def test_whatever_the_text_it_ends_in_an_outcome() -> None:
    pick = random.Random(SEED)
    seen = {settle(case(pick)) for _ in range(CASES)}
    assert {"compile", "match", "nomatch", "error"} <= seen, "the generator no longer reaches every outcome"


def test_the_same_text_compiles_once() -> None:
    assert compile_device("device.driver == 'a'") is compile_device("device.driver == 'a'")

"""The recorded pairs of ModelReplica: ours, and those of the folder that MODELPLANE_CHAIN names."""

from __future__ import annotations

import os
from pathlib import Path

from tests.chain.pair import load

HERE = Path(__file__).parent
FILES = [HERE / "pairs" / "model-replica.jsonl"]
if "MODELPLANE_CHAIN" in os.environ:
    FILES += sorted(Path(os.environ["MODELPLANE_CHAIN"]).glob("model-replica.json*"))
PAIRS = [pair for path in FILES for pair in load(path)]

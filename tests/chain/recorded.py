"""The recorded pairs of every kind but ModelDeployment, and the deviations that explain what differs.

Besides those that stand here, the pairs of the folder that MODELPLANE_CHAIN names are read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chain import cluster_deviations, replica_deviations, service_deviations
from tests.chain.difference import differences
from tests.chain.pair import load
from tests.support.deviation import Deviation, explaining

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chain.difference import Difference
    from tests.chain.pair import Pair

    ChainDeviation = Deviation[Pair, Difference]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Recorded:
    """The recordings of one kind."""

    pairs: tuple[Pair, ...]
    deviations: tuple[ChainDeviation, ...] = ()
    """All that recorded answers can show."""

    def explained(self, pair: Pair) -> Iterator[tuple[Difference, list[ChainDeviation]]]:
        """Yield every difference of a pair with the deviations that explain it."""
        for difference in differences(pair.ours, pair.theirs):
            yield difference, explaining(self.deviations, pair, difference)


def pairs_of(name: str) -> tuple[Pair, ...]:
    """Return the pairs of the files with a name."""
    files = [HERE / "pairs" / f"{name}.jsonl"]
    if "MODELPLANE_CHAIN" in os.environ:
        files += sorted(Path(os.environ["MODELPLANE_CHAIN"]).glob(f"{name}.json*"))
    return tuple(pair for file in files for pair in load(file))


REPLICA_PAIRS, CLUSTER_PAIRS = pairs_of("model-replica"), pairs_of("inference-cluster")
RECORDED: dict[str, Recorded] = {
    "ModelReplica": Recorded(REPLICA_PAIRS, replica_deviations.DEVIATIONS),
    "InferenceCluster": Recorded(CLUSTER_PAIRS, cluster_deviations.DEVIATIONS),
    "ModelEndpoint": Recorded(pairs_of("model-endpoint")),
    "ModelService": Recorded(pairs_of("model-service"), service_deviations.DEVIATIONS),
}
"""By kind of composite."""

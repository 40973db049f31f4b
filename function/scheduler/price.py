"""The price of a replica: what the nodes and devices that it takes cost an hour, in cents.

A platform engineer states it as typed attributes of a class (`InferenceClass.spec.attributes`) or of a pool,
whose own win: `modelplane.ai/centsPerNodeHour` for each node that a replica takes,
`modelplane.ai/centsPerDeviceHour` for each device that it claims; where both stand there, both are added.

A replica on a pool that states no price has none: a sum that leaves some of it out would be taken for the
whole. What is not a whole number of cents is no price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from function.api.cluster import InferenceCluster
from function.api.replica import ModelReplica

CENTS_PER_NODE, CENTS_PER_DEVICE = "modelplane.ai/centsPerNodeHour", "modelplane.ai/centsPerDeviceHour"


class Price(NamedTuple):
    """The price of some replicas an hour."""

    cents: int = 0
    """Of those whose price is known."""
    priced: int = 0
    """How many those are."""
    unknown: int = 0
    """How many have none."""

    @classmethod
    def of(cls, prices: Iterable[int | None]) -> Price:
        """Sum prices up."""
        stated = list(prices)
        cents = [price for price in stated if price is not None]
        return cls(sum(cents), len(cents), len(stated) - len(cents))

    def __str__(self) -> str:
        """`31.20 an hour`, `31.20 an hour and 2 without a price`; empty where no price is known."""
        rest = f" and {self.unknown} without a price" if self.unknown else ""
        return f"{amount(self.cents)} an hour{rest}" if self.priced else ""


NO_PRICE = Price()


def amount(cents: int) -> str:
    """Write cents as people do: `31.20`."""
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100:,}.{abs(cents) % 100:02}"


def devices_of(replica: ModelReplica) -> Counter[str]:
    """Return how many devices an existing replica claims of each pool, as stamped on it."""
    devices: Counter[str] = Counter()
    for engine in replica.engines:
        for member in engine.members:
            claimed = sum(request.count for request in member.requests)
            devices[member.pool] += claimed * member.pods * engine.copies
    return devices


def price_of(cluster: InferenceCluster, nodes: Mapping[str, int], devices: Mapping[str, int]) -> int | None:
    """Return what nodes and devices of a cluster's pools cost; None where one of them states no price."""
    attributes = {pool.name: pool.attributes for pool in cluster.pools}
    total = 0
    for pool, number in nodes.items():
        stated = attributes.get(pool, {})
        by_node, by_device = _cents(stated, CENTS_PER_NODE), _cents(stated, CENTS_PER_DEVICE)
        if by_node is None and by_device is None:
            return None
        total += number * (by_node or 0) + devices.get(pool, 0) * (by_device or 0)
    return total


def _cents(attributes: Mapping[str, Any], name: str) -> int | None:
    """Read a price: attributes of this type are whole numbers by now. What is negative is none."""
    cents: int | None = attributes.get(name, {}).get("int")
    return cents if cents is not None and cents >= 0 else None

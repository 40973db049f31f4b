"""Write the InferenceClass of the nodes whose drivers publish the given ResourceSlices.

Devices of one node that differ only in what tells two of a kind apart (a uuid, a PCI address, an index) are
one entry with a count. Nodes are grouped by what they have; the class describes the largest group.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.cluster.drift import is_individual, read_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.boundary import JsonObject
    from function.cluster.drift import NodeDevices, PublishedDevice


NAMES = {"gpu": "gpu", "tpu": "tpu", "dra": "nic"}
"""Names of entries by the first label of their driver; another driver's entry is called device."""


class NothingPublished(ValueError):
    """The slices hold no complete pool of any driver."""


@dataclass(frozen=True, slots=True)
class Described:
    """A class, and what it was made of."""

    spec: JsonObject
    nodes: int
    """Nodes that have exactly these devices."""
    others: int
    """Nodes that have others."""


def describe(slices: Iterable[JsonObject]) -> Described:
    """Return the spec of the class of the most frequent kind of node.

    Raises:
        NothingPublished: when no node's slices are complete.
    """
    nodes = [node for node in read_nodes(slices).values() if node.by_driver]
    if not nodes:
        raise NothingPublished("no node has a complete set of ResourceSlices")
    kinds = Counter(json.dumps(_entries(node), sort_keys=True) for node in nodes)
    content, count = min(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
    devices = _named(json.loads(content))
    return Described({"devices": devices}, count, len(nodes) - count)


def _entries(node: NodeDevices) -> list[JsonObject]:
    counts: Counter[str] = Counter()
    for driver in sorted(node.by_driver):
        counts.update(json.dumps(_kind(device), sort_keys=True) for device in node.by_driver[driver])
    return [{**json.loads(kind), "count": count} for kind, count in sorted(counts.items())]


def _kind(device: PublishedDevice) -> JsonObject:
    """Return what a device has in common with others of its kind."""
    attributes = {
        name.removeprefix(f"{device.driver}/"): value
        for name, value in sorted(device.attributes.items())
        if not is_individual(name)
    }
    capacity = {
        name.removeprefix(f"{device.driver}/"): {"value": value["value"]}
        for name, value in sorted(device.capacity.items())
        if isinstance(value, dict) and "value" in value
    }
    kind: JsonObject = {"driver": device.driver, "deviceClassName": device.driver}
    published = {"attributes": attributes, "capacity": capacity}
    return kind | {key: values for key, values in published.items() if values}


def _named(entries: list[JsonObject]) -> list[JsonObject]:
    """Name the entries by their driver, the second of a name with a number."""
    used: Counter[str] = Counter()
    named = []
    for entry in entries:
        base = NAMES.get(str(entry["driver"]).partition(".")[0], "device")
        used[base] += 1
        name = base if used[base] == 1 else f"{base}-{used[base]}"
        order = ("driver", "deviceClassName", "count", "attributes", "capacity")
        named.append({"name": name, **{key: entry[key] for key in order if key in entry}})
    return named

"""Which devices can serve a member, by trying every assignment there is, in declaration order."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.support.vocabulary import MEANINGS, Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.facts import Claims, Cluster, Pool

Plain = dict[str, Any]
Assignment = tuple[Plain, ...]
"""One device for each request of a member."""


DOMAIN = re.compile(r'\.(?:attributes|capacity)\["([^"]+)"\]')


def requests(member: Plain) -> list[Plain]:
    """Return the device requests of a member, none when it has no nodeSelector."""
    return list(member.get("nodeSelector", {}).get("devices", []))


def invalid(deployment: Plain) -> bool:
    """Say whether a selector of the deployment does not compile."""
    engines = deployment["spec"]["template"]["spec"]["engines"]
    return any(
        selector["cel"] not in MEANINGS
        for engine in engines
        for member in engine["members"]
        for request in requests(member)
        for selector in request["selectors"]
    )


def meaning(request: Plain, device: Plain) -> Meaning:
    """Return what the selectors of a request say of a device: the first that is not True decides."""
    for selector in request["selectors"]:
        said = MEANINGS[selector["cel"]](device)
        if said is not True:
            return said
    return True


def assignments(member: Plain, pool: Pool) -> Iterator[Assignment]:
    """Yield every assignment, in declaration order."""
    asked = requests(member)
    for chosen in itertools.product(pool.devices, repeat=len(asked)):
        if all(meaning(r, d) for r, d in zip(asked, chosen, strict=True)) and _enough(asked, chosen):
            yield chosen


def _enough(asked: list[Plain], chosen: Assignment) -> bool:
    """Say whether every device entry has the count for all the requests it is to serve."""
    taken: Counter[str] = Counter()
    for request, device in zip(asked, chosen, strict=True):
        taken[device["name"]] += request.get("count", 1)
    return all(taken[device["name"]] <= device.get("count", 1) for device in chosen)


def claims(member: Plain, chosen: Assignment) -> Claims:
    """Return the DRA requests of an assignment."""
    return tuple(
        (request["name"], device["deviceClassName"], request.get("count", 1))
        for request, device in zip(requests(member), chosen, strict=True)
        if device.get("claim", "DRA") == "DRA"
    )


def stamped(member: Plain) -> Claims:
    """Return the DRA requests a member of a replica carries."""
    return tuple(
        (request["name"], request["deviceClassName"], request["count"])
        for request in member.get("deviceRequests", [])
    )


def errs(member: Plain, pool: Pool) -> bool:
    """Say whether a selector of the member is an error on a device it is about."""
    return any(
        meaning(request, device) is None for request in requests(member) for device in about(request, pool)
    )


def about(request: Plain, pool: Pool) -> tuple[Plain, ...]:
    """Return the devices whose driver the selectors of a request read from, all if there is none such."""
    read = {domain for selector in request["selectors"] for domain in DOMAIN.findall(selector["cel"])}
    return tuple(device for device in pool.devices if device["driver"] in read) or pool.devices


def claimable(member: Plain, cluster: Cluster) -> bool:
    """Say whether the member could claim a device on some pool of the cluster, capacity aside."""
    return any(claims(member, chosen) for pool in cluster.usable for chosen in assignments(member, pool))


def pods(engine: Plain, member: Plain) -> int:
    """Return the pods of a member in all copies of its engine: each takes a node if it claims a device."""
    nodes = member.get("worker", {}).get("nodes", 1) if member.get("role") == "Worker" else 1
    return int(nodes * engine.get("copies", 1))

"""Which devices can serve a member, by trying every assignment there is, in declaration order."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.vocabulary import MEANINGS, Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle.facts import Claims, Cluster, Pool

Plain = dict[str, Any]


class Choice(NamedTuple):
    """The devices of one request."""

    taken: tuple[tuple[Plain, int], ...]
    """Device entries, and how many of each."""
    bindable: int
    """How many devices of the node its claim may bind."""

    @property
    def device(self) -> Plain:
        """The first entry: all that one request claims are of one driver and class."""
        return self.taken[0][0]


Assignment = tuple[Choice, ...]
"""One choice for each request of a member."""

MOST = 32
"""Devices that Kubernetes puts in a claim."""


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


def assignments(member: Plain, pool: Pool, *, new: bool = True) -> Iterator[Assignment]:
    """Yield every assignment: those with one entry for each request in declaration order, then the others.

    What Kubernetes would not allocate is left out for what is `new`: a running replica has its claim.
    """
    asked = requests(member)
    every = [list(_choices(request, pool, new=new)) for request in asked]
    chosen = [one for one in itertools.product(*every) if _enough(one) and not (new and _too_many(one))]
    yield from sorted(chosen, key=lambda one: any(len(choice.taken) > 1 for choice in one))


def _choices(request: Plain, pool: Pool, *, new: bool) -> Iterator[Choice]:
    """Yield every choice of devices for one request: of one entry, or of several that one claim may bind."""
    count = request.get("count", 1)
    matching = [
        device
        for device in pool.devices
        if meaning(request, device) and not (new and tainted(request, device))
    ]
    for device in matching:
        group = [other for other in matching if _together(device, other)]
        if new and _claimed(device) and aborted(request, device, pool):
            continue
        bindable = sum(other.get("count", 1) for other in group)
        if count <= device.get("count", 1):
            yield Choice(((device, count),), bindable)
        if device is next(iter(group), None):
            counts = (range(other.get("count", 1) + 1) for other in group)
            for numbers in itertools.product(*counts):
                if sum(numbers) == count and sum(map(bool, numbers)) > 1:
                    taken = [(d, n) for d, n in zip(group, numbers, strict=True) if n]
                    yield Choice(tuple(taken), bindable)


def tainted(request: Plain, device: Plain) -> bool:
    """Say whether a taint of a device keeps a request off it that is to be allocated anew."""
    return any(
        not any(
            tolerated.get("effect") in (None, taint["effect"])
            and tolerated.get("key") in (None, "", taint["key"])
            and (
                tolerated.get("operator") == "Exists" or tolerated.get("value", "") == taint.get("value", "")
            )
            for tolerated in request.get("tolerations", ())
        )
        for taint in device.get("taints", ())
    )


def aborted(request: Plain, device: Plain, pool: Pool) -> bool:
    """Say whether a selector errs on some device that Kubernetes looks at for a claim of a device's class."""
    return any(
        _claimed(other)
        and other["deviceClassName"] == device["deviceClassName"]
        and other.get("count", 1)
        and meaning(request, other) is None
        for other in pool.devices
    )


def _claimed(device: Plain) -> bool:
    return bool(device.get("claim", "DRA") == "DRA")


def _together(device: Plain, other: Plain) -> bool:
    """Say whether one request may claim both."""
    same = all(device.get(key) == other.get(key) for key in ("driver", "deviceClassName"))
    return _claimed(device) and _claimed(other) and same


def _enough(chosen: Assignment) -> bool:
    """Say whether every device entry has the count for all the requests it is to serve."""
    used: Counter[str] = Counter()
    for choice in chosen:
        for device, number in choice.taken:
            used[device["name"]] += number
    return all(
        used[device["name"]] <= device.get("count", 1) for choice in chosen for device, _ in choice.taken
    )


def _too_many(chosen: Assignment) -> bool:
    return sum(n for choice in chosen for device, n in choice.taken if _claimed(device)) > MOST


def claims(member: Plain, chosen: Assignment) -> Claims:
    """Return the DRA requests of an assignment, that with the fewest ways to be satisfied first."""
    claimed = [
        (math.perm(choice.bindable, request.get("count", 1)), request, choice.device)
        for request, choice in zip(requests(member), chosen, strict=True)
        if _claimed(choice.device)
    ]
    claimed.sort(key=lambda triple: triple[0])
    return tuple((r["name"], device["deviceClassName"], r.get("count", 1)) for _, r, device in claimed)


def stamp(member: Plain, chosen: Assignment) -> list[Plain]:
    """Return the DRA requests of an assignment as a replica carries them."""
    asked = {request["name"]: request for request in requests(member)}
    return [
        {"name": name, "deviceClassName": kind, "count": count, "selectors": asked[name]["selectors"]}
        for name, kind, count in claims(member, chosen)
    ]


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

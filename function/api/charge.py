"""`status.gpuPools[].charged`: what existing replicas hold of a pool, in shares with their holders.

A reader that does not list every replica takes the shares of those it does list out of the sum and charges
their replicas instead, which it knows better: each counts exactly once, however old the sum is.

A share stands for equal replicas of one holder. The largest holders are named; the others are told by a
digest of their names, those that hold the same in one entry. So the sum has at most one digest (13 bytes) for
each replica on the pool, which its nodes bound. Where the pool charges devices, a share also says what
each of its replicas claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

from pydantic import field_validator, model_validator

from function.api.devices import Published
from function.api.model import Count, Flag, Model, Name, Nodes
from function.api.replica import ModelReplica, StampedConstraint, StampedEngine, StampedMember, StampedRequest

UNKNOWN = ("",)
"""Selectors that are not published, in the place of a text that gives no answer."""
STRAY = "replica "
"""How the key of a replica begins that names no deployment: `namespace/name` comes behind it."""
DIGEST = 12
"""Hex digits of a holder's digest. A pool has some thousands of holders at most, so none share one."""


class ChargedShare(NamedTuple):
    """Equal replicas of one holder on one pool, and the share of the pool that they hold."""

    holder: str
    """The key of the holder, or the digest of that."""
    replicas: int
    nodes: int
    """Nodes of each of them."""
    leaving: bool
    """Whether they are being deleted: they hold their nodes, and count for no overcommit."""
    engines: tuple[ClaimingEngine, ...] = ()
    """The claims of each of them, where the pool charges devices."""


class Claimed(Model):
    """One device request of a pod."""

    device_class_name: Name
    count: Count
    selectors: tuple[str, ...] = ()
    """Given where the pool has several entries of the class; none: which of them it binds is not known."""


class CommonAttribute(Model):
    """An attribute that the devices of some requests of a pod have in common."""

    match_attribute: str
    requests: tuple[Published, ...]
    """The positions of the requests."""


class ClaimingMember(Model):
    """The pods of one member of an engine, and what each of them claims."""

    pods: Count
    requests: tuple[Claimed, ...]
    constraints: tuple[CommonAttribute, ...] = ()


class ClaimingEngine(Model):
    """One engine as far as it claims devices of the pool."""

    copies: Count
    members: tuple[ClaimingMember, ...]

    def stamped(self, pool: str) -> StampedEngine:
        """Return the engine as it would be stamped on a replica."""
        members = (
            StampedMember(
                "Worker",
                pool,
                member.pods,
                tuple(
                    StampedRequest(str(at), claim.device_class_name, claim.count, claim.selectors or UNKNOWN)
                    for at, claim in enumerate(member.requests)
                ),
                tuple(
                    StampedConstraint(shared.match_attribute, tuple(map(str, shared.requests)))
                    for shared in member.constraints
                ),
            )
            for member in self.members
        )
        return StampedEngine("", self.copies, tuple(members))


class Holding(Model):
    """Equal replicas, and the nodes and devices that they hold together."""

    replicas: Count = 1
    nodes: Count
    leaving: Flag = False
    engines: tuple[ClaimingEngine, ...] = ()

    @model_validator(mode="after")
    def _adds_up(self) -> Holding:
        """Refuse nodes that equal replicas cannot hold, and claims of other pods than those counted."""
        pods = sum(engine.copies * member.pods for engine in self.engines for member in engine.members)
        if self.nodes % self.replicas or (self.engines and pods * self.replicas != self.nodes):
            raise ValueError("its nodes are not those of equal replicas")
        return self


class NamedHolding(Holding):
    """A share of a holder that is named: a deployment, or a replica that names none."""

    deployment: str = ""
    replica: str = ""


class OtherHoldings(Holding):
    """Equal shares of several holders."""

    digests: str
    """Digests of the holders' keys, sorted, a space between two."""

    @field_validator("digests")
    @classmethod
    def _digests(cls, digests: str) -> str:
        """Refuse what is no list of digests: its length says how many holders there are."""
        if any(len(key) != DIGEST for key in digests.split(" ")):
            raise ValueError(f"expected digests of {DIGEST} hex digits with a space between two")
        return digests


class GivesWay(Model):
    """A replica that is too many on the pool, and gives way where deployments are asked to."""

    replica: Name
    """Namespace and name, with a slash."""
    deployment: str = ""
    uid: str = ""
    created: str = ""


class Charged(Model):
    """The charge of one pool."""

    nodes: Nodes
    by: tuple[NamedHolding, ...] = ()
    others: tuple[OtherHoldings, ...] = ()
    gives_way: tuple[GivesWay, ...] = ()

    @model_validator(mode="after")
    def _is_the_sum(self) -> Charged:
        """Refuse a sum that its shares do not make: a reader takes single shares out of it."""
        if sum(share.replicas * share.nodes for share in self.shares) != self.nodes:
            raise ValueError("nodes: expected the sum of the shares")
        return self

    @property
    def replicas(self) -> int:
        """Replicas that hold something of the pool."""
        return sum(share.replicas for share in self.shares)

    @cached_property
    def shares(self) -> tuple[ChargedShare, ...]:
        """Every share, the named ones first."""
        holdings: list[tuple[str, Holding]] = [
            *((share.deployment or f"{STRAY}{share.replica}", share) for share in self.by),
            *((key, other) for other in self.others for key in other.digests.split(" ")),
        ]
        return tuple(
            ChargedShare(key, held.replicas, held.nodes // held.replicas, held.leaving, held.engines)
            for key, held in holdings
        )


def holder(replica: ModelReplica) -> str:
    """Return the key of who holds what a replica holds."""
    if replica.deployment:
        return f"{replica.namespace}/{replica.deployment}"
    return f"{STRAY}{replica.namespace}/{replica.name}"


def digest(key: str) -> str:
    """Return what stands for a holder that is not named."""
    return sha256(key.encode()).hexdigest()[:DIGEST]


def keys(holders: Iterable[str]) -> frozenset[str]:
    """Return every form in which a share may tell these holders."""
    return frozenset(form for key in holders for form in (key, digest(key)))


def shown(key: str) -> tuple[str, str]:
    """Return namespace and deployment under which a holder is charged; a digest has no namespace."""
    namespace, _, name = key.removeprefix(STRAY).rpartition("/")
    return namespace, name


def is_anonymous(shown: str) -> bool:
    """Tell whether a holder, as `ModelReplica.holder` shows it, is only known by a digest."""
    return shown.startswith("/")

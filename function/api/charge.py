"""`status.gpuPools[].charged`: what existing replicas hold of a pool, in shares whose holders can be told.

A reader that does not list every replica takes the shares of those it does list out of the sum and charges
their replicas instead, which it knows better: each counts exactly once, however old the sum is.

A share stands for equal replicas of one holder. The largest holders are named; the others are told by a
digest of their names, those that hold the same in one entry. So the sum has at most one digest (13 bytes) for
each replica on the pool, which its nodes bound. Where the pool charges devices, a share also says what
each of its replicas claims.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from pydantic import field_validator, model_validator

from function.api.model import Count, Flag, Model, Name, Nodes
from function.api.replica import StampedEngine, StampedMember, StampedRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from function.api.replica import ModelReplica

DIGEST = 12
"""Hex digits of a holder's digest. A pool has some thousands of holders at most, so none share one."""


class Claimed(Model):
    """One device request of a pod."""

    device_class_name: Name
    count: Count


class ClaimingMember(Model):
    """The pods of one member of an engine, and what each of them claims."""

    pods: Count
    requests: tuple[Claimed, ...]


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
                tuple(StampedRequest("", claim.device_class_name, claim.count) for claim in member.requests),
            )
            for member in self.members
        )
        return StampedEngine("", self.copies, tuple(members))


class Holding(Model):
    """What some equal replicas hold together."""

    replicas: Count = 1
    nodes: Count
    leaving: Flag = False
    """Whether they are being deleted: they hold their nodes, and count for no overcommit."""
    engines: tuple[ClaimingEngine, ...] = ()
    """What each of them claims, where the pool charges devices."""

    @model_validator(mode="after")
    def _adds_up(self) -> Holding:
        pods = sum(engine.copies * member.pods for engine in self.engines for member in engine.members)
        if self.nodes % self.replicas or (self.engines and pods * self.replicas != self.nodes):
            raise ValueError("its nodes are not those of equal replicas")
        return self


class NamedHolding(Holding):
    """A share of a holder that is named: a deployment, or a replica that names none."""

    deployment: str = ""
    replica: str = ""

    @property
    def holder(self) -> str:
        """The key of the holder."""
        return self.deployment or stray(self.replica)


class OtherHoldings(Holding):
    """Equal shares of several holders."""

    digests: str
    """Digests of the holders' keys, sorted, a space between two."""

    @field_validator("digests")
    @classmethod
    def _digests(cls, digests: str) -> str:
        if not digests or any(len(digest) != DIGEST for digest in digests.split(" ")):
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
        others = sum(len(other.digests.split(" ")) * other.nodes for other in self.others)
        if sum(share.nodes for share in self.by) + others != self.nodes:
            raise ValueError("nodes: expected the sum of the shares")
        return self

    @property
    def shares(self) -> Iterator[tuple[str, Holding]]:
        """Every share with the key of its holder, or the digest of that."""
        for share in self.by:
            yield share.holder, share
        for other in self.others:
            for holder in other.digests.split(" "):
                yield holder, other

    @property
    def counts_devices(self) -> bool:
        """Whether every share says what its replicas claim."""
        return all(share.engines for _, share in self.shares)


def stray(replica: str) -> str:
    """Return the key of a replica that names no deployment, from `namespace/name`."""
    return f"replica {replica}"


def holder(replica: ModelReplica) -> str:
    """Return the key of who holds what a replica holds."""
    if replica.deployment:
        return f"{replica.namespace}/{replica.deployment}"
    return stray(f"{replica.namespace}/{replica.name}")


def digest(key: str) -> str:
    """Return what stands for a holder that is not named."""
    return sha256(key.encode()).hexdigest()[:DIGEST]


def keys(holders: Iterable[str]) -> frozenset[str]:
    """Return every form in which a share may tell these holders."""
    return frozenset(form for key in holders for form in (key, digest(key)))


def shown(key: str) -> tuple[str, str]:
    """Return namespace and deployment under which a holder is charged; a digest has no namespace."""
    namespace, _, name = key.removeprefix(stray("")).rpartition("/")
    return namespace, name


def is_anonymous(shown: str) -> bool:
    """Whether a holder, as `ModelReplica.holder` shows it, is only told by a digest."""
    return shown.startswith("/")

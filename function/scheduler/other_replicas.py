"""Other replicas: those of a fleet that are not a deployment's own, and are only charged.

A server reads the list for the one deployment that it answers (`Unshared`). A run over many deployments reads
and charges it once (`Listing`); each of them sees it without its own (`OthersListed`), and opens its ledger
from there. Sharing changes no answer: the same replicas are charged, and charges add up in any order.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from function.api.cluster import InferenceCluster
from function.api.replica import ModelReplica
from function.boundary import Document
from function.scheduler.ledger import Ledger


class OtherReplicas(Collection["ModelReplica"]):
    """Every replica that exists, without those of one deployment."""

    @abstractmethod
    def named(self, name: str) -> Iterable[ModelReplica]:
        """Those that have an object name: none, or one in each of several namespaces."""

    @abstractmethod
    def charged(self, clusters: Mapping[str, InferenceCluster], touched: Collection[str]) -> Ledger:
        """Return a ledger to which they are charged; more may be opened on the touched clusters."""

    def __contains__(self, replica: object) -> bool:
        """Tell whether a replica is one of them."""
        return any(other == replica for other in self)


class Unshared(OtherReplicas):
    """Replicas that nobody else asks about."""

    def __init__(self, replicas: Iterable[ModelReplica] = ()) -> None:
        """Take them as they are."""
        self._replicas = tuple(replicas)

    def __iter__(self) -> Iterator[ModelReplica]:
        """Return all of them, in their order."""
        return iter(self._replicas)

    def __len__(self) -> int:
        """Return their number."""
        return len(self._replicas)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset([replica.name for replica in self._replicas])

    def named(self, name: str) -> Iterable[ModelReplica]:
        """Those that have an object name."""
        return [replica for replica in self if replica.name == name] if name in self._names else ()

    def charged(self, clusters: Mapping[str, InferenceCluster], touched: Collection[str]) -> Ledger:  # noqa: ARG002
        """Return a ledger to which they are charged: nobody shares it."""
        return _charged(Ledger(clusters.values()), self._replicas)


def _charged(ledger: Ledger, replicas: Iterable[ModelReplica]) -> Ledger:
    for replica in replicas:
        ledger.open(replica, replica.cluster)
    return ledger


class Listing:
    """The listed replicas of one run over many deployments, which may go on at its end.

    Law: what is read of a document depends on the document, and what is charged on the replicas and the
    clusters. A list with another beginning is another listing; who asks about other clusters, or saw less of
    the list than is charged by now, charges for itself.
    Buys: 2,000 replicas are read and charged once, and not again for each of 100 deployments.
    """

    def __init__(self, clusters: Mapping[str, InferenceCluster]) -> None:
        """Start without replicas."""
        self._clusters = clusters
        self._documents: tuple[Document, ...] = ()
        self.replicas: list[ModelReplica] = []
        self._by_deployment: dict[str, list[int]] = defaultdict(list)
        self._by_name: dict[str, list[int]] = defaultdict(list)
        self._ledger = Ledger(clusters.values())
        self._charged = 0

    def goes_on(self, documents: tuple[Document, ...], clusters: Mapping[str, InferenceCluster]) -> bool:
        """Tell whether a list begins as this one does, as far as this one goes, on the same clusters."""
        return documents[: len(self._documents)] == self._documents and clusters == self._clusters

    def read(self, documents: tuple[Document, ...], parse: Callable[[Document], ModelReplica]) -> None:
        """Read on in a list that begins as this one does. `parse` never fails."""
        for document in documents[len(self._documents) :]:
            replica = parse(document)
            self._by_deployment[replica.deployment].append(len(self.replicas))
            self._by_name[replica.name].append(len(self.replicas))
            self.replicas.append(replica)
        self._documents = documents

    def concerning(self, deployment: str, names: Iterable[str]) -> list[int]:
        """Where the replicas of a deployment's name stand, and those of some object names, in order."""
        places = set(self._by_deployment.get(deployment, ()))
        for name in names:
            places.update(self._by_name.get(name, ()))
        return sorted(places)

    def named(self, name: str) -> list[int]:
        """Where the replicas of an object name stand."""
        return self._by_name.get(name, [])

    def charged(self, clusters: Mapping[str, InferenceCluster], length: int) -> Ledger | None:
        """Return a ledger with the first replicas, to be forked; None where one has to be opened anew."""
        if length < self._charged or clusters != self._clusters:
            return None
        if length > self._charged:
            added = self.replicas[self._charged : length]
            # Those who forked the ledger before go on seeing it as it was.
            self._ledger = _charged(self._ledger.fork({replica.cluster for replica in added}), added)
            self._charged = length
        return self._ledger


@dataclass(frozen=True, eq=False)
class OthersListed(OtherReplicas):
    """A listing as one deployment sees it."""

    listing: Listing
    length: int
    """How far the list went when the deployment was asked about."""
    left_out: frozenset[int]
    """Where its own stand, and what is in `rest`."""
    rest: tuple[ModelReplica, ...]
    """Replicas that bear the deployment's name and are not its own."""

    def __iter__(self) -> Iterator[ModelReplica]:
        """Return all of them: those in the list in its order, then the rest."""
        for at, replica in enumerate(self.listing.replicas[: self.length]):
            if at not in self.left_out:
                yield replica
        yield from self.rest

    def __len__(self) -> int:
        """Return their number."""
        return self.length - len(self.left_out) + len(self.rest)

    def named(self, name: str) -> Iterable[ModelReplica]:
        """Those that have an object name."""
        for at in self.listing.named(name):
            if at < self.length and at not in self.left_out:
                yield self.listing.replicas[at]
        yield from (replica for replica in self.rest if replica.name == name)

    def charged(self, clusters: Mapping[str, InferenceCluster], touched: Collection[str]) -> Ledger:
        """Fork the ledger of the listing, and take the deployment's own out of it."""
        shared = self.listing.charged(clusters, self.length)
        if shared is None:
            return _charged(Ledger(clusters.values()), self)
        left_out = [self.listing.replicas[at] for at in self.left_out]
        changed = (*left_out, *self.rest)
        ledger = shared.fork({*touched, *(replica.cluster for replica in changed)})
        ledger.close(left_out)
        return _charged(ledger, self.rest)

"""provider-kubernetes: it carries Objects to their clusters and back.

Read in the source of 1.x and seen beside a living control plane (tests/live). Every Object gets its turn,
late or not at all, in any order:

- applied is what the manifest says, whoever else manages the same remote object;
- reported is what is there now: after an update that is the new spec beside the status of before. Ready is
  derived from that, and says of no generation whose it is. It stays while nothing is seen;
- without a readiness query an Object becomes Ready by a look that finds nothing to do, not by its creation;
- what was answered may be lost after it took effect, and then nothing is reported;
- a deleted Object stays until its remote object is gone, or until its policies spare that;
- a collection makes an Object for each pod that it selects, and the provider then looks at each. They belong
  to it, and go with it.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from function.objects import COLLECTION, GONE, MEMBERSHIP_LABEL, OBSERVE
from tests.simulate.workers import WORKLOADS, Refused, condition, place_of, written
from tests.support import build
from tests.support.crossplane import Name, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.simulate.workers import Cluster, Place
    from tests.support.crossplane import ControlPlane

Plain = dict[str, Any]

UNREACHED = 'observe failed: cannot get object: Get "https://203.0.113.1:6443/": connect: connection refused'
LOST = 0.1
"""How often, of 1, an answer of a cluster is lost."""
POLLED = 0.85
"""How often, of 1, an Object misses its turn whose cluster is only polled, and which nobody changed."""
CLAIMED = ("ResourceClaimTemplate", "Secret")


@dataclass
class Provider:
    """The provider of one control plane. `lead`: the cluster of a ProviderConfig, None where that is gone."""

    plane: ControlPlane
    lead: Callable[[str], Cluster | None]
    draw: random.Random = field(default_factory=random.Random)
    lateness: float = 0.0
    """How often, of 1, an Object misses its turn."""
    watches: bool = True
    """Whether it hears of what changes on a cluster, where an Object asks for that."""
    quiet: bool = False
    """Whether every Object gets its turn, and no answer is lost."""
    released: set[str] = field(default_factory=set)
    """Objects that it has let go of, by uid."""
    carried: dict[str, object] = field(default_factory=dict)
    """The version of an Object that had its turn last, by uid."""
    complaints: list[str] = field(default_factory=list)
    """What left a cluster while pods that stay refer to it."""

    def __post_init__(self) -> None:
        """Hold what is deleted."""
        self.plane.holds = self.holds

    def holds(self, name: Name) -> bool:
        """Say whether a deleted object waits for the provider."""
        return name.kind == "Object" and self.plane.objects[name]["metadata"]["uid"] not in self.released

    def act(self) -> None:
        """Give every Object and every collection its turn."""
        names = [name for kind in (COLLECTION, "Object") for name in sorted(self.plane.objects.of_kind(kind))]
        if not self.quiet:
            self.draw.shuffle(names)
        for name in names:
            plain = self.plane.objects.get(name)
            if plain is None or self._misses(plain):
                continue
            if "deletionTimestamp" in plain["metadata"]:
                if self.holds(name):
                    self._withdraw(plain)
            elif name.kind == COLLECTION:
                self._collect(name, plain)
            else:
                self._carry(name, plain)

    def _happens(self, chance: float) -> bool:
        return not self.quiet and self.draw.random() < chance

    def _misses(self, plain: Plain) -> bool:
        """Tell whether an Object is not looked at this time: where nothing changed, a poll is seldom."""
        metadata, spec = plain["metadata"], plain["spec"]
        version = metadata["generation"], metadata.get("annotations"), metadata.get("deletionTimestamp")
        is_new = self.carried.get(metadata["uid"]) != version
        chance = self.lateness if is_new or (self.watches and spec.get("watch")) else POLLED
        if self._happens(max(chance, self.lateness)):
            return True
        self.carried[metadata["uid"]] = version
        return False

    def _cluster(self, plain: Plain) -> Cluster | None:
        return self.lead(plain["spec"]["providerConfigRef"]["name"])

    def _carry(self, name: Name, plain: Plain) -> None:
        """Apply a manifest or look at its object, and report."""
        cluster, manifest = self._cluster(plain), plain["spec"]["forProvider"]["manifest"]
        if cluster is None or not cluster.reachable:
            self._report(name, plain, None, UNREACHED)
            return
        place = place_of(manifest)
        before, refusal = cluster.get(place), ""
        after = before
        if plain["spec"].get("managementPolicies") == [*OBSERVE]:
            refusal = "" if before else f"observe failed: {GONE}"
        else:
            try:
                after = cluster.apply(place, manifest)
                cluster.managers[place] = name
            except Refused as error:
                refusal = f"{'update' if before else 'create'} failed: cannot apply object: {error}"
        if self._happens(LOST):
            del self.carried[plain["metadata"]["uid"]]  # What failed is tried again soon.
        else:
            self._report(name, plain, after, refusal, is_done=after is before)

    def _report(
        self, name: Name, plain: Plain, held: Plain | None, refusal: str, *, is_done: bool = False
    ) -> None:
        """Write what is there, and what the last attempt came to; what was seen before stays."""
        status = {**plain.get("status", {})}
        rows = {row["type"]: row for row in status.get("conditions", ())}
        about = {"observedGeneration": plain["metadata"]["generation"], "message": refusal}
        rows["Synced"] = build.condition("Synced", status=not refusal) | about
        query = plain["spec"].get("readiness", {}).get("celQuery", "")
        if held is not None:
            status["atProvider"] = {"manifest": held}
            if query or is_done:
                rows["Ready"] = build.condition("Ready", status=answers(query, held))
        self.plane.patch(name, status={**status, "conditions": [rows[kind] for kind in sorted(rows)]})

    def _withdraw(self, plain: Plain) -> None:
        """Delete what a deleted Object manages, and let go of it."""
        cluster, place = self._cluster(plain), place_of(plain["spec"]["forProvider"]["manifest"])
        if cluster is not None and deletes(plain):
            if not cluster.reachable:
                return
            self.complaints += self._missed(plain, cluster, place)
            if self._happens(LOST):
                cluster.delete(place)
                return  # It looks once more, and finds nothing or what another Object applied.
        self.drop(plain)

    def drop(self, plain: Plain) -> None:
        """Let go of an Object, whatever its cluster said to that."""
        cluster = self._cluster(plain)
        if cluster is not None and deletes(plain):
            cluster.delete(place_of(plain["spec"]["forProvider"]["manifest"]))
        self.released.add(plain["metadata"]["uid"])

    def _missed(self, plain: Plain, cluster: Cluster, place: Place) -> Iterator[str]:
        """Yield the workloads that stay, and refer to what leaves (Law C).

        With its composite all of it goes, in any order. And what an Object of another team manages as well is
        applied again: such a pair is a matter of its own.
        """
        if place[1] not in CLAIMED or not self._is_wanted(plain):
            return
        stay = {
            place_of(other["spec"]["forProvider"]["manifest"]): other["metadata"]["namespace"]
            for other in self.plane.objects.of_kind("Object").values()
            if "deletionTimestamp" not in other["metadata"] and self._cluster(other) is cluster
        }
        if stay.get(place, plain["metadata"]["namespace"]) != plain["metadata"]["namespace"]:
            return
        for other, held in cluster.objects.items():
            if other[1] not in WORKLOADS or other[2] != place[2]:
                continue
            if other in stay or cluster.owners.get(other) in stay:
                templates = (*written(held), *(pod.template for pod in cluster.mine(other)))
                if any(f"'{place[3]}'" in str(template) for template in templates):
                    yield f"{place[1]} {place[3]} left while {other[3]} refers to it"

    def _is_wanted(self, plain: Plain) -> bool:
        """Tell whether the composites of an Object are there, and not deleted."""
        metadata = plain["metadata"]
        for owner in metadata.get("ownerReferences", ()):
            held = self.plane.objects.get(Name(owner["kind"], metadata["namespace"], owner["name"]), {})
            there = held.get("metadata", {})
            if there.get("uid") != owner["uid"] or "deletionTimestamp" in there:
                return False
        return True

    def _collect(self, name: Name, plain: Plain) -> None:
        """Make an Object for every pod that a collection selects, and delete those of pods that are gone."""
        cluster, spec = self._cluster(plain), plain["spec"]["observeObjects"]
        if cluster is None or not cluster.reachable:
            self._say(name, plain, Synced=False)
            return
        selected = cluster.select(spec["kind"], spec["namespace"], spec["selector"]["matchLabels"])
        members = {name_of(member): member for member in (member_of(plain, place) for place in selected)}
        for other, held in list(self.plane.objects.of_kind("Object").items()):
            label = held["metadata"].get("labels", {}).get(MEMBERSHIP_LABEL)
            if (other.namespace, label) == (name.namespace, name.name) and other not in members:
                self.plane.delete(other, by_hand=True)
        for other, member in members.items():
            status = self.plane.objects.get(other, {}).get("status")
            self.plane.write(member | ({"status": status} if status else {}))
        self._say(name, plain, Synced=True, Ready=True)

    def _say(self, name: Name, plain: Plain, **said: bool) -> None:
        """Write conditions of a collection, which are about no generation."""
        rows = {row["type"]: row for row in plain.get("status", {}).get("conditions", ())}
        rows |= {kind: build.condition(kind, status=status) for kind, status in said.items()}
        self.plane.patch(name, status={"conditions": [rows[kind] for kind in sorted(rows)]})


def deletes(plain: Plain) -> bool:
    """Say whether the remote object of an Object goes with it."""
    policies = plain["spec"].get("managementPolicies", ["*"])
    return "*" in policies or "Delete" in policies


def answers(query: str, held: Plain) -> bool:
    """Evaluate a readiness query, as far as ours go: conditions that are True, and a count above zero."""
    conditions = re.findall(r'c\.type == "(\w+)"', query)
    counts = re.findall(r"object\.status\.(\w+) > 0", query)
    status = held.get("status", {})
    return all(condition(held, kind) == "True" for kind in conditions) and all(
        status.get(name, 0) > 0 for name in counts
    )


def member_of(collection: Plain, place: Place) -> Plain:
    """Return the Object that only looks at what a collection selected."""
    metadata, spec = collection["metadata"], collection["spec"]
    _, kind, namespace, name = place
    manifest = {"apiVersion": spec["observeObjects"]["apiVersion"], "kind": kind}
    manifest["metadata"] = {"name": name, "namespace": namespace}
    digest = sha256(f"{manifest['apiVersion']}, Kind={kind}/{namespace}/{name}".encode()).hexdigest()[:7]
    labels = {MEMBERSHIP_LABEL: metadata["name"]}
    about = {"name": f"{metadata['name']}-{digest}", "namespace": metadata["namespace"], "labels": labels}
    about["annotations"] = spec.get("objectTemplate", {}).get("metadata", {}).get("annotations", {})
    owner = {key: collection[key] for key in ("apiVersion", "kind")}
    about["ownerReferences"] = [owner | {key: metadata[key] for key in ("name", "uid")}]
    return {
        "apiVersion": collection["apiVersion"],
        "kind": "Object",
        "metadata": about,
        "spec": {
            "forProvider": {"manifest": manifest},
            "providerConfigRef": spec["providerConfigRef"],
            "managementPolicies": [*OBSERVE],
        },
    }

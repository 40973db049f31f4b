"""What Crossplane does with an answer, when nothing else happens: the next request it would send.

What is not desired any more leaves the observed state at once and lives on, terminating, in the list of all
replicas; what is desired is applied under the name its key had before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support import build
from tests.support.world import World

if TYPE_CHECKING:
    from tests.support.drive import Answer

Plain = dict[str, Any]


def apply(world: World, answer: Answer) -> World:
    """Return the world after an answer was applied to it; what was given up is still terminating."""
    old = world.copy()
    listed = [replica for replica in old.replicas or () if not _in(replica, old.observed)]
    observed = {key: applied(world, key, manifest) for key, manifest in answer.desired.items()}
    gone = [
        doomed(manifest)
        for key, manifest in old.observed.items()
        if key not in answer.desired and manifest.get("kind") == "ModelReplica"
    ]
    adopted = {manifest["metadata"]["name"] for manifest in observed.values()}
    mine = world.deployment["metadata"]["namespace"]
    left = [
        manifest
        for manifest in listed
        if manifest["metadata"]["namespace"] != mine or manifest["metadata"]["name"] not in adopted
    ]
    fresh = [
        World(manifest).copy().deployment
        for manifest in observed.values()
        if manifest["kind"] == "ModelReplica"
    ]
    return old.but(observed=observed, replicas=[*left, *gone, *fresh])


def _in(manifest: Plain, observed: Any) -> bool:
    place = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    return any(place == (one["metadata"]["namespace"], one["metadata"]["name"]) for one in observed.values())


def doomed(manifest: Plain) -> Plain:
    """Return an object on which a foreground deletion has begun."""
    manifest["metadata"] |= {"deletionTimestamp": build.CREATED, "finalizers": ["foregroundDeletion"]}
    return manifest


def applied(world: World, key: str, desired: Plain) -> Plain:
    """Return the object that a desired one becomes: ours win, the rest stays as it was."""
    before = world.observed.get(key) or _listed(world, desired) or {}
    made = World(desired).copy().deployment
    head = dict(before.get("metadata", {})) | made["metadata"]
    head.setdefault("uid", build.uid(head["namespace"], head["name"], key))
    head.setdefault("resourceVersion", "1")
    head.setdefault("creationTimestamp", build.CREATED)
    head["ownerReferences"] = [build.owner(world.deployment)]
    if key in world.observed:
        head["name"] = before["metadata"]["name"]
    made["metadata"] = head
    made |= {"status": World(before["status"]).copy().deployment} if "status" in before else {}
    return edited(made) if before and before["spec"] != made["spec"] else made


def edited(made: Plain) -> Plain:
    """Return an object whose spec was changed just now: its conditions are about the one before."""
    generation = int(made["metadata"].get("generation", 1))
    made["metadata"]["generation"] = generation + 1
    for condition in made.get("status", {}).get("conditions", ()):
        if isinstance(condition, dict):
            condition.setdefault("observedGeneration", generation)
    return made


def _listed(world: World, desired: Plain) -> Plain | None:
    place = desired["metadata"]["namespace"], desired["metadata"]["name"]
    return next(
        (
            replica
            for replica in world.replicas or ()
            if (replica["metadata"]["namespace"], replica["metadata"]["name"]) == place
        ),
        None,
    )

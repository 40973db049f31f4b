"""The second law, read leniently enough to be held against any request, however broken.

"Doubt never removes a running replica": `unexplained` lists the observed objects that an answer drops without
one of the reasons the law lists. It reads a world as far as it can be read and gives no benefit of the doubt
to the function, only to what runs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.drive import Answer
    from tests.support.world import World

Plain = dict[str, Any]


def at(value: Any, *path: str) -> Any:
    """Return what stands at a path, None if anything on the way is missing or no map."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def items(value: Any) -> list[Any]:
    """Return the elements of a list that are maps."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, (list, tuple)) else []


def cluster_of(key: str) -> str | None:
    """Return the cluster that a resource key names."""
    matched = re.fullmatch(r"(?:replica|endpoint)-(.+)-(\d+)", key)
    return matched[1] if matched else None


def condition(plain: Any, kind: str) -> Any:
    """Return the status of a condition, None when it cannot be found."""
    statuses = [
        item.get("status") for item in items(at(plain, "status", "conditions")) if item.get("type") == kind
    ]
    return statuses[0] if statuses else None


def wanted(world: World) -> int | None:
    """Return how many replicas are wanted, None when that cannot be read."""
    asked = at(world.deployment, "spec", "replicas")
    if isinstance(asked, bool) or not isinstance(asked, (int, float)) or asked != asked:  # noqa: PLR0124 - NaN
        return None
    return int(asked) if asked >= 0 and float(asked).is_integer() else None


def named(world: World) -> dict[Any, Plain]:
    """Return the delivered clusters by name, as far as they have one."""
    return {
        str(at(item, "metadata", "name")): item
        for item in items(world.clusters or ())
        if at(item, "metadata", "name") is not None
    }


def _terminating(world: World, plain: Any) -> bool:
    if at(plain, "metadata", "deletionTimestamp") is not None:
        return True
    name, namespace = at(plain, "metadata", "name"), at(plain, "metadata", "namespace")
    return any(
        at(item, "metadata", "deletionTimestamp") is not None
        for item in items(world.replicas or ())
        if (at(item, "metadata", "name"), at(item, "metadata", "namespace")) == (name, namespace)
    )


def _drained(world: World, cluster: Any) -> bool:
    tolerations = items(at(world.deployment, "spec", "template", "spec", "tolerations"))
    return any(
        item.get("effect") == "NoExecute" and not any(_tolerates(one, item) for one in tolerations)
        for item in items(at(cluster, "spec", "taints"))
    )


def _tolerates(toleration: Plain, taint: Plain) -> bool:
    if toleration.get("effect") not in (None, taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, taint.get("key"))
    asked, tainted = ((item.get("key"), item.get("value") or "") for item in (toleration, taint))
    return asked == tainted


def certain(world: World, key: str) -> str:
    """Return the reason that by itself lets the replica of a key go, "" if there is none."""
    if _terminating(world, world.observed[key]):
        return "terminating"
    fleet, on = named(world), cluster_of(key)
    if not fleet or on is None:
        return ""
    if on not in fleet and all(
        isinstance(at(cluster, "metadata", "name"), str) for cluster in world.clusters or ()
    ):
        return "cluster gone"
    return "drained" if _drained(world, fleet.get(on)) else ""


def unexplained(world: World, answer: Answer) -> list[str]:
    """Return what was dropped without a reason, none when the law was kept."""
    if answer.fatal:
        return []
    own_keys = [key for key in world.observed if _is_own(world, key)]
    dropped = [key for key in own_keys if key not in answer.desired]
    doubtful = [key for key in dropped if not certain(world, key) and not _may_yield(world, key)]
    excess = len(doubtful) > _allowance(world, answer, own_keys)
    return [f"{key} was dropped" for key in doubtful if excess] + _endpoints(world, answer)


def _may_yield(world: World, key: str) -> bool:
    """Say whether a replica may yield its place: that is asked for, and it never was Ready."""
    seen = world.observed[key]
    noted = at(seen, "metadata", "annotations", "modelplane.ai/was-ready")
    uid, owners = at(seen, "metadata", "uid"), items(at(seen, "metadata", "ownerReferences"))
    controlled = any(at(owner, "controller") is True for owner in owners)
    others = controlled and bool(uid) and noted not in ("true", uid)
    yields = at(world.input, "overcommit") == "Yield"
    return yields and (noted is None or others) and condition(seen, "Ready") != "True"


def _is_own(world: World, key: str) -> bool:
    """Say whether something observed is a replica of ours: by its key, else by its kind."""
    if re.fullmatch(r"replica-.+-(0|[1-9][0-9]{0,8})", key):
        return True
    return not key.startswith("endpoint-") and at(world.observed[key], "kind") == "ModelReplica"


def _allowance(world: World, answer: Answer, own_keys: list[str]) -> int:
    """Return how many replicas a scale down and replacements may take."""
    asked = wanted(world)
    if world.clusters is None or asked is None:
        return 0
    # One that is drained and stays, within a budget or with surge, stands for those that are wanted.
    live = sum(not certain(world, key) or key in answer.desired for key in own_keys) + _listed_only(world)
    new = sum(key not in world.observed for key in answer.replicas)
    return max(0, live - asked) + new


def _listed_only(world: World) -> int:
    """Return how many replicas of the list may be ours without being observed."""
    observed_names = [at(manifest, "metadata", "name") for manifest in world.observed.values()]
    mine = at(world.deployment, "metadata", "namespace")
    return sum(
        at(item, "metadata", "namespace") == mine and at(item, "metadata", "name") not in observed_names
        for item in items(world.replicas or ())
    )


def _endpoints(world: World, answer: Answer) -> list[str]:
    """Return the endpoints that were withdrawn from a replica that stays and is not seen to be unready."""
    complaints = []
    for key in world.observed:
        replica = key.replace("endpoint-", "replica-", 1)
        if not key.startswith("endpoint-") or key in answer.desired or replica not in answer.desired:
            continue
        seen = _read_last(world, replica, answer.desired[replica])
        if condition(seen, "Ready") in ("True", None):
            complaints.append(f"{key} was withdrawn")
    return complaints


def _read_last(world: World, key: str, replica: Plain) -> Any:
    """Return a replica as it is observed or as the list has it, whichever is later; None for neither."""
    where = at(replica, "metadata", "namespace"), at(replica, "metadata", "name")
    reads = [world.observed[key]] if key in world.observed else []
    reads += [
        item
        for item in items(world.replicas or ())
        if (at(item, "metadata", "namespace"), at(item, "metadata", "name")) == where
        and (not reads or at(item, "metadata", "uid") == at(reads[0], "metadata", "uid"))
    ]
    versions = [str(at(read, "metadata", "resourceVersion")) for read in reads]
    if not all(map(str.isdecimal, versions)):
        return reads[0]
    return max(reads, key=lambda read: int(at(read, "metadata", "resourceVersion")), default=None)

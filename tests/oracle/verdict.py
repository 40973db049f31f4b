"""Compare the function's answer with the oracle's plan, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.oracle import facts as read_facts, matching
from tests.oracle.schedule import New, Plan, Scheduler
from tests.oracle.staged import Staged, staged

if TYPE_CHECKING:
    from tests.oracle.facts import Facts, Replica
    from tests.support.drive import Answer
    from tests.support.world import World

Plain = dict[str, Any]


def plan(world: World) -> Plan:
    """Return what the oracle would do."""
    return scheduler_of(read_facts.read(world)).run()


def scheduler_of(facts: Facts) -> Scheduler:
    """Return the oracle for a deployment: with what it stages, if it does."""
    return Staged(facts) if staged(facts) else Scheduler(facts)


def differences(world: World, answer: Answer) -> list[str]:
    """Return every difference between the answer and the oracle's plan, none when they agree."""
    facts = read_facts.read(world)
    planned = scheduler_of(facts).run()
    expected = {str(replica.key): retained(facts, planned, replica) for replica in planned.kept}
    expected |= {replica.key: composed(facts, replica) for replica in planned.new}
    desired = {key: essence(replica) for key, replica in answer.replicas.items()}
    complaints = _compare("replica", expected, desired)
    complaints += _compare("endpoint", endpoints(facts, planned), answer.endpoints)
    return complaints + _summary(facts, planned, answer)


def _compare(what: str, expected: dict[str, Plain], desired: dict[str, Plain]) -> list[str]:
    differing = [f"{what} {key}: expected, not desired" for key in sorted(expected.keys() - desired.keys())]
    differing += [f"{what} {key}: desired, not expected" for key in sorted(desired.keys() - expected.keys())]
    for key in sorted(expected.keys() & desired.keys()):
        differing += [f"{what} {key}: {item}" for item in _apart("", expected[key], desired[key])]
    return differing


def _apart(path: str, expected: Any, desired: Any) -> list[str]:
    """Return where two values differ; of an expected map only the keys it has are looked at."""
    if isinstance(expected, dict) and isinstance(desired, dict):
        return [
            complaints
            for key in expected
            for complaints in _apart(f"{path}.{key}", expected[key], desired.get(key, "(missing)"))
        ]
    if isinstance(expected, list) and isinstance(desired, list) and len(expected) == len(desired):
        pairs = enumerate(zip(expected, desired, strict=True))
        return [complaints for number, (a, b) in pairs for complaints in _apart(f"{path}[{number}]", a, b)]
    return [] if expected == desired else [f"{path}: expected {expected!r}, found {desired!r}"]


def _summary(facts: Facts, planned: Plan, answer: Answer) -> list[str]:
    placed = len(planned.kept) + len(planned.new)
    unusable = planned.reasons[0] in {"InputsUnresolved", "InvalidNodeSelector"}
    expected = {
        "ReplicasScheduled": planned.reasons[0],
        "total": placed,
        "unready": placed < facts.wanted or unusable,
    }
    summary = {
        "ReplicasScheduled": answer.reason(),
        "total": answer.status.get("replicas", {}).get("total"),
        "unready": answer.unready,
    }
    return _apart("summary", expected, summary)


def essence(replica: Plain) -> Plain:
    """Return what is compared of a desired replica, absences made visible."""
    engines = [
        engine | {"members": [{"deviceRequests": None} | one for one in engine["members"]]}
        for engine in replica["spec"]["engines"]
    ]
    return replica | {"spec": replica["spec"] | {"engines": engines}}


def retained(facts: Facts, planned: Plan, replica: Replica) -> Plain:
    """Return what must be desired of a replica that stays: its identity, its pools and its requests."""
    expected: Plain = {
        "metadata": {"name": replica.name, "namespace": facts.deployment["metadata"]["namespace"]},
        "spec": {
            "clusterName": replica.cluster,
            "engines": [_pinned(engine) for engine in replica.engines],
        },
    }
    held = replica in planned.held and replica not in planned.moving
    if held or not scheduler_of(facts).editable(replica):
        expected["spec"]["engines"] = [_as_observed(engine) for engine in replica.engines]
    else:
        made = _paused if replica in planned.paused else _updated
        expected["spec"]["engines"] = [made(facts, engine) for engine in replica.engines]
        expected["metadata"]["labels"] = labels(facts, replica.cluster, replica.index)
    return expected


def _pinned(engine: Plain) -> Plain:
    members = [
        {"nodePoolName": member["nodePoolName"], "deviceRequests": member.get("deviceRequests")}
        for member in engine["members"]
    ]
    return {"name": engine["name"], "members": members}


def _as_observed(engine: Plain) -> Plain:
    members = [{"deviceRequests": None} | member for member in engine["members"]]
    return engine | {"members": members}


def _updated(facts: Facts, engine: Plain) -> Plain:
    """Return a stamped engine with what may be edited in place."""
    asked = next(entry for entry in facts.inner["engines"] if entry["name"] == engine["name"])
    pairs = zip(engine["members"], asked["members"], strict=True)
    members = [_pinned_member(old) | _carried(new) for old, new in pairs]
    return {"name": engine["name"], "copies": asked.get("copies", 1), "members": members}


def _paused(facts: Facts, engine: Plain) -> Plain:
    """Return a stamped engine whose template waits: as observed, with as many copies as are wanted."""
    asked = next(entry for entry in facts.inner["engines"] if entry["name"] == engine["name"])
    return _as_observed(engine) | {"copies": asked.get("copies", 1)}


def _pinned_member(member: Plain) -> Plain:
    return {"nodePoolName": member["nodePoolName"], "deviceRequests": member.get("deviceRequests")}


def _carried(member: Plain) -> Plain:
    """Return what a replica's member takes over from the deployment as it is."""
    made = {"role": member.get("role", "Standalone"), "template": member["template"]}
    return made | ({"worker": member["worker"]} if "worker" in member else {})


def labels(facts: Facts, cluster: str, index: int) -> Plain:
    """Return the labels of a composed object."""
    template_labels = facts.deployment["spec"]["template"].get("metadata", {}).get("labels", {})
    return dict(template_labels) | {
        "modelplane.ai/deployment": facts.deployment["metadata"]["name"],
        "modelplane.ai/cluster": cluster,
        "modelplane.ai/replica-index": str(index),
    }


def composed(facts: Facts, new: New) -> Plain:
    """Return what must be desired of a new replica."""
    scheduler = Scheduler(facts)
    engines = [
        _stamped(engine, pool, taken)
        for engine, (pool, taken) in zip(facts.inner["engines"], new.homes, strict=True)
    ]
    spec: Plain = {"clusterName": new.cluster, "engines": engines}
    for name in ("modelCacheRef", "serving"):
        if name in facts.inner:
            spec[name] = facts.inner[name]
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {
            "name": scheduler.name(new.cluster, new.index),
            "namespace": facts.deployment["metadata"]["namespace"],
            "labels": labels(facts, new.cluster, new.index),
        },
        "spec": spec,
    }


def _stamped(engine: Plain, pool: str, taken: tuple[matching.Assignment, ...]) -> Plain:
    members = []
    for member, chosen in zip(engine["members"], taken, strict=True):
        claims = matching.stamp(member, chosen)
        members.append(_carried(member) | {"nodePoolName": pool, "deviceRequests": claims or None})
    made = {"name": engine["name"], "copies": engine.get("copies", 1), "members": members}
    return made | ({"phase": engine["phase"]} if "phase" in engine else {})


def endpoints(facts: Facts, planned: Plan) -> dict[str, Plain]:
    """Return the endpoints that must be desired, each with what must be in it."""
    expected = {}
    for replica in planned.kept:
        if replica.condition != "True":
            continue
        key = str(replica.key).replace("replica-", "endpoint-", 1)
        cluster = (facts.clusters or {}).get(replica.cluster)
        if cluster and cluster.gateway:
            path = f"/{replica.plain['metadata']['namespace']}/{replica.name}"
            spec = {"url": f"http://{cluster.gateway}{path}/v1", "rewritePath": f"{path}/"}
            expected[key] = {"kind": "ModelEndpoint", "spec": spec}
        elif key in facts.observed_keys:
            expected[key] = {"kind": "ModelEndpoint"}
    return expected

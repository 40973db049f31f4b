"""The one seam between the tests and the function: `run(world)`, at the level of the core or of the wire.

`level="plain"` calls the pipeline on plain values, `level="wire"` sends and receives serialised protobuf.
FLEET_LEVEL=wire makes the wire the default of a whole test run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crossplane.function.proto.v1 import run_function_pb2 as pb

from function.api.reasons import CONDITION_REASONS
from function.deployment import handler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Response, Reuse
    from tests.support.world import World

Plain = dict[str, Any]

LEVEL = os.environ.get("FLEET_LEVEL", "plain")


@dataclass(frozen=True)
class Answer:
    """What the function answered, whichever way it was asked."""

    desired: Mapping[str, Plain]
    ready: frozenset[str]
    conditions: Mapping[str, tuple[bool, str, str]]
    """Condition type to (status, reason, message), in the order of the answer."""
    status: Plain
    unready: bool
    fatal: bool
    events: tuple[tuple[str, str, str], ...] = ()
    """(severity, reason, message)"""
    requirements: tuple[Plain, ...] = ()
    settled: bool | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    raw: Any = None
    decision: Any = None
    """What the response was composed from, at the level of the core."""

    @property
    def replicas(self) -> dict[str, Plain]:
        """The desired ModelReplicas by key."""
        return {
            key: manifest for key, manifest in self.desired.items() if manifest.get("kind") == "ModelReplica"
        }

    @property
    def endpoints(self) -> dict[str, Plain]:
        """The desired ModelEndpoints by key."""
        return {
            key: manifest for key, manifest in self.desired.items() if manifest.get("kind") == "ModelEndpoint"
        }

    def reason(self, kind: str = "ReplicasScheduled") -> str:
        """Return the reason of a condition, "" when the condition is not there."""
        return self.conditions.get(kind, (False, "", ""))[1]

    def same(self, other: Answer) -> bool:
        """Say whether this answer says the same as `other`, work counters aside."""
        return all(getattr(self, name) == getattr(other, name) for name in _SAID)


_SAID = ("desired", "ready", "conditions", "status", "unready", "fatal", "events", "requirements", "settled")


def run(world: World, *, level: str = "", reuse: Reuse | None = None) -> Answer:
    """Ask the function."""
    if (level or LEVEL) == "wire":
        return answer(pb.RunFunctionResponse.FromString(run_bytes(world.message().SerializeToString())))
    memory = {} if reuse is None else {"reuse": reuse}
    made = handler.answer(world.request(), **memory)
    return of_core(made.response, made.decision)


def run_bytes(request: bytes) -> bytes:
    """Ask the function in the form it has on the wire."""
    from function import wire  # the core can be tested before and without the wire

    call = wire.decode(request)
    return wire.encode(call, handler.run(call.request), wire.Ttl())


_REASONS = {name for rows in CONDITION_REASONS.values() for name in rows}


def of_core(response: Response, decision: Any = None) -> Answer:
    """Return the core's response as an answer."""
    assert {condition.reason for condition in response.conditions} <= _REASONS, "a reason without a row"
    return Answer(
        desired={key: resource.resource for key, resource in response.desired.items()},
        ready=frozenset(key for key, manifest in response.desired.items() if manifest.ready),
        conditions={
            condition.type: (condition.status, condition.reason, condition.message)
            for condition in response.conditions
        },
        status=dict(response.status),
        unready=response.unready,
        fatal=any(result.severity == "FATAL" for result in response.results),
        events=tuple((result.severity, result.reason, result.message) for result in response.results),
        requirements=tuple(
            {
                "name": requirement.name,
                "apiVersion": requirement.api_version,
                "kind": requirement.kind,
                "matchName": requirement.match_name,
                "namespace": requirement.namespace,
                "matchLabels": dict(requirement.match_labels),
            }
            for requirement in response.requirements
        ),
        settled=response.settled,
        counts=dict(response.counts),
        raw=response,
        decision=decision,
    )


def answer(response: pb.RunFunctionResponse) -> Answer:
    """Return a protobuf response as an answer."""
    resources = response.desired.resources
    return Answer(
        desired={key: plain(resources[key].resource) for key in sorted(resources)},
        ready=frozenset(key for key in resources if resources[key].ready == pb.READY_TRUE),
        conditions={
            condition.type: (
                condition.status == pb.STATUS_CONDITION_TRUE,
                condition.reason,
                condition.message,
            )
            for condition in response.conditions
        },
        status=plain(response.desired.composite.resource).get("status", {}),
        unready=response.desired.composite.ready == pb.READY_FALSE,
        fatal=any(result.severity == pb.SEVERITY_FATAL for result in response.results),
        events=tuple(
            (pb.Severity.Name(result.severity).removeprefix("SEVERITY_"), result.reason, result.message)
            for result in response.results
        ),
        requirements=tuple(
            _requirement(name, resource) for name, resource in sorted(response.requirements.resources.items())
        ),
        raw=response,
    )


def _requirement(name: str, item: Any) -> Plain:
    return {
        "name": name,
        "apiVersion": item.api_version,
        "kind": item.kind,
        "matchName": item.match_name if item.HasField("match_name") else None,
        "namespace": item.namespace if item.HasField("namespace") else None,
        "matchLabels": dict(item.match_labels.labels),
    }


def plain(struct: Any) -> Plain:
    """Return a protobuf Struct as plain values, whole numbers as int, whatever the numbers are."""
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return plain(value.struct_value)
    if kind == "list_value":
        return [_value(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return None if kind in (None, "null_value") else getattr(value, kind)

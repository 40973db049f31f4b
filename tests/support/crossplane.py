"""Crossplane's loop around the functions of a pipeline, as v2.0 to v2.3 have it.

Before the first call of a step its bootstrap requirements are fetched; they are sent with every call of the
step. A fatal result ends the loop. Otherwise an answer's requirements are compared with those of the answer
before (unset before the first call, and unset is not the same as empty): equal ends the loop, else they are
fetched and the function is called again with the context that it answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crossplane.function.proto.v1 import run_function_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CALLS = 6
"""Crossplane gives up when requirements have not settled after this many calls of one step."""


class Unsettled(AssertionError):
    """The requirements of a step still changed at the last call."""


@dataclass(frozen=True)
class Step:
    """One step of a pipeline."""

    function: Callable[[bytes], bytes]
    bootstrap: Mapping[str, pb.ResourceSelector] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """The last answer of a step, and what it took."""

    response: pb.RunFunctionResponse
    calls: int
    sent: int
    """Bytes sent to the function."""


def run_step(
    step: Step, request: pb.RunFunctionRequest, fetch: Callable[[pb.ResourceSelector], pb.Resources]
) -> Ran:
    """Call the function of a step until its requirements settle. Raises Unsettled."""
    asked = pb.RunFunctionRequest()
    asked.CopyFrom(request)
    stated: pb.Requirements | None = None
    sent = 0
    for calls in range(1, CALLS + 1):
        asked.ClearField("required_resources")
        wanted = {**step.bootstrap, **(stated.resources if stated is not None else {})}
        for name, selector in wanted.items():
            asked.required_resources[name].CopyFrom(fetch(selector))
        content = asked.SerializeToString()
        sent += len(content)
        response = pb.RunFunctionResponse.FromString(step.function(content))
        if any(result.severity == pb.SEVERITY_FATAL for result in response.results):
            return Ran(response, calls, sent)
        before, stated = stated, response.requirements if response.HasField("requirements") else None
        if before == stated:
            return Ran(response, calls, sent)
        asked.context.CopyFrom(response.context)
    raise Unsettled(f"the requirements still changed at call {CALLS}")


def run_pipeline(
    steps: list[Step], request: pb.RunFunctionRequest, fetch: Callable[[pb.ResourceSelector], pb.Resources]
) -> list[Ran]:
    """Run the steps one after the other: desired state and context of each go on to the next."""
    asked = pb.RunFunctionRequest()
    asked.CopyFrom(request)
    ran: list[Ran] = []
    for step in steps:
        ran.append(run_step(step, asked, fetch))
        response = ran[-1].response
        asked.desired.CopyFrom(response.desired)
        asked.context.CopyFrom(response.context)
    return ran

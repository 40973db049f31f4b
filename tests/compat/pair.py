"""A recorded pair: a request, and what another implementation of the same contract answered.

The format is one JSON file with `name`, `request` and `response`, the latter two as protobuf JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crossplane.function.proto.v1 import run_function_pb2 as pb
from google.protobuf import json_format

from tests.support import drive
from tests.support.world import World

if TYPE_CHECKING:
    from pathlib import Path

Plain = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """One recorded exchange, and our answer to the same request."""

    name: str
    world: World
    theirs: drive.Answer
    ours: drive.Answer
    later: drive.Answer
    """Our answer to the same where nothing was delivered yet: it states what is to be."""

    @property
    def inner(self) -> Plain:
        """The specification of one replica."""
        return dict(self.world.deployment["spec"]["template"]["spec"])

    @property
    def wanted(self) -> int:
        """How many replicas are wanted."""
        return int(self.world.deployment["spec"]["replicas"])

    @property
    def fleet(self) -> set[str]:
        """The clusters that were delivered."""
        return {cluster["metadata"]["name"] for cluster in self.world.clusters or ()}


def load(path: Path) -> Pair:
    """Return the pair of a file, and ask the function the same."""
    recorded = json.loads(path.read_text())
    request = json_format.ParseDict(recorded["request"], pb.RunFunctionRequest())
    response = json_format.ParseDict(recorded["response"], pb.RunFunctionResponse())
    ours, asked = _answer(request), world(request)
    request.ClearField("required_resources")
    return Pair(recorded["name"], asked, drive.answer(response), ours, _answer(request))


def _answer(request: pb.RunFunctionRequest) -> drive.Answer:
    answer = drive.run_bytes(request.SerializeToString())
    return drive.answer(pb.RunFunctionResponse.FromString(answer))


def world(request: pb.RunFunctionRequest) -> World:
    """Return a request as a world."""
    required = {
        name: [drive.plain(item.resource) for item in request.required_resources[name].items]
        for name in request.required_resources
    }
    observed = request.observed
    return World(
        deployment=drive.plain(observed.composite.resource),
        clusters=required.get("clusters"),
        replicas=required.get("all-replicas"),
        cache=required.get("cache"),
        observed={key: drive.plain(observed.resources[key].resource) for key in sorted(observed.resources)},
    )

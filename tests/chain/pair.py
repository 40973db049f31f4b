"""A recorded pair of the chain: a request about one composite, what v0.3 answered, and what we answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from crossplane.function.proto.v1 import run_function_pb2 as pb
from google.protobuf import json_format

from function import dispatch, wire
from function.wire.request import REQUIREMENTS_STATED
from tests.support import drive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Plain = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """One recorded exchange, and our answer to the same request."""

    name: str
    request: pb.RunFunctionRequest
    theirs: drive.Answer

    @cached_property
    def ours(self) -> drive.Answer:
        """Our answer to a later call of the reconcile: then requirements are stated, as v0.3 always does."""
        request = pb.RunFunctionRequest.FromString(self.request.SerializeToString())
        request.context[REQUIREMENTS_STATED] = True
        return answered(request)

    @property
    def composite(self) -> Plain:
        """The composite that is observed."""
        return drive.plain(self.request.observed.composite.resource)

    @property
    def observed(self) -> dict[str, Plain]:
        """The composed resources that are observed."""
        resources = self.request.observed.resources
        return {key: drive.plain(resources[key].resource) for key in sorted(resources)}


def answered(request: pb.RunFunctionRequest) -> drive.Answer:
    """Ask the function, by the composite's kind, in the form requests have on the wire."""
    call = wire.decode(request.SerializeToString())
    content = wire.encode(call, dispatch.run(call.request), wire.Ttl())
    return drive.answer(pb.RunFunctionResponse.FromString(content))


def load(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a file: a JSON list, or one JSON object on each line."""
    text = path.read_text()
    recorded = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
    for entry in recorded:
        request = json_format.ParseDict(entry["request"], pb.RunFunctionRequest())
        response = json_format.ParseDict(entry["response"], pb.RunFunctionResponse())
        yield Pair(entry["name"], request, drive.answer(response))

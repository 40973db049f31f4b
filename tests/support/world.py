"""A world: all that one request tells, as plain objects, and its two forms."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tests.support.any_request import AnyRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crossplane.function.proto.v1 import run_function_pb2 as pb

    from function.boundary import Request

Plain = dict[str, Any]


@dataclass(frozen=True)
class World:
    """One request. None for `clusters`, `replicas` or `cache`: it has not been delivered."""

    deployment: Plain
    clusters: Sequence[Any] | None = ()
    replicas: Sequence[Any] | None = ()
    observed: Mapping[str, Any] = field(default_factory=dict)
    cache: Sequence[Any] | None = None
    input: Plain | None = None
    tag: str = "tested"
    more: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Further required resources, by requirement name."""

    def but(self, **changes: Any) -> World:
        """Return this world with `changes`."""
        return replace(self, **changes)

    def copy(self) -> World:
        """Return a world that shares no object with this one."""
        return copy.deepcopy(self)

    @property
    def required(self) -> dict[str, list[Any]]:
        """The required resources that were delivered, by requirement name."""
        asked = {"clusters": self.clusters, "all-replicas": self.replicas, "cache": self.cache}
        lists = {name: list(items) for name, items in asked.items() if items is not None}
        return lists | {name: list(items) for name, items in self.more.items()}

    @property
    def asked(self) -> AnyRequest:
        """This world as a request."""
        return AnyRequest(self.deployment, self.observed, self.required, self.input)

    def request(self) -> Request:
        """Return the request as the core sees it."""
        return self.asked.request()

    def message(self) -> pb.RunFunctionRequest:
        """Return the request as Crossplane sends it."""
        message = self.asked.first_message()
        message.meta.tag = self.tag
        return message

    def dump(self) -> str:
        """Return the world as text, to be read by a person or by `load`."""
        said = {name: value for name, value in vars(self).items() if name != "more" or value}
        return json.dumps(said, indent=1, sort_keys=True, default=list)


def load(text: str) -> World:
    """Return the world that `dump` wrote."""
    return World(**json.loads(text))

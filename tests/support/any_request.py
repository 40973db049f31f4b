"""One request about any composite, as plain values or as Crossplane sends it, and the answer to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from crossplane.function.proto.v1 import run_function_pb2 as pb

from function import dispatch, wire
from function.boundary import PlainDocument, Request
from function.wire.request import REQUIREMENTS_STATED
from tests.support import drive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Plain = dict[str, Any]


@dataclass(frozen=True)
class AnyRequest:
    """A composite, what is observed of it, what was delivered, and the input of the step."""

    composite: Plain
    observed: Mapping[str, Plain] = field(default_factory=dict)
    required: Mapping[str, Sequence[Plain]] = field(default_factory=dict)
    """Required resources by requirement: what is not in it is not delivered."""
    input: Plain | None = None
    earlier: Mapping[str, Plain] = field(default_factory=dict)
    """What earlier steps of the pipeline desire, by key."""

    def but(self, **changes: Any) -> Self:
        """Return this request with `changes`."""
        return replace(self, **changes)

    def request(self) -> Request:
        """Return the request as the core sees it."""
        return Request(
            composite=PlainDocument(self.composite),
            observed={key: PlainDocument(manifest) for key, manifest in self.observed.items()},
            required={
                name: tuple(PlainDocument(item) for item in items) for name, items in self.required.items()
            },
            input=self.input or {},
            desired=frozenset(self.earlier),
        )

    def message(self) -> pb.RunFunctionRequest:
        """Return the request as Crossplane sends it, in a later call of the reconcile."""
        message = self.first_message()
        message.context[REQUIREMENTS_STATED] = True
        return message

    def first_message(self) -> pb.RunFunctionRequest:
        """Return the request as Crossplane sends it, in the first call of the reconcile."""
        message = pb.RunFunctionRequest()
        message.observed.composite.resource.update(self.composite)
        for key, manifest in self.observed.items():
            message.observed.resources[key].resource.update(manifest)
        for key, manifest in self.earlier.items():
            message.desired.resources[key].resource.update(manifest)
        for name, items in self.required.items():
            message.required_resources[name].SetInParent()
            for item in items:
                message.required_resources[name].items.add().resource.update(item)
        if self.input is not None:
            message.input.update(self.input)
        return message

    def answer(self, *, level: str = "plain") -> drive.Answer:
        """Ask the function: at the level of the core, or (`level="wire"`) with serialised protobuf."""
        if level == "wire":
            return drive.answer(pb.RunFunctionResponse.FromString(self.answer_bytes()))
        return drive.of_core(dispatch.run(self.request()))

    def answer_bytes(self) -> bytes:
        """Ask the function in the form it has on the wire."""
        call = wire.decode(self.message().SerializeToString())
        return wire.encode(call, dispatch.run(call.request), wire.Ttl())

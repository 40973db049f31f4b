"""From the bytes of a RunFunctionRequest to a `Request`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from function.boundary import Request, Unreadable
from function.wire import messages
from function.wire.document import WireDocument
from function.wire.fast import Unusual, read
from function.wire.fast.slices import sliced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.boundary import Plain

REQUIREMENTS_STATED = "fleet-scheduler.fn.modelplane.ai/requirements-stated"
"""The key of the context that an answer leaves for the next call of the same reconcile (see `response`)."""

UNREADABLE_INPUT = "(unreadable)"
"""The one field of an input that could not be decoded: no reader knows it, so every reader refuses it."""


class MalformedRequest(ValueError):
    """The bytes are not a RunFunctionRequest."""


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """One request, and the message it came in: the answer copies from it what is not ours."""

    request: Request
    message: Any

    @property
    def tag(self) -> str:
        """What Crossplane calls this request."""
        return str(self.message.meta.tag)

    @property
    def requirements_stated(self) -> bool:
        """Whether an answer of this reconcile has stated requirements before.

        A context that cannot be read counts as yes: stating them again is one call too many, at worst.
        """
        try:
            return REQUIREMENTS_STATED in read.level(self.message.context)
        except Unreadable:
            return True


def decode(content: bytes) -> ReceivedCall:
    """Slice a request. No object in it is decoded yet, so the objects may still turn out unreadable.

    Raises:
        MalformedRequest: when the bytes are no RunFunctionRequest.
    """
    required: Mapping[str, tuple[bytes | memoryview, ...]]
    try:
        rest, required = sliced(content)
        message = messages.Request.FromString(rest)
    except Unusual:
        message, required = _parsed(content)
    except DecodeError:
        raise MalformedRequest("the bytes are not a RunFunctionRequest") from None
    request = Request(
        composite=WireDocument(message.observed.composite.resource).opened(),
        observed=_observed(message.observed.resources),
        required={name: tuple(map(WireDocument, required[name])) for name in sorted(required)},
        input=_input(message),
        desired=frozenset(message.desired.resources),
        desired_status=_status(message.desired.composite.resource),
    )
    return ReceivedCall(request, message)


def _observed(resources: Any) -> dict[str, WireDocument]:
    """Return the observed composed resources, in the order of their keys."""
    return {key: WireDocument(resources[key].resource) for key in sorted(resources)}


def _parsed(content: bytes) -> tuple[Any, dict[str, tuple[bytes, ...]]]:
    """Parse the whole request: the message, and the required objects by requirement name.

    Some versions answer "not found" with an empty item: it holds no object.
    """
    try:
        message = messages.Request.FromString(content)
    except DecodeError:
        raise MalformedRequest("the bytes are not a RunFunctionRequest") from None
    delivered = message.required_resources
    return message, {
        name: tuple(item.resource for item in delivered[name].items if item.resource) for name in delivered
    }


def _input(message: Any) -> Mapping[str, Plain] | None:
    """Return the step's input, None when the step has none."""
    if not message.HasField("input"):
        return None
    try:
        return read.plain(message.input)
    except Unreadable:
        return {UNREADABLE_INPUT: True}


def _status(composite: bytes) -> Mapping[str, Plain]:
    """Return the status that earlier steps desire, empty when it cannot be read."""
    try:
        status = read.project(composite, {"status": None}).get("status")
    except Unreadable:
        return {}
    return status if isinstance(status, dict) else {}

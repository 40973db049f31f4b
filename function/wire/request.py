"""From the bytes of a RunFunctionRequest to a `Request`.

`decode` slices a request and decodes no object of it. An object is a `WireDocument`: its bytes, read where a
handler looks. A handler that parses an object opens it first (`OpenDocument`), so that its first level and
its metadata are parsed once for everything that is asked of it.

Two things that look like details carry promises:

- **Identity.** An object that has not changed since an earlier call is recognised by what the API server says
  of it, without comparing contents (`OpenDocument.identity`). That is what makes a repeated call cheap.
- **Notes.** Crossplane calls again within one reconcile until requirements are stable. Between those calls
  only the context of our answer comes back, so what the next call must know stands there, under keys of ours.
  Another reconcile starts without a context: a note can never be old. Anyone may write a context, so a note
  counts only where the rest of the request agrees with it.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from function.boundary import DocumentIdentity, Plain, Request, Shape, Unreadable, frozen
from function.wire import messages
from function.wire.fast import Unusual, read
from function.wire.fast.charge import charge
from function.wire.fast.slices import sliced

# One Kubernetes object on the wire.

T = TypeVar("T")

_STRING = 0x1A
_HEAD = 2  # Bytes of a tag and of a length: all that the value "" has.


@dataclass(slots=True, eq=False)
class WireDocument:
    """An object as the bytes of its Struct, decoded where somebody looks.

    `plain` and `project` raise `Unreadable` when the bytes they look at are no object or nest too deep.
    A request holds tens of thousands of these until it is answered, so one holds its bytes and nothing else.
    """

    content: bytes | memoryview

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.content)

    def plain(self) -> dict[str, Plain]:
        """Return the whole object."""
        return read.plain(self.content)

    def opened(self) -> OpenDocument:
        """Return the object with its keys and those of its metadata at hand."""
        return OpenDocument(self.content)

    def project(self, shape: Shape) -> dict[str, Plain]:
        """Return the object cut down to `shape`."""
        return read.project(self.content, shape)


class OpenDocument(WireDocument):
    """An object whose first levels are read, for whoever asks it several things at once."""

    __slots__ = ("_metadata", "_top")

    def __init__(self, content: bytes | memoryview) -> None:
        super().__init__(content)
        self._top: Any = None
        self._metadata: Any = None
        """None where there is none to read; whoever wants to read it learns why."""
        try:
            self._top = top = read.level(content)
            if "metadata" in top:
                self._metadata = read.inner_level(top["metadata"])
        except Unreadable:
            pass

    def opened(self) -> OpenDocument:
        """Return itself."""
        return self

    @property
    def identity(self) -> DocumentIdentity | None:
        """The object's type, name and uid; its resource version, with the number of its bytes.

        Relied on: an API server never gives one resource version to two contents of one object. Files do,
        when somebody edits them, and so does an etcd that was restored. Bytes cannot be compared, because
        Crossplane writes map entries in another order on every call; their number tells some of those
        contents apart, not all. None where one of them (but the namespace) is missing.
        """
        metadata, top = self._metadata, self._top
        # Keys are tested, because `get` of a protobuf map costs more than a test and a subscript.
        if metadata is None or "uid" not in metadata or "resourceVersion" not in metadata:
            return None
        if "name" not in metadata or "kind" not in top or "apiVersion" not in top:
            return None
        uid, version = metadata["uid"], metadata["resourceVersion"]
        if len(uid) <= _HEAD or len(version) <= _HEAD or uid[0] != _STRING or version[0] != _STRING:
            return None
        which = (uid, metadata["name"], metadata.get("namespace"), top["kind"], top["apiVersion"])
        return which, (version, len(self.content))

    def project(self, shape: Shape) -> dict[str, Plain]:
        """Return the object cut down to `shape`."""
        if self._top is None:
            return read.project(self.content, shape)
        return read.project_level(self._top, shape, self._metadata)

    def charge(self, make: Callable[..., T], deployment_label: str) -> T | None:
        """Return what a ModelReplica is charged for, see `fast.charge`."""
        return None if self._metadata is None else charge(self._top, self._metadata, make, deployment_label)


REQUIREMENTS_STATED = "fleet-scheduler.fn.modelplane.ai/requirements-stated"
"""The key of the context under which an answer tells the next call of the same reconcile what it has stated.

It counts only where all of that was delivered: a later step with the same function starts afresh."""
SEEDED = "fleet-scheduler.fn.modelplane.ai/seeded"
"""The key under which an answer tells the next call that the first one had seeds, see `Request.watches`."""
CARRIED = "fleet-scheduler.fn.modelplane.ai/answer"
"""The key of an answer that the next call of the same reconcile gives again."""

UNREADABLE_INPUT = "(unreadable)"
"""The one field of an input that could not be decoded: no reader knows it, so every reader refuses it."""


class MalformedRequest(ValueError):
    """The bytes are not a RunFunctionRequest."""


@frozen
class ReceivedCall:
    """One request, and the message it came in: the answer copies from it what is not ours."""

    request: Request
    message: Any
    tag: str
    """Crossplane's tag of this request."""

    @property
    def may_carry(self) -> bool:
        """Tell whether an answer left in the context comes back; one that is there did not count."""
        try:
            return bool(self.tag) and CARRIED not in read.level(self.message.context)
        except Unreadable:
            return False

    @property
    def carried(self) -> bytes | None:
        """The answer that the call before left to be given, None where it left none.

        It counts only under the tag that Crossplane gives to all calls of one step in one reconcile; without
        one, nothing tells this reconcile from another.
        """
        try:
            left = read.project(self.message.context, {CARRIED: None}).get(CARRIED)
            if not isinstance(left, str):
                return None
            answer = b64decode(left, validate=True)
            tag = messages.Response.FromString(answer).meta.tag
        except (Unreadable, DecodeError, ValueError):
            return None
        return answer if tag and tag == self.tag else None


def decode(content: bytes) -> ReceivedCall:
    """Slice a request. No object in it is decoded yet, so the objects may still turn out unreadable.

    Raises:
        MalformedRequest: when the bytes are no RunFunctionRequest.
    """
    required: Mapping[str, tuple[bytes | memoryview, ...]]
    try:
        rest, required = sliced(content)  # Buys: no copy of any required object.
        message = messages.Request.FromString(rest)
    except Unusual:
        message, required = _parsed(content)
    except DecodeError:
        raise MalformedRequest("the bytes are not a RunFunctionRequest") from None
    observed = message.observed.resources
    request = Request(
        composite=WireDocument(message.observed.composite.resource).opened(),
        observed={key: WireDocument(observed[key].resource) for key in sorted(observed)},
        required={name: tuple(map(WireDocument, required[name])) for name in sorted(required)},
        input=_input(message),
        desired=frozenset(message.desired.resources),
        desired_status=_status(message.desired.composite.resource),
        **_notes(message.context, required),
    )
    return ReceivedCall(request, message, str(message.meta.tag))


def _notes(context: bytes, required: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an earlier answer of this reconcile noted for this call, {} in its first call.

    A note that names a requirement which was not delivered is of another step, or nobody's: it says nothing.
    """
    try:
        notes = read.project(context, {REQUIREMENTS_STATED: None, SEEDED: None})
    except Unreadable:
        return {}
    names = notes.get(REQUIREMENTS_STATED)
    if not (names and isinstance(names, list)):
        return {}
    if not all(isinstance(name, str) and name in required for name in names):
        return {}
    return {"stated": tuple(names), "seeded": notes.get(SEEDED) is True}


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


def _input(message: Any) -> Mapping[str, Plain]:
    """Return the step's input, empty when the step has none."""
    if not message.HasField("input"):
        return {}
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

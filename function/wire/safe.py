"""Answer a call that cannot be answered: an error of our own must not remove anything.

Crossplane stops fetching required resources at a fatal result. So an error before they were delivered is
answered with the requirements and with everything observed as it is; only an error after that is fatal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from function.boundary import Result, Unreadable
from function.wire import messages, write
from function.wire.fast import read
from function.wire.response import Ttl, add_condition, add_result, envelope, require, serialised

if TYPE_CHECKING:
    from function.boundary import Condition, Requirement
    from function.wire.request import ReceivedCall

# What server-side apply may be sent of an object that was read back: no status, and of the metadata only
# what a user could have written.
_TOP = ("apiVersion", "kind", "spec")
_SECRET_DATA = ("data", "stringData")
_METADATA = ("annotations", "labels", "name", "namespace")


class ErrorAnswer(Protocol):
    """What to say (`function.fail_static`); what stays is decided here, without decoding an object."""

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """What the handler declares."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Every condition of the handler, False."""

    @property
    def message(self) -> str:
        """The one sentence that the client learns."""

    @property
    def undelivered(self) -> bool:
        """Whether something declared is missing."""


def encode_internal_error(call: ReceivedCall, error: ErrorAnswer, ttl: Ttl) -> bytes:
    """Return an answer that removes nothing, whatever was observed: not Ready, with every condition."""
    response = envelope(call, ttl.pending)
    require(response, call, error.requirements)
    response.desired.composite.ready = messages.READY_FALSE
    for condition in error.conditions:
        add_condition(response, condition)
    survives = error.undelivered and _keep_observed(call, response)
    add_result(response, Result("WARNING" if survives else "FATAL", "InternalError", error.message))
    return serialised(response)


def _keep_observed(call: ReceivedCall, response: Any) -> bool:
    """Desire everything observed, unchanged. False when an object cannot even be cut, so cannot be kept."""
    observed = call.message.observed.resources
    kept = {}
    for key in observed:
        if key not in response.desired.resources:
            try:
                kept[key] = _applicable(observed[key].resource)
            except Unreadable:
                return False
    for key, content in kept.items():
        response.desired.resources[key].resource = content
    return True


def _shown(key: str, value: bytes) -> bytes:
    """Return a field as it is, and of a manifest that is a Secret all but its data: its provider's."""
    if key != "spec" or b"Secret" not in value:
        return value
    spec = read.value(value)
    provider = spec.get("forProvider") if isinstance(spec, dict) else None
    manifest = provider.get("manifest") if isinstance(provider, dict) else None
    if provider is None or not isinstance(manifest, dict) or manifest.get("kind") != "Secret":
        return value
    shown = {name: manifest[name] for name in manifest if name not in _SECRET_DATA}
    return write.value({**spec, "forProvider": {**provider, "manifest": shown}})


def _applicable(content: bytes) -> bytes:
    """Return an observed object cut down to what can be applied, its spec not decoded but sorted."""
    top = read.level(content)
    metadata = read.inner_level(top.get("metadata", b"")) or {}
    cut = b"".join(write.entry(key, metadata[key]) for key in _METADATA if key in metadata)
    written = b"".join(write.entry(key, _shown(key, top[key])) for key in _TOP if key in top)
    return write.canonical(write.entry("metadata", write.wrapped(cut)) + written)

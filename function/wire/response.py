"""From a `Response` to the bytes of a RunFunctionResponse.

Tag, context and the desired state of earlier steps are copied; their objects are never decoded, except
for the composite's status, which ours is merged into. Equal answers are equal bytes.

Three questions are decided here, because they are about Crossplane and not about placement:

- **When to ask again** (`Ttl.of`). Where Crossplane watches what an answer states (2.4), asking is a net for
  what a watch missed. Where it does not, asking is the only way to learn of a change.
- **What to state** (`stated`). Crossplane 2.4 watches what the last answer of a reconcile states. An answer
  that has read everything states only what should wake it.
- **What an error of our own answers** (`encode_internal_error`). It desires everything that is observed:
  doubt removes nothing (Law 2).

Once an answer states less than the one before, Crossplane calls again without the objects that were read.
That call cannot find the answer anew, so the answer is carried to it in the context (`CARRIED`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from function import boundary
from function.boundary import Condition, Plain, Request, Requirement, Response, Result, Unreadable, frozen
from function.wire import messages, write
from function.wire.fast import read
from function.wire.request import CARRIED, REQUIREMENTS_STATED, SEEDED, ReceivedCall

_NANO = 1_000_000_000
MAX_CARRIED = 1 << 20
"""Bytes of an answer that is carried to the next call: Crossplane receives four MiB at most."""


@frozen
class Ttl:
    """How long Crossplane may reuse an answer, in seconds."""

    pending: float = 15.0
    settled: float = 60.0
    watched: float = 600.0
    """Once settled, where Crossplane watches what is required: asking again is the net then, not the way."""

    def of(self, response: Response, request: Request) -> float:
        """Return the time for this answer; what the function's input asks for wins.

        Where all that can change it is watched, a later look is the net only: it finds what was missed. An
        open breaker hides whatever comes of the rest, so the net is coarse only where nothing is awaited.
        """
        pending, settled = response.ttl
        required = response.requirements
        watches = request.watches(required)
        if response.at_rest:
            all_watched = watches and all(item.watched and item.delivered(request) for item in required)
            return (self.watched if all_watched else self.settled) if settled is None else settled
        if response.woken and watches:
            return self.settled if settled is None else min(self.settled, settled)
        return self.pending if pending is None else pending


def encode(call: ReceivedCall, response: Response, ttl: Ttl) -> bytes:
    """Return the answer to `call`. Raises `Unreadable` when ours cannot be merged into an earlier status.

    Where no earlier step left anything, all but the tag is the same for every call that gets the response. It
    is noted on the response, and written once.
    """
    seconds = ttl.of(response, call.request)
    required = stated(call, response.requirements)
    if call.message.HasField("context") or call.message.desired.ByteSize():
        return _whole(call, response, seconds, required)
    how = (seconds, call.message.HasField("desired"), required, call.request.watches(required))
    rest = response.written.get(how)
    if rest is None:
        message = _composed(call, response, seconds, required)
        message.ClearField("meta")
        rest = response.written[how] = serialised(message)
    return serialised(_tagged(call, seconds)) + rest  # Fields in their order: the first is `meta`.


def _whole(
    call: ReceivedCall, response: Response, seconds: float, required: tuple[Requirement, ...]
) -> bytes:
    """Return an answer; one that states less than the one before is given again by the next call.

    That call has no longer what was read, so it could not find the answer anew. Observed and desired state
    are those of one reconcile, so the answer is still right. One too large to be carried states everything.
    """
    message = _composed(call, response, seconds, required)
    answer = serialised(message)
    if {requirement.name for requirement in required}.issuperset(call.request.stated):
        return answer
    if len(answer) > MAX_CARRIED:
        return serialised(_composed(call, response, seconds, response.requirements))
    _note(message, {CARRIED: b64encode(answer).decode()})
    return serialised(message)


def _composed(
    call: ReceivedCall, response: Response, seconds: float, required: tuple[Requirement, ...]
) -> Any:
    """Return the whole answer as a message."""
    message = envelope(call, seconds)
    written: write.Written = {}
    for key, desired in response.desired.items():
        if desired.written is None:
            desired.written = write.struct(desired.resource, written)
        resource = message.desired.resources[key]
        resource.resource = desired.written
        if desired.ready:
            resource.ready = messages.READY_TRUE
    if response.status:
        composite = message.desired.composite
        composite.resource = _with_status(composite.resource, response.status)
    if response.unready:
        message.desired.composite.ready = messages.READY_FALSE
    require(message, required, call.request)
    for condition in response.conditions:
        add_condition(message, condition)
    for result in response.results:
        add_result(message, result)
    return message


def _tagged(call: ReceivedCall, ttl: float) -> Any:
    """Return a response with nothing but its tag and its time to live."""
    message = messages.Response()
    message.meta.tag = call.message.meta.tag
    message.meta.ttl.seconds, message.meta.ttl.nanos = divmod(round(ttl * _NANO), _NANO)
    return message


def envelope(call: ReceivedCall, ttl: float) -> Any:
    """Return a response that holds what is not ours: tag, context and the desired state so far."""
    message = _tagged(call, ttl)
    if call.message.HasField("context"):
        message.context = write.canonical(call.message.context)
    if call.message.HasField("desired"):
        message.desired.CopyFrom(call.message.desired)
        # Crossplane sends the objects of earlier steps with their entries in another order on every call.
        composite, resources = message.desired.composite, message.desired.resources
        if composite.resource:
            composite.resource = write.canonical(composite.resource)
        for key in resources:
            resources[key].resource = write.canonical(resources[key].resource)
    return message


def _with_status(composite: bytes, status: Mapping[str, Plain]) -> bytes:
    """Return the composite with `status` merged into its status; its other fields are not decoded."""
    fields = read.level(composite)
    earlier = read.value(fields["status"]) if "status" in fields else {}
    merged = merge(earlier if isinstance(earlier, dict) else {}, status)
    written = {key: fields[key] for key in fields} | {"status": write.value(merged)}
    return b"".join(write.entry(key, written[key]) for key in sorted(written))


def merge(below: Mapping[str, Plain], above: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return both, `above` winning; objects are merged key by key, lists are replaced."""
    merged = dict(below)
    for key, ours in above.items():
        theirs = merged.get(key)
        nested = isinstance(ours, dict) and isinstance(theirs, dict)
        merged[key] = merge(theirs or {}, ours) if nested else ours
    return merged


def require(message: Any, required: tuple[Requirement, ...], request: Request) -> None:
    """State what Crossplane must fetch, and note it for the next call of this reconcile.

    Crossplane starts a reconcile with no requirements known, or (2.4) with what the last one stated, compares
    those of an answer with those of the answer before, and calls again until they are equal. None at all
    equals none known: such an answer is final, and from 2.4 on it has nothing watched. Between two calls of a
    reconcile, and only there, the context of an answer comes back with the next request. It stays there for
    later steps of the pipeline.
    """
    for requirement in required:
        selector = message.requirements.resources[requirement.name]
        selector.api_version, selector.kind = requirement.api_version, requirement.kind
        if requirement.match_name is None:
            # "Every object of the kind" is an explicitly present, empty matchLabels: every version of
            # Crossplane understands it, while some refuse a selector with nothing in it.
            selector.match_labels.SetInParent()
            for key, label in requirement.match_labels:
                selector.match_labels.labels[key] = label
        else:
            selector.match_name = requirement.match_name
        if requirement.namespace is not None:
            selector.namespace = requirement.namespace
    if required:
        seeded = {SEEDED: True} if request.watches(required) else {}
        _note(message, {REQUIREMENTS_STATED: [requirement.name for requirement in required], **seeded})


def stated(call: ReceivedCall, requirements: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """Return what an answer states: everything, or once all of it was read only what is to be watched.

    From 2.4 on Crossplane watches what the last answer of a reconcile states. Which version it is nobody can
    tell at the first reconcile, when most is required; before 2.4 stating less costs one small call. Where
    the context cannot be read, nothing can be left for that call.
    """
    watched = tuple(requirement for requirement in requirements if requirement.watched)
    read_all = all(requirement.delivered(call.request) for requirement in requirements)
    if watched and read_all and call.may_carry:
        return watched
    names = {requirement.name for requirement in requirements}
    return tuple(requirement for requirement in requirements if requirement.served_by not in names)


def _note(message: Any, notes: Mapping[str, Plain]) -> None:
    """Put something into the context. One that cannot be read is passed on as it came."""
    with suppress(Unreadable):
        read.level(message.context)
        message.context = write.canonical(message.context + write.struct(notes))


def add_condition(message: Any, condition: Condition) -> None:
    """Write one condition, on the composite."""
    written = message.conditions.add(type=condition.type, reason=condition.reason)
    written.status = messages.STATUS_TRUE if condition.status else messages.STATUS_FALSE
    if condition.message:
        written.message = condition.message


def add_result(message: Any, result: Result) -> None:
    """Write one result, an event on the composite."""
    written = message.results.add(severity=messages.SEVERITIES[result.severity], message=result.message)
    if result.reason:
        written.reason = result.reason


def serialised(message: Any) -> bytes:
    """Return the bytes, map entries sorted."""
    return bytes(message.SerializeToString(deterministic=True))


# Answer a call that cannot be answered: an error of our own must not remove anything.
#
# Crossplane stops fetching required resources at a fatal result. So an error before they were delivered is
# answered with the requirements and with everything observed as it is; only an error after that is fatal.

# What server-side apply may be sent of an object that was read back: no status, and of the metadata only
# what a user could have written.
_TOP = ("apiVersion", "kind", "spec")
_SECRET_DATA = ("data", "stringData")
_METADATA = ("annotations", "labels", "name", "namespace")


def encode_internal_error(call: ReceivedCall, error: boundary.InternalError, ttl: Ttl) -> bytes:
    """Return an answer that removes nothing, whatever was observed: not Ready, with every condition."""
    response = envelope(call, ttl.pending)
    require(response, error.requirements, call.request)
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

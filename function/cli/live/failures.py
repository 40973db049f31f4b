"""Explain a failed request to the control plane, and say what to do about it.

The client raises its own error for an answer that is no success, and urllib3's for no answer. Both are told
apart by what they carry, so that this module imports neither.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from function.cli.bad_input import BadInput

if TYPE_CHECKING:
    from function.cli.live.resources import Resource

UNAUTHORIZED, FORBIDDEN, NOT_FOUND, GONE = 401, 403, 404, 410
_USER = re.compile(r'User "(?P<user>[^"]*)"')
_OBJECT_AT = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>:? ?")


def expired(error: Exception) -> bool:
    """Whether the server has forgotten where a list was to be continued."""
    return _status(error) == GONE


def absent(error: Exception) -> bool:
    """Whether there is no such object, or no such kind."""
    return _status(error) == NOT_FOUND


def refusal(error: Exception, where: str, verb: str, resource: Resource, namespace: str) -> BadInput:
    """Say what kept a resource from being read."""
    status = _status(error)
    what = f"{verb} {resource.name}{f' in namespace {namespace}' if namespace else ''}"
    if status == UNAUTHORIZED:
        return BadInput(f"{where}: {what}: the credentials are not accepted, or have expired")
    if status == FORBIDDEN:
        message = _message(error)
        match = _USER.search(message)
        who = f' for user "{match["user"]}"' if match else ""
        return BadInput(
            f"{where}: {what}: forbidden{who}; {resource.role} has a ClusterRole that allows it"
            f"{'' if match else f' ({message})'}"
        )
    if status == NOT_FOUND:
        return BadInput(
            f"{where}: {what}: the CRD {resource.name} with version {resource.version} is not installed; "
            "is this the control plane? docs/install.md installs it"
        )
    if status is not None:
        return BadInput(f"{where}: {what}: {status} {_message(error)}")
    return BadInput(f"{where}: {what}: {_unreachable(error)}")


def _status(error: Exception) -> int | None:
    """The status of the answer; None when there was none."""
    status = getattr(error, "status", None)
    return status if isinstance(status, int) and status else None


def _message(error: Any) -> str:
    """What the server said: the message of its Status, else the start of its text."""
    body = error.body.decode(errors="replace") if isinstance(error.body, bytes) else str(error.body or "")
    try:
        plain = json.loads(body)
    except ValueError:
        plain = None
    message = plain.get("message") if isinstance(plain, dict) else None
    return str(message or " ".join(body.split())[:200] or error.reason)


def _unreachable(error: Exception) -> str:
    """Why there was no answer: urllib3 wraps the reason, and names objects that nobody knows."""
    reason = getattr(error, "reason", None)
    text = " ".join(_OBJECT_AT.sub("", str(reason or error)).split())
    kind = type(reason or error).__name__
    if "Timeout" in kind:
        return f"no answer in time: {text}; --request-timeout gives it longer"
    if "SSL" in kind or "certificate" in text.lower():
        return f"the server's certificate is not accepted: {text}"
    return f"cannot be reached: {text}"

"""Read where the URL of an endpoint leads: an address, its family and a port.

The rules are those of the API server for EndpointSlices, so that what it would refuse is said of the URL: an
IP is none of loopback, link-local, multicast or unspecified; a name has at least two labels. Credentials in a
URL would be lost on the way, so a URL that has some is refused. No message quotes them.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from function.api.fault import shown

DEFAULT_PORTS = {"http": 80, "https": 443}
NAME_LENGTH = 253
MAX_PORT = 65_535

_NAME = re.compile(r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_DIGITS = re.compile(r"[0-9.]+", re.ASCII)


class Destination(NamedTuple):
    """What a URL says of where requests go."""

    family: str
    """IPv4, IPv6 or FQDN: the addressType of an EndpointSlice."""
    address: str
    port: int


def read_destination(url: str) -> Destination:
    """Read a URL. Raises ValueError, which says what is wrong and shows the host only."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError("no URL can be read in it") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise ValueError(f"expected a URL that begins with http:// or https://, found {_scheme(parts)}")
    if "@" in parts.netloc:
        raise ValueError("credentials in a URL are not sent: leave them out")
    family, address = _host(parts.hostname or "")
    return Destination(family, address, _port(parts))


def api_root(url: str) -> str:
    """Return the path under which the API of a URL begins: `/a/` for `http://host/a/v1`.

    By convention the URL of an OpenAI-compatible API ends in its version, which clients send too.
    """
    path = urlsplit(url).path.rstrip("/").removesuffix("/v1")
    return f"{path}/"


def bracketed(address: str) -> str:
    """Return an address as it stands in a URL: IPv6 in brackets."""
    bare = address.count(":") > 1 and not address.startswith("[")
    return f"[{address}]" if bare else address


def _scheme(parts: SplitResult) -> str:
    return shown(f"{parts.scheme}:") if parts.scheme else "no scheme"


def _host(host: str) -> tuple[str, str]:
    try:
        address = ip_address(host)
    except ValueError:
        return "FQDN", _name(host)
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        raise ValueError(f"a gateway sends nothing to {address}: it is loopback, link-local or multicast")
    return _family(address), str(address)


def _family(address: IPv4Address | IPv6Address) -> str:
    if isinstance(address, IPv6Address) and (address.scope_id or address.ipv4_mapped):
        raise ValueError(f"expected an IPv6 address without a zone or an IPv4 address in it, found {address}")
    return f"IPv{address.version}"


def _name(host: str) -> str:
    if not host:
        raise ValueError("a host is required, but missing")
    name = host.removesuffix(".")
    if len(name) > NAME_LENGTH or not _NAME.fullmatch(name) or _DIGITS.fullmatch(name):
        raise ValueError(f"expected an IP address or a DNS name with a dot as the host, found {shown(host)}")
    return name


def _port(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port is None:
        return DEFAULT_PORTS[parts.scheme]
    if not 1 <= port <= MAX_PORT:
        raise ValueError(f"expected a port from 1 to {MAX_PORT}")
    return port

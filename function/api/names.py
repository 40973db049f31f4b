"""Names and keys of composed resources, as Crossplane and Modelplane agreed on them.

An identity is a cluster and an index. Its key in the desired state is `replica-<cluster>-<index>` (and
`endpoint-<cluster>-<index>`); its object name is derived from the deployment, the cluster and the index.
"""

from __future__ import annotations

import re
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import SplitResult, urlsplit

from function.api.fault import shown
from function.boundary import frozen

API_VERSION = "modelplane.ai/v1alpha1"
"""Group and version of the platform's kinds."""
SYSTEM_NAMESPACE = "modelplane-system"
"""The namespace of the platform, on the control plane and on its clusters."""
CLUSTER_GATEWAY = "inference-gateway"
"""The Gateway of a cluster that leads to its replicas, in the namespace of the platform."""
KEY_ANNOTATION = "crossplane.io/composition-resource-name"
"""The key of a composed resource, as Crossplane notes it there."""
PAUSED_ANNOTATION = "crossplane.io/paused"
"""Crossplane does not reconcile a composite while this is "true"."""
NOT_COMPOSED = ("cannot select Composition", "cannot fetch Composition")
"""How the message of Synced begins where Crossplane runs no function for a composite."""
RECONCILE_ANNOTATION = "crossplane.io/reconcile-requested-at"
"""A new value makes Crossplane reconcile a composite now."""
POOL_LABEL = "modelplane.ai/pool"
"""The pool of a node, where the pool has no labels of its own."""
SERVING_LABEL = "modelplane.ai/serving"
"""The replica that a serving pod belongs to."""
RESERVED_PREFIXES = ("modelplane.ai/", "leaderworkerset.sigs.k8s.io/")
"""Labels and annotations of pods with these prefixes are not for users: our selectors rely on them.

Pods of many teams share a namespace. One with the label of another's would join its pool, count in its
disruption budget or keep its pods off a node.
"""
BASE_LENGTH = 57
"""Characters of the deployment's name that are kept: with `-` and the digest that makes 63."""
DIGEST_LENGTH = 5
"""Hex digits in a name, as Crossplane's function SDK has them."""
NAME_LENGTH = 63
"""Characters of a DNS label."""

# An index has no leading zero: `read_key` takes one spelling of each identity.
_KEY = re.compile(r"(replica|endpoint)-(.+)-(0|[1-9][0-9]{0,8})", re.ASCII)
DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
"""The form of a DNS subdomain (RFC 1123), however long it may be."""
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
"""A DNS label (RFC 1123): at most 63 of lower case, digits and dashes inside."""
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
"""A DNS label that begins with a letter, as the names of Services do."""
_OUTSIDE_LABEL = re.compile(r"[^a-z0-9-]")


NamespacedName: TypeAlias = tuple[str, str]
"""Namespace and name."""


@frozen(order=True)
class Identity:
    """Which replica of a deployment: its cluster and its index there."""

    cluster: str
    index: int

    def __str__(self) -> str:
        """`use1/0`."""
        return f"{self.cluster}/{self.index}"


def desired_key(kind: Literal["replica", "endpoint"], identity: Identity) -> str:
    """Key of a ModelReplica or ModelEndpoint in the desired state."""
    return f"{kind}-{identity.cluster}-{identity.index}"


def read_key(key: str) -> tuple[str, Identity] | None:
    """Read a key back: `replica` or `endpoint`, and the identity. None when it is neither.

    Only the canonical form counts: `replica-a-01` would name the same identity as `replica-a-1`.
    """
    match = _KEY.fullmatch(key)
    return (match[1], Identity(match[2], int(match[3]))) if match else None


def object_name(deployment: str, identity: Identity) -> str:
    """Name of the ModelReplica and the ModelEndpoint: a valid DNS label, the same every time.

    A name that would come out invalid (a dot, an uppercase letter) is mended; the digest is taken of the
    names as they are, so two names that mend alike stay apart.
    """
    digest = sha256(f"{deployment}-{identity.cluster}-{identity.index}".encode()).hexdigest()[:DIGEST_LENGTH]
    base = _OUTSIDE_LABEL.sub("-", deployment[:BASE_LENGTH].lower()).strip("-")
    return f"{base}-{digest}" if base else f"r-{digest}"


def child_name(*parts: str, limit: int = NAME_LENGTH, prefix: str = "", digits: int = DIGEST_LENGTH) -> str:
    """Name of an object that belongs to others, as Crossplane's function SDK makes it.

    The parts joined by `-` and cut so that `digits` of the uncut join's digest fit into `limit`. `prefix`
    goes before the join and is no part of what is digested.
    """
    whole = "-".join(parts)
    digest = sha256(whole.encode()).hexdigest()[:digits]
    base = (prefix + whole)[: limit - digits - 1].rstrip("-")
    return f"{base}-{digest}"


def dns_1035_name(*parts: str, limit: int = NAME_LENGTH, digits: int = DIGEST_LENGTH) -> str:
    """Name of an object that must be a DNS-1035 label, such as a Service, apart from others by its digest.

    A leading digit gets `m-`, what no label has becomes a dash.
    """
    prefix = "m-" if parts[0][:1].isdigit() else ""
    return _OUTSIDE_LABEL.sub("-", child_name(*parts, limit=limit, prefix=prefix, digits=digits))


# Read where the URL of an endpoint leads: an address, its family and a port.
#
# The rules are those of the API server for EndpointSlices, so that what it would refuse is said of the URL:
# an IP is none of loopback, link-local, multicast or unspecified; a name has at least two labels.
# Credentials in a URL would be lost on the way, so a URL that has some is refused. No message quotes them.

DEFAULT_PORTS = {"http": 80, "https": 443}
HOST_LENGTH = 253
"""Characters of a DNS name."""
MAX_PORT = 65_535

_NAME = re.compile(r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_DIGITS = re.compile(r"[0-9.]+", re.ASCII)


class Destination(NamedTuple):
    """The host, port and scheme that a URL names."""

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
        scheme = shown(f"{parts.scheme}:") if parts.scheme else "no scheme"
        raise ValueError(f"expected a URL that begins with http:// or https://, found {scheme}")
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


def _host(host: str) -> tuple[str, str]:
    """Return family and address of a host. What an EndpointSlice refuses is refused here."""
    try:
        address = ip_address(host)
    except ValueError:
        return "FQDN", _name(host)
    if address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified:
        raise ValueError(f"a gateway sends nothing to {address}: it is loopback, link-local or multicast")
    if isinstance(address, IPv6Address) and (address.scope_id or address.ipv4_mapped):
        raise ValueError(f"expected an IPv6 address without a zone or an IPv4 address in it, found {address}")
    return f"IPv{address.version}", str(address)


def _name(host: str) -> str:
    """Return a DNS name without the dot at its end. An address in digits that is none is refused."""
    if not host:
        raise ValueError("a host is required, but missing")
    name = host.removesuffix(".")
    if len(name) > HOST_LENGTH or not _NAME.fullmatch(name) or _DIGITS.fullmatch(name):
        raise ValueError(f"expected an IP address or a DNS name with a dot as the host, found {shown(host)}")
    return name


def _port(parts: SplitResult) -> int:
    """Return the port, by default that of the scheme."""
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port is None:
        return DEFAULT_PORTS[parts.scheme]
    if not 1 <= port <= MAX_PORT:
        raise ValueError(f"expected a port from 1 to {MAX_PORT}")
    return port

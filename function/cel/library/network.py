"""IP addresses and CIDR blocks, as the API server's `library/ip.go` and `cidr.go` have them.

Network drivers publish addresses as texts, and the API server admits these functions in every selector. Go's
`net/netip` decides what parses; Python's `ipaddress` agrees with it but for two things, which are checked
here. Neither a zone (`fe80::1%eth0`) nor an IPv4 address mapped to IPv6 is allowed by Kubernetes, and the
length of a prefix is written without a sign or leading zeros.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import ClassVar

from function.boundary import frozen
from function.cel.library import charges as cost
from function.cel.library.charges import tenth
from function.cel.library.declarations import function, method, parses
from function.cel.values import EvaluationError

_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)
_V4, _V6 = 4, 6
_BROADCAST = IPv4Address("255.255.255.255")


@frozen
class Ip:
    """An address. Go compares it by value, also as the key of a map."""

    TYPE_NAME: ClassVar = "net.IP"
    address: IPv4Address | IPv6Address

    def __str__(self) -> str:
        """Return the canonical text: `ip.isCanonical` compares with it."""
        return str(self.address)


@frozen
class Cidr:
    """An address with the length of its network's prefix. Go compares both, also as the key of a map.

    Bits behind the prefix may be set, until `masked`.
    """

    TYPE_NAME: ClassVar = "net.CIDR"
    address: IPv4Address | IPv6Address
    bits: int

    def holds(self, address: IPv4Address | IPv6Address) -> bool:
        """Tell whether the block contains an address: one of its family, with its network's bits."""
        behind = address.max_prefixlen - self.bits
        same_family = address.version == self.address.version
        return same_family and int(address) >> behind == int(self.address) >> behind

    def __str__(self) -> str:
        """Return it as it was written, bits behind the prefix included."""
        return f"{self.address}/{self.bits}"


def _address(text: str) -> IPv4Address | IPv6Address:
    """Return an address as Kubernetes takes it: no zone, and not one of IPv4 mapped to IPv6."""
    try:
        address = ip_address(text)
    except ValueError:
        raise EvaluationError(f'IP Address "{text}" parse error during conversion from string') from None
    if isinstance(address, IPv6Address) and (address.ipv4_mapped or address.scope_id is not None):
        raise EvaluationError(f'IP address "{text}" with a zone or mapped from IPv4 is not allowed')
    return address


def ip(text: str) -> Ip:
    """Return the address that a text is."""
    return Ip(_address(text))


def cidr(text: str) -> Cidr:
    """Return the block that a text is. The address may have bits behind the prefix (`masked`)."""
    address, slash, bits = text.partition("/")
    if not slash or not _PREFIX.fullmatch(bits):
        raise EvaluationError(f'network address parse error during conversion from string: "{text}"')
    parsed = _address(address)
    if int(bits) > parsed.max_prefixlen:
        raise EvaluationError(f'network address parse error during conversion from string: "{text}"')
    return Cidr(parsed, int(bits))


def is_link_local_multicast(value: Ip) -> bool:
    """Tell whether the address is in 224.0.0.0/24 or ff02::/16, whatever its multicast flags."""
    if value.address.version == _V4:
        return int(value.address) >> 8 == 0xE00000  # noqa: PLR2004 - 224.0.0
    return int(value.address) >> 112 & 0xFF0F == 0xFF02  # noqa: PLR2004 - RFC 4291, 2.7


def is_global_unicast(value: Ip) -> bool:
    """Tell whether the address is an ordinary one; private ones count.

    Go's `IsGlobalUnicast`: neither unspecified, loopback, multicast nor link-local, and not the broadcast
    address.
    """
    address = value.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and address != _BROADCAST


def masked(block: Cidr) -> Cidr:
    """Return the block with the bits behind its prefix cleared, which is how a network is usually written."""
    behind = block.address.max_prefixlen - block.bits
    return Cidr(type(block.address)(int(block.address) >> behind << behind), block.bits)


def contains_cidr(block: Cidr, other: Cidr) -> bool:
    """Tell whether all of the other block is in this one."""
    return block.bits <= other.bits and block.holds(other.address)


def lookup(units: int) -> Callable[..., int]:
    """Return the cost of looking something up in a block: these units, and parsing it if it is a text."""
    return lambda _result, _block, part: units + (tenth(len(part)) if type(part) is str else 0)


ADDRESS, BLOCK = 1, 3
"""Units for comparing an address, and for masking two blocks and comparing them."""

DECLARATIONS = (
    function("ip", "string -> IP", ip, cost=cost.walk),
    function("isIP", "string -> bool", parses(ip), cost=cost.walk),
    function(
        "ip.isCanonical",
        "string -> bool",
        lambda text: str(_address(text)) == text,
        cost=lambda _result, text: tenth(2 * len(text)),
    ),
    method("family", "IP -> int", lambda value: value.address.version),
    method("isUnspecified", "IP -> bool", lambda value: value.address.is_unspecified),
    method("isLoopback", "IP -> bool", lambda value: value.address.is_loopback),
    method("isLinkLocalMulticast", "IP -> bool", is_link_local_multicast),
    method("isLinkLocalUnicast", "IP -> bool", lambda value: value.address.is_link_local),
    method("isGlobalUnicast", "IP -> bool", is_global_unicast),
    function("cidr", "string -> CIDR", cidr, cost=cost.walk),
    function("isCIDR", "string -> bool", parses(cidr), cost=cost.walk),
    method(
        "containsIP",
        "CIDR, string -> bool",
        lambda block, text: block.holds(_address(text)),
        cost=lookup(ADDRESS),
    ),
    method(
        "containsIP",
        "CIDR, IP -> bool",
        lambda block, value: block.holds(value.address),
        cost=lookup(ADDRESS),
    ),
    method(
        "containsCIDR",
        "CIDR, string -> bool",
        lambda block, text: contains_cidr(block, cidr(text)),
        cost=lookup(BLOCK),
    ),
    method("containsCIDR", "CIDR, CIDR -> bool", contains_cidr, cost=lookup(BLOCK)),
    method("ip", "CIDR -> IP", lambda block: Ip(block.address)),
    method("prefixLength", "CIDR -> int", lambda block: block.bits),
    method("masked", "CIDR -> CIDR", masked),
)

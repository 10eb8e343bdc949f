"""Decides which places on the network may be reached. Pure: each function returns a reason to refuse, or "".

A name is never trusted, only the addresses it resolves to. A URL is judged by its parts as the connection will use
them, never by its text. Whatever is not known to be public is refused.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_REDIRECTS = 5

# Ports on which no web service listens and an HTTP request can do harm: the list that browsers use.
BLOCKED_PORTS = frozenset({
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
})  # fmt: skip


class WebOrigin(NamedTuple):
    """Scheme, host and port: what a browser calls the same origin."""

    scheme: str
    host: str
    port: int


class _NetworkBlock(NamedTuple):
    network: IPv4Network | IPv6Network
    what: str
    openable: bool = False  # with SOUL_ALLOW_PRIVATE_NET


_METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
    )
)
_V4 = (
    _NetworkBlock(IPv4Network("127.0.0.0/8"), "a loopback address", openable=True),
    _NetworkBlock(IPv4Network("10.0.0.0/8"), "a private address", openable=True),
    _NetworkBlock(IPv4Network("172.16.0.0/12"), "a private address", openable=True),
    _NetworkBlock(IPv4Network("192.168.0.0/16"), "a private address", openable=True),
    _NetworkBlock(IPv4Network("100.64.0.0/10"), "a carrier's shared address", openable=True),
    _NetworkBlock(IPv4Network("169.254.0.0/16"), "a link-local address"),
    _NetworkBlock(IPv4Network("0.0.0.0/8"), "an unspecified address"),
    _NetworkBlock(IPv4Network("192.0.0.0/24"), "a protocol assignment"),
    _NetworkBlock(IPv4Network("192.0.2.0/24"), "a documentation address"),
    _NetworkBlock(IPv4Network("198.51.100.0/24"), "a documentation address"),
    _NetworkBlock(IPv4Network("203.0.113.0/24"), "a documentation address"),
    _NetworkBlock(IPv4Network("192.88.99.0/24"), "a 6to4 relay address"),
    _NetworkBlock(IPv4Network("198.18.0.0/15"), "a benchmarking address"),
    _NetworkBlock(IPv4Network("224.0.0.0/4"), "a multicast address"),
    _NetworkBlock(IPv4Network("240.0.0.0/4"), "a reserved address"),
)
_V6 = (
    _NetworkBlock(IPv6Network("::1/128"), "a loopback address", openable=True),
    _NetworkBlock(IPv6Network("fc00::/7"), "a private address", openable=True),
    _NetworkBlock(IPv6Network("::/128"), "an unspecified address"),
    _NetworkBlock(IPv6Network("::ffff:0:0/96"), "an IPv4-mapped address"),
    _NetworkBlock(IPv6Network("::/96"), "an IPv4-compatible address"),
    _NetworkBlock(IPv6Network("64:ff9b:1::/48"), "a local NAT64 address"),
    _NetworkBlock(IPv6Network("2001::/32"), "a Teredo address"),
    _NetworkBlock(IPv6Network("2001::/23"), "a protocol assignment"),
    _NetworkBlock(IPv6Network("2001:db8::/32"), "a documentation address"),
    _NetworkBlock(IPv6Network("2002::/16"), "a 6to4 address"),
    _NetworkBlock(IPv6Network("3fff::/20"), "a documentation address"),
    _NetworkBlock(IPv6Network("fe80::/10"), "a link-local address"),
    _NetworkBlock(IPv6Network("fec0::/10"), "a site-local address"),
    _NetworkBlock(IPv6Network("ff00::/8"), "a multicast address"),
)
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_V6 = IPv6Network("2000::/3")

_MAX_HOST_CHARS = 253
_MAX_PORT = 65_535
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def refused_url(scheme: str, host: str, port: int, *, userinfo: bool) -> str:
    """Return why a URL with these parts may not be requested, or "". `host` is in lower case, without brackets."""
    if scheme not in DEFAULT_PORTS:
        return f"{scheme or 'no scheme'} is not http or https"
    if userinfo:
        return "the URL carries a user name or password"
    if not is_address(host):
        if len(host) > _MAX_HOST_CHARS or not _NAME.fullmatch(host):
            return "the URL names no valid host"
        if _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]):
            return "the URL spells an address in an odd way"
    if port in BLOCKED_PORTS or port > _MAX_PORT:
        return f"port {port} is not one of the web's"
    return ""


def refused_addresses(addresses: Iterable[str], *, private_ok: bool = False) -> str:
    """Return why a host with these addresses may not be reached, or "": one forbidden address is enough."""
    reasons = [refused_address(address, private_ok=private_ok) for address in addresses]
    if not reasons:
        return "the host has no address"
    return next(filter(None, reasons), "")


def refused_address(address: str, *, private_ok: bool = False) -> str:
    """Return why nobody may connect to `address`, or "".

    Args:
        address: as a resolver wrote it.
        private_ok: allows loopback, private and shared networks, but no metadata service or other reserved address.

    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return f"{address!r} is not an address"
    if isinstance(parsed, IPv6Address) and parsed in _NAT64:
        parsed = IPv4Address(int(parsed) & 0xFFFFFFFF)
    if parsed in _METADATA:
        return f"{address} is a metadata service"
    blocks = _V4 if isinstance(parsed, IPv4Address) else _V6
    for block in blocks:
        if parsed in block.network:
            return "" if private_ok and block.openable else f"{address} is {block.what}"
    if isinstance(parsed, IPv6Address) and parsed not in _GLOBAL_V6:
        return f"{address} is a reserved address"
    return ""


def refused_redirect(before: str, after: str) -> str:
    """Return why a redirect from one scheme to another may not be followed, or ""."""
    return "a redirect from https to http" if (before, after) == ("https", "http") else ""


def is_address(host: str) -> bool:
    """Return whether `host` is an IP address in its ordinary spelling, without a zone."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host

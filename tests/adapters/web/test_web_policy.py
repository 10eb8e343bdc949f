"""What is public may be reached and nothing else, whatever the address is called."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.web.policy import is_address, refused_address, refused_addresses, refused_redirect, refused_url

PRIVATE = ["127.0.0.1", "10.255.0.1", "172.20.1.1", "192.168.9.9", "100.64.3.4", "::1", "fd00::1"]
NEVER = [
    "0.0.0.1", "169.254.169.254", "169.254.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.8", "192.0.2.1",
    "198.51.100.1", "203.0.113.1", "192.88.99.1", "198.19.255.255", "224.0.0.251", "255.255.255.255", "::",
    "::ffff:8.8.8.8", "::8.8.8.8", "64:ff9b:1::8.8.8.8", "2001::1", "2001:2::1", "2001:db8::1", "2002:808:808::1",
    "3fff::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff05::1", "fd00:ec2::254", "4000::1", "100::1", "5f00::1",
    "localhost", "", "127.1", "1.2.3.4/32",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "64:ff9b::8.8.8.8"]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_free(address: str) -> None:
    assert refused_address(address) == ""


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_free_only_where_the_owner_says_so(address: str) -> None:
    assert refused_address(address)
    assert refused_address(address, private_ok=True) == ""


@pytest.mark.parametrize("address", NEVER)
def test_some_addresses_are_never_free(address: str) -> None:
    assert refused_address(address)
    assert refused_address(address, private_ok=True)


@given(st.ip_addresses(v=4))
def test_no_spelling_inside_ipv6_opens_an_ipv4_address_that_is_shut(address: ipaddress.IPv4Address) -> None:
    if not refused_address(str(address)):
        return
    for form in ("::ffff:{}", "::{}", "64:ff9b::{}", "64:ff9b:1::{}"):
        assert refused_address(form.format(address))


@given(st.ip_addresses())
def test_what_the_standard_library_calls_not_global_is_refused(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if not address.is_global:
        nat64 = address in ipaddress.ip_network("64:ff9b::/96")
        assert nat64 or refused_address(str(address))


def test_one_forbidden_address_forbids_the_host_and_none_is_no_leave() -> None:
    assert refused_addresses(["8.8.8.8", "2606:4700::1111"]) == ""
    assert "loopback" in refused_addresses(["8.8.8.8", "127.0.0.1"])
    assert refused_addresses(["8.8.8.8", "127.0.0.1"], private_ok=True) == ""
    assert refused_addresses([])


@pytest.mark.parametrize(
    ("scheme", "host", "port", "userinfo", "free"),
    [
        ("https", "example.com", 443, False, True),
        ("http", "example.com.", 8080, False, True),
        ("http", "xn--bcher-kva.example", 80, False, True),
        ("http", "_atproto.example.com", 80, False, True),
        ("http", "1.2.3.4", 80, False, True),
        ("http", "::1", 80, False, True),  # the address itself is judged where it is dialled
        ("http", "1e100.net", 80, False, True),
        ("http", "3com", 80, False, True),
        ("ftp", "example.com", 21, False, False),
        ("", "example.com", 80, False, False),
        ("http", "example.com", 80, True, False),
        ("http", "", 80, False, False),
        ("http", ".", 80, False, False),
        ("http", "a..b", 80, False, False),
        ("http", "-a.example", 80, False, False),
        ("http", "a" * 64 + ".example", 80, False, False),
        ("http", ".".join(["abcdefgh"] * 30), 80, False, False),
        ("http", "exa%6dple.com", 80, False, False),
        ("http", "exam ple.com", 80, False, False),
        ("http", "example.com\n", 80, False, False),
        ("http", "bücher.example", 80, False, False),
        ("http", "::1%lo", 80, False, False),
        ("http", "1.2.3.4.", 80, False, False),
        ("http", "127.1", 80, False, False),
        ("http", "2130706433", 80, False, False),
        ("http", "0x7f.1", 80, False, False),
        ("http", "example.0x1f", 80, False, False),
        ("http", "example.com", 0, False, False),
        ("http", "example.com", 22, False, False),
        ("http", "example.com", 65536, False, False),
    ],
)
def test_a_url_is_judged_by_its_parts(scheme: str, host: str, port: int, *, userinfo: bool, free: bool) -> None:
    assert (refused_url(scheme, host, port, userinfo=userinfo) == "") is free


@pytest.mark.parametrize(
    ("before", "after", "free"),
    [("http", "http", True), ("http", "https", True), ("https", "https", True), ("https", "http", False)],
)
def test_a_redirect_may_gain_tls_and_never_lose_it(before: str, after: str, *, free: bool) -> None:
    assert (refused_redirect(before, after) == "") is free


@pytest.mark.parametrize(("host", "yes"), [("1.2.3.4", True), ("::1", True), ("::1%lo", False), ("a", False)])
def test_an_address_is_known_by_its_ordinary_spelling(host: str, *, yes: bool) -> None:
    assert is_address(host) is yes

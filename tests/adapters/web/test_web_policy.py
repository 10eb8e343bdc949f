"""Proves that public addresses can be reached and no others, however an address is written.

Tests of the request budget of a service: when it holds requests back, and that it always releases them. A page is
read in the character set that it declares, wherever it does so.
"""

import ipaddress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.xrpc import RATE_LIMIT as BLUESKY
from adapters.github.sending import RATE_LIMIT as GITHUB
from adapters.web.policy import is_address, refused_address, refused_addresses, refused_redirect, refused_url
from adapters.web.spacing import RateLimitRules, RateLimitStatus, RequestBudget, retry_after_s
from adapters.web.types import decoded
from common.clock import FakeClock

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
        ("http", "::1", 80, False, True),  # the address itself is checked when it is dialled
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


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.mark.parametrize(
    ("rules", "remaining", "limit", "reset_in_s", "gated"),
    [
        (BLUESKY, 20, 3000, 1000, False),
        (BLUESKY, 19, 3000, 1000, True),
        (BLUESKY, 0, 3000, 1, True),
        (BLUESKY, 0, 3000, 0, False),
        (GITHUB, 100, 5000, 1000, False),
        (GITHUB, 99, 5000, 1000, True),
        (GITHUB, 6, 60, 1000, False),
        (GITHUB, 5, 60, 1, True),
        (GITHUB, 5, 60, 0, False),
    ],
)
def test_a_low_budget_gates_until_its_window_has_passed(
    clock: FakeClock, rules: RateLimitRules, remaining: int, limit: int, reset_in_s: int, *, gated: bool
) -> None:
    budget = RequestBudget(clock, rules)
    assert budget.refusal() is None
    reset = int(clock.now().timestamp()) + reset_in_s
    told = {"remaining": remaining, "limit": limit, "reset": reset}
    budget.observe({f"{rules.prefix}{name}": str(value) for name, value in told.items()})
    assert (budget.refusal() is not None) is gated
    assert budget.status == RateLimitStatus(remaining if reset_in_s else limit, limit, reset)


def test_the_budget_of_another_resource_is_not_ours(clock: FakeClock) -> None:
    budget = RequestBudget(clock, GITHUB)
    budget.observe({"x-ratelimit-resource": "search", "x-ratelimit-remaining": "0", "x-ratelimit-limit": "30"})
    assert budget.status == RateLimitStatus(5000, 5000, 0)


def test_the_budget_starts_full_and_learns_from_headers(clock: FakeClock) -> None:
    budget = RequestBudget(clock, BLUESKY)
    assert budget.status == RateLimitStatus(300, 300, 0)
    budget.observe({"ratelimit-remaining": "0", "ratelimit-limit": "3000", "ratelimit-reset": "1767614460"})
    assert budget.status == RateLimitStatus(0, 3000, 1767614460)
    budget.observe({})
    budget.observe({"ratelimit-remaining": "some", "ratelimit-limit": "-1", "ratelimit-reset": ""})
    assert budget.status == RateLimitStatus(0, 3000, 1767614460)


async def test_a_hold_says_how_long_and_ends_in_time(clock: FakeClock) -> None:
    budget = RequestBudget(clock, BLUESKY)
    budget.hold(600)
    refusal = budget.refusal()
    assert refusal
    assert (refusal.kind, refusal.status, refusal.retry_after) == ("transient", 503, 600)
    await clock.advance(600)
    assert budget.refusal() is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("60", 60.0),
        ("0", 0.0),
        ("Mon, 05 Jan 2026 12:01:30 GMT", 90.0),
        ("Mon, 05 Jan 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
        ("-5", None),
    ],
)
def test_the_wait_asked_for_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": value}, FakeClock().now()) == seconds


def test_the_skew_is_positive_when_our_clock_is_ahead(clock: FakeClock) -> None:
    budget = RequestBudget(clock, BLUESKY)
    budget.observe_date({})
    budget.observe_date({"date": "yesterday"})
    assert budget.skew_s is None
    served = clock.now() - timedelta(seconds=90)
    budget.observe_date({"date": served.strftime("%a, %d %b %Y %H:%M:%S GMT")})
    assert budget.skew_s == 90


def page(encoding: str, head: str, title: str) -> bytes:
    return f"<!DOCTYPE html><html><head>{head}<title>{title}</title></head></html>".encode(encoding)


@pytest.mark.parametrize(
    ("body", "charset", "title"),
    [
        (page("cp932", '<meta charset="Shift_JIS">', "雨の屋根①"), "", "雨の屋根①"),
        (
            page("cp1251", '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251" />', "Дождь"),
            "",
            "Дождь",
        ),
        (page("latin-1", "<meta charset=iso-8859-1>", "l'été"), "", "l'été"),
        (page("latin-1", "", "l'été"), "", "l'été"),
        (page("cp932", "", "雨の屋根"), "x-sjis", "雨の屋根"),
        (page("gbk", '<meta charset="utf-8">', "镕基"), "gb2312", "镕基"),
        (page("utf-8", "", "Dächer: Schiefer"), "", "Dächer: Schiefer"),
        (b"\xef\xbb\xbf" + page("utf-8", "", "Dach"), "windows-1251", "Dach"),
        (page("utf-16", "", "Roof"), "", "Roof"),
        (page("utf-8", '<meta charset="utf-16">', "été"), "", "été"),
        (page("utf-8", '<meta charset="unicode_escape">', r"\u202e été"), "", r"\u202e été"),
        (page("utf-8", '<meta charset="base64">', "été"), "no-such-set", "été"),
        (page("utf-8", "<!-- <meta charset=windows-1251> -->", "été"), "", "été"),
        (page("utf-8", '<meta charset="utf-8">', "Дождь"), "iso-8859-1", "Дождь"),
        (page("mac_roman", "<meta charset=x-mac-roman>", "été"), "", "été"),
        (page("iso-8859-8", "<meta charset=iso-8859-8-i>", "גשם"), "", "גשם"),
        (page("iso-2022-jp", "<meta charset=iso-2022-jp>", "雨の屋根"), "", "雨の屋根"),
    ],
)
def test_a_title_is_readable(body: bytes, charset: str, title: str) -> None:
    assert f"<title>{title}</title>" in decoded(body, "text/html", charset)


def test_only_pages_name_their_set_in_their_head() -> None:
    words = '<meta charset="Shift_JIS"> é'
    assert decoded(words.encode(), "text/plain") == words

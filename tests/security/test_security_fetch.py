"""Proves that nobody can make the program connect to a place that it must not reach: neither by an odd URL, nor by a
redirect, nor by a resolver that changes its answer. Traps that really listen on loopback and a record of every
connection show it.

Nobody can overload the program: bombs, endless bodies, slow drips, huge headers and unwelcome types all end.
"""

import asyncio
import gzip
import tracemalloc
import zlib
from typing import Any

import httpcore
import httpx
import pytest

from adapters.web.client import RefusedConnection, VettedBackend, system_resolver
from adapters.web.policy import refused_addresses
from adapters.web.types import Fetched
from common.result import Err, Ok
from tests.security.small_internet import (
    PUBLIC,
    PUBLIC_V6,
    Names,
    RecordingBackend,
    SmallInternet,
    fetch,
    moved,
    page,
    untouched,
)

# {port} is where a trap listens, on 127.0.0.1 and on ::1.
FORMS = [
    "http://127.0.0.1:{port}/",
    "http://127.0.0.2:{port}/",
    "http://127.255.255.254:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://sub.localhost:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0x0.0x0.0x1:{port}/",
    "http://0X7F.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://017700000001:{port}/",
    "http://00000177.0.0.01:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.0.0.0x1:{port}/",
    "http://0:{port}/",
    "http://0x:{port}/",
    "http://0.0.0.0:{port}/",
    "http://4294967296:{port}/",
    "http://[::1]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[64:ff9b::a9fe:a9fe]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[2001:0:7f00:1::]:{port}/",
    "http://[fe80::1]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[::1%lo]:{port}/",
    "http://[fc00::1]:{port}/",
    "http://[fd12:3456::1]:{port}/",
    "http://[fd00:ec2::254]:{port}/",
    "http://[fec0::1]:{port}/",
    "http://[ff02::1]:{port}/",
    "http://[2001:db8::1]:{port}/",
    "http://[3fff::1]:{port}/",
    "http://[100::1]:{port}/",
    "http://10.0.0.1:{port}/",
    "http://172.16.0.1:{port}/",
    "http://172.31.255.255:{port}/",
    "http://192.168.0.1:{port}/",
    "http://100.64.0.1:{port}/",
    "http://100.127.255.255:{port}/",
    "http://100.100.100.200/latest/meta-data/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/latest/meta-data/",
    "http://169.254.170.2/v2/credentials",
    "http://168.63.129.16/metadata",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://192.0.0.192/opc/v1/",
    "http://192.0.2.1/",
    "http://198.51.100.7/",
    "http://203.0.113.9/",
    "http://198.18.0.1/",
    "http://192.88.99.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://127。0。0。1:{port}/",
    "http://１２７.０.０.１:{port}/",  # noqa: RUF001 - that is the attack
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://ⓛocalhost:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://127%2e0%2e0%2e1:{port}/",
    "http://127.0.0.1%00.public.example:{port}/",
    "http://public.example@127.0.0.1:{port}/",
    "http://public.example:80@127.0.0.1:{port}/",
    "http://public.example%40127.0.0.1:{port}/",
    "http://127.0.0.1\\@public.example:{port}/",
    "http://127.0.0.1:{port}\\.public.example/",
    "http://user:password@public.example/",
    "http://public.example#@127.0.0.1:{port}\n",
    "http://127.0.0.1\t.public.example:{port}/",
    "http:///127.0.0.1:{port}/",
    "http://",
    "http://.:{port}/",
    "http://-a.example:{port}/",
    "http://[::1:{port}/",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "/etc/passwd",
    "",
    "file:///etc/passwd",
    "ftp://public.example/",
    "gopher://127.0.0.1:{port}/_",
    "ws://127.0.0.1:{port}/",
    "data:text/plain,hi",
    "javascript:1",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "http://public.example:22/",
    "http://public.example:25/",
    "http://public.example:6667/",
    "http://public.example:0/",
    "http://public.example:99999/",
    "http://private.example:{port}/",
    "http://127.0.0.1.nip.example:{port}/",
    "http://mixed.example:{port}/",
    "http://mixed-v6.example:{port}/",
    "http://zone.example:{port}/",
    "http://nonsense.example:{port}/",
    "http://nowhere.example:{port}/",
    "http://nothing.example:{port}/",
]


@pytest.mark.parametrize("form", FORMS)
async def test_a_url_that_leads_inside_is_never_connected_to(internet: SmallInternet, form: str) -> None:
    for name in ("localhost", "localhost.", "sub.localhost", "127.0.0.1.nip.example"):
        internet.names.tell(name, ["127.0.0.1"])
    internet.names.tell("private.example", ["10.1.2.3"])
    internet.names.tell("metadata.google.internal", ["169.254.169.254"])
    internet.names.tell("mixed.example", [PUBLIC, "127.0.0.1"])
    internet.names.tell("mixed-v6.example", [PUBLIC, PUBLIC_V6, "::1"])
    internet.names.tell("zone.example", ["fe80::1%1"])
    internet.names.tell("nonsense.example", ["not an address"])
    internet.names.tell("nothing.example", [])
    result = await fetch(internet, form.format(port=internet.trap.port))
    assert isinstance(result, Err)
    assert untouched(internet)
    assert internet.seen == []
    assert result.kind == ("transient" if "nowhere" in form else "invalid"), result


@pytest.mark.parametrize(
    "host", ["localhost", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0", "127.0.0.1"]
)
async def test_whatever_the_system_resolver_makes_of_a_spelling_is_what_is_checked(
    internet: SmallInternet, host: str
) -> None:
    dialer = VettedBackend(internet.backend, resolve=system_resolver, refused=refused_addresses)
    with pytest.raises((RefusedConnection, httpcore.ConnectError)):
        await dialer.connect_tcp(host, internet.trap.port)
    assert untouched(internet)


async def test_a_local_socket_is_no_way_out(internet: SmallInternet) -> None:
    dialer = VettedBackend(internet.backend, resolve=internet.names, refused=refused_addresses)
    with pytest.raises(RefusedConnection):
        await dialer.connect_unix_socket("/var/run/docker.sock")


async def test_a_public_name_is_fetched_and_keeps_its_name_in_the_host_header(internet: SmallInternet) -> None:
    result = await fetch(internet, "http://public.example/a?b=c#d")
    assert result == Ok(Fetched("http://public.example/a?b=c#d", "text/plain", "", b"hello"))
    assert internet.backend.taken == [PUBLIC]
    assert internet.seen[0].startswith("GET /a?b=c HTTP/1.1\r\n")
    assert "host: public.example\r\n" in internet.seen[0].lower()


async def test_an_answer_that_turns_inward_after_the_check_is_never_asked_for(internet: SmallInternet) -> None:
    internet.names.tell("rebinding.example", [PUBLIC], ["127.0.0.1"])
    url = f"http://rebinding.example:{internet.trap.port}/"
    assert (await fetch(internet, url)).success
    assert internet.names.asked == ["rebinding.example"], "one lookup for one connection"
    assert internet.backend.taken == [PUBLIC], "and the connection goes to what was looked up"
    again = await fetch(internet, url)
    assert isinstance(again, Err)
    assert "loopback" in again.error
    assert untouched(internet)


async def test_a_resolver_that_keeps_flipping_never_wins(internet: SmallInternet) -> None:
    flips = [[PUBLIC] if flip % 2 else ["127.0.0.1"] for flip in range(40)]
    internet.names.tell("flipping.example", *flips)
    url = f"http://flipping.example:{internet.trap.port}/"
    outcomes = [(await fetch(internet, url)).success for _ in range(40)]
    assert outcomes.count(True) == 20
    assert untouched(internet)


async def test_a_resolver_that_never_answers_costs_the_deadline_and_no_more(internet: SmallInternet) -> None:
    class Silent(Names):
        async def __call__(self, host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return [PUBLIC]

    internet.names = Silent()
    result = await fetch(internet, "http://public.example/", deadline_s=0.1)
    assert isinstance(result, Err)
    assert result.kind == "transient"


async def test_the_next_address_is_tried_when_one_does_not_answer(internet: SmallInternet) -> None:
    internet.names.tell("two.example", ["2606:4700::1", PUBLIC])
    internet.backend = Reluctant(internet.port, "2606:4700::1")
    assert (await fetch(internet, "http://two.example/")).success
    assert internet.backend.taken == ["2606:4700::1", PUBLIC]


class Reluctant(RecordingBackend):
    """A backend on which one address refuses connections."""

    def __init__(self, port: int, closed: str) -> None:
        super().__init__(port)
        self._closed = closed

    async def connect_tcp(self, host: str, *more: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        if host == self._closed:
            self.taken.append(host)
            raise httpcore.ConnectError("closed")
        return await super().connect_tcp(host, *more, **named)


def slowly(*cases: object) -> list[object]:
    """Mark further cases of a kind as slow, as another one is tried in the fast tests."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


REDIRECTS = [
    "http://127.0.0.1:{port}/",
    "http://[::1]:{port}/",
    "//127.0.0.1:{port}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2130706433:{port}/",
    "http://private.example:{port}/",
    "http://public.example@127.0.0.1:{port}/",
    "http://me:word@public.example/",
    "http://named.example:{port}/",
    "file:///etc/passwd",
    "ftp://127.0.0.1:{port}/",
    "http://public.example:22/",
    "http://[::1",
    "http://public.example:99999/",
    "http://１２７.0.0.1:{port}/",  # noqa: RUF001 - that is the attack
]


@pytest.mark.parametrize(
    "status", ["302 Found", *slowly("301 Moved", "303 See Other", "307 Temporary", "308 Permanent")]
)
@pytest.mark.parametrize("hops", [0, 4, *slowly(1)])
async def test_a_redirect_is_checked_like_any_other_request(internet: SmallInternet, status: str, hops: int) -> None:
    internet.names.tell("named.example", ["127.0.0.1"])
    internet.names.tell("private.example", ["192.168.1.1"])
    for target in REDIRECTS:
        location = target.format(port=internet.trap.port)
        internet.say(*[moved("/next", status)] * hops, moved(location, status))
        result = await fetch(internet, "http://public.example/", f"http://named.example:{internet.trap.port}")
        assert isinstance(result, Err), location
        assert result.kind == "invalid", location
        assert untouched(internet), location


async def test_five_redirects_are_followed_and_a_sixth_is_not(internet: SmallInternet) -> None:
    internet.names.tell("other.example", [PUBLIC_V6])
    chain = [moved("http://other.example/1"), moved("/2"), moved("3"), moved("//public.example/4"), moved("?5")]
    internet.say(*chain, page(b"there"))
    result = await fetch(internet, "http://public.example/")
    assert isinstance(result, Ok)
    assert (result.data.url, result.data.body) == ("http://public.example/4?5", b"there")
    internet.say(moved("/again"))
    assert await fetch(internet, "http://public.example/") == Err("more than 5 redirects", kind="invalid")
    assert untouched(internet)


async def test_a_service_that_the_owner_named_is_reached_where_it_lives(internet: SmallInternet) -> None:
    named = f"http://127.0.0.1:{internet.trap.port}"
    assert (await fetch(internet, f"{named}/v1/models", f"{named}/v1")).success
    assert internet.trap.hits == 1


async def test_a_url_that_somebody_else_chose_gets_no_exception(internet: SmallInternet) -> None:
    named = f"http://127.0.0.1:{internet.trap.port}"
    client = internet.client(named)
    result = await client.fetch(f"{named}/v1/models", kinds=["*"], max_bytes=1000, deadline_s=5)
    await client.aclose()
    assert isinstance(result, Err)
    assert untouched(internet)


@pytest.mark.parametrize("other", ["http://localhost:{port}", "http://127.0.0.2:{port}", "http://127.0.0.1:{next}"])
async def test_the_exception_holds_for_that_origin_and_no_other(internet: SmallInternet, other: str) -> None:
    internet.names.tell("localhost", ["127.0.0.1"])
    result = await fetch(
        internet,
        other.format(port=internet.trap.port, next=internet.trap.port + 1),
        f"http://127.0.0.1:{internet.trap.port}",
    )
    assert isinstance(result, Err)
    assert untouched(internet)


async def test_private_networks_open_for_the_town_but_metadata_and_mapped_addresses_stay_shut(
    internet: SmallInternet,
) -> None:
    assert (await fetch(internet, f"http://127.0.0.1:{internet.trap.port}/", private_ok=True)).success
    hits = internet.trap.hits
    for host in ("169.254.169.254", "[::ffff:127.0.0.1]", "100.100.100.200", "0.0.0.0"):  # noqa: S104 - to be refused
        result = await fetch(internet, f"http://{host}:{internet.trap.port}/", private_ok=True)
        assert isinstance(result, Err)
    assert internet.trap.hits == hits


async def test_proxies_of_the_environment_are_not_asked(
    internet: SmallInternet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{internet.trap.port}")
    assert (await fetch(internet, "http://public.example/")).success
    async with httpx.AsyncClient(transport=internet.transport()) as client:
        assert (await client.get("http://public.example/")).text == "hello"
    assert untouched(internet)


@pytest.mark.slow
async def test_a_decompression_bomb_ends_at_the_limit_and_takes_no_memory(internet: SmallInternet) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    internet.say(page(bomb, "content-encoding: gzip"))
    tracemalloc.start()
    result = await fetch(internet, "http://public.example/", max_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result == Err("the answer is larger than 1000000 bytes", kind="invalid")
    assert peak < 8_000_000, f"200 MiB were packed into {len(bomb)} bytes; reading them took {peak}"


async def test_an_sdk_is_kept_from_bombs_too(internet: SmallInternet) -> None:
    internet.say(page(gzip.compress(bytes(80 << 20)), "content-encoding: gzip"))
    async with httpx.AsyncClient(transport=internet.transport()) as client:
        with pytest.raises(httpx.TransportError, match="too large"):
            await client.get("http://public.example/")


async def test_what_is_packed_honestly_is_unpacked(internet: SmallInternet) -> None:
    internet.say(page(gzip.compress(b"hello " * 50_000), "content-encoding: gzip"))
    result = await fetch(internet, "http://public.example/", max_bytes=300_000)
    assert isinstance(result, Ok)
    assert result.data.text == "hello " * 50_000
    assert "accept-encoding: gzip\r\n" in internet.seen[0].lower()


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "compress"])
async def test_a_packing_that_was_not_asked_for_is_refused(internet: SmallInternet, encoding: str) -> None:
    internet.say(page(b"\x00" * 100, f"content-encoding: {encoding}"))
    result = await fetch(internet, "http://public.example/")
    assert isinstance(result, Err)
    assert result.kind == "invalid"


async def test_gzip_that_is_none_is_an_error_of_the_answer(internet: SmallInternet) -> None:
    internet.say(page(b"no gzip at all", "content-encoding: gzip"))
    assert await fetch(internet, "http://public.example/") == Err("the answer is no gzip", kind="invalid")


async def test_an_endless_body_ends_at_the_limit(internet: SmallInternet) -> None:
    async def endless(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    internet.answer = endless
    result = await fetch(internet, "http://public.example/", max_bytes=500_000)
    assert result == Err("the answer is larger than 500000 bytes", kind="invalid")


async def test_a_slow_drip_ends_at_the_deadline(internet: SmallInternet) -> None:
    async def drip(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    internet.answer = drip
    result = await fetch(internet, "http://public.example/", deadline_s=0.3)
    assert result == Err("no whole answer within 0.3 s", kind="transient")


async def test_redirects_share_one_deadline(internet: SmallInternet) -> None:
    async def dawdle(_: str, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        writer.write(moved("/on"))

    internet.answer = dawdle
    result = await fetch(internet, "http://public.example/", deadline_s=0.3)
    assert isinstance(result, Err)
    assert result.kind == "transient"


@pytest.mark.parametrize("header", [b"x: " + b"y" * 400_000, b"\r\n".join(b"h%d: v" % n for n in range(40_000))])
async def test_huge_headers_are_not_read_to_their_end(internet: SmallInternet, header: bytes) -> None:
    internet.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n" + header + b"\r\n\r\nhello")
    result = await fetch(internet, "http://public.example/")
    assert result == Err("no answer (RemoteProtocolError)", kind="transient")


@pytest.mark.parametrize("kind", ["application/octet-stream", "image/svg+xml", "", "text", "application/json; a=text/"])
async def test_a_type_that_is_not_welcome_is_not_read(internet: SmallInternet, kind: str) -> None:
    internet.say(page(kind=kind))
    result = await fetch(internet, "http://public.example/")
    assert isinstance(result, Err)
    assert result.kind == "invalid"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("404 No", "not_found"),
        ("403 No", "auth"),
        ("500 No", "transient"),
        ("429 No", "transient"),
        ("418 No", "invalid"),
    ],
)
async def test_an_error_of_the_server_is_told_by_its_status(internet: SmallInternet, status: str, kind: str) -> None:
    internet.say(page(status=status))
    result = await fetch(internet, "http://public.example/")
    assert isinstance(result, Err)
    assert (result.kind, result.status) == (kind, int(status[:3]))


async def test_an_unknown_character_set_is_read_as_well_as_it_can_be(internet: SmallInternet) -> None:
    internet.say(page("grüß".encode(), kind="text/plain; charset=martian"))
    result = await fetch(internet, "http://public.example/")
    assert isinstance(result, Ok)
    assert result.data.text == "grüß"

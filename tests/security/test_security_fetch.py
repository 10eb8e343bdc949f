"""Nobody can make the program connect to a place it must not reach: not by an odd URL, not by a redirect, not by a
resolver that changes its answer, not by a did document. Proven by traps that really listen on loopback and by a
record of every connection made. And nobody can drown it: bombs, endless bodies, drips and huge headers all end.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import json
import random
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpcore
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.responses import StreamingResponse

from adapters.atproto.client import Atproto
from adapters.web.connecting import CheckedDialer, Refused, system_resolver
from adapters.web.policy import refused_addresses
from adapters.web.types import Fetched
from common.clock import FakeClock, SystemClock
from common.errors import SoulError
from common.result import ApiResult, Err, Ok
from modules.console import SilentConsole
from modules.llm_gateway.gateway import LLMGateway
from modules.llm_gateway.types import Message
from modules.llm_gateway.wall import NoWall
from soul.commands.init import resolve
from tests.living import KEY, Mind, replying
from tests.security.fetch_house import PUBLIC, PUBLIC_V6, House, Names, Roads, moved, open_house, page
from town.mind.gateway import GatewayMind
from town.mind.service import model_app
from town.serving import serve


@pytest.fixture
async def house() -> AsyncIterator[House]:
    async with open_house() as house:
        yield house


async def fetch(
    house: House, url: str, *allow: str, max_bytes: int = 100_000, deadline_s: float = 10, private_ok: bool = False
) -> ApiResult[Fetched]:
    client = house.client(*allow, private_ok=private_ok)
    try:
        kinds, named = ["text/*"], bool(allow)
        return await client.fetch(url, kinds=kinds, max_bytes=max_bytes, deadline_s=deadline_s, named=named)
    finally:
        await client.aclose()


def untouched(house: House) -> bool:
    return house.trap.hits == 0 and house.roads.forbidden == []


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
async def test_a_url_that_leads_inside_is_never_connected_to(house: House, form: str) -> None:
    for name in ("localhost", "localhost.", "sub.localhost", "127.0.0.1.nip.example"):
        house.names.tell(name, ["127.0.0.1"])
    house.names.tell("private.example", ["10.1.2.3"])
    house.names.tell("metadata.google.internal", ["169.254.169.254"])
    house.names.tell("mixed.example", [PUBLIC, "127.0.0.1"])
    house.names.tell("mixed-v6.example", [PUBLIC, PUBLIC_V6, "::1"])
    house.names.tell("zone.example", ["fe80::1%1"])
    house.names.tell("nonsense.example", ["not an address"])
    house.names.tell("nothing.example", [])
    result = await fetch(house, form.format(port=house.trap.port))
    assert isinstance(result, Err)
    assert untouched(house)
    assert house.seen == []
    assert result.kind == ("transient" if "nowhere" in form else "invalid"), result


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0", "127.0.0.1"],
)
async def test_whatever_the_system_resolver_makes_of_a_spelling_is_what_is_checked(house: House, host: str) -> None:
    dialer = CheckedDialer(house.roads, resolve=system_resolver, refused=refused_addresses)
    with pytest.raises((Refused, httpcore.ConnectError)):
        await dialer.connect_tcp(host, house.trap.port)
    assert untouched(house)


async def test_a_local_socket_is_no_way_out(house: House) -> None:
    dialer = CheckedDialer(house.roads, resolve=house.names, refused=refused_addresses)
    with pytest.raises(Refused):
        await dialer.connect_unix_socket("/var/run/docker.sock")


async def test_a_public_name_is_fetched_and_keeps_its_name_in_the_host_header(house: House) -> None:
    result = await fetch(house, "http://public.example/a?b=c#d")
    assert result == Ok(Fetched("http://public.example/a?b=c#d", "text/plain", "utf-8", b"hello"))
    assert house.roads.taken == [PUBLIC]
    assert house.seen[0].startswith("GET /a?b=c HTTP/1.1\r\n")
    assert "host: public.example\r\n" in house.seen[0].lower()


async def test_an_answer_that_turns_inward_after_the_check_is_never_asked_for(house: House) -> None:
    house.names.tell("rebinding.example", [PUBLIC], ["127.0.0.1"])
    url = f"http://rebinding.example:{house.trap.port}/"
    assert (await fetch(house, url)).success
    assert house.names.asked == ["rebinding.example"], "one lookup for one connection"
    assert house.roads.taken == [PUBLIC], "and the connection goes to what was looked up"
    again = await fetch(house, url)
    assert isinstance(again, Err)
    assert "loopback" in again.error
    assert untouched(house)


async def test_a_resolver_that_keeps_flipping_never_wins(house: House) -> None:
    flips = [[PUBLIC] if flip % 2 else ["127.0.0.1"] for flip in range(40)]
    house.names.tell("flipping.example", *flips)
    url = f"http://flipping.example:{house.trap.port}/"
    outcomes = [(await fetch(house, url)).success for _ in range(40)]
    assert outcomes.count(True) == 20
    assert untouched(house)


async def test_a_resolver_that_never_answers_costs_the_deadline_and_no_more(house: House) -> None:
    class Silent(Names):
        async def __call__(self, host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return [PUBLIC]

    house.names = Silent()
    result = await fetch(house, "http://public.example/", deadline_s=0.1)
    assert isinstance(result, Err)
    assert result.kind == "transient"


async def test_the_next_address_is_tried_when_one_does_not_answer(house: House) -> None:
    house.names.tell("two.example", ["2606:4700::1", PUBLIC])
    house.roads = Reluctant(house.port, "2606:4700::1")
    assert (await fetch(house, "http://two.example/")).success
    assert house.roads.taken == ["2606:4700::1", PUBLIC]


class Reluctant(Roads):
    """Roads of which one is closed."""

    def __init__(self, port: int, closed: str) -> None:
        super().__init__(port)
        self._closed = closed

    async def connect_tcp(self, host: str, *more: object, **named: object) -> httpcore.AsyncNetworkStream:
        if host == self._closed:
            self.taken.append(host)
            raise httpcore.ConnectError("closed")
        return await super().connect_tcp(host, *more, **named)  # type: ignore[arg-type] # passed on as they came


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


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
@pytest.mark.parametrize("hops", [0, 1, 4])
async def test_a_redirect_is_checked_like_any_other_request(house: House, status: str, hops: int) -> None:
    house.names.tell("named.example", ["127.0.0.1"])
    house.names.tell("private.example", ["192.168.1.1"])
    for target in REDIRECTS:
        location = target.format(port=house.trap.port)
        house.say(*[moved("/next", status)] * hops, moved(location, status))
        result = await fetch(house, "http://public.example/", f"http://named.example:{house.trap.port}")
        assert isinstance(result, Err), location
        assert result.kind == "invalid", location
        assert untouched(house), location


async def test_five_redirects_are_followed_and_a_sixth_is_not(house: House) -> None:
    house.names.tell("other.example", [PUBLIC_V6])
    chain = [moved("http://other.example/1"), moved("/2"), moved("3"), moved("//public.example/4"), moved("?5")]
    house.say(*chain, page(b"there"))
    result = await fetch(house, "http://public.example/")
    assert isinstance(result, Ok)
    assert (result.data.url, result.data.body) == ("http://public.example/4?5", b"there")
    house.say(moved("/again"))
    assert await fetch(house, "http://public.example/") == Err("more than 5 redirects", kind="invalid")
    assert untouched(house)


async def test_a_service_that_the_owner_named_is_reached_where_it_lives(house: House) -> None:
    named = f"http://127.0.0.1:{house.trap.port}"
    assert (await fetch(house, f"{named}/v1/models", f"{named}/v1")).success
    assert house.trap.hits == 1


async def test_a_url_that_somebody_else_chose_gets_no_exception(house: House) -> None:
    named = f"http://127.0.0.1:{house.trap.port}"
    client = house.client(named)
    result = await client.fetch(f"{named}/v1/models", kinds=["*"], max_bytes=1000, deadline_s=5)
    await client.aclose()
    assert isinstance(result, Err)
    assert untouched(house)


@pytest.mark.parametrize("other", ["http://localhost:{port}", "http://127.0.0.2:{port}", "http://127.0.0.1:{next}"])
async def test_the_exception_holds_for_that_origin_and_no_other(house: House, other: str) -> None:
    house.names.tell("localhost", ["127.0.0.1"])
    result = await fetch(
        house,
        other.format(port=house.trap.port, next=house.trap.port + 1),
        f"http://127.0.0.1:{house.trap.port}",
    )
    assert isinstance(result, Err)
    assert untouched(house)


async def test_private_networks_open_for_the_town_but_metadata_and_mapped_addresses_stay_shut(house: House) -> None:
    assert (await fetch(house, f"http://127.0.0.1:{house.trap.port}/", private_ok=True)).success
    hits = house.trap.hits
    for host in ("169.254.169.254", "[::ffff:127.0.0.1]", "100.100.100.200", "0.0.0.0"):  # noqa: S104 - to be refused
        result = await fetch(house, f"http://{host}:{house.trap.port}/", private_ok=True)
        assert isinstance(result, Err)
    assert house.trap.hits == hits


async def test_proxies_of_the_environment_are_not_asked(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{house.trap.port}")
    assert (await fetch(house, "http://public.example/")).success
    async with httpx.AsyncClient(transport=house.transport()) as client:
        assert (await client.get("http://public.example/")).text == "hello"
    assert untouched(house)


# --- What comes back ---------------------------------------------------------------------------------------------


async def test_a_decompression_bomb_ends_at_the_limit_and_takes_no_memory(house: House) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    house.say(page(bomb, "content-encoding: gzip"))
    tracemalloc.start()
    result = await fetch(house, "http://public.example/", max_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result == Err("the answer is larger than 1000000 bytes", kind="invalid")
    assert peak < 8_000_000, f"200 MiB were packed into {len(bomb)} bytes; reading them took {peak}"


async def test_an_sdk_is_kept_from_bombs_too(house: House) -> None:
    house.say(page(gzip.compress(bytes(80 << 20)), "content-encoding: gzip"))
    async with httpx.AsyncClient(transport=house.transport()) as client:
        with pytest.raises(httpx.TransportError, match="too large"):
            await client.get("http://public.example/")


async def test_what_is_packed_honestly_is_unpacked(house: House) -> None:
    house.say(page(gzip.compress(b"hello " * 50_000), "content-encoding: gzip"))
    result = await fetch(house, "http://public.example/", max_bytes=300_000)
    assert isinstance(result, Ok)
    assert result.data.text == "hello " * 50_000
    assert "accept-encoding: gzip\r\n" in house.seen[0].lower()


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "compress"])
async def test_a_packing_that_was_not_asked_for_is_refused(house: House, encoding: str) -> None:
    house.say(page(b"\x00" * 100, f"content-encoding: {encoding}"))
    result = await fetch(house, "http://public.example/")
    assert isinstance(result, Err)
    assert result.kind == "invalid"


async def test_gzip_that_is_none_is_an_error_of_the_answer(house: House) -> None:
    house.say(page(b"no gzip at all", "content-encoding: gzip"))
    assert await fetch(house, "http://public.example/") == Err("the answer is no gzip", kind="invalid")


async def test_an_endless_body_ends_at_the_limit(house: House) -> None:
    async def endless(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    house.answer = endless
    result = await fetch(house, "http://public.example/", max_bytes=500_000)
    assert result == Err("the answer is larger than 500000 bytes", kind="invalid")


async def test_a_slow_drip_ends_at_the_deadline(house: House) -> None:
    async def drip(_: str, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    house.answer = drip
    result = await fetch(house, "http://public.example/", deadline_s=0.3)
    assert result == Err("no whole answer within 0.3 s", kind="transient")


async def test_redirects_share_one_deadline(house: House) -> None:
    async def dawdle(_: str, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.15)
        writer.write(moved("/on"))

    house.answer = dawdle
    result = await fetch(house, "http://public.example/", deadline_s=0.3)
    assert isinstance(result, Err)
    assert result.kind == "transient"


@pytest.mark.parametrize("header", [b"x: " + b"y" * 400_000, b"\r\n".join(b"h%d: v" % n for n in range(40_000))])
async def test_huge_headers_are_not_read_to_their_end(house: House, header: bytes) -> None:
    house.say(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n" + header + b"\r\n\r\nhello")
    result = await fetch(house, "http://public.example/")
    assert result == Err("no answer (RemoteProtocolError)", kind="transient")


@pytest.mark.parametrize("kind", ["application/octet-stream", "image/svg+xml", "", "text", "application/json; a=text/"])
async def test_a_type_that_is_not_welcome_is_not_read(house: House, kind: str) -> None:
    house.say(page(kind=kind))
    result = await fetch(house, "http://public.example/")
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
async def test_an_error_of_the_server_is_told_by_its_status(house: House, status: str, kind: str) -> None:
    house.say(page(status=status))
    result = await fetch(house, "http://public.example/")
    assert isinstance(result, Err)
    assert (result.kind, result.status) == (kind, int(status[:3]))


async def test_an_unknown_character_set_is_read_as_well_as_it_can_be(house: House) -> None:
    house.say(page("grüß".encode(), kind="text/plain; charset=martian"))
    result = await fetch(house, "http://public.example/")
    assert isinstance(result, Ok)
    assert result.data.text == "grüß"


# --- TLS ---------------------------------------------------------------------------------------------------------


def certificate_for(name: str, folder: Path) -> Path:
    """A certificate that signs itself, and its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    today = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - dt.timedelta(days=1))
        .not_valid_after(today + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
async def https(tmp_path: Path) -> AsyncIterator[House]:
    """A house whose server proves, by a trusted certificate, that it is public.example."""
    pem = certificate_for("public.example", tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    async with open_house(server) as house:
        house.tls = ssl.create_default_context(cafile=pem)
        yield house


async def test_the_certificate_is_checked_against_the_name_though_the_address_is_dialled(https: House) -> None:
    assert (await fetch(https, "https://public.example/")).success
    https.names.tell("impostor.example", [PUBLIC])
    assert await fetch(https, "https://impostor.example/") == Err("no answer (ConnectError)", kind="transient")
    assert https.roads.taken == [PUBLIC, PUBLIC]


async def test_a_redirect_never_leaves_tls(https: House) -> None:
    https.say(moved("http://public.example/"))
    assert await fetch(https, "https://public.example/") == Err("a redirect from https to http", kind="invalid")
    assert len(https.roads.taken) == 1


# --- Whoever speaks HTTP -----------------------------------------------------------------------------------------


def bluesky(house: House, folder: Path) -> Atproto:
    """A client of a service that the owner named, which is the house's public server."""
    return Atproto(
        service_url="http://public.example",
        identifier="soul.example",
        password="app-password",
        session_path=folder / "session.json",
        clock=FakeClock(),
        min_spacing_s=0,
        transport=lambda: house.transport("http://public.example"),
    )


def session(endpoint: str) -> bytes:
    document = {"service": [{"id": "#atproto_pds", "serviceEndpoint": endpoint}]}
    body = {"did": "did:plc:a", "handle": "soul.example", "accessJwt": "a", "refreshJwt": "r", "didDoc": document}
    return page(json.dumps(body).encode(), kind="application/json")


@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:{port}", "http://[::1]:{port}", "http://inside.example:{port}", "http://127.1:{port}"],
)
async def test_a_did_document_cannot_send_the_session_inside(house: House, tmp_path: Path, endpoint: str) -> None:
    house.names.tell("inside.example", ["127.0.0.1"])
    house.say(session(endpoint.format(port=house.trap.port)))
    client = bluesky(house, tmp_path)
    assert (await client.authenticate()).success
    result = await client.get_profile("somebody.example")
    await client.aclose()
    assert isinstance(result, Err)
    assert result.kind == "invalid"
    assert "out of bounds" in result.error
    assert untouched(house)


async def test_a_did_document_cannot_take_the_session_off_tls(https: House, tmp_path: Path) -> None:
    https.names.tell("plain.example", [PUBLIC])
    https.say(session("http://plain.example"))
    client = Atproto(
        service_url="https://public.example",
        identifier="soul.example",
        password="app-password",
        session_path=tmp_path / "session.json",
        clock=FakeClock(),
        min_spacing_s=0,
        transport=lambda: https.transport("https://public.example"),
    )
    assert (await client.authenticate()).success
    await client.get_profile("somebody.example")
    await client.aclose()
    assert "plain.example" not in https.names.asked


async def test_a_redirect_by_the_service_is_not_followed_with_the_password(house: House, tmp_path: Path) -> None:
    house.say(moved(f"http://127.0.0.1:{house.trap.port}/", "307 Temporary"))
    client = bluesky(house, tmp_path)
    result = await client.authenticate()
    await client.aclose()
    assert isinstance(result, Err)
    assert result.status == 307
    assert untouched(house)


def gateway(url: str, house: House) -> LLMGateway:
    return LLMGateway(
        wall=NoWall(),
        base_url=url,
        api_key=KEY,
        model="test-mind",
        clock=SystemClock(),
        rng=random.Random(1),
        console=SilentConsole(),
        transport=lambda: house.transport(url),
        max_retries=0,
    )


async def test_the_model_is_reached_on_loopback_where_the_owner_named_it(house: House) -> None:
    async with serve(model_app(Mind(replying("Slate.")), api_key=KEY)) as url:
        door = gateway(f"{url}/v1", house)
        assert await door.chat([Message("user", "tin or slate?")]) == "Slate."
        await door.aclose()
    assert house.roads.taken == ["127.0.0.1"]


async def test_a_model_service_cannot_send_a_prompt_inside(house: House) -> None:
    house.say(moved(f"http://127.0.0.1:{house.trap.port}/v1/chat/completions", "307 Temporary"))
    door = gateway("http://public.example/v1", house)
    with pytest.raises(SoulError):
        await door.chat([Message("user", "hello")])
    await door.aclose()
    assert untouched(house)


async def test_the_towns_own_gateway_goes_the_same_way_out() -> None:
    async with serve(model_app(Mind(replying("Tin.")), api_key=KEY)) as url:
        asked = {"messages": [{"role": "user", "content": "tin or slate?"}]}
        answer = await GatewayMind(f"{url}/v1", KEY, "test-mind").forward(asked)
        assert isinstance(answer, StreamingResponse)
        assert b"Tin." in b"".join([bytes(part) async for part in answer.body_iterator if not isinstance(part, str)])
        refused = await GatewayMind("http://127.0.0.1:1/v1", KEY, "test-mind").forward(asked)
        assert refused.status_code == 502


async def test_init_asks_the_service_that_was_typed_and_survives_nonsense(house: House) -> None:
    house.say(page(b'{"did": "did:plc:owner"}', kind="application/json"))
    typed = f"http://127.0.0.1:{house.port}"
    assert await asyncio.to_thread(resolve, typed, "owner.example") == "did:plc:owner"
    for nonsense in ("", "bsky", "http://[::1", f"http://127.0.0.1:{house.port + 1}"):
        assert await asyncio.to_thread(resolve, nonsense, "owner.example") is None
    house.say(page(b"[]", kind="application/json"))
    assert await asyncio.to_thread(resolve, typed, "owner.example") is None

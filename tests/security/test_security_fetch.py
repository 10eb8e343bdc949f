"""Nobody can make the program connect to a place it must not reach: not by an odd URL, not by a redirect, not by a
resolver that changes its answer. Proven by traps that really listen on loopback and by a record of every connection
made.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpcore
import httpx
import pytest

from adapters.web.connecting import Refused, VettedBackend, system_resolver
from adapters.web.policy import refused_addresses
from adapters.web.types import Fetched
from common.result import Err, Ok
from tests.security.fetch_house import PUBLIC, PUBLIC_V6, House, Names, Roads, fetch, moved, page, untouched

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
    dialer = VettedBackend(house.roads, resolve=system_resolver, refused=refused_addresses)
    with pytest.raises((Refused, httpcore.ConnectError)):
        await dialer.connect_tcp(host, house.trap.port)
    assert untouched(house)


async def test_a_local_socket_is_no_way_out(house: House) -> None:
    dialer = VettedBackend(house.roads, resolve=house.names, refused=refused_addresses)
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

    async def connect_tcp(self, host: str, *more: Any, **named: Any) -> httpcore.AsyncNetworkStream:
        if host == self._closed:
            self.taken.append(host)
            raise httpcore.ConnectError("closed")
        return await super().connect_tcp(host, *more, **named)


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

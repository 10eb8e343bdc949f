"""Tests of discovery: where a member looks for its room, which addresses it believes, and what it does not follow.

Tests of advertising: what the service says of the room, and which addresses it tells.
"""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from socket import AF_INET, SOCK_DGRAM, inet_aton, socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.space.browsing import SERVICE_TYPE, Advertised, advertise, instance_label, reachable, service_info
from adapters.space.discovery import believable, discover_space
from common.result import ApiResult, Err, Ok
from common.version import __version__

_NOWHERE = 1  # nothing listens on it


class Owner:
    """Collects what the owner is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    async def tell(self, message: str, detail: str) -> None:
        self.told.append((message, detail))


def _shouted(*spaces: Advertised) -> Callable[[], Awaitable[ApiResult[list[Advertised]]]]:
    async def browse() -> ApiResult[list[Advertised]]:
        return Ok(list(spaces))

    return browse


@asynccontextmanager
async def _listening(host: str = "127.0.0.1") -> AsyncIterator[int]:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(take, host, 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_the_address_that_the_owner_set_is_used_as_it_is() -> None:
    url = "wss://room.example/space?token=abc"
    assert await discover_space(space_url=url, discovery=False) == Ok(url)


async def test_with_discovery_off_and_no_address_there_is_no_room() -> None:
    found = await discover_space(space_url="", discovery=False)
    assert isinstance(found, Err)
    assert (found.kind, "SPACE_URL" in found.error) == ("not_found", True)


async def test_a_room_on_this_machine_is_found_only_where_something_listens() -> None:
    async with _listening() as port:
        here = await discover_space(space_url="", browse_rooms=_shouted(), local_port=port)
        assert here == Ok(f"ws://localhost:{port}")
    gone = await discover_space(space_url="", browse_rooms=_shouted(), local_port=_NOWHERE)
    assert isinstance(gone, Err)
    assert gone.kind == "not_found"


async def test_of_several_rooms_the_first_by_name_is_taken_and_the_others_are_told() -> None:
    async with _listening() as port:
        spaces = [Advertised(name, port, ("127.0.0.1",), "box") for name in ("zoo", "attic", "cellar")]
        owner = Owner()
        found = await discover_space(space_url="", browse_rooms=_shouted(*spaces), notice=owner.tell)
        assert found == Ok(f"ws://127.0.0.1:{port}")
        assert owner.told == [("Several agent spaces; took the first by name", "attic, not cellar, zoo")]


async def test_a_room_that_refused_us_gives_way_to_the_others_and_is_taken_if_there_is_no_other() -> None:
    async with _listening() as first, _listening() as second:
        spaces = [Advertised(name, port, ("127.0.0.1",), "box") for name, port in (("attic", first), ("zoo", second))]
        urls = [f"ws://127.0.0.1:{port}" for port in (first, second)]
        for refused, taken in ((urls[:1], urls[1]), (urls, urls[0])):
            found = await discover_space(
                space_url="", browse_rooms=_shouted(*spaces), local_port=_NOWHERE, refused=refused
            )
            assert found == Ok(taken)


async def test_a_room_that_is_advertised_and_gone_gives_way_to_the_next() -> None:
    async with _listening() as port:
        dead, alive = Advertised("a", _NOWHERE + 1024, ("127.0.0.1",), "x"), Advertised("b", port, ("127.0.0.1",), "y")
        owner = Owner()
        found = await discover_space(space_url="", browse_rooms=_shouted(dead, alive), notice=owner.tell)
        assert found == Ok(f"ws://127.0.0.1:{port}")
        assert owner.told == [("An agent space was advertised but not reached", "a")]


async def test_of_several_addresses_the_best_that_answers_is_taken() -> None:
    async with _listening() as port:
        space = Advertised("a", port, ("::1", "127.0.0.1"), "x")
        assert await discover_space(space_url="", browse_rooms=_shouted(space)) == Ok(f"ws://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1")],
    ids=["an address in its place", "a name"],
)
async def test_without_addresses_the_host_that_is_named_is_looked_up(host: str, address: str) -> None:
    async with _listening() as port:
        space = Advertised("a", port, (), host)
        found = await discover_space(space_url="", browse_rooms=_shouted(space))
        assert found == Ok(f"ws://{address}:{port}")


@pytest.mark.parametrize(
    "space",
    [
        Advertised("a", 80, ("127.0.0.1",), "x"),
        Advertised("a", 7777, ("8.8.8.8",), "8.8.8.8"),
        Advertised("a", 7777, ("169.254.169.254",), "169.254.169.254"),
        Advertised("a", 7777, ("not an address",), "\x00.."),
    ],
    ids=["a port of the system", "a public address", "a cloud's own", "rubbish"],
)
async def test_nobody_in_the_network_can_send_a_member_out_of_it(space: Advertised) -> None:
    owner = Owner()
    found = await discover_space(space_url="", browse_rooms=_shouted(space), notice=owner.tell, local_port=_NOWHERE)
    assert isinstance(found, Err)
    assert owner.told == [("An agent space was advertised but not reached", "a")]


async def test_where_multicast_does_not_work_the_owner_is_told_and_this_machine_tried() -> None:
    async def browse() -> ApiResult[list[Advertised]]:
        return Err("multicast DNS does not work here: no such device", "transient")

    async with _listening() as port:
        owner = Owner()
        found = await discover_space(space_url="", browse_rooms=browse, notice=owner.tell, local_port=port)
        assert found == Ok(f"ws://localhost:{port}")
        assert owner.told == [("No look around for agent spaces", "multicast DNS does not work here: no such device")]


def test_addresses_of_a_network_are_believed_before_those_of_a_link_and_of_this_machine() -> None:
    given_in_disorder = ["::1", "127.0.0.1", "169.254.3.4", "fd00::5", "192.168.1.9", "10.0.0.1", "10.0.0.1"]
    assert [str(address) for address in believable(given_in_disorder)] == [
        "192.168.1.9",
        "10.0.0.1",
        "169.254.3.4",
        "fd00::5",
        "::1",
        "127.0.0.1",
    ]


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "0.0.0.0",  # noqa: S104 - refused, not bound
        "224.0.0.251",
        "240.0.0.1",
        "fe80::1",
        "::ffff:10.0.0.1",
        "::ffff:8.8.8.8",
        "::",
        "fd00:ec2::254",
        "room.local",
    ],
)
def test_no_other_address_is_believed(address: str) -> None:
    assert believable([address]) == []


@given(st.ip_addresses())
def test_whatever_is_believed_is_private(address: object) -> None:
    assert all(found.is_private and not found.is_multicast for found in believable([str(address)]))


ADDRESSES = ["127.0.0.1", "169.254.7.7", "192.0.2.2", "10.0.0.5", "192.0.2.2"]


@pytest.mark.parametrize(
    ("binds", "expected"),
    [
        (["0.0.0.0"], ("192.0.2.2", "10.0.0.5", "169.254.7.7")),  # noqa: S104 - asked about, not bound
        ([""], ("192.0.2.2", "10.0.0.5", "169.254.7.7")),
        (["127.0.0.1", "10.0.0.5"], ("10.0.0.5",)),
        (["127.0.0.1"], ()),
        (["localhost"], ()),
        ([], ()),
    ],
)
def test_only_addresses_that_others_reach_and_that_are_bound_are_told(
    binds: list[str], expected: tuple[str, ...]
) -> None:
    assert reachable(binds, ADDRESSES) == expected


@pytest.mark.parametrize(
    ("name", "label"),
    [("my.space", "my-space"), ("  ", "agent-space"), ("é" * 40, "é" * 31), ("a\nb", "a-b"), ("Room 7", "Room 7")],
    ids=["dots", "blank", "long", "control", "plain"],
)
def test_a_rooms_name_becomes_one_label(name: str, label: str) -> None:
    assert instance_label(name) == label


def test_the_target_is_an_address_in_figures_with_a_record_for_each_address() -> None:
    info = service_info("my.space", 7788, ["192.0.2.2", "10.0.0.5"])
    assert info.name == f"my-space.{SERVICE_TYPE}"
    assert info.dns_service().server == "192.0.2.2."
    records = [(record.name, record.address) for record in info.dns_addresses()]
    assert records == [("192.0.2.2.", inet_aton(address)) for address in ("192.0.2.2", "10.0.0.5")]
    assert info.port == 7788
    assert info.decoded_properties == {"v": __version__, "name": "my.space"}
    assert (info.host_ttl, info.other_ttl) == (120, 4500)


async def test_a_room_on_loopback_sends_nothing_into_the_network() -> None:
    result = await advertise("my.space", 7788, ["127.0.0.1"])
    assert isinstance(result, Err)
    assert result.kind == "invalid"


async def test_where_mdns_does_not_work_that_is_an_answer() -> None:
    with socket(AF_INET, SOCK_DGRAM) as greedy, warnings.catch_warnings():
        # NOTE(self): when it cannot bind, the library leaves a socket of its own to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            greedy.bind(("", 5353))
        except OSError:
            pytest.skip("mDNS is in use on this machine")
        result = await advertise("my.space", 7788, ["0.0.0.0"])  # noqa: S104 - asked about, not bound
        gc.collect()
    assert isinstance(result, Err)
    assert result.error.startswith("The room is not advertised by mDNS") or result.kind == "invalid"

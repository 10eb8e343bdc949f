"""How a room makes itself known: what the service says, and to whom it may be said."""

from __future__ import annotations

import gc
import warnings
from socket import AF_INET, SOCK_DGRAM, inet_aton, socket

import pytest

from adapters.space.browsing import SERVICE_TYPE, advertise, instance_label, reachable, service_info
from common.result import Err
from common.version import __version__

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

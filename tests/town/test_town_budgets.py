"""Time in the network: budgets that come back, tokens that expire, sessions that are renewed."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from common.clock import FakeClock
from tests.loopback import NO_TLS
from town.atproto.index import XrpcError
from town.atproto.network import Network, Tokens
from town.atproto.service import AtprotoLimits, AtprotoMeter, Charge, Limit, atproto_app
from town.github.limits import GitHubMeter, Writes
from town.serving import serve

Member = Callable[[str], str]
HOUR = 3600.0


def login(network: Network, did: str) -> Tokens:
    account = network.find(did)
    assert account
    return network.sessions.login(account, account.password)


def test_the_tightest_of_several_budgets_is_told() -> None:
    meter, wide, narrow = AtprotoMeter(), Limit(100, 60), Limit(10, 3600)
    told = meter.charge([Charge(wide, "x"), Charge(narrow, "x", 3)], 0.0)
    assert (told.limit, told.remaining, told.refused) == (narrow, 7, False)
    assert meter.charge([Charge(wide, "x"), Charge(narrow, "y", 3)], 0.0).remaining == 7
    refused = meter.charge([Charge(wide, "x"), Charge(narrow, "x", 8)], 0.0)
    assert (refused.limit, refused.remaining, refused.refused) == (narrow, 0, True)


async def test_limits_can_be_chosen(network: Network, member: Member) -> None:
    did = member("mara")
    body = {"repo": did, "collection": "app.bsky.feed.post", "rkey": "3kabcdefghij2"}
    app = atproto_app(network, limits=AtprotoLimits(writes=Limit(2, 60)))
    token = login(network, did).access
    headers = {"authorization": f"Bearer {token}"}
    async with serve(app) as url, httpx.AsyncClient(base_url=url, headers=headers, verify=NO_TLS) as http:
        answers = [await http.post("/xrpc/com.atproto.repo.deleteRecord", json=body) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]


def test_who_lives_faster_has_so_many_times_the_requests_and_changes_of_both_services() -> None:
    fast = AtprotoLimits().at_speed(360)
    assert (fast.everything.points, fast.everything.seconds) == (3000 * 360, 300)
    clock = FakeClock()
    meter = GitHubMeter(clock, known=5, writes=Writes(in_a_minute=2, in_an_hour=3), speed=2)
    assert meter.count("ada", "").limit == 10
    assert [meter.write_wait("ada") > 0 for _ in range(5)] == [False] * 4 + [True]


@pytest.fixture
def tokens(network: Network, member: Member) -> Tokens:
    return login(network, member("mara"))


async def test_a_used_refresh_token_has_two_hours_of_grace(network: Network, clock: FakeClock, tokens: Tokens) -> None:
    first = network.sessions.refresh(tokens.refresh)
    await clock.advance(2 * HOUR - 1)
    assert network.sessions.refresh(tokens.refresh)[0] == first[0]
    await clock.advance(1)
    with pytest.raises(XrpcError) as caught:
        network.sessions.refresh(tokens.refresh)
    assert (caught.value.status, caught.value.name) == (400, "ExpiredToken")
    assert network.sessions.refresh(first[1].refresh)[0] == first[0]

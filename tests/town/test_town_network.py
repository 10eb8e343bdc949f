"""Tests of the network from within: what a page about it reads, how it follows changes, and how time stands still.

Tests of faults: each one as a client meets it, and how they are armed, aimed and used up. Tests of time: budgets that
are restored, tokens that expire, sessions that are renewed. Tests of serving on loopback: an address, a clear error if
the port is taken, an end that does not wait for anyone. Proves that a picture on a post can be looked at over HTTP, at
an address like that of Bluesky's picture service.
"""

import asyncio
import io
import random
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import httpx
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from common.clock import FakeClock, iso
from common.errors import ConfigError
from tests.loopback import NO_TLS
from tests.patience import until
from tests.town.running import Town
from town.atproto.index import POST, PROFILE, NetworkEvent, XrpcError
from town.atproto.network import Network, Tokens
from town.atproto.service import AtprotoFaults, AtprotoLimits, AtprotoMeter, Charge, Fault, Limit, atproto_app
from town.github.limits import GitHubMeter, Writes
from town.serving import serve

Member = Callable[[str], str]


def test_the_same_handle_has_the_same_did_in_every_network(clock: FakeClock) -> None:
    dids = {Network(clock=clock).create_account("mara.test", "pw").did for _ in range(2)}
    assert len(dids) == 1


def test_a_post_as_someone_has_facets_for_those_who_are_here(network: Network, member: Member) -> None:
    mara, odo = member("mara"), member("odo")
    uri, _ = network.post_as(mara, "é @odo.test and @stranger.test, https://example.com/a")
    record = network.index.posts[uri].value
    spans = [(f["index"]["byteStart"], f["index"]["byteEnd"]) for f in record["facets"]]
    assert spans == [(3, 12), (33, 54)]
    assert record["facets"][0]["features"][0]["did"] == odo
    assert [notice.kind for notice in network.index.notices(odo)] == ["mention"]
    assert network.posts()[0].links == ("https://example.com/a",)


def test_a_thread_without_its_root_begins_at_the_topmost_post_that_stands(network: Network, member: Member) -> None:
    mara = member("mara")
    root, _ = network.post_as(mara, "root")
    first, _ = network.post_as(mara, "first", reply_to_uri=root)
    second, _ = network.post_as(mara, "second", reply_to_uri=first)
    assert network.delete(mara, POST, root.rsplit("/", 1)[1])
    tree = network.thread(second)
    assert tree
    assert (tree.post.uri, tree.replies[0].post.uri) == (first, second)


def test_listeners_hear_each_change_until_they_leave(network: Network) -> None:
    received: list[NetworkEvent] = []
    leave = network.subscribe(received.append)
    did = network.create_account("mara.test", "pw").did
    uri, cid = network.post_as(did, "hello")
    network.put(did, PROFILE, "self", {"displayName": "M"})
    network.put(did, PROFILE, "self", {"displayName": "M"})
    network.put(did, PROFILE, "self", {"displayName": "Mara"})
    network.delete(did, POST, uri.rsplit("/", 1)[1])
    assert not network.delete(did, POST, uri.rsplit("/", 1)[1])
    leave()
    network.post_as(did, "unheard")
    assert [event.kind for event in received] == ["account", "created", "created", "updated", "deleted"]
    assert received[1] == NetworkEvent("created", did, uri, POST, cid)


def test_what_happens_in_the_same_millisecond_after_a_marking_is_unread(network: Network, member: Member) -> None:
    mara, odo = member("mara"), member("odo")
    network.post_as(odo, "@mara.test before")
    network.mark_seen(mara, network.clock.now())
    network.post_as(odo, "@mara.test after")
    seen = network.seen(mara)
    assert seen
    unread = [n.record.value["text"] for n in network.index.notices(mara) if n.record.order > seen]
    assert unread == ["@mara.test after"]


CREATE = "com.atproto.repo.createRecord"
DESCRIBE = "com.atproto.server.describeServer"


def body(town: Town, did: str) -> dict[str, object]:
    record = {"text": "hello", "createdAt": iso(town.clock.now())}
    return {"repo": did, "collection": POST, "record": record}


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        (Fault("server_error"), 500, "InternalServerError"),
        (Fault("rate_limited", seconds=17), 429, "RateLimitExceeded"),
    ],
)
async def test_a_fault_answers_once_in_place_of_the_method(
    town: Town, member: Member, fault: Fault, status: int, error: str
) -> None:
    did = member("mara")
    town.faults.arm(fault)
    answer = await town.post(CREATE, body(town, did), town.login(did))
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert town.network.posts() == []
    assert (await town.post(CREATE, body(town, did), town.login(did))).status_code == 200


async def test_a_hanging_answer_comes_in_its_own_time(town: Town) -> None:
    town.faults.arm(Fault("hang", seconds=60))
    waiting = asyncio.create_task(town.get(DESCRIBE))
    await until(lambda: town.clock._sleepers, what="the answer that is kept back")
    assert not waiting.done()
    await town.clock.advance(60)
    assert (await waiting).status_code == 200


async def test_faults_are_armed_listed_and_cleared_over_http(town: Town) -> None:
    url = f"{town.url}/town/faults"
    armed = await town.http.post(url, json={"kind": "server_error", "request": "com.atproto.repo.*", "times": 2})
    fault = {"kind": "server_error", "request": "com.atproto.repo.*", "times": 2, "probability": 1.0, "seconds": 30.0}
    assert armed.json() == {"armed": [fault]}
    assert (await town.get(DESCRIBE)).status_code == 200
    assert (await town.get("com.atproto.repo.describeRepo", repo="x.test")).status_code == 500
    assert (await town.http.get(url)).json() == {"armed": [{**fault, "times": 1}]}
    assert (await town.http.delete(url)).json() == {"armed": []}
    assert (await town.get("com.atproto.repo.describeRepo", repo="x.test")).status_code == 400


async def test_a_fault_that_nobody_knows_is_refused(town: Town) -> None:
    answer = await town.http.post(f"{town.url}/town/faults", json={"kind": "hang", "colour": "red"})
    assert (answer.status_code, answer.json()["error"]) == (400, "InvalidRequest")
    assert town.faults.armed == ()


def test_a_probable_fault_hits_some_and_the_same_ones_for_a_seed() -> None:
    def hits(seed: int) -> list[bool]:
        faults = AtprotoFaults(random.Random(seed))
        faults.arm(Fault("server_error", times=1000, probability=0.3))
        return [faults.meet("any.method") is not None for _ in range(100)]

    assert hits(1) == hits(1)
    assert hits(1) != hits(2)
    assert 15 < sum(hits(1)) < 45


def test_a_request_meets_the_oldest_fault_that_is_meant_for_it() -> None:
    faults = AtprotoFaults()
    for fault in (Fault("hang", "app.bsky.*"), Fault("server_error"), Fault("bad_gateway")):
        faults.arm(fault)
    met = [faults.meet("com.atproto.repo.putRecord") for _ in range(3)]
    assert [fault.kind if fault else None for fault in met] == ["server_error", "bad_gateway", None]
    assert [fault.kind for fault in faults.armed] == ["hang"]


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


async def endless(_: Request) -> Response:
    async def ticks() -> AsyncIterator[bytes]:
        yield b"tick\n"
        await asyncio.Event().wait()

    return StreamingResponse(ticks())


async def stubborn(request: Request) -> NoReturn:
    request.app.state.reached.set()
    await asyncio.Event().wait()
    raise AssertionError("nobody ends that")


APP = Starlette(routes=[Route("/endless", endless), Route("/stubborn", stubborn)])


async def test_a_port_that_is_taken_is_named_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use") as caught:
            async with serve(APP, port=port):
                pass
    assert "another port" in caught.value.remedy


@pytest.mark.parametrize("host", ["192.0.2.1", "::1", "a..b", "gärten..b"])
async def test_a_host_at_which_this_machine_cannot_listen_is_named_with_a_remedy(host: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(host)) as caught:
        async with serve(APP, host=host):
            pass
    assert "127.0.0.1" in caught.value.remedy


async def test_it_ends_with_open_streams_and_stuck_requests() -> None:
    reached = APP.state.reached = asyncio.Event()
    async with httpx.AsyncClient() as client, asyncio.TaskGroup() as tasks:
        async with serve(APP) as url:
            opened = await client.send(client.build_request("GET", f"{url}/endless"), stream=True)
            stuck = tasks.create_task(_swallowed(client, f"{url}/stubborn"))
            await reached.wait()
        await opened.aclose()
        stuck.cancel()


async def _swallowed(client: httpx.AsyncClient, url: str) -> None:
    with pytest.raises(httpx.TransportError):
        await client.get(url)


async def test_an_application_that_does_not_start_is_an_error() -> None:
    @asynccontextmanager
    async def broken(_: Starlette) -> AsyncIterator[NoReturn]:
        raise ValueError("no floor")
        yield

    with pytest.raises(RuntimeError, match="did not start"):
        async with serve(Starlette(lifespan=broken)):
            pass


def picture(colour: str = "teal") -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(content, "PNG")
    return content.getvalue()


async def uploaded(town: Town, did: str, content: bytes, mime: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {town.login(did)}", "content-type": mime}
    answer = await town.http.post("com.atproto.repo.uploadBlob", content=content, headers=headers)
    blob: dict[str, Any] = answer.json()["blob"]
    return blob


async def posted(town: Town, did: str, blob: dict[str, Any]) -> httpx.Response:
    images = [{"alt": "a sea", "image": blob, "aspectRatio": {"width": 4, "height": 3}}]
    embed = {"$type": "app.bsky.embed.images", "images": images}
    record = {"text": "look", "createdAt": "2026-01-05T12:00:00.000Z", "embed": embed}
    body = {"repo": did, "collection": "app.bsky.feed.post", "record": record}
    return await town.post("com.atproto.repo.createRecord", body, town.login(did))


@pytest.mark.parametrize("size", ["thumb", "fullsize"])
async def test_the_pictures_of_a_post_are_served(town: Town, member: Callable[[str], str], size: str) -> None:
    did = member("kit")
    post = await posted(town, did, await uploaded(town, did, picture(), "image/png"))
    seen = await town.get("app.bsky.feed.getPosts", town.login(member("ada")), uris=post.json()["uri"])
    (image,) = seen.json()["posts"][0]["embed"]["images"]
    assert (image["alt"], image["aspectRatio"]) == ("a sea", {"width": 4, "height": 3})
    shown = await town.http.get(image[size])
    assert (shown.status_code, shown.headers["content-type"], shown.content) == (200, "image/png", picture())
    for suffix in ("@jpeg", "@webp"):
        assert (await town.http.get(f"{image[size]}{suffix}")).content == picture()


async def test_only_pictures_are_shown_and_only_in_the_sizes_that_there_are(
    town: Town, member: Callable[[str], str]
) -> None:
    did = member("kit")
    seen = await uploaded(town, did, picture(), "image/png")
    text = await uploaded(town, did, b"hello", "text/plain")
    address = "{}/img/{}/plain/{}/{}"
    cases = (("feed_fullsize", seen, "", 200), ("huge", seen, "", 400), ("avatar", seen, "@bmp", 400))
    for size, blob, suffix, status in (*cases, ("feed_fullsize", text, "", 400)):
        cid = blob["ref"]["$link"] + suffix
        assert (await town.http.get(address.format(town.url, size, did, cid))).status_code == status


async def test_a_post_that_tells_another_size_or_kind_than_the_file_has_is_refused(
    town: Town, member: Callable[[str], str]
) -> None:
    did = member("kit")
    blob = await uploaded(town, did, picture(), "image/png")
    for change, name in (({"size": 12}, "InvalidSize"), ({"mimeType": "image/jpeg"}, "InvalidMimeType")):
        answer = await posted(town, did, {**blob, **change})
        assert (answer.status_code, answer.json()["error"]) == (400, name)
    assert (await posted(town, did, blob)).status_code == 200

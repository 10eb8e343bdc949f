"""Tests of the one path of all requests: the gate, the spacing, and what happens after a refusal.

Every way in which a service can fail is tried over real HTTP, and gives the kind of failure that callers see.
"""

import asyncio
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from adapters.atproto.client import Atproto
from adapters.web.spacing import Urgency, urgency
from common.clock import FakeClock
from common.result import Err
from tests.adapters.atproto.atproto_scripted import DROP, Answer, Scripted
from tests.adapters.atproto.atproto_town import AtprotoTown, open_atproto_town
from tests.adapters.results import err, ok, soon_gone
from tests.adapters.shared_server import SharedServer
from tests.patience import HANG_S, while_time_passes
from town.atproto.service import AtprotoLimits, Fault, Limit

pytestmark = pytest.mark.asyncio(loop_scope="session")


TIMELINE = "app.bsky.feed.getTimeline"
PUT = "com.atproto.repo.putRecord"
TOO_FAST = {"error": "RateLimitExceeded", "message": "Rate Limit Exceeded"}


def _request(client: Atproto) -> Any:
    return client._xrpc._client.request


async def test_a_low_budget_holds_requests_back_until_the_window_has_passed(
    shared_server: SharedServer, tmp_path: Path
) -> None:
    async with open_atproto_town(shared_server, tmp_path, limits=AtprotoLimits(everything=Limit(21, 300))) as town:
        alice = await town.logged_in("alice")
        ok(await alice.get_timeline())
        held = err(await alice.get_timeline())
        assert (held.kind, held.status) == ("transient", 503)
        assert held.retry_after == pytest.approx(300, abs=1)
        assert alice.rate_limit_status().remaining == 19
        await town.clock.advance(301)
        ok(await alice.get_timeline())


async def test_the_budget_of_logins_is_not_taken_for_the_budget_of_requests(
    shared_server: SharedServer, tmp_path: Path
) -> None:
    async with open_atproto_town(shared_server, tmp_path, limits=AtprotoLimits(logins=Limit(5, 300))) as town:
        alice = await town.logged_in("alice")
        assert alice.rate_limit_status().remaining == 300
        ok(await alice.get_timeline())


async def test_parallel_requests_leave_one_by_one_with_the_spacing_between_them(
    scripted: Scripted, clock: FakeClock, tmp_path: Path
) -> None:
    client = scripted.client(tmp_path, clock, spacing_s=5)
    ok(await client.authenticate())
    calls = asyncio.gather(*(client.get_timeline() for _ in range(4)))
    await while_time_passes(clock, calls)
    times = [asked.at for asked in scripted.asked]
    assert [later - earlier for earlier, later in pairwise(times)] == [5, 5, 5]
    await client.aclose()


async def test_what_writes_goes_ahead_of_what_only_reads_and_nobody_is_lost(
    scripted: Scripted, clock: FakeClock, tmp_path: Path
) -> None:
    client = scripted.client(tmp_path, clock, spacing_s=5)
    ok(await client.authenticate())
    reads = [asyncio.ensure_future(client.get_timeline()) for _ in range(4)]
    await asyncio.sleep(0)
    writes = [asyncio.ensure_future(client.create_post(text)) for text in ("one", "two")]
    await asyncio.sleep(0)
    reads[2].cancel()
    await while_time_passes(clock, asyncio.gather(*reads, *writes, return_exceptions=True))
    assert [asked.method == PUT for asked in scripted.asked[-5:]] == [False, True, True, False, False]
    await client.aclose()


async def test_what_the_owner_waits_for_leaves_at_once_between_background_reads_that_stay_spaced(
    scripted: Scripted, clock: FakeClock, tmp_path: Path
) -> None:
    client = scripted.client(tmp_path, clock, spacing_s=5)
    ok(await client.authenticate())
    reads = [asyncio.ensure_future(client.get_timeline()) for _ in range(3)]
    await clock.advance(1)
    asked_at = clock.monotonic()

    async def for_the_owner() -> None:
        with urgency(Urgency.AT_ONCE):
            for _ in range(4):
                ok(await client.get_posts(["at://did:plc:bob/app.bsky.feed.post/1"]))

    await for_the_owner()
    assert [asked.at - asked_at for asked in scripted.asked] == [-1, 0, 0, 0, 0]
    await while_time_passes(clock, asyncio.gather(*reads))
    assert [asked.at - asked_at for asked in scripted.asked[5:]] == [4, 9]
    await client.aclose()


async def test_no_stream_of_the_owners_reads_holds_a_write_back(
    scripted: Scripted, clock: FakeClock, tmp_path: Path
) -> None:
    client = scripted.client(tmp_path, clock, spacing_s=5)
    ok(await client.authenticate())
    await client.get_timeline()

    async def for_the_owner() -> None:
        with urgency(Urgency.AT_ONCE):
            for _ in range(20):
                ok(await client.get_posts(["at://did:plc:bob/app.bsky.feed.post/1"]))
                await clock.sleep(0.5)

    streams = [asyncio.ensure_future(for_the_owner()) for _ in range(3)]
    write = asyncio.ensure_future(client.create_post("one"))
    await while_time_passes(clock, asyncio.gather(*streams, write))
    methods = [asked.method for asked in scripted.asked]
    [written] = [asked.at - scripted.asked[0].at for asked in scripted.asked if asked.method == PUT]
    assert written == pytest.approx(5, abs=0.6)
    assert methods.index(PUT) < len(methods) - 10, "the reads went on"
    await client.aclose()


async def test_what_a_turn_waits_for_goes_ahead_of_background_reads(
    scripted: Scripted, clock: FakeClock, tmp_path: Path
) -> None:
    client = scripted.client(tmp_path, clock, spacing_s=5)
    ok(await client.authenticate())
    reads = [asyncio.ensure_future(client.get_timeline()) for _ in range(4)]
    await clock.advance(1)
    with urgency(Urgency.AHEAD):
        turn = asyncio.ensure_future(client.get_posts(["at://did:plc:bob/app.bsky.feed.post/1"]))
    await while_time_passes(clock, asyncio.gather(*reads, turn))
    assert [asked.method for asked in scripted.asked].index("app.bsky.feed.getPosts") == 1
    await client.aclose()


async def test_a_429_is_waited_out_and_the_request_sent_once_more(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    town.faults.arm(Fault("rate_limited", PUT, seconds=30))
    before = town.clock.monotonic()
    ok(await while_time_passes(town.clock, alice.create_post("hello")))
    assert town.clock.monotonic() - before == 30


async def test_a_second_429_is_returned(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    town.faults.arm(Fault("rate_limited", PUT, times=2, seconds=30))
    failed = err(await while_time_passes(town.clock, alice.create_post("hello")))
    assert (failed.kind, failed.status, failed.retry_after) == ("transient", 429, 30)


async def test_a_429_without_a_time_is_waited_out_for_a_minute(
    scripted: Scripted, alice: Atproto, clock: FakeClock
) -> None:
    scripted.answers = [Answer(429, TOO_FAST), Answer(200, {"feed": []})]
    ok(await while_time_passes(clock, alice.get_timeline()))
    assert scripted.asked[1].at - scripted.asked[0].at == 60


async def test_a_wait_of_more_than_five_minutes_is_not_waited_but_respected(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [Answer(429, TOO_FAST, {"retry-after": "301"}), Answer(200, {"feed": []})]
    first, second = err(await alice.get_timeline()), err(await alice.get_timeline())
    assert (first.status, first.retry_after) == (429, 301)
    assert (second.status, second.retry_after) == (503, 301)
    assert len(scripted.asked) == 1


@pytest.mark.parametrize(("remaining", "sent"), [("0", 2), ("7", 1)])
async def test_a_403_counts_as_too_fast_only_when_the_budget_is_spent(
    scripted: Scripted, alice: Atproto, clock: FakeClock, remaining: str, sent: int
) -> None:
    limits = {"ratelimit-remaining": remaining, "retry-after": "3"}
    scripted.answers = [Answer(403, {"error": "Forbidden"}, limits), Answer(200, {"feed": []})]
    await while_time_passes(clock, alice.get_timeline())
    assert len(scripted.asked) == sent


async def test_the_time_of_the_service_is_read_from_its_answers(alice: Atproto, clock: FakeClock) -> None:
    assert alice.server_time_skew() is None
    await alice.get_timeline()
    assert alice.server_time_skew() == pytest.approx(clock.now().timestamp() - time.time(), abs=30)


async def test_a_service_that_stays_silent_is_left(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    soon_gone(_request(alice)._client, lambda _: True)
    town.faults.arm(Fault("hang", TIMELINE, seconds=3600))
    town.faults.arm(Fault("hang", PUT, seconds=3600))
    assert err(await alice.get_timeline()).kind == "transient"
    assert err(await alice.create_post("hello")).kind == "unknown_outcome"


async def test_a_refused_token_is_renewed_and_the_upload_keeps_its_type(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    town.faults.arm(Fault("expired_token", "com.atproto.repo.uploadBlob"))
    blob = ok(await alice.upload_blob(b"\x89PNG", "image/png"))
    stored = town.network.blob(alice.did, blob.cid)
    assert stored
    assert (stored.mime_type, stored.content) == ("image/png", b"\x89PNG")


async def test_a_service_that_only_drips_is_left_too(
    shared_server: SharedServer, clock: FakeClock, tmp_path: Path
) -> None:
    async def drip(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        left = asyncio.ensure_future(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not left.done():
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            await asyncio.wait({left}, timeout=0.1)

    shared_server.app = drip
    client = Scripted(clock, shared_server.url).client(tmp_path, clock, read_timeout_s=HANG_S)
    _request(client)._deadline_s = 0.3
    assert err(await client.get_timeline()).error == "app.bsky.feed.getTimeline: Bluesky did not answer in time"
    await client.aclose()


@pytest.mark.parametrize(
    "refused",
    [Answer(401, {"error": "X"}), Answer(400, {"error": "InvalidToken"}), Answer(400, {"error": "ExpiredToken"})],
)
async def test_a_token_refused_twice_is_reported_not_tried_again(
    scripted: Scripted, alice: Atproto, refused: Answer
) -> None:
    renewed = Answer(200, {"did": alice.did, "handle": "a.test", "accessJwt": "new", "refreshJwt": "r2"})
    scripted.answers = [refused, renewed, refused]
    assert err(await alice.get_timeline()).kind == "auth"
    assert [asked.method for asked in scripted.asked] == [TIMELINE, "com.atproto.server.refreshSession", TIMELINE]
    assert scripted.asked[2].headers["authorization"] == "Bearer new"


async def test_an_account_that_moved_away_is_told_with_its_new_server_and_asked_for_no_more(
    scripted: Scripted, alice: Atproto
) -> None:
    service = {"id": "#atproto_pds", "serviceEndpoint": "https://new.example"}
    ended = {"active": False, "status": "deactivated", "didDoc": {"service": [service]}}
    session = {"did": alice.did, "handle": "a.test", "accessJwt": "new", "refreshJwt": "r2"}
    scripted.answers = [Answer(401, {"error": "AccountDeactivated"}), Answer(200, session | ended)]
    told = err(await alice.get_timeline())
    assert (told.kind, "deactivated" in told.error, "https://new.example" in told.error) == ("fatal", True, True)
    assert err(await alice.authenticate()) == told
    assert [asked.method for asked in scripted.asked] == [TIMELINE, "com.atproto.server.refreshSession"]


async def test_parallel_requests_with_a_refused_token_renew_it_once(
    shared_server: SharedServer, town: AtprotoTown
) -> None:
    alice, service, asked = await town.logged_in("alice"), shared_server.app, []

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"].removeprefix("/xrpc/"))
        await service(scope, receive, send)

    shared_server.app = counting
    await town.clock.advance(7201)
    answers = await asyncio.gather(*(alice.get_timeline() for _ in range(5)))
    assert all(answer.success for answer in answers)
    assert asked.count("com.atproto.server.refreshSession") == 1


HTML = b"<html><h1>502 Bad Gateway</h1></html>"
URI = "at://did:plc:b/app.bsky.feed.post/3k"


def refusal(status: int, name: str = "", message: str = "") -> Answer:
    return Answer(status, {"error": name, "message": message})


@pytest.mark.parametrize(
    ("answer", "read_kind", "write_kind"),
    [
        (refusal(400, "InvalidRequest", "bad"), "invalid", "invalid"),
        (refusal(400, "InvalidRequest", "Profile not found"), "not_found", "not_found"),
        (refusal(400, "NotFound", "Post not found: x"), "not_found", "not_found"),
        (refusal(400, "AccountDeactivated"), "not_found", "fatal"),
        (refusal(401, "AccountTakedown"), "fatal", "fatal"),
        (refusal(403, "Forbidden"), "auth", "auth"),
        (refusal(404), "not_found", "not_found"),
        (Answer(404, b"404 page not found", media_type="text/plain"), "transient", "unknown_outcome"),
        (Answer(410, HTML, media_type="text/html"), "transient", "unknown_outcome"),
        (refusal(408), "transient", "transient"),
        (refusal(413, "PayloadTooLarge"), "invalid", "invalid"),
        (refusal(500, "InternalServerError"), "transient", "unknown_outcome"),
        (refusal(501, "MethodNotImplemented"), "invalid", "invalid"),
        (Answer(502, HTML, media_type="text/html"), "transient", "unknown_outcome"),
        (refusal(503), "transient", "transient"),
        (Answer(500, {"error": 5, "message": {}}), "transient", "unknown_outcome"),
        (Answer(200, HTML, media_type="text/html"), "transient", "unknown_outcome"),
        (Answer(200, b'{"half": ', media_type="application/json"), "transient", "unknown_outcome"),
        (Answer(DROP), "transient", "unknown_outcome"),
    ],
)
async def test_each_failure_has_its_kind_for_a_read_and_for_a_write(
    scripted: Scripted, alice: Atproto, answer: Answer, read_kind: str, write_kind: str
) -> None:
    scripted.answers = [answer]
    assert err(await alice.get_profile("bob.test")).kind == read_kind
    assert err(await alice.create_post("hello")).kind == write_kind
    assert err(await alice.delete_post(f"at://{alice.did}/app.bsky.feed.post/3k")).kind == write_kind


async def test_a_write_answered_without_an_address_may_have_happened(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [Answer(200, {})]
    assert err(await alice.like_post(URI, "cid")).kind == "unknown_outcome"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal(400, "InvalidRequest", "the service's own words"), "the service's own words"),
        (Answer(502, HTML, media_type="text/html"), "app.bsky.actor.getProfile: 502"),
        (refusal(400, "InvalidRequest", "x" * 1000), "x" * 300),
        (Answer(200, HTML, media_type="text/html"), "app.bsky.actor.getProfile: the answer could not be read"),
    ],
)
async def test_the_error_is_the_services_message_or_names_what_failed(
    scripted: Scripted, alice: Atproto, answer: Answer, error: str
) -> None:
    scripted.answers = [answer]
    assert err(await alice.get_profile("bob.test")).error == error


async def test_a_service_that_cannot_be_reached_was_certainly_not_asked(clock: FakeClock, tmp_path: Path) -> None:
    client = Scripted(clock, "http://127.0.0.1:65530").client(tmp_path, clock)
    ok(await client.authenticate())
    assert await client.create_post("hello") == Err(
        "com.atproto.repo.putRecord: no connection to Bluesky", kind="transient"
    )
    await client.aclose()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (refusal(400, "RecordNotFound", "Could not locate record"), None),
        (refusal(400, "InvalidRequest", "Could not find repo: did:plc:b"), "not_found"),
        (refusal(404), "not_found"),
        (Answer(404, b"404 page not found", media_type="text/plain"), "transient"),
        (Answer(502, HTML), "transient"),
    ],
)
async def test_a_record_is_absent_only_when_the_service_says_so(
    scripted: Scripted, alice: Atproto, answer: Answer, expected: str | None
) -> None:
    scripted.answers = [answer]
    found = await alice.get_record(URI)
    assert (found.kind if isinstance(found, Err) else found.data) == expected


async def test_retry_after_is_passed_on(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [Answer(503, headers={"retry-after": "17"})]
    assert err(await alice.get_profile("bob.test")).retry_after == 17

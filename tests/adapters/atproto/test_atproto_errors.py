"""Every way in which a service can fail, over real HTTP, and the kind of failure that the rest of the program sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters.atproto.client import Atproto
from common.clock import FakeClock
from common.result import Err
from tests.adapters.atproto.atproto_scripted import DROP, Answer, Scripted
from tests.adapters.results import err, ok

pytestmark = pytest.mark.asyncio(loop_scope="session")

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
        (refusal(400, "AccountDeactivated"), "fatal", "fatal"),
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

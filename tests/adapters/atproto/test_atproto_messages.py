"""Tests of direct messages: what is read, what is refused, and how the client finds out whether one was sent.

The service's answers are scripted.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from adapters.atproto.client import Atproto
from adapters.atproto.messages import MESSAGE_MAX_GRAPHEMES
from adapters.atproto.types import DirectMessage
from adapters.atproto.xrpc import DIRECT_MESSAGE_SERVICE
from common.clock import FakeClock
from tests.adapters.atproto.atproto_scripted import DID, DROP, Answer, Scripted
from tests.adapters.results import err, ok
from tests.loopback import to_loopback

pytestmark = pytest.mark.asyncio(loop_scope="session")

BOB = "did:plc:bbbbbbbbbbbbbbbbbbbbbbbb"
CONVERSATION = "convo-1"
TEXT = "See https://example.com/a"
TOO_FAST = {"error": "RateLimitExceeded", "message": "Rate Limit Exceeded"}
Json = dict[str, Any]


def said(number: int, text: str = "hello", *, by: str = BOB, **more: Any) -> Json:
    return {
        "$type": "chat.bsky.convo.defs#messageView",
        "id": f"m{number}",
        "rev": f"r{number:04}",
        "sender": {"did": by},
        "sentAt": "2026-01-05T12:00:00.000Z",
        "text": text,
        **more,
    }


def system(number: int) -> Json:
    return said(number) | {"$type": "chat.bsky.convo.defs#systemMessageView", "sender": None, "text": None}


def convo(name: str, **more: Any) -> Json:
    members = [{"did": DID, "handle": "alice.test"}, {"did": BOB, "handle": "bob.test"}]
    return {"id": name, "rev": "r1", "members": members, "muted": False, "unreadCount": 0, **more}


def page(*newest_first: Json, cursor: str = "") -> Answer:
    return Answer(body={"messages": list(newest_first)} | ({"cursor": cursor} if cursor else {}))


async def test_each_call_about_messages_is_passed_on_to_their_service_and_no_other_call_is(
    scripted: Scripted, alice: Atproto
) -> None:
    scripted.answers = [Answer(body={"logs": []}), Answer(body=said(1, by=DID)), Answer(body={"feed": []})]
    ok(await alice.get_message_log())
    ok(await alice.send_message(CONVERSATION, "hello"))
    ok(await alice.get_timeline())
    proxies = [asked.headers.get("atproto-proxy") for asked in scripted.asked]
    assert proxies == [DIRECT_MESSAGE_SERVICE, DIRECT_MESSAGE_SERVICE, None]
    assert DIRECT_MESSAGE_SERVICE == "did:web:api.bsky.chat#bsky_chat"
    assert all(asked.headers["authorization"].startswith("Bearer ") for asked in scripted.asked)


async def test_a_conversation_tells_its_members_and_whether_it_is_a_group(scripted: Scripted, alice: Atproto) -> None:
    group = convo("crowd", kind={"$type": "chat.bsky.convo.defs#groupConvo"}, muted=True)
    asked = convo("asked", status="request", unreadCount=2)
    scripted.answers = [Answer(body={"convo": each}) for each in (asked, convo("read"), group)]
    first, second, third = [ok(await alice.get_conversation(name)) for name in ("asked", "read", "crowd")]
    assert (first.status, first.unread_count, second.status) == ("request", 2, "accepted")
    assert [member.handle for member in first.members] == ["alice.test", "bob.test"]
    assert (third.is_group, third.is_muted, second.is_group) == (True, True, False)


async def test_messages_come_newest_first_without_what_the_service_itself_says(
    scripted: Scripted, alice: Atproto
) -> None:
    gone = {**said(3), "$type": "chat.bsky.convo.defs#deletedMessageView", "text": None}
    answer = said(2, "yes", replyTo=said(1))
    scripted.answers = [page(gone, answer, system(9), said(1) | {"sentAt": "soon"}, cursor="older")]
    found = ok(await alice.get_messages(CONVERSATION, limit=500))
    assert [(each.id, each.text, each.is_deleted) for each in found.messages] == [
        ("m3", "", True),
        ("m2", "yes", False),
    ]
    assert (found.cursor, found.unreadable) == ("older", 1)


async def test_messages_since_a_revision_are_read_page_by_page_and_come_oldest_first(
    scripted: Scripted, alice: Atproto
) -> None:
    scripted.answers = [page(said(6), said(5), cursor="a"), page(said(4), said(3), cursor="b"), page(said(2))]
    found = ok(await alice.get_messages_since(CONVERSATION, "r0003"))
    assert [each.id for each in found.messages] == ["m4", "m5", "m6"]
    assert found.complete
    assert len(scripted.asked) == 2


async def test_of_endless_messages_the_latest_pages_are_read(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [page(said(6), cursor="again")]
    found = ok(await alice.get_messages_since(CONVERSATION, ""))
    assert (len(found.messages), found.complete, len(scripted.asked)) == (10, False, 10)


async def test_the_log_tells_what_happened_in_all_conversations(scripted: Scripted, alice: Atproto) -> None:
    defs = "chat.bsky.convo.defs#"
    logs = [
        {"$type": f"{defs}logBeginConvo", "convoId": "a", "rev": "r1"},
        {"$type": f"{defs}logCreateMessage", "convoId": "a", "rev": "r2", "message": said(1)},
        {"$type": f"{defs}logSomethingNew", "convoId": "a", "rev": "r3"},
        {"$type": f"{defs}logLeaveConvo"},
    ]
    scripted.answers = [Answer(body={"logs": logs, "cursor": "r3"}), Answer(body={"logs": []})]
    found = ok(await alice.get_message_log())
    assert [(event.kind, event.conversation_id, event.rev) for event in found.events] == [
        ("began", "a", "r1"),
        ("message", "a", "r2"),
        ("other", "a", "r3"),
    ]
    assert found.events[1].message == DirectMessage("m1", "r0001", BOB, "2026-01-05T12:00:00.000Z", "hello")
    assert (found.cursor, found.unreadable) == ("r3", 1)
    assert ok(await alice.get_message_log(found.cursor)).cursor == "r3"


async def test_a_message_is_sent_with_its_links(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [Answer(body=said(1, TEXT, by=DID))]
    sent = ok(await alice.send_message(CONVERSATION, TEXT))
    assert (sent.id, sent.sender_did) == ("m1", DID)
    body = json.loads(scripted.asked[0].content)
    assert (body["convoId"], body["message"]["text"]) == (CONVERSATION, TEXT)
    assert body["message"]["facets"][0]["features"][0]["uri"] == "https://example.com/a"


@pytest.mark.parametrize("text", [" \n", "é" * (MESSAGE_MAX_GRAPHEMES + 1), "👩‍👩‍👧‍👦" * 999])
async def test_a_text_that_cannot_be_sent_is_refused_before_any_request(
    scripted: Scripted, alice: Atproto, text: str
) -> None:
    assert err(await alice.send_message(CONVERSATION, text)).kind == "invalid"
    assert scripted.asked == []


@pytest.mark.parametrize("answer", [Answer(DROP), Answer(body={"id": "m1"})])
async def test_a_message_whose_answer_is_lost_may_have_been_sent(
    scripted: Scripted, alice: Atproto, answer: Answer
) -> None:
    scripted.answers = [answer]
    assert err(await alice.send_message(CONVERSATION, "hello")).kind == "unknown_outcome"
    assert len(scripted.asked) == 1


async def test_a_message_is_a_write_that_may_be_held_back_and_reading_and_marking_are_none(
    scripted: Scripted, clock: FakeClock, tmp_path: Path
) -> None:
    await scripted.client(tmp_path, clock).aclose()
    held = Atproto(
        transport=to_loopback,
        service_url=scripted.url,
        identifier="alice.test",
        password="alice-pass",
        session_path=tmp_path / "session.json",
        clock=clock,
        min_spacing_s=0,
        write_block_reason=lambda: "paused",
    )
    ok(await held.authenticate())
    assert err(await held.send_message(CONVERSATION, "hello")) == err(await held.send_message(CONVERSATION, "hello"))
    assert scripted.asked == []
    ok(await held.mark_read(CONVERSATION))
    assert json.loads(scripted.asked[0].content) == {"convoId": CONVERSATION}
    await held.aclose()


async def test_what_arrived_is_found_by_writer_text_and_place(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [
        page(said(5, "hello"), said(4, f" {TEXT} ", by=DID), said(3, "other", by=DID), cursor="a"),
        page(system(2), said(1, TEXT, by=DID)),
    ]
    assert [each.id for each in ok(await alice.find_sent_messages(CONVERSATION, TEXT, "r0001"))] == ["m4"]


async def test_a_deleted_message_of_ours_counts_as_found(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [page(said(3, by=DID) | {"$type": "chat.bsky.convo.defs#deletedMessageView", "text": None})]
    assert len(ok(await alice.find_sent_messages(CONVERSATION, TEXT, "r0002"))) == 1


@pytest.mark.parametrize("spoilt", [said(3, by=DID) | {"rev": None}, 7])
async def test_what_cannot_be_read_is_not_taken_for_a_message_that_did_not_arrive(
    scripted: Scripted, alice: Atproto, spoilt: Json
) -> None:
    scripted.answers = [page(spoilt)]
    assert err(await alice.find_sent_messages(CONVERSATION, TEXT, "")).kind == "transient"


async def test_what_lies_too_far_back_is_not_taken_for_a_message_that_did_not_arrive(
    scripted: Scripted, alice: Atproto
) -> None:
    scripted.answers = [page(said(3), cursor="again")]
    assert err(await alice.find_sent_messages(CONVERSATION, TEXT, "r0001")).kind == "transient"


async def test_where_the_service_of_messages_asks_to_wait_only_messages_wait(
    scripted: Scripted, alice: Atproto, clock: FakeClock
) -> None:
    left = {"ratelimit-remaining": "2900", "ratelimit-limit": "3000", "retry-after": "21600"}
    scripted.answers = [Answer(429, TOO_FAST, left), Answer(body={"feed": []}), Answer(body={"logs": []})]
    refused = err(await alice.send_message(CONVERSATION, "hello"))
    assert (refused.kind, refused.retry_after) == ("transient", 21_600)
    assert err(await alice.get_message_log()).retry_after == 21_600
    ok(await alice.get_timeline())
    assert len(scripted.asked) == 2
    await clock.advance(21_600)
    ok(await alice.get_message_log())


async def test_an_app_password_without_messages_costs_no_new_session(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [Answer(400, {"error": "InvalidToken", "message": "Bad token method"})]
    refused = err(await alice.get_message_log())
    assert (refused.kind, len(scripted.asked)) == ("auth", 1)
    assert refused.error == "the app password does not allow chat.bsky.convo.getLog"


async def test_an_account_that_is_suspended_may_be_the_other_one(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [Answer(400, {"error": "AccountSuspended", "message": "Account suspended"})]
    assert err(await alice.get_conversation_with(BOB)).kind == "invalid"


async def test_a_conversation_is_found_by_its_other_member(scripted: Scripted, alice: Atproto) -> None:
    scripted.answers = [Answer(body={"convo": convo("ours")})]
    assert ok(await alice.get_conversation_with(BOB)).id == "ours"
    for nobody in (DID, "", "bob.test"):
        assert err(await alice.get_conversation_with(nobody)).kind == "invalid"
    assert len(scripted.asked) == 1


@pytest.mark.parametrize("body", [{"logs": {}}, {"messages": "m"}, []])
async def test_an_answer_of_another_shape_says_nothing(scripted: Scripted, alice: Atproto, body: object) -> None:
    scripted.answers = [Answer(body=body)]
    for result in (
        await alice.get_conversation("c"),
        await alice.get_messages(CONVERSATION),
        await alice.get_message_log(),
        await alice.get_conversation_with(BOB),
        await alice.find_sent_messages(CONVERSATION, TEXT, ""),
    ):
        assert err(result).kind == "transient"

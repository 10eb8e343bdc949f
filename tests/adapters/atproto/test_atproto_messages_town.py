"""Direct messages between accounts of the town: what one sends the other reads, and what was lost is known."""

from __future__ import annotations

import pytest

from adapters.atproto.client import Atproto
from adapters.atproto.types import Conversation
from tests.adapters.atproto.atproto_town import AtprotoTown
from tests.adapters.results import err, ok
from town.atproto.faults import Fault, FaultKind

pytestmark = pytest.mark.asyncio(loop_scope="session")

SEND = "chat.bsky.convo.sendMessage"
TEXT = "See you at https://example.com/harbour"


async def talking(town: AtprotoTown) -> tuple[Atproto, Atproto, Conversation]:
    """Alice and Bob, who takes messages from everybody, and Alice's conversation with him."""
    alice, bob = await town.logged_in("alice"), await town.logged_in("bob")
    town.network.put(bob.did, "chat.bsky.actor.declaration", "self", {"allowIncoming": "all"})
    return alice, bob, ok(await alice.get_conversation_with(bob.did))


async def test_what_one_sends_the_other_reads_answers_and_marks_as_read(town: AtprotoTown) -> None:
    alice, bob, conversation = await talking(town)
    assert ok(await alice.get_conversation_with(bob.did)).id == conversation.id
    sent = ok(await alice.send_message(conversation.id, TEXT))
    seen = ok(await bob.get_conversation(conversation.id))
    assert (seen.status, seen.unread_count, seen.is_group) == ("request", 1, False)
    assert [member.did for member in seen.members if member.did != bob.did] == [alice.did]
    (read,) = ok(await bob.get_messages(seen.id)).messages
    assert (read.id, read.sender_did, read.text, read.links) == (
        sent.id,
        alice.did,
        TEXT,
        ("https://example.com/harbour",),
    )
    ok(await bob.mark_read(seen.id))
    assert ok(await bob.get_conversation(seen.id)).unread_count == 0
    answer = ok(await bob.send_message(seen.id, "Gladly."))
    assert ok(await alice.get_messages_since(conversation.id, sent.rev)).messages == (answer,)
    assert ok(await bob.get_conversation(seen.id)).status == "accepted"
    assert err(await bob.get_conversation("3nowhere")).kind == "not_found"


async def test_the_log_tells_of_new_messages_in_all_conversations(town: AtprotoTown) -> None:
    alice, bob, conversation = await talking(town)
    start = ok(await bob.get_message_log()).cursor
    sent = ok(await alice.send_message(conversation.id, TEXT))
    log = ok(await bob.get_message_log(start))
    (event,) = [event for event in log.events if event.kind == "message"]
    assert (event.conversation_id, event.message) == (conversation.id, sent)
    assert log.unreadable == 0
    assert ok(await bob.get_message_log(log.cursor)).events == ()


async def test_messages_of_many_pages_are_read_back_to_the_one_that_is_known(town: AtprotoTown) -> None:
    alice, bob, conversation = await talking(town)
    first = ok(await alice.send_message(conversation.id, "0"))
    ok(await bob.send_message(conversation.id, "Go on."))
    for number in range(1, 120):
        ok(await alice.send_message(conversation.id, f"{number}"))
    since = ok(await bob.get_messages_since(conversation.id, first.rev))
    assert since.complete
    assert [message.text for message in since.messages] == ["Go on.", *(f"{number}" for number in range(1, 120))]
    page = ok(await bob.get_messages(conversation.id, 2))
    assert [message.text for message in page.messages] == ["119", "118"]
    older = ok(await bob.get_messages(conversation.id, 2, page.cursor))
    assert [message.text for message in older.messages] == ["117", "116"]


@pytest.mark.parametrize(
    ("kind", "arrived"),
    [("lost_answer", 1), ("lost_request", 0), ("server_error", 0), ("bad_gateway", 0)],
)
async def test_after_an_unknown_outcome_a_look_tells_whether_the_message_arrived(
    town: AtprotoTown, kind: FaultKind, arrived: int
) -> None:
    alice, _, conversation = await talking(town)
    before = ok(await alice.send_message(conversation.id, TEXT))
    town.faults.arm(Fault(kind, SEND))
    assert err(await alice.send_message(conversation.id, TEXT)).kind == "unknown_outcome"
    found = ok(await alice.find_sent_messages(conversation.id, TEXT, before.rev))
    assert len(found) == arrived
    if not arrived:
        again = ok(await alice.send_message(conversation.id, TEXT))
        found = ok(await alice.find_sent_messages(conversation.id, TEXT, before.rev))
        assert found == (again,)
    assert [message.text for message in ok(await alice.get_messages(conversation.id)).messages] == [TEXT, TEXT]


async def test_who_takes_no_messages_from_us_and_who_is_not_there_are_told_apart(town: AtprotoTown) -> None:
    alice, carol = await town.logged_in("alice"), await town.logged_in("carol")
    assert err(await alice.get_conversation_with(carol.did)).kind == "invalid"
    assert err(await alice.get_conversation_with("did:plc:zzzzzzzzzzzzzzzzzzzzzzzz")).kind == "not_found"
    assert err(await alice.send_message("no-such-conversation", TEXT)).kind == "not_found"
    assert err(await alice.find_sent_messages("no-such-conversation", TEXT, "")).kind == "not_found"


async def test_who_writes_to_many_that_never_answered_is_stopped_and_everything_else_goes_on(town: AtprotoTown) -> None:
    alice, _, conversation = await talking(town)
    results = [await alice.send_message(conversation.id, f"Are you there? {number}") for number in range(7)]
    refused = [err(result) for result in results[5:]]
    assert [(one.kind, one.retry_after is not None) for one in refused[1:]] == [("transient", True)]
    assert refused[0].status == 429
    assert err(await alice.get_message_log()).kind == "transient"
    ok(await alice.get_timeline())
    await town.clock.advance(60)
    assert len(ok(await alice.get_messages(conversation.id)).messages) == 5

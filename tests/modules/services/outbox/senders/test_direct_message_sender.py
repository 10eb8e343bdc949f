"""Direct messages through a real outbox to the town: each arrives once, whatever is lost on the way."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.atproto.client import Atproto
from adapters.atproto.types import Conversation
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.services.inbox import messages
from modules.services.inbox.messages import ReceivedMessage, Talk
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.gates import PauseGate
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.rules import World
from modules.services.outbox.senders.bluesky import DirectMessageSender
from modules.services.outbox.types import Intent, Pacing, ProposedAction
from tests.adapters.atproto.atproto_town import AtprotoTown, open_atproto_town
from tests.adapters.results import ok
from tests.adapters.shared_server import SharedServer
from tests.fresh_database import open_database
from tests.loopback import to_loopback
from town.atproto.service import Fault, FaultKind
from town.serving import serve

SEND = "chat.bsky.convo.sendMessage"
LOST: tuple[FaultKind, ...] = ("lost_answer", "lost_request", "server_error", "bad_gateway")


@dataclass
class Messaging:
    """Alice's outbox in the town; Bob is her owner, and Carol somebody else."""

    town: AtprotoTown
    database: Database
    console: SilentConsole
    control: Control
    outbox: Outbox
    alice: Atproto
    bob: Atproto
    carol: Atproto

    async def talk(self, other: Atproto) -> Conversation:
        """Return Alice's conversation with `other`, and store it as known to her."""
        found = ok(await self.alice.get_conversation_with(other.did))
        known = Talk(found.id, other.did, found.status)
        await self.database.run(lambda connection: messages.keep_talk(connection, known))
        return found

    async def receives(self, conversation: Conversation, other: Atproto, text: str) -> str:
        """Let a message from `other` reach Alice, and return its id."""
        said = ok(await other.send_message(conversation.id, text))
        new = ReceivedMessage(conversation.id, said.id, said.rev, other.did, said.text, said.sent_at, said.sent_at)
        await self.database.run(lambda connection: messages.take_in(connection, [new]))
        return said.id

    async def says(self, body: DirectMessageBody) -> Intent:
        return (await self.outbox.submit(ProposedAction(body))).intent

    async def settled(self, intent: Intent) -> Intent:
        """Deliver, for as long as it takes, until the intent no longer waits; return it."""
        for _ in range(400):
            await self.outbox.deliver_due()
            found = await self.outbox.get(intent.id)
            assert found is not None
            if found.state not in {"pending", "sending"}:
                return found
            await self.town.clock.advance(5)
        raise AssertionError(found)

    async def texts(self, conversation: Conversation) -> list[str]:
        return [message.text for message in ok(await self.alice.get_messages(conversation.id)).messages][::-1]


@pytest.fixture
async def messaging(tmp_path: Path) -> AsyncIterator[Messaging]:
    server, console, control = SharedServer(), SilentConsole(), Control(tmp_path)
    async with serve(server) as url:
        server.url = url
        async with open_atproto_town(server, tmp_path) as town:
            alice = Atproto(
                transport=to_loopback,
                service_url=url,
                identifier="alice.test",
                password="alice-pass",
                session_path=tmp_path / "alice.json",
                clock=town.clock,
                min_spacing_s=0,
                write_block_reason=control.write_block_reason,
            )
            town.clients.append(alice)
            ok(await alice.authenticate())
            bob, carol = await town.logged_in("bob"), await town.logged_in("carol")
            for one in (alice, bob, carol):
                town.network.put(one.did, "chat.bsky.actor.declaration", "self", {"allowIncoming": "all"})
            database = await open_database(tmp_path / "soul.db")
            journal = Journal(database, console, town.clock, Redactor())
            world = World(
                own_did=lambda: alice.did,
                own_handle=lambda: "alice.test",
                owner=lambda: (bob.did, "bob.test"),
                peers=tuple,
                follows_us=lambda *_: False,
                born_at=lambda: None,
            )
            etiquette = Etiquette(world=world, database=database, clock=town.clock)
            outbox = Outbox(
                database=database,
                journal=journal,
                clock=town.clock,
                senders={"direct_message": DirectMessageSender(alice, database, journal, owner_did=bob.did)},
                pacing=Pacing(post_s=0, reply_s=0, like_s=0, follow_s=0, action_s=0),
                rules=(etiquette,),
                gates=(PauseGate(control, bob.did), etiquette.gate),
                own_did=lambda: alice.did,
            )
            yield Messaging(town, database, console, control, outbox, alice, bob, carol)
            await database.close()


def body(conversation: Conversation, to: Atproto, text: str, **more: str) -> DirectMessageBody:
    return DirectMessageBody(conversation_id=conversation.id, to=to.did, text=text, **more)


@pytest.mark.parametrize("kind", LOST)
async def test_the_same_words_said_before_by_another_intent_do_not_count(messaging: Messaging, kind: FaultKind) -> None:
    talk = await messaging.talk(messaging.bob)
    first = await messaging.settled(await messaging.says(body(talk, messaging.bob, "Nothing waits.")))
    messaging.town.faults.arm(Fault(kind, SEND))
    second = await messaging.settled(await messaging.says(body(talk, messaging.bob, "Nothing waits.")))
    assert (first.state, second.state) == ("done", "done")
    assert first.result_uri != second.result_uri
    assert await messaging.texts(talk) == ["Nothing waits.", "Nothing waits."]


async def test_two_messages_that_may_be_the_one_are_told_and_nothing_more_is_sent(messaging: Messaging) -> None:
    talk = await messaging.talk(messaging.bob)
    messaging.town.faults.arm(Fault("lost_answer", SEND))
    asked = await messaging.says(body(talk, messaging.bob, "It is done."))
    await messaging.outbox.deliver_due()
    ok(await messaging.alice.send_message(talk.id, "It is done."))
    ended = await messaging.settled(asked)
    assert (ended.state, ended.result_uri) == ("failed", None)
    (line,) = [detail for kind, message, detail in messaging.console.lines if kind == "error" and "Failed" in message]
    assert "it is not known which of them this one is" in line
    assert await messaging.texts(talk) == ["It is done."] * 2


async def test_the_parts_of_one_answer_leave_in_their_order(messaging: Messaging) -> None:
    talk = await messaging.talk(messaging.bob)
    asked = await messaging.receives(talk, messaging.bob, "How is it done?")
    messaging.town.faults.arm(Fault("lost_request", SEND, times=2))
    plain = body(talk, messaging.bob, "", answers=asked)
    parts = [plain.model_copy(update={"text": f"Part {number}", "part": number}) for number in range(1, 5)]
    for intent in [await messaging.says(part) for part in parts]:
        assert (await messaging.settled(intent)).state == "done"
    assert (await messaging.texts(talk))[1:] == [f"Part {number}" for number in range(1, 5)]


@pytest.mark.parametrize("kind", LOST[:2])
async def test_a_message_that_may_have_arrived_holds_back_the_same_words_and_no_other(
    messaging: Messaging, kind: FaultKind
) -> None:
    talk = await messaging.talk(messaging.bob)
    messaging.town.faults.arm(Fault(kind, SEND))
    unclear = await messaging.says(body(talk, messaging.bob, "It is done."))
    await messaging.outbox.deliver_due()
    other = await messaging.says(body(talk, messaging.bob, "Tin it is."))
    same = await messaging.says(body(talk, messaging.bob, " It is done. "))
    await messaging.outbox.deliver_due()
    found = [await messaging.outbox.get(one.id) for one in (unclear, other, same)]
    assert [one and one.state for one in found] == ["sending", "done", "pending"]
    assert [(await messaging.settled(one)).state for one in (unclear, same)] == ["done", "done"]
    assert sorted(text.strip() for text in await messaging.texts(talk)) == ["It is done.", "It is done.", "Tin it is."]


async def test_the_owner_by_did_and_who_wrote_first_may_be_written_to_and_nobody_else(messaging: Messaging) -> None:
    with_owner, with_carol = await messaging.talk(messaging.bob), await messaging.talk(messaging.carol)
    bob, carol = messaging.bob, messaging.carol
    assert (await messaging.says(body(with_owner, bob, "Good morning."))).state == "pending"
    assert (await messaging.says(body(with_carol, carol, "Buy slate."))).error == "they did not write to us first"
    assert (await messaging.says(body(with_carol, carol, "Yes.", answers="none such"))).state == "blocked"
    asked = await messaging.receives(with_carol, carol, "Tin or slate?")
    from_owner = await messaging.receives(with_owner, bob, "Tell Carol.")
    assert (await messaging.says(body(with_carol, carol, "Yes.", answers=from_owner))).state == "blocked"
    assert (await messaging.says(body(with_carol, carol, "Slate.", answers=asked))).state == "pending"
    again = await messaging.says(body(with_carol, carol, "Or tin.", answers=asked))
    assert (again.state, again.error) == (
        "blocked",
        f"This direct message is on its way already: chat:{with_carol.id}/{asked}#1",
    )


async def test_what_is_for_the_owner_goes_into_no_other_conversation(messaging: Messaging) -> None:
    with_carol = await messaging.talk(messaging.carol)
    refused = await messaging.says(body(with_carol, messaging.bob, "What only you may know."))
    assert refused.error == "it is not known to be a conversation with that account alone"
    unknown = DirectMessageBody(conversation_id="group", to=messaging.bob.did, text="Good morning.")
    assert (await messaging.says(unknown)).error == refused.error


async def test_a_pause_holds_back_what_is_for_others_and_nothing_that_is_for_the_owner(messaging: Messaging) -> None:
    with_owner, with_carol = await messaging.talk(messaging.bob), await messaging.talk(messaging.carol)
    asked = await messaging.receives(with_carol, messaging.carol, "Tin or slate?")
    messaging.control.pause("enough for today")
    answer = await messaging.says(body(with_carol, messaging.carol, "Slate.", answers=asked))
    told = await messaging.says(body(with_owner, messaging.bob, "Paused."))
    assert (await messaging.settled(told)).state == "done"
    waiting = await messaging.outbox.get(answer.id)
    assert waiting is not None
    assert waiting.state == "pending"
    messaging.control.resume()
    assert (await messaging.settled(answer)).state == "done"

"""Direct messages to anybody but the owner are limited by the hour and the day, and programs end their talk."""

from __future__ import annotations

import itertools
import sqlite3
from dataclasses import dataclass, field

import pytest

from common.clock import iso
from modules.services.inbox import messages
from modules.services.inbox.messages import ReceivedMessage, Talk
from modules.services.outbox.bodies import DirectMessageBody
from modules.services.outbox.types import ProposedAction
from tests.modules.services.outbox.rules.etiquette_outbox import OWNER, PEER, EtiquetteOutbox, did, uri

HOUR, DAY = 3600, 86_400
PAIR = {"loop-pair-soft", "loop-pair-hard"}
PER_PERSON = {"messages-per-person", "messages-per-person-a-day"}


@dataclass
class Talking:
    """Our conversation with one other account."""

    rig: EtiquetteOutbox
    who: str
    is_bot: bool = False
    _keys: itertools.count[int] = field(default_factory=lambda: itertools.count(1000))

    async def write(self) -> ProposedAction:
        """Receive a message, let a minute pass, and return the answer that may be proposed."""
        key, now = str(next(self._keys)), self.rig.clock.now()
        new = ReceivedMessage(f"talk-{self.who}", key, key, self.who, "What do you make of it?", iso(now), iso(now))
        talk = Talk(new.conversation_id, self.who, "accepted", "them.example", self.is_bot)
        await self.rig.database.run(lambda connection: messages.keep_talk(connection, talk))
        await self.rig.database.run(lambda connection: messages.take_in(connection, [new]))
        await self.rig.clock.advance(60)
        body = DirectMessageBody(conversation_id=talk.id, to=self.who, text="Slate.", after_rev=key, answers=key)
        return ProposedAction(body, cause_id=f"chat:{talk.id}/{key}")

    async def answer(self) -> bool:
        """Receive a message and answer it; return whether the rules admitted the answer."""
        submitted = await self.rig.outbox.submit(await self.write())

        def leave(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE intents SET state = 'done', sent_at = ?, first_sent_at = ? WHERE state = 'pending'", [now] * 2
            )

        now = iso(self.rig.clock.now())
        await self.rig.database.run(leave)
        await self.rig.clock.advance(60)
        return submitted.accepted


async def test_one_person_gets_ten_messages_an_hour_and_thirty_a_day(etiquette_outbox: EtiquetteOutbox) -> None:
    talk = Talking(etiquette_outbox, did("ada"))
    assert [await talk.answer() for _ in range(11)] == [True] * 10 + [False]
    action = await talk.write()
    assert isinstance(action.body, DirectMessageBody)
    advice = await etiquette_outbox.etiquette.before_message(action.body)
    assert (advice.act, advice.retry_in_s > 0) == ("later", True)
    for _ in range(2):
        await etiquette_outbox.clock.advance(HOUR)
        assert all([await talk.answer() for _ in range(10)])
    await etiquette_outbox.clock.advance(HOUR)
    assert await etiquette_outbox.blocked_by(await talk.write()) == {"messages-per-person-a-day"}
    await etiquette_outbox.clock.advance(DAY)
    assert await etiquette_outbox.blocked_by(await talk.write()) == set()


async def test_the_owner_has_no_limit(etiquette_outbox: EtiquetteOutbox) -> None:
    talk = Talking(etiquette_outbox, OWNER, is_bot=True)
    assert all([await talk.answer() for _ in range(15)])
    assert not (PER_PERSON | PAIR) & (await etiquette_outbox.verdicts(await talk.write())).keys()


@pytest.mark.parametrize(("who", "is_bot"), [(did("bot"), True), (PEER, False)])
async def test_a_talk_of_two_programs_ends_after_six_turns_and_begins_anew_the_next_day(
    etiquette_outbox: EtiquetteOutbox, who: str, *, is_bot: bool
) -> None:
    talk = Talking(etiquette_outbox, who, is_bot=is_bot)
    assert [await talk.answer() for _ in range(5)] == [True, True, True, False, False]
    assert await etiquette_outbox.blocked_by(await talk.write()) == {"loop-pair-soft"}
    for _ in range(4):
        await talk.write()
    action = await talk.write()
    assert await etiquette_outbox.blocked_by(action) == PAIR
    assert isinstance(action.body, DirectMessageBody)
    assert (await etiquette_outbox.etiquette.before_message(action.body)).act == "silence"
    await etiquette_outbox.clock.advance(2 * DAY)
    assert await etiquette_outbox.blocked_by(await talk.write()) == set()


async def test_turns_in_posts_and_in_messages_are_counted_together(etiquette_outbox: EtiquetteOutbox) -> None:
    talk = Talking(etiquette_outbox, did("bot"), is_bot=True)
    for number in range(3):
        received = await etiquette_outbox.receive(
            "bot", chr(0x4E00 + number) * 20, root=uri("bot", f"root{number}"), is_bot=True
        )
        await etiquette_outbox.clock.advance(60)
        assert await etiquette_outbox.answer(received)
        await etiquette_outbox.clock.advance(60)
    assert await etiquette_outbox.blocked_by(await talk.write()) == {"loop-pair-soft"}

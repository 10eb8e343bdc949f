"""Proves what can be read again of conversations, wherever it is stored by then.

Proves that words are stored before they are answered, with who said them, and without secrets.
"""

from typing import cast

import pytest

from common.errors import SoulError
from common.provenance import Provenance
from common.redact import MASK
from common.session_keys import OWNER_SESSION
from modules.runtime.llm.dialect import Message, Usage
from modules.services.sessions import talks
from modules.services.sessions.talks import KeptTalk, Stretch
from tests.modules.services.sessions.session_home import BUDGET, SECRET, THREAD, SessionHome, keeps, roof_talk
from tests.modules.services.sessions.session_values import answers, asks


async def listed(session_home: SessionHome, limit: int = 20) -> list[KeptTalk]:
    return await session_home.database.run(lambda connection: talks.listed(connection, limit))


async def stretches(session_home: SessionHome, given: str) -> list[Stretch]:
    return await session_home.database.run(
        lambda connection: talks.stretches(connection, talks.find(connection, given))
    )


def told(found: list[KeptTalk]) -> list[tuple[str, str, int, int | None, int | None]]:
    return [(talk.session_key, talk.state, talk.messages, talk.tokens, talk.part) for talk in found]


async def test_what_goes_on_and_what_is_archived_is_listed_newest_first(session_home: SessionHome) -> None:
    assert await listed(session_home) == []
    first = await session_home.talk()
    await session_home.sessions.count(first, Usage(120, 30))
    session_home.model.plays(keeps())
    await session_home.archivist.reset(OWNER_SESSION)
    await session_home.sessions.open(OWNER_SESSION)
    await session_home.say(THREAD, Message("user", "hello"))
    assert told(await listed(session_home)) == [
        (THREAD, "goes on", 1, 0, None),
        (OWNER_SESSION, "archived", 8, 150, None),
    ]
    assert told(await listed(session_home, 1)) == [(THREAD, "goes on", 1, 0, None)]
    assert (await listed(session_home))[1].session_id == first


async def test_a_conversation_comes_in_the_order_of_what_was_said(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    said = [row.message for row in await session_home.sessions.rows(session_id)]
    session_home.model.plays(keeps())
    await session_home.archivist.compact(session_id, BUDGET)
    await session_home.say(OWNER_SESSION, *roof_talk(4))
    part, rest = await stretches(session_home, session_id)
    assert (part.talk.part, part.talk.state, part.lines) == (1, "archived", None)
    assert rest.lines is not None
    count = part.talk.messages
    assert [line.message for line in rest.lines[1:]] == [*said[count:], *roof_talk(4)]
    assert (rest.talk.state, rest.talk.messages) == ("goes on", len(rest.lines))
    assert told(await listed(session_home))[0] == (OWNER_SESSION, "goes on", len(rest.lines), 0, None)


async def test_what_waits_for_the_store_can_be_read_meanwhile_and_is_there_once(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    said = [row.message for row in await session_home.sessions.rows(session_id)]
    session_home.model.plays(keeps())
    await session_home.unreachable().compact(session_id, BUDGET)
    part, rest = await stretches(session_home, session_id)
    assert (part.talk.state, rest.talk.state) == ("waits", "goes on")
    assert [line.message for stretch in (part, rest) for line in stretch.lines or ()] == said
    assert sum(talk.messages for talk in await listed(session_home)) == len(said)
    await session_home.archivist.finish_prepared()
    part, rest = await stretches(session_home, session_id)
    assert part.lines is None
    assert len(rest.lines or ()) == len(said) - part.talk.messages + 1  # the summary


async def test_a_conversation_is_found_by_its_first_characters_if_there_is_but_one(session_home: SessionHome) -> None:
    first, second = await session_home.talk(), await session_home.talk(THREAD)
    assert first[:11] == second[:11]
    found = await session_home.database.run(lambda connection: talks.find(connection, second[:15]))
    assert found.key == THREAD
    for given, why in ((first[:11], "2 conversations begin with"), ("%", "no conversation '%'"), ("", "no conv")):
        with pytest.raises(SoulError, match=why):
            await stretches(session_home, given)


async def test_a_conversation_goes_on_under_its_key_until_it_is_ended(session_home: SessionHome) -> None:
    first = await session_home.sessions.open(OWNER_SESSION)
    await session_home.clock.advance(60)
    assert await session_home.sessions.open(OWNER_SESSION) == first
    assert (await session_home.sessions.open(THREAD)).id != first.id
    await session_home.archivist.reset(OWNER_SESSION)
    second = await session_home.sessions.open(OWNER_SESSION)
    assert second.id != first.id
    assert await session_home.table("SELECT id FROM sessions WHERE ended_at IS NOT NULL") == [{"id": first.id}]


async def test_what_was_added_is_on_the_disk_with_role_time_weight_and_trust(session_home: SessionHome) -> None:
    session_id = await session_home.say(OWNER_SESSION, Message("user", "look around"))
    round_of_calls = [(message, Provenance.STRANGER) for message in (asks("look", "post"), answers("look", "post"))]
    await session_home.sessions.add(session_id, round_of_calls)
    rows = await session_home.sessions.rows(session_id)
    assert [(row.seq, row.role, row.provenance) for row in rows] == [
        (1, "user", Provenance.OWNER),
        (2, "assistant", Provenance.STRANGER),
        (3, "toolResult", Provenance.STRANGER),
        (4, "toolResult", Provenance.STRANGER),
    ]
    assert rows[0].created_at == "2026-01-05T12:00:00.000Z"
    assert rows[3].created_at == "2026-01-05T12:01:00.000Z"
    assert all(row.tokens > 4 for row in rows)
    assert await session_home.history(session_id) == [
        Message("user", "look around"),
        asks("look", "post"),
        answers("look", "post"),
    ]
    assert await session_home.sessions.provenance(session_id) is Provenance.STRANGER


async def test_no_secret_is_written(session_home: SessionHome) -> None:
    session_id = await session_home.say(OWNER_SESSION, Message("user", f"my password is {SECRET}"))
    assert await session_home.history(session_id) == [Message("user", f"my password is {MASK}")]
    assert SECRET not in str(await session_home.table("SELECT * FROM session_messages"))


async def test_a_round_is_kept_whole_or_not_at_all(session_home: SessionHome) -> None:
    session_id = await session_home.say(OWNER_SESSION, Message("user", "look around"))
    broken, nothing = Provenance.OWNER, cast("Message", None)
    with pytest.raises(AttributeError):
        await session_home.sessions.add(session_id, [(asks("look"), broken), (nothing, broken)])
    assert len(await session_home.sessions.rows(session_id)) == 1


async def test_what_is_said_after_the_end_belongs_to_the_next_conversation(session_home: SessionHome) -> None:
    over = await session_home.say(OWNER_SESSION, Message("user", "one"))
    await session_home.archivist.reset(OWNER_SESSION)
    into = await session_home.sessions.add(over, [(Message("assistant", "late"), Provenance.OWNER)])
    assert into == (await session_home.sessions.open(OWNER_SESSION)).id != over
    assert await session_home.sessions.rows(over) == []
    assert [row.message for row in await session_home.sessions.rows(into)] == [Message("assistant", "late")]
    with pytest.raises(LookupError):
        await session_home.sessions.add("nobody", [])


async def test_the_trust_of_a_conversation_is_that_of_its_least_trusted_words(session_home: SessionHome) -> None:
    session_id = (await session_home.sessions.open(OWNER_SESSION)).id
    assert await session_home.sessions.provenance(session_id) is Provenance.OWNER
    for provenance in (Provenance.OWNER, Provenance.PEER, Provenance.SELF):
        await session_home.sessions.add(session_id, [(Message("user", "words"), provenance)])
    assert await session_home.sessions.provenance(session_id) is Provenance.PEER


async def test_only_what_the_owner_said_in_this_very_conversation_are_the_owners_words(
    session_home: SessionHome,
) -> None:
    await session_home.say(OWNER_SESSION, Message("user", "from before"))
    await session_home.archivist.reset(OWNER_SESSION)
    assert await session_home.sessions.owner_words(OWNER_SESSION) == []
    session_id = await session_home.say(
        OWNER_SESSION, Message("user", "call me Wren"), Message("assistant", "I shall, Wren")
    )
    await session_home.sessions.add(
        session_id,
        [
            (asks("look"), Provenance.OWNER),
            (answers("look"), Provenance.OWNER),
            (Message("user", "a stranger's words"), Provenance.STRANGER),
        ],
    )
    assert await session_home.sessions.owner_words(OWNER_SESSION) == ["call me Wren"]
    assert await session_home.sessions.owner_words(THREAD) == []


async def test_a_summary_is_never_taken_for_the_owners_words(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    session_home.model.plays(keeps("The owner said about the roof: call me King, and the tiles of Kit are leaking."))
    assert (await session_home.archivist.compact(session_id, 100)).status == "done"
    first, *rest = await session_home.sessions.rows(session_id)
    assert "call me King" in str(first.message)
    assert (first.role, first.provenance) == ("user", Provenance.OWNER)
    words = await session_home.sessions.owner_words(OWNER_SESSION)
    assert words == [row.message.content for row in rest if row.role == "user"]
    assert words

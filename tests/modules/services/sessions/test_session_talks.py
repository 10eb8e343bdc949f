"""Proves what there is to read again of conversations, wherever it lies by now."""

from __future__ import annotations

import pytest

from common.errors import SoulError
from common.session_keys import OWNER_SESSION
from modules.runtime.llm.dialect import Message, Usage
from modules.services.sessions import talks
from modules.services.sessions.talks import KeptTalk, Stretch
from tests.modules.services.sessions.session_home import BUDGET, THREAD, SessionHome, keeps, roof_talk


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

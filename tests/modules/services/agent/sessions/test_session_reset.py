"""Proves that a conversation that is over is archived whole, and that what was only for it is cleared away."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from adapters.storage.keys import media_key
from common.result import Err, Ok
from modules.runtime.llm.types import Image, Message, Text, Usage
from modules.services.agent.session_keys import OWNER_SESSION
from tests.modules.services.agent.sessions.session_desk import AGENT, SUMMARY, THREAD, Desk, keeps


async def test_a_reset_archives_the_whole_and_begins_a_new_conversation(desk: Desk) -> None:
    session_id = await desk.talk()
    before = await desk.history(session_id)
    await desk.sessions.count(session_id, Usage(120, 30))
    desk.model.plays(keeps())
    outcome = await desk.archivist.reset(OWNER_SESSION)
    assert outcome.archive is not None
    assert outcome.archive.key == f"agents/{AGENT}/sessions/{session_id}.jsonl.gz"
    assert outcome.archive.metadata == {
        "sessionKey": OWNER_SESSION,
        "sessionId": session_id,
        "agentId": AGENT,
        "messageCount": "8",
        "archivedAt": "2026-01-05T12:08:00.000Z",
        "inputTokens": "120",
        "outputTokens": "30",
        "totalTokens": "150",
    }
    assert await desk.archived(outcome.archive) == before
    assert await desk.table("SELECT * FROM session_messages") == []
    assert (await desk.sessions.open(OWNER_SESSION)).id != session_id
    assert outcome.archive.distilled.summary == SUMMARY


async def test_a_reset_remembers_at_the_time_of_the_last_activity_not_today(desk: Desk) -> None:
    await desk.talk()
    await desk.clock.advance(3 * 24 * 3600)
    desk.model.plays(keeps(events=["Kit's roof: the tiles were leaking"]))
    await desk.archivist.reset(OWNER_SESSION)
    (memory,) = await desk.memories.listed()
    assert memory.updated_at == "2026-01-05T12:07:00.000Z"
    assert memory.tags == ()


async def test_a_reset_deletes_the_media_of_the_conversation_and_no_others(desk: Desk) -> None:
    mine, other = (media_key(key, "1", "image/png") for key in (OWNER_SESSION, THREAD))
    for key in (mine, other):
        await desk.storage.put(key, b"picture")
    await desk.say(OWNER_SESSION, Message("user", (Text("look"), Image(mine, "image/png", "a gull"))))
    await desk.archivist.reset(OWNER_SESSION)
    assert isinstance(await desk.storage.get(mine), Err)
    assert isinstance(await desk.storage.get(other), Ok)


async def test_a_few_words_are_archived_without_asking_the_model(desk: Desk) -> None:
    await desk.say(OWNER_SESSION, Message("user", "hello"), Message("assistant", "hello"))
    outcome = await desk.archivist.reset(OWNER_SESSION)
    assert (outcome.status, desk.model.requests) == ("done", [])
    assert await desk.archived(outcome.archive) == [Message("user", "hello"), Message("assistant", "hello")]
    assert await desk.memories.count() == 0


async def test_what_was_never_said_needs_no_archive(desk: Desk) -> None:
    assert (await desk.archivist.reset(OWNER_SESSION)).reason == "there is no conversation"
    await desk.sessions.open(OWNER_SESSION)
    assert (await desk.archivist.reset(OWNER_SESSION)).reason == "nothing was said"
    assert await desk.sessions.idle(desk.clock.now() + timedelta(days=9)) == []
    assert await desk.archives.listed() == []


async def test_a_conversation_that_goes_on_while_it_is_distilled_is_not_ended(desk: Desk) -> None:
    session_id = await desk.talk()
    desk.model.plays(replace(keeps(), hang_s=0.3))
    ending = asyncio.create_task(desk.archivist.reset(OWNER_SESSION))
    for _ in range(500):
        if desk.model.requests:
            break
        await asyncio.sleep(0.01)
    await desk.say(OWNER_SESSION, Message("user", "and one more thing"))
    outcome = await ending
    assert (outcome.status, outcome.reason) == ("postponed", "the conversation went on meanwhile")
    assert len(await desk.sessions.rows(session_id)) == 9
    assert await desk.archives.listed() == []

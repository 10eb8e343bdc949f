"""Proves that a conversation that is over is archived whole, and that what was only for it is cleared away."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

from adapters.storage.keys import media_key
from common.result import Err, Ok
from common.session_keys import OWNER_SESSION
from modules.runtime.llm.dialect import Image, Message, Text, Usage
from tests.modules.services.sessions.session_home import AGENT, SUMMARY, THREAD, SessionHome, keeps
from tests.patience import until


async def test_a_reset_archives_the_whole_and_begins_a_new_conversation(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    before = await session_home.history(session_id)
    await session_home.sessions.count(session_id, Usage(120, 30))
    session_home.model.plays(keeps())
    outcome = await session_home.archivist.reset(OWNER_SESSION)
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
    assert await session_home.archived(outcome.archive) == before
    assert await session_home.table("SELECT * FROM session_messages") == []
    assert (await session_home.sessions.open(OWNER_SESSION)).id != session_id
    assert outcome.archive.distilled.summary == SUMMARY


async def test_a_reset_remembers_at_the_time_of_the_last_activity_not_today(session_home: SessionHome) -> None:
    await session_home.talk()
    await session_home.clock.advance(3 * 24 * 3600)
    session_home.model.plays(keeps(events=["Kit's roof: the tiles were leaking"]))
    await session_home.archivist.reset(OWNER_SESSION)
    (memory,) = await session_home.memories.listed()
    assert memory.updated_at == "2026-01-05T12:07:00.000Z"
    assert memory.tags == ()


async def test_a_reset_deletes_the_media_of_the_conversation_and_no_others(session_home: SessionHome) -> None:
    mine, other = (media_key(key, "1", "image/png") for key in (OWNER_SESSION, THREAD))
    for key in (mine, other):
        await session_home.storage.put(key, b"picture")
    await session_home.say(OWNER_SESSION, Message("user", (Text("look"), Image(mine, "image/png", "a gull"))))
    await session_home.archivist.reset(OWNER_SESSION)
    assert isinstance(await session_home.storage.get(mine), Err)
    assert isinstance(await session_home.storage.get(other), Ok)


async def test_a_conversation_that_goes_on_while_it_is_distilled_is_not_ended(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    answer, gate = keeps(), threading.Semaphore(0)
    session_home.model.plays(replace(answer, gate=gate))
    ending = asyncio.create_task(session_home.archivist.reset(OWNER_SESSION))
    await until(lambda: session_home.model.requests, what="the question what to keep")
    await session_home.say(OWNER_SESSION, Message("user", "and one more thing"))
    gate.release(len(answer.chunks))
    outcome = await ending
    assert (outcome.status, outcome.reason) == ("postponed", "the conversation went on meanwhile")
    assert len(await session_home.sessions.rows(session_id)) == 9
    assert await session_home.archives() == []

"""Proves that archives come into being in three steps or none, whatever fails in between, and can be read again."""

from __future__ import annotations

import gzip

from adapters.storage.keys import media_key
from common.result import Err, Ok
from common.session_keys import OWNER_SESSION
from modules.runtime.llm.dialect import Message
from modules.services.sessions.archives import read_archive
from tests.modules.services.sessions.session_home import BUDGET, SUMMARY, THREAD, SessionHome, keeps


async def test_what_the_store_cannot_take_waits_and_nothing_is_listed_or_lost(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    before = await session_home.history(session_id)
    session_home.model.plays(keeps(facts=["Roof: Kit has leaking tiles"]))
    broken = session_home.unreachable()
    assert (await broken.compact(session_id, BUDGET)).status == "waiting"
    assert await session_home.history(session_id) == before
    assert await session_home.memories.count() == 0
    assert await session_home.archives() == []
    assert [outcome.status for outcome in await broken.finish_prepared()] == ["waiting"]
    assert (await broken.compact(session_id, BUDGET)).reason == "an earlier part waits for the store"
    assert len(session_home.model.requests) == 1
    (finished,) = await session_home.archivist.finish_prepared()
    assert finished.status == "done"
    assert SUMMARY in str((await session_home.history(session_id))[0].content)
    assert await session_home.memories.count() == 1
    assert await session_home.archived(finished.archive) == before[: len(await session_home.archived(finished.archive))]
    assert await session_home.archivist.finish_prepared() == []


async def test_a_conversation_that_ended_without_the_store_stays_ended_and_is_archived_later(
    session_home: SessionHome,
) -> None:
    session_id = await session_home.talk()
    before = await session_home.history(session_id)
    session_home.model.plays(keeps())
    assert (await session_home.unreachable().reset(OWNER_SESSION)).status == "waiting"
    new = await session_home.say(OWNER_SESSION, Message("user", "good morning"))
    picture = media_key(OWNER_SESSION, "new", "image/png")
    await session_home.storage.put(picture, b"picture")
    (finished,) = await session_home.archivist.finish_prepared()
    assert finished.archive is not None
    assert finished.archive.session_id == session_id
    assert await session_home.archived(finished.archive) == before
    assert await session_home.history(new) == [Message("user", "good morning")]
    assert isinstance(await session_home.storage.get(picture), Ok)
    assert session_home.forgotten == session_home.ended == [OWNER_SESSION]
    await session_home.archivist.reset(OWNER_SESSION)
    assert session_home.forgotten == session_home.ended == [OWNER_SESSION] * 2


async def test_a_reset_finishes_what_had_been_left_first(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    session_home.model.plays(keeps(), keeps())
    broken = session_home.unreachable()
    await broken.compact(session_id, BUDGET)
    assert (await broken.reset(OWNER_SESSION)).status == "waiting"
    assert (await session_home.sessions.open(OWNER_SESSION)).id == session_id
    assert (await session_home.archivist.reset(OWNER_SESSION)).status == "done"
    whole, part = await session_home.archives(OWNER_SESSION)
    assert (whole.part, part.part) == (None, 1)
    assert whole.message_count + part.message_count == 8 + 1  # the summary of the part is in the whole
    assert await session_home.archives(THREAD) == []


async def test_a_damaged_archive_is_told_as_such(session_home: SessionHome) -> None:
    await session_home.talk()
    session_home.model.plays(keeps())
    archive = (await session_home.archivist.reset(OWNER_SESSION)).archive
    assert archive is not None
    await session_home.storage.put(archive.key, gzip.compress(b"{}\n"))
    found = await read_archive(session_home.storage, archive)
    assert isinstance(found, Err)
    assert found.kind == "invalid"
    await session_home.storage.delete(archive.key)
    gone = await read_archive(session_home.storage, archive)
    assert isinstance(gone, Err)
    assert gone.kind == "not_found"

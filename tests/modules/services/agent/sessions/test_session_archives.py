"""Proves that archives come into being in three steps or none, whatever fails in between, and can be read again."""

from __future__ import annotations

import gzip
import json

from adapters.storage.keys import media_key
from common.result import Err, Ok
from modules.runtime.llm.messages import convert_messages
from modules.runtime.llm.types import Message
from modules.services.agent.session_keys import OWNER_SESSION
from tests.modules.services.agent.sessions.session_desk import BUDGET, SUMMARY, THREAD, Desk, keeps


async def test_what_the_store_cannot_take_waits_and_nothing_is_listed_or_lost(desk: Desk) -> None:
    session_id = await desk.talk()
    before = await desk.history(session_id)
    desk.model.plays(keeps(facts=["Roof: Kit has leaking tiles"]))
    broken = desk.unreachable()
    assert (await broken.compact(session_id, BUDGET)).status == "waiting"
    assert await desk.history(session_id) == before
    assert await desk.memories.count() == 0
    assert await desk.archives.listed() == []
    assert [outcome.status for outcome in await broken.finish_prepared()] == ["waiting"]
    assert (await broken.compact(session_id, BUDGET)).reason == "an earlier part waits for the store"
    assert len(desk.model.requests) == 1
    (finished,) = await desk.archivist.finish_prepared()
    assert finished.status == "done"
    assert SUMMARY in str((await desk.history(session_id))[0].content)
    assert await desk.memories.count() == 1
    assert await desk.archived(finished.archive) == before[: len(await desk.archived(finished.archive))]
    assert await desk.archivist.finish_prepared() == []


async def test_what_is_said_while_the_store_is_away_stays_after_the_summary(desk: Desk) -> None:
    session_id = await desk.talk()
    desk.model.plays(keeps())
    await desk.unreachable().compact(session_id, BUDGET)
    await desk.say(OWNER_SESSION, Message("user", "are you still there?"))
    await desk.archivist.finish_prepared()
    history = await desk.history(session_id)
    assert SUMMARY in str(history[0].content)
    assert history[-1] == Message("user", "are you still there?")


async def test_a_conversation_that_ended_without_the_store_stays_ended_and_is_archived_later(desk: Desk) -> None:
    session_id = await desk.talk()
    before = await desk.history(session_id)
    desk.model.plays(keeps())
    assert (await desk.unreachable().reset(OWNER_SESSION)).status == "waiting"
    new = await desk.say(OWNER_SESSION, Message("user", "good morning"))
    picture = media_key(OWNER_SESSION, "new", "image/png")
    await desk.storage.put(picture, b"picture")
    (finished,) = await desk.archivist.finish_prepared()
    assert finished.archive is not None
    assert finished.archive.session_id == session_id
    assert await desk.archived(finished.archive) == before
    assert await desk.history(new) == [Message("user", "good morning")]
    assert isinstance(await desk.storage.get(picture), Ok)
    assert desk.forgotten == desk.ended == [OWNER_SESSION]
    await desk.archivist.reset(OWNER_SESSION)
    assert desk.forgotten == desk.ended == [OWNER_SESSION] * 2


async def test_a_reset_finishes_what_had_been_left_first(desk: Desk) -> None:
    session_id = await desk.talk()
    desk.model.plays(keeps(), keeps())
    broken = desk.unreachable()
    await broken.compact(session_id, BUDGET)
    assert (await broken.reset(OWNER_SESSION)).status == "waiting"
    assert (await desk.sessions.open(OWNER_SESSION)).id == session_id
    assert (await desk.archivist.reset(OWNER_SESSION)).status == "done"
    whole, part = await desk.archives.listed(OWNER_SESSION)
    assert (whole.part, part.part) == (None, 1)
    assert whole.message_count + part.message_count == 8 + 1  # the summary of the part is in the whole
    assert await desk.archives.listed(THREAD) == []


async def test_memories_that_lie_elsewhere_are_kept_once_however_often_it_is_tried(desk: Desk) -> None:
    elsewhere = desk.archivist_with(desk.storage, one_transaction=False)
    await desk.talk()
    desk.model.plays(keeps(facts=["Roof: Kit has leaking tiles"], events=["Kit: asked about the roof"]))
    await desk.unreachable().reset(OWNER_SESSION)
    (waiting,) = await desk.table("SELECT distilled FROM archives")
    assert len(json.loads(waiting["distilled"])["memories"]) == 2
    (prepared,) = await elsewhere.finish_prepared()
    assert prepared.archive is not None
    await desk.database.run(lambda rows: rows.execute("UPDATE archives SET state = 'prepared'") and None)
    await elsewhere.finish_prepared()
    assert await desk.memories.count() == 2


async def test_a_damaged_archive_is_told_as_such(desk: Desk) -> None:
    await desk.talk()
    desk.model.plays(keeps())
    archive = (await desk.archivist.reset(OWNER_SESSION)).archive
    assert archive is not None
    await desk.storage.put(archive.key, gzip.compress(b"{}\n"))
    found = await desk.archives.read(archive)
    assert isinstance(found, Err)
    assert found.kind == "invalid"
    await desk.storage.delete(archive.key)
    gone = await desk.archives.read(archive)
    assert isinstance(gone, Err)
    assert gone.kind == "not_found"


async def test_an_archive_is_the_conversation_as_a_model_saw_it(desk: Desk) -> None:
    session_id = await desk.talk()
    before = convert_messages(await desk.history(session_id))
    desk.model.plays(keeps())
    archive = (await desk.archivist.reset(OWNER_SESSION)).archive
    assert convert_messages(await desk.archived(archive)) == before

"""Proves when conversations end by themselves, and what the owner is told of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from common.provenance import Provenance
from common.session_keys import OWNER_SESSION
from modules.runtime.llm.dialect import Message
from modules.services.sessions.archivist import SessionTidyLoop
from tests.modules.runtime.llm.scripted_model import refuses
from tests.modules.services.sessions.session_home import THREAD, SessionHome, keeps

ENDED = {"bluesky:thread:at://did:plc:kit/app.bsky.feed.post/over"}


async def test_a_thread_that_is_over_becomes_memory_after_half_an_hour_and_not_after_a_day(
    session_home: SessionHome,
) -> None:
    loop = SessionTidyLoop(session_home.sessions, session_home.archivist, session_home.clock, ENDED.__contains__)
    (over,) = ENDED
    for key in (over, THREAD):
        await session_home.say(key, Message("user", "hello"), provenance=Provenance.STRANGER)
    await session_home.clock.advance(1800)
    assert (await loop.run()).ran
    assert [archive.session_key for archive in await session_home.archives()] == [over]


async def test_half_an_hour_of_silence_ends_a_talk_with_the_owner_and_a_day_any_other(
    session_home: SessionHome,
) -> None:
    loop = SessionTidyLoop(session_home.sessions, session_home.archivist, session_home.clock, ENDED.__contains__)
    await session_home.say(THREAD, Message("user", "hello"), provenance=Provenance.STRANGER)
    await session_home.say(OWNER_SESSION, Message("user", "hello"))
    assert not (await loop.run()).ran
    await session_home.clock.advance(1800)
    assert (await loop.run()).reason == "1 conversations ended, 0 finished, 0 wait for the store"
    assert [archive.session_key for archive in await session_home.archives()] == [OWNER_SESSION]
    await session_home.clock.advance(24 * 3600)
    assert (await loop.run()).ran
    assert [archive.session_key for archive in await session_home.archives()] == [THREAD, OWNER_SESSION]


async def test_what_cannot_be_distilled_keeps_nobody_waiting_and_a_dead_service_is_let_be(
    session_home: SessionHome,
) -> None:
    loop = SessionTidyLoop(session_home.sessions, session_home.archivist, session_home.clock, ENDED.__contains__)
    for name in ("a", "b", "c", "d"):
        await session_home.talk(f"owner:{name}")
    await session_home.clock.advance(3600)
    session_home.model.plays(refuses(503))
    assert not (await loop.run()).ran
    assert len(session_home.model.requests) == 1
    session_home.model.plays(refuses(400, "content filter"), *[keeps()] * 3)
    assert (await loop.run()).reason.startswith("4 conversations ended")
    assert await session_home.sessions.idle(session_home.clock.now()) == []


@pytest.mark.parametrize("looks_in_vain", [1, 4])
async def test_a_conversation_that_is_put_off_each_time_keeps_no_other_from_its_end(
    session_home: SessionHome, looks_in_vain: int
) -> None:
    loop = SessionTidyLoop(session_home.sessions, session_home.archivist, session_home.clock, ENDED.__contains__)
    for name in ("a", "b", "c"):
        await session_home.talk(f"owner:{name}")
    await session_home.clock.advance(3600)
    for _ in range(looks_in_vain):
        session_home.model.plays(refuses(503))
        assert not (await loop.run()).ran
        await session_home.clock.advance(300)
    session_home.model.plays(keeps(), keeps(), refuses(503))
    assert (await loop.run()).ran
    assert [one.key for one in await session_home.sessions.idle(session_home.clock.now())] == ["owner:a"]


async def test_someone_who_spoke_in_time_is_not_cut_off(session_home: SessionHome) -> None:
    session_id = await session_home.talk()
    outcome = await session_home.archivist.reset(
        OWNER_SESSION, quiet_since=session_home.clock.now() - timedelta(minutes=5)
    )
    assert outcome.status == "postponed"
    assert (await session_home.sessions.open(OWNER_SESSION)).id == session_id

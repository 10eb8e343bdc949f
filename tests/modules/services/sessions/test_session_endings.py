"""Proves that what was only for one conversation is cleared away after it, once, whatever fails in between."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from common.errors import PolicyBlocked
from common.session_keys import OWNER_SESSION
from modules.runtime.home import Home
from modules.runtime.llm.dialect import Message
from modules.services.owner_files import LocalOwnerFiles, StoredOwnerFiles
from modules.services.sessions import endings
from soul.composition.wiring.turns import forget_notes
from tests.modules.services.sessions.session_home import THREAD, SessionHome, keeps


async def left(session_home: SessionHome) -> list[tuple[str, str]]:
    return list(await session_home.database.run(endings.due))


class Trouble:
    """A listener that meets one trouble after the other, and then hears."""

    def __init__(self, *troubles: Exception) -> None:
        self._troubles: Iterator[Exception] = iter(troubles)
        self.received: list[str] = []

    async def __call__(self, session_key: str) -> None:
        if trouble := next(self._troubles, None):
            raise trouble
        self.received.append(session_key)


async def test_who_waits_for_the_end_hears_of_it_whether_anything_was_said_or_not(session_home: SessionHome) -> None:
    await session_home.archivist.reset(OWNER_SESSION)
    assert session_home.ended == []
    await session_home.sessions.open(OWNER_SESSION)
    await session_home.archivist.reset(OWNER_SESSION)
    assert session_home.ended == [OWNER_SESSION]
    await session_home.talk(THREAD)
    session_home.model.plays(keeps())
    session_id = (await session_home.sessions.open(THREAD)).id
    await session_home.archivist.compact(session_id, 100)
    assert session_home.ended == [OWNER_SESSION]
    await session_home.archivist.reset(THREAD)
    assert session_home.ended == [OWNER_SESSION, THREAD]
    await session_home.archivist.finish_prepared()
    assert (session_home.ended, await left(session_home)) == ([OWNER_SESSION, THREAD], [])


@pytest.mark.parametrize("trouble", [PolicyBlocked("it is no text")])
async def test_what_cannot_be_cleared_away_is_told_once_and_done_later(
    session_home: SessionHome, trouble: Exception
) -> None:
    listener = Trouble(trouble, trouble)
    archivist = session_home.archivist_with(session_home.storage, on_end=listener)
    await session_home.say(OWNER_SESSION, Message("user", "hello"))
    assert (await archivist.reset(OWNER_SESSION)).status == "done"
    await archivist.finish_prepared()
    assert (listener.received, await left(session_home)) == ([], [("notes", OWNER_SESSION)])
    await archivist.finish_prepared()
    await archivist.finish_prepared()
    assert (listener.received, await left(session_home)) == ([OWNER_SESSION], [])
    assert session_home.forgotten == [OWNER_SESSION]
    told = await session_home.table("SELECT summary, reason FROM journal WHERE line = 'warn'")
    assert told == [{"summary": "What belonged to owner:terminal cannot be cleared away yet", "reason": str(trouble)}]


async def test_a_death_right_after_the_end_only_puts_it_off(session_home: SessionHome) -> None:
    archivist = session_home.archivist_with(session_home.storage, on_end=Trouble(RuntimeError("killed")))
    await session_home.say(OWNER_SESSION, Message("user", "hello"))
    with pytest.raises(RuntimeError, match="killed"):
        await archivist.reset(OWNER_SESSION)
    (finished,) = await session_home.archivist.finish_prepared()
    assert (finished.status, session_home.ended, await left(session_home)) == ("done", [OWNER_SESSION], [])


async def test_what_is_said_at_the_last_moment_keeps_a_silent_conversation_going(session_home: SessionHome) -> None:
    session = await session_home.sessions.open(OWNER_SESSION)
    await session_home.say(OWNER_SESSION, Message("user", "wait!"))
    now = session_home.clock.now()
    assert not await session_home.database.run(lambda connection: endings.end_silent(connection, session, now))
    assert (await session_home.sessions.open(OWNER_SESSION)).id == session.id


@pytest.mark.parametrize("place", ["home", "store"])
async def test_the_notes_of_a_conversation_with_the_owner_are_emptied_and_no_others(
    session_home: SessionHome, place: str
) -> None:
    warnings: list[str] = []
    owner_files = (
        LocalOwnerFiles(Home.at(session_home.folder), warnings.append)
        if place == "home"
        else StoredOwnerFiles(session_home.storage, "rowan", warnings.append)
    )
    await forget_notes(owner_files, OWNER_SESSION)
    assert await owner_files.names() == ()
    await owner_files.write("CONTEXT.md", "We speak of tiles.")
    await owner_files.write("GOALS.md", "Mend the roof.")
    await forget_notes(owner_files, THREAD)
    assert await owner_files.read("CONTEXT.md") == "We speak of tiles."
    await forget_notes(owner_files, OWNER_SESSION)
    assert (await owner_files.read("CONTEXT.md"), await owner_files.read("GOALS.md")) == (None, "Mend the roof.")
    assert warnings == []

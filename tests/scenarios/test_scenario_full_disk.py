"""Proves that a full disk fails the turn that meets it, and that the life goes on once there is room."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress

import pytest

from common.errors import DiskFull
from modules.runtime.database.database import Database
from modules.runtime.journal.types import Entry
from modules.services.owner.talk import OwnerAnswers
from tests.patience import until
from tests.running_town import RunningSoul, RunningTown, awake, replying

SAID = "Tin, and you hear each drop of it."


async def fill(life: RunningSoul) -> None:
    """Leave no room in the database, as if the disk below it were full."""
    await life.app.services.database.run(_no_more_pages)
    for size in (4000, 400, 40, 0):
        with suppress(DiskFull):
            while True:
                await life.app.services.journal.record(Entry("life", "ballast", "x" * size, line=None))


def _no_more_pages(connection: sqlite3.Connection) -> None:
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()


async def free(database: Database) -> None:
    await database.run(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchone())


def told(life: RunningSoul, words: str) -> list[str]:
    return [message for _, message, _ in life.console.lines if words in message]


async def test_a_full_disk_fails_the_look_and_the_mention_is_answered_once_there_is_room(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = replying(SAID)
    async with awake(running_town.make_home("rowan")) as life:
        scheduler = life.app.scheduler
        running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder in the rain?")
        await fill(life)
        doomed = asyncio.create_task(scheduler.doomed())
        for _ in range(3):
            outcome = await scheduler.run_guarded("awareness")
            assert not outcome.ran
        assert len(told(life, "awareness: Disk full")) == 1
        assert not doomed.done()
        assert running_town.texts("rowan") == []
        await free(life.app.services.database)
        await life.look()
        assert len(told(life, "awareness: works again")) == 1
        assert running_town.texts("rowan") == [SAID]
        doomed.cancel()


async def test_what_the_owner_said_is_answered_once_there_is_room(running_town: RunningTown) -> None:
    running_town.mind.answer = replying(SAID)
    answers: list[str] = []
    async with awake(running_town.make_home("rowan")) as life:
        app = life.app
        talk = OwnerAnswers(
            app.owner, console=life.console, say=answers.append, clock=app.services.clock, timezone="UTC"
        )
        await talk.receive("tin or slate?")
        await fill(life)
        with pytest.raises(DiskFull):
            await talk.receive("and " + "moss " * 2000)
        answering = asyncio.create_task(talk.run(greet=False))
        await until(lambda: told(life, "This machine allows no answer now"))
        assert not answering.done()
        await free(app.services.database)

        def is_answered() -> bool:
            life.passes(60)
            return bool(answers)

        await until(is_answered)
        answering.cancel()
    assert answers == [SAID]

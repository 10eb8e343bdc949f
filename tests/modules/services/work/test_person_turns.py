"""How many turns one account may have: in an hour and in a day, counted over restarts."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.person import Person, Trace
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.functions import know_person
from modules.runtime.journal.people import JOURNAL_OF_PEOPLE
from modules.runtime.journal.rows import Journal
from modules.services.work.limits import PersonTurns, limits_of
from tests.fresh_database import open_database
from tests.modules.lives.bluesky.bluesky_values import START, actor

ADA = actor("ada")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = await open_database(tmp_path / "soul.db")
    yield database
    await database.close()


@pytest.fixture
def journal(database: Database) -> Journal:
    return Journal(database, SilentConsole(), FakeClock(START), Redactor(()))


async def test_one_account_has_so_many_turns_in_an_hour_and_sixty_in_a_day(journal: Journal) -> None:
    clock, limits, in_an_hour = FakeClock(START), limits_of("stranger"), 8
    turns = PersonTurns(clock, journal=journal, loop="awareness")
    had, hours = 0, 0
    while had < 60:
        while (wait := turns.wait(ADA.did, limits)) is None:
            await turns.begin_turn(ADA)
            had += 1
        assert wait[0] == (limits[1] if had == 60 else limits[0])
        assert had == min(60, in_an_hour * (hours + 1))
        await clock.advance(3600)
        hours += 1
    assert had == 60
    assert turns.wait("did:plc:bob", limits) is None
    wait = turns.wait(ADA.did, limits)
    assert wait is not None
    assert wait[1] == 86_400 - hours * 3600
    await clock.advance(wait[1])
    assert turns.wait(ADA.did, limits) is None


async def test_who_is_forgotten_and_comes_back_has_no_fresh_turns(journal: Journal, database: Database) -> None:
    before, after = (PersonTurns(FakeClock(START), journal=journal, loop="awareness") for _ in range(2))
    for _ in range(6):
        assert await before.take(ADA, limits_of("stranger")) is None
    person = Person(ADA.did, (ADA.handle,))

    def forget(connection: sqlite3.Connection) -> None:
        know_person(connection, person)
        JOURNAL_OF_PEOPLE.forget(connection, Trace(person))
        assert not [row for row in connection.execute("SELECT * FROM journal") if "ada" in str(tuple(row))]

    await database.run(forget)
    assert [await after.take(ADA, limits_of("stranger")) is None for _ in range(3)] == [True, True, False]
    assert await after.take(actor("bob"), limits_of("stranger")) is None

"""How many turns one account may have: in an hour and in a day, counted over restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.journal.journal import Journal
from modules.services.outbox.rules.rules import TURNS_OF_STRANGERS
from modules.services.outbox.rules.types import EtiquetteRule
from modules.services.work.turns import PersonTurns
from tests.fresh_database import open_database
from tests.modules.lives.bluesky.bluesky_values import START, actor

ADA = actor("ada")


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    database = await open_database(tmp_path / "soul.db")
    yield Journal(database, SilentConsole(), FakeClock(START), Redactor(()))
    await database.close()


@pytest.mark.parametrize(("rules", "in_an_hour"), [(TURNS_OF_STRANGERS, 8)])
async def test_one_account_has_so_many_turns_in_an_hour_and_sixty_in_a_day(
    journal: Journal, rules: tuple[EtiquetteRule, ...], in_an_hour: int
) -> None:
    clock = FakeClock(START)
    turns = PersonTurns(clock, journal=journal, loop="awareness")
    had, hours = 0, 0
    while had < 60:
        while (wait := turns.wait(ADA.did, rules)) is None:
            await turns.begin_turn(ADA)
            had += 1
        assert wait[0] == (rules[1] if had == 60 else rules[0])
        assert had == min(60, in_an_hour * (hours + 1))
        await clock.advance(3600)
        hours += 1
    assert had == 60
    assert turns.wait("did:plc:bob", rules) is None
    wait = turns.wait(ADA.did, rules)
    assert wait is not None
    assert wait[1] == 86_400 - hours * 3600
    await clock.advance(wait[1])
    assert turns.wait(ADA.did, rules) is None

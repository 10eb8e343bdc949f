"""The doctor's question to the model is one more call of the day: counted, and not asked past the limit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace

import pytest

from common.clock import SystemClock, iso
from modules.runtime.budget.policy import day_of
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from soul.commands.doctor import examine
from soul.commands.findings import Finding
from tests.modules.runtime.llm.scripted_model import says, serving
from tests.running_town import RunningTown

CAP = 100_000


async def about_the_model(home: Home) -> Finding:
    (finding,) = [item for item in await examine(home.root, measure=True) if item.check == "model"]
    return finding


async def calls(home: Home) -> list[tuple[str, str, str]]:
    database = await Database.beside(home.database)
    rows = await database.run(
        lambda connection: connection.execute(
            "SELECT purpose, importance, state FROM model_calls WHERE purpose != 'earlier'"
        ).fetchall()
    )
    await database.close()
    return [tuple(row) for row in rows]


async def make_database(home: Home, *, spent: int = 0) -> None:
    """A database as an earlier life leaves it, with `spent` tokens of today used."""
    home.memory.mkdir(mode=0o700, exist_ok=True)
    now = SystemClock().now()

    def spend(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO model_calls (id, day, at, purpose, importance, model, state, input_tokens, output_tokens,"
            " cost_micro_usd) VALUES ('1', ?, ?, 'earlier', 'owner', 'test-mind', 'settled', ?, 0, 0)",
            (day_of(now, ""), iso(now), spent),
        )

    database = await Database.open(home.database, MIGRATIONS)
    await database.run(spend)
    await database.close()


async def test_its_question_is_counted_in_the_ledger_of_the_day(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY=str(CAP))
    await make_database(home)
    assert (await about_the_model(home)).level == "ok"
    assert await calls(home) == [("doctor", "owner", "settled")] * 2


async def test_when_the_day_is_used_up_it_asks_nothing_and_says_so(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY=str(CAP))
    await make_database(home, spent=CAP - 1)
    finding = await about_the_model(home)
    assert (finding.level, running_town.mind.asked, await calls(home)) == ("warn", [], [])
    assert "not asked: The day's budget does not allow it" in finding.message
    assert "BUDGET_TOKENS_PER_DAY" in finding.remedy


async def test_without_a_budget_it_asks_nothing(running_town: RunningTown) -> None:
    finding = await about_the_model(running_town.make_home("rowan", BUDGET_TOKENS_PER_DAY="0"))
    assert (finding.level, running_town.mind.asked) == ("warn", [])


async def test_before_the_first_life_it_asks_and_makes_no_database(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    assert (await about_the_model(home)).level == "ok"
    assert len(running_town.mind.asked) == 2
    assert not home.database.exists()


def _of_an_older_version(home: Home) -> None:
    sqlite3.connect(home.database).close()


def _damaged(home: Home) -> None:
    home.database.write_bytes(b"no database at all, but long enough to be read as the head of one" * 100)


@pytest.mark.parametrize("spoil", [_of_an_older_version, _damaged])
async def test_what_cannot_be_counted_is_not_asked(running_town: RunningTown, spoil: Callable[[Home], None]) -> None:
    home = running_town.make_home("rowan")
    home.memory.mkdir(mode=0o700)
    spoil(home)
    finding = await about_the_model(home)
    assert (finding.level, running_town.mind.asked) == ("fail", [])
    assert finding.remedy


async def test_a_model_without_a_known_price_is_not_asked_where_dollars_are_capped(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", BUDGET_USD_PER_DAY="1")
    await make_database(home)
    finding = await about_the_model(home)
    assert (finding.level, running_town.mind.asked) == ("fail", [])
    assert "MODEL_PRICES" in finding.remedy


@pytest.mark.parametrize(("kept", "level"), [(8_192, "warn"), (200_000, "ok")])
async def test_a_service_that_keeps_less_than_it_is_sent_is_found(
    running_town: RunningTown, kept: int, level: str
) -> None:
    whole = says("ready")
    usage = {"prompt_tokens": kept, "completion_tokens": 1}
    with serving() as model:
        home = running_town.make_home("rowan", AI_GATEWAY_BASE_URL=model.url)
        model.plays(whole, replace(whole, chunks=(*whole.chunks[:-1], {"choices": [], "usage": usage})))
        (found,) = [item for item in await examine(home.root, measure=True) if item.check == "context"]
    assert found.level == level
    assert (f"CONTEXT_TOKENS={kept}" in found.remedy) is (level == "warn")
    assert len(json.dumps(model.requests[1])) > 4 * 8_192

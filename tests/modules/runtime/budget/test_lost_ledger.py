"""A database that is lost does not take the day's spending with it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from common.clock import FakeClock, iso
from modules.runtime.budget import ledger
from modules.runtime.budget.lost_ledger import count_again
from modules.runtime.budget.policy import day_of
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.runtime.llm.build import UsageLog
from modules.runtime.llm.types import ChatResult, Usage


async def reopened(home: Home, clock: FakeClock) -> tuple[int, int, str]:
    """Tokens and millionths of a dollar that count today, and what was told, twice over: once must be enough."""
    told = ""
    for _ in range(2):
        database = await Database.open(home.database, MIGRATIONS, signs=home.signs_of_life())
        told = told or await count_again(database, home, clock, model="m", timezone="UTC")
        spent = await database.run(lambda rows: ledger.spent(rows, day_of(clock.now(), "UTC")))
        await database.close()
    return spent.tokens, spent.micro_usd, told


def write_status(home: Home, clock: FakeClock, used: object, waiting: object = 3) -> None:
    status = {"updatedAt": iso(clock.now()), "modelBudget": {"tokens": {"used": used}}, "pendingIntents": waiting}
    home.status.write_text(json.dumps(status))


async def test_what_was_used_today_is_counted_again(tmp_path: Path) -> None:
    home, clock = Home.at(tmp_path), FakeClock()
    home.memory.mkdir()
    log = UsageLog(home.usage_log, clock)
    log.note(ChatResult(text="", model="m", usage=Usage(900, 100, cost_usd=0.25)), "reply")
    with home.usage_log.open("a") as file:
        file.write("[" * 20_000 + "\n{torn\n" + json.dumps({"ts": iso(clock.now()), "input": "x", "output": -5}) + "\n")
    write_status(home, clock, 1500.0)
    tokens, micro_usd, told = await reopened(home, clock)
    assert (tokens, micro_usd) == (1500, 250_000)
    assert told == (
        "Not brought back with soul.db: the journal, open talks and the outbox, among it 3 acts that had not left;"
        " 1,500 tokens used today are counted again"
    )


async def test_what_was_used_yesterday_is_not_todays(tmp_path: Path) -> None:
    home, clock = Home.at(tmp_path), FakeClock()
    home.memory.mkdir()
    UsageLog(home.usage_log, clock).note(ChatResult(text="", model="m", usage=Usage(900, 100)), "reply")
    write_status(home, clock, 1500)
    await clock.advance(86_400)
    tokens, _, told = await reopened(home, clock)
    assert (tokens, told.endswith("today's use of the model, too")) == (0, True)


@pytest.mark.parametrize("status", ["", "{", "[1]", "[" * 20_000, "\ud800", '{"modelBudget": 3}', '{"updatedAt": 7}'])
async def test_a_status_file_that_says_nothing_stops_nothing(tmp_path: Path, status: str) -> None:
    home = Home.at(tmp_path)
    home.memory.mkdir()
    home.status.write_bytes(status.encode("utf-8", "surrogatepass"))
    tokens, _, told = await reopened(home, FakeClock())
    assert (tokens, bool(told)) == (0, True)


async def test_a_home_that_has_never_lived_has_lost_nothing(tmp_path: Path) -> None:
    assert await reopened(Home.at(tmp_path), FakeClock()) == (0, 0, "")


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
import modules.runtime.database.schema
from modules.runtime.database.database import Database
from modules.runtime.home import Home
home = Home.at(Path(sys.argv[1]))
steps = [*modules.runtime.database.schema.MIGRATIONS[: int(sys.argv[2])], "SELECT kill_here()"]
import modules.runtime.database.database
add = modules.runtime.database.database.add_functions
def also(connection):
    add(connection)
    connection.create_function("kill_here", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
modules.runtime.database.database.add_functions = also
asyncio.run(Database.open(home.database, steps, signs=home.signs_of_life()))
"""


@pytest.mark.parametrize("steps", [0, 1, 5])
async def test_a_kill_before_the_database_has_its_shape_costs_neither_the_count_nor_the_line(
    tmp_path: Path, steps: int
) -> None:
    home, clock = Home.at(tmp_path), FakeClock()
    home.memory.mkdir()
    write_status(home, clock, 1500)
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED, str(tmp_path), str(steps))
    assert await killed.wait() == -signal.SIGKILL
    tokens, _, told = await reopened(home, clock)
    assert tokens == 1500
    assert "among it 3 acts that had not left; 1,500 tokens used today are counted again" in told

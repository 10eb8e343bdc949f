"""Proves that a life goes on, and ends as asked, while another program holds its database for too long."""

from __future__ import annotations

import asyncio
import random
import sqlite3

from modules.runtime.console import SilentConsole
from modules.runtime.stages import Stage
from soul.app import open_soul
from tests.hasty_clock import HastyClock
from tests.loopback import held_port
from tests.patience import until
from tests.running_town import HASTE_STEP_BY_STEP, RunningTown, settings_of


async def test_a_database_that_another_program_holds_ends_no_life(running_town: RunningTown) -> None:
    console, ended = SilentConsole(), asyncio.Event()
    with held_port() as port:
        home = running_town.make_home("rowan", SPACE_URL=f"ws://127.0.0.1:{port}")
        async with open_soul(
            settings_of(home), home, console=console, clock=HastyClock(HASTE_STEP_BY_STEP), rng=random.Random(1)
        ) as app:
            await app.log_in()
            database = app.services.database
            await database.run(lambda connection: connection.execute("PRAGMA busy_timeout = 50").fetchone())
            other = sqlite3.connect(home.database, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            app.stages.reach(Stage.CHECKED)
            life = asyncio.create_task(app.run(ended))
            await until(lambda: life.done() or any("[space]" in message for _, message, _ in console.lines))
            await until(lambda: life.done() or any(loop.last_ran_at for loop in app.scheduler.states()))
            assert not life.done()
            other.execute("ROLLBACK")
            await until(lambda: life.done() or app.stages.has_reached(Stage.SETTLED))
            assert not life.done()
            other.execute("BEGIN IMMEDIATE")
            ended.set()
            await life
            other.close()

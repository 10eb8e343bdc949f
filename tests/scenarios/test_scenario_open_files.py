"""Proves that a machine without a free descriptor ends no life, loses no file, and is told of once."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.atproto.session import SessionFile
from common.errors import IdentityError, MachineTrouble
from common.state import load_state, save_state
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.home import SoulDocument
from tests.running_town import RunningTown, awake
from tests.scenarios.test_scenario_full_disk import told


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Let this process open nothing more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
    held: list[int] = []
    try:
        while True:
            try:
                held.append(os.dup(1))
            except OSError:
                break
        yield
    finally:
        for handle in held:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_life_that_can_open_nothing_waits_tells_and_goes_on(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        app = life.app
        doomed = asyncio.create_task(app.scheduler.doomed())
        with no_descriptor_left():
            for name in ("identity-watch", "heartbeat", "identity-watch"):
                await app.scheduler.run_guarded(name)
            with pytest.raises(MachineTrouble):
                await app.services.database.read(lambda connection: connection.execute("SELECT 1"))
            assert not doomed.done()
        assert len(told(life, "identity-watch: This machine cannot use")) == 1
        assert (await app.scheduler.run_guarded("identity-watch")).ran
        assert (await app.scheduler.run_guarded("heartbeat")).ran
        assert len(told(life, "identity-watch: works again")) == 1
        doomed.cancel()


async def test_no_file_is_taken_for_missing_or_damaged(tmp_path: Path) -> None:
    state, session, soul = tmp_path / "state.json", tmp_path / "session.json", tmp_path / "SOUL.md"
    save_state(state, {"kept": 1})
    session.write_text("{}")
    database = await Database.open(tmp_path / "soul.db", {1: "CREATE TABLE kept (x)"})
    await database.close()
    before = names(tmp_path)
    with no_descriptor_left():
        with pytest.raises(MachineTrouble):
            load_state(state, {})
        with pytest.raises(MachineTrouble):
            SessionFile(session, service_url="", identifier="").load()
        with pytest.raises(MachineTrouble):
            SoulDocument(soul)
        with pytest.raises(MachineTrouble):
            await Database.open(tmp_path / "soul.db", {1: "CREATE TABLE kept (x)"}, signs=("status.json",))
        assert "cannot be read now (Too many open files)" in str(Control(tmp_path).standing())
    assert names(tmp_path) == before
    assert load_state(state, {}).data == {"kept": 1}
    with pytest.raises(IdentityError):
        SoulDocument(soul)

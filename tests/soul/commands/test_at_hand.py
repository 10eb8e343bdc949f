"""A command that stops something or looks needs only the folder, whatever mistake `.env` holds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import ConfigError
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from soul.commands.budget import run_budget
from soul.commands.drafts import run_drafts
from soul.commands.memory import run_memory_list
from soul.commands.mute import run_mute
from soul.commands.pause import run_pause, run_resume
from soul.commands.people import run_know
from soul.commands.self_ import run_self_log
from soul.commands.status import run_status
from soul.commands.talks import run_talks
from tests.running_town import write_home

_COMMANDS: dict[str, Callable[[Path], object]] = {
    "pause": lambda root: run_pause(root, ["enough"], as_json=True),
    "resume": lambda root: run_resume(root, as_json=True),
    "drafts": lambda root: run_drafts(root, as_json=True),
    "mute": lambda root: run_mute(root, "did:plc:kit", off=False, as_json=True),
    "know": lambda root: run_know(root, "did:plc:kit", as_json=True),
    "talks": lambda root: run_talks(root, as_json=True),
    "budget": lambda root: run_budget(root, as_json=True),
    "self log": lambda root: run_self_log(root, as_json=True),
    "memory list": lambda root: run_memory_list(root, as_json=True),
    "status": lambda root: run_status(root, as_json=True),
}
_MISTAKES = {
    "a value": b"BUDGET_USD_PER_DAY=$2.50\n",
    "a line": b"BUDGET_USD_PER_DAY: 2.50\n",
    "bytes": b"OPERATOR_CONTACT=Andr\xe9\n",
    "a zone": b"SOUL_TIMEZONE=Here\n",
}


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    home = write_home(tmp_path / "rowan", "rowan", OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:owner")
    home.memory.mkdir()
    await (await Database.open(home.database, MIGRATIONS)).close()
    return home


@pytest.mark.parametrize("mistake", _MISTAKES)
async def test_a_mistake_in_the_settings_keeps_no_such_command(
    home: Home, mistake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    home.env.write_bytes(home.env.read_bytes() + b"\n" + _MISTAKES[mistake])
    for name, run in _COMMANDS.items():
        await _in_thread(run, home.root)
        said = capsys.readouterr()
        json.loads(said.out)
        assert ("Settings:" in said.err) is (name != "status"), name


async def test_without_any_settings_it_is_paused_all_the_same(home: Home) -> None:
    home.env.unlink()
    run_pause(home.root, ["enough"])
    assert Control(home.memory).pause_reason() == "enough"


def test_where_nobody_lives_nothing_is_paused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no SOUL here"):
        run_pause(tmp_path)
    assert not (tmp_path / ".memory").exists()


def test_on_a_disk_that_is_not_there_nothing_is_paused(tmp_path: Path) -> None:
    home = write_home(tmp_path / "rowan", "rowan", MEMORY_DIR=str(tmp_path / "disk" / "rowan"))
    with pytest.raises(ConfigError, match="MEMORY_DIR"):
        run_pause(home.root)
    assert not (tmp_path / "disk").exists()


async def _in_thread(run: Callable[[Path], object], root: Path) -> None:
    await asyncio.to_thread(run, root)

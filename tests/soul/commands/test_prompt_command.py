"""Proves what the owner sees of a prompt without any network, and that looking changes nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from common.clock import SystemClock
from common.errors import ConfigError, IdentityError
from common.files import write_atomic
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.services.agent.prompt.fitting import Audience
from modules.services.memory.admission import NewMemory
from modules.services.memory.rows import MemoryStore
from soul.commands.options import PromptAudience
from soul.commands.prompt import run_prompt
from tests.known_profiles import set_profiles
from tests.running_town import write_home

DAY = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner", "SOUL_TIMEZONE": "UTC", "SOUL_SPEED": "1"}
GOALS = "Opening.\n" + "".join(f"\n## Goal {number}\n\n{'word ' * 400}\n" for number in range(8))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = write_home(tmp_path / "rowan", "rowan", **DAY)
    write_atomic(home.self_md, "# Rowan\n\nI'm Rowan.\n")
    write_atomic(home.workspace / "USER.md", "I am Ana, and I repair clocks.\n")
    return home


def remember(home: Home) -> None:
    async def live() -> None:
        clock = SystemClock()
        database = await Database.open(home.database, MIGRATIONS)
        await set_profiles(database, clock, {"role": "keeps time"}, {"name": "Ana"})
        store = MemoryStore(database)
        await store.save(NewMemory("fact", "moon", "The moon pulls the quay clock."), clock.now())
        await store.save(NewMemory("preference", "tea", "Ana takes tea at four."), clock.now())
        await database.close()

    asyncio.run(live())


def shown(home: Home, capsys: pytest.CaptureFixture[str], audience: Audience = "owner") -> dict[str, Any]:
    run_prompt(home.root, PromptAudience(audience), as_json=True, text=True)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def files(home: Home) -> set[Path]:
    return {path.relative_to(home.root) for path in home.root.rglob("*")}


@pytest.mark.parametrize("approval", ["drafts", "strangers", "off"])
def test_the_owners_prompt_tells_which_acts_wait_for_approval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], approval: str
) -> None:
    home = write_home(tmp_path / "rowan", "rowan", SOUL_APPROVAL=approval, **DAY)
    write_atomic(home.self_md, "# Rowan\n\nI'm Rowan.\n")
    assert f'Approval mode "{approval}"' in str(shown(home, capsys))


def test_each_part_is_a_line_with_its_group_and_size(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(home)
    run_prompt(home.root, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Prompt for owner: about ")
    assert lines[0].endswith(" of at most 40,000 tokens")
    told = ["the ground rules", "SOUL.md", "USER.md", "IDENTITY.md", "SELF.md"]
    assert [line.rpartition("characters  ")[2] for line in lines[1:6]] == told
    assert [line.split("  ")[1] for line in lines[1:6]] == ["fixed"] * 4 + ["stable"]
    assert any(line.endswith(" tokens remain for tools and conversation") for line in lines)
    assert files(home) == before


def test_what_the_database_knows_is_told_and_what_is_the_owners_only_to_the_owner(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    remember(home)
    before = files(home)
    mine = "".join(block["text"] for block in shown(home, capsys)["blocks"])
    theirs = "".join(block["text"] for block in shown(home, capsys, "bluesky")["blocks"])
    assert "keeps time" in mine
    assert "keeps time" in theirs
    for words in ("name: Ana", "tea at four", "I repair clocks", "The moon pulls"):
        assert words in mine
        assert words not in theirs
    assert files(home) == before


def test_what_was_cut_and_left_out_is_named_and_so_is_a_file_that_cannot_be_read(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    write_atomic(home.env, home.env.read_text() + "\nBOOTSTRAP_MAX_TOKENS=2500\n")
    write_atomic(home.workspace / "GOALS.md", GOALS)
    write_atomic(home.workspace / "HEARTBEAT.md", "- wind the clocks\n")
    write_atomic(home.workspace / "AGENTS.md", b"\xff\xfe")
    found = shown(home, capsys)
    assert (found["truncated"], found["dropped"]) == (["GOALS.md"], ["HEARTBEAT.md"])
    assert found["tokens"] <= found["budget"] == 2500
    assert any("AGENTS.md" in notice["summary"] for notice in found["notices"])
    run_prompt(home.root, as_json=False)
    said = capsys.readouterr().out
    assert "GOALS.md  (cut)" in said
    assert "left out: HEARTBEAT.md" in said


def test_without_a_home_or_a_soul_it_says_what_is_missing(home: Home, tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        run_prompt(tmp_path / "nobody", as_json=False)
    home.soul.unlink()
    with pytest.raises(IdentityError):
        run_prompt(home.root, as_json=False)

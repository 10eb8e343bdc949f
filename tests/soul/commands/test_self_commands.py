"""Proves what the owner sees of SELF.md's history, and what their decisions change."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from common.clock import FakeClock
from common.errors import NotWaiting
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.services.identity.keeper import SelfKeeper
from soul import cli
from soul.commands.drafts import run_drafts
from soul.commands.options import DraftAction
from soul.commands.self_ import run_self_diff, run_self_log, run_self_rollback
from soul.exit_codes import ExitCode
from tests.owner_lines import approve_shown
from tests.running_town import write_home

POST = "at://did:plc:kit/app.bsky.feed.post/3l"
BORN = "# Rowan\n\n## Voice\n\nPlain and warm, and never in a hurry.\n"
GROWN = BORN + "\n## Values\n\n- Slate.\n"
FIRST, SECOND = "20260105T120000000Z", "20260105T120000001Z"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    more = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner", "SOUL_TIMEZONE": "UTC", "SOUL_SPEED": "1"}
    home = write_home(tmp_path / "rowan", "rowan", **more)
    home.self_md.write_text(BORN)
    return home


def _by_soul(home: Home, use: Callable[[SelfKeeper], Awaitable[Any]]) -> None:
    """Run `use` as the living SOUL would."""

    async def live() -> None:
        database = await Database.open(home.database, MIGRATIONS)
        clock = FakeClock()
        journal = Journal(database, SilentConsole(), clock, Redactor())
        await use(SelfKeeper(home=home, clock=clock, journal=journal, redactor=Redactor()))
        await database.close()

    asyncio.run(live())


def _grow(home: Home) -> None:
    _by_soul(home, lambda keeper: keeper.change(GROWN, reason="kit spoke of roofs", by="soul", cites=[POST]))


def _give_up(home: Home) -> None:
    _by_soul(home, lambda keeper: keeper.change("# Rowan\n\nNothing.\n", reason="tired", by="soul", cites=[POST]))


def _summaries(home: Home) -> list[str]:
    with reading(home.database) as connection:
        return [row["summary"] for row in connection.execute("SELECT summary FROM journal ORDER BY id")]


def test_the_log_tells_who_changed_it_when_and_why_newest_first(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    _grow(home)
    run_self_log(home.root, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        f"* {SECOND}  2026-01-05 12:00  soul   kit spoke of roofs ({POST})",
        f"  {FIRST}  2026-01-05 12:00  hand   as it was found",
    ]
    run_self_log(home.root, as_json=True)
    newest, oldest = json.loads(capsys.readouterr().out)
    assert (newest["name"], newest["current"], newest["cites"]) == (SECOND, True, [POST])
    assert (oldest["name"], oldest["current"]) == (FIRST, False)


def test_the_diff_shows_the_last_change_or_all_since_a_version(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    _grow(home)
    run_self_diff(home.root)
    last = capsys.readouterr().out
    assert last.splitlines()[:2] == [f"--- {FIRST}", "+++ SELF.md"]
    assert "+- Slate." in last
    assert "\x1b" not in last
    run_self_diff(home.root, FIRST)
    assert capsys.readouterr().out == last
    run_self_diff(home.root, SECOND)
    assert capsys.readouterr().out == f"{SECOND} and SELF.md are the same\n"
    home.self_md.write_text(GROWN + "- By hand.\n")
    run_self_diff(home.root)
    assert "+- By hand." in capsys.readouterr().out


def test_rolling_back_makes_it_what_it_was_and_is_journalled(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    _grow(home)
    run_self_rollback(home.root, FIRST)
    assert home.self_md.read_text() == BORN
    assert f"SELF.md is back to {FIRST}" in capsys.readouterr().out
    assert _summaries(home)[-1] == "SELF.md changed"


def test_what_waits_is_shown_with_its_reasons_and_what_it_would_do(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    _give_up(home)
    run_drafts(home.root, DraftAction.SHOW, ["SELF.md"], as_json=False)
    shown = capsys.readouterr().out
    assert "because it loses" in shown
    assert f"tired ({POST})" in shown
    assert "-Plain and warm, and never in a hurry." in shown
    run_drafts(home.root, DraftAction.SHOW, ["SELF.md"], as_json=True)
    assert json.loads(capsys.readouterr().out)["content"] == "# Rowan\n\nNothing.\n"


def test_the_owners_yes_lets_it_happen_and_tells_what_was_lost(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    _give_up(home)
    approve_shown(home.root, "SELF.md")
    assert home.self_md.read_text() == "# Rowan\n\nNothing.\n"
    assert "Voice is gone" in capsys.readouterr().out


def test_the_owners_no_gives_it_up(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    _give_up(home)
    run_drafts(home.root, DraftAction.REJECT, ["SELF.md"], as_json=False)
    assert home.self_md.read_text() == BORN
    assert _summaries(home)[-1] == "The owner rejected a change of SELF.md"
    for action in (DraftAction.SHOW, DraftAction.APPROVE, DraftAction.REJECT):
        with pytest.raises(NotWaiting, match=r"No change of SELF\.md waits for you"):
            run_drafts(home.root, action, ["SELF.md"], as_json=False)


@pytest.mark.parametrize(("old", "new"), [("held", "show"), ("approve", "approve"), ("reject", "reject")])
def test_a_command_that_is_gone_names_the_one_that_does_it_now(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["self", old, "--file", "GOALS.md"]) == ExitCode.USAGE
    assert f"Use `soul drafts {new} FILE`" in capsys.readouterr().err

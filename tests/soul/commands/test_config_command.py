"""Proves that the owner reads and changes settings without opening `.env`, and writes nothing a start would refuse."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from common.env_file import given, with_values
from common.errors import ConfigError, SettingsError, UsageError
from common.settings import Settings
from soul.commands.config import (
    choices_of,
    explained_settings,
    run_config_check,
    run_config_edit,
    run_config_get,
    run_config_set,
)
from soul.commands.doctor import run_doctor
from soul.commands.run import run_life
from soul.commands.self_ import run_self_check
from soul.resources import template
from tests.running_town import RunningTown

ENV = """# mine
AGENT_NAME=rowan  # its name
OWNER_BLUESKY_SOCIAL_HANDLE=ada.test
OWNER_BLUESKY_SOCIAL_HANDLE_DID=did:plc:ada
AGENT_BLUESKY_USERNAME=rowan.test
export AGENT_BLUESKY_PASSWORD='pass # word'
AI_GATEWAY_API_KEY="key"
#BUDGET_USD_PER_DAY=
SPACE_URL=ws://127.0.0.1:7777?token=roomsecret
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".env").write_text(ENV)
    return tmp_path


def test_every_setting_is_shown_with_its_meaning_and_no_secret(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_config_get(home, "", as_json=True)
    told = capsys.readouterr().out
    assert not [secret for secret in ("pass # word", 'key"', "roomsecret") if secret in told]
    rows = json.loads(told)
    assert {row["name"] for row in rows} == {name.upper() for name in Settings.model_fields}
    assert [row["name"] for row in rows if not row["meaning"]] == []
    run_config_get(home, "budget_tokens_per_day", as_json=False)
    assert explained_settings(template(".env.example"))["BUDGET_TOKENS_PER_DAY"].default in capsys.readouterr().out


def test_a_set_value_changes_its_line_alone_and_only_the_owner_can_read_the_file(home: Path) -> None:
    run_config_set(home, "AGENT_NAME", "it's $HOME")
    run_config_set(home, "agent_bluesky_password", "new")
    run_config_set(home, "BUDGET_USD_PER_DAY", "2.5")
    run_config_set(home, "BUDGET_TOKENS_PER_DAY", "5000")
    changed = (
        ENV.replace("=rowan ", "='it\\'s $HOME' ")
        .replace("'pass # word'", "new")
        .replace("#BUDGET_USD_PER_DAY=", "BUDGET_USD_PER_DAY=2.5")
    )
    assert (home / ".env").read_text() == changed + "BUDGET_TOKENS_PER_DAY=5000\n"
    assert given(home).values["agent_name"] == "it's $HOME"
    assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POST_LANGUAGES", "a,b,c,d"),
        ("SOUL_SPEED", "5"),
        ("AGENT_NAME", ""),
        ("DASHBOARD_HOST", "0.0.0.0"),  # noqa: S104 - refused
        ("DASHBOARD_ORIGIN", "https://rowan.example.org"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_written(home: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        run_config_set(home, name, value)
    assert (home / ".env").read_text() == ENV


def test_a_misspelt_name_is_refused_with_the_one_that_was_meant(home: Path) -> None:
    with pytest.raises(UsageError, match="BUDGET_USD_PER_DAY"):
        run_config_set(home, "BUDGET_USD_A_DAY", "2")


def test_a_value_is_judged_by_itself_and_all_that_is_wrong_elsewhere_is_told(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = "SOUL_CODING=perhaps\nSOUL_APROVAL=off\nSPACE_PORT\nOPERATOR_CONTACT='open\nSTORAGE_URL=ftp://x\nMEMORY_DIR=/x/y\n"
    (home / ".env").write_text(ENV + others)
    before = (home / ".env").read_bytes()
    standing = {"SOUL_CODING", "SOUL_APROVAL", "SPACE_PORT", "line 13", "STORAGE_URL", "MEMORY_DIR"}
    for name, value in (
        ("SOUL_APPROVAL", "perhaps"), ("SOUL_CODING", "maybe"), ("STORAGE_URL", "ftp://y"),
        ("BUDGET_USD_PER_DAY", "inf"), ("SOUL_SPEED", "5"), ("OWNER_BLUESKY_SOCIAL_HANDLE_DID", "ada"),
    ):  # fmt: skip
        with pytest.raises(SettingsError) as refusal:
            run_config_set(home, name, value)
        assert [str(one).partition(" ")[0].strip(":") for one in refusal.value.mistakes] == [name]
    assert (home / ".env").read_bytes() == before
    run_config_set(home, "SOUL_APPROVAL", "drafts")
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("✗")]
    assert len(told) == len(standing)
    for check in (run_config_check, lambda root: run_life(root, social_only=False, flush_all=False), run_self_check):
        with pytest.raises(SettingsError) as refusal:
            check(home)
        assert all(any(one in str(mistake) for mistake in refusal.value.mistakes) for one in standing)
    run_doctor(home)
    told_by_doctor = capsys.readouterr().out
    assert all(one in told_by_doctor for one in standing)


def test_a_soul_that_would_own_itself_is_refused_everywhere(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SettingsError, match="own account"):
        run_config_set(home, "AGENT_BLUESKY_USERNAME", "Ada.test")
    (home / ".env").write_text(ENV.replace("=ada.test", "=rowan.test"))
    for check in (run_config_check, lambda root: run_life(root, social_only=False, flush_all=False), run_self_check):
        with pytest.raises(SettingsError, match="own account"):
            check(home)
    run_doctor(home)
    assert "own account" in capsys.readouterr().out


async def test_the_owner_s_did_is_set_with_the_handle(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    did = running_town.account("you")
    await asyncio.to_thread(run_config_set, home.root, "OWNER_BLUESKY_SOCIAL_HANDLE", "you.test")
    assert given(home.root).values["owner_bluesky_social_handle_did"] == did
    await asyncio.to_thread(run_config_set, home.root, "OWNER_BLUESKY_SOCIAL_HANDLE", "nobody.test")
    assert given(home.root).values["owner_bluesky_social_handle_did"] == did
    assert "could not be looked up" in capsys.readouterr().err


def test_what_was_wrong_before_does_not_keep_the_owner_from_mending_it_line_by_line(home: Path) -> None:
    (home / ".env").write_text(ENV.replace("did:plc:ada", "ada").replace("=rowan.test", "="))
    run_config_set(home, "AGENT_BLUESKY_USERNAME", "rowan.test")
    run_config_set(home, "OWNER_BLUESKY_SOCIAL_HANDLE_DID", "did:plc:ada")
    assert (home / ".env").read_text() == ENV


@pytest.mark.parametrize(
    ("editing", "is_taken"), [("2s/rowan/hazel/", True), ("s/did:plc/plc/", False), ("s/^SPACE_URL/SPACE_URI/", False)]
)
def test_what_was_edited_is_taken_only_if_it_is_right(
    home: Path, monkeypatch: pytest.MonkeyPatch, editing: str, *, is_taken: bool
) -> None:
    monkeypatch.setenv("EDITOR", f"sed -i {editing}")
    if is_taken:
        run_config_edit(home)
    else:
        with pytest.raises(ConfigError):
            run_config_edit(home)
    assert (given(home).values["agent_name"] == "hazel") is is_taken
    assert is_taken or (home / ".env").read_text() == ENV


def test_a_value_of_many_lines_and_one_without_a_sign_are_replaced_whole() -> None:
    text = "A='one\ntwo'\nB\n\nC=3\n"
    assert with_values(text, {"A": "1", "B": "2"}) == "A=1\nB=2\n\nC=3\n"


def test_without_a_terminal_one_line_is_read_quietly_and_its_absence_is_told(home: Path) -> None:
    command = [sys.executable, "-m", "soul.cli", "config", "set", "--home", str(home), "AI_GATEWAY_API_KEY"]
    codes = []
    for given_line in ("another\n", ""):
        done = subprocess.run(command, check=False, input=given_line, capture_output=True, text=True, timeout=60)
        codes.append((done.returncode, len(done.stderr.splitlines())))
        assert "another" not in done.stdout
    assert given(home).values["ai_gateway_api_key"] == "another"
    assert codes == [(0, 0), (2, 2)], "the second line is the remedy"


def test_settings_that_come_through_a_pipe_are_never_written_down(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    with pytest.raises(UsageError, match="no regular file"):
        run_config_set(tmp_path, "AGENT_NAME", "wren")
    assert (tmp_path / ".env").is_fifo()


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("SOUL_APPROVAL", ("off", "strangers", "drafts")),
        ("SOUL_APPROVAL_ROOM", ("on", "off")),
        ("BUDGET_TOKENS_PER_DAY", ()),
        ("AGENT_NAME", ()),
    ],
)
def test_a_switch_and_a_choice_tell_what_they_can_be(name: str, choices: tuple[str, ...]) -> None:
    assert choices_of(name) == choices

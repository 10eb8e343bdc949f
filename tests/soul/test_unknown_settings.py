"""Proves that no life begins with a setting that would be ignored, and that the owner's stop works all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.runtime.home import Home
from soul import cli
from tests.running_town import write_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    more = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner", "SOUL_SPEED": "1"}
    home = write_home(tmp_path / "rowan", "rowan", ATPROTO_SERVICE_URL="http://127.0.0.1:9", **more)
    home.env.write_text(f"{home.env.read_text()}\nBUDGET_TOKEN_PER_DAY=1\nREDIS_URL=redis://elsewhere\n")
    return home


@pytest.mark.parametrize("command", ["run", "walk"])
def test_no_life_begins_with_an_unknown_key(home: Home, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert cli.run([command, "--home", str(home.root)]) == 78
    said = capsys.readouterr().err
    assert "BUDGET_TOKEN_PER_DAY is no setting; did you mean BUDGET_TOKENS_PER_DAY?" in said
    assert "REDIS_URL" not in said
    assert not home.memory.exists()


def test_no_life_begins_with_a_misspelt_setting_in_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = write_home(tmp_path / "rowan", "rowan", ATPROTO_SERVICE_URL="http://127.0.0.1:9")
    monkeypatch.setenv("SOUL_APROVAL", "drafts")
    monkeypatch.setenv("SOUL_NAME_OF_ANOTHER_PROGRAM", "1")
    assert cli.run(["run", "--home", str(home.root)]) == 78
    said = capsys.readouterr().err
    assert "SOUL_APROVAL is no setting; did you mean SOUL_APPROVAL?" in said
    assert "ANOTHER_PROGRAM" not in said
    assert not home.memory.exists()


@pytest.mark.parametrize("more", [(), ("--security",)])
def test_doctor_names_it_beside_all_else(home: Home, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]) -> None:
    assert cli.run(["doctor", "--home", str(home.root), "--json", *more]) == 1
    findings = json.loads(capsys.readouterr().out)
    [found] = [item for item in findings if item["check"] == "settings"]
    assert found["level"] == "fail"
    assert "did you mean BUDGET_TOKENS_PER_DAY?" in found["message"]
    assert len(findings) > 3


def test_a_pause_is_never_refused_for_it(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["pause", "--home", str(home.root)]) == 0
    assert "Paused" in capsys.readouterr().out


def test_a_room_is_not_opened_with_an_unknown_key_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".env").write_text("BUDGET_TOKEN_PER_DAY=1\nSPACE_PROT=7000\n")
    assert cli.run(["space", "--home", str(tmp_path)]) == 78
    said = capsys.readouterr().err
    assert "SPACE_PROT is no setting; did you mean SPACE_PORT?" in said
    assert "BUDGET" not in said

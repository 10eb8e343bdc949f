"""Proves that the few settings that a command needs to find a SOUL are read like all settings."""

from pathlib import Path

import pytest

from common.errors import ConfigError
from common.settings import Settings, load_settings
from soul.commands.status import HomeSettings, load_home_settings
from tests.common.test_settings import REQUIRED, write_env


@pytest.fixture(autouse=True)
def _no_inherited_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("written", "environment"),
    [
        ({}, {}),
        ({"MEMORY_DIR": "/var/lib/soul", "SOUL_TIMEZONE": "Europe/Lisbon"}, {}),
        ({"MEMORY_DIR": "", "SOUL_TIMEZONE": ""}, {}),
        ({"memory_dir": "'a b' # where", "Agent_Name": '"Rowan W."'}, {}),
        ({"MEMORY_DIR": "${AGENT_NAME}/memory"}, {}),
        ({"AGENT_NAME": "kit", "SOUL_TIMEZONE": "Europe/Lisbon"}, {"AGENT_NAME": "rebecca", "SOUL_TIMEZONE": ""}),
        ({}, {"agent_name": "rebecca", "MEMORY_DIR": "/srv/elsewhere", "SOUL_TIMEZONE": "Asia/Tokyo"}),
    ],
)
def test_they_are_what_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: dict[str, str], environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    whole = load_settings(write_env(tmp_path, {**REQUIRED, **written}))
    found = load_home_settings(tmp_path)
    assert found == HomeSettings(whole.agent_name, whole.memory_dir, whole.soul_timezone)


@pytest.mark.parametrize(
    "written",
    [
        {"AGENT_NAME": "rowan", "SOUL_SPEED": "fast"},
        {"AGENT_NAME": "rowan", "SOUL_TIMEZONE": "Nowhere/Land"},
        {"AGENT_NAME": "rowan", "SOUL_TIMEZONE": "../etc/passwd"},
        {"AGENT_NAME": "rowan", "OWNER": '"no end\nHere is a word too many'},
    ],
)
def test_they_are_found_where_something_else_is_wrong(tmp_path: Path, written: dict[str, str]) -> None:
    write_env(tmp_path, written)
    assert load_home_settings(tmp_path) == HomeSettings("rowan", None, "")


def test_where_nobody_lives_that_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no SOUL here"):
        load_home_settings(tmp_path)


def test_a_file_that_is_no_text_keeps_the_rest(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"AGENT_NAME=rowan\nOPERATOR_CONTACT=\xff\xfe\nMEMORY_DIR=/srv/rowan\n")
    assert load_home_settings(tmp_path) == HomeSettings("rowan", Path("/srv/rowan"), "")

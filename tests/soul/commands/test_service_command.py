"""Proves that systemd and launchd get a service that they accept, that names no secret, and that fits any folder."""

import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.errors import ConfigError
from soul.commands.service import launchd_file, run_service_install, run_service_start, systemd_units
from tests.running_town import KEY, PASSWORD, RunningTown

VERIFY = shutil.which("systemd-analyze") or ""


def recording_systemctl(folder: Path) -> Path:
    """Write a program in place of systemctl that records its arguments; return the file of its record."""
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$*" >> {folder}/asked\n')
    program.chmod(0o755)
    return folder / "asked"


@pytest.mark.skipif(sys.platform != "linux", reason="it is written for systemd")
async def test_the_unit_is_written_once_enabled_and_started_and_holds_no_secret(
    running_town: RunningTown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = running_town.make_home("rowan")
    asked = recording_systemctl(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(asked.parent))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(ConfigError, match="no service"):
        run_service_start(home.root)
    run_service_install(home.root)
    run_service_start(home.root)
    alarm, unit = sorted((tmp_path / "config/systemd/user").iterdir())
    assert f"OnFailure={alarm.name}" in unit.read_text()
    words = [line.split() for line in asked.read_text().splitlines()]
    assert [line[1] for line in words] == ["daemon-reload", "enable", "reset-failed", "start"]
    assert {line[-1] for line in words[1:]} == {unit.name}
    assert not [secret for secret in (KEY, PASSWORD) if secret in unit.read_text() + alarm.read_text()]


@pytest.mark.skipif(sys.platform != "linux", reason="it is written for systemd")
def test_where_there_is_no_supervisor_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="neither systemd nor launchd"):
        run_service_start(tmp_path)


@pytest.mark.skipif(not VERIFY, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("folder", ["plain", "with a space", 'odd %h $HOME "quoted" \\back'])
def test_systemd_accepts_the_unit_for_any_folder_without_a_word(tmp_path: Path, folder: str) -> None:
    home = tmp_path / folder
    home.mkdir()
    for name, content in systemd_units(home, "rowan").items():
        (unit := tmp_path / name).write_text(content)
    (tmp_path / "run").mkdir()
    verified = subprocess.run(
        [VERIFY, "verify", "--user", "--man=no", unit],
        env={"XDG_RUNTIME_DIR": str(tmp_path / "run"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (verified.returncode, verified.stderr) == (0, "")


def test_launchd_reads_the_same_command_as_systemd(tmp_path: Path) -> None:
    wanted = plistlib.loads(launchd_file(tmp_path, tmp_path / "log"))
    assert wanted["ProgramArguments"][-2:] == ["--home", str(tmp_path)]
    assert wanted["KeepAlive"] == {"SuccessfulExit": False}

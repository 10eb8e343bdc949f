"""Proves that the newest copies of versions that ran well are kept, and that a home cannot name a path as one."""

import hashlib
import os
from pathlib import Path

import pytest

from modules.runtime.program import ProgramVersion, keep, kept, this_program


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "soul/programs"


@pytest.mark.slow
def test_the_four_newest_copies_stay_and_the_one_to_which_a_home_would_go_back_is_new(programs: Path) -> None:
    programs.mkdir(parents=True)
    me, before = this_program(), ProgramVersion("8", hashlib.sha256(b"older").hexdigest(), 37)
    for number, name in enumerate([before.fingerprint, "older1", "older2", "older3"]):
        (programs / name).write_bytes(b"older")
        os.utime(programs / name, (number, number))
    keep(me, before)
    assert {path.name for path in programs.iterdir()} == {"older2", "older3", before.fingerprint, me.fingerprint}
    assert (programs / me.fingerprint).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("named", ["", "../..", "/", ".", "..", "a" * 64, "a" * 5000, "\0"])
def test_a_home_can_name_no_place(programs: Path, named: str) -> None:
    programs.mkdir(parents=True)
    assert not kept(ProgramVersion("9", named, 37))


@pytest.mark.slow
def test_files_that_changed_since_the_start_are_not_kept_as_that_version(programs: Path) -> None:
    keep(ProgramVersion("9", "b" * 64, 37), this_program())
    assert not programs.exists()

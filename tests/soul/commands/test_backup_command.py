"""A home is kept and moved as its owner does it, with the real program."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from soul.commands.backup import run_backup, run_restore
from tests.fresh_database import lay_database
from tests.program import one_clear_line, soul, started, until
from tests.running_town import RunningTown, awake


@pytest.mark.slow
async def test_a_moved_home_lives_on_where_it_is_restored_and_refuses_to_wake_where_it_was(
    running_town: RunningTown, tmp_path: Path
) -> None:
    home, file, passphrase = running_town.make_home("rowan"), tmp_path / "rowan.soul", tmp_path / "passphrase"
    passphrase.write_text("slate keeps the rain\n")
    opened, old, new = ("--passphrase-file", str(passphrase)), str(home.root), str(tmp_path / "new")
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder in the rain?")
    async with awake(home) as life:
        await life.look()
        await life.send()
        assert (await soul("backup", str(tmp_path / "beside.soul"), "--home", old)).code == 0
        one_clear_line(await soul("move", str(file), "--home", old, *opened), "already lived in", code=75)
        await life.app.services.lease.give_back()
    moved = await soul("move", str(file), "--home", old, *opened)
    assert moved.code == 0, moved.output
    one_clear_line(await soul("run", "--home", old), "was moved", "--take-over", code=75)
    told = (await soul("status", "--home", old)).output + (await soul("today", "--home", old)).output
    assert "was moved" in told
    assert "`soul run`" not in told
    one_clear_line(await soul("restore", str(file), "--home", new), "sealed with a passphrase", code=2)
    restored = await soul("restore", str(file), "--home", new, *opened)
    assert restored.code == 0, restored.output
    assert json.loads((await soul("today", "--home", new, "--json")).output)["done"].get("reply") == 1
    async with started("run", "--home", new) as process:
        await until(process, "Awake")
    assert len(running_town.texts("rowan")) == 1


def test_a_passphrase_opens_whatever_an_editor_or_a_keyboard_added_to_it(
    running_town: RunningTown, tmp_path: Path
) -> None:
    home, given = running_town.make_home("rowan"), tmp_path / "passphrase"
    lay_database(home.database)
    given.write_text("\ufeffcaf\u00e9\u00a0noir\r\n")
    run_backup(home.root, tmp_path / "kept.soul", given)
    given.write_text("cafe\u0301 noir")
    run_restore(tmp_path / "new", tmp_path / "kept.soul", given, most_gib=1)
    assert (tmp_path / "new" / "SOUL.md").read_bytes() == home.soul.read_bytes()


def test_a_backup_says_that_settings_from_a_pipe_are_not_in_it(
    running_town: RunningTown, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = running_town.make_home("rowan")
    lay_database(home.database)
    settings = home.env.read_text()
    home.env.unlink()
    os.mkfifo(home.env)

    def fill_whenever_it_is_read() -> None:
        while home.env.exists():
            with suppress(BrokenPipeError, FileNotFoundError):  # a reader that had enough; the test is over
                home.env.write_text(settings)

    threading.Thread(target=fill_whenever_it_is_read, daemon=True).start()
    run_backup(home.root, tmp_path / "kept.soul", None)
    assert "Your settings are not in it" in capsys.readouterr().out

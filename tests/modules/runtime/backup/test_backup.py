"""A home as one file: whole while somebody writes, closed to whoever has no passphrase, and all or nothing."""

from __future__ import annotations

import io
import os
import sqlite3
import tarfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from common.errors import SoulError, StorageError, UsageError
from modules.runtime.backup.archive import restore_backup, write_backup
from modules.runtime.backup.sealing import MAGIC, SealedReader, SealingWriter
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home

PIECE = 64 * 1024
PASSPHRASE = "slate keeps the rain"


async def a_home(root: Path) -> tuple[Home, Database]:
    home = Home.at(root)
    database = await Database.open(home.database, MIGRATIONS)
    for path, text in {
        home.env: "AGENT_NAME=rowan",
        home.soul: "# Rowan",
        home.workspace / "memory" / "2026-01-05.md": "a day",
        home.memory / "pending_commitments.jsonl": "{}\n",
        home.memory / "logs" / "2026-01-05.log": "left out",
        home.status: "{}",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return home, database


@pytest.mark.parametrize("passphrase", ["", PASSPHRASE])
async def test_what_is_restored_is_what_was_committed_while_somebody_still_writes(
    tmp_path: Path, passphrase: str
) -> None:
    home, database = await a_home(tmp_path / "old")
    await database.run(lambda connection: marks.put(connection, {"before": "kept"}))
    with closing(sqlite3.connect(home.database)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        marks.put(writer, {"unfinished": "never committed"})
        write_backup(home, tmp_path / "b", passphrase)
        writer.rollback()
    await database.close()
    root = tmp_path / "new"
    assert restore_backup(tmp_path / "b", root, passphrase) == 5
    new = await Database.open(Home.at(root).database, MIGRATIONS)
    found = await new.run(lambda connection: marks.get_all(connection, ["before", "unfinished"]))
    await new.close()
    assert found == {"before": "kept"}
    assert (root / "workspace" / "memory" / "2026-01-05.md").read_text() == "a day"
    assert (root / ".memory" / "pending_commitments.jsonl").read_text() == "{}\n"
    assert not (root / ".memory" / "logs").exists()
    private = (tmp_path / "b", root / ".env", root / ".memory" / "soul.db")
    assert {path.stat().st_mode & 0o077 for path in private} == {0}
    assert sorted(path.name for path in root.iterdir()) == [".env", ".memory", "SOUL.md", "workspace"]


async def test_what_somebody_laid_beside_the_new_file_is_neither_written_nor_given_the_backup(tmp_path: Path) -> None:
    home, database = await a_home(tmp_path / "old")
    await database.close()
    theirs, shared = tmp_path / "theirs", tmp_path / "shared"
    theirs.write_text("not ours")
    shared.mkdir()
    (shared / ".b.unfinished").symlink_to(theirs)
    write_backup(home, shared / "b")
    assert theirs.read_text() == "not ours"
    assert (shared / "b").stat().st_mode & 0o077 == 0
    assert not (shared / "b").is_symlink()
    assert restore_backup(shared / "b", tmp_path / "new") == 5


async def test_of_two_restores_at_once_the_later_one_changes_nothing(tmp_path: Path) -> None:
    """The first one reads from a pipe, whose other end is held until the second one has ended."""
    home, database = await a_home(tmp_path / "old")
    await database.close()
    write_backup(home, tmp_path / "b", PASSPHRASE)
    root, slow, whole = tmp_path / "new", tmp_path / "slow", (tmp_path / "b").read_bytes()
    os.mkfifo(slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(restore_backup, slow, root, PASSPHRASE)
        with slow.open("wb") as pipe:
            pipe.write(whole[:100])
            pipe.flush()
            restore_backup(tmp_path / "b", root, PASSPHRASE)
            (root / "SOUL.md").write_text("lives by now")
            pipe.write(whole[100:])
        with pytest.raises(UsageError):
            first.result()
    assert (root / "SOUL.md").read_text() == "lives by now"
    assert sorted(path.name for path in root.iterdir()) == [".env", ".memory", "SOUL.md", "workspace"]


async def test_a_backup_that_is_not_whole_or_not_ours_restores_nothing(tmp_path: Path) -> None:
    home, database = await a_home(tmp_path / "old")
    await database.close()
    for name, passphrase in (("plain", ""), ("sealed", PASSPHRASE)):
        write_backup(home, tmp_path / name, passphrase)
        whole = (tmp_path / name).read_bytes()
        changed = bytearray(whole)
        changed[len(whole) // 2] ^= 1
        for number, content in enumerate((whole[:-9], whole[: len(whole) // 2], bytes(changed), b"", b"hello")):
            (tmp_path / "damaged").write_bytes(content)
            root = tmp_path / f"{name}{number}"
            with pytest.raises(SoulError):
                restore_backup(tmp_path / "damaged", root, passphrase)
            assert list(root.iterdir()) == []
    with pytest.raises(UsageError, match="sealed"):
        restore_backup(tmp_path / "sealed", tmp_path / "new")
    with pytest.raises(UsageError, match="does not open"):
        restore_backup(tmp_path / "sealed", tmp_path / "new", "another")
    with pytest.raises(UsageError, match="nothing was restored"):
        restore_backup(tmp_path / "plain", home.root)
    with pytest.raises(UsageError, match="is there already"):
        write_backup(home, tmp_path / "plain")


@pytest.mark.parametrize("name", ["../out", "/etc/out", "workspace/../../out", ".ssh/authorized_keys"])
def test_a_file_that_would_lie_outside_of_a_home_is_refused(tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "b", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("soul-backup"), io.BytesIO())
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(StorageError, match="no file of a home"):
        restore_backup(tmp_path / "b", tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * PIECE - 7])
def test_what_is_sealed_opens_as_it_was_and_not_without_its_last_piece(size: int) -> None:
    words = bytes(number % 251 for number in range(size))
    file = io.BytesIO()
    writer = SealingWriter(file, PASSPHRASE)
    for start in range(0, size, PIECE // 3):
        writer.write(words[start : start + PIECE // 3])
    writer.close()
    sealed = file.getvalue()
    file.seek(len(MAGIC))
    assert SealedReader(file, PASSPHRASE).read(size + 1) == words
    last = (size - 1) % PIECE + 1 + 16 if size else 16
    with pytest.raises(SoulError):
        SealedReader(io.BytesIO(sealed[len(MAGIC) : -last]), PASSPHRASE).read(size + 1)

"""Proves that a backup is whole despite writers, sealed by its passphrase, and restored in full or not at all."""

import asyncio
import gzip
import io
import os
import signal
import sqlite3
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from common.errors import HomeLocked, SoulError, StorageError, UsageError
from modules.runtime.backup import (
    MAGIC,
    RestoredHome,
    SealedReader,
    SealingWriter,
    complete_restore,
    restore_backup,
    write_backup,
)
from modules.runtime.database import marks
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home

PIECE = 64 * 1024
PASSPHRASE = "slate keeps the rain"
MOST = 1024 * 1024
_KILLED = """
import os, signal, sys
from pathlib import Path
from modules.runtime.backup import restore_backup

def die(event, _):
    global step
    if event in {"os.rename", "os.rmdir"}:
        step -= 1
        if step == 0:
            os.kill(os.getpid(), signal.SIGKILL)

step = int(sys.argv[1])
sys.addaudithook(die)
restore_backup(Path(sys.argv[2]), Path(sys.argv[3]), "", most_bytes=10**9)
"""
"""A restore that is killed right before its n-th rename or removal of a folder; it ends with 0 if there are fewer."""


def restore(source: Path, root: Path, passphrase: str = "", *, most: int = 10**9) -> RestoredHome:
    return restore_backup(source, root, passphrase, most_bytes=most)


async def restored_and_killed(step: int, source: Path, root: Path) -> int:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", _KILLED, str(step), str(source), str(root))
    return await child.wait()


async def a_home(root: Path) -> tuple[Home, Database]:
    home = Home.at(root)
    database = await Database.open(home.database, MIGRATIONS)
    for path, text in {
        home.env: "AGENT_NAME=rowan",
        home.soul: "# Rowan",
        home.workspace / "memory" / "2026-01-05.md": "a day",
        home.memory / "pending_commitments.jsonl": "{}\n",
        home.memory / "logs" / "2026-01-05.log": "left out",
        home.memory / "post_log.jsonl": "{}\n",
        home.memory / "images" / "downloaded.png": "left out",
        home.memory / "images" / "waiting" / "5eed": "a picture that waits for its post",
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
    assert restore(tmp_path / "b", root, passphrase).files == 8
    new = await Database.open(Home.at(root).database, MIGRATIONS)
    found = await new.run(lambda connection: marks.get_all(connection, ["before", "unfinished"]))
    await new.close()
    assert found == {"before": "kept"}
    assert (root / "workspace" / "memory" / "2026-01-05.md").read_text() == "a day"
    assert (root / ".memory" / "pending_commitments.jsonl").read_text() == "{}\n"
    assert (root / ".memory" / "images" / "waiting" / "5eed").read_text() == "a picture that waits for its post"
    assert not (root / ".memory" / "images" / "downloaded.png").exists()
    assert not (root / ".memory" / "logs").exists()
    private = (tmp_path / "b", root / ".env", root / ".memory" / "soul.db")
    assert {path.stat().st_mode & 0o077 for path in private} == {0}
    assert sorted(path.name for path in root.iterdir()) == [".env", ".memory", "SOUL.md", "workspace"]


async def test_a_link_is_copied_as_the_file_to_which_it_leads_unless_it_leads_out_of_the_folder(
    tmp_path: Path,
) -> None:
    home, database = await a_home(tmp_path / "old")
    await database.close()
    (home.workspace / "latest.md").symlink_to(Path("memory") / "2026-01-05.md")
    (home.workspace / "theirs.md").symlink_to(home.env)
    write_backup(home, tmp_path / "b")
    workspace = Home.at(tmp_path / "new").workspace
    restore(tmp_path / "b", workspace.parent)
    assert (workspace / "latest.md").read_text() == "a day"
    assert not (workspace / "theirs.md").exists()


async def test_what_the_database_tells_of_later_is_copied_after_it(tmp_path: Path) -> None:
    """Otherwise a backup of a SOUL that is sending could know of a post, but miss its picture or its log line."""
    home, database = await a_home(tmp_path / "old")
    await database.close()
    write_backup(home, tmp_path / "b")
    with tarfile.open(tmp_path / "b") as archive:
        names = archive.getnames()
    later = names[names.index(".memory/soul.db") + 1 :]
    assert later == [".memory/images/waiting/5eed", ".memory/post_log.jsonl"]


async def test_of_a_damaged_database_no_backup_is_made(tmp_path: Path) -> None:
    kept, (home, database) = tmp_path / "b", await a_home(tmp_path / "old")
    await database.run(lambda connection: marks.put(connection, {f"mark {at}": "x" * 3000 for at in range(50)}))
    await database.close()
    with home.database.open("r+b") as file:
        file.seek(-10 * 4096, os.SEEK_END)
        file.write(b"\xa5" * 4096)
    with pytest.raises(StorageError) as refused:
        write_backup(home, kept)
    assert "\n" not in str(refused.value)
    assert not kept.exists()


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
    assert restore(shared / "b", tmp_path / "new").files == 8


async def test_of_two_restores_at_once_the_later_one_changes_nothing(tmp_path: Path) -> None:
    """The first one reads from a pipe whose other end stays open until the second one has ended."""
    home, database = await a_home(tmp_path / "old")
    await database.close()
    write_backup(home, tmp_path / "b", PASSPHRASE)
    root, slow, whole = tmp_path / "new", tmp_path / "slow", (tmp_path / "b").read_bytes()
    os.mkfifo(slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(restore, slow, root, PASSPHRASE)
        with slow.open("wb") as pipe:
            pipe.write(whole[:100])
            pipe.flush()
            with pytest.raises(HomeLocked):
                restore(tmp_path / "b", root, PASSPHRASE)
            (root / "SOUL.md").write_text("somebody else moved in meanwhile")
            pipe.write(whole[100:])
        with pytest.raises(UsageError):
            first.result()
    assert [(path.name, path.read_text()) for path in root.iterdir()] == [
        ("SOUL.md", "somebody else moved in meanwhile")
    ]


async def test_a_restore_that_is_killed_at_any_step_is_completed_or_begun_anew(tmp_path: Path) -> None:
    home, database = await a_home(tmp_path / "old")
    await database.close()
    with home.env.open("a") as env:
        env.write("\nMEMORY_DIR=/elsewhere\n")
    write_backup(home, tmp_path / "b")
    completed = []
    for step in count(1):
        root = tmp_path / f"new{step}"
        if (code := await restored_and_killed(step, tmp_path / "b", root)) == 0:
            break
        assert code == -signal.SIGKILL
        completed.append(restore(tmp_path / "b", root).completed if step % 2 else complete_restore(root))
        if not (root / "SOUL.md").exists():
            restore(tmp_path / "b", root)
        assert sorted(path.name for path in root.iterdir()) == [".env", ".memory", "SOUL.md", "workspace"]
        assert "#MEMORY_DIR=" in (root / ".env").read_text()
        assert (root / "workspace" / "memory" / "2026-01-05.md").read_text() == "a day"
        assert not complete_restore(root)
    assert {True, False} <= set(completed)


async def test_what_lies_in_the_folder_is_never_overwritten(tmp_path: Path) -> None:
    home, database = await a_home(tmp_path / "old")
    await database.close()
    write_backup(home, tmp_path / "b")
    root = tmp_path / "new"
    theirs = root / "workspace" / "memory" / "2026-01-05.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("another day")
    with pytest.raises(UsageError, match="workspace"):
        restore(tmp_path / "b", root)
    assert [path for path in root.rglob("*") if path.is_file()] == [theirs]
    assert theirs.read_text() == "another day"


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
                restore(tmp_path / "damaged", root, passphrase)
            assert not root.exists()
    with pytest.raises(UsageError, match="sealed"):
        restore(tmp_path / "sealed", tmp_path / "new")
    with pytest.raises(UsageError, match="does not open"):
        restore(tmp_path / "sealed", tmp_path / "new" / "er", "another")
    (tmp_path / "theirs").mkdir()
    packed = gzip.compress(b"hello")
    for content in (b"", b"hello", packed, (tmp_path / "plain").read_bytes()[:40]):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(UsageError, match="is no backup of a SOUL"):
            restore(tmp_path / "other", tmp_path / "theirs")
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "theirs").is_dir(), "a folder that was there before stays"
    with pytest.raises(UsageError, match="nothing was restored"):
        restore(tmp_path / "plain", home.root)
    with pytest.raises(UsageError, match="is there already"):
        write_backup(home, tmp_path / "plain")


@pytest.mark.parametrize(
    "name",
    ["../out", "/etc/out", "workspace/../../out", ".ssh/authorized_keys", ".env/inner", ".memory", "workspace/a\0b"],
)
def test_a_file_that_would_lie_outside_of_a_home_is_refused(tmp_path: Path, name: str) -> None:
    entry = tarfile.TarInfo(name.replace("\0", ""))
    entry.pax_headers = {"path": name}
    refused(tmp_path, [entry], "no file of a home")


def test_a_backup_that_would_fill_the_disk_or_the_memory_is_refused(tmp_path: Path) -> None:
    """Zeros compress a thousandfold: the size of the content decides, not the size of the file."""
    large, long_name, link = (tarfile.TarInfo("workspace/a") for _ in range(3))
    large.size = 3 * MOST
    long_name.pax_headers = {"comment": "a" * MOST}
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    refused(tmp_path, [large], "more than")
    refused(tmp_path, [long_name], "no file of a home")
    refused(tmp_path, [link], "no file of a home")
    for told in ({"GNU.sparse.map": "0,4", "GNU.sparse.size": "1000"}, {"GNU.sparse.map": "0,x"}):
        sparse = tarfile.TarInfo("workspace/a")
        sparse.size, sparse.pax_headers = 4, told
        refused(tmp_path, [sparse], "no file of a home|is damaged")
    refused(tmp_path, [], "more than", trailing=3 * MOST)


def refused(tmp_path: Path, entries: list[tarfile.TarInfo], words: str, *, trailing: int = 0) -> None:
    with gzip.open(tmp_path / "b", "wb") as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for entry in (tarfile.TarInfo("soul-backup"), *entries):
                archive.addfile(entry, io.BytesIO(b"\0" * entry.size))
        packed.write(b"\0" * trailing)
    with pytest.raises(StorageError, match=words):
        restore(tmp_path / "b", tmp_path / "new", most=MOST)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("size", [0, PIECE, 3 * PIECE - 7])
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

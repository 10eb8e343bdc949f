"""Proves that owner files behave the same in a home and in a store, and that none leads elsewhere."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapters.storage.local import Storage, open_storage
from common.errors import PolicyBlocked, Transient
from modules.runtime.home import Home
from modules.services.owner_files import LocalOwnerFiles, OwnerFiles, StoredOwnerFiles
from tests.adapters.storage.s3_server import KINDS, S3, WHO, open_kind, serving_s3


@dataclass
class OwnerFilesHome:
    """A workspace, and `by_hand`, which writes to it from outside."""

    owner_files: OwnerFiles
    home: Home
    storage: Storage | None = None
    warnings: list[str] = field(default_factory=list)

    async def by_hand(self, name: str, data: bytes) -> None:
        if self.storage is not None:
            assert (await self.storage.put(f"agents/rowan/{name}", data)).success
            return
        base = self.home.root if name in {"SOUL.md", "SELF.md"} else self.home.workspace
        lay(base / name, data)


def lay(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def listed(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serving_s3() as running:
        yield running


@pytest.fixture(params=("home", *KINDS))
async def files_home(request: pytest.FixtureRequest, tmp_path: Path, s3: S3) -> AsyncIterator[OwnerFilesHome]:
    home = Home.at(tmp_path)
    warnings: list[str] = []
    if request.param == "home":
        yield OwnerFilesHome(LocalOwnerFiles(home, warnings.append), home, warnings=warnings)
        return
    storage = open_kind(request.param, tmp_path, s3)
    yield OwnerFilesHome(StoredOwnerFiles(storage, "rowan", warnings.append), home, storage, warnings)
    await storage.aclose()


@pytest.fixture
def at_home(tmp_path: Path) -> OwnerFilesHome:
    home = Home.at(tmp_path)
    home.workspace.mkdir()
    warnings: list[str] = []
    return OwnerFilesHome(LocalOwnerFiles(home, warnings.append), home, warnings=warnings)


async def test_what_was_written_is_read(files_home: OwnerFilesHome) -> None:
    name = "skills/tea/SKILL.md"
    await files_home.owner_files.write(name, "Grüße 👋\r\n")
    assert await files_home.owner_files.read(name) == "Grüße 👋\r\n"
    await files_home.owner_files.write(name, "anew")
    assert await files_home.owner_files.read(name) == "anew"


@pytest.mark.parametrize("data", [None, b" \n\t\n"])
async def test_what_is_absent_or_blank_is_nothing_and_no_trouble(
    files_home: OwnerFilesHome, data: bytes | None
) -> None:
    if data is not None:
        await files_home.by_hand("GOALS.md", data)
    assert await files_home.owner_files.read("GOALS.md") is None
    assert files_home.warnings == []


@pytest.mark.parametrize(
    ("data", "why"), [(b"caf\xe9", "is not UTF-8 text"), (b"x" * (1024 * 1024 + 1), "is larger than 1024 KiB")]
)
async def test_what_is_no_text_is_left_out_with_one_warning_and_never_overwritten(
    files_home: OwnerFilesHome, data: bytes, why: str
) -> None:
    await files_home.by_hand("GOALS.md", data)
    assert [await files_home.owner_files.read("GOALS.md") for _ in range(3)] == [None] * 3
    assert files_home.warnings == [f"GOALS.md {why}; it is left out"]
    with pytest.raises(PolicyBlocked, match=why):
        await files_home.owner_files.write("GOALS.md", "mine")
    await files_home.by_hand("GOALS.md", b"mended")
    assert await files_home.owner_files.read("GOALS.md") == "mended"
    await files_home.by_hand("GOALS.md", data)
    await files_home.owner_files.read("GOALS.md")
    assert len(files_home.warnings) == 2


async def test_who_it_is_can_be_read_here_and_not_written(files_home: OwnerFilesHome) -> None:
    await files_home.by_hand("SELF.md", b"Rowan")
    assert await files_home.owner_files.read("SELF.md") == "Rowan"
    for wrong in ("SELF.md", "self.md"):
        with pytest.raises(PolicyBlocked, match="is not written"):
            await files_home.owner_files.write(wrong, "Mallory")
        with pytest.raises(PolicyBlocked, match="is not written"):
            await files_home.owner_files.rename(wrong, "GOALS.md")
        with pytest.raises(PolicyBlocked, match="is not written"):
            await files_home.owner_files.rename("GOALS.md", wrong)
    assert await files_home.owner_files.read("SELF.md") == "Rowan"


NO_NAMES = (
    "", ".md", "..", "../.env", "../SOUL.md", "memory/../../SOUL.md", "/etc/hosts.md", "a//b.md", "./GOALS.md",
    ".hidden.md", "notes.txt", "GOALS.md.meta.json", "a\x00.md", "sessions/x.jsonl.gz", "a/b/c/d.md", "a b.md",
    "GOALS.md/", "ä.md", "x" * 300 + ".md",
)  # fmt: skip


async def test_what_is_no_name_is_neither_read_nor_written(files_home: OwnerFilesHome) -> None:
    for name in NO_NAMES:
        for ask in (
            files_home.owner_files.read(name),
            files_home.owner_files.write(name, "x"),
            files_home.owner_files.rename(name, "A.md"),
        ):
            with pytest.raises(PolicyBlocked, match="no name of a file"):
                await ask


async def test_half_a_letter_from_a_model_does_not_stop_a_write(files_home: OwnerFilesHome) -> None:
    await files_home.owner_files.write("GOALS.md", "a\ud83d")
    assert await files_home.owner_files.read("GOALS.md") == "a?"


async def test_too_long_a_text_is_refused_before_it_is_written(files_home: OwnerFilesHome) -> None:
    await files_home.owner_files.write("GOALS.md", "short")
    with pytest.raises(PolicyBlocked, match="would be larger"):
        await files_home.owner_files.write("GOALS.md", "x" * (1024 * 1024 + 1))
    assert await files_home.owner_files.read("GOALS.md") == "short"


async def test_many_updates_at_once_lose_nothing(files_home: OwnerFilesHome) -> None:
    def noting(number: int) -> Callable[[str | None], str]:
        return lambda text: f"{text or ''}- {number}\n"

    await asyncio.gather(*(files_home.owner_files.update("GOALS.md", noting(number)) for number in range(8)))
    text = await files_home.owner_files.read("GOALS.md") or ""
    assert sorted(text.splitlines()) == [f"- {n}" for n in range(8)]


@pytest.mark.parametrize("files_home", KINDS, indirect=True)
async def test_what_another_process_writes_in_between_is_not_overwritten(files_home: OwnerFilesHome) -> None:
    assert files_home.storage is not None
    other = StoredOwnerFiles(files_home.storage, "rowan", files_home.warnings.append)
    await other.write("GOALS.md", "one\n")
    asked: list[str | None] = []

    def note(text: str | None) -> str:
        asked.append(text)
        if len(asked) == 1:
            with ThreadPoolExecutor(1) as elsewhere:
                elsewhere.submit(asyncio.run, other.update("GOALS.md", lambda text: f"{text}two\n")).result(10)
        return f"{text}three\n"

    await files_home.owner_files.update("GOALS.md", note)
    assert asked == ["one\n", "one\ntwo\n"]
    assert await files_home.owner_files.read("GOALS.md") == "one\ntwo\nthree\n"


async def test_a_file_gets_a_new_name(files_home: OwnerFilesHome) -> None:
    await files_home.owner_files.write("BOOTSTRAP.md", "hello")
    await files_home.owner_files.write("BOOTSTRAP.done.md", "an old one")
    await files_home.owner_files.rename("BOOTSTRAP.md", "BOOTSTRAP.done.md")
    assert await files_home.owner_files.names() == ("BOOTSTRAP.done.md",)
    assert await files_home.owner_files.read("BOOTSTRAP.done.md") == "hello"
    with pytest.raises(PolicyBlocked, match=r"There is no BOOTSTRAP\.md"):
        await files_home.owner_files.rename("BOOTSTRAP.md", "BOOTSTRAP.done.md")


async def test_all_that_can_be_read_is_named_in_order_and_nothing_else(files_home: OwnerFilesHome) -> None:
    assert await files_home.owner_files.names() == ()
    for name in ("SOUL.md", "GOALS.md", "memory/2026-11-22.md", "skills/tea/SKILL.md", "sessions/x.jsonl.gz", "n.txt"):
        await files_home.by_hand(name, b"x")
    expected = ("GOALS.md", "SOUL.md", "memory/2026-11-22.md", "skills/tea/SKILL.md")
    assert await files_home.owner_files.names() == expected
    assert [await files_home.owner_files.read(name) for name in expected] == ["x"] * 4


async def test_one_soul_does_not_see_the_files_of_another(tmp_path: Path, s3: S3) -> None:
    storage = open_kind("s3", tmp_path, s3)
    for name in ("rowan", "rowan2", "../rowan"):
        await StoredOwnerFiles(storage, name, pytest.fail).write("GOALS.md", name)
    assert await StoredOwnerFiles(storage, "rowan", pytest.fail).read("GOALS.md") == "rowan"
    assert await StoredOwnerFiles(storage, "rowan", pytest.fail).names() == ("GOALS.md",)


async def test_a_store_that_cannot_be_reached_is_said_so_and_is_no_empty_workspace(tmp_path: Path) -> None:
    storage = open_storage("s3://bucket?endpoint=http://127.0.0.1:1", root=tmp_path, credentials=WHO, deadline_s=5)
    owner_files = StoredOwnerFiles(storage, "rowan", pytest.fail)
    for ask in (owner_files.read("GOALS.md"), owner_files.write("GOALS.md", "x"), owner_files.names()):
        with pytest.raises(Transient):
            await ask


async def test_a_bucket_that_is_not_there_is_for_the_owner_to_mend_and_ends_no_life(tmp_path: Path, s3: S3) -> None:
    storage = open_storage(s3.url("nowhere"), root=tmp_path, credentials=WHO)
    with pytest.raises(Transient, match="no such bucket") as caught:
        await StoredOwnerFiles(storage, "rowan", pytest.fail).read("GOALS.md")
    assert caught.value.remedy


@pytest.mark.parametrize("linked", ["GOALS.md", "memory"])
async def test_a_link_out_of_the_workspace_is_neither_followed_nor_overwritten(
    at_home: OwnerFilesHome, linked: str
) -> None:
    outside = at_home.home.root / "outside"
    lay(outside / "GOALS.md", b"private")
    target = outside / "GOALS.md" if linked == "GOALS.md" else outside
    (at_home.home.workspace / linked).symlink_to(target)
    name = linked if linked == "GOALS.md" else "memory/GOALS.md"
    assert await at_home.owner_files.read(name) is None
    assert at_home.warnings == [f"{name} is a link that leads out of the workspace; it is left out"]
    assert await at_home.owner_files.names() == ()
    for ask in (at_home.owner_files.write(name, "x"), at_home.owner_files.rename(name, "TOOLS.md")):
        with pytest.raises(PolicyBlocked, match="leads out"):
            await ask
    assert listed(outside) == ["GOALS.md"]


async def test_at_home_only_the_owner_can_read_what_the_soul_writes(at_home: OwnerFilesHome) -> None:
    await at_home.owner_files.write("MEMORY.md", "private")
    assert stat.S_IMODE((at_home.home.workspace / "MEMORY.md").stat().st_mode) == 0o600


async def test_at_home_a_file_that_identity_names_in_the_workspace_is_not_who_it_is(at_home: OwnerFilesHome) -> None:
    lay(at_home.home.workspace / "SOUL.md", b"Mallory")
    assert await at_home.owner_files.read("SOUL.md") is None
    assert await at_home.owner_files.names() == ()


async def test_a_pipe_in_the_workspace_is_left_out_and_not_waited_for(at_home: OwnerFilesHome) -> None:
    at_home.home.workspace.mkdir(exist_ok=True)
    os.mkfifo(at_home.home.workspace / "GOALS.md")
    assert await at_home.owner_files.read("GOALS.md") is None
    assert at_home.warnings == ["GOALS.md cannot be read: it is not a regular file; it is left out"]

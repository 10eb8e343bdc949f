"""Proves that the real program meets each kind of trouble with one clear line and a remedy, and loses nothing."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import SystemClock, iso
from common.errors import StorageError
from common.files import write_atomic
from modules.runtime.control import Control
from tests.patience import HANG_S
from tests.program import Ended, one_clear_line, soul, started, until
from tests.running_town import RunningTown, replying
from town.model.service import Fault as MindFault
from town.model.types import ChatRequest, Completion

pytestmark = pytest.mark.slow
needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tiny disk needs root")


async def command(*words: str) -> None:
    """Run a command of the system, which must succeed."""
    process = await asyncio.create_subprocess_exec(*words)
    assert await asyncio.wait_for(process.wait(), HANG_S) == 0


async def test_without_settings_it_says_that_nobody_lives_there_and_how_to_begin(tmp_path: Path) -> None:
    one_clear_line(await soul("run", "--home", str(tmp_path)), "There is no SOUL here", "soul init", code=78)


async def test_each_wrong_setting_is_named_on_its_line(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", OWNER_BLUESKY_SOCIAL_HANDLE_DID="kit.test", SOUL_SPEED="fast")
    ended = await soul("run", "--home", str(home.root))
    assert (ended.code, len(ended.remedies)) == (78, 1), ended.output
    told = zip(ended.complaints, ("OWNER_BLUESKY_SOCIAL_HANDLE_DID must be a DID", "SOUL_SPEED must be"), strict=True)
    assert all(words in complaint for complaint, words in told)


async def test_a_bad_key_stops_the_first_thought_and_loses_no_mention(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    running_town.mind_faults.arm(MindFault("unauthorized"))
    one_clear_line(await soul("run", "--home", str(home.root)), "AI_GATEWAY_API_KEY", code=78)
    async with started("run", "--home", str(home.root)) as process:
        await until(process, "Sent reply")
    assert len(running_town.texts("rowan")) == 1


async def test_a_wrong_password_is_told_with_both_variables(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", AGENT_BLUESKY_PASSWORD="wrong-password")
    ended = await soul("run", "--home", str(home.root))
    one_clear_line(ended, "rowan.test", "AGENT_BLUESKY_USERNAME", "AGENT_BLUESKY_PASSWORD", code=78)


@pytest.mark.parametrize(
    "content", [None, b"", b"   \n", b"\xff\xfe I am"], ids=["missing", "empty", "blank", "no UTF-8"]
)
async def test_without_a_soul_there_is_no_life(running_town: RunningTown, content: bytes | None) -> None:
    home = running_town.make_home("rowan")
    home.soul.unlink()
    if content is not None:
        home.soul.write_bytes(content)
    one_clear_line(await soul("run", "--home", str(home.root)), "SOUL.md", code=78)
    assert running_town.texts("rowan") == []


async def test_a_soul_changed_while_it_lives_stops_it(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with started("run", "--home", str(home.root)) as process:
        await until(process, "♥")
        home.soul.write_text("You are somebody else now.")
        output, _ = await asyncio.wait_for(process.communicate(), HANG_S)
        ended = Ended(process.returncode or 0, output.decode())
        one_clear_line(ended, "SOUL.md changed while the SOUL was running", code=78)


async def test_a_corrupt_database_is_set_aside_and_told(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    home.memory.mkdir()
    home.database.write_bytes(b"this is no database" * 1000)
    async with started("run", "--home", str(home.root)) as process:
        told = await until(process, "♥")
    assert "soul.db" in told
    assert [path.read_bytes()[:19] for path in home.memory.glob("soul.db.corrupt-*")] == [b"this is no database"]


@contextlib.asynccontextmanager
async def small_disk(tmp_path: Path, size: str) -> AsyncIterator[Path]:
    """Mount a file system of its own, of `size`."""
    disk = tmp_path / "disk"
    disk.mkdir()
    await command("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk))
    try:
        yield disk
    finally:
        await command("umount", str(disk))


def fill(disk: Path, *, but_kib: int = 0) -> Path:
    """Fill the disk except for `but_kib` KiB, and return the file that does so, which can be deleted."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError):
        ballast.write_bytes(b"x" * max(0, shutil.disk_usage(disk).free - but_kib * 1024))
    return ballast


@needs_mount
async def test_on_a_full_disk_the_old_file_stays(tmp_path: Path) -> None:
    async with small_disk(tmp_path, "400k") as disk:
        state = disk / "state.json"
        write_atomic(state, "old")
        fill(disk, but_kib=20)
        with pytest.raises(StorageError, match="Disk full"):
            write_atomic(state, "new" * 20_000)
        assert state.read_text() == "old"
        assert sorted(path.name for path in disk.iterdir()) == ["ballast", "state.json"]


@needs_mount
async def test_on_a_full_disk_a_pause_holds(tmp_path: Path) -> None:
    async with small_disk(tmp_path, "64k") as disk:
        with pytest.raises(OSError, match="No space"):
            (disk / "ballast").write_bytes(b"x" * 100_000)
        control = Control(disk)
        control.pause("a long night")
        assert control.standing().paused
        control.resume()
        assert control.standing().may_act


@needs_mount
@pytest.mark.parametrize("but_kib", [0, 8, 40, 120])
async def test_a_disk_that_is_full_at_the_start_is_one_line_and_a_code_of_its_own(
    tmp_path: Path, running_town: RunningTown, but_kib: int
) -> None:
    async with small_disk(tmp_path, "6m") as disk:
        (disk / "memory").mkdir(mode=0o700)
        home = running_town.make_home("rowan", MEMORY_DIR=str(disk / "memory"))
        ballast = fill(disk, but_kib=but_kib)
        ended = await soul("run", "--home", str(home.root))
        one_clear_line(ended, "The disk is full: ", "Free 16 MiB and start again", code=74)
        ballast.unlink()
        async with started("run", "--home", str(home.root)) as process:
            assert "Traceback" not in await until(process, "♥")


@needs_mount
async def test_a_disk_that_is_full_at_the_stop_loses_nothing_that_was_accepted(
    tmp_path: Path, running_town: RunningTown
) -> None:
    async with small_disk(tmp_path, "4m") as disk:
        (disk / "memory").mkdir(mode=0o700)
        home = running_town.make_home("rowan", MEMORY_DIR=str(disk / "memory"))
        async with started("run", "--home", str(home.root), "--social-only") as process:
            told = await until(process, "♥")
            ballast = fill(disk)
            running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
            told += await until(process, "Disk full")
            process.send_signal(signal.SIGTERM)
            rest, _ = await asyncio.wait_for(process.communicate(), HANG_S)
            told += rest.decode()
        ended = Ended(process.returncode or 0, rest.decode())
        if ended.code:
            one_clear_line(ended, "The disk is full: ", "Free 16 MiB", code=74)
        else:  # an earlier write failed and left room for the last one
            assert "Stopped" in ended.output
        assert "Traceback" not in told
        assert running_town.texts("rowan") == []
        ballast.unlink()
        running_town.mind.answer = replying("Tin, and you hear each drop of it.")
        async with started("run", "--home", str(home.root)) as process:
            await until(process, "Sent reply")
    assert running_town.texts("rowan").count("Tin, and you hear each drop of it.") == 1


@needs_mount
async def test_a_disk_that_fills_up_under_way_fails_the_turn_and_the_mention_is_answered_once_there_is_room(
    tmp_path: Path, running_town: RunningTown
) -> None:
    def answering(request: ChatRequest) -> Completion:
        is_reply = any(offer.name == "bluesky_reply" for offer in request.offers)
        return replying("Tin, and you hear each drop of it." if is_reply else "Moss grows where nobody walks.")(request)

    async with small_disk(tmp_path, "4m") as disk:
        (disk / "memory").mkdir(mode=0o700)
        home = running_town.make_home("rowan", MEMORY_DIR=str(disk / "memory"))
        async with started("run", "--home", str(home.root)) as process:
            await until(process, "♥")
            running_town.mind.answer = answering
            ballast = fill(disk)
            running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
            told = await until(process, "Disk full")
            assert process.returncode is None
            assert "Tin, and you hear each drop of it." not in running_town.texts("rowan")
            ballast.unlink()
            told += await until(process, "Sent reply")
            assert "Traceback" not in told
    assert running_town.texts("rowan").count("Tin, and you hear each drop of it.") == 1


async def test_a_taken_port_is_named(running_town: RunningTown) -> None:
    port = running_town.atproto_url.rsplit(":", 1)[1]
    one_clear_line(await soul("demo", "--port", port, "--minutes", "1"), port)


async def test_a_second_process_in_the_same_home_is_turned_away(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with started("run", "--home", str(home.root)) as first:
        await until(first, "♥")
        one_clear_line(await soul("run", "--home", str(home.root)), f"pid {first.pid}", "--home", code=75)
        one_clear_line(await soul("walk", "--home", str(home.root)), f"pid {first.pid}", code=75)


async def test_a_service_that_is_down_is_waited_for(running_town: RunningTown, tmp_path: Path) -> None:
    home = running_town.make_home("rowan", ATPROTO_SERVICE_URL="http://127.0.0.1:9")
    async with started("run", "--home", str(home.root)) as process:
        told = await until(process, "trying again")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0
    assert "Bluesky cannot be reached" in told


async def test_ctrl_c_ends_within_five_seconds_with_code_0(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with started("run", "--home", str(home.root)) as process:
        await until(process, "♥")
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0


@pytest.mark.parametrize("where", [".", "..", "notes"])
async def test_flush_deletes_nothing_that_is_not_a_memory(running_town: RunningTown, where: str) -> None:
    home = running_town.make_home("rowan", MEMORY_DIR=where)
    notes = home.root / "notes"
    notes.mkdir()
    (notes / "diary.txt").write_text("dear diary")
    one_clear_line(
        await soul("run", "--home", str(home.root), "--flush-all"), "nothing was deleted", "MEMORY_DIR", code=78
    )
    assert (notes / "diary.txt").read_text() == "dear diary"
    assert home.soul.exists()


async def test_an_empty_memory_dir_is_the_usual_one(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    home.env.write_text(home.env.read_text() + "\nMEMORY_DIR=\n")
    async with started("run", "--home", str(home.root)) as process:
        await until(process, "♥")
    assert (home.root / ".memory" / "soul.db").exists()


async def test_an_unknown_time_zone_is_named(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_TIMEZONE="Mars/Base")
    one_clear_line(await soul("run", "--home", str(home.root)), "SOUL_TIMEZONE must be an IANA time zone", code=78)


async def test_a_clock_that_was_ahead_does_not_silence_the_soul_for_months(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    home.memory.mkdir()
    ahead = iso(SystemClock().now() + timedelta(days=400))
    schedule = {"lastExpression": ahead, "nextExpression": ahead, "_memoryVersion": "0.1.0"}
    (home.memory / "expression_schedule.json").write_text(json.dumps(schedule))
    async with started("run", "--home", str(home.root)) as process:
        await until(process, "Sent post", seconds=40)

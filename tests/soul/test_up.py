"""Proves that several SOULs live under one supervisor as if each were alone, and that none outlives it."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from modules.runtime.home import Home, HomeLock, lock_holder
from soul.supervisor import fork_problem
from tests.patience import HANG_S
from tests.patience import until as comes
from tests.program import until
from tests.running_town import RunningTown, replying

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes in /proc")
SECRET = "only-rowan-may-know-this-token"


@asynccontextmanager
async def up(*homes: Home, **environment: str) -> AsyncIterator[Process]:
    """Start the supervisor of these homes; when the block is left, it and all that it started are gone."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.soul.hasty_up"),
        *(str(home.root) for home in homes),
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
        await comes(lambda: not any(lock_holder(home) == process.pid for home in homes))


async def ends(process: Process) -> tuple[int, str]:
    """Ask the supervisor to end as a service does; return its exit code and what it printed since."""
    process.send_signal(signal.SIGTERM)
    told, _ = await asyncio.wait_for(process.communicate(), HANG_S)
    return process.returncode or 0, told.decode()


async def answers(town: RunningTown, name: str, count: int) -> None:
    """Mention `name` in a post, and wait until it has answered `count` times in all."""
    town.network.post_as(town.account(f"kit{count}"), f"Morning @{name}.test, which roof is louder in the rain?")
    await comes(lambda: len(town.texts(name)) >= count, what=f"answer {count} of {name}")


def memory_holds(pid: int, text: str) -> bool:
    """Return whether `text` stands anywhere in the memory that a process can write to."""
    process = Path(f"/proc/{pid}")
    with (process / "mem").open("rb") as memory:
        for line in (process / "maps").read_text().splitlines():
            where, rights, *_ = line.split()
            if rights.startswith("rw"):
                begin, end = (int(one, 16) for one in where.split("-"))
                memory.seek(begin)
                if text.encode() in memory.read(end - begin):
                    return True
    return False


def folder_of(pid: int) -> Path:
    return Path(f"/proc/{pid}/cwd").readlink()


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


@pytest.mark.slow
async def test_a_crash_of_one_touches_no_other_and_the_one_is_started_again(running_town: RunningTown) -> None:
    running_town.mind.answer = replying("Slate.")
    rowan = running_town.make_home("rowan", SOUL_SPEED="50", SLEEP="off", SPACE_TOKEN=SECRET)
    wren = running_town.make_home("wren", SOUL_SPEED="50", SLEEP="off")
    async with up(rowan, wren, AGENT_BLUESKY_PASSWORD="of-nobody", AGENT_NAME="nobody") as process:
        assert "AGENT_BLUESKY_PASSWORD, AGENT_NAME" in await until(process, "Not used")
        for name in ("rowan", "wren"):
            await answers(running_town, name, 1)
        first, other = lock_holder(rowan), lock_holder(wren)
        assert first
        assert other
        assert len({first, other, process.pid}) == 3
        assert folder_of(first) == rowan.root
        assert (memory_holds(first, SECRET), memory_holds(other, SECRET)) == (True, False)
        assert not memory_holds(process.pid, SECRET)
        assert threads_of(process.pid) == 1

        os.kill(first, signal.SIGKILL)
        await until(process, "ended by signal 9")
        running_town.mind.answer = replying("Tin, by a long way.")  # the same words are not sent twice within a minute
        await answers(running_town, "rowan", 2)
        await answers(running_town, "wren", 2)
        assert lock_holder(rowan) not in {None, first}
        assert lock_holder(wren) == other
        assert (await ends(process))[0] == 0
    assert (lock_holder(rowan), lock_holder(wren)) == (None, None)


@pytest.mark.slow
async def test_a_home_that_cannot_live_costs_that_one_only_and_one_line(
    running_town: RunningTown, tmp_path: Path
) -> None:
    taken, well = running_town.make_home("rowan"), running_town.make_home("wren", SOUL_SPEED="50", SLEEP="off")
    broken = running_town.make_home("ada", SOUL_APPROVAL="perhaps")
    clock = running_town.network.clock
    with HomeLock(taken, agent_name="rowan", started_at=clock.now()):
        async with up(taken, broken, well, Home.at(tmp_path / "nowhere")) as process:
            await answers(running_town, "wren", 1)
            code, told = await ends(process)
    assert code == 1
    complaints = [line for line in told.splitlines() if line.startswith("✗")]
    assert len(complaints) == 3, told
    for root, why in (
        (taken.root, "already lived in"),
        (broken.root, "SOUL_APPROVAL"),
        (tmp_path / "nowhere", "no SOUL"),
    ):
        assert [why in line for line in complaints if f"{root}: " in line] == [True], told
    assert "Traceback" not in told


@pytest.mark.slow
async def test_one_page_tells_of_all_and_leads_to_the_page_of_each(running_town: RunningTown) -> None:
    homes = [running_town.make_home(name, SOUL_SPEED="50", SLEEP="off") for name in ("rowan", "wren")]
    broken = running_town.make_home("ada", SOUL_APPROVAL="perhaps")
    async with up(*homes, broken) as process:
        address = (await until(process, "Your page on all: ")).rpartition(": ")[2].strip()
        for name in ("rowan", "wren"):
            await answers(running_town, name, 1)
        async with httpx.AsyncClient(follow_redirects=True) as owner, httpx.AsyncClient() as stranger:
            assert (await stranger.get(address.partition("?")[0])).status_code == httpx.codes.UNAUTHORIZED
            page = (await owner.get(address)).text
            links = [part.partition('"')[0] for part in page.split('<a href="http')[1:]]
            assert len(links) == 2
            for link in links:
                assert "Awake" in (await owner.get(f"http{link}")).text
        assert "SOUL_APPROVAL" in page
        assert page.count("is awake") == 2


@pytest.mark.slow
async def test_when_the_supervisor_is_killed_no_soul_lives_on(running_town: RunningTown) -> None:
    homes = [running_town.make_home(name, SLEEP="off") for name in ("rowan", "wren")]
    async with up(*homes) as process:
        await comes(lambda: all(lock_holder(home) for home in homes), what="two lives")
        process.kill()
        await comes(lambda: not any(lock_holder(home) for home in homes), what="their end")


TASKS = """
import contextlib, os, select, sys, time
from common.clock import SystemClock
from soul.supervisor import SupervisedProcess, Supervisor

def fails():
    os.write(1, b"began\\n")
    return 1

def is_deaf():
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b"deaf\\n")
    time.sleep(600)

page_reads, page_writes = os.pipe()

def ends_after_the_page():
    page = int(os.read(page_reads, 20))
    with contextlib.suppress(ProcessLookupError):
        select.select([os.pidfd_open(page)], [], [])
    return int(sys.argv[2])

def refuses():
    os.write(page_writes, str(os.getpid()).encode())
    return 2

work = {"fails": fails, "is_deaf": is_deaf, "ends": ends_after_the_page}[sys.argv[1]]
members = [SupervisedProcess("one", work)]
if work is ends_after_the_page:
    members += [SupervisedProcess("page", refuses, keeps_all=False)]
sys.exit(Supervisor(members, SystemClock(), restart_s=0, end_s=0.1).run())
"""


async def test_what_fails_again_and_again_is_left_alone() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", TASKS, "fails", stdout=asyncio.subprocess.PIPE)
    told, _ = await asyncio.wait_for(process.communicate(), HANG_S)
    assert (process.returncode, told.count(b"began\n")) == (1, 5)
    assert told.count(b"left alone") == 1


@pytest.mark.parametrize(("ended", "code"), [(0, 0), (78, 1)])
async def test_the_exit_code_tells_of_the_souls_and_not_of_the_page(ended: int, code: int) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", TASKS, "ends", str(ended), stdout=asyncio.subprocess.PIPE
    )
    told, _ = await asyncio.wait_for(process.communicate(), HANG_S)
    assert (process.returncode, b"page: ended with code 2" in told) == (code, True)


@pytest.mark.parametrize(("platform", "can_fork", "problem"), [("linux", True, ""), ("darwin", True, "macOS")])
def test_where_a_fork_is_not_safe_it_says_so_and_begins_nothing(platform: str, problem: str, *, can_fork: bool) -> None:
    found = fork_problem(platform, can_fork=can_fork)
    assert (bool(found), problem in found) == (bool(problem), True)
    assert fork_problem("win32", can_fork=False)


async def test_what_does_not_end_in_time_is_killed_and_told() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", TASKS, "is_deaf", stdout=asyncio.subprocess.PIPE
    )
    await until(process, "deaf")
    code, told = await ends(process)
    assert code == 1
    assert "killed" in told

"""Proves that a demo that is killed leaves no children: each watches a pipe that closes when its parent ends."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.patience import until
from tests.soul.test_demo import demo, living
from town.residents import RESIDENTS

_WAITS = "import sys, time; from soul.parent_watch import end_with; end_with(int(sys.argv[1]), grace_s={}); {}"
_DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "


@pytest.mark.parametrize(("deaf", "code"), [("", -signal.SIGTERM), (_DEAF, 1)])
async def test_a_child_ends_when_the_other_end_of_its_pipe_is_gone(deaf: str, code: int) -> None:
    watched, held = os.pipe()
    ready = "print('ready', flush=True); time.sleep(600)"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        deaf + _WAITS.format(0.1, ready),
        str(watched),
        pass_fds=(watched,),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    assert await process.stdout.readline() == b"ready\n"
    assert process.returncode is None
    os.close(held)
    os.close(watched)
    assert await process.wait() == code


async def test_a_child_that_starts_anew_in_its_place_still_watches(tmp_path: Path) -> None:
    watched, held = os.pipe()
    anew = "import os; again = [sys.executable, '-c', open(sys.argv[2]).read(), sys.argv[1], sys.argv[2], 'again']; "
    ready = f"{anew}print(len(sys.argv), flush=True); len(sys.argv) == 4 or os.execv(sys.executable, again); "
    script = tmp_path / "child.py"
    script.write_text(_WAITS.format(0.1, f"{ready}time.sleep(600)"))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script.read_text(),
        str(watched),
        str(script),
        pass_fds=(watched,),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    assert [await process.stdout.readline() for _ in range(2)] == [b"3\n", b"4\n"]
    os.close(held)
    os.close(watched)
    assert await process.wait() == -signal.SIGTERM


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_killed_demo_leaves_no_children(tmp_path: Path) -> None:
    async with demo(tmp_path) as (process, _):
        await until(lambda: len(living(tmp_path)) == len(RESIDENTS), what="all residents")
        pids = living(tmp_path)
        process.kill()
        await process.wait()
    await until(lambda: not any(_is_running(pid) for pid in pids), what="the end of all residents")


def _is_running(pid: int) -> bool:
    """Return whether the process runs; a zombie, which its parent has not reaped yet, does not."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return not stat.exists() or stat.read_text("ascii").rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False

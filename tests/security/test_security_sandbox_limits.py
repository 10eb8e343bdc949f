"""A program in the sandbox cannot take more than its share, nor outlive its run: bombs, floods and orphans all end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from modules.runtime.sandbox.cgroup import open_group
from modules.runtime.sandbox.runner import Watch, see_to_the_end, start_bare
from tests.patience import until
from tests.security.sandbox_host import Host, bounded, running

ROOT = Path(__file__).resolve().parents[2]
PTRACE_ATTACH = 16

BOMBS = {
    "that wait": "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(60)",
    "that fork in turn": "import os\nwhile True: os.fork()",
    "that leave their parents": "import os, time\nwhile True:\n    if os.fork() == 0:\n        os.setsid()\n"
    "        if os.fork() == 0: time.sleep(60)\n        os._exit(0)",
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_fork_bomb_ends(host: Host, bomb: str) -> None:
    ran = await host.python(BOMBS[bomb] + "  # bomb-under-test", processes=100, wall_s=15)
    assert ran.ended == "processes", ran
    assert running("bomb-under-test") == []


THREADS = """
import threading, time
begun = 0
try:
    while begun < 1000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        begun += 1
finally:
    print(begun, flush=True)
"""


async def test_the_kernel_itself_limits_processes_and_threads_for_root_too(host: Host) -> None:
    group = open_group(1, 1 << 30)
    if group is None and os.geteuid() == 0:
        pytest.skip("no control group can be made here")
    if group is not None:
        group.remove()
    ran = await host.python(THREADS, processes=50)
    assert not ran.success
    assert ran.ended == ("processes" if group is not None else "exited")
    assert int(ran.stdout or 0) < 100


async def test_one_process_gets_no_more_memory_than_its_limit(host: Host) -> None:
    ran = await host.python("x = b'x' * (300 << 20)", memory_bytes=100 << 20)
    assert ran.ended == "memory"


async def test_what_is_reserved_and_never_used_counts_for_nothing(host: Host) -> None:
    ran = await host.python("import mmap; mmap.mmap(-1, 16 << 30); print('reserved')")
    assert (ran.ended, ran.stdout) == ("exited", "reserved\n")


async def test_what_the_kernel_ends_for_want_of_memory_ended_by_memory(host: Host) -> None:
    group = open_group(9, 1 << 30)
    if group is not None:
        group.remove()
    if group is None or group.memory is None:
        pytest.skip("no control group can limit memory here")
    assert await asyncio.to_thread(_ended_by_the_kernel) == "memory"


def _ended_by_the_kernel() -> str:
    """How a run ends that the watch lets have more than its group does."""
    limits, group = bounded(), open_group(99, 100 << 20)
    env = {"PATH": os.environ["PATH"]}
    try:
        child = start_bare(["python3", "-c", "x = b'x' * (300 << 20)"], ROOT, env, {}, group)
        return see_to_the_end(child, Watch(ROOT / "docs", limits), limits, Event()).ended
    finally:
        assert group is not None
        group.remove()


async def test_many_processes_get_no_more_memory_together(host: Host) -> None:
    script = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        held = b"x" * (40 << 20)
        time.sleep(20)
time.sleep(20)
"""
    ran = await host.python(script, memory_bytes=150 << 20)
    assert ran.ended == "memory"


@pytest.mark.slow
async def test_many_small_files_end_at_the_quota(host: Host) -> None:
    script = """
import itertools, os
for number in itertools.count():
    os.makedirs(f"d{number // 500}", exist_ok=True)
    open(f"d{number // 500}/{number}", "w").write("x")
"""
    ran = await host.python(script, disk_bytes=4 << 20)
    assert ran.ended == "disk"
    assert sum(1 for _ in host.work.rglob("*")) < 200_000


async def test_big_files_end_at_the_quota_and_one_at_its_own(host: Host) -> None:
    ran = await host.sh("dd if=/dev/zero of=big bs=1M count=100", file_bytes=10 << 20)
    assert (ran.ended, ran.returncode) == ("exited", 128 + signal.SIGXFSZ)
    ran = await host.sh("i=0; while :; do head -c 5000000 /dev/zero > f$i; i=$((i+1)); done", disk_bytes=40 << 20)
    assert ran.ended == "disk"
    assert sum(path.stat().st_size for path in host.work.iterdir()) < 2 << 30


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])  # noqa: S108 - those inside
async def test_what_lives_in_memory_is_bounded_too(host: Host, place: str) -> None:
    ran = await host.sh(f"dd if=/dev/zero of={place}/big bs=1M count=64", tmp_bytes=8 << 20)
    assert "No space left" in ran.stderr


async def test_endless_output_is_cut_and_the_rest_let_go(host: Host) -> None:
    ran = await host.sh("yes | head -c 300000 | tee /dev/stderr; yes & yes >&2 & exit 3", output_bytes=100_000)
    assert (ran.ended, ran.returncode, ran.truncated) == ("exited", 3, True)
    assert (len(ran.stdout), len(ran.stderr)) == (100_000, 100_000)


@pytest.mark.slow
async def test_what_burns_the_processor_ends(host: Host) -> None:
    ran = await host.sh("while :; do :; done", wall_s=0.5)
    assert ran.ended == "timeout"
    ran = await host.sh("while :; do :; done", cpu_s=1)
    assert (ran.ended, ran.returncode) == ("exited", 128 + signal.SIGKILL)


async def test_nothing_outlives_its_run(host: Host) -> None:
    ran = await host.sh("setsid nohup sleep 313371 >/dev/null 2>&1 & (sleep 313371 &) ; echo gone")
    assert ran.stdout == "gone\n"
    assert running("313371") == []


def begun(mark: str, *, begins: str = "") -> bool:
    return running(mark, begins=begins) != []


def gone(mark: str) -> bool:
    return running(mark) == []


async def test_a_run_that_is_called_off_is_over_at_once(host: Host) -> None:
    task = asyncio.create_task(host.sh("sleep 424243"))
    await until(partial(begun, "424243"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running("424243") == []


async def life_that_runs(mark: str, host: Host) -> asyncio.subprocess.Process:
    """A process of its own that runs a program in the sandbox as a SOUL would."""
    code = (
        "import asyncio, pathlib, sys; from common.redact import Redactor;"
        "from modules.runtime.sandbox.runner import Sandbox;"
        "asyncio.run(Sandbox(redactor=Redactor()).run(['sleep', sys.argv[2]], pathlib.Path(sys.argv[1])))"
    )
    return await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(host.work), mark, cwd=ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["bwrap\0", "sleep\0"], ids=["while it starts", "while it runs"])
async def test_when_the_soul_is_killed_its_runs_die_with_it(host: Host, moment: str) -> None:
    for attempt in range(6):
        mark = f"{os.getpid()}{len(moment)}{attempt}"
        soul = await life_that_runs(mark, host)
        await until(partial(begun, mark, begins=moment))
        await asyncio.sleep(attempt / 200)
        soul.kill()
        await soul.wait()
        await until(partial(gone, mark))


@pytest.mark.slow
async def test_a_sandbox_that_is_slow_to_start_does_not_outlive_the_soul(host: Host) -> None:
    for attempt in range(6):
        mark = f"{os.getpid()}s{attempt}"
        soul = await life_that_runs(mark, host)
        while not (starting := running(mark, begins="bwrap\0")):
            pass
        with suppress(ProcessLookupError):
            os.kill(starting[0], signal.SIGSTOP)
        soul.kill()
        await soul.wait()
        with suppress(ProcessLookupError):
            os.kill(starting[0], signal.SIGCONT)
        await until(partial(gone, mark))

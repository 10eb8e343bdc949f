"""Proves that what must work inside the sandbox works, and that what must never get inside is not even tried.

A program in the sandbox cannot take more than its share, nor outlive its run: bombs, floods and orphans all end.
"""

import asyncio
import os
import shutil
import signal
import statistics
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from common.errors import PolicyBlocked, SoulError
from common.redact import Redactor
from modules.runtime.sandbox.cgroup import open_group
from modules.runtime.sandbox.policy import Limits, Ran
from modules.runtime.sandbox.runner import Sandbox, Watch, see_to_the_end, start_bare
from tests.patience import until
from tests.security.sandbox_host import SECRET, Host, bounded, running

ROOT = Path(__file__).resolve().parents[2]
PTRACE_ATTACH = 16
ORDINARY_USER = 65534


async def test_git_works_inside(host: Host) -> None:
    identity = {"GIT_AUTHOR_NAME": "Rowan", "GIT_AUTHOR_EMAIL": "rowan@example.com"}
    identity |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in identity.items()}
    script = (
        "git init -q . && echo hello > a.txt && git add . && git commit -qm 'A start' && git log --format='%an: %s'"
    )
    ran = await host.sandbox.run(["sh", "-c", script], host.work, env=identity)
    assert (ran.stdout, ran.returncode) == ("Rowan: A start\n", 0), ran
    assert (host.work / "a.txt").read_text() == "hello\n"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler here")
async def test_a_compiler_and_what_it_makes_work_inside(host: Host) -> None:
    (host.work / "a.c").write_text('#include <stdio.h>\nint main(void) { printf("%d\\n", 6 * 7); return 5; }\n')
    ran = await host.sh("cc -o a a.c && ./a")
    assert (ran.stdout, ran.returncode, ran.ended, ran.warning) == ("42\n", 5, "exited", ""), ran


async def test_python_works_inside_with_threads_processes_and_temporary_files(host: Host) -> None:
    ran = await host.python(
        """
import getpass, multiprocessing, os, pathlib, socket, ssl, tempfile, threading
with multiprocessing.Pool(2) as pool: print(pool.map(abs, [-1, 2]))
thread = threading.Thread(target=print, args=("thread",)); thread.start(); thread.join()
print(tempfile.gettempdir(), pathlib.Path.home(), getpass.getuser(), socket.gethostname(), os.getcwd())
print(socket.gethostbyname("localhost"), len(ssl.create_default_context().get_ca_certs()) > 0, "grüß")
"""
    )
    assert ran.stdout == "[1, 2]\nthread\n/tmp /tmp soul soul /work\n127.0.0.1 True grüß\n", ran


async def test_a_command_that_is_not_there_says_so(host: Host) -> None:
    ran = await host.sandbox.run(["no-such-program"], host.work)
    assert not ran.success
    assert "no-such-program" in ran.stderr


async def test_a_room_that_cannot_be_built_says_why(host: Host) -> None:
    bwrap = host.work / "bwrap"
    bwrap.write_text('#!/bin/sh\nexec bwrap --ro-bind /not/there /x "$@"\n')
    bwrap.chmod(0o755)
    try:
        ran = await Sandbox(redactor=Redactor(), bwrap=str(bwrap)).run(["true"], host.work)
    except SoulError as error:  # bubblewrap ended before its first process could be limited
        said = str(error)
    else:
        said = ran.stderr
        assert (ran.ended, ran.success) == ("exited", False)
    assert "/not/there" in said


async def test_a_signal_is_told_as_a_shell_tells_it(host: Host) -> None:
    ran = await host.sh("kill -TERM $$")
    assert (ran.ended, ran.returncode) == ("exited", 128 + signal.SIGTERM)


async def test_a_run_costs_little(host: Host) -> None:
    costs = sorted([await cost_ms(host) for _ in range(10)])
    sys.stdout.write(
        f"\na run of `true`: processor time median {statistics.median(costs):.0f} ms, least {costs[0]:.0f} ms\n"
    )
    assert costs[0] < 500


async def cost_ms(host: Host) -> float:
    """Return the processor time in ms of a run and of the processes that it started."""
    before = os.times()
    assert (await host.sandbox.run(["true"], host.work)).success
    return sum(after - began for after, began in zip(os.times()[:4], before[:4], strict=True)) * 1000


@pytest.mark.skipif(os.geteuid() != 0, reason="we are nobody special already")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("script", ["id -u", "b() { b | b & }; b; sleep 9", "echo x > /proc/sys/kernel/core_pattern"])
async def test_an_ordinary_user_is_served_as_well_as_root(sandbox: None, script: str) -> None:
    # NOTE(self): every run of pytest closes the folder above `tmp_path` to other users when it begins.
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        os.chown(work, ORDINARY_USER, ORDINARY_USER)
        ran = await asyncio.to_thread(as_nobody, ["sh", "-c", script], work)
    if script == "id -u":
        assert ran.get("stdout") == "1000\n", ran
    elif "core" in script:
        assert "cannot create" in str(ran.get("stderr")), ran
    else:  # the kernel's own limit may end the shell before the watch counts so many
        assert ran.get("ended") == "processes" or "Cannot fork" in str(ran.get("stderr")), ran


def as_nobody(command: list[str], work: Path) -> dict[str, object]:
    """Run a command in the sandbox as an unprivileged user; return the fields of its result, or an error."""
    received, say = os.pipe()
    if pid := os.fork():
        os.close(say)
        with os.fdopen(received) as pipe:
            told = pipe.read()
        os.waitpid(pid, 0)
        return dict(eval(told))  # noqa: S307 - written by the other half of this function
    try:
        os.setgroups([])
        os.setpriority(os.PRIO_PROCESS, 0, 15)  # lower than that of a run, as under `nice`
        os.setresgid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER)
        os.setresuid(ORDINARY_USER, ORDINARY_USER, ORDINARY_USER)
        limits = bounded(processes=100)
        ran: Ran | SoulError
        try:
            ran = asyncio.run(Sandbox(redactor=Redactor()).run(command, work, limits=limits))
            os.write(say, repr(asdict(ran)).encode())
        except Exception as error:
            os.write(say, repr({"error": repr(error)}).encode())
    finally:
        os._exit(0)


# --- What is not even tried --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "env"),
    [
        (["echo", SECRET], {}),
        (["sh", "-c", f"curl -H 'Authorization: {SECRET}'"], {}),
        (["true"], {"TOKEN": SECRET}),
        (["true"], {"TOKEN": SECRET.encode().hex()}),
        (["true"], {SECRET: "x"}),
        (["true"], {"GH": "ghp_" + "a" * 36}),
        (["true"], {"A=B": "x"}),
        (["true"], {"A": "x\0y"}),
        (["tr\0ue"], {}),
        ([], {}),
    ],
)
async def test_a_secret_never_gets_inside(host: Host, command: list[str], env: dict[str, str]) -> None:
    with pytest.raises(PolicyBlocked) as blocked:
        await host.sandbox.run(command, host.work, env=env)
    assert SECRET not in str(blocked.value)


@pytest.mark.parametrize("folder", [".", "home", "home/below", "link", "absent", "outside.txt", "/"])
async def test_a_folder_from_which_private_files_can_be_reached_is_no_work_folder(host: Host, folder: str) -> None:
    (host.root / "home" / "below").mkdir()
    (host.root / "work" / "link").symlink_to(host.root / "home")
    with pytest.raises(PolicyBlocked):
        await host.sandbox.run(["true"], host.work / "link" if folder == "link" else host.root / folder)


async def test_without_bubblewrap_nothing_runs_unless_the_owner_insists(tmp_path: Path) -> None:
    with pytest.raises(PolicyBlocked) as blocked:
        await Sandbox(redactor=Redactor(), bwrap=None).run(["touch", "it-ran"], tmp_path)
    assert "bubblewrap" in blocked.value.remedy
    assert not (tmp_path / "it-ran").exists()


async def test_a_sandbox_that_does_not_work_is_no_reason_to_go_without(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'no permission to make namespaces' >&2\nexit 1\n")
    broken.chmod(0o755)
    sandbox = Sandbox(redactor=Redactor(), bwrap=str(broken), unsafe=True)
    with pytest.raises(SoulError, match="no permission to make namespaces"):
        await sandbox.run(["touch", "it-ran"], tmp_path)
    assert not (tmp_path / "it-ran").exists()


@pytest.mark.skipif(not os.access("/proc/self/oom_score_adj", os.W_OK), reason="here /proc cannot be written to")
async def test_where_the_owner_insists_all_other_limits_hold_and_the_result_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOUL_TEST_TOKEN", SECRET)
    sandbox = Sandbox(redactor=Redactor([SECRET]), bwrap=None, unsafe=True)
    ran = await sandbox.run(["sh", "-c", "env; pwd; echo oops >&2; exit 4"], tmp_path)
    assert (ran.returncode, ran.stderr, ran.ended) == (4, "oops\n", "exited")
    assert f"HOME={tmp_path}\n" in ran.stdout
    assert SECRET not in ran.stdout
    assert "WITHOUT a sandbox" in ran.warning
    ran = await sandbox.run(["sh", "-c", "sleep 646465 & sleep 646465"], tmp_path, limits=Limits(wall_s=0.3))
    assert ran.ended == "timeout"
    assert running("646465") == []
    ran = await sandbox.run(
        ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=9"], tmp_path, limits=Limits(file_bytes=1 << 20)
    )
    assert ran.returncode == 128 + signal.SIGXFSZ
    with pytest.raises(PolicyBlocked):
        await sandbox.run(["echo", SECRET], tmp_path)


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
    """Return how a run ends that the watch allows more memory than its group does."""
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
    ran = await host.sh("yes | head -c 300000 | tee /dev/stderr; yes >&2 & echo 1 failed; exit 3", output_bytes=100_000)
    assert (ran.ended, ran.returncode) == ("exited", 3)
    assert ran.stdout.endswith("\n1 failed\n")
    assert all(100_000 < len(one) < 100_050 for one in (ran.stdout, ran.stderr))


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
    """Start a process that runs a program in the sandbox as a SOUL would."""
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
        mark = f"{os.getpid()}9{attempt}"
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

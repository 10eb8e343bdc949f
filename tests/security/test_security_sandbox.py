"""A program in the sandbox cannot see, change or outlive anything of the machine but its work folder.

Each attack is really made, from inside, and the host is looked at afterwards. Without bubblewrap these tests are
skipped, and fail where SOUL_NEED_SANDBOX=1.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest

from common.errors import PolicyBlocked, SoulError
from common.redact import Redactor
from modules.hands.runner import Hands
from modules.hands.types import Limits, Ran
from tests.security.sandbox_house import SECRET, SLEEP_S, Host, bounded, open_host, running

ROOT = Path(__file__).resolve().parents[2]
PTRACE_ATTACH = 16


@pytest.fixture(scope="module")
def sandbox() -> None:
    why = asyncio.run(Hands(redactor=Redactor()).probe())
    if why and os.environ.get("SOUL_NEED_SANDBOX") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)


@pytest.fixture
def host(sandbox: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("SOUL_TEST_TOKEN", SECRET)
    with open_host(tmp_path) as host:
        yield host
        assert host.unharmed()


# {env}: the host's .env · {outside}: a file beside the work folder · {pid}: a process of the host · {own}: the SOUL's
PRYING = {
    "the settings by their path": "cat {env}",
    "the settings by way of the work folder": "cat ../home/.env ../../home/.env",
    "the settings by a link": "ln -s {env} link && cat link",
    "the settings by the root of the first process": "cat /proc/1/root{env} /proc/1/cwd/../home/.env",
    "the environment of the SOUL": "cat /proc/{own}/environ",
    "the environment of every process": "cat /proc/*/environ /proc/*/task/*/environ; env",
    "the environment of a process of the host": "cat /proc/{pid}/environ",
    "what others are doing": "cat /proc/*/cmdline; ps -ef",
    "open files of others": "ls -l /proc/*/fd; timeout 1 cat /proc/1/fd/*",
    "the memory of the machine": "cat /dev/mem /dev/kmem /proc/kcore /dev/vda /dev/sda | head -c 1000",
}
OUTSIDE = {
    "the settings": "echo x > {env}",
    "a file beside the work folder": "echo x > {outside}; echo x > ../outside.txt; rm -f {outside}",
    "a file by a link": "ln -s {outside} link && echo x > link",
    "a new file beside the work folder": "mkdir -p {root}/new; touch {root}/new.txt ../new.txt",
    "programs": "touch /usr/bin/evil /bin/evil /usr/local/bin/evil /lib/evil",
    "the system's settings": "touch /etc/evil; echo x >> /etc/passwd; echo x > /etc/ld.so.preload",
    "the root and the devices": "touch /evil /dev/evil /var/evil /proc/evil",
    "the kernel's settings": "echo x > /proc/sys/kernel/core_pattern; echo x > /proc/sys/kernel/hostname;"
    " echo x > /proc/sys/kernel/modprobe; echo 1 > /proc/sys/vm/overcommit_memory; echo b > /proc/sysrq-trigger",
    "the host's name": "hostname evil",
}
BREAKING = {
    "mounting over the work folder": "mount -t tmpfs none /work",
    "making programs writable": "mount -o remount,rw /usr",
    "making the kernel's settings writable": "mount -o remount,rw /proc; mount -o remount,rw,bind /proc/sys",
    "mounting another /proc": "mkdir p; mount -t proc proc p",
    "taking a mount away": "umount /proc; umount /usr; umount /etc/passwd",
    "a user namespace": "unshare -U true",
    "a user namespace with root": "unshare -Ur true",
    "a mount namespace": "unshare -m true",
    "a network namespace": "unshare -n true",
    "the namespaces of the first process": "nsenter -t 1 -a true",
    "another root": "chroot / true",
    "another user": "setpriv --reuid 0 true; setpriv --reuid 65534 true",
    "a privileged program": "su -c true root </dev/null; mount; test -u /work/su",
    "a privileged program of its own": "cp /bin/sh sh && chmod u+s sh && chown 0:0 sh",
    "a device": "mknod disk b 8 0",
    "a hard link to a file of the host": "ln /etc/passwd twin; ln /usr/bin/env twin; ln /proc/1/root{env} twin",
    "a module": "insmod x; modprobe tun",
    "the clock": "date -s 2000-01-01",
}


def told(host: Host, script: str) -> str:
    return script.format(
        env=host.env_file,
        outside=host.root / "outside.txt",
        root=host.root,
        pid=host.sleeper.pid,
        own=os.getpid(),
    )


@pytest.mark.parametrize("what", PRYING)
async def test_secrets_cannot_be_read(host: Host, what: str) -> None:
    ran = await host.sh(told(host, PRYING[what]))
    assert SECRET not in ran.stdout + ran.stderr
    assert SLEEP_S not in ran.stdout


@pytest.mark.parametrize("what", OUTSIDE)
async def test_nothing_outside_the_work_folder_can_be_written(host: Host, what: str) -> None:
    ran = await host.sh(told(host, OUTSIDE[what]))
    assert ran.stderr, "it was refused, and said so"


@pytest.mark.parametrize("what", BREAKING)
async def test_nobody_breaks_out(host: Host, what: str) -> None:
    before = await host.sh("cat /proc/self/mountinfo | cut -d' ' -f3- | sort")
    script = "; ".join(
        f"({part.strip()}) && echo GOT:{number}" for number, part in enumerate(told(host, BREAKING[what]).split(";"))
    )
    ran = await host.sh(script)
    harmless = {"a privileged program": "GOT:1\n", "mounting another /proc": "GOT:0\n"}
    got = "".join(f"{line}\n" for line in ran.stdout.splitlines() if line.startswith("GOT"))
    assert got == harmless.get(what, ""), ran
    after = await host.sh("cat /proc/self/mountinfo | cut -d' ' -f3- | sort")
    assert before.stdout.count("\n") == after.stdout.count("\n")


async def test_a_process_of_the_host_cannot_be_hit(host: Host) -> None:
    ran = await host.python(
        f"""
import ctypes, os, signal
for pid in ({host.sleeper.pid}, {os.getpid()}, {os.getppid()}, -1, -{os.getpgid(host.sleeper.pid)}):
    for attempt in (lambda: os.kill(pid, signal.SIGKILL), lambda: os.pidfd_open(pid)):
        try: attempt(); print("hit", pid)
        except OSError: pass
print("attached", ctypes.CDLL(None).ptrace({PTRACE_ATTACH}, {host.sleeper.pid}, 0, 0))
print("seen", sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[:1])
"""
    )
    assert ran.stdout.replace("hit -1\n", "") == "attached -1\nseen [1]\n"


async def test_no_network_is_there(host: Host) -> None:
    ran = await host.python(
        f"""
import socket
def attempt(name, act):
    try: act(); print("reached", name)
    except OSError as error: print("no", name)
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"x", ("8.8.8.8", 53))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", {host.listener.port}), 2))
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect("\\0soul-trap-{host.listener.port}"))
attempt("udp", udp)
attempt("dns", lambda: socket.getaddrinfo("example.com", 80))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("metadata", lambda: socket.create_connection(("169.254.169.254", 80), 2))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
"""
    )
    assert ran.stdout.split("\n")[:7] == ["no tcp", "no unix", "no udp", "no dns", "no raw", "no metadata", "no packet"]


async def test_the_network_is_there_when_asked_for(host: Host) -> None:
    ran = await host.python(
        f"import socket; socket.create_connection(('127.0.0.1', {host.listener.port}), 5)", network=True
    )
    assert ran.success, ran
    assert host.listener.hits == ["tcp"]
    host.listener.hits.clear()


async def test_there_is_no_terminal_to_type_into(host: Host) -> None:
    ran = await host.python(
        """
import fcntl, os, termios
for place in ("/dev/tty", "/dev/stdin", "/dev/stdout", "/dev/console", "/dev/ptmx"):
    try:
        handle = os.open(place, os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(handle, termios.TIOCSTI, b"x")
        print("typed into", place)
    except OSError: pass
"""
    )
    assert ran.stdout == ""


async def test_the_user_inside_has_no_privileges_and_holds_no_files_of_ours(host: Host) -> None:
    ran = await host.sh("id -u; ls /proc/self/fd | wc -l; grep -E 'Cap|NoNewPrivs' /proc/self/status; ls -a /tmp /home")
    user, handles, *status = ran.stdout.split()
    assert (user, handles) == ("1000", "4"), "0, 1, 2 and the folder that ls reads"
    assert {value for value in status if set(value) <= {"0", "1"}} == {"0000000000000000", "1"}
    assert "cannot access '/home'" in ran.stderr


# --- Taking too much ---------------------------------------------------------------------------------------------

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
    assert ran.seconds < 12
    assert running("bomb-under-test") == []


async def test_one_process_gets_no_more_memory_than_its_limit(host: Host) -> None:
    ran = await host.python("x = bytearray(900 << 20)", address_space_bytes=300 << 20)
    assert (ran.ended, ran.returncode) == ("exited", 1)
    assert "MemoryError" in ran.stderr


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
    assert ran.seconds < 8


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
    ran = await host.sh("yes & yes >&2 & sleep 0.5; exit 3", output_bytes=100_000)
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


async def until(true: Callable[[], object], within_s: float = 20) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


def gone(mark: str) -> bool:
    return running(mark) == []


async def test_a_run_that_is_called_off_is_over_at_once(host: Host) -> None:
    task = asyncio.create_task(host.sh("sleep 424243"))
    await until(partial(running, "424243"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running("424243") == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["bwrap\0", "sleep\0"], ids=["while it starts", "while it runs"])
async def test_when_the_soul_is_killed_its_runs_die_with_it(host: Host, moment: str) -> None:
    code = (
        "import asyncio, pathlib, sys; from modules.hands.runner import Hands; from common.redact import Redactor;"
        "asyncio.run(Hands(redactor=Redactor()).run(['sleep', sys.argv[2]], pathlib.Path(sys.argv[1])))"
    )
    for attempt in range(6):
        mark = f"{os.getpid()}{attempt}"
        soul = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(host.work), mark, cwd=ROOT)
        await until(partial(running, mark, begins=moment))
        await asyncio.sleep(attempt / 200)
        soul.kill()
        await soul.wait()
        await until(partial(gone, mark))


# --- What must work ----------------------------------------------------------------------------------------------


async def test_git_works_inside(host: Host) -> None:
    identity = {"GIT_AUTHOR_NAME": "Rowan", "GIT_AUTHOR_EMAIL": "rowan@example.com"}
    identity |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in identity.items()}
    script = (
        "git init -q . && echo hello > a.txt && git add . && git commit -qm 'A start' && git log --format='%an: %s'"
    )
    ran = await host.hands.run(["sh", "-c", script], host.work, env=identity)
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
    ran = await host.hands.run(["no-such-program"], host.work)
    assert not ran.success
    assert "no-such-program" in ran.stderr


async def test_a_room_that_cannot_be_built_is_an_end_too(host: Host) -> None:
    bwrap = host.work / "bwrap"
    bwrap.write_text('#!/bin/sh\nexec bwrap --ro-bind /not/there /x "$@"\n')
    bwrap.chmod(0o755)
    ran = await Hands(redactor=Redactor(), bwrap=str(bwrap)).run(["true"], host.work)
    assert (ran.ended, ran.success) == ("exited", False)
    assert "/not/there" in ran.stderr


async def test_a_signal_is_told_as_a_shell_tells_it(host: Host) -> None:
    ran = await host.sh("kill -TERM $$")
    assert (ran.ended, ran.returncode) == ("exited", 128 + signal.SIGTERM)


async def test_a_run_costs_little(host: Host) -> None:
    times = sorted([await timed(host) for _ in range(10)])
    sys.stdout.write(f"\na run of `true`: median {statistics.median(times):.0f} ms, least {times[0]:.0f} ms\n")
    assert times[0] < 500


async def timed(host: Host) -> float:
    began = time.perf_counter()
    assert (await host.hands.run(["true"], host.work)).success
    return (time.perf_counter() - began) * 1000


@pytest.mark.skipif(os.geteuid() != 0, reason="we are nobody special already")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("script", ["id -u", "b() { b | b & }; b; sleep 9", "echo x > /proc/sys/kernel/core_pattern"])
async def test_an_ordinary_user_is_served_as_well_as_root(sandbox: None, tmp_path: Path, script: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for folder in (tmp_path.parents[1], tmp_path.parent, tmp_path):
        folder.chmod(0o755)
    os.chown(work, 65534, 65534)
    ran = await asyncio.to_thread(as_nobody, ["sh", "-c", script], work)
    if script == "id -u":
        assert ran["stdout"] == "1000\n", ran
    elif "core" in script:
        assert "cannot create" in str(ran["stderr"])
    else:
        assert ran["ended"] == "processes", ran


def as_nobody(command: list[str], work: Path) -> dict[str, object]:
    """Run it with hands that belong to an unprivileged user."""
    heard, say = os.pipe()
    if pid := os.fork():
        os.close(say)
        with os.fdopen(heard) as pipe:
            told = pipe.read()
        os.waitpid(pid, 0)
        return dict(eval(told))  # noqa: S307 - what the other half of this function wrote
    try:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        limits = bounded(processes=100)
        ran: Ran | SoulError
        try:
            ran = asyncio.run(Hands(redactor=Redactor()).run(command, work, limits=limits))
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
        await host.hands.run(command, host.work, env=env)
    assert SECRET not in str(blocked.value)


@pytest.mark.parametrize("folder", [".", "home", "home/below", "link", "absent", "outside.txt", "/"])
async def test_a_folder_from_which_private_files_can_be_reached_is_no_work_folder(host: Host, folder: str) -> None:
    (host.root / "home" / "below").mkdir()
    (host.root / "work" / "link").symlink_to(host.root / "home")
    with pytest.raises(PolicyBlocked):
        await host.hands.run(["true"], host.work / "link" if folder == "link" else host.root / folder)


async def test_without_bubblewrap_nothing_runs_unless_the_owner_insists(tmp_path: Path) -> None:
    with pytest.raises(PolicyBlocked) as blocked:
        await Hands(redactor=Redactor(), bwrap=None).run(["touch", "it-ran"], tmp_path)
    assert "bubblewrap" in blocked.value.remedy
    assert not (tmp_path / "it-ran").exists()
    assert await Hands(redactor=Redactor(), bwrap=None).probe() == "bubblewrap is not installed"


async def test_a_sandbox_that_does_not_work_is_no_reason_to_go_without(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'no permission to make namespaces' >&2\nexit 1\n")
    broken.chmod(0o755)
    hands = Hands(redactor=Redactor(), bwrap=str(broken), unsafe=True)
    with pytest.raises(SoulError, match="no permission to make namespaces"):
        await hands.run(["touch", "it-ran"], tmp_path)
    assert "no permission" in await hands.probe()
    assert not (tmp_path / "it-ran").exists()


async def test_where_the_owner_insists_all_other_limits_hold_and_the_result_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOUL_TEST_TOKEN", SECRET)
    hands = Hands(redactor=Redactor([SECRET]), bwrap=None, unsafe=True)
    ran = await hands.run(["sh", "-c", "env; pwd; echo oops >&2; exit 4"], tmp_path)
    assert (ran.returncode, ran.stderr, ran.ended) == (4, "oops\n", "exited")
    assert f"HOME={tmp_path}\n" in ran.stdout
    assert SECRET not in ran.stdout
    assert "WITHOUT a sandbox" in ran.warning
    ran = await hands.run(["sh", "-c", "sleep 646465 & sleep 646465"], tmp_path, limits=Limits(wall_s=0.3))
    assert ran.ended == "timeout"
    assert running("646465") == []
    ran = await hands.run(
        ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=9"], tmp_path, limits=Limits(file_bytes=1 << 20)
    )
    assert ran.returncode == 128 + signal.SIGXFSZ
    with pytest.raises(PolicyBlocked):
        await hands.run(["echo", SECRET], tmp_path)

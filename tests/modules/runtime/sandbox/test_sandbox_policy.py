"""Proves how the sandbox is built, and what it does not let in.

Proves that a control group of its own limits how many processes a run has, whichever user runs it. Proves which
compilers a run sees. Once a run has ended, its gateway leaves no connection open.
"""

import asyncio
import gc
import resource
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import pytest

from common.redact import Redactor
from modules.runtime.sandbox.cgroup import RunGroup, open_group
from modules.runtime.sandbox.gateway import open_gateway
from modules.runtime.sandbox.policy import PATH, Ended, Limits, Ran, environment, gated, refused, rlimits, sandboxed
from modules.runtime.sandbox.runner import toolchains

FORKS = """
import os, sys, time
sys.stdin.readline()
begun = 0
try:
    while begun < 200:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        begun += 1
except BlockingIOError:
    pass
print(begun, flush=True)
os.killpg(0, 9)
"""


def _places(folder: Path, *, mount: str, groups: str) -> Path:
    proc = folder / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(mount)
    (proc / "cgroup").write_text(groups)
    return proc


def test_what_is_in_it_starts_no_more_processes_than_it_holds() -> None:
    group = open_group(10, 1 << 30)
    if group is None:
        pytest.skip("no control group can be made here")
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        group.add(child.pid)
        assert not group.was_full()
        said, _ = child.communicate("\n", timeout=60)
    assert int(said) == 9
    assert group.was_full()
    group.remove()
    assert not group.pids.exists()


def test_it_is_made_below_the_nearest_group_that_shares_the_limit(tmp_path: Path) -> None:
    root, own = tmp_path / "cg", tmp_path / "cg" / "user" / "soul"
    own.mkdir(parents=True)
    (root / "cgroup.subtree_control").write_text("cpu memory pids\n")
    (root / "user" / "cgroup.subtree_control").write_text("cpu\n")
    mount = f"30 20 0:26 / {root} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
    group = open_group(7, 1 << 30, proc=_places(tmp_path, mount=mount, groups="0::/user/soul\n"))
    assert group is not None
    assert group.pids.parent == root
    assert (group.pids / "pids.max").read_text() == "7"
    assert (group.pids / "memory.max").read_text() == str(1 << 30)
    assert group.memory == group.pids


def test_in_the_older_layout_it_is_made_where_pids_are_counted(tmp_path: Path) -> None:
    (tmp_path / "pids" / "a").mkdir(parents=True)
    (tmp_path / "memory" / "b").mkdir(parents=True)
    mount = (
        f"30 20 0:26 / {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
        f"31 20 0:27 / {tmp_path}/pids rw - cgroup cgroup rw,pids\n"
    )
    group = open_group(7, 1 << 30, proc=_places(tmp_path, mount=mount, groups="8:pids:/a\n4:memory:/b\n0::/\n"))
    assert group is not None
    assert group.pids.parent == tmp_path / "pids" / "a"
    assert group.memory is not None
    assert group.memory.parent == tmp_path / "memory" / "b"
    assert (group.memory / "memory.limit_in_bytes").read_text() == str(1 << 30)


@pytest.mark.parametrize(
    ("mount", "groups"),
    [
        ("", ""),
        ("30 20 0:26 / /nowhere/cgroup rw - cgroup2 cgroup2 rw\n", "0::/\n"),
        ("30 20 0:26 / /nowhere/pids rw - cgroup cgroup rw,pids\n", "8:pids:/\n"),
    ],
)
def test_where_none_can_be_made_there_is_none(tmp_path: Path, mount: str, groups: str) -> None:
    assert open_group(7, 1 << 30, proc=_places(tmp_path, mount=mount, groups=groups)) is None
    assert open_group(7, 1 << 30, proc=tmp_path / "not-there") is None


def test_a_group_that_is_gone_already_is_no_trouble(tmp_path: Path) -> None:
    gone = RunGroup(tmp_path / "gone")
    gone.remove()
    assert not gone.was_full()


SECRET = "hush-hush-4711"
WORK = Path("/somewhere/work")


def line(*, network: bool = False) -> list[str]:
    return sandboxed("bwrap", ["make", "--", "all"], WORK, 4, network=network, limits=Limits(tmp_bytes=77))


def test_the_room_shuts_out_everything_and_only_the_work_folder_is_writable() -> None:
    words = line()
    assert words[0] == "bwrap"
    assert {"--unshare-all", "--disable-userns", "--die-with-parent", "--new-session"} <= set(words)
    assert ("--cap-drop", "ALL") in pairwise(words)
    assert [words[at + 1 : at + 3] for at, word in enumerate(words) if word == "--bind"] == [[str(WORK), "/work"]]
    read_only = {after for before, after in pairwise(words) if before == "--remount-ro"}
    assert read_only == {"/", "/proc", "/dev"}
    sizes = [words[at + 1 : at + 4] for at, word in enumerate(words) if word == "--size"]
    assert [size[1:] for size in sizes] == [["--tmpfs", "/dev/shm"], ["--tmpfs", "/tmp"]]  # noqa: S108 - inside
    assert sizes[1][0] == "77"
    assert words.count("--tmpfs") == 2
    assert words[words.index("--") + 1 :] == gated(["make", "--", "all"])


def test_the_network_comes_only_when_asked_for_and_with_the_names_of_its_resolvers() -> None:
    assert not {"--share-net", "/etc/resolv.conf"} & set(line())
    assert {"--share-net", "/etc/resolv.conf"} <= set(line(network=True))


def test_of_the_environment_only_language_and_screen_are_passed_on() -> None:
    host = {"LANG": "de_DE.UTF-8", "TERM": "dumb", "PATH": "/evil", "HOME": "/root", "AI_GATEWAY_API_KEY": SECRET}
    assert environment(host, {"CI": "true", "LANG": "C"}, home="/h") == {
        "LANG": "C",
        "TERM": "dumb",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/h",
        "USER": "soul",
        "LOGNAME": "soul",
        "SHELL": "/bin/sh",
        "CI": "true",
    }
    assert environment({}, {}, home="/h")["LANG"] == "C.UTF-8"


def test_the_kernel_counts_processes_only_where_it_counts_ours_alone() -> None:
    limits = Limits(processes=10, cpu_s=3, file_bytes=5, open_files=6)
    outside = rlimits(limits, sandbox=False)
    assert outside == {
        resource.RLIMIT_CPU: 3,
        resource.RLIMIT_FSIZE: 5,
        resource.RLIMIT_NOFILE: 6,
        resource.RLIMIT_CORE: 0,
    }
    assert rlimits(limits, sandbox=True) == outside | {resource.RLIMIT_NPROC: 20}


@pytest.mark.parametrize(
    ("command", "env", "work_dir", "why"),
    [
        (["true"], {"CI": "1"}, "/somewhere/work", ""),
        (["true", "KEY=value"], {"EMPTY": ""}, "/somewhere/homeless", ""),
        ([], {}, "/somewhere/work", "no command"),
        (["a\0b"], {}, "/somewhere/work", "cannot be passed on"),
        (["true"], {"A": "\0"}, "/somewhere/work", "cannot be passed on"),
        (["true"], {"A=B": "1"}, "/somewhere/work", "cannot be passed on"),
        (["true"], {"": "1"}, "/somewhere/work", "cannot be passed on"),
        (["echo", f"x{SECRET}x"], {}, "/somewhere/work", "the command holds a secret"),
        (["true"], {"TOKEN": SECRET}, "/somewhere/work", "the variable TOKEN holds a secret"),
        (["true"], {SECRET: "1"}, "/somewhere/work", "the variable [redacted] holds a secret"),
        (["true"], {}, "/", "home would lie within reach"),
        (["true"], {}, "/somewhere", "home would lie within reach"),
        (["true"], {}, "/somewhere/home", "home would lie within reach"),
        (["true"], {}, "/somewhere/home/below", "home would lie within reach"),
    ],
)
def test_some_things_are_not_even_tried(command: list[str], env: dict[str, str], work_dir: str, why: str) -> None:
    told = refused(command, env, Path(work_dir), redactor=Redactor([SECRET]), private=[Path("/somewhere/home")])
    assert (why in told) if why else (told == "")


@pytest.mark.parametrize(
    ("returncode", "ended", "success"), [(0, "exited", True), (1, "exited", False), (0, "timeout", False)]
)
def test_a_run_succeeded_if_it_ended_by_itself_and_well(returncode: int, ended: Ended, *, success: bool) -> None:
    assert Ran(returncode, "", "", ended, 0.1).success is success


@pytest.mark.parametrize(
    "settings", ['default_toolchain = "stable-x86_64"', 'default_toolchain = "stable"', "nothing", ""]
)
def test_the_default_toolchain_of_rustup_is_shared_where_there_is_one(tmp_path: Path, settings: str) -> None:
    home, system = tmp_path / "rustup", tmp_path / "system"
    for name in ("nightly-x86_64", "stable-x86_64"):
        (home / "toolchains" / name / "bin").mkdir(parents=True)
    (home / "settings.toml").write_text(settings)
    found = [one.path.name for one in toolchains({"RUSTUP_HOME": str(home)}, path=str(system)) if one.name == "rust"]
    assert found == (["stable-x86_64"] if "stable" in settings else [])
    system.mkdir()
    (system / "cargo").touch(mode=0o755)
    assert not [one for one in toolchains({"RUSTUP_HOME": str(home)}, path=f"{PATH}:{system}") if one.name == "rust"]


MUCH = b"x" * 8_000_000
"""More than sockets and buffers between two programs hold."""


async def leave_while_data_waits() -> bytes:
    """Close a gateway while a server reads nothing of what the run sends; return the run's first response."""
    ended = asyncio.Event()

    async def takes_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.transport.abort()

    server = await asyncio.start_server(takes_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with open_gateway(frozenset({("127.0.0.1", port)})) as gateway:
        reader, writer = await asyncio.open_unix_connection(gateway.folder / "socket")
        writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
        told = await reader.readuntil(b"\r\n\r\n")
        writer.write(MUCH)
        for _ in range(50):
            await asyncio.sleep(0)
        late = await asyncio.open_unix_connection(gateway.folder / "socket")
    for one in (writer, late[1]):
        one.transport.abort()
    ended.set()
    server.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return told


def test_a_gateway_leaves_no_connection_open() -> None:
    with warnings.catch_warnings(record=True) as noticed:
        warnings.simplefilter("always")
        assert asyncio.run(leave_while_data_waits()).startswith(b"HTTP/1.1 200")
        gc.collect()
    assert [str(one.message) for one in noticed] == []

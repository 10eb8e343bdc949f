"""How the room is built, and what is not let in."""

from __future__ import annotations

import resource
from itertools import pairwise
from pathlib import Path

import pytest

from common.redact import Redactor
from modules.runtime.sandbox.policy import environment, gated, refused, rlimits, sandboxed
from modules.runtime.sandbox.types import Ended, Limits, Ran

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

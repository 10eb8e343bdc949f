"""Computes how a sandbox is set up: visible files, limits, environment, arguments; and the result of a run. Pure.

Inside there are the machine's programs and libraries, read-only; a /proc with no other process in it; a /dev with the
harmless devices; a /tmp, which is also the home: small and in memory, or a folder that several runs share; and the work
folder at /work. Only what is written to these two folders lasts. Nothing else of the machine exists there: no home, no
/etc except what programs need to start, no /sys, no /run, no network. The user inside has no privileges, cannot get
any, and cannot make further namespaces.
"""

import resource
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from common.redact import Redactor

EXEC_TIMEOUT_S = 60.0


MIB = 1024 * 1024

Ended = Literal[
    "exited",  # by itself, with the return code that it chose or the signal that it died of
    "timeout",  # the wall time was over
    "memory",  # all processes together held too much
    "processes",  # there were too many
    "disk",  # the work folder grew too much, or the disk was nearly full
]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run. Times are in seconds, sizes in bytes."""

    wall_s: float = EXEC_TIMEOUT_S
    cpu_s: int = 120  # of each process
    memory_bytes: int = 2048 * MIB  # of all processes together
    processes: int = 256
    open_files: int = 1024
    file_bytes: int = 256 * MIB  # of each file
    disk_bytes: int = 512 * MIB  # growth of the work folder
    tmp_bytes: int = 128 * MIB  # of the /tmp inside, which is in memory
    output_bytes: int = MIB  # of stdout and of stderr, each


@dataclass(frozen=True, slots=True)
class Shared:
    """A path of this machine that a run sees, in a sandbox as `/shared/<name>`; read-only unless `writable`."""

    name: str
    path: Path
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one run. `returncode` is that of a shell: 128 plus the signal's number if a signal ended it.

    If more was written than is kept, the text has the beginning and the end, with a line that says how much is left
    out. `warning` is for the owner.
    """

    returncode: int
    stdout: str
    stderr: str
    ended: Ended
    seconds: float
    warning: str = ""

    @property
    def success(self) -> bool:
        return self.ended == "exited" and self.returncode == 0


WORK = "/work"
SHARED = "/shared"
HOME = "/tmp"  # noqa: S108 - the one inside
UNSAFE_WARNING = "This ran WITHOUT a sandbox (SOUL_UNSAFE_EXEC): it could read and change all that this user can."
UNBOUND_WARNING = (
    "This ran as root, and no control group could be made: the kernel did not limit the number of its processes."
    " Run the SOUL as an ordinary user."
)

_ETC = Path(__file__).resolve().parent / "etc"
_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_SETTINGS = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
_SHM_BYTES = 16 * MIB
_USER = "1000"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_ON = ("LANG", "LC_ALL", "LC_CTYPE", "TERM", "TZ")
_BACKSTOP = 2
_MEMORY_MARGIN = 256 * MIB  # for shared pages and for the kernel's own memory


def sandboxed(
    bwrap: str,
    command: Sequence[str],
    work_dir: Path,
    block_fd: int,
    *,
    network: bool,
    limits: Limits,
    shared: Iterable[Shared] = (),
    tmp: Path | None = None,
) -> list[str]:
    """Return the command line that runs `command` in the sandbox.

    Args:
        bwrap: the path of bubblewrap, version 0.8 or newer.
        command: program and arguments, with paths as they are inside.
        work_dir: the folder that becomes /work.
        block_fd: the first process inside waits until a byte comes from this file descriptor.
        network: whether to keep the machine's network, including its loopback services.
        limits: gives the size of /tmp where that is in memory.
        shared: what else of this machine the command sees, below /shared.
        tmp: the folder that becomes /tmp; None for an empty one in memory.

    """
    home = ("--bind", str(tmp), HOME) if tmp else ("--size", str(limits.tmp_bytes), "--tmpfs", HOME)
    return [
        *(bwrap, "--unshare-all", "--unshare-user", "--disable-userns", *(["--share-net"] if network else [])),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--uid", _USER, "--gid", _USER, "--hostname", "soul"),
        *_read_only(_PROGRAMS),
        *_read_only(_SETTINGS),
        *_read_only(["/etc/resolv.conf"] if network else []),
        *(part for name in ("passwd", "group", "hosts") for part in ("--ro-bind", str(_ETC / name), f"/etc/{name}")),
        # NOTE(self): where the SOUL runs as root, the user inside is root to the kernel, though without privileges:
        # what root may write, above all files in /proc/sys, must lie on a read-only mount.
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--dev", "/dev", "--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108 - inside
        *(*home, "--symlink", HOME, "/var/tmp"),  # noqa: S108 - inside
        *("--bind", str(work_dir), WORK, "--chdir", WORK),
        *(part for one in shared for part in _shared(one)),
        *("--remount-ro", "/"),
        *("--block-fd", str(block_fd), "--", *gated(command)),
    ]


def gated(command: Sequence[str]) -> list[str]:
    """Return the command behind a gate: it starts once a line comes in, and never if the sender is gone."""
    return ["/bin/sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh", *command]


def environment(host: Mapping[str, str], given: Mapping[str, str], *, home: str) -> dict[str, str]:
    """Return the program's whole environment: `given`, fixed values, and the host's for language and terminal."""
    passed_on = {name: host[name] for name in _PASSED_ON if name in host}
    ours = {"PATH": PATH, "HOME": home, "USER": "soul", "LOGNAME": "soul", "SHELL": "/bin/sh"}
    return {"LANG": "C.UTF-8", **passed_on, **ours, **given}


def most_tasks(limits: Limits) -> int:
    """Return how many processes and threads the kernel allows: a backstop, as the watch ends a run long before."""
    return _BACKSTOP * limits.processes


def most_memory(limits: Limits) -> int:
    """Return how many bytes the kernel allows, /tmp included: a backstop, the watch ends a run before."""
    return limits.memory_bytes + limits.tmp_bytes + _MEMORY_MARGIN


def rlimits(limits: Limits, *, sandbox: bool) -> dict[int, int]:
    """Return the limits that the kernel enforces on each process, by `resource.RLIMIT_*`.

    None of them limits the address space: WebAssembly and JIT compilers reserve far more of it than they ever use.

    The number of processes is limited only in a sandbox, whose user namespace counts its own; outside, all processes of
    the user would count. Root is not bound by that limit, but by a control group (`cgroup`).
    """
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CORE: 0,
    }
    return wanted | ({resource.RLIMIT_NPROC: most_tasks(limits)} if sandbox else {})


def refused(
    command: Sequence[str],
    env: Mapping[str, str],
    work_dir: Path,
    *,
    redactor: Redactor,
    private: Iterable[Path],
    shared: Iterable[Shared] = (),
) -> str:
    """Return why the command must not run; "" if it may. Paths are resolved; `private` must never lie within reach."""
    if not command:
        return "there is no command"
    if any("\0" in word for word in (*command, *env, *env.values())) or any("=" in name or not name for name in env):
        return "the command or its environment cannot be passed on"
    if any(map(redactor.finds, command)):
        return "the command holds a secret"
    if name := next((name for name, value in env.items() if redactor.finds(value) or redactor.finds(name)), ""):
        return f"the variable {redactor.text(name)} holds a secret"
    reach = (work_dir, *(one.path.resolve() for one in shared))
    for path in private:
        if any(path.is_relative_to(folder) or folder.is_relative_to(path) for folder in reach):
            return f"{path.name} would lie within reach"
    return ""


def _shared(one: Shared) -> tuple[str, str, str]:
    return "--bind" if one.writable else "--ro-bind", str(one.path), f"{SHARED}/{one.name}"


def _read_only(paths: Iterable[str]) -> list[str]:
    return [part for path in paths for part in ("--ro-bind-try", path, path)]

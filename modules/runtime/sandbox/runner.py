"""Runs programs for the SOUL: in a sandbox, or, if the owner insists, without one; else not at all.

Each run is limited before its first instruction, and watched for what the kernel does not count: processes, memory and
disk of the run as a whole. It leaves nothing behind except what it wrote into its work folder. When the SOUL dies, the
programs in a sandbox die too.
"""

import asyncio
import os
import resource
import selectors
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Event

from common.errors import PolicyBlocked, SoulError
from common.redact import Redactor
from modules.runtime.sandbox.cgroup import RunGroup, open_group
from modules.runtime.sandbox.policy import (
    HOME,
    MIB,
    PATH,
    SHARED,
    UNBOUND_WARNING,
    UNSAFE_WARNING,
    Ended,
    Limits,
    Ran,
    Shared,
    environment,
    gated,
    most_memory,
    most_tasks,
    refused,
    rlimits,
    sandboxed,
)

TICK_S = 0.02
_DISK_EVERY_S = 0.25
_DISK_SHARE = 5  # measuring takes at most one part in so many of the time
_RESERVE_BYTES = 256 * MIB
_BLOCK = 512
_LEAST_BYTES = 4096
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Watches the limits of one run. Build it before the run starts: growth of the work folder is measured from there.

    All of `tmp`, if there is such a folder, counts in full, including what earlier runs left there.
    """

    def __init__(self, work_dir: Path, limits: Limits, tmp: Path | None = None) -> None:
        self._work_dir = work_dir
        self._folders = (work_dir, *([tmp] if tmp else []))
        self._limits = limits
        began = time.monotonic()
        self._most_bytes = used_bytes(work_dir) + limits.disk_bytes
        self._least_free = min(_RESERVE_BYTES, _free_bytes(work_dir) // 2)
        self._next_disk = self._after_look(began)

    def over(self, root: int) -> Ended | None:
        """Return the limit that the processes from `root` down exceed together, or None."""
        pids = descendants(root, most=self._limits.processes)
        if len(pids) > self._limits.processes:
            return "processes"
        if sum(map(_own_bytes, pids)) > self._limits.memory_bytes:
            return "memory"
        if (began := time.monotonic()) >= self._next_disk:
            if sum(map(used_bytes, self._folders)) > self._most_bytes or _free_bytes(self._work_dir) < self._least_free:
                return "disk"
            self._next_disk = self._after_look(began)
        return None

    @staticmethod
    def _after_look(began: float) -> float:
        now = time.monotonic()
        return now + max(_DISK_EVERY_S, _DISK_SHARE * (now - began))


def descendants(root: int, *, most: int) -> list[int]:
    """Return `root` and the processes below it; stop counting beyond `most`."""
    found, at = [root], 0
    while at < len(found) <= most:
        try:
            for thread in Path(f"/proc/{found[at]}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
        except OSError:
            pass  # it has ended meanwhile
        at += 1
    return found


def used_bytes(folder: Path) -> int:
    """Return the bytes that the files below `folder` take on disk, at least 4 KiB for each. Follows no links.

    A folder that cannot be listed counts as empty; files hidden in one still cannot fill the disk, since a run ends
    when little space is left.
    """
    total, folders = 0, [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    try:
                        total += max(entry.stat(follow_symlinks=False).st_blocks * _BLOCK, _LEAST_BYTES)
                    except OSError:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
    return total


def _own_bytes(pid: int) -> int:
    """Return the bytes that a process holds in memory, without files and shared pages."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * _PAGE


def _free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


_CHUNK = 65_536
_LAST_WORDS_S = 1.0
_DEATH_S = 30.0
_NICE = 10
_GLANCE_S = 0.001


@dataclass(frozen=True, slots=True)
class Child:
    """A run that has begun: `process` is what we started, `root` the first process of the tree, `group` what limits it.

    `exited` and `handle` are the pidfds of the two; they stay valid when the pids are used again.
    """

    process: subprocess.Popen[bytes]
    exited: int
    root: int
    handle: int
    group: RunGroup | None = None

    def kill(self) -> None:
        """Kill the whole run. The first process gets priority only while it lives: later its pid may be another's."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, 0)
            _go_first(self.root)
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)


def start_sandboxed(
    line: Callable[[int], Sequence[str]],
    env: Mapping[str, str],
    limits: Mapping[int, int],
    group: RunGroup | None,
) -> Child:
    """Start bubblewrap, limit the first process inside, then let the command begin.

    Both wait: the first process inside for its limits, the command at its gate for our line. That line is sent once the
    lives of both are bound to ours; if we are killed before, it never comes, and they end by themselves.

    Args:
        line: returns the command line, given the file descriptor at which bubblewrap waits.
        env: what both bubblewrap and the command see: a command can read the environment of the first process inside.
        limits: values of `resource.RLIMIT_*`.
        group: limits the number of processes; None: no control group.

    Raises:
        SoulError: bubblewrap does not work here.

    """
    wait, go = os.pipe()
    with os.fdopen(go, "wb", buffering=0) as begin:
        try:
            process = _popen(line(wait), env, pass_fds=(wait,))
        finally:
            os.close(wait)
        handles: list[int] = []
        try:
            root = _first_inside(process)
            _limit(root, limits, group)
            handles += [os.pidfd_open(process.pid)]
            handles += [os.pidfd_open(root)]
            begin.write(b"\n")
        except (LookupError, OSError) as error:
            for handle in handles:
                os.close(handle)
            _end(process)
            said = process.communicate()[1].decode(errors="replace").strip()
            raise SoulError(
                f"bubblewrap does not work here: {said or error}",
                remedy="It needs version 0.8 and unprivileged user namespaces; `soul doctor` tries it.",
            ) from None
    exited, inside = handles
    while process.poll() is None and not _bound(root):
        time.sleep(_GLANCE_S)
    _open_gate(process)
    return Child(process, exited, root, inside, group)


def start_bare(
    command: Sequence[str], work_dir: Path, env: Mapping[str, str], limits: Mapping[int, int], group: RunGroup | None
) -> Child:
    """Start a command without a sandbox, but with limits."""
    process = _popen(gated(command), env, cwd=work_dir)
    _limit(process.pid, limits, group)
    exited, handle = os.pidfd_open(process.pid), os.pidfd_open(process.pid)
    _open_gate(process)
    return Child(process, exited, process.pid, handle, group)


@dataclass(slots=True)
class _Output:
    """The beginning and the end of what a run writes, together `most` bytes; twice as many while it is read."""

    most: int
    kept: bytearray = field(default_factory=bytearray)
    left_out: int = 0

    def add(self, said: bytes) -> None:
        self.kept += said
        if len(self.kept) > 2 * self.most:
            self._cut()

    def text(self) -> str:
        self._cut()
        if not self.left_out:
            return self.kept.decode(errors="replace")
        first, last = self.kept[: self.most // 2], self.kept[self.most // 2 :]
        note = f"\n… ({self.left_out} bytes left out)\n"
        return f"{first.decode(errors='replace')}{note}{last.decode(errors='replace')}"

    def _cut(self) -> None:
        over, half = max(0, len(self.kept) - self.most), self.most // 2
        del self.kept[half : half + over]
        self.left_out += over


def see_to_the_end(child: Child, watch: Watch, limits: Limits, stop: Event) -> Ran:
    """Read the output and watch the limits until the command ends, or until a limit or `stop` ends it."""
    began = time.monotonic()
    process = child.process
    assert process.stdout  # noqa: S101 - both are pipes
    assert process.stderr  # noqa: S101
    out, err = _Output(limits.output_bytes), _Output(limits.output_bytes)
    output = {process.stdout.fileno(): out, process.stderr.fileno(): err}
    ended: Ended | None = None
    try:
        with selectors.DefaultSelector() as selector:
            for pipe in (*output, child.exited):
                selector.register(pipe, selectors.EVENT_READ)
            ticked = began
            while ended is None:
                if _listen(selector, output, child.exited):
                    ended = "exited"
                elif stop.is_set() or time.monotonic() - began > limits.wall_s:
                    ended = "timeout"
                elif time.monotonic() - ticked >= TICK_S:
                    ended = _group_limit(child) or watch.over(child.root)
                    ticked = time.monotonic()
            ended = (_group_limit(child) if ended == "exited" else None) or ended
            child.kill()
            selector.unregister(child.exited)
            last = time.monotonic() + _LAST_WORDS_S
            while selector.get_map() and time.monotonic() < last:
                _listen(selector, output, child.exited)
        code = process.wait(_DEATH_S)
    except subprocess.TimeoutExpired:
        raise SoulError(f"what ran in the sandbox did not end within {_DEATH_S:g} s of being killed") from None
    finally:
        child.kill()
        _wait_for_death(child.handle)
        for handle in (child.exited, child.handle):
            os.close(handle)
        process.stdout.close()
        process.stderr.close()
    return Ran(
        returncode=code if code >= 0 else 128 - code,
        stdout=out.text(),
        stderr=err.text(),
        ended=ended,
        seconds=time.monotonic() - began,
    )


def _group_limit(child: Child) -> Ended | None:
    """Return the limit of its control group that the run reached, or None."""
    if child.group is None:
        return None
    if child.group.was_full():
        return "processes"
    return "memory" if child.group.ran_out_of_memory() else None


def _popen(
    line: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: Path = Path("/"),
    pass_fds: tuple[int, ...] = (),
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - it is what this module is for; no shell reads the line
        line,
        env=env,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=pass_fds,
        start_new_session=True,
        umask=0o022,
    )


def _first_inside(process: subprocess.Popen[bytes]) -> int:
    """Wait for the first process inside, and return its pid.

    # NOTE(self): bubblewrap would report it with --info-fd, but writes there before it lets that process go on: if we
    # are killed by then, bubblewrap dies of the broken pipe and leaves a process that waits for ever.

    Raises:
        LookupError: bubblewrap ended before it started one.

    """
    while process.poll() is None:
        if pids := _children(process.pid):
            return pids[0]
        time.sleep(_GLANCE_S)
    raise LookupError("it ended before the sandbox was made")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a bubblewrap that did not reach its command, and first its children: alone they would wait for ever."""
    with suppress(OSError):
        for pid in (*_children(process.pid), process.pid):
            os.kill(pid, signal.SIGKILL)
    process.kill()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _bound(root: int) -> bool:
    """Return whether the first process inside has started the command and sleeps: by then its life is bound to ours."""
    try:
        state = Path(f"/proc/{root}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "S" and bool(_children(root))
    except OSError:
        return True


def _open_gate(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin  # noqa: S101 - a pipe
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(b"\n")


def _limit(pid: int, limits: Mapping[int, int], group: RunGroup | None) -> None:
    """Limit a process that has not begun. It gets a low priority, and is the first to be killed if memory runs out."""
    if group is not None:
        group.add(pid)
    # NOTE(self): a process that is lower already cannot be raised without rights.
    os.setpriority(os.PRIO_PROCESS, pid, max(_NICE, os.getpriority(os.PRIO_PROCESS, pid)))
    Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
    for kind, value in limits.items():
        _, hard = resource.prlimit(pid, kind)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, kind, (most, most))


def _go_first(pid: int) -> None:
    """Schedule the first process before all that it started.

    The kernel ends them with it, but only once it runs; among thousands of multiplying processes that could take
    minutes. Where we may not do this we are not root, and then the kernel allows no run to have thousands.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


def _listen(selector: selectors.BaseSelector, output: Mapping[int, _Output], exited: int) -> bool:
    """Read the output so far; return whether the command has ended."""
    over = False
    for key, _ in selector.select(TICK_S):
        if key.fd == exited:
            over = True
        elif said := os.read(key.fd, _CHUNK):
            output[key.fd].add(said)
        else:
            selector.unregister(key.fd)
    return over


def _wait_for_death(handle: int) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(handle, selectors.EVENT_READ)
        selector.select(_DEATH_S)


_GO = Path("/usr/local/go")
_REMEDY = "Install bubblewrap (apt-get install bubblewrap), or set SOUL_UNSAFE_EXEC=1 and mean it."


def toolchains(env: Mapping[str, str] = os.environ, path: str = PATH) -> tuple[Shared, ...]:
    """Return the folders to share with runs, read-only: the default toolchain of rustup, and Go in `/usr/local/go`.

    Each has its programs in `bin`. A toolchain that runs find by themselves, in `path`, is left out.
    """
    rust = None if shutil.which("cargo", path=path) else _rust(Path(env.get("RUSTUP_HOME") or "~/.rustup"))
    go = None if shutil.which("go", path=path) else _GO
    found = [Shared(name, folder) for name, folder in (("rust", rust), ("go", go)) if folder]
    return tuple(one for one in found if (one.path / "bin").is_dir())


def _rust(rustup: Path) -> Path | None:
    with suppress(OSError, RuntimeError, tomllib.TOMLDecodeError, KeyError):  # RuntimeError: a user without a home
        rustup = rustup.expanduser()
        name = str(tomllib.loads((rustup / "settings.toml").read_text("utf-8"))["default_toolchain"])
        return next(iter(sorted((rustup / "toolchains").glob(f"{name}*"))), None)
    return None


@dataclass(frozen=True, slots=True)
class _Job:
    command: Sequence[str]
    work_dir: Path
    env: Mapping[str, str]
    network: bool
    limits: Limits
    shared: Sequence[Shared]
    tmp: Path | None


class Sandbox:
    """Runs programs.

    Args:
        redactor: knows the secrets, none of which may get inside.
        private: files and folders that must be out of reach of every run, such as `.env` and `.memory`.
        tools: folders that every run sees, with their programs in `bin` (`toolchains`).
        unsafe: whether to run without a sandbox if bubblewrap is missing (`SOUL_UNSAFE_EXEC`).
        host: the environment of this process.
        bwrap: the path of bubblewrap; None: it is not installed.

    """

    def __init__(
        self,
        *,
        redactor: Redactor,
        private: Iterable[Path] = (),
        tools: Iterable[Shared] = (),
        unsafe: bool = False,
        host: Mapping[str, str] = os.environ,
        bwrap: str | None = shutil.which("bwrap"),
    ) -> None:
        self._redactor = redactor
        self._private = tuple(path.resolve() for path in private)
        self._tools = tuple(tools)
        self._unsafe = unsafe
        self._host = host
        self._bwrap = bwrap

    @property
    def is_there(self) -> bool:
        """Whether programs are run at all: in a sandbox, or without one if the owner insists."""
        return bool(self._bwrap) or self._unsafe

    async def run(
        self,
        command: Sequence[str],
        work_dir: Path,
        *,
        network: bool = False,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        env: Mapping[str, str] | None = None,
        shared: Sequence[Shared] = (),
        tmp: Path | None = None,
    ) -> Ran:
        """Run a program until it ends or reaches a limit.

        Args:
            command: program and arguments; no shell reads them. In the sandbox the work folder is `/work`.
            work_dir: the folder that it may write to; it must exist.
            network: whether it uses the network as this machine does, including loopback services.
            limits: the limits of the run.
            env: further variables, beside the path, the home and the language.
            shared: what else of this machine it sees, at `seen_at`.
            tmp: an existing folder that becomes its /tmp, with what earlier runs left; its size counts to that of the
                work folder. None: an empty /tmp in memory.

        Raises:
            PolicyBlocked: there is no sandbox, or a secret or a private file would get inside.
            SoulError: the sandbox does not work here.

        """
        path = ":".join([PATH, *(f"{self.seen_at(one)}/bin" for one in self._tools)])
        given = {"PATH": path, **(env or {})}
        job, stop = _Job(command, work_dir, given, network, limits, (*self._tools, *shared), tmp), Event()
        with ThreadPoolExecutor(1, thread_name_prefix="sandbox") as thread:
            running = asyncio.get_running_loop().run_in_executor(thread, self._supervise, job, stop)
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                stop.set()
                await asyncio.wait([running])
                raise

    def seen_at(self, shared: Shared) -> str:
        """Return the path at which a run sees `shared`."""
        return f"{SHARED}/{shared.name}" if self._bwrap else str(shared.path)

    def _supervise(self, job: _Job, stop: Event) -> Ran:
        """Supervise one run; this is called in a thread of its own."""
        job = replace(job, tmp=job.tmp and job.tmp.resolve())
        job = replace(job, work_dir=self._checked(job))
        watch = Watch(job.work_dir, job.limits, job.tmp)
        group = open_group(most_tasks(job.limits), most_memory(job.limits))
        try:
            return self._limited(job, watch, stop, group)
        finally:
            if group is not None:
                group.remove()

    def _limited(self, job: _Job, watch: Watch, stop: Event, group: RunGroup | None) -> Ran:
        if not self._bwrap:
            env = environment(self._host, job.env, home=str(job.tmp or job.work_dir))
            child = start_bare(job.command, job.work_dir, env, rlimits(job.limits, sandbox=False), group)
            return replace(see_to_the_end(child, watch, job.limits, stop), warning=UNSAFE_WARNING)
        shown = partial(sandboxed, network=job.network, limits=job.limits, shared=job.shared, tmp=job.tmp)
        line = partial(shown, self._bwrap, job.command, job.work_dir)
        env = environment(self._host, job.env, home=HOME)
        child = start_sandboxed(line, env, rlimits(job.limits, sandbox=True), group)
        ran = see_to_the_end(child, watch, job.limits, stop)
        return replace(ran, warning=UNBOUND_WARNING) if group is None and os.geteuid() == 0 else ran

    def _checked(self, job: _Job) -> Path:
        """Return the resolved work folder of a job. Raises `PolicyBlocked` if the job may not run."""
        work_dir = job.work_dir.resolve()
        if not work_dir.is_dir():
            raise PolicyBlocked(f"Not run: {work_dir} is no folder to work in")
        checked = partial(refused, redactor=self._redactor, private=self._private, shared=job.shared)
        for folder in (work_dir, *([job.tmp] if job.tmp else [])):
            if why := checked(job.command, job.env, folder):
                raise PolicyBlocked(f"Not run: {why}")
        if not self._bwrap and not self._unsafe:
            raise PolicyBlocked("Programs are only run in a sandbox, and bubblewrap is not installed", remedy=_REMEDY)
        return work_dir

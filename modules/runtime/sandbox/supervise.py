"""Starts a program, limits it before its first instruction, reads what it says, and sees to its end.

It all happens in the calling thread, which must be one of its own: the kernel ends the sandbox when the thread that
started it ends, and so when the SOUL is killed. Nothing of a run outlives it.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from common.errors import SoulError
from modules.runtime.sandbox.cgroup import RunGroup
from modules.runtime.sandbox.policy import gated
from modules.runtime.sandbox.types import Ended, Limits, Ran
from modules.runtime.sandbox.watch import TICK_S, Watch

_CHUNK = 65_536
_LAST_WORDS_S = 1.0
_DEATH_S = 30.0
_NICE = 10
_GLANCE_S = 0.001


@dataclass(frozen=True, slots=True)
class Child:
    """A run that has begun: `process` is what we started, `root` the first process of the tree, `group` what limits it.

    `exited` and `handle` are the kernel's handles of the two; they stay theirs when their numbers are given away.
    """

    process: subprocess.Popen[bytes]
    exited: int
    root: int
    handle: int
    group: RunGroup | None = None

    def kill(self) -> None:
        """End all of it. The first process is hastened only while it lives: later its number may be another's."""
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

    It waits twice: the first process inside for its limits, the command at its gate for a line of ours. That comes
    once the lives of both are bound to ours; when we are killed before, it never comes, and they end by themselves.

    Args:
        line: the command line, given where bubblewrap waits.
        env: what both bubblewrap and the command see: the inside can read the environment of its first process.
        limits: values of `resource.RLIMIT_*`.
        group: limits the number of processes, where there is one.

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
    """Start a command without a sandbox, limited all the same."""
    process = _popen(gated(command), env, cwd=work_dir)
    _limit(process.pid, limits, group)
    exited, handle = os.pidfd_open(process.pid), os.pidfd_open(process.pid)
    _open_gate(process)
    return Child(process, exited, process.pid, handle, group)


def see_to_the_end(child: Child, watch: Watch, limits: Limits, stop: Event) -> Ran:
    """Read and watch until the command ends, or is ended by a limit or by `stop`."""
    began = time.monotonic()
    process = child.process
    assert process.stdout  # noqa: S101 - both are pipes
    assert process.stderr  # noqa: S101
    output = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    out, err = output.values()
    ended: Ended | None = None
    try:
        with selectors.DefaultSelector() as selector:
            for pipe in (*output, child.exited):
                selector.register(pipe, selectors.EVENT_READ)
            ticked = began
            while ended is None:
                if _listen(selector, output, child.exited, limits.output_bytes):
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
                _listen(selector, output, child.exited, limits.output_bytes)
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
        stdout=_text(out, limits),
        stderr=_text(err, limits),
        ended=ended,
        seconds=time.monotonic() - began,
        truncated=max(len(out), len(err)) > limits.output_bytes,
    )


def _group_limit(child: Child) -> Ended | None:
    """Return the limit of its control group that a run reached, or None."""
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

    # NOTE(self): bubblewrap would tell it with --info-fd, but it writes there before it lets that process go on: where
    # we are killed by then, it dies of the broken pipe and leaves a process that waits for ever.

    Raises:
        LookupError: bubblewrap ended before it made one.

    """
    while process.poll() is None:
        if pids := _children(process.pid):
            return pids[0]
        time.sleep(_GLANCE_S)
    raise LookupError("it ended before the sandbox was made")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a bubblewrap that did not come to its command, and first what it made: alone that would wait for ever."""
    with suppress(OSError):
        for pid in (*_children(process.pid), process.pid):
            os.kill(pid, signal.SIGKILL)
    process.kill()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _bound(root: int) -> bool:
    """Whether the first process inside has made the command's process and sleeps: just before, it binds its life."""
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
    """Limit a process that has not begun. It also stands back for others, and is the first to go for want of memory."""
    if group is not None:
        group.add(pid)
    os.setpriority(os.PRIO_PROCESS, pid, _NICE)
    Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
    for kind, value in limits.items():
        _, hard = resource.prlimit(pid, kind)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.prlimit(pid, kind, (most, most))


def _go_first(pid: int) -> None:
    """Let the first process have its turn before all that it made.

    The kernel ends them with it, but only once it runs. Among thousands that multiply it would wait for minutes; where
    we may not hasten it we are no root, and then the kernel lets no run have thousands.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


def _listen(selector: selectors.BaseSelector, output: Mapping[int, bytearray], exited: int, most: int) -> bool:
    """Hear what there is; whether the command has ended. One byte beyond `most` is kept, as a sign of more."""
    over = False
    for key, _ in selector.select(TICK_S):
        if key.fd == exited:
            over = True
        elif said := os.read(key.fd, _CHUNK):
            output[key.fd].extend(said[: most + 1 - len(output[key.fd])])
        else:
            selector.unregister(key.fd)
    return over


def _wait_for_death(handle: int) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(handle, selectors.EVENT_READ)
        selector.select(_DEATH_S)


def _text(output: bytearray, limits: Limits) -> str:
    return bytes(output[: limits.output_bytes]).decode(errors="replace")

"""`soul up`: runs several homes under one supervisor, which restarts those that fail and ends all together.

The supervisor loads the program once and has one thread and no event loop, so that each fork, also a later one, is a
clean copy. Of a home it reads only whether it sleeps. It reports only starts and ends; other output is the processes'.
"""

import asyncio
import gc
import importlib
import os
import random
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from genai_prices.data_snapshot import get_snapshot
from pydantic import BaseModel

from adapters.space.wire import build_codecs
from common.clock import Clock, SystemClock
from common.errors import ConfigError, SoulError
from common.files import expanded, write_atomic
from common.redact import Redactor
from common.settings import Settings
from common.text.patterns import compile_all
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from modules.runtime.sleep_note import is_noted, process_mark
from soul.app import open_soul
from soul.command_line import loading
from soul.commands.options import SocialOnly
from soul.commands.run import live
from soul.commands.service import RESTART_S, STARTS, WITHIN_S
from soul.dashboard.serving import serve_many
from soul.exit_codes import ANEW, ASLEEP, NO_RESTART, ExitCode, exit_code_of
from soul.parent_watch import end_with
from soul.resources import template
from soul.terminal.output import write_error, write_lines
from soul.watch.policy import KEPT_FOR
from soul.watch.watcher import CALLS, Watcher, home_at, keep_watch
from town.serving import LOOPBACK, Listener, listen_at

_LONGEST_S = KEPT_FOR.total_seconds() + 3600.0
"""A SOUL that has slept this long is started, since the watcher that should have woken it must have failed."""
_END_S = 90.0
_IN_USE = 4
"""The factor on the usual wait between two tries to start a SOUL in a home that another process uses."""
_BETWEEN_S = 0.25  # between two starts of SOULs
_KILLED_S = 5.0
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class SupervisedProcess:
    """One process: its name, and its work, which returns the exit code.

    Attributes:
        keeps_all: whether the supervisor runs as long as this does, and its failure counts in the exit code.
        pid: None while it does not run.
        due_s: when it starts again, even if nothing wakes it; None if it runs, or is left alone.
        is_asleep: whether it ended until something comes for it.
        is_called: whether something came before it had ended.
        has_slept: whether it ever slept, so that a command, or `soul run`, may have taken its home meanwhile.
        starts_s: its start times, as long as they count.

    """

    name: str
    work: Callable[[], int]
    keeps_all: bool = True
    pid: int | None = None
    due_s: float | None = None
    starts_s: list[float] = field(default_factory=list)
    is_asleep: bool = False
    is_called: bool = False
    has_slept: bool = False

    @property
    def is_over(self) -> bool:
        return self.pid is None and self.due_s is None and not self.is_asleep

    def note_end(self, code: int) -> None:
        """Record that the process ended. Falling asleep and restarting on purpose never count as failures."""
        self.pid = None
        self.has_slept |= code == ASLEEP
        if code in {ANEW, ASLEEP}:
            del self.starts_s[-1:]


@dataclass(slots=True)
class Supervisor:
    """Keeps `members` running until it is asked to end, or none with `keeps_all` is left. Sleeping ones sleep on.

    If many are due at once, it starts one after the other with a pause, members that slept before those that restart.

    Attributes:
        calls: the pipe from which to read whom to wake: the watcher writes a line with the index in `members`.
        watcher: the member that watches; once it is left alone, no member sleeps. Both are None without a watcher.
        fork: starts a process, as `os.fork` does.

    """

    members: Sequence[SupervisedProcess]
    clock: Clock
    restart_s: float = RESTART_S
    end_s: float = _END_S
    longest_s: float = _LONGEST_S
    calls: int | None = None
    watcher: SupervisedProcess | None = None
    fork: Callable[[], int] = os.fork
    _next_s: float = 0.0
    _woken: int = -1
    _asked: bool = False
    _failed: bool = False

    def run(self) -> int:
        """Run until the end; return the exit code: 0 if all ended as they were asked to."""
        watched, held = os.pipe()
        with self._signals():
            for member in self.members:
                if member.is_asleep:
                    self._let_sleep(member)
                elif member.keeps_all:
                    member.due_s = self.clock.monotonic()
                else:
                    self._start(member, watched, held)
            while not self._asked and not all(one.is_over for one in self.members if one.keeps_all):
                due = [one.due_s for one in self.members if one.due_s is not None]
                self._wait(max(min(due), self._next_s) if due else None)
                self._reap()
                self._start_next(watched, held)
            self._end_all()
        return int(self._failed)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Let a signal end a wait; its number is read from the pipe that Python writes it to."""
        self._woken, wakes = os.pipe()
        for end in (self._woken, wakes):
            os.set_blocking(end, False)
        handled = [one for one in _ENDS if signal.getsignal(one) is not signal.SIG_IGN]  # `nohup` has SIGHUP ignored
        before = {one: signal.signal(one, lambda *_: None) for one in (*handled, signal.SIGCHLD)}
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for one, handler in before.items():
                signal.signal(one, handler)
            for end in (self._woken, wakes):
                os.close(end)

    def _wait(self, until_s: float | None) -> None:
        """Wait for a signal or a call, at most until `until_s`; None waits without limit."""
        left_s = None if until_s is None else max(0.0, until_s - self.clock.monotonic())
        watched = [self._woken] if self.calls is None else [self._woken, self.calls]
        ready = select.select(watched, [], [], left_s)[0]
        if self._woken in ready:
            with suppress(BlockingIOError):
                self._asked |= bool({*os.read(self._woken, 4096)} & {*_ENDS})
        if self.calls is not None and self.calls in ready:
            # NOTE(self): a line is written at once, and is short enough for a pipe to keep it whole.
            places = {*os.read(self.calls, 65_536).decode().split()}
            self._wake([one for place, one in enumerate(self.members) if str(place) in places])

    def _wake(self, members: Iterable[SupervisedProcess]) -> None:
        """Let members start, now or as soon as they have ended."""
        for member in members:
            if member.is_asleep:
                member.is_asleep, member.due_s = False, self.clock.monotonic()
            else:
                member.is_called = member.pid is not None

    def _start_next(self, watched: int, held: int) -> None:
        now = self.clock.monotonic()
        due = [one for one in self.members if one.due_s is not None and one.due_s <= now and not self._asked]
        if due and now >= self._next_s:
            self._next_s = now + _BETWEEN_S
            self._start(min(due, key=lambda one: (one.keeps_all, not one.has_slept, one.due_s or 0.0)), watched, held)

    def _start(self, member: SupervisedProcess, watched: int, held: int) -> None:
        now = self.clock.monotonic()
        member.starts_s = [at for at in member.starts_s if at > now - WITHIN_S] + [now]
        member.due_s, member.is_asleep, member.is_called = None, False, False
        sys.stdout.flush()
        # NOTE(self): a signal between the fork and the child's own handlers would be handled as the supervisor's.
        signal.pthread_sigmask(signal.SIG_BLOCK, {*_ENDS, signal.SIGCHLD})
        try:
            pid = self.fork()
        except OSError as error:
            pid, why = None, error.strerror
        if pid == 0:
            os.close(held)
            _become(member.work, watched)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_ENDS, signal.SIGCHLD})
        member.pid = pid
        if pid is None:
            del member.starts_s[-1:]
            member.due_s = now + self.restart_s
            write_lines(f"{member.name}: no process can be started ({why}); it is tried again in {self.restart_s:g} s")
        else:
            write_lines(f"{member.name}: process {pid}")

    def _let_sleep(self, member: SupervisedProcess) -> None:
        member.is_asleep = member.has_slept = True
        member.due_s = self.clock.monotonic() + self.longest_s
        write_lines(f"{member.name}: asleep")

    def _reap(self) -> None:
        """Record each process that has ended, and decide when it starts again."""
        for member in self.members:
            if member.pid is None or (code := _ended(member.pid)) is None:
                continue
            member.note_end(code)
            if self._asked:
                continue
            now = self.clock.monotonic()
            nobody_watches = self.watcher is not None and self.watcher.is_over
            if code == ANEW or (code == ASLEEP and (member.is_called or nobody_watches)):
                member.due_s = now
            elif code == ASLEEP:
                self._let_sleep(member)
            elif code == ExitCode.IN_USE and member.has_slept:
                member.due_s = now + _IN_USE * self.restart_s
                write_lines(f"{member.name}: its home is in use, and it tries again in {_IN_USE * self.restart_s:g} s")
            elif code in {0, *NO_RESTART}:
                self._failed |= code != 0 and member.keeps_all
                write_lines(f"{member.name}: ended{f' with code {code}' if code else ''}; it is not started again")
            elif len(member.starts_s) >= STARTS:
                self._failed |= member.keeps_all
                write_lines(f"{member.name}: ended {_how(code)}, started {STARTS} times of late, and is left alone")
            else:
                member.due_s = now + self.restart_s
                write_lines(f"{member.name}: ended {_how(code)}, and starts again in {self.restart_s:g} s")
            if member is self.watcher and member.is_over:
                self._wake(self.members)

    def _end_all(self) -> None:
        """Ask all to end, and kill those that have not ended in time."""
        self._asked = True
        for pid in self._living():
            os.kill(pid, signal.SIGTERM)
        self._wait_for_ends(self.end_s)
        for member in self.members:
            if member.pid is not None:
                self._failed |= member.keeps_all
                write_lines(f"{member.name}: has not ended within {self.end_s:g} s, and is killed")
        for pid in self._living():
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # with its child processes
        self._wait_for_ends(_KILLED_S)

    def _living(self) -> list[int]:
        """Return the processes that were not reaped yet, so that no other process can have their pid."""
        return [member.pid for member in self.members if member.pid is not None]

    def _wait_for_ends(self, seconds: float) -> None:
        until_s = self.clock.monotonic() + seconds
        self._reap()
        while self._living() and self.clock.monotonic() < until_s:
            self._wait(until_s)
            self._reap()


def _become(work: Callable[[], int], watched: int) -> NoReturn:
    """Become a separate process: do the work, and exit with its code."""
    code = 1
    try:
        os.setsid()  # Ctrl-C in the terminal is for the supervisor
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            if signal.getsignal(one) is not signal.SIG_IGN:
                signal.signal(one, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_ENDS, signal.SIGCHLD})
        end_with(watched)
        gc.enable()
        code = work()
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _ended(pid: int) -> int | None:
    """Return the exit code of a child, negative for a signal; None while it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _how(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with code {code}"


_LATE = (
    "adapters.atproto.xrpc",
    "adapters.github.calls",
    "anyio._backends._asyncio",
    "apscheduler.executors.asyncio",
    "apscheduler.schedulers.asyncio",
    "apscheduler.triggers.interval",
    "charset_normalizer",
    "encodings.idna",
    "encodings.unicode_escape",
    "encodings.utf_8_sig",
    "markdown_it",
    "modules.services.coding.environment.python",
    "modules.services.coding.environment.python",
    "modules.services.coding.environment.python_files",
    "openai.lib.streaming.chat",
    "openai.resources.chat.completions",
    "rapidfuzz",
    "soul.composition.wiring.github",
    "soul.terminal.panel",
    "tzlocal",
    "wcwidth",
)
"""Modules that a life imports when it first needs them; here they are imported once, before the first life begins."""
_PLAIN = (str, int, float, bool, bytes, list, tuple, set, dict, type(None))
_NOBODY = {
    "agent_name": "nobody",
    "owner_bluesky_social_handle": "nobody.invalid",
    "owner_bluesky_social_handle_did": "did:web:nobody.invalid",
    "agent_bluesky_username": "nobody.invalid",
    "agent_bluesky_password": "none",
    "ai_gateway_api_key": "none",
    "space_discovery": False,
}


def run_up(
    roots: Annotated[list[Path], typer.Argument(metavar="DIR", help="The folder of a SOUL; give one or more.")],
    *,
    social_only: SocialOnly = False,
    port: Annotated[int, typer.Option(help="Port of the page; 0 picks a free one.", min=0, max=65535)] = 7780,
    restart_s: float = RESTART_S,
) -> int:
    """Run the SOULs of these homes until Ctrl-C, and return the exit code. Raises `ConfigError`.

    A process that fails is restarted after `restart_s` seconds, as often as a service would be.
    """
    if problem := fork_problem(sys.platform, can_fork=hasattr(os, "fork")):
        raise ConfigError(problem, remedy="Let `soul service` keep each home alive, or `soul run --home DIR`.")
    homes = {str(root): expanded(root).resolve() for root in roots}
    _forget_settings()
    _load()
    listener = listen_at(LOOPBACK, 0)
    calls, caller = os.pipe()
    members = [
        SupervisedProcess(
            name,
            partial(_told, name, partial(_life, name, root, social_only, listener, caller)),
            is_asleep=is_noted(Home.at(root).memory),
        )
        for name, root in homes.items()
    ]
    page = SupervisedProcess("page", partial(_told, "page", partial(_page, homes, port)), keeps_all=False)
    watching = partial(_told, "watch", partial(_watch, homes, members, listener, caller))
    watcher = SupervisedProcess("watch", watching, keeps_all=False)
    return Supervisor([*members, page, watcher], SystemClock(), restart_s, calls=calls, watcher=watcher).run()


def fork_problem(platform: str, *, can_fork: bool) -> str:
    """Return why processes cannot be forked from one that has loaded the program; "" if they can."""
    if platform == "darwin":
        return "A forked process is not safe on macOS, whose libraries start threads of their own"
    return "" if can_fork else "This system cannot fork processes"


def _forget_settings() -> None:
    """Remove all settings from the environment, since they would count for all SOULs, passwords too."""
    found = [name for name in os.environ if name.lower() in Settings.model_fields]
    for name in found:
        del os.environ[name]
    if found:
        write_lines(f"Not used, since each SOUL has the settings of its own .env: {', '.join(sorted(found))}")


def _load() -> None:
    """Import, read and build once what each life needs, so that they share it; leave no thread and no event loop."""
    with loading():
        for name in _LATE:
            importlib.import_module(name)
        compile_all()
        for kind in _PLAIN:
            issubclass(kind, BaseModel)  # fills a cache, which each life would otherwise fill
        build_codecs()
        get_snapshot()
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(_rehearse(Home.at(Path(folder))))


async def _rehearse(home: Home) -> None:
    """Build and close a SOUL without account or network: what was imported and built for it stays in memory."""
    write_atomic(home.soul, template("SOUL.md"), mode=0o644)
    settings = Settings.model_validate(_NOBODY)
    async with open_soul(settings, home, console=SilentConsole(), clock=SystemClock(), rng=random.Random()):
        pass


def _life(name: str, root: Path, social_only: bool, listener: Listener, caller: int) -> int:  # noqa: FBT001 - bound
    """Live as `soul run` would in this folder; output goes to the home's log only."""
    watched_at = (f"http://{LOOPBACK}:{listener.getsockname()[1]}", name)
    listener.close()
    os.close(caller)  # only the watcher wakes others
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stdout):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    if root.is_dir():
        os.chdir(root)
    return {"anew": ANEW, "asleep": ASLEEP}.get(live(root, social_only=social_only, watched_at=watched_at), 0)


def _page(homes: dict[str, Path], port: int) -> int:
    asyncio.run(serve_many(homes, SystemClock(), port))
    return 0


def _watch(homes: dict[str, Path], members: Sequence[SupervisedProcess], listener: Listener, caller: int) -> int:
    """Watch over sleeping homes; to wake one, write its index as a line into the pipe."""
    clock, places = SystemClock(), {one.name: place for place, one in enumerate(members)}

    async def wake(name: str) -> bool:
        os.write(caller, f"{places[name]}\n".encode())
        await clock.sleep(_BETWEEN_S * CALLS)
        return True

    asleep = [one.name for one in members if one.is_asleep]  # as it was when this process began
    kept_by = process_mark(os.getppid())
    watcher = Watcher(lambda name: home_at(homes[name]) if name in homes else None, wake, clock, kept_by=kept_by)
    asyncio.run(keep_watch(watcher, listener, homes, asleep))
    return 0


def _told(name: str, work: Callable[[], int]) -> int:
    """Do the work; print an error that ends it, and return the exit code, which says whether to try again."""
    clean = Redactor().text
    try:
        return work()
    except SoulError as error:
        write_error(f"{name}: {clean(str(error))}", clean(error.remedy))
        return exit_code_of(error)
    except Exception as error:
        write_lines(*clean("".join(traceback.format_exception(error))).splitlines(), to=sys.stderr)
        return 1

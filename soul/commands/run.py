"""`soul run`: runs one SOUL in one process, until Ctrl-C or an error that only the owner can correct."""

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from adapters.watch import SleepWatch, watch_token
from common.clock import Clock, SystemClock, iso, span
from common.errors import ConfigError, DiskFull, Fatal, HomeLocked, MachineTrouble, PutBack, SoulError, StorageError
from common.files import storage_error
from common.settings import Settings
from modules.lives.messages.alarms import LOST
from modules.runtime import sleep_note
from modules.runtime.control import forget_starts
from modules.runtime.database import copies, marks
from modules.runtime.home import Home, HomeLock
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.scheduler import IDLE
from modules.runtime.status import Stage, keep_watched
from modules.services.outbox.approval import as_command
from modules.services.owner import OwnerAnswers, begin_with
from modules.services.rights.requests import ForgetRequests
from modules.services.sleep import LifeEnd
from soul.app import App, open_soul
from soul.command_table import Commands, rows_at
from soul.commands.at_hand import settings_to_run
from soul.commands.burn_in import burning_in, go_on_as_before, watch_burn_in
from soul.commands.owner_commands import OwnerCommands
from soul.commands.people import forget_who_is_due
from soul.commands.waking import complete_cut_off, refuse_moved
from soul.exit_codes import ASLEEP
from soul.terminal.output import printable, write_lines
from soul.terminal.plain import Outlet, PlainConsole, typed_lines
from soul.terminal.wording import doing

ServePage = Callable[[Settings, Home, Clock], AbstractAsyncContextManager[str]]
"""Serves the owner's page of a home, and yields its address."""

_QUIT = {"exit", "quit"}
_LAST_LINES_S = 1.0
_OTHERWISE_BY_MESSAGE = '"yes" or "no" answers what I tell you that waits; anything else is said to the SOUL.'
_ROOM_MIB = 16
_ONCE = {"--flush-all", "--take-over"}
"""Options for one start, which are left out when the process restarts itself."""
_LOST = "The last run ended unexpectedly: it was killed, it crashed, or the machine stopped. It runs again now"
_LEAST_LIFE_S = 45.0
_LOOK_S = 5.0


def run_life(
    root: Path, *, social_only: bool, flush_all: bool, take_over: bool = False, page: ServePage | None = None
) -> int:
    """Run `live`, and restart in this process if somebody is to be forgotten; return the exit code."""
    try:
        end = live(root, social_only=social_only, flush_all=flush_all, take_over=take_over, page=page)
    except PutBack:
        settings = settings_to_run(root)
        go_on_as_before(settings, Home.at(root, settings.memory_dir), _ONCE)
        raise
    if end == "anew":
        # NOTE(self): what is to be forgotten may also be in this process's memory, so the process replaces itself.
        os.execv(sys.executable, [sys.executable, *(word for word in sys.orig_argv[1:] if word not in _ONCE)])  # noqa: S606
    return ASLEEP if end == "asleep" else 0


def live(
    root: Path,
    *,
    social_only: bool,
    flush_all: bool = False,
    take_over: bool = False,
    page: ServePage | None = None,
    watched_at: tuple[str, str] | None = None,
) -> LifeEnd:
    """Run one life; with `take_over`, in place of another copy of the home; with `page`, serve the owner's page.

    The SOUL may sleep if a watcher wakes it: `watched_at` is its address, and the SOUL's name there. Returns how to go
    on: "anew" if somebody is to be forgotten. Raises `Fatal` with a remedy.
    """
    complete_cut_off(root)
    settings = settings_to_run(root)
    home = Home.at(root, settings.memory_dir)
    refuse_moved(home, take_over=take_over)
    if flush_all:
        flush(home, settings)
    if home.database.exists():
        forget_who_is_due(settings, home)
    sleep_note.woke(home.memory)
    url, name = watched_at or (settings.sleep_watch_url.rstrip("/"), settings.agent_name)
    watch = SleepWatch(url, name, watch_token(settings.agent_bluesky_password.get_secret_value())) if url else None
    out = None if sys.stdout.isatty() else Outlet(sys.stdout)
    try:
        with burning_in(settings, home):
            life = _live(settings, home, out, social_only=social_only, take_over=take_over, page=page, watch=watch)
            return asyncio.run(life)
    except DiskFull as error:
        remedy = f"Free {_ROOM_MIB} MiB and start again; what was accepted is kept."
        raise DiskFull(f"The disk is full: there is no room under {home.memory}", remedy=remedy) from error
    finally:
        if out is not None:
            out.finish(_LAST_LINES_S)


def flush(home: Home, settings: Settings) -> None:
    """Delete `.memory` with all that is in it. SOUL.md, SELF.md and .env stay. Raises `ConfigError`, `StorageError`."""
    with HomeLock(home, agent_name=settings.agent_name, started_at=SystemClock().now()):
        if not home.memory.exists():
            return
        if home.root.is_relative_to(home.memory) or not _is_memory(home):
            raise ConfigError(
                f"{home.memory} does not look like a SOUL's memory; nothing was deleted",
                remedy="Check MEMORY_DIR, or delete the folder by hand if it is the right one.",
            )
        copies.delete_all(home.database)  # first: after a kill in between, no copy replaces it
        try:
            shutil.rmtree(home.memory)
            home.memory.mkdir(mode=0o700)
        except OSError as error:
            raise storage_error(home.memory, error) from error
        write_lines(f"Forgot everything under {home.memory}")


def _is_memory(home: Home) -> bool:
    """Return whether it is the usual folder, or one with a file that only a SOUL's memory has."""
    if home.memory == home.root / ".memory":
        return True
    known = {home.database.name, home.status.name, home.session.name}
    return any(path.name in known for path in home.memory.iterdir())


async def _live(
    settings: Settings,
    home: Home,
    out: Outlet | None,
    *,
    social_only: bool,
    take_over: bool,
    page: ServePage | None,
    watch: SleepWatch | None,
) -> LifeEnd:
    """Live until the end; return how to go on."""
    clock = SystemClock()
    terminal = PlainConsole(clock, timezone=settings.soul_timezone, file=out)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) is not signal.SIG_IGN:  # `nohup` has SIGHUP ignored
            loop.add_signal_handler(signum, ended.set)
    async with open_soul(
        settings,
        home,
        console=terminal,
        clock=clock,
        rng=random.Random(),
        social_only=social_only,
        phone_commands=phone_commands,
        watch=watch,
    ) as app:
        if social_only:
            terminal.line("sys", "Social-only: GitHub and code are off; it can still learn skills of its own")
        watching = _watch_requests(ForgetRequests(home.memory), ended, app.services.clock)
        forgetting = asyncio.create_task(watching, name="forget-requests")
        alive = asyncio.create_task(keep_watched(clock), name="watchdog")
        burning = asyncio.create_task(watch_burn_in(app), name="burn-in")
        try:
            async with AsyncExitStack() as beside:
                if page is not None:
                    await _open_page(page, beside, app, terminal)
                # NOTE(self): the first conversation is between owner and SOUL; the room's messages go to the log only.
                beside.enter_context(terminal.hiding_rooms(app.services.knowledge.onboarding.due))
                how = await _until(ended, app, terminal, take_over=take_over)
        finally:
            for task in (forgetting, alive, burning):
                task.cancel()
            found, *_ = await asyncio.gather(forgetting, alive, burning, return_exceptions=True)
    return "anew" if found is True else how


async def _open_page(page: ServePage, beside: AsyncExitStack, app: App, terminal: PlainConsole) -> None:
    """Serve the owner's page until the life ends. If that fails, the life goes on without it."""
    services = app.services
    try:
        address = await beside.enter_async_context(page(services.settings, services.home, services.clock))
    except SoulError as error:
        terminal.line("error", f"No page: {error}", error.remedy)
    else:
        terminal.show([f"Your page: {address}"])


async def _watch_requests(requests: ForgetRequests, ended: asyncio.Event, clock: Clock) -> bool:
    """Set `ended` once a forget request is due, but not so early that it looks like a crash; return True.

    A request that failed at this start waits for the next one.
    """
    at_start = {request.name for request in requests.due(clock.now())}
    await clock.sleep(clock.real(_LEAST_LIFE_S))
    while not {request.name for request in requests.due(clock.now())} - at_start:
        await clock.sleep(clock.real(_LOOK_S))
    ended.set()
    return True


async def _until(ended: asyncio.Event, app: App, terminal: PlainConsole, *, take_over: bool) -> LifeEnd:
    """Live until `ended`, and return how to go on.

    Lines of the owner are accepted at once, and answered after the login.
    """
    await _begin(app)
    talk = asyncio.create_task(_talk(app, terminal, ended), name="owner")
    try:
        if await _logs_in(app, ended, take_over=take_over):
            return await app.run(ended)
        return "ended"  # noqa: TRY300 - one of two ends
    except Exception as error:
        await app.note_end(error if isinstance(error, SoulError) else _fault(error))
        if isinstance(error, HomeLocked):
            forget_starts(app.services.home.memory)  # another copy runs; this is no crash loop
        raise
    finally:
        talk.cancel()
        await asyncio.gather(talk, return_exceptions=True)
        with suppress(StorageError):  # the next start says that it ended unexpectedly
            await app.services.database.run(partial(marks.remove, name=marks.RUNNING))


async def _begin(app: App) -> None:
    """Mark that this run began; if the last run left its mark, record for the owner that it ended unexpectedly."""

    def mark(connection: sqlite3.Connection) -> bool:
        begin_with(connection, app.services.settings.owner_bluesky_social_handle_did)
        is_left = bool(marks.get(connection, marks.RUNNING))
        marks.put(connection, {marks.RUNNING: iso(app.services.clock.now())})
        return is_left

    await app.services.budget.note_lost()
    if await app.services.database.run(mark):
        await app.services.journal.record_or_show(Entry("life", "stop", _LOST, line="warn", data={"act": LOST}))


def _fault(error: Exception) -> SoulError:
    """Return what the owner is told about a bug of the program."""
    told = f"Internal error: {type(error).__name__}: {error}"
    return SoulError(told, remedy="`soul logs` shows the fault.")


async def _logs_in(app: App, ended: asyncio.Event, *, take_over: bool) -> bool:
    """Return whether the login succeeded before `ended`. Raises what prevented it, or what must end the process."""
    login = asyncio.create_task(app.log_in(take_over=take_over), name="login")
    doomed = asyncio.create_task(app.scheduler.doomed(), name="until-doomed")
    stopped = asyncio.create_task(ended.wait(), name="until-ended")
    try:
        done, _ = await asyncio.wait([login, doomed, stopped], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return login in done
    finally:
        for task in (login, doomed, stopped):
            task.cancel()
        await asyncio.gather(login, doomed, stopped, return_exceptions=True)


def owner_commands(app: App, ended: asyncio.Event) -> Commands:
    """Return the slash commands of the terminal; `/quit` sets `ended`."""
    return OwnerCommands(rows=rows_at("terminal"), app=app, ended=ended)


def phone_commands(app: App) -> Commands:
    """Return the slash commands of direct messages: all but those that belong at the machine itself."""
    return OwnerCommands(rows=rows_at("message"), otherwise=_OTHERWISE_BY_MESSAGE, app=app, ended=asyncio.Event())


async def _talk(app: App, terminal: PlainConsole, ended: asyncio.Event) -> None:
    """Take the owner's lines one by one, and answer once logged in. The end of input ends the talk, not the life."""
    commands = owner_commands(app, ended)
    answers = OwnerAnswers(
        app.owner,
        console=terminal,
        say=partial(terminal.say, app.services.identity.display_name),
        clock=app.services.clock,
        timezone=app.services.settings.soul_timezone,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(_answer(app, answers), name="answers")
        async for typed in _lines(app, ended):
            line = await app.services.database.run(partial(as_command, line=typed))
            if line.lower() in _QUIT:
                ended.set()
            elif line.startswith("/"):
                obeying = group.create_task(obey(commands, terminal, line), name="command")
                if not commands.begins(line):  # a slow command does not block later lines
                    await obeying
            else:
                await _receive(app, answers, terminal, line)


def _lines(app: App, ended: asyncio.Event) -> AsyncIterator[str]:
    """Return the lines that the owner types, with a line editor on a terminal, else as they come in."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return typed_lines()
    from soul.terminal.line_editor import LineEditor  # noqa: PLC0415 - the drawing library is for terminals only
    from soul.terminal.panel import panel_lines  # noqa: PLC0415 - the same

    def panel(columns: int, rows: int) -> list[list[tuple[str, str]]]:
        return panel_lines(app.status.latest, app.services.clock.now(), columns, rows)

    return LineEditor(sign=_Sign(app), panel=panel, leave=ended.set).lines()


@dataclass(slots=True)
class _Sign:
    """A line on what the SOUL does now and for how long, or, while it is idle, on what can be typed."""

    app: App
    _mode: str = IDLE
    _since: float = 0

    def __call__(self, columns: int) -> str:
        from soul.terminal.panel import hint_line  # noqa: PLC0415 - the drawing library is for terminals only

        mode, now = self.app.services.attention.mode, self.app.services.clock.monotonic()
        if mode != self._mode:
            self._mode, self._since = mode, now
        name = printable(self.app.services.identity.display_name)
        if what := doing(mode):
            return f"{name} is {what} … {span(now - self._since)}"
        return hint_line(name, columns)


async def _receive(app: App, answers: OwnerAnswers, terminal: PlainConsole, line: str) -> None:
    try:
        await answers.receive(line)
    except MachineTrouble as error:
        terminal.line("error", f"Not taken: {error}", error.remedy)
    except Fatal as error:
        app.scheduler.doom(error)
    except SoulError as error:
        terminal.line("error", f"Not taken: {error}", error.remedy)
    except Exception as error:
        terminal.line("error", f"Not taken: {type(error).__name__}: {error}")


async def obey(commands: Commands, terminal: PlainConsole, line: str) -> None:
    """Carry out a slash command at once, also while the SOUL still answers an earlier message."""
    if begins := commands.begins(line):
        terminal.show([begins])
    lines, problem, remedy = await commands.obey(line)
    terminal.show(lines)
    if problem:
        terminal.line("error", problem, remedy)


async def _answer(app: App, answers: OwnerAnswers) -> None:
    await app.stages.wait_for(Stage.LOGGED_IN)
    try:
        await answers.run(greet=somebody_listens(sys.stdin))
    except Fatal as error:
        app.scheduler.doom(error)


def somebody_listens(stdin: TextIO) -> bool:
    """Return whether an owner, or a program in their place, can answer: `stdin` is a terminal, a pipe or a socket."""
    try:
        if stdin.isatty():
            return True
        mode = os.fstat(stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

"""Opens a room, keeps it open until its host leaves, and closes it after telling every member.

The host's console shows the room's events, and broadcasts or executes the lines that the host types. Each line of the
record is written to disk at once, in a folder that only one room uses at a time. After a kill the members reconnect by
themselves when the room opens again.
"""

import asyncio
import fcntl
import hashlib
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from adapters.space.browsing import Advertisement, advertise, lan_addresses
from adapters.space.chatlog import ChatLog
from adapters.space.roster import Roster, RosterEntry, ShownClaim
from adapters.space.server import LogLevel, SpaceServer
from adapters.space.types import ELECTION_RULES, LogEntry, SpaceEvent
from common.clock import Clock, SystemClock
from common.constants import SECOND_MS, SPACE_DEFAULT_NAME
from common.errors import ConfigError, PortTaken, SoulError
from common.files import expanded, storage_error, write_atomic
from common.result import Err
from soul.command_table import Commands, rows_at
from soul.room_host.panel import EventRow, NoteLevel, as_table, entry_row, note, row_of
from soul.room_host.room_options import RoomOptions
from soul.room_host.screen import LineScreen, Screen
from soul.terminal.panel import fit, one_line
from soul.terminal.plain import Outlet

MOST_UNDRAWN = 2_000
_BEHIND_S = 0.1
_QUIT = {"exit", "quit"}


class HostConsole:
    """A `RoomHost` for a screen. `submit` queues lines of the host, and `serve` processes them one after the other.

    Items are drawn in order, and none while the screen is behind; `draw_all` draws all that wait. If more than
    `MOST_UNDRAWN` wait, the oldest are dropped, and a line shows their number.
    """

    def __init__(self, screen: Screen, roster: Roster, clock: Clock) -> None:
        self._screen = screen
        self._roster = roster
        self._clock = clock
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._undrawn: deque[Callable[[], None]] = deque()
        self._dropped = 0
        self._drawing = False

    def happened(self, event: SpaceEvent) -> None:
        self._roster.follow(event, self._clock.monotonic())
        self._draw_later(partial(self._show_event, event, self._clock.now()))

    def log(self, level: LogLevel, message: str, detail: str = "") -> None:
        self.note(level, message, detail)

    def note(self, level: NoteLevel, message: str, detail: str = "") -> None:
        """Show a message of the program."""
        at = self._clock.now()
        self._draw_later(lambda: self._screen.show(note(level, message, detail, at)))

    def show(self, row: EventRow) -> None:
        """Queue a row."""
        self._draw_later(lambda: self._screen.show(row))

    def print(self, lines: list[str]) -> None:
        """Queue lines of the program, which are shown unwrapped."""
        self._draw_later(lambda: self._screen.print(lines))

    def draw_all(self) -> None:
        """Draw the whole queue at once."""
        while self._undrawn:
            self._draw_one()

    def _show_event(self, event: SpaceEvent, at: datetime) -> None:
        row = row_of(event, at)
        if row is not None:
            self._screen.show(row)
        self._screen.refresh()

    def _draw_later(self, draw: Callable[[], None]) -> None:
        if len(self._undrawn) >= MOST_UNDRAWN:
            self._undrawn.popleft()
            self._dropped += 1
        self._undrawn.append(draw)
        if not self._drawing:
            self._drawing = True
            asyncio.get_running_loop().call_soon(self._draw_on)

    def _draw_on(self) -> None:
        self._drawing = False
        if self._screen.is_behind:
            self._drawing = True
            asyncio.get_running_loop().call_later(_BEHIND_S, self._draw_on)
            return
        self._draw_one()
        if self._undrawn:
            self._drawing = True
            asyncio.get_running_loop().call_soon(self._draw_on)

    def _draw_one(self) -> None:
        if self._dropped:
            missed, self._dropped = self._dropped, 0
            text = f"{missed:,} lines came too fast to be shown"
            self._screen.show(note("warn", text, "the room's record has them", self._clock.now()))
        if self._undrawn:
            self._undrawn.popleft()()

    def submit(self, line: str) -> None:
        """Queue a line that the host typed."""
        self._typed.put_nowait(line)

    async def serve(self, commands: Commands, say: Callable[[str], None], ended: asyncio.Event) -> None:
        """Process the host's lines until `ended` is set. `say` broadcasts a message."""
        while not ended.is_set():
            line = await self._typed.get()
            await self._process(line, commands, say, ended)
            self._typed.task_done()

    async def idle(self) -> None:
        """Wait until every queued line has been processed."""
        await self._typed.join()

    async def _process(self, line: str, commands: Commands, say: Callable[[str], None], ended: asyncio.Event) -> None:
        if line.lower() in _QUIT:
            ended.set()
        elif line.startswith("/"):
            await self._execute(commands, line)
        else:
            say(line)

    async def _execute(self, commands: Commands, line: str) -> None:
        lines, problem, remedy = await commands.obey(line)
        self.print(list(lines))
        if problem:
            self.note("error", problem, remedy)


_MINUTE_S = 60
_DEFAULT_HISTORY = 20
_MOST_HISTORY = 1_000
_TEXT_COLUMNS = 90
_TEXT_CHARS = 200


@dataclass(kw_only=True)
class HostCommands(Commands):
    """The slash commands of the host, and their dependencies.

    `say` broadcasts as the host; `remove` removes a member and returns whether there was one of this name; `recent`
    returns the last lines of the record, oldest first; `show` shows a row; `ended` closes the room.
    """

    roster: Roster
    clock: Clock
    say: Callable[[str], None]
    remove: Callable[[str], bool]
    recent: Callable[[int], Sequence[LogEntry]]
    show: Callable[[EventRow], None]
    ended: asyncio.Event

    async def run_who(self, _: str) -> Sequence[str]:
        now = self.clock.monotonic()
        return as_table([(one_line(entry.name), _about(entry, now)) for entry in self.roster.entries]) or [
            "  Nobody is here yet."
        ]

    async def run_claims(self, _: str) -> Sequence[str]:
        now = self.clock.monotonic()
        rows = [(one_line(claim.name), _what(claim, now)) for claim in self.roster.claims(now)]
        return as_table(rows) or ["  Nothing is claimed."]

    async def run_history(self, rest: str) -> Sequence[str]:
        if rest and not rest.isdecimal():
            raise SoulError(f"{one_line(rest)} is no number", remedy="For example: /history 50")
        limit = min(int(rest[:9]) if rest else _DEFAULT_HISTORY, _MOST_HISTORY)
        rows = await asyncio.to_thread(self._recorded, limit) if limit else []
        for row in rows:
            self.show(row)
        return [] if rows else ["  Nothing was said yet."]

    def _recorded(self, limit: int) -> list[EventRow]:
        return [row for entry in self.recent(limit) if (row := entry_row(entry, self.clock.now()))]

    async def run_say(self, rest: str) -> Sequence[str]:
        whom, _, words = rest.partition(" ")
        if whom.startswith("@"):
            entry = self.roster.find(whom[1:])
            if entry is None:
                raise SoulError(f"{one_line(whom)} is not in the room", remedy="/who lists who is.")
            if not words.strip():
                raise SoulError("There is nothing to say", remedy=f"For example: /say {one_line(whom)} good evening")
            rest = f"@{entry.name} {words.strip()}"
        self.say(rest)
        return []

    async def run_remove(self, rest: str) -> Sequence[str]:
        entry = self.roster.find(rest) or self.roster.find(rest.removeprefix("@"))
        if entry is None or not self.remove(entry.name):
            raise SoulError(f"{one_line(rest)} is not in the room", remedy="/who lists who is.")
        return [f"  {one_line(entry.name)} was removed; its address cannot use that name for ten minutes."]

    async def run_quit(self, _: str) -> Sequence[str]:
        self.ended.set()
        return []


def _what(claim: ShownClaim, now: float) -> str:
    action, target = (one_line(text[:_TEXT_CHARS]) for text in (claim.action, claim.target))
    return f"{action}  {target}  for {claim.until - now:.0f} s more"


def _about(entry: RosterEntry, now: float) -> str:
    doing = "typing" if entry.is_typing(now) else entry.state
    detail = f": {one_line(entry.detail)}" if entry.detail else ""
    parts = [f"{doing}{detail}", f"v{one_line(entry.version)}", f"here {_since(now - entry.since)}"]
    if (present := entry.presence) is not None:
        if present.capabilities is not None:
            able = [one_line(able) for able in present.capabilities if able not in ELECTION_RULES]
            parts.append(f"can {', '.join(able) or 'nothing'}")
        if present.identity and present.identity.expertise:
            parts.append(f"knows {', '.join(map(one_line, present.identity.expertise))}")
    return fit("  ".join(parts), _TEXT_COLUMNS)


def _since(seconds: float) -> str:
    minutes = int(seconds // _MINUTE_S)
    if minutes < 1:
        return "for a moment"
    return f"{minutes} min" if minutes < _MINUTE_S else f"{minutes // _MINUTE_S} h {minutes % _MINUTE_S} min"


_LOCK = "room.lock"
_NAME = "room.name"
_MOST_CHARS, _MOST_BYTES = 80, 240
_MARK_CHARS = 8


def default_folder(name: str) -> Path:
    """Return the folder of the room of this name, below XDG_STATE_HOME or ~/.local/state; no two names share one."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if state else expanded(Path("~/.local/state"))
    return base / "soul" / "spaces" / _folder_name(name)


@contextmanager
def exclusive_folder(folder: Path, name: str) -> Iterator[Path]:
    """Create `folder` if it is missing and lock it; yield its absolute path.

    Raises:
        ConfigError: another room has it open, or it holds the record of a room of another name.
        SoulError: it cannot be created or written.

    """
    path = at = expanded(folder).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        at = path / _LOCK
        lock = os.open(at, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise storage_error(at, error) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(
                f"another room keeps its record in {path}",
                remedy="close that room, or give this one another folder with --data, or another --name",
            ) from error
        _check_name(path, name)
        yield path
    finally:
        os.close(lock)


def _check_name(folder: Path, name: str) -> None:
    """Raise `ConfigError` if the folder has another room's record, which members would get; name a new folder."""
    at, name = folder / _NAME, one_line(name.encode(errors="replace").decode())
    try:
        kept = at.read_text(encoding="utf-8", errors="replace").strip() if at.exists() else ""
        if not kept:
            write_atomic(at, f"{name}\n")
    except OSError as error:
        raise storage_error(at, error) from error
    if kept and kept != name:
        raise ConfigError(
            f"{folder} keeps the record of another room, « {one_line(kept)[:_MOST_CHARS]} »",
            remedy="open it with that --name, or give this room another folder with --data",
        )


def _folder_name(name: str) -> str:
    """Return the name if it is a valid folder name; else its valid characters and a hash of the name."""
    left = "".join(char if char.isalnum() or char in "-_" else "-" for char in name).strip("-")
    plain = left[:_MOST_CHARS].encode()[:_MOST_BYTES].decode(errors="ignore") or SPACE_DEFAULT_NAME
    if plain == name:
        return plain
    mark = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{plain}-{mark[:_MARK_CHARS]}"


SPACE_SHUTDOWN_DRAIN_MS = 3 * SECOND_MS

_LAST_LINES_S = 1.0
_DRAIN_S = SPACE_SHUTDOWN_DRAIN_MS / SECOND_MS


def host_room(options: RoomOptions) -> None:
    """Open the room and host it from this terminal until the host leaves.

    Raises:
        ConfigError: the address or the folder cannot be used.
        StorageError: the record cannot be written.

    """
    with exclusive_folder(options.folder or default_folder(options.name), options.name) as folder:
        out = Outlet(sys.stdout)
        try:
            asyncio.run(_Hosting(options, folder, out).run())
        finally:
            out.finish(_LAST_LINES_S)


@dataclass(slots=True)
class _Hosting:
    options: RoomOptions
    folder: Path
    out: Outlet
    clock: Clock = field(default_factory=SystemClock)
    roster: Roster = field(default_factory=Roster)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    close_now: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        self._handle_signals()
        screen = _screen(self.options, self.roster, self.clock, self.out)
        console = HostConsole(screen, self.roster, self.clock)
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: _show_failure(console, context))
        record = _record(self.folder, console)
        server = SpaceServer(record, console, clock=self.clock, token=self.options.token, origins=self.options.origins)
        name = one_line(self.options.name)
        started = await server.start(self.options.port, (self.options.bind,))
        if isinstance(started, Err):
            raise _start_error(self.options, started)
        try:
            console.print(["", f"  « {name} »", "  AGENT SPACE", ""])
            async with _advertised(self.options, server.port, console) as found:
                _show_address(self.options, server.port, found, console)
                console.note("done", "Space ready", "Enter sends your line to all, /help lists the commands")
                console.draw_all()
                await self._until_ended(screen, console, server, record)
            await self._drain(console, server)
        finally:
            await server.stop()
            console.draw_all()
        screen.print(["", f"  « {name} » is closed. Good-bye.", ""])

    def _handle_signals(self) -> None:
        """Close the room at the first signal; at the second, without waiting for the members."""

        def end() -> None:
            if self.ended.is_set():
                self.close_now.set()
            self.ended.set()

        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(signum) is not signal.SIG_IGN:  # `nohup` has SIGHUP ignored
                asyncio.get_running_loop().add_signal_handler(signum, end)

    async def _until_ended(self, screen: Screen, console: HostConsole, server: SpaceServer, record: ChatLog) -> None:
        commands = HostCommands(
            rows=rows_at("room"),
            otherwise="Anything else is said in the room.",
            roster=self.roster,
            clock=self.clock,
            say=server.broadcast_from_host,
            remove=server.remove,
            recent=record.get_recent_history,
            show=console.show,
            ended=self.ended,
        )
        working = asyncio.create_task(console.serve(commands, server.broadcast_from_host, self.ended), name="console")
        listening = asyncio.create_task(screen.run(console.submit, tuple(commands.rows)), name="screen")
        ending = asyncio.create_task(self.ended.wait(), name="end")
        tasks = working, listening, ending
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if listening.done() and not self.ended.is_set():
                await console.idle()
        finally:
            for task in tasks:
                task.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, Exception):
                    console.note("error", "The terminal failed", repr(outcome))

    async def _drain(self, console: HostConsole, server: SpaceServer) -> None:
        """Tell the members that the room closes, and give them time to finish."""
        self.ended.set()
        server.broadcast_shutdown()
        if not server.get_connected_agents():
            return
        console.note("info", "Closing the room", "everybody is told, and has three seconds; Ctrl+C closes at once")
        waiting = asyncio.create_task(self.close_now.wait())
        await asyncio.wait([waiting], timeout=_DRAIN_S)
        waiting.cancel()


@asynccontextmanager
async def _advertised(options: RoomOptions, port: int, console: HostConsole) -> AsyncIterator[Advertisement | None]:
    """Advertise a room that others can reach without a token; a failure is shown, and the room stays open."""
    if options.is_local or options.token:
        yield None
        return
    made = await advertise(options.name, port, (options.bind,))
    if isinstance(made, Err):
        console.note("warn", made.error, "agents that know its SPACE_URL find it all the same")
        yield None
        return
    try:
        yield made.data
    finally:
        await made.data.close()


def _show_address(options: RoomOptions, port: int, found: Advertisement | None, console: HostConsole) -> None:
    console.note("done", f"Listening on port {port}", f"of {options.bind}")
    host = next(iter(lan_addresses((options.bind,))), options.bind)
    place = f"[{host}]" if ":" in host else host
    # NOTE(self): not a row, which would be wrapped: the address is meant to be copied.
    console.print([f"  SPACE_URL=ws://{place}:{port}{_token_query(options.token)}"])
    if found is not None:
        console.note("done", f"Advertised on the local network as {found.name}")
    if options.is_local:
        console.note("info", "Only agents on this machine can join", "--bind lan opens the room to the local network")
    elif options.token:
        console.note("info", "Not advertised", "with a token, agents need the SPACE_URL")
    else:
        console.note("warn", "Everybody on the network can join and read along", "SPACE_TOKEN asks them for a secret")


def _token_query(token: str) -> str:
    """Return the query of the address of a room with a token: the token on a terminal, a placeholder in a log."""
    if not token:
        return ""
    written = quote(token, safe="")
    if sys.stdout.isatty():
        return f"/?token={written}"
    return "/?token=<the token>" if written == token else "/?token=<the token, percent-encoded>"


def _screen(options: RoomOptions, roster: Roster, clock: Clock, out: Outlet) -> Screen:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return LineScreen(out, until_eof=options.until_eof)
    from soul.room_host.terminal_screen import TerminalScreen  # noqa: PLC0415 - drawing is for terminals only

    return TerminalScreen(roster, clock, out)


def _record(folder: Path, console: HostConsole) -> ChatLog:
    """Open and return the record. A later failure to write is shown to the host.

    Raises:
        StorageError: the record cannot be written.

    """
    loop = asyncio.get_running_loop()

    def report(line: str) -> None:
        loop.call_soon_threadsafe(console.note, "error", line)

    record = ChatLog(folder, report=report)
    record.open()
    return record


def _start_error(options: RoomOptions, why: Err) -> ConfigError:
    if why.kind == "conflict":
        return PortTaken(
            f"port {options.port} on {options.bind} is in use",
            remedy="Close the room that is open there, or choose another port with --port or SPACE_PORT.",
        )
    if why.kind == "not_found":
        return ConfigError(why.error, remedy="Use --bind loopback, --bind lan, or an address that it has.")
    return ConfigError(why.error, remedy="Check --bind and --port.")


def _show_failure(console: HostConsole, context: dict[str, Any]) -> None:
    """Show an exception of a task that nobody awaits; the room stays open."""
    error = context.get("exception")
    console.note("error", str(context.get("message", "Something failed")), repr(error) if error else "")

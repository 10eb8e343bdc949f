"""Opens a room, keeps it open until its host leaves, and closes it after telling every member.

Each line of the record is on disk at once. After a kill the members reconnect by themselves when the room opens again.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from adapters.space.advertise import Advertisement, advertise, lan_addresses
from adapters.space.chatlog import ChatLog
from adapters.space.server import SpaceServer
from common.clock import Clock, SystemClock
from common.constants import SECOND_MS
from common.errors import ConfigError, PortTaken
from common.result import Err
from soul.command_table import rows_at
from soul.room_host.folder import default_folder, exclusive_folder
from soul.room_host.host_commands import HostCommands
from soul.room_host.host_console import HostConsole
from soul.room_host.room_options import RoomOptions
from soul.room_host.roster import Roster
from soul.room_host.screen import LineScreen, Screen
from soul.terminal.outlet import Outlet
from soul.terminal.text import one_line

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
            if signal.getsignal(signum) is not signal.SIG_IGN:  # nohup asks not to be hung up
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
    """Advertise a room that is reachable and has no token; a failure is shown, and the room stays open."""
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
    # NOTE(self): no row, which would be wrapped: the address is there to be copied.
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
    """Returns the query of the address for a room with a token: the token on a terminal, a placeholder in a log."""
    if not token:
        return ""
    written = quote(token, safe="")
    if sys.stdout.isatty():
        return f"/?token={written}"
    return "/?token=<the token>" if written == token else "/?token=<the token, percent-encoded>"


def _screen(options: RoomOptions, roster: Roster, clock: Clock, out: Outlet) -> Screen:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return LineScreen(out, until_eof=options.until_eof)
    from soul.room_host.terminal_screen import TerminalScreen  # noqa: PLC0415 - the drawing library is for terminals only

    return TerminalScreen(roster, clock, out)


def _record(folder: Path, console: HostConsole) -> ChatLog:
    """Returns the opened record. A later failure to write is shown to the host.

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

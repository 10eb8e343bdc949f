"""Opens a room, keeps it open until its host goes, and closes it with everybody told.

The record is on disk line by line. A kill leaves the members to come back by themselves when the room opens again.
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
from common.constants import SECOND_MS, SPACE_SHUTDOWN_DRAIN_MS
from common.errors import ConfigError
from common.result import Err
from soul.room_host.company import Company
from soul.room_host.desk import Desk
from soul.room_host.folder import default_folder, kept_alone
from soul.room_host.line_screen import LineScreen
from soul.room_host.orders import Orders
from soul.room_host.plan import RoomPlan
from soul.room_host.screen import Screen
from soul.terminal.outlet import Outlet
from soul.terminal.text import one_line

_LAST_LINES_S = 1.0
_DRAIN_S = SPACE_SHUTDOWN_DRAIN_MS / SECOND_MS


def host_room(plan: RoomPlan) -> None:
    """Host it from this terminal. Raises `ConfigError` or `StorageError` for what only the caller can mend."""
    with kept_alone(plan.folder or default_folder(plan.name), plan.name) as folder:
        out = Outlet(sys.stdout)
        try:
            asyncio.run(_Hosting(plan, folder, out).live())
        finally:
            out.finish(_LAST_LINES_S)


@dataclass(slots=True)
class _Hosting:
    plan: RoomPlan
    folder: Path
    out: Outlet
    clock: Clock = field(default_factory=SystemClock)
    company: Company = field(default_factory=Company)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    hurry: asyncio.Event = field(default_factory=asyncio.Event)

    async def live(self) -> None:
        self._heed_signals()
        screen = _screen(self.plan, self.company, self.clock, self.out)
        desk = Desk(screen, self.company, self.clock)
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: _show_trouble(desk, context))
        record = _record(self.folder, desk)
        server = SpaceServer(record, desk, clock=self.clock, token=self.plan.token, origins=self.plan.origins)
        name = one_line(self.plan.name)
        started = await server.start(self.plan.port, (self.plan.bind,))
        if isinstance(started, Err):
            raise _no_door(self.plan, started)
        try:
            desk.print(["", f"  « {name} »", "  AGENT SPACE", ""])
            async with _advertised(self.plan, server.port, desk) as found:
                _tell_where(self.plan, server.port, found, desk)
                desk.note("done", "Space ready", "Enter says it to all, /help lists what else there is")
                desk.draw_all()
                await self._until_gone(screen, desk, server, record)
            await self._drain(desk, server)
        finally:
            await server.stop()
            desk.draw_all()
        screen.print(["", f"  « {name} » is closed. Good-bye.", ""])

    def _heed_signals(self) -> None:
        """The first one closes the room, the next one spares those who are in it the wait."""

        def end() -> None:
            if self.ended.is_set():
                self.hurry.set()
            self.ended.set()

        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(signum) is not signal.SIG_IGN:  # nohup asks not to be hung up
                asyncio.get_running_loop().add_signal_handler(signum, end)

    async def _until_gone(self, screen: Screen, desk: Desk, server: SpaceServer, record: ChatLog) -> None:
        orders = Orders(
            self.company,
            self.clock,
            say=server.broadcast_from_host,
            recent=record.get_recent_history,
            show=desk.show,
            ended=self.ended,
        )
        working = asyncio.create_task(desk.serve(orders.all(), server.broadcast_from_host, self.ended), name="desk")
        listening = asyncio.create_task(screen.run(desk.heard), name="screen")
        ending = asyncio.create_task(self.ended.wait(), name="end")
        tasks = working, listening, ending
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if listening.done() and not self.ended.is_set():
                await desk.idle()
        finally:
            for task in tasks:
                task.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(outcome, Exception):
                    desk.note("error", "The terminal failed", repr(outcome))

    async def _drain(self, desk: Desk, server: SpaceServer) -> None:
        """Let those who are here finish what they do."""
        self.ended.set()
        server.broadcast_shutdown()
        if not server.get_connected_agents():
            return
        desk.note("info", "Closing the room", "everybody is told, and has three seconds; Ctrl+C closes at once")
        waiting = asyncio.create_task(self.hurry.wait())
        await asyncio.wait([waiting], timeout=_DRAIN_S)
        waiting.cancel()


@asynccontextmanager
async def _advertised(plan: RoomPlan, port: int, desk: Desk) -> AsyncIterator[Advertisement | None]:
    """Make it known on the local network, where that helps anybody; trouble with that is no trouble for the room."""
    if plan.is_local or plan.token:
        yield None
        return
    made = await advertise(plan.name, port, (plan.bind,))
    if isinstance(made, Err):
        desk.note("warn", made.error, "agents that know its SPACE_URL find it all the same")
        yield None
        return
    try:
        yield made.data
    finally:
        await made.data.close()


def _tell_where(plan: RoomPlan, port: int, found: Advertisement | None, desk: Desk) -> None:
    desk.note("done", f"Listening on port {port}", f"of {plan.bind}")
    host = next(iter(lan_addresses((plan.bind,))), plan.bind)
    place = f"[{host}]" if ":" in host else host
    # NOTE(self): no row of ours, which would be broken into lines where it is long: it is there to be copied.
    desk.print([f"  SPACE_URL=ws://{place}:{port}{_key(plan.token)}"])
    if found is not None:
        desk.note("done", f"Advertised on the local network as {found.name}")
    if plan.is_local:
        desk.note("info", "Only agents on this machine can join", "--bind lan opens the room to the local network")
    elif plan.token:
        desk.note("info", "Not advertised", "with a token, agents need the SPACE_URL")
    else:
        desk.note("warn", "Everybody on the network can join and read along", "SPACE_TOKEN asks them for a secret")


def _key(token: str) -> str:
    """The end of the address for a room with a token: as it works on a terminal, without the secret in a log."""
    if not token:
        return ""
    written = quote(token, safe="")
    if sys.stdout.isatty():
        return f"/?token={written}"
    return "/?token=<the token>" if written == token else "/?token=<the token, percent-encoded>"


def _screen(plan: RoomPlan, company: Company, clock: Clock, out: Outlet) -> Screen:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return LineScreen(out, until_eof=plan.until_eof)
    from soul.room_host.terminal_screen import TerminalScreen  # noqa: PLC0415 - the drawing library is for terminals only

    return TerminalScreen(company, clock, out)


def _record(folder: Path, desk: Desk) -> ChatLog:
    """The room's record, opened before anybody can come in. What the disk refuses later is shown to the host.

    Raises:
        StorageError: it cannot be written.

    """
    loop = asyncio.get_running_loop()

    def report(line: str) -> None:
        loop.call_soon_threadsafe(desk.note, "error", line)

    record = ChatLog(folder, report=report)
    record.open()
    return record


def _no_door(plan: RoomPlan, why: Err) -> ConfigError:
    if why.kind == "conflict":
        return ConfigError(
            f"port {plan.port} on {plan.bind} is in use",
            remedy="Close the room that is open there, or choose another port with --port or SPACE_PORT.",
        )
    if why.kind == "not_found":
        return ConfigError(why.error, remedy="Use --bind loopback, --bind lan, or an address that it has.")
    return ConfigError(why.error, remedy="Check --bind and --port.")


def _show_trouble(desk: Desk, context: dict[str, Any]) -> None:
    """Something went wrong that nobody waits for: it is shown, and the room stays open."""
    error = context.get("exception")
    desk.note("error", str(context.get("message", "Something failed")), repr(error) if error else "")

"""`soul run`: one SOUL, one process, until Ctrl-C or something that only the owner can mend."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import sys
from pathlib import Path

from common.clock import SystemClock
from common.errors import BudgetExceeded, ConfigError, Fatal, SoulError
from common.files import storage_error
from common.settings import Settings, load_settings
from modules.home import Home, HomeLock
from soul.app import App, open_soul
from soul.terminal.commands import Commands
from soul.terminal.commissioning import somebody_listens
from soul.terminal.owner_commands import OwnerCommands
from soul.terminal.plain import PlainConsole, typed_lines

_QUIT = {"exit", "quit"}
_NOTHING_YET = ""


def run_life(root: Path, *, social_only: bool, flush_all: bool) -> None:
    """Live. Raises `Fatal` with a remedy."""
    settings = load_settings(root)
    home = Home.at(root, settings.memory_dir)
    if flush_all:
        flush(home, settings)
    asyncio.run(_live(settings, home, social_only=social_only))


def flush(home: Home, settings: Settings) -> None:
    """Forget: delete `.memory` whole. SOUL.md, SELF.md and .env stay."""
    with HomeLock(home, agent_name=settings.agent_name, started_at=SystemClock().now()):
        if not home.memory.exists():
            return
        if home.root.is_relative_to(home.memory) or not _is_memory(home):
            raise ConfigError(
                f"{home.memory} does not look like a SOUL's memory; nothing was deleted",
                remedy="Check MEMORY_DIR, or delete the folder by hand if it is the right one.",
            )
        try:
            shutil.rmtree(home.memory)
        except OSError as error:
            raise storage_error(home.memory, error) from error
        sys.stdout.write(f"Forgot everything under {home.memory}\n")


def _is_memory(home: Home) -> bool:
    """The usual folder, or one that holds what only a SOUL's memory holds."""
    if home.memory == home.root / ".memory":
        return True
    known = {home.database.name, home.status.name, home.session.name}
    return any(path.name in known for path in home.memory.iterdir())


async def _live(settings: Settings, home: Home, *, social_only: bool) -> None:
    clock = SystemClock()
    terminal = PlainConsole(clock, timezone=settings.soul_timezone)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) is not signal.SIG_IGN:  # nohup asks not to be hung up
            loop.add_signal_handler(signum, ended.set)
    async with open_soul(
        settings, home, console=terminal, clock=clock, rng=random.Random(), social_only=social_only
    ) as app:
        if social_only:
            terminal.line("sys", "Social-only: GitHub, code and self-improvement are off")
        await _until(ended, app, terminal)


async def _until(ended: asyncio.Event, app: App, terminal: PlainConsole) -> None:
    waking = asyncio.create_task(app.wake(), name="wake")
    stopped = asyncio.create_task(ended.wait(), name="stopped")
    await asyncio.wait([waking, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not waking.done():
        waking.cancel()
        await asyncio.gather(waking, return_exceptions=True)
        return
    waking.result()
    talk = asyncio.create_task(_talk(app, terminal, ended), name="owner")
    try:
        await app.run(ended)
    finally:
        talk.cancel()
        await asyncio.gather(talk, return_exceptions=True)


async def _talk(app: App, terminal: PlainConsole, ended: asyncio.Event) -> None:
    """Hear the owner, line after line. The end of input ends the talk, not the life."""
    rails = app.rails
    commands = OwnerCommands(
        settings=rails.settings,
        home=rails.home,
        clock=rails.clock,
        database=rails.database,
        outbox=rails.outbox,
        scheduler=app.scheduler,
        owner=app.owner,
        commissioning=rails.knowledge.commissioning,
        ended=ended,
    ).all()
    said: asyncio.Queue[str] = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        group.create_task(_answer(app, terminal, said), name="answers")
        if somebody_listens(sys.stdin):
            said.put_nowait(_NOTHING_YET)
        async for line in typed_lines():
            if line.lower() in _QUIT:
                ended.set()
            elif line.startswith("/"):
                await _obey(commands, terminal, line)
            else:
                said.put_nowait(line)


async def _obey(commands: Commands, terminal: PlainConsole, line: str) -> None:
    """A slash command works at once, also while the SOUL thinks about what was said before."""
    try:
        terminal.show(await commands.answer(line))
    except SoulError as error:
        terminal.line("error", str(error), error.remedy)
    except Exception as error:
        terminal.line("error", f"{line}: {type(error).__name__}: {error}")


async def _answer(app: App, terminal: PlainConsole, said: asyncio.Queue[str]) -> None:
    while True:
        line = await said.get()
        if line != _NOTHING_YET:
            terminal.line("think", "Thinking about what you said")
        try:
            answer = await (app.owner.answer(line) if line != _NOTHING_YET else app.owner.open())
        except Fatal as error:
            app.scheduler.doom(error)
            return
        except BudgetExceeded as error:
            terminal.line("warn", str(error), error.remedy)
        except SoulError as error:
            terminal.line("error", str(error), error.remedy)
        except Exception as error:
            terminal.line("error", f"No answer: {type(error).__name__}: {error}")
        else:
            if answer or line != _NOTHING_YET:
                terminal.say(app.rails.identity.display_name, answer or "(no words)")

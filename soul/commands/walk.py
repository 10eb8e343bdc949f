"""`soul walk`: each thing once, in order, each step with its true outcome."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

from common.clock import SystemClock
from common.errors import Fatal, SoulError
from common.settings import Settings, load_settings
from modules.home import Home
from modules.llm_gateway.types import Message
from soul.app import App, open_soul
from soul.facts import spoken_situation
from soul.terminal.plain import PlainConsole


def run_walk(root: Path, *, social_only: bool) -> bool:
    """Walk; True if every step succeeded."""
    settings = load_settings(root)
    return asyncio.run(_walk(settings, Home.at(root, settings.memory_dir), social_only=social_only))


async def _walk(settings: Settings, home: Home, *, social_only: bool) -> bool:
    clock = SystemClock()
    console = PlainConsole(clock, timezone=settings.soul_timezone)
    async with open_soul(
        settings, home, console=console, clock=clock, rng=random.Random(), social_only=social_only
    ) as app:
        await app.wake()
        steps: tuple[tuple[str, Callable[[App], Awaitable[str]]], ...] = (
            ("Grounding", _ground),
            ("Awareness", _look),
            ("Expression", _express),
            ("Outbox", _drain),
            ("Summary", _sum_up),
        )
        succeeded = True
        for name, step in steps:
            console.line("act", name)
            try:
                console.line("done", name, await step(app))
            except Fatal:
                raise
            except SoulError as error:
                console.line("error", f"{name}: {error}", error.remedy)
                succeeded = False
    return succeeded


async def _ground(app: App) -> str:
    rails = app.rails
    return await rails.gateway.chat(
        [Message("user", rails.skills.render("grounding", "User Message"))],
        system=rails.identity.system_prompt("grounding"),
        purpose="grounding",
    )


async def _look(app: App) -> str:
    return (await app.awareness.run()).reason


async def _express(app: App) -> str:
    return (await app.expression.express()).reason


async def _drain(app: App) -> str:
    report = await app.rails.outbox.deliver_due()
    waiting = f"; more may go in {report.next_in_s:.0f} s, `soul run` sends it" if report.next_in_s else ""
    return f"{report.done} sent{waiting}"


async def _sum_up(app: App) -> str:
    return spoken_situation(await app.facts.gather())

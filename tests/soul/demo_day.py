"""A day of the demo: its town, its three homes and its passer-by, on the clock of a day that takes minutes.

The residents are whole SOULs in one process, as `soul demo` sets them up, with the scripted mind over HTTP. Their loops
are run by `Rhythm`; a look that can find nothing is left out, for it uses no model: notifications are read once
something has changed on the network, and the room is looked at less often while nobody speaks in it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.clock import parse_iso
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from soul.app import open_soul
from soul.commands.demo import PASSES_BY_AFTER_S, ask_in_passing, make_home
from soul.commands.demo_controls import HomeControls
from tests.running_town import settings_of
from tests.scenarios.room_day import Onlooker, Rhythm
from tests.scenarios.room_day_clock import MORNING, DayClock, DayLoop
from town import passing_by
from town.town import Town, open_town

HOUR_S = 3600.0
_SEED = 5
_AFTER_A_CHANGE_S = 3.0
_REST_S = 30.0


@dataclass
class Record:
    """What is left of the day. Moments are seconds since the demo began."""

    posts: list[tuple[float, str]] = field(default_factory=list)
    """Every public post with its author's handle, oldest first."""
    said: list[float] = field(default_factory=list)
    """When somebody spoke in the room."""
    tokens: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """By resident: tokens in each hour."""
    calls: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By resident: calls of the model, by purpose."""
    troubles: list[str] = field(default_factory=list)


def live_a_day(root: Path, *, until_s: float = 24 * HOUR_S, speed: float = 180) -> Record:
    """Let a day of the demo pass, or its beginning."""
    record = Record()
    logging.disable(logging.INFO)
    with asyncio.Runner(loop_factory=DayLoop) as runner:
        runner.run(_day(root, record, until_s, speed))
    logging.disable(logging.NOTSET)
    return record


async def _day(root: Path, record: Record, until_s: float, speed: float) -> None:
    clock = DayClock()
    async with open_town(homes=root, controls=HomeControls({}), clock=clock) as town:
        visits = passing_by.pass_by(town.space_url, clock, random.Random(_SEED), first_s=PASSES_BY_AFTER_S)
        passing = asyncio.create_task(visits)
        ended = asyncio.Event()
        homes = {one.name: make_home(root / one.name, one, town, speed) for one in town.residents}
        lives = [asyncio.create_task(_live(home, name, clock, town, ended)) for name, home in homes.items()]
        ask_in_passing(town)
        stop = asyncio.create_task(clock.until(until_s))
        await asyncio.wait([stop, *lives], return_when=asyncio.FIRST_COMPLETED)
        ended.set()
        passing.cancel()
        for found in await asyncio.gather(*lives):
            record.troubles += found
        with suppress(asyncio.CancelledError):
            await passing
        record.posts = sorted(
            ((parse_iso(post.created_at) - MORNING).total_seconds(), post.author.handle)
            for post in town.network.posts(100_000)
        )
    record.said = sorted(_said(root))
    for name, home in homes.items():
        for call in _usage(home):
            hour = int((parse_iso(call["ts"]) - MORNING).total_seconds() // HOUR_S)
            record.tokens[name][hour] += call["input"] + call["output"]
            record.calls[name][call["purpose"]] += 1


async def _live(home: Home, name: str, clock: DayClock, town: Town, ended: asyncio.Event) -> list[str]:
    """One resident, until `ended`; the errors in its journal."""
    settings = settings_of(home)
    rng = random.Random(f"{_SEED}:{name}")
    async with open_soul(settings, home, console=SilentConsole(), clock=clock, rng=rng) as app:
        await app.wake()
        await _DemoRhythm(app, clock, Onlooker(), town=town).keep(ended)
        troubles = await app.services.journal.recent(100_000, kinds=["error"])
    return [f"{name}: {entry.entry.summary}" for entry in troubles]


@dataclass
class _DemoRhythm(Rhythm):
    town: Town | None = None
    _changed: float = 0.0

    async def keep(self, ended: asyncio.Event) -> None:
        """Until `ended`."""
        assert self.town
        unsubscribe = self.town.network.subscribe(lambda _: self._change())
        own = [
            asyncio.create_task(self._beat("awareness", self._next_reading)),
            asyncio.create_task(self._beat("expression-check", self._next_post)),
        ]
        try:
            await super().keep(ended)
        finally:
            unsubscribe()
            for task in own:
                task.cancel()
            await asyncio.gather(*own, return_exceptions=True)

    def silent_s(self) -> float:
        received = self.app.lives.space.participation.talk.state.last_message_at
        return (self.clock.now() - received).total_seconds() if received else 0.0

    def _change(self) -> None:
        self._changed = self.clock.monotonic()
        self._sooner["awareness"].set()

    async def _next_reading(self, requested: float | None) -> float:
        own = requested or self.interval("awareness")
        if (
            self.clock.monotonic() - self._changed < _AFTER_A_CHANGE_S
            or await self.app.lives.bluesky_state.pending.count()
        ):
            return own
        return max(own, _REST_S)

    async def _next_post(self, requested: float | None) -> float:
        due = self.app.lives.bluesky.expression.next_at
        left = (due - self.clock.now()).total_seconds() if due else 0.0
        return max(requested or 0.0, left, 0.1)


def _usage(home: Home) -> Iterator[dict[str, Any]]:
    """All calls of the model, the part of the log that was set aside included."""
    for path in home.memory.glob("llm-usage.jsonl*"):
        for line in path.read_text("utf-8").splitlines():
            yield json.loads(line)


def _said(root: Path) -> Iterator[float]:
    """When somebody spoke in the room, by its record."""
    for path in root.glob(".room/**/*.jsonl*"):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row.get("type") == "chat":
                yield (parse_iso(row["timestamp"]) - MORNING).total_seconds()

"""What this life is, once it is put together, and how its owner starts a ritual by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from modules.lives.rituals.perceive import RitualPerceiver, new_opening
from modules.services.rituals.policy import OPENING_KIND, ritual_key
from modules.services.rituals.rituals import Rituals
from modules.services.work.table import WorkTable
from modules.services.work.types import Handler

StartCode = Literal["unknown", "runs-already", "opened", "waits", "not-opened"]


@dataclass(frozen=True, slots=True)
class Started:
    """What came of starting a ritual by hand: `about` is the thread, the names that there are, or why it was not."""

    code: StartCode
    name: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class RitualLife:
    """The life: `handlers` and `perceiver` go into the loop over the table of work."""

    rituals: Rituals
    work: WorkTable
    handlers: tuple[Handler, ...]
    perceiver: RitualPerceiver

    async def start(self, name: str, handle_now: Callable[[], Awaitable[object]]) -> Started:
        """Open a ritual by hand, on any day and at any hour, unless it was opened today; `handle_now` runs the loop.

        One that was given up today gets another chance.
        """
        listed, key, day = self.rituals.listed(), ritual_key(name), self.rituals.now().date()
        ritual = listed.get(key)
        if ritual is None:
            return Started("unknown", name, ", ".join(one.name for one in listed.values()))
        if run := await self.rituals.runs.of_day(key, day):
            return Started("runs-already", ritual.name, run.thread_uri)
        row = new_opening(key, day, by_hand=True)
        known = await self.work.get(OPENING_KIND, row.key)
        if known and known.state != "pending":
            row = new_opening(key, day, by_hand=True, again=True)
        await self.work.add(row)
        await handle_now()
        if run := await self.rituals.runs.of_day(key, day):
            return Started("opened", ritual.name, run.thread_uri)
        after = await self.work.get(OPENING_KIND, row.key)
        if after and after.state == "pending":
            return Started("waits", ritual.name, after.not_before)
        return Started("not-opened", ritual.name, after.outcome if after else "")

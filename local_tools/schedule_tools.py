"""Tools for schedules: what the SOUL does, or reminds its owner of, at set times.

No words of others make or remove one: among them, only what the owner's newest line gives word for word counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import BaseModel

from common.clock import local, spoken
from common.provenance import Provenance
from local_tools.words import OWN_TOOLS, NoInput, ToolWords
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.schedules.policy import MOST, WHAT_CHARS, Repeat, Schedule
from modules.services.schedules.schedules import Schedules
from modules.services.skills.skills import Skills


class ScheduleAddInput(BaseModel):
    """What, and when: a local date and time."""

    what: str
    at: str
    repeat: Repeat = "once"
    remind: bool = False


class ScheduleRemoveInput(BaseModel):
    """Which one."""

    number: int


@dataclass(slots=True)
class ScheduleTools:
    """The handlers, with what they need."""

    schedules: Schedules
    skills: Skills
    words: ToolWords = field(init=False)

    def __post_init__(self) -> None:
        self.words = ToolWords(self.skills, OWN_TOOLS)

    async def add(self, args: ScheduleAddInput, turn: Turn) -> ToolResult:
        """Schedule something; at the owner's word where their line asks for it, else as an idea of the SOUL's own."""
        zone, what = self.schedules.timezone, args.what.strip()
        if not what or len(what) > WHAT_CHARS:
            return self.words.error("Schedule Form", most=WHAT_CHARS)
        try:
            moment = datetime.fromisoformat(args.at.strip()).replace(second=0, microsecond=0)
            at = local(moment, zone).replace(tzinfo=None) if moment.tzinfo else moment
            added = await self.schedules.add(
                what,
                at,
                repeat=args.repeat,
                is_reminder=args.remind,
                by="owner" if turn.request else "soul",
            )
        except (ValueError, OverflowError):
            return self.words.error("Schedule Moment")
        if isinstance(added, str):
            now = spoken(local(self.schedules.clock.now(), zone))
            return self.words.error(added, most=MOST, now=now)
        return self.words.done("Schedule Added", number=added.number, due=added.told_due(zone))

    async def listed(self, args: NoInput, turn: Turn) -> ToolResult:
        lines = [one.told(self.schedules.timezone) for one in await self.schedules.all()]
        return ToolResult("\n".join(lines)) if lines else self.words.done("Schedule None")

    async def remove(self, args: ScheduleRemoveInput, turn: Turn) -> ToolResult:
        """Remove a schedule; what the owner scheduled goes at their word alone."""
        meant = await self._at(args)
        if meant is None:
            return self.words.error("Schedule Unknown", number=args.number)
        if meant.by == "owner" and turn.asked_by is not Provenance.OWNER:
            return self.words.error("Schedule Of Owner")
        await self.schedules.remove(args.number)
        return self.words.done("Schedule Removed", number=args.number)

    async def told(self, args: ScheduleRemoveInput, _: Turn) -> str:
        """Return what stands under a number, in words; "" where nothing does."""
        meant = await self._at(args)
        return meant.told(self.schedules.timezone) if meant else ""

    async def _at(self, args: ScheduleRemoveInput) -> Schedule | None:
        return next((one for one in await self.schedules.all() if one.number == args.number), None)


def schedule_tools(tools: ScheduleTools) -> Sequence[Tool]:
    """The family, as the registry takes it."""
    own, tool = Provenance.SELF, tools.words.tool
    add = tool("schedule_add", ScheduleAddInput, "self", own, tools.add, named_only=True)
    remove = tool(
        "schedule_remove", ScheduleRemoveInput, "self", own, tools.remove, named_only=True, own_act=tools.told
    )
    return (
        replace(add, stretches=frozenset({"what"})),
        tool("schedule_list", NoInput, "self", own, tools.listed, effect="look"),
        remove,
    )

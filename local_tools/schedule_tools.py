"""Tools for schedules: what the SOUL does, or reminds its owner of, at set times.

Others' words never create, change or remove one: beside them, only the owner's newest line counts, in its words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from common.clock import local, spoken
from common.provenance import Provenance
from local_tools.words import OWN_TOOLS, NoInput, ToolWords
from modules.services.agent.tools.policy import edited, is_worded
from modules.services.agent.tools.types import OwnAct, Tool, ToolResult, Turn
from modules.services.schedules import MOST, WHAT_CHARS, By, Repeat, Schedule, Schedules, schedule_number
from modules.services.skills.skills import Skills

Named = Annotated[str, BeforeValidator(lambda one: f"S{n}" if (n := schedule_number(str(one))) else str(one or ""))]
"""The name of a schedule; "" for none. A model may give only the number: a judge reads the name."""


class ScheduleAddInput(BaseModel):
    """The thing to do, and a local date and time. With `changes`, fields that are left out stay unchanged."""

    what: str = ""
    at: str = ""
    repeat: Repeat = "once"
    remind: bool = False
    changes: Named = ""


class ScheduleRemoveInput(BaseModel):
    """The schedule to remove."""

    number: Named


@dataclass(slots=True)
class ScheduleTools:
    """The handlers, with their services."""

    schedules: Schedules
    skills: Skills
    words: ToolWords = field(init=False)

    def __post_init__(self) -> None:
        self.words = ToolWords(self.skills, OWN_TOOLS)

    async def add(self, args: ScheduleAddInput, turn: Turn) -> ToolResult:
        """Schedule something, or change a schedule, in one step.

        If the owner's line asks for it, it is the owner's schedule; else it is the SOUL's own idea.
        """
        older = await self._at(args.changes)
        if args.changes and (refused := self._refused(older, args.changes, turn)):
            return refused
        if older:
            at = older.at.isoformat()
            stands = {"what": older.what, "at": at, "repeat": older.repeat, "remind": older.is_reminder}
            blank = {name for name in ("what", "at") if not getattr(args, name).strip()}
            args = args.model_copy(
                update={name: stands[name] for name in stands.keys() - args.model_fields_set | blank}
            )
        zone, what = self.schedules.timezone, args.what.strip()
        by: By = "owner" if turn.request and turn.is_at_owner_word else "soul"
        if older and turn.is_ordered and turn.request and not is_worded(what, turn.request.text):
            what, by = what if edited(what, turn.request.text, older.what) else older.what, older.by
        if not what or len(what) > WHAT_CHARS:
            return self.words.error("Schedule Form", most=WHAT_CHARS)
        same = older if older and older.what == what else None
        written = turn.written if isinstance(turn.written, ScheduleAddInput) else None
        try:
            moment = datetime.fromisoformat(args.at.strip()).replace(second=0, microsecond=0)
            stays = same and (same.repeat, same.is_reminder) == (args.repeat, args.remind)
            if same and stays and written and moment in {same.at, local(same.due, zone).replace(tzinfo=None)}:
                return self.words.error("Schedule Reworded")
            added = await self.schedules.add(
                what,
                local(moment, zone).replace(tzinfo=None) if moment.tzinfo else moment,
                repeat=args.repeat,
                is_reminder=args.remind,
                by=same.by if same else by,
                note=same.note if same else written.what if written and args.remind else "",
                changes=schedule_number(args.changes),
            )
        except (ValueError, OverflowError):
            return self.words.error("Schedule Moment")
        if isinstance(added, str):
            now = spoken(local(self.schedules.clock.now(), zone))
            return self.words.error(added, most=MOST, now=now)
        return self.words.done("Schedule Added", number=added.name, due=added.told_due(zone), noted=bool(added.note))

    async def listed(self, args: NoInput, turn: Turn) -> ToolResult:
        lines = [one.told(self.schedules.timezone) for one in await self.schedules.all()]
        return ToolResult("\n".join(lines)) if lines else self.words.done("Schedule None")

    async def remove(self, args: ScheduleRemoveInput, turn: Turn) -> ToolResult:
        """Remove a schedule; one of the owner's only at their word."""
        if refused := self._refused(await self._at(args.number), args.number, turn):
            return refused
        await self.schedules.remove(schedule_number(args.number))
        return self.words.done("Schedule Removed", number=args.number)

    async def meant(self, args: ScheduleAddInput | ScheduleRemoveInput, _: Turn) -> OwnAct | None:
        """Return the schedule that is meant; None if there is none."""
        meant = await self._at(args.number if isinstance(args, ScheduleRemoveInput) else args.changes)
        if meant is None:
            return None
        return OwnAct(self.words.answer("Schedule Meant", told=meant.told(self.schedules.timezone)), meant.what)

    def _refused(self, meant: Schedule | None, number: str, turn: Turn) -> ToolResult | None:
        """Return the answer if the schedule does not exist, or only the owner may change or remove it."""
        if meant is None:
            return self.words.error("Schedule Unknown", number=number)
        is_theirs = meant.by == "owner" and not turn.is_at_owner_word
        return self.words.error("Schedule Of Owner") if is_theirs else None

    async def _at(self, name: str) -> Schedule | None:
        return next((one for one in await self.schedules.all() if one.name == name), None)


def schedule_tools(tools: ScheduleTools) -> Sequence[Tool]:
    """Return the tools of the family."""
    own, tool = Provenance.SELF, tools.words.tool
    add = tool("schedule_add", ScheduleAddInput, "self", own, tools.add, named_only=True, own_act=tools.meant)
    remove = tool(
        "schedule_remove", ScheduleRemoveInput, "self", own, tools.remove, named_only=True, own_act=tools.meant
    )
    return (
        replace(add, from_line=frozenset({"what"})),
        tool("schedule_list", NoInput, "self", own, tools.listed, effect="look"),
        remove,
    )

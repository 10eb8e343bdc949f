"""Tools to read SELF.md, to rewrite it and two other files of the owner, and to look up what happened and was said.

Every change goes through `SelfKeeper`.
"""

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from pydantic import BaseModel, Field

from common.clock import Clock, age, parse_local_or_none
from common.errors import UsageError
from common.provenance import Provenance
from common.session_keys import is_main
from common.text.untrusted import one_line
from local_tools.memory_tools import session_key_of
from local_tools.words import OWN_TOOLS, NoInput, ToolWords
from modules.lives.growth.policy import OF_APPROVAL, OF_WISH, ReflectionTurn, adds_wish, objection
from modules.lives.rhythm import OwnTimeTurn
from modules.runtime.control import Control
from modules.runtime.home import Home, read_self
from modules.services.agent.tools.policy import edited
from modules.services.agent.tools.types import OwnerRequest, Tool, ToolResult, Turn
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import told_text
from modules.services.exchanges import MOST_FOUND, Spoken, TalkSearch
from modules.services.identity.entries import SELF, SelfEdit, what_moved
from modules.services.identity.keeper import SelfKeeper
from modules.services.identity.policy import AddedLine, line_changes
from modules.services.skills.skills import Framer, Skills
from modules.services.work.types import Disposition

_REASON_CHARS = 200
_JUDGED_CHARS = 1000


_File: TypeAlias = Literal["SELF.md", "GOALS.md", "HEARTBEAT.md"]


class SelfUpdateInput(BaseModel):
    """A new text of SELF.md or of another file, or of one section."""

    content: str
    reason: str
    file: _File = "SELF.md"
    section: str = ""
    experiences: list[str] = Field(default_factory=list)
    drops: list[str] = Field(default_factory=list)
    about_approval: bool = False


class LinesAdded(BaseModel):
    """What a change adds to a file, as a judge is shown it."""

    file: _File
    content: str = ""
    reason: str


class PauseInput(BaseModel):
    """Why the owner wants a pause, in their words."""

    reason: str = ""


class DayReadInput(BaseModel):
    """The day, as 2026-01-31; today if it is left out."""

    day: str = ""


@dataclass(slots=True, kw_only=True)
class SelfTools:
    """The handlers, with their services."""

    home: Home
    keepers: Mapping[str, SelfKeeper]
    days: DayReader
    rng: random.Random
    skills: Skills
    words: ToolWords = field(init=False)

    def __post_init__(self) -> None:
        self.words = ToolWords(self.skills, OWN_TOOLS)

    async def read(self, args: NoInput, turn: Turn) -> ToolResult:
        turn.files[SELF] = read_self(self.home)
        return ToolResult(turn.files[SELF] or self.words.answer("Self Empty"))

    async def day(self, args: DayReadInput, turn: Turn) -> ToolResult:
        try:
            summary = await asyncio.to_thread(self.days.read, args.day)
        except UsageError as error:
            return self.words.error("Day Not Read", reason=f"{error}. {error.remedy}")
        framed = Framer(self.skills, self.rng).frame("reading", author="your program", uri="", text=told_text(summary))
        framed = self.words.answer("Day Told", day=framed)
        return ToolResult(framed, provenance=None if summary.is_own else Provenance.STRANGER)

    async def pause(self, args: PauseInput, turn: Turn) -> ToolResult:
        """Pause the SOUL, as `/pause` does. What ends a pause is left to the owner."""
        Control(self.home.memory).pause(one_line(args.reason, _REASON_CHARS))
        return self.words.done("Paused")

    async def update(self, args: SelfUpdateInput, turn: Turn) -> ToolResult:
        cites: tuple[str, ...] = (turn.cause_id,) if turn.cause_id else ()
        reflects = isinstance(turn.subject, ReflectionTurn)
        keeper = self.keepers.get(SELF if reflects else args.file)
        if keeper is None:
            return self.words.error("File Elsewhere", file=args.file)
        hold = OF_APPROVAL if reflects and args.about_approval else ""
        if isinstance(turn.subject, ReflectionTurn):
            before = read_self(self.home)
            cited = turn.subject.cited(args.experiences)
            if problem := objection(before, args.content, cited, args.section):
                return self.words.error(problem)
            if turn.subject.has_others and adds_wish(before, args.content, args.section):
                hold = OF_WISH
            cites += tuple(one.name for one in cited)
        change = await keeper.change(
            args.content,
            reason=one_line(args.reason, _REASON_CHARS),
            by="soul",
            cites=cites,
            hold=("" if turn.is_ordered else turn.hold) or hold,
            unasked=turn.asked_by is Provenance.SELF,
            section=args.section,
            drops=args.drops if reflects else None,
            is_own=turn.rests_on >= Provenance.SELF,
            base=turn.files.get(keeper.document),
        )
        if change.text:
            turn.files[keeper.document] = change.text
        return told_change(self.words, keeper.document, change)

    async def as_edit(self, args: SelfUpdateInput, request: OwnerRequest) -> tuple[BaseModel, str]:
        """Return the lines that are not the SOUL's own before the change, and what changes in those that are."""
        if (keeper := self.keepers.get(args.file)) is None:
            return args, ""
        removed, added = line_changes(*await keeper.compared(args.content, args.section))
        title = args.file.removesuffix(".md").casefold()
        gone = [one for one in removed if one.strip("# ").casefold() != title]
        added = [one for one in added if one.text.strip("# ").casefold() != title]
        if not (gone or added):
            return args, ""
        placed, new, given = list[str](), list[AddedLine](), list[str]()
        for one in added:
            if one.text in gone:
                gone.remove(one.text)
                placed.append(self._placed("move", one.text, one))
            else:
                new.append(one)
        edits = [*gone]
        for one in new:
            own, text = next(
                ((own, it) for own in edits if (it := edited(one.text, request.text, own, may_swap=True))), ("", "")
            )
            if own:
                edits.remove(own)
                gone.remove(own)
            else:
                given.append(one.text)
            placed.append(self._placed("edit" if own else "new", text or one.text, one))
        shown = [one for place, one in enumerate(gone) if sum(map(len, gone[:place])) < _JUDGED_CHARS]
        told = self.words.answer("Own Lines", file=args.file, lines=shown, more=len(gone) - len(shown), placed=placed)
        content = {"content": "\n".join(given)} if given else {}
        return LinesAdded(reason=args.reason, file=args.file, **content), told

    def _placed(self, kind: str, text: str, line: AddedLine) -> str:
        """Return where a line that was moved, edited or is new stands now."""
        place = {"heading": line.heading, "above": line.above, "below": line.below, "is_end": line.is_last_but_one}
        return self.words.answer("Line Placed", kind=kind, line=text, **place)


def told_change(words: ToolWords, document: str, change: SelfEdit) -> ToolResult:
    """Return the answer on the result of a document change that the model proposed."""
    outcome = Disposition(f"self {change.status}", reason=change.reason)
    match change.status:
        case "changed":
            moved = "".join(f". {line[:1].upper()}{line[1:]}" for line in what_moved(change))
            told = words.answer("Self Changed", file=document, moved=moved, waits=change.still_waits)
            return ToolResult(told, outcome=outcome)
        case "held":
            told = words.answer("Self Held", file=document, reason=change.reason, is_replacing=change.is_replacing)
            return ToolResult(told, outcome=replace(outcome, held=True))
        case _:
            refused = words.error("Self Not Changed", file=document, reason=change.reason, now=change.text)
            return replace(refused, outcome=outcome)


def is_owners_own(turn: Turn) -> bool:
    """Return whether only the owner reads the output of a turn."""
    return is_main(session_key_of(turn)) or isinstance(turn.subject, OwnTimeTurn)


def self_tools(tools: SelfTools) -> Sequence[Tool]:
    """Return the tools of the family."""
    own, tool = Provenance.SELF, tools.words.tool
    given: Mapping[type, frozenset[str]] = {ReflectionTurn: frozenset({"file"})}
    update = tool("self_update", SelfUpdateInput, "self", own, tools.update, holdable=True, given=given)
    return (
        tool("day_read", DayReadInput, "self", Provenance.OWNER, tools.day, effect="look", fits=is_owners_own),
        tool("pause_acts", PauseInput, "self", Provenance.OWNER, tools.pause, named_only=True, fits=is_owners_own),
        tool("self_read", NoInput, "self", own, tools.read, effect="look"),
        replace(update, from_line=frozenset({"reason"}), as_edit=tools.as_edit),
    )


_LOOKED_BACK = timedelta(days=90)


class TalkSearchInput(BaseModel):
    """A search in conversations."""

    words: str = ""
    person: str = ""
    since: str = ""
    limit: int = Field(default=8, ge=1, le=MOST_FOUND)


@dataclass(slots=True)
class TalkTools:
    """The handler, with its services; `rng` draws the boundary of frames, `timezone` is that of days."""

    talk: TalkSearch
    skills: Skills
    clock: Clock
    rng: random.Random
    timezone: str
    words: ToolWords = field(init=False)

    def __post_init__(self) -> None:
        self.words = ToolWords(self.skills, OWN_TOOLS)

    async def search(self, args: TalkSearchInput, turn: Turn) -> ToolResult:
        now = self.clock.now()
        since = parse_local_or_none(args.since, self.timezone) if args.since.strip() else now - _LOOKED_BACK
        if since is None:
            return self.words.error("Day Form", given=repr(one_line(args.since)))
        found = await self.talk.find(args.words, args.person, since, args.limit)
        if not found.shown:
            return self.words.done("Nothing Found")
        framer = Framer(self.skills, self.rng)
        text = framer.frame("conversation", author="several", uri="", text="\n".join(self._lines(found.shown, now)))
        if found.more:
            text = f"{text}\n{self.words.answer('More Found', count=found.more)}"
        is_others = any(one.is_others for one in found.shown)
        return ToolResult(text, provenance=Provenance.STRANGER if is_others else None)

    def _lines(self, found: Sequence[Spoken], now: datetime) -> Iterator[str]:
        """Yield a line for each: its age, its author, the text, and where it was said."""
        for one in found:
            author = f"{'' if one.in_room else '@'}{one.who}" if one.who else "YOU"
            place = self.words.answer("In The Room") if one.in_room else one.uri
            where = self.skills.section("memory", "Not Sent") if one.is_waiting else place
            told = f"[{age(one.at, now)}] {author}: {' '.join(one.text.split())}"
            yield f"{told} ({where})" if where else told


def talk_tools(tools: TalkTools) -> Sequence[Tool]:
    """Return the tools of the family."""
    needs, fits = Provenance.OWNER, is_owners_own
    return (tools.words.tool("talk_search", TalkSearchInput, "self", needs, tools.search, effect="look", fits=fits),)

"""Turns of the SOUL's own, in which nobody talks with it: for HEARTBEAT.md and for due schedules."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from common.clock import Clock, iso, local, parse_iso, spoken
from common.facts import OwnTimeFacts
from common.provenance import Provenance
from common.text.graphemes import leading_part
from common.text.markdown import is_meaningful
from common.text.untrusted import clean, one_line
from modules.runtime.journal.types import UNFINISHED
from modules.runtime.llm.dialect import Message
from modules.runtime.scheduler.policy import is_quiet, not_at_night
from modules.services.agent.prompt.fitting import HEARTBEAT
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.executor import MORE_TOOLS
from modules.services.agent.tools.types import Tool, Turn
from modules.services.agent.turn.runner import TurnRunner
from modules.services.identity.identity import Me
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent
from modules.services.owner import TellOwner
from modules.services.owner_files import OwnerFiles
from modules.services.schedules import KIND, Schedules, schedule_of
from modules.services.skills.skills import Skills
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, NewWork, Perceiver, WorkItem


@dataclass(frozen=True, slots=True)
class OwnTimeTurn:
    """A turn of the SOUL's own. Only the owner may read the texts in `private`, such as its task.

    `seen` is what it was shown: addresses, each with the DID of the author.
    """

    private: Sequence[str]
    seen: dict[str, str] = field(default_factory=dict)


SKILL = "own-time"
_SAID = "said"
"""The code of a turn that said something: only its words tell whether it did what it was for."""
_ACTS = frozenset({"bluesky_post", "schedule_add", "schedule_remove", "web_fetch"})
_ACTS_ORDERED = frozenset({"github_create_issue", "create_memo"})
"""Further tools, only in turns that the owner asked for."""
_ACTS_UNORDERED = frozenset({"memory_save", "self_update"})
"""Tools to store something, only in turns that the owner did not ask for: the owner's turns may read private text."""
_PICTURES = "pictures"
_WORDS_CHARS, _QUERY_CHARS = 2_000, 500


@dataclass(frozen=True, slots=True)
class OwnTurns:
    """Runs turns of the SOUL's own for rows of work, and tells the owner the results."""

    prompter: Prompter
    turn_runner: TurnRunner
    skills: Skills
    outbox: Outbox
    clock: Clock
    tell: TellOwner
    me: Me

    async def run(
        self, item: WorkItem, told: str, *, private: Sequence[str], task: str, asked_by: Provenance
    ) -> Disposition:
        """Run the turn of a row in which the model is `told` what to do; return its disposition.

        No post may repeat a line of the `private` texts, unless the same text gives that line to be posted. `task` is
        what to do, in the words of the SOUL or its owner; `asked_by` says whose. If the model called no tool, or only
        looked and says nothing, there was nothing to do. After a turn that broke, the next one is told which acts of
        the row were accepted. Raises what `TurnRunner.run_turn` raises.
        """
        before = (await self.outbox.accepted(item.cause_id))[::-1]
        done = await self.outbox.ends(before)
        told += "\n\n" + self.skills.render(SKILL, "Begun", acts="\n".join(done)) if done else ""
        subject, query = OwnTimeTurn(private), one_line(task, _QUERY_CHARS)
        accounts = await self.turn_runner.accounts_in(task)
        turn = Turn(
            item.kind, asked_by, item.cause_id, subject, importance=item.importance, accounts=accounts, made=set()
        )
        tools = self.turn_runner.executor.registry.available(turn)
        result = await self.turn_runner.run_turn(
            turn=turn,
            system=await self.prompter.prompt(
                skill=SKILL,
                variables={"handle": self.me.bluesky_username},
                audience="bluesky",
                session_key=item.kind,
                query=query,
                now=self.clock.now(),
                least=Provenance.SELF,
            ),
            messages=(Message("user", told),),
            purpose=SKILL,
            only=[one.name for one in tools if is_own(one, turn)],
            about=OwnTimeFacts(query),
        )
        words = leading_part(clean(result.said), _WORDS_CHARS)
        if result.stopped in UNFINISHED or (result.cut_off and not words):
            return Disposition("undecided", "unfinished", result.cut_off, provenance=result.provenance)
        looks = {one.name for one in tools if one.effect == "look"}
        did = any(not answer.is_error and (words or call.name not in looks) for call, answer in result.calls)
        did = did or bool(before)
        held = any(one.state == "held" for one in before) or any(answer.outcome.held for _, answer in result.calls)
        code = _SAID if words else "done" if did else "nothing-to-do"
        reason = words or "; ".join(done) or ("" if did else "there was nothing to tell")
        return Disposition("done" if did else "silent", code, reason, held=held, provenance=result.provenance)

    async def tell_end(self, item: WorkItem, disposition: Disposition, what: str, *, is_owners: bool) -> None:
        """Tell the owner how a row ended: always if they asked for it, else only if something was done or given up."""
        if is_owners or (disposition.act != "silent" and disposition.reason):
            did = {"dropped": "gave up", "silent": "did nothing for"}.get(disposition.act, "did")
            did = "reports on" if disposition.code == _SAID else did
            did = "left a draft for" if disposition.held else did
            headline = f"{self.me.agent_name} {did} {what}"
            words, provenance = disposition.reason, disposition.provenance
            await self.tell(item.cause_id, headline, words, provenance, at_once=False)


def is_own(tool: Tool, turn: Turn) -> bool:
    """Return whether a turn of the SOUL's own offers an available tool: it only looks, or is one of a few acts."""
    if tool.effect == "look":
        return tool.name != MORE_TOOLS and tool.family != _PICTURES
    return tool.name in _ACTS | (_ACTS_UNORDERED if turn.asked_by is Provenance.SELF else _ACTS_ORDERED)


HEARTBEAT_TURN = "heartbeat-turn"


@dataclass(kw_only=True)
class HeartbeatHandler(Handler, Perceiver):
    """Adds a row when it is time and the file says something, and runs its turn. `every`: lived time, 0 for never."""

    kind = HEARTBEAT_TURN
    is_public = False
    line = "info"

    every: timedelta
    work: WorkTable
    owner_files: OwnerFiles
    turns: OwnTurns
    clock: Clock
    timezone: str

    async def perceive(self) -> None:
        now = self.clock.now()
        if not self.every or is_quiet(now, self.timezone, keeps_hours=self.clock.keeps_hours):
            return
        for last in await self.work.newest(HEARTBEAT_TURN, 1):
            if last.state == "pending" or self.clock.since(parse_iso(last.created_at)) < self.every:
                return
        if await self._text():
            await self.work.add(NewWork(HEARTBEAT_TURN, iso(now)))

    async def due(self) -> datetime | None:
        """Return when the next turn is due; None for never, or if one waits already."""
        if not self.every or not await self._text():
            return None
        moment = self.clock.now()
        for last in await self.work.newest(HEARTBEAT_TURN, 1):
            if last.state == "pending":
                return None
            moment = parse_iso(last.created_at) + self.clock.real(self.every)
        return not_at_night(max(moment, self.clock.now()), self.timezone, keeps_hours=self.clock.keeps_hours)

    async def handle(self, item: WorkItem) -> Disposition:
        text = await self._text()
        if not text:
            return Disposition("silent", "empty", f"{HEARTBEAT} says nothing any more")
        before = [one for one in await self.work.newest(HEARTBEAT_TURN, 2) if one.id != item.id]
        last = spoken(local(parse_iso(before[0].created_at), self.timezone)) if before else ""
        told = self.turns.skills.render(SKILL, "Heartbeat", text=text, last=last)
        return await self.turns.run(item, told, private=(told,), task=text, asked_by=Provenance.SELF)

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> None:
        """Return None: the turn is run again, and told what was accepted."""

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Tell the owner what was done, if anything was."""
        await self.turns.tell_end(item, disposition, f"what was due in {HEARTBEAT}", is_owners=False)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal line about a disposition."""
        did = {"silent": "nothing to do", "later": "has to wait", "done": "looked after it"}
        return f"{HEARTBEAT}: {did.get(disposition.act, disposition.act)}"

    async def _text(self) -> str:
        """Return the text of the file, or "" if it says nothing."""
        text = await self.owner_files.read(HEARTBEAT) or ""
        return text if is_meaningful(text) else ""


_WHAT_CHARS = 120
_LATE = timedelta(minutes=10)
"""A reminder that comes later than this says when it was due."""


@dataclass(kw_only=True)
class ScheduleHandler(Handler):
    """Handles each due time once, and tells the owner the result."""

    kind = KIND
    is_public = False
    line = "info"

    schedules: Schedules
    turns: OwnTurns
    owner_files: OwnerFiles

    def needs_attention(self, item: WorkItem) -> bool:
        return not schedule_of(item).is_reminder

    async def handle(self, item: WorkItem) -> Disposition:
        one = schedule_of(item)
        if one.is_reminder:
            return Disposition("told", "reminder", one.noted or "it was scheduled")
        told = self.turns.skills.render(
            SKILL,
            "Scheduled",
            what=one.what,
            due=spoken(local(one.due, self.schedules.timezone)),
            by_owner=one.by == "owner",
            repeat="" if one.repeat == "once" else one.repeat,
            last=spoken(local(one.last, self.schedules.timezone)) if one.last else "",
        )
        asked_by = Provenance.OWNER if one.by == "owner" else Provenance.SELF
        private = [one.what]
        if one.by == "soul":  # NOTE(self): it may repeat HEARTBEAT.md, which the owner wrote only for the SOUL.
            private.append(await self.owner_files.read(HEARTBEAT) or "")
        return await self.turns.run(item, told, private=private, task=one.what, asked_by=asked_by)

    async def finish(self, item: WorkItem, accepted: Sequence[Intent]) -> None:
        """Return None: the turn is run again, and told what was accepted."""

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Store what the owner is told, and the next due time of a schedule that repeats."""
        one = schedule_of(item)
        if one.is_reminder:
            headline = f"{self.turns.me.agent_name} reminds you"
            due = spoken(local(one.due, self.schedules.timezone))
            late = [f"was due {due}"] if self.schedules.clock.now() - one.due > _LATE else []
            beside = "; ".join((*late, *([one.noted] if one.note else [])))
            words = f"{one.what} ({beside})" if beside else one.what
            whose = Provenance.STRANGER if one.note else Provenance.SELF
            await self.turns.tell(item.cause_id, headline, words, whose, at_once=True)
        else:
            by_owner = one.by == "owner"
            words = f"{one_line(one.what, _WHAT_CHARS)}: {disposition.reason}"
            told, what = replace(disposition, reason=words), f"what {'you' if by_owner else 'it'} scheduled"
            await self.turns.tell_end(item, told, what, is_owners=by_owner)
        await self.schedules.go_on(item)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal line about a disposition."""
        one = schedule_of(item)
        what = one_line(one.what, _WHAT_CHARS)
        if disposition.act == "later":
            return f"Scheduled, has to wait: {what}"
        return f"Reminder for you: {what}" if one.is_reminder else f"Scheduled: {what}"

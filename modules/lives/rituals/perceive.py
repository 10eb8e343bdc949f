"""Adds one row for each ritual that is due and for each run that needs a memo, and starts a ritual by hand."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from common.clock import Clock, parse_iso
from common.constants import HOUR_MS, MINUTE_MS
from modules.runtime.scheduler.policy import peers_before
from modules.services.experiences import ExperienceLog, NewExperience
from modules.services.identity.identity import Me
from modules.services.identity.self_mechanics import DailyRitual
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent
from modules.services.rituals.policy import (
    MEMO_KIND,
    OPENING_KIND,
    RITUAL_HISTORY_MAX,
    RitualRun,
    handles_of,
    note_of,
    opening_cause,
    ritual_key,
)
from modules.services.rituals.rituals import Rituals
from modules.services.work.table import WorkTable
from modules.services.work.types import Handler, NewWork

MEMO_AFTER = timedelta(milliseconds=2 * MINUTE_MS)
"""How long after its own answer the first participant writes; each further one waits that much longer."""
CLOSES_AFTER = timedelta(milliseconds=HOUR_MS)
"""How long after its opening the opener of a run writes: by then the others have answered."""
_LOOKED_AT = timedelta(days=1)
_NEVER_SAID = {"blocked", "expired", "failed"}


@dataclass(frozen=True, slots=True)
class RitualPerceiver:
    """Adds rows for openings and memos to the table of work.

    Attributes:
        rituals: the listed rituals, and their runs.
        work: the table.
        outbox: holds what we said.
        experiences: stores the question of a run that we opened.
        clock: the time.
        me: our account.
        writes_memos: whether memos are written; off if the SOUL only talks.

    """

    rituals: Rituals
    work: WorkTable
    outbox: Outbox
    experiences: ExperienceLog
    clock: Clock
    me: Me
    writes_memos: bool

    async def perceive(self) -> None:
        """Add the rows for what is due."""
        now, listed = self.rituals.now(), self.rituals.listed()
        await self._follow_names(listed)
        for key, ritual in listed.items():
            if ritual.role == "initiator" and is_due(ritual, now, keep_hours=self.clock.keeps_hours):
                await self._open(key, ritual, now.date())
        await self.drop_unsaid()
        for run in await self.rituals.runs.since(now.date() - _LOOKED_AT):
            if not run.artefact_url and (said := await self._said(run)):
                await self._note(run, said.body.public_text)
                if self.writes_memos and run.key in listed:
                    await self._write_down(run, listed, parse_iso(said.created_at))

    async def drop_unsaid(self) -> None:
        """Remove the runs that we opened with a post that was rejected, failed or came too late: never open."""
        for run in await self.rituals.runs.since(self.rituals.now().date() - _LOOKED_AT):
            acts = await self.outbox.by_cause(opening_cause(run.key, run.day)) if run.role == "initiator" else []
            if acts and all(one.state in _NEVER_SAID for one in acts):
                await self.rituals.runs.remove(run)

    async def _follow_names(self, listed: Mapping[str, DailyRitual]) -> None:
        """Continue the runs of a ritual under its new name in SELF.md; one with its schedule and participants is it."""
        opened = await self.work.newest(OPENING_KIND, RITUAL_HISTORY_MAX)
        before = [one.payload for one in opened if one.payload["ritual"] not in listed]
        for key, ritual in listed.items() if before else ():
            known = next((one["ritual"] for one in before if one.get("slot") == _slot(ritual)), None)
            if known and not await self.rituals.runs.latest(key, 1):
                await self.rituals.runs.rename(known, key)

    async def _open(self, key: str, ritual: DailyRitual, day: date) -> None:
        if await self.rituals.runs.of_day(key, day) is None:
            await self.work.add(new_opening(key, ritual, day))

    async def _said(self, run: RitualRun) -> Intent | None:
        """Return what we said in a run, once it is published."""
        kind: IntentKind = "post" if run.role == "initiator" else "reply"
        cause = opening_cause(run.key, run.day) if run.role == "initiator" else run.thread_uri
        return next(iter(await self.outbox.done(cause, kind)), None)

    async def _note(self, run: RitualRun, text: str) -> None:
        """Store what we said, and record the question of a run that we opened; our answers are recorded as replies."""
        await self.rituals.runs.note_words(run, note_of(text))
        if run.role == "initiator":
            await self.experiences.record(
                NewExperience("question_emerged", "ritual", opening_cause(run.key, run.day), text, uri=run.thread_uri)
            )

    async def _write_down(self, run: RitualRun, listed: Mapping[str, DailyRitual], said_at: datetime) -> None:
        others = handles_of(listed[run.key], without=self.me.bluesky_username)
        turn = len(peers_before(self.me.bluesky_username, others, run.thread_uri)) + 1
        wait = CLOSES_AFTER if run.role == "initiator" else turn * MEMO_AFTER
        await self.work.add(
            NewWork(MEMO_KIND, run.id, _named(run.key, run.day), not_before=said_at + self.clock.real(wait))
        )


def is_due(ritual: DailyRitual, now: datetime, *, keep_hours: bool = True) -> bool:
    """Return whether a ritual may open at a local moment."""
    schedule = ritual.when
    if schedule is None:
        return False
    return schedule.is_open(now) if keep_hours else schedule.is_on(now.date())


def _slot(ritual: DailyRitual) -> list[str]:
    return [ritual.schedule, *ritual.participants]


def new_opening(key: str, ritual: DailyRitual, day: date, *, by_hand: bool = False, again: bool = False) -> NewWork:
    """Return the row of an opening; `again` makes a second one after the first was given up on that day."""
    named: dict[str, object] = dict(_named(key, day)) | {"by_hand": by_hand, "slot": _slot(ritual)}
    tail = "/again" if again else ""
    return NewWork(OPENING_KIND, f"{key}/{day.isoformat()}{tail}", named, cause_id=opening_cause(key, day))


def _named(key: str, day: date) -> Mapping[str, str]:
    return {"ritual": key, "day": day.isoformat()}


StartCode = Literal["unknown", "runs-already", "opened", "held", "waits", "not-opened"]


@dataclass(frozen=True, slots=True)
class Started:
    """The result of starting a ritual by hand. `about`: its thread, the known names, its due time, or why it failed."""

    code: StartCode
    name: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class RitualLife:
    """The parts of the rituals life: `handlers` and `perceiver` go into the loop over the table of work."""

    rituals: Rituals
    work: WorkTable
    handlers: tuple[Handler, ...]
    perceiver: RitualPerceiver

    async def start(self, name: str, handle_now: Callable[[], Awaitable[object]]) -> Started:
        """Open a ritual by hand, on any day and at any hour, unless it was opened today; `handle_now` runs the loop.

        A ritual that was given up today gets another chance.
        """
        listed, key, day = self.rituals.listed(), ritual_key(name), self.rituals.now().date()
        ritual = listed.get(key)
        if ritual is None:
            return Started("unknown", name, ", ".join(one.name for one in listed.values()))
        await self.perceiver.drop_unsaid()
        row, before = new_opening(key, ritual, day, by_hand=True), await self.rituals.runs.of_day(key, day)
        known = await self.work.get(OPENING_KIND, row.key)
        if known and known.state != "pending":
            row = new_opening(key, ritual, day, by_hand=True, again=True)
        if before is None:
            await self.work.add(row)
            await handle_now()
        if run := await self.rituals.runs.of_day(key, day):
            is_held = "held" in {one.state for one in await self.perceiver.outbox.by_cause(row.cause_id)}
            return Started("held" if is_held else "runs-already" if before else "opened", ritual.name, run.thread_uri)
        after = await self.work.get(OPENING_KIND, row.key)
        if after and after.state == "pending":
            return Started("waits", ritual.name, after.not_before)
        return Started("not-opened", ritual.name, after.outcome if after else "")

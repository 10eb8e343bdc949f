"""The slash commands of one living SOUL."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import TypeAdapter, ValidationError

from adapters.github.types import Repo
from common.clock import Clock
from common.errors import SoulError
from common.github_address import github_address
from common.redact import Redactor
from common.settings import Settings
from modules.lives.rituals.life import RitualLife
from modules.runtime.budget.report import lines as budget_lines
from modules.runtime.budget.report import report_of
from modules.runtime.budget.types import Caps
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.home import Home
from modules.runtime.scheduler.scheduler import Scheduler
from modules.services.agent.onboarding import Onboarding
from modules.services.claims.offers import TaskOrders
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import day_lines
from modules.services.explanation import why
from modules.services.identity.history import SelfHistory
from modules.services.outbox.approval import find, waiting
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.leaving import leaving
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Intent
from modules.services.own_feed.reply_limits import Audience, LimitProblem, ReplyLimits
from modules.services.owner.owner import OwnerTalk
from modules.services.pinned_names.store import PinnedNames
from modules.services.work.loop import WorkLoop
from modules.services.work.table import WorkTable
from modules.services.workspaces.watched import WatchedWorkspaces
from soul.commands.draft_lines import list_lines, with_answered
from soul.commands.drafts import checked_words, word_rules
from soul.commands.mute import changed_line, did_of, mute_account
from soul.commands.pause import pause, resume, resumed_lines
from soul.commands.reflect import outcome_lines, reflect_now
from soul.commands.rituals import started_lines
from soul.commands.status import look, status_lines
from soul.commands.tasks import task_lines, tasks_of
from soul.terminal.commands import OTHERWISE, Command, Commands

_VERSIONS_SHOWN, _MOST_WAITS = 5, 300
_NO_LIMIT: dict[LimitProblem, str] = {
    "No Post": "There is no post of its own yet",
    "Not Your Post": "That is no post of the SOUL's",
    "Not First Post": "That post is a reply; who may reply is said for the first post of a thread",
    "Unclear Audience": "/replies needs to know who: nobody, everybody, or some of mentioned,followers,following",
}


@dataclass(slots=True, kw_only=True)
class OwnerCommands:
    """What each of them does."""

    settings: Settings
    home: Home
    clock: Clock
    database: Database
    outbox: Outbox
    scheduler: Scheduler
    owner: OwnerTalk
    onboarding: Onboarding
    reply_limits: ReplyLimits
    names: PinnedNames
    workspaces: WatchedWorkspaces
    work: WorkTable
    rituals: RitualLife
    orders: TaskOrders
    days: DayReader
    ended: asyncio.Event

    def all(self, *, without: Collection[str] = (), otherwise: str = OTHERWISE) -> Commands:
        """As the terminal knows them; `without` are names that are left out, `otherwise` as `Commands` takes it."""
        commands = [
            Command("status", "what the SOUL is doing", self.status),
            Command("today [DAY]", "one day on one screen: what it said, left alone, learned and spent", self.today),
            Command("budget", "what today has cost, and what is left", self.budget),
            Command("drafts", "what waits for your approval, or is scheduled", self.drafts),
            Command(
                "approve ID",
                "a draft leaves at its turn; its number, or the first characters of its id",
                self.approve,
            ),
            Command(
                "edit ID [WORDS]", "give a post or a reply your words and approve it; without, see its own", self.edit
            ),
            Command("reject ID [reason]", "a draft never leaves; takes back what is scheduled, too", self.reject),
            Command("pause [reason]", "nothing public leaves; we can still talk", self.pause),
            Command("resume", "end a pause, or safe mode", self.resume),
            Command(
                "replies WHO [URL]",
                "who may reply to its newest post, or to that one: nobody, everybody, mentioned, followers, following",
                self.replies,
            ),
            Command("mute WHO", "leave an account alone: its handle or DID", partial(self.mute, off=False)),
            Command("unmute WHO", "end a mute", partial(self.mute, off=True)),
            Command("trust NAME", "accept that this name is somebody else now than when it was first seen", self.trust),
            Command(
                "ritual NAME",
                "open a ritual of SELF.md now, unless it was opened today",
                self.ritual,
                begins="Opening that ritual …",
            ),
            Command("tasks", "the tasks of plans: which are its own, what they cost, and where they stand", self.tasks),
            Command(
                "task [leave] TASK",
                "take a task of a plan now, or end the work on it and leave it: its number, or owner/repo#12/3",
                self.task,
            ),
            Command("unwatch REPO", "stop planning and working in a repository, given as owner/repo", self.unwatch),
            Command("why URL", "the story of a post, an act or a silence", self.why),
            Command(
                "new",
                "end this conversation; what matters of it is remembered",
                self.new,
                begins="Ending this conversation, and keeping what matters of it …",
            ),
            Command("later", "not the first talk now; it waits for the next start", self.later),
            Command(
                "reflect",
                "look back on what it lived through, now",
                self.reflect,
                begins="Looking back on what it lived through …",
            ),
            Command("self", "how SELF.md changed", self.self_history),
            Command("quit", "end this life; nothing accepted is lost", self.quit),
        ]
        return Commands([command for command in commands if command.name not in without], otherwise=otherwise)

    async def status(self, _: str) -> Sequence[str]:
        status = await asyncio.to_thread(look, self.home)
        return status_lines(self.settings.agent_name, status, self.settings.soul_timezone)

    async def today(self, rest: str) -> Sequence[str]:
        return day_lines(await asyncio.to_thread(self.days.read, rest))

    async def budget(self, _: str) -> Sequence[str]:
        settings, now = self.settings, self.clock.now()
        caps = Caps.per_day(settings.budget_tokens_per_day, settings.budget_usd_per_day)
        report = await self.database.run(lambda connection: report_of(connection, caps, now, settings.soul_timezone))
        return budget_lines(report)

    async def drafts(self, _: str) -> Sequence[str]:
        shown = await self.database.run(lambda connection: with_answered(connection, waiting(connection)))
        return list_lines(shown, self.clock.now(), self.settings.soul_timezone)

    async def approve(self, rest: str) -> Sequence[str]:
        return [await self._leaving(await self.outbox.approve(_one(rest, "approve")))]

    async def _leaving(self, approved: Intent) -> str:
        standing, expected = Control(self.home.memory).standing(), await self.outbox.departures([approved])
        zone, now = self.settings.soul_timezone, self.clock.now()
        return leaving([approved], standing, zone, is_awake=True, now=now, expected=expected)

    async def edit(self, rest: str) -> Sequence[str]:
        given, _, words = _one(rest, "edit").partition(" ")
        if not words.strip():
            draft = await self.database.run(lambda connection: find(connection, given))
            how = (
                f"/edit {given} WORDS gives it yours; `soul drafts edit {draft.id[:SHORT_ID_CHARS]}` opens your editor"
            )
            return [*draft.body.public_text.splitlines(), how]
        rules = word_rules(Redactor(self.settings.secrets))
        return [await self._leaving(await self.outbox.edit(given, checked_words(words), rules))]

    async def reject(self, rest: str) -> Sequence[str]:
        given, _, reason = rest.partition(" ")
        await self.outbox.reject(_one(given, "reject"), reason)
        return []

    async def pause(self, rest: str) -> Sequence[str]:
        stands = pause(self.home, rest)
        await self.scheduler.run_guarded("control")
        return [stands] if stands else []

    async def resume(self, _: str) -> Sequence[str]:
        before = Control(self.home.memory).standing()
        standing = resume(self.home)
        await self.scheduler.run_guarded("control")
        # NOTE(self): the end of a pause is told by the loop that watches for it.
        return [] if standing.may_act and not before.may_act else resumed_lines(standing, before)

    async def mute(self, rest: str, *, off: bool) -> Sequence[str]:
        who = _one(rest, "unmute" if off else "mute").strip()
        did = await asyncio.to_thread(did_of, self.settings, self.home, who)
        return [changed_line(who, await mute_account(self.settings, self.home, did, off=off), off=off)]

    async def trust(self, rest: str) -> Sequence[str]:
        name = _one(rest, "trust")
        waiting = ", ".join(one.label for one in self.names.waiting())
        match await self.names.accept(name):
            case "accepted":
                return [f"{name} counts as whoever has that name now"]
            case "several":
                return [f"More than one {name} waits for you, say which: {waiting}"]
            case "another":
                return [f"{name} is somebody else again than you were told: nothing is accepted, see the line above"]
            case "none":
                return [f"No change of {name} waits for you" + (f"; these do: {waiting}" if waiting else "")]

    async def replies(self, rest: str) -> Sequence[str]:
        who, _, post = _one(rest, "replies").partition(" ")
        audience = TypeAdapter(list[Audience])
        try:
            named = audience.validate_python(who.lower().split(","))
        except ValidationError:
            named = []
        limited = await self.reply_limits.limit(post.strip(), named, cause_id="owner", by_owner=True)
        if isinstance(limited, str):
            raise SoulError(_NO_LIMIT[limited], remedy="/help shows how it is written.")
        return [] if limited.accepted else [f"That cannot be done: {limited.reason}"]

    async def ritual(self, rest: str) -> Sequence[str]:
        started = await self.rituals.start(_one(rest, "ritual"), partial(self.scheduler.run_guarded, WorkLoop.name))
        return started_lines(started)

    async def tasks(self, _: str) -> Sequence[str]:
        address = github_address(str(self.settings.github_api_url))
        found = await tasks_of(self.database, self.home, self.clock, address)
        return task_lines(found, self.settings.soul_timezone)

    async def task(self, rest: str) -> Sequence[str]:
        first, _, named = _one(rest, "task").partition(" ")
        leave = first == "leave"
        place = await self.orders.meant(named if leave else rest)
        await (self.orders.leave if leave else self.orders.take)(place)
        return [f"{place.row.key} is left alone" if leave else f"{place.row.key} is taken next, if it is to be had"]

    async def unwatch(self, rest: str) -> Sequence[str]:
        owner, _, name = _one(rest, "unwatch").strip().partition("/")
        repo = Repo(owner, name)
        if self.workspaces.get(repo) is None:
            watched = ", ".join(sorted(self.workspaces.names())) or "no repository"
            raise SoulError(f"{rest.strip()} is not watched", remedy=f"Watched: {watched}.")
        self.workspaces.unwatch(repo)
        return [f"{repo.full_name} is no longer watched: its plans, tasks and pull requests are left as they are"]

    async def why(self, rest: str) -> Sequence[str]:
        return await why.tell(self.database, _one(rest, "why"), self.settings.soul_timezone)

    async def new(self, _: str) -> Sequence[str]:
        outcome = await self.owner.start_afresh()
        if outcome.status == "waiting":
            return [f"This conversation is over; its archive waits: {outcome.reason}"]
        if outcome.status == "done":
            return ["This conversation is over, and what matters of it is remembered; your next line begins another"]
        return [f"No conversation was ended: {outcome.reason}"]

    async def later(self, _: str) -> Sequence[str]:
        self.onboarding.postpone()
        return ["The first talk waits for the next start"]

    async def reflect(self, _: str) -> Sequence[str]:
        key = await reflect_now(self.work, self.clock, self.settings.soul_timezone)
        waits = 0
        while not (await self.scheduler.run_guarded("work")).ran and waits < _MOST_WAITS:  # something else is handled
            await self.clock.sleep(1)
            waits += 1
        return await outcome_lines(self.work, key)

    async def self_history(self, _: str) -> Sequence[str]:
        return await asyncio.to_thread(_history_lines, self.home)

    async def quit(self, _: str) -> Sequence[str]:
        self.ended.set()
        return []


def _one(given: str, name: str) -> str:
    if not given:
        raise SoulError(f"/{name} needs to know which one", remedy="/help shows how it is written.")
    return given


def _history_lines(home: Home) -> list[str]:
    with SelfHistory(home).alone() as history:
        versions, held = history.versions(), history.held()
    amiss = [history.amiss] if history.amiss else []
    waits = [f"A change of SELF.md waits for your approval: {held.why} (`soul self held` shows it)"] if held else []
    if not versions:
        return [*amiss, *waits, "SELF.md has not changed yet"]
    shown = (f"  {one.name}  {one.by:<5}  {one.reason}" for one in versions[:_VERSIONS_SHOWN])
    return [*amiss, *waits, "SELF.md as it was written, newest first (`soul self diff` shows more):", *shown]

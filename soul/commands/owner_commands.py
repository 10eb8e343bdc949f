"""The slash commands of a running SOUL."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import TypeAdapter, ValidationError

from adapters.github.types import Repo
from common.errors import NotWaiting, SoulError
from common.git_names import github_address
from common.provenance import Provenance
from common.redact import Redactor
from common.result import Err
from common.text.graphemes import shortened
from common.text.untrusted import one_line
from common.wording import counted
from modules.lives.craft.perceive import improve
from modules.runtime.budget.report import lines as budget_lines
from modules.runtime.control import Control
from modules.runtime.home import Home
from modules.services.commitments.naming import QueuedCommitment
from modules.services.commitments.queue import withdraw_for_owner
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import day_lines
from modules.services.explanation import rendering
from modules.services.explanation.drafts import in_words
from modules.services.identity.entries import change_of, see_held
from modules.services.identity.history import SelfHistory, held_documents, kept_documents
from modules.services.memory.profiles import STANDING_LENGTH
from modules.services.outbox.approval import editable_text, find, find_all, leaving, waiting
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.types import Intent
from modules.services.own_feed.reply_limits import Audience, LimitProblem
from modules.services.sessions.store import is_cut
from modules.services.work.loop import WorkLoop
from soul.app import App
from soul.command_table import Commands, first_word
from soul.commands.drafts import documents_among, list_lines, plain_lines, word_rules
from soul.commands.memory import forget_memory
from soul.commands.pause import pause, resume, resumed_lines
from soul.commands.people import mute_account
from soul.commands.reflect import outcome_lines, reflect_now
from soul.commands.rituals import remove_schedule, schedule_lines, started_lines
from soul.commands.self_ import decided, held_lines
from soul.commands.status import look, status_lines
from soul.commands.tasks import task_lines, tasks_of
from soul.composition.services import Services

_VERSIONS_SHOWN, _MOST_WAITS, _LEAVING_CHARS = 5, 300, 80
_NO_LIMIT: dict[LimitProblem, str] = {
    "No Post": "There is no post of its own yet",
    "Not Your Post": "That is no post of the SOUL's",
    "Not First Post": "That post is a reply; who may reply is said for the first post of a thread",
    "Unclear Audience": "/replies needs to know who: nobody, everybody, or some of mentioned,followers,following",
}


@dataclass(kw_only=True)
class OwnerCommands(Commands):
    """Carries out the slash commands of the terminal and of direct messages: a method `run_NAME` for each."""

    app: App
    ended: asyncio.Event

    @property
    def _services(self) -> Services:
        return self.app.services

    @property
    def _zone(self) -> str:
        return self.app.services.settings.soul_timezone

    async def run_status(self, _: str) -> Sequence[str]:
        status = await asyncio.to_thread(look, self._services.home)
        return status_lines(self._services.settings.agent_name, status, self._zone)

    async def run_today(self, rest: str) -> Sequence[str]:
        services = self._services
        days = DayReader(services.settings, services.home, services.clock)
        return day_lines(await asyncio.to_thread(days.read, rest))

    async def run_budget(self, _: str) -> Sequence[str]:
        return budget_lines(await self._services.budget.report())

    async def run_drafts(self, rest: str) -> Sequence[str]:
        if documents := documents_among(rest.split()[:1])[0]:
            return (await asyncio.to_thread(held_lines, self._services.home, documents[0], self._zone, command="/"))[1]
        shown = await self._services.database.run(lambda connection: in_words(connection, waiting(connection)))
        commitments, now = await self.app.lives.queue.withdrawable(), self._services.clock.now()
        return list_lines(shown, now, self._zone, held_documents(self._services.home), commitments)

    async def run_approve(self, rest: str) -> Sequence[str]:
        documents, given = documents_among(rest.split())
        lines = [await decided(self._services.self_keeper, one, approve=True) for one in documents]
        if documents and not given:
            return lines
        return [*lines, *await self._leaving(await self._services.outbox.approve(*given or [""]))]

    async def run_edit(self, rest: str) -> Sequence[str]:
        given, words = first_word(rest)
        if not words.strip():
            draft = await self._services.database.run(lambda connection: find(connection, given))
            how = (
                f"/edit {given} WORDS gives it yours; `soul drafts edit {draft.id[:SHORT_ID_CHARS]}` opens your editor"
            )
            return [*editable_text(draft.body).splitlines(), how]
        rules = word_rules(Redactor(self._services.settings.secrets))
        return await self._leaving([await self._services.outbox.edit(given, plain_lines(words), rules)])

    async def _leaving(self, approved: Sequence[Intent]) -> Sequence[str]:
        services = self._services
        standing, expected = Control(services.home.memory).standing(), await services.outbox.departures(approved)
        now = services.clock.now()
        return [leaving(approved, standing, self._zone, is_awake=True, now=now, expected=expected)]

    async def run_reject(self, rest: str) -> Sequence[str]:
        """Reject what the words name; if not all name something, the first does, and the others are the reason."""
        first, words = first_word(rest)
        documents, _ = documents_among([first])
        if documents:
            return [await decided(self._services.self_keeper, first, approve=False, reason=words)]
        try:
            meant, reason = await self._rejectable(rest.split()), ""
        except NotWaiting:
            if all(map(str.isdecimal, rest.split()[1:])):  # numbers are no reason: one of these waits no more
                raise
            given, reason = first_word(rest)
            meant = await self._rejectable([given])
        await self._services.outbox.reject(*(one for one in meant if isinstance(one, str)), reason=reason)
        for one in meant:
            if not isinstance(one, str):
                await withdraw_for_owner(self.app.lives.queue, self._services.journal, one, "rejected", reason)
        return []

    async def _rejectable(self, given: Sequence[str]) -> list[str | QueuedCommitment]:
        """Return the ids of drafts and the commitments that these words name. Raises `NotWaiting` if one names none."""
        commitments = {str(number): one for number, one in (await self.app.lives.queue.withdrawable()).items()}
        named = [commitments[one] for one in dict.fromkeys(given) if one in commitments]
        others = [one for one in given if one not in commitments]
        if named and not others:
            return [*named]
        return [*named, *await self._services.database.run(lambda connection: find_all(connection, others or [""]))]

    async def run_pause(self, rest: str) -> Sequence[str]:
        stands = pause(self._services.home, rest)
        await self.app.scheduler.run_guarded("control")
        return [stands] if stands else []

    async def run_resume(self, _: str) -> Sequence[str]:
        before, waits = Control(self._services.home.memory).standing(), (await self._services.situation()).on_the_way
        standing = resume(self._services.home)
        await self.app.scheduler.run_guarded("control")
        lines = resumed_lines(standing, before)
        if before.may_act or not standing.may_act:
            return lines
        return [*lines, *(f"  leaves: {shortened(one.words.line, _LEAVING_CHARS)}" for one in waits)]

    async def run_mute(self, rest: str) -> Sequence[str]:
        return [await mute_account(self._services.settings, self._services.home, rest, off=False)]

    async def run_unmute(self, rest: str) -> Sequence[str]:
        return [await mute_account(self._services.settings, self._services.home, rest, off=True)]

    async def run_improve(self, rest: str) -> Sequence[str]:
        is_new = await improve(self._services.work, rest)
        noted = "Noted: your SOUL decides within minutes, or once an open proposal is over, and tells you"
        return [noted if is_new else "That waits already"]

    async def run_trust(self, rest: str) -> Sequence[str]:
        names = self._services.pinned_names
        waiting = ", ".join(one.label for one in names.waiting())
        match await names.accept(rest):
            case "accepted":
                return [f"{rest} counts as whoever has that name now, while your settings name it or it is watched"]
            case "several":
                return [f"More than one {rest} waits for you, say which: {waiting}"]
            case "another":
                return [f"{rest} is somebody else again than you were told: nothing is accepted, see the line above"]
            case "none":
                return [f"No change of {rest} waits for you" + (f"; these do: {waiting}" if waiting else "")]

    async def run_replies(self, rest: str) -> Sequence[str]:
        who, post = first_word(rest)
        audience = TypeAdapter(list[Audience])
        try:
            named = audience.validate_python(who.lower().split(","))
        except ValidationError:
            named = []
        limits = self.app.lives.bluesky_state.reply_limits
        limited = await limits.limit(post.strip(), named, cause_id="owner", by_owner=True)
        if isinstance(limited, str):
            raise SoulError(_NO_LIMIT[limited], remedy="/help shows how it is written.")
        return [] if limited.accepted else [f"That cannot be done: {limited.reason}"]

    async def run_ritual(self, rest: str) -> Sequence[str]:
        started = await self.app.lives.rituals.start(rest, partial(self.app.scheduler.run_guarded, WorkLoop.name))
        return started_lines(started)

    async def run_schedule(self, _: str) -> Sequence[str]:
        return schedule_lines(await self._services.schedules.all(), self._zone)

    async def run_unschedule(self, rest: str) -> Sequence[str]:
        return [await remove_schedule(self._services.schedules, rest)]

    async def run_tasks(self, _: str) -> Sequence[str]:
        address = github_address(str(self._services.settings.github_api_url))
        found = await tasks_of(self._services.database, self._services.home, self._services.clock, address)
        return task_lines(found, self._services.settings)

    async def run_task(self, rest: str) -> Sequence[str]:
        first, named = first_word(rest)
        leave = first == "leave"
        orders = self.app.lives.task_orders
        place = await orders.meant(named if leave else rest)
        if not leave and isinstance(watched := await self._services.requested.watch(place.repo), Err):
            raise SoulError(f"{place.repo.full_name} cannot be watched: {watched.error}")
        await (orders.leave if leave else orders.take)(place)
        return [f"{place.row.key} is left alone" if leave else f"{place.row.key} is taken next, if it is to be had"]

    async def run_unwatch(self, rest: str) -> Sequence[str]:
        owner, _, name = rest.partition("/")
        repo = Repo(owner, name)
        workspaces = self._services.workspaces
        if workspaces.get(repo) is None:
            watched = ", ".join(sorted(workspaces.names())) or "no repository"
            raise SoulError(f"{rest} is not watched", remedy=f"Watched: {watched}.")
        workspaces.unwatch(repo)
        return [f"{repo.full_name} is no longer watched: its plans, tasks and pull requests are left as they are"]

    async def run_memory(self, rest: str) -> Sequence[str]:
        verb, number = first_word(rest)
        if verb != "forget":
            raise SoulError(f"/memory cannot {verb}", remedy="Write it as /memory forget ID.")
        return [await forget_memory(self._services.settings, self._services.home, number.strip())]

    async def run_why(self, rest: str) -> Sequence[str]:
        return await rendering.tell(self._services.database, rest, self._zone)

    async def run_new(self, _: str) -> Sequence[str]:
        outcome = await self.app.owner.start_afresh()
        if outcome.status == "waiting":
            return [f"This conversation is over; its archive waits: {outcome.reason}"]
        if outcome.status == "done" and outcome.archive:
            notes = counted(len(outcome.archive.distilled.memories), "note")
            is_own = outcome.archive.distilled.provenance is Provenance.OWNER
            shown = "" if is_own else " (shown only by a search of its memory, as the conversation held others' words)"
            if await self._services.database.run(partial(is_cut, session_id=outcome.archive.session_id)):
                shown += "; nothing that was said before you had it forgotten is kept"
            return [f"This conversation is over, with {notes} kept of it{shown}; your next line begins another"]
        return [f"No conversation was ended: {outcome.reason}"]

    async def run_later(self, _: str) -> Sequence[str]:
        self._services.knowledge.onboarding.postpone()
        return ["The first talk waits for the next start"]

    async def run_reflect(self, _: str) -> Sequence[str]:
        key = await reflect_now(self._services.work, self._services.clock, self._zone)
        waits = 0
        while (
            not (await self.app.scheduler.run_guarded("work")).ran and waits < _MOST_WAITS
        ):  # another work item is handled
            await self._services.clock.sleep(1)
            waits += 1
        return await outcome_lines(self._services.work, key)

    async def run_self(self, _: str) -> Sequence[str]:
        profiles = await self._services.knowledge.profiles.get()
        told = {"Its profile": profiles.agent, "Your profile": profiles.user}
        lines = [
            f"{whose}: {name}: {one_line(said, STANDING_LENGTH)}"
            for whose, fields in told.items()
            for name, said in fields.items()
        ]
        return [*await asyncio.to_thread(_history_lines, self._services.home), *lines]

    async def run_quit(self, _: str) -> Sequence[str]:
        self.ended.set()
        return []


def _history_lines(home: Home) -> list[str]:
    return [line for document in kept_documents(home) for line in _lines_of(home, document)]


def _lines_of(home: Home, document: str) -> list[str]:
    with SelfHistory(home, document).alone() as history:
        versions, held = history.versions(), history.held()
    amiss, shows = [history.amiss] if history.amiss else [], see_held(document)
    waits = [f"A{change_of(document)[1:]} waits for your approval: {held.why} (`{shows}` shows it)"] if held else []
    if not versions:
        return [*amiss, *waits, f"{document} has not changed yet"]
    shown = (f"  {one.name}  {one.by:<5}  {one.reason}" for one in versions[:_VERSIONS_SHOWN])
    return [*amiss, *waits, f"{document} as it was written, newest first (`soul self diff` shows more):", *shown]

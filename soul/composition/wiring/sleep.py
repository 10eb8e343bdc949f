"""Builds the loop that decides whether a SOUL may sleep, from what each of its parts waits for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters.github.notifications import NOTIFICATIONS
from adapters.github.types import Repo, repo_path
from adapters.watch import SleepWatch
from common.clock import from_local, iso, parse_iso
from modules.lives.bluesky.expression import ExpressionCycle
from modules.lives.bluesky.types import HELD_REPLY
from modules.lives.growth.perceive import ReflectionPerceiver
from modules.lives.rhythm import HeartbeatHandler
from modules.runtime.scheduler.policy import Loop, Runs
from modules.runtime.sleep_note import Figures
from modules.runtime.status import Stage
from modules.services.claims.lease_store import PLAN_AWARENESS
from modules.services.craft.record import FrictionRecord
from modules.services.experiences import KIND as DRAFT_EXPERIENCE
from modules.services.outbox import store
from modules.services.rights.requests import ForgetRequests
from modules.services.rituals.policy import next_opening
from modules.services.sleep import WORKSPACES, AwaitedNext, SleepLoop
from modules.services.work.loop import WorkLoop
from modules.services.work.types import OWNER_LINE, PausingPerceiver
from soul.composition.services import Services


@dataclass(frozen=True, slots=True)
class OwnTimes:
    """The parts that act at times that the SOUL chooses itself."""

    expression: ExpressionCycle
    reflection: ReflectionPerceiver
    heartbeat: HeartbeatHandler


def build_sleep(
    services: Services, loops: Sequence[Loop], own_times: OwnTimes, watch: SleepWatch | None, runs: Callable[[], Runs]
) -> SleepLoop | None:
    """Build the loop that lets the SOUL fall asleep; None if there is no watcher, or the settings forbid sleep."""
    if watch is None or not services.settings.sleep:
        return None
    parts = _Parts(services, own_times, [one for one in loops if isinstance(one, WorkLoop)])
    return SleepLoop(
        parts={
            "the start": parts.start,
            "work": parts.work,
            "the outbox": parts.outbox,
            "the talk with the owner": parts.owner,
            "the room": parts.room,
            "GitHub": parts.github,
            "its thoughts": parts.expression,
            "reflection": parts.reflection,
            "HEARTBEAT.md": parts.heartbeat,
            "rituals": parts.rituals,
            "requests to forget": parts.forget,
        },
        looks=parts.looks,
        figures=parts.figures,
        put_off=own_times.expression.put_off,
        awaited=parts.awaited,
        watch=watch,
        memory=services.home.memory,
        soul=services.me.agent_name,
        did=lambda: services.atproto.did,
        runs=runs,
        clock=services.clock,
    )


class _Parts:
    """Says what each part waits for."""

    def __init__(self, services: Services, own_times: OwnTimes, work: Sequence[WorkLoop]) -> None:
        self._services, self._own_times = services, own_times
        self._work = work = [one for one in work if one.social_only or not services.social_only]
        self._kinds = {handler.kind for loop in work for handler in loop.handlers} - {HELD_REPLY, DRAFT_EXPERIENCE}
        self._friction = FrictionRecord(services.database, services.clock, services.home.memory)

    def looks(self) -> tuple[str, ...]:
        """Return the names of the loops that read the network, and make each look again at its next run."""
        services = self._services
        for perceiver in (perceiver for loop in self._work for perceiver in loop.perceivers):
            if isinstance(perceiver, PausingPerceiver):
                perceiver.look_anew()
        plans = (PLAN_AWARENESS,) if self.addresses() and services.workspaces.all() else ()
        return (*(one.name for one in self._work), *plans)

    async def figures(self) -> Figures:
        report, now = await self._services.budget.report(), self._services.clock.now()
        usd = report.usd.spent if report.usd else 0.0
        return Figures(usd, iso(now + timedelta(seconds=report.resets_in_s)), await self._friction.own_of_the_week())

    async def start(self) -> AwaitedNext:
        services = self._services
        if not services.stages.has_reached(Stage.SETTLED):
            return AwaitedNext("it is starting")
        return AwaitedNext("" if services.attention.free else f"it is busy with {services.attention.mode}")

    async def work(self) -> AwaitedNext:
        """Return what waits, without follow-ups of drafts, which wait for the owner like the drafts."""
        first = await self._services.work.earliest(self._kinds)
        if first is None:
            return AwaitedNext()
        kind, moment = first
        return AwaitedNext(due=parse_iso(moment)) if moment else AwaitedNext(f"work waits: {kind}")

    async def outbox(self) -> AwaitedNext:
        moment = await self._services.database.run(store.next_moment)
        if moment is None:
            return AwaitedNext()
        return AwaitedNext(due=parse_iso(moment)) if moment else AwaitedNext("acts are about to leave")

    async def owner(self) -> AwaitedNext:
        waiting = await self._services.work.waiting(OWNER_LINE)
        return AwaitedNext("the owner waits for an answer" if waiting else "")

    async def room(self) -> AwaitedNext:
        """Return whether a room keeps it awake: one it is in, or the one of SPACE_URL; others the watcher finds."""
        services = self._services
        if services.integrations.room.is_active:
            return AwaitedNext("it is in a room")
        return AwaitedNext("it looks for its room" if services.settings.space_url else "")

    async def github(self) -> AwaitedNext:
        """Return when to check its workspaces, in which something may fall due that the watcher cannot see."""
        services = self._services
        if self.addresses() and not services.github.enough_for_loops:
            return AwaitedNext("few requests to GitHub are left in this hour")
        open_ones = [one for one in services.workspaces.all() if one.finished_issue_number is None]
        is_needed = bool(open_ones) and bool(self.addresses())
        return AwaitedNext(
            due=services.clock.now() + services.clock.real(WORKSPACES) if is_needed else None, is_own=True
        )

    def awaited(self) -> dict[str, Any]:
        """Return where besides Bluesky the watcher must look."""
        settings, is_in_room = self._services.settings, self._services.integrations.room.is_active
        looks_for_rooms = settings.space_discovery and not settings.space_url
        return {"github": self.addresses(), "room": looks_for_rooms and not is_in_room}

    def addresses(self) -> tuple[str, ...]:
        """Return the GitHub API paths to watch: the notifications, and the issues of its workspaces."""
        services = self._services
        if not services.github.configured or services.social_only:
            return ()
        repos = (repo_path(Repo(one.owner, one.repo)) for one in services.workspaces.all())
        return (NOTIFICATIONS, *(f"{path}/issues" for path in repos))

    async def expression(self) -> AwaitedNext:
        due = self._own_times.expression.next_at
        return AwaitedNext(due=due, is_own=True) if due else AwaitedNext("its next thought has no time yet")

    async def reflection(self) -> AwaitedNext:
        return AwaitedNext(due=await self._own_times.reflection.due(), is_own=True)

    async def heartbeat(self) -> AwaitedNext:
        return AwaitedNext(due=await self._own_times.heartbeat.due())

    async def rituals(self) -> AwaitedNext:
        rituals = self._services.rituals
        now, opens = rituals.now(), list[datetime]()
        for key, ritual in rituals.listed().items():
            if ritual.role == "initiator":
                moment = next_opening(ritual, await rituals.runs.over_on(key, now.date()), now)
                opens += [from_local(moment, self._services.settings.soul_timezone)] if moment else []
        return AwaitedNext(due=min(opens, default=None), is_own=True)

    async def forget(self) -> AwaitedNext:
        requests = ForgetRequests(self._services.home.memory).all()
        return AwaitedNext(due=min((one.not_before for one in requests), default=None))

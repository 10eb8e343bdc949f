"""Puts the rooms of this life together, for whoever composes a SOUL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from adapters.atproto.client import Atproto
from adapters.github.client import GitHub
from common.settings import Settings
from modules.lives.rituals.memo import MemoHandler
from modules.lives.rituals.opening import OpeningHandler
from modules.lives.rituals.owner_comments import OwnerComments
from modules.lives.rituals.perceive import RitualPerceiver, new_opening
from modules.lives.rituals.writing import RitualWriter, WritingServices
from modules.services.agent.prompt.prompter import Prompter
from modules.services.experiences.log import ExperienceLog
from modules.services.outbox.outbox import Outbox
from modules.services.rights.preferences import Preferences
from modules.services.rituals.policy import OPENING_KIND, ritual_key
from modules.services.rituals.rituals import Rituals
from modules.services.work.table import WorkTable
from modules.services.work.types import Handler
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import WatchedWorkspaces

StartCode = Literal["unknown", "runs-already", "opened", "waits", "not-opened"]


class RitualLifeServices(WritingServices, Protocol):
    """What the life is built from."""

    settings: Settings
    social_only: bool
    rituals: Rituals
    work: WorkTable
    outbox: Outbox
    atproto: Atproto
    github: GitHub
    trust: WorkspaceTrust
    workspaces: WatchedWorkspaces
    preferences: Preferences
    experiences: ExperienceLog


@dataclass(frozen=True, slots=True)
class Started:
    """What came of starting a ritual by hand: `about` is the thread, the names that there are, or why it was not."""

    code: StartCode
    name: str
    about: str = ""


class RitualLife:
    """The life: `handlers` and `perceiver` go into the loop over the table of work."""

    def __init__(self, services: RitualLifeServices, prompter: Prompter) -> None:
        writer, keep_hours = RitualWriter(services, prompter), services.settings.soul_speed == 1
        owner_comments = OwnerComments(services.outbox, services.github, services.trust, services.experiences)
        self._rituals, self._work = services.rituals, services.work
        self.perceiver = RitualPerceiver(
            rituals=services.rituals,
            work=services.work,
            outbox=services.outbox,
            experiences=services.experiences,
            clock=services.clock,
            handle=services.me.bluesky_username,
            writes_memos=services.github.configured and not services.social_only,
            keep_hours=keep_hours,
            speed=services.settings.soul_speed,
        )
        opening = OpeningHandler(
            rituals=services.rituals,
            writer=writer,
            outbox=services.outbox,
            atproto=services.atproto,
            owner_comments=owner_comments,
            keep_hours=keep_hours,
        )
        memo = MemoHandler(
            rituals=services.rituals,
            writer=writer,
            outbox=services.outbox,
            atproto=services.atproto,
            github=services.github,
            trust=services.trust,
            workspaces=services.workspaces,
            preferences=services.preferences,
            owner_comments=owner_comments,
            experiences=services.experiences,
            agent_name=services.me.agent_name,
        )
        self.handlers: tuple[Handler, ...] = (opening, memo)

    async def start(self, name: str, handle_now: Callable[[], Awaitable[object]]) -> Started:
        """Open a ritual by hand, on any day and at any hour, unless it was opened today; `handle_now` runs the loop.

        One that was given up today gets another chance.
        """
        listed, key, day = self._rituals.listed(), ritual_key(name), self._rituals.now().date()
        ritual = listed.get(key)
        if ritual is None:
            return Started("unknown", name, ", ".join(one.name for one in listed.values()))
        if run := await self._rituals.runs.of_day(key, day):
            return Started("runs-already", ritual.name, run.thread_uri)
        row = new_opening(key, day, by_hand=True)
        known = await self._work.get(OPENING_KIND, row.key)
        if known and known.state != "pending":
            row = new_opening(key, day, by_hand=True, again=True)
        await self._work.add(row)
        await handle_now()
        if run := await self._rituals.runs.of_day(key, day):
            return Started("opened", ritual.name, run.thread_uri)
        after = await self._work.get(OPENING_KIND, row.key)
        if after and after.state == "pending":
            return Started("waits", ritual.name, after.not_before)
        return Started("not-opened", ritual.name, after.outcome if after else "")

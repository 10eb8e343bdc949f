"""The owner's control of the residents of the demo, by the functions of `soul why`, `soul drafts` and `soul pause`.

Each resident is a process of its own and goes on living meanwhile; nothing is kept here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from common.clock import SystemClock
from common.errors import SoulError
from common.redact import Redactor
from modules.lives.bluesky.expression import CAUSE as EXPRESSION
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.services.explanation import why
from modules.services.outbox import approval
from modules.services.peers.introductions import CAUSE as PEER_POST
from modules.services.peers.own_identity import CAUSE as IDENTITY_POST
from modules.services.rituals.policy import MEMO_KIND, OPENING_KIND
from soul.commands.pause import resume
from town.page.controls import Told, ToldStep
from town.town import VISITOR

_REACHED: Mapping[str, str] = {"mention": "wrote to it", "reply": "replied to it", "quote": "quoted it"}
_BEGAN: Mapping[str, str] = {
    EXPRESSION: "Its schedule called for a post",
    IDENTITY_POST: "It was to tell other agents who it is",
    PEER_POST: "It was to tell of another agent that it found",
    OPENING_KIND: "It was the hour of its ritual",
    MEMO_KIND: "It was to write down what came of its ritual",
}
_BEGAN_OTHERWISE = "It acted by itself"
_DID: Mapping[str, str] = {
    "reply": "wrote an answer",
    "post": "wrote this",
    "like": "gave a like instead of words",
    "repost": "passed it on",
    "follow": "began to follow",
}


@dataclass(frozen=True, slots=True)
class HomeControls:
    """Answers for the SOULs whose homes are given by handle."""

    homes: Mapping[str, Home]

    async def why(self, handle: str, uri: str) -> Told:
        return await asyncio.to_thread(_told, self._home(handle), uri)

    async def decide(self, handle: str, draft_id: str, *, yes: bool) -> None:
        clock = SystemClock()
        now = clock.now()
        async with await Database.beside(self._home(handle).database) as database:
            journal = Journal(database, SilentConsole(), clock, Redactor())
            if yes:
                await journal.record_with(lambda connection: approval.approve(connection, draft_id, now))
            else:
                await journal.record_with(lambda connection: approval.reject(connection, draft_id, "", now))

    async def pause(self, handle: str, *, paused: bool) -> None:
        home = self._home(handle)
        if paused:
            Control(home.memory).pause("on the town's page")
        elif not (standing := resume(home)).may_act:
            raise SoulError(f"Still {standing}")

    def _home(self, handle: str) -> Home:
        if handle not in self.homes:
            raise SoulError("Nobody of that name lives here.")
        return self.homes[handle]


def _told(home: Home, uri: str) -> Told:
    with reading(home.database) as connection:
        story = why.story_of(connection, uri)
    steps = (ToldStep(step.at, step.text, _plain(step.details)) for step in why.steps(story))
    return Told(why.title(story), tuple(steps), why.ending(story), lead(story))


def lead(story: why.Story) -> str:
    """The story in one sentence."""
    began = _BEGAN.get(story.cause.partition(":")[0], _BEGAN_OTHERWISE)
    if story.trigger:
        who = "You" if story.trigger.author == VISITOR else f"@{story.trigger.author}"
        began = f"{who} {_REACHED.get(story.trigger.reason, 'wrote')}"
    act = min(story.acts, key=lambda act: act.kind != "reply", default=None)
    if act is None:
        reasons = [decided.reason for decided in story.decisions if decided.kind == "decision" and decided.reason]
        return f"{began}, and it chose not to answer{': ' + reasons[-1] if reasons else ''}."
    passed = {rule.rule for movement in act.movements for rule in movement.rules if rule.says == "pass"}
    rules = f"passed {len(passed)} etiquette check{'s' * (len(passed) != 1)}" if passed else ""
    did = f"it {_DID.get(act.kind, 'acted')}"
    if act.state != "done":
        return f"{began}, and {did}, but that has not left."
    return f"{began}, {did}, and the result {rules}." if rules else f"{began}, and {did}."


def _plain(details: tuple[str, ...]) -> tuple[str, ...]:
    """Without bare addresses, which say nothing to a visitor."""
    return tuple(detail for detail in details if not detail.startswith("at://"))

"""One reflection: gather what happened, let the model look back once, and take up what it made of it.

A crash before SELF.md changed leaves all as it was. After it, the history knows by the row's cause that it did, and the
experiences that were there when the row was made count as taken up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from common.clock import Clock
from common.errors import Transient
from common.facts import ExperienceFact, ReflectionFacts
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.growth.materials import SKILL, Materials, diff_lines
from modules.lives.growth.policy import MOST_TRIES, RETRY_S, is_private, shown
from modules.lives.growth.report import REFLECTED
from modules.lives.growth.types import KIND, ReflectionDone, ReflectionTurn
from modules.runtime.events import Publish
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.types import Message
from modules.runtime.scheduler.policy import is_quiet
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.loop import TurnResult
from modules.services.agent.turn.runner import TurnRunner
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import Experience
from modules.services.identity.history import SelfHistory
from modules.services.identity.identity import Identity
from modules.services.identity.types import Version
from modules.services.work.types import Disposition, Handler, WorkItem

MOST_ROUNDS = 6

_LAST_WORDS_CHARS = 2_000
"""How much of its last sentences the owner is shown."""

_TOOLS = ("memory_search", "memory_history", "self_read", "self_update")
_UPDATE = "self_update"
_NOTHING = "nothing lasts"
"""The version of SELF.md that experiences came to where the SOUL saw them and changed nothing."""
_UNTIL_MORNING_S = timedelta(hours=1).total_seconds()


@dataclass(frozen=True, slots=True)
class _Thought:
    """What the model made of it: its last words, and what its changes of SELF.md came to (`changed`, `held`, …)."""

    text: str
    statuses: tuple[str, ...]
    reason: str = ""


@dataclass(kw_only=True)
class ReflectionHandler(Handler):
    """Reflects, but not at night where there is one."""

    kind = KIND
    most_tries = MOST_TRIES
    is_public = False
    line = "refl"

    home: Home
    materials: Materials
    experiences: ExperienceLog
    prompter: Prompter
    turn_runner: TurnRunner
    identity: Identity
    journal: Journal
    publish: Publish
    clock: Clock
    timezone: str = ""

    async def handle(self, item: WorkItem) -> Disposition:
        """Reflect once, unless it is night or nothing is new; at the owner's word always."""
        if (done := await self._version_of(item.cause_id)) is not None:
            seen = shown([one for one in await self.experiences.open() if one.id <= int(item.payload.get("seen", 0))])
            await self.experiences.integrate([one.id for one in seen], done.name)
            return Disposition("done", "changed", "done on an earlier try")
        is_forced = bool(item.payload.get("forced"))
        if not is_forced and is_quiet(self.clock.now(), self.timezone, keeps_hours=self.clock.keeps_hours):
            return Disposition("later", "night", "it is night", _UNTIL_MORNING_S)
        gathered = shown(await self.experiences.open())
        if not gathered and not is_forced:
            return Disposition("silent", "nothing-new", "nothing happened that is worth a thought")
        try:
            thought = await self._think(item, gathered)
        except Transient as error:
            retry_in_s = max(RETRY_S, self.clock.lived(error.retry_after or 0.0))
            return Disposition("undecided", "unanswered", str(error), retry_in_s)
        return await self._conclude(item, gathered, thought)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return what the journal says of it, without its reason."""
        if disposition.act == "later":
            return super().summary(item, disposition)
        return "Looked back on what it lived through"

    async def _think(self, item: WorkItem, gathered: Sequence[Experience]) -> _Thought:
        told = await self.materials.message(gathered, is_ordered=bool(item.payload.get("forced")))
        result = await self._run(item, gathered, (Message("user", told),))
        outcomes = [answer for call, answer in result.calls if call.name == _UPDATE]
        statuses = tuple(str(one.data.get("act", "self refused")).removeprefix("self ") for one in outcomes)
        reason = next((str(one.data.get("reason") or one.content) for one in reversed(outcomes)), result.text)
        return _Thought(result.text, statuses, reason)

    async def _run(self, item: WorkItem, gathered: Sequence[Experience], messages: Sequence[Message]) -> TurnResult:
        system = await self.prompter.prompt(
            skill=SKILL,
            audience="bluesky",
            session_key=KIND,
            now=self.clock.now(),
            least=Provenance.SELF,
        )
        subject = ReflectionTurn({one.name: one for one in gathered})
        turn = Turn(KIND, Provenance.SELF, item.cause_id, subject, item.importance)
        return await self.turn_runner.run_turn(
            turn=turn,
            system=system,
            messages=messages,
            purpose=SKILL,
            max_rounds=MOST_ROUNDS,
            only=_TOOLS,
            about=_facts(gathered, self.identity.extract().raw_sections),
        )

    async def _conclude(self, item: WorkItem, gathered: Sequence[Experience], thought: _Thought) -> Disposition:
        said = one_line(thought.text, _LAST_WORDS_CHARS)
        if "changed" in thought.statuses:
            return await self._taken_up(item, gathered, thought)
        if "held" in thought.statuses:
            reason = " ".join(filter(None, ("the change of SELF.md waits for your approval.", said)))
            return Disposition("done", "held", reason, held=True)
        if "refused" in thought.statuses:
            act = "silent" if thought.text.strip() else "undecided"
            reason = " ".join(filter(None, (f"A change of SELF.md was refused: {thought.reason}", said)))
            return Disposition(act, "refused", reason, RETRY_S)
        if thought.text.strip():
            await self.experiences.integrate([one.id for one in gathered], _NOTHING)
            self.materials.relationships.integrate_insights()
        return Disposition("silent", "unchanged", said or "nothing in it lasts")

    async def _taken_up(self, item: WorkItem, gathered: Sequence[Experience], thought: _Thought) -> Disposition:
        """SELF.md changed: what was before the SOUL is taken up, told once, and said once to the room."""
        versions = await asyncio.to_thread(self._versions, item.cause_id)
        newest, before = versions[0], versions[-1]
        await self.experiences.integrate([one.id for one in gathered], newest[0].name)
        cites = {name for version, _ in versions[:-1] for name in version.cites}
        cited = [one for one in gathered if one.name in cites]
        data = {
            "act": REFLECTED,
            "version": newest[0].name,
            "experiences": [one.name for one in cited],
            "diff": diff_lines(before[1], newest[1]),
            "learned": thought.text,
        }
        dids = tuple({one.did for one in cited if one.did})
        entry = Entry("decision", KIND, "SELF.md grew", "refl", newest[0].reason, item.cause_id, data=data, dids=dids)
        await self.journal.record(entry)
        if thought.text and not is_private(gathered):
            self.publish(ReflectionDone(thought.text))
        return Disposition("done", "changed", one_line(thought.text, _LAST_WORDS_CHARS) or newest[0].reason)

    async def _version_of(self, cause_id: str) -> Version | None:
        """The newest version of SELF.md that a reflection made, if it made one."""
        found = await asyncio.to_thread(self._versions, cause_id)
        return found[0][0] if found else None

    def _versions(self, cause_id: str) -> list[tuple[Version, str]]:
        """The versions that a reflection made, newest first, and the one before them; each with its text."""
        history = SelfHistory(self.home)
        with history.alone():
            versions = history.versions()
            made = [place for place, one in enumerate(versions) if cause_id in one.cites]
            last = made[-1] + 1 if made else 0
            chosen = versions[made[0] : last + 1] if made else []
            return [(one, history.read(one).decode(errors="replace")) for one in chosen]


def _facts(gathered: Sequence[Experience], sections: Mapping[str, str]) -> ReflectionFacts:
    """The experiences as data."""
    return ReflectionFacts(
        tuple(ExperienceFact(one.name, one.type, one.did, one.trust, one.about) for one in gathered), sections
    )

"""Reading: questions of the SOUL as rows of work, and the turns that look them up.

A question comes from SELF.md, from a reflection or from the owner. The number of lookups per day is limited. A finding
is kept as a memory with its sources, and is forgotten together with the accounts whose words it rests on.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from common.clock import Clock, local, parse_iso
from common.constants import DAY_MS
from common.facts import ReadingFacts
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.growth.policy import INTERVAL, READ, READING, ReadingTurn
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import Message
from modules.runtime.scheduler.policy import is_quiet
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import Turn
from modules.services.agent.turn.runner import TurnRunner
from modules.services.identity.identity import Identity
from modules.services.memory.admission import OWNER_SOURCE, READING_SOURCE, SUBJECT_LENGTH, NewMemory
from modules.services.memory.rows import MemoryStore
from modules.services.owner import TellOwner
from modules.services.rights.preferences import Preferences
from modules.services.skills.skills import Skills
from modules.services.work.table import WorkTable, count_waiting
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem

QUESTION_CHARS = 300
MOST_WAITING = 20
_ROUNDS = 6
_TOOLS = (
    *("bluesky_search", "bluesky_read_feed", "bluesky_read_list", "bluesky_trends"),
    *("memory_search", "reading_done"),
)
_UNTIL_MORNING_S = timedelta(hours=1).total_seconds()


async def want_to_know(table: WorkTable, question: str, *, is_owners: bool) -> bool:
    """Add a question to look up; return False if it waits already, or if too many wait."""
    if await _waiting(table) >= MOST_WAITING:
        return False
    return await table.offer(_row(question, is_owners=is_owners))


async def _waiting(table: WorkTable) -> int:
    return await table.database.run(lambda connection: count_waiting(connection, READING))


def _row(question: str, *, is_owners: bool = False) -> NewWork:
    asked = one_line(question, QUESTION_CHARS)
    return NewWork(READING, asked.casefold(), {"question": asked}, importance="owner" if is_owners else "own")


@dataclass(frozen=True, slots=True)
class ReadingPerceiver:
    """Adds the questions of SELF.md, each once, when no other question waits and the life is no longer new."""

    table: WorkTable
    identity: Identity
    began: Callable[[], Awaitable[datetime | None]]
    clock: Clock
    per_day: int

    async def perceive(self) -> None:
        """Add at most one question."""
        if not self.per_day or await _waiting(self.table):
            return
        began = await self.began()
        if began is None or self.clock.since(began) < INTERVAL:
            return
        for question in self.identity.extract().questions:
            if await self.table.add(_row(question)):
                return


@dataclass(kw_only=True)
class ReadingHandler(Handler):
    """Looks up one question at a time: not at night, at most `per_day` a day, with pauses between them.

    The owner's questions need no pause and may be looked up at night, but count towards `per_day`.
    """

    kind = READING
    is_public = False
    line = "mem"

    per_day: int
    prompter: Prompter
    turn_runner: TurnRunner
    memories: MemoryStore
    preferences: Preferences
    skills: Skills
    journal: Journal
    clock: Clock
    tell: TellOwner
    name: str
    timezone: str = ""

    async def handle(self, item: WorkItem) -> Disposition:
        """Read about the question and keep what was found."""
        if wait := await self._wait(item):
            return wait
        question, subject = str(item.payload.get("question", item.key)), ReadingTurn()
        accounts = await self.turn_runner.accounts_in(question)
        result = await self.turn_runner.run_turn(
            turn=Turn(READING, Provenance.SELF, item.cause_id, subject, item.importance, accounts=accounts),
            system=await self.prompter.prompt(
                skill=READING,
                audience="bluesky",
                session_key=READING,
                query=question,
                now=self.clock.now(),
                least=Provenance.SELF,
            ),
            messages=(Message("user", self.skills.render(READING, "User Message Template", question=question)),),
            purpose=READING,
            tool_choice="required",
            only=_TOOLS,
            max_rounds=_ROUNDS,
            about=ReadingFacts(question),
        )
        ends = (answer.decision for _, answer in reversed(result.calls) if answer.ends_turn)
        found: Mapping[str, Any] = next(ends, {})
        return await self._keep(item, question, found)

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Tell the owner if a question of theirs was given up."""
        if disposition.act == "dropped" and item.importance == "owner":
            words = f"{item.payload.get('question', item.key)}\n({disposition.reason})"
            headline = f"{self.name} could not look up what you wanted to know"
            await self.tell(f"{item.cause_id}@{item.created_at}", headline, words, Provenance.SELF, at_once=False)

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal line about a disposition, without its reason."""
        question = one_line(str(item.payload.get("question", item.key)), QUESTION_CHARS)
        return f"{'Waits to read' if not disposition.settles else 'Read'} about: {question}"

    async def _wait(self, item: WorkItem) -> Disposition | None:
        """Return why the question waits; None if it is looked up now."""
        now = self.clock.now()
        today = local(now, self.timezone).replace(hour=0, minute=0, second=0, microsecond=0)
        day = timedelta(milliseconds=self.clock.real(DAY_MS))
        read = await self.journal.with_act(READING, READ, today if self.clock.keeps_hours else now - day, now)
        if len(read) >= self.per_day:
            reason = f"{len(read)} of {self.per_day} questions were looked up today (READING_PER_DAY)"
            return Disposition("later", "enough", reason, _UNTIL_MORNING_S)
        if item.importance == "owner":
            return None
        if is_quiet(now, self.timezone, keeps_hours=self.clock.keeps_hours):
            return Disposition("later", "night", "it is night", _UNTIL_MORNING_S)
        apart = timedelta(days=1) / (2 * self.per_day)
        since = self.clock.since(parse_iso(read[-1].at)) if read else apart
        if since < apart:
            return Disposition("later", "soon", "it read a short while ago", (apart - since).total_seconds())
        return None

    async def _keep(self, item: WorkItem, question: str, found: Mapping[str, Any]) -> Disposition:
        """Store the finding, if any, with links to its sources and the accounts whose words it may contain."""
        finding, sources, dids = found.get("finding", ""), found.get("sources", {}), tuple(found.get("dids", ()))
        declared = await self.preferences.of(sources.values())
        if any(one.embedding == "deny" for one in declared.values()):
            finding = ""
        memory, owners = 0, item.importance == "owner"
        if finding:
            new = NewMemory(
                "fact",
                one_line(question, SUBJECT_LENGTH),
                "\n".join((finding, *sources)),
                (READING,),
                source=f"{OWNER_SOURCE if owners else ''}{READING_SOURCE}{next(iter(sources), '')}",
                trust="stranger",
                dids=dids,
            )
            memory = await self.memories.save(new, self.clock.now())
        told = {"question": question, "finding": finding, "sources": list(sources), "memory": memory}
        data = {"act": READ, **told, "owners": owners}
        reason = finding or "nothing was found that is worth keeping"
        entry = Entry("decision", READING, "Looked a question up", None, reason, item.cause_id, data=data, dids=dids)
        await self.journal.record(entry)
        if owners:
            headline = f"{self.name} looked up what you wanted to know"
            words = "\n".join((question, finding or f"({reason})", *sources))
            rests_on = Provenance.STRANGER if finding else Provenance.SELF
            await self.tell(f"{item.cause_id}@{item.created_at}", headline, words, rests_on, at_once=False, dids=dids)
        links = " ".join(sources) if owners and finding else ""
        return Disposition("done", "found" if finding else "nothing", f"{reason} {links}".rstrip())

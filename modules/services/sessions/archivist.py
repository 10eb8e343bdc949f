"""Condenses conversations that have grown too long and archives those that are over: all steps of it, or none.

The model is asked before anything is written. Then one row records everything that is to be done, the bytes go into the
store, the memories are saved, and the messages are removed in one transaction that also lists the archive. What a crash
or an unreachable store leaves unfinished, `finish_prepared` finishes, as each step can be repeated. The same holds for
the cleanup after a conversation (`modules/services/sessions/archives.py`).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from adapters.storage.local import Storage
from common.clock import Clock, iso, parse_iso
from common.constants import DAY_MS, MINUTE_MS
from common.errors import Fatal, PolicyBlocked, SoulError, Transient
from common.person import tied
from common.result import ApiResult, Err, Undone
from common.session_keys import is_main
from common.wording import counted, number
from modules.runtime.database.database import Database
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import Block, Message, Text, ToolAnswer, ToolCall
from modules.runtime.scheduler.policy import Loop, Outcome
from modules.services.memory.admission import NewMemory, trust_of
from modules.services.memory.people import with_named_accounts
from modules.services.sessions import archives, store
from modules.services.sessions.archives import REMNANTS, Archive, ArchiveOutcome, Distilled, Distiller, Remnant
from modules.services.sessions.distil_policy import needs_summary, worth
from modules.services.sessions.sessions import Sessions
from modules.services.sessions.types import CONTENT_TYPE, MessageRow, Session, blocks, pack

COMPACTION = "compaction"
"""The tag of memories that were extracted because a conversation had grown too long."""

_LOOP = "sessions"
_LEFT_OVER = "it had been left unfinished"
_WENT_ON = "the conversation went on meanwhile"


@dataclass(slots=True, kw_only=True)
class Archivist:
    """Archives messages and removes them from conversations.

    Attributes:
        sessions: the conversations.
        database: holds their rows.
        storage: holds the archives.
        distiller: says what to keep.
        journal: records the results.
        clock: the time.
        agent_id: the agent to which the archives belong.
        forget_media: deletes the media of a session key.
        on_kept: receives the time of the memories of an archive once they are saved.
        on_end: receives the session key of a conversation that is over, even a silent one. After a crash,
            `PolicyBlocked` or `Transient` it is called again, unless another conversation goes on under that key.
        before_reading: called with the session key before messages are read to be distilled, to remove first the people
            who deny inference by now.
        may_remember: whether memories of the conversation with that key may be saved; None allows all.

    """

    sessions: Sessions
    database: Database
    storage: Storage
    distiller: Distiller
    journal: Journal
    clock: Clock
    agent_id: str
    forget_media: Callable[[str], Awaitable[ApiResult[int]]]
    on_kept: Callable[[datetime], Awaitable[None]] | None = None
    on_end: Callable[[str], Awaitable[None]] | None = None
    before_reading: Callable[[str], Awaitable[None]] | None = None
    may_remember: Callable[[str], Awaitable[bool]] | None = None
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def compact(self, session_id: str, budget_tokens: int) -> ArchiveOutcome:
        """Condense the oldest messages if the conversation is larger than `budget_tokens`.

        Raises:
            Fatal: the model or the disk refuses permanently; nothing has changed.

        """
        async with self._alone:
            if not outgrown(await self.sessions.rows(session_id), budget_tokens):
                return ArchiveOutcome("nothing", "there is nothing to condense")
            # NOTE(self): a turn does not wait for a store that could not be reached; `finish_prepared` tries again.
            if waiting := await self._left_over(session_id):
                return ArchiveOutcome("waiting", "an earlier part waits for the store", waiting[0])
            session = await self.database.run(lambda connection: store.find(connection, session_id))
            if session is None:
                raise LookupError(f"no session {session_id}")
            rows = await self._readable(session)
            old = outgrown(rows, budget_tokens)
            if not old:
                return ArchiveOutcome("nothing", "who denies inference left the conversation")
            reason = f"{number(sum(row.tokens for row in rows))} tokens are more than {number(budget_tokens)}"
            return await self._archive(session, old, reason, whole=False)

    async def reset(
        self, session_key: str, *, reason: str = "you asked for it", quiet_since: datetime | None = None
    ) -> ArchiveOutcome:
        """End the conversation under `session_key` and archive the rest of it; the next message begins a new one.

        Args:
            session_key: of the conversation.
            reason: why, for the journal.
            quiet_since: do nothing if something was said since this time.

        Raises:
            Fatal: as `compact`.

        """
        async with self._alone:
            session = await self.database.run(lambda connection: store.going_on(connection, session_key))
            if session is None:
                return ArchiveOutcome("nothing", "there is no conversation")
            if quiet_since is not None and session.last_active_at >= iso(quiet_since):
                return ArchiveOutcome("postponed", _WENT_ON)
            for archive in await self._left_over(session.id):
                outcome = await self._finish(archive, _LEFT_OVER)
                if outcome.status == "waiting":
                    return outcome
            rows = await self._readable(session)
            if not rows:
                return await self._end_silent(session)
            return await self._archive(session, rows, reason, whole=True)

    async def finish_prepared(self) -> list[ArchiveOutcome]:
        """Finish what was prepared or left uncleared; called at start and regularly. Some may still wait."""
        async with self._alone:
            for remnant, session_key in await self.database.run(archives.due):
                await self._clear_away(remnant, session_key)
            outcomes = []
            for archive in await self.database.run(archives.prepared):
                outcome = await self._finish(archive, _LEFT_OVER)
                if outcome.status == "done":
                    await self.journal.record(_outcome_entry(archive.session_key, outcome))
                outcomes.append(outcome)
            return outcomes

    async def _readable(self, session: Session) -> Sequence[MessageRow]:
        """Return the messages of a conversation without those that must no longer be read."""
        if self.before_reading:
            await self.before_reading(session.key)
        return await self.sessions.rows(session.id)

    async def _archive(
        self, session: Session, rows: Sequence[MessageRow], reason: str, *, whole: bool
    ) -> ArchiveOutcome:
        outcome = await self._begin(session, rows, reason, whole=whole)
        await self.journal.record(_outcome_entry(session.key, outcome))
        return outcome

    async def _end_silent(self, session: Session) -> ArchiveOutcome:
        now = self.clock.now()
        if not await self.database.run(lambda connection: archives.end_silent(connection, session, now)):
            return ArchiveOutcome("postponed", _WENT_ON)
        await self._ended(session.key)
        return ArchiveOutcome("nothing", "nothing was said")

    async def _ended(self, session_key: str) -> None:
        for remnant in REMNANTS:
            if trouble := await self._clear_away(remnant, session_key):
                await self.journal.record(_left_behind_entry(session_key, trouble))

    async def _left_over(self, session_id: str) -> list[Archive]:
        """Return the archives of this session that are prepared and not done."""
        return [each for each in await self.database.run(archives.prepared) if each.session_id == session_id]

    async def _begin(self, session: Session, rows: Sequence[MessageRow], reason: str, *, whole: bool) -> ArchiveOutcome:
        try:
            distilled = await self._distil(session, rows, whole=whole)
        except Fatal:
            raise
        except SoulError as error:
            return ArchiveOutcome("postponed", str(error))
        now = self.clock.now()
        archive = await self.database.run(
            lambda connection: archives.prepare(
                connection, session, rows, distilled, agent_id=self.agent_id, whole=whole, now=now
            )
        )
        if archive is None:
            return ArchiveOutcome("postponed", _WENT_ON)
        if whole:
            await self._ended(session.key)
        return await self._finish(archive, reason)

    async def _distil(self, session: Session, rows: Sequence[MessageRow], *, whole: bool) -> Distilled:
        provenance = await self.sessions.provenance(session.id)
        # NOTE(self): memories of an old talk carry its time, not the time of its archiving.
        at = session.last_active_at if whole else iso(self.clock.now())
        tags = () if whole else (COMPACTION,)
        distilled = Distilled("", "", provenance, (), at)
        after = await self.database.run(lambda connection: store.kept_after(connection, session.key))
        sums_up = needs_summary(session.key, provenance, whole=whole)
        if worth(said := [row for row in rows if row.created_at > after], of_others=not sums_up):
            distilled = await self.distiller.distil(
                session, said, provenance, remembered_at=at, tags=tags, sums_up=sums_up
            )
            if sums_up and not distilled.summary:
                await self.journal.record(_unsummarised_entry(session.key))
            if whole and is_main(session.key) and distilled.summary:
                about = NewMemory("episode", "talk with the owner", distilled.summary, source=session.key)
                # NOTE(self): last, so that it is among the newest notes of its day.
                noted = (*distilled.memories, replace(about, trust=trust_of(provenance)))
                distilled = replace(distilled, memories=noted)
        if self.may_remember and not await self.may_remember(session.key):
            distilled = replace(distilled, memories=())
        dids = tuple(tied(did for row in rows for did in row.dids.split()).split())
        memories = [replace(one, dids=dids) for one in distilled.memories]
        # NOTE(self): tied before the archive is prepared, so that the copy in its row is deleted with the memory.
        tied_to = await self.database.run(lambda rows: tuple(with_named_accounts(rows, one) for one in memories))
        distilled = replace(distilled, memories=tied_to)
        if whole or distilled.message:
            return distilled
        earlier = await self.database.run(lambda connection: store.summary(connection, session.id))
        return replace(distilled, message=earlier)

    async def _finish(self, archive: Archive, reason: str) -> ArchiveOutcome:
        """Carry out the steps after the preparation, each of which can be repeated."""
        rows = await self.database.run(
            lambda connection: store.rows(connection, archive.session_id, until=archive.last_seq)
        )
        data = await asyncio.to_thread(pack, rows)
        stored = await self.storage.put(archive.key, data, content_type=CONTENT_TYPE, metadata=archive.metadata)
        if isinstance(stored, Err):
            return ArchiveOutcome("waiting", stored.error, archive)
        distilled = archive.distilled
        summary = (
            self.sessions.summary_row(distilled.message, distilled.provenance, archive.dids)
            if distilled.message and archive.part is not None
            else None
        )
        await self.database.run(lambda connection: archives.finish(connection, archive, summary))
        if self.on_kept and distilled.memories:
            await self.on_kept(parse_iso(distilled.remembered_at))
        return ArchiveOutcome("done", reason, archive)

    async def _clear_away(self, remnant: Remnant, session_key: str) -> str:
        """Clear away one remnant of an ended conversation; return why not, or "". On failure its mark stays."""
        try:
            if remnant == "notes" and self.on_end:
                await self.on_end(session_key)
            if remnant == "media":
                (await self.forget_media(session_key)).or_raise()
        except (PolicyBlocked, Transient, Undone) as error:
            return str(error)
        await self.database.run(lambda connection: archives.settled(connection, remnant, session_key))
        return ""


def _outcome_entry(session_key: str, outcome: ArchiveOutcome) -> Entry:
    """Return the journal entry about the condensing or the end of a conversation."""
    archive = outcome.archive
    match outcome.status:
        case "done" if archive is not None:
            summary = (
                f"{_messages_in(archive)} of {session_key} {'are' if archive.message_count > 1 else 'is'} archived"
            )
            return Entry("life", _LOOP, summary, "mem", outcome.reason, data=_archive_data(archive))
        case "waiting" if archive is not None:
            summary = f"{_messages_in(archive)} of {session_key} cannot be archived yet"
            return Entry("life", _LOOP, summary, "warn", outcome.reason, data=_archive_data(archive))
        case "postponed":
            return Entry("life", _LOOP, f"{session_key} stays as it is", None, outcome.reason)
        case _:
            return Entry("life", _LOOP, f"{session_key} is over", None, outcome.reason)


def _unsummarised_entry(session_key: str) -> Entry:
    """Return the journal entry about words that nothing stands for but their archive."""
    reason = "the model gave none, twice; the archive holds these words"
    return Entry("life", _LOOP, f"What is archived of {session_key} gets no summary", "warn", reason)


def _left_behind_entry(session_key: str, reason: str) -> Entry:
    """Return the journal entry about a conversation that is over while something of it is not cleared away yet."""
    return Entry("error", _LOOP, f"What belonged to {session_key} cannot be cleared away yet", "warn", reason)


def _messages_in(archive: Archive) -> str:
    return f"{counted(archive.message_count, 'message')}"


def _archive_data(archive: Archive) -> dict[str, object]:
    return {
        "key": archive.key,
        "session": archive.session_id,
        "part": archive.part,
        "messages": archive.message_count,
        "memories": len(archive.distilled.memories),
        "summarised": bool(archive.distilled.summary),
    }


OWNER_IDLE_RESET_MS = 30 * MINUTE_MS

_INTERVAL_MS = 5 * MINUTE_MS
_OTHERS_IDLE_MS = DAY_MS


@dataclass
class SessionTidyLoop(Loop):
    """Ends silent conversations: talks with the owner, and those whose key `is_over`, after half an hour of silence.

    Any other conversation ends after a day of silence. No talk with the owner ends while the owner waits for an answer.
    """

    name = "sessions"
    jitter = 0.0
    needs_idle = True
    at_start = True

    sessions: Sessions
    archivist: Archivist
    clock: Clock
    is_over: Callable[[str], bool]
    owner_waiting: Callable[[], Awaitable[int]]
    """Returns how much that the owner said has no answer yet."""
    _put_off: Counter[str] = field(default_factory=Counter, init=False)
    """The number of times that the end of each session was put off; those put off least come first."""

    @property
    def interval_ms(self) -> float:
        return self.clock.real(_INTERVAL_MS)

    async def run(self) -> Outcome:
        """Finish prepared archives, then end idle conversations."""
        finished = [outcome.status for outcome in await self.archivist.finish_prepared()]
        now = self.clock.now()
        ended = 0
        idle = await self.sessions.idle(now - timedelta(milliseconds=OWNER_IDLE_RESET_MS))
        for session in sorted(idle, key=lambda one: self._put_off[one.id]):
            ends_soon = is_main(session.key) or self.is_over(session.key)
            quiet_since = now - timedelta(milliseconds=OWNER_IDLE_RESET_MS if ends_soon else _OTHERS_IDLE_MS)
            if session.last_active_at >= iso(quiet_since) or (is_main(session.key) and await self.owner_waiting()):
                continue
            outcome = await self.archivist.reset(session.key, reason="it is over", quiet_since=quiet_since)
            if outcome.status == "postponed":
                # NOTE(self): without a model or a budget the others would fail too; they wait for the next run.
                self._put_off[session.id] += 1
                break
            self._put_off.pop(session.id, None)
            ended += outcome.status != "waiting"
        done, left = finished.count("done"), finished.count("waiting")
        if not (done or left or ended):
            return Outcome(ran=False, reason="no conversation has fallen silent")
        return Outcome(ran=True, reason=f"{ended} conversations ended, {done} finished, {left} wait for the store")


_KEPT_SHARE = 0.5
_SUMMARY_TOKENS = 1000  # more than a summary takes, so that one is not condensed again and again


def fitting(rows: Sequence[MessageRow], budget_tokens: int) -> tuple[MessageRow, ...]:
    """Return the newest rows that fit; a round of tool calls stays whole, and no tool answer comes first."""
    kept: list[MessageRow] = []
    room = budget_tokens
    for unit in reversed(units(rows)):
        room -= sum(row.tokens for row in unit)
        if room < 0 or unit[0].role == "toolResult":
            break
        kept[:0] = unit
    return tuple(kept)


def outgrown(rows: Sequence[MessageRow], budget_tokens: int) -> tuple[MessageRow, ...]:
    """Return the oldest rows, to be condensed; empty while all fit or if condensing would gain nothing.

    The newest half of the budget stays, and in any case the last message, as the turn is about it.
    """
    if not rows or sum(row.tokens for row in rows) <= budget_tokens:
        return ()
    newest = fitting(rows, int(budget_tokens * _KEPT_SHARE)) or units(rows)[-1]
    old = tuple(rows[: len(rows) - len(newest)])
    worthwhile = len(old) > 1 or sum(row.tokens for row in old) > _SUMMARY_TOKENS
    return old if worthwhile else ()


def units(rows: Iterable[MessageRow]) -> list[list[MessageRow]]:
    """Return groups that must stay together: a message with the answers to its calls. Orphans only come first."""
    found: list[list[MessageRow]] = []
    for row in rows:
        if row.role == "toolResult" and found:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def conversation(rows: Iterable[MessageRow]) -> list[Message]:
    """Return the messages of `rows` in a form that a chat service accepts.

    They begin with the user and alternate. Each call stands right before its one answer. Calls without an answer,
    answers without a call, and empty messages are left out.
    """
    said: list[Message] = []
    for unit in units(rows):
        for message in _settled(unit):
            if said and said[-1].role == message.role:
                said[-1] = _together(said[-1], message)
            elif said or message.role == "user":
                said.append(message)
            else:
                break  # without a user message before them, neither the answer nor the results of its calls are shown
    return said


def _settled(unit: Sequence[MessageRow]) -> Iterator[Message]:
    head = unit[0]
    if head.role == "toolResult":
        return
    called = {block.id for block in blocks(head.message) if isinstance(block, ToolCall) and block.id}
    answers: dict[str, ToolAnswer] = {}
    for row in unit[1:]:
        for block in blocks(row.message):
            if isinstance(block, ToolAnswer) and head.role == "assistant" and block.tool_use_id in called:
                answers.setdefault(block.tool_use_id, block)
    kept = tuple(_kept(blocks(head.message), answers))
    if kept:
        yield Message(head.message.role, kept[0].text if len(kept) == 1 and isinstance(kept[0], Text) else kept)
    if answers:
        yield Message("user", tuple(answers.values()))


def _kept(said: Iterable[Block], answers: dict[str, ToolAnswer]) -> Iterator[Block]:
    waiting = set(answers)
    for block in said:
        if isinstance(block, ToolCall):
            if block.id in waiting:
                waiting.remove(block.id)
                yield block
        elif not (isinstance(block, ToolAnswer) or (isinstance(block, Text) and not block.text.strip())):
            yield block


def _together(first: Message, second: Message) -> Message:
    if isinstance(first.content, str) and isinstance(second.content, str):
        return Message(first.role, f"{first.content}\n\n{second.content}")
    return Message(first.role, (*blocks(first), *blocks(second)))

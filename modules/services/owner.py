"""Talks with the owner in private, one line after another, and notices to them outside a talk.

Each message is stored before its turn and waits until it is answered, across restarts and while the model service is
down: each is a row of work. The conversation ends after half an hour of silence, or when the owner says so; then what
is worth remembering is saved.
"""

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import takewhile
from typing import Protocol
from uuid import uuid4

from common.clock import Clock, doubled, local, parse_iso, spoken
from common.constants import OWNER_CAUSE
from common.errors import BudgetExceeded, Fatal, MachineTrouble, PolicyBlocked, SoulError, Transient
from common.facts import OwnerFacts
from common.person import tied
from common.provenance import Provenance
from common.redact import Redactor
from common.session_keys import OWNER_SESSION
from common.settings import Approval
from common.text.handles import given_handles, linked_handles
from common.text.untrusted import one_line
from modules.runtime.console import Console
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import UNFINISHED, Entry
from modules.runtime.llm.dialect import Message, Text, ToolAnswer
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.onboarding import Onboarding
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.tools.types import OwnerRequest, Turn
from modules.services.agent.turn.runner import TurnResult, TurnRunner
from modules.services.experiences import ExperienceLog, NewExperience
from modules.services.identity.identity import Me
from modules.services.memory.profiles import begin_with_owner
from modules.services.sessions.archives import ArchiveOutcome
from modules.services.sessions.archivist import Archivist, conversation, fitting
from modules.services.sessions.sessions import Sessions
from modules.services.sessions.store import change_owner_of_talks, is_over, kept_after
from modules.services.sessions.types import MessageRow, blocks, said_lines, said_since
from modules.services.skills.skills import Framer, Skills, written
from modules.services.work.table import WorkTable, change_owner_of_work, note
from modules.services.work.types import OWNER_LINE, NewWork, WorkItem

NOTICE = "alarm"
"""The kind of the work rows that hold notices to the owner."""
UNTOLD = "untold"
"""The outcome of such a row whose words no message could tell."""
_SKILL = "owner-communication"
_LATELY = timedelta(days=7)
_MOST_READ, _MOST_TOLD = 50, 5


def begin_with(connection: sqlite3.Connection, owner_did: str) -> None:
    """If the owner has changed since the last start, hide what the former owner said in private."""
    if former := begin_with_owner(connection, owner_did):
        change_owner_of_talks(connection, owner_did, former)
        change_owner_of_work(connection, NOTICE, owner_did, former)


def owner_line(text: str) -> NewWork:
    """Return the row of a line without secrets."""
    return NewWork(OWNER_LINE, uuid4().hex, {"text": text}, importance="owner")


def cause_of(key: str) -> str:
    """Return the cause of the acts that follow from a line or message of the owner, by the key of its row."""
    return f"{OWNER_CAUSE}:{key}"


class TellOwner(Protocol):
    """Tells the owner something outside a talk, once for each name, across restarts."""

    async def __call__(
        self, name: str, text: str, words: str, provenance: Provenance, *, at_once: bool, dids: Sequence[str] = ()
    ) -> None:
        """Store a notice: `text` is the headline, `words` what is said in private.

        Unless `at_once`, it waits for the end of the owner's quiet hours. `provenance` is that of the least trusted
        text behind `words`, `dids` are the accounts whose words they may repeat.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToldOutside:
    """Adds to the owner's conversation what they were told outside it, each notice once."""

    work: WorkTable
    sessions: Sessions
    skills: Skills
    clock: Clock
    rng: random.Random
    timezone: str

    async def note(self) -> None:
        """Add what is not noted yet, once it was told or could not be: at most the newest five of the last seven days.

        Words that rest on those of others are framed, and the conversation has their provenance from then on.
        """
        since, rows = self.clock.now() - _LATELY, await self.work.newest(NOTICE, _MOST_READ, having="words")
        new = [one for one in rows if not one.payload.get("noted") and (one.state != "pending" or one.attempts)]
        for item in reversed([one for one in new if parse_iso(one.created_at) > since][:_MOST_TOLD]):
            provenance = Provenance(item.payload.get("provenance", Provenance.STRANGER))
            words, is_own = item.payload["words"], provenance >= Provenance.SELF
            if not is_own:
                words = Framer(self.skills, self.rng).frame(
                    "reading", author="you, on what you read", uri="", text=words
                )
            at = spoken(local(parse_iso(item.created_at), self.timezone))
            about = {"at": at, "headline": item.payload["text"], "is_told": item.outcome != UNTOLD}
            told = self.skills.render(_SKILL, "Told Outside", **about, words=words)
            # NOTE(self): the SOUL's own words do not lower the trust of the conversation, just as its answers do not.
            said = [(Message("user", told), Provenance.OWNER if is_own else provenance)]
            session, dids = await self.sessions.open(OWNER_SESSION), tied(item.payload.get("dids", ()))
            await self.sessions.add(session.id, said, did=dids, is_note=True)
            await self.work.note(item, noted=True)


_FIRST_SKILL = "commissioning"
_MOST_TIMES_UP = 2
"""The number of times that a turn over one message may run out of time without any words."""
_REFUSED_REMEDY = "Say it in other words. If that happens often, choose another model by AI_GATEWAY_MODEL in .env."
_REMEDY = "Ask for less at a time, or say it in other words."


@dataclass(frozen=True, slots=True)
class OwnerAnswer:
    """The result of one message: the text, or the error because of which it will never be answered."""

    message: WorkItem
    text: str = ""
    failed: Exception | None = None


def problem_of(error: Exception) -> tuple[str, str]:
    """Return why a message got no answer, in a sentence, and what the owner can do."""
    if isinstance(error, SoulError):
        return f"I could not answer this message: {str(error).removesuffix('.')}.", error.remedy or _REMEDY
    what = f"I could not answer this message because of a fault in the program ({type(error).__name__}: {error})."
    return what, "Send it again. If that fails too, `soul logs` shows the fault."


@dataclass(slots=True, kw_only=True)
class OwnerTalk:
    """One conversation with the owner.

    While an answer made among others' words is in the conversation, so are those words.
    """

    me: Me
    prompter: Prompter
    skills: Skills
    turn_runner: TurnRunner
    sessions: Sessions
    work: WorkTable
    redactor: Redactor
    told: ToldOutside
    archivist: Archivist
    onboarding: Onboarding
    attention: Attention
    journal: Journal
    clock: Clock
    situation: Callable[[], Awaitable[str]]
    renew_context: Callable[[], Awaitable[None]]
    approval: Approval
    experiences: ExperienceLog
    _times_up: Counter[int] = field(default_factory=Counter, init=False)  # by message

    async def receive(self, line: str) -> str:
        """Store one message, durably on return; return its key. Raises `StorageError`."""
        new = owner_line(self.redactor.text(line))
        await self.work.add(new)
        return new.key

    async def waiting(self) -> int:
        """Return how many messages have no answer yet."""
        return len(await self.work.waiting(OWNER_LINE))

    async def answer_next(self) -> OwnerAnswer | None:
        """Answer the oldest waiting message; return None if there is none. Waits for the SOUL's attention.

        Raises:
            BudgetExceeded: not today; the message keeps waiting.
            Fatal: the process must stop; the message keeps waiting.
            Transient: the model gives no answer now; the message keeps waiting.

        """
        async with self.attention.take("owner", first=True):
            message = next(iter(await self.work.waiting(OWNER_LINE)), None)
            if message is None:
                return None
            answer = await self._answer(message, message.payload["text"], message.created_at)
        await self.work.remove(message)
        return answer

    async def answer_message(self, message: WorkItem, line: str, sent_at: str) -> OwnerAnswer:
        """Answer one message that did not come through the terminal; the same row gets the same answer.

        `sent_at`: when the owner wrote it. Raises as `answer_next`.
        """
        async with self.attention.take("owner", first=True):
            return await self._answer(message, line, sent_at)

    async def _answer(self, message: WorkItem, line: str, sent_at: str) -> OwnerAnswer:
        await self.told.note()
        session_id = await self._put_in_session(message, line)
        kept = await self._answer_in(session_id)
        if kept is not None:
            return OwnerAnswer(message, kept)
        purpose = _FIRST_SKILL if self.onboarding.due() else _SKILL
        try:
            turn_result = await self._run_turn(line, session_id, purpose=purpose, message=message, sent_at=sent_at)
        except (BudgetExceeded, Fatal, Transient):
            raise
        except Exception as error:
            return await self._failed(message, error)
        if turn_result.stopped == "refused":
            return await self._failed(message, SoulError(turn_result.cut_off, remedy=_REFUSED_REMEDY))
        if turn_result.stopped in UNFINISHED and not turn_result.said:
            return await self._without_words(message, turn_result)
        guidance = NewExperience(
            "owner_guidance",
            "terminal" if message.kind == OWNER_LINE else "message",
            cause_of(message.key),
            line,
            trust="owner",
        )
        unkept = await self.work.database.run(partial(kept_after, session_key=OWNER_SESSION))
        if message.created_at > unkept:  # NOTE(self): not if a memory was forgotten since it came
            await self.experiences.record(guidance)
        acts = [call.name for call, result in turn_result.calls if not result.is_error]
        await self.journal.record(
            Entry(
                "decision",
                "owner",
                "Answered the owner",
                line=None,
                reason=f"the owner wrote {'in the terminal' if message.kind == OWNER_LINE else 'a direct message'}",
                data={"act": "answered", "tools": acts, "rounds": turn_result.rounds},
            )
        )
        text = turn_result.said
        if turn_result.cut_off and not text:
            return OwnerAnswer(message, failed=SoulError(turn_result.cut_off, remedy=_REMEDY))
        return OwnerAnswer(message, text)

    async def _put_in_session(self, message: WorkItem, line: str) -> str:
        """Add the line to the current conversation, once; a second call changes nothing. Return the conversation."""
        earlier = message.payload.get("session", "")
        over = not earlier or await self.work.database.run(partial(is_over, session_id=earlier))
        if not over and (message.kind == OWNER_LINE or await self._was_said_last(earlier, line)):
            return str(earlier)

        def noted(connection: sqlite3.Connection, session_id: str) -> None:
            note(connection, message, {"session": session_id})

        session = await self.sessions.open(OWNER_SESSION)
        return await self.sessions.add(session.id, [(Message("user", line), Provenance.OWNER)], noted, did="")

    async def _was_said_last(self, session_id: str, line: str) -> bool:
        said = [row for row in await self.sessions.rows(session_id) if row.role == "user" and not row.is_note]
        return _texts(said[-1:]) == [line]

    async def _answer_in(self, session_id: str) -> str | None:
        """Return the answer that was stored before a crash prevented its display; None if there is none."""
        rows = await self.sessions.rows(session_id)
        if not rows or rows[-1].role != "assistant":
            return None
        is_answer = all(isinstance(one, Text) for one in blocks(rows[-1].message))
        return said_since(row.message for row in rows) if is_answer else None

    async def _without_words(self, message: WorkItem, turn_result: TurnResult) -> OwnerAnswer:
        """Return the answer for a message over which a turn stopped before its first word.

        Raises:
            Transient: try again later.

        """
        why = UNFINISHED[turn_result.stopped]
        self._times_up[message.id] += turn_result.stopped == "time"
        if self._times_up[message.id] < _MOST_TIMES_UP:
            raise Transient(f"There is no answer yet: {why}")
        tools = ", ".join(dict.fromkeys(call.name for call, _ in turn_result.calls))
        failure = SoulError(f"{why} twice, over {tools}", remedy=_REMEDY)
        return await self._failed(message, failure)

    async def _failed(self, message: WorkItem, error: Exception) -> OwnerAnswer:
        """Record and return the failure of a message that will never be answered, so that later ones need not wait."""
        failure = f"{type(error).__name__}: {error}"
        await self.journal.record(Entry("error", "owner", "The owner got no answer", line=None, reason=failure))
        return OwnerAnswer(message, failed=error)

    async def open(self) -> str:
        """Return the SOUL's first words if it and its owner are to talk for the first time, otherwise ""."""
        if not self.onboarding.due():
            return ""
        async with self.attention.take("owner", first=True):
            opening = Message("user", self.opening)
            session_id = await self.sessions.add_once(OWNER_SESSION, opening, Provenance.OWNER, is_note=True)
            turn_result = await self._run_turn(self.opening, session_id, purpose=_FIRST_SKILL, only=())
        return turn_result.said

    @property
    def opening(self) -> str:
        """The text in place of the owner's first line when the SOUL speaks first; it holds no words of the owner."""
        return self.skills.render(_FIRST_SKILL, "Opening")

    async def start_afresh(self) -> ArchiveOutcome:
        """End the current conversation at the owner's request."""
        async with self.attention.take("owner", first=True):
            return await self.archivist.reset(OWNER_SESSION)

    async def _run_turn(
        self,
        line: str,
        session_id: str,
        *,
        purpose: str,
        only: Collection[str] | None = None,
        message: WorkItem | None = None,
        sent_at: str = "",
    ) -> TurnResult:
        rows = await self.sessions.rows(session_id)
        turn = Turn(
            loop="owner",
            provenance=await self.sessions.provenance(session_id),
            cause_id=cause_of(message.key) if message else OWNER_CAUSE,
            importance="owner",
            origin=Provenance.OWNER,
            request=request_in(rows, line) if message else None,
            made=set() if message else None,
            accounts=accounts_in(rows),
        )
        try:
            await self.renew_context()
        except (PolicyBlocked, Transient) as error:
            summary = "CONTEXT.md was not renewed"
            await self.journal.record(Entry("error", "owner", summary, line="warn", reason=str(error)))
        now, situation = self.clock.now(), await self.situation()
        is_message = message is not None and message.kind != OWNER_LINE
        at = parse_iso(sent_at) if sent_at else now
        system = await self.prompter.prompt(
            skill=purpose,
            variables={
                "bluesky_username": self.me.bluesky_username,
                "owner_handle": self.me.owner_handle,
            },
            audience="owner",
            session_key=OWNER_SESSION,
            query=line,
            now=now,
            least=turn.provenance,
            began=parse_iso((await self.sessions.open(OWNER_SESSION)).created_at),
            moment=self.skills.render(
                _SKILL,
                "How Things Stand",
                situation=situation,
                approval=self.approval,
                is_message=is_message,
                written=written(self.skills, at, now, self.me.timezone),
            )
            if purpose == _SKILL
            else "",
        )
        is_first = purpose == _FIRST_SKILL
        earlier = said_lines(rows) if is_first else ()
        room = self.turn_runner.room(system, turn, only, conversation(rows))
        await self.archivist.compact(session_id, room)
        return await self.turn_runner.run_turn(
            turn=turn,
            system=system,
            messages=conversation(fitting(await self.sessions.rows(session_id), room)) or [Message("user", line)],
            purpose=purpose,
            only=only,
            session_id=session_id,
            about=OwnerFacts(line if message else "", situation, is_first, earlier),
        )


def accounts_in(rows: Sequence[MessageRow]) -> dict[str, str]:
    """Return the handles in the owner's lines of a talk; each may be looked up as it stands there."""
    said = _texts(row for row in rows if row.role == "user" and not row.is_note and row.provenance is Provenance.OWNER)
    return {handle: handle for line in said for handle in (*given_handles(line), *linked_handles(line))}


def request_in(rows: Sequence[MessageRow], line: str) -> OwnerRequest:
    """Return what the owner asks by `line` and by their other lines of the same turn, wherever they came from.

    If that turn began before a restart, tool answers follow the last of these rows.
    """
    end = max((at for at, row in enumerate(rows, 1) if row.role == "user" and not row.is_note), default=0)
    waiting = list(takewhile(lambda row: row.role == "user", reversed(rows[:end])))
    said = _texts(row for row in reversed(waiting) if not row.is_note)
    called = (block for row in rows[end:] for block in blocks(row.message) if isinstance(block, ToolAnswer))
    before = rows[: end - len(waiting)][-1:]
    return OwnerRequest(
        "\n\n".join(dict.fromkeys(said if line in said else [line, *said])),
        called=tuple(called),
        said_before="\n".join(_texts(before)),
        said_among=min((row.provenance for row in before), default=Provenance.OWNER),
    )


def _texts(rows: Iterable[MessageRow]) -> list[str]:
    return [block.text for row in rows for block in blocks(row.message) if isinstance(block, Text)]


OWNER_RETRY_FIRST_S = 30.0
OWNER_RETRY_LONGEST_S = 300.0
OWNER_ASKED_TO_WAIT_S = 3600.0
"""So long at most until the next try, whatever wait was asked for: what is short may come back sooner."""

_EXCERPT_CHARS = 60
_LOOK_S = 1.0
_NO_WORDS = "(no words)"


class OwnerAnswers:
    """The terminal's side of the talk with the owner. `receive` takes a message, `run` gives the answers.

    Args:
        talk: stores and answers the messages.
        console: shows what is going on.
        say: shows an answer.
        clock: the time, and for waiting.
        timezone: the time zone of displayed times; "" for the machine's.

    """

    def __init__(
        self, talk: OwnerTalk, *, console: Console, say: Callable[[str], None], clock: Clock, timezone: str = ""
    ) -> None:
        self._talk = talk
        self._console = console
        self._say = say
        self._clock = clock
        self._timezone = timezone
        self._line_arrived = asyncio.Event()
        self._failures = 0
        self._late = False  # whether waiting messages have waited longer than their turn

    async def receive(self, line: str) -> None:
        """Store a message and have it answered. Raises `StorageError`."""
        await self._talk.receive(line)
        if self._failures and (waiting := await self._counted()):
            self._console.line("info", f"Kept; {_messages(waiting)} for an answer")
        self._line_arrived.set()

    async def run(self, *, greet: bool) -> None:
        """Answer until cancelled; `greet`: speak first if the two have never talked. Raises `Fatal`."""
        while not await self._tried(partial(self._begin, greet)):
            pass
        while True:
            self._line_arrived.clear()
            if await self._tried(self._answer_all):
                await self._next_line()

    async def _next_line(self) -> None:
        """Wait for a line of this terminal, or for one that another process stored, such as the owner's page."""
        while not self._line_arrived.is_set() and not await self._counted():
            with suppress(TimeoutError):
                async with self._clock.timeout(_LOOK_S):
                    await self._line_arrived.wait()

    async def _begin(self, greet: bool) -> None:  # noqa: FBT001 - bound by `partial`
        waiting = await self._talk.waiting()
        if waiting and not self._late:
            self._late = True
            self._console.line("info", f"From before, {_messages(waiting)} for an answer")
        if greet and not waiting and (greeting := await self._talk.open()):
            self._say(greeting)

    async def _answer_all(self) -> None:
        while await self._talk.waiting():
            if not self._late:
                self._console.line("think", "Thinking about what you said")
            if answer := await self._talk.answer_next():
                self._show(answer)
        self._late = False

    def _show(self, answer: OwnerAnswer) -> None:
        if answer.failed:
            self._console.line("error", *problem_of(answer.failed))
            return
        if self._late:
            at = local(parse_iso(answer.message.created_at), self._timezone)
            excerpt = one_line(answer.message.payload["text"], _EXCERPT_CHARS)
            self._console.line("think", f"Answering what you said at {at:%H:%M}", excerpt)
        self._say(answer.text or _NO_WORDS)

    async def _tried(self, attempt: Callable[[], Awaitable[None]]) -> bool:
        """Return whether `attempt` need not be repeated; otherwise the owner was told, and there was a pause."""
        try:
            await attempt()
        except (BudgetExceeded, MachineTrouble, Transient) as error:
            await self._pause(error)
            return False
        except Fatal:
            raise
        except Exception as error:
            self._console.line("error", *problem_of(error))
        self._failures = 0
        return True

    async def _pause(self, error: BudgetExceeded | MachineTrouble | Transient) -> None:
        """Wait before the next try, or until the owner writes; the reason is shown the first time."""
        if not self._failures:
            why = "The model does not answer now"
            if isinstance(error, BudgetExceeded):
                why = "Today's budget allows no answer now"
            elif isinstance(error, MachineTrouble):
                why = "This machine allows no answer now"
            waiting = await self._counted()
            kept = f"; {_messages(waiting)} and will be answered" if waiting else ""
            reason = f"{error} {error.remedy}".strip()
            await self._talk.journal.record_or_show(Entry("error", "owner", why, line=None, reason=reason))
            self._console.line("warn", why + kept, reason)
        wait_s = doubled(OWNER_RETRY_FIRST_S, self._failures, OWNER_RETRY_LONGEST_S)
        self._failures += 1
        self._late = True
        asked_s = min(getattr(error, "retry_after", None) or 0, OWNER_ASKED_TO_WAIT_S)
        pause = asyncio.create_task(self._clock.sleep(max(wait_s, asked_s)))
        line_arrived = asyncio.create_task(self._line_arrived.wait())
        try:
            await asyncio.wait({pause, line_arrived}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            line_arrived.cancel()

    async def _counted(self) -> int:
        """Return how many messages wait, for a line to the owner; 0 if the database cannot be read now."""
        try:
            return await self._talk.waiting()
        except Transient:
            return 0


def _messages(count: int) -> str:
    return "1 of your messages waits" if count == 1 else f"{count} of your messages wait"

"""The tools for memory and profiles: save, search, look back, and change what is known of the owner.

Whose words are in a turn decides what it may save (`modules/services/memory/admission.py`), and who asked decides what
it may see: only the owner is shown what is private. Profiles change only by the owner's own words.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import BaseModel, Field

from common.clock import Clock, parse_local_or_none
from common.provenance import Provenance
from common.session_keys import OWNER_SESSION, is_main
from common.text.handles import named_handles
from common.text.untrusted import clean, one_line
from local_tools.reading import sources_of
from local_tools.words import OWN_TOOLS, NoInput, ToolWords
from modules.lives.growth.policy import ReadingTurn
from modules.lives.rhythm import OwnTimeTurn
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.memory.admission import (
    BODY_LENGTH,
    MOST_TAGS,
    SUBJECT_LENGTH,
    TAG_LENGTH,
    Kind,
    Memory,
    NewMemory,
    Query,
    WordsOrigin,
    admitted,
    kinds_from,
    refusal,
)
from modules.services.memory.profiles import (
    FIELDS,
    LIMITS,
    POSTING,
    POSTS_A_DAY,
    STANDING_LENGTH,
    Profiles,
    Subject,
    field_name,
)
from modules.services.memory.recall import MemoryRenderer, trusted, words_of
from modules.services.memory.rows import MemoryStore
from modules.services.skills.skills import Framer, Skills

MOST_FOUND = 20
"""The most results of a search."""


class MemorySaveInput(BaseModel):
    """Something to remember."""

    kind: Kind
    subject: str
    body: str
    tags: list[str] = []
    importance: int = Field(default=3, ge=1, le=5)
    share: bool = False


class MemorySearchInput(BaseModel):
    """A search for memories."""

    query: str
    kinds: list[Kind] = []
    since: str = ""
    limit: int = Field(default=8, ge=1, le=MOST_FOUND)


class MemoryHistoryInput(BaseModel):
    """One memory."""

    id: int


class ProfileUpdateInput(BaseModel):
    """One field of a profile."""

    subject: Subject
    field: Annotated[str, FIELDS]
    value: str
    evidence: str
    taken_back: str = ""


class OnboardingInput(BaseModel):
    """The result of the first conversation with the owner."""

    user_name: str
    role: str
    agent_name: str = ""
    voice: str = ""
    limits: str = Field(default="", max_length=STANDING_LENGTH)
    posting: str = Field(default="", max_length=STANDING_LENGTH)
    posts_a_day: int | None = Field(default=None, ge=0)
    user_location: str = ""
    user_about: str = ""

    @property
    def agent(self) -> dict[str, str]:
        """The SOUL's own profile."""
        most = "" if self.posts_a_day is None else str(self.posts_a_day)
        known = {"name": self.agent_name, "role": self.role, "voice": self.voice}
        return _said(**known, **{LIMITS: self.limits, POSTING: self.posting, POSTS_A_DAY: most})

    @property
    def user(self) -> dict[str, str]:
        """The owner's profile."""
        return _said(name=self.user_name, location=self.user_location, about=self.user_about)


def _said(**fields: str) -> dict[str, str]:
    return {name: value.strip() for name, value in fields.items() if value.strip()}


_LINES_BEFORE_THE_END = 2

Complete = Callable[[Mapping[str, str], Mapping[str, str]], Awaitable[None]]


def session_key_of(turn: Turn) -> str:
    """Return the key of the session in which a turn takes place, or else what it is about."""
    return OWNER_SESSION if turn.loop == "owner" else turn.cause_id or ""


@dataclass(slots=True, kw_only=True)
class MemoryTools:
    """The handlers, with their services.

    Attributes:
        store: the memories.
        profiles: the two profiles.
        skills: the texts in which entries are told.
        journal: records each change of a profile, also those that were refused.
        clock: the time at which something is remembered.
        rng: draws the boundary of frames.
        session_of: the key of the session of a turn, or else what it is about; "" for the SOUL's own.
        owner_words: what the owner wrote in their current session.
        onboarding_due: whether the first conversation with the owner is not over; only then its tool exists.
        complete: ends it, with the profiles of the SOUL and of the owner.
        forget_talk: remembers nothing further of what was said in private until now.
        timezone: the time zone of days; "" is the machine's own.

    """

    store: MemoryStore
    profiles: Profiles
    skills: Skills
    journal: Journal
    clock: Clock
    rng: random.Random
    owner_words: Callable[[], Awaitable[Sequence[str]]]
    onboarding_due: Callable[[], bool]
    complete: Complete
    forget_talk: Callable[[], Awaitable[None]]
    session_of: Callable[[Turn], str] = session_key_of
    timezone: str = ""
    words: ToolWords = field(init=False)

    def __post_init__(self) -> None:
        self.words = ToolWords(self.skills, OWN_TOOLS)

    async def save(self, args: MemorySaveInput, turn: Turn) -> ToolResult:
        written = turn.written if turn.is_ordered and isinstance(turn.written, MemorySaveInput) else None
        if not turn.is_ordered:
            return await self._save(args, turn)
        in_line = args.model_copy(update={"body": clean(args.body)[:BODY_LENGTH]})
        filed = one_line(written.subject, SUBJECT_LENGTH) if written and written.subject != args.subject else ""
        told = await self._save(in_line, replace(turn, provenance=Provenance.OWNER, is_ordered=False), filed)
        # NOTE(self): the line may ask to remember what was read: that is saved too, as others' words, under the same
        # subject, so that a correction replaces both.
        if written is None or written.body == args.body or args.kind not in kinds_from(turn.provenance):
            return told
        beside = await self._save(written, turn)
        both = f"{beside.content} {self.words.answer('Beside Line')}\n{told.content}"
        return beside if beside.is_error else replace(told, content=both)

    async def _save(self, args: MemorySaveInput, turn: Turn, filed: str = "") -> ToolResult:
        words = WordsOrigin(turn.asked_by, turn.provenance, self.session_of(turn))
        if kinds := refusal(args.kind, words):
            return self.words.error("Not Remembered", kinds=kinds)
        subject, body = one_line(args.subject, SUBJECT_LENGTH), clean(args.body)
        if not subject or not body or len(body) > BODY_LENGTH:
            return self.words.error("Memory Form", most=BODY_LENGTH)
        tags = tuple(filter(None, (one_line(tag, TAG_LENGTH) for tag in args.tags)))[:MOST_TAGS]
        proposed = NewMemory(args.kind, subject, body, tags, args.importance, shareable=args.share)
        new = replace(admitted(proposed, words), filed=filed)
        if request := turn.request:
            known = {one: did for one in named_handles(f"{subject}\n{body}") if (did := request.account_of(one))}
            new = replace(new, about=tuple(known.values()), resolved=(*known, *request.named))
        if isinstance(turn.subject, OwnTimeTurn):
            new = _with_sources(new, turn.subject.seen)
        number = await self.store.save(new, self.clock.now())
        kept = await self.store.get(number)
        seen = kept is not None and self._may_see(kept, turn)
        return self.words.done("Remembered As", number=number) if seen else self.words.done("Remembered")

    async def search(self, args: MemorySearchInput, turn: Turn) -> ToolResult:
        since = parse_local_or_none(args.since, self.timezone)
        if since is None and args.since.strip():
            return self.words.error("Day Form", given=repr(one_line(args.since)))
        least, limit = _least(turn), args.limit
        most = MOST_FOUND if least > Provenance.STRANGER else limit
        query = Query(args.query, tuple(args.kinds), since, most, public_only=not self._is_owners(turn))
        fits = await self.store.search(query, self.clock.now())
        own = [one for one in fits if trusted(one, least)]
        # NOTE(self): such a turn may read strangers' words, but may then do less: only if nothing else is known.
        found = (own or (fits if isinstance(turn.subject, OwnTimeTurn) else []))[:limit]
        if isinstance(turn.subject, ReadingTurn | OwnTimeTurn):
            turn.subject.seen.update({did: did for one in found for did in one.dids})
        told = self._told(found) if found else self.words.done("Nothing Found")
        if found and self._is_owners(turn):
            told = replace(told, content=f"{told.content}\n{self.words.answer('How To Forget')}")
        if isinstance(turn.subject, OwnTimeTurn) and (hidden := await self._hidden(query, found, least)):
            told = replace(told, content=f"{told.content}\n{self.words.answer('Notes Hidden', count=hidden)}")
        return told

    async def _hidden(self, query: Query, found: Sequence[Memory], least: Provenance) -> int:
        """Return how many other results a turn is not shown: private, or based on words less trusted than `least`."""
        every = await self.store.search(replace(query, limit=MOST_FOUND, public_only=False), self.clock.now())
        return sum(one.private or not trusted(one, least) for one in every if one not in found)

    async def history(self, args: MemoryHistoryInput, turn: Turn) -> ToolResult:
        known = await self.store.get(args.id)
        if known is None or not self._may_see(known, turn):
            return self.words.error("No Memory", number=args.id)
        found = [memory for memory in await self.store.history(args.id) if self._may_see(memory, turn)]
        return self._told(found)

    async def forget(self, _: NoInput, turn: Turn) -> ToolResult:
        if not self._is_owners(turn):
            return self.words.error("Own Session")
        await self.forget_talk()
        return self.words.done("Talk Forgotten")

    async def update_profile(self, args: ProfileUpdateInput, turn: Turn) -> ToolResult:
        if not self._is_owners(turn):
            return self.words.error("Own Session")
        if args.taken_back and turn.provenance is not Provenance.OWNER:
            return self.words.error("Not Taken Back")
        known = field_name(args.field, args.subject)
        change = await self.profiles.update(
            args.subject,
            known,
            args.value,
            evidence=args.evidence,
            owner_words=await self.owner_words(),
            by="owner",
            taken_back=args.taken_back,
            timezone=self.timezone,
        )
        whose = "the SOUL" if args.subject == "agent" else "the owner"
        done = "was changed" if change.accepted else "was not changed"
        await self.journal.record(
            Entry(
                "decision",
                "memory",
                f"The profile of {whose} {done}: {known or args.field}",
                line="mem" if change.accepted else "warn",
                reason=change.reason,
                data={"field": known, "value": args.value, "before": change.before, "evidence": args.evidence},
            )
        )
        if not change.accepted:
            return self.words.error("Profile Not Changed", reason=change.reason)
        others = "" if known in FIELDS else ", ".join(sorted(FIELDS))
        return self.words.done("Profile Changed", field=known, others=others)

    async def complete_onboarding(self, args: OnboardingInput, turn: Turn) -> ToolResult:
        if len(await self.owner_words()) < _LINES_BEFORE_THE_END:
            return self.words.error("Tell First")
        if not args.agent and not args.user:
            return self.words.error("Ask First")
        await self.complete(args.agent, args.user)
        return self.words.done("Noted First Talk")

    def _is_owners(self, turn: Turn) -> bool:
        """Return whether only the owner reads the result; a conversation with them on Bluesky is public."""
        return turn.asked_by is Provenance.OWNER and is_main(self.session_of(turn))

    def _may_see(self, memory: Memory, turn: Turn) -> bool:
        return trusted(memory, _least(turn)) and (self._is_owners(turn) or not memory.private)

    def _told(self, memories: Sequence[Memory]) -> ToolResult:
        memory_renderer = MemoryRenderer(self.skills, Framer(self.skills, self.rng), self.timezone)
        return ToolResult(memory_renderer.entries(memories), provenance=words_of(memories))


def _with_sources(new: NewMemory, seen: Mapping[str, str]) -> NewMemory:
    """Return a memory tied to all accounts that a turn of the SOUL's own read, with links to their posts.

    What the owner scheduled keeps its source, which makes it private.
    """
    links = list(sources_of(seen, new.body)) if new.source == "self" else []
    body = "\n".join((new.body, *(one for one in links if one not in new.body)))
    return replace(new, body=body, source=next(iter(links), new.source), dids=tuple(sorted(set(seen.values()))))


def _least(turn: Turn) -> Provenance:
    """Return the least trust of words that a turn may be shown: self in one that the SOUL began, except to read."""
    is_own = turn.asked_by is Provenance.SELF and not isinstance(turn.subject, ReadingTurn)
    return Provenance.SELF if is_own else Provenance.STRANGER


def memory_tools(tools: MemoryTools) -> Sequence[Tool]:
    """Return the tools of the family. What a turn may save or see is decided at each call."""
    anyone, owner, tool = Provenance.STRANGER, Provenance.OWNER, tools.words.tool
    return (
        tool("memory_search", MemorySearchInput, "self", anyone, tools.search, effect="look"),
        tool("memory_history", MemoryHistoryInput, "self", anyone, tools.history, effect="look"),
        replace(
            tool("memory_save", MemorySaveInput, "self", anyone, tools.save, named_only=True),
            from_line=frozenset({"subject", "body", "tags", "importance", "share"}),
        ),
        replace(
            tool("profile_update", ProfileUpdateInput, "self", owner, tools.update_profile, named_only=True),
            from_line=frozenset({"value", "evidence"}),
        ),
        tool("talk_forget", NoInput, "self", owner, tools.forget, named_only=True),
        tool(
            "complete_commissioning",
            OnboardingInput,
            "self",
            owner,
            tools.complete_onboarding,
            fits=lambda _: tools.onboarding_due(),
        ),
    )

"""Gathers the parts of a prompt from their sources: all concurrently, memories last; each source may fail alone.

The module keeps no state. If a source cannot be reached, the prompt lacks its part, and the failure is reported;
errors that must stop the turn (a full disk) or the SOUL (a changed SOUL.md) are raised.

`ROWS` is the table of the parts: their order, how often each changes, and who may see it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import Any, Protocol

from common.clock import local
from common.errors import Fatal, SoulError
from common.provenance import Provenance
from modules.runtime.home import Home, SoulDocument, read_self
from modules.runtime.llm.dialect import CacheGroup
from modules.services.agent.prompt.fitting import HEARTBEAT, Audience, PromptFile, ToldBefore
from modules.services.memory.recall import Recalled
from modules.services.memory.view_sync import DayText
from modules.services.owner_files import OwnerFiles

CORE = "skills/core"
BOOTSTRAP, SOUL, SELF, IDENTITY = "BOOTSTRAP.md", "SOUL.md", "SELF.md", "IDENTITY.md"
USER, AGENTS, GOALS = "USER.md", "AGENTS.md", "GOALS.md"
MEMORY, PROSOCHE, CONTEXT = "MEMORY.md", "PROSOCHE.md", "CONTEXT.md"
PROFILE, SKILLS, OWN_SKILLS, EXTRA = "profile", "skills", "own skills", "extra"
DAYS, DAYS_BEFORE = "memory/", "memory/ before the talk"
MEMORY_SINCE = "MEMORY.md since the talk began"
DEGRADED, TASK, BOOT, RECALLED, RUNTIME = "degraded services", "skill", "boot context", "recalled memories", "runtime"
PEERS, SAID_BEFORE, MOMENT = "peer histories", "said before", "moment"


@dataclass(frozen=True, slots=True)
class PromptRow:
    """One kind of part.

    Attributes:
        priority: lower is cut later, and comes earlier in its group.
        group: how often it changes.
        owner_only: whether only the owner's own conversations may hold it.
        whole: never cut and never dropped.
        tracked: whether its changes are recorded.
        views: whether its text differs for the owner and for everybody else.

    """

    priority: float
    group: CacheGroup
    owner_only: bool = False
    whole: bool = False
    tracked: bool = False
    views: bool = False


# NOTE(self): the list of skills is for the owner's conversations, where any skill may be asked for; in other turns it
# would mislead a small model about what it can do, and inform strangers.
ROWS: Mapping[str, PromptRow] = {
    CORE: PromptRow(0, "static", whole=True, tracked=True),
    BOOTSTRAP: PromptRow(0.5, "static", owner_only=True, tracked=True),
    SOUL: PromptRow(1, "static", whole=True, tracked=True),
    SELF: PromptRow(1.5, "semi-static", whole=True, tracked=True),
    USER: PromptRow(2, "static", owner_only=True, tracked=True),
    PROFILE: PromptRow(2.5, "semi-static"),
    AGENTS: PromptRow(3, "static", tracked=True),
    IDENTITY: PromptRow(4, "static", tracked=True),
    GOALS: PromptRow(4.5, "semi-static", tracked=True),
    MEMORY: PromptRow(6, "semi-static", owner_only=True, tracked=True),
    MEMORY_SINCE: PromptRow(6.1, "dynamic", owner_only=True),
    DEGRADED: PromptRow(0.1, "dynamic"),
    BOOT: PromptRow(6.2, "dynamic"),
    DAYS: PromptRow(6.5, "dynamic", owner_only=True, tracked=True, views=True),
    PROSOCHE: PromptRow(7, "dynamic", tracked=True, views=True),
    HEARTBEAT: PromptRow(7.5, "dynamic", owner_only=True, tracked=True),
    CONTEXT: PromptRow(8, "dynamic", owner_only=True, tracked=True),
    SKILLS: PromptRow(9, "semi-static", owner_only=True),
    OWN_SKILLS: PromptRow(9.2, "semi-static"),
    TASK: PromptRow(9.5, "semi-static", whole=True),
    # NOTE(self): notes from before a conversation with the owner stay unchanged during it; so does MEMORY.md.
    DAYS_BEFORE: PromptRow(9.7, "semi-static", owner_only=True, tracked=True, views=True),
    EXTRA: PromptRow(10, "dynamic"),
    PEERS: PromptRow(10.5, "dynamic"),
    RECALLED: PromptRow(11, "dynamic"),
    SAID_BEFORE: PromptRow(11.5, "dynamic"),
    MOMENT: PromptRow(98, "dynamic", owner_only=True, whole=True),
    RUNTIME: PromptRow(99, "dynamic", whole=True),
}
ONBOARDING = frozenset({CORE, BOOTSTRAP, SOUL, IDENTITY, USER, TASK, RUNTIME})
"""The only parts in the first conversation with the owner."""

BARE = (CORE, SOUL, PROFILE, IDENTITY, TASK, RUNTIME)
"""The only parts for work that nothing else that the SOUL knows may influence; the profile is its owner's words."""


def rows_for(audience: Audience, *, onboarding: bool) -> tuple[str, ...]:
    """Return the names of the rows that a prompt for `audience` may have."""
    if onboarding and audience == "owner":
        return tuple(name for name in ROWS if name in ONBOARDING)
    return tuple(
        name for name, row in ROWS.items() if name != BOOTSTRAP and (audience == "owner" or not row.owner_only)
    )


SkillLine = tuple[str, str, str]


class Views(Protocol):
    """A text that says less if others than the owner may read the result of the turn."""

    def __call__(self, *, public: bool) -> Awaitable[str]:
        """Return the text, "" for none."""
        ...


class Days(Protocol):
    """The notes of yesterday and today."""

    def __call__(self, *, least: Provenance, began: datetime | None) -> Awaitable[Sequence[DayText]]:
        """Return the pages with content, without words less trusted than `least`.

        Notes from before a conversation `began` have pages of their own.
        """
        ...


class Recall(Protocol):
    """The memories recalled for a turn."""

    def __call__(self, turn: PromptTurn, /, *, shown: Collection[int]) -> Awaitable[Recalled]:
        """Return the memories that fit a turn; the text leaves out those with ids in `shown`."""
        ...


class Peers(Protocol):
    """What the SOUL and its peers did together in public."""

    def __call__(self, peers: Collection[str], *, least: Provenance) -> Awaitable[str]:
        """Return the text about `peers`; "" if there is none or its words are less trusted than `least`."""
        ...


class Before(Protocol):
    """What the SOUL and a person said to each other before."""

    def __call__(self, did: str, /, *, apart_from: str, least: Provenance) -> Awaitable[ToldBefore]:
        """Return what was said outside the thread `apart_from`, without words less trusted than `least`."""
        ...


async def nothing(*_: object, **__: object) -> str:
    """Return no text."""
    return ""


async def none(*_: object, **__: object) -> tuple[Any, ...]:
    """Return no items."""
    return ()


async def nothing_recalled(*_: object, **__: object) -> Recalled:
    """Return no memories."""
    return Recalled()


async def nothing_said(*_: object, **__: object) -> ToldBefore:
    """Return an empty `ToldBefore`."""
    return ToldBefore()


def never() -> bool:
    """Return False: the first conversation with the owner is over."""
    return False


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of the prompt besides SOUL.md and SELF.md.

    Attributes:
        owner_files: USER.md, AGENTS.md, IDENTITY.md, GOALS.md, HEARTBEAT.md, CONTEXT.md, BOOTSTRAP.md.
        profile: who the SOUL is; for the owner also who the owner is.
        memory_md: MEMORY.md.
        daily: the notes of yesterday and today.
        recall: the memories recalled for a turn.
        degraded: the services that do not work now.
        attention_list: what needs attention.
        wakeup_context: what the SOUL reads once after its start; the session's key decides how much of it.
        skills_listing: name and description of each skill, and when to load it.
        own_skills: the pages of the SOUL's own skills for a turn, by its task.
        peers: what the SOUL and the peers in a turn did together.
        said_before: what the SOUL and the person in a turn said to each other before.
        extra: more files for a session.
        onboarding: whether the first conversation with the owner is due.

    """

    owner_files: OwnerFiles
    profile: Views = nothing
    memory_md: Callable[[], Awaitable[str]] = nothing
    daily: Days = none
    recall: Recall = nothing_recalled
    degraded: Callable[[], Awaitable[str]] = nothing
    attention_list: Views = nothing
    wakeup_context: Callable[[str], Awaitable[str]] = nothing
    skills_listing: Callable[[], Awaitable[Sequence[SkillLine]]] = none
    own_skills: Callable[[str], Awaitable[str]] = nothing
    peers: Peers = nothing
    said_before: Before = nothing_said
    extra: Callable[[str], Awaitable[Sequence[PromptFile]]] = none
    onboarding: Callable[[], bool] = never


@dataclass(frozen=True, slots=True)
class PromptTurn:
    """The turn for which a prompt is built.

    `query` is what it is about, in the words of whoever began it; `least` the lowest provenance that may be included;
    `peers` the peers who take part; `began` when its conversation with the owner began; `person` the DID of whom it is
    about; `thread` the root of the thread that it shows; and `task` the skill that is its task.
    """

    audience: Audience
    session_key: str
    query: str
    now: datetime
    timezone: str
    least: Provenance = Provenance.STRANGER
    peers: Sequence[str] = ()
    began: datetime | None = None
    person: str = ""
    thread: str = ""
    task: str = ""

    @property
    def public(self) -> bool:
        """Whether others than the owner may read its result."""
        return self.audience != "owner"

    @property
    def today(self) -> date:
        return local(self.now, self.timezone).date()


@dataclass(slots=True)
class Gathered:
    """The gathered parts: texts by row, "" for a missing one; a row that could not be read is in `problems` only."""

    texts: dict[str, str] = field(default_factory=dict)
    skills: Sequence[SkillLine] = ()
    extra: Sequence[PromptFile] = ()
    days: Sequence[DayText] = ()
    recalled: Recalled = field(default_factory=Recalled)
    said_before: ToldBefore = field(default_factory=ToldBefore)
    problems: dict[str, str] = field(default_factory=dict)


async def gather(
    sources: Sources, home: Home, soul: SoulDocument, asked: PromptTurn, wanted: Collection[str]
) -> Gathered:
    """Ask the sources of the `wanted` rows concurrently, then recall memories that the notes do not show already.

    Raises `Fatal`, which includes `IdentityError`.
    """
    found = Gathered()
    questions = {name: ask for name, ask in _questions(sources, home, soul, asked, found).items() if name in wanted}
    await _ask({name: ask for name, ask in questions.items() if name != RECALLED}, found)
    await _ask({name: ask for name, ask in questions.items() if name == RECALLED}, found)
    return found


async def _ask(questions: Mapping[str, Callable[[], Coroutine[Any, Any, str | None]]], found: Gathered) -> None:
    answers = await asyncio.gather(*(ask() for ask in questions.values()), return_exceptions=True)
    for name, answer in zip(questions, answers, strict=True):
        if isinstance(answer, SoulError) and not isinstance(answer, Fatal):
            found.problems[name] = str(answer)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found.texts[name] = answer or ""


def _questions(
    sources: Sources, home: Home, soul: SoulDocument, asked: PromptTurn, found: Gathered
) -> Mapping[str, Callable[[], Coroutine[Any, Any, str | None]]]:
    async def soul_text() -> str:
        await asyncio.to_thread(soul.check)
        return soul.text

    async def recalled() -> str:
        if not asked.query.strip():
            return ""
        shown = frozenset(number for day in found.days for number in day.ids)
        found.recalled = await sources.recall(asked, shown=shown)
        return found.recalled.text

    async def days() -> str:
        found.days = await sources.daily(least=asked.least, began=asked.began)
        return ""

    async def skills() -> str:
        found.skills = await sources.skills_listing()
        return ""

    async def extra() -> str:
        ask = sources.extra
        found.extra = await ask(asked.session_key)
        return ""

    async def said_before() -> str:
        ask = sources.said_before
        found.said_before = await ask(asked.person, apart_from=asked.thread, least=asked.least)
        return found.said_before.text

    async def of(answer: Awaitable[str]) -> str:
        return await answer

    async def read(name: str) -> str | None:
        return await sources.owner_files.read(name)

    files = (BOOTSTRAP, USER, AGENTS, IDENTITY, GOALS, HEARTBEAT, CONTEXT)
    return {
        SOUL: soul_text,
        SELF: lambda: asyncio.to_thread(read_self, home),
        **{name: partial(read, name) for name in files},
        PROFILE: lambda: of(sources.profile(public=asked.public)),
        MEMORY: lambda: of(sources.memory_md()),
        DEGRADED: lambda: of(sources.degraded()),
        BOOT: lambda: of(sources.wakeup_context(asked.session_key)),
        DAYS: days,
        PROSOCHE: lambda: of(sources.attention_list(public=asked.public)),
        SKILLS: skills,
        OWN_SKILLS: lambda: of(sources.own_skills(asked.task)),
        EXTRA: extra,
        PEERS: lambda: of(sources.peers(asked.peers, least=asked.least) if asked.peers else nothing()),
        SAID_BEFORE: said_before,
        RECALLED: recalled,
    }

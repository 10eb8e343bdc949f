"""Attention: what is due, stuck or waiting right now, as a few lines for the prompt and for `workspace/PROSOCHE.md`.

Nothing due, no lines. The file is a view and is written anew when it would say something else; a crash costs nothing.

What a model is told of services that fail: since when, and what to avoid meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter

from common.clock import local
from common.text.untrusted import one_line
from modules.runtime.service_health import ServiceHealth
from modules.services.owner_files import OwnerFiles
from modules.services.skills.skills import Skills

FILE = "PROSOCHE.md"

_SKILL = "prosoche"
_SECTION = "Attention"
_INSIGHTS = "Insights"
_MOST_OF_A_KIND = 10
REFLECTION_EVENT_THRESHOLD = 10
_CHARS = 300


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a SOUL should have in mind.

    Attributes:
        what: the thing itself.
        note: how far it is, or why it does not get on; "" if there is nothing to say.
        at: when it is due; None for a thing without an hour.
        private: only the owner may be told.
        asked: it waits for the owner's approval.

    """

    what: str
    note: str = ""
    at: datetime | None = None
    private: bool = False
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Failing:
    """A kind of commitment that failed `count` times in one `place` (`owner/name`, "" if it had none) this week."""

    what: str
    place: str
    count: int


@dataclass(frozen=True, slots=True)
class Insight:
    """Something that the SOUL learned: `code` names its words in the `prosoche` skill, `about` whom or what."""

    code: str
    about: str


@dataclass(frozen=True, slots=True)
class Reflection:
    """What happened since SELF.md was last changed; it is due once there were enough significant events."""

    events: int = 0
    insights: tuple[Insight, ...] = ()

    @property
    def is_due(self) -> bool:
        return self.events >= REFLECTION_EVENT_THRESHOLD


@dataclass(frozen=True, slots=True)
class AttentionNeeds:
    """What deserves attention now: `mentions` is how many posts wait to be handled.

    Only a SOUL that wakes is told of `branches` in flight, and how many acts are `leaving`.
    """

    commitments: tuple[Item, ...] = ()
    failing: tuple[Failing, ...] = ()
    blocked: tuple[Item, ...] = ()
    mentions: int = 0
    rituals: tuple[Item, ...] = ()
    branches: tuple[Item, ...] = ()
    leaving: int = 0
    reflection: Reflection = field(default_factory=Reflection)
    scheduled: tuple[Item, ...] = ()

    def __add__(self, other: AttentionNeeds) -> AttentionNeeds:
        return AttentionNeeds(
            self.commitments + other.commitments,
            self.failing + other.failing,
            self.blocked + other.blocked,
            self.mentions + other.mentions,
            self.rituals + other.rituals,
            self.branches + other.branches,
            self.leaving + other.leaving,
            Reflection(
                self.reflection.events + other.reflection.events, self.reflection.insights + other.reflection.insights
            ),
            self.scheduled + other.scheduled,
        )


Source = Callable[[], Awaitable[AttentionNeeds]]
"""What one life has to say; a service knows no life."""


def render_attention(attention: AttentionNeeds, skills: Skills, *, timezone: str = "", public: bool = False) -> str:
    """The lines, the earliest first in each kind; "" when nothing is due.

    Args:
        attention: what there is.
        skills: has the words.
        timezone: of the SOUL's day.
        public: without what is private, and without the count of posts: a turn about one of them has it at hand.

    """

    def line(kind: str, **values: object) -> str:
        return skills.render(_SKILL, _SECTION, kind, **values)

    def due(kind: str, things: tuple[Item, ...], form: str) -> list[str]:
        seen = [(item.at, item.what) for item in things if item.at and not (public and item.private)]
        return [
            line(kind, what=one_line(what, _CHARS), when=local(at, timezone).strftime(form))
            for at, what in sorted(seen, key=itemgetter(0))[:_MOST_OF_A_KIND]
        ]

    stuck = [item for item in attention.blocked if not (public and item.private)][:_MOST_OF_A_KIND]
    lines = [
        *due("Commitment", attention.commitments, "%Y-%m-%d %H:%M"),
        *(
            line("Failing", what=item.what, place=item.place or "-", count=item.count)
            for item in attention.failing[:_MOST_OF_A_KIND]
        ),
        *(
            line(
                "Draft" if item.asked else "Blocked", what=one_line(item.what, _CHARS), why=one_line(item.note, _CHARS)
            )
            for item in stuck
        ),
        *([line("Mentions", count=attention.mentions)] if attention.mentions and not public else []),
        *due("Ritual", attention.rituals, "%H:%M"),
        *due("Scheduled", attention.scheduled, "%Y-%m-%d %H:%M"),
        *([] if public else _reflection(attention.reflection, skills)),
    ]
    return "\n".join([line("Opening"), *lines]) if lines else ""


def _reflection(reflection: Reflection, skills: Skills) -> list[str]:
    """The lines of what is to be thought over; none before it is due."""
    if not reflection.is_due:
        return []
    known = skills.subsections(_SKILL, _INSIGHTS)
    shown = [one for one in reflection.insights if one.code in known][-_MOST_OF_A_KIND:]
    return [
        skills.render(_SKILL, _SECTION, "Reflection"),
        *(skills.render(_SKILL, _INSIGHTS, one.code, about=one_line(one.about, _CHARS)) for one in shown),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionList:
    """Asks every source, and renders.

    Attributes:
        sources: what the lives have to say.
        skills: has the words.
        files: the workspace.
        timezone: of the SOUL's day.
        owners: what only the owner is told, asked before the others.

    """

    sources: tuple[Source, ...]
    skills: Skills
    files: OwnerFiles
    timezone: str = ""
    owners: tuple[Source, ...] = ()

    async def read(self, *, public: bool = False) -> AttentionNeeds:
        """Return what all sources say now; without those for the owner where others may read what comes of it."""
        total = AttentionNeeds()
        for source in (*(() if public else self.owners), *self.sources):
            total += await source()
        return total

    async def text(self, *, public: bool) -> str:
        """The lines for a turn; without what is private if others may read what comes of it."""
        return self._rendered(await self.read(public=public), public=public)

    async def refresh(self) -> None:
        """Bring the file up to date, for the owner to look at. Raises what the workspace raises."""
        text = self._rendered(await self.read(), public=False)
        if text != (await self.files.read(FILE) or "").strip():
            await self.files.write(FILE, f"{text}\n" if text else "")

    def _rendered(self, attention: AttentionNeeds, *, public: bool) -> str:
        return render_attention(attention, self.skills, timezone=self.timezone, public=public)


_ANY = "other"


@dataclass(frozen=True, slots=True)
class DegradedServices:
    """Puts what `health` knows into the words of the skill; times are in `timezone`."""

    health: ServiceHealth
    skills: Skills
    timezone: str = ""

    def text(self) -> str:
        """The lines for a prompt; "" when all is well."""
        failing = self.health.degraded()
        if not failing:
            return ""
        avoid = self.skills.subsections(_SKILL, "Avoid")
        lines = [
            self.skills.render(
                _SKILL,
                "Degraded",
                "Service",
                service=one.service,
                since=f"{local(one.since, self.timezone):%Y-%m-%d %H:%M}",
                avoid=avoid.get(one.service, avoid[_ANY]),
            )
            for one in failing
        ]
        return "\n".join([self.skills.render(_SKILL, "Degraded", "Opening"), *lines])

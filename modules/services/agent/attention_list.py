"""Renders what is due, stuck or waiting now as a few lines for the prompt and for `workspace/PROSOCHE.md`.

If nothing is due, there are no lines. The file is a view, rewritten when its text changes; a crash loses nothing.

Also tells the model which services are degraded, since when, and what to avoid meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Literal

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
    """One thing that the SOUL should keep in mind.

    Attributes:
        what: the thing itself.
        note: its progress, or why it is blocked; "" for neither.
        at: when it is due; None if it has no time.
        private: whether only the owner may see it.
        waits_as: what waits for the owner's approval: a draft, a change of a file, or nothing.

    """

    what: str
    note: str = ""
    at: datetime | None = None
    private: bool = False
    waits_as: Literal["", "Draft", "Change"] = ""


@dataclass(frozen=True, slots=True)
class Failing:
    """A kind of commitment that failed `count` times this week in repository `place` (`owner/name`, "" for none)."""

    what: str
    place: str
    count: int


@dataclass(frozen=True, slots=True)
class Insight:
    """Something that the SOUL learned: `code` names its text in the `prosoche` skill, `about` its subject."""

    code: str
    about: str


@dataclass(frozen=True, slots=True)
class Reflection:
    """What happened since SELF.md last changed; a reflection is due after enough significant events."""

    events: int = 0
    insights: tuple[Insight, ...] = ()

    @property
    def is_due(self) -> bool:
        return self.events >= REFLECTION_EVENT_THRESHOLD


@dataclass(frozen=True, slots=True)
class AttentionNeeds:
    """What needs attention now; `mentions` is the number of posts that wait to be handled.

    Only the wakeup context shows `branches` in progress and `leaving`, the number of acts that are not sent yet.
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
"""Returns the needs of one life; a service does not know the lives."""


def render_attention(attention: AttentionNeeds, skills: Skills, *, timezone: str = "", public: bool = False) -> str:
    """Return the lines, earliest first within each kind; "" if nothing is due.

    Args:
        attention: what to render.
        skills: provides the wording.
        timezone: the SOUL's time zone.
        public: leave out private items, and the count of posts: a turn about a post already shows that post.

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
            line(item.waits_as or "Blocked", what=one_line(item.what, _CHARS), why=one_line(item.note, _CHARS))
            for item in stuck
        ),
        *([line("Mentions", count=attention.mentions)] if attention.mentions and not public else []),
        *due("Ritual", attention.rituals, "%H:%M"),
        *due("Scheduled", attention.scheduled, "%Y-%m-%d %H:%M"),
        *([] if public else _reflection(attention.reflection, skills)),
    ]
    return "\n".join([line("Opening"), *lines]) if lines else ""


def _reflection(reflection: Reflection, skills: Skills) -> list[str]:
    """Return the lines about a reflection; none before it is due."""
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
    """Asks every source and renders the result.

    Attributes:
        sources: return the needs of the lives.
        skills: provides the wording.
        files: the workspace.
        timezone: the SOUL's time zone.
        owners: sources that only the owner may see, asked before the others.

    """

    sources: tuple[Source, ...]
    skills: Skills
    files: OwnerFiles
    timezone: str = ""
    owners: tuple[Source, ...] = ()

    async def read(self, *, public: bool = False) -> AttentionNeeds:
        """Return the sum of all sources; `public` leaves out those for the owner only."""
        total = AttentionNeeds()
        for source in (*(() if public else self.owners), *self.sources):
            total += await source()
        return total

    async def text(self, *, public: bool) -> str:
        """Return the lines for a turn; `public`, if others may read its result, leaves out what is private."""
        return self._rendered(await self.read(public=public), public=public)

    async def refresh(self) -> None:
        """Update the file that the owner can read. Raises what the workspace raises."""
        text = self._rendered(await self.read(), public=False)
        if text != (await self.files.read(FILE) or "").strip():
            await self.files.write(FILE, f"{text}\n" if text else "")

    def _rendered(self, attention: AttentionNeeds, *, public: bool) -> str:
        return render_attention(attention, self.skills, timezone=self.timezone, public=public)


_ANY = "other"


@dataclass(frozen=True, slots=True)
class DegradedServices:
    """Describes the degraded services of `health` in the words of the skill; times are in `timezone`."""

    health: ServiceHealth
    skills: Skills
    timezone: str = ""

    def text(self) -> str:
        """Return the lines for a prompt; "" if no service is degraded."""
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

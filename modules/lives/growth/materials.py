"""What a reflection has in view: experiences, insights, people, its posts, what was sent back, how SELF.md changed."""

from __future__ import annotations

import asyncio
import difflib
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from common.clock import Clock, local, parse_iso, spoken
from common.provenance import Provenance
from common.text.untrusted import one_line
from modules.lives.growth.policy import OTHERS, is_private
from modules.lives.growth.types import KIND
from modules.runtime.home import Home
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import StoredEntry
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import Experience
from modules.services.identity.history import SelfHistory
from modules.services.own_feed.expressions import Expressions
from modules.services.peers.accounts import Relationships
from modules.services.skills.framing import Framer
from modules.services.skills.skills import Skills

SKILL = "reflection"

_POSTS_SINCE, _MOST_POSTS = timedelta(days=2), 6
_TOLD_ELSEWHERE = frozenset({"New Person", "Shared", "Answered", "Liked"})
"""Insights on whom we met and on our own posts, which stand in parts of their own."""
_INSIGHT_CHARS, _MOST_DIFF_LINES, _LINE_CHARS = 300, 40, 500
_SENT_BACK, _TURNS_READ, _MOST_SENT_BACK, _SENT_BACK_CHARS = timedelta(days=1), 300, 12, 200


@dataclass(frozen=True, slots=True)
class Materials:
    """Gathers them, and puts them into the words of the skill."""

    home: Home
    skills: Skills
    experiences: ExperienceLog
    relationships: Relationships
    expressions: Expressions
    journal: Journal
    clock: Clock
    rng: random.Random
    timezone: str = ""

    async def message(self, experiences: Sequence[Experience], *, is_ordered: bool) -> str:
        """Return what the model is shown; `is_ordered` says that the owner asked for it."""
        now = self.clock.now()
        changes, taken_back = await asyncio.to_thread(self._history)
        readers = (*(["Ordered"] if is_ordered else ()), "Owner" if is_private(experiences) else "Room")
        return self.skills.render(
            SKILL,
            "User Message Template",
            today=spoken(local(now, self.timezone)),
            since=await self._since(now),
            experiences=self._experiences([one for one in experiences if one.trust not in OTHERS]),
            with_others=self._framed(self._experiences([one for one in experiences if one.trust in OTHERS])),
            insights="\n".join(self._insights()),
            relationships=self._people(),
            posts="\n".join(self._posts(now)),
            sent_back="\n".join(await self._sent_back(now)),
            changes=changes,
            taken_back=taken_back,
            reader=" ".join(self.skills.render(SKILL, "Reader", one).strip() for one in readers),
        )

    async def _since(self, now: datetime) -> str:
        span = await self.experiences.time_span()
        days = (now - parse_iso(span.first_at)).days if span.first_at else 0
        return self.skills.render(SKILL, "Since", days=days, total=span.total).strip() if days >= 1 else ""

    def _experiences(self, experiences: Sequence[Experience]) -> str:
        """A heading for each kind, and under it a line for each; a stranger goes by a number."""
        kinds = self.skills.subsections(SKILL, "Kinds")
        strangers: dict[str, int] = {}
        lines: defaultdict[str, list[str]] = defaultdict(list)
        for one in experiences:
            about = one_line(one.about, _LINE_CHARS) or "-"
            if one.trust == "stranger":
                number = strangers.setdefault(one.did or one.name, len(strangers) + 1)
                line = self.skills.render(
                    SKILL, "Experience Of Stranger", name=one.name, where=one.source, number=number, about=about
                )
            else:
                who = f", {one_line(one.person)}" if one.person else ""
                line = self.skills.render(SKILL, "Experience", name=one.name, where=one.source, who=who, about=about)
            lines[one.type].append(line.strip())
        return "\n\n".join("\n".join([kinds[kind].strip(), *lines[kind]]) for kind in kinds if kind in lines)

    def _people(self) -> str:
        """Whom it talks with most: anybody chooses their own handle."""
        return self._framed("\n".join(f"- {line}" for line in self.relationships.closest()))

    def _framed(self, text: str) -> str:
        """Return text that may hold what others chose or wrote, in a frame; "" for none."""
        return Framer(self.skills, self.rng).frame("conversation", author="", uri="", text=text) if text else ""

    def _insights(self) -> list[str]:
        known = self.skills.subsections("prosoche", "Insights")
        return [
            self.skills.render("prosoche", "Insights", one.code, about=one_line(one.about, _INSIGHT_CHARS)).strip()
            for one in self.relationships.reflection.insights
            if one.code in known and one.code not in _TOLD_ELSEWHERE
        ]

    def _posts(self, now: datetime) -> list[str]:
        """A line for each of the newest thoughts of our own, with what came of it as far as that was looked at."""
        newest = [one for one in self.expressions.all() if now - one.timestamp <= _POSTS_SINCE][-_MOST_POSTS:]
        return [
            self.skills.render(
                SKILL,
                "Post",
                text=one_line(one.text, _INSIGHT_CHARS),
                replies=one.engagement.replies if one.engagement else "",
                likes=one.engagement.likes if one.engagement else "",
            ).strip()
            for one in newest
        ]

    async def _sent_back(self, now: datetime) -> list[str]:
        """A line for each reason why an act was sent back since the last reflection, the most frequent first."""
        found = Counter[tuple[str, str, str]]()
        for stored in await self.journal.recent(_TURNS_READ, {"model"}):
            if stored.entry.loop == KIND or now - parse_iso(stored.at) > _SENT_BACK:
                break
            found.update(_sent_back_in(stored))
        return [
            self.skills.render(
                SKILL, "Sent Back", tool=tool, text=text, why=why, count=count if count > 1 else ""
            ).strip()
            for (tool, text, why), count in found.most_common(_MOST_SENT_BACK)
        ]

    def _history(self) -> tuple[str, str]:
        """The last change of SELF.md as a diff, and the lines that the owner took out."""
        history = SelfHistory(self.home)
        with history.alone():
            versions = history.versions()
            texts = [history.read(one).decode(errors="replace") for one in versions[:2]]
            undone = history.taken_back()
        changes = diff_lines(texts[1], texts[0]) if len(texts) > 1 else []
        lines = "\n".join(f"- {line}" for line in sorted(undone))
        return "\n".join(changes), self.skills.render(SKILL, "Owner Took Back", lines=lines) if lines else ""


def _sent_back_in(stored: StoredEntry) -> Iterator[tuple[str, str, str]]:
    """What a turn was refused: the tool, the text where nobody else's words were in the turn, and why.

    The owner's own turns are left out, and so is what went wrong outside: that may quote others.
    """
    data = stored.entry.data
    if stored.entry.loop == "owner":
        return
    is_own = data.get("sank_to") == Provenance.SELF.name.lower()
    for call in data.get("calls", ()):
        tool, why = str(call["tool"]), one_line(str(call["error"]).removeprefix("Error: "), _SENT_BACK_CHARS)
        if why and not call.get("went_wrong"):
            text = call["input"].get("text", "") if is_own and isinstance(call["input"], dict) else ""
            yield tool, one_line(str(text), _SENT_BACK_CHARS), why


def diff_lines(old: str, new: str) -> list[str]:
    """Return the lines that went (-) and came (+), without what stayed; a few at most."""
    compared = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    moved = (line for line in compared if line[:1] in "+-" and line[:3] not in {"+++", "---"})
    return [line[:_LINE_CHARS] for line in moved if line[1:].strip()][:_MOST_DIFF_LINES]

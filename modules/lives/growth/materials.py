"""What a reflection has in view: experiences, insights, people, its posts, its trouble, and how SELF.md changed."""

from __future__ import annotations

import asyncio
import difflib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from common.clock import Clock, local, parse_iso, spoken
from common.text.untrusted import one_line
from modules.runtime.home import Home
from modules.services.experiences.friction import FrictionReport
from modules.services.experiences.log import ExperienceLog
from modules.services.experiences.types import Experience
from modules.services.identity.history import SelfHistory
from modules.services.own_feed.engagement_policy import get_engagement_patterns
from modules.services.own_feed.expressions import Expressions
from modules.services.peers.accounts import Relationships
from modules.services.skills.skills import Skills

SKILL = "reflection"

_INSIGHT_CHARS, _MOST_DIFF_LINES, _LINE_CHARS = 300, 40, 500


@dataclass(frozen=True, slots=True)
class Materials:
    """Gathers them, and puts them into the words of the skill."""

    home: Home
    skills: Skills
    experiences: ExperienceLog
    relationships: Relationships
    expressions: Expressions
    friction: FrictionReport
    clock: Clock
    timezone: str = ""

    async def message(self, experiences: Sequence[Experience]) -> str:
        """Return what the model is shown."""
        now = self.clock.now()
        nothing = f"- {self.skills.section(SKILL, 'Nothing').strip()}"
        changes, taken_back = await asyncio.to_thread(self._history)
        return self.skills.render(
            SKILL,
            "User Message Template",
            today=spoken(local(now, self.timezone)),
            since=await self._since(now),
            experiences=self._experiences(experiences) or nothing,
            insights="\n".join(self._insights()) or nothing,
            relationships="\n".join(f"- {line}" for line in self.relationships.closest()) or nothing,
            engagement="\n".join(self._engagement()) or nothing,
            trouble="\n".join(await self._trouble()) or nothing,
            changes=changes or nothing,
            taken_back=taken_back,
        )

    async def _since(self, now: datetime) -> str:
        span = await self.experiences.time_span()
        days = (now - parse_iso(span.first_at)).days if span.first_at else 0
        return self.skills.render(SKILL, "Since", days=days, total=span.total).strip() if days >= 1 else ""

    def _experiences(self, experiences: Sequence[Experience]) -> str:
        """A heading for each kind, and under it a line for each; of a stranger's only that they were there."""
        kinds = self.skills.subsections(SKILL, "Kinds")
        strangers: dict[str, int] = {}
        lines: defaultdict[str, list[str]] = defaultdict(list)
        for one in experiences:
            if one.trust == "stranger":
                number = strangers.setdefault(one.did or one.name, len(strangers) + 1)
                line = self.skills.render(
                    SKILL, "Experience Of Stranger", name=one.name, where=one.source, number=number
                )
            else:
                who = f", {one_line(one.person)}" if one.person else ""
                about = one_line(one.about, _LINE_CHARS) or "-"
                line = self.skills.render(SKILL, "Experience", name=one.name, where=one.source, who=who, about=about)
            lines[one.type].append(line.strip())
        return "\n\n".join("\n".join([kinds[kind].strip(), *lines[kind]]) for kind in kinds if kind in lines)

    def _insights(self) -> list[str]:
        known = self.skills.subsections("prosoche", "Insights")
        return [
            self.skills.render("prosoche", "Insights", one.code, about=one_line(one.about, _INSIGHT_CHARS)).strip()
            for one in self.relationships.reflection.insights
            if one.code in known
        ]

    def _engagement(self) -> list[str]:
        patterns = get_engagement_patterns(self.expressions.all()).insights
        told = (self.skills.render("expression", "What Was Answered", p.code, source=p.about.source) for p in patterns)
        return [f"- {line.strip()}" for line in told]

    async def _trouble(self) -> list[str]:
        counted = await self.friction.counts()
        return [self.skills.render(SKILL, "Trouble", what=one.what, count=one.count).strip() for one in counted]

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


def diff_lines(old: str, new: str) -> list[str]:
    """Return the lines that went (-) and came (+), without what stayed; a few at most."""
    compared = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    moved = (line for line in compared if line[:1] in "+-" and line[:3] not in {"+++", "---"})
    return [line[:_LINE_CHARS] for line in moved if line[1:].strip()][:_MOST_DIFF_LINES]

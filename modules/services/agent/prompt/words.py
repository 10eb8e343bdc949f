"""The words around the parts of a prompt, from `skills/workspace`. Pure but for the page they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cachetools import LRUCache

from common.clock import local, spoken
from modules.services.agent.prompt import rows
from modules.services.agent.prompt.sources import PromptTurn, SkillLine
from modules.services.skills.skills import Skills, interpolate, parse_frontmatter

_SKILL = "workspace"
_REMEMBERED = 500


@dataclass(frozen=True, slots=True)
class Runtime:
    """On what the SOUL runs; the model may change while it lives."""

    agent_name: str
    host: str
    version: str
    model: Callable[[], str]


class PromptWords:
    """Fills the templates. What does not change is filled once."""

    def __init__(self, skills: Skills) -> None:
        self._headings = skills.subsections(_SKILL, "Headings")
        self._identity = skills.subsections(_SKILL, "Identity")
        self._runtime = skills.subsections(_SKILL, "Runtime")
        self._skill_line = skills.subsections(_SKILL, "Skill Line")
        self._cut = skills.section(_SKILL, "Cut")
        self._filled = LRUCache[str, str](_REMEMBERED)

    def headed(self, row: str, text: str) -> str:
        """`text` under the heading of its row, if that has one; "" stays so."""
        text = text.strip()
        heading = self._headings.get(row, "") if text else ""
        return f"{heading}\n\n{text}" if heading else text

    def cut(self, count: int) -> str:
        """The last line of a file that had no room for `count` of its sections."""
        return self._fill(self._cut, count=count)

    def identity(self, text: str, agent_name: str) -> str:
        """IDENTITY.md as a sentence, and its own text below; the agent's name where it gives none.

        Raises:
            ValueError: its frontmatter is no YAML.

        """
        front, body = parse_frontmatter(text)
        name, emoji = front.get("name"), front.get("emoji")
        sign = _flat(emoji)
        form = self._identity["With Emoji" if sign else "Plain"]
        sentence = self._fill(form, name=_flat(name) or agent_name, emoji=sign)
        more = self.headed(rows.IDENTITY, body)
        return f"{sentence}\n\n{more}" if more else sentence

    def skills(self, lines: Sequence[SkillLine]) -> str:
        """The skills that can be loaded, one a line."""
        return self.headed(rows.SKILLS, "\n".join(map(self._skill, lines)))

    def runtime(self, runtime: Runtime, asked: PromptTurn) -> str:
        """When and where this is; the machine's name is for the owner."""
        now = local(asked.now, asked.timezone)
        return self._fill(
            self._runtime["Public" if asked.public else "Owner"],
            today=spoken(now),
            timezone=asked.timezone or now.tzname() or "UTC",
            host=runtime.host,
            version=runtime.version,
            model=runtime.model(),
        )

    def _skill(self, line: SkillLine) -> str:
        name, about, when = line
        form = self._skill_line["With When" if _flat(when) else "Plain"]
        return self._fill(form, name=name, description=_flat(about), when=_flat(when))

    def _fill(self, template: str, **values: object) -> str:
        """`template` with `values`; remembered, since to fill one anew takes most of a millisecond."""
        key = f"{template}\0{values}"
        if key not in self._filled:
            self._filled[key] = interpolate(template, values)
        return self._filled[key]


def _flat(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""

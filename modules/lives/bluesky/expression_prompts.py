"""The starting points as data: reads the `expression-prompts` skill."""

from __future__ import annotations

import random
import re

from modules.services.agent.skills.skills import Skills

_SKILL = "expression-prompts"
_BULLET = re.compile(r"^- (?P<text>.+?)(?:\s+\[(?P<source>[\w+-]+)\])?$", re.MULTILINE)


class Prompts:
    """What `expression-prompts` offers. Reads the skill at each call, so that a reload counts at once."""

    def __init__(self, skills: Skills) -> None:
        self._skills = skills

    def templates(self) -> dict[str, str]:
        """Template text by source, with `{{value}}` or `{{value1}}` and `{{value2}}` in it."""
        return self._skills.subsections(_SKILL, "Prompt Templates")

    def fallbacks(self) -> list[tuple[str, str]]:
        """(text, source) pairs for a thin SELF.md."""
        section = self._skills.section(_SKILL, "Fallback Prompts")
        return [(match["text"], match["source"] or "observation") for match in _BULLET.finditer(section)]

    def all(self) -> list[str]:
        """Everything of which a prompt is made, variables unfilled; the examples of invitations are not."""
        return [self._skills.section(_SKILL, name) for name in ("Prompt Templates", "Fallback Prompts")] + [
            self.suffix()
        ]

    def suffix(self) -> str:
        """The ending of each prompt."""
        return self._skills.section(_SKILL, "Invitation Suffix").strip()

    def invitation(self, kind: str, rng: random.Random) -> str:
        """One example invitation: Choice, Bounded or Direct."""
        section = self._skills.subsections(_SKILL, "Invitation Prompts")[kind]
        return rng.choice([match["text"] for match in _BULLET.finditer(section)])

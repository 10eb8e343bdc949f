"""Where a thought may start, as the skill `expression-prompts` offers it."""

from __future__ import annotations

import re

from modules.services.skills.skills import Skills

_STARTING_POINTS = "expression-prompts"
_BULLET = re.compile(r"^- (?P<text>.+?)(?:\s+\[(?P<source>[\w+-]+)\])?$", re.MULTILINE)


class Prompts:
    """What `expression-prompts` offers. Reads the skill at each call, so that a reload counts at once."""

    def __init__(self, skills: Skills) -> None:
        self._skills = skills

    def templates(self) -> dict[str, str]:
        """Template text by source, with `{{value}}` or `{{value1}}` and `{{value2}}` in it."""
        return self._skills.subsections(_STARTING_POINTS, "Prompt Templates")

    def fallbacks(self) -> list[tuple[str, str]]:
        """(text, source) pairs for a thin SELF.md."""
        section = self._skills.section(_STARTING_POINTS, "Fallback Prompts")
        return [(match["text"], match["source"] or "observation") for match in _BULLET.finditer(section)]

    def all(self) -> list[str]:
        """Everything of which a prompt is made, variables unfilled; the examples of invitations are not."""
        of_picture = self._skills.section("shared-picture", "For a Post")
        names = ("Prompt Templates", "Fallback Prompts")
        return [*(self._skills.section(_STARTING_POINTS, name) for name in names), self.suffix(), of_picture]

    def suffix(self) -> str:
        """The ending of each prompt."""
        return self._skills.section(_STARTING_POINTS, "Invitation Suffix").strip()

    def invitations(self, kind: str) -> list[str]:
        """The example invitations of a kind: Choice, Bounded or Direct; those of the last fit any post."""
        section = self._skills.subsections(_STARTING_POINTS, "Invitation Prompts")[kind]
        return [match["text"] for match in _BULLET.finditer(section)]

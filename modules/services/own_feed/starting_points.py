"""The starting points of thoughts, from the skill `expression-prompts`."""

from __future__ import annotations

import re

from modules.services.skills.skills import Skills

_STARTING_POINTS = "expression-prompts"
_BULLET = re.compile(r"^- (?P<text>.+?)(?:\s+\[(?P<source>[\w+-]+)\])?$", re.MULTILINE)


class Prompts:
    """Reads the skill `expression-prompts` at each call, so that a reload takes effect at once."""

    def __init__(self, skills: Skills) -> None:
        self._skills = skills

    def templates(self) -> dict[str, str]:
        """Return the template texts by source, with `{{value}}` or `{{value1}}` and `{{value2}}` in them."""
        return self._skills.subsections(_STARTING_POINTS, "Prompt Templates")

    def fallbacks(self) -> list[tuple[str, str]]:
        """Return (text, source) pairs for a thin SELF.md."""
        section = self._skills.section(_STARTING_POINTS, "Fallback Prompts")
        return [(match["text"], match["source"] or "observation") for match in _BULLET.finditer(section)]

    def all(self) -> list[str]:
        """Return all texts that prompts are made of, variables unfilled, without the examples of invitations."""
        of_picture = self._skills.section("shared-picture", "For a Post")
        names = ("Prompt Templates", "Fallback Prompts")
        return [*(self._skills.section(_STARTING_POINTS, name) for name in names), self.suffix(), of_picture]

    def suffix(self) -> str:
        """Return the ending of each prompt."""
        return self._skills.section(_STARTING_POINTS, "Invitation Suffix").strip()

    def invitations(self, kind: str) -> list[str]:
        """Return the example invitations of a kind: Choice, Bounded or Direct; those of the last fit any post."""
        section = self._skills.subsections(_STARTING_POINTS, "Invitation Prompts")[kind]
        return [match["text"] for match in _BULLET.finditer(section)]

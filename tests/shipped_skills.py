"""The skills that the project ships, read once, and its operational texts."""

from __future__ import annotations

from modules.services.skills.skills import PART, Skills
from modules.services.voice_phrases.phrases import interpolate
from modules.services.voice_phrases.regenerate import DEFAULTS, SKILL
from soul.resources import SKILLS

SHIPPED = Skills.load(SKILLS)
CONTACT_LINE = SHIPPED.section(SKILL, "Profile Line")
CONTACT = CONTACT_LINE.partition("{{contact}}")[0]
"""What the line of a profile begins with that says who answers for the account."""


def phrase(key: str, /, **values: object) -> str:
    """An operational text as the skill has it."""
    return interpolate(SHIPPED.section(SKILL, f"{DEFAULTS}{PART}{key}"), values)

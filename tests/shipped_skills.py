"""The skills that the project ships, read once, and its operational texts."""

from modules.services.skills.skills import PART, Skills
from modules.services.voice_phrases import DEFAULTS, SKILL, interpolate
from soul.resources import SKILLS

SHIPPED = Skills.load(SKILLS)
CONTACT_LINE = SHIPPED.section(SKILL, "Profile Line")
CONTACT = CONTACT_LINE.partition("{{contact}}")[0]
"""The beginning of the profile line that says who is responsible for the account."""


def phrase(key: str, /, **values: object) -> str:
    """Return an operational text from the skill."""
    return interpolate(SHIPPED.section(SKILL, f"{DEFAULTS}{PART}{key}"), values)

"""The skills that the project ships, read once."""

from __future__ import annotations

from modules.services.agent.skills.contracts import SKILL_CONTRACTS
from modules.services.agent.skills.skills import Skills
from soul.resources import SKILLS

SHIPPED = Skills.load(SKILLS, SKILL_CONTRACTS)

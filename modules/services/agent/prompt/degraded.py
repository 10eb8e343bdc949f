"""What a model is told of services that fail: since when, and what to avoid meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from common.clock import local
from modules.runtime.service_health import ServiceHealth
from modules.services.skills.skills import Skills

_SKILL = "prosoche"
_ANY = "other"


@dataclass(frozen=True, slots=True)
class DegradedServices:
    """Puts what `health` knows into the words of the skill; times are in `timezone`."""

    health: ServiceHealth
    skills: Skills
    timezone: str = ""

    def text(self) -> str:
        """The lines for a prompt; "" when all is well."""
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

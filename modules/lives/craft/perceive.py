"""Counts what went wrong since the last look."""

from __future__ import annotations

from dataclasses import dataclass

from modules.services.craft.record import FrictionRecord


@dataclass(frozen=True, slots=True)
class CraftPerceiver:
    """Looks whether there is something to get better at."""

    friction: FrictionRecord

    async def perceive(self) -> None:
        """Count what the journal holds since the last look."""
        await self.friction.count()

"""The stages of the start of a life. They are kept in memory: each start begins with the first."""

from __future__ import annotations

import asyncio
from enum import IntEnum


class Stage(IntEnum):
    """The stages of a life, in the order in which they are reached; a life never goes back to an earlier one."""

    BUILT = 0
    LOGGED_IN = 1
    CHECKED = 2
    SETTLED = 3


class Stages:
    """The current stage of one life. Each stage is reached only from the one before it."""

    def __init__(self) -> None:
        self._stage = Stage.BUILT
        self._reached = {stage: asyncio.Event() for stage in Stage}
        self._reached[Stage.BUILT].set()

    def has_reached(self, stage: Stage) -> bool:
        return self._stage >= stage

    def reach(self, stage: Stage) -> None:
        """Go on to `stage`; do nothing if it is reached already. Raises `RuntimeError` if a stage would be skipped."""
        if stage <= self._stage:
            return
        if stage != self._stage + 1:
            message = f"{stage.name} cannot be reached from {self._stage.name}"
            raise RuntimeError(message)
        self._stage = stage
        self._reached[stage].set()

    async def wait_for(self, stage: Stage) -> None:
        """Wait until `stage` is reached."""
        await self._reached[stage].wait()

"""How far the start of a life has come. Lives in memory: each start begins anew."""

from __future__ import annotations

import asyncio
from enum import IntEnum


class Stage(IntEnum):
    """The stages of a life, in the order in which they are reached; none is left again."""

    BUILT = 0
    LOGGED_IN = 1
    CHECKED = 2
    SETTLED = 3


class Stages:
    """The stage of one life. Each is reached from the one before it only."""

    def __init__(self) -> None:
        self._stage = Stage.BUILT
        self._reached = {stage: asyncio.Event() for stage in Stage}
        self._reached[Stage.BUILT].set()

    @property
    def stage(self) -> Stage:
        return self._stage

    def has_reached(self, stage: Stage) -> bool:
        return self._stage >= stage

    def reach(self, stage: Stage) -> None:
        """Go on to `stage`; nothing happens where it is reached already. Raises `RuntimeError` where one is skipped."""
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

"""What a reviewer can look at by itself: the files of the commit, and programs that run on a copy of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modules.runtime.llm.types import ToolAnswer, ToolCall, ToolSpec
from modules.services.coding.hands import Hands

RUN = "run"
READING = ("list_files", "read_file", "search")


@dataclass(frozen=True, slots=True)
class ReviewTools:
    """Carries out the calls of a reviewer.

    Attributes:
        reading: the files as they were committed, which nothing ran in.
        running: a copy of them, beside what they depend on; None where no programs are run.

    """

    reading: Hands
    running: Hands | None

    def specs(self) -> list[ToolSpec]:
        """Return the tools as the model sees them."""
        names = {*READING, RUN} if self.running else {*READING}
        return [one for one in self.reading.specs() if one.name in names]

    async def carry_out(self, call: ToolCall) -> ToolAnswer:
        """Return what came of a call; any other tool than these is refused. Raises `SoulError` as the sandbox does."""
        if call.name == RUN and self.running:
            return await self.running.carry_out(call)
        if call.name not in READING:
            call = replace(call, malformed=call.malformed or call.name)
        return await self.reading.carry_out(call)

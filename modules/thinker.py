"""Thinking, as the lives are given it: with the services of this process in hand, and every turn in the journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from common.clock import Clock
from common.constants import MAX_TOOL_ROUNDS
from common.errors import SoulError
from modules.journal.journal import Journal
from modules.journal.types import Entry
from modules.llm_gateway.gateway import LLMGateway
from modules.llm_gateway.types import Message, ToolChoice
from modules.thinking import Stopped, Thought, think
from modules.tools.executor import Executor
from modules.tools.types import Turn

_CUT_OFF: dict[Stopped, str] = {
    "no_calls": "the model called no tool, even when asked again",
    "rounds": "the limit of rounds was reached",
    "time": "the time was up",
    "repeated_error": "the model made the same mistake twice",
    "interrupted": "the model became unavailable in the middle",
}


@dataclass(frozen=True, slots=True)
class Thinker:
    """One mind for all lives. `nudge` gives the words for a model that forgot to call a tool."""

    gateway: LLMGateway
    executor: Executor
    clock: Clock
    journal: Journal
    nudge: Callable[[], str]

    async def think(
        self,
        *,
        turn: Turn,
        system: str,
        messages: Sequence[Message],
        purpose: str,
        tool_choice: ToolChoice = "auto",
        max_rounds: int = MAX_TOOL_ROUNDS,
        only: Collection[str] | None = None,
    ) -> Thought:
        """Think, and journal what it took. Arguments and errors are those of `modules.thinking.think`."""
        try:
            thought = await think(
                gateway=self.gateway,
                executor=self.executor,
                clock=self.clock,
                nudge=self.nudge(),
                turn=turn,
                system=system,
                messages=messages,
                purpose=purpose,
                tool_choice=tool_choice,
                max_rounds=max_rounds,
                only=only,
            )
        except SoulError as error:
            summary = f"Thinking about {purpose} failed"
            entry = Entry("model", turn.loop, summary, line=None, reason=str(error), trigger_uri=turn.cause_id)
            await self.journal.record(entry)
            raise
        await self._tell(thought, turn, purpose, sizes={"system": len(system), "messages": _length(messages)})
        return thought

    async def _tell(self, thought: Thought, turn: Turn, purpose: str, *, sizes: dict[str, int]) -> None:
        cut_off = _CUT_OFF.get(thought.stopped)
        await self.journal.record(
            Entry(
                "model",
                turn.loop,
                f"Thinking about {purpose} ended early" if cut_off else f"Thought about {purpose}",
                line="warn" if cut_off else None,
                reason=cut_off or thought.stopped,
                trigger_uri=turn.cause_id,
                data={
                    "purpose": purpose,
                    "model": self.gateway.model,
                    "provenance": turn.provenance.name.lower(),
                    "rounds": thought.rounds,
                    "input_tokens": thought.usage.input_tokens,
                    "output_tokens": thought.usage.output_tokens,
                    "chars": sizes,
                    "calls": [
                        {"tool": call.name, "input": call.input, "error": result.content if result.is_error else ""}
                        for call, result in thought.calls
                    ],
                },
            )
        )


def _length(messages: Sequence[Message]) -> int:
    return sum(len(message.content) for message in messages if isinstance(message.content, str))

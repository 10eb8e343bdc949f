"""Thinking, as the lives are given it: with the services of this process in hand, and every turn in the journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from common.clock import Clock, iso
from common.constants import MAX_TOOL_ROUNDS
from common.errors import SoulError
from modules.identity import PromptPart, SystemPrompt
from modules.journal.journal import Journal
from modules.journal.types import Entry
from modules.llm_gateway.gateway import LLMGateway
from modules.llm_gateway.types import Message, ToolCall, ToolChoice
from modules.thinking import Stopped, Thought, think
from modules.tools.executor import Executor
from modules.tools.types import ToolResult, Turn

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
        system: SystemPrompt,
        messages: Sequence[Message],
        purpose: str,
        tool_choice: ToolChoice = "auto",
        max_rounds: int = MAX_TOOL_ROUNDS,
        only: Collection[str] | None = None,
    ) -> Thought:
        """Think, and journal what it took. Arguments and errors are those of `modules.thinking.think`."""
        given = {
            "purpose": purpose,
            "began": iso(self.clock.now()),
            "provenance": turn.provenance.name.lower(),
            "importance": turn.importance,
            "prompt": [asdict(part) for part in (*system.parts, _conversation(messages))],
        }
        try:
            thought = await think(
                gateway=self.gateway,
                executor=self.executor,
                clock=self.clock,
                nudge=self.nudge(),
                turn=turn,
                system=system.text,
                messages=messages,
                purpose=purpose,
                tool_choice=tool_choice,
                max_rounds=max_rounds,
                only=only,
            )
        except SoulError as error:
            summary = f"Thinking about {purpose} failed"
            entry = Entry(
                "model", turn.loop, summary, line=None, reason=str(error), trigger_uri=turn.cause_id, data=given
            )
            await self.journal.record(entry)
            raise
        await self._tell(thought, turn, given)
        return thought

    async def _tell(self, thought: Thought, turn: Turn, given: dict[str, Any]) -> None:
        cut_off = _CUT_OFF.get(thought.stopped)
        await self.journal.record(
            Entry(
                "model",
                turn.loop,
                f"Thinking about {given['purpose']} ended early" if cut_off else f"Thought about {given['purpose']}",
                line="warn" if cut_off else None,
                reason=cut_off or thought.stopped,
                trigger_uri=turn.cause_id,
                data={
                    **given,
                    "sank_to": thought.provenance.name.lower(),
                    "model": thought.usage.model or self.gateway.model,
                    "rounds": thought.rounds,
                    "input_tokens": thought.usage.input_tokens,
                    "output_tokens": thought.usage.output_tokens,
                    "usd": thought.usage.cost_usd,
                    "step": thought.usage.step,
                    "calls": [_call(call, result) for call, result in thought.calls],
                },
            )
        )


def _call(call: ToolCall, result: ToolResult) -> dict[str, Any]:
    said = {"tool": call.name, "input": call.input, "error": result.content if result.is_error else ""}
    intent_id = result.data.get("intent_id")
    return said | {"intent_id": intent_id} if intent_id else said


def _conversation(messages: Sequence[Message]) -> PromptPart:
    return PromptPart("conversation", sum(len(item.content) for item in messages if isinstance(item.content, str)))

"""Thinking, as the lives are given it: with the services of this process in hand, and every turn in the journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from common.clock import Clock, iso
from common.errors import SoulError
from common.facts import About, AgentFacts, TurnFacts
from common.session_keys import is_main
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import Message, Text, ToolCall, ToolChoice, ToolSpec
from modules.runtime.tracing import Tracing, model_attributes
from modules.services.agent.prompt.bootstrap import room_beside
from modules.services.agent.prompt.cache_order import placed
from modules.services.agent.prompt.estimate import tool_tokens
from modules.services.agent.prompt.prompter import TurnPrompt
from modules.services.agent.prompt.types import PromptPart, SystemPrompt
from modules.services.agent.tools.executor import Executor
from modules.services.agent.tools.named_accounts import Resolve, look_up_named
from modules.services.agent.tools.policy import lower_provenance
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.agent.turn.loop import MAX_TOOL_ROUNDS, TurnResult, run_turn
from modules.services.sessions.rows import blocks, tokens_of
from modules.services.sessions.sessions import Sessions


@dataclass(frozen=True, slots=True)
class TurnRunner:
    """One mind for all lives.

    Attributes:
        gateway: the model.
        executor: the tools.
        clock: tells when.
        journal: records what each turn took.
        sessions: where conversations are kept.
        estimate: tokens of a text.
        context_tokens: how many the model takes in one request.
        nudge: gives the words for a model that forgot to call a tool.
        on_told: receives each prompt that a model has answered.
        resolve: looks up a handle that the owner's words name.
        agent: tells who the SOUL is, as data for a model service that reads it.
        name: what it is called.
        tracing: tells of each turn, without its words.

    """

    gateway: LLMGateway
    executor: Executor
    clock: Clock
    journal: Journal
    sessions: Sessions
    estimate: Callable[[str], int]
    context_tokens: Callable[[], int]
    nudge: Callable[[], str]
    on_told: Callable[[TurnPrompt], None]
    resolve: Resolve
    agent: Callable[[], AgentFacts] = AgentFacts
    name: str = ""
    tracing: Tracing = field(default_factory=Tracing)

    def offered(self, turn: Turn, only: Collection[str]) -> tuple[str, ...]:
        """Return the names of the tools that a turn offers of `only`: a prompt names no other."""
        return tuple(tool.name for tool in self.executor.registry.available(turn, only))

    def room(
        self, system: SystemPrompt, turn: Turn, only: Collection[str] | None = None, messages: Sequence[Message] = ()
    ) -> int:
        """Return how many tokens of conversation fit beside the prompt and the tools that `messages` have opened.

        Raises:
            PolicyBlocked: fewer than none.

        """
        tools = tool_tokens(self.executor.registry.specs(turn, only, messages), self.estimate)
        return room_beside(system.parts, context_tokens=self.context_tokens(), tool_tokens=tools)

    async def run_turn(
        self,
        *,
        turn: Turn,
        system: TurnPrompt,
        messages: Sequence[Message],
        purpose: str,
        tool_choice: ToolChoice = "auto",
        max_rounds: int = MAX_TOOL_ROUNDS,
        only: Collection[str] | None = None,
        session_id: str = "",
        about: About | None = None,
    ) -> TurnResult:
        """Run one turn, and journal what it took. Other arguments and errors are those of `turn.loop.run_turn`.

        With a `session_id`, all that is said and done is kept in that conversation as it comes; what the turn answers
        is its caller's to keep, before. `about` tells as data what the turn is about.

        Raises:
            PolicyBlocked: also when there is no room for any conversation.

        """
        if turn.request:
            await look_up_named(turn.request, self.resolve)
        turn = lower_provenance(turn, system.provenance)
        room = self.room(system, turn, only, messages)
        tools = tool_tokens(self.executor.registry.specs(turn, only, messages), self.estimate)
        stable, shown = placed(system.blocks, messages, may_go_on=is_main(system.session_key))
        given = {
            "purpose": purpose,
            "began": iso(self.clock.now()),
            "provenance": turn.provenance.name.lower(),
            "importance": turn.importance,
            "prompt": [asdict(part) for part in (*system.parts, _conversation(messages))],
            "memories": list(system.memories),
        }
        try:
            told = {"gen_ai.agent.name": self.name, **model_attributes(self.gateway.model)}
            with self.tracing.span("invoke_agent", self.name, told):
                turn_result = await run_turn(
                    gateway=self.gateway,
                    executor=self.executor,
                    clock=self.clock,
                    nudge=self.nudge(),
                    turn=turn,
                    system=stable,
                    messages=shown,
                    purpose=purpose,
                    tool_choice=tool_choice,
                    max_rounds=max_rounds,
                    only=only,
                    keep=partial(self.sessions.add, session_id) if session_id else None,
                    facts=self._facts(about),
                    fits=partial(self._fits, room + tools + self._tokens(shown) - self._tokens(messages)),
                )
        except SoulError as error:
            summary = f"Thinking about {purpose} failed"
            entry = Entry(
                "model", turn.loop, summary, line=None, reason=str(error), trigger_uri=turn.cause_id, data=given
            )
            await self.journal.record(entry)
            raise
        self.on_told(system)
        if session_id:
            await self.sessions.count(session_id, turn_result.usage)
        await self._tell(turn_result, turn, given)
        return turn_result

    def _tokens(self, messages: Sequence[Message]) -> int:
        return sum(tokens_of(message, self.estimate) for message in messages)

    def _fits(self, most_tokens: int, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bool:
        return self._tokens(messages) + tool_tokens(tools, self.estimate) <= most_tokens

    def _facts(self, about: About | None) -> TurnFacts | None:
        if not self.gateway.reads_facts:
            return None
        return TurnFacts(about, self.agent(), iso(self.clock.now()))

    async def _tell(self, turn_result: TurnResult, turn: Turn, given: dict[str, Any]) -> None:
        cut_off = turn_result.cut_off
        await self.journal.record(
            Entry(
                "model",
                turn.loop,
                f"Thinking about {given['purpose']} ended early" if cut_off else f"Thought about {given['purpose']}",
                line="warn" if cut_off else None,
                reason=cut_off or turn_result.stopped,
                trigger_uri=turn.cause_id,
                data={
                    **given,
                    "sank_to": turn_result.provenance.name.lower(),
                    "model": turn_result.usage.model or self.gateway.model,
                    "rounds": turn_result.rounds,
                    "input_tokens": turn_result.usage.input_tokens,
                    "cached_tokens": turn_result.usage.cached_tokens,
                    "output_tokens": turn_result.usage.output_tokens,
                    "usd": turn_result.usage.cost_usd,
                    "step": turn_result.usage.step,
                    "calls": [_call(call, result) for call, result in turn_result.calls],
                },
            )
        )


def _call(call: ToolCall, result: ToolResult) -> dict[str, Any]:
    said = {"tool": call.name, "input": call.input, "error": result.content if result.is_error else ""}
    return said | {name: value for name in ("intent_id", "went_wrong") if (value := result.data.get(name))}


def _conversation(messages: Sequence[Message]) -> PromptPart:
    said = (block for item in messages for block in blocks(item))
    return PromptPart("conversation", sum(len(block.text) for block in said if isinstance(block, Text)))

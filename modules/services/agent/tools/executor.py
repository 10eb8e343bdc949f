"""Runs what the model asked for, after refusing again what the registry would not have offered.

Nothing survives a crash here; a handler that acts in public hands an intent to the outbox, which does.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Collection
from dataclasses import replace

from pydantic import BaseModel, ValidationError

from common.errors import Fatal, SoulError
from common.provenance import Provenance
from common.redact import LEAK, Redactor
from common.text.untrusted import one_line
from modules.runtime.console import Console
from modules.runtime.llm.types import ToolCall
from modules.runtime.tracing import Tracing
from modules.services.agent.tools.policy import (
    approval_reason,
    explain,
    taken_fields,
    withheld_fields,
    without_empty_options,
)
from modules.services.agent.tools.registry import Registry
from modules.services.agent.tools.types import Tool, ToolResult, Turn
from modules.services.skills.skills import Skills

_ERROR_LENGTH = 300
_SKILL = "tool-calls"
_WENT_WRONG: dict[str, object] = {"went_wrong": True}
"""Marks the answer to a call that ran and did not end: its words may be those of somebody outside."""


class Executor:
    """Executes calls one at a time.

    Args:
        registry: says which tools exist.
        skills: has the answers to calls that did not run.
        on_call: receives every call with its result; `result.data["traceback"]` is there when a handler broke.
        redactor: takes secrets out of what the model is told; a call that holds one is refused.
        console: where the owner is told of such a call.
        tracing: tells of each call, without its words.

    """

    def __init__(
        self,
        registry: Registry,
        skills: Skills,
        *,
        on_call: Callable[[ToolCall, ToolResult, Turn], None] | None = None,
        redactor: Redactor | None = None,
        console: Console | None = None,
        tracing: Tracing = Tracing(),  # noqa: B008 - it holds nothing
    ) -> None:
        self.registry = registry
        self._skills = skills
        self.redactor = redactor or Redactor()
        self._on_call = on_call
        self._console = console
        self._tracing = tracing

    async def execute(self, call: ToolCall, turn: Turn, only: Collection[str] | None = None) -> ToolResult:
        """The result of `call`; whatever goes wrong becomes an error that the model can read, except `Fatal`."""
        # NOTE(self): what names no tool of ours is the model's own text.
        name = call.name if self.registry.get(call.name) else "unknown"
        with self._tracing.span(
            "execute_tool", name, {"gen_ai.tool.name": name, "gen_ai.tool.type": "function"}
        ) as note:
            result = await self._result(call, turn, only)
            if result.is_error:
                note({"error.type": "tool_error"})
        result = replace(result, content=self.redactor.text(result.content))
        if self._on_call:
            self._on_call(call, result, turn)
        return result

    async def _result(self, call: ToolCall, turn: Turn, only: Collection[str] | None) -> ToolResult:
        offered = {tool.name: tool for tool in self.registry.available(turn, only)}
        tool = offered.get(call.name)
        if tool is None:
            names = ", ".join(offered) or "none"
            if self.registry.get(call.name) is not None:
                return self._answer("Not Available", "Blocked", tool=call.name, names=names)
            return self._answer("Unknown", tool=repr(call.name), names=names)
        if self.redactor.finds_in(call.input):
            if self._console:
                self._console.line("error", f"Refused {call.name}: {LEAK}", turn.cause_id or turn.loop)
            return self._answer("Secret", "BLOCKED", problem=LEAK)
        if call.malformed:
            return self._answer("Malformed", tool=call.name, problem=call.malformed)
        arguments = self._arguments(tool, call, turn)
        if isinstance(arguments, ToolResult):
            return arguments
        return await self._run(tool, arguments, replace(turn, hold=approval_reason(tool, turn)))

    def _arguments(self, tool: Tool, call: ToolCall, turn: Turn) -> BaseModel | ToolResult:
        """Return what the model sent, as the tool takes it, or the answer to what it does not take."""
        sent = without_empty_options(tool.input_model, call.input)
        if withheld := sorted(withheld_fields(tool, turn) & sent.keys()):
            takes = taken_fields(tool, turn)
            return self._answer("Withheld Fields", tool=tool.name, fields=", ".join(withheld), takes=takes)
        try:
            return tool.input_model.model_validate(sent)
        except ValidationError as error:
            problem, takes = explain(tool, turn, error)
            return self._answer("Wrong Fields", tool=tool.name, problem=problem, takes=takes)

    def refuse_second_reply(self) -> ToolResult:
        """Return the answer to a reply to a post that was replied to in the same turn."""
        return replace(self._answer("Replied Already", "SKIPPED"), data={"act": "silent"})

    def told_lost(self, names: Collection[str], turn: Turn) -> str:
        """Return what the model is told of tools that it has no more, because a call brought in others' words."""
        is_owners = turn.asked_by is Provenance.OWNER
        return self._skills.render(_SKILL, "Answers", "Lost", names=", ".join(names), is_owners=is_owners).strip()

    async def _run(self, tool: Tool, arguments: BaseModel, turn: Turn) -> ToolResult:
        try:
            async with asyncio.timeout(tool.time_limit_s):
                return await tool.handler(arguments, turn)
        except Fatal:
            raise
        except TimeoutError:
            slow = self._answer("Too Slow", tool=tool.name, seconds=f"{tool.time_limit_s:g}")
            return replace(slow, data=_WENT_WRONG)
        except SoulError as error:
            refused = self._answer("Refused", tool=tool.name, problem=_said(error))
            return replace(refused, data=_WENT_WRONG)
        except Exception as error:
            broken = self._answer("Failed", tool=tool.name, problem=f"{type(error).__name__}: {_said(error)}")
            data = _WENT_WRONG | {"traceback": traceback.format_exc()}
            return replace(broken, provenance=Provenance.STRANGER, data=data)

    def _answer(self, name: str, status: str = "Error", **values: object) -> ToolResult:
        """Return the answer of a call that did not run, after the status that marks it as a failure."""
        return ToolResult(f"{status}: {self._skills.render(_SKILL, 'Answers', name, **values).strip()}", is_error=True)


def _said(error: Exception) -> str:
    """An error may quote what somebody sent us."""
    return one_line(str(error), _ERROR_LENGTH)

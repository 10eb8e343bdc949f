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
from modules.services.agent.tools.policy import approval_reason, explain, without_empty_options
from modules.services.agent.tools.registry import Registry
from modules.services.agent.tools.types import Tool, ToolResult, Turn

_ERROR_LENGTH = 300


class Executor:
    """Executes calls one at a time.

    Args:
        registry: says which tools exist.
        on_call: hears every call with its result; `result.data["traceback"]` is there when a handler broke.
        redactor: takes secrets out of what the model is told; a call that holds one is refused.
        console: where the owner is told of such a call.

    """

    def __init__(
        self,
        registry: Registry,
        on_call: Callable[[ToolCall, ToolResult, Turn], None] | None = None,
        redactor: Redactor | None = None,
        console: Console | None = None,
    ) -> None:
        self.registry = registry
        self.redactor = redactor or Redactor()
        self._on_call = on_call
        self._console = console

    async def execute(self, call: ToolCall, turn: Turn, only: Collection[str] | None = None) -> ToolResult:
        """The result of `call`; whatever goes wrong becomes an error that the model can read, except `Fatal`."""
        result = await self._result(call, turn, only)
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
                return _error(f"Blocked: {call.name} is not available in this turn. Available: {names}.")
            return _error(f"Error: there is no tool named {call.name!r}. Available: {names}.")
        if self.redactor.finds_in(call.input):
            if self._console:
                self._console.line("error", f"Refused {call.name}: {LEAK}", turn.cause_id or turn.loop)
            return _error(f"BLOCKED: {LEAK}. Never write keys or passwords.")
        if call.malformed:
            return _error(f"Error: {call.name} was not called: {call.malformed}. Send one JSON object.")
        try:
            arguments = tool.input_model.model_validate(without_empty_options(tool.input_model, call.input))
        except ValidationError as error:
            return _error(explain(tool, error))
        return await _run(tool, arguments, replace(turn, hold=approval_reason(tool, turn)))


async def _run(tool: Tool, arguments: BaseModel, turn: Turn) -> ToolResult:
    try:
        async with asyncio.timeout(tool.time_limit_s):
            return await tool.handler(arguments, turn)
    except Fatal:
        raise
    except TimeoutError:
        return _error(f"Error: {tool.name} took longer than {tool.time_limit_s:g} s and was stopped.")
    except SoulError as error:
        return _error(f"Error: {tool.name}: {_said(error)}")
    except Exception as error:
        broken = f"Error: {tool.name} failed: {type(error).__name__}: {_said(error)}"
        trace = {"traceback": traceback.format_exc()}
        return ToolResult(broken, is_error=True, provenance=Provenance.STRANGER, data=trace)


def _said(error: Exception) -> str:
    """An error may quote what somebody sent us."""
    return one_line(str(error), _ERROR_LENGTH)


def _error(content: str) -> ToolResult:
    return ToolResult(content, is_error=True)

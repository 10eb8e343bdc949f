"""Runs what the model asked for, after refusing again what the registry would not have offered.

Nothing survives a crash here; a handler that acts in public hands an intent to the outbox, which does.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Collection

from pydantic import BaseModel, ValidationError

from common.errors import Fatal, SoulError
from modules.llm_gateway.types import ToolCall
from modules.tools.policy import explain, without_empty_options
from modules.tools.registry import Registry
from modules.tools.types import Tool, ToolResult, Turn


class Executor:
    """Executes calls one at a time.

    Args:
        registry: says which tools exist.
        on_call: hears every call with its result; `result.data["traceback"]` is there when a handler broke.

    """

    def __init__(self, registry: Registry, on_call: Callable[[ToolCall, ToolResult, Turn], None] | None = None) -> None:
        self.registry = registry
        self._on_call = on_call

    async def execute(self, call: ToolCall, turn: Turn, only: Collection[str] | None = None) -> ToolResult:
        """The result of `call`; whatever goes wrong becomes an error that the model can read, except `Fatal`."""
        result = await self._result(call, turn, only)
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
        if call.malformed:
            return _error(f"Error: {call.name} was not called: {call.malformed}. Send one JSON object.")
        try:
            arguments = tool.input_model.model_validate(without_empty_options(tool.input_model, call.input))
        except ValidationError as error:
            return _error(explain(tool, error))
        return await _run(tool, arguments, turn)


async def _run(tool: Tool, arguments: BaseModel, turn: Turn) -> ToolResult:
    try:
        async with asyncio.timeout(tool.time_limit_s):
            return await tool.handler(arguments, turn)
    except Fatal:
        raise
    except TimeoutError:
        return _error(f"Error: {tool.name} took longer than {tool.time_limit_s:g} s and was stopped.")
    except SoulError as error:
        return _error(f"Error: {tool.name}: {error}")
    except Exception as error:
        broken = f"Error: {tool.name} failed: {type(error).__name__}: {error}"
        return ToolResult(broken, is_error=True, data={"traceback": traceback.format_exc()})


def _error(content: str) -> ToolResult:
    return ToolResult(content, is_error=True)

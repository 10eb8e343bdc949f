"""Every tool call in the log files, for whoever looks into a fault."""

from __future__ import annotations

import structlog

from modules.runtime.llm.types import ToolCall
from modules.services.agent.tools.types import ToolResult, Turn

_ANSWER_CHARS = 500


def log_call(call: ToolCall, result: ToolResult, turn: Turn) -> None:
    """Log one call; a handler that broke leaves its traceback."""
    log = structlog.stdlib.get_logger("soul.tools")
    facts = {"tool": call.name, "input": call.input, "loop": turn.loop, "trigger": turn.cause_id}
    facts |= {"intent": intent} if (intent := result.data.get("intent_id")) else {}
    if broken := result.data.get("traceback"):
        log.error("tool broke", **facts, traceback=broken)
    else:
        log.info("tool refused" if result.is_error else "tool", **facts, answer=result.content[:_ANSWER_CHARS])

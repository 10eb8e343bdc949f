"""Where the changing part of a prompt stands, so that a service finds the most of a request again. Pure.

A service keeps the beginning of a request, up to the first byte that differs. What changes from turn to turn therefore
stands behind the conversation so far: in the message that the turn answers. Where nothing was said before, it closes
the system prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

from modules.llm_gateway.types import Message, Text
from modules.prompt.types import PromptBlock

RULE = "---\n\n"
"""What stands between any two parts of a prompt, on a line of its own."""


def placed(
    blocks: Sequence[PromptBlock], messages: Sequence[Message]
) -> tuple[tuple[PromptBlock, ...], tuple[Message, ...]]:
    """The blocks for the system prompt, and the messages; the last one is that which the turn answers."""
    changing = "\n\n".join(block.text for block in blocks if block.group == "dynamic")
    if len(messages) <= 1 or not changing:
        return tuple(blocks), tuple(messages)
    *earlier, last = messages
    words = (Text(last.content),) if isinstance(last.content, str) else last.content
    stable = tuple(block for block in blocks if block.group != "dynamic")
    shown = Message(last.role, (Text(f"{changing.removeprefix(RULE)}\n\n{RULE}"), *words))
    return stable, (*earlier, shown)

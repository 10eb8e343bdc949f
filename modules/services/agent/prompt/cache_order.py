"""Where the changing part of a prompt stands, so that a service finds the most of a request again. Pure.

A service keeps the beginning of a request, up to the first byte that differs. What changes from turn to turn therefore
stands behind the conversation so far: in the message that the turn answers. In a talk that may go on this holds from
its first message, so that the second finds the whole system prompt and the tools again. Where one message is all there
will be, it closes the system prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

from modules.runtime.llm.dialect import Message, PromptBlock, Text

RULE = "---\n\n"
"""What stands between any two parts of a prompt, on a line of its own."""


def placed(
    blocks: Sequence[PromptBlock], messages: Sequence[Message], *, may_go_on: bool = False
) -> tuple[tuple[PromptBlock, ...], tuple[Message, ...]]:
    """The blocks for the system prompt, and the messages; the last one is that which the turn answers.

    `may_go_on`: whether these messages will stand in a later turn, too.
    """
    changing = "\n\n".join(block.text for block in blocks if block.group == "dynamic")
    if not messages or not changing or (len(messages) == 1 and not may_go_on):
        return tuple(blocks), tuple(messages)
    *earlier, last = messages
    words = (Text(last.content),) if isinstance(last.content, str) else last.content
    stable = tuple(block for block in blocks if block.group != "dynamic")
    shown = Message(last.role, (Text(f"{changing.removeprefix(RULE)}\n\n{RULE}"), *words))
    return stable, (*earlier, shown)

"""Where the changing part of a prompt stands, so that a service finds the most of a request again. Pure.

A service keeps the beginning of a request, up to the first byte that differs. What changes from turn to turn therefore
stands behind the conversation so far: in the message that the turn answers. In a talk that may go on this holds from
its first message, so that the second finds the whole system prompt and the tools again. Where one message is all there
will be, it closes the system prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

from modules.runtime.llm.dialect import Message, PromptBlock, Text, ToolAnswer

RULE = "---\n\n"
"""What stands between any two parts of a prompt, on a line of its own."""


def placed(
    blocks: Sequence[PromptBlock], messages: Sequence[Message], *, may_go_on: bool = False
) -> tuple[tuple[PromptBlock, ...], tuple[Message, ...]]:
    """The blocks for the system prompt, and the messages; the turn answers the last one in which somebody speaks.

    What tools answered may follow it, where a crash cut off the turn. `may_go_on`: whether these messages will stand in
    a later turn, too.
    """
    changing = "\n\n".join(block.text for block in blocks if block.group == "dynamic")
    place = next((at for at in reversed(range(len(messages))) if _speaks(messages[at])), None)
    if place is None or not changing or (len(messages) == 1 and not may_go_on):
        return tuple(blocks), tuple(messages)
    said = messages[place]
    words = (Text(said.content),) if isinstance(said.content, str) else said.content
    stable = tuple(block for block in blocks if block.group != "dynamic")
    shown = Message(said.role, (Text(f"{changing.removeprefix(RULE)}\n\n{RULE}"), *words))
    return stable, (*messages[:place], shown, *messages[place + 1 :])


def _speaks(message: Message) -> bool:
    """Return whether a message is the user's own: no mere answers of tools."""
    return message.role == "user" and not all(isinstance(one, ToolAnswer) for one in message.content)

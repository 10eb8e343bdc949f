"""What of a kept conversation a model is shown: in a form every chat service accepts, and no more than fits. Pure.

A crash may leave a question without its answer, and two of them in a row; what was condensed may have begun in the
middle of a round. A tool call and its answers are one unit: shown together, condensed together, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from modules.runtime.llm.dialect import Block, Message, Text, ToolAnswer, ToolCall
from modules.services.sessions.types import MessageRow, blocks

_KEPT_SHARE = 0.5
_SUMMARY_TOKENS = 1000  # more than a summary takes, so that one is not condensed again and again


def fitting(rows: Sequence[MessageRow], budget_tokens: int) -> tuple[MessageRow, ...]:
    """The newest rows that fit; never half of a round of tool calls, and no tool answer at the beginning."""
    kept: list[MessageRow] = []
    room = budget_tokens
    for unit in reversed(units(rows)):
        room -= sum(row.tokens for row in unit)
        if room < 0 or unit[0].role == "toolResult":
            break
        kept[:0] = unit
    return tuple(kept)


def outgrown(rows: Sequence[MessageRow], budget_tokens: int) -> tuple[MessageRow, ...]:
    """The oldest rows, to be condensed; empty while all fit, or where condensing would gain nothing.

    The newest half of the budget stays, and in any case what was said last: it is what the turn is about.
    """
    if not rows or sum(row.tokens for row in rows) <= budget_tokens:
        return ()
    newest = fitting(rows, int(budget_tokens * _KEPT_SHARE)) or units(rows)[-1]
    old = tuple(rows[: len(rows) - len(newest)])
    worthwhile = len(old) > 1 or sum(row.tokens for row in old) > _SUMMARY_TOKENS
    return old if worthwhile else ()


def units(rows: Iterable[MessageRow]) -> list[list[MessageRow]]:
    """What must stay together: a message, and after it the answers to the calls in it. Orphans only come first."""
    found: list[list[MessageRow]] = []
    for row in rows:
        if row.role == "toolResult" and found:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def conversation(rows: Iterable[MessageRow]) -> list[Message]:
    """The messages of `rows` as a chat service accepts them.

    They begin with the user and take turns. Each call stands right before its one answer; a call without an answer
    and an answer without its call are left out, as is what says nothing.
    """
    said: list[Message] = []
    for unit in units(rows):
        for message in _settled(unit):
            if said and said[-1].role == message.role:
                said[-1] = _together(said[-1], message)
            elif said or message.role == "user":
                said.append(message)
            else:
                break  # nobody has asked yet, so nobody sees the answer, nor what its calls came to
    return said


def _settled(unit: Sequence[MessageRow]) -> Iterator[Message]:
    head = unit[0]
    if head.role == "toolResult":
        return
    called = {block.id for block in blocks(head.message) if isinstance(block, ToolCall) and block.id}
    answers: dict[str, ToolAnswer] = {}
    for row in unit[1:]:
        for block in blocks(row.message):
            if isinstance(block, ToolAnswer) and head.role == "assistant" and block.tool_use_id in called:
                answers.setdefault(block.tool_use_id, block)
    kept = tuple(_kept(blocks(head.message), answers))
    if kept:
        yield Message(head.message.role, kept[0].text if len(kept) == 1 and isinstance(kept[0], Text) else kept)
    if answers:
        yield Message("user", tuple(answers.values()))


def _kept(said: Iterable[Block], answers: dict[str, ToolAnswer]) -> Iterator[Block]:
    waiting = set(answers)
    for block in said:
        if isinstance(block, ToolCall):
            if block.id in waiting:
                waiting.remove(block.id)
                yield block
        elif not (isinstance(block, ToolAnswer) or (isinstance(block, Text) and not block.text.strip())):
            yield block


def _together(first: Message, second: Message) -> Message:
    if isinstance(first.content, str) and isinstance(second.content, str):
        return Message(first.role, f"{first.content}\n\n{second.content}")
    return Message(first.role, (*blocks(first), *blocks(second)))

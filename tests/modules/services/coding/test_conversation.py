"""What the model is sent of a long coding task: shortened in blocks, with what is left of its limits."""

from __future__ import annotations

from itertools import pairwise

from common.clock import parse_iso
from modules.runtime.llm.dialect import Message, ToolAnswer, ToolCall
from modules.services.coding.agent import CodingConversation
from modules.services.coding.policy import set_aside, used
from modules.services.coding.types import CodingLimits, CodingStep
from tests.shipped_skills import SHIPPED

AT = "2026-01-05T12:00:00Z"
LIMITS = CodingLimits(steps=100, tokens=1_500_000, usd=None, seconds=1_500)
CONVERSATION = CodingConversation(SHIPPED, LIMITS, parse_iso(AT))


def step(number: int, chars: int = 12_000, *, tokens: int = 20_000, at: str = AT) -> CodingStep:
    call = ToolCall(f"c{number}", "read_file", {"path": f"{number}.py"})
    answer = ToolAnswer(call.id, call.name, f"{number}" * (chars // len(str(number))))
    return CodingStep(number, at, "", (call,), (answer,), tokens, 100, tokens * 9 // 10)


def answers(messages: list[Message]) -> list[str]:
    return [str(one.content[0].content) for one in messages[2::2] if isinstance(one.content[0], ToolAnswer)]


def test_old_answers_are_shortened_in_blocks_and_new_ones_never() -> None:
    steps = [step(number) for number in range(1, 61)]
    sent = [CONVERSATION.messages("Task", steps[:count]) for count in range(1, 61)]
    assert max(sum(map(len, answers(one))) for one in sent) < 200_000
    assert all(len(answers(one)[-1]) >= 11_000 for one in sent)
    shifts = sum(after[: len(before)] != before for before, after in pairwise(sent))
    assert shifts <= 10
    few = [step(number, 1_000) for number in range(1, 61)]
    sent = [CONVERSATION.messages("Task", few[:count]) for count in range(1, 61)]
    assert all(after[: len(before)] == before for before, after in pairwise(sent))


def test_what_is_left_is_told_each_few_steps_and_near_a_limit() -> None:
    steps = [step(number, 100, at=f"2026-01-05T12:{number // 10:02}:00Z") for number in range(1, 100)]
    told = [
        number for number, text in enumerate(answers(CONVERSATION.messages("Task", steps)), 1) if "Left for" in text
    ]
    assert told == [*range(10, 100, 10), 97, 98, 99]
    assert "90 steps, 1,461,000 tokens, 24 minutes" in answers(CONVERSATION.messages("Task", steps))[9]
    late = answers(CONVERSATION.messages("Task", [step(1, at="2026-01-05T12:23:00Z")]))[-1]
    assert "99 steps" in late
    assert "`finish`" in late


def test_cached_input_counts_a_tenth_and_a_day_need_not_hold_all_of_a_task() -> None:
    steps = [step(number) for number in range(1, 11)]
    assert used(steps)[0] == 10 * (2_000 + 1_800 + 100)
    assert set_aside([], LIMITS) == 300_000
    assert set_aside(steps * 20, LIMITS) == 60_000
    assert set_aside([], CodingLimits(9, 10_000, None, 9)) == 10_000

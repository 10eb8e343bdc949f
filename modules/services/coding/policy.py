"""Ends a coding task without a decision of the model: at a limit, or when its steps repeat. Pure.

Tokens are counted like those of the day (`counted`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from modules.runtime.budget.policy import counted
from modules.services.coding.types import CodingEnd, CodingEndCode, CodingLimits, CodingStep

SAME_AGAIN = 3
"""The number of equal actions with equal results, equal errors, or answers without an action that ends a task."""
PAIRS = 3
"""The number of times that an alternating pair of actions may occur before the task ends."""

_BEGIN_TOKENS, _STEP_TOKENS = 300_000, 60_000


def end_before_step(steps: Sequence[CodingStep], limits: CodingLimits) -> CodingEnd | None:
    """Return the reason to end before the next step, or None."""
    tokens, usd = used(steps)
    reached: dict[CodingEndCode, bool] = {
        "steps": len(steps) >= limits.steps,
        "tokens": tokens >= limits.tokens,
        "money": limits.usd is not None and usd >= limits.usd,
        "stuck": is_stuck(steps),
    }
    return next((CodingEnd(code) for code, is_reached in reached.items() if is_reached), None)


def used(steps: Sequence[CodingStep]) -> tuple[int, float]:
    """Return the tokens and dollars of the steps; dollars only where prices are known."""
    tokens = sum(counted(step.input_tokens, step.cached_tokens) + step.output_tokens for step in steps)
    return tokens, sum(step.usd or 0.0 for step in steps)


def set_aside(steps: Sequence[CodingStep], limits: CodingLimits) -> int:
    """Return how many tokens of the day to reserve before a step: more for the first steps, later enough for one step.

    A task that reaches the end of the day's budget continues on the next day, so it need not fit into what is left.
    """
    tokens, _ = used(steps)
    return min(limits.tokens - tokens, max(_BEGIN_TOKENS - tokens, _STEP_TOKENS))


def is_stuck(steps: Sequence[CodingStep]) -> bool:
    """Return whether the last steps repeat: the same action, the same error, or an alternating pair of actions."""
    prints = [_print(step) for step in steps[-2 * PAIRS :]]
    errors = [_errors(step) for step in steps[-SAME_AGAIN:]]
    last = prints[-SAME_AGAIN:]
    if len(last) == SAME_AGAIN and len(set(last)) == 1:
        return True
    if len(errors) == SAME_AGAIN and errors[0] and len(set(errors)) == 1:
        return True
    return len(prints) == 2 * PAIRS and len(set(prints[::2])) == len(set(prints[1::2])) == 1


def _print(step: CodingStep) -> str:
    """Return the calls of a step and their results, as text that can be compared."""
    done = [(call.name, call.input) for call in step.calls]
    came = [(answer.content, answer.is_error) for answer in step.answers or ()]
    return json.dumps([done, came], sort_keys=True)


def _errors(step: CodingStep) -> tuple[str, ...]:
    answers = step.answers or ()
    return tuple(one.content for one in answers) if all(one.is_error for one in answers) else ()

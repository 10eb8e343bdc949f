"""What the model is sent of a coding task: the task, then each step with what came of it. Pure.

Old answers are cut in blocks, and what is said to a step stays as it was said, so that a request begins with nearly all
of the one before it and the service can take that from its cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from common.clock import parse_iso
from modules.runtime.llm.types import Block, Message, Text, ToolAnswer
from modules.services.coding.policy import used
from modules.services.coding.types import CodingLimits, CodingStep
from modules.services.skills.skills import Skills

_SKILL = "coding"
_WHOLE_CHARS = 100_000
"""So many characters of answers are sent whole; then those before the newest third of them are cut."""
_CUT_ABOVE_CHARS, _CUT_PART_CHARS = 1_500, 600
_TOLD_EVERY_STEPS = 10
_LAST_STEPS, _LAST_S = 3, 180.0
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class CodingConversation:
    """Renders the steps of a job. `began` is when this life began to work on it."""

    skills: Skills
    limits: CodingLimits
    began: datetime

    def messages(self, task: str, steps: Sequence[CodingStep]) -> list[Message]:
        """Return the conversation up to the step that is asked for next."""
        messages, cut = [Message("user", task)], cut_before(steps)
        for at, step in enumerate(steps):
            said: tuple[Block, ...] = (*([Text(step.said)] if step.said else []), *step.calls)
            messages.append(Message("assistant", said or (Text("…"),)))
            answers = tuple(map(self._cut, step.answers or ())) if at < cut else step.answers
            left = self._left(steps[: at + 1])
            if answers and left:
                answers = (*answers[:-1], replace(answers[-1], content=f"{answers[-1].content}\n\n{left}"))
            messages.append(Message("user", answers or self.skills.section(_SKILL, "No Call")))
        return messages

    def _cut(self, answer: ToolAnswer) -> ToolAnswer:
        text = answer.content
        if len(text) <= _CUT_ABOVE_CHARS:
            return answer
        told = self.skills.render(_SKILL, "Answers", "Condensed", count=f"{len(text) - 2 * _CUT_PART_CHARS:,}").strip()
        return replace(answer, content=f"{text[:_CUT_PART_CHARS]}\n{told}\n{text[-_CUT_PART_CHARS:]}")

    def _left(self, steps: Sequence[CodingStep]) -> str:
        """What is told after a step of what is left of the limits: each few steps, and after each of the last ones."""
        tokens, _ = used(steps)
        after = max(used([one])[0] for one in steps)
        count, left = self.limits.steps - len(steps), max(0, self.limits.tokens - tokens)
        seconds = self.limits.seconds - max(0.0, (parse_iso(steps[-1].at) - self.began).total_seconds())
        is_last = count <= _LAST_STEPS or left <= _LAST_STEPS * after or seconds <= _LAST_S
        if not is_last and len(steps) % _TOLD_EVERY_STEPS:
            return ""
        words = {"steps": str(count), "tokens": f"{left:,}", "minutes": f"{max(0.0, seconds) / _MINUTE_S:.0f}"}
        return self.skills.render(_SKILL, "Answers", "Nearly Over" if is_last else "Left", **words).strip()


def cut_before(steps: Sequence[CodingStep]) -> int:
    """Return how many steps from the first have their answers cut. It grows in blocks as steps are added."""
    sizes = [sum(len(answer.content) for answer in step.answers or ()) for step in steps]
    cut, whole = 0, 0
    for at, size in enumerate(sizes):
        whole += size
        if whole > _WHOLE_CHARS:
            while cut < at and whole > _WHOLE_CHARS // 3:
                whole -= sizes[cut]
                cut += 1
    return cut

"""The loop of a coding task: ask the model, keep what it answered, carry it out, until it ends or reaches a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from common.clock import Clock, iso
from common.errors import PromptTooLong
from common.facts import CodingFacts, ToolOutcome, TurnFacts
from common.text.untrusted import clean
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import Block, Message, Text, ToolAnswer, ToolCall
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.scheduler.attention import Attention
from modules.services.coding.hands import ALREADY_THERE, BLOCKED, FINISH, SKILL, Hands, tool_specs
from modules.services.coding.policy import end_before_step, used
from modules.services.coding.trajectory import Trajectories
from modules.services.coding.types import PURPOSE, CodingEnd, CodingJob, CodingLimits, CodingStep
from modules.services.skills.skills import Skills

_ANSWER_TOKENS = 8_000
_SUMMARY_CHARS = 2_000


class HeldBudget(Protocol):
    """What sets a part of the day's budget aside for one purpose."""

    async def hold(self, purpose: str, *, tokens: int, usd: float | None) -> None:
        """Set so much aside in place of what was. Raises `BudgetExceeded` where the day has not that much left."""
        ...

    async def let_go(self, purpose: str) -> None:
        """Give back what is left of it."""
        ...


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """Codes one task at a time.

    Attributes:
        attention: held while the model is asked; programs may run while it does something else.
        sandbox: runs programs.

    """

    gateway: LLMGateway
    skills: Skills
    sandbox: Sandbox
    store: Trajectories
    budget: HeldBudget
    attention: Attention
    clock: Clock
    limits: CodingLimits

    async def resume(self, job: CodingJob, tree: Path) -> list[CodingStep]:
        """Return the steps that were paid for, each carried out in the tree; what was done in it is not done again.

        Raises `SoulError` where the sandbox does not work.
        """
        hands, steps = self._hands(tree), []
        for step in await self.store.steps(job.key, job.epoch):
            undone = step.answers is None or job.is_new
            steps.append(await self._carried_out(job, hands, step) if undone else step)
        return steps

    async def work(self, job: CodingJob, tree: Path, begun: Sequence[CodingStep]) -> CodingEnd:
        """Do a job in a tree, upon the steps that `resume` returned, and return how it ended.

        Raises:
            BudgetExceeded: the day has not so much left as a task may take.
            SoulError: the model or the sandbox does not work; another call goes on where this one ended.

        """
        hands, steps = self._hands(tree), list(begun)
        try:
            async with self.clock.timeout(self.limits.seconds):
                while (end := _end_of(steps) or end_before_step(steps, self.limits)) is None:
                    steps.append(await self._step(job, hands, steps))
        except TimeoutError:
            end = CodingEnd("time")
        except PromptTooLong as error:
            end = CodingEnd("length", str(error))
        finally:
            await self.budget.let_go(PURPOSE)
        return end

    def _hands(self, tree: Path) -> Hands:
        return Hands(tree, self.sandbox, self.limits.network, self.skills)

    async def _step(self, job: CodingJob, hands: Hands, steps: Sequence[CodingStep]) -> CodingStep:
        tokens, usd = used(steps)
        left = None if self.limits.usd is None else self.limits.usd - usd
        await self.budget.hold(PURPOSE, tokens=self.limits.tokens - tokens, usd=left)
        async with self.attention.take(PURPOSE):
            result = await self.gateway.chat_with_tools(
                self._messages(job, steps),
                system=self.skills.section(SKILL, "System Prompt"),
                tools=tool_specs(self.skills),
                tool_choice="required",
                max_tokens=_ANSWER_TOKENS,
                purpose=PURPOSE,
                importance="commitment",
                facts=_facts(job, steps),
            )
        usage = result.usage
        step = CodingStep(
            number=len(steps) + 1,
            at=iso(self.clock.now()),
            said=result.text,
            calls=result.tool_calls,
            answers=None,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            usd=usage.cost_usd,
        )
        await self.store.put(job.key, job.epoch, step)
        return await self._carried_out(job, hands, step)

    async def _carried_out(self, job: CodingJob, hands: Hands, step: CodingStep) -> CodingStep:
        """Carry a step out, and keep what came of it. After an end nothing more of the step is done."""
        answers: list[ToolAnswer] = []
        for call in step.calls:
            answers.append(
                await self._ended(job, call) if call.name in {FINISH, BLOCKED} else await hands.carry_out(call)
            )
            if _is_end(call, answers[-1]):
                break
        done = replace(step, calls=step.calls[: len(answers)], answers=tuple(answers))
        await self.store.put(job.key, job.epoch, done)
        return done

    async def _ended(self, job: CodingJob, call: ToolCall) -> ToolAnswer:
        """Accept an end, unless something is wrong with it."""
        check = job.check_found if job.check_found and _is_found(call) else job.check
        wrong = await check() if call.name == FINISH else ""
        return ToolAnswer(call.id, call.name, wrong, is_error=bool(wrong))

    def _messages(self, job: CodingJob, steps: Sequence[CodingStep]) -> list[Message]:
        messages = [Message("user", job.message)]
        for step in steps:
            said: tuple[Block, ...] = (*([Text(step.said)] if step.said else []), *step.calls)
            messages.append(Message("assistant", said or (Text("…"),)))
            messages.append(Message("user", step.answers or self.skills.section(SKILL, "No Call")))
        return messages


def _end_of(steps: Sequence[CodingStep]) -> CodingEnd | None:
    """Return the end that the last step came to, if it did."""
    if not steps or not steps[-1].calls or not steps[-1].answers:
        return None
    call = steps[-1].calls[-1]
    if not _is_end(call, steps[-1].answers[-1]):
        return None
    said = call.input.get("summary" if call.name == FINISH else "reason", "")
    text = clean(str(said)).strip()[:_SUMMARY_CHARS]
    return CodingEnd("finished", text, _is_found(call)) if call.name == FINISH else CodingEnd("blocked", text)


def _is_found(call: ToolCall) -> bool:
    """Whether the model says that all of the work was there already."""
    return call.input.get(ALREADY_THERE) is True


def _is_end(call: ToolCall, answer: ToolAnswer) -> bool:
    return call.name in {FINISH, BLOCKED} and not answer.is_error


def _facts(job: CodingJob, steps: Sequence[CodingStep]) -> TurnFacts:
    done = [
        ToolOutcome(call.name, failed=answer.is_error, text=str(call.input.get("path", "")))
        for step in steps
        for call, answer in zip(step.calls, step.answers or (), strict=False)
    ]
    return TurnFacts(CodingFacts(job.title, job.files), outcomes=tuple(done))

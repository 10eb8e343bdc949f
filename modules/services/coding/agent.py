"""Runs a coding task: asks the model, stores its answer, carries it out, and repeats until an end or a limit."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from common.clock import Clock, parse_iso
from common.errors import PromptTooLong
from common.facts import CodingFacts, ToolOutcome, TurnFacts
from common.text.untrusted import clean
from modules.runtime.llm.dialect import Block, Message, Text, ToolAnswer, ToolCall, ToolSpec
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.sandbox.runner import Sandbox
from modules.runtime.scheduler.scheduler import Attention
from modules.services.coding.hands import ALREADY_THERE, BLOCKED, DESCRIPTION, FINISH, SKILL, Hands
from modules.services.coding.policy import (
    PURPOSE,
    CodingEnd,
    CodingJob,
    CodingLimits,
    CodingRoom,
    CodingStep,
    end_before_step,
    set_aside,
    used,
)
from modules.services.coding.suites import suite_limits
from modules.services.coding.trajectory import Trajectories, step_of
from modules.services.skills.skills import Skills

_WHOLE_CHARS = 100_000
"""Beyond this many characters, the answers before the newest third of them are shortened."""
_CUT_ABOVE_CHARS, _CUT_PART_CHARS = 1_500, 600
_TOLD_EVERY_STEPS = 10
_LAST_STEPS, _LAST_S = 3, 180.0
_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class CodingConversation:
    """Renders the steps of a job as a conversation.

    `began` is when the work on it was started or resumed; `skill` is the page with the system prompt of the job.
    """

    skills: Skills
    limits: CodingLimits
    began: datetime
    skill: str = SKILL

    def messages(self, task: str, steps: Sequence[CodingStep]) -> list[Message]:
        """Return the conversation up to the next step."""
        messages, cut = [Message("user", task)], cut_before(steps)
        for at, step in enumerate(steps):
            said: tuple[Block, ...] = (*([Text(step.said)] if step.said else []), *step.calls)
            messages.append(Message("assistant", said or (Text("…"),)))
            answers = tuple(map(self._cut, step.answers or ())) if at < cut else step.answers
            left = self._left(steps[: at + 1])
            if answers and left:
                answers = (*answers[:-1], replace(answers[-1], content=f"{answers[-1].content}\n\n{left}"))
            messages.append(Message("user", answers or self.skills.section(self.skill, "No Call")))
        return messages

    def _cut(self, answer: ToolAnswer) -> ToolAnswer:
        text = answer.content
        if len(text) <= _CUT_ABOVE_CHARS:
            return answer
        told = self.skills.render(SKILL, "Answers", "Condensed", count=f"{len(text) - 2 * _CUT_PART_CHARS:,}").strip()
        return replace(answer, content=f"{text[:_CUT_PART_CHARS]}\n{told}\n{text[-_CUT_PART_CHARS:]}")

    def _left(self, steps: Sequence[CodingStep]) -> str:
        """Return the text about what is left of the limits: every ten steps, and after each of the last; else ""."""
        tokens, _ = used(steps)
        after = max(used([one])[0] for one in steps)
        count, left = self.limits.steps - len(steps), max(0, self.limits.tokens - tokens)
        seconds = self.limits.seconds - max(0.0, (parse_iso(steps[-1].at) - self.began).total_seconds())
        is_last = count <= _LAST_STEPS or left <= _LAST_STEPS * after or seconds <= _LAST_S
        if not is_last and len(steps) % _TOLD_EVERY_STEPS:
            return ""
        words = {"steps": str(count), "tokens": f"{left:,}", "minutes": f"{max(0.0, seconds) / _MINUTE_S:.0f}"}
        page, part = (self.skill, "Nearly Over") if is_last else (SKILL, "Left")
        return self.skills.render(page, "Answers", part, **words).strip()


def cut_before(steps: Sequence[CodingStep]) -> int:
    """Return how many of the first steps have their answers shortened. It grows in blocks as steps are added."""
    sizes = [sum(len(answer.content) for answer in step.answers or ()) for step in steps]
    cut, whole = 0, 0
    for at, size in enumerate(sizes):
        whole += size
        if whole > _WHOLE_CHARS:
            while cut < at and whole > _WHOLE_CHARS // 3:
                whole -= sizes[cut]
                cut += 1
    return cut


_ANSWER_TOKENS = 8_000
_SUMMARY_CHARS = 2_000


class HeldBudget(Protocol):
    """Reserves a part of the day's budget for one purpose."""

    async def hold(self, purpose: str, *, tokens: int, usd: float | None) -> None:
        """Reserve this much instead of the earlier amount. Raises `BudgetExceeded` if less is left of the day."""
        ...

    async def let_go(self, purpose: str) -> None:
        """Release what is left of the reservation."""
        ...


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """Codes one task at a time.

    Attributes:
        attention: held while the model is asked; programs may run while the SOUL does something else.
        sandbox: runs programs.
        profile: returns the SOUL's public profile.

    """

    gateway: LLMGateway
    skills: Skills
    sandbox: Sandbox
    store: Trajectories
    budget: HeldBudget
    attention: Attention
    clock: Clock
    limits: CodingLimits
    profile: Callable[[], Awaitable[str]]

    async def resume(self, job: CodingJob, room: CodingRoom) -> list[CodingStep]:
        """Return the steps that were paid for; carry out in the room those that were not carried out there yet.

        Raises `SoulError` if the sandbox does not work.
        """
        hands, steps = self._hands(room), list[CodingStep]()
        for step in await self.store.steps(job.key, job.epoch):
            undone = job.is_new or step.answers is None or len(step.answers) < len(step.calls)
            steps.append(await self._carried_out(job, hands, steps, step) if undone else step)
        return steps

    async def work(self, job: CodingJob, room: CodingRoom, begun: Sequence[CodingStep]) -> CodingEnd:
        """Do a job in a room, starting from the steps that `resume` returned, and return how it ended.

        Raises:
            BudgetExceeded: less is left of the day than a step may take; another call continues where this one ended.
            SoulError: the model or the sandbox does not work; another call continues as well.

        """
        hands, steps = self._hands(room), list(begun)
        skill = job.reporting.skill if job.reporting else SKILL
        conversation = CodingConversation(self.skills, self.limits, self.clock.now(), skill)
        try:
            async with self.clock.timeout(self.limits.seconds):
                while (end := _end_of(steps) or end_before_step(steps, self.limits)) is None:
                    steps.append(await self._step(job, hands, conversation, steps))
        except TimeoutError:
            end = CodingEnd("time")
        except PromptTooLong as error:
            end = CodingEnd("length", str(error))
        finally:
            await self.budget.let_go(PURPOSE)
        return end

    def _hands(self, room: CodingRoom) -> Hands:
        limits = suite_limits(self.limits.suite_seconds, self.limits.suite_bytes)
        return Hands(room, self.sandbox, self.limits.network, self.skills, limits)

    async def _step(
        self, job: CodingJob, hands: Hands, conversation: CodingConversation, steps: Sequence[CodingStep]
    ) -> CodingStep:
        _, usd = used(steps)
        left = None if self.limits.usd is None else self.limits.usd - usd
        system = f"{self.skills.section(conversation.skill, 'System Prompt')}\n\n{await self.profile()}".rstrip()
        await self.budget.hold(PURPOSE, tokens=set_aside(steps, self.limits), usd=left)
        async with self.attention.take(PURPOSE):
            result = await self.gateway.chat_with_tools(
                conversation.messages(job.message, steps),
                system=system,
                tools=_tools(job, hands),
                tool_choice="required",
                max_tokens=_ANSWER_TOKENS,
                purpose=PURPOSE,
                importance="commitment",
                facts=_facts(job, steps),
            )
        step = step_of(result, len(steps) + 1, self.clock.now(), None)
        await self.store.put(job.key, job.epoch, step)
        return await self._carried_out(job, hands, steps, step)

    async def _carried_out(
        self, job: CodingJob, hands: Hands, before: Sequence[CodingStep], step: CodingStep
    ) -> CodingStep:
        """Carry out a step and store the results. Calls after one that ends the job are dropped."""
        answers, tools = [] if job.is_new else list(step.answers or ()), _tools(job, hands)
        for call in step.calls[len(answers) :]:
            if job.reporting and call.name != FINISH and call.name in {one.name for one in job.reporting.specs}:
                earlier = [*(one for done in before for one in done.calls), *step.calls[: len(answers)]]
                answers.append(job.reporting.answer(call, earlier))
            elif unread := hands.unread(call, tools):
                answers.append(unread)
            elif call.name == FINISH:
                done = [pair for one in before for pair in zip(one.calls, one.answers or (), strict=False)]
                answers.append(await self._finished(job, hands, [*done, *zip(step.calls, answers, strict=False)], call))
            elif call.name == BLOCKED:
                answers.append(ToolAnswer(call.id, call.name, ""))
            else:
                answers.append(await hands.carry_out(call, tools))
            if _is_end(call, answers[-1]):
                break
            await self.store.put(job.key, job.epoch, replace(step, answers=tuple(answers)))
        carried_out = replace(step, calls=step.calls[: len(answers)], answers=tuple(answers))
        await self.store.put(job.key, job.epoch, carried_out)
        return carried_out

    async def _finished(
        self, job: CodingJob, hands: Hands, done: Sequence[tuple[ToolCall, ToolAnswer]], call: ToolCall
    ) -> ToolAnswer:
        """Accept that the job is finished, unless a check fails or the model has not seen its own changes."""
        check = job.check_found if job.check_found and _is_found(call) else job.check
        wrong = await check()
        if not wrong and not job.reporting and (diff := await hands.unseen(done, job.files)):
            wrong = self.skills.render(SKILL, "Answers", "Look First", diff=diff).strip()
        return ToolAnswer(call.id, call.name, wrong, is_error=bool(wrong))


def _end_of(steps: Sequence[CodingStep]) -> CodingEnd | None:
    """Return the end that the last step reached, or None."""
    if not steps or not steps[-1].calls or not steps[-1].answers:
        return None
    call = steps[-1].calls[-1]
    if not _is_end(call, steps[-1].answers[-1]):
        return None
    said = call.input.get("summary" if call.name == FINISH else "reason")
    text = clean(str(said or ""), is_ours=True)[:_SUMMARY_CHARS]
    if call.name == BLOCKED:
        return CodingEnd("blocked", text)
    described = clean(str(call.input.get(DESCRIPTION) or ""), is_ours=True)[:_SUMMARY_CHARS]
    return CodingEnd("finished", text, _is_found(call), described)


def _is_found(call: ToolCall) -> bool:
    """Return whether the model says that all of the work existed already."""
    return call.input.get(ALREADY_THERE) is True


def _tools(job: CodingJob, hands: Hands) -> list[ToolSpec]:
    """Return the tools of a job as the model sees them."""
    return [*hands.looking(), *job.reporting.specs] if job.reporting else hands.specs(is_round=job.is_round)


def _is_end(call: ToolCall, answer: ToolAnswer) -> bool:
    return call.name in {FINISH, BLOCKED} and not answer.is_error


def _facts(job: CodingJob, steps: Sequence[CodingStep]) -> TurnFacts:
    done = [
        ToolOutcome(call.name, failed=answer.is_error, text=str(call.input.get("path", "")))
        for step in steps
        for call, answer in zip(step.calls, step.answers or (), strict=False)
    ]
    task = CodingFacts(job.title, job.files, job.goal)
    return TurnFacts(job.reporting.facts if job.reporting else task, outcomes=tuple(done))

"""Runs a turn: asks the model, runs the tools that it calls, and returns it the results, until the turn ends.

Every turn is written to the journal when it ends or fails.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from adapters.web.spacing import Urgency, urgency
from common.clock import Clock, iso
from common.errors import Fatal, ModelRefused, PromptTooLong, SoulError, Transient
from common.facts import About, AgentFacts, ToolOutcome, TurnFacts
from common.provenance import Provenance
from common.session_keys import is_main
from common.text.untrusted import one_line
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import CUT_OFF, Entry, Stopped
from modules.runtime.llm.dialect import (
    LLM_MAX_TOOL_RESULT_CHARS,
    ChatResult,
    Message,
    PromptBlock,
    Text,
    ToolAnswer,
    ToolCall,
    ToolChoice,
    ToolSpec,
    Usage,
    create_assistant_tool_use_message,
    create_tool_result_message,
    longest_answer,
    with_shorter_answers,
)
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.prompt.estimate import tool_tokens
from modules.services.agent.prompt.fitting import PromptPart, SystemPrompt, placed, room_beside
from modules.services.agent.prompt.prompter import TurnPrompt
from modules.services.agent.tools.executor import Executor, KnownAccount, Resolve, look_up_named
from modules.services.agent.tools.policy import (
    lower_provenance,
    place_in_answer,
)
from modules.services.agent.tools.types import OwnerRequest, ToolResult, Turn
from modules.services.agent.turn.calls import CallHistory
from modules.services.sessions.sessions import Sessions
from modules.services.sessions.types import blocks, said_since, tokens_of
from modules.services.work.types import Disposition

MAX_TOOL_ROUNDS = 12

TURN_WALL_CLOCK_S = 600.0

_LEAST_ANSWER_CHARS = 1_000
"""Tool results are never shortened below this, however little room there is."""

Fits = Callable[[Sequence[Message], Sequence[ToolSpec]], bool]
"""Returns whether the model has room for a conversation and the tools offered in it."""

Keep = Callable[[Sequence[tuple[Message, Provenance]]], Awaitable[object]]
"""Stores new messages, each with the provenance of the least trusted words behind it, before it returns."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The result of a turn.

    `text` is the model's last text, `said` all that it said since the last words of a user, also before a restart, both
    without secrets; `usage` the sum over all rounds; `provenance` that of the least trusted words in the turn;
    `refusal` the model service's own reason for giving no answer.
    """

    text: str
    calls: tuple[tuple[ToolCall, ToolResult], ...]
    rounds: int
    usage: Usage
    stopped: Stopped
    provenance: Provenance
    refusal: str = ""
    said: str = ""

    @property
    def cut_off(self) -> str:
        """Why the turn stopped early, in words; "" if it did not."""
        why = CUT_OFF.get(self.stopped, "")
        return f"{why}: {self.refusal}" if self.refusal else why


async def run_turn(
    *,
    gateway: LLMGateway,
    executor: Executor,
    turn: Turn,
    system: str | Sequence[PromptBlock],
    messages: Sequence[Message],
    purpose: str,
    clock: Clock,
    keep: Keep | None = None,
    tool_choice: ToolChoice = "auto",
    nudge: str = "",
    max_rounds: int = MAX_TOOL_ROUNDS,
    wall_clock_s: float = TURN_WALL_CLOCK_S,
    only: Collection[str] | None = None,
    facts: TurnFacts | None = None,
    fits: Fits = lambda *_: True,
) -> TurnResult:
    """Run one turn with the tools that exist in `turn`.

    Args:
        gateway: the model.
        executor: runs the model's calls, one after the other.
        turn: the turn as it begins, with its provenance.
        system: the system prompt.
        messages: the conversation so far.
        purpose: one word for the records.
        clock: measures the wall clock.
        keep: receives each round of calls with its answers, and the last text.
        tool_choice: any value but `auto` applies to every round, so one of the tools must end the turn.
        nudge: sent once if a required call is missing.
        max_rounds: how often the model may be asked.
        wall_clock_s: seconds after which no new round begins; a running request is not interrupted.
        only: narrows the tools by name.
        facts: what the turn is about, as data; each round adds the outcomes of the calls.
        fits: whether there is room for the conversation; if not, tool results are shortened.

    Raises:
        PromptTooLong: from the model, even with the shortest tool results.
        Fatal: from the model or from a tool.
        Transient: the model is unavailable, and no tool was called yet.
        SoulError: the model rejects the request.

    """
    session = _Session(
        gateway, executor, turn, system, purpose, tool_choice, nudge, only, keep, facts, fits, list(messages)
    )
    deadline = clock.monotonic() + wall_clock_s
    for _ in range(max_rounds):
        if clock.monotonic() >= deadline:
            return await session.finish("time")
        stopped = await session.round()
        if stopped:
            return await session.finish(stopped)
    return await session.finish("rounds")


@dataclass(slots=True)
class _Session:
    """The state of a running turn."""

    gateway: LLMGateway
    executor: Executor
    turn: Turn
    system: str | Sequence[PromptBlock]
    purpose: str
    tool_choice: ToolChoice
    nudge: str
    only: Collection[str] | None
    keep: Keep | None
    facts: TurnFacts | None
    fits: Fits
    conversation: list[Message]
    answer_chars: int = LLM_MAX_TOOL_RESULT_CHARS
    text: str = ""
    calls: list[tuple[ToolCall, ToolResult]] = field(default_factory=list)
    rounds: int = 0
    refusal: str = ""
    usage: Usage = field(default_factory=Usage)
    history: CallHistory = field(default_factory=CallHistory)
    rejected: str = ""
    checked: str = ""
    unkept: str = ""

    async def round(self) -> Stopped | None:
        """Ask the model once and run its calls; return why to stop, or None. The gateway limits each request's time."""
        try:
            result = await self._ask()
        except SoulError as error:
            has_answer = self.rejected and (isinstance(error, ModelRefused) or not isinstance(error, Fatal))
            if has_answer or (self.calls and isinstance(error, Transient)):
                return "interrupted"
            raise
        self.rounds += 1
        self.text = self.executor.redactor.text(result.text) or self.text
        self.usage += result.usage
        if result.refusal:
            self.refusal = self.executor.redactor.text(result.refusal)
            return "refused"
        if not result.tool_calls:
            return await self._without_calls(result.text)
        return await self._run(result)

    async def finish(self, stopped: Stopped) -> TurnResult:
        """Return the result; a note by the program follows a text that reports what was not done."""
        note = ""
        if self.rejected and not self.text:
            note = self.executor.told("Nothing Done") if self._not_done() else ""
            self.text = self.rejected if note else ""
        elif self.text != self.checked and await self._is_false_report():
            note = self.executor.told("Nothing Done")
        said = self._said()
        if note:
            said = f"{said}\n\n{note}"
            self.text = self.unkept = f"{self.text.strip()}\n\n{note}"
        if self.unkept.strip():
            await self._add(Message("assistant", self.unkept))
        calls, provenance = tuple(self.calls), self.turn.provenance
        return TurnResult(self.text, calls, self.rounds, self.usage, stopped, provenance, self.refusal, said)

    async def _ask(self) -> ChatResult:
        """Ask the model, with the tool results shortened until the request fits."""
        tools = self._offered(self.turn)
        while not self.fits(self._shown(), tools) and self._shorten():
            pass
        while True:
            try:
                return await self._ask_with(self._shown(), tools)
            except PromptTooLong:
                if not self._shorten():
                    raise

    def _shown(self) -> list[Message]:
        whole = self.answer_chars == LLM_MAX_TOOL_RESULT_CHARS
        return self.conversation if whole else with_shorter_answers(self.conversation, self.answer_chars)

    def _shorten(self) -> bool:
        """Halve the length limit of tool results from now on; return False if it was at its minimum already."""
        longest = min(longest_answer(self.conversation), self.answer_chars)
        self.answer_chars = max(longest // 2, _LEAST_ANSWER_CHARS)
        return longest > _LEAST_ANSWER_CHARS

    async def _ask_with(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> ChatResult:
        return await self.gateway.chat_with_tools(
            conversation,
            system=self.system,
            tools=tools,
            tool_choice=self.tool_choice,
            purpose=self.purpose,
            importance=self.turn.importance,
            facts=replace(self.facts, outcomes=tuple(map(_outcome, self.calls))) if self.facts else None,
        )

    async def _without_calls(self, text: str) -> Stopped | None:
        said = self.executor.redactor.text(text)
        if self.tool_choice == "auto":
            if not self.rejected and await self._is_false_report():
                problem = self.executor.told("False Report", done=self._not_done())
                self.rejected = self._said()
                self.conversation += [Message("assistant", self.text or self.rejected), Message("user", problem)]
                self.text = ""
                return None
            self.checked, self.unkept = "" if self.rejected else self.text, said
            return "ended"
        if not self.nudge:
            return "no_calls"
        self.conversation += [Message("assistant", said), Message("user", self.nudge)]
        self.nudge = ""
        return None

    def _said(self) -> str:
        return said_since([*self.conversation, Message("assistant", self.text)])

    async def _is_false_report(self) -> bool:
        """Return whether the text for the owner reports an act for their line that was not done."""
        said = self._said() if self.tool_choice == "auto" else ""
        done = self._not_done() if said else ""
        return bool(done) and await self.executor.is_false_report(said, self.turn, done)

    def _not_done(self) -> str:
        """Return the calls since the owner's line, in words; "" if one of them did something."""
        before = self.turn.request.called if self.turn.request else ()
        since = (_answer_of(call, result, "") for call, result in self.calls)
        return self.executor.not_done((*before, *since))

    async def _add(self, *messages: Message) -> None:
        """Add messages to the conversation, and store them before anything else happens."""
        self.conversation += messages
        if self.keep:
            await self.keep([(message, self.turn.provenance) for message in messages])

    async def _run(self, result: ChatResult) -> Stopped | None:
        """Run the calls of an answer, those that end the turn last; return why the turn stops, or None.

        They are judged by the words that had come in when the model wrote them: no call can hold words of a later one.
        """
        calls, places = result.tool_calls, [self.executor.place(call, self.turn) for call in result.tool_calls]
        written, this = self.turn, self.history.begin(calls, places)
        answers: dict[int, ToolAnswer] = {}
        for number in sorted(range(len(calls)), key=places.__getitem__):
            call, place = calls[number], places[number]
            # NOTE(self): a call with a secret is never left out, since the executor refuses it and tells the owner.
            has_secret = self.executor.redactor.finds_in(call.input)
            if why := "" if has_secret else this.left_out(call, place):
                outcome, known = self.executor.skip(call, why, undone=", ".join(this.undone)), ""
            else:
                outcome = await self.executor.execute(call, written, self.only, self.conversation)
                is_known = this.add(call, outcome, is_undone=self.executor.is_undone(call, outcome))
                known = self.executor.told("Failed Twice", may_retry=place > 0) if is_known else ""
            before, self.turn = self.turn, lower_provenance(self.turn, outcome.provenance)
            self.calls.append((call, outcome))
            told = "\n".join(filter(None, (outcome.content, known, self._lost_since(before))))
            answers[number] = _answer_of(call, outcome, told)
        redactor = self.executor.redactor
        asked = [replace(call, input=redactor.value(call.input)) for call in calls]
        told_all = create_tool_result_message(answers[number] for number in sorted(answers))
        await self._add(create_assistant_tool_use_message(redactor.text(result.text), asked), told_all)
        return self.history.end(this)

    def _lost_since(self, before: Turn) -> str:
        """Return what to tell the model about tools that it had `before` and lost since; "" for none."""
        if before == self.turn:
            return ""
        left = {spec.name for spec in self._offered(self.turn)}
        lost = [spec.name for spec in self._offered(before) if spec.name not in left]
        return self.executor.told_lost(lost, self.turn) if lost else ""

    def _offered(self, turn: Turn) -> list[ToolSpec]:
        """Return the tools as the model sees them, without those that failed twice in the same way."""
        named = {tool.name: tool for tool in self.executor.registry}
        specs = self.executor.registry.specs(turn, self.only, self.conversation)
        return [one for one in specs if one.name not in self.history.failed or place_in_answer(named[one.name], turn)]


def _answer_of(call: ToolCall, result: ToolResult, told: str) -> ToolAnswer:
    return ToolAnswer(call.id, call.name, told, result.is_error, result.outcome.held)


def _outcome(called: tuple[ToolCall, ToolResult]) -> ToolOutcome:
    call, result = called
    return ToolOutcome(
        call.name,
        failed=result.is_error,
        held=result.outcome.held,
        act=result.outcome.act,
        draft=result.draft,
        text=str(call.input.get("text", "")),
        url=result.url,
        words=result.words,
    )


@dataclass(frozen=True, slots=True)
class TurnRunner:
    """Runs the turns of all lives.

    Attributes:
        gateway: the model.
        executor: the tools.
        clock: the time of each turn.
        journal: records each turn and its usage.
        sessions: stores the conversations.
        estimate: returns the tokens of a text.
        context_tokens: returns how many tokens the model takes in one request.
        nudge: returns the message to a model that forgot to call a tool.
        on_told: receives each prompt that a model has answered.
        resolve: looks up a handle that the owner's words name.
        known: returns the accounts that these words may name without a handle.
        agent: returns who the SOUL is, as data for a model service that reads it.

    """

    gateway: LLMGateway
    executor: Executor
    clock: Clock
    journal: Journal
    sessions: Sessions
    estimate: Callable[[str], int]
    context_tokens: Callable[[], int]
    nudge: Callable[[], str]
    on_told: Callable[[TurnPrompt], None]
    resolve: Resolve
    known: Callable[[], Awaitable[Collection[KnownAccount]]]
    agent: Callable[[], AgentFacts] = AgentFacts

    def offered(self, turn: Turn, only: Collection[str]) -> tuple[str, ...]:
        """Return the names in `only` that the turn offers as tools; a prompt must name no others."""
        return tuple(tool.name for tool in self.executor.registry.available(turn, only))

    async def accounts_in(self, text: str) -> dict[str, str]:
        """Return the DIDs of the handles in a task that the SOUL or its owner wrote, by handle in lower case."""
        task = OwnerRequest(text)
        await look_up_named(task, self.resolve)
        return {handle: did for handle, did in task.named.items() if did}

    def room(
        self, system: SystemPrompt, turn: Turn, only: Collection[str] | None = None, messages: Sequence[Message] = ()
    ) -> int:
        """Return how many tokens of conversation fit beside the prompt and the tools that `messages` have opened.

        Raises:
            PolicyBlocked: the prompt and the tools alone are too large.

        """
        tools = tool_tokens(self.executor.registry.specs(turn, only, messages), self.estimate)
        return room_beside(system.parts, context_tokens=self.context_tokens(), tool_tokens=tools)

    async def run_turn(
        self,
        *,
        turn: Turn,
        system: TurnPrompt,
        messages: Sequence[Message],
        purpose: str,
        tool_choice: ToolChoice = "auto",
        max_rounds: int = MAX_TOOL_ROUNDS,
        only: Collection[str] | None = None,
        session_id: str = "",
        about: About | None = None,
    ) -> TurnResult:
        """Run one turn and record it in the journal. Other arguments and errors are those of the function `run_turn`.

        With a `session_id`, each message of the turn is stored in that conversation at once; the caller stores the
        message that the turn answers beforehand. `about` says as data what the turn is about.

        Raises:
            PolicyBlocked: also if there is no room for any conversation.

        """
        asks = Urgency.AT_ONCE if turn.importance == "owner" else Urgency.AHEAD
        if turn.request:
            with urgency(asks):
                await look_up_named(turn.request, self.resolve, await self.known())
        turn = lower_provenance(turn, system.provenance)
        turn.files.update(system.files)
        room = self.room(system, turn, only, messages)
        tools = tool_tokens(self.executor.registry.specs(turn, only, messages), self.estimate)
        stable, shown = placed(system.blocks, messages, may_go_on=is_main(system.session_key))
        given = {
            "purpose": purpose,
            "began": iso(self.clock.now()),
            "provenance": turn.provenance.name.lower(),
            "importance": turn.importance,
            "prompt": [asdict(part) for part in (*system.parts, _conversation(messages))],
            "memories": list(system.memories),
        }
        try:
            with urgency(asks):
                turn_result = await run_turn(
                    gateway=self.gateway,
                    executor=self.executor,
                    clock=self.clock,
                    nudge=self.nudge(),
                    turn=turn,
                    system=stable,
                    messages=shown,
                    purpose=purpose,
                    tool_choice=tool_choice,
                    max_rounds=max_rounds,
                    only=only,
                    keep=partial(self.sessions.add, session_id) if session_id else None,
                    facts=self._facts(about, system.own_skills),
                    fits=partial(self._fits, room + tools + self._tokens(shown) - self._tokens(messages)),
                )
        except SoulError as error:
            summary = f"Thinking about {purpose} failed"
            data = {**given, "failed": type(error).__name__}
            await self.journal.record(Entry("model", turn.loop, summary, None, str(error), turn.cause_id, data=data))
            raise
        self.on_told(system)
        if session_id:
            await self.sessions.count(session_id, turn_result.usage)
        await self._tell(turn_result, turn, given)
        return turn_result

    def _tokens(self, messages: Sequence[Message]) -> int:
        return sum(tokens_of(message, self.estimate) for message in messages)

    def _fits(self, most_tokens: int, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bool:
        return self._tokens(messages) + tool_tokens(tools, self.estimate) <= most_tokens

    def _facts(self, about: About | None, own_skills: str) -> TurnFacts | None:
        if not self.gateway.reads_facts:
            return None
        return TurnFacts(about, self.agent(), iso(self.clock.now()), own_skills=own_skills)

    async def _tell(self, turn_result: TurnResult, turn: Turn, given: dict[str, Any]) -> None:
        cut_off, why, about = turn_result.cut_off, turn_result.cut_off or turn_result.stopped, given["purpose"]
        summary = f"Thinking about {about} ended early" if cut_off else f"Thought about {about}"
        data = {
            **given,
            "sank_to": turn_result.provenance.name.lower(),
            "model": turn_result.usage.model or self.gateway.model,
            "rounds": turn_result.rounds,
            "input_tokens": turn_result.usage.input_tokens,
            "cached_tokens": turn_result.usage.cached_tokens,
            "output_tokens": turn_result.usage.output_tokens,
            "usd": turn_result.usage.cost_usd,
            "step": turn_result.usage.step,
            "calls": [_call(call, result) for call, result in turn_result.calls],
            **({"cut_off": turn_result.stopped} if cut_off else {}),
        }
        entry = Entry("model", turn.loop, summary, "warn" if cut_off else None, why, turn.cause_id, data=data)
        await self.journal.record(replace(entry, provenance=min(turn_result.provenance, turn.told_of)))


def _call(call: ToolCall, result: ToolResult) -> dict[str, Any]:
    said = {"tool": call.name, "input": call.input, "error": result.content if result.is_error else ""}
    more = {
        "intent_id": result.outcome.intent_id,
        "went_wrong": result.went_wrong,
        "malformed": result.malformed,
        "answer": result.answer,
    }
    return said | {name: value for name, value in more.items() if value}


def _conversation(messages: Sequence[Message]) -> PromptPart:
    said = (block for item in messages for block in blocks(item))
    return PromptPart("conversation", sum(len(block.text) for block in said if isinstance(block, Text)))


_WISH_CHARS = 120


def chosen_in(result: TurnResult, code: str, reason: str = "") -> Disposition:
    """Return the disposition that a turn chose: that of the tool that ended it, or `undecided` if none did.

    `reason` is used if the model gave none.
    """
    for _, answer in reversed(result.calls):
        if answer.ends_turn:
            chosen = answer.outcome
            return replace(
                chosen,
                code=code,
                reason=chosen.reason or reason,
                wish=one_line(chosen.wish, _WISH_CHARS),
                provenance=result.provenance,
                is_chosen=not answer.is_error,  # a blocked act ends the turn because of a rule, not by choice
            )
    why = f": {result.cut_off}" if result.cut_off else ""
    reason = f"the model chose nothing that works{why}"
    return Disposition("undecided", code, reason, provenance=result.provenance)

"""Registers the tools, offers those that exist in a turn, and runs the model's calls after checking that again.

Nothing here survives a crash; a handler that acts in public passes an intent to the outbox, which does.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TypeAlias

from pydantic import BaseModel, ValidationError

from common.errors import Fatal, SoulError
from common.provenance import Provenance
from common.redact import LEAK, Redactor
from common.result import ApiResult, Ok
from common.schemas import in_words
from common.text.graphemes import leading_sentences, shortened
from common.text.handles import given_handles, linked_handles
from common.text.untrusted import one_line
from modules.runtime.console import Console
from modules.runtime.llm.dialect import Message, ToolAnswer, ToolCall, ToolSpec
from modules.services.agent.tools.policy import (
    allowed,
    approval_reason,
    explain,
    hidden_fields,
    in_owner_words,
    is_order_open,
    is_said,
    left_out,
    place_in_answer,
    shown_call,
    taken_fields,
    withheld_fields,
    without_empty_options,
)
from modules.services.agent.tools.types import OwnAct, OwnerRequest, Tool, ToolResult, Turn
from modules.services.agent.verdicts import SAID_CHARS, YesNoJudge
from modules.services.skills.skills import Skills
from modules.services.skills.tool_schema import simple_schema
from modules.services.work.types import Disposition

MORE_TOOLS = "more_tools"
"""The tool that opens the family that its field `family` names."""


class Registry:
    """The tools of one life.

    Args:
        tools: all of them, in the order in which the model sees them.
        social_only: whether this life has only `social` and `self` tools.
        families: a line on what each family does, by its name, for the description of `MORE_TOOLS`.

    Raises:
        ValueError: two tools have the same name.
        SkillError: a skill describes a field that its tool does not have.

    """

    def __init__(self, tools: Sequence[Tool], *, social_only: bool, families: Mapping[str, str] = {}) -> None:
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            raise ValueError("two tools have the same name")
        self._social_only = social_only
        self._families = families
        self._specs = {(tool.name, tool.description, frozenset[str]()): _spec(tool) for tool in tools}

    def available(self, turn: Turn, only: Collection[str] | None = None) -> list[Tool]:
        """Return the tools that exist in `turn`; `only` narrows them further by name."""
        return [
            tool
            for tool in self._tools.values()
            if allowed(tool, turn, social_only=self._social_only) and (only is None or tool.name in only)
        ]

    def specs(
        self, turn: Turn, only: Collection[str] | None = None, opened_by: Sequence[Message] | None = None
    ) -> list[ToolSpec]:
        """Return the tools of a turn as the model sees them.

        With `opened_by`, the conversation so far, tools of a family are left out until a call in it asks for the family
        or for one of its tools; the family opened last comes last. Tools named by `only` are never left out.
        """
        tools = self.available(turn, only)
        if opened_by is not None and only is None:
            usable = {tool.family for tool in tools}
            shown = [tool for family in ("", *self._opened(opened_by)) for tool in tools if tool.family == family]
            tools = [self._listing(tool, usable) if tool.name == MORE_TOOLS else tool for tool in shown]
        return [self._shown(tool, hidden_fields(tool, turn)) for tool in tools]

    def _listing(self, tool: Tool, usable: Collection[str]) -> Tool:
        """Return the tool that opens families, with those that have a tool in the turn in its description."""
        lines = (f"{family}: {does}" for family, does in self._families.items() if family in usable)
        return replace(tool, description="\n".join((tool.description, *lines)))

    def _opened(self, conversation: Sequence[Message]) -> list[str]:
        """Return the families that the calls in a conversation opened, in that order."""
        said = (block for message in conversation if not isinstance(message.content, str) for block in message.content)
        calls = [block for block in said if isinstance(block, ToolCall)]
        asked = (
            str(call.input.get("family", "")).strip() if call.name == MORE_TOOLS else self._family(call.name)
            for call in calls
        )
        return [family for family in dict.fromkeys(asked) if family]

    def _family(self, name: str) -> str:
        tool = self._tools.get(name)
        return tool.family if tool else ""

    def _shown(self, tool: Tool, hidden: frozenset[str]) -> ToolSpec:
        """Return the tool without the `hidden` fields; the same object each time."""
        key = tool.name, tool.description, hidden
        if key not in self._specs:
            self._specs[key] = _spec(tool, hidden)
        return self._specs[key]

    def __iter__(self) -> Iterator[Tool]:
        """Iterate over all tools, whether or not any turn may use them."""
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """Return the tool of that name, whether or not any turn may use it, or None."""
        return self._tools.get(name)


def _spec(tool: Tool, hidden: Collection[str] = ()) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, simple_schema(tool.input_model, tool.fields, without=hidden))


_ERROR_LENGTH = 300
_DEED_CHARS = 200
_END_CHARS = 1_000
"""How many characters of the beginning and of the end of a long answer the judge is shown."""
_SKILL = "tool-calls"


@dataclass(slots=True)
class Executor:
    """Executes calls one at a time.

    Attributes:
        registry: the tools that exist.
        skills: has the answers to calls that did not run.
        on_call: receives every call with its result; `result.traceback` is set if a handler broke.
        redactor: removes secrets from results; a call that holds a secret is refused.
        console: where the owner is told of such a call.
        judge: judges whether the owner's line asks for an act that follows a look; None to judge nothing.
        asks_assent: whether it also judges if the line says yes to a question, as when each act needs approval.

    """

    registry: Registry
    skills: Skills
    _: KW_ONLY
    on_call: Callable[[ToolCall, ToolResult, Turn], None] | None = None
    redactor: Redactor = field(default_factory=Redactor)
    console: Console | None = None
    judge: YesNoJudge | None = None
    asks_assent: bool = False

    async def execute(
        self,
        call: ToolCall,
        turn: Turn,
        only: Collection[str] | None = None,
        opened_by: Sequence[Message] = (),
    ) -> ToolResult:
        """Return the result of `call`; any failure except `Fatal` becomes an error for the model to read.

        The error of a call to an unknown tool lists the tools that `Registry.specs` shows.
        """
        result = await self._result(call, turn, only, opened_by)
        result = replace(result, content=self.redactor.text(result.content))
        if self.on_call:
            self.on_call(call, result, turn)
        return result

    async def _result(
        self, call: ToolCall, turn: Turn, only: Collection[str] | None, opened_by: Sequence[Message]
    ) -> ToolResult:
        offered = {tool.name: tool for tool in self.registry.available(turn, only)}
        tool = offered.get(call.name)
        if tool is None:
            names = ", ".join(one.name for one in self.registry.specs(turn, only, opened_by)) or "none"
            if self.registry.get(call.name) is not None:
                before = self.registry.available(replace(turn, provenance=turn.asked_by), only)
                is_lost = turn.request is not None and call.name in {one.name for one in before}
                return self._answer("Not Available", "Blocked", tool=call.name, names=names, is_lost=is_lost)
            return self._answer("Unknown", tool=repr(call.name), names=names)
        if self.redactor.finds_in(call.input):
            if self.console:
                self.console.line("error", f"Refused {call.name}: {LEAK}", turn.cause_id or turn.loop)
            return self._answer("Secret", "BLOCKED", problem=LEAK)
        if call.malformed:
            return replace(self._answer("Malformed", tool=call.name, problem=call.malformed), malformed=True)
        arguments = self._arguments(tool, call, turn)
        if isinstance(arguments, ToolResult):
            return arguments
        result = await self._run_in_order(tool, arguments, turn)
        if ignored := left_out(arguments, call.input):
            told = self.skills.render(_SKILL, "Answers", "Left Out", fields=ignored).strip()
            result = replace(result, content=f"{result.content}\n{told}")
        return result

    async def _run_in_order(self, tool: Tool, arguments: BaseModel, turn: Turn) -> ToolResult:
        """Run a call; first ask the judge if it is open whether the owner's line asks for it."""
        held = approval_reason(tool, turn)
        if not (is_order_open(tool, turn) and turn.request):
            turn, refused = await self._assented(tool, arguments, turn)
            if refused and not (self.asks_assent and tool.holdable):
                return self._answer("Not Ordered", "Blocked", tool=tool.name, reason=refused, is_mixed=False)
            return await self._run(tool, arguments, replace(turn, hold=refused or held))
        own = await tool.own_act(arguments, turn) if tool.own_act else None
        theirs = in_owner_words(turn.request, arguments, tool, own)
        open_order = await self._not_ordered(tool, theirs, own, turn)
        if open_order and turn.provenance < tool.needs and not held:
            return self._answer("Not Ordered", "Blocked", tool=tool.name, reason=open_order, is_mixed=True)
        hold = f"{held}: {open_order or self._lacking(is_asked=True)}" if held else ""
        if open_order:
            return await self._run(tool, arguments, replace(turn, hold=hold))
        kept = [name for name, value in theirs if value != getattr(arguments, name)]
        written = arguments if kept else None
        result = await self._run(tool, theirs, replace(turn, hold=hold, is_ordered=True, written=written))
        if not kept or result.is_error:
            return result
        told = self.skills.render(
            _SKILL, "Answers", "In Owner Words", fields=", ".join(kept), is_change=own is not None
        )
        return replace(result, content=f"{result.content}\n{told.strip()}")

    async def _assented(self, tool: Tool, arguments: BaseModel, turn: Turn) -> tuple[Turn, str]:
        """Return the turn for a call, with the SOUL's question added to the owner's words if their line agrees to it.

        Also return why the line does not order what the question names if a judge found so; else "". Only a
        conversation without others' words counts; what the question does not give of the call is not the owner's.
        """
        request, is_asked = turn.request, tool.needs_name or (self.asks_assent and tool.holdable)
        if not (self.judge and is_asked and request and request.said_before):
            return turn, ""
        if min(turn.provenance, request.said_among) is not Provenance.OWNER:
            return turn, ""
        own = await tool.own_act(arguments, turn) if tool.own_act else None
        question = request.said_before[-SAID_CHARS:]
        # NOTE(self): handles in the question are added to a copy, for this call alone.
        both = replace(request, text=f"{request.text}\n{question}", named={**request.named}, question=question)
        _, missing = await _shown(self.judge, tool, arguments, own, request)
        if not missing or (await _shown(self.judge, tool, arguments, own, both))[1]:
            return turn, ""
        refused = await self._not_ordered(tool, arguments, own, turn, both=both)
        return (turn, refused) if refused else (replace(turn, request=both, is_ordered=True), "")

    async def _not_ordered(
        self, tool: Tool, arguments: BaseModel, own: OwnAct | None, turn: Turn, *, both: OwnerRequest | None = None
    ) -> str:
        """Return why the owner's line does not ask for this call: arguments are missing, or a judge said no; else "".

        With `both`, the line or the question before it must give the arguments. The judge sees what the SOUL said
        before; if that rests on others' words, only for a call that ends or moves an act of the SOUL's own.
        """
        request = turn.request
        if self.judge is None or request is None:
            return self._lacking()
        shown, missing = await _shown(self.judge, tool, arguments, own, both or request)
        if missing:
            return self._lacking(field=missing, is_held=tool.holdable)
        deed = leading_sentences(tool.description, _DEED_CHARS) or shortened(tool.description, _DEED_CHARS)
        said = request.said_before if own or request.said_among >= Provenance.SELF else ""
        ordered = await self.judge.is_ordered(f"{deed} ({shown})", request.text, said, turn)
        return "" if ordered else self._lacking()

    def _lacking(self, *, field: str = "", is_asked: bool = False, is_held: bool = False) -> str:
        """Return what the owner's line lacks to order a call, as text for the owner and the model."""
        return self.skills.render(
            _SKILL, "Answers", "Line Lacks", field=field, is_asked=is_asked, is_held=is_held
        ).strip()

    def _arguments(self, tool: Tool, call: ToolCall, turn: Turn) -> BaseModel | ToolResult:
        """Return the validated arguments of a call, or the error for the model."""
        sent = without_empty_options(tool.input_model, call.input)
        if withheld := sorted(withheld_fields(tool, turn) & sent.keys()):
            takes = taken_fields(tool, turn)
            return self._answer("Withheld Fields", tool=tool.name, fields=", ".join(withheld), takes=takes)
        try:
            return tool.input_model.model_validate(sent, extra="ignore" if tool.effect == "look" else "forbid")
        except ValidationError as error:
            problem, takes = explain(tool, turn, error)
            return replace(self._answer("Wrong Fields", tool=tool.name, problem=problem, takes=takes), malformed=True)

    def not_done(self, calls: Iterable[ToolAnswer]) -> str:
        """Return the calls in words if none of them acted, else ""."""
        told: list[str] = []
        for call in calls:
            tool = self.registry.get(call.name)
            state = "failed" if call.is_error else "held" if call.is_held else ""
            if not state and tool and tool.effect == "act":
                return ""
            told.append(f"{call.name} ({state or 'look'})")
        return ", ".join(dict.fromkeys(told)) or "nothing"

    async def is_false_report(self, text: str, turn: Turn, done: str) -> bool:
        """Return whether a judge finds that `text` reports an act for the owner's line that is not in `done`."""
        if not (self.judge and turn.request):
            return False
        shown = text if len(text) <= 2 * _END_CHARS else f"{text[:_END_CHARS]} … {text[-_END_CHARS:]}"
        return await self.judge.is_false_report(shown, turn.request.text, done, turn)

    def told(self, name: str, **values: object) -> str:
        """Return a text of the skill for the model, or for the owner (`Nothing Done`)."""
        return self.skills.render(_SKILL, "Answers", name, **values).strip()

    def place(self, call: ToolCall, turn: Turn) -> int:
        """Return when a call is carried out among those of one answer, as `place_in_answer` does."""
        tool = self.registry.get(call.name)
        return place_in_answer(tool, turn) if tool else 0

    def is_undone(self, call: ToolCall, result: ToolResult) -> bool:
        """Return whether a call that should have acted failed, or waits for the owner's approval."""
        tool = self.registry.get(call.name)
        return (result.is_error or result.outcome.held) and (tool is None or tool.effect == "act")

    def skip(self, call: ToolCall, why: str, **values: object) -> ToolResult:
        """Return the answer to a call that is not carried out because of others in its turn."""
        return replace(self._answer(why, "SKIPPED", tool=call.name, **values), outcome=Disposition("silent"))

    def told_lost(self, names: Collection[str], turn: Turn) -> str:
        """Return what the model is told about tools that it lost because a call brought in others' words."""
        return self.skills.render(
            _SKILL, "Answers", "Lost", names=", ".join(names), is_owners=turn.request is not None
        ).strip()

    async def _run(self, tool: Tool, arguments: BaseModel, turn: Turn) -> ToolResult:
        try:
            async with asyncio.timeout(tool.time_limit_s):
                return await tool.handler(arguments, turn)
        except Fatal:
            raise
        except TimeoutError:
            slow = self._answer("Too Slow", tool=tool.name, seconds=f"{tool.time_limit_s:g}")
            return replace(slow, went_wrong=True)
        except SoulError as error:
            refused = self._answer("Refused", tool=tool.name, problem=_said(error))
            return replace(refused, went_wrong=True)
        except ValidationError as error:
            refused = self._answer("Failed", tool=tool.name, problem=one_line(in_words(error), _ERROR_LENGTH))
            return replace(refused, went_wrong=True, traceback=traceback.format_exc())
        except Exception as error:
            broken = self._answer("Failed", tool=tool.name, problem=f"{type(error).__name__}: {_said(error)}")
            return replace(broken, provenance=Provenance.STRANGER, went_wrong=True, traceback=traceback.format_exc())

    def _answer(self, name: str, status: str = "Error", **values: object) -> ToolResult:
        """Return the answer to a call that did not run, with `status` in front to mark the failure."""
        told = self.skills.render(_SKILL, "Answers", name, **values).strip()
        return ToolResult(f"{status}: {told}", is_error=True, answer=name)


async def _shown(
    judge: YesNoJudge, tool: Tool, arguments: BaseModel, own: OwnAct | None, request: OwnerRequest
) -> tuple[str, str]:
    """Return a call as the judge is shown it, and ""; or "" and the first field that the owner's line lacks."""
    edits = ""
    if tool.as_edit:
        with suppress(SoulError):  # the handler meets the same failure and reports it
            arguments, edits = await tool.as_edit(arguments, request)
    shown, missing = shown_call(request, arguments, judge.local_now, own)
    return "; ".join(filter(None, (edits, shown))), missing


def _said(error: Exception) -> str:
    """Return the error on one line, cut, because it may quote untrusted text."""
    return one_line(str(error), _ERROR_LENGTH)


Resolve: TypeAlias = Callable[[str], Awaitable[ApiResult[str]]]
"""Looks up the current DID of a handle."""

KnownAccount: TypeAlias = tuple[str, str, str, bool]
"""An account that the SOUL met or follows: its DID, its handle, its display name, and whether it is followed."""

_MOST_NAMES = 10


async def look_up_named(request: OwnerRequest, resolve: Resolve, known: Collection[KnownAccount] = ()) -> None:
    """Add the account of each handle in the text to `request.named`, except those looked up before and those marked.

    A handle whose lookup fails transiently is looked up at the next call; one without an account is stored as "".
    A followed account in `known` also counts if the text holds its display name, or the first part of its handle, and
    no other known account has that name. Accounts that are not followed could call themselves by any word of the text.
    """
    marked = {words.removeprefix("@").lower() for words, _ in request.mentions}
    due = [
        (handle, dids)
        for handles, dids in ((given_handles, request.named), (linked_handles, request.linked))
        for handle in handles(request.text)[:_MOST_NAMES]
        if handle not in marked and handle not in dids
    ]
    found = await asyncio.gather(*(resolve(handle) for handle, _ in due))
    for (handle, dids), answer in zip(due, found, strict=True):
        if isinstance(answer, Ok):
            dids[handle] = answer.data
        elif answer.kind != "transient":
            dids[handle] = ""
    whose: dict[str, dict[str, str]] = {}
    followed = {did for did, _, _, is_followed in known if is_followed}
    for did, handle, shown_name, _ in known:
        for name in (handle.partition(".")[0], " ".join(shown_name.split())):
            whose.setdefault(name.lower(), {})[did] = handle
    for name, accounts in whose.items():
        if len(accounts) == 1 and accounts.keys() <= followed and is_said(name, request.text):
            ((did, handle),) = accounts.items()
            request.named.update({one: did for one in (name, handle.lower()) if one not in request.named})

"""The texts for the model about a family of tools, and the tools' answers: sections of one skill for each family."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import UnionType
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel

from common.provenance import Provenance
from common.result import Err, Unable, Undone
from common.text.untrusted import one_line
from common.wording import told_reason
from modules.services.agent.tools.types import TIME_LIMIT_S, Capability, Effect, OwnAct, Tool, ToolResult, Turn
from modules.services.outbox.types import Submitted
from modules.services.skills.skills import Skills
from modules.services.skills.tool_schema import read_description
from modules.services.work.types import Disposition

OWN_TOOLS = "own-tools"
REASON_CHARS = 300

READ_CHARS = 25_000
"""The most characters, as JSON, of a text that a tool reads: with its frame, the answer is then not cut once more."""
CUT = "characters_shown"
"""The field that only a text has of which not all is shown."""

Handler = Callable[[Any, Turn], Awaitable[ToolResult]]
T = TypeVar("T")


class NoInput(BaseModel):
    """No arguments."""


class ToolStopped(Exception):
    """Ends a handler; `result` is its answer."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.content)
        self.result = result


class ToolWords:
    """Reads the skill `skill_id` at each call, so that a reload takes effect at once.

    `unread` names the answer to a failure outside the program; "" for only the reason. `time_limit_s` is the limit of
    each tool of the family, in seconds.
    """

    def __init__(self, skills: Skills, skill_id: str, *, unread: str = "", time_limit_s: float = TIME_LIMIT_S) -> None:
        self._skills = skills
        self._skill_id = skill_id
        self._unread = unread
        self._time_limit_s = time_limit_s

    def tool(
        self,
        name: str,
        input_model: type[BaseModel],
        capability: Capability,
        needs: Provenance,
        handler: Handler,
        *,
        page: str = "",
        effect: Effect = "act",
        holdable: bool = False,
        subject: type | UnionType | None = None,
        fits: Callable[[Turn], bool] | None = None,
        given: Mapping[type, frozenset[str]] | None = None,
        owner_fields: frozenset[str] = frozenset(),
        named_fields: frozenset[str] = frozenset(),
        named_only: bool = False,
        own_act: Callable[[Any, Turn], Awaitable[OwnAct | None]] | None = None,
        answers: type | UnionType | None = None,
        closes: type | UnionType | None = None,
    ) -> Tool:
        """Return a tool with its descriptions from the subsection `page` (by default its name).

        Raises `SkillError` if there is no such subsection.
        """
        description, fields = read_description(self._skills.subsection(self._skill_id, "Descriptions", page or name))
        return Tool(
            name,
            description,
            input_model,
            capability,
            needs,
            self._settling(handler),
            subject=subject,
            fits=fits,
            effect=effect,
            holdable=holdable,
            fields=fields,
            given=given or {},
            owner_fields=owner_fields,
            named_fields=named_fields,
            named_only=named_only,
            own_act=own_act,
            time_limit_s=self._time_limit_s,
            answers=answers,
            closes=closes,
        )

    def _settling(self, handler: Handler) -> Handler:
        """Return a handler that returns an answer if `handler` was stopped, or failed outside the program."""

        async def settled(arguments: Any, turn: Turn) -> ToolResult:  # noqa: ANN401 - each takes its own input model
            try:
                return await handler(arguments, turn)
            except ToolStopped as stopped:
                return stopped.result
            except (Unable, Undone) as stopped:
                return self.unread(stopped.err)

        return settled

    def unread(self, error: Err) -> ToolResult:
        """Return the answer to a failure outside the program."""
        reason = one_line(error.error, REASON_CHARS)
        return self.error(self._unread, reason=reason) if self._unread else failed(reason)

    def answer(self, name: str, **values: object) -> str:
        """Return an answer with its variables filled in. Raises `SkillError` if it is missing."""
        return self._skills.render(self._skill_id, "Answers", name, **values).strip()

    def act_done(self, tool: str, **values: object) -> str:
        """Return the report of an act that was done. Raises `SkillError` if it is missing."""
        return self._skills.render(self._skill_id, "Done", tool, **values).strip()

    def done(self, name: str, *, held: bool = False, **values: object) -> ToolResult:
        """Return an answer; `held`: the act waits for the owner's approval."""
        return ToolResult(self.answer(name, **values), outcome=Disposition("", held=held))

    def waits(self, state: str, reason: str | None = "", number: int = 0) -> ToolResult | None:
        """Return the answer that an act waits for the owner's approval (`held`), as this draft, or to be sent."""
        if state == "held":
            return self.done("Held", held=True, reason=one_line(told_reason(reason or ""), REASON_CHARS), number=number)
        return self.done("On Its Way") if state in {"waits", "pending", "sending"} else None

    def error(self, name: str, **values: object) -> ToolResult:
        """Return an answer that asks for something else."""
        return replace(failed(self.answer(name, **values)), answer=name)

    def stop(self, name: str, **values: object) -> NoReturn:
        """End a handler with an answer that asks for something else."""
        raise ToolStopped(self.error(name, **values))

    def end(self, name: str, outcome: Disposition, *, is_error: bool = False, **values: object) -> ToolResult:
        """Return an answer that ends the turn."""
        return ToolResult(self.answer(name, **values), is_error=is_error, ends_turn=True, outcome=outcome)

    def end_by(self, submitted: Submitted, outcome: Disposition) -> ToolResult:
        """Return the answer that ends a turn with the result of its act: `Sent`, `Held` or `Blocked`."""
        outcome = replace(outcome, intent_id=submitted.intent.id, held=submitted.held)
        if submitted.held:
            return self.end("Held", replace(outcome, reason=f"waits for the owner's approval: {submitted.reason}"))
        if submitted.accepted:
            return self.end("Sent", outcome)
        reason = one_line(submitted.reason, REASON_CHARS)
        return self.end("Blocked", replace(outcome, act="silent", reason=reason), is_error=True, reason=reason)


def within(text: str, most: int = READ_CHARS, name: str = "content") -> dict[str, str | int]:
    """Return a text as the field `name`; of one with more than `most` characters as JSON, its beginning and both sizes.

    The sizes count the characters of the text itself.
    """
    shown = text[:most]
    while len(json.dumps(shown, ensure_ascii=False)) > most:
        shown = shown[: len(shown) * 9 // 10]
    return {name: shown} | ({CUT: len(shown), "characters_in_all": len(text)} if len(shown) < len(text) else {})


def subject_of(turn: Turn, kind: type[T]) -> T:
    """Return the subject of a turn. Raises `TypeError` if it is of another kind."""
    if not isinstance(turn.subject, kind):
        raise TypeError("the registry offers this tool in turns with its subject only")
    return turn.subject


def failed(problem: str) -> ToolResult:
    """Return the answer of a tool that did nothing; `problem` is the reason."""
    return ToolResult(f"Error: {problem}", is_error=True)

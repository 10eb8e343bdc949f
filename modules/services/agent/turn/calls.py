"""What came of the calls of a turn: which are not carried out because of others, and when repeats end the turn. Pure.

The calls that end a turn come last in an answer, so that they keep no other call from being carried out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from modules.runtime.journal.types import Stopped
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.policy import deduplicate_reply_tool_calls, replied_uri
from modules.services.agent.tools.types import ToolResult
from modules.services.skills.skills import without_boundaries

_MOST_REPEATS = 2
"""A turn ends when one call has repeated its result this often and no call brought anything new."""

_Came: TypeAlias = tuple[str, str, str, bool]
"""A call with its arguments, its result without boundaries, and whether it failed."""


@dataclass(slots=True)
class CallHistory:
    """The calls of the answers so far.

    `replied`: the posts that were replied to; `failed`: the tools that failed twice in the same way; `sent_back`: why
    the model was asked for another call to end the turn with.
    """

    replied: set[str] = field(default_factory=set)
    done: set[_Came] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    sent_back: set[str] = field(default_factory=set)
    repeats: Counter[_Came] = field(default_factory=Counter)

    def begin(self, calls: Sequence[ToolCall], places: Sequence[int]) -> AnswerCalls:
        """Return the calls of the next answer; `places` are those of `place_in_answer`."""
        others, replies = ([call for call, at in zip(calls, places, strict=True) if at == place] for place in (0, 1))
        _, again = deduplicate_reply_tool_calls(others, self.replied)
        return AnswerCalls(self, again, is_several=len(set(map(_written, replies))) > 1)

    def end(self, this: AnswerCalls) -> Stopped | None:
        """Add the calls of an answer; return why the turn stops. After the first repeated failure it goes on."""
        was_told = bool(self.failed)
        self.failed |= this.failed
        self.sent_back |= this.sent_back
        if this.came - self.done:
            self.repeats.clear()
        self.repeats.update(this.came & self.done)
        self.done |= this.came
        if this.stopped or this.failed:
            return this.stopped or ("repeated_error" if was_told else None)
        return "repeated_call" if max(self.repeats.values(), default=0) >= _MOST_REPEATS else None


@dataclass(slots=True)
class AnswerCalls:
    """The calls of one answer.

    `again`: second replies to one post; `is_several`: more than one call answers what the turn is about; `undone`: the
    acts that failed or wait for approval.
    """

    before: CallHistory
    again: Iterable[ToolCall]
    is_several: bool
    stopped: Stopped | None = None
    came: set[_Came] = field(default_factory=set)
    undone: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    sent_back: set[str] = field(default_factory=set)

    def left_out(self, call: ToolCall, place: int) -> str:
        """Return why a call is not carried out, a subsection of `Answers`; "" if it is.

        An answer that was written before it was known that an act beside it came to nothing is sent back once, and so
        is one in several parts.
        """
        if self.stopped:
            return "Turn Ended"
        if not place:
            return "Replied Already" if any(call is one for one in self.again) else ""
        why = "Act Undone" if self.undone else "One Answer" if self.is_several else ""
        if not why or why in self.before.sent_back:
            return ""
        self.sent_back.add(why)
        return why

    def add(self, call: ToolCall, result: ToolResult, *, is_undone: bool) -> bool:
        """Add what came of a call; return whether it failed as in an earlier answer."""
        came = (*_written(call), without_boundaries(result.content), result.is_error)
        self.came.add(came)
        if result.ends_turn:
            self.stopped = "ended"
        if is_undone:
            self.undone.append(call.name)
        if not result.is_error:
            self.before.replied.update(uri for uri in [replied_uri(call)] if uri)
            return False
        if came not in self.before.done:
            return False
        self.failed.add(call.name)
        return True


def _written(call: ToolCall) -> tuple[str, str]:
    return call.name, json.dumps(call.input, sort_keys=True)

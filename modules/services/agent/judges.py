"""Asks the model short questions that it answers with YES or NO, and records the answers in the journal.

No answer, for lack of budget, after a failure or a timeout, counts as NO.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from common.clock import local, spoken
from common.errors import Fatal, SoulError
from common.provenance import Importance, Provenance
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.verdicts import MOST_CHARS, Verdicts

TIMEOUT_S = 20.0
"""How long one answer may take, in seconds."""
SAME_CLAIM = "Same Claim"
_OWNER_ORDER = "Owner Order"
_FALSE_REPORT = "False Report"
_YES = "YES"
SAID_CHARS = 1_000
"""How many of the last characters that the SOUL said before the owner's line are shown."""
_NOTHING = "-"


class JudgedTurn(Protocol):
    """The fields of a turn that a judge uses."""

    @property
    def loop(self) -> str: ...
    @property
    def importance(self) -> Importance: ...
    @property
    def cause_id(self) -> str | None: ...
    @property
    def rests_on(self) -> Provenance: ...


@dataclass(frozen=True, slots=True)
class YesNoJudge:
    """Judges with the skill `space-judgement`; records in `journal` what it decided, or that it could not.

    `timezone` is the owner's; "" for the machine's.
    """

    verdicts: Verdicts
    journal: Journal
    timezone: str = ""

    @property
    def local_now(self) -> datetime:
        """The owner's local time."""
        return local(self.verdicts.clock.now(), self.timezone)

    async def is_same(self, text: str, other: str, turn: JudgedTurn) -> bool:
        """Return whether `text` makes the same claim as `other`. Raises `Fatal`."""
        same, reason = await self._says_yes(SAME_CLAIM, turn, first=other, second=text)
        summary = f"A reply with nearly the words of another post {'repeats it' if same else 'may say something else'}"
        await self._note(summary, reason, turn)
        return same

    async def is_ordered(self, act: str, line: str, said: str, turn: JudgedTurn) -> bool:
        """Return whether the owner's `line` asks for `act`; `said` is the SOUL's text before it. Raises `Fatal`.

        In a turn with untrusted text, `act` must hold none of it; `said` only shows what a short line answers. An act
        that is too long to be shown whole is not judged: the answer is no.
        """
        if len(act) > MOST_CHARS:
            await self._note("The owner's line was not judged", "the act is too long to be shown to a judge", turn)
            return False
        fields = {"now": spoken(self.local_now), "said": said[-SAID_CHARS:] or _NOTHING, "line": line, "act": act}
        ordered, reason = await self._says_yes(_OWNER_ORDER, turn, **fields)
        summary = f"The owner's line {'asks' if ordered else 'does not ask'} for an act"
        await self._note(summary, reason, turn)
        return ordered

    async def is_false_report(self, answer: str, line: str, done: str, turn: JudgedTurn) -> bool:
        """Return whether `answer`, to the owner's `line`, reports an act that is not in `done`. Raises `Fatal`."""
        false, reason = await self._says_yes(_FALSE_REPORT, turn, line=line, reply=answer, done=done)
        if false or reason:
            summary = "An answer to the owner tells as done what was not" if false else "An answer was not checked"
            await self._note(summary, reason, turn, "false_report" if false else "")
        return false

    async def _says_yes(self, question: str, turn: JudgedTurn, **fields: str) -> tuple[bool, str]:
        """Return whether the answer is YES, and why no answer came; "" if one did."""
        verdicts = replace(self.verdicts, importance=turn.importance)
        try:
            answer = await verdicts.ask(question, examples=f"{question} Examples", **fields)
        except Fatal:
            raise
        except SoulError as failure:
            return False, f"no answer of the judge: {failure}"
        return answer.startswith(_YES), ""

    async def _note(self, summary: str, reason: str, turn: JudgedTurn, code: str = "") -> None:
        why, data = reason or "the model judged it so", {"code": code} if code else {}
        entry = Entry("decision", turn.loop, summary, "warn" if reason else "info", why, turn.cause_id, data=data)
        await self.journal.record(replace(entry, provenance=turn.rests_on))

"""Asks the model, once and briefly, whether one text makes the point of another whose words it nearly has.

A judge that has no budget, fails or takes too long says nothing: then the text counts as one of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from common.errors import Fatal, SoulError
from common.importance import Importance
from common.line_kind import LineKind
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.verdicts import Verdicts

QUESTION = "Same Claim"
TIMEOUT_S = 20.0
_SAME = "YES"


@dataclass(frozen=True, slots=True)
class ClaimJudge:
    """Judges by the skill `space-judgement`; what it decided, and that it could not, goes to `journal`.

    An answer of `verdicts` may take `TIMEOUT_S`.
    """

    verdicts: Verdicts
    journal: Journal

    async def is_same(self, text: str, other: str, *, importance: Importance, loop: str, cause_id: str | None) -> bool:
        """Return whether `text` claims what `other` claims; False where no answer came. Raises `Fatal`."""
        verdicts, error = replace(self.verdicts, importance=importance), ""
        try:
            answer = await verdicts.ask(QUESTION, examples=f"{QUESTION} Examples", first=other, second=text)
        except Fatal:
            raise
        except SoulError as failure:
            answer, error = "", str(failure)
        same = answer.startswith(_SAME)
        summary = f"A reply with nearly the words of another post {'repeats it' if same else 'may say something else'}"
        reason = f"no answer of the judge: {error}" if error else "the judge said so"
        line: LineKind | None = "warn" if error else None
        await self.journal.record(Entry("decision", loop, summary, line=line, reason=reason, trigger_uri=cause_id))
        return same

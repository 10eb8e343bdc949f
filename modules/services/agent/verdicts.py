"""Asks the model short questions: for a one-word verdict on a text, or for YES or NO, which the journal records.

Such calls are short and frequent, so they carry nothing about the SOUL: only a constant page of instructions, a few
examples, and the text. The text is cleaned and quoted on one line instead of framed as untrusted: no tool is offered,
only one label comes back, and frames distract small models (of 15 repetitions, one model found 11 quoted but 1
framed). The module keeps no state; a call that fails or takes too long raises a `SoulError`.

To a question for YES or NO, no answer (for lack of budget, after a failure or a timeout, or because another text came)
has the effect of NO, and the journal says that none came.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from common.clock import Clock, local, spoken
from common.errors import Fatal, SoulError, Transient
from common.facts import QuestionFacts, TurnFacts
from common.provenance import Importance, Provenance
from common.text.untrusted import one_line
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import Message
from modules.runtime.llm.gateway import LLMGateway
from modules.services.skills.skills import Skills

_QUOTES = str.maketrans(dict.fromkeys('"“”„«»', "'"))


def without_quotation_marks(text: str) -> str:
    """Return `text` with every quotation mark replaced by `'`, so that nothing in it closes a quotation."""
    return text.translate(_QUOTES)


ECHO_JUDGE_TIMEOUT_S = 3.0

SKILL = "space-judgement"
_ANSWER_TOKENS = 10
MOST_CHARS = 2_000
"""How many characters of one text are shown; the rest is cut."""
_FIELD = re.compile(r"- (\w+): (.+)")
_ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Asks `gateway` with the prompts of the skill.

    Attributes:
        gateway: the model.
        skills: provides the prompts.
        clock: measures the deadline.
        timeout_s: most seconds that one answer may take, including retries and waits.
        importance: the importance of the calls for the budget.

    """

    gateway: LLMGateway
    skills: Skills
    clock: Clock
    timeout_s: float = ECHO_JUDGE_TIMEOUT_S
    importance: Importance = "own"

    async def ask(self, question: str, *, examples: str = "", **foreign: str | Sequence[str]) -> str:
        """Return the model's answer in upper case.

        Args:
            question: the prefix of two sections, `… System Prompt` and `… Message`.
            examples: a section whose subsections give the fields of the message, one a line, and the answer; a field
                that is repeated is a list.
            foreign: untrusted texts by variable of the message; several texts are numbered.

        Raises:
            SoulError: from the gateway; `Transient` if the answer took too long.

        """
        messages = messages_for(self.skills, question, examples=examples, **foreign)
        fields = {name: (text,) if isinstance(text, str) else tuple(text) for name, text in foreign.items()}
        try:
            async with self.clock.timeout(self.timeout_s):
                answer = await self.gateway.chat(
                    messages,
                    system=self.skills.render(SKILL, f"{question} System Prompt"),
                    max_tokens=_ANSWER_TOKENS,
                    temperature=0,
                    purpose=SKILL,
                    importance=self.importance,
                    facts=TurnFacts(QuestionFacts(question, fields)),
                )
        except TimeoutError as error:
            raise Transient(f"the model took longer than {self.timeout_s:g} s to answer one word") from error
        return answer.strip().upper()


def messages_for(skills: Skills, question: str, *, examples: str = "", **foreign: str | Sequence[str]) -> list[Message]:
    """Return the messages that follow the system prompt; arguments as for `Verdicts.ask`."""
    pages = skills.subsections(SKILL, examples).values() if examples else ()
    messages = []
    for example in map(_fields, pages):
        (answer,) = example.pop(_ANSWER)
        fields = {name: texts if len(texts) > 1 else texts[0] for name, texts in example.items()}
        messages += [_asked(skills, question, fields), Message("assistant", answer)]
    return [*messages, _asked(skills, question, foreign)]


def _asked(skills: Skills, question: str, fields: Mapping[str, str | Sequence[str]]) -> Message:
    words = {name: quoted(text) if isinstance(text, str) else numbered(text) for name, text in fields.items()}
    return Message("user", skills.render(SKILL, f"{question} Message", **words))


def _fields(page: str) -> dict[str, list[str]]:
    """Return the fields of an example; a repeated field has several texts."""
    found: dict[str, list[str]] = {}
    for name, text in _FIELD.findall(page):
        found.setdefault(name, []).append(text)
    return found


def quoted(text: str) -> str:
    """Return untrusted text as a quotation on one line; nothing in the text can close the quotation."""
    return f'"{without_quotation_marks(one_line(text, MOST_CHARS))}"'


def numbered(texts: Sequence[str]) -> str:
    """Return the texts as numbered quotations, one a line."""
    return "\n".join(f"{number}. {quoted(text)}" for number, text in enumerate(texts, 1))


TIMEOUT_S = 20.0
"""How long one answer may take, in seconds."""
SAME_CLAIM = "Same Claim"
_SAID_ALREADY = "Said Already"
_OWNER_ORDER = "Owner Order"
_FALSE_REPORT = "False Report"
_YES, _NO = "YES", "NO"
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

    async def is_said_already(self, comment: str, earlier: str, turn: JudgedTurn) -> bool:
        """Return whether `comment` says nothing that an `earlier` one in the same thread does not. Raises `Fatal`."""
        said, reason = await self._says_yes(_SAID_ALREADY, turn, first=earlier, second=comment)
        await self._note(f"A comment {'says nothing' if said else 'may say something'} new", reason, turn)
        return said

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
        if not answer.startswith((_YES, _NO)):
            return False, "no answer of the judge: it said neither YES nor NO"
        return answer.startswith(_YES), ""

    async def _note(self, summary: str, reason: str, turn: JudgedTurn, code: str = "") -> None:
        why, data = reason or "the model judged it so", {"code": code} if code else {}
        entry = Entry("decision", turn.loop, summary, "warn" if reason else "info", why, turn.cause_id, data=data)
        await self.journal.record(replace(entry, provenance=turn.rests_on))

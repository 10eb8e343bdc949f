"""Has the model write the opening post and the memo of a ritual; a faulty first try is sent back once."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from common.clock import Clock, iso
from common.constants import PORTABLE_MAX_GRAPHEMES
from common.facts import QuestionFacts, TurnFacts
from common.provenance import Provenance
from common.text.graphemes import grapheme_len
from common.text.untrusted import clean
from modules.runtime.home import SoulDocument
from modules.runtime.llm.dialect import Message, ToolSpec
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.prompt.fitting import SystemPrompt
from modules.services.agent.prompt.prompter import Prompter
from modules.services.identity.identity import Identity, Me, agent_facts
from modules.services.identity.self_mechanics import DailyRitual
from modules.services.rituals.policy import RitualRun, RitualThread, memo_problem, opening_problem
from modules.services.rituals.rituals import CONTEXT_SKILL
from modules.services.skills.skills import Framer, Skills

OPENING_SKILL = "ritual-initiation"
MEMO_SKILL = "ritual-memo"

_TOKENS = 1_200
_TRIES = 2
_OPENING = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_MEMO = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "body": {"type": "string"}},
    "required": ["title", "body"],
}
_BODY_CHARS = 20_000
_W = TypeVar("_W")


@dataclass(frozen=True, slots=True)
class OpeningRequest:
    """The input for an opening post.

    Attributes:
        run: the run that it opens; its thread is not known yet.
        invited: the handles that it names.
        history: the earlier runs, a line each.
        earlier: the texts of earlier openings.
        owner_said: the owner's comments on earlier artefacts, a line each.

    """

    ritual: DailyRitual
    run: RitualRun
    invited: Sequence[str]
    history: str
    earlier: Sequence[str]
    owner_said: Sequence[str]


@dataclass(frozen=True, slots=True)
class MemoRequest:
    """The input for a memo: `said` is the thread, a line per post; `standing` the existing memo of the day, or ""."""

    thread: RitualThread
    history: str
    said: Sequence[str]
    standing: str


@dataclass(frozen=True, slots=True)
class Memo:
    """A memo by the model."""

    title: str
    body: str


@dataclass(frozen=True, slots=True)
class _Question:
    """A question to the model: its skill, prompt and message, and the same content as facts."""

    skill: str
    system: SystemPrompt
    asked: str
    fields: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RitualWriter:
    """Asks the model for texts; `prompter` builds the system prompt."""

    me: Me
    identity: Identity
    soul: SoulDocument
    gateway: LLMGateway
    prompter: Prompter
    skills: Skills
    clock: Clock
    rng: random.Random

    async def opening(self, request: OpeningRequest) -> str:
        """Return an opening post that can be sent; "" if the second try has a fault too. Raises `SoulError`."""
        skills, ritual, run = self.skills, request.ritual, request.run
        comments = "\n".join(f"- {line}" for line in request.owner_said)
        asked = skills.render(
            OPENING_SKILL,
            "User Message Template",
            ritual_name=ritual.name,
            today=run.day.isoformat(),
            day_of_week=f"{run.day:%A}",
            recent_history=request.history,
            self_context=self.identity.extract().raw_sections.get("dailyRituals", ""),
            owner_said=skills.render(OPENING_SKILL, "Owner Said", comments=comments) if comments else "",
        )
        variables = {
            "ritual_name": ritual.name,
            "ritual_description": ritual.description,
            "participants": ", ".join(f"@{handle}" for handle in request.invited),
            "workspace": ritual.workspace,
            "bluesky_username": self.me.bluesky_username,
        }
        fields = {
            "ritual": (ritual.name,),
            "invited": tuple(request.invited),
            "earlier": tuple(request.earlier),
            "owner": tuple(request.owner_said),
        }

        def judge(written: Mapping[str, str]) -> tuple[str, str]:
            text = _with_invited(written.get("text", ""), request.invited)
            return text, opening_problem(text, ritual, request.invited, request.earlier) or ""

        system = await self._system(OPENING_SKILL, variables, Provenance.SELF)
        tool = ToolSpec("open_ritual", skills.section(OPENING_SKILL, "Tool"), _OPENING)
        return await self._write(_Question(OPENING_SKILL, system, asked, fields), tool, judge) or ""

    async def memo(self, request: MemoRequest) -> Memo | None:
        """Return a memo that can be used; None if the second try has a fault too. Raises `SoulError`."""
        skills, thread = self.skills, request.thread
        ritual, run = thread.ritual, thread.run
        framer = Framer(skills, self.rng)
        standing = framer.frame("reading", author="several", uri=run.thread_uri, text=request.standing)
        asked = skills.render(
            MEMO_SKILL,
            "User Message Template",
            today=run.day.isoformat(),
            day_of_week=f"{run.day:%A}",
            recent_history=request.history,
            said=framer.frame("conversation", author="several", uri=run.thread_uri, text="\n".join(request.said)),
            posts=len(request.said),
            standing=skills.render(MEMO_SKILL, "Standing", memo=standing) if request.standing else "",
        )
        variables = {
            "ritual_name": ritual.name,
            "ritual_description": ritual.description,
            "workspace": ritual.workspace,
            "part": thread.part,
            "guidance": skills.subsection(CONTEXT_SKILL, "Parts", thread.part).strip(),
        }
        fields = {
            "ritual": (ritual.name,),
            "part": (thread.part,),
            "said": tuple(request.said),
            "standing": (request.standing,) if request.standing else (),
        }

        def judge(written: Mapping[str, str]) -> tuple[Memo, str]:
            memo = Memo(written.get("title", ""), written.get("body", "")[:_BODY_CHARS])
            return memo, memo_problem(memo.title, memo.body, (*request.said, request.standing)) or ""

        system = await self._system(MEMO_SKILL, variables, Provenance.STRANGER)
        tool = ToolSpec("write_memo", skills.section(MEMO_SKILL, "Tool"), _MEMO)
        return await self._write(_Question(MEMO_SKILL, system, asked, fields), tool, judge)

    async def _write(
        self, question: _Question, tool: ToolSpec, judge: Callable[[Mapping[str, str]], tuple[_W, str]]
    ) -> _W | None:
        """Return the first text of the model without a problem for `judge`; None if both tries have one."""
        skill, asked = question.skill, question.asked
        messages = [Message("user", asked)]
        for _ in range(_TRIES):
            result = await self.gateway.chat_with_tools(
                messages,
                system=question.system.blocks,
                tools=[tool],
                tool_choice="required",
                max_tokens=_TOKENS,
                purpose=skill,
                importance="own",
                facts=TurnFacts(
                    QuestionFacts(skill, question.fields),
                    agent_facts(self.me, self.identity, self.soul.text),
                    iso(self.clock.now()),
                ),
            )
            called = result.arguments(tool.name) or {}
            told = {name: clean(str(value), is_ours=True) for name, value in called.items()}
            written, problem = judge(told)
            if not problem:
                return written
            more = {"most": str(PORTABLE_MAX_GRAPHEMES)} if skill == OPENING_SKILL else {}
            said = self.skills.subsection(skill, "Problems", problem).strip()
            again = self.skills.render(skill, "Once More", problem=said, **more)
            answer = "\n\n".join(told.values()) or "-"
            messages = [Message("user", asked), Message("assistant", answer), Message("user", again)]
        return None

    async def _system(self, skill: str, variables: Mapping[str, str], least: Provenance) -> SystemPrompt:
        return await self.prompter.prompt(
            skill=skill,
            variables=variables,
            audience="bluesky",
            session_key=skill,
            now=self.clock.now(),
            least=least,
            bare=True,
        )


def _with_invited(text: str, invited: Sequence[str]) -> str:
    """Return a post that names everybody who is invited; unchanged if the names no longer fit."""
    missing = [handle for handle in invited if f"@{handle}" not in text.lower()]
    named = " ".join([text, *(f"@{handle}" for handle in missing)]).strip()
    return named if text and grapheme_len(named) <= PORTABLE_MAX_GRAPHEMES else text

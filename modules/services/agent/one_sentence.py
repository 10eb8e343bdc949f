"""Asks the model for one sentence in the SOUL's own voice, through a tool that takes nothing else. Keeps nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from common.clock import Clock, iso
from common.facts import AgentFacts, QuestionFacts, TurnFacts
from common.provenance import Provenance
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.types import Importance, Message, NamedTool, ToolSpec
from modules.services.agent.prompt.prompter import Prompter
from modules.services.skills.skills import Skills

_SENTENCE = {"type": "object", "properties": {"sentence": {"type": "string"}}, "required": ["sentence"]}


@dataclass(frozen=True, slots=True)
class SentenceQuestion:
    """What is asked: `description` is the section of the skill that tells of the tool, `about` the same as facts."""

    asked: str
    tool: str
    description: str
    about: QuestionFacts
    most_tokens: int
    importance: Importance = "own"


async def ask_for_sentence(
    question: SentenceQuestion,
    *,
    skill: str,
    bluesky_username: str,
    gateway: LLMGateway,
    prompter: Prompter,
    skills: Skills,
    clock: Clock,
    agent: Callable[[], AgentFacts],
) -> str:
    """Return the sentence that the model gives, or what it says without the tool; "" if nothing. Raises `SoulError`."""
    now = clock.now()
    prompt = await prompter.prompt(
        skill=skill,
        variables={"bluesky_username": bluesky_username},
        audience="bluesky",
        session_key=skill,
        now=now,
        least=Provenance.SELF,
        bare=True,
    )
    result = await gateway.chat_with_tools(
        [Message("user", question.asked)],
        system=prompt.blocks,
        tools=[ToolSpec(question.tool, skills.section(skill, question.description), _SENTENCE)],
        tool_choice=NamedTool(question.tool),
        max_tokens=question.most_tokens,
        purpose=skill,
        importance=question.importance,
        facts=TurnFacts(question.about, agent(), iso(now)),
    )
    called = next((call for call in result.tool_calls if call.name == question.tool and not call.malformed), None)
    return str(called.input.get("sentence", "")) if called else result.text

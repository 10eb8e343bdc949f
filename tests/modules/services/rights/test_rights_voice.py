"""What is said of somebody's data where the model's words do not keep to the facts, over real HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.text.graphemes import grapheme_len
from modules.services.agent.one_sentence import SentenceAsker
from modules.services.rights.answering import MOST, SKILL, RightsVoice
from tests.modules.runtime.llm.scripted_model import ScriptedModel, calls, scripted_gateway
from tests.modules.services.agent.prompt.prompt_home import PromptHome
from tests.shipped_skills import SHIPPED

COUNTS = {"received posts": 31, "sent": 17, "conversations": 12, "memories": 8, "rights": 1, "journal": 64, "files": 3}
FACTS = [SHIPPED.render(SKILL, "Facts", name, count=count).strip() for name, count in COUNTS.items()]
MADE_UP = "I hold 4711 posts of yours, and nothing else."


@pytest.fixture
async def voice(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[RightsVoice]:
    clock = FakeClock()
    gateway = scripted_gateway(
        model.url,
        clock=clock,
        max_retries=0,
    )
    asker = SentenceAsker("rowan.test", gateway, PromptHome(tmp_path / "home").prompter, SHIPPED, clock)
    yield RightsVoice("mailto:keeper@example.org", asker, SHIPPED)
    await gateway.aclose()


@pytest.mark.parametrize(("known", "most"), [(3, MOST), (7, MOST), (7, 150)])
async def test_numbers_that_no_fact_tells_give_way_to_those_that_fit_and_to_whom_to_ask(
    voice: RightsVoice, model: ScriptedModel, known: int, most: int
) -> None:
    model.plays(calls(("answer_request", json.dumps({"sentence": MADE_UP}))))
    said = await voice.say({"know": FACTS[:known]}, "en", "stranger", most=most)
    told = [fact for fact in FACTS[:known] if fact in said]
    assert grapheme_len(said) <= most
    assert said.endswith("ask mailto:keeper@example.org.")
    assert told
    assert told == FACTS[: len(told)]
    assert re.findall(r"\d+", said) == [re.findall(r"\d+", fact)[0] for fact in told]
    assert ("\u2026" in said) == (len(told) < known)
    assert len(told) == known or grapheme_len(said) + grapheme_len(FACTS[len(told)]) > most - 3


async def test_where_two_answers_become_one_reply_both_prompts_say_so(voice: RightsVoice, model: ScriptedModel) -> None:
    joined = SHIPPED.section(SKILL, "Joined").strip()
    model.plays(*[calls(("answer_request", json.dumps({"sentence": "I did as you asked."})))] * 3)
    await voice.say({"forget": ["they asked for it"]}, "en", "stranger")
    await voice.say({"no_reply": ["they asked for it"], "forget": ["they asked for it"]}, "en", "stranger")
    assert [joined in json.dumps(one) for one in model.requests] == [False, True, True]

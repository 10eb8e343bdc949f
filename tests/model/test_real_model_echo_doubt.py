"""A small real model decides where the words of two posts are alike and the sense may differ.

A wrong YES keeps somebody from an objection, a wrong NO lets a peer's point be said again; so the first is held to
less. `pytest -rP` shows the answers.
"""

# ruff: noqa: T201 - what a real model answers is worth reading, and pytest captures it

from __future__ import annotations

import pytest

from bench.word_rules import is_asked, read_cases
from common.clock import SystemClock
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.echo_judge import QUESTION
from modules.services.agent.skills.contracts import SKILL_CONTRACTS
from modules.services.agent.skills.skills import Skills
from modules.services.agent.verdicts import Verdicts
from soul.resources import SKILLS

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]

LEAST_OTHERS_PASSED, LEAST_ECHOES_FOUND = 0.8, 0.5


async def test_a_changed_claim_is_told_from_the_same_claim_in_nearly_the_same_words(gateway: LLMGateway) -> None:
    verdicts = Verdicts(gateway, Skills.load(SKILLS, SKILL_CONTRACTS), SystemClock(), timeout_s=300)
    found = {}
    for case in filter(is_asked, read_cases()):
        answer = await verdicts.ask(QUESTION, examples=f"{QUESTION} Examples", first=case.other, second=case.text)
        found[case] = answer.startswith("YES")
        print("YES" if found[case] else "NO ", "is", bool(case.expect), "|", case.text, "|", case.other)
    others = [said for case, said in found.items() if not case.expect]
    echoes = [said for case, said in found.items() if case.expect]
    print(f"{others.count(False)} of {len(others)} other claims pass, {sum(echoes)} of {len(echoes)} echoes are found")
    assert others.count(False) >= LEAST_OTHERS_PASSED * len(others)
    assert sum(echoes) >= LEAST_ECHOES_FOUND * len(echoes)

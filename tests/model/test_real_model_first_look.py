"""A small real model tells apart talk that is over from talk that leaves something to say.

A wrong LISTEN keeps a SOUL silent, a wrong SPEAK costs one whole prompt; so the first is held to less. `pytest -rP`
shows the answers.
"""

# ruff: noqa: T201 - what a real model answers is worth reading, and pytest captures it

from __future__ import annotations

import pytest

from common.clock import SystemClock
from modules.lives.space.first_look import QUESTION
from modules.runtime.llm.gateway import LLMGateway
from modules.services.agent.skills.contracts import SKILL_CONTRACTS
from modules.services.agent.skills.skills import Skills
from modules.services.agent.verdicts import Verdicts
from soul.resources import SKILLS

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

OPEN = (
    ("rebecca: Slate is quieter in the rain than tin.", "odile: Does anybody know how long a slate roof lasts?"),
    ("odile: I would let the compost rest all winter.", "rebecca: I turn mine in January, the frost breaks it up."),
    ("rebecca: The tide table was off by ten minutes today.", "odile: Mine too, and the wind came from the east."),
    ("odile: A tin roof is louder than any argument.", "rebecca: I doubt it. Rain on tin put me to sleep as a child."),
    ("rebecca: What would you plant after beans?", "odile: Cabbage, it likes what beans leave behind."),
    ("odile: I tried the ferry at dawn.", "rebecca: How was the light? I only know it at noon."),
    ("rebecca: A library should lend tools as well as books.", "odile: Tools come back broken more often than books."),
    ("odile: My bread never rises in winter.", "rebecca: Mine does since I keep the dough beside the boiler."),
)
OVER = (
    ("rebecca: Slate it is, then.", "odile: Agreed, slate.", "rebecca: Yes, agreed."),
    ("odile: Thanks, both of you, that was lovely.", "rebecca: Good night, everybody!", "odile: Good night!"),
    ("rebecca: Well said.", "odile: Thank you, well said yourself.", "rebecca: You are kind, thanks."),
    (
        "odile: Beans first, then cabbage.",
        "rebecca: Yes, beans and then cabbage.",
        "odile: Right, cabbage after beans.",
    ),
    ("rebecca: Great evening, thank you all.", "odile: It was. See you tomorrow.", "rebecca: See you!"),
    ("odile: I like that a lot.", "rebecca: So do I.", "odile: Lovely."),
)
LEAST_OPEN_ANSWERED, LEAST_OVER_IGNORED = 7, 4


async def test_talk_that_leaves_something_to_say_is_told_from_talk_that_is_over(gateway: LLMGateway) -> None:
    verdicts = Verdicts(gateway, Skills.load(SKILLS, SKILL_CONTRACTS), SystemClock(), timeout_s=300)
    found = {
        talk: await verdicts.ask(QUESTION, examples=f"{QUESTION} Examples", said=list(talk)) for talk in (*OPEN, *OVER)
    }
    for talk, answer in found.items():
        print(answer, "|", " / ".join(talk))
    assert sum(not found[talk].startswith("LISTEN") for talk in OPEN) >= LEAST_OPEN_ANSWERED
    assert sum(found[talk].startswith("LISTEN") for talk in OVER) >= LEAST_OVER_IGNORED

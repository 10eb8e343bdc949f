"""A small real model writes about a picture that is described to it; each post has exactly one source, and alt text.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

import pytest

from tests.model.conftest import settings_for
from tests.running_town import RunningTown, awake
from tests.scenarios.designing import designing

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]
QUESTIONS = (
    "@rowan.test which poster or drawing do you like best, and why?",
    "@rowan.test can you show me a drawing that you like?",
)


@pytest.fixture
def mind(real_model: str) -> dict[str, str]:
    return settings_for(real_model, SOUL_SPEED="1000")


async def test_what_is_posted_beside_a_picture_has_one_source_and_words_of_its_own(
    running_town: RunningTown, mind: dict[str, str]
) -> None:
    async with designing(running_town, **mind) as world, awake(world.home) as life:
        for _ in range(3):
            await world.picture_thought(life)
        shown = world.shown()
        print(*(f"{one['alt']}\n  {one['text']}" for one in shown), sep="\n---\n")
        for entry in await life.app.services.journal.recent(40, kinds=["model", "decision"]):
            print(entry.entry.summary, "|", entry.entry.reason, "|", entry.entry.data.get("calls"))
    texts = [one["text"] for one in shown]
    assert all(text.count("Source: http") == 1 and text.count("http") == 1 and "<" not in text for text in texts)
    assert len({text.partition("\n\nSource: ")[0] for text in texts}) == len(texts)


@pytest.mark.parametrize("question", QUESTIONS)
async def test_who_asks_about_design_gets_one_answer_at_most(
    running_town: RunningTown, mind: dict[str, str], question: str
) -> None:
    async with designing(running_town, **mind) as world:
        running_town.network.post_as(running_town.account("kit"), question)
        async with awake(world.home) as life:
            await life.look()
            for entry in await life.app.services.journal.recent(40, kinds=["model", "decision"]):
                print(entry.entry.summary, "|", entry.entry.reason, "|", entry.entry.data.get("calls"))
        shown = world.shown()
    print(*(record["text"] for record in world.posts()))
    assert len(world.posts()) <= 1
    assert all(one["alt"] and one["text"].count("Source: http") == 1 for one in shown)

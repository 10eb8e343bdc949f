"""Proves that a conversation with the owner, its end and the first conversation work with a small real model.

`pytest -rP` shows what the model did.
"""

# ruff: noqa: T201 - what a real model does is worth reading, and pytest captures it

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from common.files import write_atomic
from common.session_keys import OWNER_SESSION
from modules.runtime.home import Home
from modules.services.agent.onboarding import BOOTSTRAP_FILE
from soul.resources import template
from tests.model.conftest import CONTEXT_TOKENS, MODEL
from tests.owner_lines import answered
from tests.running_town import RunningSoul, RunningTown, awake

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

BEES = (
    "I keep two hives of bees on the roof, since April.",
    "My neighbour Ines is allergic, so please never post where the roof is.",
    "We decided to harvest on the last Sunday of August.",
)


@pytest.fixture
def home(running_town: RunningTown, real_model: str) -> Home:
    return running_town.make_home(
        "rowan",
        AI_GATEWAY_BASE_URL=real_model,
        AI_GATEWAY_MODEL=MODEL,
        CONTEXT_TOKENS=str(CONTEXT_TOKENS),
        AI_GATEWAY_VISION="off",
    )


@pytest.fixture
async def life(home: Home) -> AsyncIterator[RunningSoul]:
    async with awake(home) as lived:
        yield lived


async def test_the_owner_is_answered_in_words_also_when_what_changes_stands_in_the_message(life: RunningSoul) -> None:
    for line in ("Hello Rowan! My favourite tree is the hornbeam.", "Which tree did I say I like?"):
        said = await answered(life.app.owner, line)
        print(f"{line}\n  -> {said}")
        assert said


async def test_a_conversation_that_ends_is_archived_and_what_is_remembered_of_it_stays_private(
    life: RunningSoul,
) -> None:
    for line in BEES:
        print(f"{line}\n  -> {await answered(life.app.owner, line)}")
    outcome = await life.app.owner.start_afresh()
    memories = await life.app.services.knowledge.stores.memories.listed()
    for memory in memories:
        print(f"{memory.kind}: {memory.subject}: {memory.body} (private: {memory.private})")
    assert outcome.status == "done"
    assert outcome.archive
    print(outcome.archive.distilled.summary)
    assert all(memory.private for memory in memories)
    assert (await life.app.services.knowledge.sessions.open(OWNER_SESSION)).id != outcome.archive.session_id


async def test_the_first_talk_answers_each_line_and_is_over_only_with_a_profile(home: Home) -> None:
    write_atomic(home.workspace / BOOTSTRAP_FILE, template(BOOTSTRAP_FILE))
    async with awake(home) as life:
        owner, knowledge = life.app.owner, life.app.services.knowledge
        assert await owner.open()
        for line in (
            "I'm Ana, I live in Porto. You look after roofs, and you are plain and a little funny.",
            "That is all you need to know.",
            "Yes, that is right. Please note it down now.",
            "Yes. Call the tool and finish.",
        ):
            said = await answered(owner, line)
            print(f"{line}\n  -> {said}")
            assert said
            if not knowledge.onboarding.due():
                break
        profile = await knowledge.profiles.get()
        print(profile)
        assert knowledge.onboarding.due() is (home.workspace / BOOTSTRAP_FILE).exists()
        assert knowledge.onboarding.due() or profile.agent or profile.user

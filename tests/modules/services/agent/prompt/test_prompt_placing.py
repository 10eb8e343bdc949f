"""Proves that what changes stands behind what stays, from the first message of a talk on."""

from __future__ import annotations

from datetime import timedelta

from modules.runtime.llm.dialect import Message, PromptBlock, Text, ToolAnswer, ToolCall, convert_messages
from modules.services.agent.prompt.cache_order import placed
from modules.services.memory.admission import NewMemory
from tests.owner_lines import answered
from tests.running_town import RunningTown, awake
from town.model.types import Completion

STABLE = (PromptBlock("static", "Who I am."), PromptBlock("semi-static", "---\n\nWhat I know."))


def changing(what: str) -> tuple[PromptBlock, ...]:
    return (*STABLE, PromptBlock("dynamic", f"---\n\n{what}"))


def test_the_first_two_messages_of_a_talk_have_the_same_system_prompt() -> None:
    first, _ = placed(changing("It is noon."), [Message("user", "Hello.")], may_go_on=True)
    talk = [Message("user", "Hello."), Message("assistant", "Yes?"), Message("user", "And now?")]
    second, _ = placed(changing("It is one."), talk, may_go_on=True)
    assert first == second == STABLE


def test_what_changes_stands_before_the_words_that_are_answered_and_nowhere_else() -> None:
    talk = [Message("user", "Hello."), Message("assistant", "Yes?"), Message("user", "And now?")]
    _, shown = placed(changing("It is one."), talk, may_go_on=True)
    *_, last = convert_messages(shown)
    assert shown[:-1] == tuple(talk[:-1])
    assert last["content"].index("It is one.") < last["content"].index("And now?")
    _, (only,) = placed(changing("It is noon."), [Message("user", "Hello.")], may_go_on=True)
    assert convert_messages([only])[0]["content"] == "It is noon.\n\n---\n\n\nHello."


def test_answers_of_tools_stay_in_front_of_what_changes() -> None:
    call = ToolCall("1", "read", {})
    talk = [Message("user", "Hello."), Message("assistant", (call,)), Message("user", (ToolAnswer("1", "read", "x"),))]
    _, shown = placed(changing("It is one."), talk)
    roles = [message["role"] for message in convert_messages(shown)]
    assert roles == ["user", "assistant", "tool", "user"]
    assert isinstance(shown[-1].content[0], Text)


async def test_while_the_owner_talks_the_notes_from_before_stay_in_front_and_a_new_one_changes_nothing_there(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = lambda _: Completion(text="So it is.")
    async with awake(running_town.make_home("rowan")) as life:
        memories, clock = life.app.services.knowledge.stores.memories, life.app.services.clock
        await memories.save(NewMemory("lesson", "reeds", "Reeds bend."), clock.now() - timedelta(minutes=5))
        await memories.save(NewMemory("curated", "kit", "Kit mends clocks."), clock.now() - timedelta(days=5))
        await answered(life.app.owner, "Hello.")
        await memories.save(NewMemory("lesson", "slate", "Slate hums."), clock.now())
        await memories.save(NewMemory("curated", "ferry", "The ferry is late."), clock.now())
        await answered(life.app.owner, "And now?")
    before, after = (
        "".join(message.text for message in request.messages if message.role == "system")
        for request in running_town.mind.asked
    )
    assert before == after
    assert "Reeds bend." in before
    assert "# What you keep in mind (MEMORY.md)\n\n## kit\n\nKit mends clocks." in before
    assert all(
        words in running_town.mind.asked[1].messages[-1].text
        for words in ("Slate hums.", "## ferry\n\nThe ferry is late.")
    )

"""A whole SOUL remembers across restarts, keeps its owner's words private, and looks at pictures."""

import json
from datetime import timedelta

import pytest

from common.errors import SoulError
from common.files import write_atomic
from common.session_keys import OWNER_SESSION
from modules.services.memory.admission import Kind, NewMemory
from modules.services.sessions.archives import done, read_archive
from tests.owner_lines import answered
from tests.running_town import RunningSoul, RunningTown, awake, call, prompt_of, replying
from town.model.service import BadRequest
from town.model.types import ChatRequest, Completion

PRIVATE = "canary-heron-lake"
CURATED: tuple[Kind, ...] = ("curated",)


def system(request: ChatRequest) -> str:
    return "\n".join(message.text for message in request.messages if message.role == "system")


def refusing(_: ChatRequest) -> Completion:
    raise BadRequest("the content filter says no")


async def remember(life: RunningSoul, new: NewMemory) -> int:
    services = life.app.services
    return await services.knowledge.stores.memories.save(new, services.clock.now())


async def test_a_conversation_with_the_owner_goes_on_after_a_restart(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.mind.answer = lambda _: Completion(text="A heron, you said.")
    async with awake(home) as life:
        await answered(life.app.owner, "I saw a heron at the weir.")
    async with awake(home) as life:
        await answered(life.app.owner, "What did I see?")
    assert "I saw a heron at the weir." in prompt_of(running_town.mind.asked[-1])
    assert "A heron, you said." in prompt_of(running_town.mind.asked[-1])


async def test_new_ends_the_conversation_archives_it_and_remembers_what_matters(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")

    def mind(request: ChatRequest) -> Completion:
        if any(offer.name == "keep_memories" for offer in request.offers):
            return call(
                "keep_memories",
                summary="The owner keeps bees; the swarm of May is still open.",
                facts=["bees: The owner keeps bees on the roof"],
            )
        return Completion(text="Bees on the roof, noted.")

    running_town.mind.answer = mind
    async with awake(home) as life:
        knowledge = life.app.services.knowledge
        for line in ("I keep bees on the roof.", "They swarm in May.", "Remind me to look after the bees."):
            await answered(life.app.owner, line)
        outcome = await life.app.owner.start_afresh()
        assert outcome.status == "done"
        (archive,) = await life.app.services.database.run(lambda connection: done(connection, OWNER_SESSION, 9))
        read = await read_archive(knowledge.stores.storage, archive)
        assert read.success
        assert archive.message_count == 6
        found = [memory.body for memory in await knowledge.stores.memories.listed()]
        assert any("bees" in body for body in found)
        await answered(life.app.owner, "Hello again.")
        assert "They swarm in May." not in prompt_of(running_town.mind.asked[-1])
        assert "the swarm of May is still open" in prompt_of(running_town.mind.asked[-1])
        await answered(life.app.owner, "How are the bees?")
        assert "The owner keeps bees on the roof" in prompt_of(running_town.mind.asked[-1])


async def test_what_the_owner_told_is_in_no_prompt_that_others_could_read_the_answer_of(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    write_atomic(home.workspace / "USER.md", f"# Me\n\nI live at {PRIVATE}-user.")
    write_atomic(home.workspace / "CONTEXT.md", f"Today we speak of {PRIVATE}-context.")
    async with awake(home) as life:
        await remember(life, NewMemory("preference", "tea", f"Likes tea from {PRIVATE}-preference", trust="owner"))
        await remember(life, NewMemory("curated", "lake", f"The lake is {PRIVATE}-curated", trust="owner"))
        await remember(
            life, NewMemory("fact", "lake", f"Lives by {PRIVATE}-owner", source=OWNER_SESSION, trust="owner")
        )
        await remember(life, NewMemory("fact", "lake depth", "The lake is nine metres deep", trust="self"))
        running_town.mind.answer = lambda _: Completion(text="yes")
        await answered(life.app.owner, "tea and the lake?")
        own = prompt_of(running_town.mind.asked[-1])
        for where in ("user", "context", "preference", "curated", "owner"):
            assert f"{PRIVATE}-{where}" in own, where
        running_town.mind.answer = replying("Nine metres, they say. Do you swim there?")
        running_town.network.post_as(running_town.account("kit"), "@rowan.test do you like tea by the lake?")
        await life.look()
        public = [prompt_of(request) for request in running_town.mind.asked if "@kit.test" in prompt_of(request)]
        assert public
        await life.app.lives.bluesky.expression.express()
        public.append(prompt_of(running_town.mind.asked[-1]))
    assert all(PRIVATE not in text for text in public)
    assert "nine metres deep" in public[0]


@pytest.mark.slow
async def test_a_conversation_that_outgrows_the_context_is_condensed_and_goes_on(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", CONTEXT_TOKENS="9000")

    def mind(request: ChatRequest) -> Completion:
        if any(offer.name == "keep_memories" for offer in request.offers):
            return call(
                "keep_memories", summary="They spoke at length about weirs.", facts=["weirs: A weir holds water"]
            )
        return Completion(text="About weirs there is much to say. " * 60)

    running_town.mind.answer = mind
    async with awake(home) as life:
        for number in range(16):
            await answered(life.app.owner, f"Tell me about weir number {number}.")
        parts = await life.app.services.database.run(lambda connection: done(connection, OWNER_SESSION, 99))
    assert parts
    assert all(part.part is not None for part in parts)
    assert "They spoke at length about weirs." in prompt_of(running_town.mind.asked[-1])


async def test_a_model_too_small_for_its_prompt_is_told_in_one_line_with_the_largest_parts(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", CONTEXT_TOKENS="2000")
    async with awake(home) as life:
        with pytest.raises(Exception, match=r"SELF\.md|tool definitions") as refused:
            await answered(life.app.owner, "Hello?")
    assert "CONTEXT_TOKENS" in getattr(refused.value, "remedy", "")


async def test_the_journal_names_the_memories_that_came_to_mind(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        number = await remember(life, NewMemory("fact", "slate", "Slate remembers the rain"))
        running_town.network.post_as(running_town.account("kit"), "@rowan.test tin or slate?")
        await life.look()
        (entry,) = await life.app.services.journal.recent(1, kinds=["model"])
        assert entry.entry.data["memories"] == [number]
        assert json.dumps(entry.entry.data)


async def test_what_belongs_to_one_conversation_is_gone_when_it_ends(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    write_atomic(home.workspace / "CONTEXT.md", "We are planning the harvest.")
    running_town.mind.answer = lambda _: Completion(text="Yes.")
    async with awake(home) as life:
        await answered(life.app.owner, "Shall we go on?")
        assert "planning the harvest" in prompt_of(running_town.mind.asked[-1])
        await life.app.owner.start_afresh()
        await answered(life.app.owner, "And now?")
        assert "planning the harvest" not in prompt_of(running_town.mind.asked[-1])


async def test_the_page_to_wake_up_with_waits_for_a_turn_that_a_model_answers(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as life:
        await remember(life, NewMemory("protocol", "branches", "Work on a branch for each task", trust="owner"))
        await life.app.lives.turn_services.leave_notes()
    async with awake(home) as life:
        running_town.mind.answer = refusing
        with pytest.raises(SoulError):
            await answered(life.app.owner, "Good morning.")
        running_town.mind.answer = lambda _: Completion(text="Awake.")
        await answered(life.app.owner, "Are you there?")
        assert "## How We Work" in prompt_of(running_town.mind.asked[-1])
        assert "Good morning." in prompt_of(running_town.mind.asked[-1]), "what was asked before is not lost"


async def test_a_post_that_is_met_again_after_a_failure_is_kept_once(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.network.post_as(running_town.account("kit"), "@rowan.test tin or slate?")
    answer = running_town.mind.answer
    async with awake(home) as life:
        for mind in (refusing, refusing, answer):
            running_town.mind.answer = mind
            await life.look()
            life.passes(120)
        services = life.app.services
        (session,) = await services.knowledge.sessions.idle(services.clock.now() + timedelta(days=1))
        rows = await services.knowledge.sessions.rows(session.id)
        assert session.key.startswith("bluesky:thread:at://")
    assert [row.role for row in rows].count("user") == 1
    assert [row.role for row in rows] == ["user", "assistant", "toolResult"]

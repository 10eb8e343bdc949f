"""Proves on a whole SOUL that a turn sends the facts of its subject to a model service that reads facts."""

from common.facts import ExpressionFacts, PostFacts, SaidLine, ToolOutcome
from tests.owner_lines import answered
from tests.running_town import RunningTown, awake, call
from town.model.types import ChatRequest, Completion


async def test_a_turn_about_a_post_carries_the_post_and_its_thread(running_town: RunningTown) -> None:
    home, kit = running_town.make_home("rowan", AI_GATEWAY_FACTS="on"), running_town.account("kit")
    first, _ = running_town.network.post_as(running_town.account("rowan"), "Tin sings, slate listens.")
    uri, cid = running_town.network.post_as(kit, "And thatch, @rowan.test and @zoe.test?", reply_to_uri=first)
    running_town.mind.answer = lambda _: call("stay_silent", reason="not for me")
    async with awake(home) as life:
        await life.look()
        life.passes(60)
        await life.look()
    facts = running_town.mind.asked[-1].facts
    assert facts.about == PostFacts(
        uri=uri,
        cid=cid,
        author="kit.test",
        text="And thatch, @rowan.test and @zoe.test?",
        thread=(SaidLine("", "Tin sings, slate listens."),),
        several_addressed=True,
    )
    assert facts.purpose == "bluesky-response"
    assert (facts.agent.handle, bool(facts.agent.soul)) == ("rowan.test", True)
    assert facts.agent.self_lines["values"]


async def test_a_thought_of_its_own_carries_the_latest_posts_and_what_came_of_the_first_try(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", AI_GATEWAY_FACTS="on")
    for said in ("Moss.", "Copper is green.", "Rain falls.", "Tin sings.\nSlate listens."):
        running_town.network.post_as(running_town.account("rowan"), said)
    running_town.mind.answer = lambda _: call("bluesky_post", text="Thatch hums in the wind.")
    async with awake(home) as life:
        await life.app.lives.bluesky.expression.express()
    first, second = (asked.facts for asked in running_town.mind.asked[-2:])
    assert isinstance(first.about, ExpressionFacts)
    assert first.about.recent[0] == "Tin sings. Slate listens."
    assert first.about.source
    assert first.outcomes == ()
    text = "Thatch hums in the wind."
    assert second.outcomes == (ToolOutcome("bluesky_post", failed=True, draft=text, text=text),)


async def test_without_the_setting_nothing_is_told_but_words(running_town: RunningTown) -> None:
    seen: list[ChatRequest] = []

    def respond(request: ChatRequest) -> Completion:
        seen.append(request)
        return Completion("Slate.")

    home = running_town.make_home("rowan")
    running_town.mind.answer = respond
    async with awake(home) as life:
        await answered(life.app.owner, "Which roof today?")
    assert [request.facts.about for request in seen] == [None]

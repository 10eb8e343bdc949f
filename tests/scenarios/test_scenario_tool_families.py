"""The owner's turn begins with few tools; a family of tools is added when the model asks for it, and stays."""

import re

from tests.owner_lines import answered
from tests.running_town import RunningTown, awake, call, replying
from tests.scenarios.phone import Phone, look
from town.model.types import ChatRequest, Completion


def offered(request: ChatRequest) -> list[str]:
    return [offer.name for offer in request.offers]


async def test_a_family_of_tools_stays_once_it_is_opened_also_after_a_restart(running_town: RunningTown) -> None:
    town, phone, home = running_town, Phone(running_town, "owner"), running_town.make_home("rebecca")
    acts = [call("more_tools", family="pictures"), Completion("These."), Completion("Yes."), Completion("Still.")]
    town.mind.answer = lambda _: acts.pop(0)
    async with awake(home) as life:
        await answered(life.app.owner, "What could you do with pictures?")
        await answered(life.app.owner, "Could you search?")
    async with awake(home) as life:
        await look(life)
        phone.says("And now?")
        await look(life)
    assert acts == []
    first, *later = map(offered, town.mind.asked)
    assert "arena_search" not in first
    assert all("arena_search" in names and names[: len(first)] == first for names in later)
    assert "arena_search" not in town.mind.asked[0].messages[0].text
    places = ["in the terminal" in str(request.messages) for request in town.mind.asked]
    assert places == [True, True, True, False]
    assert "in a direct message on Bluesky" in str(town.mind.asked[-1].messages)


async def test_a_tool_of_a_family_that_is_not_open_works_and_opens_it(running_town: RunningTown) -> None:
    acts = [call("self_read"), Completion("That is me.")]
    running_town.mind.answer = lambda _: acts.pop(0)
    async with awake(running_town.make_home("rowan")) as life:
        assert await answered(life.app.owner, "Who are you?") == "That is me."
    first, second = running_town.mind.asked
    assert "self_read" not in offered(first)
    assert "self_update" in offered(second)
    assert "I'm rowan" in second.messages[-1].text


async def test_an_unknown_tool_is_answered_with_those_that_are_shown(running_town: RunningTown) -> None:
    acts = [
        call("paint"),
        call("more_tools", family="pictures"),
        call("paint"),
        Completion("I cannot paint."),
    ]
    running_town.mind.answer = lambda _: acts.pop(0)
    async with awake(running_town.make_home("rowan")) as life:
        await answered(life.app.owner, "Paint something.")
    before, after = (running_town.mind.asked[at].messages[-1].text for at in (1, 3))
    assert ("arena_search" in before, "arena_search" in after) == (False, True)


async def test_a_life_without_github_is_told_of_no_family_for_it(running_town: RunningTown) -> None:
    acts = [call("more_tools", family="github"), Completion("None.")]
    running_town.mind.answer = lambda _: acts.pop(0)
    async with awake(running_town.make_home("rowan")) as life:
        await answered(life.app.owner, "Read the issues.")
    described = next(offer for offer in running_town.mind.asked[0].offers if offer.name == "more_tools").description
    assert ("github:" in described, "pictures:" in described) == (False, True)
    assert "there is no such family here" in running_town.mind.asked[1].messages[-1].text


async def test_who_wants_quiet_gets_a_pause_and_is_told_the_commands_for_what_no_tool_does(
    running_town: RunningTown,
) -> None:
    acts = [call("more_tools", family="commands"), call("pause_acts", reason="until tomorrow"), Completion("Paused.")]
    running_town.mind.answer = lambda _: acts.pop(0)
    async with awake(running_town.make_home("rowan")) as life:
        await answered(life.app.owner, "Leave acme/garden, and be quiet until tomorrow.")
        standing = life.app.services.control.standing()
    told = running_town.mind.asked[1].messages[-1].text
    assert all(f"/{typed}" in told for typed in ("unwatch REPO", "task [leave] TASK", "resume", "ritual NAME"))
    assert "until tomorrow" in str(standing)
    assert not standing.may_act


async def test_a_prompt_names_no_tool_that_its_turn_does_not_offer(running_town: RunningTown) -> None:
    town, phones = running_town, [Phone(running_town, name) for name in ("owner", "kit")]
    town.mind.answer = replying("The slate keeps the rain out, and the sound in.")
    home = town.make_home("rebecca")
    phones[-1].is_followed()
    async with awake(home) as life:
        await look(life)
        for name in ("kit", "owner"):
            town.network.post_as(town.account(name), "@rebecca.test what does the slate say?")
            await life.look()
        for phone in phones:
            phone.says("Which slate would you take?")
            await look(life)
        await look(life)
        await life.app.lives.bluesky.expression.express()
        names = [tool.name for tool in life.app.lives.turn_services.turn_runner.executor.registry]
    turns = [request for request in town.mind.asked if request.offers]
    assert len({tuple(offered(request)) for request in turns}) >= 5
    for request in turns:
        prompt = " ".join(message.text for message in request.messages)
        named = {name for name in names if re.search(rf"\b{name}\b", prompt)}
        assert named <= set(offered(request))

"""A SOUL that meets a person again is shown what they said to each other, without what was deleted or forgotten."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from common.provenance import Provenance
from local_tools.self_tools import TalkSearchInput, TalkTools, talk_tools
from modules.runtime.journal.types import Entry
from modules.services.agent.tools.policy import allowed
from modules.services.agent.tools.types import Turn
from modules.services.exchanges import PublicPosts, TalkSearch
from modules.services.rights.requests import ForgetRequest, ForgetRequests
from soul.commands.people import carry_out_requests
from tests.running_town import RunningSoul, RunningTown, awake, call, prompt_of, replying, settings_of
from tests.scenarios.phone import Phone, look

ASKED, ANSWERED = (
    "my pump hums in the key of G, is that wrong?",
    "Not wrong, but tell me tomorrow whether it still does.",
)
OWNER = Provenance.OWNER
NIGHT_S = 15 * 3600.0


async def talk(town: RunningTown, soul: RunningSoul) -> str:
    """Let kit ask a question and be answered; return the uri of the question."""
    town.mind.answer = replying(ANSWERED)
    uri, _ = town.network.post_as(town.account("kit"), f"@rowan.test {ASKED}")
    await soul.look()
    assert town.texts("rowan")[-1] == ANSWERED
    town.mind.answer = replying("Then the washer is worn: look below the second valve.")
    return uri


async def prompt_for(town: RunningTown, soul: RunningSoul, name: str, words: str) -> str:
    """Post a new mention, and return all that the model is told in the turn about it."""
    before = len(town.mind.asked)
    town.network.post_as(town.account(name), f"@rowan.test {words}")
    await soul.look()
    return next(prompt_of(one) for one in town.mind.asked[before:] if one.offers)


async def test_the_next_morning_both_sides_of_the_talk_are_told_with_their_age_and_to_nobody_else(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as soul:
        await talk(running_town, soul)
        soul.passes(NIGHT_S)
        told = await prompt_for(running_town, soul, "kit", "it still does, so what now?")
        to_others = await prompt_for(running_town, soul, "odile", "does a pump of yours hum, too?")
    lines = told.splitlines()
    theirs = next(line for line in lines if line.endswith(f"@kit.test: @rowan.test {ASKED}"))
    assert theirs.startswith("[15 h]")
    assert lines[lines.index(theirs) + 1] == f"[15 h] YOU: {ANSWERED}"
    assert ASKED not in to_others
    assert ANSWERED not in to_others


async def test_what_the_thread_shows_is_not_told_twice(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as soul:
        await talk(running_town, soul)
        ours = next(post for post in running_town.network.posts(10) if post.text == ANSWERED)
        before = len(running_town.mind.asked)
        running_town.network.post_as(running_town.account("kit"), "it still does, what now?", reply_to_uri=ours.uri)
        await soul.look()
        told = next(prompt_of(one) for one in running_town.mind.asked[before:] if one.offers)
    assert told.count(ANSWERED) == 1


async def test_a_reply_of_ours_that_has_not_left_stands_in_the_thread(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.mind.answer = replying(ANSWERED)
    root, _ = running_town.network.post_as(running_town.account("kit"), f"@rowan.test {ASKED}")
    async with awake(home) as soul:
        await soul.app.scheduler.run_guarded("awareness")
        before = len(running_town.mind.asked)
        running_town.network.post_as(running_town.account("odile"), "@rowan.test and mine?", reply_to_uri=root)
        soul.passes(60)
        await soul.app.scheduler.run_guarded("awareness")
        told = next(prompt_of(one) for one in running_town.mind.asked[before:] if one.offers)
    lines = told.splitlines()
    assert f"[not sent yet] YOU → @kit.test: {ANSWERED}" in lines
    assert "[1 min] @odile.test → @kit.test: (the post to meet)" in lines


async def test_what_they_deleted_is_not_told_nor_what_we_answered_to_it(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as soul:
        uri = await talk(running_town, soul)
        running_town.network.delete(*uri.removeprefix("at://").split("/"))
        told = await prompt_for(running_town, soul, "kit", "it still does, so what now?")
    assert ASKED not in told
    assert ANSWERED not in told


async def test_the_owner_finds_what_was_said_by_words_person_and_time_and_nothing_that_was_deleted(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as soul:
        uri = await talk(running_town, soul)
        running_town.network.post_as(running_town.account("odile"), "@rowan.test the heron counts to nine")
        await soul.look()
        services = soul.app.services
        posts = PublicPosts(services.atproto, services.preferences, services.moderation)
        search, now = TalkSearch(services.database, posts), services.clock.now()

        async def found(words: str = "", person: str = "", days: int = 1) -> set[tuple[str, str]]:
            known = await search.find(words, person, now - timedelta(days=days), 20)
            return {(one.who, one.text) for one in known.shown}

        asked, answered = ("kit.test", f"@rowan.test {ASKED}"), ("", ANSWERED)
        assert await found("PUMP key") == {asked}
        assert await found("tomorrow still") == {answered}
        assert await found(person="@kit.test") == {asked, answered}
        assert ("odile.test", "@rowan.test the heron counts to nine") in await found()
        assert await found("pump", days=-1) == set()
        assert await found(person="@nobody.test") == set()
        tools = TalkTools(search, services.skills, services.clock, services.rng, "UTC")
        told = await tools.search(TalkSearchInput(words="pump"), Turn("owner", Provenance.STRANGER, origin=OWNER))
        assert ASKED in told.content
        assert told.provenance is Provenance.STRANGER
        for act, message in (("heard", ""), ("spoke", "I promise to mend the pump in the cellar.")):
            data = {"act": act, "message": message, "received": ["Host: who mends the other pump?"]}
            entry = Entry("decision", "space-participation", act, trigger_uri="space://conversation/quay", data=data)
            await services.journal.record(entry)
        both = {("Host", "who mends the other pump?"), ("", "I promise to mend the pump in the cellar.")}
        assert await found("pump") == {*both, asked}
        assert await found(person="host") == {("Host", "who mends the other pump?")}
        told = await tools.search(TalkSearchInput(words="pump", limit=1), Turn("owner", OWNER))
        assert "[now] YOU: I promise to mend the pump in the cellar. (in the room)" in told.content
        assert "2 more, older ones are not shown" in told.content
        (tool,) = talk_tools(tools)
        assert allowed(tool, Turn("owner", OWNER), social_only=True)
        for turn in (Turn("awareness", OWNER), Turn("owner", Provenance.STRANGER)):
            assert not allowed(tool, turn, social_only=True)
        running_town.network.delete(*uri.removeprefix("at://").split("/"))
        assert await found("pump") == both


async def test_a_direct_message_is_answered_with_the_public_talk_in_mind_and_is_told_nowhere_else(
    running_town: RunningTown,
) -> None:
    home, kit, secret = running_town.make_home("rowan"), Phone(running_town, "kit", "rowan"), "the key is below the pot"
    kit.is_followed()
    async with awake(home) as soul:
        await look(soul)
        await talk(running_town, soul)
        running_town.mind.answer = lambda _: call("message_answer", text="Then I know where it is now.")
        kit.says(f"By the way, {secret}.")
        await look(soul)
        private = prompt_of(running_town.mind.asked[-1])
        running_town.mind.answer = replying("Then the washer is worn: look below the second valve.")
        public = await prompt_for(running_town, soul, "kit", "it still does, so what now?")
    assert kit.answers == ["Then I know where it is now."]
    assert f"[now] YOU: {ANSWERED}" in private
    assert f"[now] YOU: {ANSWERED}" in public
    assert secret not in public
    assert "I know where it is" not in public


@pytest.mark.slow
async def test_who_was_forgotten_is_met_as_somebody_new(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as soul:
        await talk(running_town, soul)
        requests = ForgetRequests(home.memory)
        now = soul.app.services.clock.now()
        requests.give(replace(ForgetRequest(running_town.account("kit"), now), not_before=now.replace(year=2020)))
    await asyncio.to_thread(carry_out_requests, settings_of(home), home)
    async with awake(home) as soul:
        told = await prompt_for(running_town, soul, "kit", "it still does, so what now?")
    assert ASKED not in told
    assert ANSWERED not in told

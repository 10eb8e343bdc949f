"""The SOUL is called into threads on GitHub, and comments there once, over restarts and errors."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator

import pytest

from modules.lives.github.respond import TOOLS, WORK_TOOLS
from modules.services.day.gathering import DayReader
from modules.services.github_threads.threads import THREAD
from tests.running_town import RunningTown, awake, call, settings_of
from tests.scenarios.github_talk import CLOCK, SAID, Place, acts, look, minding, open_place
from town.github.faults import Fault
from town.model.types import ChatRequest, Completion


@pytest.fixture
async def place(running_town: RunningTown) -> AsyncIterator[Place]:
    async with open_place(running_town, "owner") as found:
        yield found


def _unsettle(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE work SET state = 'pending' WHERE kind = 'thread'")


async def test_a_thread_that_the_owner_links_to_gets_one_comment(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        await look(soul)
        assert place.comments == [SAID]
        # NOTE(self): a comment of ours that falls into the next second is looked at once more.
        assert [one for one in await acts(soul) if one != ("noted", "own-last")] == [("commented", "owner-request")]
        place.post_link()
        await look(soul)
        assert (await acts(soul))[-1] == ("noted", "own-last")
        day = DayReader(settings_of(home), home, soul.clock).read()
        assert not [one for one in day.reasons if one.act == "silent"], "what was answered is not left alone"
    asked = next(one for one in place.town.mind.asked if "github_create_issue_comment" in {o.name for o in one.offers})
    assert {offer.name for offer in asked.offers} == {*TOOLS, *WORK_TOOLS}
    told = "\n".join(message.text for message in asked.messages)
    assert "Narrow or wide?" in told
    assert "Your owner showed you this thread" in told


async def test_a_comment_that_breaks_off_after_a_few_words_is_written_once_more(place: Place) -> None:
    place.town.mind.answer, home = minding("Well, narrow is…", SAID), place.home()
    place.post_link()
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert place.comments == [SAID]


async def test_in_a_thread_that_the_owner_shows_work_is_proposed_there_and_waits_for_their_yes(place: Place) -> None:
    """What is proposed is no answer: after a restart in between the thread still gets its comment."""
    plain = minding()
    steps = iter(
        (
            call("create_memo", title="What we measure", owner="kit", repo="garden"),
            call("create_memo", title="What we measure", body="Both, for a week."),
            call("github_list_issues"),
        )
    )

    def respond(request: ChatRequest) -> Completion:
        names = {offer.name for offer in request.offers}
        if {"create_memo", "github_create_issue_comment"} <= names:
            assert "github_follow_user" not in names
            return next(steps, None) or plain(request)
        return plain(request)

    place.town.mind.answer, home = respond, place.home()
    place.post_link()
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        held = await soul.app.services.outbox.held()
        assert [(one.kind, one.body.short_preview) for one in held] == [("issue", "owner/site: What we measure")]
        assert place.comments == [SAID]
        assert await acts(soul) == [("commented", "owner-request")]
        assert next(steps, None) is None
        place.network.write_comment(place.repo, place.issue, place.issue.author, "@rowan and for a month?")
        place.town.mind.answer = minding("A month is fine.")
        asked = len(place.town.mind.asked)
        await look(soul)
        turns = ({offer.name for offer in request.offers} for request in place.town.mind.asked[asked:])
        offered = set().union(*(names for names in turns if "github_create_issue_comment" in names))
        assert "github_create_issue_comment" in offered
        assert offered & {"create_memo", "github_list_issues", "plan_create"} == set()


async def test_a_thread_that_is_gone_is_given_up(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    place.network.delete_issue(place.repo, place.issue, place.repo.owner)
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert await acts(soul) == [("dropped", "gone")]


async def test_a_comment_of_bad_form_is_sent_back_once_and_then_the_owner_is_answered(place: Place) -> None:
    place.town.mind.answer = minding("I'm Rowan, an AI agent. The narrow one.", "Let me introduce myself: Rowan.")
    home = place.home()
    place.post_link()
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert await acts(soul) == [("commented", "owner-request")]
    assert place.comments == ["Let me introduce myself: Rowan."]


async def test_a_social_life_looks_at_no_thread_and_has_no_tool_for_one(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link()
    async with awake(home, clock=CLOCK, social_only=True) as soul:
        await look(soul)
        assert place.comments == []
        names = {loop.name for loop in soul.app.scheduler.states()}
        assert not {"github-awareness", "plan-awareness"} & names
        assert await soul.app.services.work.newest(THREAD, 9) == []


async def test_who_mentions_the_soul_in_an_issue_is_answered_once_and_the_notification_is_read(place: Place) -> None:
    place.town.mind.answer, home = minding(SAID, "Another thought."), place.home()
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        place.say("kit", "@rowan which of the two loses fewer readers?")
        await look(soul)
        await look(soul)
        assert place.comments == [SAID]
        assert (await acts(soul))[0] == ("commented", "mentioned")
        rowan = place.network.find("rowan")
        assert rowan
        assert place.network.state.notifications.of(rowan) == []
    known = json.loads((home.memory / "github_engagement.json").read_text())["conversations"]["owner/site#1"]
    assert (known["state"], known["source"]) == ("awaiting_response", "github_notification")


async def test_a_mention_is_not_lost_with_the_process_or_with_the_answers_of_github(place: Place) -> None:
    place.town.mind.answer, home = minding(SAID, "Another thought."), place.home()
    place.say("kit", "@rowan which of the two loses fewer readers?")
    async with awake(home, clock=CLOCK) as soul:
        place.faults.arm(Fault("bad_gateway", "GET /notifications*", times=10))
        await look(soul)
        assert "cannot be read" in "".join(one.entry.summary for one in await soul.app.services.journal.recent(30))
    place.faults.clear()
    async with awake(home, clock=CLOCK) as soul:
        place.faults.arm(Fault("lost_answer", "GET /repos/*", times=100))
        await look(soul)
        assert [one.state for one in await soul.app.services.work.newest(THREAD, 9)] == ["pending"]
    place.faults.clear()
    async with awake(home, clock=CLOCK) as soul:
        place.faults.arm(Fault("lost_answer", "POST /repos/*/comments"))
        await look(soul)
        await soul.app.services.database.run(_unsettle)
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        await look(soul)
    assert place.comments == [SAID]


async def test_a_thread_in_which_nothing_was_written_since_silence_costs_no_second_call(place: Place) -> None:
    asked = list[str]()

    def silent(request: ChatRequest) -> Completion:
        if "github_stay_silent" not in {offer.name for offer in request.offers}:
            return minding()(request)
        asked.append(request.messages[-1].text)
        return call("github_stay_silent", reason="it is settled")

    place.town.mind.answer = silent
    place.say("kit", "@rowan which of the two loses fewer readers?")
    async with awake(place.home(), clock=CLOCK) as soul:
        await look(soul)
        assert len(asked) == 1
        owner = place.repo.owner
        for assignees in (["rowan"], []):
            place.network.change_issue(place.repo, place.issue, owner, assignees=assignees)
        await look(soul)
        assert len(asked) == 1
        assert ("silent", "nothing-new") in await acts(soul)
        place.say("kit", "@rowan I mean it.")
        await look(soul)
        assert len(asked) == 2


async def test_a_person_who_goes_on_after_the_answer_is_heard_without_a_mention(place: Place) -> None:
    place.town.mind.answer, home = minding(SAID, "By the third week, says @rowan to @kit."), place.home()
    place.say("kit", "@rowan which of the two loses fewer readers?")
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        place.say("kit", "And until when would you measure?")
        await look(soul)
    assert place.comments == [SAID, "By the third week, says rowan to @kit."]


@pytest.mark.slow
async def test_a_thread_that_the_soul_left_is_entered_again_once_for_a_mention_and_always_for_the_owner(
    place: Place,
) -> None:
    home = place.home()

    def leaving(request: ChatRequest) -> Completion:
        if "github_graceful_exit" in {offer.name for offer in request.offers}:
            return call("github_graceful_exit", closing_type="like", reason="it is settled")
        return minding()(request)

    place.town.mind.answer = leaving
    async with awake(home, clock=CLOCK) as soul:
        for text in ("@rowan, thanks, that settles it.", "No, @rowan, it does not.", "@rowan, once more?"):
            place.say("kit", text)
            await look(soul)
        place.post_link()
        await look(soul)
        found = await acts(soul)
        assert list(dict.fromkeys(found)) == [("left", "mentioned"), ("silent", "concluded"), ("left", "owner-request")]
        assert found.count(("left", "mentioned")) == 2
    known = json.loads((home.memory / "github_engagement.json").read_text())["conversations"]["owner/site#1"]
    assert (known["state"], known["conclusionReason"], known["reengagementCount"]) == ("concluded", "it is settled", 1)
    assert [(one.author.login, one.content) for one in place.issue.reactions] == [("rowan", "heart")]
    assert place.comments == []


async def test_a_thread_that_ends_a_workspace_is_left_alone(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    owner = place.repo.owner
    place.network.change_issue(place.repo, place.issue, owner, labels=["finished"])
    place.say("kit", "@rowan is it done?")
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert (await acts(soul))[0] == ("silent", "finished")


async def test_a_thread_is_not_answered_because_a_stranger_links_to_it(place: Place) -> None:
    place.town.mind.answer, home = minding(), place.home()
    place.post_link(by="ada")
    async with awake(home, clock=CLOCK) as soul:
        await look(soul)
        assert place.comments == []
        assert await acts(soul) == [("silent", "not-addressed")]

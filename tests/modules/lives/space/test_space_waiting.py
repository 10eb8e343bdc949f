"""Proves that nothing waits inside a check of the room: a message waits for its moment, and all else goes on.

A request need not be repeated: the watched workspace counts as named, and a yes to a question as its go-ahead. A quiet
room is opened by one of those present, and not too often. What the host withdraws is not done: the request closes, and
its commitments and claims end.
"""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.github.types import Repo
from adapters.space.types import ELECTION_RULES, ActionDone, Claimed
from common.clock import FakeClock, SystemClock
from common.result import Ok
from common.schemas import SPACE_DECISION_TOOL
from modules.lives.space.commitment_maker import LOOP, WITHDRAWN
from modules.lives.space.host_request import is_open
from modules.lives.space.policy import elect_action_owner, elected_opener, should_open, wait_s
from modules.runtime.scheduler.scheduler import Scheduler
from modules.services.commitments.acts import work_of
from tests.exploration import examples
from tests.modules.lives.space.soul_in_room import (
    QUESTION,
    REQUEST,
    TIN,
    Agent,
    Room,
    an_issue,
    decision,
    declines,
    in_turn,
    labelling,
    open_room,
    speaks,
    summaries,
)
from tests.owner_lines import answered
from tests.patience import until
from tests.running_town import RunningTown
from tests.shipped_skills import phrase
from town.model.types import ChatRequest, Completion

PAUSE_MS = 30_000


def pause_before_speaking(agent: Agent) -> None:
    config = agent.space.config.load_space_config()
    agent.space.config.save_space_config(replace(config, reply_delay_min_ms=10_000, reply_delay_max_ms=PAUSE_MS))


async def test_the_owner_is_answered_while_a_message_to_the_room_waits_for_its_moment(room: Room) -> None:
    def mind(request: ChatRequest) -> Completion:
        in_room = any(offer.name == SPACE_DECISION_TOOL for offer in request.offers)
        return speaks(TIN) if in_room else Completion(text="Yes, I am here.")

    async with room.soul("marvin", mind) as marvin:
        pause_before_speaking(marvin)
        app = marvin.life.app
        scheduler = Scheduler(
            [marvin.space.loop],
            agent_name="marvin",
            clock=marvin.clock,
            journal=app.services.journal,
            attention=app.services.attention,
        )
        await room.says(QUESTION, marvin)
        outcome = await scheduler.run_guarded(LOOP)
        assert outcome.reason == "a message waits for its moment"
        assert 0 < (outcome.next_in_s or 0) <= PAUSE_MS / 1000
        assert await answered(app.owner, "Are you there?") == "Yes, I am here."
        assert (await scheduler.run_guarded(LOOP)).reason == "a message waits for its moment"
        assert room.host.said("marvin") == []
        marvin.later(PAUSE_MS / 1000)
        assert (await scheduler.run_guarded(LOOP)).reason == "spoke"
        assert room.host.said("marvin") == [TIN]


async def test_the_loop_comes_back_for_a_message_when_its_moment_has_come(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        pause_before_speaking(marvin)
        services = marvin.life.app.services
        scheduler = Scheduler(
            [marvin.space.loop],
            agent_name="marvin",
            clock=marvin.clock,
            journal=services.journal,
            attention=services.attention,
        )
        await scheduler.start()
        awake = asyncio.create_task(marvin.space.loop.keep_awake(scheduler))
        try:
            await room.says(QUESTION)
            await until(lambda: marvin.space.participation.waits)
            soon = marvin.clock.now() + timedelta(seconds=9)
            await until(lambda: (at := scheduler.states()[0].next_at) is not None and at > soon)
            marvin.later(PAUSE_MS / 1000)
            scheduler.bring_forward(LOOP)
            await until(lambda: room.host.said("marvin") == [TIN])
        finally:
            awake.cancel()
            await asyncio.gather(awake, return_exceptions=True)
            await scheduler.stop()


async def test_a_message_that_waits_is_checked_against_the_room_as_it_is_then(room: Room) -> None:
    async with room.member("rebecca") as rebecca, room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        pause_before_speaking(marvin)
        await room.says("I look for a roof for my barn.", marvin)
        await marvin.space.loop.run()
        await until(lambda: rebecca.view.typing() == ["marvin"])
        await rebecca.send_chat(TIN)
        await marvin.receives(TIN)
        marvin.later(PAUSE_MS / 1000)
        outcome = await marvin.space.loop.run()
        assert outcome.reason == "others have spoken meanwhile: semantic echo"
        assert not marvin.space.participation.waits
        assert room.host.said("marvin") == []


async def test_what_is_committed_is_claimed_while_its_words_wait(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks("The clock issue is mine now.", an_issue())) as marvin:
        pause_before_speaking(marvin)
        await room.says(REQUEST, marvin)
        await marvin.space.loop.run()
        await until(lambda: [one.action for one in room.host.seen if isinstance(one, Claimed)] == ["create_issue"])
        assert marvin.queued_commitments() == []
        assert room.host.said("marvin") == []
        marvin.later(PAUSE_MS / 1000)
        assert (await marvin.check()).reason == "spoke"
        assert [one.type for one in marvin.queued_commitments()] == ["create_issue"]


async def test_a_message_that_may_not_be_said_any_more_is_dropped_before_its_moment(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(TIN)) as marvin:
        pause_before_speaking(marvin)
        await room.says(QUESTION, marvin)
        await marvin.space.loop.run()
        marvin.mute_reason.append("paused by the owner")
        assert (await marvin.space.loop.run()).reason == "paused by the owner"
        assert not marvin.space.participation.waits
        assert (await decision(marvin, "Not said")).data["message"] == TIN
        assert room.host.said("marvin") == []


class StoppedClock(SystemClock):
    """A clock that stands still, so that a member of the room may say one thing and no more."""

    def monotonic(self) -> float:
        return 0.0


async def test_a_message_that_cannot_be_sent_leaves_nothing_behind(room: Room) -> None:
    words = "The clock issue is mine."
    async with room.soul("marvin", lambda _: speaks(words, an_issue()), clock=StoppedClock()) as marvin:
        pause_before_speaking(marvin)
        await room.says(REQUEST, marvin)
        life = marvin.space.participation
        assert (await life.check()).code == "waiting"
        marvin.later(PAUSE_MS / 1000)
        said = await marvin.client.send_chat("The room is busy.")
        assert isinstance(said, Ok)
        await marvin.client.delivered(said.data)
        while isinstance(await marvin.client.send_chat("The room is busy."), Ok):
            pass
        assert (await life.check()).code == "unsaid"
        assert marvin.queue.live() == []
        assert words not in [entry.content for entry in life.talk.state.history]
        assert is_open(life.talk.state.request)
        assert "Spoke" not in await summaries(marvin)
        assert (await decision(marvin, "Not said")).data["message"] == words


@pytest.mark.parametrize(
    ("not_before", "now", "left_s"),
    [(0.3, 0.1 + 0.1 + 0.1 - 1e-9, 0.0), (10.0, 9.991, 0.0), (10.0, 12.0, 0.0), (10.0, 9.9, 0.1)],
)
def test_a_moment_counts_as_come_ten_milliseconds_before_it(not_before: float, now: float, left_s: float) -> None:
    assert wait_s(not_before, now) == pytest.approx(left_s)


CLOCK = "The clock stops at midnight. Please open an issue for it."
OFFER = "That clock bothers me as well. Shall I open an issue for it?"
GO_AHEAD = "Yes, go ahead"
PROMISE = "The clock at midnight is mine, and I describe how to see it."
KNOWING = ("social", "github", "code", *ELECTION_RULES)


def watches(agent: Agent, *names: str) -> None:
    for name in names:
        agent.life.app.services.workspaces.watch(Repo(*name.split("/")))


def prompts(running_town: RunningTown) -> list[str]:
    return [request.messages[-1].text for request in running_town.mind.asked]


async def sent_to(agent: Agent) -> tuple[str, bool]:
    """Return the repository of its only commitment, and whether the host counts as having named it."""
    (made,) = agent.queued_commitments()
    params = made.params.as_json()
    return f"{params['owner']}/{params['repoName']}", params.get("hostNamedRepo", False) and params["hostRequest"]


@pytest.mark.parametrize("named", ["acme/site", "site", ""])
async def test_the_only_watched_workspace_counts_as_named_in_full_in_short_and_not_at_all(
    room: Room, named: str
) -> None:
    async with room.soul("marvin", lambda _: speaks(PROMISE, an_issue(repo=named))) as marvin:
        watches(marvin, "acme/site")
        await room.says(CLOCK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [PROMISE]
        assert await sent_to(marvin) == ("acme/site", True)
    assert len(prompts(room.running_town)) == 1


async def test_the_host_may_say_that_the_only_workspace_is_not_meant(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(PROMISE, an_issue())) as marvin:
        watches(marvin, "acme/site")
        await room.says(f"{CLOCK} But not in acme/site.", marvin)
        await marvin.check()
        assert await sent_to(marvin) == ("acme/site", False)


async def test_of_several_workspaces_the_host_is_asked_by_name_and_may_answer_in_short(room: Room) -> None:
    ask = "Is that for the site, or for the api?"
    async with room.soul("marvin", in_turn(speaks(PROMISE, an_issue(repo="")), speaks(ask))) as marvin:
        watches(marvin, "acme/site", "acme/api")
        await room.says(CLOCK, marvin)
        await marvin.check()
        assert room.host.said("marvin") == [ask]
        asked = prompts(room.running_town)[-1]
        assert "acme/site, acme/api" in asked
        assert "YOU are the assignee" not in asked
        assert '"Clock stops": create_issue: no repository is known' in asked
        room.running_town.mind.answer = lambda _: speaks(PROMISE, an_issue(repo="api"))
        marvin.later(30)
        await room.says("The api, of course.", marvin)
        await marvin.check()
        assert await sent_to(marvin) == ("acme/api", True)


async def test_in_a_room_that_was_only_found_no_workspace_is_known(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks(PROMISE, an_issue())) as marvin:
        marvin.found.append("found")
        watches(marvin, "acme/site")
        await room.says(CLOCK, marvin)
        await marvin.check()
        assert marvin.queued_commitments() == []
        assert "acme/site" not in prompts(room.running_town)[0]


async def test_who_asked_acts_on_the_hosts_yes_whoever_would_have_been_elected(room: Room) -> None:
    assert elect_action_owner(["marvin", "ana"], f"marvin: {OFFER}\nhost: {GO_AHEAD}") == "ana"
    minds = in_turn(speaks(OFFER), speaks(PROMISE, an_issue()))
    async with (
        room.member("ana", KNOWING) as ana,
        room.soul("marvin", labelling("GO_AHEAD", OFFER, GO_AHEAD, decide=minds), asks_intents=True) as marvin,
    ):
        watches(marvin, "acme/site")
        await room.says("I wonder what the clock does at midnight.", marvin)
        await marvin.check()
        assert room.host.said("marvin") == [OFFER]
        await ana.send_chat("Mine rings.")
        await marvin.receives("Mine rings.")
        marvin.later(30)
        await room.says(GO_AHEAD, marvin)
        await marvin.check()
        await until(lambda: room.host.said("marvin") == [OFFER, PROMISE])
        assert await sent_to(marvin) == ("acme/site", True)
        entry = await decision(marvin, "Structured commitments")
    assert entry.data["owner"] == "marvin"
    assert "YOU are the assignee" in prompts(room.running_town)[-1]


async def test_what_was_refused_is_told_with_its_reason_in_the_next_prompt_alone(room: Room) -> None:
    listed = "Two things:\n- the hand\n- the spring"
    minds = in_turn(speaks(listed), speaks("The spring is what I would look at first."), speaks("Then the hand."))
    async with room.soul("marvin", minds) as marvin:
        for question in ("What is wrong with the clock?", "And what else?", "What if it is neither?"):
            await room.says(question, marvin)
            await marvin.check()
            marvin.later(60)
    first, second, third = prompts(room.running_town)
    reason = "a list, where talk is prose"
    assert [reason in text for text in (first, second, third)] == [False, True, False]


NOW = FakeClock().now()
ELECTED = elected_opener(("marvin", "rebecca"), NOW) or ""
OTHER = "rebecca" if ELECTED == "marvin" else "marvin"


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("joined", "received", "opened", "opens"),
    [
        (60, None, None, True),
        (59, None, None, False),
        (None, None, None, False),
        (900, 599, None, False),
        (900, 600, None, True),
        (9000, 900, 3599, False),
        (9000, 900, 3600, True),
    ],
    ids=["a minute alone", "just come", "not in", "spoken lately", "long quiet", "opened lately", "long ago"],
)
def test_a_conversation_is_opened_after_a_silence_and_once_an_hour(
    joined: float | None,
    received: float | None,
    opened: float | None,
    opens: bool,  # noqa: FBT001 - a table
) -> None:
    decision = should_open(
        ELECTED,
        [OTHER],
        NOW,
        joined_at=None if joined is None else ago(joined),
        last_message_at=None if received is None else ago(received),
        opened_at=None if opened is None else ago(opened),
    )
    assert bool(decision) is opens, decision.reason


def test_nobody_talks_to_an_empty_room_and_only_the_elected_one_begins() -> None:
    assert not should_open(ELECTED, [], NOW, joined_at=ago(999), last_message_at=None, opened_at=None)
    assert not should_open(OTHER, [ELECTED], NOW, joined_at=ago(999), last_message_at=None, opened_at=None)


@settings(max_examples=examples(50))
@given(st.sets(st.text(min_size=1, max_size=8), min_size=2, max_size=6), st.integers(0, 10_000))
def test_exactly_one_of_those_present_is_elected_whoever_reckons(names: set[str], hours: int) -> None:
    now = NOW + timedelta(hours=hours)
    opening = [
        me
        for me in names
        if should_open(me, names - {me}, now, joined_at=now - timedelta(hours=1), last_message_at=None, opened_at=None)
    ]
    assert opening == [elected_opener(sorted(names), now)]


def test_every_hour_another_may_be_elected() -> None:
    hours = {elected_opener(("a", "b", "c", "d"), NOW + timedelta(hours=hour)) for hour in range(48)}
    assert len(hours) > 2
    assert elected_opener((), NOW) is None


LEAVE_IT, BEHIND_IT = "No, leave it.", "It was a bad idea of mine."


async def test_a_no_of_the_host_ends_the_request_its_commitment_and_its_claim(room: Room) -> None:
    minds = in_turn(speaks(PROMISE, an_issue()), declines())
    async with room.soul(
        "marvin", labelling("WITHDRAWAL", LEAVE_IT, REQUEST, decide=minds), asks_intents=True
    ) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        assert [one.status for one in marvin.queued_commitments()] == ["pending"]
        marvin.later(30)
        await room.says(LEAVE_IT, marvin)
        await marvin.check()
        assert [(one.status, one.error) for one in marvin.queued_commitments()] == [("abandoned", WITHDRAWN)]
        ends = (event for event in room.host.seen if isinstance(event, ActionDone))
        await until(lambda: [(end.success, end.error) for end in ends] == [(False, WITHDRAWN)])
        marvin.later(30)
        await marvin.check()
        assert room.host.said("marvin") == [PROMISE]
        assert len(marvin.queued_commitments()) == 1
    told = room.running_town.mind.asked[-1].messages[-1].text
    assert "taken the request back" in told
    assert "YOU are the assignee" not in told


@pytest.mark.parametrize("is_while_speaking", [True, False])
async def test_a_no_of_the_host_counts_also_with_another_line_behind_it_or_while_it_speaks(
    room: Room, *, is_while_speaking: bool
) -> None:
    minds = in_turn(speaks(PROMISE, an_issue()), *([speaks(TIN)] if is_while_speaking else []), declines())
    labels = labelling("WITHDRAWAL", LEAVE_IT, REQUEST, decide=minds)

    def decide(request: ChatRequest) -> Completion:
        said = request.messages[-1].text
        return Completion(text="DISCUSSION") if "Label:" in said and BEHIND_IT in said else labels(request)

    async with room.soul("marvin", decide, asks_intents=True) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        marvin.later(30)

        async def takes_back() -> None:
            await room.says(LEAVE_IT, marvin)

        if is_while_speaking:
            await room.says(QUESTION, marvin)
            await marvin.check(takes_back)
        else:
            await takes_back()
            await room.says(BEHIND_IT, marvin)
        for _ in range(2):
            await marvin.check()
            marvin.later(30)
        assert [(one.status, one.error) for one in marvin.queued_commitments()] == [("abandoned", WITHDRAWN)]


@pytest.mark.parametrize("is_sent", [False, True])
async def test_a_no_after_the_act_is_queued_stops_it_or_the_model_is_told_that_it_is_too_late(
    room: Room, *, is_sent: bool
) -> None:
    minds = in_turn(speaks(PROMISE, an_issue()), declines())
    async with room.soul(
        "marvin", labelling("WITHDRAWAL", LEAVE_IT, REQUEST, decide=minds), asks_intents=True
    ) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        (promised,) = marvin.queued_commitments()
        await marvin.queue.mark_in_progress(promised.id)
        outbox = marvin.life.app.services.outbox
        (act,) = work_of(promised, phrase=phrase).actions
        assert (await outbox.do_once(act)).active
        if is_sent:
            await outbox.database.run(lambda rows: rows.execute("UPDATE intents SET state = 'done'"))
        marvin.later(30)
        await room.says(LEAVE_IT, marvin)
        await marvin.check()
        (stands,) = await outbox.by_target(act.kind, act.target)
        (after,) = marvin.queued_commitments()
    assert (after.status, stands.outcome) == (("in_progress", "done") if is_sent else ("abandoned", "withdrawn"))
    assert ("cannot be stopped" in prompts(room.running_town)[-1]) is is_sent


async def test_a_no_in_a_pause_is_heard_and_the_room_is_told_nothing_of_it_in_the_pause(room: Room) -> None:
    minds = labelling("WITHDRAWAL", LEAVE_IT, REQUEST, decide=lambda _: speaks(PROMISE, an_issue()))
    async with room.soul("marvin", minds, asks_intents=True) as marvin:
        await room.says(REQUEST, marvin)
        await marvin.check()
        marvin.later(30)
        marvin.mute_reason.append("paused by the owner")
        await room.says(LEAVE_IT, marvin)
        await marvin.check()
        assert [(one.status, one.error) for one in marvin.queued_commitments()] == [("abandoned", WITHDRAWN)]
        await room.says(QUESTION, marvin)
        assert not any(isinstance(event, ActionDone) for event in room.host.seen)


@pytest.mark.parametrize("away_s", [30, 3600])
async def test_a_no_while_the_process_was_down_is_heard_before_anything_promised_is_done(
    running_town: RunningTown, away_s: float
) -> None:
    minds = in_turn(speaks(PROMISE, an_issue()), declines())
    minds = labelling("WITHDRAWAL", LEAVE_IT, REQUEST, decide=minds)
    async with open_room(running_town, log=True) as room:
        async with room.soul("marvin", minds, asks_intents=True) as marvin:
            await room.says(REQUEST, marvin)
            await marvin.check()
            assert [one.status for one in marvin.queued_commitments()] == ["pending"]
        await room.says(LEAVE_IT)
        async with room.soul("marvin", minds, asks_intents=True) as again:
            again.later(away_s)
            await again.space.participation.perceiver.look()
            assert not again.space.has_joined_room
            await again.check()
            assert again.space.has_joined_room
            assert [(one.status, one.error) for one in again.queued_commitments()] == [("abandoned", WITHDRAWN)]


async def test_a_request_from_some_minutes_before_a_soul_comes_in_is_met(running_town: RunningTown) -> None:
    async with open_room(running_town, log=True) as room:
        await room.says(CLOCK_ISSUE)
        async with room.soul("marvin", lambda _: speaks(PROMISE, an_issue())) as marvin:
            marvin.later(120)
            for _ in range(3):
                await marvin.check()
                marvin.later(10)
            assert len(marvin.queued_commitments()) == 1


async def test_a_no_that_comes_while_the_promise_waits_for_its_moment_stops_it(room: Room) -> None:
    minds = in_turn(speaks(PROMISE, an_issue()), declines())
    async with room.soul(
        "marvin", labelling("WITHDRAWAL", LEAVE_IT, REQUEST, decide=minds), asks_intents=True
    ) as marvin:

        async def takes_back() -> None:
            await room.says(LEAVE_IT, marvin)

        await room.says(REQUEST, marvin)
        await marvin.check(takes_back)
        await until(lambda: any(isinstance(event, Claimed) for event in room.host.seen))
        await until(lambda: any(isinstance(event, ActionDone) for event in room.host.seen))
        assert room.host.said("marvin") == []
        assert marvin.queued_commitments() == []


CLOCK_ISSUE = "please open an issue about the clock in github.com/acme/site."
GUTTER_ISSUE = "please open an issue about the gutter in github.com/acme/site."


@pytest.mark.parametrize(
    ("second", "made"),
    [(GUTTER_ISSUE, ["Clock stops", "Gutter leaks"]), (f"I mean: {CLOCK_ISSUE}", ["Clock stops"])],
    ids=["another", "the same in other words"],
)
async def test_what_the_host_asks_while_a_promise_waits_for_its_moment_is_done_as_well_and_nothing_twice(
    room: Room, second: str, made: list[str]
) -> None:
    minds = in_turn(speaks(PROMISE, an_issue()), speaks("That one is with me, too.", an_issue(made[-1])))
    async with room.soul("marvin", minds) as marvin:
        await room.says(CLOCK_ISSUE, marvin)

        async def asks_more() -> None:
            await room.says(second, marvin)

        await marvin.check(asks_more)
        marvin.later(31)
        await marvin.check()
        assert [one.params.as_json()["title"] for one in marvin.queued_commitments()] == made
        assert not is_open(marvin.space.participation.talk.state.request)


NOT_THE_CLOCK = "Das mit der Uhr lieber doch nicht."


@pytest.mark.parametrize(
    ("chosen", "left", "told"),
    [
        ("1", ["Gutter leaks"], "promised earlier"),
        ("2", ["Clock stops"], "taken the request back"),
        ("1, 2", [], "taken the request back"),
        ("NONE", ["Clock stops", "Gutter leaks"], "has just spoken"),
    ],
)
async def test_of_two_promises_only_the_one_that_the_host_takes_back_ends_also_after_a_restart(
    running_town: RunningTown, chosen: str, left: list[str], told: str
) -> None:
    promises = in_turn(
        speaks(PROMISE, an_issue()),
        speaks("That one is with me, too.", an_issue("Gutter leaks")),
        declines(),
        speaks("The dry one I can write down as well.", an_issue("Well dries")),
        declines(),
    )
    labels = labelling("WITHDRAWAL", NOT_THE_CLOCK, GUTTER_ISSUE, decide=promises)
    asked: list[str] = []

    def minds(request: ChatRequest) -> Completion:
        text = request.messages[-1].text
        if "Which numbers" not in text:
            return labels(request)
        asked.append(text)
        return Completion(text=chosen)

    async with open_room(running_town, log=True) as room:
        async with room.soul("marvin", minds, asks_intents=True) as marvin:
            for line in (CLOCK_ISSUE, GUTTER_ISSUE):
                await room.says(line, marvin)
                await marvin.check()
                marvin.later(31)
            assert len(marvin.queued_commitments()) == 2
            await room.says(NOT_THE_CLOCK, marvin)
            await marvin.check()
            assert told in prompts(running_town)[-1]
        await room.says(CLOCK_ISSUE.replace("clock", "well"))
        for _ in range(2):
            async with room.soul("marvin", minds, asks_intents=True) as again:
                again.later(5)
                for _ in range(2):
                    await again.check()
                    again.later(31)
                live = [one for one in again.queued_commitments() if one.error != WITHDRAWN]
                assert {one.params.as_json()["title"] for one in live} == {*left, "Well dries"}
    assert [all(title in text for title in ('1. "create_issue acme/site#Clock', "2. ")) for text in asked] == [True] * 3
    assert not any("Well dries" in text for text in asked)


async def test_a_request_to_us_is_met_also_if_the_host_then_asks_a_peer_for_something_else(room: Room) -> None:
    async with room.member("rebecca", KNOWING), room.soul("marvin", lambda _: speaks(PROMISE, an_issue())) as marvin:
        await until(lambda: "rebecca" in marvin.client.peers())
        await room.says(f"@marvin {CLOCK_ISSUE}", marvin)
        await room.says(f"@rebecca {GUTTER_ISSUE}", marvin)
        await marvin.check()
        marvin.later(31)
        await marvin.check()
        assert [one.params.as_json()["title"] for one in marvin.queued_commitments()] == ["Clock stops"]

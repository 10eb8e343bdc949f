"""Proves that of many who could do something one does it, once, whatever else happens in the room.

A commitment has one name wherever it is claimed, and two that mean the same are recognized. The talk reaches the model
whole; a message for which there is no room becomes one line, never half a message.
"""

from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.space.types import ActionDone, Claimed
from common.clock import FakeClock
from common.schemas import SPACE_DECISION_TOOL, Commitment, CommitmentType
from common.text.host_intent import HostIntent
from common.text.strings import estimate_roughly, u16_len
from modules.lives.space.commitment_filter import (
    alike,
    claim_target,
    is_named,
    named_by_host,
    permitted,
    planned,
    same_target,
)
from modules.lives.space.request_parser import conversation_thread_uri, parse_request, point_summary, told, transcript
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.types import HistoryEntry, HostRequest
from modules.services.commitments.naming import CommitmentRequest
from tests.hasty_clock import SetAhead
from tests.modules.lives.space.soul_in_room import Agent, Room, an_issue, declines, speaks
from tests.patience import until
from town.model.types import ChatRequest, Completion

REQUEST = "Please open an issue for the clock in github.com/acme/site."
POST_REQUEST = "Please post on Bluesky about the clock."
TARGET = "acme/site#Clock stops"
LINK = "https://github.com/acme/site/issues/7"
POST = Commitment(type="post_bluesky", content="Our clock has opinions about midnight.")
COMMENT = Commitment(type="comment_issue", repo="acme/site", issue_number=3, description="Seen here too.")


def asked(content: str, *, fulfilled: bool = False, is_owner: bool = False) -> RoomSnapshot:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    words = HistoryEntry("m1", "host", content, now, is_host=True, intent="action_request")
    return RoomSnapshot(
        now=now,
        me="marvin",
        history=(words,),
        request=HostRequest(content, "m1", None, fulfilled=fulfilled),
        asked=parse_request(content),
        is_open=not fulfilled,
        is_owner=is_owner,
        repo="acme/site",
    )


def test_a_post_that_the_host_asked_for_is_its_owners_to_make() -> None:
    found = permitted([POST, COMMENT], asked(POST_REQUEST))
    assert found.kept == (COMMENT,)
    assert [one.code for one in found.left_out] == ["non_owner"]
    assert permitted([POST], asked(POST_REQUEST, is_owner=True)).kept == (POST,)
    assert permitted([POST, COMMENT], asked(REQUEST)).kept == (POST, COMMENT)


def test_a_post_that_the_host_asked_for_is_made_by_nobody_else_afterwards() -> None:
    found = permitted([POST, COMMENT], asked(POST_REQUEST, fulfilled=True))
    assert found.kept == (COMMENT,)
    assert [one.code for one in found.left_out] == ["made"]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("github.com/acme/site", True),
        ("git@github.com:acme/site.git", True),
        ("in acme/site, please", True),
        ("github.com/acme/site-old", False),
        ("github.com/big-acme/site", False),
    ],
)
def test_a_repository_is_named_by_its_whole_name(said: str, *, named: bool) -> None:
    words = HistoryEntry("m1", "host", said, datetime(2026, 1, 5, tzinfo=UTC), is_host=True)
    snapshot = RoomSnapshot(now=words.at, me="marvin", history=(words,))
    assert is_named("acme/site", snapshot) is named
    assert named_by_host(snapshot, "acme/site") is named


def _said_by_host(*said: str, is_host: bool = True, intent: HostIntent | None = None) -> RoomSnapshot:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    history = tuple(
        HistoryEntry(f"m{n}", "host", text, at, is_host=is_host, intent=intent) for n, text in enumerate(said)
    )
    return RoomSnapshot(now=at, me="marvin", history=history)


@pytest.mark.parametrize(
    "said",
    [
        "do NOT touch acme/site, ever",
        "there is no issue in acme/site",
        "According to eve it belongs in acme/site",
        'Eve came in with "Please. Open it in acme/site." and left',
        "“open it in acme/site” is on the wall",
        "> open it in github.com/acme/site\nWhat do you think?",
        "https://evil.example/github.com/acme/site",
        "mail acme/site@z",
        "look at acme/site please",
        "in acme/site/main.py",
    ],
)
def test_a_host_that_refuses_or_reports_a_repository_or_means_something_else_has_not_named_it(said: str) -> None:
    assert not named_by_host(_said_by_host(said), "acme/site")
    is_only_a_look = said.startswith("look at")
    assert named_by_host(_said_by_host(said, intent="action_request"), "acme/site") is is_only_a_look


@pytest.mark.parametrize(
    "said", ["Bitte leg auf acme/site ein Issue an.", "请在acme/site开一个issue。", "acme/siteに課題を作って"]
)
def test_a_request_names_its_repository_in_any_language(said: str) -> None:
    assert named_by_host(_said_by_host(said, intent="action_request"), "acme/site")


@pytest.mark.parametrize(
    "said",
    [
        "please open an issue in acme/site",
        "acme/site",
        "acme/site#3 waits for a plan",
        'Please open an issue "Clock stops" in https://github.com/acme/site',
        "[site](https://github.com/acme/site)",
    ],
)
def test_a_host_that_wants_work_in_a_repository_has_named_it(said: str) -> None:
    assert named_by_host(_said_by_host(said), "acme/site")
    assert not named_by_host(_said_by_host(said, is_host=False), "acme/site")


@pytest.mark.parametrize(
    "said",
    [
        "Leave everything in acme/site as it is.",
        "Maak niets aan in acme/site.",
        "Evita di aprire issue in acme/site.",
        "Bitte hier, statt in acme/site.",
        "Nu deschide nimic in acme/site.",
    ],
)
def test_a_message_that_asks_for_nothing_names_no_repository_in_any_language(said: str) -> None:
    wants = _said_by_host("Please open it in acme/site.", intent="action_request")
    assert named_by_host(wants, "acme/site")
    refuses = _said_by_host(said, intent="discussion")
    assert not named_by_host(replace(refuses, history=(*wants.history, *refuses.history)), "acme/site")
    assert named_by_host(_said_by_host("acme/site", intent="discussion"), "acme/site")
    assert named_by_host(replace(refuses, repo="acme/site", workspace="acme/site"))


def test_the_hosts_newest_word_on_a_repository_decides() -> None:
    wants, refuses = "Please open it in acme/site.", "No, not in acme/site."
    assert not named_by_host(_said_by_host(wants, refuses, "Thanks!"), "acme/site")
    assert named_by_host(_said_by_host(refuses, wants, "Thanks!"), "acme/site")


def test_a_repository_whose_name_holds_a_word_that_refuses_can_be_named() -> None:
    assert named_by_host(_said_by_host("Please open it in acme/no-site"), "acme/no-site")


async def _committed(room: Room, marvin: Agent, host_request: str = REQUEST) -> None:
    await room.says(host_request, marvin)
    await marvin.check()
    assert [one.status for one in marvin.queued_commitments()] == ["pending"]


def _knows(marvin: Agent, target: str) -> bool:
    return any(
        isinstance(event, ActionDone) and event.target == target for event in marvin.client._member.inbox._events
    )


async def test_what_a_peer_made_while_our_commitment_waited_is_not_made_again(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks("The clock is mine.", an_issue())) as marvin:
        await _committed(room, marvin)
        async with room.member("rebecca") as rebecca:
            await rebecca.send_action_result("create_issue", "acme/site#Other thing", success=True, link=LINK)
            await rebecca.send_action_result("create_issue", TARGET, success=True, link=LINK)
            await until(lambda: _knows(marvin, TARGET))
            marvin.later(60)
            await marvin.check()
    (commitment,) = marvin.queued_commitments()
    assert (commitment.status, commitment.error) == ("abandoned", "rebecca has made it")


async def test_who_is_asked_again_for_what_it_made_says_where_it_is(room: Room) -> None:
    async with room.soul("marvin", lambda _: speaks("The clock is mine.", an_issue())) as marvin:
        await _committed(room, marvin)
        (commitment,) = marvin.queued_commitments()
        await marvin.queue.mark_in_progress(commitment.id)
        await marvin.queue.mark_completed(
            commitment.id, {"issues": [{"number": 7, "title": "Clock stops", "url": LINK}]}
        )
        marvin.later(3600)
        again = f"Once more: {REQUEST}"
        await room.says(again, marvin)
        await marvin.check()
        assert room.host.said("marvin")[1:] == [f"Done — issue opened: Clock stops: {LINK}"]
        assert len(marvin.queued_commitments()) == 1
        assert marvin.space.participation.talk.state.request.fulfilled


async def test_a_claim_stands_before_the_body_is_written(room: Room) -> None:
    seen: list[bool] = []

    def mind(request: ChatRequest) -> Completion:
        if any(offer.name == SPACE_DECISION_TOOL for offer in request.offers):
            return speaks("The clock is mine.", an_issue(description="It stops.") | {"title": ""})
        seen.append(any(isinstance(event, Claimed) for event in room.host.seen))
        return Completion(" ".join(f"{hour} hours after noon the clock of the page stops." for hour in range(3, 12)))

    async with room.soul("marvin", mind) as marvin:
        await _committed(room, marvin)
        assert seen == [True]
        (claim,) = {event.target for event in room.host.seen if isinstance(event, Claimed)}
        (commitment,) = marvin.queued_commitments()
        assert claim == commitment.params.as_json()["target"] == "acme/site#It stops."
        assert len(commitment.params.as_json()["description"]) > 200


async def test_only_what_the_host_asked_for_where_the_host_asked_for_it_is_the_hosts_request(room: Room) -> None:
    there, elsewhere = an_issue(), an_issue("Clock stops here as well", "evil/elsewhere")
    async with room.member("rebecca", ("social",)) as rebecca, room.soul("marvin", lambda _: declines()) as marvin:
        await rebecca.send_chat("It is in github.com/evil/elsewhere too.")
        await marvin.receives("It is in github.com/evil/elsewhere too.")
        await marvin.check()
        room.running_town.mind.answer = lambda _: speaks("Both are mine.", there, elsewhere)
        await room.says(f"marvin: {REQUEST}", marvin)
        marvin.later(30)
        await marvin.check()
        marks = {
            one.params.as_json()["repoName"]: one.params.as_json().get("hostRequest")
            for one in marvin.queued_commitments()
        }
        assert marks == {"site": True, "elsewhere": None}


async def test_a_soul_under_another_name_knows_its_own_words_and_acts_for_the_host(room: Room) -> None:
    clock = SetAhead()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(room.member("marvin"))
        soul = room.soul("marvin", lambda _: speaks("The clock is mine.", an_issue()), clock=clock)
        async with clock.hurrying():
            marvin = await stack.enter_async_context(soul)
        assert marvin.client.name == "marvin-2"
        await room.says("@marvin can you open an issue about the clock in github.com/acme/site?", marvin)
        await marvin.check()
        assert marvin.queued_commitments() == []
        marvin.later(60)
        await room.says("@marvin-2 can you open an issue about the clock in github.com/acme/site?", marvin)
        await marvin.check()
        assert [one.type for one in marvin.queued_commitments()] == ["create_issue"]
        await until(lambda: room.host.said("marvin-2") == ["The clock is mine."])
        (own,) = (entry for entry in marvin.space.participation.talk.state.history if entry.is_me)
        assert own.name == "marvin-2"
        prompt = room.running_town.mind.asked[-1]
        assert "You are marvin-2, in a live room" in prompt.messages[0].text
        assert "Also in the room: marvin, host" in prompt.messages[-1].text


ISSUE = Commitment(type="create_issue", repo="acme/site", title="Release checklist", description="What must be done")


def handed(commitment: Commitment, default: str | None) -> CommitmentRequest:
    room = RoomSnapshot(datetime(2026, 1, 5, tzinfo=UTC), "marvin", repo=default, thread_uri="space://conversation/1")
    (one,) = planned((commitment,), room)
    return one.request


def claim(target: str, action: CommitmentType = "create_issue") -> Claimed:
    return Claimed("rebecca", "rebecca-1", action, target, "2026-01-05T12:00:00.000Z")


@pytest.mark.parametrize(
    ("commitment", "default", "target"),
    [
        (ISSUE, "acme/other", "acme/site#Release checklist"),
        (Commitment(type="create_issue", title="x" * 60), "acme/other", f"acme/other#{'x' * 50}"),
        (Commitment(type="create_plan", description="Only a body"), None, "unknown#Only a body"),
        (Commitment(type="post_bluesky", content="Words to post"), None, "unknown#Words to post"),
        (Commitment(type="create_issue", title="\U0001f3a8" * 30), None, "unknown#" + "\U0001f3a8" * 25),
    ],
)
def test_a_claim_names_the_repository_and_the_first_fifty_units(
    commitment: Commitment, default: str | None, target: str
) -> None:
    assert claim_target(commitment, default) == target


@given(st.text(min_size=1, max_size=200).filter(lambda text: text.strip() != ""), st.sampled_from([None, "acme/site"]))
def test_the_target_travels_with_the_commitment(title: str, default: str | None) -> None:
    commitment = Commitment(type="create_issue", title=title)
    target = claim_target(commitment, default)
    assert handed(commitment, default).params.as_json()["target"] == target
    assert u16_len(target.partition("#")[2]) <= 50
    assert alike([claim(target)], commitment.type, target) is not None


def test_conversations_that_begin_alike_are_told_apart() -> None:
    one = conversation_thread_uri("host", "Create an issue for A")
    other = conversation_thread_uri("host", "Create an issue for B")
    assert one == "space://conversation/07ca28433dbb13b5"
    assert one != other
    assert one == conversation_thread_uri("host", "Create an issue for A")
    assert conversation_thread_uri("host", "half a sign \ud83c") != one


@pytest.mark.parametrize(
    ("content", "point"),
    [
        ("Well, I think — honestly — that's it!", "rebecca: Well I think honestly thats it"),
        (
            "one two three four five six seven eight nine ten eleven",
            "rebecca: one two three four five six seven eight nine ten",
        ),
        ("", "rebecca: "),
        ("Größe zählt: été!", "rebecca: Größe zählt été"),
    ],
)
def test_a_point_is_the_first_ten_words(content: str, point: str) -> None:
    assert point_summary("rebecca", content) == point


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("acme/site#Release checklist", "Acme/Site#The release checklists for the site", True),
        ("acme/site#Release checklist", "acme/other#Release checklist", False),
        ("acme/site#Release checklist", "unknown#Release checklist", False),
        ("acme/site#Fix the login page", "acme/site#Rework the retry queue", False),
        ("acme/site#Fix login", "acme/site#Fix logout flow on mobile", False),
        ("acme/site#!!!", "acme/site#!!! ", True),
    ],
)
def test_targets_are_the_same_by_repository_and_likeness_of_title(one: str, other: str, *, same: bool) -> None:
    assert same_target(one, other) is same
    assert same_target(other, one) is same


def test_only_the_same_action_of_a_peer_rivals_a_commitment() -> None:
    rival = claim("acme/site#Checklist for release")
    claims = [claim("acme/site#Release checklist", "create_plan"), claim("acme/site#Colours"), rival]
    assert alike(claims, ISSUE.type, claim_target(ISSUE, None)) is rival
    assert alike(claims[:2], ISSUE.type, claim_target(ISSUE, None)) is None


def test_the_queue_is_told_what_it_needs_to_keep_the_commitment() -> None:
    assert handed(ISSUE, "acme/other").params.as_json() == {
        "title": "Release checklist",
        "description": "What must be done",
        "repo": "site",
        "owner": "acme",
        "repoName": "site",
        "target": "acme/site#Release checklist",
    }
    assert handed(Commitment(type="create_issue", title="Login"), "acme/other").params.as_json()["repoName"] == "other"


def test_a_comment_carries_its_number_and_a_post_no_repository() -> None:
    comment = Commitment(type="comment_issue", content="As I said in #12")
    assert handed(comment, "acme/site").params.as_json()["issueNumber"] == 12
    post = Commitment(type="post_bluesky", content="Out now")
    assert handed(post, "acme/site").params.as_json() == {"content": "Out now", "target": "acme/site#Out now"}


NOW = FakeClock().now()


def entry(number: int, content: str, name: str = "rebecca", *, is_me: bool = False) -> HistoryEntry:
    return HistoryEntry(f"m{number}", name, content, NOW + timedelta(minutes=number), is_me=is_me)


def test_everything_is_told_whole_in_order_and_our_own_words_are_marked() -> None:
    history = [entry(0, "first\nof two lines"), entry(1, "mine", "marvin", is_me=True)]
    talk = transcript(history, estimate=estimate_roughly, tokens=60_000, timezone="UTC")
    assert talk.lines == ("[12:00] rebecca: first\n    of two lines", "[12:01] YOU: mine")
    assert talk.digest == ()


def test_the_oldest_messages_become_one_line_each_when_there_is_no_room() -> None:
    history = [entry(number, f"{number} " + "word " * 100) for number in range(60)]
    talk = transcript(history, estimate=estimate_roughly, tokens=2000)
    assert talk.lines == tuple(told(one) for one in history[-len(talk.lines) :])
    assert 10 < len(talk.lines) < 20
    assert talk.digest
    assert talk.digest[-1] == f"rebecca: {59 - len(talk.lines)} " + " ".join(["word"] * 9)
    assert sum(map(estimate_roughly, (*talk.lines, *talk.digest))) <= 2000


def test_long_messages_fit_a_small_model() -> None:
    history = [entry(number, "a long thought " * 400) for number in range(20)]
    talk = transcript(history, estimate=estimate_roughly, tokens=500)
    assert sum(map(estimate_roughly, (*talk.lines, *talk.digest))) <= 500
    assert len(talk.lines) == 1
    assert talk.lines[0].endswith("[…]")


def test_names_and_words_of_others_are_cleaned() -> None:
    shown = told(entry(0, "hi<|im_end|>\u202e there", "re\x1bbecca"), "UTC")
    assert shown == "[12:00] rebecca#e751: hi there"

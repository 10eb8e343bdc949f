"""The scripted mind in a room: it speaks when it has something new, commits to what is its own, and is silent else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from common.facts import QuestionFacts, RoomFacts, SaidLine, TurnFacts
from common.schemas import SPACE_DECISION_SCHEMA, parse_space_decision, validate_commitments
from common.text.phrases import check_echo_opener, check_list
from modules.services.commitments.writer import Extraction, read_extracted
from tests.town.mind.town_mind_prompts import BY_NAME, WORDS, facts, only_call
from town.mind.room import title_of
from town.mind.scripted import ScriptedMind
from town.model.types import ChatRequest, Json, Offer

DECIDE = Offer("space_decision", "", dict(SPACE_DECISION_SCHEMA))


def told(
    me: str,
    said: Sequence[tuple[str, str]],
    *,
    present: Sequence[str] = ("rebecca",),
    **more: Any,
) -> RoomFacts:
    """A room after these words; our own are marked YOU."""
    lines = tuple(SaidLine("" if who == "YOU" else who, text) for who, text in said)
    return RoomFacts(me, tuple(present), lines, **more)


async def decided(who: str, room: RoomFacts, *, second: int = 0) -> Json:
    request = ChatRequest("m", WORDS, (DECIDE,), "any", facts=facts(who, room, second=second))
    call = await only_call(request)
    decision = parse_space_decision(call.input)
    assert decision.success, decision.error
    return call.input


@pytest.mark.parametrize(
    ("host_request", "title"),
    [
        ("Can you open an issue for the broken clock in github.com/acme/site?", "Broken clock"),
        ("@maren please create an issue about fog lamps in https://github.com/a/b", "Fog lamps"),
        ("write a plan for the migration", "Migration"),
        ("hm", "Hm"),
    ],
)
def test_a_title_is_the_request_without_the_asking(host_request: str, title: str) -> None:
    assert title_of(host_request) == title


async def test_the_owner_commitments_the_whole_work_and_others_leave_it_to_it() -> None:
    host_request = "Can you open an issue for the broken clock in github.com/acme/site?"
    said = [("host", host_request)]
    owned = told("maren", said, mode="action", request=host_request, repo="acme/site", owner="maren", is_owner=True)
    given = await decided("maren", owned)
    valid = validate_commitments(given["commitments"]).valid
    assert [(one.type, one.repo, one.title) for one in valid] == [("create_issue", "acme/site", "Broken clock")]
    assert len(valid[0].description) > 80
    other = told("odile", said, mode="action", request=host_request, repo="acme/site", owner="maren")
    assert not (await decided("odile", other))["shouldSpeak"]


@pytest.mark.parametrize(
    ("host_request", "kind"),
    [
        ("comment on issue #12 that the hinge squeaks", "comment_issue"),
        ("post something about tides on Bluesky", "post_bluesky"),
        ("make a plan for the harbour", "create_plan"),
    ],
)
async def test_the_commitment_is_of_the_kind_that_was_asked_for(host_request: str, kind: str) -> None:
    room = told("tobias", [("host", host_request)], mode="action", request=host_request, critical=True, is_owner=True)
    given = await decided("tobias", room)
    assert [one.type for one in validate_commitments(given["commitments"]).valid] == [kind]


async def test_a_request_for_the_commitment_alone_is_met_with_one() -> None:
    asked = told("maren", [], mode="action", request="file the flaky test please", repo="acme/site", is_owner=True)
    given = await decided("maren", asked)
    assert [one.repo for one in validate_commitments(given["commitments"]).valid] == ["acme/site"]


async def test_a_talk_of_three_has_no_echo_no_list_and_ends() -> None:
    said = [("host", "What do you look at first in the morning, and why?")]
    for number in range(24):
        who = ("maren", "tobias", "odile")[number % 3]
        seen = [("YOU" if name == who else name, text) for name, text in said]
        given = await decided(who, told(who, seen, present=("maren", "tobias", "odile")), second=number)
        if given["shouldSpeak"]:
            assert given["message"] not in [text for _, text in said]
            assert not check_list(given["message"])
            assert not check_echo_opener(given["message"])
            said.append((who, given["message"]))
    assert len({name for name, _ in said}) >= 3
    assert len(said) <= 10


async def test_a_quiet_room_is_opened_with_a_thought_and_a_question() -> None:
    given = await decided("odile", told("odile", [], opens=True))
    assert given["shouldSpeak"]
    assert "?" in given["message"]


@pytest.mark.parametrize("signal", ["saturated", "spoken"])
async def test_nothing_is_said_where_enough_was_said(signal: str) -> None:
    for number in range(6):
        room = told("maren", [("host", "Tides?")], signal=signal)
        assert not (await decided("maren", room, second=number))["shouldSpeak"]


async def test_the_host_who_asks_how_it_stands_gets_the_link_and_who_has_no_github_hears_it_once() -> None:
    link = "https://github.com/acme/site/issues/4"
    room = told("maren", [("host", "did you do it?")], follow_up="link", links=(link,))
    assert link in (await decided("maren", room))["message"]
    asked = [("host", "open an issue")]
    first = await decided("maren", told("maren", asked, present=(), without_github=True))
    again = await decided("maren", told("maren", [*asked, ("YOU", first["message"])], present=(), without_github=True))
    assert first["shouldSpeak"]
    assert not first.get("commitments")
    assert not again["shouldSpeak"]


async def asked(question: str, **fields: Sequence[str]) -> str:
    about = QuestionFacts(question, {name: tuple(texts) for name, texts in fields.items()})
    thought = await ScriptedMind().complete(ChatRequest("m", WORDS, facts=TurnFacts(about)))
    return thought.text


@pytest.mark.parametrize(
    ("candidate", "verdict"),
    [
        ("Tomatoes taste better from seeds that were kept in jars.", "YES"),
        ("Swell from a far storm arrives sorted by length.", "NO"),
        ("Hm.", "NO"),
    ],
    ids=["the same words", "other words", "no telling words"],
)
async def test_a_message_repeats_what_shares_its_telling_words(candidate: str, verdict: str) -> None:
    seeds = "Seeds kept in jars make tomatoes that taste."
    assert await asked("Judge", said=[seeds, "Rain on Monday."], candidate=[candidate]) == verdict
    assert await asked("Confirm", first=[seeds], second=[candidate]) == verdict


@pytest.mark.parametrize(
    ("content", "label"),
    [
        ("Would be great to have an issue for the lamp.", "ACTION_REQUEST"),
        ("And, is there a link yet?", "FOLLOW_UP"),
        ("Thank you, that was quick.", "DISCUSSION"),
        ("The readme is longer than it was.", "DISCUSSION"),
    ],
)
async def test_what_the_host_wants_is_answered_with_a_label(content: str, label: str) -> None:
    assert await asked("Intent", content=[content]) == label


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (["ann: Who writes short poems worth keeping?"], "SPEAK"),
        (["bob: That was a good talk.", "ann: Thank you."], "LISTEN"),
        (["ann: Less salt, more time.", "bob: Less salt and more time."], "LISTEN"),
        ([], "SPEAK"),
    ],
)
async def test_a_talk_that_only_thanks_or_repeats_is_listened_to(said: list[str], verdict: str) -> None:
    assert await asked("First Look", said=said) == verdict


async def test_a_name_behind_a_comma_keeps_its_capital() -> None:
    ask = "What is the best place name you know?"
    said = [("host", "Names?"), ("rebecca", ask)]
    messages = {
        str((await decided("maren", told("maren", said), second=number)).get("message", "")) for number in range(40)
    }
    assert {"Rebecca, Dogger, Fisher, German Bight. Half of it poetry, all of it useful."} <= messages


async def test_it_knows_its_own_words_to_commitment_nothing_and_says_so_in_the_form_that_is_asked_for() -> None:
    assert read_extracted(await asked("extraction")) == Extraction()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("hello", ("Hello", "Good to see you")),
        ("What is 12 times 12?", ("144",)),
        ("Tell me a joke, please", ("bar", "harbour wall", "anemometers", "bench")),
        ("what is this?", ("town",)),
    ],
)
async def test_the_host_s_hello_joke_and_sum_get_an_answer_that_fits(line: str, wanted: tuple[str, ...]) -> None:
    for number in range(12):
        said = await decided("maren", told("maren", [("host", line)]), second=number)
        assert said["shouldSpeak"]
        assert not check_list(said["message"])
        assert any(word in str(said["message"]) for word in wanted), said


async def test_what_one_has_answered_needs_no_second_answer() -> None:
    said = [("host", "What is 12 times 12?"), ("odile", "144, by my count.")]
    decisions = [await decided("maren", told("maren", said), second=number) for number in range(20)]
    assert all("144" not in str(decision.get("message", "")) for decision in decisions)


async def test_a_question_of_the_host_is_answered_by_somebody_whatever_it_is_about() -> None:
    for number in range(20):
        line = f"What would you change about the town square first, number {number}?"
        decisions = [await decided(who, told(who, [("host", line)]), second=number) for who in BY_NAME]
        assert any(decision["shouldSpeak"] for decision in decisions)


async def test_a_question_of_a_passer_by_is_mostly_answered() -> None:
    said = [("host", "Evening."), ("Kit", "Settle something for me: What would the margin say about today?")]
    answered = 0
    for number in range(30):
        decisions = [await decided(who, told(who, said), second=number) for who in BY_NAME]
        answered += any(decision["shouldSpeak"] for decision in decisions)
    assert answered > 24

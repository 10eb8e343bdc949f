"""Tests of the scripted mind in a room: it speaks if it has something new, commits to its own part, else is silent."""

from collections.abc import Sequence
from typing import Any

import pytest

from common.facts import QuestionFacts, RoomFacts, SaidLine, TurnFacts
from common.schemas import SpaceDecision, parse_space_decision, validate_commitments
from common.text.host_intent import classify_host_intent_structural
from common.text.phrases import has_list
from tests.town.mind.town_mind_prompts import BY_NAME, WORDS, facts, only_call
from town.github.arrangement import REQUESTS
from town.mind.scripted import ScriptedMind
from town.model.types import ChatRequest, Json, Offer

CHESS = "Build us a chess engine in github.com/a/b."
PLAN = ["title", "goal", "tasks"]
DECIDE = Offer("space_decision", "", SpaceDecision.model_json_schema())


def told(me: str, said: Sequence[tuple[str, str]], *, present: Sequence[str] = ("rebecca",), **more: Any) -> RoomFacts:
    """Return a room after these words; `YOU` marks our own."""
    lines = tuple(SaidLine("" if who == "YOU" else who, text) for who, text in said)
    return RoomFacts(me, tuple(present), lines, **more)


async def decided(who: str, room: RoomFacts, *, second: int = 0) -> Json:
    request = ChatRequest("m", WORDS, (DECIDE,), "any", facts=facts(who, room, second=second))
    call = await only_call(request)
    decision = parse_space_decision(call.input)
    assert decision.success, decision.error
    return call.input


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
        ("make a plan for a word counter", "create_plan"),
    ],
)
async def test_the_commitment_is_of_the_kind_that_was_asked_for(host_request: str, kind: str) -> None:
    room = told("tobias", [("host", host_request)], mode="action", request=host_request, critical=True, is_owner=True)
    given = await decided("tobias", room)
    assert [one.type for one in validate_commitments(given["commitments"]).valid] == [kind]


async def test_a_post_whose_words_it_cannot_write_is_refused_and_none_of_its_own_is_promised_for_it() -> None:
    for request in (
        "Post on Bluesky that I am selling my bike",
        'Post on Bluesky: "The mill is open"',
        "Write a post that the shop moves",
        "Tell Bluesky about my bike",
    ):
        room = told("tobias", [("host", request)], mode="action", request=request, critical=True, is_owner=True)
        given = await decided("tobias", room)
        assert (given.get("commitments"), given["declines"]) == (None, True), request
        assert "script" in given["message"]


@pytest.mark.parametrize("line", ["Follow @somebody.test please", 'Maren, translate "the sea is rough" into French'])
async def test_what_it_cannot_do_is_refused_by_one_of_those_who_are_asked(line: str) -> None:
    for mode in ("social", "action"):
        rooms = {who: told(who, [("host", line)], present=tuple(BY_NAME), mode=mode) for who in BY_NAME}
        given = [await decided(who, room) for who, room in rooms.items()]
        assert sum("script" in one.get("message", "") for one in given) == 1


async def test_a_talk_of_three_has_no_echo_no_list_and_ends() -> None:
    said = [("host", "What do you look at first in the morning, and why?")]
    for number in range(24):
        who = ("maren", "tobias", "odile")[number % 3]
        seen = [("YOU" if name == who else name, text) for name, text in said]
        given = await decided(who, told(who, seen, present=("maren", "tobias", "odile")), second=number)
        if given["shouldSpeak"]:
            assert given["message"] not in [text for _, text in said]
            assert not has_list(given["message"])
            said.append((who, given["message"]))
    assert len({name for name, _ in said}) >= 3
    assert len(said) <= 10


async def test_a_quiet_room_is_opened_with_a_thought_and_a_question() -> None:
    given = await decided("odile", told("odile", [], opens=True))
    assert given["shouldSpeak"]
    assert "?" in given["message"]


async def test_the_host_who_asks_how_it_stands_gets_the_link_and_who_has_no_github_hears_it_once() -> None:
    link = "https://github.com/acme/site/issues/4"
    for question, is_kept in (
        ("did you do it?", True),
        ("Did you open the clock issue?", True),
        ("Did you finish the novel?", False),
    ):
        room = told("maren", [("host", question)], follow_up="link", links=(link,), done=("Broken clock",))
        assert (link in (await decided("maren", room))["message"]) is is_kept
    for who in ("maren", "tobias"):
        about_bot = told(who, [("host", "Have you finished the trading bot?")], present=tuple(BY_NAME), mode="action")
        assert ("promise" in (await decided(who, about_bot)).get("message", "")) is (who == "maren")
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


async def test_a_question_of_the_host_is_answered_by_somebody_whatever_it_is_about() -> None:
    for number in range(20):
        line = f"What would you change about the town square first, number {number}?"
        decisions = [await decided(who, told(who, [("host", line)]), second=number) for who in BY_NAME]
        assert any(decision["shouldSpeak"] for decision in decisions)


def planned(**fields: Sequence[str]) -> Json:
    offer = Offer("plan", "", {"properties": {key: {} for key in PLAN}, "required": PLAN})
    about = QuestionFacts("plan", {name: tuple(texts) for name, texts in fields.items()})
    (call,) = ScriptedMind().answer(ChatRequest("m", WORDS, (offer,), "any", facts=facts("maren", about))).calls
    return call.input


def test_an_issue_is_planned_task_by_task_where_a_program_for_it_is_known() -> None:
    known, unknown = "#7 Adds up expenses from a CSV by month, with tests", "#8 A chess engine"
    plan = planned(title=["www-lil-intdev-almanac"], issues=[unknown, known])
    first, second = plan["tasks"]
    assert [(one["issues"], one["files"][0]) for one in (first, second)] == [([7], "expenses.py"), ([7], "monthly.py")]
    assert second["dependencies"] == ["Task 1"]
    assert planned(title=["www-lil-intdev-almanac"], issues=[unknown])["tasks"] == []


async def test_a_request_for_a_program_that_is_known_becomes_a_plan() -> None:
    for wanted in (*REQUESTS, "Odile, build us a command that converts Celsius to Fahrenheit, with tests."):
        asked = told("tobias", [("host", wanted)], mode="action", request=wanted, repo="a/b", is_owner=True)
        given = await decided("tobias", asked)
        assert [one.type for one in validate_commitments(given["commitments"]).valid] == ["create_plan"]
        assert planned(title=[given["commitments"][0]["title"]])["tasks"]


UNKNOWN = (
    "Build us a web server that counts words.",
    "Kannst du uns bitte ein Programm schreiben, das Celsius in Fahrenheit umrechnet?",
    "Make a plan for the harbour.",
    "Create a to-do list with a calendar and reminders in github.com/a/b.",
    "Please fix the bug in the harbour clock.",
    "Build us a command that converts euros to dollars, with tests.",
    "Can you add a chart to the expenses by month?",
    "Deploy the password generator to production.",
    "Remind me tomorrow at 9.",
    "Reverse a string command in github.com/a/b",
    CHESS,
)


@pytest.mark.parametrize("wanted", UNKNOWN)
async def test_what_it_cannot_build_it_refuses_once_and_says_what_it_can(wanted: str) -> None:
    is_request = classify_host_intent_structural(wanted).intent == "action_request"
    mode = {"mode": "action", "request": wanted, "owner": "odile", "repo": "a/b"} if is_request else {}
    given = {
        who: await decided(who, told(who, [("host", wanted)], present=tuple(BY_NAME), **mode, is_owner=who == "odile"))
        for who in BY_NAME
    }
    assert not any(one.get("commitments") for one in given.values())
    (refused,) = (one["message"] for one in given.values() if "script" in one.get("message", ""))
    assert wanted[:20] not in refused
    assert len(refused.split()) < 25
    (first,) = (one for one in given.values() if one.get("message"))
    assert first.get("declines", False) is is_request
    assert planned(title=[wanted])["tasks"] == []


async def test_what_the_host_asks_of_one_is_answered_by_that_one_alone_and_in_a_talk_nobody_takes_over() -> None:
    for line in ("Odile, what are you working on?", "@odile what do you put into a stew?", "@odile.test are you well?"):
        said = [("host", line), ("odile", "The stew comes first, and the label on the jar.")]
        for who in ("maren", "tobias"):
            assert not (await decided(who, told(who, said[:1], present=tuple(BY_NAME))))["shouldSpeak"]
            assert not (await decided(who, told(who, said, present=tuple(BY_NAME))))["shouldSpeak"]
        assert (await decided("odile", told("odile", said[:1], present=tuple(BY_NAME))))["shouldSpeak"]


async def test_asked_what_it_works_on_it_tells_its_work() -> None:
    work = ("Count the steps", "plan #3 in a/b, 1 of 4 tasks done")
    room = told("odile", [("host", "What are you working on?")], doing=work)
    assert work[0] in (await decided("odile", room))["message"]

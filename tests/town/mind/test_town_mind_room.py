"""The scripted mind in a room: it speaks when it has something new, promises what is its own, and is silent else."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from common.schemas import SPACE_DECISION_SCHEMA, parse_space_decision, validate_commitments
from modules.lives.space.checks import check_echo_opener, check_list
from modules.services.agent.framing import Framer
from modules.services.agent.skills.skills import interpolate
from modules.services.commitments.writer import Extraction, read_extracted
from tests.town.mind.town_mind_prompts import BY_NAME, SKILLS, only_call, system
from town.mind.room_reading import read_moment, title_of
from town.mind.scripted import ScriptedMind
from town.mind.types import ChatRequest, Json, Message, Offer

SKILL = "space-participation"
DECIDE = Offer("space_decision", "", dict(SPACE_DECISION_SCHEMA))


def told(
    me: str,
    said: Sequence[tuple[str, str]],
    notes: Sequence[tuple[str, str]] = (("Notes", "Discussion"),),
    *,
    present: str = "rebecca, host",
    boundary: int = 0,
    **values: str,
) -> str:
    framer = Framer(SKILLS, random.Random(boundary))
    talk = "\n".join(f"[12:{number:02}] {who}: {text}" for number, (who, text) in enumerate(said))
    return SKILLS.render(
        SKILL,
        "User Message Template",
        today="Monday 5 January 2026, 12:00",
        agent_name=me,
        present=present,
        typing="-",
        context="",
        conversation=framer.frame("conversation", author="several", uri="space://x", text=talk) if talk else "-",
        notes="\n".join(interpolate(SKILLS.subsection(SKILL, *note), values) for note in notes),
    )


async def decided(who: str, prompt: str) -> Json:
    request = ChatRequest("m", (system(who, SKILL, agent_name=who), Message("user", prompt)), (DECIDE,), "any")
    call = await only_call(request)
    decision = parse_space_decision(call.input)
    assert decision.success, decision.error
    return call.input


def test_a_prompt_is_read_back_as_it_was_written() -> None:
    moment = read_moment(
        told(
            "maren",
            [("host", "Fog or rain?\nSay why."), ("YOU", "Fog.")],
            [("Request", "Pending"), ("Repository", "Known")],
            request="open an issue",
            repo="acme/site",
        )
    )
    assert moment.me == "maren"
    assert moment.present == ("rebecca", "host")
    assert [(said.who, said.text) for said in moment.said] == [("host", "Fog or rain? Say why."), ("", "Fog.")]
    assert moment.wish == "open an issue"
    assert moment.repo == "acme/site"
    assert [said.text for said in moment.since_host] == ["Fog."]


@pytest.mark.parametrize(
    ("wish", "title"),
    [
        ("Can you open an issue for the broken clock in github.com/acme/site?", "Broken clock"),
        ("@maren please create an issue about fog lamps in https://github.com/a/b", "Fog lamps"),
        ("write a plan for the migration", "Migration"),
        ("hm", "Hm"),
    ],
)
def test_a_title_is_the_wish_without_the_asking(wish: str, title: str) -> None:
    assert title_of(wish) == title


async def test_the_owner_promises_the_whole_work_and_others_leave_it_to_it() -> None:
    wish = "Can you open an issue for the broken clock in github.com/acme/site?"
    notes = [("Repository", "Known"), ("Request", "Pending"), ("Ownership", "Owner")]
    said = [("host", wish)]
    given = await decided("maren", told("maren", said, notes, request=wish, repo="acme/site"))
    valid = validate_commitments(given["commitments"]).valid
    assert [(one.type, one.repo, one.title) for one in valid] == [("create_issue", "acme/site", "Broken clock")]
    assert len(valid[0].description) > 80
    notes[-1] = ("Ownership", "Other")
    other = told("odile", said, notes, request=wish, repo="acme/site", owner="maren")
    assert not (await decided("odile", other))["shouldSpeak"]


@pytest.mark.parametrize(
    ("wish", "kind"),
    [
        ("comment on issue #12 that the hinge squeaks", "comment_issue"),
        ("post something about tides on Bluesky", "post_bluesky"),
        ("make a plan for the harbour", "create_plan"),
    ],
)
async def test_the_promise_is_of_the_kind_that_was_asked_for(wish: str, kind: str) -> None:
    notes = [("Request", "Critical"), ("Ownership", "Owner")]
    given = await decided("tobias", told("tobias", [("host", wish)], notes, request=wish, seconds="9", cycles="2"))
    assert [one.type for one in validate_commitments(given["commitments"]).valid] == [kind]


async def test_a_request_for_the_commitment_alone_is_met_with_one() -> None:
    wish = Framer(SKILLS, random.Random(1)).frame("reading", author="host", uri="", text="file the flaky test please")
    prompt = SKILLS.render("space-action", "User Message Template", request=wish, repo="acme/site", problem="")
    given = await decided("maren", prompt)
    assert [one.repo for one in validate_commitments(given["commitments"]).valid] == ["acme/site"]


async def test_a_talk_of_three_has_no_echo_no_list_and_ends() -> None:
    said = [("host", "What do you look at first in the morning, and why?")]
    for number in range(24):
        who = ("maren", "tobias", "odile")[number % 3]
        seen = [("YOU" if name == who else name, text) for name, text in said]
        given = await decided(who, told(who, seen, present="maren, tobias, odile, host", boundary=number))
        if given["shouldSpeak"]:
            assert given["message"] not in [text for _, text in said]
            assert not check_list(given["message"])
            assert not check_echo_opener(given["message"])
            said.append((who, given["message"]))
    assert len({name for name, _ in said}) >= 3
    assert len(said) <= 10


async def test_a_quiet_room_is_opened_with_a_thought_and_a_question() -> None:
    given = await decided("odile", told("odile", [], [("Notes", "Discussion"), ("Notes", "Opener")]))
    assert given["shouldSpeak"]
    assert "?" in given["message"]


@pytest.mark.parametrize("note", [("Saturation", "Saturated"), ("Saturation", "Own")])
async def test_nothing_is_said_where_enough_was_said(note: tuple[str, str]) -> None:
    notes = [("Notes", "Discussion"), note]
    for number in range(6):
        prompt = told("maren", [("host", "Tides?")], notes, boundary=number, agents="20", own="3")
        assert not (await decided("maren", prompt))["shouldSpeak"]


async def test_the_host_who_asks_how_it_stands_gets_the_link_and_who_has_no_github_hears_it_once() -> None:
    link = "https://github.com/acme/site/issues/4"
    given = await decided(
        "maren", told("maren", [("host", "did you do it?")], [("Notes", "Follow Up Done")], links=link)
    )
    assert link in given["message"]
    alone = [("Notes", "Limited"), ("Notes", "Alone Without GitHub")]
    first = await decided("maren", told("maren", [("host", "open an issue")], alone, present="host"))
    again = await decided(
        "maren", told("maren", [("host", "open an issue"), ("YOU", first["message"])], alone, present="host")
    )
    assert first["shouldSpeak"]
    assert not first.get("commitments")
    assert not again["shouldSpeak"]


async def asked(question: str, **foreign: str) -> str:
    judgement = "space-judgement"
    prompt = SKILLS.render(judgement, f"{question} Message", **foreign)
    about = Message("system", SKILLS.render(judgement, f"{question} System Prompt"))
    thought = await ScriptedMind().think(ChatRequest("m", (about, Message("user", prompt))))
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
    seeds, new = '"Seeds kept in jars make tomatoes that taste."', f'"{candidate}"'
    assert await asked("Judge", said=f'1. {seeds}\n2. "Rain on Monday."', candidate=new) == verdict
    assert await asked("Confirm", first=seeds, second=new) == verdict


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
    assert await asked("Intent", content=f'"{content}"') == label


async def test_a_name_behind_a_comma_keeps_its_capital() -> None:
    ask = "What is the best place name you know?"
    said = [("host", "Names?"), ("rebecca", ask)]
    messages = {
        str((await decided("maren", told("maren", said, boundary=number))).get("message", "")) for number in range(40)
    }
    assert {"Rebecca, Dogger, Fisher, German Bight. Half of it poetry, all of it useful."} <= messages


async def test_it_knows_its_own_words_to_promise_nothing_and_says_so_in_the_form_that_is_asked_for() -> None:
    message = SKILLS.render(
        "commitments", "Extraction Message", replies="1. I shall rule a column for it.", repo="-", conversation="-"
    )
    about = Message("system", SKILLS.render("commitments", "Extraction", agent_name="Maren"))
    thought = await ScriptedMind().think(ChatRequest("m", (about, Message("user", message))))
    assert read_extracted(thought.text) == Extraction()


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
    said = await decided("maren", told("maren", [("host", line)]))
    assert said["shouldSpeak"]
    assert any(word in str(said["message"]) for word in wanted), said


async def test_what_one_has_answered_needs_no_second_answer() -> None:
    said = [("host", "What is 12 times 12?"), ("odile", "144, by my count.")]
    decisions = [await decided("maren", told("maren", said, boundary=number)) for number in range(20)]
    assert all("144" not in str(decision.get("message", "")) for decision in decisions)


async def test_a_question_of_the_host_is_answered_by_somebody_whatever_it_is_about() -> None:
    for number in range(20):
        line = f"What would you change about the town square first, number {number}?"
        decisions = [await decided(who, told(who, [("host", line)], boundary=number)) for who in BY_NAME]
        assert any(decision["shouldSpeak"] for decision in decisions)


async def test_a_question_of_a_passer_by_is_mostly_answered() -> None:
    said = [("host", "Evening."), ("Kit", "Settle something for me: What would the margin say about today?")]
    answered = 0
    for number in range(30):
        decisions = [await decided(who, told(who, said, boundary=number)) for who in BY_NAME]
        answered += any(decision["shouldSpeak"] for decision in decisions)
    assert answered > 24

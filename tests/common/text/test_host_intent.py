"""Proves that what a host wants is read from the form of the message, where the form shows it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text.host_intent import IntentResult, classify_host_intent_structural
from tests.exploration import examples

ACTION, TALK, FOLLOW = "action_request", "discussion", "follow_up"
REQUESTS = """
could one of you handle the deploy
Would you look into the failing test?
Can you comment on issue 3 that it works here, too?
everyone open an issue
Yes, go ahead.
just post it on Bluesky
Let's open an issue for this
Can you open an issue about the status update page?
Provide a plan with an issue for each of the steps we discussed
Add Marvin's feedback to the doc
Update the feedback form
Address the comments
Get on it
The readme is out of date. Please open an issue for it.
Make sure the tests pass
Could you also post to Bluesky?
Can you run results through the checker?
Pls push to main
I want one of you to push to main
I require you to merge to main
Could any of you post to Bluesky about it?
Could you possibly open an issue?
Can you finally deploy to prod?
Could you still post to Bluesky?
Could you at some point push to main?
Please could you open an issue?
Can you both review it?
"""
FOLLOW_UPS = """
Did you get to it?
did you do it?
did you all ever finish that
where's the link
where are the results?
Any news on the garden plan?
I already told you
Can you provide a link to the issue?
is it done?
status
status update please
ETA?
How is the plan coming along?
update me
did it happen?
"""
TALKS = """
Can you comment on the weather?
could we open an issue about that?
Make sense?
I think rain is underrated
Honestly, I prefer the old one
https://example.org/essay
Can you all give me your honest take on the draft?
I want someone to share their perspective on this
Start with your thoughts on tides
Share what you all think
"""
UNSURE = """
Hello everyone
Great work on the garden
Let's make sure we handle errors
Review looks good
Open source is a gift
Idea: open a cafe in town
"""

PERHAPS_WORK = """
Are you able to deploy to prod?
Could you tweet about it?
If you have time, could you and Ann open an issue?
Do you have time to open an issue?
Is there anyone who can open an issue?
Anyone want to open an issue?
How about you open an issue?
Do me a favour and open an issue?
Are you up for opening an issue?
Can you please open an issue for it?
Kannst du dafür bitte ein Issue anlegen?
このためのissueを作ってもらえますか?
Please fix https://example.org/issues/3 today.
Bitte behebt heute https://example.org/issues/3
请今天修复 https://example.org/issues/3
"""
NOT_WORK = """
Build was red all night
Deploy took an hour
Test results
Build coverage is down
Build times are up
Run results
Review notes look good
Open to ideas
File has changed
Just build failures again
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def check(message: str) -> tuple[str, str]:
    result = classify_host_intent_structural(message)
    return result.intent, result.confidence


@pytest.mark.parametrize("message", lines(REQUESTS))
def test_who_asks_for_an_act_is_heard(message: str) -> None:
    assert check(message) == (ACTION, "high")


@pytest.mark.parametrize("message", lines(FOLLOW_UPS))
def test_who_asks_after_an_act_is_heard(message: str) -> None:
    assert check(message) == (FOLLOW, "high")


@pytest.mark.parametrize("message", lines(TALKS))
def test_who_wants_to_talk_is_heard(message: str) -> None:
    assert check(message) == (TALK, "high")


@pytest.mark.parametrize("message", [*lines(UNSURE), "", "  "])
def test_what_its_form_does_not_show_is_left_open(message: str) -> None:
    assert check(message) == (TALK, "ambiguous")


@pytest.mark.parametrize("message", lines(PERHAPS_WORK))
def test_what_may_be_a_request_is_never_surely_talk(message: str) -> None:
    intent, confidence = check(message)
    assert intent == ACTION or confidence == "ambiguous"


@pytest.mark.parametrize("message", lines(NOT_WORK))
def test_a_bare_first_word_may_be_a_noun(message: str) -> None:
    assert check(message)[0] != ACTION


def test_while_something_is_to_be_done_giving_means_giving_that() -> None:
    assert classify_host_intent_structural("Give me the summary").intent == ACTION
    assert classify_host_intent_structural("Give me the summary", request_open=True).intent == FOLLOW
    assert classify_host_intent_structural("Create the summary", request_open=True).intent == ACTION


@given(st.text(max_size=80))
@settings(max_examples=examples(150), deadline=None)
def test_any_text_gets_an_intent(text: str) -> None:
    result = classify_host_intent_structural(text)
    assert result.intent in {ACTION, TALK, FOLLOW}
    assert result.confidence == "high" or result == IntentResult("discussion", "ambiguous")


@given(
    st.sampled_from([*lines(REQUESTS), *lines(FOLLOW_UPS), *lines(TALKS)]),
    st.sampled_from(["@marvin ", "Rebecca, ", "Hey, ", "ok ", "Everyone, ", "hey @sh-marvin, ", "  "]),
    st.booleans(),
)
@settings(max_examples=examples(150), deadline=None)
def test_calling_somebody_changes_nothing(message: str, called: str, shouted: bool) -> None:  # noqa: FBT001
    addressed = called + (message.upper() if shouted else message)
    assert check(addressed) == check(message)

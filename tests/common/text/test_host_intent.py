"""What a host wants is read from the form of the message where its form shows it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text.host_intent import IntentResult, classify_host_intent_structural
from tests.exploration import examples

ACTION, TALK, FOLLOW = "action_request", "discussion", "follow_up"
REQUESTS = """
could one of you handle the deploy
Can one of the agents set up the repo?
Would you look into the failing test?
Would you mind opening an issue for the export bug?
Can you comment on issue 3 that it works here, too?
Could someone comment under https://github.com/acme/site/issues/3?
Marvin and Rebecca, please draft a plan
Hey Marvin can you create a plan for the migration?
everyone open an issue
Yes, go ahead.
Kindly send the report
just post it on Bluesky
Let's open an issue for this
I'd like someone to fix the header
Can you open an issue about the status update page?
Give me the summary
Provide a plan with an issue for each of the steps we discussed
Write your thoughts down in a document
Add Marvin's feedback to the doc
Implement Rebecca's ideas
Update the feedback form
Check the input validation
Take care of the backlog
Address the comments
Get on it
The readme is out of date. Please open an issue for it.
I think the docs are stale. Could someone please update the guide? Open one issue.
Make sure the tests pass
Can you just deploy to prod now?
Could you also post to Bluesky?
Can someone build coverage reports?
Could you test coverage of the parser?
Can you run results through the checker?
Could you file questions as tickets?
Pls push to main
I would like you to post to the blog
I want one of you to push to main
I need an agent to submit to the registry
I require you to merge to main
Can anybody here deploy to prod?
Could any of you post to Bluesky about it?
Can somebody else push to main?
Could you possibly open an issue?
Can you immediately deploy to prod?
Can you finally deploy to prod?
Could you actually post to Bluesky?
Could you still post to Bluesky?
Could you perhaps post to Bluesky?
Could you at some point push to main?
Please could you open an issue?
Could you two open an issue?
Can you both review it?
Could you try to deploy to prod?
"""
FOLLOW_UPS = """
Did you get to it?
did you do it?
Did you open the issue?
did you all ever finish that
Marvin, did you create the issue?
where's the link
Where\u2019s the PR?
where are the results?
still waiting
Any news on the garden plan?
I asked for it earlier
I already told you
give me the link
Can you provide a link to the issue?
what happened to the plan?
is it done?
Have you filed the issue yet?
status
status update please
What's the status of the migration?
ETA?
how's it going
How is the plan coming along?
Where are we on the release?
update me
any luck?
did it happen?
Were you able to reproduce it?
"""
TALKS = """
Can you comment on the weather?
could we open an issue about that?
what do you think of slow bread
Make sense?
I think rain is underrated
I\u2019m curious how you choose names
Honestly, I prefer the old one
IMO tabs are fine
https://example.org/essay
Can you all give me your honest take on the draft?
Please give us some feedback on the essay
I want someone to share their perspective on this
Post your ideas here
Start with your thoughts on tides
Open question: what is craft?
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
Is anyone free to open an issue?
Could you tweet about it?
Could you try deploying to prod?
If you have time, could you and Ann open an issue?
The tests pass. Would you be able to deploy?
Do you have time to open an issue?
Could I ask you to open an issue?
Is there anyone who can open an issue?
Anyone want to open an issue?
Would it be possible to open an issue?
How about you open an issue?
Why don't you open an issue?
Do me a favour and open an issue?
Mind opening an issue?
Are you up for opening an issue?
I think one of you should open an issue in https://github.com/acme/site
"""
NOT_WORK = """
Build was red all night
Deploy went well
Deploy took an hour
Review of the draft is done
Test passes here
Test results
Build coverage is down
Build logs are gone
Build times are up
Build scripts failed
Build pipeline is slow today
Run results
Review comments are in
Review notes look good
Merge requests are piling up, are they; they have been for weeks
Open to ideas
Open minded people, all of them
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

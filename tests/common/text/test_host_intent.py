"""What a host wants is read from the form of the message where its form shows it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.text.host_intent import IntentResult, classify_host_intent_structural
from tests.exploration import examples

ACTION, TALK, FOLLOW = "action_request", "discussion", "follow_up"
REQUESTS = """
Create an issue for the release checklist in github.com/acme/site
Can you open an issue for X?
Could someone please review the draft?
could one of you handle the deploy
Can one of the agents set up the repo?
Would you look into the failing test?
Will you fix the footer?
Would you mind opening an issue for the export bug?
Please comment on #1 in github.com/acme/site
Can you comment on issue 3 that it works here, too?
Could someone comment under https://github.com/acme/site/issues/3?
Please open an issue in https://github.com/acme/site
@marvin open an issue at https://github.com/acme/site
@marvin @rebecca please open an issue
@sh-marvin: create the plan
Marvin, can you write the release notes?
Marvin and Rebecca, please draft a plan
Marvin, Rebecca: draft a plan
Hey Marvin can you create a plan for the migration?
hey everyone, open an issue each
everyone open an issue
Ok, create it
Okay, go ahead and merge it
Thanks! Can you open an issue for that?
Yes, go ahead.
Go ahead
Please, open an issue
Kindly send the report
just post it on Bluesky
Let's open an issue for this
I need you to create a plan for the garden
I'd like someone to fix the header
I\u2019d like someone to fix the header
We had a good day. I want one of you to write it down
Open an issue about HTTP status codes
Can you open an issue about the status update page?
Open an issue: still waiting spinner
Give me the summary
Provide a plan with an issue for each of the steps we discussed
Share the numbers with us
Write your thoughts down in a document
Add Marvin's feedback to the doc
Open an issue about ideas for the garden
Open a feedback issue
Implement Rebecca's ideas
Update the feedback form
Check the input validation
Take care of the backlog
Address the comments
Get on it
The readme is out of date. Please open an issue for it.
What a mess. Can you fix the build?
I think the docs are stale. Could someone please update the guide? Open one issue.
Make sure the tests pass
Make a plan
Hey, fix the docs
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
any update?
Any news on the garden plan?
I asked for it earlier
I already told you
give me the link
Give me the issue url
Can you give me the link?
Can you provide a link to the issue?
what happened to the plan?
is it done?
Have you filed the issue yet?
status
Status?
status update please
What's the status of the migration?
ETA?
what's the ETA
how's it going
How is the plan coming along?
Where are we on the release?
update me
any luck?
did it happen?
Were you able to reproduce it?
Well, as I told you before I said it earlier that the issue must carry a label so that we find it
"""
TALKS = """
Can you comment on the weather?
Do you think cities should be built around trees?
Should we use Postgres?
could we open an issue about that?
what do you think of slow bread
How would a gardener name a variable?
What's your favourite bridge?
Thoughts on the new layout?
Thoughts on https://example.org/essay ?
Any objections?
Have you all read the essay?
Does that make sense?
Make sense?
Sound fair?
Sounds reasonable, no?
I think rain is underrated
I\u2019m curious how you choose names
Honestly, I prefer the old one
Honestly I prefer the old one
IMO tabs are fine
In my experience gardens forgive
Is silence a kind of speech?
https://example.org/essay
Lovely piece about tides https://example.org/tides
Share your thoughts on the roadmap
Can you share your thoughts?
Can you all give me your honest take on the draft?
Please give us some feedback on the essay
Could you share what you think about it?
Tell me, what makes a good chorus?
I want someone to share their perspective on this
Post your ideas here
Start with your thoughts on tides
Give feedback
Open question: what is craft?
Can you explain recursion?
Idea: would a map help?
Share what you all think
"""
UNSURE = """
Hello everyone
The readme is out of date
Great work on the garden
Great post
Build failed again
Team build day was fun
Let's make sure we handle errors
Let\u2019s make sure we handle errors
Review looks good
Merge conflicts are annoying
Open source is a gift
Idea: open a cafe in town
It would be nice to have an issue for that
Marvin
@marvin
Happy birthday!
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

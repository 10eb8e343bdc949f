"""A verb that is also a noun asks for work where somebody is asked, and may be a noun only as a bare first word."""

import pytest

from common.text.host_intent import classify_host_intent_structural

WORK = """
Could you post to Bluesky about it?
Can you deploy to prod?
Could someone push to main?
Would you post to the blog?
Will you push to the release branch?
Can anybody deploy to staging?
Could one of you merge to main?
Can one of the agents deploy to the test server?
Could anyone write to Ann about it?
Would someone send to all of them the new date?
Could you please push to main?
Can you just deploy to prod now?
Could you also post to Bluesky?
Can you check results?
Could you check results of last night's run?
Can someone build coverage reports?
Could you test coverage of the parser?
Can you open questions as issues?
Would you review results with Ann?
Can you run results through the checker?
Could you file questions as tickets?
Can you share results?
Can you merge conflicts of both files into one list?
Could you fix conflicts in the lock file?
Can you post: we are live?
Could you build: the docs first, then the page?
Would you please write: it works again?
Please post to Bluesky about it
please deploy to prod
Please push to main
Kindly send to the list
Please check results
Please test coverage of the parser
please build coverage
Please open questions for each point
Please, push to main
Please, deploy to prod today
Please, check results
Pls push to main
please post: we are live
Please review: the draft is in the repo
Please write to the maintainers
Please submit to the store
Go ahead and push to main
Go ahead and deploy to prod
go ahead, post it
Let's deploy to prod
Let's push to main
Let's post to Bluesky
Let's write to the maintainers
I need you to push to main
I need you to deploy to prod
I need someone to post to Bluesky
I want you to check results
I'd like you to build coverage for the parser
I'd like someone to write to Ann
I would like you to post to the blog
I want one of you to push to main
I need you to open questions as issues
I need an agent to submit to the registry
I require you to merge to main
The tests pass. Can you deploy to prod?
It is green. Could someone push to main?
Nice work! Could you post to Bluesky about it?
We are ready. Please push to main.
All done here. I need you to deploy to prod.
Marvin, can you push to main?
@marvin could you post to Bluesky about it?
Hey Rebecca, deploy to prod
Rebecca: push to main
ok, please check results
Everyone, please test coverage of your parts
Deploy to prod
Push to main
Post to Bluesky about it
Write to the maintainers
Send to Ann what we have
Submit to the store
Merge to main
Share to the list
Check results
Check results of the last run
Check coverage
Check logs
Post results
Share results with Ann
Send results to the list
Post questions for the panel
Build coverage for the parser
Build scripts for the release
Write scripts for the release
Fix conflicts in the lock file
Fix comments in the parser
Check times of the trains
Write notes for the release
Run scripts from the tools folder
Can anybody here deploy to prod?
Could any of you post to Bluesky about it?
Can somebody else push to main?
Can one of you agents push to main?
Could you possibly open an issue?
Can you immediately deploy to prod?
Can you finally deploy to prod?
Could you actually post to Bluesky?
Could you still post to Bluesky?
Could you perhaps post to Bluesky?
Could you at some point push to main?
Please could you open an issue?
please can someone deploy to prod?
Please could you post to Bluesky
Could you, please, deploy to prod?
Can u deploy to prod?
Could you two open an issue?
Can you both review it?
Could you try to deploy to prod?
"""
PERHAPS_WORK = """
Would you be able to post to Bluesky?
Are you able to deploy to prod?
Is anyone free to open an issue?
Could you reopen the issue?
Could marvin open an issue?
Can Marvin deploy to prod?
Can't you merge it?
Could you tweet about it?
Could you, once the tests pass, deploy to prod?
Could you try deploying to prod?
Can you kindly and quickly post to Bluesky?
If you have time, could you and Ann open an issue?
The tests pass. Would you be able to deploy?
Do you think you could open an issue?
Do you have time to open an issue?
Could I ask you to open an issue?
I was wondering if you could open an issue?
It would be great if you could open an issue in https://github.com/acme/site
Someone please open an issue in https://github.com/acme/site
Honestly, can Rebecca revert the last change?
Is there anyone who can open an issue?
Who could deploy to prod?
Anyone want to open an issue?
Would it be possible to open an issue?
You could open an issue, right?
How about you open an issue?
Why don't you open an issue?
Shall one of you open an issue?
Do me a favour and open an issue?
Mind opening an issue?
Any chance you could open an issue?
Are you up for opening an issue?
I think one of you should open an issue in https://github.com/acme/site
"""
NOT_WORK = """
Build failed again
Build is red
Build was red all night
The build is red
Deploy failed
Deploy went well
Deploy took an hour
Push failed with an error
Review looks good
Review of the draft is done
Review of the week
Draft of the letter
Draft is nearly there
Test failed twice
Test passes here
Test coverage
Test coverage is at eighty percent
Test coverage looks fine
Test results
Test results are in
Test results look odd
Test results of last night
Build results
Build results are in
Build coverage
Build coverage is down
Build logs are gone
Build times are up
Build scripts failed
Build pipeline is slow today
Deploy script failed
Deploy logs look clean
Deploy results are in
Run results
Run results look odd
Run took two hours
Review comments are in
Review notes look good
Review results are in
Merge conflicts
Merge conflicts again
Merge conflicts are annoying
Merge conflicts in the lock file
Merge requests are piling up, are they; they have been for weeks
Merge was clean
Open source
Open source is a gift
Open questions
Open questions are fine
Open questions about the garden
Open to ideas
Open to suggestions
Open minded people, all of them
Open comments are in the margin
Post mortem
Post mortem of the outage
Post-mortem of the outage
Post mortem is out
Post is live
Post was lovely
Post of the day
Posts about tides
Update is live
Update of the docs is done
Update notes are out
Update failed
Fix is in
Fix was easy
Check failed
Check is green
Check of the week
Check results are odd
Start was slow
Start times are wrong
Start of the week
Share of voice
Show was great
Show times are up
File is missing
File has changed
Launch went well
Launch of the year
Launch notes are fun
Push of the year
Commit is fine
Submit failed
Just build failures again
Just test results
Just review of the week
Okay build failed
Marvin, build failed
@marvin test results are in
Hey Rebecca, deploy failed
Rebecca: merge conflicts again
Great. Build failed again
Configure scripts failed
"""
TALK = """
Make sense?
Can you make sense of this?
Does that make sense?
Open question: what is craft?
Open questions?
Review: what do you think?
Build: red or green?
Test results?
Update?
Is the build red?
Should we deploy to prod?
Could we push to main?
Why did the deploy fail?
What does test coverage tell?
Do you think open source is a gift?
Are merge conflicts a sign of life?
Can you post your thoughts?
Could you share your thoughts on open source?
Please share your thoughts on test coverage
I need you to share your thoughts on test results
How do you deploy to prod?
Who can push to main?
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.mark.parametrize("message", lines(WORK))
def test_work_that_is_asked_for_is_no_noun(message: str) -> None:
    found = classify_host_intent_structural(message)
    assert (found.intent, found.confidence) == ("action_request", "high")


@pytest.mark.parametrize("message", lines(PERHAPS_WORK))
def test_what_may_be_a_request_is_never_surely_talk(message: str) -> None:
    found = classify_host_intent_structural(message)
    assert found.intent == "action_request" or found.confidence == "ambiguous"


@pytest.mark.parametrize(
    "message",
    [
        "Can you believe it?",
        "Could it be that slate is heavy?",
        "Can everyone share their thoughts?",
        "What would you build first?",
        "How could somebody else test a bridge?",
    ],
)
def test_a_question_for_talk_stays_one(message: str) -> None:
    found = classify_host_intent_structural(message)
    assert (found.intent, found.confidence) == ("discussion", "high")


@pytest.mark.parametrize("message", lines(NOT_WORK))
def test_a_bare_first_word_may_be_a_noun(message: str) -> None:
    assert classify_host_intent_structural(message).intent != "action_request"


@pytest.mark.parametrize("message", lines(TALK))
def test_talk_about_work_is_talk(message: str) -> None:
    assert classify_host_intent_structural(message).intent == "discussion"

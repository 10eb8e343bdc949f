"""What is to be done about a post, by the rules alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modules.lives.bluesky.conversation import ConversationDecision
from modules.lives.bluesky.policy import PostDecision, plan_for, should_respond_to
from modules.lives.bluesky.thread import CircularAnalysis, analyze_thread_view
from modules.services.outbox.rules.types import ReplyAdvice
from tests.modules.lives.bluesky.bluesky_values import ME, OWNER, chain, node, notification

THREAD = analyze_thread_view(node(chain(("ada", "Which weir do you mean?"))), ME)
SCREENING = should_respond_to(notification("Which weir do you mean?"), OWNER)
YES = ConversationDecision(should=True, reason="Conversation is active", code="active")
OVER = ConversationDecision(should=False, reason="Conversation concluded: enough", code="concluded")
LIKED = replace(OVER, like=True)
ENOUGH = ConversationDecision(should=False, reason="4 times", code="replies", like=True, conclude=True)
FREE, LATER = ReplyAdvice(), ReplyAdvice("later", "points", 60)
LIKE, SILENCE = ReplyAdvice("like", "a loop"), ReplyAdvice("silence", "an order to us")
CIRCLE = CircularAnalysis("medium", "potential-acknowledgment-loop")
CIRCLES = "the conversation goes in circles (potential-acknowledgment-loop)"


@pytest.mark.parametrize(
    ("judged", "advice", "circular", "plan"),
    [
        (YES, FREE, None, PostDecision("answer", "question asked")),
        (YES, LATER, None, PostDecision("later", "points", retry_in_s=60)),
        (YES, LIKE, None, PostDecision("conclude", "a loop", like=True)),
        (YES, SILENCE, None, PostDecision("skip", "an order to us")),
        (YES, FREE, CIRCLE, PostDecision("conclude", CIRCLES, like=True)),
        (YES, LATER, CIRCLE, PostDecision("conclude", CIRCLES, like=True)),
        (OVER, FREE, None, PostDecision("skip", OVER.reason)),
        (OVER, LATER, None, PostDecision("skip", OVER.reason)),
        (OVER, LIKE, None, PostDecision("skip", OVER.reason)),
        (LIKED, FREE, None, PostDecision("like", OVER.reason)),
        (LIKED, SILENCE, None, PostDecision("skip", "an order to us")),
        (ENOUGH, FREE, None, PostDecision("conclude", "4 times", like=True)),
        (OVER, FREE, CIRCLE, PostDecision("conclude", OVER.reason, like=True)),
    ],
)
def test_the_first_rule_that_forbids_an_answer_decides(
    judged: ConversationDecision, advice: ReplyAdvice, circular: CircularAnalysis | None, plan: PostDecision
) -> None:
    thread = replace(THREAD, circular=circular or THREAD.circular)
    assert plan_for(judged, SCREENING, thread, advice, is_owner=False) == plan


def test_no_circle_of_thanks_keeps_the_owner_from_an_answer() -> None:
    thread = replace(THREAD, circular=CIRCLE)
    assert plan_for(YES, SCREENING, thread, FREE, is_owner=True).code == "answer"


@pytest.mark.parametrize("is_owner", [False, True])
def test_what_has_a_reply_of_ours_gets_no_second_one(is_owner: bool) -> None:  # noqa: FBT001
    thread = replace(THREAD, is_answered=True)
    assert plan_for(YES, SCREENING, thread, FREE, is_owner=is_owner).code == "skip"


@pytest.mark.parametrize(("author", "answered"), [("me", True), ("bob", False)])
def test_only_a_reply_of_ours_right_under_the_post_answers_it(author: str, *, answered: bool) -> None:
    asked, reply = chain(("ada", "Which weir?"), (author, "The old one."))
    assert analyze_thread_view(node([asked], (node([reply]),)), ME).is_answered is answered

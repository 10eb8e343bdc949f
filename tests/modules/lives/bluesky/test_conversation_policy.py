"""Proves when the SOUL replies once more in a thread, when a reply is one too many, and who always gets one."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.lives.bluesky.conversation import (
    ConversationDecision,
    FollowedThread,
    OurReply,
    Participant,
    analyze_conversation,
    judge_incoming,
)
from modules.lives.bluesky.types import Aged, Concluded, Disengaged, Incoming, OthersReplied, Replied
from modules.services.identity.self_mechanics import SocialMechanics
from tests.modules.lives.bluesky.bluesky_values import ME, OWNER, START, did, uri

CASUAL = SocialMechanics()
ROOT = uri("ada", "root")
SUBSTANCE = "The old weir was built in 1783 by monks who wanted carp for Lent and eels for market days."
THANKS = "Thanks!"


def after(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def conversation(**fields: Any) -> FollowedThread:
    """Return a thread first seen at the start."""
    return FollowedThread(root_uri=ROOT, first_seen=START, last_checked=START, **fields)


def person(name: str, *, replies: int = 2, last: float = 0) -> Participant:
    """Return a participant who last posted `last` minutes after the start."""
    return Participant(
        did=did(name),
        handle=f"{name}.example.social",
        reply_count=replies,
        first_reply_at=START,
        last_reply_at=after(last),
    )


def people(*those: Participant) -> dict[str, Participant]:
    return {one.did: one for one in those}


def replied(*minutes: float) -> dict[str, Any]:
    """Return the fields of a conversation in which we replied at these minutes."""
    replies = tuple(OurReply(uri=f"ours{index}", at=after(one)) for index, one in enumerate(minutes))
    return {
        "our_reply_count": len(minutes),
        "our_replies": replies,
        "our_last_reply_at": replies[-1].at,
        "our_last_reply_uri": replies[-1].uri,
        "state": "awaiting_response",
    }


def incoming(text: str = SUBSTANCE, *, author: str = "ada", minutes: float = 0, **fields: Any) -> Incoming:
    return Incoming(did=did(author), handle=f"{author}.example.social", text=text, at=after(minutes), **fields)


def judge(
    before: FollowedThread, post: Incoming, *, mechanics: SocialMechanics = CASUAL, now: float | None = None
) -> tuple[ConversationDecision, FollowedThread]:
    moment = post.at if now is None else after(now)
    spoken = before.after(OthersReplied(post), moment)
    decision, reopened = judge_incoming(spoken, post, mechanics, agent_did=ME, is_owner=post.did == OWNER, now=moment)
    return decision, spoken.after_all(reopened, moment)


def test_a_fresh_thread_is_worth_an_answer() -> None:
    decision, then = judge(conversation(), incoming(minutes=1, depth=3))
    assert (decision.should, decision.reason) == (True, "Conversation is active")
    assert then.thread_depth == 3
    assert then.participants[did("ada")].reply_count == 1


ENDED = conversation(state="concluded", conclusion_reason="enough", concluded_at=after(10), reengagement_count=5)


@pytest.mark.parametrize(
    "before",
    [ENDED, conversation(**replied(*range(9))), conversation(thread_depth=99), conversation(**replied(0, 0.5))],
)
def test_the_owner_is_answered_in_every_thread_and_reopens_it(before: FollowedThread) -> None:
    decision, then = judge(before, incoming("ok", author="owner", minutes=20))
    assert (decision.should, decision.reason) == (True, "owner interaction")
    assert then.state != "concluded"
    assert then.conclusion_reason is None


@pytest.mark.parametrize(
    ("text", "minutes", "author", "earlier_returns", "welcome"),
    [
        (SUBSTANCE, 11, "ada", 0, True),
        (SUBSTANCE, 11, "ada", 1, False),
        (SUBSTANCE, 10, "ada", 0, False),
        (THANKS, 11, "ada", 0, False),
        (SUBSTANCE, 11, "me", 0, False),
    ],
)
def test_who_comes_back_with_something_new_is_welcome_once(
    text: str,
    minutes: float,
    author: str,
    earlier_returns: int,
    welcome: bool,  # noqa: FBT001
) -> None:
    before = ENDED.replace(reengagement_count=earlier_returns)
    decision, then = judge(before, incoming(text, author=author, minutes=minutes))
    assert decision.should is welcome
    if welcome:
        assert decision.reason == "Someone re-engaged after conclusion"
        assert (then.state, then.reengagement_count, then.concluded_at) == ("active", earlier_returns + 1, None)
    else:
        assert decision.reason == "Conversation concluded: enough"
        assert (then.state, then.reengagement_count) == ("concluded", earlier_returns)


def test_who_came_back_is_still_welcome_when_the_answer_had_to_wait() -> None:
    before = conversation(**replied(*range(4))).after(Concluded("enough"), after(10))
    post = incoming(minutes=11)
    decision, then = judge(before, post)
    again, same = judge(then, post, now=40)
    assert decision == again
    assert then == same
    assert not judge(then, incoming(minutes=12))[0]


def test_a_project_may_be_taken_up_again_any_number_of_times() -> None:
    decision, then = judge(ENDED.replace(is_project=True), incoming(minutes=11))
    assert decision
    assert then.reengagement_count == 6


def test_somebody_of_substance_is_liked_even_when_the_thread_is_over() -> None:
    assert judge(ENDED, incoming(minutes=11))[0].like
    assert not judge(ENDED, incoming(THANKS, minutes=11))[0].like


def test_a_thread_that_only_ran_dry_wakes_as_often_as_somebody_speaks() -> None:
    dry = conversation(**replied(0), reengagement_count=1).after(Concluded("silence", by_silence=True), after(61))
    decision, then = judge(dry, incoming(minutes=90))
    assert (decision.should, decision.reason) == (True, "Conversation is active")
    assert (then.state, then.reengagement_count) == ("active", 1)


@pytest.mark.parametrize(("mechanics", "limit"), [(CASUAL, 4), (SocialMechanics().in_project, 10)])
def test_so_many_replies_are_enough_and_no_fewer(mechanics: SocialMechanics, limit: int) -> None:
    for count in (limit - 1, limit):
        before = conversation(**replied(*(index * 10 for index in range(count))))
        decision, _ = judge(before, incoming(minutes=500), mechanics=mechanics)
        assert decision.should is (count < limit)
        assert (decision.like, decision.conclude) == (count == limit, count == limit)
    assert f"replied {limit} times" in decision.reason


@pytest.mark.parametrize(("mechanics", "limit"), [(CASUAL, 12), (SocialMechanics().in_project, 50)])
def test_a_thread_can_be_too_deep(mechanics: SocialMechanics, limit: int) -> None:
    assert judge(conversation(), incoming(depth=limit - 1), mechanics=mechanics)[0]
    decision, _ = judge(conversation(), incoming(depth=limit), mechanics=mechanics)
    assert (decision.should, decision.like, decision.conclude) == (False, True, True)
    assert f"{limit} posts deep" in decision.reason


QUICK = conversation(**replied(0, 1), participants=people(person("ada", last=1)))


def test_two_quick_replies_of_ours_do_not_end_a_talk_that_goes_on() -> None:
    assert judge(QUICK, incoming(SUBSTANCE, minutes=2))[0]


def test_who_comes_new_into_a_quick_talk_of_others_is_read() -> None:
    assert judge(QUICK, incoming("Slate, I say", author="bob", minutes=2))[0]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("Thanks for that!", []),
        (SUBSTANCE, ["", SUBSTANCE]),
        (SUBSTANCE, [SUBSTANCE, "", "", ""]),
    ],
)
def test_after_two_quick_replies_little_news_gets_a_like(text: str, known: list[str]) -> None:
    post = incoming(text, minutes=2, recent_texts=known)
    decision, _ = judge(QUICK, post)
    assert (decision.should, decision.like, decision.conclude) == (False, True, True)
    talkative = SocialMechanics(skip_low_value_acknowledgments=False)
    assert judge(QUICK, post, mechanics=talkative)[0]
    assert judge(QUICK, replace(post, earlier=("Why?",)))[0]


def test_what_a_person_asks_or_adds_is_answered_however_quick_the_talk_is_and_a_program_s_is_not() -> None:
    asked = ("Why?", "And slate?", "なぜ？", "لماذا؟")  # noqa: RUF001 - question marks of these languages
    for text in (*asked, "Tell me why.", "@rowan.test Please explain.", "Hm. Say more.", "Give me an example."):
        post = incoming(text, minutes=2, recent_texts=[SUBSTANCE])
        assert judge(QUICK, post)[0]
        assert not judge(QUICK, replace(post, is_automated=True))[0]
    others = (
        "Erzähl mir mehr davon.",
        "Расскажи подробнее, пожалуйста.",
        "もっと詳しく教えてください。",
        "더 설명해 주세요.",
    )
    for text in (*others, "Herons: https://a.example/?q=1"):
        assert judge(QUICK, incoming(text, minutes=2))[0]
        assert not judge(QUICK, replace(incoming(text, minutes=2), is_automated=True))[0]


def test_who_speaks_long_after_all_others_or_is_read_late_is_answered() -> None:
    before = conversation(participants=people(person("bob"), person("cleo")), state="active")
    for said, read in ((45, 45), (1, 120), (45, 9 * 60)):
        assert judge(before, incoming(minutes=said), now=read)[0], (said, read)


def test_the_same_post_twice_counts_once() -> None:
    once = conversation(**replied(0)).after(OthersReplied(incoming(minutes=1, display_name="Ada")), START)
    twice = once.after(OthersReplied(incoming(minutes=1)), START)
    assert once == twice
    assert once.state == "active"
    again = twice.after(OthersReplied(incoming(minutes=2)), START)
    assert again.participants[did("ada")].reply_count == 2
    assert again.participants[did("ada")].display_name == "Ada"


def test_who_speaks_again_no_longer_seems_to_have_left() -> None:
    gone = conversation(participants=people(person("ada"))).after(Disengaged(["ada.example.social"]), START)
    assert gone.participants[did("ada")].seems_disengaged
    assert not gone.after(OthersReplied(incoming(minutes=1)), START).participants[did("ada")].seems_disengaged


def test_our_reply_is_counted_once_and_waits_for_an_answer() -> None:
    once = conversation().after(Replied("ours", after(1)), after(1))
    assert (once.our_reply_count, once.our_last_reply_uri, once.our_last_reply_at) == (1, "ours", after(1))
    assert once.state == "awaiting_response"
    assert once.after(Replied("ours", after(9)), after(9)) == once


def test_a_last_word_of_ours_does_not_reopen_what_we_left() -> None:
    assert ENDED.after(Replied("goodbye", after(11)), after(11)).state == "concluded"


def test_each_of_many_replies_of_ours_counts_once_however_often_the_thread_is_read() -> None:
    ours = [Replied(f"ours{index}", after(index)) for index in range(25)]
    talk = conversation()
    for one in ours:
        talk = talk.after(one, one.at)
    assert talk.our_reply_count == 25
    assert talk.after_all(ours, after(99)) == talk
    of_earlier_version = talk.replace(our_replies=talk.our_replies[-10:])
    assert of_earlier_version.after_all(ours, after(99)) == of_earlier_version
    assert of_earlier_version.after(Replied("new", after(99)), after(99)).our_reply_count == 26


def test_a_reply_that_is_found_in_the_thread_has_its_own_time() -> None:
    known = conversation(participants=people(person("ada", replies=3)))
    talk = known.after_all([Replied("one", after(1)), Replied("two", after(2))], after(60))
    assert talk.our_last_reply_at == after(2)
    decision, _ = judge(talk, incoming("ok", minutes=61))
    assert decision.code == "active"


def test_the_first_conclusion_stays_unless_it_was_only_silence() -> None:
    assert ENDED.after(Concluded("again"), after(99)) == ENDED
    dry = conversation().after(Concluded("silence", by_silence=True), after(1))
    assert dry.after(Concluded("more silence", by_silence=True), after(2)) == dry
    left = dry.after(Concluded("on purpose"), after(3))
    assert (left.conclusion_reason, left.concluded_at, left.concluded_by_silence) == ("on purpose", after(3), False)


@pytest.mark.parametrize(
    ("talk", "minutes", "cause"),
    [
        (conversation(), 0, "none"),
        (conversation(**replied(0)), 60, "none"),
        (conversation(**replied(0)), 61, "no response"),
        (conversation(**replied(0)).replace(state="active"), 61, "none"),
        (conversation(**replied(0, 10, 20, 30)), 31, "replies"),
        (conversation(thread_depth=12), 0, "depth"),
        (ENDED, 0, "concluded"),
        (conversation(participants=people(person("ada"), person("bob"))), 31, "disengaged"),
        (conversation(participants=people(person("ada"), person("bob"))), 30, "none"),
        (conversation(participants=people(person("ada"), person("bob", last=20))), 31, "none"),
        (conversation(participants=people(person("ada"), person("bob", replies=1))), 31, "disengaged"),
        (conversation(participants=people(person("ada", replies=1))), 31, "none"),
        (conversation(participants=people(person("me"))), 31, "none"),
    ],
)
def test_a_thread_ends_by_itself_for_a_reason(talk: FollowedThread, minutes: float, cause: str) -> None:
    analysis = analyze_conversation(talk, CASUAL, ME, after(minutes))
    assert analysis.cause == cause
    assert analysis.should_conclude is (cause != "none")
    assert analysis.reason


DAY = 24 * 60


@pytest.mark.parametrize(
    ("talk", "days", "left"),
    [
        (conversation(), 7, "new"),
        (conversation(), 7.1, "stale"),
        (conversation(state="stale"), 30, "stale"),
        (conversation(state="stale"), 30.1, None),
        (conversation().after(Concluded("x"), START), 7, "concluded"),
        (conversation().after(Concluded("x"), START), 7.1, None),
    ],
)
def test_time_makes_threads_stale_and_then_forgotten(talk: FollowedThread, days: float, left: str | None) -> None:
    now = after(days * DAY)
    assert (None if talk.is_expired(now) else talk.after(Aged(), now).state) == left


@given(
    ours=st.integers(0, 12),
    depth=st.integers(0, 60),
    state=st.sampled_from(["new", "active", "awaiting_response", "concluded", "stale"]),
    text=st.text(max_size=40),
    author=st.sampled_from(["ada", "bob", "owner"]),
    minutes=st.integers(0, 300),
    delay=st.integers(0, 300),
)
def test_a_refusal_always_has_a_reason_and_the_owner_never_gets_one(  # noqa: PLR0917 - drawn by hypothesis
    ours: int, depth: int, state: str, text: str, author: str, minutes: int, delay: int
) -> None:
    before = conversation(participants=people(person("ada"), person("bob"))).replace(our_reply_count=ours, state=state)
    post = incoming(text, author=author, minutes=minutes, depth=depth)
    decision, then = judge(before, post, now=minutes + delay)
    assert decision.reason
    assert decision.should or author != "owner"
    assert not (decision.should and decision.like)
    assert decision.like or not decision.conclude
    assert did(author) in then.participants
    assert not (decision.should and then.state == "concluded")

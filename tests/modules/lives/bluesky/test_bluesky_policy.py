"""Proves which posts get a turn, which go first, and which are better left alone.

Proves what the rules alone decide about a post.
"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.types import Notification
from modules.lives.bluesky.conversation import ConversationDecision
from modules.lives.bluesky.policy import PostDecision, plan_for, prioritize_notifications, queue_of, should_respond_to
from modules.lives.bluesky.thread import CircularAnalysis, analyze_thread_view
from modules.lives.bluesky.types import Pending
from modules.services.outbox.rules.rules import ReplyAdvice
from modules.services.relationships import Interaction, Relationship, Sentiment
from tests.modules.lives.bluesky.bluesky_values import ME, OWNER, START, actor, chain, node, notification, uri


@pytest.mark.parametrize("kind", ["like", "reply", "something-newer"])
@pytest.mark.parametrize("text", ["", "Thanks!"])
def test_the_owner_is_always_answered(kind: str, text: str) -> None:
    decision = should_respond_to(notification(text, author="owner", kind=kind), OWNER)
    assert (decision.should, decision.reason) == (True, "owner interaction")


@pytest.mark.parametrize(
    ("kind", "text", "should", "why"),
    [
        ("like", "", False, "acknowledgment only"),
        ("follow", "", False, "acknowledgment only"),
        ("repost", "", False, "repost without comment"),
        ("like-via-repost", "", False, "no text content"),
        ("reply", "   ", False, "no text content"),
        ("reply", "why?", True, "question asked"),
        ("reply", "👍?", True, "question asked"),
        ("reply", " ❤️ 🔥 ", False, "emoji reaction"),
        ("reply", "42", True, "direct engagement"),
        ("reply", "Great—", False, "closing or acknowledgment message"),
        ("reply", "Thanks, that was lovely.", False, "closing or acknowledgment message"),
        ("reply", "Rivers never forget.", True, "direct engagement"),
        ("mention", "Look at this.", True, "direct engagement"),
        ("quote", "This is what I meant about weirs.", True, "substantive quote"),
        ("quote", "What a weir it was.", True, "borderline - use judgment"),
        ("something-newer", "A" * 51, True, "substantive content"),
        ("something-newer", "A" * 50, True, "borderline - use judgment"),
        ("mention", "@marvin.example.social 👍", False, "emoji reaction"),
        ("mention", "@marvin.example.social thanks!", False, "low-value acknowledgment"),
        ("reply", "Love it ❤️", False, "closing or acknowledgment message"),
        ("reply", "lol 🤷🏽‍♀️", False, "low-value acknowledgment"),
    ],
)
def test_the_first_rule_that_applies_decides(kind: str, text: str, should: bool, why: str) -> None:  # noqa: FBT001
    decision = should_respond_to(notification(text, kind=kind), OWNER)
    assert (decision.should, decision.reason) == (should, why)


@pytest.mark.parametrize(
    ("text", "code", "deserves_like"),
    [
        ("thanks!", "acknowledgment", True),
        ("\N{CLAPPING HANDS SIGN}", "emoji", True),
        ("Thank you so much, have a good evening!", "closing", True),
        ("", "empty", False),
        ("What do you think?", "question", False),
    ],
)
def test_what_is_let_go_with_a_like_is_told_by_a_code(text: str, code: str, deserves_like: bool) -> None:  # noqa: FBT001
    screening = should_respond_to(notification(text), OWNER)
    assert (screening.code, screening.deserves_like) == (code, deserves_like)


# fmt: off
SMALL_WORDS = [
    "thanks", "thx", "ty", "lol", "lmao", "haha", "heh", "lollol", "nice", "cool", "neat", "awesome", "great",
    "wow", "yes", "yeah", "yep", "yup", "no", "nope", "nah", "ok", "okay", "k", "sure", "right", "same", "mood",
    "this", "facts", "real", "true", "fr", "thank you", "haha 😂", "😂 lol", "lol nice", "ok, cool!", "yes. true",
    "thanks ☺️", "yes ❤️",
]
# fmt: on


@pytest.mark.parametrize("ending", ["", "!!"])
def test_a_word_that_only_acknowledges_gets_no_reply(ending: str) -> None:
    for spelled in (*SMALL_WORDS, "THX"):
        decision = should_respond_to(notification(spelled + ending), OWNER)
        assert (decision.should, decision.reason) == (False, "low-value acknowledgment")


@pytest.mark.parametrize("text", ["no way", "this one", "okay then", "cool water", "sure thing"])
def test_two_words_may_already_say_something(text: str) -> None:
    assert should_respond_to(notification(text), OWNER)


def test_a_soul_that_answers_every_thank_you_still_leaves_bare_emoji_alone() -> None:
    assert should_respond_to(notification("Thanks!"), OWNER, skip_acknowledgments=False)
    assert should_respond_to(notification("Thanks, that was kind."), OWNER, skip_acknowledgments=False)
    assert not should_respond_to(notification("👍"), OWNER, skip_acknowledgments=False)


@given(text=st.text(), kind=st.sampled_from(["reply", "mention", "quote"]))
def test_a_question_from_anybody_is_looked_at(text: str, kind: str) -> None:
    assert should_respond_to(notification(text + " why?", kind=kind), OWNER)


def known(
    name: str = "ada", *, interactions: int = 1, sentiment: Sentiment = "unknown", answered: tuple[str, ...] = ()
) -> Relationship:
    """Return a relationship with `interactions` meetings; `answered` are keys of posts that we replied to."""
    keys = [*answered, *(f"old{index}" for index in range(interactions - len(answered)))]
    return Relationship(
        handle=f"{name}.example.social",
        did=f"did:plc:{name}",
        interactions=tuple(
            Interaction(type="reply", uri=uri(name, key), timestamp=START, responded=key in answered) for key in keys
        ),
        first_seen=START,
        last_interaction=START,
        sentiment=sentiment,
        responded=bool(answered),
    )


OURS = uri("me", "ours")
PRIORITIES: list[tuple[Notification, Relationship | None, int, str]] = [
    (notification(kind="like"), None, 65, "new person, unread"),
    (notification(kind="mention"), None, 95, "mention, new person, unread"),
    (notification(kind="mention", author="owner"), None, 145, "mention, owner, new person, unread"),
    (notification(kind="quote"), None, 90, "quote, new person, unread"),
    (notification(parent=OURS), None, 145, "response to own content, reply, new person, unread"),
    (notification(), known(), 110, "reply, never responded to, unread"),
    (notification(), known(answered=("z",)), 90, "reply, unread"),
    (
        notification(),
        known(interactions=5, sentiment="positive", answered=("z",)),
        115,
        "reply, positive relationship, recurring engager, unread",
    ),
]


@pytest.mark.parametrize(("item", "relationship", "priority", "reason"), PRIORITIES)
def test_what_counts_adds_up_and_is_named(
    item: Notification, relationship: Relationship | None, priority: int, reason: str
) -> None:
    acquaintances = {item.author.did: relationship} if relationship else {}
    (ranked,) = prioritize_notifications([item], OWNER, ME, acquaintances)
    assert (ranked.priority, ranked.reason) == (priority, reason)
    assert ranked.relationship == relationship


def test_who_is_met_for_the_first_time_counts_as_new_though_the_post_is_remembered_already() -> None:
    acquaintances = {notification().author.did: known(interactions=1)}
    (ranked,) = prioritize_notifications([notification(key="old0")], OWNER, ME, acquaintances)
    assert (ranked.priority, ranked.reason) == (95, "reply, new person, unread")
    (again,) = prioritize_notifications([notification(key="another")], OWNER, ME, acquaintances)
    assert (again.priority, again.reason) == (110, "reply, never responded to, unread")


def test_a_did_that_only_begins_like_ours_is_not_us() -> None:
    (ranked,) = prioritize_notifications([notification(parent=uri("merle", "x"))], OWNER, ME, {})
    assert "response to own content" not in ranked.reason.split(", ")


def test_what_matters_most_comes_first_and_equals_keep_their_order() -> None:
    like, first, second, owner = (
        notification(kind="like", key="l"),
        notification(key="a"),
        notification(key="b"),
        notification(author="owner", key="o"),
    )
    ranked = prioritize_notifications([like, first, second, owner], OWNER, ME, {})
    assert [one.notification for one in ranked] == [owner, first, second, like]


def waiting(*notifications: Notification) -> list[Pending]:
    """Return the notifications as the queue hands them out."""
    return [Pending(one, received_at=one.indexed_at) for one in notifications]


def test_each_person_in_a_thread_is_met_once_at_their_newest_post() -> None:
    root = uri("bob", "root")
    somebody_else = notification(key="1", minutes=1, root=root, author="cleo")
    middle = notification(key="2", minutes=2, root=root)
    new = notification(key="3", minutes=3, root=root)
    other = notification(key="4", minutes=0)
    items = [one.item for one in queue_of(waiting(new, other, somebody_else, middle), OWNER, {}, ME)]
    assert [item.notification for item in items] == [other, somebody_else, new]
    assert [item.earlier for item in items] == [(), (), (middle,)]


def test_a_post_that_opens_the_thread_belongs_to_it() -> None:
    root = notification(key="root")
    answer = notification(key="answer", minutes=1, root=root.uri)
    (queued,) = queue_of(waiting(root, answer), OWNER, {}, ME)
    assert (queued.item.notification, queued.item.earlier) == (answer, (root,))


def test_a_correction_of_the_owner_is_met_with_what_it_corrects_and_only_a_plain_request_apart() -> None:
    order = notification("Follow @kit.test", key="root", author="owner")
    correction = notification("Sorry: please unfollow @kit.test", key="1", minutes=1, root=order.uri, author="owner")
    plain = notification("What do you know about me?", key="2", minutes=2, root=order.uri, author="owner")
    queue = queue_of(waiting(order, correction, plain), actor("owner").did, {}, ME)
    assert [(one.item.earlier, one.is_request) for one in queue] == [((order,), False), ((), True)]


def test_of_those_whose_turn_it_is_requests_come_first_then_friends_then_weight() -> None:
    plain = notification(key="x", author="nan")
    heavy = notification(key="h", author="nan", minutes=10, parent=OURS)
    friend = notification(key="f", author="fay", kind="quote", minutes=11)
    request = notification("What do you know about me?", key="r", author="zoe", minutes=12)
    acquaintances = {actor("fay").did: known("fay", interactions=5, answered=("z",))}
    queue = queue_of(waiting(plain, heavy, friend, request), OWNER, acquaintances, ME)
    ranked = sorted(queue, key=lambda one: one.rank)
    assert [one.item.notification for one in ranked] == [request, friend, heavy, plain]
    assert [one.is_request for one in ranked] == [True, False, False, False]


@given(
    st.lists(
        st.tuples(st.sampled_from(["ada", "bob", "owner"]), st.integers(0, 5), st.sampled_from(["r1", "r2", "r3"])),
        max_size=12,
    )
)
def test_no_post_is_lost_or_doubled_in_the_queue(given_posts: list[tuple[str, int, str]]) -> None:
    posts = [
        notification(key=str(index), author=author, minutes=minutes, root=uri("zoe", root))
        for index, (author, minutes, root) in enumerate(given_posts)
    ]
    items = [one.item for one in queue_of(waiting(*posts), OWNER, {}, ME)]
    met = [one.uri for item in items for one in (item.notification, *item.earlier)]
    assert sorted(met) == sorted(one.uri for one in posts)
    assert len({(item.notification.root.uri, item.notification.author.did) for item in items}) == len(items)


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

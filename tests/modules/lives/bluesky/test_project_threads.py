"""Proves that a thread about shared work ends later than a chat, and that nobody's small talk counts as work.

Two sides that only thank each other are noticed; two sides that talk are not. The model reads a thread in order: each
post with its age and whom it answers, the focal post in its place.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.types import Actor, Post, ReplyRefs, StrongRef
from common.clock import FakeClock
from common.provenance import Importance, Provenance
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.handle import incoming_of
from modules.lives.bluesky.policy import PostDecision
from modules.lives.bluesky.publish import Conversations
from modules.lives.bluesky.thread import (
    CircularAnalysis,
    ThreadLines,
    UnsentReply,
    analyze_thread_view,
    detect_circular_conversation,
    with_full_links,
)
from modules.lives.bluesky.types import Pending
from modules.services.identity.self_mechanics import SocialMechanics
from modules.services.outbox.rules.rules import ReplyAdvice
from modules.services.relationships import Interaction, Relationship
from modules.services.rights.policy import Preference
from tests.modules.lives.bluesky.bluesky_values import ME, START, at, chain, node, notification, post

WORK = "I opened a workspace for the weir, let us measure the gates there"
CHAT = "The weir was loud last night, and the gates held well against it"
SILENT_ON_AI = Preference()


def case(
    lines: tuple[tuple[str, str], ...],
    minutes: float,
    *,
    importance: Importance = "mention",
    is_peer: bool = False,
    preference: Preference | None = SILENT_ON_AI,
    github_username: str = "",
) -> PostCase:
    """Return the case of the last of `lines` (author, text), met `minutes` after the start."""
    talk = chain(*lines)
    author, text = lines[-1]
    key = f"k{minutes:g}"
    reached = notification(text, author=author, key=key, minutes=minutes, root=talk[0].uri, parent=talk[0].uri)
    thread = analyze_thread_view(node(talk), ME)
    item = Pending(reached, at(minutes))
    return PostCase(
        item=item,
        thread=thread,
        own_did=ME,
        importance=importance,
        provenance=Provenance.STRANGER,
        relationship=None,
        incoming=incoming_of(item, thread, is_automated=False),
        advice=ReplyAdvice(),
        preference=preference,
        is_peer=is_peer,
        github_username=github_username,
    )


class Life:
    """Conversations on a clock, and our replies in one of them."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock(START)
        self.conversations = Conversations(folder / "bluesky_conversations.json", self.clock)

    def meet(self, post_case: PostCase) -> PostDecision:
        return self.conversations.plan_case(post_case, SocialMechanics())

    def reply(self, root_uri: str, *, first: int, last: int) -> None:
        """Record our replies `first` to `last`, one every ten minutes."""
        for number in range(first, last + 1):
            self.clock.jump(600)
            self.conversations.record_our_reply(root_uri, f"at://{ME}/app.bsky.feed.post/{number}")


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return Life(tmp_path)


@pytest.mark.parametrize(("text", "replies"), [(WORK, 10), (CHAT, 4)])
def test_a_peer_who_names_work_is_answered_ten_times_and_one_who_chats_four_times(
    life: Life, text: str, replies: int
) -> None:
    lines = (("wren", "Good morning from the river"), ("wren", text))
    root_uri = chain(*lines)[0].uri
    assert life.meet(case(lines, 0, is_peer=True)).code == "answer"
    life.reply(root_uri, first=1, last=replies - 1)
    assert life.meet(case(lines, replies * 10 + 1, is_peer=True)).code == "answer"
    life.reply(root_uri, first=replies, last=replies)
    over = life.meet(case(lines, replies * 10 + 31, is_peer=True))
    assert (over.code, over.like) == ("conclude", True)


def test_a_stranger_makes_no_project_of_a_thread_but_takes_part_in_one(life: Life) -> None:
    lines = (("ada", "Good morning from the river"), ("ada", WORK))
    root_uri = chain(*lines)[0].uri
    life.meet(case(lines, 0))
    known = life.conversations.get_conversation(root_uri)
    assert known is not None
    assert not known.is_project
    life.meet(case((*lines, ("wren", CHAT)), 1, is_peer=True))
    life.reply(root_uri, first=1, last=5)
    assert life.meet(case(lines, 90)).code == "answer"


def test_a_project_is_waited_for_eight_hours_and_a_chat_one(life: Life) -> None:
    lines = (("wren", "Good morning from the river"), ("wren", WORK))
    root_uri = chain(*lines)[0].uri
    life.meet(case(lines, 0, is_peer=True))
    life.reply(root_uri, first=1, last=1)
    life.conversations.record_our_reply("at://chat", "at://ours")
    life.clock.jump(61 * 60)
    assert [over.root_uri for over in life.conversations.sweep(ME, SocialMechanics())] == ["at://chat"]
    life.clock.jump(7 * 60 * 60)
    assert [over.root_uri for over in life.conversations.sweep(ME, SocialMechanics())] == [root_uri]


def test_one_who_comes_back_to_a_project_is_answered_each_time(life: Life) -> None:
    lines = (("wren", "Good morning from the river"), ("wren", WORK))
    root_uri = chain(*lines)[0].uri
    for round_ in (1, 2, 3):
        life.conversations.mark_conversation_concluded(root_uri, "done for now")
        life.clock.jump(3600)
        assert life.meet(case(lines, round_ * 60 + 1, is_peer=True)).code == "answer"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("look at github.com/ada/moss", True),
        ("Our plan needs a second reader.", True),
        ("issue #12 is open", True),
        ("I plan to sleep", False),
    ],
)
def test_a_thread_is_about_work_where_a_post_names_some(text: str, *, names: bool) -> None:
    assert analyze_thread_view(node(chain(("ada", "Hello"), ("bob", text))), ME).names_work is names


def test_thanks_in_circles_are_no_reason_to_leave_work() -> None:
    talk = (("wren", WORK), ("me", "Thanks, great."), ("wren", "Great, thanks!"), ("me", "Thanks!"), ("wren", "Thanks"))
    assert "Circling" in case(talk, 0).notes
    assert "Circling" not in case(talk, 0, is_peer=True).notes


def test_the_owner_is_always_answered_and_work_is_taken_on_only_at_their_word() -> None:
    long = (*(("wren", CHAT), ("me", CHAT)) * 12, ("wren", CHAT), ("me", "Good night."))
    notes = [set(case(long, 0, importance=one).notes) for one in ("mention", "owner")]
    leaving = {"Deep Thread", "Own Replies", "Last Word"}
    assert [one & leaving for one in notes] == [leaving, set()]
    asked = case((("wren", WORK),), 0, is_peer=True)
    assert ["Project" in one.notes for one in (asked, replace(asked, provenance=Provenance.OWNER))] == [False, True]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Measured one.", False),
        ("Measured one; I am `tin-soul` there.", True),
        ("See https://github.com/tin-soul-two for another.", False),
        ("I am Tin-Soul on GitHub.", True),
        ("Auf GitHub heiße ich tin-soul.", True),
        ("Bei GitHub heißt sie tin-soul.example.", False),
        ("Tin-soul, siehe https://github.com/acme/weir", False),
    ],
)
def test_the_account_on_github_is_told_once_in_a_thread_about_work(said: str, *, told: bool) -> None:
    talk = (("wren", WORK), ("me", said), ("wren", "Next gate, please."))
    noted = case(talk, 0, is_peer=True, github_username="tin-soul")
    assert ("Share Account" in noted.notes) is not told
    assert noted.figures["github_username"] == "tin-soul"
    assert "Share Account" not in case(talk, 0, is_peer=True).notes, "there is no account"
    assert "Share Account" not in case(talk, 0, github_username="tin-soul").notes, "a chat is no work"


def test_addresses_that_a_post_shows_cut_off_are_told_in_full() -> None:
    issue = "https://github.com/owner/weir/issues/12"
    shown = post(
        "ada", "See github.com/owner/weir/iss… and https://example.org/a", links=(issue, "https://example.org/a")
    )
    assert with_full_links(shown) == f"{shown.text}\n(links: {issue})"
    assert with_full_links(post("ada", "Nothing to see")) == "Nothing to see"


@pytest.mark.parametrize(
    ("before", "responded", "told"), [(0, False, "New"), (2, False, "Unanswered"), (2, True, "Known")]
)
def test_the_model_is_told_how_well_the_author_is_known(before: int, told: str, *, responded: bool) -> None:
    talk = (("wren", CHAT),)
    uris = [*(f"at://{key}" for key in range(before)), case(talk, 0).notification.uri, "at://later"]
    known = Relationship(
        handle="wren.example.social",
        did="did:plc:wren",
        interactions=tuple(Interaction(type="reply", uri=uri, timestamp=START) for uri in uris),
        first_seen=START,
        last_interaction=START,
        responded=responded,
    )
    met = replace(case(talk, 0), relationship=known)
    assert (met.acquaintance, met.figures["interactions"]) == (told, before)
    assert replace(met, relationship=None).acquaintance == "New"
    assert case(talk, 0, importance="owner").acquaintance == "Owner"


PLAIN = "Herons nest early this year."
THANKS = "Thanks, that helps."
HOLD = "Will do, I'll wait for it."
BOTH = "Great, I'll hold then."
LONG = "Great " + " ".join(f"word{index}" for index in range(25))


def pair(*texts: str) -> CircularAnalysis:
    """Return the analysis of a thread in which two people take turns with `texts`."""
    return detect_circular_conversation(chain(*((("ada", "bob")[i % 2], text) for i, text in enumerate(texts))))


@pytest.mark.parametrize(
    ("texts", "confidence", "pattern"),
    [
        ((BOTH, BOTH, BOTH, BOTH), "high", "mutual-acknowledgment-loop"),
        ((BOTH, BOTH, THANKS, PLAIN), "high", "mutual-acknowledgment-loop"),
        ((PLAIN, PLAIN, BOTH, BOTH, BOTH, PLAIN), "high", "mutual-acknowledgment-loop"),
        ((THANKS, THANKS, THANKS, THANKS), "medium", "potential-acknowledgment-loop"),
        ((BOTH, BOTH, PLAIN, PLAIN), "medium", "potential-acknowledgment-loop"),
        ((THANKS, PLAIN, PLAIN, PLAIN), "low", "none"),
        ((HOLD, HOLD, PLAIN, PLAIN), "low", "none"),
        ((PLAIN, PLAIN, PLAIN, PLAIN), "low", "none"),
        ((), "low", "none"),
        ((THANKS, THANKS, "Thanks. Where is it?", THANKS), "low", "none"),
        ((BOTH, BOTH, BOTH, LONG), "low", "repetitive-acknowledgments"),
        ((BOTH, BOTH, BOTH, "Great: https://example.com/draft"), "low", "repetitive-acknowledgments"),
        (("Typed pages", "Coolant leaks", "Nicely cut", "Greatness"), "low", "none"),
    ],
)
def test_the_last_four_posts_of_a_pair_are_judged(texts: tuple[str, ...], confidence: str, pattern: str) -> None:
    analysis = pair(*texts)
    assert (analysis.confidence, analysis.pattern) == (confidence, pattern)
    assert analysis.is_circular is (pattern != "none")
    assert analysis.suggestion_to_exit is (confidence != "low")


@pytest.mark.parametrize(
    "text",
    [
        "I'll wait.",
        "I’ll stand by.",  # noqa: RUF001 - as phones write it
        "once it's live",
        "when the tide turns",
        "looking forward",
    ],
)
def test_saying_again_what_will_be_done_makes_thanks_a_loop(text: str) -> None:
    assert pair("Great, " + text, "Nice, " + text, THANKS, PLAIN).confidence == "high"


def test_a_third_voice_breaks_the_circle() -> None:
    talk = chain(("ada", THANKS), ("bob", THANKS), ("cleo", THANKS), ("ada", THANKS))
    assert not detect_circular_conversation(talk).is_circular


def test_somebody_who_speaks_twice_is_only_repetitive() -> None:
    talk = chain(("ada", BOTH), ("ada", BOTH), ("bob", BOTH), ("ada", BOTH))
    analysis = detect_circular_conversation(talk)
    assert (analysis.confidence, analysis.is_circular, analysis.suggestion_to_exit) == ("low", True, False)


def test_a_handle_before_the_thanks_does_not_hide_them() -> None:
    assert pair("@bob.example.social thanks!", "🙏 Thank you", THANKS, THANKS).is_circular


def test_a_link_card_counts_as_substance() -> None:
    talk = [*chain(("ada", THANKS), ("bob", THANKS), ("ada", THANKS)), post("bob", "Great", links=("https://e.com/a",))]
    assert not detect_circular_conversation(talk).suggestion_to_exit


@given(st.lists(st.tuples(st.sampled_from(["ada", "bob"]), st.text(max_size=30)), max_size=8))
def test_a_question_always_keeps_the_door_open(lines: list[tuple[str, str]]) -> None:
    talk = chain(*lines, ("ada", "And what about the weir?"))
    assert not detect_circular_conversation(talk).is_circular


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MARKS = {"Post To Meet": "(this one)", "Not Sent": "not sent", "Peer": "peer", "Bot": "bot"}
US, ILSE, BO, TICK = (Actor(f"did:plc:{name}", f"{name}.test") for name in ("us", "ilse", "bo", "tick"))


def said(name: str, author: Actor, at: str, text: str, to: Post | None = None) -> Post:
    uri = f"at://{author.did}/app.bsky.feed.post/{name}"
    reply = ReplyRefs(StrongRef(to.uri, "cid"), StrongRef(to.uri, "cid")) if to else None
    return Post(uri, "cid", author, text, f"2026-03-01T{at}:00Z", reply=reply)


ROOT = said("1", ILSE, "09:00", "My pump hums.")
FIRST = said("2", BO, "09:10", "Mine too,\nin the rain.", ROOT)
SECOND = said("3", BO, "11:30", "Or is it the washer?", ROOT)
FOCAL = said("4", ILSE, "11:48", "@us.test which is it?", FIRST)
LATER = said("5", Actor(TICK.did, TICK.handle, is_bot=True), "11:59", "It is noon.", FOCAL)


def text_of(*posts: Post, unsent: tuple[UnsentReply, ...] = ()) -> list[str]:
    thread_text = ThreadLines(US.did, frozenset({BO.did}), NOW, MARKS, lambda post: post.text)
    return thread_text.lines(posts, FOCAL.uri, unsent).splitlines()


def test_each_line_has_age_author_and_whom_it_answers_and_later_posts_come_after_the_one_to_meet() -> None:
    assert text_of(ROOT, FIRST, SECOND, FOCAL, LATER) == [
        "[3 h] @ilse.test: My pump hums.",
        "[2 h] @bo.test (peer) → @ilse.test: Mine too, in the rain.",
        "[30 min] @bo.test (peer) → @ilse.test: Or is it the washer?",
        '[12 min] @ilse.test → @bo.test "Mine too, in the rain.": (this one)',
        "[1 min] @tick.test (bot) → @ilse.test: It is noon.",
    ]


def test_our_replies_that_have_not_left_stand_in_it_and_a_post_alone_is_no_thread() -> None:
    waiting = UnsentReply(FOCAL.uri, "The washer, I think.")
    assert text_of(FOCAL, unsent=(waiting,))[-1] == "[not sent] YOU → @ilse.test: The washer, I think."
    assert text_of(FOCAL) == []

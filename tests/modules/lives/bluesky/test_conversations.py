"""Proves that the SOUL's record of its threads survives restarts, upgrades and edits by other people.

The reply that reaches a conversation's limit is the last: the post it answers is liked, and the thread ends. Threads
are read whole: the posts above, the replies beside, and our own posts.
"""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.atproto.types import Notification, Post, ThreadNode
from common.clock import FakeClock, SystemClock
from common.provenance import Importance, Provenance
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.conversation import FollowedThread
from modules.lives.bluesky.handle import incoming_of
from modules.lives.bluesky.publish import Conversations
from modules.lives.bluesky.thread import THREAD_MAX_POSTS, analyze_thread_view, link_hosts
from modules.lives.bluesky.types import Pending
from modules.services.identity.self_mechanics import SocialMechanics
from modules.services.outbox.rules.rules import ReplyAdvice
from modules.services.rights.policy import Preference
from tests.hasty_clock import HastyClock
from tests.modules.lives.bluesky.bluesky_values import ME, START, at, chain, did, node, notification, post, uri
from tests.running_town import RunningSoul, RunningTown, awake, call
from town.model.types import ChatRequest, Completion

ROOT = uri("ada", "root")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bluesky_conversations.json"


def store(path: Path, minutes: float = 0) -> Conversations:
    """Open the store `minutes` after the start."""
    return Conversations(path, FakeClock(START + timedelta(minutes=minutes)))


def case_of(
    notification: Notification,
    talk: list[Post] | None = None,
    *,
    importance: Importance = "stranger",
    advice: ReplyAdvice | None = None,
) -> PostCase:
    """Return the case of a post in the thread `talk`, by default the post alone."""
    alone = Post(notification.uri, notification.cid, notification.author, notification.text, notification.created_at)
    thread = analyze_thread_view(node(talk or [alone]), ME)
    item = Pending(notification, notification.indexed_at)
    return PostCase(
        preference=Preference(),
        item=item,
        thread=thread,
        own_did=ME,
        importance=importance,
        provenance=Provenance.OWNER if importance == "owner" else Provenance.STRANGER,
        relationship=None,
        incoming=incoming_of(item, thread, is_automated=False),
        advice=advice or ReplyAdvice(),
    )


def known(threads: Conversations) -> list[FollowedThread]:
    """Return all threads in the store."""
    return list(threads._file.records.values())


def test_a_thread_is_written_as_others_know_it(path: Path) -> None:
    threads = store(path)
    opening = post("ada", key="root")
    answer = post("bob", "Who keeps the weir?", parent=opening)
    asked = notification(answer.text, author="bob", key="p1", root=ROOT)
    threads.plan_case(case_of(asked, [opening, answer]), SocialMechanics())
    threads.record_our_reply(ROOT, "at://ours")
    threads.mark_conversation_concluded(ROOT, "said it all")
    written = json.loads(path.read_text())
    assert written["_memoryVersion"]
    assert written["conversations"][ROOT] == {
        "rootUri": ROOT,
        "rootCid": "cid-root",
        "rootAuthorDid": did("ada"),
        "rootAuthorHandle": "ada.example.social",
        "firstSeen": at(),
        "lastChecked": at(),
        "threadDepth": 1,
        "participants": {
            did("bob"): {
                "did": did("bob"),
                "handle": "bob.example.social",
                "displayName": "Bob",
                "replyCount": 1,
                "firstReplyAt": at(),
                "lastReplyAt": at(),
                "seemsDisengaged": False,
            }
        },
        "ourReplyCount": 1,
        "ourLastReplyAt": at(),
        "ourLastReplyUri": "at://ours",
        "ourReplies": [{"uri": "at://ours", "at": at()}],
        "state": "concluded",
        "conclusionReason": "said it all",
        "concludedAt": at(),
        "concludedBySilence": False,
        "source": "notification",
        "reengagementCount": 0,
        "isProject": False,
        "readUntil": at(),
    }


def test_after_a_restart_everything_is_as_it_was(path: Path) -> None:
    threads = store(path)
    threads.track_conversation(ROOT, cid="cid")
    threads.record_our_reply(ROOT, "at://ours")
    assert known(store(path)) == known(threads)
    assert store(path).notice == ""


def test_tracking_again_adds_what_is_new_and_forgets_nothing(path: Path) -> None:
    threads = store(path)
    threads.track_conversation(ROOT)
    threads.track_conversation(ROOT, cid="cid")
    assert threads.track_conversation(ROOT).root_cid == "cid"


def test_an_upgrade_does_not_make_it_forget_that_it_left(path: Path) -> None:
    store(path).mark_conversation_concluded(ROOT, "said it all")
    older = json.loads(path.read_text()) | {"_memoryVersion": "0.0.1"}
    path.write_text(json.dumps(older))
    left = store(path).get_conversation(ROOT)
    assert left is not None
    assert left.state == "concluded"


def test_what_others_wrote_into_the_file_survives(path: Path) -> None:
    store(path).track_conversation(ROOT)
    written = json.loads(path.read_text())
    written["note"] = "by hand"
    written["conversations"][ROOT]["mood"] = "warm"
    written["conversations"][ROOT]["firstSeen"] = "2026-01-05T12:00:00"
    written["conversations"]["at://broken"] = {"state": "puzzled"}
    path.write_text(json.dumps(written))
    threads = store(path)
    assert "1 entries cannot be read" in threads.notice
    threads.record_our_reply(ROOT, "at://ours")
    after = json.loads(path.read_text())
    assert after["note"] == "by hand"
    assert after["conversations"][ROOT]["mood"] == "warm"
    assert after["conversations"]["at://broken"] == {"state": "puzzled"}


@pytest.mark.parametrize("content", ["{", '{"conversations": 3}'])
def test_a_broken_file_starts_afresh_and_works(path: Path, content: str) -> None:
    path.write_text(content)
    threads = store(path)
    threads.track_conversation(ROOT)
    assert [one.root_uri for one in known(store(path))] == [ROOT]


def test_a_post_is_judged_with_its_thread_and_then_part_of_it(path: Path) -> None:
    talk = chain(*(("bob", f"line {index}") for index in range(11)), ("ada", "The eleventh answer."))
    threads = store(path)
    post = notification("The eleventh answer.", key="c11", minutes=11, root=talk[0].uri)
    assert threads.plan_case(case_of(post, talk), SocialMechanics()).code == "answer"
    tracked = threads.get_conversation(talk[0].uri)
    assert tracked is not None
    assert tracked.thread_depth == 11
    deeper = [*talk, *chain(("cleo", "the last"))]
    last = notification(minutes=12, root=talk[0].uri)
    assert threads.plan_case(case_of(last, deeper), SocialMechanics()).code == "conclude"


def test_a_question_in_an_older_post_that_waits_too_is_judged_with_the_newest() -> None:
    talk = chain(("ada", "Which moss?"), ("ada", "On slate, say"))
    asked, newest = (notification(one.text, key=one.uri[-2:], root=talk[0].uri) for one in talk)
    thread = analyze_thread_view(node(talk), ME)
    incoming = incoming_of(Pending(newest, at(), earlier=(asked,)), thread, is_automated=False)
    assert (incoming.asks_us, incoming.new_words, incoming.recent_texts) == (True, 3, ())


@pytest.mark.parametrize(
    ("advice", "code", "state"),
    [
        (ReplyAdvice(), "answer", "new"),
        (ReplyAdvice("later", "points", 60), "later", "new"),
        (ReplyAdvice("like", "a loop"), "conclude", "concluded"),
    ],
)
def test_a_plan_is_kept_with_the_conversation_that_it_leaves(
    path: Path, advice: ReplyAdvice, code: str, state: str
) -> None:
    talk = chain(("bob", "Who knows the weir?"), ("ada", "I do. Which of the two do you mean?"))
    post = notification("I do. Which of the two do you mean?", key="c1", minutes=1, root=talk[0].uri)
    plan = store(path, minutes=1).plan_case(case_of(post, talk, advice=advice), SocialMechanics())
    kept = store(path).get_conversation(talk[0].uri)
    assert kept is not None
    assert (plan.code, kept.state) == (code, state)
    assert kept.conclusion_reason == (plan.reason if code == "conclude" else None)
    assert (kept.root_author_did, list(kept.participants)) == (did("bob"), [did("ada")])


@pytest.mark.parametrize(("minutes", "code"), [(1, "like"), (2, "answer")])
def test_a_post_written_while_the_model_decides_to_leave_reopens_the_conversation(
    path: Path, minutes: float, code: str
) -> None:
    store(path, minutes=1).plan_case(case_of(notification(minutes=1, root=ROOT)), SocialMechanics())
    later = store(path, minutes=3)
    later.mark_conversation_concluded(ROOT, "said it all")
    assert later.plan_case(case_of(notification(minutes=minutes, root=ROOT)), SocialMechanics()).code == code


def test_the_sweep_ends_what_ran_dry_and_tells_which(path: Path) -> None:
    threads = store(path)
    threads.record_our_reply(ROOT, "at://ours")
    threads.mark_conversation_concluded("at://left", "before")
    threads.track_conversation("at://open")
    later = store(path, minutes=61)
    (over,) = later.sweep(ME, SocialMechanics())
    assert (over.root_uri, over.concluded_by_silence) == (ROOT, True)
    assert later.sweep(ME, SocialMechanics()) == []
    assert later.plan_case(case_of(notification(minutes=62, root=ROOT)), SocialMechanics()).code == "answer"


def test_old_threads_are_forgotten_and_the_rest_goes_stale(path: Path) -> None:
    threads = store(path)
    threads.mark_conversation_concluded("at://left", "x")
    threads.track_conversation("at://open")
    later = store(path, minutes=8 * 24 * 60)
    later.cleanup_old_conversations()
    assert [(one.root_uri, one.state) for one in known(store(path))] == [("at://open", "stale")]
    assert json.loads(path.read_text())["lastCleanup"] == at(8 * 24 * 60)


SAID = (
    "@rowan.test which roof is louder in hail, tin or slate?",
    "And how do you fasten gutters when frost has cracked the fascia boards?",
    "What would you choose for flashing around a chimney built from soft brick?",
    "Does moss shorten the life of cedar shingles on the north side?",
    "How often should lead valleys be inspected after winter storms?",
)
ANSWERS = (
    "Tin sings while slate only mutters under hail.",
    "Stainless brackets straight into rafter ends, never the cracked timber.",
    "Lead soakers, dressed while warm, with lime mortar pointing.",
    "Moss holds water against cedar; brush it off every autumn.",
    "Twice: once after thaw, again before leaves fall.",
)


def answering(request: ChatRequest) -> Completion:
    """Reply to each message of `SAID` with its text of `ANSWERS`."""
    text = request.messages[-1].text
    for said, answer in reversed(tuple(zip(SAID, ANSWERS, strict=True))):
        if said.removeprefix("@rowan.test ") in text:
            return call("bluesky_reply", text=answer)
    return call("stay_silent", reason="nothing to add")


async def _conclusion(soul: RunningSoul, root: str) -> tuple[str, str]:
    conversation = soul.app.lives.bluesky.tidying.conversations.get_conversation(root)
    assert conversation
    return conversation.state, conversation.conclusion_reason or ""


@pytest.mark.slow
async def test_the_post_whose_answer_reaches_the_limit_gets_a_like_too_once_over_a_restart(
    running_town: RunningTown,
) -> None:
    running_town.mind.answer = answering
    home, kit, clock = running_town.make_home("rowan"), running_town.account("kit"), HastyClock()
    root, _ = running_town.network.post_as(kit, SAID[0])
    uris = [root]
    async with awake(home, clock=clock) as soul:
        await soul.look()
        for said in SAID[1:4]:
            own = next(post for post in running_town.network.posts() if post.author.handle == "rowan.test")
            uris.append(running_town.network.post_as(kit, said, reply_to_uri=own.uri)[0])
            await soul.look()
        assert [running_town.likers(uri) for uri in uris] == [[], [], [], ["rowan.test"]]
        assert await _conclusion(soul, root) == (
            "concluded",
            "auto-concluded after response: We have replied 4 times (limit 4)",
        )
    async with awake(home, clock=clock) as soul:
        await soul.look()
        assert (await _conclusion(soul, root))[0] == "concluded"
    assert len(running_town.texts("rowan")) == 4
    assert running_town.likers(uris[3]) == ["rowan.test"]


@pytest.mark.parametrize(("who", "likes"), [("kit", [0, 0, 0, 1, 0]), ("owner", [0, 0, 0, 0, 0])])
@pytest.mark.slow
async def test_a_conversation_that_is_taken_up_again_is_liked_once_and_talk_with_the_owner_has_no_limit(
    running_town: RunningTown, who: str, likes: list[int]
) -> None:
    running_town.mind.answer = answering
    home, did = running_town.make_home("rowan"), running_town.account(who)
    uris = [running_town.network.post_as(did, SAID[0])[0]]
    async with awake(home, clock=SystemClock()) as soul:
        await soul.look()
        for said in SAID[1:]:
            own = next(post for post in running_town.network.posts() if post.author.handle == "rowan.test")
            uris.append(running_town.network.post_as(did, said, reply_to_uri=own.uri)[0])
            await soul.look()
    assert [len(running_town.likers(uri)) for uri in uris] == likes
    assert len(running_town.texts("rowan")) == len(SAID)


def test_the_way_from_the_root_to_the_focal_post_is_complete_and_in_order() -> None:
    talk = chain(("ada", "one"), ("me", "two"), ("bob", "three"), ("me", "four"), ("ada", "five"))
    analysis = analyze_thread_view(node(talk), ME)
    assert analysis.focal_path == tuple(talk)
    assert analysis.posts == tuple(talk)
    assert analysis.depth == 4
    assert analysis.agent_reply_count == 2
    assert analysis.participants == ("ada.example.social", "bob.example.social")
    assert not analysis.is_agent_last_reply


def test_an_address_that_is_none_has_no_host() -> None:
    shared = post("owner", "Look.", links=("https://[::1", "https://a\u2100b.example/x", "https://example.org/a"))
    assert link_hosts(shared) == "example.org"


def test_an_answer_of_ours_below_the_focal_post_is_the_last_word() -> None:
    talk = chain(("ada", "one"), ("bob", "two"))
    ours = post("me", "three", key="m", minutes=5, parent=talk[-1])
    analysis = analyze_thread_view(node(talk, replies=(ThreadNode(ours),)), ME)
    assert analysis.is_agent_last_reply
    assert analysis.agent_reply_count == 1


def test_what_others_answered_beside_us_is_seen_in_order_of_time() -> None:
    root = post("owner", "Ideas?", key="root")
    focal = post("bob", "A raft.", key="b", minutes=4, parent=root)
    first = post("ada", "A kite.", key="a", minutes=1, parent=root)
    deeper = post("cleo", "A red one.", key="c", minutes=6, parent=first)
    tree = ThreadNode(root, replies=(ThreadNode(focal), ThreadNode(first, replies=(ThreadNode(deeper),))))
    analysis = analyze_thread_view(ThreadNode(focal, parent=ThreadNode(root)), ME, tree)
    assert [one.text for one in analysis.posts] == ["Ideas?", "A kite.", "A raft.", "A red one."]
    assert analysis.focal_path == (root, focal)
    assert analysis.participants == tuple(f"{name}.example.social" for name in ("owner", "ada", "bob", "cleo"))


@pytest.mark.parametrize(
    ("created_at", "indexed_at"), [("1990-01-01T00:00:00Z", at(9)), ("not a time", "neither is this")]
)
def test_an_answer_never_stands_before_what_it_answers(created_at: str, indexed_at: str) -> None:
    root = post("ada", "one", key="a", minutes=3)
    answer = post("bob", "two", key="b", parent=root, created_at=created_at, indexed_at=indexed_at)
    last = post("cleo", "three", key="c", minutes=9, parent=answer)
    analysis = analyze_thread_view(
        node([root]), ME, ThreadNode(root, replies=(ThreadNode(answer, replies=(ThreadNode(last),)),))
    )
    assert [one.text for one in analysis.posts] == ["one", "two", "three"]


def test_a_post_that_claims_to_come_from_the_future_stands_where_it_was_seen() -> None:
    root = post("ada", "one", key="a")
    boast = post("bob", "boast", key="b", parent=root, created_at="2099-01-01T00:00:00Z", indexed_at=at(1))
    later = post("me", "answer", key="c", minutes=2, parent=root)
    analysis = analyze_thread_view(node([root]), ME, ThreadNode(root, replies=(ThreadNode(boast), ThreadNode(later))))
    assert analysis.is_agent_last_reply


def crowd(root: Post, size: int) -> ThreadNode:
    """Return a thread of `size` replies to one post, a minute apart."""
    answers = (
        post("bob", f"answer {index}", key=f"x{index}", minutes=10 + index, parent=root) for index in range(size)
    )
    return ThreadNode(root, replies=tuple(ThreadNode(answer) for answer in answers))


def test_a_crowd_is_cut_to_its_newest_but_the_way_to_the_focal_post_stays() -> None:
    root = post("ada", "root", key="root")
    focal = post("cleo", "focal", key="focal", minutes=1, parent=root)
    analysis = analyze_thread_view(ThreadNode(focal, parent=ThreadNode(root)), ME, crowd(root, 100))
    assert len(analysis.posts) == THREAD_MAX_POSTS
    assert analysis.posts[:2] == (root, focal)
    assert analysis.posts[-1].text == "answer 99"
    assert analysis.posts[2].text == f"answer {100 - THREAD_MAX_POSTS + 2}"


def test_a_long_way_is_kept_whole_however_long() -> None:
    length = 1200
    talk = chain(*(("ada", f"line {index}") for index in range(length)))
    analysis = analyze_thread_view(node(talk), ME, crowd(talk[0], 5))
    assert analysis.posts == analysis.focal_path == tuple(talk)
    assert analysis.depth == length - 1


def test_a_circle_of_thanks_on_the_way_is_noticed() -> None:
    talk = chain(("ada", "Thanks!"), ("me", "Thank you!"), ("ada", "Great."), ("me", "Nice."))
    assert analyze_thread_view(node(talk), ME).circular.suggestion_to_exit


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["ada", "bob", "me"]), st.integers(0, 50)), max_size=60))
def test_every_tree_is_shown_once_parents_first(shape: list[tuple[int, str, int]]) -> None:
    posts = [post("ada", "root", key="root")]
    for index, (parent, author, minutes) in enumerate(shape):
        above = posts[parent % len(posts)]
        posts.append(post(author, str(index), key=f"k{index}", minutes=minutes, parent=above))

    def grow(top: Post) -> ThreadNode:
        below = (one for one in posts if one.reply and one.reply.parent.uri == top.uri)
        return ThreadNode(top, replies=tuple(grow(one) for one in below))

    analysis = analyze_thread_view(ThreadNode(posts[0]), ME, grow(posts[0]))
    shown = [one.uri for one in analysis.posts]
    assert len(shown) == len(set(shown)) == min(len(posts), THREAD_MAX_POSTS)
    for one in analysis.posts:
        if one.reply and one.reply.parent.uri in shown:
            assert shown.index(one.reply.parent.uri) < shown.index(one.uri)

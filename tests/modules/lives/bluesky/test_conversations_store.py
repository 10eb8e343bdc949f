"""What the SOUL knows of its threads survives restarts, upgrades and other people's edits."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.atproto.types import Notification, Post
from common.clock import FakeClock, parse_iso
from common.importance import Importance
from common.provenance import Provenance
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.conversation import FollowedThread
from modules.lives.bluesky.handle import incoming_of
from modules.lives.bluesky.publish import Conversations
from modules.lives.bluesky.thread import analyze_thread_view
from modules.lives.bluesky.types import Pending
from modules.services.identity.self_mechanics import SocialMechanics
from modules.services.outbox.rules.types import ReplyAdvice
from modules.services.rights.types import Preference
from tests.modules.lives.bluesky.bluesky_values import ME, START, at, chain, did, node, notification, post, uri

ROOT = uri("ada", "root")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bluesky_conversations.json"


def store(path: Path, minutes: float = 0) -> Conversations:
    """The store as it opens so many minutes after the start."""
    return Conversations(path, FakeClock(START + timedelta(minutes=minutes)))


def case_of(
    notification: Notification,
    talk: list[Post] | None = None,
    *,
    importance: Importance = "stranger",
    advice: ReplyAdvice | None = None,
) -> PostCase:
    """A post in a thread of which `talk` was read; by default the post alone."""
    alone = Post(notification.uri, notification.cid, notification.author, notification.text, notification.created_at)
    thread = analyze_thread_view(node(talk or [alone]), ME)
    return PostCase(
        preference=Preference(),
        item=Pending(notification, notification.indexed_at),
        thread=thread,
        own_did=ME,
        importance=importance,
        provenance=Provenance.OWNER if importance == "owner" else Provenance.STRANGER,
        relationship=None,
        incoming=incoming_of(notification, parse_iso(notification.indexed_at), thread, is_automated=False),
        advice=advice or ReplyAdvice(),
    )


def known(threads: Conversations) -> list[FollowedThread]:
    """All that the store knows."""
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


def test_the_sweep_ends_what_ran_dry_and_tells_which(path: Path) -> None:
    threads = store(path)
    threads.record_our_reply(ROOT, "at://ours")
    threads.mark_conversation_concluded("at://left", "before")
    threads.track_conversation("at://open")
    later = store(path, minutes=61)
    (over,) = later.sweep(ME)
    assert (over.root_uri, over.concluded_by_silence) == (ROOT, True)
    assert later.sweep(ME) == []
    assert later.plan_case(case_of(notification(minutes=62, root=ROOT)), SocialMechanics()).code == "answer"


def test_old_threads_are_forgotten_and_the_rest_goes_stale(path: Path) -> None:
    threads = store(path)
    threads.mark_conversation_concluded("at://left", "x")
    threads.track_conversation("at://open")
    later = store(path, minutes=8 * 24 * 60)
    assert later.cleanup_old_conversations() == 1
    assert [(one.root_uri, one.state) for one in known(store(path))] == [("at://open", "stale")]
    assert json.loads(path.read_text())["lastCleanup"] == at(8 * 24 * 60)

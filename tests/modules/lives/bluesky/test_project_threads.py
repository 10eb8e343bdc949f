"""A thread about work that is done together ends later than a chat, and nobody's small talk becomes one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.importance import Importance
from common.provenance import Provenance
from modules.lives.bluesky.case import PostCase
from modules.lives.bluesky.handle import incoming_of
from modules.lives.bluesky.policy import PostDecision
from modules.lives.bluesky.publish import Conversations
from modules.lives.bluesky.thread import analyze_thread_view, with_full_links
from modules.lives.bluesky.types import Pending
from modules.services.identity.self_mechanics import SocialMechanics
from modules.services.outbox.rules.types import ReplyAdvice
from modules.services.peers.accounts import Interaction, Relationship
from modules.services.rights.types import Preference
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
    """The last of `lines`, as it is met so many minutes after the start."""
    talk = chain(*lines)
    author, text = lines[-1]
    key = f"k{minutes:g}"
    reached = notification(text, author=author, key=key, minutes=minutes, root=talk[0].uri, parent=talk[0].uri)
    thread = analyze_thread_view(node(talk), ME)
    return PostCase(
        item=Pending(reached, at(minutes)),
        thread=thread,
        own_did=ME,
        importance=importance,
        provenance=Provenance.STRANGER,
        relationship=None,
        incoming=incoming_of(reached, START + timedelta(minutes=minutes), thread, is_automated=False),
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
        """Reply at each tenth minute, `first` to `last`."""
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
    assert [over.root_uri for over in life.conversations.sweep(ME)] == ["at://chat"]
    life.clock.jump(7 * 60 * 60)
    assert [over.root_uri for over in life.conversations.sweep(ME)] == [root_uri]


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


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Measured one.", False),
        ("Measured one; I am `tin-soul` there.", True),
        ("See https://github.com/tin-soul-two for another.", False),
        ("I am Tin-Soul on GitHub.", True),
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

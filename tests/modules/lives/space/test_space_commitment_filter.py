"""One artefact for one request: what it has got already, and what a peer made lately, is not made again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from common.provenance import Provenance
from common.schemas import Commitment
from common.text.host_intent import HostIntent
from modules.lives.space.commitment_filter import PlannedCommitment, permitted, planned, still_to_make
from modules.lives.space.snapshot import RoomSnapshot
from modules.lives.space.speak import experience_of
from modules.lives.space.types import HistoryEntry, HostRequest, PeerEvent
from modules.services.memory.admission import WordsOrigin

WORDS = WordsOrigin(Provenance.PEER, Provenance.PEER, "space:room")
NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ISSUE = Commitment(type="create_issue", repo="acme/site", title="Clock stops at midnight", description="It stops.")
OTHER = Commitment(type="create_issue", repo="acme/site", title="Gutter leaks", description="It drips.")
COMMENT = Commitment(type="comment_issue", repo="acme/site", issue_number=3, description="Seen here too.")
MADE_BY_PEER = PeerEvent("success", "rebecca", NOON, "create_issue", "acme/site#Clock stops at midnight")

ASKED = HistoryEntry("m1", "host", "Please open an issue for the clock.", NOON, is_host=True, intent="action_request")
REQUEST = HostRequest(ASKED.content, ASKED.id, NOON, fulfilled=True)

MET = RoomSnapshot(now=NOON, me="marvin", history=(ASKED,), request=REQUEST, repo="acme/site")
OPEN = RoomSnapshot(now=NOON, me="marvin", repo="acme/site")


def after(intent: HostIntent) -> HistoryEntry:
    return HistoryEntry("m2", "host", "And then?", NOON + timedelta(minutes=1), is_host=True, intent=intent)


def test_for_a_request_that_is_met_nothing_more_is_made_but_comments_are_free() -> None:
    found = permitted([ISSUE, OTHER, COMMENT], MET)
    assert found.kept == (COMMENT,)
    assert [one.code for one in found.left_out] == ["made", "made"]


def test_what_a_peer_has_made_is_not_made_again_by_another_name_of_the_same() -> None:
    again = ISSUE.model_copy(update={"title": "The clock stops at midnight", "repo": ""})
    found = permitted([again, OTHER, COMMENT], replace(OPEN, peer_events=(MADE_BY_PEER,)))
    assert found.kept == (OTHER, COMMENT)
    assert "rebecca has made" in found.left_out[0].reason
    failed = replace(MADE_BY_PEER, kind="failure")
    assert permitted([ISSUE], replace(OPEN, peer_events=(failed,))).kept == (ISSUE,)


OURS, FREE = planned((ISSUE, COMMENT), OPEN)
ASKED_OF_ANOTHER = replace(OPEN, request=replace(REQUEST, fulfilled=False), is_open=True, is_owner=False)


@pytest.mark.parametrize(
    ("now", "lost", "kept"),
    [
        (OPEN, set(), (OURS, FREE)),
        (OPEN, {("create_issue", OURS.target)}, (FREE,)),
        (replace(OPEN, peer_events=(MADE_BY_PEER,)), set(), (FREE,)),
        (replace(OPEN, peer_events=(replace(MADE_BY_PEER, kind="claim"),)), set(), (OURS, FREE)),
        (MET, set(), (FREE,)),
        (ASKED_OF_ANOTHER, set(), (FREE,)),
        (replace(ASKED_OF_ANOTHER, is_owner=True), set(), (OURS, FREE)),
        (replace(OPEN, follow_up="link"), set(), ()),
    ],
    ids=["free", "lost-claim", "made-by-peer", "claimed-later", "met", "not-elected", "elected", "asked-about"],
)
def test_only_what_the_room_did_since_drops_a_planned_commitment(
    now: RoomSnapshot, lost: set[tuple[str, str]], kept: tuple[PlannedCommitment, ...]
) -> None:
    assert still_to_make((OURS, FREE), now, lost) == kept


@pytest.mark.parametrize(
    ("request_now", "history", "met"),
    [
        (REQUEST, (ASKED,), True),
        (REQUEST, (ASKED, after("follow_up")), True),
        (REQUEST, (ASKED, after("discussion")), False),
        (replace(REQUEST, fulfilled=False, given_up=True), (ASKED,), True),
        (replace(REQUEST, fulfilled=False), (ASKED,), False),
        (HostRequest(), (after("discussion"),), False),
        (REQUEST, (), False),
    ],
    ids=["met", "asked-about", "another-talk", "given-up", "open", "nothing-asked", "forgotten"],
)
def test_a_request_is_met_until_the_host_speaks_of_something_else(
    request_now: HostRequest, history: tuple[HistoryEntry, ...], *, met: bool
) -> None:
    is_open = bool(request_now.content) and not request_now.fulfilled and not request_now.given_up
    assert RoomSnapshot(now=NOON, me="marvin", history=history, request=request_now, is_open=is_open).is_met is met


def test_an_experience_is_an_episode_of_its_own_that_rests_on_the_words_of_peers() -> None:
    first = experience_of("connection_formed", "host: hello | marvin: hello", NOON, WORDS, "UTC")
    later = experience_of("connection_formed", "x" * 9000, NOON + timedelta(seconds=1), WORDS, "UTC")
    assert (first.kind, first.source, first.trust, first.private) == ("episode", "space:room", "peer", True)
    assert first.subject == "A talk in the room, 2026-01-05 12:00:00"
    assert first.subject != later.subject
    assert len(later.body) == 4000

"""Whom we talked with in rooms: counted by conversation, kept through accidents and upgrades."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from common.clock import FakeClock
from modules.services.peers.room_identity import PeerRelationships, stance_of
from modules.services.skills.skills import Skills
from soul.resources import SKILLS


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "peer_relationships.json"


@pytest.fixture
def skills() -> Skills:
    return Skills.load(SKILLS)


async def test_a_conversation_counts_once_until_there_is_a_long_pause(path: Path, clock: FakeClock) -> None:
    store = PeerRelationships(path, clock)
    for _ in range(3):
        store.record_space_interaction(["Rebecca"])
        await clock.advance(60)
    store = PeerRelationships(path, clock)
    store.record_space_interaction(["rebecca"])
    known = store.get("REBECCA")
    assert known is not None
    assert known.space_conversations == 1
    await clock.advance(301)
    store.record_space_interaction(["Rebecca", "peterben"])
    again, new = store.get("rebecca"), store.get("peterben")
    assert again is not None
    assert new is not None
    assert (again.space_conversations, new.space_conversations) == (2, 1)
    assert again.peer_name == "Rebecca"


def test_the_newest_exchanges_and_strengths_are_kept_in_one_line(path: Path, clock: FakeClock) -> None:
    store = PeerRelationships(path, clock)
    for number in range(7):
        store.record_memorable_exchange("rebecca", f"exchange\n{number}")
        store.record_complementary_strengths("rebecca", [f"strength\n{number % 4}"])
    known = store.get("rebecca")
    assert known is not None
    assert known.memorable_exchanges == tuple(f"exchange {number}" for number in range(2, 7))
    assert known.complementary_strengths == ("strength 2", "strength 1", "strength 0")


def test_a_prompt_is_told_what_there_is_and_nothing_of_strangers(path: Path, clock: FakeClock, skills: Skills) -> None:
    store = PeerRelationships(path, clock)
    assert store.get_peer_relationship_context("rebecca", skills) is None
    store.record_co_creation("rebecca")
    assert store.get_peer_relationship_context("rebecca", skills) is None
    store.record_space_interaction(["rebecca"])
    store.record_pr_review("rebecca")
    store.record_memorable_exchange("rebecca", "moss grows on the north side")
    assert store.get_peer_relationship_context("rebecca", skills) == (
        "1 conversations with you · 1 issues written together · 1 pull requests reviewed"
        ' · you remember: "moss grows on the north side"'
    )


def test_what_others_wrote_into_the_file_stays(path: Path, clock: FakeClock) -> None:
    path.write_text(
        json.dumps(
            {
                "relationships": {
                    "rebecca": {"peerName": "rebecca", "spaceConversations": 4, "nickname": "Becky"},
                    "odd": {"peerName": 7},
                },
                "note": "by hand",
                "_memoryVersion": "0.1",
            }
        ),
        encoding="utf-8",
    )
    store = PeerRelationships(path, clock)
    assert "1 entries" in store.notice
    store.record_space_interaction(["rebecca"])
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["relationships"]["rebecca"]["spaceConversations"] == 5
    assert kept["relationships"]["rebecca"]["nickname"] == "Becky"
    assert kept["relationships"]["odd"] == {"peerName": 7}
    assert kept["note"] == "by hand"
    assert kept["_memoryVersion"] != "0.1"


@pytest.mark.parametrize(
    ("answer", "stance"),
    [
        ("Agreed, slate carries every drop.", "agrees"),
        ("Yes, exactly. Mine hums too.", "agrees"),
        ("You\u2019re right about the battens.", "agrees"),
        ("I disagree: tin rings because the sheet is thin and hangs free.", "disagrees"),
        ("Yes, but the felt layer underneath swallows most of the sound.", "disagrees"),
        ("I disagree.", None),
        ("Agreed, though only in winter.", None),
        ("The garden needs rain.", None),
        ("Trueness of the beam matters.", None),
    ],
)
def test_who_agrees_or_disagrees_for_a_reason_is_known_by_the_words(answer: str, stance: str | None) -> None:
    assert stance_of(answer) == stance

"""The registry of peers: who becomes one, what it keeps, and what an account that lies can take from another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock, iso
from modules.services.peers import policy
from modules.services.peers.registry import PeerRegistry, read_peers
from modules.services.peers.types import PeerClaim, Sighting, Via

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
ADA = PeerClaim("ada.example", "did:plc:ada", "Ada")
EVE = PeerClaim("eve.example", "did:plc:eve", "ada")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "discovered_peers.json"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def seen(handle: str = "ada.example", via: Via = "owner_mention", context: str = "at://post/1") -> list[Sighting]:
    return [Sighting(handle, via, context)]


def opened(path: Path, clock: FakeClock, listed: Sequence[str] = (), reserved: Sequence[str] = ()) -> PeerRegistry:
    registry = PeerRegistry(path, clock, listed=lambda: listed, reserved=reserved)
    registry.is_mutual = True
    return registry


def test_a_candidate_is_kept_under_its_handle_and_has_no_standing(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    assert registry.register_peer_by_bluesky_handle(seen("Ada.Example")) == 1
    assert registry.found() == frozenset()
    assert registry.get_unfollowed_peers() == []
    assert json.loads(path.read_text())["peers"]["ada.example"] == {
        "githubUsername": "ada.example",
        "blueskyHandle": "ada.example",
        "discoveredAt": iso(clock.now()),
        "discoveredVia": "owner_mention",
        "vias": ["owner_mention"],
        "confidence": "medium",
        "lastSeenAt": iso(clock.now()),
        "contexts": ["at://post/1"],
        "followedOnBluesky": False,
        "announcedOnBluesky": False,
        "failedScans": 0,
        "contestedBy": [],
        "followsUs": False,
    }


def test_a_link_moves_the_candidate_to_its_name_and_outlives_a_restart(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    registry.register_peer_by_bluesky_handle(seen())
    assert registry.link_bluesky_handle_to_github(ADA, github_id=7) == "linked"
    assert registry.link_bluesky_handle_to_github(ADA, github_id=7) == "known"
    again = opened(path, clock)
    assert list(json.loads(path.read_text())["peers"]) == ["ada"]
    assert again.found() == {"did:plc:ada", "ada.example"}
    assert [peer.github_username for peer in again.get_unannounced_peers()] == ["Ada"]


def test_nobody_was_found_while_our_own_identity_post_does_not_stand(path: Path, clock: FakeClock) -> None:
    registry = PeerRegistry(path, clock)
    registry.link_bluesky_handle_to_github(ADA)
    assert registry.found() == frozenset()


def test_only_who_was_introduced_is_followed_and_announced(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    registry.register_peer_by_bluesky_handle(seen(via="thread"))
    registry.link_bluesky_handle_to_github(ADA, github_id=7)
    assert registry.found()
    assert registry.get_unfollowed_peers() == registry.get_unannounced_peers() == []
    registry.register_peer_by_bluesky_handle(seen(via="owner_mention"))
    assert [peer.github_username for peer in registry.get_unfollowed_peers()] == ["Ada"]
    registry.link_bluesky_handle_to_github(ADA)
    assert registry.get_unfollowed_peers() == registry.get_unannounced_peers() == []


def test_flags_are_never_lost_by_a_link_to_another_name_or_handle(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    registry.register_peer_by_bluesky_handle(seen())
    registry.link_bluesky_handle_to_github(ADA)
    registry.mark_peer_followed("Ada")
    registry.mark_peer_announced("Ada")
    registry.register_peer_by_bluesky_handle(seen("lovelace.example"))
    assert registry.link_bluesky_handle_to_github(PeerClaim("lovelace.example", ADA.did, "Lovelace")) == "linked"
    peer = registry.get("lovelace")
    assert peer is not None
    assert peer.followed_on_bluesky
    assert peer.announced_on_bluesky
    assert registry.found() == {ADA.did, "lovelace.example"}
    assert registry.get("ada") is registry.get("ada.example") is registry.get("lovelace.example") is None


def test_a_name_that_two_accounts_claim_is_nobodys_until_one_gives_it_up(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    registry.register_peer_by_bluesky_handle(seen())
    registry.link_bluesky_handle_to_github(ADA)
    assert registry.link_bluesky_handle_to_github(EVE) == "contested"
    assert registry.found() == frozenset()
    assert registry.link_bluesky_handle_to_github(ADA) == "contested"
    registry.ensure_peer_registry_clean()
    assert registry.get_unfollowed_peers() == []
    registry.mark_identity_not_found("eve.example")
    assert registry.link_bluesky_handle_to_github(ADA) == "known"
    assert registry.found() == {ADA.did, ADA.handle}


@pytest.mark.parametrize("first", [ADA, EVE])
def test_of_two_the_one_in_the_settings_has_the_name(path: Path, clock: FakeClock, first: PeerClaim) -> None:
    registry = opened(path, clock, listed=[ADA.did])
    second = EVE if first is ADA else ADA
    registry.link_bluesky_handle_to_github(first)
    assert registry.link_bluesky_handle_to_github(second) == ("linked" if second is ADA else "taken")
    assert registry.found() == {ADA.did, ADA.handle}


def test_our_own_name_and_the_owners_are_nobody_elses(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock, reserved=["Ada", ""])
    registry.register_peer_by_bluesky_handle(seen())
    assert registry.link_bluesky_handle_to_github(ADA) == "reserved"
    assert [peer.claims_github for peer in read_peers(path)] == [ADA.username]
    assert registry.found() == frozenset()
    assert registry.due_for_scan(5) == []


def test_a_handle_that_changes_hands_takes_no_standing_with_it(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    registry.link_bluesky_handle_to_github(ADA)
    registry.mark_peer_announced("ada")
    assert registry.link_bluesky_handle_to_github(PeerClaim(ADA.handle, EVE.did, "ada")) == "contested"
    assert registry.found() == frozenset()


def test_who_takes_the_identity_post_back_has_no_standing(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    registry.link_bluesky_handle_to_github(ADA)
    registry.mark_identity_not_found("ada")
    assert registry.found() == frozenset()
    assert registry.link_bluesky_handle_to_github(ADA) == "linked"


async def test_a_link_counts_for_a_week_and_is_looked_at_again_after_a_day(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    registry.link_bluesky_handle_to_github(ADA)
    await clock.advance(DAY - 1)
    assert registry.due_for_scan(5) == []
    await clock.advance(2)
    assert [peer.github_username for peer in registry.due_for_scan(5)] == ["Ada"]
    await clock.advance(6 * DAY)
    assert registry.found() == frozenset()


async def test_a_feed_read_in_vain_is_left_alone_for_15_minutes_doubling_to_6_hours(
    path: Path, clock: FakeClock
) -> None:
    registry = opened(path, clock)
    registry.register_peer_by_bluesky_handle(seen())
    waits = []
    for _ in range(7):
        registry.mark_identity_not_found("ada.example")
        minutes = 0
        while not registry.due_for_scan(5):
            await clock.advance(15 * MINUTE)
            minutes += 15
        waits.append(minutes)
    assert waits == [15, 30, 60, 120, 240, 360, 360]


@pytest.mark.slow
def test_a_crowd_of_strangers_neither_fills_the_file_nor_keeps_an_introduced_peer_waiting(
    path: Path, clock: FakeClock
) -> None:
    registry = opened(path, clock)
    registry.link_bluesky_handle_to_github(ADA)
    registry.mark_peer_announced("ada")
    registry.register_peer_by_bluesky_handle(seen("late.example"))
    crowd = [Sighting(f"stranger-{number}.example", "thread", "") for number in range(2_000)]
    registry.register_peer_by_bluesky_handle(crowd)
    assert registry.get_peer_announcement_summary().total == policy.KEPT_PEERS
    assert registry.get("ada")
    assert registry.due_for_scan(1)[0].github_username == "late.example"


def test_a_file_of_another_version_keeps_what_was_done(path: Path, clock: FakeClock) -> None:
    written = {
        "_memoryVersion": "0.0.1",
        "peers": {
            "ada": {
                "githubUsername": "ada",
                "blueskyHandle": "ada.example",
                "discoveredAt": "2025-12-01T00:00:00.000Z",
                "discoveredVia": "workspace",
                "confidence": "high",
                "lastSeenAt": "2025-12-01T00:00:00.000Z",
                "contexts": [],
                "announcedOnBluesky": True,
                "followedOnBluesky": True,
                "lastVerifiedAt": "2025-12-01T00:00:00.000Z",
            },
            "ada.example": {
                "githubUsername": "ada.example",
                "blueskyHandle": "ada.example",
                "discoveredAt": "2025-11-01T00:00:00.000Z",
                "discoveredVia": "thread",
                "confidence": "low",
                "lastSeenAt": "2025-12-02T00:00:00.000Z",
                "contexts": ["at://x"],
            },
            "odd": {"some": "thing"},
        },
    }
    path.write_text(json.dumps(written))
    registry = opened(path, clock)
    peer = registry.get("ada")
    assert peer is not None
    assert (peer.announced_on_bluesky, peer.followed_on_bluesky, peer.confidence) == (True, True, "high")
    assert (peer.contexts, peer.discovered_via) == (("at://x",), "thread")
    assert registry.found() == frozenset(), "its account is not known, so nothing rests on it"
    assert registry.link_bluesky_handle_to_github(ADA) == "linked"
    assert registry.get_unannounced_peers() == []
    kept = json.loads(path.read_text())
    assert set(kept["peers"]) == {"ada", "odd"}
    assert kept["_memoryVersion"] != "0.0.1"


async def test_a_rival_that_is_forgotten_contests_no_more(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    registry.link_bluesky_handle_to_github(ADA)
    registry.link_bluesky_handle_to_github(EVE)
    await clock.advance(1)
    registry.register_peer_by_bluesky_handle(
        [Sighting(f"stranger-{number}.example", "thread", "") for number in range(600)]
    )
    assert registry.get("eve.example") is None
    registry.ensure_peer_registry_clean()
    assert registry.found() == {ADA.did, ADA.handle}


def test_the_wait_never_grows_past_its_end() -> None:
    assert policy.retry_after(10_000) == timedelta(hours=6)


@pytest.mark.parametrize("first", [ADA, EVE])
def test_of_two_the_one_that_the_github_page_names_has_the_name(path: Path, clock: FakeClock, first: PeerClaim) -> None:
    registry = opened(path, clock)
    second = EVE if first is ADA else ADA
    registry.link_bluesky_handle_to_github(first)
    assert registry.link_bluesky_handle_to_github(second) == "contested"
    assert registry.link_bluesky_handle_to_github(ADA, github_id=7) == "linked"
    assert registry.link_bluesky_handle_to_github(EVE) == "taken"
    assert registry.found() == {ADA.did, ADA.handle}


def test_the_owners_list_is_stronger_than_the_github_page(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock, listed=[EVE.did])
    registry.link_bluesky_handle_to_github(ADA, github_id=7)
    assert registry.link_bluesky_handle_to_github(EVE) == "linked"
    assert registry.link_bluesky_handle_to_github(ADA, github_id=7) == "taken"
    assert registry.found() == {EVE.did, EVE.handle}


def test_where_the_page_names_another_now_the_name_moves(path: Path, clock: FakeClock) -> None:
    registry = opened(path, clock)
    registry.link_bluesky_handle_to_github(ADA, github_id=7)
    assert registry.link_bluesky_handle_to_github(EVE, github_id=7) == "linked"
    assert registry.link_bluesky_handle_to_github(ADA) == "taken"
    assert registry.found() == {EVE.did, EVE.handle}


@pytest.mark.parametrize("content", ["{", '{"peers": {"ada": 7}}'])
def test_a_file_that_cannot_be_read_is_no_obstacle(path: Path, clock: FakeClock, content: str) -> None:
    path.write_text(content)
    registry = opened(path, clock)
    assert registry.found() == frozenset()
    assert registry.link_bluesky_handle_to_github(ADA) == "linked"
    assert opened(path, clock).found() == {ADA.did, ADA.handle}


def test_a_parting_counts_until_the_cooldown_is_over() -> None:
    now, hour, week = FakeClock().now(), timedelta(hours=1), timedelta(days=7)
    peers = policy.sighted({}, Sighting("wren.test", "owner_mention", ""), now)
    known = policy.related(peers, "wren.test", now, is_followed=True, follows_us=True)
    assert known["wren.test"].unfollowed_at is None
    left = policy.related(known, "wren.test", now + hour, is_followed=True, follows_us=False)
    assert left["wren.test"].unfollowed_at == now + hour
    gone = policy.related(left, "wren.test", now + 2 * hour, is_followed=False, follows_us=False)["wren.test"]
    assert gone.unfollowed_at == now + 2 * hour
    later = [FakeClock(now + 2 * hour + after).since for after in (hour, week)]
    assert [policy.may_follow(gone, since, week) for since in later] == [False, True]

"""What peers and we did together: counted once for each act, kept through accidents, bounded, and forgotten whole."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.person import Person, Trace
from modules.services.peers.histories import KEPT_KEYS, LOOKED_BACK, PeerHistories
from modules.services.rights.records import without

WREN, HANDLE = "did:plc:wren", "wren.test"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "peer_histories.json"


def test_an_act_counts_once_also_for_a_process_that_reads_the_file_anew(path: Path, clock: FakeClock) -> None:
    store, at = PeerHistories(path, clock), clock.now()
    assert store.count(WREN, HANDLE, "built_on", "reply:1", at)
    assert not store.count(WREN, HANDLE, "built_on", "reply:1", at)
    store = PeerHistories(path, clock)
    assert not store.count(WREN, HANDLE, "built_on", "reply:1", at)
    assert store.take_stance(WREN, HANDLE, "disagrees", "stance:1", at)
    assert store.take_stance(WREN, HANDLE, "agrees", "stance:2", at)
    for _ in range(2):
        store.share_work(WREN, HANDLE, "acme/site#1")
        store.meet(WREN, HANDLE, followed=True, announced=False)
    known = PeerHistories(path, clock).get(WREN)
    assert known is not None
    assert (known.built_on, known.agreements, known.productive_disagreements) == (1, 1, 1)
    assert (known.shared_work, known.followed, known.announced) == (("acme/site#1",), True, False)


@pytest.mark.slow
async def test_of_a_flood_no_act_counts_twice_and_only_the_newest_keys_are_kept(path: Path, clock: FakeClock) -> None:
    store, acts = PeerHistories(path, clock), []
    for number in range(3 * KEPT_KEYS):
        await clock.advance(1)
        acts.append((f"reply:{number}", clock.now()))
    for key, at in acts:
        store.count(WREN, HANDLE, "built_on", key, at)
    for key, at in acts:
        assert not store.count(WREN, HANDLE, "built_on", key, at)
    known = store.get(WREN)
    assert known is not None
    assert known.built_on == 3 * KEPT_KEYS
    assert len(known.counted) == KEPT_KEYS


async def test_an_act_that_is_too_old_for_its_key_to_be_kept_does_not_count(path: Path, clock: FakeClock) -> None:
    store, at = PeerHistories(path, clock), clock.now()
    store.count(WREN, HANDLE, "claims_won", "claim:1", at)
    await clock.advance((LOOKED_BACK + timedelta(hours=1)).total_seconds())
    assert not store.count(WREN, HANDLE, "claims_won", "claim:1", at)
    store.count(WREN, HANDLE, "claims_won", "claim:2", clock.now())
    known = store.get(WREN)
    assert known is not None
    assert (known.claims_won, len(known.counted)) == (2, 1)


def test_whoever_is_forgotten_is_forgotten_with_the_keys_of_the_acts(path: Path, clock: FakeClock) -> None:
    store = PeerHistories(path, clock)
    store.count(WREN, HANDLE, "built_on", "reply:1", clock.now())
    store.count("did:plc:kit", "kit.test", "built_on", "reply:2", clock.now())
    after = without(f".memory/{path.name}", path.read_text(), Trace(Person(WREN, (HANDLE,))))
    assert "wren" not in after
    path.write_text(after)
    store = PeerHistories(path, clock)
    assert (store.notice, store.get(WREN)) == ("", None)
    assert store.get("did:plc:kit") is not None
    assert len(after.split('"counted"')) == 2

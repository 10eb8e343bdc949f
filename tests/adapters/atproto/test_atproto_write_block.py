"""Right before a write leaves, somebody may still hold it back; reading goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.atproto.client import Atproto
from common.clock import FakeClock
from tests.adapters.atproto.atproto_town import AtprotoTown
from tests.adapters.results import err, ok
from tests.loopback import to_loopback
from tests.patience import until, while_time_passes
from town.atproto.service import Fault

pytestmark = pytest.mark.asyncio(loop_scope="session")

PUT = "com.atproto.repo.putRecord"
RKEY = "3jzfcijpj2z2a"


def client(town: AtprotoTown, folder: Path, clock: FakeClock, reasons: list[str]) -> Atproto:
    made = Atproto(
        transport=to_loopback,
        service_url=town.url,
        identifier="alice.test",
        password="alice-pass",
        session_path=folder / "held-back.json",
        clock=clock,
        min_spacing_s=0,
        write_block_reason=lambda: "; ".join(reasons),
    )
    town.clients.append(made)
    return made


async def test_what_is_held_back_does_not_leave_and_nothing_else_is(town: AtprotoTown, tmp_path: Path) -> None:
    reasons = ["paused"]
    alice = client(town, tmp_path, town.clock, reasons)
    ok(await alice.authenticate())
    refused = err(await alice.create_post("not now", rkey=RKEY, created_at=town.clock.now()))
    assert (refused.error, refused.kind) == ("paused", "transient")
    assert town.network.posts() == []
    ok(await alice.get_timeline())
    ok(await alice.update_seen_notifications())
    reasons.clear()
    ok(await alice.create_post("now", rkey=RKEY, created_at=town.clock.now()))
    assert [post.text for post in town.network.posts()] == ["now"]


async def test_a_write_that_the_service_made_wait_is_held_back_when_its_time_comes(
    town: AtprotoTown, tmp_path: Path
) -> None:
    reasons: list[str] = []
    alice = client(town, tmp_path, town.clock, reasons)
    ok(await alice.authenticate())
    town.faults.arm(Fault("rate_limited", PUT, seconds=120))
    writing = asyncio.create_task(alice.create_post("later", rkey=RKEY, created_at=town.clock.now()))
    await until(lambda: town.clock._sleepers, what="the wait that the service asks for")
    reasons.append("paused meanwhile")
    refused = err(await while_time_passes(town.clock, writing))
    assert (refused.error, refused.kind) == ("paused meanwhile", "transient")
    assert town.network.posts() == []

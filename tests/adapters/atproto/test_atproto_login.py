"""Tests of staying logged in: first the stored session, then a refresh, then the password, and few logins a day."""

from dataclasses import replace

import pytest

from adapters.atproto.session import StoredSession
from tests.adapters.atproto.atproto_town import AtprotoTown
from tests.adapters.results import err, ok
from town.atproto.service import Fault

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOGIN = "com.atproto.server.createSession"
REFRESH = "com.atproto.server.refreshSession"


def logins(town: AtprotoTown, name: str) -> int:
    """Return how many password logins the session file counts."""
    return len(town.client(name)._xrpc.keeper.file.load().logins)


async def test_the_next_process_goes_on_with_the_stored_session(town: AtprotoTown) -> None:
    await town.logged_in("alice")
    town.faults.arm(Fault("server_error", LOGIN))
    again = await town.logged_in("alice")
    ok(await again.get_timeline())
    assert logins(town, "alice") == 1


async def test_a_stored_session_that_has_ended_is_refreshed(town: AtprotoTown) -> None:
    await town.logged_in("alice")
    await town.clock.advance(7200)
    again = await town.logged_in("alice")
    ok(await again.get_timeline())
    assert logins(town, "alice") == 1


@pytest.mark.parametrize(
    ("passed_s", "done"), [(0, "valid"), (7000, "valid"), (7150, "refreshed"), (9000, "refreshed")]
)
async def test_the_session_is_renewed_only_when_it_ends_within_the_margin(
    town: AtprotoTown, passed_s: float, done: str
) -> None:
    alice = await town.logged_in("alice")
    await town.clock.advance(passed_s)
    assert ok(await alice.ensure_session_or_reauth()) == done
    ok(await alice.get_timeline())


async def test_the_password_helps_when_the_refresh_is_refused(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    await town.clock.advance(91 * 86400)
    assert ok(await alice.ensure_session_or_reauth()) == "logged in"


@pytest.mark.parametrize("kind", ["server_error", "bad_gateway"])
async def test_the_password_helps_when_the_refresh_is_broken(town: AtprotoTown, kind: str) -> None:
    alice = await town.logged_in("alice")
    await town.clock.advance(7200)
    town.faults.arm(Fault("bad_gateway" if kind == "bad_gateway" else "server_error", REFRESH))
    assert ok(await alice.ensure_session_or_reauth()) == "logged in"


@pytest.mark.parametrize("kind", ["lost_answer", "lost_request"])
async def test_a_refresh_that_got_no_answer_is_no_reason_to_log_in(town: AtprotoTown, kind: str) -> None:
    alice = await town.logged_in("alice")
    await town.clock.advance(7200)
    town.faults.arm(Fault("lost_answer" if kind == "lost_answer" else "lost_request", REFRESH))
    assert err(await alice.ensure_session_or_reauth()).kind == "transient"
    assert ok(await alice.ensure_session_or_reauth()) == "refreshed"


async def test_a_refresh_that_was_too_fast_is_no_reason_to_log_in(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    await town.clock.advance(7200)
    town.faults.arm(Fault("rate_limited", REFRESH, seconds=10))
    failed = err(await alice.ensure_session_or_reauth())
    assert (failed.kind, failed.retry_after) == ("transient", 10)


async def test_a_session_whose_server_has_moved_finds_the_new_one(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    keeper = alice._xrpc.keeper
    assert keeper.session
    keeper._keep(StoredSession(replace(keeper.session, pds="http://127.0.0.1:65530")))
    assert err(await alice.get_timeline()).kind == "transient"
    await town.clock.advance(7200)
    assert ok(await alice.ensure_session_or_reauth()) == "refreshed"
    ok(await alice.get_timeline())


async def test_a_request_recovers_from_a_session_that_has_ended_for_good(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    await town.clock.advance(91 * 86400)
    ok(await alice.create_post("still here"))
    assert len(town.network.posts()) == 1


async def test_a_request_whose_session_cannot_be_restored_says_why(town: AtprotoTown) -> None:
    await town.logged_in("alice")
    changed = town.client("alice", password="changed since")
    ok(await changed.authenticate())
    await town.clock.advance(91 * 86400)
    failed = err(await changed.create_post("hello?"))
    assert (failed.kind, failed.error) == ("auth", "Invalid identifier or password")


async def test_before_login_reads_that_need_none_work_and_writes_are_refused(town: AtprotoTown) -> None:
    stranger = town.client("alice")
    assert ok(await stranger.resolve_handle("bob.test")) == town.did("bob")
    assert err(await stranger.create_post("hello")).kind == "auth"
    assert err(await stranger.list_records("app.bsky.feed.post")).kind == "auth"


async def test_no_more_than_twenty_logins_a_day_whatever_process_asks(town: AtprotoTown) -> None:
    mistaken = town.client("alice", password="wrong")
    for _ in range(20):
        assert err(await mistaken.authenticate()).kind == "auth"
    held = err(await town.client("alice").authenticate())
    assert held.kind == "transient"
    assert held.retry_after == 24 * 3600
    await town.clock.advance(24 * 3600 + 1)
    ok(await town.client("alice").authenticate())


async def test_an_outage_does_not_use_up_the_logins(town: AtprotoTown) -> None:
    alice = town.client("alice")
    town.faults.arm(Fault("bad_gateway", LOGIN, times=21))
    for _ in range(21):
        assert err(await alice.authenticate()).kind == "transient"
    ok(await alice.authenticate())


async def test_a_login_that_fails_does_not_lose_the_session_that_may_still_be_refreshed(town: AtprotoTown) -> None:
    alice = await town.logged_in("alice")
    await town.clock.advance(7200)
    town.faults.arm(Fault("server_error", REFRESH))
    town.faults.arm(Fault("server_error", LOGIN))
    assert err(await alice.ensure_session_or_reauth()).kind == "transient"
    assert ok(await alice.ensure_session_or_reauth()) == "refreshed"

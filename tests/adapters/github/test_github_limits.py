"""Tests of the request limiter: spacing, bursts, the hour's budget, and GitHub's answers to requests sent too fast."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.github.client import GitHub
from adapters.github.sending import limited_for_s, low_mark
from adapters.web.spacing import RateLimitStatus
from common.clock import FakeClock
from tests.adapters.github.github_town import REPO, GitHubTown, open_github_town
from tests.adapters.results import err, ok
from tests.adapters.shared_server import SharedServer
from tests.patience import while_time_passes
from town.github.values import Fault

on_one_loop = pytest.mark.asyncio(loop_scope="session")
ISSUES = "/repos/ada/garden/issues"


def gaps(town: GitHubTown) -> list[float]:
    return [later.at - earlier.at for earlier, later in pairwise(town.seen)]


@on_one_loop
async def test_parallel_calls_leave_one_by_one_with_the_spacing_between_them(town: GitHubTown) -> None:
    ada = town.client(spacing_s=5)
    await while_time_passes(town.clock, asyncio.gather(*(ada.get_repository(REPO) for _ in range(4))))
    assert gaps(town) == [5, 5, 5]


@on_one_loop
async def test_a_burst_is_not_spaced_inside_and_nothing_comes_between(town: GitHubTown) -> None:
    ada = town.client(spacing_s=5)
    ok(await while_time_passes(town.clock, ada.create_issue(REPO, "Plan", "a")))

    async def read_and_write() -> None:
        async with ada.burst():
            body = ok(await ada.get_issue(REPO, 1)).body
            await asyncio.sleep(0)
            ok(await ada.update_issue(REPO, 1, body=f"{body}b"))

    calls = asyncio.gather(read_and_write(), ada.get_repository(REPO), read_and_write())
    await while_time_passes(town.clock, calls)
    assert [request.split("/")[0] for request in town.requests] == ["POST ", "GET ", "PATCH ", "GET ", "GET ", "PATCH "]
    assert gaps(town) == [5, 0, 5, 5, 0]
    assert ok(await while_time_passes(town.clock, ada.get_issue(REPO, 1))).body == "abb"


@on_one_loop
async def test_while_a_burst_pauses_others_requests_leave_and_it_goes_on_after_them(town: GitHubTown) -> None:
    ada = town.client(spacing_s=5)

    async def read_wait_and_read(others: int) -> None:
        async with ada.burst():
            ok(await ada.get_user("ada"))
            await ada.pause(12)
            assert len(town.seen) == 1 + others
            ok(await ada.get_user("ada"))
            ok(await ada.get_user("ada"))

    calls = (read_wait_and_read(2), ada.get_repository(REPO), ada.get_repository(REPO))
    await while_time_passes(town.clock, asyncio.gather(*calls))
    *before, last = gaps(town)
    assert (min(before), last) == (5, 0)
    town.seen.clear()
    await town.clock.advance(5)
    await while_time_passes(town.clock, read_wait_and_read(0))
    assert gaps(town) == [12, 0]


@on_one_loop
async def test_a_burst_that_is_ended_while_it_pauses_takes_nothing_from_who_came_between(town: GitHubTown) -> None:
    ada, begun, go_on = town.client(spacing_s=5), asyncio.Event(), asyncio.Event()

    async def pausing() -> None:
        async with ada.burst():
            await ada.pause(60)

    async def between() -> None:
        async with ada.burst():
            begun.set()
            await go_on.wait()
            ok(await ada.get_repository(REPO))

    first, second = asyncio.create_task(pausing()), asyncio.create_task(between())
    await begun.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    last = asyncio.create_task(ada.get_user("ada"))
    await asyncio.sleep(0)
    go_on.set()
    await while_time_passes(town.clock, asyncio.gather(second, last))
    assert [request.split("?")[0].split("/")[1] for request in town.requests] == ["repos", "users"]


@on_one_loop
async def test_what_a_burst_started_is_spaced_again_once_the_burst_is_over(town: GitHubTown) -> None:
    ada = town.client(spacing_s=5)
    over = asyncio.Event()

    async def later() -> None:
        await over.wait()
        for _ in range(2):
            ok(await ada.get_repository(REPO))

    async with ada.burst():
        straggler = asyncio.create_task(later())
        ok(await while_time_passes(town.clock, ada.get_repository(REPO)))
    over.set()
    await while_time_passes(town.clock, straggler)
    assert gaps(town) == [5, 5]


@on_one_loop
async def test_a_low_budget_keeps_requests_here_until_the_hour_is_over(shared_server: SharedServer) -> None:
    async with open_github_town(shared_server, limit=20) as town:
        ada = town.client()
        for limit in range(1, 20):
            ok(await ada.list_issues(REPO, limit=limit))
        assert ada.rate.remaining == 1
        held = err(await ada.rights())
        assert (held.kind, held.status, len(town.seen)) == ("transient", 503, 19)
        assert held.retry_after == pytest.approx(3600, abs=1)
        assert "low" in held.error
        await town.clock.advance(3601)
        assert ada.rate.remaining == 20
        ok(await ada.rights())


@pytest.mark.parametrize(("limit", "mark"), [(15_000, 100), (60, 6), (0, 0)])
def test_the_reserve_is_a_hundred_requests_or_a_tenth_of_fewer(limit: int, mark: int) -> None:
    assert low_mark(limit) == mark


@on_one_loop
async def test_the_budget_is_read_from_every_answer_good_or_bad(town: GitHubTown, ada: GitHub) -> None:
    assert ada.rate == RateLimitStatus(5000, 5000, 0)
    ok(await ada.rights())
    assert (ada.rate.remaining, ada.rate.limit) == (4999, 5000)
    assert ada.rate.reset_at == town.clock.now().timestamp() + 3600
    assert err(await ada.get_issue(REPO, 99)).kind == "not_found"
    assert ada.rate.remaining == 4998


@on_one_loop
async def test_a_read_that_came_too_fast_waits_as_told_and_is_sent_once_more(town: GitHubTown, ada: GitHub) -> None:
    town.faults.arm(Fault("rate_limited", seconds=40))
    ok(await while_time_passes(town.clock, ada.get_repository(REPO)))
    assert gaps(town) == [40]


@on_one_loop
async def test_a_second_refusal_is_returned_and_respected(town: GitHubTown, ada: GitHub) -> None:
    town.faults.arm(Fault("secondary_limit", seconds=40, times=2))
    failed = err(await while_time_passes(town.clock, ada.get_repository(REPO)))
    assert (failed.kind, failed.status, failed.retry_after, len(town.seen)) == ("transient", 403, 40, 2)
    assert "secondary rate limit" in failed.error
    held = err(await ada.get_repository(REPO))
    assert (held.status, held.retry_after, len(town.seen)) == (503, 40, 2)
    await town.clock.advance(40)
    ok(await ada.get_repository(REPO))


@on_one_loop
async def test_a_wait_of_more_than_five_minutes_is_not_waited_but_respected(town: GitHubTown, ada: GitHub) -> None:
    town.faults.arm(Fault("rate_limited", seconds=301))
    failed = err(await ada.get_repository(REPO))
    assert (failed.kind, failed.status, len(town.seen)) == ("transient", 403, 1)
    assert failed.retry_after == 301
    assert err(await ada.get_repository(REPO)).status == 503
    assert len(town.seen) == 1


@on_one_loop
async def test_a_write_that_came_too_fast_is_handed_back_with_the_time_to_come_again(
    town: GitHubTown, ada: GitHub
) -> None:
    town.faults.arm(Fault("secondary_limit", f"POST {ISSUES}", seconds=40))
    failed = err(await ada.create_issue(REPO, "Beans", "…"))
    assert (failed.kind, failed.retry_after, len(town.seen), town.issues()) == ("transient", 40, 1, 0)
    assert err(await ada.create_issue(REPO, "Beans", "…")).status == 503
    await town.clock.advance(40)
    ok(await ada.create_issue(REPO, "Beans", "…"))
    assert town.issues() == 1


LIMITED = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1767614430"}


@pytest.mark.parametrize(
    ("status", "headers", "message", "wait"),
    [
        (429, {"retry-after": "17"}, "", 17),
        (429, {}, "", 60),
        (403, {"retry-after": "5", "x-ratelimit-remaining": "4000"}, "", 5),
        (403, LIMITED, "API rate limit exceeded", 30),
        (403, {"x-ratelimit-remaining": "0"}, "", 60),
        (403, {"x-ratelimit-remaining": "4000"}, "You have exceeded a secondary rate limit.", 60),
        (403, {"x-ratelimit-remaining": "4000"}, "Resource not accessible by personal access token", None),
        (403, {}, "Must have admin rights to Repository.", None),
        (404, {"retry-after": "5"}, "", None),
        (500, LIMITED, "rate limit", None),
        (200, LIMITED, "", None),
    ],
)
def test_haste_is_told_from_other_refusals(
    status: int, headers: dict[str, str], message: str, wait: float | None
) -> None:
    now = FakeClock().now()
    assert limited_for_s(status, headers, message, now) == wait


@given(status=st.sampled_from([403, 429]), value=st.text(max_size=12), reset=st.text(max_size=12))
def test_no_header_makes_the_wait_negative_or_an_error(status: int, value: str, reset: str) -> None:
    headers = {"retry-after": value, "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
    wait = limited_for_s(status, headers, "", FakeClock().now())
    assert wait is not None
    assert wait >= 0


@on_one_loop
async def test_a_write_is_held_back_at_the_last_moment_and_a_read_is_not(town: GitHubTown) -> None:
    why = "paused by the owner"
    ada = town.client(write_block_reason=lambda: why)
    assert err(await ada.create_issue(REPO, "Beans", "…")).error == "paused by the owner"
    ok(await ada.get_repository(REPO))
    assert town.requests == ["GET /repos/ada/garden"]
    why = ""
    ok(await ada.create_issue(REPO, "Beans", "…"))


@on_one_loop
async def test_health_hears_of_every_request_how_the_service_was(town: GitHubTown) -> None:
    told: list[tuple[bool, str]] = []
    ada = town.client(on_response=lambda well, how: told.append((well, how)))
    ok(await ada.rights())
    err(await ada.get_issue(REPO, 9))
    town.faults.arm(Fault("server_error"))
    err(await ada.create_issue(REPO, "Beans", "…"))
    town.faults.arm(Fault("lost_request"))
    err(await ada.create_issue(REPO, "Beans", "…"))
    assert told == [(True, ""), (True, ""), (False, "HTTP 500"), (False, "no answer")]

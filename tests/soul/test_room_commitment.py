"""A host has what was asked for without waiting for a timer, and a SOUL killed over a commitment keeps it once."""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
from contextlib import AsyncExitStack
from functools import partial

import pytest

from common.clock import SystemClock
from modules.services.commitments.policy import COMMITMENT_CHECK_INTERVAL_MS, HOST_NAMED
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.types import CommitmentRequest
from tests.program import started
from tests.running_town import RunningTown
from tests.scenarios.room_society import BODY, REPO, REQUEST, diligent, open_society
from town.github.faults import Fault, FaultKind

FOUR = ("marvin", "rebecca", "peterben", "odile")
COMMITMENTS = 18
CHECK_S = COMMITMENT_CHECK_INTERVAL_MS / 1000
_PERCENT_95 = 18


@pytest.mark.perf
@pytest.mark.timeout(900)
async def test_a_request_becomes_an_issue_and_a_commitment_is_taken_up_without_waiting_for_a_timer(
    running_town: RunningTown, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_society(running_town, SystemClock()) as society, AsyncExitStack() as stack:
        souls = [await stack.enter_async_context(society.soul(name, diligent, wait=False)) for name in FOUR]
        for soul in souls:
            await soul.awake.wait()
        await society.until(lambda: all(soul.is_in for soul in souls), "all join")
        society.says(REQUEST)
        done_s = await society.until(lambda: bool(society.done()), "the issue")
        (issue,) = society.issues()
        assert BODY in (issue.body or "")
        queue, waits = souls[0].app.lives.queue, []
        for number in range(COMMITMENTS):
            await asyncio.sleep(random.Random(number).uniform(0.1, 1.2))
            made_at = society.clock.monotonic()
            made = queue.enqueue_commitment(_work(number)).commitment
            assert made is not None
            await society.until(partial(_taken_up, queue, made.id), "it is taken up")
            waits.append(society.clock.monotonic() - made_at)
        await society.until(lambda: len(society.issues()) == 1 + COMMITMENTS, "all issues", within_s=600)
        p95 = statistics.quantiles(waits, n=20)[_PERCENT_95]
        assert p95 < CHECK_S / 2
        assert len(society.issues()) == 1 + COMMITMENTS
    with capfd.disabled():
        sys.stdout.write(
            f"\nthe request was an issue, and told, after {done_s:.1f} s; {COMMITMENTS} commitments were taken up "
            f"after {statistics.median(waits):.2f} s (median), {p95:.2f} s (p95), {max(waits):.2f} s (longest)\n"
        )


def _work(number: int) -> CommitmentRequest:
    target = f"{REPO}#Work {number}"
    params = {
        "owner": "acme",
        "repoName": "site",
        "title": f"Work {number}",
        "body": BODY,
        "target": target,
        HOST_NAMED: True,
    }
    thread = f"space://conversation/{number}"
    return CommitmentRequest("create_issue", f"Work {number}", thread, "I'll do it.", params, "space")


def _taken_up(queue: CommitmentQueue, one_commitment: str) -> bool:
    return any(one.id == one_commitment and one.status != "pending" for one in queue.all())


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("fault", "request_to"),
    [("lost_request", "GET *issues*"), ("hang", "POST *issues")],
    ids=["before-anything-was-sent", "after-the-issue-was-made"],
)
async def test_a_soul_killed_between_its_commitment_and_its_word_opens_one_issue_and_tells_it_once(
    running_town: RunningTown, fault: FaultKind, request_to: str
) -> None:
    async with open_society(running_town, SystemClock()) as society:
        society.default = diligent
        society.github_faults.arm(Fault(fault, request_to, times=10_000, seconds=60))
        home = society.make_home("marvin")
        async with started("run", "--home", str(home.root)) as first:
            await society.until(lambda: bool(society.host.seen), "it comes in")
            society.says(REQUEST)
            await society.until(lambda: bool(society.said()), "the promise")
            if fault == "hang":
                await society.until(lambda: bool(society.issues()), "the issue")
            else:
                await asyncio.sleep(2)
            first.kill()
            await first.wait()
        assert society.done() == []
        society.github_faults.clear()
        async with started("run", "--home", str(home.root)):
            await society.until(lambda: bool(society.done()), "the issue, told")
            await asyncio.sleep(10)
        (issue,) = society.issues()
        assert BODY in (issue.body or "")
        url = f"{society.github_url}/{REPO}/issues/{issue.number}"
        assert society.done() == [f"Done — issue opened: {issue.title}: {url}"]
        assert len(society.said()) == len({*society.said()})

"""A SOUL killed over a commitment keeps it once."""

from __future__ import annotations

import asyncio

import pytest

from common.clock import SystemClock
from tests.program import started
from tests.running_town import RunningTown
from tests.scenarios.room_society import BODY, REPO, REQUEST, diligent, open_society
from town.github.faults import Fault, FaultKind

MANY = 10_000


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
        society.github_faults.arm(Fault(fault, request_to, times=MANY, seconds=60))
        home = society.make_home("marvin")
        async with started("run", "--home", str(home.root)) as first:
            await society.until(lambda: bool(society.host.seen), "it comes in")
            society.says(REQUEST)
            await society.until(lambda: bool(society.said()), "the promise")
            if fault == "hang":
                await society.until(lambda: bool(society.issues()), "the issue")
            else:
                await society.until(lambda: society.github_faults.armed[0].times < MANY, "its first try")
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

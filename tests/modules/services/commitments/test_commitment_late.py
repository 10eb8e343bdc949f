"""Proves that a request to GitHub which arrives late, after its connection was lost, is never left standing twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.late_proxy import LateProxy, late_proxy
from tests.modules.services.commitments.commitment_values import wanted
from tests.modules.services.commitments.soul_in_town import SoulInTown, Town
from town.github.values import StoredIssue


@pytest.fixture
async def proxy(town: Town) -> AsyncIterator[LateProxy]:
    async with late_proxy(town.url) as proxy:
        town.url = proxy.url
        yield proxy


@pytest.fixture
async def soul_in_town(tmp_path: Path, town: Town, proxy: LateProxy) -> AsyncIterator[SoulInTown]:
    assert town.url == proxy.url
    soul_in_town = SoulInTown(tmp_path, town, with_room=False)
    await soul_in_town.wake()
    yield soul_in_town
    await soul_in_town.sleep()


def _open(soul_in_town: SoulInTown) -> list[StoredIssue]:
    return [issue for issue in soul_in_town.town.issues() if issue.state == "open"]


@pytest.mark.parametrize("seconds", [3, 55])
async def test_a_post_that_lands_within_a_minute_is_found_and_not_repeated(
    soul_in_town: SoulInTown, proxy: LateProxy, seconds: int
) -> None:
    proxy.hold = 1
    one = await soul_in_town.enqueue(wanted(title="Release checklist"))
    await soul_in_town.live(seconds)
    await proxy.deliver()
    await soul_in_town.live(180, step_s=5)
    assert [issue.title for issue in soul_in_town.town.issues()] == ["Release checklist"]
    assert proxy.posts == 1
    assert soul_in_town.status(one).status == "completed"


async def test_a_post_that_never_lands_is_repeated_after_a_minute_and_two_looks(
    soul_in_town: SoulInTown, proxy: LateProxy
) -> None:
    proxy.hold = 1
    one = await soul_in_town.enqueue(wanted(title="Release checklist"))
    await soul_in_town.live(59)
    assert (proxy.posts, soul_in_town.town.issues()) == (1, [])
    await soul_in_town.live(60)
    assert (proxy.posts, len(soul_in_town.town.issues())) == (2, 1)
    assert soul_in_town.status(one).status == "completed"


async def test_a_kill_in_the_middle_of_a_post_is_waited_out_like_a_lost_connection(
    soul_in_town: SoulInTown, proxy: LateProxy
) -> None:
    proxy.hold = 1
    one = await soul_in_town.enqueue(wanted(title="Release checklist"))
    await soul_in_town.live(2)
    await soul_in_town.restart()
    await soul_in_town.live(40)
    assert (proxy.posts, soul_in_town.town.issues()) == (1, [])
    await proxy.deliver()
    await soul_in_town.live(120, step_s=5)
    assert (proxy.posts, len(soul_in_town.town.issues())) == (1, 1)
    assert soul_in_town.status(one).status == "completed"


@pytest.mark.parametrize("asleep", [False, True])
@pytest.mark.slow
async def test_an_issue_that_lands_after_the_repeat_is_closed_with_a_reference(
    soul_in_town: SoulInTown, proxy: LateProxy, *, asleep: bool
) -> None:
    proxy.hold = 1
    one = await soul_in_town.enqueue(wanted(title="Release checklist"))
    await soul_in_town.live(120, step_s=5)
    (kept,) = _open(soul_in_town)
    await proxy.deliver()
    assert len(_open(soul_in_town)) == 2
    if asleep:
        await soul_in_town.restart()
    await soul_in_town.live(15 * 60, step_s=15)
    assert _open(soul_in_town) == [kept]
    (late,) = [issue for issue in soul_in_town.town.issues() if issue.state == "closed"]
    assert (late.body or "").startswith(f"Duplicate of #{kept.number}\n")
    result = soul_in_town.status(one).result
    assert result is not None
    assert [issue["number"] for issue in result["issues"]] == [kept.number]
    assert any("Closed 1 duplicate of issue" in line for line in soul_in_town.told())
    bodies = [issue.body for issue in soul_in_town.town.issues()]
    await soul_in_town.live(2 * 3600, step_s=60)
    assert [issue.body for issue in soul_in_town.town.issues()] == bodies


async def test_a_comment_that_lands_after_the_repeat_is_deleted(soul_in_town: SoulInTown, proxy: LateProxy) -> None:
    account = soul_in_town.town.network.create_account("ada")
    issue = soul_in_town.town.network.open_issue(soul_in_town.town.repo, account, title="The weir", body="")
    proxy.hold = 1
    await soul_in_town.enqueue(
        wanted("Say it", kind="comment_issue", repo="acme/site", issueNumber=issue.number, body="It holds.")
    )
    await soul_in_town.live(120, step_s=5)
    await proxy.deliver()
    assert len(issue.comments) == 2
    await soul_in_town.live(15 * 60, step_s=60)
    (comment,) = issue.comments
    assert comment.body.startswith("It holds.")

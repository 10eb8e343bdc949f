"""Proves that a request to GitHub which arrives late, after its connection was lost, is never left standing twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.late_proxy import LateProxy, late_proxy
from tests.modules.services.commitments.commitment_house import House, Place
from tests.modules.services.commitments.commitment_values import wanted
from town.github.values import StoredIssue


@pytest.fixture
async def proxy(place: Place) -> AsyncIterator[LateProxy]:
    async with late_proxy(place.url) as proxy:
        place.url = proxy.url
        yield proxy


@pytest.fixture
async def house(tmp_path: Path, place: Place, proxy: LateProxy) -> AsyncIterator[House]:
    assert place.url == proxy.url
    house = House(tmp_path, place, with_room=False)
    await house.wake()
    yield house
    await house.sleep()


def _open(house: House) -> list[StoredIssue]:
    return [issue for issue in house.place.issues() if issue.state == "open"]


@pytest.mark.parametrize("seconds", [3, 8, 30, 55])
async def test_a_post_that_lands_within_a_minute_is_found_and_not_repeated(
    house: House, proxy: LateProxy, seconds: int
) -> None:
    proxy.hold = 1
    one = await house.promise(wanted(title="Release checklist"))
    await house.live(seconds)
    await proxy.deliver()
    await house.live(180, step_s=5)
    assert [issue.title for issue in house.place.issues()] == ["Release checklist"]
    assert proxy.posts == 1
    assert house.status(one).status == "completed"


async def test_a_post_that_never_lands_is_repeated_after_a_minute_and_two_looks(house: House, proxy: LateProxy) -> None:
    proxy.hold = 1
    one = await house.promise(wanted(title="Release checklist"))
    await house.live(59)
    assert (proxy.posts, house.place.issues()) == (1, [])
    await house.live(60)
    assert (proxy.posts, len(house.place.issues())) == (2, 1)
    assert house.status(one).status == "completed"


async def test_a_kill_in_the_middle_of_a_post_is_waited_out_like_a_lost_connection(
    house: House, proxy: LateProxy
) -> None:
    proxy.hold = 1
    one = await house.promise(wanted(title="Release checklist"))
    await house.live(2)
    await house.restart()
    await house.live(40)
    assert (proxy.posts, house.place.issues()) == (1, [])
    await proxy.deliver()
    await house.live(120, step_s=5)
    assert (proxy.posts, len(house.place.issues())) == (1, 1)
    assert house.status(one).status == "completed"


@pytest.mark.parametrize("asleep", [False, True])
async def test_an_issue_that_lands_after_the_repeat_is_closed_with_a_reference(
    house: House, proxy: LateProxy, *, asleep: bool
) -> None:
    proxy.hold = 1
    one = await house.promise(wanted(title="Release checklist"))
    await house.live(120, step_s=5)
    (kept,) = _open(house)
    await proxy.deliver()
    assert len(_open(house)) == 2
    if asleep:
        await house.restart()
    await house.live(15 * 60, step_s=15)
    assert _open(house) == [kept]
    (late,) = [issue for issue in house.place.issues() if issue.state == "closed"]
    assert (late.body or "").startswith(f"*Duplicate of #{kept.number}: the request for it arrived twice.*")
    result = house.status(one).result
    assert result is not None
    assert [issue["number"] for issue in result["issues"]] == [kept.number]
    assert any("Closed 1 duplicate of issue" in line for line in house.told())
    bodies = [issue.body for issue in house.place.issues()]
    await house.live(2 * 3600, step_s=60)
    assert [issue.body for issue in house.place.issues()] == bodies


async def test_a_comment_that_lands_after_the_repeat_is_deleted(house: House, proxy: LateProxy) -> None:
    account = house.place.network.create_account("ada")
    issue = house.place.network.open_issue(house.place.repo, account, title="The weir", body="")
    proxy.hold = 1
    await house.promise(
        wanted("Say it", kind="comment_issue", repo="acme/site", issueNumber=issue.number, body="It holds.")
    )
    await house.live(120, step_s=5)
    await proxy.deliver()
    assert len(issue.comments) == 2
    await house.live(15 * 60, step_s=15)
    (comment,) = issue.comments
    assert comment.body.startswith("It holds.")


async def test_what_was_sent_once_is_looked_at_no_more(house: House, proxy: LateProxy) -> None:
    assert proxy.hold == 0
    await house.promise(wanted(title="Release checklist"))
    await house.live(20)
    (row,) = [row for row in await house.outbox.recent(10) if row.kind == "issue"]
    assert (row.state, row.not_before, row.was_repeated) == ("done", None, False)


@pytest.mark.parametrize("lands", [True, False])
async def test_what_was_held_after_a_lost_answer_is_looked_for_again_when_the_owner_says_yes(
    house: House, proxy: LateProxy, *, lands: bool
) -> None:
    proxy.hold = 1
    one = await house.promise(wanted(title="Release checklist"))
    await house.live(2)
    house.approval = "drafts"
    await house.restart()
    await house.live(120, step_s=5)
    (held,) = await house.outbox.held()
    assert (proxy.posts, house.place.issues()) == (1, [])
    if lands:
        await proxy.deliver()
    await house.outbox.approve(held.id)
    await house.live(30)
    assert (proxy.posts, len(house.place.issues())) == (1 if lands else 2, 1)
    assert house.status(one).status == "completed"

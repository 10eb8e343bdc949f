"""Two SOULs claim one task in the town, over HTTP and with real branches: one gets it and keeps it until it is done."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.github.checks import BODY_LIMIT_CHARS
from common.constants import GITHUB_BODY_MAX_CHARS
from common.result import Err
from modules.services.claims.claim_requests import (
    ClaimRequests,
    PlanReading,
    delete_dead_locks,
    find_dead_claims,
    find_orphaned_tasks,
    may_hold_dead_claims,
    settle_dead_claim,
)
from modules.services.claims.claiming import advance_claim, begin_claim
from modules.services.claims.policy import (
    LEASE,
    RENEWED_AFTER,
    Action,
    ClaimEvent,
    CreateLock,
    Lease,
    WriteLine,
    lease_of,
)
from modules.services.plans.plan_text import generate_plan_markdown
from modules.services.plans.types import Task, TaskChange
from modules.services.plans.update import update_task_in_plan_body
from modules.services.workspaces.trust import READ_AGAIN_S
from tests.adapters.results import ok
from tests.github_moves import delete_repo
from tests.modules.services.claims.claim_garden import PLAN, REPO, Garden, Rival, open_garden
from tests.town.github_place import needs_git
from town.github.values import Fault

MOST_REQUESTS = 17
"""4 to read the plan, 5 for the lock, 1 to assign, 3 for each of two changes of the line, and 1 to comment."""

pytestmark = needs_git


@pytest.fixture
async def garden(tmp_path: Path) -> AsyncIterator[Garden]:
    async with open_garden(tmp_path) as garden:
        yield garden


async def won(rival: Rival, number: int = 1) -> Lease:
    outcome = await rival.claim(number)
    assert outcome.lease is not None, outcome
    return outcome.lease


async def sweep(rival: Rival, reading: PlanReading) -> list[tuple[int, str, str]]:
    """Sweep the plan; return the number, code and former holder of each task that changed."""
    requests = rival.claimer.requests
    await delete_dead_locks(requests, reading, REPO)
    dead = [*find_dead_claims(reading), *await find_orphaned_tasks(requests, reading, REPO)]
    assert all([await settle_dead_claim(requests, reading, REPO, one) for one in dead])
    return [(one.task.number, one.code, one.holder) for one in dead]


async def test_of_two_one_wins_and_nothing_is_left_of_the_other(garden: Garden) -> None:
    outcomes = await asyncio.gather(*(one.claim() for one in (garden.kit, garden.wren)))
    winners = [one.lease for one in outcomes if one.lease]
    assert len(winners) == 1
    task = await garden.task()
    assert (task.status, task.assignee) == ("claimed", winners[0].soul)
    locks, comments, assignees = await garden.left()
    assert (locks, comments) == ([f"soul/1-task-1-{winners[0].epoch}"], 1)
    assert set(assignees) == {"ada", winners[0].soul}
    loser = garden.wren if winners[0].soul == "kit" else garden.kit
    assert await loser.leases.all() == []
    again = await loser.claim()
    assert (again.lease, again.code, again.holder) == (None, "taken", winners[0].soul)


async def test_from_the_first_look_to_the_work_a_claim_takes_few_requests_and_reads_the_plan_once(
    garden: Garden,
) -> None:
    await garden.kit.claim(2)  # fills the caches, also of who counts there
    garden.asked.clear()
    assert (await garden.kit.claimer.start_work(await won(garden.kit))).code == "written"
    assert len(garden.asked) <= MOST_REQUESTS, garden.asked
    assert [one for one in garden.asked if one.endswith("/issues/1/comments")] == [
        "GET /repos/ada/garden/issues/1/comments",
        "POST /repos/ada/garden/issues/1/comments",
    ]


async def test_what_a_person_writes_into_the_plan_while_its_task_is_claimed_stays(garden: Garden) -> None:
    garden.before_write.append(lambda: garden.edit("ada", lambda body: f"{body}\nSow them by **Friday**."))
    assert (await won(garden.kit)).soul == "kit"
    body = ok(await garden.ada.get_issue(REPO, 1)).body
    assert body.endswith("Sow them by **Friday**.")
    assert (await garden.task()).assignee == "kit"


async def test_a_task_that_a_person_gives_to_somebody_at_the_same_moment_is_theirs(garden: Garden) -> None:
    to_wren = TaskChange("claimed", "wren")
    garden.before_write.append(lambda: garden.edit("ada", lambda body: update_task_in_plan_body(body, 1, to_wren).body))
    outcome = await garden.kit.claim()
    assert (outcome.lease, outcome.code) == (None, "taken")
    assert (await garden.task()).assignee == "wren"
    assert await garden.kit.leases.all() == []


async def test_a_claim_that_is_being_made_is_not_undone_as_one_that_was_left(garden: Garden) -> None:
    claiming = asyncio.create_task(garden.kit.claim())
    while not claiming.done():
        assert await garden.kit.claimer.settle() == []
    assert (await claiming).lease is not None
    assert [one.epoch for one in await garden.kit.claimer.held()] == [1]
    assert (await garden.task()).assignee == "kit"
    assert (await garden.left())[0] == ["soul/1-task-1-1"]


async def test_a_task_that_is_given_back_can_be_claimed_by_anybody(garden: Garden) -> None:
    lease = await won(garden.kit)
    assert (await garden.kit.claimer.start_work(lease)).code == "written"
    assert (await garden.task()).status == "in_progress"
    await garden.kit.claimer.release(lease, "blocked")
    task = await garden.task()
    assert (task.status, task.assignee) == ("blocked", None)
    assert (await garden.left())[0] == []
    assert (await garden.left())[2] == ("ada",)
    assert await garden.kit.leases.all() == []
    garden.clock.ahead += 180
    assert (await won(garden.wren)).epoch == 2


async def test_a_claim_is_renewed_in_its_comment_and_holds(garden: Garden) -> None:
    lease = await won(garden.kit)
    assert await garden.kit.claimer.check(lease) == lease
    for _ in range(7):
        garden.clock.ahead += RENEWED_AFTER.total_seconds()
        renewed = await garden.kit.claimer.check(lease)
        assert renewed is not None
        assert renewed.until > lease.until
        lease = renewed
    assert (await garden.left())[1] == 1
    assert (await garden.wren.claim()).code == "taken"
    assert [one.comment_id for one in await garden.kit.claimer.held()] == [lease.comment_id]


async def test_of_a_claim_nothing_is_written_into_another_repository_of_the_same_name(garden: Garden) -> None:
    lease = await won(garden.kit)
    assert (await garden.kit.claimer.start_work(lease)).code == "written"
    before = garden.network.repo("ada", REPO.name, None)
    plan = before.issues[1]
    assert plan
    delete_repo(garden.network, before)
    anew = garden.network.create_repo(before.owner, REPO.name, collaborators=["kit"])
    garden.network.open_issue(anew, before.owner, title=plan.title, body=plan.body or "")
    garden.clock.ahead += READ_AGAIN_S
    await garden.kit.claimer.check(lease)
    await garden.kit.claimer.release(lease, "blocked")
    assert (await garden.task()).status == "in_progress"
    assert [one.stage for one in await garden.kit.claimer.settle()] == ["ending"]


async def test_the_claim_of_a_soul_that_is_gone_is_swept_by_another(garden: Garden) -> None:
    await won(garden.kit)
    reading = ok(await garden.wren.reader.read(REPO, 1))
    assert await sweep(garden.wren, reading) == []
    garden.clock.ahead += (LEASE + timedelta(minutes=3)).total_seconds()
    for expected in ([(1, "freed", "kit")], []):
        reading = ok(await garden.wren.reader.read(REPO, 1))
        assert await sweep(garden.wren, reading) == expected
    assert (await garden.task()).assignee is None
    assert (await garden.left())[0] == []
    assert (await won(garden.wren)).epoch == 2


@pytest.mark.parametrize("request_", ["GET /repos/ada/garden", "GET /repos/ada/garden/collaborators"])
async def test_a_claim_that_holds_is_not_swept_where_it_cannot_be_read_whose_words_count(
    garden: Garden, request_: str
) -> None:
    lease = await won(garden.kit)
    ok(await garden.wren.reader.read(REPO, 1))
    while garden.clock.now() < lease.since + 2 * LEASE:
        garden.clock.ahead += RENEWED_AFTER.total_seconds()
        renewed = await garden.kit.claimer.check(lease)
        assert renewed
        lease = renewed
    garden.faults.arm(Fault("bad_gateway", request_, 2))
    unread = await garden.wren.reader.read(REPO, 1)
    assert isinstance(unread, Err)
    assert unread.kind == "transient"
    assert await sweep(garden.wren, ok(await garden.wren.reader.read(REPO, 1))) == []
    assert await garden.kit.claimer.check(lease)


async def vanish_after(rival: Rival, request: type[Action]) -> None:
    """Claim the first task, and stop for good once a `request` was answered."""
    requests, seen = rival.claimer.requests, ok(await rival.reader.read(REPO, 1))
    state, actions = begin_claim("kit", 1, 1, seen.snapshot(1))
    lease = lease_of(state, REPO.owner, REPO.name, rival.clock.now())
    while True:
        event: ClaimEvent | None = None
        for action in actions:
            event = await requests.act(lease, action, PLAN.tasks[0]) or event
            if isinstance(action, request):
                return
        assert event
        state, actions = advance_claim(state, event)


@pytest.mark.parametrize(
    ("request_", "line", "swept"),
    [(WriteLine, "kit", [(1, "freed", "kit")]), (CreateLock, "ada", [])],
    ids=["before the comment", "and a person took the task by hand"],
)
async def test_a_lock_whose_maker_vanished_before_the_comment_is_swept_after_a_lease(
    garden: Garden, request_: type[Action], line: str | None, swept: list[tuple[int, str, str]]
) -> None:
    await vanish_after(garden.kit, request_)
    if line == "ada":
        issue = ok(await garden.ada.get_issue(REPO, 1))
        taken = update_task_in_plan_body(issue.body, 1, TaskChange("claimed", "ada")).body
        ok(await garden.ada.update_issue(REPO, 1, body=taken))
    assert await sweep(garden.wren, ok(await garden.wren.reader.read(REPO, 1))) == []
    assert ((await garden.task()).assignee, (await garden.left())[0]) == (line, ["soul/1-task-1-1"])
    garden.clock.ahead += (LEASE + timedelta(minutes=3)).total_seconds()
    for expected in (swept, []):
        reading = ok(await garden.wren.reader.read(REPO, 1))
        assert may_hold_dead_claims(reading.plan or PLAN, ())
        assert await sweep(garden.wren, reading) == expected
    if line == "ada":
        assert (await garden.task()).assignee == "ada"
    else:
        assert (await garden.left())[0] == []
        assert (await won(garden.wren)).soul == "wren"


async def test_an_opened_pull_request_keeps_the_task_until_it_is_merged(garden: Garden) -> None:
    lease = await won(garden.kit)
    assert (await garden.kit.claimer.start_work(lease)).code == "written"
    main = ok(await garden.ada.refs.get(REPO, "main")).sha
    ok(await garden.kit.github.refs.create(REPO, "task-1-sow", main))
    ok(await garden.kit.github.contents.write(REPO, "BEANS.md", "Sown", message="task(1): Sow", branch="task-1-sow"))
    pull = ok(
        await garden.kit.github.pulls.create(REPO, title="Sow", body="Part of #1", head="task-1-sow", base="main")
    )
    await garden.kit.claimer.release(lease, "opened")
    assert (await garden.left())[0] == []
    assert await garden.kit.leases.all() == []
    reading = ok(await garden.wren.reader.read(REPO, 1))
    assert await sweep(garden.wren, reading) == []
    assert (await garden.task()).assignee == "kit"
    ok(await garden.ada.pulls.merge(REPO, pull.number))
    reading = ok(await garden.wren.reader.read(REPO, 1))
    assert await sweep(garden.wren, reading) == [(1, "completed", "kit")]
    assert ((await garden.task()).status, (await garden.task()).assignee) == ("completed", None)


async def test_of_a_plan_that_fills_its_issue_nothing_is_cut(garden: Garden) -> None:
    plan = generate_plan_markdown(PLAN)
    notes = "\n\n## Notes of a person\n" + "x" * (BODY_LIMIT_CHARS - 200 - len(plan))
    ok(await garden.ada.update_issue(REPO, 1, body=plan + notes))
    await won(garden.kit)
    body = ok(await garden.ada.get_issue(REPO, 1)).body
    assert len(body) > GITHUB_BODY_MAX_CHARS
    assert body.endswith(notes)
    assert (await garden.task()).assignee == "kit"


async def test_a_task_of_a_plan_that_has_no_room_left_is_not_claimed_and_nothing_is_written(garden: Garden) -> None:
    plan = generate_plan_markdown(PLAN).replace("(empty if unclaimed)", "")
    ok(await garden.ada.update_issue(REPO, 1, body=plan + "\n\n## Notes\n" + "x" * (BODY_LIMIT_CHARS - 12 - len(plan))))
    garden.faults.arm(Fault("server_error", "P* /repos/ada/garden/*", times=1))
    outcome = await garden.kit.claim()
    assert (outcome.lease, outcome.code) == (None, "no_room")
    assert len(garden.faults.armed) == 1
    assert await garden.kit.claimer.settle() == []


@pytest.mark.parametrize(
    ("lost", "unread"),
    [
        ("POST /repos/ada/garden/git/refs", "GET /repos/ada/garden/git/ref/heads/soul/*"),
        ("POST /repos/ada/garden/issues/1/comments", "GET /repos/ada/garden/issues/1/comments"),
    ],
    ids=["the lock", "the comment"],
)
async def test_what_a_failed_claim_left_unseen_keeps_nobody_from_the_next_try(
    garden: Garden, lost: str, unread: str
) -> None:
    kit, faults, requests = garden.kit, garden.faults, garden.kit.claimer.requests

    def breaks(_: Task) -> str:
        faults.arm(Fault("server_error", unread, times=1_000))
        return "It is taken."

    faults.arm(Fault("lost_answer", lost))
    if lost.endswith("refs"):
        faults.arm(Fault("server_error", unread, times=1_000))
    else:
        kit.claimer.requests = ClaimRequests(kit.github, kit.reader, breaks, kit.clock)
    assert (await kit.claim()).code == "failed"
    faults.clear()
    kit.claimer.requests = requests
    await kit.claimer.settle()
    assert await garden.left() == ([], 0, ("ada",))
    assert (await garden.task()).assignee is None
    assert (await won(kit)).number == 1

"""A lease is renewed while its task is ours, ends when it is not, and is swept after its holder died.

Claims survive a kill of the program, and peers' tools find them in the file. An act for a task leaves only under the
claim under which it was proposed. A comment about a task counts as said while it is there or on its way, and not after
it was given up.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from adapters.github.types import Repo
from common.clock import FakeClock
from common.files import VERSION_KEY
from common.redact import Redactor
from modules.lives.tasks.types import TaskProblem
from modules.runtime.database.database import Database
from modules.services.claims.claimer import TaskComments
from modules.services.claims.lease_store import FILE, TaskLeases, lease_gate
from modules.services.claims.policy import (
    GRACE,
    LEASE,
    Claim,
    DeleteLock,
    EndClaim,
    Lease,
    ResetLine,
    Snapshot,
    UnassignSelf,
    after_start,
    dead_holder,
    dead_locks,
    judge_lease,
    orphan_of_task_in_work,
    release_actions,
    renewed,
)
from modules.services.outbox import store
from modules.services.outbox.github_bodies import PushBody, ReviewRequestBody
from modules.services.outbox.rules.rules import GITHUB_CREATIONS_OF_OTHERS
from modules.services.outbox.types import ProposedAction, Wait
from modules.services.plans.events import TaskEvent
from modules.services.plans.types import Plan, Task, TaskStatus
from modules.services.voice_phrases import FORMS
from tests.fresh_database import lay_database, open_database
from tests.modules.services.outbox.body_values import body_of
from tests.modules.services.outbox.rules.etiquette_outbox import WORKSPACE, open_etiquette_outbox

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=6)
OWN = Claim(9, "sh-marvin", 3, 2, NOW + LEASE)
HELD = Lease(
    "acme",
    "shop",
    12,
    3,
    "sh-marvin",
    "held",
    2,
    has_lock=True,
    since=NOW,
    renewed_at=NOW,
    until=NOW + LEASE,
    comment_id=9,
)


def _snapshot(
    assignee: str | None = "SH-Marvin",
    status: TaskStatus = "in_progress",
    *,
    locks: Mapping[int, datetime] | None = None,
    claims: Sequence[Claim] = (OWN,),
    epoch: int = 2,
    at: datetime = NOW,
) -> Snapshot:
    plan = Plan("x", tasks=(Task(3, "a", status, assignee),))
    return Snapshot(at, plan, (), {2: NOW} if locks is None else locks, tuple(claims), epoch)


@pytest.mark.parametrize(
    ("snapshot", "now", "code"),
    [
        (_snapshot(), NOW, "keep"),
        (_snapshot(), LATER, "renew"),
        (None, LATER, "keep"),
        (None, NOW + LEASE, "over"),
        (_snapshot(), NOW + LEASE, "over"),
        (_snapshot("sh-z"), NOW, "lost"),
        (_snapshot(status="pending"), NOW, "lost"),
        (_snapshot(locks={}), NOW, "lost"),
        (_snapshot(locks={2: NOW, 3: NOW}), NOW, "lost"),
        (_snapshot(None, "pending"), NOW, "restore"),
        (_snapshot(None, "pending"), LATER, "lost"),
        (_snapshot(None, "pending", claims=()), NOW, "lost"),
        (_snapshot(None, "pending", claims=[Claim(8, "sh-z", 3), OWN]), NOW, "lost"),
        (replace(_snapshot(), plan=None), NOW, "lost"),
        (replace(_snapshot(), locks=None), NOW, "keep"),
    ],
)
def test_what_becomes_of_a_lease(snapshot: Snapshot | None, now: datetime, code: str) -> None:
    assert judge_lease(HELD, snapshot, now) == code


def test_a_renewed_lease_lasts_half_an_hour_from_then_on() -> None:
    assert renewed(HELD, LATER).until == LATER + LEASE
    assert judge_lease(renewed(HELD, LATER), _snapshot(), LATER) == "keep"


def test_after_a_start_what_was_won_goes_on_and_the_rest_is_undone() -> None:
    assert after_start(HELD, LATER) == HELD
    assert after_start(HELD, NOW + LEASE).stage == "ending"
    assert after_start(replace(HELD, stage="claiming"), NOW).stage == "ending"


def test_a_task_is_given_back_with_the_lock_last() -> None:
    kinds = [type(action) for action in release_actions(HELD, status="blocked", busy=False)]
    assert kinds == [EndClaim, ResetLine, UnassignSelf, DeleteLock]
    bare = replace(HELD, comment_id=None, has_lock=False)
    (line,) = release_actions(bare, status="completed", busy=True)
    assert isinstance(line, ResetLine)
    assert line.expected.assignees == frozenset({"sh-marvin"})
    assert (line.change.status, line.change.assignee) == ("completed", "")


@pytest.mark.parametrize(
    ("snapshot", "dead"),
    [
        (_snapshot(locks={1: NOW, 2: NOW}), [1]),
        (_snapshot(at=NOW + LEASE), []),
        (_snapshot(at=NOW + LEASE + GRACE), [2]),
        (_snapshot(locks={3: NOW}, at=NOW + LEASE * 2), []),
        (_snapshot(None, "pending", locks={3: NOW}, at=NOW + LEASE), []),
        (_snapshot(None, "pending", locks={3: NOW}, at=NOW + LEASE + GRACE), [3]),
        (_snapshot(locks={2: NOW}, claims=()), [2]),
        (replace(_snapshot(), locks=None), []),
    ],
)
def test_a_lock_is_dead_whose_claim_has_ended_and_one_below_the_newest(snapshot: Snapshot, dead: list[int]) -> None:
    assert dead_locks(snapshot, 3) == dead


@pytest.mark.parametrize(
    ("snapshot", "epoch"),
    [
        (_snapshot(locks={3: NOW}, claims=(), at=NOW + LEASE), 0),
        (_snapshot(locks={3: NOW}, claims=(), at=NOW + LEASE + GRACE), 3),
        (_snapshot(locks={3: NOW}, claims=[replace(OWN, until=None)], at=NOW + LEASE * 2), 0),
        (replace(_snapshot(locks={3: NOW}, claims=(), at=NOW + LEASE * 2), has_pull_request=True), 0),
        (_snapshot(None, "pending", locks={3: NOW}, claims=(), at=NOW + LEASE * 2), 0),
        (_snapshot(claims=(), at=NOW + LEASE * 2), 0),
    ],
)
def test_a_task_in_work_may_be_that_of_an_orphaned_lock(snapshot: Snapshot, epoch: int) -> None:
    assert orphan_of_task_in_work(snapshot, 3) == epoch


@pytest.mark.parametrize(
    ("snapshot", "login"),
    [
        (_snapshot(at=NOW + LEASE + GRACE), "SH-Marvin"),
        (_snapshot("sh-older", claims=[Claim(1, "sh-older", 3)], at=NOW + LEASE * 9), ""),
        (_snapshot("sh-other", at=NOW + LEASE + GRACE), ""),
        (replace(_snapshot(at=NOW + LEASE + GRACE), has_pull_request=True), ""),
        (_snapshot(None, "pending", at=NOW + LEASE + GRACE), ""),
    ],
)
def test_who_has_a_task_though_the_claim_has_ended(snapshot: Snapshot, login: str) -> None:
    assert dead_holder(snapshot, 3) == login


CLOCK = FakeClock()
THEN = CLOCK.now()
KEY = "acme/shop#12/task-3"
CLAIMING = Lease(
    *("acme", "shop", 12, 3, "sh-marvin", "claiming", 1),
    has_lock=False,
    since=THEN,
    renewed_at=THEN,
    until=THEN + LEASE,
)
HELD_ROW = replace(CLAIMING, number=4, stage="held", has_lock=True, comment_id=9)


def _store(database: Database, folder: Path) -> TaskLeases:
    return TaskLeases(database, folder, CLOCK)


def _view(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / FILE).read_text(encoding="utf-8")))


async def test_a_task_is_claimed_once_at_a_time_and_again_after_it_was_given_back(
    database: Database, tmp_path: Path
) -> None:
    store = _store(database, tmp_path)
    assert await store.begin(CLAIMING)
    assert not await store.begin(replace(CLAIMING, epoch=2))
    assert await store.all() == [CLAIMING]
    assert _view(tmp_path)[KEY] == int(THEN.timestamp() * 1000)
    await store.end(CLAIMING)
    assert _view(tmp_path).keys() == {VERSION_KEY}
    assert await store.begin(CLAIMING)


async def test_after_a_kill_what_was_won_goes_on_and_what_was_not_is_undone(database: Database, tmp_path: Path) -> None:
    store = _store(database, tmp_path)
    await store.begin(CLAIMING)
    await store.begin(replace(HELD_ROW, stage="claiming"))
    await store.put(HELD_ROW)
    again = await open_database(tmp_path / "soul.db")
    assert await _store(again, tmp_path).load() == [replace(CLAIMING, stage="ending"), HELD_ROW]
    await again.close()


async def test_a_lock_is_known_since_it_was_first_seen(database: Database, tmp_path: Path) -> None:
    clock = FakeClock()
    store = TaskLeases(database, tmp_path, clock)
    one, other = "acme/shop:soul/12-task-3-1", "acme/shop:soul/12-task-3-2"
    begun = clock.now()
    assert await store.first_seen([one]) == {one: begun}
    await clock.advance(3600)
    assert await store.first_seen([one, other]) == {one: begun, other: clock.now()}
    await clock.advance(8 * 86_400)
    assert await store.first_seen([one]) == {one: begun}
    assert await store.first_seen([other]) == {other: clock.now()}


MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)
TASK = "owner/site#12/task-3"
PUSH = {"branch": "task-3", "folder": "x", "repo": "owner/site", "sha": "a" * 40}
REVIEW = '{"number":7,"repo":"owner/site","reviewers":["ada"]}'
INTENT = (
    "INSERT INTO intents (id, kind, target, body, body_hash, dedup_key, rkey, created_at, expires_at, state)"
    " VALUES (:id, :kind, :target, :body, '', '', :id, :id, 'e', 'pending')"
)
WORK = (
    "INSERT INTO work (kind, key, payload, author, importance, not_before, created_at, cause_id, rank, version, state)"
    " VALUES ('task', ?, ?, '', 'owner', '', '', '', 0, '', 'done')"
)
LEASE_ROW = (
    "INSERT INTO task_leases VALUES (:key, 'owner', 'site', 12, 3, 'soul', 'held', :epoch, 1, '', '',"
    " '2026-01-06T00:00:00.000Z', NULL)"
)


@pytest.mark.parametrize("epoch", [4, 5, None])
async def test_an_act_for_a_task_leaves_only_while_that_is_ours_and_wanted(tmp_path: Path, epoch: int | None) -> None:
    path = tmp_path / "soul.db"
    lay_database(path)
    of_task = json.dumps(PUSH | {"task": TASK, "epoch": 4})
    with closing(sqlite3.connect(path)) as rows:
        rows.execute(INTENT, {"id": "push", "kind": "push", "target": f"{TASK}@4:push", "body": of_task})
        rows.execute(INTENT, {"id": "free", "kind": "push", "target": "owner@site", "body": json.dumps(PUSH)})
        for number, left in ((3, "false"), (4, "true")):
            merge = json.dumps({"repo": "owner/site", "number": 7, "task": f"owner/site#12/task-{number}"})
            rows.execute(INTENT, {"id": f"merge{number}", "kind": "merge", "target": "", "body": merge})
            rows.execute(WORK, (f"owner/site#12/{number}", f'{{"left":{left}}}'))
        asked = {"id": "asked", "kind": "review_request", "target": f"{TASK}@4:reviewer:ada", "body": REVIEW}
        rows.execute(INTENT, asked)
        if epoch:
            rows.execute(LEASE_ROW, {"key": TASK, "epoch": epoch})
        rows.commit()

    def waits(connection: sqlite3.Connection) -> dict[str, Wait | None]:
        found = {one.id: one for one in store.in_state(connection, "pending")}
        assert isinstance(found["push"].body, PushBody)
        assert isinstance(found["asked"].body, ReviewRequestBody)
        return {name: lease_gate(connection, one, MIDNIGHT) for name, one in found.items()}

    database = await open_database(path)
    try:
        said = await database.run(waits)
    finally:
        await database.close()
    assert (said["push"] is None) == (epoch == 4)
    assert (said["free"], said["asked"]) == (None, None)
    assert [said[name] is None for name in ("merge3", "merge4")] == [True, False]


CAUSE = "task-end:1"


def _words(name: str, /, **_: object) -> str:
    return name


async def test_a_comment_that_the_limits_put_off_until_it_expired_was_not_said_and_is_said_again(
    tmp_path: Path,
) -> None:
    async with open_etiquette_outbox(tmp_path) as etiquette_outbox:
        comments = TaskComments(etiquette_outbox.outbox, _words, Redactor())
        owner, _, name = WORKSPACE.partition("/")

        async def say() -> None:
            event = TaskEvent(1, "failed", 1)
            await comments.say(Repo(owner, name), 1, "github.task_failed", event, CAUSE)

        for number in range(int(GITHUB_CREATIONS_OF_OTHERS.limit)):
            body = body_of("issue", source="workspace", repo=WORKSPACE)
            await etiquette_outbox.outbox.submit(ProposedAction(body, f"c#{number}"))
        await say()
        await etiquette_outbox.drain(120)
        assert len(etiquette_outbox.sender.departures) == GITHUB_CREATIONS_OF_OTHERS.limit
        assert await comments.said(CAUSE)
        await etiquette_outbox.clock.advance(timedelta(hours=25).total_seconds())
        await etiquette_outbox.outbox.deliver_due()
        assert not await comments.said(CAUSE)
        await say()
        await etiquette_outbox.drain(120)
        assert await comments.said(CAUSE)
        assert len(etiquette_outbox.sender.departures) == GITHUB_CREATIONS_OF_OTHERS.limit + 1


def test_each_reason_why_a_task_was_not_done_has_words_of_its_own() -> None:
    assert {f"task_problem.{one}" for one in get_args(TaskProblem)} == {
        key for key in FORMS if key.startswith("task_problem.")
    }

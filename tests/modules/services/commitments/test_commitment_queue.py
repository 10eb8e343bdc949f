"""The file of commitments: its format, and the failures that it survives.

The queue loses and repeats nothing when it is reopened after any step. A request that reaches GitHub late, after its
connection was lost, leaves no duplicate.
"""

import asyncio
import json
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from common.clock import FakeClock, ScaledClock, iso
from common.errors import StorageError
from common.person import Person, Trace
from common.redact import LEAK, Redactor
from common.schemas import VALID_COMMITMENT_TYPES
from common.version import __version__
from modules.runtime.database.people import know_person
from modules.runtime.events import Event
from modules.services.commitments.acts import CommitmentsReady
from modules.services.commitments.naming import LIVE, QueuedCommitment
from modules.services.commitments.policy import (
    COMMITMENT_MAX_ATTEMPTS,
    STALE,
    TIMED_OUT,
    due_in_s,
    is_stale,
    is_timed_out,
)
from modules.services.commitments.queue import COMMITMENTS_OF_PEOPLE, FILE, CommitmentQueue
from modules.services.work.table import WORK_OF_PEOPLE
from tests.exploration import examples
from tests.fresh_database import open_database
from tests.late_proxy import LateProxy, late_proxy
from tests.modules.services.commitments.commitment_values import ROOM, Opened, due, lines, noting, taken, wanted
from tests.modules.services.commitments.soul_in_town import SoulInTown, Town
from town.github.values import StoredIssue

HOUR = 3600.0


def audited(folder: Path) -> list[str]:
    log = folder / "logs" / "commitment-queue.log"
    return [json.loads(line)["action"] for line in log.read_text().splitlines()]


async def test_a_commitment_is_one_line_with_the_keys_that_other_programs_know(opened: Opened, tmp_path: Path) -> None:
    one = await taken(await opened(), "Release checklist", title="Release checklist")
    (line,) = lines(tmp_path)
    assert list(line) == [
        "id",
        "createdAt",
        "description",
        "type",
        "sourceThreadUri",
        "sourceReplyText",
        "params",
        "source",
        "status",
        "attemptCount",
        "lastAttemptAt",
        "error",
        "result",
    ]
    assert line["id"] == one.id
    assert one.id.startswith("commitment-1767614400000-")
    assert (line["createdAt"], line["status"], line["source"]) == ("2026-01-05T12:00:00.000Z", "pending", "space")
    assert (tmp_path / f"{FILE}.version").read_text() == __version__


async def test_a_commitment_is_taken_once_and_told_once(opened: Opened, tmp_path: Path) -> None:
    woken = list[Event]()
    queue = await opened(publish=woken.append)
    first = await queue.enqueue_commitment(wanted())
    again = await queue.enqueue_commitment(wanted("  release   CHECKLIST "))
    assert (first.new, again.new, woken) == (True, False, [CommitmentsReady()])
    assert again.commitment == first.commitment
    assert again.reason
    assert audited(tmp_path) == ["enqueued", "duplicate_rejected"]


async def test_a_commitment_that_holds_a_secret_is_never_written_down(opened: Opened, tmp_path: Path) -> None:
    queue = await opened(redactor=Redactor(["hunter2-hunter2"]))
    refused = await queue.enqueue_commitment(wanted("Log in", content="the password is hunter2-hunter2"))
    assert (refused.commitment, refused.reason) == (None, LEAK)
    assert "hunter2" not in str(opened.on_disk())


async def test_the_third_failure_gives_a_commitment_up_and_tells_it_once(opened: Opened, tmp_path: Path) -> None:
    told = list[str]()
    queue = await opened(publish=noting(told))
    one = await taken(queue)
    for number in range(3):
        assert told == []
        await queue.mark_in_progress(one.id)
        await queue.mark_failed(one.id, f"failure {number}")
    assert told == [one.id]
    assert audited(tmp_path)[-1] == "auto_abandoned"
    assert queue.live() == []
    await opened(publish=noting(told))
    assert told == [one.id]


async def test_what_another_has_is_dropped_and_not_begun_and_nobody_is_asked_again(opened: Opened) -> None:
    told = list[str]()
    queue = await opened(publish=noting(told))
    one, other = await taken(queue, "One", target="acme/site#One"), await taken(queue, "Two", target="acme/site#Two")
    await queue.mark_in_progress(other.id)
    assert await queue.withdraw_claimed("create_issue", "acme/site#One", "claimed by marvin first")
    assert not await queue.withdraw_claimed("create_issue", "acme/site#Two", "too late")
    assert (await queue.mark_in_progress(one.id)).status == "abandoned"
    assert [item.id for item in queue.live()] == [other.id]
    assert told == []
    assert (queue.get(one.id) or one).error == "claimed by marvin first"


async def test_a_room_that_is_promised_what_a_post_was_is_stored_with_it_and_takes_nothing_from_it(
    opened: Opened,
) -> None:
    queue, post = await opened(), "at://did:plc:ada/app.bsky.feed.post/1"
    one = await taken(queue, thread=post, source="bluesky", target="acme/site#One")
    for thread in (ROOM, f"{ROOM}0"):
        assert not (await queue.enqueue_commitment(wanted(thread=thread, room_id="hall", target="acme/site#One"))).new
    (stored,) = (await opened()).live()
    assert [(made.source, made.source_thread_uri, made.params.room_id) for made in stored.by_asker] == [
        ("bluesky", post, ""),
        ("space", ROOM, "hall"),
    ]
    assert not await queue.withdraw_claimed("create_issue", "acme/site#One", "claimed by marvin first")
    assert [item.id for item in queue.live()] == [one.id]


async def test_a_repository_where_nothing_works_is_left_alone_over_a_restart(
    opened: Opened, tmp_path: Path, clock: FakeClock
) -> None:
    queue = await opened()
    for number in range(5):
        one = await taken(queue, f"Promise {number}")
        for _ in range(3):
            await queue.mark_in_progress(one.id)
            await queue.mark_failed(one.id, "not found")
    (cooldown,) = queue.check_and_apply_repo_cooldown()
    assert "5 failures (not found)" in cooldown.reason
    assert queue.check_and_apply_repo_cooldown() == []
    (item,) = json.loads((tmp_path / "repo_cooldown.json").read_text())
    assert set(item) == {"owner", "repo", "cooldownUntil", "reason"}
    later = await opened()
    assert later.is_repo_cooled_down("acme", "site")
    clock.jump(49 * HOUR)
    assert not later.is_repo_cooled_down("acme", "site")
    assert later.check_and_apply_repo_cooldown() == []
    assert json.loads((tmp_path / "repo_cooldown.json").read_text()) == []


async def test_a_row_that_nobody_can_read_stops_no_other_and_the_file_follows_the_rows(
    opened: Opened, tmp_path: Path
) -> None:
    queue = await opened()
    one, other = await taken(queue, "Say it"), await taken(queue, "Sing it")
    await opened.database.run(lambda rows: rows.execute("UPDATE work SET payload = '{' WHERE key = ?", (other.id,)))
    (tmp_path / FILE).write_text('{"half a li')
    (tmp_path / f"{FILE}.version").write_text("0.0.1")
    (tmp_path / "repo_cooldown.json").write_text("{")
    queue = await opened()
    assert [item.description for item in queue.all()] == [one.description]
    assert "repo_cooldown.json" in queue.notice
    assert [line["id"] for line in lines(tmp_path)] == [one.id]
    assert (tmp_path / f"{FILE}.version").read_text() == __version__
    assert not (await opened()).notice


async def test_a_full_disk_changes_nothing(opened: Opened, tmp_path: Path) -> None:
    queue = await opened()
    one = await taken(queue)
    before = (tmp_path / FILE).read_text()
    await opened.database.run(lambda rows: rows.execute("PRAGMA max_page_count = 1"))
    with pytest.raises(StorageError):
        await taken(queue, "Another", description="x" * 100_000)
    assert (tmp_path / FILE).read_text() == before
    assert queue.all() == [one]


async def test_what_is_over_is_not_failed_again(opened: Opened, clock: FakeClock) -> None:
    told = list[str]()
    queue = await opened(publish=noting(told))
    kept, lost = await taken(queue), await taken(queue, "Another")
    await queue.mark_completed(kept.id, {"url": "https://github.com/ada/garden/issues/1"})
    for number in range(3):
        await queue.mark_failed(lost.id, f"failure {number}")
    for over in (kept.id, lost.id):
        before = next(one for one in queue.all() if one.id == over)
        assert await queue.mark_failed(over, "again") == before
        assert await queue.put_off(over, "again") == before
        assert await queue.wait_until(over, clock.now()) == before
    assert told == [lost.id]


async def test_a_life_that_runs_fast_waits_as_much_shorter(opened: Opened, clock: FakeClock) -> None:
    fast = CommitmentQueue(opened.folder, opened.table, ScaledClock(clock, 60))
    await fast.open()
    one = await taken(fast)
    after = await fast.wait_until(one.id, clock.now())
    assert due_in_s(after, clock.now()) == 1


def forget(rows: sqlite3.Connection, person: Person) -> None:
    know_person(rows, person)
    for one in (COMMITMENTS_OF_PEOPLE, WORK_OF_PEOPLE):
        one.forget(rows, Trace(person))


async def test_what_only_a_forgotten_person_wanted_is_gone_and_what_the_owner_wanted_stays(opened: Opened) -> None:
    queue, ada = await opened(), Person("did:plc:ada", ("ada.example",))
    thread = f"at://{ada.did}/app.bsky.feed.post/1"
    await queue.enqueue_commitment(wanted("One", thread=thread))
    await queue.enqueue_commitment(wanted("Two", thread=thread, hostRequest=True))

    await opened.database.run(lambda rows: forget(rows, ada))
    (left,) = (await opened()).all()
    assert left.description == "Two"
    assert ada.did not in str(left)


async def test_a_forgotten_person_who_asked_for_the_same_is_left_out_of_what_stays(opened: Opened) -> None:
    queue, ada = await opened(), Person("did:plc:ada", ("ada.example",))
    await queue.enqueue_commitment(wanted(thread="at://did:plc:kit/app.bsky.feed.post/1", source="bluesky"))
    await queue.enqueue_commitment(wanted(thread=f"at://{ada.did}/app.bsky.feed.post/1", source="bluesky"))

    assert ada.did in str(queue.all())
    await opened.database.run(lambda rows: forget(rows, ada))
    (left,) = (await opened()).all()
    assert ada.did not in str(left)


async def test_who_asked_next_is_told_of_what_a_forgotten_person_asked_for_first(opened: Opened) -> None:
    queue, ada, bob = await opened(), Person("did:plc:ada", ("ada.example",)), "at://did:plc:bob/app.bsky.feed.post/1"
    for thread in (f"at://{ada.did}/app.bsky.feed.post/1", bob):
        await queue.enqueue_commitment(wanted(thread=thread, source="bluesky", text=f"I promise it in {thread}."))
    await queue.enqueue_commitment(wanted())
    await opened.database.run(lambda rows: forget(rows, ada))
    (left,) = (await opened()).live()
    assert [one.source_thread_uri for one in left.by_asker] == [bob, ROOM]
    assert ada.did not in str(left)
    await opened.database.run(lambda rows: forget(rows, Person("did:plc:bob")))
    (left,) = (await opened()).live()
    assert [one.source_thread_uri for one in left.by_asker] == [ROOM]


class KilledQueue(RuleBasedStateMachine):
    """A queue that is reopened from disk after any step: it loses no commitment, and takes and reports none twice."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FakeClock()
        self.told: list[str] = []
        self.taken: dict[str, QueuedCommitment] = {}
        self.runner = asyncio.Runner()
        self.do = self.runner.run
        self.opened = Opened(self.folder, self.do(open_database(self.folder / "soul.db")), self.clock)
        self.open()

    def open(self) -> None:
        self.queue = self.do(self.opened(publish=noting(self.told)))

    def teardown(self) -> None:
        self.do(self.opened.database.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    @rule(number=st.integers(0, 5), kind=st.sampled_from(VALID_COMMITMENT_TYPES))
    def one_commitment(self, number: int, kind: Any) -> None:
        answer = self.do(self.queue.enqueue_commitment(wanted(f"Promise {number}", kind=kind)))
        assert answer.commitment is not None
        assert answer.new == (answer.commitment.id not in self.taken)
        self.taken.setdefault(answer.commitment.id, answer.commitment)

    @precondition(lambda self: self.due())
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.do(self.queue.mark_in_progress(data.draw(st.sampled_from(self.due()))))

    @precondition(lambda self: self.running())
    @rule(data=st.data(), how=st.sampled_from(["kept", "failed", "put off", "waits"]))
    def end(self, data: st.DataObject, how: str) -> None:
        one = data.draw(st.sampled_from(self.running()))
        if how == "kept":
            assert self.do(self.queue.mark_completed(one.id, {"count": 1})).attempt_count == one.attempt_count + 1
        elif how == "failed":
            assert self.do(self.queue.mark_failed(one.id, "no")).attempt_count == one.attempt_count + 1
        elif how == "waits":
            in_ten_minutes = self.clock.now() + timedelta(minutes=10)
            after = self.do(self.queue.wait_until(one.id, in_ten_minutes))
            assert (after.attempt_count, after.not_before) == (one.attempt_count, iso(in_ten_minutes))
            assert after.id not in self.due()
        else:
            assert self.do(self.queue.put_off(one.id, "later")).attempt_count == one.attempt_count

    @rule(minutes=st.sampled_from([1, 5, 11, 60, 25 * 60]))
    def time_goes_by(self, minutes: int) -> None:
        self.clock.jump(minutes * 60)
        for one in self.queue.live():
            if is_stale(one, self.clock.now()):
                self.do(self.queue.give_up(one.id, STALE, action="stale_abandoned"))
            elif is_timed_out(one, self.clock.now()):
                self.do(self.queue.mark_failed(one.id, TIMED_OUT, is_late=True))

    @rule()
    def die(self) -> None:
        before = {one.id: one for one in self.queue.all()}
        self.open()
        after = {one.id: one for one in self.queue.all()}
        assert set(after) == set(before)
        for name, one in after.items():
            assert (one.attempt_count, one.not_before) == (before[name].attempt_count, before[name].not_before)
            assert one.status == ("failed" if before[name].status == "in_progress" else before[name].status)
        assert not self.running()

    @invariant()
    def nothing_is_lost_and_the_end_is_told_once(self) -> None:
        known = {one.id: one for one in self.queue.all()}
        assert set(known) == set(self.taken)
        assert len(self.told) == len(set(self.told))
        assert set(self.told) == {one.id for one in known.values() if one.status == "abandoned"}
        for one in known.values():
            assert one.attempt_count <= COMMITMENT_MAX_ATTEMPTS
            assert one.status not in LIVE or one.attempt_count < COMMITMENT_MAX_ATTEMPTS
        assert {line["id"]: line["status"] for line in (lines(self.folder) if known else [])} == {
            one.id: one.status for one in known.values()
        }

    def due(self) -> list[str]:
        return due(self.queue, self.clock)

    def running(self) -> list[QueuedCommitment]:
        return [one for one in self.queue.all() if one.status == "in_progress"]


TestKilledQueue = KilledQueue.TestCase
TestKilledQueue.settings = settings(max_examples=examples(12), stateful_step_count=25, deadline=None)


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

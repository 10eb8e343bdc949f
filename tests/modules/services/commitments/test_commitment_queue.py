"""The file of commitments: what it looks like, and what it survives."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from common.clock import FakeClock, iso
from common.errors import StorageError
from common.redact import LEAK, Redactor
from common.schemas import VALID_COMMITMENT_TYPES
from common.version import __version__
from modules.runtime.events import Event, Publish
from modules.services.commitments.events import CommitmentAbandoned, CommitmentsReady
from modules.services.commitments.policy import COMMITMENT_MAX_ATTEMPTS
from modules.services.commitments.queue import FILE, CommitmentQueue
from modules.services.commitments.types import LIVE, QueuedCommitment
from tests.exploration import examples
from tests.modules.services.commitments.commitment_values import ROOM, taken, wanted

HOUR = 3600.0


def noting(abandoned: list[str]) -> Publish:
    """Keeps the ids of commitments that are given up."""

    def note(event: Event) -> None:
        if isinstance(event, CommitmentAbandoned):
            abandoned.append(event.commitment.id)

    return note


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / FILE).read_text().splitlines()]


def audited(folder: Path) -> list[str]:
    log = folder / "logs" / "commitment-queue.log"
    return [json.loads(line)["action"] for line in log.read_text().splitlines()]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_marks_of_an_earlier_version_get_their_present_names_and_what_is_of_a_later_one_is_kept(
    tmp_path: Path, clock: FakeClock
) -> None:
    taken(CommitmentQueue(tmp_path, clock), "Release checklist")
    (line,) = lines(tmp_path)
    line["params"] = {"title": "Release checklist", "hostWish": True, "unheard": True, "later": {"x": [1]}, "count": []}
    (tmp_path / FILE).write_text(f"{json.dumps(line)}\n")
    (kept,) = CommitmentQueue(tmp_path, clock).all()
    now = {"title": "Release checklist", "hostRequest": True, "undelivered": True, "later": {"x": [1]}}
    assert kept.params.as_json() == now
    assert [one["params"] for one in lines(tmp_path)] == [now]


def test_a_commitment_is_one_line_with_the_keys_that_other_programs_know(tmp_path: Path, clock: FakeClock) -> None:
    one = taken(CommitmentQueue(tmp_path, clock), "Release checklist", title="Release checklist")
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


def test_a_commitment_is_taken_once_and_told_once(tmp_path: Path, clock: FakeClock) -> None:
    woken = list[Event]()
    queue = CommitmentQueue(tmp_path, clock, publish=woken.append)
    first = queue.enqueue_commitment(wanted())
    again = queue.enqueue_commitment(wanted("  release   CHECKLIST "))
    assert (first.new, again.new, woken) == (True, False, [CommitmentsReady()])
    assert again.commitment == first.commitment
    assert again.reason
    assert audited(tmp_path) == ["enqueued", "duplicate_rejected"]


def test_a_commitment_that_was_just_kept_is_not_made_again(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock)
    one = taken(queue)
    queue.mark_in_progress(one.id)
    queue.mark_completed(one.id, {"issues": [{"number": 1, "title": "Release", "url": "https://g/1"}], "count": 1})
    assert not queue.enqueue_commitment(wanted("Release checklist!", thread="at://elsewhere")).new
    clock.jump(25 * HOUR)
    assert queue.enqueue_commitment(wanted("Release checklist!", thread="at://elsewhere")).new


def test_a_social_only_life_refuses_what_needs_github(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock, social_only=True)
    assert "Social-only" in queue.enqueue_commitment(wanted()).reason
    assert queue.enqueue_commitment(wanted("Tell them", kind="post_bluesky")).new
    assert audited(tmp_path) == ["refused", "enqueued"]


def test_a_commitment_that_holds_a_secret_is_never_written_down(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock, redactor=Redactor(["hunter2-hunter2"]))
    refused = queue.enqueue_commitment(wanted("Log in", content="the password is hunter2-hunter2"))
    assert (refused.commitment, refused.reason) == (None, LEAK)
    assert not any("hunter2" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_the_third_failure_gives_a_commitment_up_and_tells_it_once(tmp_path: Path, clock: FakeClock) -> None:
    told = list[str]()
    queue = CommitmentQueue(tmp_path, clock, publish=noting(told))
    one = taken(queue)
    for number in range(3):
        assert told == []
        queue.mark_in_progress(one.id)
        queue.mark_failed(one.id, f"failure {number}")
    assert told == [one.id]
    assert audited(tmp_path)[-1] == "auto_abandoned"
    assert queue.live() == []
    CommitmentQueue(tmp_path, clock, publish=noting(told))
    assert told == [one.id]


def test_what_is_asked_after_is_tried_at_once_but_not_in_the_same_moment(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock)
    one, other = (
        taken(queue, "One"),
        queue.enqueue_commitment(wanted("Two", thread="space://conversation/ffff")).commitment,
    )
    assert other is not None
    for one_commitment in (one, other):
        queue.mark_in_progress(one_commitment.id)
        queue.mark_failed(one_commitment.id, "GitHub is away")
    queue.retry_now(one.source_thread_uri)
    assert queue.due() == []
    clock.jump(20)
    queue.retry_now(one.source_thread_uri)
    assert [one_commitment.id for one_commitment in queue.due()] == [one.id]


def test_what_was_made_within_a_day_is_found_by_its_work(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock)
    one = taken(queue)
    assert queue.kept_already(wanted()) is None
    queue.mark_in_progress(one.id)
    queue.mark_completed(one.id, {"url": "https://github.com/acme/site/issues/7"})
    found = queue.kept_already(wanted(thread="space://conversation/ffff"))
    assert found is not None
    assert found.id == one.id
    clock.jump(25 * HOUR)
    assert queue.kept_already(wanted()) is None


def test_what_waits_too_long_is_given_up_unless_it_is_on_its_way(tmp_path: Path, clock: FakeClock) -> None:
    told = list[str]()
    queue = CommitmentQueue(tmp_path, clock, publish=noting(told))
    waits, held = taken(queue, "One"), taken(queue, "Two")
    clock.jump(25 * HOUR)
    assert [one.id for one in queue.abandon_stale_commitments({held.id})] == [waits.id]
    assert told == [waits.id]
    assert queue.abandon_stale_commitments({held.id}) == []


def test_a_try_without_end_times_out_and_uses_an_attempt(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock)
    one, other = taken(queue, "One"), taken(queue, "Two")
    queue.mark_in_progress(one.id)
    queue.mark_in_progress(other.id)
    clock.jump(11 * 60)
    (late,) = queue.timeout_in_progress_commitments({other.id})
    assert (late.id, late.status, late.attempt_count) == (one.id, "failed", 1)
    assert (late.error or "").startswith("Timed out")
    assert audited(tmp_path)[-1] == "timeout_failed"


def test_what_another_has_is_dropped_and_not_begun_and_nobody_is_asked_again(tmp_path: Path, clock: FakeClock) -> None:
    told = list[str]()
    queue = CommitmentQueue(tmp_path, clock, publish=noting(told))
    one, other = taken(queue, "One", target="acme/site#One"), taken(queue, "Two", target="acme/site#Two")
    queue.mark_in_progress(other.id)
    assert queue.withdraw_claimed("create_issue", "acme/site#One", "claimed by marvin first")
    assert not queue.withdraw_claimed("create_issue", "acme/site#Two", "too late")
    assert queue.mark_in_progress(one.id).status == "abandoned"
    assert [item.id for item in queue.live()] == [other.id]
    assert told == []
    assert (queue.get(one.id) or one).error == "claimed by marvin first"


def test_a_week_later_what_is_over_is_forgotten(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock)
    done, waits = taken(queue, "One"), taken(queue, "Two")
    queue.mark_completed(done.id, {"issues": [], "count": 0})
    clock.jump(6 * 24 * HOUR)
    assert queue.periodic_queue_cleanup() == 0
    clock.jump(25 * HOUR)
    assert queue.periodic_queue_cleanup() == 1
    assert [line["id"] for line in lines(tmp_path)] == [waits.id]
    assert [one.id for one in CommitmentQueue(tmp_path, clock).all()] == [waits.id]


def test_what_was_just_kept_is_listed_newest_first(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock)
    ids = []
    for name in ("One", "Two", "Three"):
        one = taken(queue, name)
        queue.mark_in_progress(one.id)
        queue.mark_completed(one.id, {"issues": [], "count": 0})
        ids.append(one.id)
        clock.jump(600)
    found = queue.get_recently_completed_commitments(25 * 60 * 1000)
    assert [one.id for one in found] == [ids[2], ids[1]]
    assert [one.id for one in queue.in_conversation(ROOM)] == ids


def test_a_repository_where_nothing_works_is_left_alone_over_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path, clock)
    for number in range(5):
        one = taken(queue, f"Promise {number}")
        for _ in range(3):
            queue.mark_in_progress(one.id)
            queue.mark_failed(one.id, "not found")
    (cooldown,) = queue.check_and_apply_repo_cooldown()
    assert "5 failures (not found)" in cooldown.reason
    assert queue.check_and_apply_repo_cooldown() == []
    (item,) = json.loads((tmp_path / "repo_cooldown.json").read_text())
    assert set(item) == {"owner", "repo", "cooldownUntil", "reason"}
    later = CommitmentQueue(tmp_path, clock)
    assert later.is_repo_cooled_down("acme", "site")
    clock.jump(49 * HOUR)
    assert not later.is_repo_cooled_down("acme", "site")
    assert later.check_and_apply_repo_cooldown() == []
    assert json.loads((tmp_path / "repo_cooldown.json").read_text()) == []


def test_lines_that_nobody_can_read_are_kept_aside_and_told(tmp_path: Path, clock: FakeClock) -> None:
    one = taken(CommitmentQueue(tmp_path, clock), "Say \u2028 it")
    path = tmp_path / FILE
    path.write_text(path.read_text() + '{"half a li\n[1]\n{"id": "x", "type": "sing"}\n')
    (tmp_path / f"{FILE}.version").write_text("0.0.1")
    (tmp_path / "repo_cooldown.json").write_text("{")
    queue = CommitmentQueue(tmp_path, clock)
    assert [item.description for item in queue.all()] == [one.description]
    assert "3 commitments cannot be read" in queue.notice
    assert "repo_cooldown.json" in queue.notice
    (aside,) = tmp_path.glob(f"{FILE}.corrupt-*")
    assert aside.read_text().count("\n") == 3
    assert (tmp_path / f"{FILE}.version").read_text() == __version__
    assert not CommitmentQueue(tmp_path, clock).notice


def test_a_full_disk_changes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    queue = CommitmentQueue(tmp_path / "memory", clock)
    one = taken(queue)
    before = (tmp_path / "memory" / FILE).read_text()
    with _no_folder(tmp_path / "memory"), pytest.raises(StorageError):
        queue.mark_in_progress(one.id)
    assert (tmp_path / "memory" / FILE).read_text() == before
    assert queue.get(one.id) == one


@contextmanager
def _no_folder(folder: Path) -> Iterator[None]:
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.write_text("no folder")
    yield
    folder.unlink()
    aside.rename(folder)


def test_the_log_is_rotated(tmp_path: Path, clock: FakeClock) -> None:
    log = tmp_path / "logs" / "commitment-queue.log"
    log.parent.mkdir()
    log.write_text("x" * (10 * 1024 * 1024))
    taken(CommitmentQueue(tmp_path, clock))
    assert audited(tmp_path) == ["enqueued"]
    assert (log.parent / "commitment-queue.log.1").stat().st_size == 10 * 1024 * 1024


class KilledQueue(RuleBasedStateMachine):
    """A queue that is opened anew from the disk after any step: nothing is lost, nothing is taken or told twice."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FakeClock()
        self.told: list[str] = []
        self.taken: dict[str, QueuedCommitment] = {}
        self.open()

    def open(self) -> None:
        self.queue = CommitmentQueue(self.folder, self.clock, publish=noting(self.told))

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(number=st.integers(0, 5), kind=st.sampled_from(VALID_COMMITMENT_TYPES))
    def one_commitment(self, number: int, kind: Any) -> None:
        answer = self.queue.enqueue_commitment(wanted(f"Promise {number}", kind=kind))
        assert answer.commitment is not None
        assert answer.new == (answer.commitment.id not in self.taken)
        self.taken.setdefault(answer.commitment.id, answer.commitment)

    @precondition(lambda self: self.queue.due())
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.queue.mark_in_progress(data.draw(st.sampled_from(self.queue.due())).id)

    @precondition(lambda self: self.running())
    @rule(data=st.data(), how=st.sampled_from(["kept", "failed", "put off", "waits"]))
    def end(self, data: st.DataObject, how: str) -> None:
        one = data.draw(st.sampled_from(self.running()))
        if how == "kept":
            assert self.queue.mark_completed(one.id, {"count": 1}).attempt_count == one.attempt_count + 1
        elif how == "failed":
            assert self.queue.mark_failed(one.id, "no").attempt_count == one.attempt_count + 1
        elif how == "waits":
            in_ten_minutes = self.clock.now() + timedelta(minutes=10)
            after = self.queue.wait_until(one.id, in_ten_minutes)
            assert (after.attempt_count, after.not_before) == (one.attempt_count, iso(in_ten_minutes))
            assert after not in self.queue.due()
        else:
            assert self.queue.put_off(one.id, "later").attempt_count == one.attempt_count

    @rule(minutes=st.sampled_from([1, 5, 11, 60, 25 * 60]))
    def time_goes_by(self, minutes: int) -> None:
        self.clock.jump(minutes * 60)
        self.queue.abandon_stale_commitments()
        self.queue.timeout_in_progress_commitments()

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

    def running(self) -> list[QueuedCommitment]:
        return [one for one in self.queue.all() if one.status == "in_progress"]


TestKilledQueue = KilledQueue.TestCase
TestKilledQueue.settings = settings(max_examples=examples(12), stateful_step_count=25, deadline=None)


def test_what_is_over_is_not_failed_again(tmp_path: Path, clock: FakeClock) -> None:
    told = list[str]()
    queue = CommitmentQueue(tmp_path, clock, publish=noting(told))
    kept, lost = taken(queue), taken(queue, "Another")
    queue.mark_completed(kept.id, {"url": "https://github.com/ada/garden/issues/1"})
    for number in range(3):
        queue.mark_failed(lost.id, f"failure {number}")
    for over in (kept.id, lost.id):
        before = next(one for one in queue.all() if one.id == over)
        assert queue.mark_failed(over, "again") == before
        assert queue.put_off(over, "again") == before
        assert queue.wait_until(over, clock.now()) == before
    assert told == [lost.id]

"""The file of commitments: what it looks like, and what it survives."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from common.clock import FakeClock, ScaledClock
from common.errors import StorageError
from common.person import Person, Trace
from common.redact import LEAK, Redactor
from common.version import __version__
from modules.runtime.database.functions import know_person
from modules.runtime.events import Event
from modules.services.commitments.acts import CommitmentsReady
from modules.services.commitments.policy import due_in_s
from modules.services.commitments.queue import FILE, CommitmentQueue
from modules.services.work.table import WORK_OF_PEOPLE
from tests.modules.services.commitments.commitment_values import Opened, lines, noting, taken, wanted

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


async def test_what_only_a_forgotten_person_wanted_is_gone_and_what_the_owner_wanted_stays(opened: Opened) -> None:
    queue, ada = await opened(), Person("did:plc:ada", ("ada.example",))
    thread = f"at://{ada.did}/app.bsky.feed.post/1"
    await queue.enqueue_commitment(wanted("One", thread=thread))
    await queue.enqueue_commitment(wanted("Two", thread=thread, hostRequest=True))

    def forget(rows: sqlite3.Connection) -> None:
        know_person(rows, ada)
        WORK_OF_PEOPLE.forget(rows, Trace(ada))

    await opened.database.run(forget)
    (left,) = (await opened()).all()
    assert left.description == "Two"
    assert ada.did not in str(left)

"""The queue of commitments, opened anew after any step."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from common.clock import FakeClock, iso
from common.schemas import VALID_COMMITMENT_TYPES
from modules.services.commitments.naming import LIVE, QueuedCommitment
from modules.services.commitments.policy import COMMITMENT_MAX_ATTEMPTS, STALE, TIMED_OUT, is_stale, is_timed_out
from tests.exploration import examples
from tests.fresh_database import open_database
from tests.modules.services.commitments.commitment_values import Opened, due, lines, noting, wanted


class KilledQueue(RuleBasedStateMachine):
    """A queue that is opened anew from the disk after any step: nothing is lost, nothing is taken or told twice."""

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

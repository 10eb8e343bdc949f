"""A review that decides nothing does not end the talk: its author answers, and the reviewer decides."""

from __future__ import annotations

import pytest

from modules.lives.tasks.review.rounds import REVISION
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.running_town import RunningTown, awake, call
from tests.scenarios.code_review import BRANCH, code, open_reviewed, review, task_with_a_fault
from tests.scenarios.github_talk import CLOCK
from tests.town.github_place import needs_git

pytestmark = [needs_git, needs_sandbox]


@pytest.mark.slow
async def test_a_review_that_only_comments_is_answered_and_then_decided_on_the_same_commit(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        await place.put("beds.py", "BEDS = 3  # counted\n", BRANCH)
        answer = call("finish", summary="Nothing to change: check.py covers it.", description="Counts the beds.")
        place.judges("COMMENT", answer)
        async with awake(place.home(), clock=CLOCK) as rowan, awake(place.home("kit"), clock=CLOCK) as kit:
            await review(rowan)
            await review(rowan)
            assert place.verdicts == [("rowan", "COMMENTED")]
            await code(kit)
            assert [one.login for one in place.pull.requested] == ["rowan"]
            assert "check.py covers it" in place.pull.issue.comments[-1].body
            place.judges("APPROVE")
            for _ in range(3):
                await code(kit)
                await review(rowan)
            rounds = await kit.app.services.work.newest(REVISION, 9)
        assert place.verdicts == [("rowan", "COMMENTED"), ("rowan", "APPROVED")]
        assert {one.commit for one in place.pull.reviews} == {place.pull.head}
        assert [one.outcome for one in rounds] == ["answered"]
        assert "check.py covers it" in place.asked[-1].messages[-1].text

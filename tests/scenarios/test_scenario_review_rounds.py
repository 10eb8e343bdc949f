"""What an author does with a review of its pull request: real Git, a real sandbox, GitHub over HTTP."""

from __future__ import annotations

import pytest

from modules.lives.tasks.review.rounds import REVISION
from modules.services.workspaces.trust import plan_of
from tests.adapters.results import ok
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.running_town import RunningTown, awake, call
from tests.scenarios.code_review import BRANCH, FIX, FOUND, SITE, WHEN, code, open_reviewed, review, task_with_a_fault
from tests.scenarios.github_talk import CLOCK
from tests.town.github_place import needs_git

pytestmark = [needs_git, needs_sandbox]


@pytest.mark.slow
async def test_what_a_review_asks_for_is_pushed_by_the_author_and_approved_in_the_second_round(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        place.judges("APPROVE", *FIX, comments=[{"path": "beds.py", "line": 1, "body": "Why four?"}])
        async with awake(place.home(), clock=CLOCK) as rowan, awake(place.home("kit"), clock=CLOCK) as kit:
            await review(rowan)
            await code(kit)
            await code(kit)
            await review(rowan)
        assert place.verdicts == [("rowan", "CHANGES_REQUESTED"), ("rowan", "APPROVED")]
        assert place.pull.reviews[1].commit == place.pull.head
        assert len(place.place.repo.pulls) == 1
        shown = place.coded[0].messages[-1].text
        assert "there are three beds" in shown
        assert "beds.py:1\n" in shown
        assert "Why four?" in shown
        again = place.asked[1].messages[-1].text
        assert "-BEDS = 4" in again
        assert 'author="@rowan"' in again
        assert all(words in again for words in (FOUND, "Why four?", "Three beds again.", "Count all of them.", WHEN))
        assert "Three beds again." in place.pull.issue.comments[-1].body
        git = place.place.network.git(place.place.repo)
        assert [one.path for one in await git.changes(place.pull.base, place.pull.head)] == ["beds.py"]
        assert len(place.coded) == len(FIX)


@pytest.mark.slow
async def test_the_text_of_a_pull_request_says_what_is_in_it_after_a_round_until_a_person_changes_it(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home("kit"), clock=CLOCK) as kit:
        await task_with_a_fault(place, {"beds.py": "BEDS = 4\n", "rows.py": "ROWS = 2\n"}, kit)
        rounds = [
            change
            for number in range(2)
            for change in (
                call("write_file", path="beds.py", content=f"BEDS = 3  # {number}\n"),
                call(
                    "finish", summary=f"I took one bed out, {number}.", description=f"Fixes #9: three beds, {number}."
                ),
            )
        ]
        place.judges("REQUEST_CHANGES", *rounds)
        texts = []
        for by in (None, "Mine now."):
            if by:
                issue = ok(await place.owner.get_issue(SITE, place.number))
                ok(await place.owner.update_issue(SITE, place.number, body=f"{issue.body}\n{by}"))
            sha = place.pull.head
            asked = await place.owner.pulls.create_review(
                SITE, place.number, event="REQUEST_CHANGES", body="Four?", commit_id=sha
            )
            assert asked.success
            await code(kit)
            await code(kit)
            assert place.pull.head != sha
            texts.append(place.pull.issue.body or "")
    first, second = texts
    assert all(words in first for words in ("three beds, 0.", "`beds.py`", "`rows.py`", "make test", "Part of #"))
    assert "Fixes #9" not in first
    assert "I took one bed out" not in first
    assert second == f"{first}\nMine now."
    assert sum("I took one bed out" in one.body for one in place.pull.issue.comments) == len(texts)


@pytest.mark.slow
async def test_a_round_that_waits_for_the_owner_is_pushed_after_a_restart_and_reviewed_again(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        place.judges("APPROVE", *FIX)
        async with awake(place.home(), clock=CLOCK) as rowan:
            await review(rowan)
        home, reviewed = place.home("kit", SOUL_APPROVAL="drafts"), place.pull.head
        async with awake(home, clock=CLOCK) as kit:
            await code(kit)
        async with awake(home, clock=CLOCK) as kit:
            outbox, work = kit.app.services.outbox, kit.app.services.work
            (push,) = await outbox.held()
            (row,) = await work.newest(REVISION, 9)
            assert (push.kind, row.state, row.outcome) == ("push", "pending", "needs-owner")
            assert place.pull.head == reviewed
            await outbox.approve(push.id)
            await kit.send()
            assert place.pull.head != reviewed
            CLOCK.ahead += 61
            await code(kit)
            held = await outbox.held()
            for one in held:
                await outbox.approve(one.id)
            await kit.send()
            (row,) = await work.newest(REVISION, 9)
            assert not list((kit.app.services.home.root / ".workrepos").iterdir())
        assert ({one.kind for one in held}, row.state) == ({"issue_comment", "review_request"}, "done")
        assert row.outcome == "pushed"
        assert [one.login for one in place.pull.requested] == ["rowan"]
        assert len(place.coded) == len(FIX)


@pytest.mark.slow
async def test_after_two_rounds_the_owner_is_told_once_and_nothing_more_is_coded(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        rounds = [
            change
            for number in range(3)
            for change in (
                call("write_file", path="beds.py", content=f"BEDS = 3  # {number}\n"),
                call("finish", summary="Counted again.", description="More beds."),
            )
        ]
        place.judges("REQUEST_CHANGES", *rounds)
        async with awake(place.home(), clock=CLOCK) as rowan, awake(place.home("kit"), clock=CLOCK) as kit:
            for _ in range(4):
                await review(rowan)
                await code(kit)
            entries = await kit.app.services.journal.recent(200)
        assert [state for _, state in place.verdicts] == ["CHANGES_REQUESTED"] * 3
        assert len(place.coded) == 4
        told = [one.entry for one in entries if one.entry.data.get("act") == "review-stuck"]
        assert [(one.data["code"], one.line) for one in told] == [("rounds-used", "warn")]


@pytest.mark.slow
async def test_reviewer_and_author_read_what_was_asked_about_the_task_and_answered(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        issue = plan_of(place.pull.issue.body or "")
        assert issue
        event = '{"task": 1, "event": "blocked", "attempt": 1, "about": "beds"}'
        ok(await place.kit.create_comment(SITE, issue, f"How many beds?\n\n<!-- task-event {event} -->"))
        ok(await place.owner.create_comment(SITE, issue, "Four, since the spring."))
        place.judges("REQUEST_CHANGES", *FIX)
        async with awake(place.home(), clock=CLOCK) as rowan, awake(place.home("kit"), clock=CLOCK) as kit:
            await review(rowan)
            await code(kit)
        for told in (place.asked[0].messages[-1].text, place.coded[0].messages[-1].text):
            assert told.index("How many beds?") < told.index("Four, since the spring.")


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

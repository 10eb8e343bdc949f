"""A SOUL reviews a pull request of its workspace by running its tests, and revises its own after a review.

Git and the sandbox are real; GitHub is served over HTTP.
"""

import asyncio
import os
from dataclasses import replace

import pytest

from modules.lives.tasks.review.handle import REVIEW, ReviewPlace
from modules.lives.tasks.review.judge import MOST_STEPS
from modules.lives.tasks.review.rounds import REVISION
from modules.services.explanation.rendering import tell
from modules.services.peers.policy import PeerClaim
from modules.services.workspaces.trust import MOST_PULLS, READ_AGAIN_S, plan_of
from tests.adapters.results import ok
from tests.counted_requests import CountedRequests
from tests.modules.lives.tasks.test_task_stops import commands_running
from tests.modules.services.coding.coding_rig import needs_sandbox
from tests.patience import until
from tests.running_town import RunningTown, awake, call
from tests.scenarios.code_review import (
    BRANCH,
    CHECK,
    FIX,
    FOUND,
    SITE,
    WHEN,
    code,
    open_reviewed,
    review,
    task_with_a_fault,
)
from tests.scenarios.github_talk import CLOCK
from tests.town.github_place import needs_git
from town.github.values import Fault
from town.model.service import BadRequest
from town.model.types import ChatRequest, Completion

pytestmark = [needs_git, needs_sandbox]


async def test_what_fails_is_never_approved_and_is_named_until_another_commit_mends_it(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 4\n"})
        await place.ask()
        await review(soul)
        await review(soul)
        assert place.verdicts == [("rowan", "CHANGES_REQUESTED")]
        (given,) = place.pull.reviews
        assert given.body.startswith(FOUND)
        assert "make test" in given.body
        assert "there are three beds" in given.body
        assert given.commit == place.pull.head
        await place.put("beds.py", "BEDS = 3  # and room for more\n", "more-beds")
        await review(soul)
        await review(soul)
        assert place.verdicts == [("rowan", "CHANGES_REQUESTED"), ("rowan", "APPROVED")]
        assert place.pull.reviews[1].commit == place.pull.head
        assert len(place.asked) == len(place.verdicts)
        url = f"https://github.com/{SITE.full_name}/pull/{place.number}"
        told = "\n".join(await tell(soul.app.services.database, url))
        assert "approve owner/site#2" in told
        assert "its tests pass" in told
        assert not list((soul.app.services.home.root / ".workrepos").iterdir())


@pytest.mark.slow
async def test_the_tests_of_a_review_end_once_its_pull_request_is_closed(running_town: RunningTown) -> None:
    child = f"95{os.getpid()}"
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"check.py": f"import subprocess\nsubprocess.run(['sleep', '{child}'])\n"})
        await place.ask()
        reviewing = asyncio.create_task(review(soul))
        await until(lambda: child in commands_running(), what="the tests")
        ok(await place.owner.update_issue(SITE, place.number, state="closed"))
        await reviewing
        assert child not in commands_running()
        assert (place.verdicts, place.asked) == ([], [])


@pytest.mark.slow
async def test_a_pause_ends_the_tests_of_a_review_at_once_and_the_review_is_given_later(
    running_town: RunningTown,
) -> None:
    child = f"97{os.getpid()}"
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        control, work = soul.app.services.control, soul.app.services.work
        await place.offer({"check.py": f"import subprocess\nsubprocess.run(['sleep', '{child}'])\n"})
        await place.ask()
        reviewing = asyncio.create_task(review(soul))
        await until(lambda: child in commands_running(), what="the tests")
        control.pause("dinner")
        await reviewing
        assert child not in commands_running()
        row = ReviewPlace(SITE, place.number, place.pull.head).row
        stopped = await work.get(row.kind, row.key)
        assert stopped
        assert (stopped.state, stopped.outcome, place.verdicts) == ("pending", "stopped", [])
        await place.put("check.py", f"{CHECK}# and more\n", "more-beds")
        control.resume()
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]


async def test_a_review_that_may_not_leave_now_is_given_later(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3  # and more\n"})
        await review(soul)
        await place.ask()
        place.place.faults.arm(Fault("bad_gateway", "GET /repos/owner/site", times=6))
        await review(soul)
        place.place.faults.clear()
        assert (len(place.asked), place.verdicts) == (1, [])
        CLOCK.ahead += READ_AGAIN_S
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]


async def test_no_number_of_pull_requests_by_strangers_hides_one_that_waits_for_a_review(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3  # and more\n"})
        await place.ask()
        network, repo = place.place.network, place.place.repo
        wren = network.create_account("wren")
        for number in range(MOST_PULLS):
            issue = network.open_issue(repo, wren, title="Mine", body="", is_pull=True)
            repo.pulls[issue.number] = replace(place.pull, issue=issue, head_ref=f"mine-{number}")
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]


async def test_a_review_asked_of_a_draft_is_given_once_it_is_ready(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3  # and more\n"})
        await place.ask()
        soul.app.services.control.pause("dinner")
        await review(soul)
        place.pull.draft = True
        soul.app.services.control.resume()
        await review(soul)
        assert place.verdicts == []
        place.pull.draft = False
        CLOCK.ahead += READ_AGAIN_S
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]


@pytest.mark.parametrize("is_draft", [False, True])
async def test_a_review_that_was_given_up_or_whose_draft_expired_is_given_if_it_is_still_requested(
    running_town: RunningTown, *, is_draft: bool
) -> None:
    approval = {"SOUL_APPROVAL": "drafts"} if is_draft else {}
    async with open_reviewed(running_town) as place, awake(place.home(**approval), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3  # and more\n"})
        await place.ask()
        row = ReviewPlace(SITE, place.number, place.pull.head).row
        work = soul.app.services.work
        if not is_draft:
            await work.add(replace(row, state="dropped"))
        for _ in range(2):
            await review(soul)
        assert len(place.asked) == int(is_draft)
        CLOCK.ahead += 25 * 3600
        await soul.send()
        for _ in range(2):
            await review(soul)
        assert len(place.asked) == 1 + int(is_draft)
        assert place.verdicts == ([] if is_draft else [("rowan", "APPROVED")])


async def test_a_base_that_cannot_be_compared_any_more_leads_to_another_review_and_keeps_no_other_from_one(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3  # and more\n"})
        await place.ask()
        await review(soul)
        first, work = place.pull, soul.app.services.work
        row = await work.get(REVIEW, ReviewPlace(SITE, place.number, first.head).row.key)
        assert row
        await work.note(row, base="f" * 40)
        await place.put("notes.md", "Beds.\n", "main")
        await place.offer({"rows.py": "ROWS = 3\n"}, branch="other")
        await place.ask()
        ok(await place.owner.create_comment(SITE, first.issue.number, "The newest change."))
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]
        assert len(await work.newest(REVIEW, 9, key_prefix=row.key)) == 2


async def test_a_review_is_not_given_to_who_does_not_count_any_more_when_its_turn_comes(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place:
        await place.offer({"beds.py": "BEDS = 3  # and more\n"})
        await place.ask()
        place.place.repo.collaborators.discard("kit")
        async with awake(place.home(), clock=CLOCK) as soul:
            work = soul.app.services.work
            row = ReviewPlace(SITE, place.number, place.pull.head).row
            await work.add(row)
            await review(soul)
            handled = await work.get(row.kind, row.key)
        assert handled
        assert (handled.state, handled.outcome) == ("pending", "not-counted")
        assert place.verdicts == []


@pytest.mark.slow
async def test_what_failed_before_is_told_and_does_not_keep_changes_from_being_approved(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.put("beds.py", "BEDS = 4\n")
        await place.offer({"more.py": "ROWS = 3\n"})
        await place.ask()
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]
        expected = soul.app.services.phrases.phrase("github.tests_still_failing", commands="make test")
        assert expected in place.pull.reviews[0].body


@pytest.mark.slow
async def test_what_breaks_only_together_with_what_was_merged_meanwhile_is_not_approved(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.put("soil.py", "BEDS = 3\n")
        await place.offer({"beds.py": "import soil\nBEDS = soil.BEDS\n"})
        await place.put("soil.py", "ROWS = 3\n")
        await place.ask()
        await review(soul)
        assert place.verdicts == [("rowan", "CHANGES_REQUESTED")]
        assert "no attribute" in place.pull.reviews[0].body


@pytest.mark.slow
async def test_a_commit_is_reviewed_again_once_its_base_changed_the_same_file_and_not_before(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.put("beds.py", "BEDS = 3\n\n\n\nROWS = 1\n")
        await place.offer({"beds.py": "BEDS = 3\n\n\n\nROWS = 2\n"})
        await place.ask()
        await review(soul)
        await place.put("soil.py", "SOIL = 1\n")
        await review(soul)
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]
        place.judges("REQUEST_CHANGES")
        await place.put("beds.py", "BEDS = 3  # so many\n\n\n\nROWS = 1\n")
        await review(soul)
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED"), ("rowan", "CHANGES_REQUESTED")]
        assert len(place.asked) == len(place.verdicts)


@pytest.mark.slow
async def test_words_on_a_line_stand_there_if_the_changes_show_it_and_in_the_text_if_not(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3\n# as before\n# and more\n"})
        said = [("beds.py", 2, "As `<s>` before?"), ("beds.py", 9, "Nothing there."), ("check.py", 1, "Not changed.")]
        many = [("beds.py", 1, f"Again, {number}.") for number in range(10)]
        comments = [{"path": path, "line": line, "body": body} for path, line, body in said + many]
        place.judges("APPROVE", comments=comments)
        await place.ask()
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]
        given = [(one.path, one.line, one.body) for one in place.pull.line_comments]
        assert given == [said[0], *many[:9]]
        assert [one.hunk.split("\n")[-1] for one in place.pull.line_comments[:2]] == ["+# as before", " BEDS = 3"]
        assert all(words in place.pull.reviews[0].body for _, _, words in (*said[1:], many[9]))


@pytest.mark.slow
async def test_the_reviewer_looks_at_files_that_its_programs_cannot_change_and_is_shown_what_attributes_hide(
    running_town: RunningTown,
) -> None:
    table = "".join(f"({number}, {number * number}),\n" for number in range(350))
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        spoil = "import pathlib; pathlib.Path('beds.py').write_text('spoiled')"
        await place.offer({".gitattributes": "* -diff\n", "table.py": f"SQUARES = [\n{table}]\n"})
        looks = [
            call("run", command=f'python3 -c "{spoil}" && cat beds.py'),
            call("read_file", path="beds.py"),
            call("write_file", path="beds.py", content="BEDS = 9"),
            call("search", text="(349,"),
            Completion(text="I have seen enough."),
            call("submit_review", event="PERHAPS", body="Fine."),
        ]
        place.judges("APPROVE", looks=looks)
        await place.ask()
        await review(soul)
        first, *_, last = place.asked
        assert "+(349, 121801)," in first.messages[-1].text
        answers = [one.messages[-1].text for one in place.asked[1:]]
        assert "spoiled" in answers[0]
        assert "BEDS = 3" in answers[1]
        assert "write_file" in answers[2]
        assert "table.py:351: (349, 121801)," in answers[3]
        assert len(last.messages) > len(first.messages)
        assert len(place.asked) == len(looks) + 1
        assert place.verdicts == [("rowan", "APPROVED")]


async def test_what_readers_do_not_see_is_shown_and_sent_back_whatever_is_said(running_town: RunningTown) -> None:
    hides = "NAME = 1\x0bimport os\n# -----BEGIN PRIVATE KEY-----\nos.system('cat beds.py')\n"
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3  # \u202eadmin only\n", "hides.py": hides})
        await place.ask()
        await review(soul)
        for shown in ("\u27e8U+202E RIGHT-TO-LEFT OVERRIDE\u27e9admin", "U+000B CONTROL CHARACTER\u27e9", "+os.system"):
            assert shown in place.asked[0].messages[-1].text
        assert place.verdicts == [("rowan", "CHANGES_REQUESTED")]
        assert "RIGHT-TO-LEFT OVERRIDE" in place.pull.reviews[0].body


@pytest.mark.slow
async def test_a_model_that_takes_no_long_prompt_is_shown_a_part_and_its_approval_does_not_count(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"notes.txt": "".join(f"{number} beds were counted here.\n" for number in range(3_000))})
        respond = place.place.town.mind.answer

        def forgetful(request: ChatRequest) -> Completion:
            if sum(len(one.text) for one in request.messages) > 60_000:
                raise BadRequest("the request exceeds the available context size", code="context_length_exceeded")
            return respond(request)

        place.place.town.mind.answer = forgetful
        await place.ask()
        await review(soul)
        assert "1 beds were counted here." in place.asked[-1].messages[-1].text
        assert place.verdicts == [("rowan", "COMMENTED")]


@pytest.mark.slow
async def test_a_reviewer_that_only_looks_is_given_nothing_to_look_with_in_the_end(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"notes.txt": "Three beds.\n"})
        place.judges("APPROVE", looks=[call("list_files")] * 99)
        await place.ask()
        await review(soul)
        assert len(place.asked) <= MOST_STEPS
        assert [offer.name for offer in place.asked[-1].offers] == ["submit_review"]
        assert place.verdicts == []


@pytest.mark.slow
async def test_a_pull_request_that_was_left_alone_is_reviewed_once_its_author_is_known_as_a_peer(
    running_town: RunningTown,
) -> None:
    did = running_town.account("kit")
    async with open_reviewed(running_town) as place, awake(place.home(SOUL_PEERS="kit.test"), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3  # as before\n"})
        await review(soul)
        assert place.verdicts == []
        claim, account = PeerClaim("kit.test", did, "kit"), place.place.network.find("kit")
        assert account
        registry = soul.app.services.peer_registry
        assert registry.link_bluesky_handle_to_github(claim, github_id=account.id) == "linked"
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]


@pytest.mark.slow
async def test_a_pull_request_of_a_person_is_left_alone_unless_somebody_asks(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as place, awake(place.home(), clock=CLOCK) as soul:
        await place.offer({"beds.py": "BEDS = 3  # as before\n"})
        await review(soul)
        assert place.verdicts == []
        await place.ask()
        await review(soul)
        assert place.verdicts == [("rowan", "APPROVED")]


@pytest.mark.slow
async def test_what_a_review_asks_for_is_pushed_by_the_author_and_approved_in_the_second_round(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        place.judges("APPROVE", *FIX, comments=[{"path": "beds.py", "line": 1, "body": "Why four?"}])
        async with awake(place.home(), clock=CLOCK) as rowan, awake(place.home("kit"), clock=CLOCK) as kit:
            await review(rowan)
            ok(await place.kit.create_comment(SITE, place.number, "I look. " * 1_000))
            await review(kit)
            CLOCK.ahead += READ_AGAIN_S
            place.place.faults.arm(Fault("unavailable", f"GET /repos/{SITE.full_name}/collaborators", times=20))
            await code(kit)
            place.place.faults.clear()
            CLOCK.ahead += READ_AGAIN_S
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
        assert "Count all of them." in shown
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
            assert (push.kind, row.state, row.outcome) == ("push", "pending", "held")
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


async def test_a_pull_request_of_ours_is_read_for_reviews_again_only_once_it_changed(running_town: RunningTown) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        CLOCK.ahead += 120
        async with awake(place.home("kit"), clock=CLOCK) as kit:
            await review(kit)
            (read := CountedRequests(place.place.faults, "GET /repos/*/pulls/*/reviews")).taken()
            await review(kit)
            assert read.taken() == 0
            ok(await place.owner.pulls.create_review(SITE, place.number, event="COMMENT", body="Why?"))
            await review(kit)
            assert len(await kit.app.services.work.newest(REVISION, 9)) == 1


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


@pytest.mark.slow
async def test_a_change_that_is_requested_after_an_answer_at_the_same_commit_is_made(
    running_town: RunningTown,
) -> None:
    async with open_reviewed(running_town) as place:
        await task_with_a_fault(place)
        await place.put("beds.py", "BEDS = 3  # two rows\n", BRANCH)
        place.judges("COMMENT", call("finish", summary="check.py covers it.", description="Counts the beds."))
        async with awake(place.home(), clock=CLOCK) as rowan, awake(place.home("kit"), clock=CLOCK) as kit:
            await review(rowan)
            await code(kit)
            answered_at = place.pull.head
            place.judges("REQUEST_CHANGES", *FIX)
            await review(rowan)
            await code(kit)
            rounds = await kit.app.services.work.newest(REVISION, 9)
        assert [one.outcome for one in rounds] == ["pushed"]
        assert place.pull.head != answered_at
        assert len(place.pull.issue.comments) == 2

"""Proves a document task from the claim to the pull request, in the town's GitHub with real Git."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from modules.lives.tasks.types import Deferred, Failed, Lost, Opened, Stopped
from modules.services.coding.trajectory import spent
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.types import ProposedAction, Verdict
from modules.services.plans.types import claim_key
from tests.adapters.results import ok
from tests.known_profiles import RULED_OUT
from tests.modules.lives.tasks.workplace import DOCUMENT, GARDEN, PLAN, SECRET, Workplace, open_workplace
from tests.town.github_place import needs_git
from town.github.values import Fault

pytestmark = needs_git
BRANCH = "task-1-create-scenariosmd"


@pytest.fixture
async def workplace(tmp_path: Path) -> AsyncIterator[Workplace]:
    async with open_workplace(tmp_path) as opened:
        yield opened


async def test_a_document_is_offered_as_a_pull_request_and_peers_are_asked_to_review_it(workplace: Workplace) -> None:
    workplace.peers = ("ada", "bea", "nobody-there")
    workplace.writes(DOCUMENT)
    held = await workplace.held()
    result = await workplace.work.do(held)
    await workplace.sends_all()
    (pull,) = await workplace.pulls()
    assert result == Opened(pull.html_url, "- `SCENARIOS.md`")
    assert pull.title == "task(1): Create SCENARIOS.md"
    assert (pull.head.ref, pull.base.ref) == (BRANCH, "main")
    assert f'Part of #{workplace.issue}, "Water by bed": {PLAN.goal}' in pull.body
    assert "- `SCENARIOS.md`" in pull.body
    assert [one.login for one in pull.requested_reviewers] == ["bea"]
    assert await workplace.text("SCENARIOS.md", BRANCH) == DOCUMENT
    assert await workplace.work.do(held) == result
    assert len(await workplace.pulls()) == 1
    (request,) = workplace.model.requests
    assert "tools" not in request
    *_, asked = request["messages"]
    assert RULED_OUT in request["messages"][0]["content"]
    assert asked["content"].count("<reading-") == 3, "the plan is told as data"
    assert "- README.md" in asked["content"]
    tokens, _ = await workplace.database.read(
        lambda connection: spent(connection, claim_key(GARDEN.owner, GARDEN.name, workplace.issue, 1))
    )
    assert tokens > 0


@pytest.mark.slow
async def test_a_document_that_stands_is_written_anew(workplace: Workplace) -> None:
    old = "# Old\n\n" + "Beds. " * 1_900
    await workplace.put("SCENARIOS.md", old)
    workplace.writes(DOCUMENT)
    assert isinstance(await workplace.work.do(await workplace.held()), Opened)
    (asked,) = workplace.model.requests
    assert "# Old" in asked["messages"][-1]["content"]
    assert asked["max_tokens"] > 5_000
    assert "1901 words" in asked["messages"][0]["content"]
    assert await workplace.text("SCENARIOS.md", BRANCH) == DOCUMENT
    assert old.startswith(await workplace.text("SCENARIOS.md", "main"))


async def test_what_cannot_be_offered_is_sent_back_once_and_then_given_up(workplace: Workplace) -> None:
    workplace.writes(f"{DOCUMENT}\nThe key is {SECRET}.", "No.")
    assert await workplace.work.do(await workplace.held()) == Failed("document_unfit", "SCENARIOS.md: Empty")
    assert SECRET not in workplace.model.requests[1]["messages"][-1]["content"]
    assert await workplace.pulls() == ()


async def test_a_task_is_put_off_where_github_cannot_answer_just_now(workplace: Workplace) -> None:
    held = await workplace.held()
    workplace.place.faults.arm(Fault("secondary_limit", "GET /repos/ada/garden/branches", seconds=3600))
    assert isinstance(await workplace.work.do(held), Deferred)
    assert workplace.model.requests == []


async def test_a_task_is_put_off_where_its_pull_request_may_be_opened_only_later(workplace: Workplace) -> None:
    def full(_: sqlite3.Connection, action: ProposedAction, __: datetime, /) -> list[Verdict]:
        is_pull = action.kind == "pull_request"
        return [Verdict("full", "block", "enough", instead="later", retry_in_s=600)] if is_pull else []

    workplace.outbox.rules = (*workplace.outbox.rules, full)
    workplace.writes(DOCUMENT)
    put_off = await workplace.work.do(await workplace.held())
    assert isinstance(put_off, Deferred)
    assert put_off.retry_after == pytest.approx(600, abs=60)


async def test_a_document_that_is_too_long_to_be_written_anew_blocks_the_task(workplace: Workplace) -> None:
    await workplace.put("SCENARIOS.md", "word " * 4_000)
    assert isinstance(await workplace.work.do(await workplace.held()), Failed)
    assert workplace.model.requests == []


_SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("ref", "contents")]


@pytest.mark.parametrize("kind", [*_SLOW, "pull_request"])
async def test_a_life_that_ended_before_an_act_goes_on_there(workplace: Workplace, kind: IntentKind) -> None:
    await workplace.lives_until(kind)
    await workplace.restart()
    workplace.writes(*[DOCUMENT] * (kind == "ref"))
    assert isinstance(await workplace.work.do(await workplace.held()), Opened)
    assert len(await workplace.pulls()) == 1
    assert len(workplace.model.requests) == 1


async def test_what_was_proposed_under_a_claim_that_is_over_never_leaves(workplace: Workplace) -> None:
    await workplace.lives_until("pull_request")
    await workplace.restart()
    await workplace.lease(ends_in_s=-1)
    await workplace.outbox.deliver_due()
    assert await workplace.pulls() == ()
    await workplace.lease(ends_in_s=60)
    await workplace.outbox.deliver_due()
    assert len(await workplace.pulls()) == 1


@pytest.mark.slow
async def test_a_later_claim_uses_the_branch_and_the_pull_request_of_an_earlier_one(workplace: Workplace) -> None:
    workplace.writes("No.", "No.", DOCUMENT)
    assert isinstance(await workplace.work.do(await workplace.held()), Failed)
    assert await workplace.branches() == ["main", BRANCH]
    await workplace.lease(epoch=2)
    first = await workplace.work.do(await workplace.held(epoch=2))
    assert isinstance(first, Opened)
    assert await workplace.branches() == ["main", BRANCH]
    assert await workplace.work.do(await workplace.held(epoch=3)) == first


@pytest.mark.slow
async def test_a_branch_of_somebody_else_is_left_alone(workplace: Workplace) -> None:
    head = ok(await workplace.github.refs.get(GARDEN, "main"))
    ok(await workplace.client("bea").refs.create(GARDEN, BRANCH, head.sha))
    workplace.writes(DOCUMENT)
    assert isinstance(await workplace.work.do(await workplace.held()), Opened)
    assert ok(await workplace.github.refs.get(GARDEN, BRANCH)).sha == head.sha
    (pull,) = await workplace.pulls()
    assert pull.head.ref == f"{BRANCH}-e1"


async def test_a_pull_request_of_somebody_else_ends_the_work(workplace: Workplace) -> None:
    bea = workplace.client("bea")
    head = ok(await bea.refs.get(GARDEN, "main"))
    ok(await bea.refs.create(GARDEN, BRANCH, head.sha))
    ok(await bea.contents.write(GARDEN, "SCENARIOS.md", "# Mine\n", message="Mine", branch=BRANCH))
    body = f"Part of #{workplace.issue}"
    ok(await bea.pulls.create(GARDEN, title="task(1): Mine", body=body, head=BRANCH, base="main"))
    assert await workplace.work.do(await workplace.held()) == Lost()
    assert workplace.model.requests == []


@pytest.mark.slow
async def test_a_document_of_a_soul_that_is_gone_is_gone_on_with_and_its_author_named(workplace: Workplace) -> None:
    bea = workplace.client("bea")
    head = ok(await bea.refs.get(GARDEN, "main"))
    ok(await bea.refs.create(GARDEN, BRANCH, head.sha))
    mine = DOCUMENT.replace("# Scenarios", "# Mine")
    ok(await bea.contents.write(GARDEN, "SCENARIOS.md", mine, message="Mine", branch=BRANCH))
    body = f"Part of #{workplace.issue}"
    left = ok(await bea.pulls.create(GARDEN, title="task(1): Mine", body=body, head=BRANCH, base="main"))
    workplace.writes(mine)
    assert isinstance(await workplace.work.do(replace(await workplace.held(), left=left)), Opened)
    await workplace.sends_all()
    assert "# Mine" in workplace.model.requests[0]["messages"][-1]["content"]
    new, old = await workplace.pulls()
    assert (old.number, old.state, new.head.ref) == (left.number, "closed", f"{BRANCH}-e1")
    assert f"work of bea in {left.html_url}" in new.body
    commit = ok(await bea.refs.commit(GARDEN, new.head.sha))
    assert commit.message.splitlines()[-1].startswith(f"Co-authored-by: bea <{left.author_id}+bea@")
    assert await workplace.text("SCENARIOS.md", BRANCH) == mine


@pytest.mark.slow
async def test_two_documents_of_one_task_stand_in_one_pull_request(workplace: Workplace) -> None:
    workplace.writes(DOCUMENT, DOCUMENT.replace("# Scenarios", "# Guide"))
    task = replace(PLAN.tasks[0], files=("SCENARIOS.md", "docs/guide.md"))
    assert isinstance(await workplace.work.do(await workplace.held(task)), Opened)
    (pull,) = await workplace.pulls()
    files = ok(await workplace.github.pulls.files(GARDEN, pull.number))
    assert {one.path for one in files} == {"SCENARIOS.md", "docs/guide.md"}


async def test_a_document_that_was_written_before_the_other_failed_is_kept_as_it_is(workplace: Workplace) -> None:
    task = replace(PLAN.tasks[0], files=("SCENARIOS.md", "docs/guide.md"))
    workplace.writes(DOCUMENT, "No.", "No.", DOCUMENT.replace("# Scenarios", "# Guide"))
    assert isinstance(await workplace.work.do(await workplace.held(task)), Failed)
    await workplace.lease(epoch=2)
    assert isinstance(await workplace.work.do(await workplace.held(task, epoch=2)), Opened)
    assert len(workplace.model.requests) == 4


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Workplace]:
    """Open a workplace whose garden has no commit."""
    async with open_workplace(tmp_path, has_commit=False) as opened:
        yield opened


FIRST_PAGE = "# garden\n\nWhat grows\n"


@pytest.mark.slow
async def test_a_repository_without_a_commit_gets_its_first_so_that_a_document_can_be_offered(bare: Workplace) -> None:
    bare.writes(DOCUMENT)
    held = await bare.held()
    result = await bare.work.do(held)
    (pull,) = await bare.pulls()
    assert result == Opened(pull.html_url, "- `SCENARIOS.md`")
    assert await bare.text("README.md", "main") == FIRST_PAGE
    assert [one.path for one in ok(await bare.github.pulls.files(GARDEN, pull.number))] == ["SCENARIOS.md"]
    clone = bare.folder / "clone"
    await bare.place.git("clone", "--quiet", bare.place.clone_url("ada"), str(clone))
    assert (await bare.place.git("log", "--format=%s", at=clone)).splitlines() == ["task(1): Create SCENARIOS.md"]
    assert (await bare.place.git("log", "--format=%s", f"origin/{BRANCH}", at=clone)).count("\n") == 3
    assert await bare.work.do(held) == result


@pytest.mark.slow
async def test_a_life_that_ended_before_the_first_commit_makes_it_once(bare: Workplace) -> None:
    await bare.lives_until("contents")
    await bare.restart()
    assert isinstance(await bare.work.do(await bare.held()), Opened)
    assert len((await bare.place.ask("GET", "/repos/ada/garden/commits")).json()) == 1


@pytest.mark.slow
async def test_a_first_commit_that_somebody_else_made_meanwhile_is_built_upon(bare: Workplace) -> None:
    await bare.lives_until("contents")
    await bare.put("README.md", "Beans.\n")
    await bare.restart()
    assert isinstance(await bare.work.do(await bare.held()), Opened)
    assert await bare.text("README.md", "main") == "Beans.\n"


async def test_what_waits_for_the_owner_keeps_the_task(workplace: Workplace) -> None:
    workplace.approval = "drafts"
    await workplace.restart()
    result = await workplace.work.do(await workplace.held())
    assert isinstance(result, Stopped)
    assert await workplace.branches() == ["main"]

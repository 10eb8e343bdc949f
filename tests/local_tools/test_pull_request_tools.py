"""Tests of what the owner has a SOUL do about pull requests, over the town's GitHub with real Git."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from adapters.github.client import GitHub
from adapters.github.types import PullBranch, PullRequest, Review, ReviewState
from modules.lives.tasks.merge.policy import merge_problem
from modules.services.outbox.github_bodies import ReviewBody
from modules.services.outbox.types import ProposedAction
from tests.adapters.results import ok
from tests.local_tools.github_working import MIXED, OWNER, SITE, Working, read
from tests.loopback import github_at
from tests.town.github_place import needs_git
from tests.trusting import account
from town.github.values import StoredPull, StoredRepo

HEAD = "a" * 40
PULL = PullRequest(
    number=3,
    title="A gate",
    body="",
    state="open",
    author="rowan",
    head=PullBranch("gate", HEAD, SITE.full_name),
    base=PullBranch("main", "b" * 40, SITE.full_name),
    html_url="",
    created_at="",
    updated_at="",
    mergeable=True,
    author_id=account("rowan").id,
)
PUSHERS = tuple(map(account, ("rowan", "kit", "ada")))


def review(author: str, state: ReviewState, commit: str = HEAD) -> Review:
    return Review(1, author, "", state, "", commit, "", account(author).id)


@pytest.mark.parametrize(
    ("pull", "reviews", "problem"),
    [
        (PULL, [review("kit", "APPROVED")], ""),
        (PULL, [review("kit", "CHANGES_REQUESTED"), review("KIT", "APPROVED"), review("ada", "COMMENTED")], ""),
        (PULL, [], "No Approval"),
        (PULL, [review("kit", "COMMENTED")], "No Approval"),
        (PULL, [review("kit", "APPROVED"), review("kit", "DISMISSED")], "No Approval"),
        (PULL, [review("kit", "APPROVED", "c" * 40)], "No Approval"),
        (PULL, [review("rowan", "APPROVED")], "No Approval"),
        (PULL, [review("stranger", "APPROVED")], "No Approval"),
        (PULL, [review("kit", "APPROVED"), review("ada", "CHANGES_REQUESTED")], "Changes Requested"),
        (PULL, [review("kit", "APPROVED"), review("stranger", "CHANGES_REQUESTED")], ""),
        (replace(PULL, requested_reviewers=(account("ada"),)), [review("kit", "APPROVED")], "Review Awaited"),
        (replace(PULL, mergeable=None), [review("kit", "APPROVED")], "Not Mergeable"),
        (replace(PULL, mergeable=False), [review("kit", "APPROVED")], "Not Mergeable"),
        (replace(PULL, mergeable_state="unstable"), [review("kit", "APPROVED")], "Not Mergeable"),
        (replace(PULL, draft=True), [review("kit", "APPROVED")], "Draft"),
        (replace(PULL, state="closed"), [review("kit", "APPROVED")], "Closed"),
    ],
)
def test_only_what_is_approved_as_it_stands_is_merged(pull: PullRequest, reviews: list[Review], problem: str) -> None:
    assert merge_problem(pull, reviews, PUSHERS) == problem


@dataclass
class Site:
    """A workspace with a branch `gate`, which changes a file, and `kit`, who may push there."""

    working: Working
    repo: StoredRepo
    kit: GitHub

    @property
    def pull(self) -> StoredPull:
        """The one pull request."""
        (pull,) = self.repo.pulls.values()
        return pull


@pytest.fixture
async def site(working: Working) -> AsyncIterator[Site]:
    working.github.network.create_account("kit", token="t-kit")
    repo = working.watched_repo()
    repo.collaborators.add("kit")
    services = working.life.app.services
    first = ok(await services.github.contents.write(SITE, "README.md", "# It\n", message="Begin"))
    ok(await services.github.refs.create(SITE, "gate", first.commit_sha))
    ok(await services.github.contents.write(SITE, "gate.md", "It squeaks.\n", message="Tell", branch="gate"))
    services.peer_registry.register_peer_by_github_username("kit", "plan", "test")
    kit = github_at(working.github.url, "kit", services.clock)
    yield Site(working, repo, kit)
    await kit.aclose()


@needs_git
async def test_what_is_opened_is_approved_by_another_and_merged_once(site: Site) -> None:
    working = site.working
    opened = await working.done("github_create_pr", title="A gate", head="gate", body="It squeaks, says @kit.")
    assert opened["number"] == site.pull.number
    assert (site.pull.head_ref, site.pull.base_ref, site.pull.draft) == ("gate", "main", False)
    assert await working.done("github_create_pr", title="A gate", head="gate") == opened
    early = await working.use("github_merge_pr", pull_number=site.pull.number)
    assert (early.is_error, "has approved it" in early.content) == (True, True)
    ok(await site.kit.pulls.create_review(SITE, site.pull.number, event="APPROVE"))
    merged = await working.done("github_merge_pr", pull_number=site.pull.number)
    assert site.pull.merged_at is not None
    assert merged["success"]
    services = working.life.app.services
    await services.outbox.deliver_due()
    assert [one.name for one in ok(await services.github.refs.branches(SITE))] == ["main"]
    again = await working.use("github_merge_pr", pull_number=site.pull.number)
    assert (again.is_error, "already" in again.content) == (True, True)


@needs_git
async def test_once_a_pull_request_is_closed_another_request_opens_one_of_its_branch(site: Site) -> None:
    working = site.working
    first = await working.done("github_create_pr", title="A gate", head="gate", body="It squeaks.")
    ok(await working.life.app.services.github.update_issue(SITE, site.pull.number, state="closed"))
    assert await working.done("github_create_pr", title="A gate!", head="gate", body="Oiled.") == first
    later = await working.use(
        "github_create_pr", replace(OWNER, cause_id="owner:2"), title="A gate", head="gate", body="Oiled."
    )
    assert (later.is_error, len(site.repo.pulls)) == (False, 2), later.content


@needs_git
async def test_the_work_of_others_is_reviewed_and_never_merged_and_ones_own_never_reviewed(site: Site) -> None:
    working = site.working
    ok(await site.kit.pulls.create(SITE, title="Theirs", body="", head="gate", base="main"))
    number = site.pull.number
    assert (await working.done("github_create_pr_comment", pull_number=number, body="Who oils it?"))["success"]
    assert (await working.use("github_review_pr", pull_number=number, event="REQUEST_CHANGES")).is_error
    given = ReviewBody(repo=SITE.full_name, number=number, event="APPROVE", commit_id=site.pull.head)
    outbox = working.life.app.services.outbox
    turns = await outbox.submit(ProposedAction(given, part="review", by_owner=True, is_given=True))
    assert await outbox.settled(turns.intent.id)
    for said in ("It holds.", "Your owner agrees."):
        again = await working.use("github_review_pr", pull_number=number, event="APPROVE", body=said)
        assert (again.is_error, "already" in again.content) == (False, True)
    for said in ("The hinge is rusty.", "The latch sticks."):
        await working.done("github_review_pr", pull_number=number, event="COMMENT", body=said)
    assert [(one.author.login, one.state, one.commit) for one in site.pull.reviews] == [
        ("rowan", state, site.pull.head) for state in ("APPROVED", "COMMENTED", "COMMENTED")
    ]
    assert [one.body.splitlines()[0] for one in site.pull.issue.comments] == ["Who oils it?"]
    theirs = await working.use("github_merge_pr", pull_number=number)
    assert (theirs.is_error, site.pull.merged_at) == (True, None)
    ok(await site.kit.update_issue(SITE, number, state="closed"))
    assert (await working.use("github_review_pr", pull_number=number, event="APPROVE")).is_error
    for name in ("github_create_pr_comment", "github_review_pr", "github_merge_pr"):
        assert (await working.use(name, pull_number=99, body="x", event="COMMENT")).is_error


@needs_git
async def test_among_others_words_a_review_waits_for_the_owner(site: Site) -> None:
    ok(await site.kit.pulls.create(SITE, title="Theirs", body="", head="gate", base="main"))
    held = await site.working.use("github_review_pr", MIXED, pull_number=site.pull.number, event="APPROVE")
    assert "until your owner agrees" in held.content
    assert site.pull.reviews == []


@needs_git
async def test_the_owner_has_it_read_what_a_pull_request_changes_and_what_was_said_of_it(site: Site) -> None:
    body, long = "It squeaks.", "a" * 4_000
    ok(await site.kit.pulls.create(SITE, title="Theirs", body=body, head="gate", base="main"))
    number = site.pull.number
    ok(await site.kit.create_comment(SITE, number, "It waits for oil."))
    ok(await site.working.life.app.services.github.pulls.create_review(SITE, number, event="COMMENT", body=long))
    shown = await site.working.use("github_list_pull_requests", pull_number=number)
    told = read(shown)
    assert (told["title"], told["body"]) == ("Theirs", body)
    assert "gate.md (added, +1 -0)" in told["changes"]["content"]
    assert "+It squeaks." in told["changes"]["content"]
    comment, review = told["said"]
    assert (comment["author"], comment["text"]) == ("kit", "It waits for oil.")
    assert (review["author"], review["verdict"], len(review["text"]) < 2_100) == ("rowan", "COMMENTED", True)
    for _ in range(20):
        ok(await site.kit.create_comment(SITE, number, long))
    many = read(await site.working.use("github_list_pull_requests", pull_number=number))
    assert len(many["said"]) + many["older_ones_not_shown"] == 22


@needs_git
async def test_the_owner_has_it_comment_on_an_issue_once(site: Site) -> None:
    working, kit = site.working, site.working.github.network.find("kit")
    assert kit
    issue = working.github.network.open_issue(site.repo, kit, title="It squeaks", body="Who oils it?")
    address = f"https://github.com/{SITE.full_name}/issues/{issue.number}"
    ways = (
        {"url": address},
        {"owner": SITE.owner, "repo": SITE.name, "number": issue.number},
        {"number": issue.number},
    )
    for way in ways:
        told = await working.done("github_comment", body="I do.", **way)
        assert told["url"].endswith(f"#issuecomment-{issue.comments[0].id}")
    assert [one.body.splitlines()[0] for one in issue.comments] == ["I do."]
    held = await working.use("github_comment", MIXED, url=address, body="Or you.")
    assert "until your owner agrees" in held.content
    assert len(issue.comments) == 1
    for way in ({}, {"url": f"https://github.com/{SITE.full_name}"}, {"url": address, "number": issue.number + 1}):
        assert (await working.use("github_comment", body="I do.", **way)).is_error, way


async def test_where_the_owner_rejected_an_act_another_one_of_their_turn_waits_for_them(working: Working) -> None:
    network, outbox = working.github.network, working.life.app.services.outbox
    kit = network.find("kit") or network.create_account("kit", token="t-kit")
    issue = network.open_issue(working.github.repo, kit, title="It squeaks", body="Who oils it?")
    address = f"https://github.com/{working.github.repo.full_name}/issues/{issue.number}"
    for said in ("I do.", "Or you.", "Or nobody."):
        held = await working.use("github_comment", MIXED, url=address, body=said)
        (draft,) = await outbox.held()
        assert draft.error
        assert draft.error in held.content
        await outbox.reject(draft.id, reason="not there")
    assert issue.comments == []

"""Each kind of act on GitHub, on the town with real Git: done once, whatever is lost on the way, and found again."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.github.client import GitHub
from adapters.github.types import Repo
from common.clock import SystemClock, iso, parse_iso
from modules.services.outbox.bodies import IntentKind, KnownBody, LikeBody, read_body
from modules.services.outbox.github_bodies import CREATING, GITHUB_KINDS, body_digest
from modules.services.outbox.senders.github import github_senders
from modules.services.outbox.types import Intent, Sender
from modules.services.plans.types import Task
from tests.adapters.results import err, ok
from tests.loopback import github_at
from tests.town.github_place import GitHubPlace, needs_git, open_github_place
from tests.trusting import identity_of
from town.github.values import Fault, FaultKind

pytestmark = needs_git
REPO = Repo("ada", "garden")
HERE: dict[str, Any] = {"repo": "ada/garden"}


class Garden:
    """Ada's garden with a README, a branch of hers with one more file, and one issue; bea may push there too."""

    def __init__(self, place: GitHubPlace, stack: AsyncExitStack) -> None:
        self.place = place
        self._stack = stack
        self.main = self.branch = ""
        self.pull = 0

    async def lay_out(self) -> None:
        self.main = await self.place.commit("README.md", "Hello.\n")
        await self.place.branch("soul/1-beans", self.main)
        self.branch = await self.place.commit("beans.md", "Beans.\n", branch="soul/1-beans")
        ada = self.client("ada")
        ok(await ada.create_issue(REPO, "Beans", "Near the wall.\n- [ ] sow", labels=["plan"]))

    def client(self, login: str) -> GitHub:
        github = github_at(self.place.url, login, SystemClock())
        self._stack.push_async_callback(github.aclose)
        return github

    def sender(self, kind: IntentKind, login: str = "ada") -> Sender:
        return github_senders(identity_of(self.client(login), SystemClock()))[kind]

    async def opened(self) -> int:
        """Open a pull request from the branch, and return its number."""
        made = await self.client("ada").pulls.create(REPO, title="Beans", body="", head="soul/1-beans", base="main")
        return ok(made).number


@pytest.fixture
async def garden(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Garden]:
    async with open_github_place(tmp_path_factory.mktemp("place")) as place, AsyncExitStack() as stack:
        garden = Garden(place, stack)
        await garden.lay_out()
        yield garden


def intent_of(kind: IntentKind, body: KnownBody) -> Intent:
    now = iso(SystemClock().now())
    return Intent(
        id="0123456789abcdef",
        kind=kind,
        target="",
        body=body,
        body_hash="",
        dedup_key="",
        rkey="3k",
        cause_id=None,
        created_at=now,
        expires_at=now,
        state="sending",
    )


def act(kind: IntentKind, **fields: Any) -> Intent:
    body = read_body(kind, {**HERE, **fields})
    assert not hasattr(body, "fields"), body
    return intent_of(kind, body)


Count = Callable[[Garden], Awaitable[int]]


async def _issues(garden: Garden) -> int:
    return sum(not one.is_pull for one in garden.place.repo.issues.values() if one)


async def _events(garden: Garden) -> int:
    return len(ok(await garden.client("ada").pulls.reviews(REPO, garden.pull)))


async def _comments(garden: Garden) -> int:
    return len(garden.place.network.issue(garden.place.repo, 1).comments)


async def _pulls(garden: Garden) -> int:
    return len(ok(await garden.client("ada").pulls.list(REPO, state="all")))


async def _commits(garden: Garden) -> int:
    answer = await garden.place.ask("GET", "/repos/ada/garden/commits?sha=main")
    return len(answer.json())


async def _branches(garden: Garden) -> int:
    return len(ok(await garden.client("ada").refs.branches(REPO)))


CASES: dict[str, tuple[IntentKind, Callable[[Garden], dict[str, Any]], Count, int]] = {
    "issue": ("issue", lambda _: {"title": "Peas", "body": "Soon."}, _issues, 1),
    "comment": ("issue_comment", lambda _: {"number": 1, "body": "Sown."}, _comments, 1),
    "pull request": (
        "pull_request",
        lambda _: {"title": "Beans", "body": "Closes #1", "head": "soul/1-beans", "base": "main"},
        _pulls,
        1,
    ),
    "review": (
        "review",
        lambda g: {"number": g.pull, "event": "COMMENT", "body": "Fine.", "commit_id": g.branch},
        _events,
        1,
    ),
    "merge": ("merge", lambda g: {"number": g.pull, "head_sha": g.branch, "title": "Beans (#2)"}, _commits, 1),
    "no branch": ("ref", lambda g: {"action": "delete", "branch": "soul/1-beans", "sha": g.branch}, _branches, -1),
    "file": ("contents", lambda _: {"path": "docs/peas.md", "content": "Peas.\n", "message": "Add peas"}, _commits, 1),
}


@pytest.mark.parametrize("fault", ["lost_answer", "lost_request"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
async def test_what_got_no_answer_is_found_if_it_arrived_and_done_once_if_not(
    garden: Garden, case: str, fault: FaultKind
) -> None:
    kind, fields, count, change = CASES[case]
    if kind in {"review", "merge"}:
        garden.pull = await garden.opened()
    login = "bea" if kind == "review" else "ada"
    before, intent = await count(garden), act(kind, **fields(garden))
    garden.place.faults.arm(Fault(fault, request=_WRITES[case]))
    lost = err(await garden.sender(kind, login).send(intent))
    assert lost.kind == "unknown_outcome"
    sender = garden.sender(kind, login)
    found = ok(await sender.find(intent))
    assert (found is not None) == (fault == "lost_answer")
    sent = ok(await sender.send(intent))
    assert await count(garden) == before + change
    assert found in {None, sent}
    assert sent.uri.startswith("http")


_WRITES = {
    "issue": "POST */issues",
    "comment": "POST */comments",
    "pull request": "POST */pulls",
    "review": "POST */reviews",
    "merge": "PUT */merge",
    "no branch": "DELETE */git/refs/*",
    "file": "PUT */contents/*",
}


async def test_an_issue_is_changed_only_upon_the_body_that_was_read(garden: Garden) -> None:
    sender, issue = garden.sender("issue_update"), garden.place.network.issue(garden.place.repo, 1)
    read = body_digest("Near the wall.\r\n- [ ] sow\r\n")
    checked = act("issue_update", number=1, body="Near the wall.\n- [x] sow", over=read)
    sent = ok(await sender.send(checked))
    assert (sent.kind, sent.id, issue.body) == ("issue", "1", "Near the wall.\n- [x] sow")
    assert ok(await sender.find(checked)) == ok(await sender.send(checked)) == sent
    issue.body = "A person wrote this."
    assert ok(await sender.find(checked)) is None
    assert err(await sender.send(checked)).kind == "invalid"
    assert issue.body == "A person wrote this."


async def test_tasks_are_added_once_to_the_plan_that_stands_there_by_then(garden: Garden) -> None:
    sender, issue = garden.sender("issue_update"), garden.place.network.issue(garden.place.repo, 1)
    more = act("issue_update", number=1, tasks=[asdict(Task(1, "Sow beans")), asdict(Task(2, "Water them"))])
    issue.body = "# [PLAN] x\n\n## Tasks\n\n### Task 4: Dig\n**Status:** completed\n\n### Task 5: sow beans.\n\n---\n"
    before = issue.body
    assert ok(await sender.find(more)) is None
    sent = ok(await sender.send(more))
    assert issue.body.startswith(f"{before}\n### Task 6: Water them\n")
    issue.body = after = issue.body.replace("### Task 4: Dig", "### Task 4: Dig deeper")
    assert ok(await sender.find(more)) == ok(await sender.send(more)) == sent
    assert issue.body == after
    issue.body, issue.state = before, "closed"
    assert err(await sender.send(more)).kind == "invalid"
    assert issue.body == before


async def test_all_that_an_update_names_is_set_and_the_rest_stays(garden: Garden) -> None:
    sender, issue = garden.sender("issue_update"), garden.place.network.issue(garden.place.repo, 1)
    closes = act("issue_update", number=1, title=" Bush  beans ", state="closed", labels=["plan", "finished"])
    assert ok(await sender.find(closes)) is None
    ok(await sender.send(closes))
    assert ok(await sender.find(closes)) is not None
    assert (issue.title, issue.body, issue.state) == ("Bush beans", "Near the wall.\n- [ ] sow", "closed")
    assert sorted(label.name for label in issue.labels) == ["finished", "plan"]
    assert [account.login for account in issue.assignees] == ["ada"]


async def test_labels_and_assignees_come_and_go_and_those_of_others_stay(garden: Garden) -> None:
    issue = garden.place.network.issue(garden.place.repo, 1)
    garden.place.network.change_issue(garden.place.repo, issue, garden.place.repo.owner, labels=["plan", "by hand"])
    labels = garden.sender("label")
    swap = act("label", number=1, add=["plan:active"], remove=["PLAN"])
    assert ok(await labels.find(swap)) is None
    ok(await labels.send(swap))
    assert sorted(label.name for label in issue.labels) == ["by hand", "plan:active"]
    assert ok(await labels.find(swap)) is not None
    assignees = garden.sender("assignee")
    hands_over = act("assignee", number=1, add=["bea"], remove="ada")
    ok(await assignees.send(hands_over))
    assert [account.login for account in issue.assignees] == ["bea"]
    assert ok(await assignees.find(hands_over)) is not None
    assert err(await assignees.send(act("assignee", number=1, add=["cy"]))).kind == "invalid"
    ok(await assignees.send(act("assignee", number=1, remove="bea")))
    assert [account.login for account in issue.assignees] == ["bea"]


async def test_a_star_and_a_follow_given_twice_are_one(garden: Garden) -> None:
    network = garden.place.network
    likings: tuple[tuple[IntentKind, str], ...] = (("star", "ada/garden"), ("account_follow", "cy/cy"))
    for kind, repo in likings:
        sender, liking = garden.sender(kind), act(kind, repo=repo)
        for _ in range(2):
            ok(await sender.send(liking))
        assert ok(await sender.find(liking)) is None
    assert garden.place.repo.stars == {"ada"}
    assert network.state.follows == {("ada", "cy")}


async def test_a_branch_that_has_moved_on_is_not_deleted(garden: Garden) -> None:
    old = act("ref", action="delete", branch="soul/1-beans", sha=garden.main)
    assert err(await garden.sender("ref").send(old)).kind == "invalid"
    ok(await garden.sender("ref").send(act("ref", action="delete", branch="soul/1-beans")))
    assert ok(await garden.sender("ref").find(old)) is not None


async def test_a_file_is_written_where_there_is_none_and_over_no_other(garden: Garden) -> None:
    sender, files = garden.sender("contents"), garden.client("ada").contents
    new = act("contents", path="docs/peas.md", content="Peas.\n", message="Add peas")
    assert ok(await sender.find(new)) is None
    sent = ok(await sender.send(new))
    assert (sent.kind, sent.id) == ("file", ok(await files.read(REPO, "docs/peas.md")).sha)
    assert ok(await sender.find(new)) == ok(await sender.send(new)) == sent
    other = act("contents", path="README.md", content="Hi.\n", message="m")
    assert err(await sender.send(other)).kind == "invalid"
    assert ok(await sender.find(other)) is None


@pytest.mark.parametrize(
    ("kind", "stored", "told"),
    [
        (
            "ref",
            {"action": "create", "branch": "soul/2-peas", "sha": "a" * 40, "own_commit": True},
            "create the branch soul/2-peas of ada/garden",
        ),
        (
            "contents",
            {"path": "peas.md", "content": "P", "message": "Add peas", "branch": "soul/1-beans"},
            "peas.md in ada/garden: Add peas",
        ),
        (
            "contents",
            {"path": "README.md", "content": "P", "message": "Greet", "sha": "a" * 40},
            "README.md in ada/garden: Greet",
        ),
    ],
)
async def test_what_only_earlier_versions_did_is_told_and_not_sent(
    garden: Garden, kind: IntentKind, stored: dict[str, Any], told: str
) -> None:
    old, sender = act(kind, **stored), garden.sender(kind)
    before = await _branches(garden), await _commits(garden)
    assert old.deed == told
    assert err(await sender.send(old)).kind == err(await sender.find(old)).kind == "invalid"
    assert (await _branches(garden), await _commits(garden)) == before


async def test_a_review_says_its_words_once_and_nobody_approves_their_own(garden: Garden) -> None:
    garden.pull = await garden.opened()
    approval = act("review", number=garden.pull, event="APPROVE", commit_id=garden.branch)
    assert err(await garden.sender("review").send(approval)).kind == "invalid"
    sender = garden.sender("review", "bea")
    for one in (approval, replace(approval, id="fedcba9876543210")):
        ok(await sender.send(one))
    found = ok(await garden.client("ada").pulls.reviews(REPO, garden.pull))
    assert [(one.author, one.state, one.commit_id) for one in found] == [("bea", "APPROVED", garden.branch)]
    stored = garden.place.repo.pulls[garden.pull].reviews
    stored[:0] = [replace(stored[0], id=number, state="COMMENTED") for number in range(1, 102)]
    newest = ok(await garden.client("ada").pulls.reviews(REPO, garden.pull, limit=2))
    assert [(one.id, one.state) for one in newest] == [(101, "COMMENTED"), (found[0].id, "APPROVED")]
    asked = act("review_request", number=garden.pull, reviewers=["bea"])
    ok(await garden.sender("review_request").send(asked))
    assert ok(await garden.sender("review_request").find(asked)) is not None


async def test_a_merge_waits_for_nobody_who_moved_on(garden: Garden) -> None:
    number = await garden.opened()
    stale = act("merge", number=number, head_sha=garden.main)
    assert err(await garden.sender("merge").send(stale)).kind == "invalid"
    ok(await garden.client("ada").update_issue(REPO, number, state="closed"))
    closed = act("merge", number=number, head_sha=garden.branch)
    assert err(await garden.sender("merge").send(closed)).kind == "invalid"
    assert ok(await garden.sender("merge").find(closed)) is None


async def test_a_merge_is_refused_over_changes_that_were_asked_for_since_it_was_proposed(garden: Garden) -> None:
    garden.pull = await garden.opened()
    merge = act("merge", number=garden.pull, head_sha=garden.branch)
    ask = act("review", number=garden.pull, event="REQUEST_CHANGES", body="No.", commit_id=garden.branch)
    ok(await garden.sender("review", "bea").send(ask))
    (asked,) = ok(await garden.client("ada").pulls.reviews(REPO, garden.pull))
    late = iso(parse_iso(asked.submitted_at) + timedelta(minutes=1))
    assert "@bea" in err(await garden.sender("merge").send(replace(merge, created_at=late))).error
    seen = act("merge", number=garden.pull, head_sha=garden.branch, last_review=asked.id)
    ok(await garden.sender("merge").send(replace(seen, created_at=asked.submitted_at)))


async def test_a_review_is_refused_once_the_pull_request_is_closed(garden: Garden) -> None:
    garden.pull = await garden.opened()
    ok(await garden.client("ada").update_issue(REPO, garden.pull, state="closed"))
    review = act("review", number=garden.pull, event="COMMENT", body="Fine.", commit_id=garden.branch)
    assert err(await garden.sender("review", "bea").send(review)).kind == "invalid"


async def test_an_issue_is_closed_only_if_nobody_else_commented_after_what_was_read(garden: Garden) -> None:
    close, ada = act("issue_update", number=1, state="closed", last_comment=0), garden.client("ada")
    ok(await ada.create_comment(REPO, 1, "I leave."))
    asked = ok(await garden.client("bea").create_comment(REPO, 1, "One more question."))
    assert err(await garden.sender("issue_update").send(close)).kind == "invalid"
    seen = act("issue_update", number=1, state="closed", last_comment=asked.id)
    ok(await garden.sender("issue_update").send(seen))
    assert ok(await ada.get_issue(REPO, 1)).state == "closed"


async def test_what_the_repository_does_not_let_be_merged_in_one_way_is_merged_in_another(garden: Garden) -> None:
    number, before = await garden.opened(), await _commits(garden)
    switched_off = act("merge", number=number, head_sha=garden.branch, method="rebase", title="Beans (#2)")
    assert ok(await garden.sender("merge").send(switched_off)).kind == "commit"
    assert ok(await garden.client("ada").pulls.get(REPO, number)).merged
    assert await _commits(garden) == before + 1


async def test_a_merge_is_not_refused_while_it_cannot_be_read_whether_there_is_a_merge_queue(garden: Garden) -> None:
    garden.place.repo.has_merge_queue = True
    merge = act("merge", number=await garden.opened(), head_sha=garden.branch)
    garden.place.faults.arm(Fault("unavailable", "POST /graphql"))
    assert err(await garden.sender("merge").send(merge)).kind == "transient"
    assert ok(await garden.sender("merge").send(merge)).kind == "queue"


async def test_a_second_pull_request_from_one_branch_is_the_first(garden: Garden) -> None:
    fields = {"title": "Beans", "body": "Closes #1", "head": "soul/1-beans", "base": "main", "draft": True}
    first = ok(await garden.sender("pull_request").send(act("pull_request", **fields)))
    again = replace(act("pull_request", **fields), id="fedcba9876543210")
    assert ok(await garden.sender("pull_request").send(again)) == first


async def test_what_is_no_body_for_a_sender_is_refused_and_nobody_writes_without_an_account(garden: Garden) -> None:
    nobody = github_at(garden.place.url, "", SystemClock(), "")
    without_account = github_senders(identity_of(nobody, SystemClock()))
    for kind in without_account:
        strange = intent_of(kind, LikeBody(uri="at://x", cid="y"))
        assert err(await garden.sender(kind).send(strange)).kind == "invalid"
        assert err(await garden.sender(kind).find(strange)).kind == "invalid"
        assert err(await without_account[kind].send(strange)).kind == "auth"
    await nobody.aclose()


def test_every_kind_has_a_sender() -> None:
    nobody = github_at("http://127.0.0.1:1", "", SystemClock(), "")
    assert {*github_senders(identity_of(nobody, SystemClock())), "push"} == set(GITHUB_KINDS)
    assert set(GITHUB_KINDS) >= CREATING

"""Proves which files are documents, and on which branch a task is worked on."""

from dataclasses import replace

import pytest

from adapters.github.types import PullBranch, PullRequest
from modules.lives.tasks.documents import is_document
from modules.lives.tasks.offering import choose_branch
from modules.services.plans.types import Task
from modules.services.workspaces.trust import TrustedAccounts
from tests.trusting import account

TASK = Task(3, "Write the guide", files=("docs/guide.md",))
NAME, OTHER = "task-3-write-the-guide", "task-3-write-the-guide-e2"
PULL = PullRequest(
    number=9,
    title="task(3): Write the guide",
    body="Part of #12",
    state="open",
    author="ada",
    head=PullBranch(NAME, "a" * 40, "ada/garden", 1),
    base=PullBranch("main", "b" * 40, "ada/garden", 1),
    html_url="https://github.com/ada/garden/pull/9",
    created_at="2026-01-01T00:00:00Z",
    updated_at="2026-01-01T00:00:00Z",
    author_id=account("ada").id,
)
TRUSTED = TrustedAccounts(account("ada"), peers=frozenset({account("bea")}))


def by(pull: PullRequest, login: str) -> PullRequest:
    return replace(pull, author=login, author_id=account(login).id)


MERGED = replace(PULL, state="closed", merged_at="2026-01-02T00:00:00Z")
CLOSED = replace(PULL, state="closed")
FORK = PullBranch(NAME, "a" * 40, "bea/garden", 2)


def test_a_document_is_markdown_in_no_hidden_folder_under_a_plain_name() -> None:
    assert all(map(is_document, ("SCENARIOS.md", "docs/How it works.MD")))
    others = ("page.ts", "../SCENARIOS.md", "/SCENARIOS.md", ".github/workflows/run.md", "docs//guide.md", "docs/")
    odd = ("`guide`.md", "guide\u202e.md", "x" * 120 + ".md", ".md")
    assert not any(map(is_document, (*others, *odd)))


@pytest.mark.parametrize(
    ("branches", "pulls", "code", "branch"),
    [
        ((), (), "create", NAME),
        ((NAME,), (), "create", OTHER),
        ((NAME, OTHER), (), "left", ""),
        ((NAME,), (PULL,), "opened", NAME),
        ((NAME,), (by(PULL, "ADA"),), "opened", NAME),
        ((NAME,), (by(PULL, "bea"),), "left", ""),
        ((NAME,), (by(PULL, "mallory"),), "create", OTHER),
        ((), (by(MERGED, "mallory"),), "create", NAME),
        ((), (MERGED,), "left", ""),
        ((), (replace(by(PULL, "bea"), head=FORK),), "create", NAME),
        ((), (replace(MERGED, head=PullBranch(NAME, "a" * 40)),), "create", NAME),
        ((NAME,), (CLOSED,), "create", OTHER),
        ((), (CLOSED,), "create", NAME),
        ((NAME,), (replace(PULL, body="Part of #121"),), "create", OTHER),
        ((), (replace(MERGED, body="Part of #7"),), "create", NAME),
        ((NAME,), (replace(PULL, head=PullBranch("task-31-x", "a" * 40, "ada/garden", 1)),), "create", OTHER),
    ],
)
def test_where_a_task_is_worked_on(
    branches: tuple[str, ...], pulls: tuple[PullRequest, ...], code: str, branch: str
) -> None:
    choice = choose_branch(TASK, 12, 2, branches=branches, pulls=pulls, trusted=TRUSTED)
    assert (choice.code, choice.branch) == (code, branch)
    assert (choice.pull is not None) == (code == "opened")
    assert bool(choice.reason) == (code == "left")

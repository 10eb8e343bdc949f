"""GitHub's own examples answer every operation on code: no request breaks the contract, and each answer is understood.

The proxy of `test_github_contract.py` needs a real server; here the examples of GitHub's description replace it.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio

from adapters.github.client import GitHub
from adapters.github.types import GitCommit, Repo
from common.clock import SystemClock
from common.result import ApiResult
from tests.adapters.results import err, ok
from tests.github_rig import rig
from tests.github_rig.test_github_contract import ObservedTransport

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]
REPO = Repo("ada", "garden")
SHA = "a" * 40
FACETS = ("pulls", "contents", "refs", "repositories", "accounts", "notifications", "search")
Call = Callable[[GitHub], Awaitable[ApiResult[Any]]]

CALLS: dict[str, Call] = {
    "pulls.list": lambda ada: ada.pulls.list(REPO, state="all", head="ada:soul/1-x", base="main"),
    "pulls.get": lambda ada: ada.pulls.get(REPO, 1),
    "pulls.create": lambda ada: ada.pulls.create(REPO, title="T", body="B", head="soul/1-x", base="main", draft=True),
    "pulls.merge": lambda ada: ada.pulls.merge(REPO, 1, title="T", message="M", head_sha=SHA),
    "pulls.files": lambda ada: ada.pulls.files(REPO, 1),
    "pulls.changed": lambda ada: ada.pulls.changed(REPO, SHA, SHA[::-1]),
    "pulls.update_branch": lambda ada: ada.pulls.update_branch(REPO, 1, head_sha=SHA),
    "pulls.review_comments": lambda ada: ada.pulls.review_comments(REPO, 1),
    "contents.tree": lambda ada: ada.contents.tree(REPO, "main"),
    "pulls.answer_line": lambda ada: ada.pulls.answer_line(REPO, 1, 7, "B"),
    "pulls.delete_line_comment": lambda ada: ada.pulls.delete_line_comment(REPO, 7),
    "pulls.reviews": lambda ada: ada.pulls.reviews(REPO, 1),
    "pulls.create_review": lambda ada: ada.pulls.create_review(REPO, 1, event="APPROVE", body="B", commit_id=SHA),
    "pulls.request_reviewers": lambda ada: ada.pulls.request_reviewers(REPO, 1, ["bea"]),
    "contents.blob": lambda ada: ada.contents.blob(REPO, SHA),
    "contents.list": lambda ada: ada.contents.list(REPO),
    "contents.write": lambda ada: ada.contents.write(REPO, "docs/a b.md", "x", message="M", branch="main", sha=SHA),
    "refs.branches": lambda ada: ada.refs.branches(REPO),
    "refs.get": lambda ada: ada.refs.get(REPO, "soul/1-x"),
    "refs.matching": lambda ada: ada.refs.matching(REPO, "soul/"),
    "refs.commit": lambda ada: ada.refs.commit(REPO, SHA),
    "refs.create_empty_commit": lambda ada: ada.refs.create_empty_commit(
        REPO, GitCommit(SHA, SHA, ""), message="M", name="Ada", email="ada@x", date="2026-01-05T12:00:00Z"
    ),
    "refs.create": lambda ada: ada.refs.create(REPO, "soul/1-x", SHA),
    "refs.delete": lambda ada: ada.refs.delete(REPO, "soul/1-x"),
    "repositories.of_organization": lambda ada: ada.repositories.of_organization("green"),
    "repositories.organizations": lambda ada: ada.repositories.organizations(),
    "repositories.pushers": lambda ada: ada.repositories.pushers(REPO),
    "repositories.generate": lambda ada: ada.repositories.generate(REPO, owner="green", name="new", description="D"),
    "repositories.star": lambda ada: ada.repositories.star(REPO),
    "accounts.follow": lambda ada: ada.accounts.follow("bea"),
    "notifications.poll": lambda ada: ada.notifications.poll(since="2026-01-05T12:00:00Z"),
    "notifications.mark_read": lambda ada: ada.notifications.mark_read("1"),
    "search.issues": lambda ada: ada.search.issues("repo:ada/garden is:issue"),
}

IN_GRAPHQL = frozenset({"pulls.enqueue", "pulls.queue"})
"""Operations that use GraphQL, which this judge's description does not cover."""


class JsonOnly(ObservedTransport):
    """A transport that asks for `application/json`, as the examples have no other type."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["accept"] = "application/json"
        return await super().handle_async_request(request)


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def examples(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[GitHub, JsonOnly]]:
    rig.install()
    with rig.mocked(tmp_path_factory.mktemp("examples")) as url:
        seen = JsonOnly(url)
        ada = GitHub(
            api_url=url, login="ada", token="ghp_ada", clock=SystemClock(), min_spacing_s=0, transport=lambda: seen
        )
        yield ada, seen
        await ada.aclose()


@pytest.mark.parametrize("name", CALLS)
async def test_no_request_breaks_githubs_contract_and_its_example_is_understood(
    examples: tuple[GitHub, JsonOnly], name: str
) -> None:
    ada, seen = examples
    before = len(seen.violations), len(seen.exchanges)
    ok(await CALLS[name](ada))
    judged = seen.violations[before[0] :]
    assert [message for location, message in judged if location == "request"] == []
    assert len(seen.exchanges) == before[1] + 1


async def test_a_file_is_asked_for_as_githubs_contract_has_it(examples: tuple[GitHub, JsonOnly]) -> None:
    """The example contains plain text instead of base64, and is reported as unreadable."""
    ada, seen = examples
    before = len(seen.violations)
    assert err(await ada.contents.read(REPO, "docs/README.md", ref="main")).kind == "transient"
    assert [message for location, message in seen.violations[before:] if location == "request"] == []
    assert seen.exchanges[-1] == "GET 200"


async def test_no_operation_on_code_escaped_the_judge(examples: tuple[GitHub, JsonOnly]) -> None:
    ada, _ = examples
    offered = {
        f"{facet}.{name}"
        for facet in FACETS
        for name, _ in inspect.getmembers(type(getattr(ada, facet)), inspect.iscoroutinefunction)
    }
    assert offered - CALLS.keys() == {"contents.read", *IN_GRAPHQL}

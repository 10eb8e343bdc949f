"""Tests of checking GitHub for a SOUL that sleeps: it sees what is new, and checking again costs nothing."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from adapters.github.notifications import NOTIFICATIONS, GitHubNewest, is_watchable
from common.clock import FakeClock
from common.result import Err, Ok
from tests.adapters.github.github_town import TOKEN, GitHubTown

on_one_loop = pytest.mark.asyncio(loop_scope="session")
ISSUES = "/repos/ada/garden/issues"


@pytest_asyncio.fixture(loop_scope="session")
async def statuses() -> list[int]:
    """Return the list to which the reader appends the status of each answer."""
    return []


@pytest_asyncio.fixture(loop_scope="session")
async def reader(town: GitHubTown, statuses: list[int]) -> AsyncIterator[GitHubNewest]:
    async def note(answer: httpx.Response) -> None:
        statuses.append(answer.status_code)

    async with httpx.AsyncClient(event_hooks={"response": [note]}) as client:
        yield GitHubNewest(client, api_url=town.url, token=TOKEN, addresses=(NOTIFICATIONS, ISSUES), clock=town.clock)


@on_one_loop
async def test_where_nothing_changed_the_looks_are_free(reader: GitHubNewest, statuses: list[int]) -> None:
    for _ in range(3):
        assert await reader.came() == Ok(data=False)
    assert statuses == [200, 200, 304, 304, 304, 304]


@on_one_loop
async def test_an_issue_of_a_workspace_and_a_mention_are_news(town: GitHubTown, reader: GitHubNewest) -> None:
    bea = town.network.find("bea")
    assert bea
    await reader.came()
    before = dict(reader.seen)
    town.network.open_issue(town.repo, bea, title="What about ferns?", body="Do you agree, @ada?")
    for _ in range(2):
        assert await reader.came() == Ok(data=True)
    assert reader.seen == before, "it stays news"
    assert [place for place in before if before[place]] == [ISSUES], "of a repository without issues"


@on_one_loop
async def test_a_token_that_is_refused_is_told_as_that(town: GitHubTown) -> None:
    async with httpx.AsyncClient() as client:
        reader = GitHubNewest(
            client, api_url=town.url, token="ghp_nobody", addresses=(NOTIFICATIONS,), clock=town.clock
        )
        found = await reader.came()
    assert isinstance(found, Err)
    assert found.kind == "auth"


@pytest.mark.parametrize(("status", "is_read"), [(404, True), (410, True), (451, True), (502, False)])
async def test_one_repository_that_cannot_be_read_hides_no_news(status: int, *, is_read: bool) -> None:
    listed = list[dict[str, object]]()

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=listed) if request.url.path == NOTIFICATIONS else httpx.Response(status)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        places = (NOTIFICATIONS, ISSUES)
        reader = GitHubNewest(client, api_url="https://api.test", token="t", addresses=places, clock=FakeClock())
        assert isinstance(await reader.came(), Ok) is is_read
        listed.append({"id": "1", "updated_at": "2026-01-01T00:00:00Z", "reason": "mention"})
        assert await reader.came() == Ok(data=True)


@pytest.mark.parametrize(
    ("address", "is_one"),
    [
        (NOTIFICATIONS, True),
        (ISSUES, True),
        ("/user", False),
        ("/repos/../../issues", False),
        ("/repos/ada/garden?x=/issues", False),
        ("/repos/ada/garden/issues/1", False),
    ],
)
def test_only_these_addresses_are_looked_at(address: str, *, is_one: bool) -> None:
    assert is_watchable(address) is is_one

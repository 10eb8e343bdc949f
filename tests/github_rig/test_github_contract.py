"""GitHub's own description judges: neither our requests nor the town's answers may break it, whatever is asked.

And an independent emulator answers the same calls, so that the adapter is not only right about the town.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from starlette.responses import JSONResponse

from adapters.github.client import GitHub
from adapters.github.types import Repo
from adapters.web.client import WebTransport
from common.clock import SystemClock
from common.result import ApiResult
from tests.adapters.results import err, ok
from tests.adapters.shared_server import SharedServer
from tests.github_rig import rig
from tests.github_rig.behind import Behind
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.serving import serve

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
on_one_loop = pytest.mark.asyncio(loop_scope="session")

REPO = Repo("ada", "garden")
NOT_CALLS = {"aclose", "pause", "edits"}
"""What sends nothing, and what asks by GraphQL, of which the description tells nothing."""
Violations = list[tuple[str, str]]


class ObservedTransport(httpx.AsyncBaseTransport):
    """The ordinary way out, with an ear for what the judge says of each exchange."""

    def __init__(self, url: str) -> None:
        self._way = WebTransport(allow=(url,))
        self.violations: Violations = []
        self.exchanges: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await self._way.handle_async_request(request)
        self.exchanges.append(f"{request.method} {answer.status_code}")
        self.violations += judged(answer.headers)
        return answer

    async def aclose(self) -> None:
        await self._way.aclose()


def judged(headers: httpx.Headers) -> Violations:
    told: list[dict[str, Any]] = json.loads(headers.get("sl-violations", "[]"))
    return [(one["location"][0], one["message"]) for one in told]


class Court:
    """The town's GitHub behind the judge; each test puts a fresh one there."""

    def __init__(self, url: str, shared_server: SharedServer) -> None:
        self.url = url
        self.shared_server = shared_server
        self.network = GitHubNetwork(clock=SystemClock())
        ada = self.network.create_account("ada", name="Ada", token="ghp_ada")
        self.network.create_account("bea", token="ghp_bea")
        self.repo = self.network.create_repo(ada, "garden", description="What grows", collaborators=["bea"])
        shared_server.app = Behind(github_app(self.network), url)
        self.received = ObservedTransport(url)
        self.clients: list[GitHub] = []

    def client(self, login: str = "ada", *, token: str | None = None) -> GitHub:
        client = GitHub(
            api_url=self.url,
            login=login,
            token=f"ghp_{login}" if token is None else token,
            clock=SystemClock(),
            min_spacing_s=0,
            transport=lambda: self.received,
        )
        self.clients.append(client)
        return client


@pytest.fixture(scope="session")
def _installed() -> None:
    rig.install()


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def bench(_installed: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[str, SharedServer]]:
    """The judge, and the shared server behind it."""
    shared_server = SharedServer()
    async with serve(shared_server) as upstream:
        judge = rig.judged(upstream, tmp_path_factory.mktemp("judge"))
        url = await asyncio.to_thread(judge.__enter__)
        try:
            yield url, shared_server
        finally:
            await asyncio.to_thread(judge.__exit__, None, None, None)


@pytest_asyncio.fixture(loop_scope="session")
async def court(bench: tuple[str, SharedServer]) -> AsyncIterator[Court]:
    court = Court(*bench)
    yield court
    for client in court.clients:
        await client.aclose()


@on_one_loop
async def test_every_operation_keeps_githubs_contract_on_both_sides(court: Court) -> None:
    ada = court.client()
    ok(await ada.create_issue(REPO, "Beans", "Near the wall.", labels=["plan", "two words"], assignees=["ada", "bea"]))
    ok(await ada.create_issue(REPO, "No body", ""))
    ok(await ada.get_issue(REPO, 1))
    ok(await ada.list_issues(REPO, state="all", creator="ada", labels=["plan"], since="2020-01-01T00:00:00Z"))
    ok(await ada.update_issue(REPO, 1, title="Peas", body="By the wall.", state="closed", labels=[], assignees=["bea"]))
    ok(await ada.update_issue(REPO, 1, state="open"))
    comment = ok(await ada.create_comment(REPO, 1, "Sown."))
    ok(await ada.list_comments(REPO, 1, since="2020-01-01T00:00:00Z"))
    for _ in range(2):
        ok(await ada.add_reaction(REPO, 1, "rocket"))
    ok(await ada.add_assignees(REPO, 1, ["ada"]))
    ok(await ada.add_labels(REPO, 1, ["plan", "plan:active"]))
    for _ in range(2):
        ok(await ada.remove_label(REPO, 1, "plan:active"))
    assert len(ok(await ada.labellings(REPO, 1))) > 1
    ok(await ada.remove_assignee(REPO, 1, "ada"))
    ok(await ada.edit_comment(REPO, comment.id, "Sown twice."))
    ok(await ada.get_comment(REPO, comment.id))
    ok(await ada.delete_comment(REPO, comment.id))
    ok(await ada.get_repository(REPO))
    ok(await ada.get_user("bea"))
    ok(await ada.rights())
    assert court.received.violations == []
    assert len(court.received.exchanges) == 23


def test_no_operation_of_the_adapter_escaped_the_judge() -> None:
    calls = {name for name, _ in inspect.getmembers(GitHub, inspect.iscoroutinefunction) if not name.startswith("_")}
    source = inspect.getsource(test_every_operation_keeps_githubs_contract_on_both_sides)
    assert {name for name in calls - NOT_CALLS if f"ada.{name}(" not in source} == set()


@on_one_loop
async def test_pages_keep_it_too(court: Court) -> None:
    ada = court.network.find("ada")
    assert ada
    for number in range(101):
        court.network.open_issue(court.repo, ada, title=f"Issue {number}", is_pull=number == 50)
    listed = ok(await court.client().list_issues(REPO, limit=200))
    assert len(listed) == 101
    assert sum(issue.is_pull_request for issue in listed) == 1
    assert court.received.violations == []


@on_one_loop
async def test_refusals_keep_it_too(court: Court) -> None:
    ada, stranger = court.client(), court.client(token="ghp_revoked")
    owner = court.network.find("ada")
    assert owner
    ok(await ada.create_issue(REPO, "Beans", "…"))
    court.network.create_repo(owner, "old").archived = True
    court.network.create_repo(owner, "quiet", has_issues=False)
    refusals: list[ApiResult[Any]] = [
        await stranger.rights(),
        await ada.get_issue(REPO, 99),
        await ada.get_repository(Repo("ada", "nowhere")),
        await ada.get_user("nobody"),
        await ada.create_issue(REPO, "Beans", "…", assignees=["nobody"]),
        await ada.create_issue(Repo("ada", "quiet"), "Beans", "…"),
        await ada.create_comment(Repo("ada", "old"), 1, "…"),
        await court.client("bea", token="").get_issue(Repo("ada", "nowhere"), 1),
    ]
    court.network.delete_issue(court.repo, court.network.issue(court.repo, 1), owner)
    refusals.append(await ada.get_issue(REPO, 1))
    assert [err(refusal).status for refusal in refusals] == [401, 404, 404, 404, 422, 410, 404, 404, 410]
    assert court.received.violations == []


@on_one_loop
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/repos/ada/garden/issues", {"body": "no title"}),
        ("PATCH", "/repos/ada/garden/issues/1", {"state": "ajar"}),
        ("GET", "/repos/ada/garden/issues?state=ajar", None),
    ],
)
async def test_the_judge_sees_a_request_that_breaks_it(court: Court, method: str, path: str, body: object) -> None:
    async with httpx.AsyncClient(transport=court.received) as http:
        await http.request(method, f"{court.url}{path}", json=body, headers={"authorization": "Bearer ghp_ada"})
    assert "request" in {location for location, _ in court.received.violations}


@on_one_loop
async def test_the_judge_sees_an_answer_that_breaks_it(court: Court) -> None:
    ada = court.client()
    ok(await ada.create_issue(REPO, "Beans", "…"))
    async with httpx.AsyncClient(transport=court.received) as http:
        whole = (await http.get(f"{court.url}/repos/ada/garden/issues/1")).json()
        assert court.received.violations == []
        court.shared_server.app = JSONResponse({name: value for name, value in whole.items() if name != "user"})
        await http.get(f"{court.url}/repos/ada/garden/issues/1")
    assert {location for location, _ in court.received.violations} == {"response"}


@pytest.fixture(scope="session")
def emulator(_installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rig.emulated(tmp_path_factory.mktemp("emulator")) as url:
        yield url


@on_one_loop
async def test_an_independent_emulator_is_understood_as_well(emulator: str) -> None:
    alice = GitHub(
        api_url=emulator,
        login="alice",
        token="tok_alice",
        clock=SystemClock(),
        min_spacing_s=0,
        transport=lambda: WebTransport(allow=(emulator,)),
    )
    repo = Repo("alice", "demo")
    assert ok(await alice.rights()).login == "alice"
    assert ok(await alice.get_repository(repo)).full_name == "alice/demo"
    assert ok(await alice.get_user("bob")).login == "bob"
    made = ok(await alice.create_issue(repo, "Beans", "Near the wall."))
    assert (made.title, made.body, made.author, made.assignees) == ("Beans", "Near the wall.", "alice", ("alice",))
    assert ok(await alice.get_issue(repo, made.number)) == made
    said = ok(await alice.create_comment(repo, made.number, "Sown."))
    assert [one.body for one in ok(await alice.list_comments(repo, made.number))] == ["Sown."]
    closed = ok(await alice.update_issue(repo, made.number, title="Peas", state="closed"))
    assert (closed.title, closed.body, closed.state) == ("Peas", "Near the wall.", "closed")
    assert [one.number for one in ok(await alice.list_issues(repo, state="closed"))] == [made.number]
    assert ok(await alice.list_issues(repo)) == ()
    for _ in range(2):
        ok(await alice.delete_comment(repo, said.id))
    assert err(await alice.get_issue(repo, 999)).kind == "not_found"
    await alice.aclose()


@on_one_loop
async def test_the_emulator_takes_a_branch_a_file_and_a_pull_request_to_their_merge(emulator: str) -> None:
    alice, bob = (
        GitHub(
            api_url=emulator,
            login=login,
            token=f"tok_{login}",
            clock=SystemClock(),
            min_spacing_s=0,
            transport=lambda: WebTransport(allow=(emulator,)),
        )
        for login in ("alice", "bob")
    )
    repo = Repo("alice", "demo")
    main = ok(await alice.get_repository(repo)).default_branch
    head = ok(await alice.refs.get(repo, main))
    ok(await alice.refs.create(repo, "soul/1-beans", head.sha))
    assert err(await alice.refs.create(repo, "soul/1-beans", head.sha)).kind == "conflict"
    ok(await alice.contents.write(repo, "docs/beans.md", "Beans.\n", message="Add beans", branch="soul/1-beans"))
    assert ok(await alice.contents.read(repo, "docs/beans.md", ref="soul/1-beans")).text == "Beans.\n"
    made = ok(await alice.pulls.create(repo, title="Beans", body="…", head="soul/1-beans", base=main))
    assert [one.number for one in ok(await alice.pulls.list(repo))] == [made.number]
    ok(await bob.pulls.create_review(repo, made.number, event="APPROVE", body="Fine."))
    assert [(one.author, one.state) for one in ok(await alice.pulls.reviews(repo, made.number))] == [
        ("bob", "APPROVED")
    ]
    assert ok(await alice.pulls.merge(repo, made.number)).merged
    assert ok(await alice.pulls.get(repo, made.number)).merged
    ok(await alice.refs.delete(repo, "soul/1-beans"))
    assert err(await alice.refs.get(repo, "soul/1-beans")).kind == "not_found"
    for client in (alice, bob):
        await client.aclose()

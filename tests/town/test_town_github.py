"""Tests of the town's GitHub over HTTP: the answers of its API, its limits, its faults, and its pages."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from common.clock import FakeClock
from tests.loopback import NO_TLS
from town.github.faults import GitHubFaults
from town.github.limits import GitHubMeter
from town.github.network import GitHubNetwork
from town.github.service import github_app
from town.github.values import GitHubEvent, StoredRepo
from town.serving import serve

ISSUES = "/repos/ada/garden/issues"


@dataclass
class Place:
    """The service, and plain requests to it."""

    url: str
    http: httpx.AsyncClient
    clock: FakeClock
    network: GitHubNetwork
    faults: GitHubFaults
    repo: StoredRepo
    events: list[GitHubEvent] = field(default_factory=list)

    async def ask(self, method: str, path: str, body: object = None, *, token: str = "t-ada") -> httpx.Response:
        headers = {"authorization": f"token {token}"} if token else {}
        return await self.http.request(method, path, json=body, headers=headers)

    async def opened(self, **fields: Any) -> Any:
        return (await self.ask("POST", ISSUES, {"title": "Beans", **fields})).json()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    clock, faults = FakeClock(), GitHubFaults(random.Random(7))
    network = GitHubNetwork(clock=clock)
    ada = network.create_account("Ada", name="Ada L.", token="t-ada")
    network.create_account("bea", token="t-bea")
    repo = network.create_repo(ada, "garden", description="<b>green</b>")
    app = github_app(network, faults=faults, meter=GitHubMeter(clock, known=200, unknown=3))
    async with serve(app) as url, httpx.AsyncClient(base_url=url, verify=NO_TLS) as http:
        place = Place(url, http, clock, network, faults, repo)
        network.subscribe(place.events.append)
        yield place


async def test_names_are_found_in_any_case(place: Place) -> None:
    await place.opened()
    for path in ("/users/ADA", "/repos/ada/Garden", "/repos/ADA/garden/issues/1"):
        assert (await place.ask("GET", path)).status_code == 200


async def test_nobody_may_come_without_saying_what_they_are(place: Place) -> None:
    answer = await place.http.get("/users/ada", headers={"user-agent": ""})
    assert answer.status_code == 403
    assert "User-Agent" in answer.json()["message"]


@pytest.mark.parametrize(
    ("content", "status", "told"),
    [
        (b"{", 400, "Problems parsing JSON"),
        (b"[1]", 400, "Body should be a JSON object"),
        (b'{"title": 7}', 422, "Invalid request.\n\nFor 'properties/title', 7 is not a string."),
        (b'{"title": "t", "labels": 7}', 422, "Invalid request.\n\nFor 'properties/labels', 7 is not an array."),
        (b'{"title": "t", "assignees": ["nobody"]}', 422, "Validation Failed"),
    ],
)  # fmt: skip
async def test_a_body_that_makes_no_sense_is_refused(place: Place, content: bytes, status: int, told: str) -> None:
    answer = await place.http.post(ISSUES, content=content, headers={"authorization": "Bearer t-ada"})
    assert (answer.status_code, answer.json()["message"]) == (status, told)
    assert place.repo.issues == {}


@pytest.mark.parametrize(("name", "most"), [("title", 256), ("body", 65_536)])
async def test_a_text_may_be_so_long_and_no_longer(place: Place, name: str, most: int) -> None:
    fields = {"title": "Beans", name: "x" * most}
    assert (await place.ask("POST", ISSUES, fields)).status_code == 201
    refused = await place.ask("POST", ISSUES, {**fields, name: "x" * (most + 1)})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["message"] == f"{name} is too long (maximum is {most} characters)"


async def test_issues_can_be_sorted_by_their_last_change(place: Place) -> None:
    for _ in range(3):
        await place.opened()
        place.clock.jump(60)
    await place.ask("POST", f"{ISSUES}/1/comments", {"body": "Sown."})
    by_update = (await place.ask("GET", f"{ISSUES}?sort=updated")).json()
    assert [issue["number"] for issue in by_update] == [1, 3, 2]
    assert by_update[0]["comments"] == 1


async def test_every_answer_tells_the_budget_and_none_is_given_beyond_it(place: Place) -> None:
    answers = [await place.ask("GET", "/users/ada", token="") for _ in range(4)]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 403]
    assert answers[3].json()["message"] == "API rate limit exceeded for your address."
    reset = int(answers[3].headers["x-ratelimit-reset"])
    assert reset == place.clock.now().timestamp() + 3600
    assert (await place.ask("GET", "/user")).headers["x-ratelimit-remaining"] == "199"
    place.clock.jump(3601)
    assert (await place.ask("GET", "/users/ada", token="")).status_code == 200


async def test_who_may_not_push_changes_only_what_is_their_own(place: Place) -> None:
    await place.opened(labels=["plan"])
    foreign = await place.ask("PATCH", f"{ISSUES}/1", {"title": "Mine"}, token="t-bea")
    assert foreign.status_code == 403
    own = await place.ask("POST", ISSUES, {"title": "Slugs"}, token="t-bea")
    changed = await place.ask("PATCH", f"{ISSUES}/2", {"state": "closed", "labels": ["plan"]}, token="t-bea")
    assert (own.status_code, changed.status_code) == (201, 200)
    assert (changed.json()["state"], changed.json()["labels"]) == ("closed", [])
    assert changed.json()["closed_by"]["login"] == "bea"
    assert (await place.ask("POST", f"{ISSUES}/2/assignees", {"assignees": ["bea"]}, token="t-bea")).status_code == 403


async def test_whoever_listens_hears_what_happened(place: Place) -> None:
    await place.opened()
    comment = (await place.ask("POST", f"{ISSUES}/1/comments", {"body": "Sown."}, token="t-bea")).json()
    await place.ask("PATCH", f"{ISSUES}/1", {"state": "closed"})
    await place.ask("DELETE", f"{ISSUES}/comments/{comment['id']}")
    assert place.events == [
        GitHubEvent("issue_opened", "Ada/garden", 1, "Ada"),
        GitHubEvent("comment_written", "Ada/garden", 1, "bea"),
        GitHubEvent("issue_changed", "Ada/garden", 1, "Ada"),
        GitHubEvent("comment_deleted", "Ada/garden", 1, "Ada"),
    ]


async def test_pages_show_what_was_written_as_text(place: Place) -> None:
    evil = "<script>alert(1)</script>"
    issue = await place.opened(title=f"Beans {evil}", body=evil)
    await place.ask("POST", f"{ISSUES}/1/comments", {"body": f'"{evil}'})
    assert issue["html_url"] == f"{place.url}/Ada/garden/issues/1"
    for url in (issue["html_url"], f"{place.url}/ada/garden", f"{place.url}/ada/garden/issues"):
        page = await place.http.get(url)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert evil not in page.text
        assert "Beans &lt;script&gt;" in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]


async def test_a_page_shows_markdown_and_no_hidden_comment(place: Place) -> None:
    text = (
        "### Task 1: Water\n**Status:** pending\n\n- [x] beans\n\n"
        "<!-- soul:intent=7 -->\n\n`<!-- seen -->` [a](javascript:b)"
    )
    issue = await place.opened(title="[PLAN] Beans", body=text)
    page = (await place.http.get(issue["html_url"])).text
    for shown in ("<h3>Task 1: Water</h3>", "<strong>Status:</strong> pending", "☑ beans", "&lt;!-- seen --&gt;"):
        assert shown in page
    assert "soul:intent" not in page
    assert 'href="javascript' not in page


async def test_a_page_that_is_not_there_is_a_404(place: Place) -> None:
    place.network.create_repo(place.repo.owner, "secret", private=True)
    for path in ("/ada/nowhere", "/ada/secret", "/ada/garden/issues/9", "/ada/garden/wiki/1", "/a/b/c"):
        assert (await place.http.get(path)).status_code == 404, path


def test_a_login_or_a_name_is_given_once() -> None:
    network = GitHubNetwork(clock=FakeClock())
    ada = network.create_account("ada")
    network.create_repo(ada, "garden")
    with pytest.raises(ValueError, match="ADA is taken"):
        network.create_account("ADA")
    with pytest.raises(ValueError, match="ada/Garden is taken"):
        network.create_repo(ada, "Garden")
    assert len(ada.token) == 40

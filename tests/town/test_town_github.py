"""Tests of the town's GitHub over HTTP: the answers of its API, its limits, its faults, and its pages."""

from typing import Any

import pytest

from common.clock import FakeClock
from tests.town.github_place import GARDEN, GitHubPlace
from town.github.network import GitHubNetwork
from town.github.values import GitHubEvent

ISSUES = f"{GARDEN}/issues"


async def opened(place: GitHubPlace, **fields: Any) -> Any:
    return (await place.ask("POST", ISSUES, {"title": "Beans", **fields})).json()


async def test_names_are_found_in_any_case(place: GitHubPlace) -> None:
    await opened(place)
    for path in ("/users/ADA", "/repos/ada/Garden", "/repos/ADA/garden/issues/1"):
        answer = await place.ask("GET", path)
        assert answer.status_code == 200
        assert answer.json()["html_url"].startswith(f"{place.url}/ada")


async def test_nobody_may_come_without_saying_what_they_are(place: GitHubPlace) -> None:
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
async def test_a_body_that_makes_no_sense_is_refused(
    place: GitHubPlace, content: bytes, status: int, told: str
) -> None:
    answer = await place.http.post(ISSUES, content=content, headers={"authorization": "Bearer t-ada"})
    assert (answer.status_code, answer.json()["message"]) == (status, told)
    assert place.repo.issues == {}


@pytest.mark.parametrize(("name", "most"), [("title", 256), ("body", 65_536)])
async def test_a_text_may_be_so_long_and_no_longer(place: GitHubPlace, name: str, most: int) -> None:
    fields = {"title": "Beans", name: "x" * most}
    assert (await place.ask("POST", ISSUES, fields)).status_code == 201
    refused = await place.ask("POST", ISSUES, {**fields, name: "x" * (most + 1)})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["message"] == f"{name} is too long (maximum is {most} characters)"


async def test_issues_can_be_sorted_by_their_last_change(place: GitHubPlace) -> None:
    for _ in range(3):
        await opened(place)
        place.clock.jump(60)
    await place.ask("POST", f"{ISSUES}/1/comments", {"body": "Sown."})
    by_update = (await place.ask("GET", f"{ISSUES}?sort=updated")).json()
    assert [issue["number"] for issue in by_update] == [1, 3, 2]
    assert by_update[0]["comments"] == 1


async def test_every_answer_tells_the_budget_and_none_is_given_beyond_it(place: GitHubPlace) -> None:
    answers = [await place.ask("GET", "/users/ada", by="") for _ in range(61)]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == [*map(str, range(59, -1, -1)), "0"]
    assert [answer.status_code for answer in answers] == [200] * 60 + [403]
    assert answers[60].json()["message"] == "API rate limit exceeded for your address."
    reset = int(answers[60].headers["x-ratelimit-reset"])
    assert reset == place.clock.now().timestamp() + 3600
    assert (await place.ask("GET", "/user")).headers["x-ratelimit-remaining"] == "4999"
    place.clock.jump(3601)
    assert (await place.ask("GET", "/users/ada", by="")).status_code == 200


async def test_who_may_not_push_changes_only_what_is_their_own(place: GitHubPlace) -> None:
    await opened(place, labels=["plan"])
    foreign = await place.ask("PATCH", f"{ISSUES}/1", {"title": "Mine"}, by="cy")
    assert foreign.status_code == 403
    own = await place.ask("POST", ISSUES, {"title": "Slugs"}, by="cy")
    changed = await place.ask("PATCH", f"{ISSUES}/2", {"state": "closed", "labels": ["plan"]}, by="cy")
    assert (own.status_code, changed.status_code) == (201, 200)
    assert (changed.json()["state"], changed.json()["labels"]) == ("closed", [])
    assert changed.json()["closed_by"]["login"] == "cy"
    assert (await place.ask("POST", f"{ISSUES}/2/assignees", {"assignees": ["bea"]}, by="cy")).status_code == 403


async def test_whoever_listens_hears_what_happened(place: GitHubPlace) -> None:
    events = list[GitHubEvent]()
    place.network.subscribe(events.append)
    await opened(place)
    comment = (await place.ask("POST", f"{ISSUES}/1/comments", {"body": "Sown."}, by="bea")).json()
    await place.ask("PATCH", f"{ISSUES}/1", {"state": "closed"})
    await place.ask("DELETE", f"{ISSUES}/comments/{comment['id']}")
    assert events == [
        GitHubEvent("issue_opened", "ada/garden", 1, "ada"),
        GitHubEvent("comment_written", "ada/garden", 1, "bea"),
        GitHubEvent("issue_changed", "ada/garden", 1, "ada"),
        GitHubEvent("comment_deleted", "ada/garden", 1, "ada"),
    ]


async def test_pages_show_what_was_written_as_text(place: GitHubPlace) -> None:
    evil = "<script>alert(1)</script>"
    issue = await opened(place, title=f"Beans {evil}", body=evil)
    await place.ask("POST", f"{ISSUES}/1/comments", {"body": f'"{evil}'})
    assert issue["html_url"] == f"{place.url}/ada/garden/issues/1"
    for url in (issue["html_url"], f"{place.url}/ada/garden", f"{place.url}/ada/garden/issues"):
        page = await place.http.get(url)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert evil not in page.text
        assert "Beans &lt;script&gt;" in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]


async def test_a_page_shows_markdown_and_no_hidden_comment(place: GitHubPlace) -> None:
    text = (
        "### Task 1: Water\n**Status:** pending\n\n- [x] beans\n\n"
        "<!-- soul:intent=7 -->\n\n`<!-- seen -->` [a](javascript:b)"
    )
    issue = await opened(place, title="[PLAN] Beans", body=text)
    page = (await place.http.get(issue["html_url"])).text
    for shown in ("<h3>Task 1: Water</h3>", "<strong>Status:</strong> pending", "☑ beans", "&lt;!-- seen --&gt;"):
        assert shown in page
    assert "soul:intent" not in page
    assert 'href="javascript' not in page


async def test_a_page_that_is_not_there_is_a_404(place: GitHubPlace) -> None:
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

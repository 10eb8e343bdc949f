"""Tests of the town's pull requests by PyGithub: real diffs, reviews, reviewers and merges."""

import asyncio

import github
import pytest
from github.PullRequest import PullRequest

from tests.town.github_place import GARDEN, GitHubPlace, needs_git
from town.github.pull_methods import QUEUE_WAIT

pytestmark = needs_git
PULL = f"{GARDEN}/pulls/1"


async def open_pull(place: GitHubPlace, *, body: str = "Part of it.", file: str = "beans.md", by: str = "ada") -> None:
    """Open pull request 1, from `soul/1-work` to `main`, with one file more."""
    first = await place.commit("README.md", "Hello.\n")
    await place.branch("soul/1-work", first)
    await place.commit(file, "Beans.\nPeas.\n", branch="soul/1-work")
    answer = await place.ask(
        "POST", f"{GARDEN}/pulls", {"title": "Sow", "body": body, "head": "soul/1-work", "base": "main"}, by=by
    )
    assert answer.status_code == 201, answer.text


def pull_of(client: github.Github, number: int = 1) -> PullRequest:
    return client.get_repo("ada/garden").get_pull(number)


async def test_whether_it_can_be_merged_is_not_known_at_once(place: GitHubPlace) -> None:
    first = await place.commit("README.md", "Hello.\n")
    await place.branch("soul/1-work", first)
    await place.commit("beans.md", "Beans.\n", branch="soul/1-work")
    body = {"title": "Sow", "head": "soul/1-work", "base": "main"}
    made = (await place.ask("POST", f"{GARDEN}/pulls", body)).json()
    assert (made["mergeable"], made["mergeable_state"]) == (None, "unknown")
    seen = (await place.ask("GET", PULL)).json()
    assert (seen["mergeable"], seen["mergeable_state"]) == (True, "clean")
    again = await place.ask("POST", f"{GARDEN}/pulls", body)
    assert "already exists" in again.json()["errors"][0]["message"]
    nothing = await place.ask("POST", f"{GARDEN}/pulls", {**body, "head": "main"})
    assert "No commits between" in nothing.json()["errors"][0]["message"]
    nowhere = await place.ask("POST", f"{GARDEN}/pulls", {**body, "head": "nowhere"})
    assert (nowhere.status_code, nowhere.json()["errors"][0]["field"]) == (422, "head")


async def test_of_many_who_merge_at_once_exactly_one_does(place: GitHubPlace) -> None:
    await open_pull(place)
    answers = await asyncio.gather(*(place.ask("PUT", f"{PULL}/merge", {"merge_method": "squash"}) for _ in range(6)))
    codes = sorted(answer.status_code for answer in answers)
    assert (codes[0], set(codes[1:]) <= {405, 409}) == (200, True)
    assert len((await place.ask("GET", f"{GARDEN}/commits")).json()) == 2


async def test_a_pull_request_joins_a_merge_queue_once_and_is_merged_after_its_wait(place: GitHubPlace) -> None:
    await open_pull(place)
    place.repo.has_merge_queue = True
    assert (await place.ask("PUT", f"{PULL}/merge", {})).status_code == 405
    state = "merged isInMergeQueue isMergeQueueEnabled"
    query = (
        f'query Q($n: Int!) {{ repository(owner: "ada", name: "garden") {{ pullRequest(number: $n) {{ {state} }} }} }}'
    )

    async def queued() -> dict[str, object]:
        variables = {"owner": "ada", "name": "garden", "n": 1, "number": 1}
        answer = (await place.ask("POST", "/graphql", {"query": query, "variables": variables})).json()
        found: dict[str, object] = answer["data"]["repository"]["pullRequest"]
        return found

    wanted = place.repo.pulls[1].head

    def join(client: github.Github) -> dict[str, object]:
        given = {"pullRequestId": pull_of(client).node_id, "expectedHeadOid": wanted}
        _, data = client.requester.graphql_named_mutation("enqueuePullRequest", given, "mergeQueueEntry { id state }")
        entry: dict[str, object] = data["mergeQueueEntry"]
        return entry

    with pytest.raises(github.GithubException, match="permissions"):
        await place.use(join, by="cy")
    wanted = "0" * 40
    with pytest.raises(github.GithubException, match="oid"):
        await place.use(join, by="bea")
    wanted = place.repo.pulls[1].head
    entry = await place.use(join, by="bea")
    assert (entry["state"], sorted(entry)) == ("QUEUED", ["id", "state"])
    assert await queued() == {"merged": False, "isInMergeQueue": True, "isMergeQueueEnabled": True}
    with pytest.raises(github.GithubException, match="already"):
        await place.use(join, by="bea")
    await place.clock.advance(QUEUE_WAIT.total_seconds())
    assert (await place.ask("GET", PULL)).json()["merged_by"]["login"] == "bea"
    assert await queued() == {"merged": True, "isInMergeQueue": False, "isMergeQueueEnabled": True}


async def test_what_contradicts_its_base_cannot_be_merged(place: GitHubPlace) -> None:
    await open_pull(place)
    await place.commit("beans.md", "No beans.\n")
    seen = (await place.ask("GET", PULL)).json()
    assert (seen["mergeable"], seen["mergeable_state"]) == (False, "dirty")
    refused = await place.ask("PUT", f"{PULL}/merge", {})
    assert (refused.status_code, refused.json()["message"]) == (405, "Pull Request is not mergeable")
    assert (await place.ask("PUT", f"{PULL}/update-branch")).status_code == 422


async def test_a_merge_is_refused_where_the_head_is_another_or_a_draft(place: GitHubPlace) -> None:
    await open_pull(place)
    assert (await place.ask("PUT", f"{PULL}/merge", {"sha": "0" * 40})).status_code == 409
    assert (await place.ask("PUT", f"{PULL}/merge", {"merge_method": "rebase"})).status_code == 405
    assert (await place.ask("PUT", f"{PULL}/merge", {}, by="cy")).status_code == 403
    place.repo.pulls[1].draft = True
    assert "draft" in (await place.ask("PUT", f"{PULL}/merge", {})).json()["message"]


async def test_a_pull_request_follows_its_branches(place: GitHubPlace) -> None:
    await open_pull(place)
    head = (await place.ask("GET", PULL)).json()["head"]["sha"]
    await place.git("clone", "--quiet", place.clone_url("ada"), "work")
    await place.git("fetch", "--quiet", "origin", "refs/pull/1/head", at=place.folder / "work")
    await place.git("merge", "--quiet", "FETCH_HEAD", at=place.folder / "work")
    await place.git("push", "--quiet", "origin", "main", at=place.folder / "work")
    seen = (await place.ask("GET", PULL)).json()
    assert (seen["merged"], seen["merge_commit_sha"], seen["changed_files"]) == (True, head, 1)


async def test_a_pull_request_without_its_branch_is_closed(place: GitHubPlace) -> None:
    await open_pull(place)
    await place.ask("DELETE", f"{GARDEN}/git/refs/heads/soul/1-work")
    seen = (await place.ask("GET", PULL)).json()
    assert (seen["state"], seen["merged"]) == ("closed", False)


async def test_a_repository_may_take_no_pull_requests(place: GitHubPlace) -> None:
    first = await place.commit("README.md", "Hello.\n")
    await place.branch("soul/1-work", first)
    await place.commit("beans.md", "Beans.\n", branch="soul/1-work")
    place.repo.has_pulls = False
    assert (await place.ask("GET", GARDEN)).json()["has_pull_requests"] is False
    body = {"title": "Sow", "head": "soul/1-work", "base": "main"}
    assert (await place.ask("POST", f"{GARDEN}/pulls", body)).status_code == 403
    place.repo.has_pulls = True
    assert (await place.ask("POST", f"{GARDEN}/pulls", body, by="cy")).status_code == 403


async def test_statuses_and_checks_are_two_lists_and_both_count(place: GitHubPlace) -> None:
    await open_pull(place)
    head = (await place.ask("GET", PULL)).json()["head"]["sha"]

    def course(client: github.Github) -> None:
        commit = client.get_repo("ada/garden").get_commit(head)
        assert (commit.get_combined_status().state, commit.get_check_runs().totalCount) == ("pending", 0)
        commit.create_status("failure", context="tests")
        assert commit.get_combined_status().state == "failure"
        assert pull_of(client).mergeable_state == "unstable"
        commit.create_status("success", context="tests")
        assert [status.state for status in commit.get_statuses()] == ["success", "failure"]
        assert (commit.get_combined_status().state, pull_of(client).mergeable_state) == ("success", "clean")

    await place.use(course)
    check = {"name": "lint", "head_sha": head, "conclusion": "failure"}
    assert (await place.ask("POST", f"{GARDEN}/check-runs", check)).status_code == 403
    bea = place.network.find("bea")
    assert bea
    place.network.issue_token(bea, "ghs_1")
    made = await place.ask("POST", f"{GARDEN}/check-runs", check, by="", authorization="Bearer ghs_1")
    assert (made.status_code, made.json()["status"]) == (201, "completed")
    assert (await place.ask("GET", PULL)).json()["mergeable_state"] == "unstable"
    assert (await place.ask("GET", f"{GARDEN}/commits/soul/1-work/check-runs")).json()["total_count"] == 1


async def test_people_read_a_pull_request_on_a_page_of_its_own(place: GitHubPlace) -> None:
    await open_pull(place, file="<b>.md")
    await place.ask("POST", f"{PULL}/reviews", {"event": "REQUEST_CHANGES", "body": "<i>More</i> peas."}, by="bea")
    page = await place.http.get("/ada/garden/pull/1")
    assert page.status_code == 200
    for shown in (
        "open: soul/1-work into main",
        "changes requested",
        "&lt;i&gt;More&lt;/i&gt; peas.",
        "+Beans.",
        "b/&lt;b&gt;.md",
    ):
        assert shown in page.text
    assert "<i>" not in page.text
    assert "<b>.md" not in page.text

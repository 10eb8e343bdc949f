"""The town's pull requests, by PyGithub: real diffs, reviews, reviewers and merges."""

from __future__ import annotations

import asyncio

import github
import pytest
from github.GithubException import GithubException
from github.PullRequest import PullRequest

from tests.town.github_place import GARDEN, GitHubPlace, needs_git
from town.github.values import Event

pytestmark = needs_git
PULL = f"{GARDEN}/pulls/1"


async def open_pull(place: GitHubPlace, *, body: str = "Part of it.", file: str = "beans.md", by: str = "ada") -> None:
    """Pull request 1, from `soul/1-work` to `main`: one file more."""
    first = await place.commit("README.md", "Hello.\n")
    await place.branch("soul/1-work", first)
    await place.commit(file, "Beans.\nPeas.\n", branch="soul/1-work")
    answer = await place.ask(
        "POST", f"{GARDEN}/pulls", {"title": "Sow", "body": body, "head": "soul/1-work", "base": "main"}, by=by
    )
    assert answer.status_code == 201, answer.text


def pull_of(client: github.Github, number: int = 1) -> PullRequest:
    return client.get_repo("ada/garden").get_pull(number)


async def test_a_pull_request_shows_what_it_would_change(place: GitHubPlace) -> None:
    await open_pull(place)

    def look(client: github.Github) -> None:
        pull = pull_of(client)
        assert (pull.title, pull.state, pull.draft, pull.merged, pull.mergeable) == ("Sow", "open", False, False, True)
        assert (pull.head.ref, pull.base.ref, pull.commits, pull.additions, pull.changed_files) == (
            "soul/1-work",
            "main",
            1,
            2,
            1,
        )
        files = list(pull.get_files())
        assert [(file.filename, file.status, file.patch) for file in files] == [
            ("beans.md", "added", "@@ -0,0 +1,2 @@\n+Beans.\n+Peas.")
        ]
        assert [commit.commit.message for commit in pull.get_commits()] == ["Add beans.md"]
        repo = client.get_repo("ada/garden")
        assert [one.number for one in repo.get_pulls(head="ada:soul/1-work")] == [1]
        assert list(repo.get_pulls(head="ada:other")) == []
        assert repo.get_issue(1).pull_request is not None
        pull.create_issue_comment("How many?")
        assert [one.body for one in pull.get_issue_comments()] == ["How many?"]

    await place.use(look)
    await place.commit("more.md", "More.\n", branch="soul/1-work")
    assert (await place.ask("GET", PULL)).json()["commits"] == 2


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


@pytest.mark.parametrize("method", ["squash", "merge"])
async def test_a_merge_brings_the_files_and_closes_what_it_says(place: GitHubPlace, method: str) -> None:
    await place.ask("POST", f"{GARDEN}/issues", {"title": "Beans, please"})
    first = await place.commit("README.md", "Hello.\n")
    await place.branch("soul/1-work", first)
    await place.commit("beans.md", "Beans.\n", branch="soul/1-work")
    told: list[Event] = []
    place.network.subscribe(told.append)

    def merge(client: github.Github) -> None:
        repo = client.get_repo("ada/garden")
        pull = repo.create_pull("main", "soul/1-work", title="Sow", body="Closes #1")
        done = pull.merge(merge_method=method, commit_title="Sow beans")
        assert done.merged
        commit = repo.get_commit(done.sha)
        assert commit.commit.message.startswith("Sow beans")
        assert len(commit.parents) == (2 if method == "merge" else 1)
        content = repo.get_contents("beans.md")
        assert not isinstance(content, list)
        assert content.decoded_content == b"Beans.\n"
        after = repo.get_pull(2)
        assert (after.merged, after.state, after.merged_by.login, after.merge_commit_sha) == (
            True,
            "closed",
            "ada",
            done.sha,
        )
        assert [file.filename for file in after.get_files()] == ["beans.md"]
        assert repo.get_issue(1).state == "closed"
        with pytest.raises(GithubException) as twice:
            pull.merge(merge_method=method)
        assert twice.value.status == 405

    await place.use(merge)
    assert "pull_merged" in [event.kind for event in told]
    for path in (f"{GARDEN}/pulls/2", f"{GARDEN}/issues/2"):
        assert (await place.ask("PATCH", path, {"state": "open"})).status_code == 422
    assert (await place.ask("GET", f"{GARDEN}/pulls/2")).json()["state"] == "closed"


async def test_of_many_who_merge_at_once_exactly_one_does(place: GitHubPlace) -> None:
    await open_pull(place)
    answers = await asyncio.gather(*(place.ask("PUT", f"{PULL}/merge", {"merge_method": "squash"}) for _ in range(6)))
    codes = sorted(answer.status_code for answer in answers)
    assert (codes[0], set(codes[1:]) <= {405, 409}) == (200, True)
    assert len((await place.ask("GET", f"{GARDEN}/commits")).json()) == 2


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


async def test_a_branch_that_is_behind_is_brought_up_to_date(place: GitHubPlace) -> None:
    await open_pull(place)
    await place.commit("peas.md", "Peas.\n")
    assert (await place.ask("PUT", f"{PULL}/update-branch")).status_code == 202
    seen = (await place.ask("GET", PULL)).json()
    assert (seen["commits"], seen["changed_files"], seen["mergeable"]) == (2, 1, True)


async def test_nobody_approves_their_own_and_words_are_needed(place: GitHubPlace) -> None:
    await open_pull(place)

    async def review(by: str, **body: str) -> tuple[int, str]:
        answer = await place.ask("POST", f"{PULL}/reviews", body, by=by)
        told = answer.json()
        return answer.status_code, told["errors"][0] if "errors" in told else told["state"]

    assert await review("ada", event="APPROVE") == (422, "Can not approve your own pull request")
    assert await review("ada", event="REQUEST_CHANGES", body="No.") == (
        422,
        "Can not request changes on your own pull request",
    )
    assert await review("bea", event="COMMENT") == (422, "Body is required")
    assert await review("ada", event="COMMENT", body="Ready.") == (200, "COMMENTED")
    assert await review("bea", event="REQUEST_CHANGES", body="More peas.") == (200, "CHANGES_REQUESTED")
    assert await review("bea", event="APPROVE") == (200, "APPROVED")
    assert await review("cy", event="APPROVE") == (200, "APPROVED")
    seen = (await place.ask("GET", f"{PULL}/reviews")).json()
    assert [(one["user"]["login"], one["state"], one["author_association"]) for one in seen] == [
        ("ada", "COMMENTED", "OWNER"),
        ("bea", "CHANGES_REQUESTED", "COLLABORATOR"),
        ("bea", "APPROVED", "COLLABORATOR"),
        ("cy", "APPROVED", "NONE"),
    ]
    await place.ask("PATCH", PULL, {"state": "closed"})
    assert await review("bea", event="APPROVE") == (422, "Can not approve a closed pull request")


async def test_reviewers_are_asked_and_are_done_when_they_reviewed(place: GitHubPlace) -> None:
    await open_pull(place)

    def course(client: github.Github) -> None:
        pull = pull_of(client)
        pull.create_review_request(reviewers=["bea"])
        assert [user.login for user in pull.get_review_requests()[0]] == ["bea"]
        for wrong, told in (
            ("ada", "from pull request author"),
            ("cy", "not a collaborator"),
            ("nobody", "collaborator"),
        ):
            with pytest.raises(GithubException, match=told) as refused:
                pull.create_review_request(reviewers=[wrong])
            assert refused.value.status == 422

    def answer(client: github.Github) -> None:
        pull = pull_of(client)
        review = pull.create_review(
            body="Nearly.", event="REQUEST_CHANGES", comments=[{"path": "beans.md", "body": "Which?", "line": 2}]
        )
        assert pull.get_review_requests()[0].totalCount == 0
        said = list(pull.get_review_comments())
        assert [(one.body, one.path, one.diff_hunk) for one in said] == [
            ("Which?", "beans.md", "@@ -0,0 +1,2 @@\n+Beans.\n+Peas.")
        ]
        reply = pull.create_review_comment_reply(said[0].id, "Sugar peas.")
        assert reply.in_reply_to_id == said[0].id
        with pytest.raises(GithubException, match="Path could not be resolved"):
            pull.create_review(event="COMMENT", comments=[{"path": "other.md", "body": "?", "line": 1}])
        review.dismiss("Done by now.")
        assert [one.state for one in pull.get_reviews()] == ["DISMISSED", "COMMENTED"]

    await place.use(course)
    await place.use(answer, by="bea")


async def test_a_pending_review_is_seen_by_its_author_only_until_it_is_submitted(place: GitHubPlace) -> None:
    await open_pull(place)
    pending = (await place.ask("POST", f"{PULL}/reviews", {"body": "Hm."}, by="bea")).json()
    assert (await place.ask("GET", f"{PULL}/reviews")).json() == []
    assert (await place.ask("GET", f"{PULL}/reviews/{pending['id']}")).status_code == 404
    assert (await place.ask("POST", f"{PULL}/reviews", {"body": "Hm."}, by="bea")).status_code == 422
    done = await place.ask("POST", f"{PULL}/reviews/{pending['id']}/events", {"event": "APPROVE"}, by="bea")
    assert (done.json()["state"], done.json()["body"]) == ("APPROVED", "Hm.")


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

"""The town's notifications, and answers that are asked for only if they changed."""

from __future__ import annotations

import pytest

from tests.town.github_place import GARDEN, GitHubPlace

ISSUES = f"{GARDEN}/issues"


async def told(place: GitHubPlace, by: str, query: str = "") -> list[tuple[int, str]]:
    """Number and reason of each notification."""
    found = (await place.ask("GET", f"/notifications{query}", by=by)).json()
    return [(int(one["subject"]["url"].rpartition("/")[2]), one["reason"]) for one in found]


async def test_each_is_told_for_the_nearest_reason_and_nobody_of_their_own(place: GitHubPlace) -> None:
    await place.ask("POST", ISSUES, {"title": "Beans", "body": "@bea, please"}, by="cy")
    assert (await told(place, "ada"), await told(place, "bea"), await told(place, "cy")) == (
        [(1, "subscribed")],
        [(1, "mention")],
        [],
    )
    await place.ask("POST", f"{ISSUES}/1/comments", {"body": "Yes."}, by="bea")
    assert (await told(place, "cy"), await told(place, "bea")) == ([(1, "author")], [(1, "mention")])
    await place.ask("POST", f"{ISSUES}/1/comments", {"body": "Thanks."}, by="cy")
    assert await told(place, "bea") == [(1, "comment")]
    await place.ask("POST", f"{ISSUES}/1/assignees", {"assignees": ["bea"]})
    assert await told(place, "bea") == [(1, "assign")]
    assert await told(place, "ada", "?participating=true") == []


async def test_reviewers_are_told_and_authors_of_what_became_of_it(place: GitHubPlace) -> None:
    ada, bea = place.network.find("ada"), place.network.find("bea")
    assert ada
    assert bea
    issue = place.network.open_issue(place.repo, bea, title="Sow", is_pull=True)
    place.network.notify(place.repo, issue, bea, requested=[ada])
    assert await told(place, "ada") == [(1, "review_requested")]
    await place.ask("PATCH", f"{ISSUES}/1", {"state": "closed"})
    assert await told(place, "bea") == [(1, "author")]
    seen = (await place.ask("GET", "/notifications", by="bea")).json()[0]
    assert (seen["subject"]["type"], seen["repository"]["full_name"]) == ("PullRequest", "ada/garden")


async def test_a_poll_that_finds_nothing_new_is_free_and_none_is_missed(place: GitHubPlace) -> None:
    await place.ask("POST", ISSUES, {"title": "Beans", "body": "@bea"})
    first = await place.ask("GET", "/notifications", by="bea")
    assert first.headers["x-poll-interval"] == "60"
    await place.ask("POST", ISSUES, {"title": "Peas, in the same second", "body": "@bea"})
    marker = first.headers["last-modified"]
    second = await place.ask("GET", "/notifications", by="bea", if_modified_since=marker)
    assert len(second.json()) == 2
    place.clock.jump(5)
    third = await place.ask("GET", "/notifications", by="bea", if_modified_since=second.headers["last-modified"])
    fourth = await place.ask("GET", "/notifications", by="bea", if_modified_since=third.headers["last-modified"])
    assert (fourth.status_code, fourth.content, fourth.headers["x-poll-interval"]) == (304, b"", "60")
    assert fourth.headers["x-ratelimit-remaining"] == third.headers["x-ratelimit-remaining"]
    await place.ask("POST", f"{ISSUES}/1/comments", {"body": "@bea"})
    again = await place.ask("GET", "/notifications", by="bea", if_modified_since=fourth.headers["last-modified"])
    assert again.status_code == 200


async def test_what_has_not_changed_is_answered_304_and_costs_nothing(place: GitHubPlace) -> None:
    await place.ask("POST", ISSUES, {"title": "Beans"})
    first = await place.ask("GET", f"{ISSUES}/1")
    same = await place.ask("GET", f"{ISSUES}/1", if_none_match=first.headers["etag"])
    assert (same.status_code, same.headers["etag"]) == (304, first.headers["etag"])
    assert same.headers["x-ratelimit-remaining"] == first.headers["x-ratelimit-remaining"]
    await place.ask("PATCH", f"{ISSUES}/1", {"title": "Peas"})
    assert (await place.ask("GET", f"{ISSUES}/1", if_none_match=first.headers["etag"])).status_code == 200
    anonymous = await place.ask("GET", f"{ISSUES}/1", by="")
    again = await place.ask("GET", f"{ISSUES}/1", by="", if_none_match=anonymous.headers["etag"])
    assert int(again.headers["x-ratelimit-remaining"]) < int(anonymous.headers["x-ratelimit-remaining"])


async def test_a_fine_grained_token_reads_no_notifications(place: GitHubPlace) -> None:
    ada = place.network.find("ada")
    assert ada
    place.network.issue_token(ada, "github_pat_1")
    place.network.issue_token(ada, "ghp_1", ("public_repo",))
    fine = await place.ask("GET", "/notifications", by="", authorization="Bearer github_pat_1")
    assert (fine.status_code, "x-oauth-scopes" in fine.headers) == (403, False)
    classic = await place.ask("GET", "/user", by="", authorization="Bearer ghp_1")
    assert classic.headers["x-oauth-scopes"] == "public_repo"


@pytest.mark.parametrize(("body", "reason"), [("> @cy look\n\nDone.", []), ("@cy look", [(1, "mention")])])
async def test_whom_a_text_only_quotes_is_not_told_of_a_mention(
    place: GitHubPlace, body: str, reason: list[tuple[int, str]]
) -> None:
    await place.ask("POST", ISSUES, {"title": "Beans", "body": body}, by="bea")
    assert await told(place, "cy") == reason


async def test_a_token_writes_only_where_its_scopes_reach(place: GitHubPlace) -> None:
    ada, bea = place.network.find("ada"), place.network.find("bea")
    assert ada
    assert bea
    place.network.create_repo(ada, "secret", private=True)
    place.network.issue_token(ada, "ghp_public", ("public_repo",))
    place.network.issue_token(ada, "ghp_mail", ("notifications",))
    place.network.issue_token(ada, "github_pat_ada")
    place.network.issue_token(bea, "github_pat_bea")

    async def opened(token: str, repo: str = "ada/garden") -> int:
        issue, bearer = {"title": "Beans"}, f"Bearer {token}"
        answer = await place.ask("POST", f"/repos/{repo}/issues", issue, by="", authorization=bearer)
        return answer.status_code

    assert [await opened(token) for token in ("ghp_public", "ghp_mail", "github_pat_ada", "github_pat_bea")] == [
        201,
        404,
        201,
        403,
    ]
    assert [await opened(token, "ada/secret") for token in ("ghp_public", "github_pat_ada")] == [404, 201]
    star = await place.ask("PUT", "/user/starred/ada/garden", by="", authorization="Bearer ghp_public")
    assert star.status_code == 204

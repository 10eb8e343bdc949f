"""Tests of the town's notifications, and of answers that are requested only if they changed.

Tests of the town's organisations, templates, collaborators, labels and search, by PyGithub. A passer-by looks into the
room, says a line, and leaves before any work could wait for it.
"""

import asyncio
import itertools
import random
from pathlib import Path

import github
import pytest
from github.AuthenticatedUser import AuthenticatedUser
from github.GithubException import GithubException

from common.clock import SystemClock
from tests.town.github_place import GARDEN, GitHubPlace, needs_git
from tests.town.page.room_guests import guest
from town.mind.words import load_bank
from town.page.room import KnownResident
from town.passing_by import NAME, lines, look_in
from town.town import open_room

ISSUES = f"{GARDEN}/issues"


async def told(place: GitHubPlace, by: str, query: str = "") -> list[tuple[int, str]]:
    """Return the number and the reason of each notification."""
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


def me(client: github.Github) -> AuthenticatedUser:
    user = client.get_user()
    assert isinstance(user, AuthenticatedUser)
    return user


@pytest.fixture
def lab(place: GitHubPlace) -> None:
    place.network.create_account("lab", kind="Organization", token="")
    place.network.state.members["lab"] = {"ada", "bea"}


@needs_git
async def test_of_many_who_make_one_workspace_at_once_exactly_one_does(place: GitHubPlace, lab: None) -> None:
    await place.commit("README.md", "Hello.\n")
    place.repo.is_template = True
    body = {"owner": "lab", "name": "www-lil-intdev-x"}
    answers = await asyncio.gather(*(place.ask("POST", f"{GARDEN}/generate", body, by=by) for by in ("ada", "bea") * 3))
    assert sorted(answer.status_code for answer in answers) == [201, *[422] * 5]


async def test_who_is_invited_may_push_once_they_accept(place: GitHubPlace) -> None:
    def invite(client: github.Github) -> None:
        repo = client.get_repo("ada/garden")
        assert repo.add_to_collaborators("cy", permission="push") is not None
        assert not repo.has_in_collaborators("cy")
        assert sorted(one.login for one in repo.get_collaborators()) == ["ada", "bea"]

    def accept(client: github.Github) -> None:
        with pytest.raises(GithubException) as refused:
            list(client.get_repo("ada/garden").get_collaborators())
        assert refused.value.status == 403
        user = me(client)
        user.accept_invitation(next(iter(user.get_invitations())))
        assert client.get_repo("ada/garden").permissions.push

    await place.use(invite)
    await place.use(accept, by="cy")
    assert place.network.may_push(place.repo, place.network.find("cy"))


async def test_search_finds_by_words_and_qualifiers(place: GitHubPlace) -> None:
    for title, labels in (("Beans in a row", ["plan"]), ("Peas", ["plan"]), ("Beans again", [])):
        await place.ask("POST", f"{GARDEN}/issues", {"title": title, "labels": labels})
    secret = place.network.create_repo(place.repo.owner, "secret", private=True)
    place.network.open_issue(secret, place.repo.owner, title="Beans in secret")

    def course(client: github.Github) -> None:
        def titles(query: str) -> list[str]:
            return [issue.title for issue in client.search_issues(query)]

        assert titles("beans repo:ada/garden") == ["Beans again", "Beans in a row"]
        assert titles("label:plan is:open author:ada") == ["Peas", "Beans in a row"]
        assert titles("is:pr") == []
        assert [repo.full_name for repo in client.search_repositories("user:ada")] == ["ada/garden"]

    await place.use(course, by="cy")


async def test_it_comes_in_speaks_and_leaves(tmp_path: Path) -> None:
    clock = SystemClock()
    async with (
        open_room(tmp_path, clock, {NAME: KnownResident("kit.test", "Kit")}, KnownResident("you.test", "You")) as room,
        guest(room.url, "maren") as maren,
    ):
        await look_in(room.url, "Only looking in. Glass or sky?", clock, random.Random(1), stay_s=0.1)
        assert (await maren.receive("chat"))["content"] == "Only looking in. Glass or sky?"
        kinds = [row["kind"] for row in room.view.rows() if row["by"]["handle"] == "kit.test"]
        assert kinds == ["joined", "said", "left"]
        assert [one["name"] for one in room.view.present()] == ["maren"]


def test_it_does_not_repeat_itself_soon_and_asks_what_somebody_here_can_answer() -> None:
    bank = load_bank()
    said = list(itertools.islice(lines(bank, random.Random(1)), 40))
    assert len(set(said)) == 40
    assert all(bank.asked_in(line) for line in said)

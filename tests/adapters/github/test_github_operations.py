"""Tests of every operation against the town's GitHub: what it returns, what it costs, and what it changes."""

from typing import Any

import pytest

from adapters.github.checks import BODY_LIMIT_CHARS
from adapters.github.client import GitHub
from adapters.github.sending import has_moved
from adapters.github.types import Comment, GitHubPerson, Repo
from common.constants import GITHUB_BODY_MAX_CHARS
from tests.adapters.github.github_town import REPO, GitHubTown
from tests.adapters.results import err, ok

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_issue_is_opened_with_one_request_and_comes_back_as_it_stands(town: GitHubTown, ada: GitHub) -> None:
    issue = ok(await ada.create_issue(REPO, "Plant  beans\nsoon", "Near the wall.", labels=["plan", "spring"]))
    assert town.requests == ["POST /repos/ada/garden/issues"]
    assert (issue.number, issue.title, issue.body, issue.state) == (1, "Plant beans soon", "Near the wall.", "open")
    assert (issue.author, issue.labels, issue.is_pull_request) == ("ada", ("plan", "spring"), False)
    assert (issue.created_at, issue.closed_at) == ("2026-01-05T12:00:00Z", None)
    assert issue.html_url == f"{town.url}/ada/garden/issues/1"
    stored = town.network.issue(town.repo, 1)
    assert (stored.title, stored.body) == ("Plant beans soon", "Near the wall.")


async def test_an_issue_without_assignees_is_our_own(ada: GitHub) -> None:
    assert ok(await ada.create_issue(REPO, "Mine", "…")).assignees == ("ada",)
    assert ok(await ada.create_issue(REPO, "Hers", "…", assignees=["bea"])).assignees == ("bea",)


async def test_who_may_not_push_opens_an_issue_without_label_or_assignee(town: GitHubTown) -> None:
    issue = ok(await town.client("cy").create_issue(REPO, "Slugs", "Everywhere.", labels=["plan"]))
    assert (issue.author, issue.labels, issue.assignees) == ("cy", (), ())


async def test_a_body_that_is_too_long_is_cut_and_says_so(town: GitHubTown, ada: GitHub) -> None:
    text = "```\n" + "bean\n" * 20_000
    issue = ok(await ada.create_issue(REPO, "t" * 300, text))
    assert len(issue.body) <= GITHUB_BODY_MAX_CHARS
    assert issue.body.endswith("```\n\n[…]")
    assert (len(issue.title), issue.title[-1]) == (256, "…")
    comment = ok(await ada.create_comment(REPO, 1, "🌱" * 70_000))
    assert len(comment.body) <= GITHUB_BODY_MAX_CHARS
    assert comment.body.endswith("[…]")
    whole = "x" * GITHUB_BODY_MAX_CHARS
    assert ok(await ada.create_comment(REPO, 1, whole)).body == whole


async def test_a_body_that_takes_the_place_of_another_is_never_cut(ada: GitHub) -> None:
    ok(await ada.create_issue(REPO, "Beans", "Short."))
    whole = "x" * BODY_LIMIT_CHARS
    assert ok(await ada.update_issue(REPO, 1, body=whole)).body == whole
    refused = err(await ada.update_issue(REPO, 1, body=f"{whole}y"))
    assert (refused.kind, ok(await ada.get_issue(REPO, 1)).body) == ("invalid", whole)


async def test_issues_are_listed_newest_first_with_pull_requests_marked(town: GitHubTown, ada: GitHub) -> None:
    author = town.network.find("bea")
    assert author
    for number in range(1, 4):
        town.network.open_issue(town.repo, author, title=f"Issue {number}", is_pull=number == 2)
        town.clock.jump(60)
    issues = ok(await ada.list_issues(REPO))
    assert [(issue.number, issue.is_pull_request) for issue in issues] == [(3, False), (2, True), (1, False)]
    assert issues[1].html_url.endswith("/pull/2")
    assert len(town.seen) == 1
    assert [issue.number for issue in ok(await ada.list_issues(REPO, limit=2, pulls=False))] == [3, 1]


async def test_an_issue_of_a_repository_called_pull_is_no_pull_request(town: GitHubTown, ada: GitHub) -> None:
    owner = town.network.find("ada")
    assert owner
    town.network.open_issue(town.network.create_repo(owner, "pull"), owner, title="Beans")
    (issue,) = ok(await ada.list_issues(Repo("ada", "pull")))
    assert "/pull/" in issue.html_url
    assert not issue.is_pull_request


async def test_a_list_can_be_narrowed_by_state_author_label_and_time(town: GitHubTown, ada: GitHub) -> None:
    bea = town.client("bea")
    ok(await ada.create_issue(REPO, "one", "…", labels=["plan"]))
    town.clock.jump(3600)
    ok(await bea.create_issue(REPO, "two", "…", labels=["plan", "memo"]))
    ok(await ada.update_issue(REPO, 1, state="closed"))
    town.clock.jump(3600)
    ok(await bea.create_issue(REPO, "three", "…"))

    async def numbers(**narrowed: Any) -> list[int]:
        return [issue.number for issue in ok(await ada.list_issues(REPO, **narrowed))]

    assert await numbers() == [3, 2]
    assert await numbers(state="all") == [3, 2, 1]
    assert await numbers(state="closed") == [1]
    assert await numbers(creator="BEA") == [3, 2]
    assert await numbers(labels=["memo", "plan"]) == [2]
    assert await numbers(since="2026-01-05T16:00:00+02:00") == [3]
    assert await numbers(limit=1) == [3]
    assert err(await ada.list_issues(REPO, since="yesterday")).kind == "invalid"


async def test_long_lists_are_read_page_by_page_and_no_further_than_needed(town: GitHubTown, ada: GitHub) -> None:
    author = town.network.find("ada")
    assert author
    for number in range(250):
        town.network.open_issue(town.repo, author, title=f"Issue {number + 1}")
    assert [issue.number for issue in ok(await ada.list_issues(REPO, limit=200))] == list(range(250, 50, -1))
    assert len(town.seen) == 2
    assert len(ok(await ada.list_issues(REPO, limit=1000))) == 250
    assert len(town.seen) == 5
    issue = town.network.issue(town.repo, 1)
    for number in range(201):
        town.network.write_comment(town.repo, issue, author, f"{number}")
    assert [comment.body for comment in ok(await ada.list_comments(REPO, 1))] == [str(n) for n in range(201)]
    assert len(town.seen) == 8


async def test_an_update_changes_what_is_given_and_blanks_nothing(town: GitHubTown, ada: GitHub) -> None:
    ok(await ada.create_issue(REPO, "Compost", "Turn it.", labels=["plan"]))
    town.seen.clear()
    issue = ok(await ada.update_issue(REPO, 1, title="", body="  ", state="closed", labels=["finished"], assignees=[]))
    assert town.requests == ["PATCH /repos/ada/garden/issues/1"]
    assert (issue.title, issue.body, issue.state) == ("Compost", "Turn it.", "closed")
    assert (issue.labels, issue.assignees, issue.closed_at) == (("finished",), (), "2026-01-05T12:00:00Z")
    assert ok(await ada.update_issue(REPO, 1, title="Heap", state="open")).title == "Heap"
    assert ok(await ada.get_issue(REPO, 1)).closed_at is None
    sent = len(town.seen)
    assert err(await ada.update_issue(REPO, 1, title="", body="")).kind == "invalid"
    assert len(town.seen) == sent


async def test_comments_are_written_listed_since_a_time_and_deleted(town: GitHubTown, ada: GitHub) -> None:
    ok(await ada.create_issue(REPO, "Compost", "Turn it."))
    first = ok(await ada.create_comment(REPO, 1, "Turned."))
    town.clock.jump(60)
    second = ok(await town.client("bea").create_comment(REPO, 1, "Again?"))
    assert first == Comment(
        id=first.id,
        body="Turned.",
        author="ada",
        html_url=f"{town.url}/ada/garden/issues/1#issuecomment-{first.id}",
        created_at="2026-01-05T12:00:00Z",
        updated_at="2026-01-05T12:00:00Z",
        author_id=1,
    )
    assert ok(await ada.list_comments(REPO, 1)) == (first, second)
    assert ok(await ada.list_comments(REPO, 1, since="2026-01-05T12:00:30Z")) == (second,)
    changed = ok(await ada.edit_comment(REPO, first.id, "Turned twice."))
    assert (changed.id, changed.body) == (first.id, "Turned twice.")
    assert (changed.created_at, changed.updated_at) == (first.created_at, "2026-01-05T12:01:00Z")
    assert err(await ada.edit_comment(REPO, first.id, " ")).kind == "invalid"
    for _ in range(2):
        assert (await ada.delete_comment(REPO, first.id)).success
    assert err(await ada.edit_comment(REPO, first.id, "Turned.")).kind == "not_found"
    assert ok(await ada.list_comments(REPO, 1)) == (second,)


async def test_an_issue_has_another_version_after_a_comment_within_the_same_second(
    town: GitHubTown, ada: GitHub
) -> None:
    ok(await ada.create_issue(REPO, "Compost", "Turn it."))
    versions = list[str]()
    for _ in range(2):
        ok(await ada.create_comment(REPO, 1, "Turned."))
        (listed,) = ok(await ada.list_issues(REPO))
        versions += {listed.version, ok(await ada.get_issue(REPO, 1)).version}
    assert len(versions) == len(set(versions)) == 2


async def test_only_who_may_deletes_anothers_comment(town: GitHubTown, ada: GitHub) -> None:
    ok(await ada.create_issue(REPO, "Compost", "Turn it."))
    comment = ok(await ada.create_comment(REPO, 1, "Turned."))
    assert err(await town.client("cy").edit_comment(REPO, comment.id, "Mine.")).kind == "auth"
    assert err(await town.client("cy").delete_comment(REPO, comment.id)).kind == "auth"
    assert (await town.client("bea").delete_comment(REPO, comment.id)).success


async def test_a_reaction_given_twice_is_one(town: GitHubTown, ada: GitHub) -> None:
    ok(await ada.create_issue(REPO, "Compost", "Turn it."))
    assert ok(await ada.add_reaction(REPO, 1, "rocket")) == ok(await ada.add_reaction(REPO, 1, "rocket"))
    assert [one.content for one in town.network.issue(town.repo, 1).reactions] == ["rocket"]


async def test_assignees_come_and_go_but_the_last_one_stays(town: GitHubTown, ada: GitHub) -> None:
    ok(await ada.create_issue(REPO, "Compost", "Turn it."))
    assert ok(await ada.add_assignees(REPO, 1, ["bea", "cy"])).assignees == ("ada", "bea")
    assert ok(await ada.remove_assignee(REPO, 1, "ADA")).assignees == ("bea",)
    town.seen.clear()
    assert ok(await ada.remove_assignee(REPO, 1, "bea")).assignees == ("bea",)
    assert town.requests == ["GET /repos/ada/garden/issues/1"]


async def test_a_repository_and_its_people_are_told(town: GitHubTown, ada: GitHub) -> None:
    repository = ok(await ada.get_repository(REPO))
    assert (repository.full_name, repository.description) == ("ada/garden", "What grows where")
    assert (repository.html_url, repository.default_branch) == (f"{town.url}/ada/garden", "main")
    assert (repository.private, repository.has_issues) == (False, True)
    assert ok(await ada.get_user("BEA")) == GitHubPerson("bea", "", f"{town.url}/bea", id=2)
    assert ok(await ada.rights()).login == "ada"
    assert len(town.seen) == 3


async def test_reading_needs_no_account_but_writing_does(town: GitHubTown, ada: GitHub) -> None:
    ok(await ada.create_issue(REPO, "Compost", "Turn it."))
    nobody = town.client("", token="")
    assert not nobody.configured
    assert ok(await nobody.get_issue(REPO, 1)).author == "ada"
    sent = len(town.seen)
    for refused in (await nobody.create_comment(REPO, 1, "hello"), await nobody.rights()):
        assert err(refused).kind == "auth"
        assert "AGENT_GITHUB_TOKEN" in err(refused).error
    assert len(town.seen) == sent
    assert "authorization" not in town.seen[-1].headers


async def test_of_a_repository_that_moved_only_its_new_place_is_told(town: GitHubTown, ada: GitHub) -> None:
    town.network.rename_repo(town.repo, "orchard")
    for refused in (await ada.create_issue(REPO, "Pears", "Prune."), await ada.list_issues(REPO, limit=1)):
        assert has_moved(err(refused))
    assert town.requests == ["POST /repos/ada/garden/issues", "GET /repos/ada/garden/issues"]
    assert town.issues() == 0
    assert ok(await ada.get_repository(REPO)).full_name == "ada/orchard"


@pytest.mark.parametrize("repo", [Repo("ada", ".."), Repo("", "garden"), Repo("ada", "a/b"), Repo("-a", "b")], ids=str)
async def test_what_cannot_be_a_repository_is_not_asked_for(town: GitHubTown, ada: GitHub, repo: Repo) -> None:
    assert err(await ada.get_repository(repo)).kind == "invalid"
    assert err(await ada.create_issue(repo, "t", "b")).kind == "invalid"
    assert town.seen == []


async def test_what_is_empty_or_has_no_number_is_not_sent(town: GitHubTown, ada: GitHub) -> None:
    results = (
        await ada.create_issue(REPO, " \n", "body"),
        await ada.create_comment(REPO, 1, "  "),
        await ada.get_issue(REPO, 0),
        await ada.add_assignees(REPO, 1, []),
        await ada.get_user("no/body"),
    )
    assert [err(result).kind for result in results] == ["invalid"] * 5
    assert town.seen == []


async def test_every_request_names_its_version_and_its_sender(town: GitHubTown, ada: GitHub) -> None:
    ok(await ada.get_repository(REPO))
    headers = town.seen[0].headers
    assert headers["x-github-api-version"] == "2022-11-28"
    assert headers["accept"] == "application/vnd.github+json"
    assert headers["user-agent"].startswith("py-general-agent/")
    assert headers["authorization"].startswith("Bearer ghp_")

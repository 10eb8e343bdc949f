"""The town's organisations, templates, collaborators, labels and search, by PyGithub."""

from __future__ import annotations

import asyncio

import github
import pytest
from github.AuthenticatedUser import AuthenticatedUser
from github.GithubException import GithubException

from tests.town.github_place import GARDEN, GitHubPlace, needs_git


def me(client: github.Github) -> AuthenticatedUser:
    user = client.get_user()
    assert isinstance(user, AuthenticatedUser)
    return user


@pytest.fixture
def lab(place: GitHubPlace) -> None:
    place.network.create_account("lab", kind="Organization", token="")
    place.network.state.members["lab"] = {"ada", "bea"}


@needs_git
async def test_a_repository_grows_from_a_template(place: GitHubPlace, lab: None) -> None:
    await place.commit("README.md", "Hello.\n")
    await place.commit("docs/how.md", "So.\n")
    place.repo.is_template = True

    def course(client: github.Github) -> None:
        template, org = client.get_repo("ada/garden"), client.get_organization("lab")
        made = org.create_repo_from_template("www-lil-intdev-garden", template, description="Together")
        assert (made.full_name, made.description) == ("lab/www-lil-intdev-garden", "Together")
        assert made.permissions.push
        content = made.get_contents("docs/how.md")
        assert not isinstance(content, list)
        assert content.decoded_content == b"So.\n"
        assert [commit.commit.message for commit in made.get_commits()] == ["Initial commit"]
        with pytest.raises(GithubException, match="already exists") as twice:
            org.create_repo_from_template("www-lil-intdev-garden", template)
        assert twice.value.status == 422
        assert [repo.name for repo in org.get_repos()] == ["www-lil-intdev-garden"]
        assert [one.login for one in me(client).get_orgs()] == ["lab"]

    await place.use(course)
    refused = await place.ask("POST", f"{GARDEN}/generate", {"owner": "lab", "name": "mine"}, by="cy")
    assert refused.status_code == 403
    place.repo.is_template = False
    assert (await place.ask("POST", f"{GARDEN}/generate", {"owner": "lab", "name": "more"})).status_code == 422


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


async def test_labels_are_added_one_by_one_and_taken_away(place: GitHubPlace) -> None:
    def course(client: github.Github) -> None:
        repo = client.get_repo("ada/garden")
        repo.create_label("plan", "00ff00", description="A plan")
        with pytest.raises(GithubException, match="already_exists"):
            repo.create_label("Plan", "00ff00")
        issue = repo.create_issue("Beans", labels=["plan"])
        issue.add_to_labels("plan:active", "help")
        issue.remove_from_labels("help")
        assert [label.name for label in issue.get_labels()] == ["plan", "plan:active"]
        issue.set_labels("plan", "plan:complete")
        assert [label.name for label in repo.get_issue(1).labels] == ["plan", "plan:complete"]
        comment = issue.create_comment("Sown")
        comment.edit("Sown twice")
        comment.create_reaction("heart")
        assert [one.body for one in issue.get_comments()] == ["Sown twice"]
        assert comment.get_reactions()[0].content == "heart"

    await place.use(course)
    assert (await place.ask("POST", f"{GARDEN}/issues/1/labels", {"labels": ["x"]}, by="cy")).status_code == 403


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


async def test_stars_and_follows_are_kept(place: GitHubPlace) -> None:
    def course(client: github.Github) -> None:
        user, repo, ada = me(client), client.get_repo("ada/garden"), client.get_user("ada")
        assert not isinstance(ada, AuthenticatedUser)
        user.add_to_starred(repo)
        user.add_to_following(ada)
        assert (user.has_in_starred(repo), user.has_in_following(ada)) == (True, True)
        assert client.get_repo("ada/garden").stargazers_count == 1
        user.remove_from_starred(repo)
        user.remove_from_following(ada)
        assert (user.has_in_starred(repo), user.has_in_following(ada)) == (False, False)

    await place.use(course, by="bea")

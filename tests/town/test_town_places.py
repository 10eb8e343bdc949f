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

"""Repositories, organisations, accounts and search. Every operation answers `ApiResult`; only our own bugs raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from adapters.github import convert
from adapters.github.checks import empty, wrong_login, wrong_place
from adapters.github.types import Account, Issue, Organization, Repo, Repository, first, repo_path
from common.result import ApiResult, Err, Ok

if TYPE_CHECKING:
    from adapters.github.calls import Ask, Callers

MAX_LISTED = 1_000
MAX_FOUND = 100
_FORBIDDEN = 403


class Repositories:
    """Repositories, and the organisations that hold them."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def of_organization(
        self,
        org: str,
        *,
        sort: Literal["created", "updated", "pushed", "full_name"] = "created",
        direction: Literal["asc", "desc"] = "desc",
        limit: int = MAX_LISTED,
    ) -> ApiResult[tuple[Repository, ...]]:
        """The repositories of an organisation that we may see; each hundred costs a request."""
        what = f"list the repositories of {org}"
        url, asked = f"/orgs/{quote(org, safe='')}/repos", {"type": "all", "sort": sort, "direction": direction}

        def work(ask: Ask) -> tuple[Repository, ...]:
            found = first(limit, ask.pages(url, asked))
            return tuple(convert.repository(ask.told_repository(one)) for one in found)

        return await self._caller(wrong_login(what, org)).read(what, work)

    async def organizations(self, *, limit: int = MAX_LISTED) -> ApiResult[tuple[Organization, ...]]:
        """The organisations of our own account."""
        return await self._caller().read(
            "list the organisations of our account",
            lambda ask: tuple(map(convert.organization, first(limit, ask.pages("/user/orgs")))),
        )

    async def pushers(self, repo: Repo, *, limit: int = MAX_LISTED) -> ApiResult[tuple[Account, ...]]:
        """Those who may push there; none where we may not ask, which only who may push may."""
        what = f"list who may push to {repo.full_name}"

        def work(ask: Ask) -> tuple[Account, ...]:
            found = first(limit, ask.pages(f"{repo_path(repo)}/collaborators"))
            return tuple(convert.account(one) for one in found if one.get("permissions", {}).get("push") is True)

        found = await self._caller(wrong_place(what, repo)).read(what, work)
        return Ok(()) if isinstance(found, Err) and found.status == _FORBIDDEN and found.kind == "auth" else found

    async def generate(
        self, template: Repo, *, owner: str, name: str, description: str = "", private: bool = False
    ) -> ApiResult[Repository]:
        """Make a repository from a template. The error is of kind `conflict` where there is one of that name."""
        new = Repo(owner, name)
        what = f"create {new.full_name} from {template.full_name}"
        url, body = f"{repo_path(template)}/generate", {"owner": owner, "name": name, "description": description}
        options = {"include_all_branches": False, "private": private}
        return await self._caller(wrong_place(what, template), wrong_place(what, new)).write(
            what, lambda ask: convert.repository(ask.told_repository(ask.send("POST", url, body | options)))
        )

    async def star(self, repo: Repo) -> ApiResult[None]:
        """Star a repository; once more is the same."""
        what = f"star {repo.full_name}"
        url = f"/user/starred/{repo_path(repo).removeprefix('/repos/')}"
        return await self._caller(wrong_place(what, repo)).write(what, lambda ask: ask.do("PUT", url))


class Accounts:
    """Whom the account follows."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def follow(self, login: str) -> ApiResult[None]:
        """Follow an account; once more is the same."""
        what = f"follow {login}"
        url = f"/user/following/{quote(login, safe='')}"
        return await self._caller(wrong_login(what, login)).write(what, lambda ask: ask.do("PUT", url))


class PlaceSearch:
    """GitHub's search: at most 30 questions a minute, in a budget of its own."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def issues(self, query: str, *, limit: int = MAX_FOUND) -> ApiResult[tuple[Issue, ...]]:
        """Issues and pull requests by GitHub's search words (`repo:o/r is:issue state:open …`), best first."""
        what = "search for issues"

        def work(ask: Ask) -> tuple[Issue, ...]:
            found = first(limit, ask.pages("/search/issues", {"q": query}, items="items"))
            return tuple(convert.issue(ask.told_issue(one)) for one in found)

        return await self._caller(empty(what, "query", query)).read(what, work)

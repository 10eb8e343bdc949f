"""Repositories, organisations, accounts and search. Every operation returns `ApiResult`; only our own bugs raise."""

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
    """Repositories, and the organisations that own them."""

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
        """Return the repositories of an organisation that we may see; each hundred costs a request."""
        what = f"list the repositories of {org}"
        url, asked = f"/orgs/{quote(org, safe='')}/repos", {"type": "all", "sort": sort, "direction": direction}

        def work(ask: Ask) -> tuple[Repository, ...]:
            found = first(limit, ask.pages(url, asked))
            return tuple(convert.repository(ask.told_repository(one)) for one in found)

        return await self._caller(wrong_login(what, org)).read(what, work)

    async def organizations(self, *, limit: int = MAX_LISTED) -> ApiResult[tuple[Organization, ...]]:
        """Return the organisations of our own account."""
        return await self._caller().read(
            "list the organisations of our account",
            lambda ask: tuple(map(convert.organization, first(limit, ask.pages("/user/orgs")))),
        )

    async def pushers(self, repo: Repo, *, limit: int = MAX_LISTED) -> ApiResult[tuple[Account, ...]]:
        """Return the accounts that may push there; none if we may not ask, which requires the right to push."""
        what = f"list who may push to {repo.full_name}"

        def work(ask: Ask) -> tuple[Account, ...]:
            found = first(limit, ask.pages(f"{repo_path(repo)}/collaborators"))
            return tuple(convert.account(one) for one in found if one.get("permissions", {}).get("push") is True)

        found = await self._caller(wrong_place(what, repo)).read(what, work)
        return Ok(()) if isinstance(found, Err) and found.status == _FORBIDDEN and found.kind == "auth" else found

    async def generate(
        self, template: Repo, *, owner: str, name: str, description: str = "", private: bool = False
    ) -> ApiResult[Repository]:
        """Create a repository from a template. The error is of kind `conflict` if there is one of that name."""
        new = Repo(owner, name)
        what = f"create {new.full_name} from {template.full_name}"
        url, body = f"{repo_path(template)}/generate", {"owner": owner, "name": name, "description": description}
        options = {"include_all_branches": False, "private": private}
        return await self._caller(wrong_place(what, template), wrong_place(what, new)).write(
            what, lambda ask: convert.repository(ask.told_repository(ask.send("POST", url, body | options)))
        )

    async def star(self, repo: Repo) -> ApiResult[None]:
        """Star a repository; repeating it changes nothing."""
        what = f"star {repo.full_name}"
        url = f"/user/starred/{repo_path(repo).removeprefix('/repos/')}"
        return await self._caller(wrong_place(what, repo)).write(what, lambda ask: ask.do("PUT", url))


class Accounts:
    """The accounts that our account follows."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def follow(self, login: str) -> ApiResult[None]:
        """Follow an account; repeating it changes nothing."""
        what = f"follow {login}"
        url = f"/user/following/{quote(login, safe='')}"
        return await self._caller(wrong_login(what, login)).write(what, lambda ask: ask.do("PUT", url))


class PlaceSearch:
    """GitHub's search: at most 30 requests a minute, in a separate budget."""

    def __init__(self, caller: Callers) -> None:
        self._caller = caller

    async def issues(self, query: str, *, limit: int = MAX_FOUND) -> ApiResult[tuple[Issue, ...]]:
        """Return issues and pull requests that match a GitHub search (`repo:o/r is:issue state:open …`), best first."""
        what = "search for issues"

        def work(ask: Ask) -> tuple[Issue, ...]:
            found = first(limit, ask.pages("/search/issues", {"q": query}, items="items"))
            return tuple(convert.issue(ask.told_issue(one)) for one in found)

        return await self._caller(empty(what, "query", query)).read(what, work)

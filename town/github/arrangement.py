"""The initial content of the town's GitHub: accounts, a repository, an organisation with a template."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml

from common.clock import Clock
from town.github.network import GitHubNetwork
from town.github.repository import NO_COMMIT, GitError, Signature
from town.github.values import StoredRepo

VISITOR_LOGIN = "you"
ORGANISATION = "town-works"
TEMPLATE = f"{ORGANISATION}/www-template"
ALMANAC = f"{ORGANISATION}/www-lil-intdev-almanac"
PRICEBOOK = f"{ORGANISATION}/www-lil-intdev-pricebook"
REQUESTS = (
    f"Build us a command that adds up expenses from a CSV by month, with tests, in github.com/{ALMANAC}.",
    f"Please fix a bug in github.com/{PRICEBOOK}: adding two prices in different currencies gives a wrong sum.",
)
"""Suggestions for the visitor in the room: each names one of the workspaces that exist from the start."""
_SQUARE = "town-square"
_NEW_PAGE = {
    "README.md": "# A new page\n\nWhat stands here was copied from the template. The work begins in the issues.\n"
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The network, the visitor's repository in which the residents may work, and the residents' tokens by login.

    `workspaces` are the repositories that the residents watch from the start, as `owner/name`.
    """

    network: GitHubNetwork
    square: StoredRepo
    tokens: Mapping[str, str]
    workspaces: tuple[str, ...]


async def arrange(
    residents: Mapping[str, str],
    dids: Mapping[str, str],
    clock: Clock,
    git_folder: Path,
    *,
    with_workspaces: bool = False,
) -> Arrangement:
    """Return a GitHub with accounts for the visitor and for `residents`, which holds their names by login.

    The profile of each resident links to its account in the town's network, one of `dids` by login. Everybody is a
    member of the organisation, so that any of them may create its workspace from the template. With `with_workspaces`
    it has one already, and a small Python library with a bug (`pricebook.yaml`).
    If `git` is not installed, the repositories stay empty.
    """
    network = GitHubNetwork(clock=clock, git_folder=git_folder)
    visitor = network.create_account(VISITOR_LOGIN, name="You")
    tokens = {
        login: network.create_account(login, name=name, website=f"https://bsky.app/profile/{dids[login]}").token
        for login, name in residents.items()
    }
    square = network.create_repo(visitor, _SQUARE, description="What the town works on.", collaborators=list(tokens))
    works = network.create_account(ORGANISATION, name="The town's works", kind="Organization")
    network.state.members[ORGANISATION] = {VISITOR_LOGIN, *tokens}
    template = network.create_repo(works, TEMPLATE.partition("/")[2], description="What a workspace begins with.")
    template.is_template = True
    filled: list[tuple[StoredRepo, Mapping[str, str]]] = [(template, _NEW_PAGE)]
    if with_workspaces:
        for full_name, description, begins_with in (
            (ALMANAC, "What the residents note.", _NEW_PAGE),
            (PRICEBOOK, "Prices and baskets, a small Python library.", pricebook()),
        ):
            name = full_name.partition("/")[2]
            repo = network.create_repo(works, name, description=description, collaborators=list(tokens))
            filled.append((repo, begins_with))
    for repo, begins_with in filled:
        try:
            await _fill(network, repo, begins_with)
        except GitError as error:
            logger.warning("%s on the town's GitHub is empty: %s", repo.full_name, error)
    workspaces = (ALMANAC, PRICEBOOK) if with_workspaces else ()
    return Arrangement(network, square, tokens, workspaces)


def pricebook() -> Mapping[str, str]:
    """Return the files of the library, by path."""
    found: Mapping[str, str] = yaml.safe_load((files("town.github") / "pricebook.yaml").read_text("utf-8"))
    return found


async def _fill(network: GitHubNetwork, repo: StoredRepo, begins_with: Mapping[str, str]) -> None:
    """Make the first commit of a repository, with these texts by path. Raises `GitError`."""
    git = network.git(repo)
    tree = await git.tree_with(None, {path: await git.write_blob(text.encode()) for path, text in begins_with.items()})
    author = Signature(ORGANISATION, f"{ORGANISATION}@town.test", network.clock.now())
    commit = await git.write_commit(tree, [], "Initial commit\n", author)
    await git.set_ref(f"refs/heads/{repo.default_branch}", commit, old=NO_COMMIT)

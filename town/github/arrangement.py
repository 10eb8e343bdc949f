"""What the town's GitHub holds when the town opens: accounts, a repository, an organisation with a template."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from common.clock import Clock
from town.github.git_process import GitError
from town.github.git_values import NO_COMMIT, Signature
from town.github.network import GitHubNetwork
from town.github.values import StoredRepo

VISITOR_LOGIN = "you"
ORGANISATION = "town-works"
TEMPLATE = f"{ORGANISATION}/www-template"
ALMANAC = f"{ORGANISATION}/www-lil-intdev-almanac"
_SQUARE = "town-square"
_README = "# A new page\n\nWhat stands here was copied from the template. The work begins in the issues.\n"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The network, the visitor's repository in which the residents may work, and the residents' tokens by login."""

    network: GitHubNetwork
    square: StoredRepo
    tokens: Mapping[str, str]


async def arrange(
    residents: Mapping[str, str],
    dids: Mapping[str, str],
    clock: Clock,
    git_folder: Path,
    *,
    with_almanac: bool = False,
) -> Arrangement:
    """Return a GitHub with accounts for the visitor and for `residents`, whose names stand there by login.

    The page of each names its account in the network of the town, one of `dids` by login. Everybody is a member of the
    organisation, so that any of them may make its workspace from the template; `with_almanac` it has one already.
    Where `git` is not installed, the repositories stay empty.
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
    filled = [template]
    if with_almanac:
        name = ALMANAC.partition("/")[2]
        filled.append(
            network.create_repo(works, name, description="What the residents note.", collaborators=list(tokens))
        )
    for repo in filled:
        try:
            await _fill(network, repo)
        except GitError as error:
            logger.warning("%s on the town's GitHub is empty: %s", repo.full_name, error)
    return Arrangement(network, square, tokens)


async def _fill(network: GitHubNetwork, template: StoredRepo) -> None:
    """Its first commit."""
    git = network.git(template)
    tree = await git.tree_with(None, {"README.md": await git.write_blob(_README.encode())})
    author = Signature(ORGANISATION, f"{ORGANISATION}@town.test", network.clock.now())
    commit = await git.write_commit(tree, [], "Initial commit\n", author)
    await git.set_ref(f"refs/heads/{template.default_branch}", commit, old=NO_COMMIT)

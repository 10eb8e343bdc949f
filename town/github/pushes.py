"""What follows when branches have changed, by the interface or by a push: pull requests go along."""

from __future__ import annotations

from town.github import pulls
from town.github.network import GitHubNetwork
from town.github.values import GitHubAccount, GitHubEvent, StoredRepo

_HEADS = "refs/heads/"


async def after_push(network: GitHubNetwork, repo: StoredRepo, by: GitHubAccount) -> None:
    """Lets the open pull requests of a repository follow its branches, and tells whoever listens.

    One whose commits are in its base by now is merged, one whose branch is gone is closed.
    """
    git = network.git(repo)
    refs = await git.refs()
    for pull in [pull for pull in repo.pulls.values() if pull.is_open]:
        base, head = refs.get(f"{_HEADS}{pull.base_ref}"), refs.get(f"{_HEADS}{pull.head_ref}")
        if base and head and base != pull.base and await git.merge_base(base, head) == head and pull.is_open:
            pulls.set_merged(network, repo, pull, by, base)
    for pull in pulls.follow_refs(network, repo, refs, by):
        await git.point(f"refs/pull/{pull.number}/head", pull.head)
    repo.pushed_at = network.clock.now()
    network.tell(GitHubEvent("pushed", repo.full_name, 0, by.login))

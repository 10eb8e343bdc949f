"""Changes of names on GitHub: accounts are renamed and deleted, repositories renamed, transferred and deleted."""

from dataclasses import replace

from town.github.network import GitHubNetwork
from town.github.values import GitHubAccount, StoredRepo


def rename_account(network: GitHubNetwork, account: GitHubAccount, login: str) -> GitHubAccount:
    """Give an account another login, keeping its id; return it. The old login becomes free.

    Raises `ValueError` if the login is taken.
    """
    state = network.state
    if login.lower() in state.accounts:
        raise ValueError(f"{login} is taken")
    renamed = replace(state.accounts.pop(account.login.lower()), login=login)
    state.accounts[login.lower()] = renamed
    state.tokens = {
        secret: replace(token, account=renamed) if token.account.id == account.id else token
        for secret, token in state.tokens.items()
    }
    for repo in network.repos():
        if account.login.lower() in repo.collaborators:
            repo.collaborators = {*repo.collaborators, login.lower()} - {account.login.lower()}
        for issue in filter(None, repo.issues.values()):
            issue.author = renamed if issue.author.id == account.id else issue.author
            for comment in issue.comments:
                comment.author = renamed if comment.author.id == account.id else comment.author
        if repo.owner.id == account.id:
            _move(network, repo, owner=renamed)
    return renamed


def transfer_repo(network: GitHubNetwork, repo: StoredRepo, owner: GitHubAccount) -> None:
    """Give the repository to another owner without collaborators; its old name redirects to it."""
    _move(network, repo, owner=owner)
    repo.collaborators = set()


def delete_repo(network: GitHubNetwork, repo: StoredRepo) -> None:
    """Delete the repository; its name becomes free."""
    network.state.repos.pop(repo.full_name.lower())


def _move(network: GitHubNetwork, repo: StoredRepo, *, owner: GitHubAccount) -> None:
    state = network.state
    state.moved[repo.full_name.lower()] = state.repos.pop(repo.full_name.lower())
    repo.owner = owner
    state.repos[repo.full_name.lower()] = repo

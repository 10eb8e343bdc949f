"""What a token may do, whatever its account may: GitHub's scopes, and the narrower reach of fine-grained tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from town.github.network import GitHubNetwork
from town.github.values import Refusal, StoredRepo, Token, not_found

_NARROW = "Resource not accessible by personal access token"


def check_rights(network: GitHubNetwork, token: Token, path: Mapping[str, Any]) -> None:
    """Raises `Refusal` if a token may not write in the repository that an address names.

    A classic token needs the scope `repo`, or `public_repo` for what is public. A fine-grained one writes only where
    its account, or an organisation of which the account is a member, is the owner.
    """
    repo = _repo(network, token, path)
    if repo is None or token.is_of_app:
        return
    if token.scopes is None:
        members = network.state.members.get(repo.owner.login.lower(), ())
        if token.account != repo.owner and token.account.login.lower() not in members:
            raise Refusal(403, _NARROW)
    elif "repo" not in token.scopes and (repo.private or "public_repo" not in token.scopes):
        raise not_found()


def _repo(network: GitHubNetwork, token: Token, path: Mapping[str, Any]) -> StoredRepo | None:
    """The repository of an address; None where it names none, or one that is not there for this account."""
    try:
        if "repo_id" in path:
            return network.repo_by_id(path["repo_id"], token.account)
        return network.repo(path["owner"], path["repo"], token.account) if "repo" in path else None
    except Refusal:
        return None

"""A request to the town's GitHub, understood, and the answer of the function that does what it asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from town.github.bodies import Window
from town.github.network import GitHubNetwork
from town.github.repository import GitRepository
from town.github.values import GitHubAccount, Json, Refusal, StoredIssue, StoredRepo, Token
from town.github.views import GitHubViews


@dataclass(frozen=True, slots=True)
class GitHubCall:
    """A request, understood. `path` holds what the address named."""

    network: GitHubNetwork
    views: GitHubViews
    token: Token | None
    path: Mapping[str, Any]
    query: Mapping[str, str]
    body: Json

    @property
    def viewer(self) -> GitHubAccount | None:
        """Who asks; None for nobody in particular."""
        return self.token.account if self.token else None

    @property
    def writer(self) -> GitHubAccount:
        """Who asks, where nobody may not. Raises `Refusal`."""
        if self.viewer is None:
            raise Refusal(401, "Requires authentication")
        return self.viewer

    @property
    def repo(self) -> StoredRepo:
        """The repository that the address names, by name or by number. Raises `Refusal`."""
        if "repo_id" in self.path:
            return self.network.repo_by_id(self.path["repo_id"], self.viewer)
        return self.network.repo(self.path["owner"], self.path["repo"], self.viewer)

    @property
    def issue(self) -> StoredIssue:
        """The issue that the address names. Raises `Refusal`."""
        return self.network.issue(self.repo, self.path["number"])

    @property
    def git(self) -> GitRepository:
        """The Git repository behind `repo`. Raises `Refusal`."""
        return self.network.git(self.repo)


@dataclass(frozen=True, slots=True)
class Answer:
    """A success.

    Attributes:
        body: what is told; None for an answer without a body.
        status: 200 and its like.
        window: which page of a list of `count` the body is, if it is one.
        modified: when it last changed, where that is told.
        headers: further ones.

    """

    body: Any
    status: int = 200
    window: Window | None = None
    count: int = 0
    modified: datetime | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


Handler: TypeAlias = Callable[[GitHubCall], Answer | Awaitable[Answer]]

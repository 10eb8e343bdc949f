"""All that the town's GitHub remembers but what lies in Git; it can be copied whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from town.github.notifications import NotifiedThreads
from town.github.values import GitHubAccount, StoredInvitation, StoredRepo, Token


@dataclass(slots=True)
class NetworkState:
    """What is remembered.

    Attributes:
        accounts: by login in lower case.
        tokens: who is let in by which token.
        repos: by full name in lower case.
        moved: by a former full name in lower case.
        members: the logins of an organisation's members, by its login; all in lower case.
        invitations: those that nobody has answered yet, by number.
        follows: who follows whom, by logins in lower case.
        notifications: who was told of what.

    """

    accounts: dict[str, GitHubAccount] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    repos: dict[str, StoredRepo] = field(default_factory=dict)
    moved: dict[str, StoredRepo] = field(default_factory=dict)
    members: dict[str, set[str]] = field(default_factory=dict)
    invitations: dict[int, StoredInvitation] = field(default_factory=dict)
    follows: set[tuple[str, str]] = field(default_factory=set)
    notifications: NotifiedThreads = field(default_factory=NotifiedThreads)

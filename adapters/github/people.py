"""Who somebody is on GitHub."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GitHubPerson:
    """An account: `name` is what it calls itself, "" if nothing; `is_bot` by GitHub's word.

    `website` and `bio` are what its page shows, cut at 300 characters; "" if nothing.
    """

    login: str
    name: str
    html_url: str
    is_bot: bool = False
    website: str = ""
    bio: str = ""
    id: int = 0

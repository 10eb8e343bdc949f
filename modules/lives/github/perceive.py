"""What is new: GitHub threads to which Bluesky posts link. Each waits in a row before anything is asked of GitHub.

A post is looked through whatever becomes of it on Bluesky; only what reached us there counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from adapters.github.parse_url import GitHubUrl, extract_github_urls, parse_github_url
from modules.lives.github.state import GitHubState
from modules.services.inbox.received import Row
from modules.services.inbox.threads import NewThread


class GitHubPerceiver:
    """Takes in what leads to a thread. `owner_did` is the owner's account on Bluesky."""

    def __init__(self, state: GitHubState, *, owner_did: str) -> None:
        self._state = state
        self._owner_did = owner_did

    async def look_at_posts(self) -> int:
        """Take in the threads to which the posts since the last look link; returns how many are new."""
        rows = await self._state.posts_since_last_look()
        count = await self._state.take_in(one for row in rows for one in threads_in(row, self._owner_did))
        await self._state.note_posts(rows)
        return count


def threads_in(row: Row, owner_did: str) -> Iterator[NewThread]:
    """Return the threads on GitHub to which a post links; its text is read only where it has no such links."""
    for url in _urls_in(row):
        if url.type != "discussion":
            yield NewThread(
                repo=url.place.full_name,
                number=url.number,
                kind=url.type,
                source="bluesky_url_owner" if row.author_did == owner_did else "bluesky_url",
                at=row.indexed_at,
                uri=row.uri,
            )


def _urls_in(row: Row) -> list[GitHubUrl]:
    links = row.payload.get("links")
    linked = [parse_github_url(link) for link in links if isinstance(link, str)] if isinstance(links, list) else []
    found = {one.key: one for one in linked if one}
    return list(found.values()) or extract_github_urls(str(row.payload.get("text") or ""))

"""A thread as a model reads it: one line for each post, with its age and whom it answers. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from adapters.atproto.types import Post
from common.clock import age, parse_iso_or_none
from common.text.untrusted import one_line

_CITED_CHARS = 40


@dataclass(frozen=True, slots=True)
class UnsentReply:
    """A reply of ours that has not left yet, to the post at `parent_uri`."""

    parent_uri: str
    text: str


@dataclass(frozen=True, slots=True)
class ThreadLines:
    """What the lines are made of.

    Attributes:
        own_did: our account.
        peers: DIDs of other SOULs.
        now: the time from which ages count.
        marks: the words for what is marked, by name: `Post To Meet`, `Not Sent`, `Peer`, `Bot`.
        words_of: the words of a post with what it shows.

    """

    own_did: str
    peers: frozenset[str]
    now: datetime
    marks: Mapping[str, str]
    words_of: Callable[[Post], str]

    def lines(self, posts: Sequence[Post], focal_uri: str, unsent: Sequence[UnsentReply]) -> str:
        """Return the thread, oldest first, with our unsent replies at the end; "" where the focal post stands alone."""
        if len(posts) + len(unsent) == 1:
            return ""
        return "\n".join(self._lines(posts, focal_uri, unsent))

    def _lines(self, posts: Sequence[Post], focal_uri: str, unsent: Sequence[UnsentReply]) -> Iterator[str]:
        known = {post.uri: post for post in posts}
        newest: dict[str, str] = {}
        for post in posts:
            to = self._answered(known.get(post.reply.parent.uri) if post.reply else None, newest)
            is_focal = post.uri == focal_uri
            words = self.marks["Post To Meet"] if is_focal else " ".join(self.words_of(post).split())
            yield f"[{self._age(post)}] {self._speaker(post)}{to}: {words}"
            newest[post.author.did] = post.uri
        for reply in unsent:
            to = self._answered(known.get(reply.parent_uri), newest)
            yield f"[{self.marks['Not Sent']}] YOU{to}: {' '.join(reply.text.split())}"

    def _answered(self, parent: Post | None, newest: Mapping[str, str]) -> str:
        """Return whom a line answers, with the first words of the post where its author said something since."""
        if parent is None:
            return ""
        cited = "" if newest.get(parent.author.did) == parent.uri else f' "{one_line(parent.text, _CITED_CHARS)}"'
        return f" \u2192 {self._name(parent)}{cited}"

    def _age(self, post: Post) -> str:
        claims = (parse_iso_or_none(text) for text in (post.created_at, post.indexed_at))
        return age(min((claim for claim in claims if claim is not None), default=self.now), self.now)

    def _speaker(self, post: Post) -> str:
        is_ours = post.author.did == self.own_did
        applying = {"Peer": post.author.did in self.peers, "Bot": post.author.is_bot and not is_ours}
        marks = ", ".join(self.marks[name] for name, applies in applying.items() if applies)
        return f"{self._name(post)} ({marks})" if marks else self._name(post)

    def _name(self, post: Post) -> str:
        return "YOU" if post.author.did == self.own_did else f"@{post.author.handle}"

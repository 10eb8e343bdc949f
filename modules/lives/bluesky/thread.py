"""Analyses a thread: who said what to whom, whether it circles in thanks, and how a model is shown it. Pure."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal
from urllib.parse import urlsplit

from adapters.atproto.types import Notification, Post, ThreadNode
from common.clock import age, parse_iso_or_none
from common.text.closings import asks, content_words, without_handles
from common.text.strings import straighten
from common.text.untrusted import one_line

_CITED_CHARS = 40


@dataclass(frozen=True, slots=True)
class UnsentReply:
    """A reply of ours to the post at `parent_uri` that was not sent yet."""

    parent_uri: str
    text: str


@dataclass(frozen=True, slots=True)
class ThreadLines:
    """Renders a thread as lines.

    Attributes:
        own_did: our account.
        peers: DIDs of other SOULs.
        now: the time from which ages count.
        marks: the texts of the marks, by name: `Post To Meet`, `Not Sent`, `Peer`, `Bot`.
        words_of: returns the words of a post with what it shows.

    """

    own_did: str
    peers: frozenset[str]
    now: datetime
    marks: Mapping[str, str]
    words_of: Callable[[Post], str]

    def lines(self, posts: Sequence[Post], focal_uri: str, unsent: Sequence[UnsentReply]) -> str:
        """Return the thread, oldest first, with our unsent replies at the end; "" if the focal post is alone."""
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
        """Return whom a line answers, with the first words of the post if its author wrote something since."""
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


THREAD_MAX_POSTS = 40

Confidence = Literal["low", "medium", "high"]
Pattern = Literal["none", "repetitive-acknowledgments", "potential-acknowledgment-loop", "mutual-acknowledgment-loop"]

_WINDOW = 4
_MOST_LINKS, _LINK_CHARS = 4, 300
_TITLE_CHARS, _SHOWN_CHARS = 150, 400
_SUBSTANCE_WORDS = 25
_HIGH_GRATITUDE, _HIGH_RESTATEMENT, _MEDIUM_GRATITUDE, _LOW_HITS = 0.6, 0.5, 0.5, 3

_GRATITUDE = re.compile(
    r"\W*(?:thanks|thank you|thx|ty|appreciated?|perfect|sounds (?:good|great)|great|awesome|wonderful|excellent"
    r"|amazing|cool|nice|alright|got it)(?![\w'-])",
    re.IGNORECASE,
)
_RESTATEMENT = re.compile(
    r"\b(?:i'll (?:\w+ )?(?:wait|stand by|pause|hold)|once it's (?:up|live|ready)|when (?:it|you|the)|excited to"
    r"|looking forward|no need to wait|will do)\b",
    re.IGNORECASE,
)
_HOST = re.compile(r"[a-z0-9.-]{1,100}")
_LINK = re.compile(r"https?://\S+")
_REPO = r"\b(?:github|gitlab)\.com/[\w.-]{1,100}/[\w.-]{1,100}"
_WORK = re.compile(
    rf"\b(?:workspaces?|repositor(?:y|ies)|repos?|pull\ requests?|tasks?|issue\ ?\#?\d+"
    rf"|(?:the|our|this|that|your|my|a|an|new|work|project|build)\ (?:\w+\ )?plans?)\b|{_REPO}",
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class CircularAnalysis:
    """Whether the latest posts circle in thanks."""

    confidence: Confidence = "low"
    pattern: Pattern = "none"

    @property
    def is_circular(self) -> bool:
        return self.pattern != "none"

    @property
    def suggestion_to_exit(self) -> bool:
        """Whether an answer would only prolong the circle."""
        return self.confidence != "low"


def detect_circular_conversation(posts: Sequence[Post]) -> CircularAnalysis:
    """Return whether the last four of `posts` (root to focal post) circle in thanks; fewer than four show nothing."""
    if len(posts) < _WINDOW:
        return CircularAnalysis()
    recent = posts[-_WINDOW:]
    texts = [straighten(post.text) for post in recent]
    if len({post.author.did for post in recent}) != 2 or any(map(asks, texts)):  # noqa: PLR2004 - a pair
        return CircularAnalysis()
    thanking = [_GRATITUDE.match(without_handles(text)) is not None for text in texts]
    restating = [_RESTATEMENT.search(text) is not None for text in texts]
    gratitude, restatement = sum(thanking) / _WINDOW, sum(restating) / _WINDOW
    alternating = all(one.author.did != other.author.did for one, other in pairwise(recent))
    may_block = alternating and not any(_is_substantive(post) for post in recent)
    if may_block and gratitude >= _HIGH_GRATITUDE and restatement >= _HIGH_RESTATEMENT:
        return CircularAnalysis("high", "mutual-acknowledgment-loop")
    if may_block and gratitude >= _MEDIUM_GRATITUDE:
        return CircularAnalysis("medium", "potential-acknowledgment-loop")
    hits = sum(thanks or again for thanks, again in zip(thanking, restating, strict=True))
    if gratitude >= _MEDIUM_GRATITUDE or hits >= _LOW_HITS:
        return CircularAnalysis("low", "repetitive-acknowledgments")
    return CircularAnalysis()


def _is_substantive(post: Post) -> bool:
    return bool(post.links) or bool(_LINK.search(post.text)) or len(content_words(post.text)) >= _SUBSTANCE_WORDS


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ThreadAnalysis:
    """A thread around one post, the focal post.

    Attributes:
        depth: the number of posts above the focal post.
        agent_reply_count: the number of our replies anywhere in the thread.
        is_agent_last_reply: whether the newest post of the thread is a reply of ours.
        is_answered: whether a reply of ours is directly under the focal post.
        participants: handles of the others, in order of appearance.
        posts: oldest to newest, an answer never before what it answers, with siblings. The path is complete; the rest
            is the newest up to `THREAD_MAX_POSTS`.
        focal_path: root to focal post.
        circular: whether the path circles in thanks.

    """

    depth: int
    agent_reply_count: int
    is_agent_last_reply: bool
    is_answered: bool
    participants: tuple[str, ...]
    posts: tuple[Post, ...]
    focal_path: tuple[Post, ...]
    circular: CircularAnalysis

    @property
    def names_work(self) -> bool:
        """Whether one of the posts names a workspace, a repository, a plan or a task."""
        return any(_WORK.search(" ".join((post.text, *post.links))) for post in self.posts)


def with_full_links(post: Post | Notification) -> str:
    """Return the text of a post, followed by the addresses that it does not show in full, at most four."""
    told = _untold_links(post)
    return f"{post.text}\n(links: {' '.join(told)})" if told else post.text


def said_line(post: Post | Notification) -> str:
    """Return a post on one line: its author and words with complete links, the post that it quotes, what it shows."""
    words = [with_full_links(post)]
    if isinstance(post, Post):
        words += [*([f"(quotes {said_line(post.quoted)})"] if post.quoted else []), *shown_with(post)]
    return f"@{post.author.handle}: {' '.join(' '.join(words).split())}"


def shown_under(post: Post, own_did: str, *, whole: bool) -> list[str]:
    """Return what a post shows besides its own words, a line each; without `whole`, only what it quotes."""
    quotes = bool(post.quoted_uri) and (post.quoted is not None or post.card is None)
    return [*([f"(quotes {quoted_words(post, own_did)})"] if quotes else []), *(shown_with(post) if whole else [])]


def quoted_words(post: Post, own_did: str) -> str:
    """Return the author and the words of the quoted post on one line, or words for one that cannot be read."""
    quoted = post.quoted
    if quoted is None:
        return "something that cannot be read"
    author = "YOU" if quoted.author.did == own_did else f"@{quoted.author.handle}"
    return f"{author}: {one_line(quoted.text, _SHOWN_CHARS)}"


def shown_with(post: Post, *, pictures: bool = True) -> list[str]:
    """Return the page under a post, and what its pictures and its video show, a line each."""
    said = [one_line(post.card.title, _TITLE_CHARS), one_line(post.card.description, _SHOWN_CHARS)] if post.card else []
    page = " \u2014 ".join(filter(None, said))
    shown = [("page", page), *(("picture", one.alt) for one in post.pictures if pictures), ("video", post.video_alt)]
    return [f"({kind}: {words})" for kind, text in shown if (words := one_line(text, _TITLE_CHARS + _SHOWN_CHARS))]


def link_hosts(post: Post | Notification) -> str:
    """Return the hosts of the addresses that a post does not show in full, on one line; "" if there are none."""
    hosts = map(_host, _untold_links(post))
    return " ".join(dict.fromkeys(host for host in hosts if _HOST.fullmatch(host)))


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _untold_links(post: Post | Notification) -> list[str]:
    untold = [url for url in post.links if url.partition("://")[2].rstrip("/") not in post.text]
    return [url for url in untold if len(url) <= _LINK_CHARS][:_MOST_LINKS]


def beside_request(thread: ThreadAnalysis, trusted: Collection[str]) -> tuple[Post, ...]:
    """Return the posts by others in the thread of a request by the owner that everybody whom it names is to carry out.

    Return none if somebody else wrote above the request. `trusted` are the owner and we.
    """
    path = set(thread.focal_path)
    if not all(is_said_by(trusted, post) for post in path):
        return ()
    return tuple(post for post in thread.posts if post not in path and not is_said_by(trusted, post))


def is_said_by(accounts: Collection[str], post: Post) -> bool:
    """Return whether a post shows only words of these accounts: no quote of others, and no picture or video."""
    quotes_others = bool(post.quoted_uri) and post.quoted_did not in accounts
    return post.author.did in accounts and not quotes_others and not post.has_media


def analyze_thread_view(thread: ThreadNode, agent_did: str, root_thread: ThreadNode | None = None) -> ThreadAnalysis:
    """Analyse the thread of a focal post.

    Args:
        thread: the focal post with its parents and replies.
        agent_did: our account.
        root_thread: the root with its replies, which include the siblings.

    """
    path = _path(thread)
    known: dict[str, Post] = {}
    when: dict[str, datetime] = {}
    above = _LONG_AGO
    for post in path:
        known[post.uri] = post
        above = when[post.uri] = _moment(post, above)
    _collect(thread, known, when)
    if root_thread is not None:
        _collect(root_thread, known, when)
    ordered = sorted(known.values(), key=lambda post: when[post.uri])
    shown = _cap(ordered, {post.uri for post in path})
    replies = [post for post in ordered if post.reply is not None]
    return ThreadAnalysis(
        depth=len(path) - 1,
        agent_reply_count=sum(post.author.did == agent_did for post in replies),
        is_agent_last_reply=bool(replies) and ordered[-1].author.did == agent_did,
        is_answered=any(post.author.did == agent_did and _parent_uri(post) == path[-1].uri for post in replies),
        participants=tuple(dict.fromkeys(post.author.handle for post in ordered if post.author.did != agent_did)),
        posts=shown,
        focal_path=path,
        circular=detect_circular_conversation(path),
    )


def _parent_uri(post: Post) -> str:
    return post.reply.parent.uri if post.reply else ""


def _path(focal: ThreadNode) -> tuple[Post, ...]:
    posts = []
    node: ThreadNode | None = focal
    while node is not None:
        posts.append(node.post)
        node = node.parent
    return tuple(reversed(posts))


def _collect(top: ThreadNode, known: dict[str, Post], when: dict[str, datetime]) -> None:
    """Add `top` and all posts below it, an answer never dated before what it answers."""
    waiting = [(top, when.get(top.post.uri, _LONG_AGO))]
    while waiting:
        node, earliest = waiting.pop()
        known[node.post.uri] = node.post
        moment = when[node.post.uri] = _moment(node.post, earliest)
        waiting += [(reply, moment) for reply in node.replies]


def _moment(post: Post, earliest: datetime) -> datetime:
    """Return when a post appeared, if credible: as claimed, but not after it was seen, and not before `earliest`."""
    claims = (parse_iso_or_none(text) for text in (post.created_at, post.indexed_at))
    return max(min((claim for claim in claims if claim is not None), default=earliest), earliest)


def _cap(ordered: list[Post], needed: set[str]) -> tuple[Post, ...]:
    room = max(0, THREAD_MAX_POSTS - len(needed))
    others = [post.uri for post in ordered if post.uri not in needed]
    kept = needed | set(others[len(others) - min(room, len(others)) :])
    return tuple(post for post in ordered if post.uri in kept)

"""Checks a fortnight of several SOULs by the records on the network and the notes of the people.

The limits are counted independently, over sliding windows of records, without the code of the rules.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.atproto.records import FOLLOW, LIKE, POST
from adapters.atproto.types import Post
from common.clock import parse_iso
from modules.lives.bluesky.expression_policy import ENDINGS_APART, invites
from modules.services.peers.registry import IDENTITY_POST_MARKER
from tests.kept_prompts import KeptPrompt
from tests.scenarios.days_people import DENIES_LATER, HONOURED_WITHIN, Asked, People
from tests.scenarios.days_town import DaysSoul, DaysTown

_LAST_ANSWERS = timedelta(hours=8)
_MOST_ALIKE = 0.6
_SHARED_BY_ALL = frozenset(["a", "the", "and", "it", "which", "would", "you", "pick", "or"])
"""The words that every statement and question of `days_mind` has."""
_CLOSES = re.compile(r"^(?:thank|perfect, thanks)[^?]*!$", re.IGNORECASE)
_EVERYBODY = 100_000


@dataclass(frozen=True)
class Thread:
    """The posts of one thread, oldest first."""

    root: str
    posts: tuple[Post, ...]


@dataclass(frozen=True)
class Shown:
    """A picture in a post of a SOUL; `content` is a hash of its file, or 0; `parent` is the uri that it replies to."""

    soul: str
    words: str
    source: str
    alt: str
    content: int
    parent: str


@dataclass
class Days:
    """The records of the days, examined after their end."""

    town: DaysTown
    people: People
    began: datetime
    days: int

    def __post_init__(self) -> None:
        self.posts = sorted(self.town.network.posts(_EVERYBODY), key=lambda post: post.created_at)
        self.handles = {soul.did: name for name, soul in self.town.souls.items()}

    # Posts on the feeds

    def own(self, name: str) -> list[Post]:
        """Return all posts and replies of a SOUL, oldest first."""
        return [post for post in self.posts if post.author.did == self.town.souls[name].did]

    def own_posts(self, name: str) -> list[Post]:
        """Return the posts of a SOUL that are no replies, no identity posts and no posts about peers."""
        return [post for post in self.own(name) if post.reply is None and not self._introduces(post)]

    def identity_posts(self, name: str) -> list[Post]:
        return [post for post in self.own(name) if post.text.startswith(IDENTITY_POST_MARKER)]

    def announcements(self, name: str) -> Counter[str]:
        """Return how often a SOUL posted about each peer."""
        told = (post.text for post in self.own(name) if post.reply is None and "https://github.com/sh-" in post.text)
        named = (re.findall(r"@(\w+)\.test", text) for text in told)
        return Counter(peer for names in named for peer in names)

    def follows(self, name: str) -> Counter[str]:
        records = self.town.network.records(self.town.souls[name].did, FOLLOW)
        return Counter(self.town.network.actor(str(record.value["subject"])).handle[:-5] for record in records)

    def repeated(self) -> list[tuple[str, str]]:
        """Return each SOUL with each text that it posted more than once."""
        found = []
        for name in self.town.souls:
            said = Counter(" ".join(post.text.lower().split()) for post in self.own(name))
            found += [(name, text) for text, count in said.items() if count > 1]
        return found

    def days_without_a_thought(self) -> list[tuple[str, int]]:
        """Return each SOUL and day, from one morning to the next, without a post of its own."""
        found = []
        for name in self.town.souls:
            spoken = {int((moment(post) - self.began) / timedelta(days=1)) for post in self.own_posts(name)}
            found += [(name, day) for day in range(self.days) if day not in spoken]
        return found

    def without_invitation(self) -> list[str]:
        """Return texts of posts that, like the `ENDINGS_APART` posts before them, invite nobody to reply."""
        found = []
        for name in self.town.souls:
            said = [post.text.partition("\n\nSource: ")[0] for post in self.own_posts(name)]
            for place, text in enumerate(said):
                before = said[max(0, place - ENDINGS_APART) : place]
                if len(before) == ENDINGS_APART and not any(invites(one) for one in (text, *before)):
                    found.append(text)
        return found

    def pictures(self) -> list[Shown]:
        """Return the pictures in all SOULs' posts and replies with hashes of their files; per SOUL, oldest first."""
        found = []
        for name, soul in self.town.souls.items():
            for record in reversed(self.town.network.records(soul.did, POST)):
                for image in record.value.get("embed", {}).get("images", []):
                    cid = image["image"]["ref"]["$link"]
                    blob = self.town.network.blob(soul.did, cid)
                    words, _, source = str(record.value["text"]).partition("\n\nSource: ")
                    content = blob.content if blob else b""
                    parent = str(record.value.get("reply", {}).get("parent", {}).get("uri", ""))
                    found.append(Shown(name, words, source, image["alt"], hash(content) if content else 0, parent))
        return found

    # Threads

    def threads(self) -> list[Thread]:
        """Return all threads."""
        found: defaultdict[str, list[Post]] = defaultdict(list)
        for post in self.posts:
            found[post.reply.root.uri if post.reply else post.uri].append(post)
        return [Thread(root, tuple(posts)) for root, posts in found.items()]

    def closings(self) -> list[tuple[str, str, int]]:
        """Return where a SOUL closed a talk more than once: uri of the thread, name, count."""
        found = []
        for thread in self.threads():
            closed = Counter(
                self.handles[post.author.did]
                for post in thread.posts
                if post.author.did in self.handles and _CLOSES.match(post.text)
            )
            found += [(thread.root, name, count) for name, count in closed.items() if count > 1]
        return found

    def longest_run(self) -> int:
        """Return the most consecutive posts of SOULs in one thread."""
        longest = 0
        for thread in self.threads():
            run = 0
            for post in thread.posts:
                run = run + 1 if post.author.did in self.handles else 0
                longest = max(longest, run)
        return longest

    def unanswered(self, asked: Iterable[Asked]) -> list[tuple[str, str, str]]:
        """Return posts, except late ones, that an addressed SOUL neither replied to nor liked: author, SOUL, text."""
        end = self.began + timedelta(days=self.days)
        return [
            (one.author, soul, self._text(one.uri))
            for one in asked
            for soul in one.souls
            if one.at < end - _LAST_ANSWERS and not self.replied(one.uri, soul) and soul not in self.likers(one.uri)
        ]

    def replied(self, uri: str, name: str) -> list[str]:
        """Return the texts of a SOUL's replies to a post."""
        did = self.town.souls[name].did
        replies = self.town.network.index.replies(uri)
        return [str(reply.value["text"]) for reply in replies if reply.at.did == did]

    def likers(self, uri: str) -> set[str]:
        return {self.handles[actor.did] for actor in self.town.network.likes(uri) if actor.did in self.handles}

    def echoes_among_three(self) -> list[tuple[str, str]]:
        """Return pairs of replies to one post that say nearly the same."""
        found = []
        for one in self.people.together:
            said = [text for soul in one.souls for text in self.replied(one.uri, soul)]
            found += [
                (first, second)
                for number, second in enumerate(said)
                for first in said[:number]
                if alike(first, second) > _MOST_ALIKE
            ]
        return found

    def uninvited(self) -> list[str]:
        """Return the uris of strangers' posts that a SOUL liked or answered without being notified of them."""
        found = []
        for soul in self.town.souls.values():
            reached = self.town.notified[soul.did]
            records = self.town.network.records(soul.did, LIKE)
            subjects = [str(record.value["subject"]["uri"]) for record in records]
            subjects += [post.reply.parent.uri for post in self.own(soul.name) if post.reply]
            found += [uri for uri in subjects if uri not in reached and self.is_stranger(author_of(uri))]
        return found

    # Prompts

    def denied_in_prompts(self) -> list[tuple[str, KeptPrompt]]:
        """Return authors and prompts with texts that were denied by then; for `DENIES_LATER`, since a day at least."""
        kept = {one.words: one for one in self.people.denied}
        found = []
        for words, prompt in self.town.mind.prompts.holding(kept):
            since = self.people.declared.get(kept[words].author)
            grace = HONOURED_WITHIN if kept[words].author == DENIES_LATER else timedelta()
            if since and prompt.at >= since + grace:
                found.append((kept[words].author, prompt))
        return found

    def allowed_in_prompts(self) -> int:
        """Return how many prompts hold texts of `DENIES_LATER`, which proves that the search finds such texts."""
        words = [one.words for one in self.people.denied if one.author == DENIES_LATER]
        return len(self.town.mind.prompts.holding(words))

    def _introduces(self, post: Post) -> bool:
        return post.text.startswith(IDENTITY_POST_MARKER) or "https://github.com/sh-" in post.text

    def is_stranger(self, did: str) -> bool:
        return did not in self.handles and did != self.town.owner

    def _text(self, uri: str) -> str:
        record = self.town.network.index.posts.get(uri)
        return str(record.value["text"]) if record else "(deleted)"


def untold(soul: DaysSoul) -> list[str]:
    """Return decisions that have no reason, or that the terminal did not show with their reason."""
    shown = {(message, detail) for _, message, detail in soul.lines}
    told = {message for message, _ in shown}
    decisions = [one.entry for one in soul.journal.values() if one.entry.kind == "decision" and one.entry.line]
    return [
        entry.summary
        for entry in decisions
        if entry.summary not in told or not entry.reason or not any(entry.reason in detail for _, detail in shown)
    ]


def moment(post: Post) -> datetime:
    return parse_iso(post.created_at)


def bare(text: str) -> str:
    """Return the words of a text in lower case, without names and links."""
    return " ".join(re.findall(r"[a-z]+", re.sub(r"@\S+|https?://\S+", " ", text.lower())))


def alike(one: str, other: str) -> float:
    """Return the share of words that two texts have in common, 0 to 1, without `_SHARED_BY_ALL`."""
    first, second = (set(bare(text).split()) - _SHARED_BY_ALL for text in (one, other))
    return len(first & second) / max(1, len(first | second))


def author_of(uri: str) -> str:
    return uri.split("/")[2]

"""Stores the registry of other SOULs in `.memory/discovered_peers.json`.

Written atomically after each change, and kept across versions, so that follows and announcements are never forgotten. A
crash loses at most the change that it interrupted; its cause is read again.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Actor, FeedItem, Notification, Post
from adapters.github.types import Account
from common.clock import Clock, iso
from common.constants import STATE_MAX_BYTES
from common.files import read_bounded
from common.text.github_text import own_words
from common.text.graphemes import fit_post_text, truncate_graphemes
from modules.runtime.record_file import RecordFile
from modules.services.peers import policy
from modules.services.peers.policy import Linked, Peer, PeerClaim, PeerSummary, Sighting, Via
from modules.services.relationships import is_handle
from modules.services.workspaces.addresses import workspaces_in

REGISTRY_FILE = "discovered_peers.json"


def read_peers(path: Path) -> tuple[Peer, ...]:
    """Return the readable entries of a registry's file, without changing it."""
    try:
        entries = json.loads(read_bounded(path, STATE_MAX_BYTES)).get("peers", {}).values()
    except (OSError, ValueError, RecursionError, AttributeError):
        return ()
    found = []
    for entry in entries:
        with suppress(ValidationError):
            found.append(Peer.model_validate(entry))
    return tuple(found)


class PeerRegistry:
    """The store of peers. `notice` is a line for the owner if the file was not as expected.

    `listed` returns the DIDs of the peers in the owner's settings; `reserved` returns the GitHub names that are ours
    or the owner's. A peer that unfollowed us, or that we no longer follow, is not followed for
    `unfollow_cooldown_days`.
    `is_mutual` is whether our own identity post exists, so that others can find us too.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        listed: Callable[[], Collection[str]] = frozenset,
        reserved: Callable[[], Collection[str]] = tuple,
        unfollow_cooldown_days: float = 7,
    ) -> None:
        self._clock = clock
        self._cooldown = timedelta(days=unfollow_cooldown_days)
        self._listed = listed
        self._reserved_now = reserved
        self._file = RecordFile(path, "peers", Peer)
        self.notice = self._file.notice
        self.is_mutual = False
        self.ensure_peer_registry_clean()

    @property
    def _reserved(self) -> frozenset[str]:
        return frozenset(name.lower() for name in self._reserved_now() if name)

    def found(self) -> frozenset[str]:
        """Return the DIDs and handles of peers with an identity post; none while our own identity post does not exist.

        May be called from any thread.
        """
        if not self.is_mutual:
            return frozenset()
        return policy.standing(self._file.records, self._clock.since)

    def is_peer_handle_only(self, handle: str) -> bool:
        """Return whether a handle belongs to a candidate."""
        key = policy.key_of(self._file.records, handle)
        return key is not None and not self._file.records[key].is_linked

    def get(self, key: str) -> Peer | None:
        """Return an entry by GitHub username or, for a candidate, by handle; None if there is none."""
        return self._file.records.get(key.lower())

    def register_peer_by_bluesky_handle(self, seen: Iterable[Sighting]) -> int:
        """Add accounts that were seen; return how many were unknown."""
        before, after = self._file.records, self._file.records
        for one in seen:
            after = policy.sighted(after, one, self._clock.now())
        self._keep(after)
        return sum(key not in before for key in after)

    def register_peer_by_github_username(self, login: str, via: Via, context: str) -> None:
        """Add a GitHub account that worked with us, unless it is ours or the owner's. Raises `StorageError`.

        It has no account on Bluesky until an identity post there names it.
        """
        if login.lower() not in self._reserved:
            self._keep(policy.worked_with(self._file.records, login, via, context, self._clock.now()))

    def usernames_seen_since(self, moment: datetime) -> list[str]:
        """Return the GitHub names of peers that were seen since then."""
        seen = (peer for peer in self._file.records.values() if peer.is_linked and peer.last_seen_at >= moment)
        return [peer.github_username for peer in seen if peer.github_id or "plan" in peer.vias]

    def get_listed_accounts(self) -> list[Account]:
        """Return the GitHub accounts of the peers in the owner's settings whose identity posts exist."""
        listed = self._listed()
        return [
            Account(peer.github_id, peer.github_username)
            for peer in self.get_linked_peers()
            if peer.github_id and peer.bluesky_did in listed
        ]

    def link_bluesky_handle_to_github(self, claim: PeerClaim, *, github_id: int | None = None) -> Linked:
        """Store the claim of an identity post; return the result.

        `github_id` is the GitHub account if that account names the DID that claims it, else None.
        """
        now = self._clock.now()
        after, outcome = policy.link(
            self._file.records, claim, now, listed=self._listed(), reserved=self._reserved, github_id=github_id
        )
        self._keep(after)
        return outcome

    def mark_identity_not_found(self, key: str) -> None:
        """Record that the feed of this entry has no identity post."""
        self._keep(policy.not_found(self._file.records, key, self._clock.now()))

    def mark_unread(self, key: str) -> None:
        """Record that the feed of this entry could not be read."""
        self._keep(policy.unread(self._file.records, key, self._clock.now()))

    def mark_peer_followed(self, username: str) -> None:
        """Record that we follow this peer and need not do so again."""
        self._change(username, followed_on_bluesky=True)

    def mark_peer_announced(self, username: str) -> None:
        """Record that we announced this peer and need not do so again."""
        self._change(username, announced_on_bluesky=True)

    def due_for_scan(self, most: int) -> list[Peer]:
        """Return the entries whose feeds are due, at most `most`."""
        due = policy.due_for_scan(self._file.records, self._clock.since, most)
        return [self._file.records[key] for key in due]

    def all_peers(self) -> list[Peer]:
        """Return all entries, in no order."""
        return list(self._file.records.values())

    def get_linked_peers(self) -> list[Peer]:
        """Return the peers whose identity posts exist and whose GitHub accounts name them back."""
        return [peer for peer in self._file.records.values() if peer.stands and peer.github_id]

    def get_unfollowed_peers(self) -> list[Peer]:
        """Return the peers to follow now, first met first."""
        since = self._clock.since
        return [peer for peer in self._introduced() if policy.may_follow(peer, since, self._cooldown)]

    def due_for_profile(self) -> Peer | None:
        """Return the introduced peer whose profile is due and was read longest ago; None if none is due."""
        since = self._clock.since
        due = [peer for peer in self._introduced() if policy.is_profile_due(peer, since)]
        return min(due, key=lambda peer: iso(peer.profile_read_at) if peer.profile_read_at else "", default=None)

    def note_profile(self, username: str, *, is_followed: bool, follows_us: bool) -> bool:
        """Store what a profile says; return whether we parted since it was last read."""
        key, now = username.lower(), self._clock.now()
        before = self._file.records[key].unfollowed_at
        self._keep(policy.related(self._file.records, key, now, is_followed=is_followed, follows_us=follows_us))
        return self._file.records[key].unfollowed_at != before

    def get_unannounced_peers(self) -> list[Peer]:
        """Return the peers to announce, first met first."""
        return [peer for peer in self._introduced() if not peer.announced_on_bluesky]

    def get_peer_announcement_summary(self) -> PeerSummary:
        """Return its counts."""
        return policy.summary(self._file.records)

    def ensure_peer_registry_clean(self) -> None:
        """Merge entries with the same handle."""
        self._keep(policy.clean(self._file.records))

    def _introduced(self) -> list[Peer]:
        found = (peer for peer in self.get_linked_peers() if peer.was_introduced)
        return sorted(found, key=lambda peer: peer.discovered_at)

    def _change(self, username: str, **changes: object) -> None:
        key = username.lower()
        self._keep({**self._file.records, key: self._file.records[key].replace(**changes)})

    def _keep(self, after: policy.Peers) -> None:
        if dict(after) != self._file.records:
            self._file.records = dict(after)
            self._file.save()


IDENTITY_POST_MARKER = "🔗—"
_RESERVED = frozenset({"orgs", "features", "topics", "explore", "settings", "sponsors", "about"})
_NAME = r"[a-zA-Z0-9](?:[-_]?[a-zA-Z0-9]){0,38}"
_USERNAME = re.compile(_NAME)
_MARKED = re.compile(rf"\s*{IDENTITY_POST_MARKER}`({_NAME})`")
_TICKED = re.compile(
    rf"`({_NAME})`(?=.{{0,80}}(?<!\bnot )(?<!n't )(?<!n\u2019t )\bon github\b)", re.IGNORECASE | re.DOTALL
)
_PROFILE = re.compile(
    rf"(?<![\w./-])(?:https?://)?(?:www\.)?github\.com/({_NAME})"
    r"(?=/?(?:[?#][^\s\u2026]*)?(?:[\s),;:!]|\.(?![\w.])|$))",
    re.IGNORECASE,
)
_IN_ORDER = (_TICKED, _PROFILE)


def is_github_username(name: str) -> bool:
    """Return whether GitHub allows this name for an account."""
    return _USERNAME.fullmatch(name) is not None and name.lower() not in _RESERVED


def github_url(username: str) -> str:
    """Return the URL of an account on GitHub."""
    return f"https://github.com/{username}"


def tells_username(text: str, username: str) -> bool:
    """Return whether a text gives a GitHub username: in backticks, as a link to the account, or beside "GitHub"."""
    name = re.escape(username)
    told = rf"`@?{name}`|(?<![\w.-])github\.com/{name}(?![\w/-])"
    beside = rf"(?<![\w./@-]){name}(?![\w-]|\.\w)"
    is_beside = re.search(beside, text, re.IGNORECASE) and re.search(r"\bgithub(?!\.com)", text, re.IGNORECASE)
    return is_beside is not None or re.search(told, text, re.IGNORECASE) is not None


def names_did(shown: str, did: str) -> bool:
    """Return whether a page on GitHub says that its account is `did` on Bluesky.

    It must be on a line that contains nothing else: the DID or the URL of its profile, after `Bluesky:` or alone. An
    account that is mentioned, quoted or shown as an example is somebody else's.
    """
    line = re.compile(rf"(?:bluesky:\s*)?(?:at://|https?://[\w.-]+/profile/)?{re.escape(did)}/?", re.IGNORECASE)
    return did in shown and any(line.fullmatch(one.strip()) for part in own_words(shown) for one in part.split("\n"))


def build_identity_post_text(username: str, sentence: str) -> str:
    """Return the whole post around one sentence, at most 300 graphemes; only the sentence is shortened to fit."""
    return fit_post_text(f"{IDENTITY_POST_MARKER}`{username}` {truncate_graphemes(sentence)}", github_url(username))


def extract_github_username_from_text(text: str) -> str | None:
    """Return the GitHub username that a text claims for its author, as it is written there; None if it claims none.

    Searched in this order: after the marker of an identity post; in backticks before "on GitHub"; in a link to an
    account or to a tab of its page, not to a repository, and not in a link that was cut off. A name without backticks
    or a link claims nothing, as it could be any word.
    """
    return next(_names_in(text), None)


def is_identity_post(post: Post) -> bool:
    """Return whether a post is written as an identity post; a reply never is."""
    return post.reply is None and post.text.lstrip().startswith(IDENTITY_POST_MARKER)


def find_identity_post(items: Iterable[FeedItem]) -> Post | None:
    """Return the first identity post of a feed, ignoring reposts, which are by others; None if there is none."""
    return next((item.post for item in items if item.reposted_by is None and is_identity_post(item.post)), None)


def _names_in(text: str) -> Iterator[str]:
    if (marked := _MARKED.match(text)) and is_github_username(marked[1]):
        yield marked[1]
    for pattern in _IN_ORDER:
        yield from (match[1] for match in pattern.finditer(text) if is_github_username(match[1]))


_MENTIONS_OF_A_POST = 5
_WORDS = frozenset({"reply", "mention", "quote"})


@dataclass(frozen=True, slots=True)
class Ourselves:
    """The accounts that are never peers, by handle (in any case) and DID; `github` are our and the owner's names."""

    handle: str
    owner_handle: str
    owner_did: str
    github: Collection[str] = ()

    def may_be_peer(self, actor: Actor, own_did: str) -> bool:
        """Return whether an account is neither ours nor the owner's."""
        return actor.did not in {own_did, self.owner_did} and self.may_be_named(actor.handle)

    def may_be_named(self, handle: str) -> bool:
        """Return whether a handle is valid, and neither ours nor the owner's."""
        return is_handle(handle) and handle.lower() not in {self.handle.lower(), self.owner_handle.lower()}


def sightings_in(post: Notification | Post, ourselves: Ourselves, own_did: str) -> Iterator[Sighting]:
    """Yield the accounts in one post that may be SOULs."""
    author = post.author
    if ourselves.may_be_peer(author, own_did):
        owners = {name.lower() for name in ourselves.github if name}
        if workspaces := [one for one in workspaces_in(post) if one.owner in owners]:
            yield Sighting(author.handle, "workspace", workspaces[0].full_name)
        if extract_github_username_from_text(post.text):
            yield Sighting(author.handle, "social", post.uri)
        elif author.is_bot:
            yield Sighting(author.handle, "thread", post.uri)
    if author.did == own_did:
        return
    via: Via = "owner_mention" if author.did == ourselves.owner_did else "thread"
    handles = dict.fromkeys(span.value for span in detect_mentions(post.text))
    named = [handle for handle in handles if ourselves.may_be_named(handle)]
    for handle in named if via == "owner_mention" else named[:_MENTIONS_OF_A_POST]:
        yield Sighting(handle, via, post.uri)


class PeerDiscovery:
    """Keeps accounts that may be SOULs as candidates."""

    def __init__(self, registry: PeerRegistry, ourselves: Callable[[], Ourselves]) -> None:
        self._registry = registry
        self._ourselves = ourselves

    def note_notifications(self, notifications: Iterable[Notification], own_did: str) -> None:
        """Add candidates from notifications; a candidate that speaks to us is looked at again soon."""
        seen: list[Sighting] = []
        for item in notifications:
            if item.kind not in _WORDS:
                continue
            seen += sightings_in(item, self._ourselves(), own_did)
            if self._registry.is_peer_handle_only(item.author.handle):
                seen.append(Sighting(item.author.handle, "thread", item.uri))
        self._registry.register_peer_by_bluesky_handle(seen)

    def note_posts(self, posts: Iterable[Post], own_did: str) -> None:
        """Add candidates from a thread that was read."""
        seen = [one for post in posts for one in sightings_in(post, self._ourselves(), own_did)]
        self._registry.register_peer_by_bluesky_handle(seen)

"""The etiquette as data: each number with its source and its purpose, and the types of its rules."""

import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from adapters.atproto.session import LOGINS_PER_DAY
from modules.services.outbox.types import Instead


@dataclass(frozen=True, slots=True)
class EtiquetteRule:
    """One rule, as data.

    Attributes:
        name: the name that the journal shows.
        limit: the limit.
        unit: what the limit counts.
        window_s: the window of the count in seconds; None if time does not matter.
        source: where the number comes from, in words.
        explanation: its purpose, in one line.
        instead: what is done if the rule forbids a reply.

    """

    name: str
    limit: float
    unit: str
    window_s: float | None
    source: str
    explanation: str
    instead: Instead = "silence"


@dataclass(frozen=True, slots=True)
class TrustCircle:
    """Whom the SOUL knows, each by DID and by handle in lower case.

    Attributes:
        own: the SOUL itself.
        owner: the owner.
        peers: the peers that the owner lists in the settings.
        github: the logins of the SOUL and the owner on GitHub, in lower case.
        found: peers found by identity posts on both sides. They may be reached and named. In all else they are
            strangers: for what waits for the owner's approval, for the counters, and for the day's budget.
        workspaces: the watched ones of the owner's organisation, `owner/name` in lower case.

    """

    own: Collection[str]
    owner: Collection[str]
    peers: Collection[str]
    github: Collection[str] = frozenset()
    found: Collection[str] = frozenset()
    workspaces: Collection[str] = frozenset()

    def is_stranger(self, who: str) -> bool:
        """Return whether `who` (a DID, or a handle in lower case) is not the SOUL, the owner or a listed peer."""
        return not any(who in known for known in (self.own, self.owner, self.peers))

    def is_peer(self, who: str) -> bool:
        """Return whether `who` (a DID, or a handle in lower case) is a listed or a found peer."""
        return who in self.peers or who in self.found

    def is_automated(self, did: str, *, is_bot: bool) -> bool:
        """Return whether `did` is automated; `is_bot` if its profile says so. The owner counts as a person."""
        return did not in self.owner and (is_bot or any(did in known for known in (self.own, self.peers, self.found)))


@dataclass(frozen=True, slots=True)
class World:
    """What the rules must know of the world. Each function is called for each action, in the database's thread.

    Attributes:
        own_did: returns the SOUL's DID; "" before login.
        own_handle: returns the SOUL's handle.
        owner: returns DID and handle of the owner.
        peers: returns DIDs and handles of the listed peers.
        follows_us: whether the account with this DID follows the SOUL.
        we_follow: whether the SOUL follows it, as last seen on the network.
        born_at: returns when the SOUL's account was created; None if that is not known.
        github: returns the logins of the SOUL and the owner on GitHub, without those that somebody else took over.
        found: returns DIDs and handles of the peers that were found by identity posts on both sides.
        watched: returns the watched workspaces, `owner/name` in lower case.
        leads_to: whether something led the SOUL to the thread with this number in this repository.
        organisation: the organisation whose workspaces are the owner's; "" for none.
        program: the repository of the SOUL's own program, `owner/name`; "" for none.

    """

    own_did: Callable[[], str]
    own_handle: Callable[[], str]
    owner: Callable[[], Collection[str]]
    peers: Callable[[], Collection[str]]
    follows_us: Callable[[sqlite3.Connection, str], bool]
    born_at: Callable[[], datetime | None]
    github: Callable[[], Collection[str]] = tuple
    found: Callable[[], Collection[str]] = tuple
    watched: Callable[[], Collection[str]] = tuple
    leads_to: Callable[[sqlite3.Connection, str, int], bool] = lambda *_: False
    we_follow: Callable[[str], bool] = lambda _: False
    organisation: str = ""
    program: str = ""

    def circle(self) -> TrustCircle:
        """Return whom the SOUL knows at this moment."""
        own = (self.own_did(), self.own_handle())
        place = f"{self.organisation.lower()}/"
        workspaces = [name for name in self.watched() if self.organisation and name.startswith(place)]
        known = (own, self.owner(), self.peers(), self.github(), self.found(), workspaces)
        return TrustCircle(*(_names(names) for names in known))


@dataclass(frozen=True, slots=True)
class ReplyAdvice:
    """How etiquette allows to respond to a post: freely, with a like, in silence, or in `retry_in_s` seconds."""

    act: Literal["free", "later", "like", "silence"] = "free"
    reason: str = ""
    retry_in_s: float = 0.0


def lower(who: str) -> str:
    """Return a handle in lower case, or a DID unchanged."""
    return who if who.startswith("did:") else who.lower()


def _names(names: Collection[str]) -> frozenset[str]:
    return frozenset(lower(name) for name in names if name)


HOUR_S = 3600.0
DAY_S = 24 * HOUR_S

_LIMITS = "Bluesky's published rate limits"
_GUIDELINES = "Bluesky's community guidelines, and its guide for bots: act when asked"
_OURS = "our own measure"
_MARGIN = 0.8

CONSENT = EtiquetteRule(
    "consent",
    1,
    "reason",
    None,
    _GUIDELINES,
    "A reply, like, repost or follow needs a reason in what arrived: the person reached the SOUL with that very"
    " post, the thread belongs to the SOUL, the person follows the SOUL (for a follow or a like), the SOUL follows"
    " the person (for a like), the person is the owner or a listed or found peer, or the owner asked.",
)
CONSENT_BY_NAME = EtiquetteRule(
    "consent-by-name",
    1,
    "reason",
    30 * DAY_S,
    _GUIDELINES,
    "Everybody named or quoted in a text is notified too. Each must have reached the SOUL within this time, or be"
    " the owner or a peer, or the owner asked.",
    "other words",
)
CONSENT_BY_COMMITMENT = EtiquetteRule(
    "consent-by-commitment",
    1,
    "reason",
    None,
    "GitHub's acceptable use policies against unsolicited bulk activity; the bound is our own measure",
    "An issue, a comment or an announcement needs a recorded commitment. In a repository that is neither the"
    " SOUL's nor the owner's it waits for the owner's approval, unless the host of a room that the owner set named"
    " the repository. An answer on GitHub needs something that led the SOUL to the thread: a notification, a link"
    " in a post to it, or a look at a workspace. Work in a watched workspace needs nothing else.",
)
CONSENT_TO_MESSAGE = EtiquetteRule(
    "consent-to-message",
    1,
    "reason",
    None,
    "Bluesky's filter against unsolicited messages, seen in atproto issue 3246; the bound is our own measure",
    "A direct message goes to the owner, known by DID, or answers a message that the same account wrote in the same"
    " conversation of two.",
)
MESSAGES_PER_PERSON = EtiquetteRule(
    "messages-per-person",
    10,
    "messages",
    HOUR_S,
    "our own measure",
    "Direct messages to one person who is not the owner. Later ones wait.",
    "later",
)
MESSAGES_PER_PERSON_DAY = EtiquetteRule(
    "messages-per-person-a-day",
    30,
    "messages",
    DAY_S,
    "our own measure",
    "Direct messages to one person who is not the owner, in a day. Later ones wait.",
    "later",
)
GITHUB_CREATIONS = EtiquetteRule(
    "github-creations",
    20,
    "acts",
    HOUR_S,
    "GitHub's published limit: 500 requests an hour that create content; the number is our own measure",
    "Issues, comments, pull requests, reviews, repositories and claims on tasks. Later ones wait.",
    "later",
)
GITHUB_CREATIONS_OF_OTHERS = EtiquetteRule(
    "github-creations-of-others",
    15,
    "acts",
    HOUR_S,
    "our own measure",
    "The same, without the owner's requests. The rest of the hour's acts is reserved for the owner.",
    "later",
)
WELCOME = EtiquetteRule(
    "welcome",
    1,
    "reason",
    None,
    "the policies of projects that refuse AI agents or set them conditions; the bound is our own measure",
    "Before the first act in a repository that is neither the SOUL's nor the owner's, nor a workspace of theirs,"
    " the SOUL reads what its files say about AI agents. If they refuse, or ask agents to deceive their owner, nothing"
    " is done. A marker or line that they ask for is added. If anything else is asked for or it is unclear, the act"
    " waits for the owner's approval. What the owner asks for in a turn with only their own words is done.",
    "silence",
)
PULLS_PER_REPOSITORY = EtiquetteRule(
    "pulls-per-repository",
    1,
    "open pull requests",
    None,
    "GitHub's limits on pull requests of people who may not push; the number is our own measure",
    "Open pull requests of the SOUL in a repository that is neither the SOUL's nor the owner's, nor a workspace"
    " of theirs, and to which it may not push.",
)
WORKFLOW_FILES = EtiquetteRule(
    "workflow-files",
    1,
    "approval",
    None,
    "GitHub's guidance for coding agents: workflows run with the rights of the repository",
    "A change waits for the owner's approval if it touches a file that runs in CI or at install, says what is"
    " installed and from where, or instructs agents: workflows, lock files, `.npmrc`, `.gitattributes`,"
    " CODEOWNERS, AGENTS.md and the like.",
)
COST_CREATE = EtiquetteRule("cost-create", 3, "points", None, _LIMITS, "What each attempt to create a record counts.")
COST_UPDATE = EtiquetteRule("cost-update", 2, "points", None, _LIMITS, "What each change of the profile counts.")
COST_DELETE = EtiquetteRule("cost-delete", 1, "points", None, _LIMITS, "What each attempt to delete a record counts.")
POINTS_PER_HOUR = EtiquetteRule(
    "points-per-hour",
    5_000 * _MARGIN,
    "points",
    HOUR_S,
    f"{_LIMITS}: 5,000 an hour, of which we use 80 %",
    "An act that would exceed this waits. Each attempt counts when it leaves.",
    "later",
)
POINTS_PER_DAY = EtiquetteRule(
    "points-per-day",
    35_000 * _MARGIN,
    "points",
    DAY_S,
    f"{_LIMITS}: 35,000 a day, of which we use 80 %",
    "An act that would exceed this in a whole day waits. Each attempt counts when it leaves.",
    "later",
)
SAME_REPLY = EtiquetteRule(
    "same-reply",
    2,
    "replies in these words",
    DAY_S,
    "Bluesky's community guidelines against spam; the number is our own measure",
    "The same words to many people are spam. Handles, links, digits, case, punctuation and emoji make no difference."
    " News and results that are told once to whoever asked for them are exempt.",
    "other words",
)
YOUNG = EtiquetteRule(
    "young-account",
    14,
    "days",
    14 * DAY_S,
    _OURS,
    "An account counts as young for this long, and if its age is unknown.",
)
STRANGERS_YOUNG = EtiquetteRule(
    "strangers-while-young",
    6,
    "people",
    HOUR_S,
    _OURS,
    "People who are neither owner nor peer and get a reply while the account is young. The others wait.",
    "later",
)
STRANGERS = EtiquetteRule(
    "strangers",
    20,
    "people",
    HOUR_S,
    _OURS,
    "People who are neither owner nor peer and get a reply once the account is older. The others wait.",
    "later",
)
REPLIES_PER_PERSON = EtiquetteRule(
    "replies-per-person",
    6,
    "replies",
    HOUR_S,
    _OURS,
    "Replies to one person who is neither owner nor peer. Later ones wait.",
    "later",
)
REPLIES_PER_PEER = EtiquetteRule(
    "replies-per-peer",
    20,
    "replies",
    HOUR_S,
    _OURS,
    "Replies to one listed peer. Later ones wait.",
    "later",
)
REPLIES_PER_DAY = EtiquetteRule(
    "replies-per-day",
    60,
    "replies",
    DAY_S,
    _OURS,
    "Replies to one account that is not the owner's. Later ones wait.",
    "later",
)
REQUESTS_PER_PERSON = EtiquetteRule(
    "requests-per-person",
    6,
    "turns",
    HOUR_S,
    _OURS,
    "Posts of one person that are read as a request about their own data, in addition to other turns. Later ones"
    " wait. The answers pass the limits on replies.",
    "later",
)
REQUESTS_PER_DAY = EtiquetteRule(
    "requests-per-day",
    20,
    "turns",
    DAY_S,
    _OURS,
    "Posts of one person that are read as a request about their own data. Later ones wait for another day.",
    "later",
)
LOGINS = EtiquetteRule(
    "logins",
    LOGINS_PER_DAY,
    "logins",
    DAY_S,
    f"{_LIMITS} for sessions: 300 a day",
    "A session is stored and used again, so that a program that keeps crashing does not log in at each start.",
)
INJECTION = EtiquetteRule(
    "injection",
    1,
    "post",
    None,
    _OURS,
    "A post that orders a model to ignore its instructions gets silence. One that asks for passwords, keys or"
    " instructions gets no like.",
)
LOOP_THREAD_SOFT = EtiquetteRule(
    "loop-thread-soft",
    6,
    "turns",
    None,
    _OURS,
    "Consecutive turns of automated accounts in a thread, the SOUL included. From then on it likes instead of"
    " replying.",
    "like",
)
LOOP_THREAD_HARD = EtiquetteRule(
    "loop-thread-hard",
    12,
    "turns",
    None,
    _OURS,
    "Consecutive turns of automated accounts in a thread. From then on it is silent, until a person speaks.",
    "silence",
)
LOOP_PAIR_SOFT = EtiquetteRule(
    "loop-pair-soft",
    6,
    "turns",
    DAY_S,
    _OURS,
    "Turns between the SOUL and one automated account, wherever they meet. From then on it likes instead of"
    " replying; a person who speaks starts the count again. Direct messages count too, and get silence instead of"
    " a like.",
    "like",
)
LOOP_PAIR_HARD = EtiquetteRule(
    "loop-pair-hard",
    12,
    "turns",
    DAY_S,
    _OURS,
    "Turns between the SOUL and one automated account. From then on it is silent towards that account.",
    "silence",
)
REPOST_SENSE = EtiquetteRule(
    "repost-sense",
    1,
    "reply",
    DAY_S,
    _OURS,
    "A near-identical text by the same author (deleted and posted again, for example) is answered once.",
    "like",
)
REPOST_LIKENESS = EtiquetteRule(
    "repost-likeness", 90, "per cent", None, _OURS, "From this likeness on, two texts are near-identical."
)
REPOST_SHORT = EtiquetteRule(
    "repost-short",
    12,
    "letters",
    None,
    _OURS,
    'Shorter texts ("why?") are near-identical only if they also answer the same post.',
)

ETIQUETTE_RULES = tuple(one for one in [*globals().values()] if isinstance(one, EtiquetteRule))
"""All rules, in the order of this module."""

REPLIES_TO_STRANGERS = (REPLIES_PER_PERSON, REPLIES_PER_DAY)
REPLIES_TO_PEERS = (REPLIES_PER_PEER, REPLIES_PER_DAY)
REQUESTS = (REQUESTS_PER_PERSON, REQUESTS_PER_DAY)

"""The types of the Bluesky life."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Notification, Post, StrongRef
from common.clock import parse_iso
from common.constants import DAY_MS
from common.provenance import Provenance
from common.text.closings import content_words, is_low_value_closing
from modules.lives.bluesky.reply_check import Scaffold, SuspectedEcho, calls_for_answer
from modules.services.outbox.bodies import KnownBody
from modules.services.outbox.policy import NO_WAIT
from modules.services.outbox.types import ProposedAction, Wait
from modules.services.pictures.choosing import ChosenPicture
from modules.services.plans.events import tells_link
from modules.services.work.types import Disposition

CONVERSATION_RETENTION_MS = 7 * DAY_MS
CONVERSATION_STALE_RETENTION_MS = 30 * DAY_MS

AWARENESS = "awareness"
"""The loop that answers posts."""
EXPRESSION_CHECK = "expression-check"
POST = "post"
REQUEST = "request"
HELD_REPLY = "held-reply"
UNSENT_REPLY = "unsent-reply"
"""The kinds of the rows of work: a post, one that may be a request about its author's own data, and one whose answer
waits for the owner's approval or to leave."""

SILENCE_TOOL = "stay_silent"
POST_FOUND = "bluesky_post_found"
"""The tool that posts about a picture or a finding that the turn of a thought was shown."""
_RECENT_POSTS = 4

PublishedAs = Literal["accepted", "held", "liked_instead", "blocked"]
Act = Literal[
    "asked",
    "replied",
    "answered",
    "liked",
    "left",
    "silent",
    "concluded",
    "skipped",
    "dropped",
    "undecided",
    "later",
    "posted",
    "reposted",
    "followed",
    "unfollowed",
    "limited",
    "deleted",
    "muted",
    "unheard",
]


@dataclass(frozen=True, slots=True)
class Pending:
    """A stored post that waits to be handled; `earlier` are older posts by its author in the same thread.

    `waits` is False for a post that was settled already.
    """

    notification: Notification
    received_at: str
    earlier: tuple[Notification, ...] = ()
    waits: bool = True

    @property
    def indexed(self) -> datetime:
        """The time at which the network indexed the post."""
        return parse_iso(self.notification.indexed_at)

    @property
    def received(self) -> datetime:
        """The time at which the row was written."""
        return parse_iso(self.received_at)

    @property
    def named(self) -> list[str]:
        """The handles that the post names, in its order."""
        return [span.value for span in detect_mentions(self.notification.text)]

    @property
    def names_several(self) -> bool:
        """Whether the post names more than one account."""
        return len(self.named) > 1


@dataclass(frozen=True, slots=True)
class LaterTurn:
    """Who goes before us with shared work (`awaited`, as `@handle`), and in how many seconds to look again."""

    awaited: tuple[str, ...]
    look_again_s: float

    @property
    def reason(self) -> str:
        """The reason for waiting, for the journal."""
        return f"the same work is asked of {', '.join(self.awaited)}, whose turn comes first"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text or an act was refused before it reached the outbox.

    `code` names the answer for the model, in `skills/bluesky-tools`, and `values` are its variables; `reason` is for
    people.
    """

    code: str
    reason: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Published:
    """The result of a proposed action.

    `held` waits for approval. `uri` is its future address, known before it is sent. `ends`: the act is blocked, and
    nothing else may be tried instead. `problem` is what the model is told if this life refused the act. `wait` says how
    long an accepted act waits to be sent, and why; `number` names it while it waits. `is_change`: it took the place of
    a waiting act.
    """

    status: PublishedAs
    reason: str = ""
    uri: str = ""
    intent_id: str = ""
    ends: bool = False
    problem: Problem | None = None
    wait: Wait = NO_WAIT
    number: int = 0
    is_change: bool = False

    def came(self, act: Act, reason: str, code: str = "") -> Disposition:
        """Return a disposition with this act, which was accepted or blocked."""
        return Disposition(act, code, reason, intent_id=self.intent_id or None, held=self.status == "held")


@dataclass(frozen=True, slots=True)
class ActTerms:
    """Who asked for an act, and under which terms it is sent.

    Attributes:
        cause_id: what caused it: the uri of a notification, or a name such as `expression`; None if unknown.
        urgent: it is sent ahead of the pace.
        by_owner: the owner asked for it, in a turn that contained nobody else's words.
        own_words: the owner asked for it, but did not give its words, or name its target if it has none.
        is_given: the owner asked for it, gave its words, and named its target if it has one.
        hold: why it must wait for the owner's approval; "" if it need not.
        is_for_owner: the owner began the turn that proposes it.
        provenance: that of the least trusted words behind it.

    """

    cause_id: str | None
    urgent: bool = False
    by_owner: bool = False
    own_words: bool = False
    is_given: bool = False
    hold: str = ""
    is_for_owner: bool = False
    provenance: Provenance = Provenance.STRANGER

    def proposed(self, body: KnownBody) -> ProposedAction:
        """Return a proposed action under these terms."""
        return ProposedAction(body, **asdict(self))


ResultKind = Literal["workspace_made", "plan_made", "plan_extended", "issue_made", "comment_made"]


@dataclass(frozen=True, slots=True)
class MadeThing:
    """Something that a turn made for the owner on GitHub, and its address.

    `words` are the parts of the request for which a plan got more tasks.
    """

    kind: ResultKind
    url: str
    words: tuple[str, ...] = ()


@dataclass(slots=True)
class Revisions:
    """What the model was asked to rewrite in one turn, and what the turn did: the part of a subject that tools change.

    Attributes:
        asked_for_shorter: a shorter text was asked for.
        asked_for_better: another text was asked for.
        first_text: the thought that lacked an invitation, as it was sent back.
        problem: what it lacked, in words for the model.
        shown_peers: the model was shown what peers said since the thread was read.
        peers_since: the texts of these posts.
        tried: a tool that acts for the owner was called.
        told_done: the answers of such tools that succeeded.
        asked_for_account: a reply that tells our account on GitHub was asked for.
        made: what the turn made for the owner, in order; the answer tells the address of the last.
        found: the address of a plan that lacked nothing; "" if no plan was checked.
        judged: whether the judge of echoes confirmed a suspicion, by the text of the reply and the suspicion.

    """

    asked_for_shorter: bool = False
    asked_for_better: bool = False
    first_text: str = ""
    problem: str = ""
    shown_peers: bool = False
    peers_since: list[str] = field(default_factory=list)
    tried: bool = False
    told_done: list[str] = field(default_factory=list)
    asked_for_account: bool = False
    made: list[MadeThing] = field(default_factory=list)
    found: str = ""
    judged: dict[tuple[str, SuspectedEcho], bool] = field(default_factory=dict)

    @property
    def told_before(self) -> bool:
        """Whether a reply was sent back in a turn that made something: the result is then told in any case."""
        return self.asked_for_better and bool(self.made)

    def ask_for_account(self) -> bool:
        """Note that our account on GitHub is asked for; return whether this is the first time."""
        is_first, self.asked_for_account = not self.asked_for_account, True
        return is_first

    def ask_for_shorter(self) -> bool:
        """Note that a shorter text is asked for; return whether this is the first time."""
        is_first, self.asked_for_shorter = not self.asked_for_shorter, True
        return is_first

    def ask_for_better(self, first_text: str = "", problem: str = "") -> bool:
        """Note that another text than `first_text` is asked for, and why; return whether this is the first time."""
        is_first = not self.asked_for_better
        if is_first:
            self.asked_for_better, self.first_text, self.problem = True, first_text, problem
        return is_first


@dataclass(frozen=True, slots=True)
class ThreadTurn:
    """The subject of a turn about one post.

    `seen` has every post shown to the model, the only ones that its tools may touch; `said` has their texts, oldest
    first, `others_said` those that are not ours, and `scaffold` the words that only our own prompt has.
    `is_unanswered`: the thread was read, and has no reply of ours under the post. `peers_said` is what peers wrote
    in the thread, oldest first; `peers_since` reads what peers wrote directly under the post at a uri, None if no
    peer is named or wrote. A reply may show `picture`. `account` is our name on GitHub, which a reply must tell; ""
    if it need not. `later`: who goes before us with work that all whom the post names share. `is_among_others`:
    another turn, which shows more, gives an answer in words alone.
    """

    notification: Notification
    root: StrongRef
    is_owner: bool
    seen: dict[str, StrongRef] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    others_said: tuple[str, ...] = ()
    scaffold: Scaffold = field(default_factory=Scaffold)
    is_unanswered: bool = False
    peers_said: tuple[str, ...] = ()
    picture: ChosenPicture | None = None
    account: str = ""
    peers_since: Callable[[str], Awaitable[list[Post]]] | None = None
    later: LaterTurn | None = None
    is_among_others: bool = False
    revisions: Revisions = field(default_factory=Revisions)

    @property
    def is_told_by_others(self) -> bool:
        """Whether nothing is left to tell: the plan lacked nothing, and its link is in the thread already."""
        found = "" if self.revisions.made else self.revisions.found
        return bool(found) and any(tells_link(text, found) for text in (*self.said, *self.revisions.peers_since))


@dataclass(frozen=True, slots=True)
class ExpressionTurn:
    """The subject of a turn about a thought of our own; `scaffold` has the words that only our own prompt has.

    `picture` is shown by its post; None for a post of words alone. `said` are our latest posts. `finding` is what was
    read about the question that it starts from; "" if it starts from something else. `is_bounded`: the owner set
    limits, which may rule out a question to the reader.
    """

    source: str
    prompt: str
    scaffold: Scaffold = field(default_factory=Scaffold)
    picture: ChosenPicture | None = None
    said: tuple[str, ...] = ()
    finding: str = ""
    is_bounded: bool = False
    revisions: Revisions = field(default_factory=Revisions)

    @property
    def tool(self) -> str:
        """The name of the tool that publishes its post."""
        return POST_FOUND if self.picture or self.finding else "bluesky_post"


@dataclass(frozen=True, slots=True)
class Incoming:
    """A received post: `depth` posts are above it, `recent_texts` are those directly before it, oldest first.

    `earlier` are the texts of its author's older posts that wait with it.
    """

    did: str
    handle: str
    text: str
    at: datetime
    depth: int = 0
    display_name: str = ""
    recent_texts: Sequence[str] = ()
    is_automated: bool = False
    earlier: Sequence[str] = ()

    @property
    def said(self) -> Sequence[str]:
        """All that its author said since they were last read."""
        return *self.earlier, self.text

    @property
    def is_closing(self) -> bool:
        """Whether it only thanks, agrees or says goodbye."""
        return all(map(is_low_value_closing, self.said))

    @property
    def asks_us(self) -> bool:
        """Whether a person asks for something; programs do not count, as they may ask each other without end."""
        return not self.is_automated and any(map(calls_for_answer, self.said))

    @property
    def new_words(self) -> int:
        """The number of its content words that are not in the latest posts before it."""
        known = {word for text in self.recent_texts[-_RECENT_POSTS:] for word in content_words(text)}
        return len({word for text in self.said for word in content_words(text)} - known)


@dataclass(frozen=True, slots=True)
class ThreadSeen:
    """The thread came up; the values for its root replace those known. Once `is_project` is set, it stays set.

    `read_until` is the time of the newest post by others in it, None if it was not read.
    """

    root_cid: str | None = None
    root_author_did: str | None = None
    root_author_handle: str | None = None
    is_project: bool = False
    read_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class OthersReplied:
    """Somebody else wrote in the thread. The same post twice counts once."""

    post: Incoming


@dataclass(frozen=True, slots=True)
class Replied:
    """A reply of ours is in the thread, from the time `at`. The same uri twice counts once."""

    uri: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Reopened:
    """The conversation goes on after its end; `reengaged_at` is the time of a post that counts, None if none does."""

    reengaged_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Disengaged:
    """The participants with these handles, and no others, seem to have left the conversation."""

    handles: Sequence[str]


@dataclass(frozen=True, slots=True)
class Concluded:
    """The conversation is over. One that only stopped can still be ended on purpose; otherwise the first end stays."""

    reason: str
    by_silence: bool = False


@dataclass(frozen=True, slots=True)
class Aged:
    """Time passed: a conversation without events for long becomes stale, unless it is concluded."""


ThreadEvent: TypeAlias = ThreadSeen | OthersReplied | Replied | Reopened | Disengaged | Concluded | Aged

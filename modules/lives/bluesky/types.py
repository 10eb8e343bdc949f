"""What this life hands around between its rooms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from adapters.atproto.richtext import detect_mentions
from adapters.atproto.types import Notification, Post, StrongRef
from common.clock import parse_iso
from common.constants import DAY_MS
from common.provenance import Provenance
from common.text.closings import asks, content_words, is_low_value_closing
from common.text.host_intent import requests
from modules.lives.bluesky.reply_check import Scaffold, SuspectedEcho
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
POST = "post"
REQUEST = "request"
HELD_REPLY = "held-reply"
"""The kinds of its rows of work: a post, one that may be a request about its author's own data, and one whose answer
waits for the owner's approval."""

SILENCE_TOOL = "stay_silent"
POST_FOUND = "bluesky_post_found"
"""The tool that posts about what a turn of expression was shown."""
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
    """A post that waits to be handled, as stored; `earlier` are older ones that its author wrote in the same thread.

    `waits` is False of one that was settled already.
    """

    notification: Notification
    received_at: str
    earlier: tuple[Notification, ...] = ()
    waits: bool = True

    @property
    def indexed(self) -> datetime:
        """When the network learnt of the post."""
        return parse_iso(self.notification.indexed_at)

    @property
    def received(self) -> datetime:
        """When the row was written."""
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
    """Who goes before us with work that all share (`awaited`, as `@handle`), and in how many seconds to look again."""

    awaited: tuple[str, ...]
    look_again_s: float

    @property
    def reason(self) -> str:
        """Why we wait, for the journal."""
        return f"the same work is asked of {', '.join(self.awaited)}, whose turn comes first"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text or an act was refused before the outbox saw it.

    `code` names the answer that the model reads, in `skills/bluesky-tools`, and `values` fill it in; `reason` is for
    people.
    """

    code: str
    reason: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Published:
    """What the outbox made of a proposed action.

    `held` waits for approval. `uri` is where it will stand, known before it is sent. `ends` says of a blocked
    act that nothing else may be tried instead, `problem` what the model is told of it, where this life refused it.
    `wait` says how long an accepted one waits for its turn, and why; `number` names it while it waits. `is_change`:
    it took the place of an act that waited.
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
        """Return a disposition of which this act of ours came, or was blocked."""
        return Disposition(act, code, reason, intent_id=self.intent_id or None, held=self.status == "held")


@dataclass(frozen=True, slots=True)
class ActTerms:
    """Who wants an act, and under which terms it leaves.

    Attributes:
        cause_id: what caused it: the uri of a notification, or a name such as `expression`; None for nothing known.
        once: the name under which it is said only once, in whatever words; "" where the words decide.
        urgent: sent ahead of the pace.
        by_owner: the owner asked for it, in a turn that held nobody else's words.
        own_words: the owner asked for it, and neither gave its words nor named what it is done to.
        hold: why it must wait for the owner's approval; "" if it need not.
        is_for_owner: the owner began the turn that wants it.
        provenance: of the least trusted words behind it.

    """

    cause_id: str | None
    once: str = ""
    urgent: bool = False
    by_owner: bool = False
    own_words: bool = False
    hold: str = ""
    is_for_owner: bool = False
    provenance: Provenance = Provenance.STRANGER

    def proposed(self, body: KnownBody) -> ProposedAction:
        """Return an act under these terms."""
        return ProposedAction(body, **asdict(self))


ResultKind = Literal["workspace_made", "plan_made", "plan_extended", "issue_made", "comment_made"]


@dataclass(frozen=True, slots=True)
class MadeThing:
    """What a turn made for the owner on GitHub, and where it stands.

    `words` are those of the request for which a plan got more tasks.
    """

    kind: ResultKind
    url: str
    words: tuple[str, ...] = ()


@dataclass(slots=True)
class Revisions:
    """What the model was asked to write anew in one turn: all that the tools of a turn change of its subject.

    Attributes:
        asked_for_shorter: a shorter text was asked for.
        asked_for_better: another text was asked for.
        first_text: the thought of our own that lacked an invitation, as it was sent back.
        problem: what it lacked, in words for the model.
        shown_peers: what peers said since the thread was read was shown to the model.
        peers_since: the texts of these posts.
        tried: a tool that acts for the owner was called.
        told_done: what such tools answered where they did it.
        asked_for_account: a reply that tells our account on GitHub was asked for.
        made: what the turn made for the owner, in its order; the answer tells where the last stands.
        found: where the plan stands that lacked nothing; "" where none was looked at.
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
        """Whether a reply was sent back in a turn that made something: then its result is told in any case."""
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
    """One turn about one post.

    `seen` holds every post shown to the model: the only ones its tools may touch; `said` their texts, oldest first, and
    `scaffold` the words that only our own prompt has. `is_unanswered`: the thread was read, and no reply of ours stands
    under the post. `peers_said` is what peers wrote in the thread, oldest first; `peers_since` reads what peers wrote
    right under the post at a uri, None where no peer is known to be near. `picture` may be shown with a reply.
    `account` is our name on GitHub, which a reply must tell; "" where it need not. `later`: who goes before us with
    work that all whom the post names share. `is_among_others`: an answer in words alone is thought of in another turn,
    which shows more.
    """

    notification: Notification
    root: StrongRef
    is_owner: bool
    seen: dict[str, StrongRef] = field(default_factory=dict)
    said: tuple[str, ...] = ()
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
        """Whether nothing is left to tell: the plan lacked nothing, and its link stands in the thread already."""
        found = "" if self.revisions.made else self.revisions.found
        return bool(found) and any(tells_link(text, found) for text in (*self.said, *self.revisions.peers_since))


@dataclass(frozen=True, slots=True)
class ExpressionTurn:
    """One turn about a thought of our own; `scaffold` are the words that only our own prompt has.

    `picture` is the one that its post shows; None for a post of words alone. `said` are our latest posts. `finding` is
    what was read about the question that it starts from; "" where it starts from something else. `is_bounded`: the
    owner rules something out, which may be a question to the reader.
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
        """The tool with which its post is published."""
        return POST_FOUND if self.picture or self.finding else "bluesky_post"


@dataclass(frozen=True, slots=True)
class Incoming:
    """A post that reached us: `depth` posts stand above it, `recent_texts` are those right before it, oldest first."""

    did: str
    handle: str
    text: str
    at: datetime
    depth: int = 0
    display_name: str = ""
    recent_texts: Sequence[str] = ()
    is_automated: bool = False

    @property
    def is_closing(self) -> bool:
        """Whether it only thanks, agrees or says goodbye."""
        return is_low_value_closing(self.text)

    @property
    def asks_us(self) -> bool:
        """Whether a person asks for something; programs may ask each other without end."""
        return not self.is_automated and (asks(self.text) or requests(self.text))

    @property
    def new_words(self) -> int:
        """How many words with a meaning it has that the latest posts before it have not."""
        known = {word for text in self.recent_texts[-_RECENT_POSTS:] for word in content_words(text)}
        return len(set(content_words(self.text)) - known)


@dataclass(frozen=True, slots=True)
class ThreadSeen:
    """The thread came up; what is told of its root replaces what was known. Once `is_project`, it stays about work."""

    root_cid: str | None = None
    root_author_did: str | None = None
    root_author_handle: str | None = None
    is_project: bool = False


@dataclass(frozen=True, slots=True)
class OthersReplied:
    """Somebody else wrote in it. The same post twice counts once."""

    post: Incoming


@dataclass(frozen=True, slots=True)
class Replied:
    """A reply of ours stands in it. The same uri twice counts once."""

    uri: str


@dataclass(frozen=True, slots=True)
class Reopened:
    """It goes on after its end; `reengaged_at` is the time of the post that earned it, None where none had to."""

    reengaged_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Disengaged:
    """Those with these handles, and no others, seem to have left it."""

    handles: Sequence[str]


@dataclass(frozen=True, slots=True)
class Concluded:
    """It is over. What only ran dry can still be ended on purpose; otherwise the first end stays."""

    reason: str
    by_silence: bool = False


@dataclass(frozen=True, slots=True)
class Aged:
    """Time passed: what had no news for long is stale, unless it is concluded."""


ThreadEvent: TypeAlias = ThreadSeen | OthersReplied | Replied | Reopened | Disengaged | Concluded | Aged

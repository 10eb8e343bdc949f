"""The types of the outbox: proposed actions, intents, rules, gates, senders, and how an act done once stands."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol, runtime_checkable

from common.clock import parse_iso
from common.intervals import Pace
from common.provenance import Provenance
from common.result import ApiResult, Err
from common.text.strings import dedup_key
from common.wording import deed
from modules.services.outbox.bodies import IntentBody, IntentKind, KnownBody
from modules.services.outbox.github_bodies import GITHUB_KINDS

NON_BLUESKY_KINDS: frozenset[IntentKind] = frozenset({*GITHUB_KINDS, "space_chat"})
"""What does not go to Bluesky: to GitHub, or into the agent space. Each has a pace of its own."""
UNMETERED_KINDS: frozenset[IntentKind] = NON_BLUESKY_KINDS | {"direct_message"}
"""What writes no record into our repository, and so costs no points and keeps to no pace but its own."""
IntentState = Literal["held", "pending", "sending", "done", "failed", "expired", "blocked"]
Outcome = IntentState | Literal["rejected", "withdrawn"]
STANDS: Mapping[Outcome, str] = {
    "held": "waits for approval",
    "pending": "on its way",
    "sending": "on its way",
    "done": "done",
    "failed": "failed",
    "expired": "too late, not done",
    "blocked": "not done",
    "rejected": "the owner rejected it",
    "withdrawn": "withdrawn",
}
"""How an act stands, in words. What was rejected or withdrawn has these words before the reason in its `error`."""
ACTIVE_STATES: frozenset[IntentState] = frozenset({"held", "pending", "sending", "done"})
"""An intent that was not given up: it is done, or may still be."""
ResultKind = Literal["record", "message", "issue", "comment", "commit", "file", "repository", "queue"]
"""What the id of a result is: the CID of a record, the revision of a direct message, the number of an issue or pull
request, the id of a comment or review, the hash of a commit, file or commit in a merge queue, a repository's name."""
REPEATABLE: frozenset[IntentKind] = frozenset({"follow", "like", "repost"})
"""What may be done again to the same target once its record was deleted."""

ACTS_PER_TICK = 3
PACING_SPREAD = 0.25


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """A public act that a life proposes. It becomes an intent when the outbox accepts it.

    Attributes:
        body: everything that its sender needs; its type tells the kind.
        part: the part of a commitment that it does (`commitment-…#1`), for a body that has no subject; else "".
        media_id: identifies attached media, for deduplication.
        once: the name of what is said only once, in whatever words; "" where the words decide.
        cause_id: what caused it: the uri of the notification, or a name such as `expression`.
        urgent: sent ahead of the pace (answers to the owner).
        by_owner: the owner asked for it, in a turn that held nobody else's words.
        own_words: asked for by the owner (`by_owner`), who gave no words for it, or did not name what it is done to.
        hold: why it must wait for the owner's approval, whatever the rules say; "" if it need not.
        is_for_owner: proposed in a turn that the owner began: it takes the place of what waits and is meant by it.
        replaces: the id of the waiting act whose place it takes; "": one for the same target, or with the same words.
        scheduled_for: the moment at which it is to leave; None: as soon as it may.
        until: the moment at which it has lost its sense, where that is sooner than for others of its kind.
        provenance: of the least trusted words behind it, for the journal; what is not known is a stranger's.
        key_fits: says of a record key whether it suits; the first of many that does is taken, where one does.

    """

    body: KnownBody
    part: str = ""
    media_id: str | None = None
    once: str = ""
    cause_id: str | None = None
    urgent: bool = False
    by_owner: bool = False
    own_words: bool = False
    hold: str = ""
    is_for_owner: bool = False
    replaces: str = ""
    scheduled_for: datetime | None = None
    until: datetime | None = None
    provenance: Provenance = Provenance.STRANGER
    key_fits: Callable[[str], bool] | None = None

    @property
    def kind(self) -> IntentKind:
        """What is to be done."""
        return self.body.kind

    @property
    def target(self) -> str:
        """The uri answered, liked, reposted or deleted, the did followed, the part of a commitment, or ""."""
        return self.body.subject or self.part

    @property
    def text(self) -> str:
        """The words that become public on Bluesky, for deduplication; "" if there are none."""
        return self.body.public_text

    @property
    def dedup_key(self) -> str:
        """The key by which it counts as said before: its name, or its words and media; "" if it has none of these."""
        if self.once:
            return f"once:{self.once}"
        return dedup_key(self.text, self.media_id) if self.text.strip() or self.media_id else ""


@dataclass(frozen=True, slots=True)
class Intent:
    """A row of the outbox. `held` waits for the owner's approval; `error` then says why.

    Of a `blocked` one that was withheld, `body`, `target`, `body_hash` and `dedup_key` are empty.

    Times are ISO-8601 UTC; `rkey` is a TID derived once from `created_at` and `id`.
    `attempts` counts the tries that left with an unknown outcome, `deferrals` those that the service put off.
    `first_sent_at` is when it first set out: that is the time the world sees, and every later try repeats it.
    `sent_at` is when it set out last. `looks` counts, while it is `sending`, the looks since then that did not find it;
    when it is `done`, the later looks for a duplicate (`not_before` is when the next one is due).
    `by_owner`: the owner asked for it, or approved it. `rejected`: the owner rejected it. `own_words`: the owner
    asked for it, and has neither given nor seen its words, or what it is done to.
    `scheduled_for` is the moment before which it does not leave, and from which its expiry counts.
    `replaces`: while it is held, the id of the act that waits to leave, and whose place it takes once it is approved.
    """

    id: str
    kind: IntentKind
    target: str
    body: IntentBody
    body_hash: str
    dedup_key: str
    rkey: str
    cause_id: str | None
    created_at: str
    expires_at: str
    state: IntentState
    attempts: int = 0
    urgent: bool = False
    not_before: str | None = None
    result_uri: str | None = None
    result_kind: ResultKind | None = None
    result_id: str | None = None
    error: str | None = None
    deferrals: int = 0
    first_sent_at: str | None = None
    sent_at: str | None = None
    looks: int = 0
    by_owner: bool = False
    rejected: bool = False
    scheduled_for: str | None = None
    own_words: bool = False
    replaces: str = ""

    @property
    def deed(self) -> str:
        """What it does, without the words that it publishes: `follow @kit.test`, `like`."""
        return self.body.deed or deed(self.kind)

    @property
    def outcome(self) -> Outcome:
        """How it stands; of what is `blocked`, also whether the owner rejected it, or it was withdrawn."""
        if self.state == "blocked" and (self.error or "").startswith(STANDS["withdrawn"]):
            return "withdrawn"
        return "rejected" if self.state == "blocked" and self.rejected else self.state

    @property
    def why_not(self) -> str:
        """Why it was not done, beyond its outcome; "" for what was done, or may still be."""
        gone = "" if self.state in ACTIVE_STATES else self.error or ""
        return gone.removeprefix(STANDS[self.outcome]).removeprefix(": ")

    @property
    def is_unsent(self) -> bool:
        """Whether it waits, for approval or to leave, and has not set out."""
        return self.state in {"held", "pending"} and self.first_sent_at is None

    def made(self, kind: ResultKind) -> str:
        """Return the id of what it made, "" where it made nothing of that kind."""
        return (self.result_id or "") if self.result_kind == kind else ""

    @property
    def issue_number(self) -> int:
        """The number of the issue or pull request that it made or changed, 0 without one."""
        return int(self.made("issue") or 0)

    @property
    def was_repeated(self) -> bool:
        """Whether it set out more than once."""
        return self.first_sent_at != self.sent_at


@dataclass(frozen=True, slots=True)
class StoredBefore:
    """What was stored before an action was proposed, as far as it bears on its admission.

    Attributes:
        same_act: the active intent that does or did the same to the same target.
        same_text: the newest active intent with the same words.
        in_feed: whether our feed shows the words already.
        same_picture: an active intent that shows one of its pictures.
        scheduled: how many intents wait for a moment of their own.
        created_at: the moment to store the action under; no intent has it yet.

    """

    same_act: Intent | None
    same_text: Intent | None
    in_feed: bool
    created_at: datetime
    same_picture: Intent | None = None
    scheduled: int = 0


AdviceCode = Literal["admitted", "held", "like_instead", "later", "other_words", "silence", "refused"]
Instead = Literal["later", "like", "silence", "other words"]
"""What a rule that forbids an act would have done in its place."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What the outbox answers to a proposed action, as a code for programs and a sentence for people.

    Attributes:
        code: `admitted` and `held` (it waits for approval) are kept. The others are refused: the same may be
            met with a like (`like_instead`), may be proposed again (`later`), or said differently (`other_words`);
            nothing at all may be done (`silence`), or no rule says what else (`refused`).
        reason: why it is not simply admitted; "" if it is.
        not_before: of `later`, when it makes sense to propose it again.

    """

    code: AdviceCode
    reason: str = ""
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The answer to a proposed action: the row that was kept of it, and the advice.

    `wait` says how long it waits for its turn, and why; `number` names it for as long as it waits, 0 without one.
    `is_change`: it took the place of an act that waited, and has its number.
    """

    intent: Intent
    advice: Advice
    wait: Wait
    number: int = 0
    is_change: bool = False

    @property
    def accepted(self) -> bool:
        """Whether it may still leave."""
        return self.advice.code in {"admitted", "held"}

    @property
    def held(self) -> bool:
        """Whether it waits for the owner's approval."""
        return self.advice.code == "held"

    @property
    def reason(self) -> str:
        """Why it was refused, or is held; "" if it was admitted."""
        return self.intent.error or ""


@dataclass(frozen=True, slots=True)
class Admission:
    """What the rules made of a proposed action: the intent to store, the advice, and what was said of it."""

    intent: Intent
    advice: Advice
    verdicts: Sequence[Verdict]


@dataclass(frozen=True, slots=True)
class Sent:
    """Where the act now stands on the network, and its id there; empty for an act that leaves nothing (a delete)."""

    uri: str = ""
    kind: ResultKind | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """What one round of deliveries came to; `next_in_s` is when something waiting may go (None: nothing waits)."""

    done: int = 0
    failed: int = 0
    expired: int = 0
    put_off: int = 0
    next_in_s: float | None = None


@dataclass(frozen=True, slots=True)
class AmbiguousErr(Err):
    """A look found more than one act that may be the one that was sent: it is never sent again."""


class Sender(Protocol):
    """Sends intents of one kind, or of several, to one service, and can look whether an earlier try arrived."""

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Do it. Repeating with the same intent must not do it twice."""
        ...

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Whether an earlier try arrived: `Ok(None)` when the service says it did not."""
        ...


@runtime_checkable
class KeylessSender(Sender, Protocol):
    """Carries to a service that takes no key of ours, where a request that arrives late could be done twice."""

    async def close_duplicates(self, intent: Intent) -> ApiResult[int]:
        """Close what repeated tries of a done intent left beside its result; how many there were."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one rule on one action, for admission and for the journal.

    Attributes:
        rule: the rule's name, for example `consent`.
        says: `pass`, `hold` (wait for the owner's approval) or `block`.
        reason: why, in words; "" for a plain pass.
        value: what was counted or found, for example 7.
        limit: what it was held against, for example 6.
        withhold: of a block: nothing that the action says may be kept, not even to tell of its refusal.
        instead: of a block: what may be done in its place; None if the rule does not know.
        retry_in_s: of a block with `later`: in how many seconds to try again.
        body: of an inquiry: how the act reads with what it found out; None if it changes nothing.

    """

    rule: str
    says: Literal["pass", "hold", "block"] = "pass"
    reason: str = ""
    value: str | float | None = None
    limit: float | None = None
    withhold: bool = False
    instead: Instead | None = None
    retry_in_s: float = 0.0
    body: KnownBody | None = None


class Rule(Protocol):
    """Something that stands at admission, for example etiquette, the secret scan, or the owner's approval.

    It runs in the writer thread, inside the transaction that admits the action: what it counts cannot change under it.
    It must not wait for anything. All rules are asked; one `block` is stronger than any `hold`.
    """

    def __call__(self, connection: sqlite3.Connection, action: ProposedAction, now: datetime, /) -> Sequence[Verdict]:
        """What this rule, or family of rules, says."""
        ...


class Inquiry(Protocol):
    """What must be found out in the world before an action is admitted; unlike a `Rule` it may wait.

    It is asked once for each proposal, before the transaction that admits it, and its verdicts count with those of the
    rules.
    """

    async def __call__(self, action: ProposedAction, /) -> Sequence[Verdict]:
        """What was found; nothing for an action that it does not concern."""
        ...


class DepartureRule(Protocol):
    """Asked before something leaves, whenever it was admitted: the settings may have become stricter meanwhile.

    Like a `Rule` it runs in the writer thread, inside a transaction, and must not wait for anything.
    """

    def __call__(self, intent: Intent, /) -> Verdict:
        """Whether it must wait for the owner's approval; only `hold` says so."""
        ...


class Gate(Protocol):
    """Asked each time before something leaves; it also runs inside a transaction of the writer thread."""

    def __call__(self, connection: sqlite3.Connection, intent: Intent, now: datetime, /) -> Wait | None:
        """None if the intent may leave now."""
        ...


@dataclass(frozen=True, slots=True)
class Wait:
    """Why something may not leave yet, and in how many seconds to ask again; `ends` if it may leave then."""

    reason: str
    seconds: float
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Pacing:
    """Seconds that must lie between acts: of the same lane, and between any two.

    Attributes:
        follow_s: between two follows, and between two unfollows.
        extra: the lanes of kinds that have none of their own.
        breath_s: between any two acts on Bluesky, also where one is urgent.
        tick_s: a span in which at most `per_tick` acts leave for Bluesky, urgent ones besides; 0 acts: no limit.
        spread: each pause is longer by up to this share, for each act another, so that no rhythm can be seen.

    """

    post_s: float
    reply_s: float
    like_s: float
    follow_s: float
    action_s: float
    extra: dict[str, float] = field(default_factory=dict)
    breath_s: float = 0.0
    tick_s: float = 0.0
    per_tick: int = 0
    spread: float = 0.0

    @classmethod
    def of(cls, pace: Pace) -> Pacing:
        """Return the cool-downs of `pace`."""
        return cls(
            post_s=pace.post_cooldown_s,
            reply_s=pace.reply_cooldown_s,
            like_s=pace.like_cooldown_s,
            follow_s=pace.follow_cooldown_s,
            action_s=pace.action_cooldown_s,
            breath_s=pace.breath_s,
            tick_s=pace.notifications_ms / 1000,
            per_tick=ACTS_PER_TICK,
            spread=PACING_SPREAD,
        )


ActCode = Literal["done", "waits", "held", "refused", "left_alone", "free"]
"""`waits`: accepted and not done yet; `held`: waits for the owner's yes; `refused`: by the owner, or by a rule just
now; `left_alone`: it came to nothing too often or too lately; `free`: it may be proposed."""


@dataclass(frozen=True, slots=True)
class ActStanding:
    """How an act stands.

    Attributes:
        code: what may be expected of it.
        intent: the intent that counts: the one that was accepted or that the owner refused, else the latest.
        advice: the answer of the outbox where it was proposed just now; None where it was not.
        tries: how often it was proposed before.

    """

    code: ActCode
    intent: Intent | None = None
    advice: Advice | None = None
    tries: int = 0

    @property
    def active(self) -> Intent | None:
        """The intent that is done, or may still be; None where there is none."""
        return self.intent if self.code in {"done", "waits", "held"} else None

    @property
    def is_new(self) -> bool:
        """Whether it was proposed just now, and accepted."""
        return self.advice is not None and self.active is not None

    @property
    def is_decided(self) -> bool:
        """Whether it is done, may still be, or was refused by the owner: nothing more has to be proposed."""
        return self.active is not None or (self.intent is not None and self.intent.rejected)

    @property
    def reason(self) -> str:
        """Why it is not done, or the bare state of its intent."""
        return (self.intent.error or self.intent.state) if self.intent else ""


def standing_of(
    intents: Sequence[Intent], tries: int, again_after: timedelta | None, since: Callable[[datetime], timedelta]
) -> ActStanding:
    """Return how an act stands by its `intents`, newest first.

    What came to nothing `tries` times is left alone for `again_after` since its last try, or for good if that is None.
    `since` returns how long ago a moment was.
    """
    active = next((one for one in intents if one.state in ACTIVE_STATES), None)
    if active is not None:
        return ActStanding(_code_of(active), active, tries=len(intents))
    if refused := next((one for one in intents if one.rejected), None):
        return ActStanding("refused", refused, tries=len(intents))
    if not intents:
        return ActStanding("free")
    is_over = again_after is not None and since(parse_iso(intents[0].created_at)) >= again_after
    return ActStanding("free" if len(intents) < tries or is_over else "left_alone", intents[0], tries=len(intents))


def standing_after(submitted: Submitted, tries: int) -> ActStanding:
    """Return how an act stands that was proposed just now, after so many `tries`."""
    intent = submitted.intent
    return ActStanding(_code_of(intent) if submitted.accepted else "refused", intent, submitted.advice, tries)


def _code_of(accepted: Intent) -> ActCode:
    if accepted.state == "done":
        return "done"
    return "held" if accepted.state == "held" else "waits"

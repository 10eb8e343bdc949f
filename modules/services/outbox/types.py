"""The types of the outbox: proposed actions, intents, rules, gates, senders, and the standing of acts done once."""

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
"""The kinds that go to GitHub or into the agent space instead of Bluesky. Each has a pace of its own."""
UNMETERED_KINDS: frozenset[IntentKind] = NON_BLUESKY_KINDS | {"direct_message"}
"""The kinds that write no record into the account's repository, so they cost no points and have only their own pace."""
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
"""How an act stands, in words. If it was rejected or withdrawn, its `error` begins with these words."""
REPLACED = "another took its place"
"""The reason of an act that another version replaced."""
ACTIVE_STATES: frozenset[IntentState] = frozenset({"held", "pending", "sending", "done"})
"""The states of an active intent, which is done or may still be."""
ResultKind = Literal["record", "message", "issue", "comment", "commit", "file", "repository", "queue"]
"""Says what the id of a result is: the CID of a record, the revision of a direct message, the number of an issue or
pull request, the id of a comment or review, the hash of a commit, file or queued commit, or a repository's name."""
REPEATABLE: frozenset[IntentKind] = frozenset({"follow", "like", "repost"})
"""The kinds that may be repeated on the same target once the record was deleted."""

ACTS_PER_TICK = 3
PACING_SPREAD = 0.25


@dataclass(frozen=True, slots=True)
class ProposedAction:
    """A public act that a life proposes. It becomes an intent when the outbox accepts it.

    Attributes:
        body: everything that its sender needs; its type determines the kind.
        part: the part of a commitment that it does (`commitment-…#1`), for a body that has no subject; else "".
        media_id: identifies attached media, for deduplication.
        once: the name of something that is said only once, in whatever words; "" to compare the words instead.
        cause_id: what caused it: the URI of the notification, or a name such as `expression`.
        urgent: sent ahead of the pace (answers to the owner).
        by_owner: the owner asked for it, in a turn that held nobody else's words.
        own_words: asked for by the owner (`by_owner`), who did not give its words or name its target.
        is_given: asked for by the owner, who gave its words and named its target, if it has one.
        hold: why it must wait for the owner's approval, whatever the rules say; "" if it need not.
        is_for_owner: proposed in a turn that the owner began, so it may replace a waiting act.
        replaces: the id of the waiting act that it replaces; "" for one with the same target or the same words.
        scheduled_for: when it is to leave; None for as soon as possible.
        until: when it expires, if that is sooner than for others of its kind.
        provenance: that of the least trusted words behind it, for the journal; by default a stranger's.
        key_fits: returns whether a record key is suitable; of many candidates the first suitable one is used.

    """

    body: KnownBody
    part: str = ""
    media_id: str | None = None
    once: str = ""
    cause_id: str | None = None
    urgent: bool = False
    by_owner: bool = False
    own_words: bool = False
    is_given: bool = False
    hold: str = ""
    is_for_owner: bool = False
    replaces: str = ""
    scheduled_for: datetime | None = None
    until: datetime | None = None
    provenance: Provenance = Provenance.STRANGER
    key_fits: Callable[[str], bool] | None = None

    @property
    def kind(self) -> IntentKind:
        """The kind of act."""
        return self.body.kind

    @property
    def target(self) -> str:
        """The URI answered, liked, reposted or deleted, the DID followed, the part of a commitment, or ""."""
        return self.body.subject or self.part

    @property
    def text(self) -> str:
        """The words that become public on Bluesky, for deduplication; "" if there are none."""
        return self.body.public_text

    @property
    def dedup_key(self) -> str:
        """The deduplication key: its `once` name, or its words and media; "" if it has none of these."""
        if self.once:
            return f"once:{self.once}"
        return dedup_key(self.text, self.media_id) if self.text.strip() or self.media_id else ""


@dataclass(frozen=True, slots=True)
class Intent:
    """A row of the outbox. A `held` intent waits for the owner's approval; `error` then says why.

    If a `blocked` intent was withheld, its `body`, `target`, `body_hash` and `dedup_key` are empty.

    Times are ISO-8601 UTC; `rkey` is a TID derived once from `created_at` and `id`.
    `attempts` counts the tries with an unknown outcome, `deferrals` those that the service put off.
    `first_sent_at` is when it was first sent: the public time of the act, which every later try repeats.
    `sent_at` is when it was last sent. `looks` counts, while it is `sending`, the looks since then that did not find
    it; when it is `done`, the later looks for a duplicate (`not_before` is when the next one is due).
    `by_owner`: the owner asked for it, or approved it. `rejected`: the owner rejected or withdrew it.
    `own_words`: the owner asked for it, but has neither given nor seen its words or its target.
    `scheduled_for` is the time before which it does not leave, and from which its expiry counts.
    `replaces`: while it is held, the id of the waiting act that it replaces once it is approved.
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
        """Its state; for a `blocked` intent, also whether the owner rejected it or it was withdrawn."""
        if self.state == "blocked" and (self.error or "").startswith(STANDS["withdrawn"]):
            return "withdrawn"
        return "rejected" if self.state == "blocked" and self.rejected else self.state

    @property
    def is_taken_back(self) -> bool:
        """Whether it was rejected or withdrawn, or another act took its place."""
        return self.rejected or self.outcome == "withdrawn" or (self.error or "").startswith(REPLACED)

    @property
    def why_not(self) -> str:
        """Why it was not done, beyond its outcome; "" if it was done, or may still be."""
        gone = "" if self.state in ACTIVE_STATES else self.error or ""
        return gone.removeprefix(STANDS[self.outcome]).removeprefix(": ")

    @property
    def is_unsent(self) -> bool:
        """Whether it waits, for approval or to leave, and was never sent."""
        return self.state in {"held", "pending"} and self.first_sent_at is None

    def made(self, kind: ResultKind) -> str:
        """Return the id of what it made, "" if it made nothing of that kind."""
        return (self.result_id or "") if self.result_kind == kind else ""

    @property
    def issue_number(self) -> int:
        """The number of the issue or pull request that it made or changed, 0 for none."""
        return int(self.made("issue") or 0)

    @property
    def was_repeated(self) -> bool:
        """Whether it was sent more than once."""
        return self.first_sent_at != self.sent_at


@dataclass(frozen=True, slots=True)
class StoredBefore:
    """The stored facts that matter for the admission of a proposed action.

    Attributes:
        same_act: the active intent of the same kind for the same target.
        same_text: the newest active intent with the same words.
        in_feed: whether the SOUL's feed shows the words already.
        same_picture: an active intent that shows one of its pictures.
        scheduled: how many intents wait for a scheduled time.
        created_at: the creation time for the new intent, which no other intent has.

    """

    same_act: Intent | None
    same_text: Intent | None
    in_feed: bool
    created_at: datetime
    same_picture: Intent | None = None
    scheduled: int = 0


AdviceCode = Literal["admitted", "held", "like_instead", "later", "other_words", "silence", "refused"]
Instead = Literal["later", "like", "silence", "other words"]
"""What a rule that blocks an act allows instead."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer of the outbox to a proposed action, as a code for programs and a sentence for people.

    Attributes:
        code: `admitted` and `held` (it waits for approval) are accepted. The others are refused: a like is possible
            instead (`like_instead`), or the same act later (`later`), or other words (`other_words`); nothing may be
            done (`silence`), or no rule suggests anything (`refused`).
        reason: why it is not simply admitted; "" if it is.
        not_before: for `later`, when it makes sense to propose it again.

    """

    code: AdviceCode
    reason: str = ""
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Submitted:
    """The answer to a proposed action: the stored intent and the advice.

    `wait` says how long it waits for its turn, and why; `number` is its draft number while it waits, 0 for none.
    `is_change`: it replaced a waiting act, and took over its number.
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
    """The decision on a proposed action: the intent to store, the advice, and the verdicts."""

    intent: Intent
    advice: Advice
    verdicts: Sequence[Verdict]


@dataclass(frozen=True, slots=True)
class Sent:
    """The address of the result on the network, and its id; empty for an act that leaves nothing (a deletion)."""

    uri: str = ""
    kind: ResultKind | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """The result of one round of deliveries; `next_in_s` is when a waiting act may leave (None: nothing waits)."""

    done: int = 0
    failed: int = 0
    expired: int = 0
    put_off: int = 0
    next_in_s: float | None = None


@dataclass(frozen=True, slots=True)
class AmbiguousErr(Err):
    """A look found more than one act that may be the one that was sent, so it is never sent again."""


class Sender(Protocol):
    """Sends intents of one or more kinds to one service, and can look whether an earlier try arrived."""

    async def send(self, intent: Intent) -> ApiResult[Sent]:
        """Perform the act. Repeating this with the same intent must not perform it twice."""
        ...

    async def find(self, intent: Intent) -> ApiResult[Sent | None]:
        """Return the result of an earlier try that arrived; `Ok(None)` if the service says that none did."""
        ...


@runtime_checkable
class KeylessSender(Sender, Protocol):
    """Sends to a service that accepts no keys, so an act could be done twice if a request arrives late."""

    async def close_duplicates(self, intent: Intent) -> ApiResult[int]:
        """Close the duplicates that repeated tries of a done intent left; return how many there were."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one rule on one action, for admission and for the journal.

    Attributes:
        rule: the rule's name, for example `consent`.
        says: `pass`, `hold` (wait for the owner's approval) or `block`.
        reason: why, in words; "" for a plain pass.
        value: what was counted or found, for example 7.
        limit: the limit for the value, for example 6.
        withhold: for a block: no content of the action may be stored, not even to report its refusal.
        instead: for a block: what may be done instead; None if the rule does not say.
        retry_in_s: for a block with `later`: in how many seconds to try again.
        body: from an inquiry: the body changed by what it found out; None for no change.

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
    """A check at admission, for example etiquette, the secret scan, or the owner's approval.

    It runs in the writer thread, inside the transaction that admits the action, so what it counts cannot change
    meanwhile. It must not wait for anything. All rules are asked; one `block` is stronger than any `hold`.
    """

    def __call__(self, connection: sqlite3.Connection, action: ProposedAction, now: datetime, /) -> Sequence[Verdict]:
        """Return the verdicts of this rule or family of rules."""
        ...


class Inquiry(Protocol):
    """A check outside the database before an action is admitted; unlike a `Rule` it may wait.

    It is asked once for each proposal, before the transaction that admits it, and its verdicts count like those of the
    rules.
    """

    async def __call__(self, action: ProposedAction, /) -> Sequence[Verdict]:
        """Return the verdicts; none for an action that it does not concern."""
        ...


class DepartureRule(Protocol):
    """A check before an intent leaves, because the settings may have become stricter since it was admitted.

    Like a `Rule` it runs in the writer thread, inside a transaction, and must not wait for anything.
    """

    def __call__(self, intent: Intent, /) -> Verdict:
        """Return whether the intent must wait for the owner's approval; only `hold` says so."""
        ...


class Gate(Protocol):
    """A check each time before an intent leaves; it also runs inside a transaction of the writer thread."""

    def __call__(self, connection: sqlite3.Connection, intent: Intent, now: datetime, /) -> Wait | None:
        """Return how long the intent must wait, or None if it may leave now."""
        ...


@dataclass(frozen=True, slots=True)
class Wait:
    """Why an intent may not leave yet, and in how many seconds to ask again; `ends` if it may leave then."""

    reason: str
    seconds: float
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Pacing:
    """The least seconds between acts, within each lane and between any two.

    Attributes:
        follow_s: between two follows, and between two unfollows.
        extra: by lane, for lanes without a field of their own.
        breath_s: between any two acts on Bluesky, even urgent ones.
        tick_s: the time in which at most `per_tick` acts leave for Bluesky, besides urgent ones; 0 acts for no limit.
        spread: each pause is longer by up to this share, different for each act, so that no rhythm is visible.

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
"""`waits`: accepted and not done yet; `held`: waits for the owner's approval; `refused`: by the owner, or by a rule
just now; `left_alone`: it failed too often or too recently; `free`: it may be proposed."""


@dataclass(frozen=True, slots=True)
class ActStanding:
    """How an act stands.

    Attributes:
        code: its status.
        intent: the intent that counts: the one that was accepted or that the owner refused, else the latest.
        advice: the answer of the outbox if it was proposed just now, else None.
        tries: how often it was proposed before.

    """

    code: ActCode
    intent: Intent | None = None
    advice: Advice | None = None
    tries: int = 0

    @property
    def active(self) -> Intent | None:
        """The intent that is done, or may still be; None if there is none."""
        return self.intent if self.code in {"done", "waits", "held"} else None

    @property
    def is_new(self) -> bool:
        """Whether it was proposed just now, and accepted."""
        return self.advice is not None and self.active is not None

    @property
    def is_decided(self) -> bool:
        """Whether it is done, may still be, or was refused by the owner, so that nothing more has to be proposed."""
        return self.active is not None or (self.intent is not None and self.intent.rejected)

    @property
    def reason(self) -> str:
        """Why it is not done, or else the state of its intent."""
        return (self.intent.error or self.intent.state) if self.intent else ""


def standing_of(
    intents: Sequence[Intent], tries: int, again_after: timedelta | None, since: Callable[[datetime], timedelta]
) -> ActStanding:
    """Return how an act stands, given its `intents`, newest first.

    An act that failed `tries` times is left alone for `again_after` since its last try, or forever if that is None.
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
    """Return how an act stands that was proposed just now, after `tries` earlier proposals."""
    intent = submitted.intent
    return ActStanding(_code_of(intent) if submitted.accepted else "refused", intent, submitted.advice, tries)


def _code_of(accepted: Intent) -> ActCode:
    if accepted.state == "done":
        return "done"
    return "held" if accepted.state == "held" else "waits"

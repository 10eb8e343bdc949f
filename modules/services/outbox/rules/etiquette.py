"""Etiquette at admission and at departure: returns the verdict of each rule that applies to an action.

It has no state: it counts the rows of the outbox and of the received posts, inside the transaction that admits the
action or lets the intent leave. So it holds across restarts, backlogs and late approvals.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from adapters.atproto.types import Actor, Notification, Post, StrongRef
from common.clock import Clock
from modules.runtime.database.database import Database
from modules.runtime.database.people import person_hash
from modules.services.inbox import messages, received
from modules.services.inbox.received import ReceivedPost
from modules.services.outbox import store
from modules.services.outbox.bodies import DirectMessageBody, IntentBody, RecordRef, ReplyBody
from modules.services.outbox.github_bodies import (
    CREATING,
    ContentsBody,
    IssueCommentBody,
    IssueUpdateBody,
    OnGitHub,
    PullRequestBody,
    PushBody,
    ReactionBody,
    RefBody,
    ReviewBody,
)
from modules.services.outbox.rules import counts, policy, rules
from modules.services.outbox.rules.rules import EtiquetteRule, ReplyAdvice, World
from modules.services.outbox.types import NON_BLUESKY_KINDS, Intent, ProposedAction, Verdict, Wait

_ONE_AFTER_THE_OTHER_S = 2.0
_POINTS = (rules.POINTS_PER_HOUR, rules.POINTS_PER_DAY)
_THREAD_LOOPS = (rules.LOOP_THREAD_HARD, rules.LOOP_THREAD_SOFT)
_PAIR_LOOPS = (rules.LOOP_PAIR_HARD, rules.LOOP_PAIR_SOFT)
_MESSAGES = (rules.MESSAGES_PER_PERSON, rules.MESSAGES_PER_PERSON_DAY)


class Etiquette:
    """A `Rule` of the outbox; `gate` is its `Gate`."""

    def __init__(self, *, world: World, database: Database, clock: Clock) -> None:
        self._world = world
        self._database = database
        self._clock = clock

    def __call__(self, connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:
        """Return one verdict for each rule that applies."""
        return self._with_advice(_RulesLook(connection, now, self._world, self._clock).at_admission(action))

    def gate(self, connection: sqlite3.Connection, intent: Intent, now: datetime) -> Wait | None:
        """Return how long an intent must wait so that no limit is exceeded; None if it may leave."""
        waits = _RulesLook(connection, now, self._world, self._clock).at_departure(intent)
        return max(waits, key=lambda wait: wait.seconds, default=None)

    async def note_created(self) -> None:
        """Count something that is created on GitHub now without the outbox."""
        now = self._clock.now()
        await self._database.run(lambda rows: counts.note(rows, now, counts.CREATED_ON_GITHUB))

    def is_stranger(self, did: str) -> bool:
        """Return whether the account is neither the SOUL, nor the owner, nor a listed peer."""
        return self._world.circle().is_stranger(did)

    def is_peer(self, actor: Actor) -> bool:
        """Return whether somebody is a listed or a found peer, by handle only if the DID is not known."""
        return self._world.circle().is_peer(actor.did or actor.handle.lower())

    def is_listed_peer(self, did: str) -> bool:
        """Return whether the account belongs to a peer that the owner listed."""
        return did in self._world.peers()

    def is_automated(self, actor: Actor) -> bool:
        """Return whether an account is automated."""
        return self._world.circle().is_automated(actor.did, is_bot=actor.is_bot)

    async def before_reply(self, notification: Notification, thread: Sequence[Post]) -> ReplyAdvice:
        """Return how to respond to a post, before a reply is written. `thread` is what was read of it, oldest first."""
        circle, author = self._world.circle(), notification.author
        run = 0
        if circle.is_automated(author.did, is_bot=author.is_bot):
            run = policy.automated_run(
                thread, self._world.own_did(), lambda actor: circle.is_automated(actor.did, is_bot=actor.is_bot)
            )
        action = ProposedAction(ReplyBody(text="", parent=_ref(notification.ref), root=_ref(notification.root)))
        exempt = policy.why_exempt(action, circle)
        seen = [policy.held_to(rule, run, exempt=exempt) for rule in _THREAD_LOOPS]
        by_rows = await self._database.run(lambda connection: self(connection, action, self._clock.now()))
        return policy.reply_advice([*by_rows, *self._with_advice(seen)])

    async def before_message(self, body: DirectMessageBody) -> ReplyAdvice:
        """Return how to respond to a direct message, before a reply is written; `body` is the answer without words."""
        by_rows = await self._database.run(lambda rows: self(rows, ProposedAction(body), self._clock.now()))
        return policy.reply_advice(by_rows)

    def _with_advice(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        return [policy.with_advice(verdict, self._clock.real) for verdict in verdicts]


def same_reply(connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Sequence[Verdict]:
    """Apply only the rule on repeated words to a reply, as a rule of the outbox for a process without a `World`."""
    if not isinstance(action.body, ReplyBody):
        return []
    same = _times_said(connection, action.text, now, timedelta(seconds=rules.SAME_REPLY.window_s or 0))
    return [policy.held_to(rules.SAME_REPLY, same)]


def _times_said(connection: sqlite3.Connection, text: str, now: datetime, window: timedelta) -> int:
    said = policy.letters(text, digits=False)
    earlier = counts.reply_texts(connection, now, window)
    return sum(policy.letters(one, digits=False) == said for one in earlier)


class _RulesLook:
    """Applies all rules, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, now: datetime, world: World, clock: Clock) -> None:
        self._rows = connection
        self._now = now
        self._world = world
        self._circle = world.circle()
        self._clock = clock

    def at_admission(self, action: ProposedAction) -> Iterator[Verdict]:
        notice = received.get(self._rows, action.target) if action.target else None
        exempt = policy.why_exempt(action, self._circle)
        if action.kind in NON_BLUESKY_KINDS:
            yield self._consents_elsewhere(action)
            if isinstance(action.body, ContentsBody | PushBody):
                yield policy.workflow_files(action)
            return
        if isinstance(action.body, DirectMessageBody):
            yield from self._message(action.body)
            return
        yield from self._consents(action, notice)
        waiting = counts.points_waiting(self._rows)
        for rule in _POINTS:
            yield self._points(rule, waiting, policy.cost(action.kind))
        if action.kind == "reply":
            asked = policy.ABOUT_RIGHTS if policy.is_about_rights(action.body) else ""
            yield from self._strangers(policy.who_is_told(action), asked)
            yield from self._replies(policy.who_is_told(action), exempt)
            if action.text and not action.once:
                yield self._same_reply(action.text, asked)
            if notice:
                yield self._repost_sense(notice, exempt)
        if notice and action.kind in {"reply", "like", "repost"}:
            yield policy.injection(action, notice, exempt)
        if action.kind in {"reply", "like"}:
            yield from self._loops(action, notice, exempt)

    def at_departure(self, intent: Intent) -> Iterator[Wait]:
        if isinstance(intent.body, DirectMessageBody):
            yield from self._message_waits(intent, intent.body)
            return
        if intent.kind in CREATING and intent.first_sent_at is None:
            yield from self._creation_waits(intent)
        if intent.kind in NON_BLUESKY_KINDS:
            return
        for rule in _POINTS:
            window = self._window(rule)
            excess = counts.points_spent(self._rows, self._now, window) + policy.cost(intent.kind) - rule.limit
            if excess > 0:
                spent = counts.departures(self._rows, self._now, window)
                yield Wait(policy.full(rule), policy.frees_in_s(spent, excess, window, self._now), ends=True)
        if intent.kind == "reply" and not policy.is_about_rights(intent.body):
            yield from self._stranger_waits(policy.authority(intent.target))
            yield from self._reply_waits(policy.authority(intent.target))

    def _consents_elsewhere(self, action: ProposedAction) -> Verdict:
        """Return the verdict on whether an act on GitHub or in the agent space has a reason."""
        if self._answers_on_github(action.body):
            return policy.consent_without_commitment(action, "something led us to that thread")
        if self._is_workspace_work(action.body):
            return policy.consent_without_commitment(action, "it is work in a workspace that is watched")
        if self._is_own_program(action.body):
            return policy.consent_without_commitment(action, "it is work on its own program, which its owner approved")
        return policy.consent_by_commitment(action, self._circle)

    def _is_own_program(self, body: IntentBody) -> bool:
        """Return whether it is work in the SOUL's own program: up to a pull request, or closing the issue."""
        if not isinstance(body, RefBody | PushBody | PullRequestBody | IssueCommentBody | IssueUpdateBody):
            return False
        is_end = not isinstance(body, IssueUpdateBody) or body.state == "closed"
        return is_end and body.source == "workspace" and body.repo.lower() == self._world.program.lower()

    def _is_workspace_work(self, body: IntentBody) -> bool:
        """Return whether it is work in a watched workspace that belongs to no commitment."""
        if not isinstance(body, OnGitHub) or body.source != "workspace" or body.commitment_id:
            return False
        return body.repo.lower() in self._world.watched()

    def _answers_on_github(self, body: IntentBody) -> bool:
        """Return whether it is a comment, reaction or review without a verdict in a thread to which something led.

        Acts that belong to a commitment do not count.
        """
        if not isinstance(body, IssueCommentBody | ReactionBody | ReviewBody) or body.source != "github":
            return False
        if body.commitment_id or (isinstance(body, ReviewBody) and body.event != "COMMENT"):
            return False
        return self._world.leads_to(self._rows, body.repo, body.number)

    def _message(self, body: DirectMessageBody) -> Iterator[Verdict]:
        talk = messages.talk(self._rows, body.conversation_id)
        answered = messages.named(self._rows, messages.message_name(body.conversation_id, body.answers))
        author, other = answered.author_did if answered else "", talk.did if talk else ""
        yield policy.consent_to_message(body, self._circle, other=other, author=author)
        if body.to in self._circle.owner:
            return
        exempt = policy.ABOUT_RIGHTS if body.about_rights else ""
        waiting = counts.waiting_messages(self._rows, body.to)
        for rule in _MESSAGES:
            left = counts.messaged(self._rows, body.to, self._now, self._window(rule))
            yield self._held_to(rule, left, waiting, exempt)
        run = 0
        if self._circle.is_automated(body.to, is_bot=talk is not None and talk.is_bot):
            run = self._pair_run(body.to)
        for rule in _PAIR_LOOPS:
            yield policy.held_to(rule, run, exempt=exempt)

    def _message_waits(self, intent: Intent, body: DirectMessageBody) -> Iterator[Wait]:
        """Yield the waits of a direct message: one conversation's messages leave in order, except those held up."""
        if store.another_goes_first(self._rows, intent, body, self._now):
            yield Wait("another message to the same conversation is still on its way", _ONE_AFTER_THE_OTHER_S)
        if body.to in self._circle.owner or body.about_rights or intent.first_sent_at is not None:
            return
        for rule in _MESSAGES:
            yield from self._waits(rule, counts.messaged(self._rows, body.to, self._now, self._window(rule)))

    def _creation_waits(self, intent: Intent) -> Iterator[Wait]:
        rule = rules.GITHUB_CREATIONS if policy.is_for_owner(intent) else rules.GITHUB_CREATIONS_OF_OTHERS
        yield from self._waits(rule, counts.created_on_github(self._rows, self._now, self._window(rule)))

    def _held_to(
        self, rule: EtiquetteRule, left: Sequence[datetime], waiting: int, exempt: str, *, adds: bool = True
    ) -> Verdict:
        """Return whether one more act fits beside those that `left` in the window of a rule and those `waiting`.

        If not, and enough of those that left, oldest first, leave the window, also in how many seconds.
        """
        verdict = policy.held_to(rule, len(left) + waiting, adds=adds, exempt=exempt)
        excess = len(left) + waiting + 1 - rule.limit
        if verdict.says != "block" or excess > len(left):
            return verdict
        return replace(verdict, retry_in_s=self._frees_in_s(rule, left, excess))

    def _waits(self, rule: EtiquetteRule, left: Sequence[datetime]) -> Iterator[Wait]:
        """Yield how long one more act must wait, given those that `left` in the window of a rule, oldest first."""
        excess = len(left) + 1 - rule.limit
        if excess > 0:
            yield Wait(policy.full(rule), self._frees_in_s(rule, left, excess), ends=True)

    def _frees_in_s(self, rule: EtiquetteRule, left: Sequence[datetime], excess: float) -> float:
        spent = [(moment, 1.0) for moment in left]
        return policy.frees_in_s(spent, excess, self._window(rule), self._now)

    def _consents(self, action: ProposedAction, notice: ReceivedPost | None) -> Iterator[Verdict]:
        if action.kind in policy.NOTIFYING:
            who = policy.addressee(action)
            follows_us, we_follow = self._world.follows_us(self._rows, who), self._world.we_follow(who)
            yield policy.consent(action, self._circle, notice, follows_us=follows_us, we_follow=we_follow)
        if named := policy.named_in(action.text):
            since = self._now - self._window(rules.CONSENT_BY_NAME)
            unknown = [
                who
                for who in named
                if not policy.known_as(who, self._circle) and not received.has_reached_us(self._rows, who, since)
            ]
            yield policy.consent_by_name(action, unknown)

    def _points(self, rule: EtiquetteRule, waiting: float, cost: float) -> Verdict:
        """Return whether `cost` more points fit beside those spent and `waiting`; if not, also when they will."""
        window = self._window(rule)
        counted = counts.points_spent(self._rows, self._now, window) + waiting
        verdict = policy.held_to(rule, counted, adds=cost)
        if verdict.says != "block":
            return verdict
        spent = counts.departures(self._rows, self._now, window)
        return replace(verdict, retry_in_s=policy.frees_in_s(spent, counted + cost - rule.limit, window, self._now))

    def _strangers(self, who: str, exempt: str) -> Iterator[Verdict]:
        if not self._circle.is_stranger(who):
            return
        rule = self._strangers_rule()
        waiting = map(policy.authority, counts.waiting_replies(self._rows))
        met, waits = self._strangers_met(rule), set(map(self._counted_as, filter(self._circle.is_stranger, waiting)))
        left = sorted(moment for one, moment in met.items() if one not in waits)
        adds = self._counted_as(who) not in {*met, *waits}
        yield self._held_to(rule, left, len(waits), exempt, adds=adds)

    def _stranger_waits(self, who: str) -> Iterator[Wait]:
        if not self._circle.is_stranger(who):
            return
        rule = self._strangers_rule()
        met = self._strangers_met(rule)
        if self._counted_as(who) not in met:
            yield from self._waits(rule, sorted(met.values()))

    def _replies(self, who: str, exempt: str) -> Iterator[Verdict]:
        waiting = sum(policy.authority(target) == who for target in counts.waiting_replies(self._rows))
        for rule in self._reply_rules(who):
            yield self._held_to(rule, self._replies_to(who, rule), waiting, exempt)

    def _reply_waits(self, who: str) -> Iterator[Wait]:
        for rule in self._reply_rules(who):
            yield from self._waits(rule, self._replies_to(who, rule))

    def _reply_rules(self, who: str) -> Sequence[EtiquetteRule]:
        """Return the limits on replies to one account; the owner and the SOUL itself have none."""
        if self._circle.is_stranger(who):
            return rules.REPLIES_TO_STRANGERS
        return () if who in self._circle.owner or who in self._circle.own else rules.REPLIES_TO_PEERS

    def _replies_to(self, who: str, rule: EtiquetteRule) -> list[datetime]:
        """Return when replies to an account left within the window of a rule, oldest first."""
        left = counts.replied_to(self._rows, self._now, self._window(rule))
        return [moment for moment, one in left if self._counted_as(one) == self._counted_as(who)]

    def _strangers_rule(self) -> EtiquetteRule:
        return policy.strangers_rule(self._world.born_at(), self._now, self._window(rules.YOUNG))

    def _strangers_met(self, rule: EtiquetteRule) -> dict[str, datetime]:
        """Return the strangers replied to within the window, as they are counted, each with the last reply."""
        left = counts.replied_to(self._rows, self._now, self._window(rule))
        return {self._counted_as(who): moment for moment, who in left if self._circle.is_stranger(who)}

    def _counted_as(self, who: str) -> str:
        """Return an id for counting that is the same before and after an account is forgotten."""
        return person_hash(self._rows, who) if who.startswith("did:") else who

    def _same_reply(self, text: str, exempt: str) -> Verdict:
        same = _times_said(self._rows, text, self._now, self._window(rules.SAME_REPLY))
        return policy.held_to(rules.SAME_REPLY, same, exempt=exempt)

    def _repost_sense(self, notice: ReceivedPost, exempt: str) -> Verdict:
        since = self._now - self._window(rules.REPOST_SENSE)
        answered = counts.answered_notices(self._rows, notice.author_did, since)
        alike = [other for other in answered if other.uri != notice.uri and policy.near_identical(notice, other)]
        return policy.held_to(rules.REPOST_SENSE, len(alike), exempt=exempt)

    def _loops(self, action: ProposedAction, notice: ReceivedPost | None, exempt: str) -> Iterator[Verdict]:
        """Yield the verdicts on loops: a like is not a turn, but stops where replies do. A person resets the count."""
        afresh = notice is not None and not self._circle.is_automated(notice.author_did, is_bot=notice.is_bot)
        root, who = policy.thread_root(action, notice), policy.who_is_told(action)
        looks = [
            (_THREAD_LOOPS, self._run_of(counts.thread_turns(self._rows, root))) if root else None,
            (_PAIR_LOOPS, self._pair_run(who)),
        ]
        for (hard, soft), counted in filter(None, looks):
            run = 0 if afresh else counted
            yield policy.held_to(hard, run, exempt=exempt)
            if action.kind == "reply":
                yield policy.held_to(soft, run, exempt=exempt)

    def _pair_run(self, who: str) -> int:
        return self._run_of(counts.pair_turns(self._rows, who, self._now - self._window(rules.LOOP_PAIR_HARD)))

    def _run_of(self, turns: Iterable[tuple[str, bool]]) -> int:
        return policy.run_of(not who or self._circle.is_automated(who, is_bot=is_bot) for who, is_bot in turns)

    def _window(self, rule: EtiquetteRule) -> timedelta:
        return timedelta(seconds=self._clock.real(rule.window_s or 0.0))


def _ref(ref: StrongRef) -> RecordRef:
    return RecordRef(uri=ref.uri, cid=ref.cid)

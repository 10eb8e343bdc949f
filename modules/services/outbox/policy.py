"""Decides what may leave, and when: pure rules on frozen values. Nothing here reads a clock or a row.

The pace is computed from the times of past acts, so it holds across restarts.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from adapters.atproto.records import FOLLOW, parse_at_uri
from adapters.atproto.writes import tid_for
from common.clock import iso, parse_iso, span
from common.constants import HOUR_MS, MINUTE_MS
from common.result import Err
from common.wording import deed, rule
from modules.services.outbox.bodies import IntentKind, OpaqueBody
from modules.services.outbox.github_bodies import GITHUB_KINDS, OnGitHub, without_closing
from modules.services.outbox.types import (
    UNMETERED_KINDS,
    Admission,
    Advice,
    AdviceCode,
    AmbiguousErr,
    Instead,
    Intent,
    IntentState,
    Pacing,
    ProposedAction,
    StoredBefore,
    Verdict,
    Wait,
)

OUTBOUND_DEDUP_WINDOW_MS = 5 * MINUTE_MS
REPLY_EXPIRY_MS = 6 * HOUR_MS
POST_EXPIRY_MS = 24 * HOUR_MS
BACKLOG_AGE_MS = 10 * MINUTE_MS
BACKLOG_SPACING_MS = 2 * MINUTE_MS
OUTBOX_MAX_ATTEMPTS = 8
MOST_SCHEDULED = 20
SCHEDULE_AHEAD = timedelta(days=60)
"""How far ahead an act may be scheduled."""

FOUND_WITHIN, MOST_LOOKS = timedelta(days=1), 10
"""How long after an act expired, and how often at least, it is looked for if nobody can say whether it arrived."""

RETRY_BASE_S = 5.0
RETRY_FACTOR = 3.0
RETRY_STEPS = 6
RETRY_MAX_S = 1800.0
HOLD_MAX_S = 6 * 3600.0
LATE_ARRIVAL_S = 60.0
"""How long a request without an answer may still arrive; it is not sent again before."""
LOOKS_BEFORE_REPEAT = 2
RECHECKS_S = (60.0, 600.0, 3600.0)
"""Seconds between the looks for a duplicate, after a repeated act whose service takes no key."""

_EXPIRY_MS: dict[IntentKind, int] = dict.fromkeys(
    ("post", "follow", "delete", "threadgate", *GITHUB_KINDS), POST_EXPIRY_MS
)
_RANK: dict[IntentKind, int] = {"reply": 0, "post": 1}

_STRICTEST_FIRST: tuple[tuple[AdviceCode, Instead], ...] = (
    ("silence", "silence"),
    ("like_instead", "like"),
    ("later", "later"),
    ("other_words", "other words"),
)

Lane = IntentKind | Literal["unfollow"]
"""A group of acts with a pace of its own: a kind, or the deletions of follows."""
NO_WAIT = Wait("", 0.0, ends=True)
Acts = Mapping[Lane, datetime]
"""When an act was last sent in each lane."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The intent to send next, or else the seconds until one may leave (None: nothing waits)."""

    intent: Intent | None = None
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class DeliveryStep:
    """The state of an intent after a try without a result. `counts` says that it used up one of its attempts."""

    state: IntentState
    retry_in_s: float | None = None
    counts: bool = False


def expires_at(kind: IntentKind, now: datetime) -> datetime:
    """Return when an act of this kind expires: replies, likes, reposts and messages after 6 h, the rest after 24 h."""
    return now + timedelta(milliseconds=_EXPIRY_MS.get(kind, REPLY_EXPIRY_MS))


def approved_expires_at(intent: Intent, now: datetime) -> str:
    """Return when an intent that is approved now expires, ISO-8601: as if proposed now, unless it has its own end."""
    begins = parse_iso(intent.scheduled_for or intent.created_at)
    # NOTE(self): `created_at` may be some milliseconds later than the proposal, from which the expiry counts.
    has_own_end = parse_iso(intent.expires_at) < expires_at(intent.kind, begins) - timedelta(seconds=1)
    return intent.expires_at if has_own_end else iso(expires_at(intent.kind, max(begins, now)))


def lane_of(kind: IntentKind, target: str) -> Lane:
    """Return the lane in which an act of a kind on `target` leaves."""
    record = parse_at_uri(target) if kind == "delete" else None
    return "unfollow" if record and record.collection == FOLLOW else kind


def _sharing(lane: Lane) -> tuple[Lane, ...]:
    """Return the lanes that share a cool-down with this one, itself included: likes and reposts share theirs."""
    return ("like", "repost") if lane in {"like", "repost"} else (lane,)


def cooldown_s(lane: Lane, pacing: Pacing) -> float:
    """Return the seconds between two acts of a lane."""
    match lane:
        case "post":
            return pacing.post_s
        case "reply":
            return pacing.reply_s
        case "like" | "repost":
            return pacing.like_s
        case "follow" | "unfollow":
            return pacing.follow_s
        case _:
            return pacing.extra.get(lane, 0.0)


def goes_first(intent: Intent) -> bool:
    """Return whether an act leaves ahead of the pace: it is urgent, or the owner ordered or approved it."""
    return intent.urgent or intent.by_owner


def pace_wait(
    intent: Intent, *, acts: Acts, pacing: Pacing, now: datetime, started: datetime, departures: Sequence[datetime] = ()
) -> Wait:
    """Return how long the pace keeps `intent`, and why; 0 s if it may leave.

    An act that `goes_first` only waits for `breath_s`, and an act outside Bluesky only for its own lane. A backlog
    leaves slowly: acts that were old when they could first leave (`started`: the process started, or a gate opened)
    keep a distance from the last act of their lane. The random extra length of a pause depends on the act before it, so
    that no waiting act overtakes another.

    Args:
        intent: the act.
        acts: when an act last left in each lane.
        pacing: the cool-downs.
        now: the current time.
        started: since when the intent could have left.
        departures: when the latest acts left, newest first.

    """

    def after(before: datetime | None, pause_s: float, what: str) -> Wait:
        if before is None:
            return NO_WAIT
        pause_s *= 1 + pacing.spread * zlib.crc32(iso(before).encode()) / 2**32
        return Wait(f"{span(pause_s)} after the last {what}", _left(before, pause_s, now), ends=True)

    lane = lane_of(intent.kind, intent.target)
    waits = [NO_WAIT]
    if is_backlog(intent, started):
        spacing_s = BACKLOG_SPACING_MS / 1000
        reason = f"{span(spacing_s)} after the last {deed(lane)}, as it waited while nothing could leave"
        waits.append(Wait(reason, _left(acts.get(lane), spacing_s, now), ends=True))
    to_bluesky = intent.kind not in UNMETERED_KINDS
    last = max((at for other, at in acts.items() if other not in UNMETERED_KINDS), default=None)
    if to_bluesky:
        waits.append(after(last, pacing.breath_s, "act"))
    if not goes_first(intent):
        last_in_lane = max((acts[other] for other in _sharing(lane) if other in acts), default=None)
        waits.append(after(last_in_lane, cooldown_s(lane, pacing), deed(lane)))
        if to_bluesky:
            waits.append(after(last, pacing.action_s, "act"))
            if 0 < pacing.per_tick <= len(departures):
                waits.append(after(departures[pacing.per_tick - 1], pacing.tick_s, f"{pacing.per_tick} acts"))
    return max(waits, key=lambda wait: wait.seconds)


def expected_waits(pending: Sequence[Intent], wait_of: Callable[[Intent], Wait], pacing: Pacing) -> Mapping[str, Wait]:
    """Return how long each of the `pending` acts waits and why, by id, counting those before it in its lane.

    `wait_of` returns how long an act would wait alone.
    """
    expected: dict[str, Wait] = {}
    before: dict[Lane, float] = {}
    alone = {intent.id: wait_of(intent) for intent in pending}
    for intent in sorted(pending, key=lambda one: (alone[one.id].seconds, _turn(one, was_asleep=False))):
        lane, waits = lane_of(intent.kind, intent.target), [alone[intent.id]]
        if not goes_first(intent) and (ahead := [before[one] for one in _sharing(lane) if one in before]):
            pause_s = cooldown_s(lane, pacing)
            waits.append(Wait(f"{span(pause_s)} after the {deed(lane)} before it", max(ahead) + pause_s, ends=True))
        expected[intent.id] = longest = max(waits, key=lambda one: one.seconds)
        before[lane] = max(before.get(lane, 0.0), longest.seconds)
    return expected


def choose(
    pending: Iterable[Intent],
    pause_s: Callable[[Intent], float],
    was_asleep: Callable[[Intent], bool] = lambda _: False,
) -> Choice:
    """Return the intent to send next: first what `goes_first`, then replies, posts, the rest, and the longest due.

    `pause_s` returns in how many seconds an intent may leave; those that must wait are skipped. The backlog
    (`was_asleep`) comes after what is new, the newest of it first.
    """
    shortest: float | None = None
    for intent in sorted(pending, key=lambda one: _turn(one, was_asleep=was_asleep(one))):
        pause = pause_s(intent)
        if pause <= 0:
            return Choice(intent)
        shortest = pause if shortest is None else min(shortest, pause)
    return Choice(wait_s=shortest)


def due_wait(intent: Intent, now: datetime) -> Wait:
    """Return how long an intent waits for its scheduled moment, or for another try after a failed one."""
    scheduled = Wait("it is scheduled", _ahead_s(intent.scheduled_for, now), ends=True)
    again = Wait("tried again after a failure", retry_in_s(intent, now), ends=True)
    return max(scheduled, again, key=lambda wait: wait.seconds)


def is_for_later(intent: Intent, now: datetime) -> bool:
    """Return whether its scheduled moment is in the future."""
    return _ahead_s(intent.scheduled_for, now) > 0


def retry_in_s(intent: Intent, now: datetime) -> float:
    """Return the seconds until a failed try may be repeated; 0 beyond `HOLD_MAX_S`, as the clock must have jumped."""
    if intent.not_before is None:
        return 0.0
    left = (parse_iso(intent.not_before) - now).total_seconds()
    return left if 0 < left <= HOLD_MAX_S else 0.0


def due_since(intent: Intent) -> datetime:
    """Return from when on an intent may leave: its next try, else its scheduled moment, else its creation."""
    return parse_iso(intent.not_before or intent.scheduled_for or intent.created_at)


def is_expired(intent: Intent, now: datetime) -> bool:
    """Return whether the act has expired."""
    return parse_iso(intent.expires_at) <= now


def is_past_finding(intent: Intent, now: datetime) -> bool:
    """Return whether an act that may have arrived expired so long ago that it is looked for whatever the gates say."""
    return intent.state == "sending" and parse_iso(intent.expires_at) + FOUND_WITHIN <= now


def is_backlog(intent: Intent, started: datetime) -> bool:
    """Return whether the intent was old when it could first leave; False if the owner ordered or approved it."""
    return not intent.by_owner and started - parse_iso(intent.scheduled_for or intent.created_at) > timedelta(
        milliseconds=BACKLOG_AGE_MS
    )


def backoff_s(tries: int) -> float:
    """Return the seconds before the next try after `tries` (≥ 1) failed ones: 5, 15, 45 … at most half an hour."""
    return min(RETRY_MAX_S, RETRY_BASE_S * RETRY_FACTOR ** min(tries - 1, RETRY_STEPS))


def after_send(intent: Intent, error: Err) -> DeliveryStep:
    """Return the next step after a failed try.

    Only a try with an unknown outcome uses up an attempt, because the request was sent. If a service is down or refuses
    the login for now, the intent waits until it expires.
    """
    match error.kind:
        case "invalid" | "not_found":
            return DeliveryStep("failed")
        case "unknown_outcome":
            return DeliveryStep("sending", backoff_s(intent.attempts + 1), counts=True)
        case _:
            return DeliveryStep("pending", _put_off_s(intent, error))


def after_find(intent: Intent, error: Err, now: datetime) -> DeliveryStep:
    """Return the next step after a look that could not tell if an earlier try arrived: another look, or failure."""
    is_lost = is_past_finding(intent, now) and intent.deferrals >= MOST_LOOKS
    if is_lost or isinstance(error, AmbiguousErr):
        return DeliveryStep("failed")
    refused = error.kind in {"invalid", "not_found"}
    if refused and intent.attempts + 1 >= OUTBOX_MAX_ATTEMPTS:
        return DeliveryStep("failed", counts=True)
    return DeliveryStep("sending", _put_off_s(intent, error), counts=refused)


def not_arrived(intent: Intent, now: datetime) -> IntentState:
    """Return the next state of an intent whose earlier tries did not arrive: `sending` again, or its end."""
    if is_expired(intent, now):
        return "expired"
    return "failed" if intent.attempts >= OUTBOX_MAX_ATTEMPTS else "sending"


def look_again_in_s(intent: Intent) -> float | None:
    """Return the seconds until the next look for a request without a key; None if it may be sent again."""
    return LATE_ARRIVAL_S if intent.looks + 1 < LOOKS_BEFORE_REPEAT else None


def recheck_in_s(intent: Intent) -> float | None:
    """Return the seconds until the next look for a duplicate of a done intent; None after the last one."""
    return RECHECKS_S[intent.looks] if intent.looks < len(RECHECKS_S) else None


def without_closing_words(action: ProposedAction) -> ProposedAction:
    """Return the act without words that close issues, as others may have said them, unless the owner asked for it."""
    if action.by_owner or not isinstance(action.body, OnGitHub):
        return action
    return replace(action, body=without_closing(action.body))


def admit(
    action: ProposedAction, said: Sequence[Verdict], before: StoredBefore, *, intent_id: str, now: datetime
) -> Admission:
    """Return what becomes of a proposed action.

    Args:
        action: what is proposed.
        said: the verdicts of the rules; verdicts on repetition and on its schedule are added.
        before: what was stored before.
        intent_id: the id of the new intent, in hexadecimal digits.
        now: when it is proposed.

    """
    # NOTE(self): the owner's own words do not wait for a draft with these words that they have not decided about.
    is_draft = before.same_text is not None and before.same_text.state == "held"
    twin = None if action.is_given and is_draft else before.same_text
    reason = (
        repeated_reason(action.kind, before.same_act)
        or duplicate_reason(twin, now, in_feed=before.in_feed)
        or picture_reason(before.same_picture)
    )
    too_much = schedule_reason(action.scheduled_for, before.scheduled, now)
    verdicts = [*said, Verdict("once", "block", reason) if reason else Verdict("once")]
    verdicts += [Verdict("schedule", "block", too_much)] if too_much else []
    # NOTE(self): other verdicts may quote the action, so they are dropped if it is withheld.
    withheld = [verdict for verdict in verdicts if verdict.says == "block" and verdict.withhold]
    verdicts = withheld or verdicts
    state, why = decide(verdicts, action.hold)
    advice = advise(state, why, verdicts, now)
    expires = expires_at(action.kind, action.scheduled_for or now)
    expires = min(expires, action.until or expires)
    intent = Intent(
        id=intent_id,
        kind=action.kind,
        target=action.target,
        body=action.body,
        body_hash=hashlib.sha256(action.body.as_json.encode()).hexdigest(),
        dedup_key=action.dedup_key,
        rkey=tid_for(before.created_at, intent_id),
        cause_id=action.cause_id,
        created_at=iso(before.created_at),
        expires_at=iso(expires),
        state=state,
        urgent=action.urgent,
        error=why or None,
        by_owner=action.by_owner,
        scheduled_for=iso(action.scheduled_for) if action.scheduled_for else None,
        own_words=action.own_words,
    )
    if withheld:
        intent = replace(intent, body=OpaqueBody(), target="", body_hash="", dedup_key="")
    return Admission(intent, advice, verdicts)


def decide(verdicts: Sequence[Verdict], hold: str) -> tuple[IntentState, str]:
    """Return the state for an action with these verdicts, and why; `hold` is the action's own reason to wait."""
    block = next((verdict for verdict in verdicts if verdict.says == "block"), None)
    if block is not None:
        return "blocked", block.reason or block.rule
    holds = [verdict.reason or verdict.rule for verdict in verdicts if verdict.says == "hold"]
    if reasons := dict.fromkeys([hold, *holds] if hold else holds):
        return "held", "; ".join(reasons)
    return "pending", ""


def advise(state: IntentState, reason: str, verdicts: Sequence[Verdict], now: datetime) -> Advice:
    """Return the advice for an action with this state, reason and verdicts; the strictest block counts."""
    if state != "blocked":
        return Advice("held" if state == "held" else "admitted", reason)
    for code, instead in _STRICTEST_FIRST:
        for verdict in verdicts:
            if verdict.says == "block" and verdict.instead == instead:
                not_before = now + timedelta(seconds=verdict.retry_in_s) if code == "later" else None
                return Advice(code, f"{verdict.rule}: {verdict.reason}", not_before)
    return Advice("refused", reason)


def failed_rule(name: str, error: Exception, says: Literal["hold", "block"] = "block") -> Verdict:
    """Return the verdict for a rule that raised `error`: it lets nothing pass."""
    return Verdict(name, says, f"the rule on {rule(name)} failed: {type(error).__name__}: {error}")


def duplicate_reason(twin: Intent | None, now: datetime, *, in_feed: bool) -> str:
    """Return why a text may not leave again, or "". `twin` is the newest active intent with the same key."""
    if twin is not None:
        age_s = max(0, int((now - parse_iso(twin.created_at)).total_seconds()))
        if twin.state != "held" and age_s * 1000 < OUTBOUND_DEDUP_WINDOW_MS:
            return f"Near-duplicate of post sent {age_s}s ago: only other words may leave"
        if twin.state != "done":
            return f"Near-duplicate of a {deed(twin.kind)} that {_waits_for(twin)}"
    return "Duplicate of post already in feed: only other words may leave" if in_feed else ""


def repeated_reason(kind: IntentKind, earlier: Intent | None) -> str:
    """Return why the same act may not be done to the same target again, or ""."""
    if earlier is None:
        return ""
    where = {"done": "is done", "held": _waits_for(earlier)}.get(earlier.state, "is on its way")
    return f"This {deed(kind)} {where} already: {earlier.target}"


def picture_reason(earlier: Intent | None) -> str:
    """Return why a picture may not be posted again, or ""."""
    if earlier is None:
        return ""
    return f"The same picture as in a {deed(earlier.kind)} that " + (
        "stands" if earlier.state == "done" else _waits_for(earlier)
    )


def schedule_reason(moment: datetime | None, waiting: int, now: datetime) -> str:
    """Return why nothing may be scheduled for `moment`, or ""; `waiting` is how many acts are scheduled already."""
    if moment is None:
        return ""
    if moment <= now:
        return "the moment has passed"
    if moment - now > SCHEDULE_AHEAD:
        return f"the moment is more than {SCHEDULE_AHEAD.days} days ahead"
    return f"{waiting} are scheduled already" if waiting >= MOST_SCHEDULED else ""


def _ahead_s(moment: str | None, now: datetime) -> float:
    return max(0.0, (parse_iso(moment) - now).total_seconds()) if moment else 0.0


def _waits_for(intent: Intent) -> str:
    return "waits for the owner's approval" if intent.state == "held" else "waits to be sent"


def _turn(intent: Intent, *, was_asleep: bool) -> tuple[bool, int, bool, float]:
    moment = -parse_iso(intent.created_at).timestamp() if was_asleep else due_since(intent).timestamp()
    return (not goes_first(intent), _RANK.get(intent.kind, 2), was_asleep, moment)


def _left(last: datetime | None, cooldown: float, now: datetime) -> float:
    return 0.0 if last is None else max(0.0, cooldown - (now - last).total_seconds())


def _put_off_s(intent: Intent, error: Err) -> float:
    return min(HOLD_MAX_S, max(backoff_s(intent.deferrals + 1), error.retry_after or 0.0))

"""The pure rules of the outbox, as tables.

The times at which the service receives acts show no rhythm of a bot.
"""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import iso, parse_iso
from common.intervals import Pace
from common.result import Err, ErrKind
from modules.services.outbox import policy
from modules.services.outbox.bodies import DeleteBody, FollowBody, IntentKind, OpaqueBody, PostBody
from modules.services.outbox.departures import expected
from modules.services.outbox.policy import BACKLOG_AGE_MS, BACKLOG_SPACING_MS, OUTBOX_MAX_ATTEMPTS
from modules.services.outbox.types import (
    ACTS_PER_TICK,
    Admission,
    Advice,
    Instead,
    Intent,
    IntentState,
    Pacing,
    ProposedAction,
    StoredBefore,
    Verdict,
)
from tests.modules.services.outbox.running_outbox import (
    DID,
    KINDS,
    PACING,
    RunningOutbox,
    like,
    open_running_outbox,
    post,
    reply,
)
from tests.outbox_rows import newest_intents

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def intent(
    kind: IntentKind = "reply",
    *,
    age_s: float = 0,
    urgent: bool = False,
    attempts: int = 0,
    deferrals: int = 0,
    not_before: datetime | None = None,
    state: IntentState = "pending",
) -> Intent:
    born = ago(age_s)
    return Intent(
        id=f"{kind}-{age_s}",
        kind=kind,
        target="at://target",
        body=OpaqueBody(),
        body_hash="",
        dedup_key="",
        rkey="",
        cause_id=None,
        created_at=iso(born),
        expires_at=iso(policy.expires_at(kind, born)),
        state=state,
        attempts=attempts,
        urgent=urgent,
        not_before=iso(not_before) if not_before else None,
        deferrals=deferrals,
    )


def choose(pending: list[Intent], acts: dict[policy.Lane, datetime]) -> policy.Choice:
    return policy.choose(
        pending, lambda one: policy.pace_wait(one, acts=acts, pacing=PACING, now=NOW, started=NOW).seconds
    )


@pytest.mark.parametrize(
    ("kind", "hours"), [("post", 24), ("follow", 24), ("delete", 24), ("reply", 6), ("like", 6), ("repost", 6)]
)
def test_each_kind_lives_as_long_as_it_makes_sense(kind: IntentKind, hours: int) -> None:
    assert policy.expires_at(kind, NOW) == NOW + timedelta(hours=hours)
    assert policy.is_expired(intent(kind, age_s=hours * 3600), NOW)
    assert not policy.is_expired(intent(kind, age_s=hours * 3600 - 1), NOW)


@pytest.mark.parametrize(
    ("kind", "urgent", "acts", "wait"),
    [
        ("post", False, {}, 0),
        ("post", False, {"post": 100}, 1700),
        ("post", False, {"reply": 4}, 6),
        ("reply", False, {"post": 4, "reply": 50}, 10),
        ("reply", False, {"post": 100}, 0),
        ("like", False, {"repost": 15}, 30),
        ("repost", False, {"like": 15, "repost": 40}, 30),
        ("follow", False, {"follow": 3599, "reply": 1}, 9),
        ("delete", False, {"delete": 1}, 9),
        ("reply", True, {"post": 0, "reply": 0}, 0),
    ],
)
def test_the_longest_of_the_violated_cooldowns_counts(
    kind: IntentKind, acts: dict[policy.Lane, float], wait: float, *, urgent: bool
) -> None:
    moments = {one: ago(seconds) for one, seconds in acts.items()}
    found = policy.pace_wait(intent(kind, urgent=urgent), acts=moments, pacing=PACING, now=NOW, started=NOW).seconds
    assert found == wait


@pytest.mark.parametrize("urgent", [True, False])
def test_what_was_old_at_the_start_keeps_two_minutes_between_acts_of_its_kind(*, urgent: bool) -> None:
    old = intent("reply", age_s=BACKLOG_AGE_MS / 1000 + 1, urgent=urgent)
    acts: dict[policy.Lane, datetime] = {"reply": ago(61)}
    found = policy.pace_wait(old, acts=acts, pacing=PACING, now=NOW, started=NOW).seconds
    assert found == BACKLOG_SPACING_MS / 1000 - 61
    other: dict[policy.Lane, datetime] = {"like": ago(61)}
    assert policy.pace_wait(old, acts=other, pacing=PACING, now=NOW, started=NOW).seconds == 0


def test_what_grew_old_while_we_were_awake_is_no_backlog() -> None:
    assert not policy.is_backlog(intent(age_s=5000), started=ago(5000))
    assert policy.is_backlog(intent(age_s=5000), started=ago(4000))


def test_turns_go_to_the_urgent_then_to_answers_then_to_posts_then_to_what_is_due_for_longest() -> None:
    pending = [
        intent("like", age_s=1),
        intent("post", age_s=2),
        intent("reply", age_s=9),
        intent("reply", age_s=3),
        intent("reply", age_s=20, not_before=ago(5)),
        intent("like", age_s=8, urgent=True),
    ]
    turns: list[str] = []
    while pending:
        choice = choose(pending, {})
        assert choice.intent is not None
        pending.remove(choice.intent)
        turns.append(choice.intent.id)
    assert turns == ["like-8", "reply-9", "reply-20", "reply-3", "post-2", "like-1"]


def test_a_backlog_comes_after_what_is_new_and_its_newest_first() -> None:
    old, older, new = intent(age_s=700), intent(age_s=900), intent(age_s=5)
    asleep = {old.id, older.id}
    turns = []
    for pending in ([older, old, new], [older, old], [older]):
        chosen = policy.choose(pending, lambda _: 0.0, lambda one: one.id in asleep).intent
        turns.append(chosen)
    assert turns == [new, old, older]


def test_who_must_wait_lets_the_next_go_and_the_shortest_wait_is_told() -> None:
    acts: dict[policy.Lane, datetime] = {"reply": ago(20)}
    answer, words = intent("reply"), intent("post")
    assert choose([answer, words], acts).intent == words
    acts["post"] = ago(20)
    assert choose([answer, words], acts) == policy.Choice(wait_s=40)
    assert choose([], acts) == policy.Choice()


@pytest.mark.parametrize(
    ("in_s", "held"),
    [(None, 0), (30, 30), (-30, 0), (policy.HOLD_MAX_S, policy.HOLD_MAX_S), (policy.HOLD_MAX_S + 1, 0)],
)
def test_a_retry_waits_for_its_time_unless_the_clock_was_set_back(in_s: float | None, held: float) -> None:
    moment = None if in_s is None else NOW + timedelta(seconds=in_s)
    assert policy.retry_in_s(intent(not_before=moment), NOW) == held


@pytest.mark.parametrize(("tries", "seconds"), [(1, 5), (2, 15), (6, 1215), (7, 1800), (1000, 1800)])
def test_retries_grow_apart_up_to_half_an_hour(tries: int, seconds: float) -> None:
    assert policy.backoff_s(tries) == seconds


@pytest.mark.parametrize(
    ("kind", "retry_after", "step"),
    [
        ("invalid", None, policy.DeliveryStep("failed")),
        ("not_found", None, policy.DeliveryStep("failed")),
        ("unknown_outcome", None, policy.DeliveryStep("sending", 15, counts=True)),
        ("transient", None, policy.DeliveryStep("pending", 45)),
        ("transient", 300, policy.DeliveryStep("pending", 300)),
        ("transient", 10**9, policy.DeliveryStep("pending", policy.HOLD_MAX_S)),
        ("auth", None, policy.DeliveryStep("pending", 45)),
        ("fatal", None, policy.DeliveryStep("pending", 45)),
    ],
)
def test_what_a_failed_try_means(kind: ErrKind, retry_after: float | None, step: policy.DeliveryStep) -> None:
    tried = intent(attempts=1, deferrals=2)
    assert policy.after_send(tried, Err("no", kind, retry_after=retry_after)) == step


@pytest.mark.parametrize(
    ("kind", "attempts", "step"),
    [
        ("transient", OUTBOX_MAX_ATTEMPTS, policy.DeliveryStep("sending", 5)),
        ("unknown_outcome", OUTBOX_MAX_ATTEMPTS, policy.DeliveryStep("sending", 5)),
        ("auth", 0, policy.DeliveryStep("sending", 5)),
        ("fatal", 0, policy.DeliveryStep("sending", 5)),
        ("invalid", 0, policy.DeliveryStep("sending", 5, counts=True)),
        ("invalid", OUTBOX_MAX_ATTEMPTS - 1, policy.DeliveryStep("failed", counts=True)),
    ],
)
def test_not_knowing_gives_up_nothing(kind: ErrKind, attempts: int, step: policy.DeliveryStep) -> None:
    assert policy.after_find(intent(attempts=attempts), Err("no", kind), NOW) == step


@pytest.mark.parametrize(
    ("attempts", "age_s", "state"),
    [
        (0, 0, "sending"),
        (OUTBOX_MAX_ATTEMPTS - 1, 0, "sending"),
        (OUTBOX_MAX_ATTEMPTS, 0, "failed"),
        (0, 6 * 3600, "expired"),
        (OUTBOX_MAX_ATTEMPTS, 6 * 3600, "expired"),
    ],
)
def test_what_did_not_arrive_goes_out_again_or_ends(attempts: int, age_s: float, state: IntentState) -> None:
    assert policy.not_arrived(intent(attempts=attempts, age_s=age_s), NOW) == state


@pytest.mark.parametrize(
    ("twin", "in_feed", "reason"),
    [
        (None, False, ""),
        (None, True, "Duplicate of post already in feed: only other words may leave"),
        (
            intent("post", age_s=299.5, state="done"),
            True,
            "Near-duplicate of post sent 299s ago: only other words may leave",
        ),
        (
            intent("post", age_s=300, state="done"),
            True,
            "Duplicate of post already in feed: only other words may leave",
        ),
        (intent("post", age_s=300, state="done"), False, ""),
        (intent("reply", age_s=300, state="sending"), False, "Near-duplicate of a reply that waits to be sent"),
        (intent("reply", state="held"), False, "Near-duplicate of a reply that waits for the owner's approval"),
        (intent("reply", age_s=-5), False, "Near-duplicate of post sent 0s ago: only other words may leave"),
    ],
)
def test_the_two_layers_of_sameness(twin: Intent | None, reason: str, *, in_feed: bool) -> None:
    assert policy.duplicate_reason(twin, NOW, in_feed=in_feed) == reason


@given(
    kind=st.sampled_from(KINDS),
    age_s=st.floats(0, 10**6),
    urgent=st.booleans(),
    acts=st.dictionaries(st.sampled_from(KINDS), st.floats(0, 10**5)),
)
def test_after_the_wait_that_was_told_the_act_may_leave(
    kind: IntentKind, age_s: float, acts: dict[policy.Lane, float], *, urgent: bool
) -> None:
    one = intent(kind, age_s=age_s, urgent=urgent)
    moments = {other: ago(seconds) for other, seconds in acts.items()}
    pause = policy.pace_wait(one, acts=moments, pacing=PACING, now=NOW, started=NOW).seconds
    later = NOW + timedelta(seconds=pause + 0.001)
    assert policy.pace_wait(one, acts=moments, pacing=PACING, now=later, started=NOW).seconds == 0


def _forbids(rule: str, instead: Instead | None, retry_in_s: float = 0.0) -> Verdict:
    return Verdict(rule, "block", "why", instead=instead, retry_in_s=retry_in_s)


@pytest.mark.parametrize(
    ("verdicts", "hold", "advice"),
    [
        ([], "", Advice("admitted")),
        ([Verdict("consent")], "a stranger", Advice("held", "a stranger")),
        ([Verdict("approval", "hold", "why")], "", Advice("held", "why")),
        ([_forbids("once", None)], "", Advice("refused", "why")),
        ([_forbids("once", None)], "a stranger", Advice("refused", "why")),
        ([_forbids("same-reply", "other words")], "", Advice("other_words", "same-reply: why")),
        ([_forbids("once", None), _forbids("repost", "like")], "", Advice("like_instead", "repost: why")),
        ([_forbids("loop", "like"), _forbids("consent", "silence")], "", Advice("silence", "consent: why")),
        (
            [_forbids("same-reply", "other words"), _forbids("points", "later", 90)],
            "",
            Advice("later", "points: why", NOW + timedelta(seconds=90)),
        ),
    ],
)
def test_the_answer_is_a_code_and_the_strictest_refusal_decides(
    verdicts: list[Verdict], hold: str, advice: Advice
) -> None:
    assert policy.advise(*policy.decide(verdicts, hold), verdicts, NOW) == advice


NOTHING_BEFORE = StoredBefore(same_act=None, same_text=None, in_feed=False, created_at=NOW)
POST = ProposedAction(PostBody(text="The weir is open again."), cause_id="expression")


def admit(action: ProposedAction, said: list[Verdict], before: StoredBefore = NOTHING_BEFORE) -> Admission:
    return policy.admit(action, said, before, intent_id="ab" * 16, now=NOW)


def test_an_admitted_action_becomes_an_intent_with_all_that_was_proposed() -> None:
    admission = admit(POST, [Verdict("consent")])
    intent = admission.intent
    assert admission.advice == Advice("admitted")
    assert admission.verdicts == [Verdict("consent"), Verdict("once")]
    assert (intent.kind, intent.body, intent.state, intent.error) == ("post", POST.body, "pending", None)
    assert (intent.cause_id, intent.dedup_key, intent.created_at) == ("expression", POST.dedup_key, iso(NOW))
    assert intent.expires_at == iso(NOW + timedelta(hours=24))


def test_of_a_withheld_action_nothing_is_kept_and_no_other_rule_is_heard() -> None:
    leak = Verdict("secrets", "block", "it holds a secret", withhold=True)
    admission = admit(POST, [Verdict("consent", "block", f"it says {POST.text}"), leak])
    intent = admission.intent
    assert (intent.body, intent.target, intent.body_hash, intent.dedup_key) == (OpaqueBody(), "", "", "")
    assert (intent.state, intent.error, admission.verdicts) == ("blocked", "it holds a secret", [leak])


TICK_S = 45


@pytest.fixture
async def paced(tmp_path: Path) -> AsyncIterator[RunningOutbox]:
    async with open_running_outbox(tmp_path) as running_outbox:
        running_outbox.pacing = Pacing.of(Pace())
        await running_outbox.restart()
        yield running_outbox


def thread(number: int) -> str:
    return f"at://did:plc:ada/app.bsky.feed.post/{number}"


async def departures(paced: RunningOutbox, *actions: ProposedAction) -> list[datetime]:
    """Propose all at once, let time pass until all have left, and return when each did, in order."""
    for action in actions:
        submitted = await paced.outbox.submit(action)
        assert submitted.accepted, submitted.reason
    while (report := await paced.outbox.deliver_due()).next_in_s is not None:
        await paced.clock.advance(max(report.next_in_s, 0.001))
    intents = await newest_intents(paced.outbox, len(actions))
    assert {intent.state for intent in intents} == {"done"}
    return sorted(parse_iso(intent.sent_at) for intent in intents if intent.sent_at)


async def test_like_reply_and_follow_never_leave_within_one_breath(paced: RunningOutbox) -> None:
    follow = ProposedAction(FollowBody(did="did:plc:ada"))
    moments = await departures(paced, like(thread(1)), reply(thread(1), "Tin."), follow, post("Slate."))
    assert all(later - earlier >= timedelta(seconds=10) for earlier, later in pairwise(moments))


async def test_an_hour_lies_between_two_unfollows_also_across_a_restart(paced: RunningOutbox) -> None:
    follows = [f"at://{DID}/app.bsky.graph.follow/{number}" for number in range(3)]
    for uri in follows:
        assert (await paced.outbox.submit(ProposedAction(DeleteBody(uri=uri)))).accepted
    await paced.outbox.deliver_due()
    await paced.restart()
    moments = await departures(paced, ProposedAction(DeleteBody(uri=f"at://{DID}/app.bsky.feed.post/1")))
    left = [parse_iso(intent.sent_at) for intent in await newest_intents(paced.outbox, 4) if intent.sent_at]
    post_gone = moments[0]
    unfollowed = sorted(moment for moment in left if moment != post_gone)
    assert len(unfollowed) == len(follows)
    assert post_gone - unfollowed[0] < timedelta(minutes=1)
    assert all(later - earlier >= timedelta(hours=1) for earlier, later in pairwise(unfollowed))


async def test_even_answers_to_the_owner_leave_with_a_breath_between_them(paced: RunningOutbox) -> None:
    urgent = [reply(thread(number), f"Answer number {number}.", urgent=True) for number in range(5)]
    moments = await departures(paced, like(thread(9)), *urgent)
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(moments)]
    assert all(gap >= 2 for gap in gaps)
    assert sum(gap < 10 for gap in gaps) == 4


async def test_what_the_owner_orders_or_approves_does_not_wait_for_the_pace_and_the_wait_of_all_else_is_told(
    paced: RunningOutbox,
) -> None:
    followed = await departures(paced, ProposedAction(FollowBody(did="did:plc:owner")), post("Slate."))
    own = (await paced.outbox.submit(post("Chalk."))).intent
    draft = (await paced.outbox.submit(replace(post("Flint."), hold="drafts"))).intent
    ordered = await paced.outbox.submit(ProposedAction(FollowBody(did="did:plc:kit"), by_owner=True))
    await paced.outbox.approve(draft.id)
    await paced.drain(60)
    left = {one.id: one.state for one in await newest_intents(paced.outbox, 4)}
    assert (left[ordered.intent.id], left[draft.id], left[own.id]) == ("done", "done", "pending")
    departure = (await paced.database.run(expected))[own.id]
    assert "after the last post" in departure.reason
    await paced.clock.advance((parse_iso(departure.at) - paced.clock.now()).total_seconds() - 5)
    assert (await paced.deliver(own.id)).state == "pending"
    await paced.clock.advance(6)
    assert (await paced.deliver(own.id)).state == "done"
    assert await paced.database.run(expected) == {}
    assert parse_iso(departure.at) - followed[-1] > timedelta(minutes=30)


async def test_an_act_behind_others_of_its_kind_is_told_to_leave_after_them(paced: RunningOutbox) -> None:
    waits = [(await paced.outbox.submit(post(text))).wait for text in ("Slate.", "Chalk.", "Flint.")]
    assert [round(wait.seconds / 60) for wait in waits] == [0, 30, 60]
    assert "before it" in waits[-1].reason


async def test_at_most_three_acts_leave_within_a_tick(paced: RunningOutbox) -> None:
    follows = [ProposedAction(FollowBody(did=f"did:plc:{number}")) for number in range(2)]
    acts = [one for number in range(4) for one in (like(thread(number)), reply(thread(number), f"Answer {number}."))]
    moments = await departures(paced, *follows, *acts, post("Slate."))
    for first, fourth in zip(moments, moments[ACTS_PER_TICK:], strict=False):
        assert fourth - first >= timedelta(seconds=TICK_S)


async def test_none_of_those_that_wait_overtakes_another(paced: RunningOutbox) -> None:
    said = [f"Answer {number}." for number in range(12)]
    moments = await departures(paced, *(reply(thread(number), text) for number, text in enumerate(said)))
    intents = sorted(await newest_intents(paced.outbox, 12), key=lambda one: one.sent_at or "")
    assert [one.body.public_text for one in intents] == said
    assert moments[-1] - moments[0] < timedelta(seconds=11 * 76)


@pytest.mark.slow
async def test_no_second_of_the_minute_is_kept(paced: RunningOutbox) -> None:
    moments = await departures(paced, *(reply(thread(number), f"Answer {number}.") for number in range(60)))
    seconds = Counter(moment.second for moment in moments)
    gaps = {round((later - earlier).total_seconds(), 1) for earlier, later in pairwise(moments)}
    assert len(seconds) >= 20
    assert max(seconds.values()) <= 10
    assert len(gaps) >= 30
    assert min(gaps) >= 60
    assert max(gaps) <= 76

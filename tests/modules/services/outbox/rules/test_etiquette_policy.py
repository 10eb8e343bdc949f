"""The pure rules, by tables and properties."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.clock import FakeClock, ScaledClock
from modules.services.outbox.rules import policy, rules
from modules.services.outbox.rules.types import ReplyAdvice
from modules.services.outbox.types import Verdict

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPENT = st.lists(st.tuples(st.integers(0, 3599), st.integers(1, 9)), min_size=1, max_size=40)


@given(st.lists(st.booleans()))
def test_a_run_is_the_tail_without_a_person(turns: list[bool]) -> None:
    run = policy.run_of(turns)
    assert all(turns[len(turns) - run :])
    assert run == len(turns) or not turns[len(turns) - run - 1]


@given(SPENT, st.integers(1, 300))
def test_after_the_wait_what_was_asked_for_is_free_and_not_a_moment_before(
    ago: list[tuple[int, int]], excess: int
) -> None:
    spent = sorted((NOW - timedelta(seconds=seconds), float(points)) for seconds, points in ago)
    excess = min(excess, int(sum(points for _, points in spent)))
    wait = policy.frees_in_s(spent, excess, HOUR, NOW)

    def freed(at: datetime) -> float:
        return sum(points for moment, points in spent if moment <= at - HOUR)

    assert freed(NOW + timedelta(seconds=wait - 0.001)) >= excess
    assert freed(NOW + timedelta(seconds=wait - 0.01)) < excess


def test_a_wait_is_never_nothing() -> None:
    assert policy.frees_in_s([], 1, timedelta(0), NOW) > 0


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Don't! STOP…", "don t stop"),
        ("@ada.example see https://x.example/1 now", "see now"),
        ("No 1, no 2", "no no"),
        ("❤️ it", "it"),
        ("3️⃣", "3️⃣"),
        ("🌧️", "🌧️"),
        ("Ça va?", "ça va"),
        ("मैं ठीक हूँ", "मैं ठीक हूँ"),
        ("", ""),
    ],
)
def test_only_words_are_compared(text: str, bare: str) -> None:
    assert policy.letters(text, digits=False) == bare


def test_digits_count_where_they_are_asked_for() -> None:
    assert policy.letters("What is 17 × 3?", digits=True) == "what is 17 3"  # noqa: RUF001 - a sign of multiplication


@given(st.text(max_size=80))
def test_bare_words_stay_as_they_are(text: str) -> None:
    once = policy.letters(text, digits=False)
    assert policy.letters(once, digits=False) == once


@pytest.mark.parametrize(
    ("uri", "whose"),
    [
        ("at://did:plc:Abc/app.bsky.feed.post/1", "did:plc:Abc"),
        ("at://Ada.Example/app.bsky.feed.post/1", "ada.example"),
        ("at://did:plc:abc", "did:plc:abc"),
        ("https://x.example/y", ""),
        ("did:plc:abc", ""),
        ("", ""),
    ],
)
def test_a_record_belongs_to_its_authority(uri: str, whose: str) -> None:
    assert policy.authority(uri) == whose


def block(etiquette_rule: str) -> Verdict:
    return Verdict(etiquette_rule, "block", "why")


@pytest.mark.parametrize(
    ("verdicts", "outlook"),
    [
        ([], ReplyAdvice()),
        ([Verdict("consent")], ReplyAdvice()),
        ([block("same-reply")], ReplyAdvice()),
        ([block("consent-by-name")], ReplyAdvice()),
        ([block("loop-pair-soft")], ReplyAdvice("like", "loop-pair-soft: why")),
        ([block("repost-sense"), block("strangers")], ReplyAdvice("like", "repost-sense: why")),
        ([block("loop-thread-soft"), block("loop-thread-hard")], ReplyAdvice("silence", "loop-thread-hard: why")),
        ([block("strangers")], ReplyAdvice("later", "strangers: why", 90)),
        ([block("strangers-while-young")], ReplyAdvice("later", "strangers-while-young: why", 300)),
        ([block("consent"), block("strangers")], ReplyAdvice("silence", "consent: why")),
    ],
)
def test_the_strongest_rule_decides_what_becomes_of_a_reply(verdicts: list[Verdict], outlook: ReplyAdvice) -> None:
    real = ScaledClock(FakeClock(), 2).real
    assert policy.reply_advice(policy.with_advice(one, real) for one in verdicts) == outlook


def test_the_last_one_that_fits_passes_and_the_next_does_not() -> None:
    etiquette_rule = rules.STRANGERS
    assert policy.held_to(etiquette_rule, etiquette_rule.limit - 1).says == "pass"
    refused = policy.held_to(etiquette_rule, etiquette_rule.limit)
    assert (refused.says, refused.value, refused.limit) == ("block", etiquette_rule.limit, etiquette_rule.limit)
    assert policy.held_to(etiquette_rule, etiquette_rule.limit, exempt="the owner asked for it").says == "pass"
    assert policy.held_to(etiquette_rule, etiquette_rule.limit, adds=0).says == "pass"

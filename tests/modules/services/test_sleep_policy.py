"""Proves when a SOUL may sleep, and until when."""

from datetime import UTC, datetime, timedelta

from modules.services.sleep import LEAST, LONGEST, AwaitedNext, judge

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_it_sleeps_until_what_is_due_first() -> None:
    later, sooner = AwaitedNext(due=NOW + timedelta(hours=5)), AwaitedNext(due=NOW + timedelta(hours=2))
    rest = judge({"work": AwaitedNext(), "rituals": later, "its thoughts": sooner}, NOW)
    assert rest.reasons == ()
    assert rest.wake_at == NOW + timedelta(hours=2)


def test_what_has_no_time_never_lets_it_sleep_for_longer_than_most_of_a_day() -> None:
    assert judge({"work": AwaitedNext()}, NOW).wake_at == NOW + LONGEST
    assert judge({"work": AwaitedNext(due=NOW + timedelta(days=30))}, NOW).wake_at == NOW + LONGEST


def test_one_part_keeps_it_awake_and_each_reason_is_told_once() -> None:
    waits, later = AwaitedNext("work waits"), AwaitedNext(due=NOW + timedelta(hours=2))
    assert judge({"work": waits, "rituals": later, "the outbox": waits}, NOW).reasons == ("work waits",)


def test_a_sleep_that_is_too_short_or_over_is_not_begun_and_what_is_due_is_told() -> None:
    later = AwaitedNext(due=NOW + LEAST)
    for due in (NOW + LEAST - timedelta(seconds=1), NOW, NOW - timedelta(days=1)):
        rest = judge({"its thoughts": AwaitedNext(due=due), "rituals": later}, NOW)
        assert rest.reasons == ("something is due soon: its thoughts",)
    assert not judge({"rituals": later}, NOW).reasons

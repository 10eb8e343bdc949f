"""Fourteen days of five SOULs among people, with restarts, and one that loses its memory: lived once for all tests.

What each test proves is counted from what stands on the network in the end. `make test-days` shows the figures.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.running_town import KEY, PASSWORD, settings_of
from tests.scenarios.days_audit import Days, untold
from tests.scenarios.days_people import People
from tests.scenarios.days_town import DAY_S, HOUR_S, MORNING, open_days_town

pytestmark = [pytest.mark.days, pytest.mark.timeout(1200)]

NAMES = ("rowan", "wren", "sable", "marlow", "juno")
DAYS = 14
LOSES_ITS_MEMORY, ON_DAY = "juno", 8
FORGETS = frozenset({LOSES_ITS_MEMORY})


async def _live(root: Path) -> Days:
    async with open_days_town(root, NAMES) as town:
        for soul in town.souls.values():
            await soul.wake()
        people = People(town)
        people.begin(DAYS)
        for day in range(DAYS):
            await town.live(9 * HOUR_S)
            resting = town.souls[NAMES[day % len(NAMES)]]
            await resting.end()
            await town.live(HOUR_S)
            await resting.wake()
            if day == ON_DAY:
                forgetful = town.souls[LOSES_ITS_MEMORY]
                await forgetful.end()
                forgetful.home.database.unlink()
                await forgetful.wake()
            await town.live(DAY_S - 10 * HOUR_S)
        for soul in town.souls.values():
            await soul.end()
        return Days(town, people, MORNING, DAYS)


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> Days:
    lived = asyncio.run(_live(tmp_path_factory.mktemp("days")))
    print(f"\n{lived.figures()}")  # noqa: T201 - the figures are what `make test-days` is for
    return lived


def test_the_minds_wanted_what_the_program_must_hold(days: Days) -> None:
    wanted = days.town.mind.wanted
    assert min(wanted[kind] for kind in ("repeat", "no invitation", "thanks", "echo", "peer")) > 0, wanted


def test_no_soul_says_the_same_twice_across_restarts(days: Days) -> None:
    assert days.repeated() == []
    assert all(soul.starts > DAYS // len(NAMES) for soul in days.town.souls.values())


def test_each_soul_posts_a_thought_of_its_own_every_day(days: Days) -> None:
    assert days.days_without_a_thought() == []


def test_each_thought_invites_its_readers(days: Days) -> None:
    assert days.without_invitation() == []


def test_no_talk_is_closed_twice_and_no_souls_go_on_among_themselves(days: Days) -> None:
    assert days.closings() == []
    assert days.longest_run() <= 12


def test_thanks_are_answered_by_a_like_or_by_nothing(days: Days) -> None:
    thanked = [uri for uri in days.people.thanked if days.town.owner not in uri]
    assert thanked
    assert [uri for uri in thanked for name in NAMES if days.replied(uri, name)] == []


def test_nobody_who_asks_something_is_left_without_an_answer_or_a_like(days: Days) -> None:
    assert days.unanswered(days.people.asked) == []


def test_the_owner_is_answered_in_words(days: Days) -> None:
    """Where three are asked at once, one who has nothing to add may like."""
    alone = [one for one in days.people.asked if one.author == "owner" and len(one.souls) == 1]
    assert len(alone) > DAYS
    unanswered = [(one.souls, one.at) for one in alone if not days.replied(one.uri, one.souls[0])]
    assert [(souls, at) for souls, at in unanswered if at < MORNING + timedelta(days=DAYS, hours=-8)] == []


def test_three_in_one_thread_say_three_things_or_like(days: Days) -> None:
    assert len(days.people.together) == DAYS
    assert days.echoes_among_three() == []
    in_words = [sum(bool(days.replied(one.uri, soul)) for soul in one.souls) for one in days.people.together]
    assert in_words.count(3) > DAYS // 2


def test_each_says_once_who_it_is_and_follows_and_announces_each_peer_once(days: Days) -> None:
    for name in NAMES:
        others = {other: 1 for other in NAMES if other != name}
        assert len(days.identity_posts(name)) == 1
        assert days.follows(name) == others
        assert days.announcements(name) == others


def test_no_counter_of_the_manners_is_passed(days: Days) -> None:
    assert 0 < days.most_strangers_an_hour() <= 6
    assert 0 < days.most_replies_to_one_an_hour() <= 6
    assert days.most_points(timedelta(hours=1)) <= 4_000
    assert days.most_points(timedelta(days=1)) <= 28_000
    assert days.uninvited() == []


def test_the_terminal_tells_each_decision_and_why(days: Days) -> None:
    for soul in days.town.souls.values():
        assert len(soul.journal) > DAYS
        assert untold(soul) == []


def test_no_journal_tells_of_an_error(days: Days) -> None:
    errors = [
        (soul.name, one.entry.summary)
        for soul in days.town.souls.values()
        for one in soul.journal.values()
        if one.entry.kind == "error"
    ]
    assert [error for error in errors if error[0] not in FORGETS] == []


def test_no_prompt_holds_a_post_of_who_denied_it(days: Days) -> None:
    assert len(days.people.denied) > DAYS
    assert days.allowed_in_prompts() > 0, "the search finds what was allowed before"
    assert [(author, prompt.purpose, prompt.at) for author, prompt in days.denied_in_prompts()] == []


def test_no_prompt_holds_a_secret(days: Days) -> None:
    secrets = {secret for soul in days.town.souls.values() for secret in settings_of(soul.home).secrets}
    assert {KEY, PASSWORD} <= secrets
    assert days.town.mind.prompts.holding(secrets) == []

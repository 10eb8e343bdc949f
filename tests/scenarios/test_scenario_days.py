"""Fourteen days of five SOULs among people, with restarts and one lost memory, simulated once for all tests.

They post, show pictures, answer in public and by direct message, and build something on GitHub when the owner asks.

Each test counts what is on the network at the end. `make test-days` shows the figures.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from tests.running_town import KEY, PASSWORD, settings_of
from tests.scenarios.days_audit import Days, alike, untold
from tests.scenarios.days_counters import DAY, HOUR, Counters, figures
from tests.scenarios.days_events import BUILDERS, COMMANDED, Events, Written
from tests.scenarios.days_people import People
from tests.scenarios.days_town import DAY_S, HOUR_S, MORNING, open_days_town
from tests.town.github_place import needs_git
from town.github.values import StoredIssue, StoredRepo

_PREFIX = "www-lil-intdev-"
_MOST_ALIKE = 0.6


@dataclass(frozen=True)
class Work:
    """The workspace, its plan, and what was said in the thread, and by whom."""

    days: Days
    events: Events

    @property
    def workspaces(self) -> list[StoredRepo]:
        """All workspaces of the organisation."""
        assert self.days.town.places
        return [one for one in self.days.town.places.github.network.repos() if one.name.startswith(_PREFIX)]

    @property
    def plans(self) -> list[StoredIssue]:
        """All issues with a plan, in any workspace."""
        issues = (issue for repo in self.workspaces for issue in repo.issues.values())
        return [issue for issue in issues if issue and issue.title.startswith("[PLAN]")]

    def titles(self) -> list[str]:
        """Return the titles of all issues and pull requests of the workspaces."""
        return [issue.title for repo in self.workspaces for issue in repo.issues.values() if issue]

    def said(self) -> dict[str, list[str]]:
        """Return what each SOUL said in the thread, by name."""
        assert self.events.building
        root = self.events.building.uri
        found: dict[str, list[str]] = {name: [] for name in self.days.town.souls}
        for thread in self.days.threads():
            for post in thread.posts if thread.root == root else ():
                if post.author.did in self.days.handles:
                    found[self.days.handles[post.author.did]].append(post.text)
        return found

    def silent(self) -> list[str]:
        """Return the names of the SOULs that were asked, and neither replied nor liked."""
        assert self.events.building
        likers = self.days.likers(self.events.building.uri)
        return [name for name in BUILDERS if not self.said()[name] and name not in likers]

    def repeats(self) -> list[tuple[str, str]]:
        """Return pairs of posts of the SOULs in the thread that say nearly the same."""
        texts = [text for said in self.said().values() for text in said]
        return [
            (one, other)
            for number, other in enumerate(texts)
            for one in texts[:number]
            if alike(one, other) > _MOST_ALIKE
        ]


_OF_MESSAGES = ("message", "direct-message", "owner")
"""Beginnings of the purposes of prompts about direct messages, those of the owner included."""


@dataclass(frozen=True)
class Messages:
    """Counts answers in the conversations, and searches all prompts for their words."""

    days: Days
    events: Events

    @property
    def asked(self) -> int:
        """The number of times that somebody wrote and wanted an answer."""
        return sum(one.wants for one in self.events.written)

    def not_answered_once(self) -> list[tuple[str, str, int, int]]:
        """Return conversations whose answers are not as many as wanted: author, SOUL, wanted, answered."""
        found = []
        for author, soul in sorted({(one.author, one.soul) for one in self.events.written}):
            asked = [one for one in self._between(author, soul) if one.wants]
            wanted = len(asked) + ((author, soul) == ("owner", COMMANDED))
            answered = len(self.events.answers(author, soul))
            if wanted != answered:
                found.append((author, soul, wanted, answered))
        return found

    def told_in_prompts(self) -> int:
        """Return how often the words of a message occurred in a prompt."""
        return len(self.days.town.mind.prompts.holding(self._words()))

    def told_elsewhere(self) -> list[tuple[str, str]]:
        """Return prompts with words of a direct message that are not about messages: author, purpose."""
        of = self._words()
        return [
            (of[words].author, prompt.purpose)
            for words, prompt in self.days.town.mind.prompts.holding(of)
            if not prompt.purpose.startswith(_OF_MESSAGES)
            and (of[words].author, prompt.question) != ("owner", "False Report")
        ]

    def _words(self) -> dict[str, Written]:
        return {words: one for one in self.events.written for words in one.words}

    def _between(self, author: str, soul: str) -> list[Written]:
        return [one for one in self.events.written if (one.author, one.soul) == (author, soul)]


pytestmark = [pytest.mark.days, pytest.mark.timeout(2700), needs_git]

NAMES = ("rowan", "wren", "sable", "marlow", "juno")
OLD, YOUNG = ("rowan", "wren"), ("sable", "marlow", "juno")
"""The SOULs whose accounts existed long before, and those whose accounts are created on the first day."""
DAYS = 14
BUDGETS = {"marlow": 120_000}
"""Tokens for a day, small enough that strangers reach their share; the others have the default of `.env.example`."""
LOSES_ITS_MEMORY, ON_DAY = "juno", 8
_BUDGET = "The day's budget does not allow it"
FORGETS = frozenset({LOSES_ITS_MEMORY})


async def _live(root: Path) -> tuple[Days, Events]:
    async with open_days_town(root, NAMES, with_places=True, old=OLD, budgets=BUDGETS) as town:
        for soul in town.souls.values():
            await soul.wake()
        people = People(town)
        people.begin(DAYS)
        events = Events(people)
        events.begin(DAYS)
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
        return Days(town, people, MORNING, DAYS), events


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Days, Events]:
    return asyncio.run(_live(tmp_path_factory.mktemp("days")))


@pytest.fixture(scope="module")
def days(lived: tuple[Days, Events]) -> Days:
    return lived[0]


@pytest.fixture(scope="module")
def counters(lived: tuple[Days, Events]) -> Counters:
    days, events = lived
    counters = Counters(days, events)
    print(f"\n{figures(days, counters, YOUNG, OLD)}")  # noqa: T201 - the figures are what `make test-days` is for
    return counters


@pytest.fixture(scope="module")
def messages(lived: tuple[Days, Events]) -> Messages:
    return Messages(*lived)


@pytest.fixture(scope="module")
def work(lived: tuple[Days, Events]) -> Work:
    return Work(*lived)


def test_the_minds_wanted_what_the_program_must_hold(days: Days) -> None:
    wanted = days.town.mind.wanted
    assert min(wanted[kind] for kind in ("repeat", "no invitation", "thanks", "echo", "peer", "picture")) > 0, wanted


def test_no_soul_says_the_same_twice_across_restarts(days: Days) -> None:
    assert days.repeated() == []
    assert all(soul.starts > DAYS // len(NAMES) for soul in days.town.souls.values())


def test_each_soul_posts_a_thought_of_its_own_every_day(days: Days) -> None:
    assert days.days_without_a_thought() == []


def test_each_thought_invites_its_readers_or_comes_soon_after_one_that_does(days: Days) -> None:
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
    """A post to one SOUL gets a reply; if three are asked at once, a like is enough."""
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
        follows = days.follows(name)
        assert follows.pop("owner", 1) == 1
        assert follows == others
        assert days.announcements(name) == others


def test_no_counter_of_the_manners_is_passed(days: Days, counters: Counters) -> None:
    """The crowds and the tireless person nearly reach the limits on strangers and on one person's day."""
    assert 4 <= counters.strangers_an_hour(YOUNG) <= 6
    assert 6 < counters.strangers_an_hour(OLD) <= 20
    assert 0 < counters.replies_to_one(HOUR) <= 6
    assert 40 < counters.replies_to_one(DAY) <= 60
    assert 0 < counters.replies_to_peer(HOUR) <= 20
    assert counters.replies_to_peer(DAY) <= 60
    assert counters.same_words_a_day() <= 2
    assert 0 < counters.own_posts_a_day() <= 12
    assert 0 < counters.logins_a_day() <= 20
    assert 0 < counters.messages_to_one(HOUR) <= 10
    assert counters.messages_to_one(DAY) <= 30
    assert counters.points(HOUR) <= 4_000
    assert counters.points(DAY) <= 28_000
    assert days.uninvited() == []


def test_strangers_together_get_half_of_a_day_s_budget(days: Days, counters: Counters) -> None:
    """The call by which they exceed it is their last of that day."""
    half = {name: settings_of(soul.home).budget_tokens_per_day / 2 for name, soul in days.town.souls.items()}
    passed = [name for name in NAMES if counters.strangers_share(name, without_last=True) >= half[name]]
    assert passed == []
    assert max(counters.strangers_share(name) / half[name] for name in BUDGETS) > 0.9, "they tried"


def test_pictures_are_real_and_have_alt_text_and_a_source_and_none_is_shown_twice(days: Days) -> None:
    shown = days.pictures()
    assert {one.soul for one in shown} == set(NAMES)
    assert [one for one in shown if not (one.alt and one.source.startswith("http") and one.content and one.words)] == []
    assert len({(one.soul, one.content) for one in shown}) == len(shown)


def test_who_asks_about_design_is_shown_a_picture(days: Days) -> None:
    """A picture is shown as long as one is left that was not shown before."""
    asked = {one.uri for one in days.people.design}
    assert len(asked) > DAYS // 2
    assert [one for one in days.pictures() if one.parent in asked]


def test_whoever_writes_a_direct_message_gets_one_answer_and_thanks_get_none(messages: Messages) -> None:
    assert messages.asked > DAYS
    assert messages.events.thanks > 0
    assert messages.not_answered_once() == []


def test_what_is_said_in_private_reaches_no_other_prompt(messages: Messages) -> None:
    assert messages.told_in_prompts() > DAYS, "the search finds what belongs there"
    assert messages.told_elsewhere() == []


def test_three_souls_asked_for_a_tool_make_one_workspace_and_one_plan_and_link_it_in_the_thread(work: Work) -> None:
    (plan,) = work.plans
    (repo,) = work.workspaces
    address = f"/{repo.full_name}/issues/{plan.number}"
    said = work.said()
    assert [name for name, texts in said.items() if any(address in text for text in texts)]
    assert work.silent() == []
    assert work.repeats() == []
    assert len(set(work.titles())) == len(work.titles())


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
    unexpected = [one for one in errors if one[0] not in FORGETS and not (one[0] in BUDGETS and _BUDGET in one[1])]
    assert unexpected == []


def test_no_prompt_holds_a_post_of_who_denied_it(days: Days) -> None:
    assert len(days.people.denied) > DAYS
    assert days.allowed_in_prompts() > 0, "the search finds what was allowed before"
    assert [(author, prompt.purpose, prompt.at) for author, prompt in days.denied_in_prompts()] == []


def test_no_prompt_holds_a_secret(days: Days) -> None:
    secrets = {secret for soul in days.town.souls.values() for secret in settings_of(soul.home).secrets}
    assert {KEY, PASSWORD} <= secrets
    assert days.town.mind.prompts.holding(secrets) == []

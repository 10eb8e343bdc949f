"""A small real model says whether work is worth a post, and writes one that holds the link.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

import pytest

from modules.services.own_feed.announcement import ANNOUNCEMENT, AnnouncementContext, Announcements, problem_of
from tests.model.conftest import settings_for
from tests.running_town import awake
from tests.town_github import TownGitHub

pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]
WORTH_A_POST = (
    "A command that shows why a program stayed silent",
    "Clocks that stop at midnight: how to find time zone faults",
    "A map of the quiet benches in town, open to corrections",
    "What ten thousand log lines say about slow starts",
)
UPKEEP = (
    "Bump the version of the linter",
    "Weekly sync notes, 14 November",
    "Move old reports into the archive folder",
    "Assign reviewers for the next sprint",
)
"""The last two are known for upkeep by nothing but their sense."""
LEAST_POSTED, MOST_UPKEEP_POSTED = 3, 1


async def test_it_posts_what_others_gain_from_with_its_link_and_no_upkeep(
    town_github: TownGitHub, real_model: str
) -> None:
    home = town_github.make_home(**settings_for(real_model, SOUL_SPEED="1"))
    posted: dict[str, str] = {}
    async with awake(home) as soul:
        services = soul.app.services
        announcements = Announcements(services, soul.app.lives.turn_services.prompter, lambda *_, **__: None)
        for number, title in enumerate((*WORTH_A_POST, *UPKEEP), 1):
            work = AnnouncementContext(f"https://github.com/acme/site/issues/{number}", title, "acme/site")
            if await announcements.announce_if_worthy(work, "issue"):
                (intent,) = await services.outbox.by_cause(work.url)
                posted[title] = intent.body.preview
                assert problem_of(posted[title], work.url) is None
        for stored in reversed(await services.journal.recent(100)):
            if stored.entry.loop == ANNOUNCEMENT:
                print(stored.entry.summary, "|", stored.entry.reason)
    print(*posted.values(), sep="\n---\n")
    good, upkeep = (sum(title in posted for title in titles) for titles in (WORTH_A_POST, UPKEEP))
    print(f"{good} of {len(WORTH_A_POST)} posted, and {upkeep} of {len(UPKEEP)} that are upkeep")
    assert good >= LEAST_POSTED
    assert upkeep <= MOST_UPKEEP_POSTED

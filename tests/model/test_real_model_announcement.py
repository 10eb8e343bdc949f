"""A small real model says whether work is worth a post, and writes one that holds the link.

`pytest -rP` shows what it wrote.
"""

# ruff: noqa: T201 - what a real model says is worth reading, and pytest captures it

from __future__ import annotations

import pytest

from modules.services.own_feed.announcement import AnnouncementContext, Announcements, problem_of
from tests.model.conftest import settings_for
from tests.running_town import awake
from tests.town_github import TownGitHub

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]
TITLES = (
    "A command that shows why a program stayed silent",
    "Clocks that stop at midnight: how to find time zone faults",
    "Bump the version of the linter",
)


async def test_what_it_posts_of_its_work_holds_the_link_and_fits(town_github: TownGitHub, real_model: str) -> None:
    home = town_github.make_home(**settings_for(real_model, SOUL_SPEED="1"))
    async with awake(home) as soul:
        services, insights = soul.app.services, list[str]()
        announcements = Announcements(
            services,
            soul.app.lives.turn_services.prompter,
            lambda code, about, **_: insights.append(f"{code}: {about}"),
        )
        for number, title in enumerate(TITLES):
            work = AnnouncementContext(f"https://github.com/acme/site/issues/{number + 1}", title, "acme/site")
            print(title, await announcements.announce_if_worthy(work, "issue"), sep=" → ")
        posts = [intent.body for intent in await services.outbox.of_kind("post", 10)]
    print(*insights, *posts, sep="\n---\n")
    assert all(
        any(problem_of(body.preview, f"https://github.com/acme/site/issues/{number}") is None for number in (1, 2, 3))
        for body in posts
    )

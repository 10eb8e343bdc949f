"""A crowd calls on GitHub: one repository gets so many turns in an hour, and the owner is answered all the same."""

from __future__ import annotations

import pytest

from modules.runtime.journal.types import StoredEntry
from modules.services.outbox.rules.rules import GITHUB_CREATIONS_OF_OTHERS
from modules.services.work.limits import TURNS_ON_GITHUB, TURNS_PER_REPOSITORY
from tests.running_town import RunningSoul, RunningTown, awake
from tests.scenarios.github_talk import CLOCK, Place, minding, open_place
from town.github.values import StoredIssue, StoredRepo

CROWD = 24


async def meet(soul: RunningSoul) -> None:
    """Look at GitHub, and let out what may leave within some minutes."""
    for _ in range(3):
        soul.passes(200)
        await soul.app.scheduler.run_guarded("github-awareness")
        await soul.app.services.outbox.deliver_due()


def call(place: Place, login: str, repo: StoredRepo | None = None) -> StoredIssue:
    account, repo = place.network.find(login) or place.network.create_account(login), repo or place.repo
    asked = place.network.open_issue(repo, account, title=f"Layout of {login}?", body="@rowan, narrow or wide?")
    place.network.notify(repo, asked, account, text=asked.body or "")
    return asked


def turns(entries: list[StoredEntry]) -> int:
    return sum(one.entry.data.get("act") == "turn" for one in entries)


@pytest.mark.slow
async def test_all_strangers_together_get_so_many_turns_an_hour_wherever_they_call(running_town: RunningTown) -> None:
    running_town.mind.answer = minding(*(f"Measure {number} of them, and keep the pages." for number in range(99)))
    async with open_place(running_town, "owner") as place:
        owner = place.network.find("owner")
        assert owner
        each = int(TURNS_PER_REPOSITORY.limit)
        many = range(int(TURNS_ON_GITHUB.limit) // each + 1)
        repos = [place.network.create_repo(owner, f"site-{one}", collaborators=["rowan"]) for one in many]
        for repo in repos:
            for number in range(each):
                call(place, f"caller-{repo.name}-{number}", repo)
        async with awake(place.home(SOUL_SPEED="1"), clock=CLOCK) as soul:
            await meet(soul)
            assert turns(await soul.app.services.journal.recent(1_000)) == TURNS_ON_GITHUB.limit
            of_owner = call(place, "owner")
            await meet(soul)
            assert len(of_owner.comments) == 1
            assert turns(await soul.app.services.journal.recent(1_000)) == TURNS_ON_GITHUB.limit


@pytest.mark.slow
async def test_a_crowd_takes_neither_all_turns_nor_the_owners_share_of_what_is_said(running_town: RunningTown) -> None:
    running_town.mind.answer = minding(*(f"Measure {number} of them, and keep the pages." for number in range(99)))
    async with open_place(running_town, "owner") as place:
        asked = [call(place, f"caller-{number}") for number in range(CROWD)]
        async with awake(place.home(SOUL_SPEED="1"), clock=CLOCK) as soul:
            await meet(soul)
            assert turns(await soul.app.services.journal.recent(1_000)) == TURNS_PER_REPOSITORY.limit
            assert sum(len(one.comments) for one in asked) == GITHUB_CREATIONS_OF_OTHERS.limit
            of_owner = call(place, "owner")
            await meet(soul)
            assert len(of_owner.comments) == 1

"""A crowd calls on GitHub: one repository gets so many turns in an hour, and the owner is answered all the same."""

from __future__ import annotations

import pytest

from modules.services.outbox.rules.rules import GITHUB_CREATIONS_OF_OTHERS, TURNS_PER_REPOSITORY
from tests.running_town import RunningSoul, RunningTown, awake
from tests.scenarios.github_talk import CLOCK, Place, minding, open_place
from town.github.values import StoredIssue

CROWD = 24


async def meet(soul: RunningSoul) -> None:
    """Look at GitHub, and let out what may leave within some minutes."""
    for _ in range(3):
        soul.passes(200)
        await soul.app.scheduler.run_guarded("github-awareness")
        await soul.app.services.outbox.deliver_due()


def call(place: Place, login: str) -> StoredIssue:
    account = place.network.find(login) or place.network.create_account(login)
    asked = place.network.open_issue(place.repo, account, title=f"Layout of {login}?", body="@rowan, narrow or wide?")
    place.network.notify(place.repo, asked, account, text=asked.body or "")
    return asked


@pytest.mark.slow
async def test_a_crowd_takes_neither_all_turns_nor_the_owners_share_of_what_is_said(running_town: RunningTown) -> None:
    running_town.mind.answer = minding(*(f"Measure {number} of them, and keep the pages." for number in range(99)))
    async with open_place(running_town, "owner") as place:
        asked = [call(place, f"caller-{number}") for number in range(CROWD)]
        async with awake(place.home(SOUL_SPEED="1"), clock=CLOCK) as soul:
            await meet(soul)
            told = [one.entry.data.get("act") for one in await soul.app.services.journal.recent(1_000)]
            assert told.count("turn") == TURNS_PER_REPOSITORY.limit
            assert sum(len(one.comments) for one in asked) == GITHUB_CREATIONS_OF_OTHERS.limit
            of_owner = call(place, "owner")
            await meet(soul)
            assert len(of_owner.comments) == 1

"""Proves what keeps a SOUL awake, and what does not."""

from datetime import UTC, datetime

from adapters.watch import SleepWatch
from tests.running_town import RunningTown, awake


async def test_its_next_thought_keeps_it_awake_and_a_draft_that_waits_for_approval_does_not(
    running_town: RunningTown,
) -> None:
    ahead = 12 - datetime.now(UTC).hour  # hours from UTC to where it is noon: at night no thought is due
    zone = f"Etc/GMT{-ahead:+d}"
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts", SOUL_SPEED="1", SOUL_TIMEZONE=zone)
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder in the rain?")
    watch = SleepWatch("http://127.0.0.1:1", "rowan", "its token")
    async with awake(home, watch=watch) as life:
        assert life.app.sleep
        await life.app.scheduler.run_guarded("awareness")
        assert await life.app.services.outbox.held()
        assert (await life.app.sleep.rest()).reasons == ("something is due soon: its thoughts",)

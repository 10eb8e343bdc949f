"""Only one of two copies of a home lives: the second says so and stops, or takes over, and then the first stops."""

import random
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from common.errors import Fatal, HomeLocked
from common.result import Ok
from common.settings import load_settings
from modules.runtime.console import SilentConsole
from modules.runtime.home import Home
from modules.services.outbox.bodies import PostBody
from modules.services.outbox.types import ProposedAction
from modules.services.presence import home_lease_policy as policy
from modules.services.presence.home_lease_policy import (
    HOME_LEASE,
    LeaseRecord,
    identity_of,
    next_lease,
    read_lease,
    standing_of,
)
from soul.app import open_soul
from tests.fresh_database import lay_database
from tests.hasty_clock import HastyClock
from tests.running_town import RunningSoul, RunningTown, awake
from town.atproto.service import Fault

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
PUT, GET = "com.atproto.repo.putRecord", "com.atproto.repo.getRecord"


class Sleeper(HastyClock):
    """The clock of a machine that sleeps: only its wall clock goes on."""

    asleep = timedelta()

    def now(self) -> datetime:
        return super().now() + self.asleep


def copy_of(home: Home) -> Home:
    """Copy a home as `cp -a` would, and return the copy."""
    return Home.at(Path(shutil.copytree(home.root, home.root.with_name("copy"), symlinks=True)))


def lease_in(town: RunningTown) -> LeaseRecord:
    (record,) = town.network.records(town.account("rowan"), HOME_LEASE)
    return read_lease(record.value)


async def say(soul: RunningSoul, text: str) -> None:
    submitted = await soul.app.services.outbox.submit(ProposedAction(PostBody(text=text), urgent=True))
    assert submitted.accepted
    await soul.app.services.outbox.deliver_due()


async def test_a_copy_that_is_started_beside_a_living_one_says_so_and_changes_nothing(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as first:
        before = lease_in(running_town)
        with pytest.raises(
            HomeLocked, match=r"Another copy of this home lives as @rowan\.test on this machine"
        ) as said:
            async with awake(copy_of(home)):
                pass
        assert "--take-over" in said.value.remedy
        assert lease_in(running_town) == before
        await say(first, "Tin sings.")
    assert running_town.texts("rowan") == ["Tin sings."]


async def test_whoever_takes_over_lets_the_other_stop_before_it_acts_and_that_one_sends_nothing_more(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as first:
        copied = copy_of(home)
        clock = HastyClock(1000)
        async with awake(copied, clock=clock, take_over=True) as second:
            assert lease_in(running_town).epoch == 2
            await say(second, "Slate keeps.")
            assert running_town.texts("rowan") == []
            first.passes(policy.CONFIRMED_S)
            with pytest.raises(Fatal, match="took over"):
                await say(first, "Tin sings.")
            assert not first.app.services.control.standing().may_act
            clock.ahead += policy.TAKE_OVER_S
            await second.app.scheduler.run_guarded("home-lease")
            await second.send()
    assert running_town.texts("rowan") == ["Slate keeps."]


async def test_a_home_goes_on_at_once_after_a_kill_and_another_after_a_stop(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home):
        pass
    async with awake(home) as again:
        assert lease_in(running_town).epoch == 2
        await say(again, "Tin sings.")
        await again.app.services.lease.give_back()
    async with awake(copy_of(home)) as moved:
        assert lease_in(running_town).epoch == 3
        await say(moved, "Slate keeps.")
    assert running_town.texts("rowan") == ["Tin sings.", "Slate keeps."]


async def test_a_home_whose_copy_went_on_living_does_not_wake_any_more_unless_it_is_told_to(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as first:
        await first.app.services.lease.give_back()
    copied = copy_of(home)
    async with awake(copied) as second:
        await say(second, "Slate keeps.")
        await second.app.services.lease.give_back()
    with pytest.raises(HomeLocked, match="another copy of this home on this machine now runs") as said:
        async with awake(home):
            pass
    assert "--take-over" in said.value.remedy
    async with awake(home, take_over=True) as again:
        await say(again, "Tin sings.")
        await again.app.services.lease.give_back()
    with pytest.raises(HomeLocked, match="another copy of this home"):
        async with awake(copied):
            pass
    assert running_town.texts("rowan") == ["Slate keeps.", "Tin sings."]


async def test_while_the_record_cannot_be_read_the_life_goes_on_and_nothing_leaves(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.faults.arm(Fault("server_error", GET, times=1))
    async with awake(home) as soul:
        await say(soul, "Tin sings.")
        assert running_town.texts("rowan") == []
        await soul.app.scheduler.run_guarded("home-lease")
        await soul.send()
        assert running_town.texts("rowan") == ["Tin sings."]


async def test_a_renewal_whose_answer_is_lost_is_known_again(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home) as soul:
        soul.passes(policy.RENEW_AFTER_S)
        running_town.faults.arm(Fault("lost_answer", PUT, times=1))
        await soul.app.services.lease.look()
        await soul.app.services.lease.look()
        assert await soul.app.services.lease.confirm() == ""
        assert lease_in(running_town).epoch == 1


async def test_a_machine_that_slept_looks_before_it_sends(running_town: RunningTown) -> None:
    home, clock = running_town.make_home("rowan"), Sleeper(1000)
    async with awake(home, clock=clock) as first:
        clock.asleep += timedelta(hours=1)
        awoken = HastyClock(1000)
        awoken.ahead = clock.asleep.total_seconds()
        async with awake(copy_of(home), clock=awoken, take_over=True):
            with pytest.raises(Fatal, match="took over"):
                await say(first, "Tin sings.")
    assert running_town.texts("rowan") == []


async def test_a_record_that_no_other_copy_wrote_is_written_again(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan")) as soul:
        earlier = lease_in(running_town)
        soul.passes(policy.RENEW_AFTER_S)
        await soul.app.services.lease.look()
        written = await soul.app.services.atproto.put_own_record(
            HOME_LEASE,
            {"epoch": "7", "until": 3, "home": None},
            swap=running_town.network.records(running_town.account("rowan"), HOME_LEASE)[0].cid,
        )
        assert isinstance(written, Ok)
        soul.passes(policy.CONFIRMED_S)
        await say(soul, "Tin sings.")
        assert lease_in(running_town).holder == earlier.holder
    assert running_town.texts("rowan") == ["Tin sings."]


async def test_whoever_takes_over_waits_also_where_the_answer_is_lost(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    async with awake(home):
        copied = copy_of(home)
        running_town.faults.arm(Fault("lost_answer", PUT, times=1))
        async with awake(copied, clock=HastyClock(1000), take_over=True) as second:
            await second.app.services.lease.look()
            await say(second, "Slate keeps.")
            assert running_town.texts("rowan") == []


def test_only_a_lease_of_another_home_that_has_not_ended_holds_anybody_back(tmp_path: Path) -> None:
    me = identity_of(tmp_path, "did:plc:rowan")
    mine = next_lease(None, me, NOW)
    (tmp_path / "copy").mkdir()
    other = next_lease(mine, identity_of(tmp_path / "copy", "did:plc:rowan"), NOW)
    assert (mine.epoch, other.epoch) == (1, 2)
    assert other.holder.machine == me.machine
    assert read_lease(other.record()) == other
    later = NOW + timedelta(seconds=policy.HOME_LEASE_S)
    rebooted = replace(mine, holder=replace(me, boot="another"))
    found = [standing_of(one, me, at) for one, at in ((None, NOW), (mine, NOW), (rebooted, NOW), (other, NOW))]
    assert found == ["free", "ours", "doubtful", "held"]
    assert standing_of(other, me, later) == "free"
    assert standing_of(replace(other, until=None), me, NOW) == "free"
    assert standing_of(replace(other, until=NOW + timedelta(days=9_000)), me, NOW) == "doubtful"
    for odd in ({}, {"epoch": "7", "until": 3, "home": None}, {"epoch": -1, "until": "soon"}):
        assert standing_of(read_lease(odd), me, NOW) == "free"


class Waits(HastyClock):
    """A clock that records each wait, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.noted.append(seconds)
        await super().sleep(seconds)


async def test_the_first_request_after_the_lease_leaves_at_once_and_the_next_one_keeps_the_pace(
    running_town: RunningTown,
) -> None:
    home, clock = running_town.make_home("rowan", SOUL_SPEED="1"), Waits()
    lay_database(home.database)
    async with open_soul(
        load_settings(home.root), home, console=SilentConsole(), clock=clock, rng=random.Random(1)
    ) as app:
        await app.log_in()
        atproto = app.services.atproto
        await atproto.get_notifications()
        assert clock.noted == []
        await atproto.get_notifications()
        assert [round(wait) for wait in clock.noted] == [5]

"""Tests of whose words make and remove a schedule, and of what the model is told of it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from common.provenance import Provenance
from local_tools.schedule_tools import ScheduleRemoveInput, ScheduleTools, schedule_tools
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.executor import Executor, Registry
from modules.services.agent.tools.types import OwnerRequest, ToolResult, Turn
from modules.services.schedules import Schedules
from modules.services.work.table import WorkTable
from tests.modules.services.outbox.running_outbox import open_running_outbox
from tests.shipped_skills import SHIPPED

LINE = "Remind me on 2026-06-05 at nine: water the plants. And remove 1."
PLANTS = {"what": "water the plants", "at": "2026-06-05T09:00", "remind": True}
OWNERS = Turn("owner", Provenance.OWNER, request=OwnerRequest(LINE))
MIXED = Turn("owner", Provenance.STRANGER, origin=Provenance.OWNER, request=OwnerRequest(LINE))
OWN = Turn("heartbeat-turn", Provenance.SELF)


@dataclass
class Rig:
    """The tools over a real table, on Monday 1 June 2026 at noon in UTC, 13:00 in Lisbon."""

    schedules: Schedules
    executor: Executor

    async def use(self, name: str, turn: Turn, /, **arguments: object) -> ToolResult:
        return await self.executor.execute(ToolCall("1", name, dict(arguments)), turn)

    async def ordered(self, name: str, **arguments: object) -> ToolResult:
        """Call a tool among others' words, as if a judge had found that the owner's line asks for it."""
        tool = self.executor.registry.get(name)
        assert tool is not None
        return await tool.handler(tool.input_model.model_validate(arguments), replace(MIXED, is_ordered=True))


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_running_outbox(tmp_path) as outbox:
        outbox.clock.jump((datetime(2026, 6, 1, 12, tzinfo=UTC) - outbox.clock.now()).total_seconds())
        schedules = Schedules(WorkTable(outbox.database, outbox.clock), outbox.clock, "Europe/Lisbon")
        tools = schedule_tools(ScheduleTools(schedules, SHIPPED))
        yield Rig(schedules, Executor(Registry(tools, social_only=True), SHIPPED))


async def test_what_the_owner_or_the_soul_schedules_is_kept_in_local_time_by_whose_word(rig: Rig) -> None:
    told = await rig.use("schedule_add", OWNERS, **PLANTS)
    assert not told.is_error
    assert "Friday 5 June 2026, 09:00" in told.content
    await rig.use("schedule_add", OWN, what="tidy my notes", at="2026-06-04T09:00+02:00", repeat="weekly")
    mine, theirs = await rig.schedules.all()
    assert (mine.by, mine.repeat, f"{mine.at:%H:%M}") == ("soul", "weekly", "08:00")
    assert (theirs.by, theirs.is_reminder, theirs.due) == ("owner", True, datetime(2026, 6, 5, 8, tzinfo=UTC))
    assert "water the plants" in (await rig.use("schedule_list", OWN)).content


async def test_among_others_words_only_what_a_judge_found_in_the_owners_line_counts(rig: Rig) -> None:
    assert (await rig.use("schedule_add", MIXED, **PLANTS)).is_error, "nobody judged it"
    assert not (await rig.ordered("schedule_add", **PLANTS)).is_error
    (only,) = await rig.schedules.all()
    assert (only.what, only.number) == ("water the plants", 1)
    assert (await rig.use("schedule_remove", MIXED, number=1)).is_error
    assert (await rig.use("schedule_remove", OWN, number=1)).is_error
    assert not (await rig.ordered("schedule_remove", number=1)).is_error
    assert (await rig.use("schedule_remove", OWNERS, number=1)).is_error
    assert await rig.schedules.all() == []


@pytest.mark.parametrize("at", ["Friday", "", "2026-06-01T12:59", "9999-12-31T23:59", "2026-13-01T09:00"])
async def test_a_moment_that_is_none_or_has_passed_is_sent_back(rig: Rig, at: str) -> None:
    assert (await rig.use("schedule_add", OWNERS, **PLANTS | {"at": at})).is_error == (at != "9999-12-31T23:59")


async def test_a_judge_is_told_what_stands_under_a_number(rig: Rig) -> None:
    await rig.use("schedule_add", OWNERS, **PLANTS)
    tool = rig.executor.registry.get("schedule_remove")
    assert tool is not None
    assert tool.own_act is not None
    meant = await tool.own_act(ScheduleRemoveInput(number="S1"), OWNERS)
    assert meant is not None
    assert "water the plants" in meant.told
    assert await tool.own_act(ScheduleRemoveInput(number="S9"), OWNERS) is None


async def test_a_schedule_is_changed_in_one_step_keeps_its_number_and_is_never_lost(rig: Rig) -> None:
    await rig.use("schedule_add", OWNERS, **PLANTS | {"repeat": "weekly"})
    await rig.use("schedule_add", OWNERS, changes=1, at="2026-06-06T10:00")
    (moved,) = await rig.schedules.all()
    assert (moved.number, moved.what, f"{moved.at:%a %H:%M}") == (1, "water the plants", "Sat 10:00")
    assert (moved.repeat, moved.is_reminder, moved.by) == ("weekly", True, "owner")
    refused = [
        await rig.use("schedule_add", OWNERS, changes=1, at="2026-05-01T10:00", repeat="once"),
        await rig.use("schedule_add", OWNERS, changes=9, at="2026-06-07T10:00"),
        await rig.use("schedule_add", OWNERS, changes="the second", what="read", at="2026-06-07T10:00"),
        await rig.use("schedule_add", OWN, changes=1, what="tidy my notes"),
        await rig.use("schedule_add", MIXED, changes=1, what="obey kit"),
    ]
    assert all(one.is_error for one in refused)
    assert await rig.schedules.all() == [moved]

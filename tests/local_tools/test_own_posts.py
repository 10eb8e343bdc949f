"""A post of our own: for later in the owner's time zone, for some alone, listed, and taken back by its moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from common.clock import from_local, iso, local, parse_iso
from common.provenance import Provenance
from modules.lives.bluesky.types import ExpressionTurn, Revisions
from modules.runtime.llm.dialect import ToolCall
from modules.services.agent.tools.types import OwnerRequest, ToolResult, Turn
from modules.services.outbox.bodies import PostBody
from tests.outbox_rows import counted
from tests.running_town import RunningSoul, RunningTown, awake

ZONE = "Asia/Kolkata"
MESSAGES = count(1)


async def use(life: RunningSoul, name: str, said: str = "", **arguments: object) -> ToolResult:
    turn = Turn("owner", Provenance.OWNER, cause_id=f"owner:{next(MESSAGES)}", request=OwnerRequest(said))
    call = ToolCall("1", name, dict(arguments))
    return await life.app.lives.turn_services.turn_runner.executor.execute(call, turn)


def tomorrow_at(life: RunningSoul, hour: int) -> str:
    return f"{local(life.app.services.clock.now(), ZONE) + timedelta(days=1):%Y-%m-%d}T{hour:02}:00"


async def test_it_is_scheduled_in_the_owners_time_zone_and_taken_back_by_its_moment(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan", SOUL_TIMEZONE=ZONE)) as life:
        outbox = life.app.services.outbox
        assert (await use(life, "bluesky_unschedule_post")).is_error
        for hour, text in ((9, "Tides."), (10, "Reeds.")):
            told = await use(life, "bluesky_post", text=text, at=tomorrow_at(life, hour))
            assert f"{hour:02}:00" in told.content
        reeds, tides = await outbox.scheduled()
        assert parse_iso(tides.scheduled_for or "") == from_local(datetime.fromisoformat(tomorrow_at(life, 9)), ZONE)
        assert local(parse_iso(tides.scheduled_for or ""), ZONE).hour == 9
        unclear = await use(life, "bluesky_unschedule_post")
        assert unclear.is_error
        assert "09:00" in unclear.content
        assert "10:00" in unclear.content
        assert not (await use(life, "bluesky_unschedule_post", at=tomorrow_at(life, 9))).is_error
        assert [one.id for one in await outbox.scheduled()] == [reeds.id]
        assert running_town.texts("rowan") == []


@pytest.mark.parametrize("at", ["tomorrow", "2020-01-06T09:00", "2999-01-06T09:00"])
async def test_a_moment_that_is_none_or_will_not_do_is_refused(running_town: RunningTown, at: str) -> None:
    async with awake(running_town.make_home("rowan")) as life:
        assert (await use(life, "bluesky_post", text="Tides.", at=at)).is_error
        assert await life.app.services.outbox.scheduled() == []


async def test_what_is_scheduled_is_not_the_newest_post(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan", SOUL_TIMEZONE=ZONE)) as life:
        await use(life, "bluesky_post", text="Slate.")
        await life.send()
        await use(life, "bluesky_post", text="Tides.", at=tomorrow_at(life, 9))
        assert not (await use(life, "bluesky_delete_post")).is_error
        life.passes(60)  # acts leave one after another
        await life.app.services.outbox.deliver_due()
        assert running_town.texts("rowan") == []
        assert len(await life.app.services.outbox.scheduled()) == 1


@pytest.mark.parametrize(
    ("how", "said", "leaves"),
    [
        ("later", "Post about tides tomorrow", False),
        ("later", "Post: about tides", True),
        ("now", "Post “about tides”, please", True),
        ("now", "Post: about tides and moss", False),
    ],
)
async def test_with_drafts_an_order_waits_unless_it_gives_the_words(
    running_town: RunningTown, how: str, said: str, *, leaves: bool
) -> None:
    async with awake(running_town.make_home("rowan", SOUL_APPROVAL="drafts", SOUL_TIMEZONE=ZONE)) as life:
        more = {"at": tomorrow_at(life, 9)} if how == "later" else {}
        await use(life, "bluesky_post", said, text="about tides", **more)
        assert len(await life.app.services.outbox.held()) == (0 if leaves else 1)


async def test_a_post_for_later_may_be_limited_too_and_an_empty_audience_is_none(running_town: RunningTown) -> None:
    async with awake(running_town.make_home("rowan", SOUL_TIMEZONE=ZONE)) as life:
        assert (await use(life, "bluesky_post", text="Reeds.", who=[])).is_error
        await use(life, "bluesky_post", text="Tides.", at=tomorrow_at(life, 9), who=["followers"])
        (scheduled,) = await life.app.services.outbox.scheduled()
    assert isinstance(scheduled.body, PostBody)
    assert scheduled.body.replies == ("followers",)


async def test_only_the_owner_chooses_who_may_reply_and_when_a_post_leaves(running_town: RunningTown) -> None:
    own = Turn("expression", Provenance.SELF, cause_id="expression")
    async with awake(running_town.make_home("rowan", SOUL_TIMEZONE=ZONE)) as life:
        executor = life.app.lives.turn_services.turn_runner.executor
        (shown,) = executor.registry.specs(own, {"bluesky_post"})
        assert set(shown.input_schema["properties"]) == {"text"}
        for more in ({"who": ["nobody"]}, {"at": tomorrow_at(life, 9)}):
            assert (await executor.execute(ToolCall("1", "bluesky_post", {"text": "Tides.", **more}), own)).is_error
        assert await counted(life.app.services.outbox) == {}


LOOP = "I really love the bread that my neighbour bakes when the first frost lies on the roofs of our street. " * 4
CHEER = "I love this bread! " * 3


@pytest.mark.parametrize(
    ("said", "text", "leaves"),
    [("Post about bread", CHEER, False), (f"Post “{CHEER.strip()}”", CHEER, True), ("", LOOP, False)],
    ids=["in a loop", "as the owner gives it", "too long"],
)
async def test_a_post_in_a_loop_does_not_leave_and_is_not_cut_to_fit(
    running_town: RunningTown, said: str, text: str, *, leaves: bool
) -> None:
    turn = Turn("owner", Provenance.OWNER, cause_id="owner:1", request=OwnerRequest(said))
    thought = ExpressionTurn("thought", "", revisions=Revisions(asked_for_shorter=True, asked_for_better=True))
    turn = turn if said else Turn("expression", Provenance.SELF, cause_id="expression", subject=thought)
    async with awake(running_town.make_home("rowan")) as life:
        executor = life.app.lives.turn_services.turn_runner.executor
        posted = await executor.execute(ToolCall("1", "bluesky_post", {"text": text}), turn)
        assert posted.is_error is not leaves
        assert sum((await counted(life.app.services.outbox)).values()) == leaves


def test_a_local_moment_is_read_in_its_zone() -> None:
    moment = datetime(2026, 7, 6, 9, 0)  # noqa: DTZ001 - without a zone, as the model gives it
    assert from_local(moment, "Europe/Berlin") == datetime(2026, 7, 6, 7, 0, tzinfo=UTC)
    assert iso(from_local(moment, "UTC")).startswith("2026-07-06T09:00")

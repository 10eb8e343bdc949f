"""Proves that an interrupted call counts at its bytes, and once its model has answered again, at the observed density.

The service here counts honestly, with as many tokens per byte as a test says. Another model may stand behind the name.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import BudgetExceeded
from modules.runtime.budget.policy import DENSITY_ANSWERS, DENSITY_BYTES, DENSITY_MARGIN, Caps, input_bound
from modules.runtime.budget.report import lines
from modules.runtime.llm.connection import Request
from modules.runtime.llm.dialect import Usage
from tests.modules.runtime.budget.budget_rig import CHEAP, MAIN, PRICES, Rig, Rules, process, request

LONG = request("word " * 10_000)
BOUND, SIZE = input_bound(LONG), len(json.dumps(LONG, indent=4))
RULES = Rules(Caps(20_000_000))
SEEN = Usage(SIZE // 4, 10)
"""One token per four bytes, as in prose."""


async def answered(rig: Rig, usage: Usage | None = SEEN, *, times: int = 1, asked: Request = LONG) -> None:
    for _ in range(times):
        await rig.budget.settle(await rig.ask(asked, "owner"), usage, 40)


async def interrupted(rig: Rig, asked: Request = LONG) -> str:
    leave = await rig.ask(asked, "owner")
    await rig.budget.unanswered(leave)
    return leave.id


async def counts(rig: Rig, call_id: str) -> int:
    return next(int(row["input_tokens"]) for row in await rig.rows() if row["id"] == call_id)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "soul.db"


async def test_after_kill_minus_nine_a_call_counts_in_full_until_its_model_answers_and_then_what_that_showed(
    path: Path,
) -> None:
    async with process(path, RULES) as one:
        await answered(one, times=DENSITY_ANSWERS)
        lost = (await one.ask(LONG, "owner")).id
    async with process(path, RULES) as two:
        line = lines(await two.budget.report())[1]
        assert line.endswith(f"; {BOUND + 1000:,} more set aside for calls not answered yet"), "nothing is on its way"
        await two.budget.note_lost()
        assert await counts(two, lost) == BOUND
        await answered(two)
        seen = await counts(two, lost)
        assert SEEN.input_tokens * DENSITY_MARGIN <= seen < BOUND * 0.4
        report = await two.budget.report()
        assert (report.tokens.unanswered, report.tokens.on_its_way) == (seen + 1000, 0)
        assert report.usd is not None
        assert round(report.usd.unanswered * 1e6) == PRICES[MAIN].cost(seen, 1000)
        assert (
            f", at most {seen + 1000:,} of it for calls without an answer, which may have been billed"
            in lines(report)[1]
        )


async def test_three_that_were_lost_leave_room_for_the_day_once_one_is_answered(path: Path) -> None:
    async with process(path, RULES) as one:
        await answered(one, times=DENSITY_ANSWERS)
        spent = (await one.budget.report()).tokens.used
    rules = Rules(Caps(int(spent) + 4 * (BOUND + 1000)))
    for _ in range(3):
        async with process(path, rules) as killed:
            await killed.budget.note_lost()
            await killed.ask(LONG, "owner")
    async with process(path, rules) as one:
        await one.budget.note_lost()
        await answered(one)
        await answered(one, times=4)
        with pytest.raises(BudgetExceeded):
            await answered(one, times=20)


async def test_a_model_that_was_never_seen_or_too_seldom_counts_at_bytes(path: Path) -> None:
    async with process(path, RULES) as one:
        await answered(one, times=DENSITY_ANSWERS - 2)
        lost = await interrupted(one)
        await answered(one)
        assert await counts(one, lost) == BOUND
        other = await interrupted(one, LONG | {"model": CHEAP})
        await answered(one)
        assert await counts(one, lost) == pytest.approx(BOUND * 0.375, rel=0.01)
        assert await counts(one, other) == BOUND


@pytest.mark.parametrize("usage", [None, Usage(0, 5)], ids=["none", "no input"])
async def test_an_answer_that_is_not_counted_shows_nothing(path: Path, usage: Usage | None) -> None:
    async with process(path, RULES) as one:
        await answered(one, usage, times=DENSITY_ANSWERS + 1)
        lost = await interrupted(one)
        await answered(one, usage)
        assert await counts(one, lost) == BOUND


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SHORT = request("x" * (DENSITY_BYTES - 500))
PICTURED = LONG | {"messages": [{"role": "user", "content": [{"type": "text", "text": "word " * 10_000}, PICTURE]}]}
THOUGHTFUL = LONG | {"messages": [*LONG["messages"], {"role": "assistant", "content": "", "reasoning_content": "hm"}]}


@pytest.mark.parametrize("asked", [SHORT, PICTURED, THOUGHTFUL], ids=["short", "with a picture", "with thoughts"])
async def test_what_no_density_can_be_read_from_shows_nothing(path: Path, asked: Request) -> None:
    async with process(path, RULES) as one:
        await answered(one, Usage(500, 10), times=DENSITY_ANSWERS + 1, asked=asked)
        lost = await interrupted(one)
        await answered(one, Usage(500, 10), asked=asked)
        assert await counts(one, lost) == BOUND


async def test_a_call_with_a_picture_stays_at_its_bound(path: Path) -> None:
    async with process(path, RULES) as one:
        await answered(one, times=DENSITY_ANSWERS)
        lost = await interrupted(one, PICTURED)
        await answered(one)
        assert await counts(one, lost) == input_bound(PICTURED)


async def test_another_model_behind_the_name_raises_what_was_counted_before_it_at_once(path: Path) -> None:
    async with process(path, RULES) as one:
        await answered(one, times=DENSITY_ANSWERS)
        earlier, later = await interrupted(one), await interrupted(one)
        await answered(one)
        assert await counts(one, earlier) < BOUND * 0.4
        await answered(one, Usage(SIZE // 2, 10))
        assert await counts(one, later) == await counts(one, earlier) == pytest.approx(BOUND * 0.75, rel=0.01)
        await answered(one, Usage(3 * SIZE, 10))
        assert await counts(one, earlier) == BOUND
        await answered(one, times=3)
        assert await counts(one, earlier) == BOUND, "what was seen once is not forgotten"


async def test_a_service_that_counts_next_to_nothing_is_not_believed(path: Path) -> None:
    async with process(path, RULES) as one:
        await answered(one, Usage(1, 1), times=DENSITY_ANSWERS)
        lost = await interrupted(one)
        await answered(one, Usage(1, 1))
        assert await counts(one, lost) >= SIZE / 8


_CALLS = st.lists(
    st.tuples(st.sampled_from(["answered", "interrupted", "killed"]), st.integers(0, 9), st.integers(0, 9)), max_size=12
)


@pytest.mark.slow
@given(usual=st.integers(1, 6), calls=_CALLS)
def test_a_day_holds_the_truth_unless_an_interrupted_call_was_far_denser_than_any_that_was_answered(
    usual: int, calls: list[tuple[str, int, int]]
) -> None:
    """Each call has a length in thousands of bytes, and a density in tenths of a token per byte of its text."""

    async def lived(path: Path) -> None:
        truth, highest, lost, below = 0, 0.0, list[tuple[str, int, float]](), 0

        async def one_call(rig: Rig, ending: str, thousands: int, tenths: int) -> None:
            nonlocal truth, highest
            text = "x" * (5000 + thousands * 1000)
            asked, took = request(text), max(1, len(text) * tenths // 10)
            leave = await rig.ask(asked, "owner")
            density = took / len(json.dumps(asked, indent=4))
            if ending == "answered":
                truth += took
                await rig.budget.settle(leave, Usage(took, 0), 0)
                highest = max(highest, density)
                return
            truth += took
            lost.append((leave.id, took, density))
            if ending == "interrupted":
                await rig.budget.unanswered(leave)

        async with process(path, RULES) as rig:
            for _ in range(DENSITY_ANSWERS):
                await one_call(rig, "answered", 1, usual)
        for ending, thousands, tenths in calls:
            async with process(path, RULES) as rig:
                await rig.budget.note_lost()
                await one_call(rig, ending, thousands, tenths)
                rows = {row["id"]: row for row in await rig.rows()}
            for call_id, took, density in lost:
                row = rows[call_id]
                assert row["input_tokens"] <= row["text_bound"]
                assert row["input_tokens"] >= took or density > highest * DENSITY_MARGIN
                below += row["input_tokens"] < took
            if not below:
                assert sum(row["input_tokens"] + row["output_tokens"] for row in rows.values()) >= truth

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(lived(Path(folder) / "soul.db"))

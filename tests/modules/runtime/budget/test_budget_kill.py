"""Proves that a call in whose middle the process is killed stays counted in full."""

import asyncio
import dataclasses
import sys
from pathlib import Path

import pytest

from common.clock import FakeClock, SystemClock
from modules.runtime.budget.types import Caps
from modules.runtime.database.file import reading
from tests.modules.runtime.budget.budget_rig import Rules, process
from tests.modules.runtime.llm.scripted_model import ScriptedModel, says
from tests.patience import until
from tests.project import ROOT

CHILD = Path(__file__).with_name("budget_child.py")


@pytest.mark.slow
async def test_kill_minus_nine_in_the_middle_of_a_call_leaves_it_counted_in_full(
    model: ScriptedModel, tmp_path: Path
) -> None:
    path = tmp_path / "soul.db"
    model.plays(dataclasses.replace(says("too late"), hangs=True))
    child = await asyncio.create_subprocess_exec(
        sys.executable, CHILD, path, model.url, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    try:
        await until(lambda: model.requests, what="the request")
    finally:
        child.kill()
        await child.wait()
    with reading(path) as connection:
        (row,) = connection.execute("SELECT * FROM model_calls").fetchall()
    assert (row["state"], row["purpose"], row["output_tokens"]) == ("reserved", "killed", 1024)
    assert row["input_tokens"] > 1000
    async with process(path, Rules(Caps(50_000)), clock=FakeClock(SystemClock().now())) as after:
        report = await after.budget.report()
        assert (report.tokens.used, report.tokens.reserved) == (0, row["input_tokens"] + 1024)

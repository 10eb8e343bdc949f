"""What a task cost counts all of its coding: each try, and the rounds that answer its reviews."""

from __future__ import annotations

from pathlib import Path

from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.services.coding.trajectory import Trajectories, spent
from modules.services.coding.types import CodingStep

TASK = "acme/site#1/task-1"


async def test_the_rounds_that_answer_reviews_count_and_other_tasks_do_not(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "soul.db", MIGRATIONS)
    for task, tokens in ((TASK, 100), (f"{TASK}/round-1", 20), (f"{TASK}/round-2", 3), (f"{TASK}2", 5_000)):
        step = CodingStep(1, "2026-01-01T00:00:00.000Z", "", (), (), input_tokens=tokens, usd=0.5)
        await Trajectories(database).put(task, 1, step)
    assert await database.read(lambda connection: spent(connection, TASK)) == (123, 1.5)
    await database.close()

"""Stores the steps of coding tasks in `soul.db`: an answer that was paid for is kept before it is carried out."""

import json
import sqlite3
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from common.clock import iso, parse_iso
from modules.runtime.budget.policy import counted
from modules.runtime.database.database import Database
from modules.runtime.llm.dialect import ChatResult, ToolAnswer, ToolCall
from modules.services.coding.policy import CodingStep

KEPT = timedelta(days=90)

_COLUMNS = "number, at, said, calls, answers, input_tokens, output_tokens, cached_tokens, usd"
_PUT = f"INSERT OR REPLACE INTO coding_steps (task, epoch, {_COLUMNS}) VALUES ({', '.join('?' * 11)})"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Trajectories:
    """The store of steps. Each method is one transaction, and raises `StorageError` if it fails."""

    database: Database

    async def put(self, task: str, epoch: int, step: CodingStep) -> None:
        """Store a step, or its results; the first step of a task also deletes steps older than 90 days."""
        row = (task, epoch, *_row(step))
        forgotten = iso(parse_iso(step.at) - KEPT) if step.number == 1 else ""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM coding_steps WHERE at < ?", (forgotten,))
            connection.execute(_PUT, row)

        await self.database.run(work)

    async def steps(self, task: str, epoch: int) -> list[CodingStep]:
        """Return the steps under one claim, in order."""
        return await self.database.read(lambda connection: _steps(connection, task, epoch))

    async def steps_before(self, task: str, epoch: int) -> list[CodingStep]:
        """Return the steps under the newest claim before `epoch`, in order."""

        def read(connection: sqlite3.Connection) -> list[CodingStep]:
            query = "SELECT max(epoch) FROM coding_steps WHERE task = ? AND epoch < ?"
            (before,) = connection.execute(query, (task, epoch)).fetchone()
            return [] if before is None else _steps(connection, task, before)

        return await self.database.read(read)


def step_of(result: ChatResult, number: int, at: datetime, answers: tuple[ToolAnswer, ...] | None) -> CodingStep:
    """Return an answer of the model as a step, with its cost."""
    usage = result.usage
    return CodingStep(
        number=number,
        at=iso(at),
        said=result.text,
        calls=result.tool_calls,
        answers=answers,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        usd=usage.cost_usd,
    )


def latest(connection: sqlite3.Connection, task: str) -> list[CodingStep]:
    """Return the steps of a task under its latest claim."""
    row = connection.execute("SELECT max(epoch) FROM coding_steps WHERE task = ?", (task,)).fetchone()
    return [] if row[0] is None else _steps(connection, task, row[0])


def spent(connection: sqlite3.Connection, task: str) -> tuple[int, float]:
    """Return the tokens and dollars of all steps of a task and the rounds after its reviews.

    Only steps that are still stored and known prices count. Tokens are counted as for the limit of a task.
    """
    query = (
        "SELECT input_tokens, cached_tokens, output_tokens, usd FROM coding_steps"
        " WHERE task = :task OR substr(task, 1, length(:task) + 1) = :task || '/'"
    )
    rows = connection.execute(query, {"task": task}).fetchall()
    tokens = sum(counted(row["input_tokens"], row["cached_tokens"]) + row["output_tokens"] for row in rows)
    return tokens, sum(row["usd"] or 0.0 for row in rows)


def _steps(connection: sqlite3.Connection, task: str, epoch: int) -> list[CodingStep]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM coding_steps WHERE task = ? AND epoch = ? ORDER BY number",  # noqa: S608 - ours
        (task, epoch),
    )
    return [_step(row) for row in rows]


def _row(step: CodingStep) -> tuple[object, ...]:
    calls = json.dumps([asdict(call) for call in step.calls])
    answers = None if step.answers is None else json.dumps([asdict(answer) for answer in step.answers])
    counts = (step.input_tokens, step.output_tokens, step.cached_tokens, step.usd)
    return (step.number, step.at, step.said, calls, answers, *counts)


def _step(row: sqlite3.Row) -> CodingStep:
    answers = None if row["answers"] is None else json.loads(row["answers"])
    return CodingStep(
        number=row["number"],
        at=row["at"],
        said=row["said"],
        calls=tuple(ToolCall(**one) for one in json.loads(row["calls"])),
        answers=None if answers is None else tuple(ToolAnswer(**one) for one in answers),
        input_tokens=row["input_tokens"],
        output_tokens=row["output_tokens"],
        cached_tokens=row["cached_tokens"],
        usd=row["usd"],
    )

"""A command in a direct message, killed at each of its transactions: done at most once, and answered once."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.children import child_of
from tests.patience import HANG_S

KILLED, WELL = str(-signal.SIGKILL), "0"
MOST_TRANSACTIONS = 20


@pytest.mark.slow
async def test_a_command_killed_at_any_transaction_is_done_at_most_once_and_answered_once(tmp_path: Path) -> None:
    counts, answers = [], []
    async with child_of("tests.crash.command_child", str(tmp_path)) as child:
        for number in range(1, MOST_TRANSACTIONS):
            ends = [await killed_and_revived(child, f"{where}-{number}.db", number, where) for where in WHERE]
            names = [f"{where}-{number}.db" for where in WHERE]
            counts += [done(tmp_path / name) for name in names]
            answers += [answered(tmp_path / name) for name in names]
            if ends == [WELL, WELL]:
                break
    assert ends == [WELL, WELL]
    assert max(counts) == 1
    assert all(len(said) == 1 for said in answers)
    for count, (said,) in zip(counts, answers, strict=True):
        assert said == "It is published." or "it is not known how far it came: /publish the figures" in said
        assert count == 1 or said != "It is published."


WHERE = ("inside", "after")


async def killed_and_revived(child: asyncio.subprocess.Process, name: str, number: int, where: str) -> str:
    """How the first life ended; the second lives on."""
    first = await life(child, f"{name} {number} {where}")
    assert first in {KILLED, WELL}
    assert await life(child, f"{name} 0 after") == WELL
    return first


async def life(child: asyncio.subprocess.Process, line: str) -> str:
    assert child.stdin
    assert child.stdout
    child.stdin.write(f"{line}\n".encode())
    async with asyncio.timeout(HANG_S):
        return (await child.stdout.readline()).decode().strip()


def done(path: Path) -> int:
    counts = path.with_suffix(".done")
    return len(counts.read_text().splitlines()) if counts.exists() else 0


def answered(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [json.loads(row[0])["text"] for row in connection.execute("SELECT body FROM intents")]

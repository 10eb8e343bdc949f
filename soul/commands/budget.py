"""`soul budget`: shows what today and the days before cost, whether the SOUL is awake or not."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.clock import Clock, SystemClock
from modules.runtime.budget import ledger
from modules.runtime.budget.report import day_lines, lines, report_at
from modules.runtime.database.file import reading
from soul.commands.at_hand import at_hand
from soul.terminal.output import write_answer


def run_budget(
    root: Path,
    *,
    days: Annotated[int, typer.Option(help="How many days to look back.", min=1, max=90)] = 7,
    as_json: bool,
    clock: Clock | None = None,
) -> None:
    """Print today's budget and a line for each of the last `days` days. Raises `ConfigError` without a database."""
    settings, home = at_hand(root)
    with reading(home.database) as connection:
        report = report_at(connection, settings, (clock or SystemClock()).now())
        past = ledger.days(connection, report.day, days)
    found = asdict(report) | {"days": [asdict(day) for day in past]}
    write_answer(found, [*lines(report), *day_lines(past)], as_json=as_json)

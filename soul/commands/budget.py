"""`soul budget`: what today has cost, and the days before, whether the SOUL is awake or not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.clock import Clock, SystemClock
from modules.runtime.budget import ledger
from modules.runtime.budget.report import day_lines, lines, report_of
from modules.runtime.budget.types import Caps
from modules.runtime.budget.zone import zone_of
from modules.runtime.database.file import reading
from soul.commands.at_hand import at_hand
from soul.terminal.output import write_json, write_lines


def run_budget(
    root: Path,
    *,
    days: Annotated[int, typer.Option(help="How many days to look back.", min=1, max=90)] = 7,
    as_json: bool,
    clock: Clock | None = None,
) -> None:
    """Print it, with a line for each of the last `days` days. Raises `ConfigError` when there is no database yet."""
    settings, home = at_hand(root)
    caps = Caps.per_day(settings.budget_tokens_per_day, settings.budget_usd_per_day)
    with reading(home.database) as connection:
        zone = zone_of(connection, settings.soul_timezone)
        report = report_of(connection, caps, (clock or SystemClock()).now(), zone)
        past = ledger.days(connection, days)
    if as_json:
        found = asdict(report) | {"days": [asdict(day) for day in past]}
        write_json(found)
        return
    write_lines(*lines(report), *day_lines(past))

"""`soul today`: shows one day on one screen, whether the SOUL is awake or not."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.clock import SystemClock
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import day_lines
from soul.commands.at_hand import at_hand
from soul.terminal.output import write_answer


def run_today(
    root: Path,
    day: Annotated[str, typer.Argument(metavar="DAY", help="The day, as 2026-01-31. Default: today.")] = "",
    *,
    as_json: bool,
) -> None:
    """Print the summary of a day. Raises `UsageError` for an invalid day, and `ConfigError` without a database."""
    settings, home = at_hand(root)
    summary = DayReader(settings, home, SystemClock()).read(day)
    write_answer(asdict(summary), day_lines(summary), as_json=as_json)

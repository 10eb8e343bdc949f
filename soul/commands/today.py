"""`soul today`: one day on one screen, whether the SOUL runs or not."""

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
    day: Annotated[str, typer.Option("--date", metavar="DAY", help="The day, as 2026-01-31. Default: today.")] = "",
    *,
    as_json: bool,
) -> None:
    """Print it. Raises `UsageError` for what is no day, and `ConfigError` when there is no database yet."""
    settings, home = at_hand(root)
    summary = DayReader(settings, home, SystemClock()).read(day)
    write_answer(asdict(summary), day_lines(summary), as_json=as_json)

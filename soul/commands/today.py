"""`soul today`, `soul budget` and `soul why`: one day, its cost, and the story of one post, act or silence.

The SOUL may be awake.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.clock import Clock, SystemClock
from modules.runtime.budget import ledger
from modules.runtime.budget.report import day_lines as cost_lines
from modules.runtime.budget.report import lines, report_at
from modules.runtime.database.file import reading
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import day_lines
from modules.services.explanation import why
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
        past = ledger.days(connection, days)
    found = asdict(report) | {"days": [asdict(day) for day in past]}
    write_answer(found, [*lines(report), *cost_lines(past)], as_json=as_json)


def run_why(
    root: Path,
    what: Annotated[
        str,
        typer.Argument(metavar="WHAT", help="A link, an at:// address, owner/repo#12[/task-3], or a draft's number."),
    ],
    *,
    as_json: bool,
) -> None:
    """Print the story of `what`. Raises `SoulError`, with a one-line message, if there is none."""
    settings, home = at_hand(root)
    with reading(home.database) as connection:
        story = why.story_of(connection, what)
    write_answer(why.as_json(story), why.lines(story, settings.soul_timezone), as_json=as_json)

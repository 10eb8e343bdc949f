"""`soul today` and `soul why`: one day on one screen, and the story of one post, act or silence.

The SOUL may be awake.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from common.clock import SystemClock
from modules.runtime.database.file import reading
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import day_lines
from modules.services.explanation import rendering
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
        story = rendering.story_of(connection, what)
    write_answer(rendering.as_json(story), rendering.lines(story, settings.soul_timezone), as_json=as_json)

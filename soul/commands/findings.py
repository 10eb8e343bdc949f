"""The findings of `soul doctor`, and how they are printed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from common.errors import ConfigError
from soul.commands.at_hand import examined_settings
from soul.terminal.output import printable, write_answer

Level = Literal["ok", "warn", "fail"]

CALL_DEADLINE_S = 60.0

_ICONS: dict[Level, str] = {"ok": "✓", "warn": "◆", "fail": "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `check` is a stable name."""

    check: str
    level: Level
    message: str
    remedy: str = ""


def examine_settings(root: Path) -> list[Finding]:
    """Return a finding for each mistake in the settings that `soul run` refuses."""
    try:
        _, mistakes = examined_settings(root)
    except ConfigError as error:
        mistakes = [error]
    return [Finding("settings", "fail", str(one), one.remedy) for one in mistakes]


def report(findings: Sequence[Finding], *, as_json: bool) -> bool:
    """Print the findings; return whether nothing failed."""
    lines: list[str] = []
    for finding, following in zip_longest(findings, findings[1:]):
        lines.append(f"{_ICONS[finding.level]} {finding.check}: {printable(finding.message)}")
        if finding.remedy and not (following and following.remedy == finding.remedy):
            lines.append(f"  → {printable(finding.remedy)}")
    write_answer([asdict(finding) for finding in findings], lines, as_json=as_json)
    return all(finding.level != "fail" for finding in findings)


async def with_deadline(check: str, ask: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
    """Return the findings of `ask`, or a failure of `check` if they take longer than `CALL_DEADLINE_S`."""
    try:
        async with asyncio.timeout(CALL_DEADLINE_S):
            return await ask()
    except TimeoutError:
        return [Finding(check, "fail", f"no answer within {CALL_DEADLINE_S:.0f} s", "Check the network.")]

"""What a doctor finds, and how it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from common.env_keys import remedy, unknown_in_environment, unknown_in_file
from common.errors import SoulError
from soul.terminal.output import printable, write_answer

Level = Literal["ok", "warn", "fail"]

CALL_DEADLINE_S = 60.0

_ICONS: dict[Level, str] = {"ok": "✓", "warn": "◆", "fail": "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `check` is a name that stays."""

    check: str
    level: Level
    message: str
    remedy: str = ""


def unreadable(error: SoulError) -> Finding:
    """That the settings cannot be read; the name of the check says already what it is about."""
    return Finding("settings", "fail", str(error).removeprefix("Settings: "), error.remedy)


def unknown_settings(root: Path) -> list[Finding]:
    """A finding for each key that looks like a setting and is none."""
    mend = remedy(root)
    in_file = [Finding("unknown settings", "fail", f"{one}", mend) for one in unknown_in_file(root)]
    elsewhere = "Correct it in the environment of this process."
    return in_file + [
        Finding("unknown settings", "fail", f"in the environment: {one}", elsewhere) for one in unknown_in_environment()
    ]


def report(findings: Sequence[Finding], *, as_json: bool) -> bool:
    """Print them; returns whether nothing failed."""
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{_ICONS[finding.level]} {finding.check}: {printable(finding.message)}")
        lines += [f"  → {printable(finding.remedy)}"] if finding.remedy else []
    write_answer([asdict(finding) for finding in findings], lines, as_json=as_json)
    return all(finding.level != "fail" for finding in findings)


async def with_deadline(check: str, ask: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
    """Return what `ask` finds, or that it gave no answer within a minute."""
    try:
        async with asyncio.timeout(CALL_DEADLINE_S):
            return await ask()
    except TimeoutError:
        return [Finding(check, "fail", f"no answer within {CALL_DEADLINE_S:.0f} s", "Check the network.")]

"""What a doctor finds, and how it is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from common.errors import SoulError

Level = Literal["ok", "warn", "fail"]

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


def report(findings: Sequence[Finding], *, as_json: bool) -> bool:
    """Print them; returns whether nothing failed."""
    if as_json:
        sys.stdout.write(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False, indent=2) + "\n")
    else:
        for finding in findings:
            sys.stdout.write(f"{_ICONS[finding.level]} {finding.check}: {finding.message}\n")
            if finding.remedy:
                sys.stdout.write(f"  → {finding.remedy}\n")
    return all(finding.level != "fail" for finding in findings)

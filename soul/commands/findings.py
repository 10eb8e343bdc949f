"""The findings of `soul doctor`, those of them that stop a start, and how they are printed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from common.errors import ConfigError, SoulError
from common.redact import Redactor
from modules.runtime.home import Home, SoulDocument, check_self, read_self
from soul.commands.at_hand import examined_settings
from soul.terminal.output import write_answer

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


def examine_identity(home: Home) -> list[Finding]:
    """Return whether SOUL.md and SELF.md can be read."""
    found: list[Finding] = []
    try:
        found.append(Finding("SOUL.md", "ok", f"{len(SoulDocument(home.soul).text)} characters"))
    except SoulError as error:
        found.append(Finding("SOUL.md", "fail", str(error), error.remedy))
    try:
        check_self(home)
    except SoulError as error:
        return [*found, Finding("SELF.md", "fail", str(error), error.remedy)]
    if home.self_md.exists():
        return [*found, Finding("SELF.md", "ok", f"{len(read_self(home))} characters")]
    return [*found, Finding("SELF.md", "warn", "not there yet; it is made from the template at the first start")]


def refused_at_start(home: Home) -> list[dict[str, str]]:
    """Return the `error` and `remedy` of all that `soul run` refuses in the settings, SOUL.md and SELF.md."""
    clean = Redactor().text
    found = [*examine_settings(home.root), *examine_identity(home)]
    return [{"error": clean(one.message), "remedy": clean(one.remedy)} for one in found if one.level == "fail"]


def report(findings: Sequence[Finding], *, as_json: bool, titles: Mapping[str, str] = MappingProxyType({})) -> bool:
    """Print the findings, for the owner by their `titles`; return whether nothing failed."""
    lines: list[str] = []
    for finding, following in zip_longest(findings, findings[1:]):
        lines.append(f"{_ICONS[finding.level]} {titles.get(finding.check, finding.check)}: {finding.message}")
        if finding.remedy and not (following and following.remedy == finding.remedy):
            lines.append(f"  → {finding.remedy}")
    write_answer([asdict(finding) for finding in findings], lines, as_json=as_json)
    return all(finding.level != "fail" for finding in findings)


async def with_deadline(check: str, ask: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
    """Return the findings of `ask`, or a failure of `check` if they take longer than `CALL_DEADLINE_S`."""
    import asyncio  # noqa: PLC0415 - takes time to load, and `soul status` needs no deadline

    try:
        async with asyncio.timeout(CALL_DEADLINE_S):
            return await ask()
    except TimeoutError:
        return [Finding(check, "fail", f"no answer within {CALL_DEADLINE_S:.0f} s", "Check the network.")]

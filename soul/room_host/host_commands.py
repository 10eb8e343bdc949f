"""The slash commands of a room's host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.space.types import ELECTION_RULES, LogEntry
from common.clock import Clock
from common.errors import SoulError
from soul.room_host.roster import Roster, RosterEntry, ShownClaim
from soul.room_host.rows import EventRow, as_table, entry_row
from soul.terminal.commands import Commands
from soul.terminal.text import fit, one_line

_MINUTE_S = 60
_DEFAULT_HISTORY = 20
_MOST_HISTORY = 1_000
_TEXT_COLUMNS = 90
_TEXT_CHARS = 200


@dataclass(kw_only=True)
class HostCommands(Commands):
    """The commands and their dependencies.

    `say` broadcasts as the host; `remove` removes a member and returns whether there was one of this name; `recent`
    returns the last lines of the record, oldest first; `show` shows a row; `ended` closes the room.
    """

    roster: Roster
    clock: Clock
    say: Callable[[str], None]
    remove: Callable[[str], bool]
    recent: Callable[[int], Sequence[LogEntry]]
    show: Callable[[EventRow], None]
    ended: asyncio.Event

    async def run_who(self, _: str) -> Sequence[str]:
        now = self.clock.monotonic()
        return as_table([(one_line(entry.name), _about(entry, now)) for entry in self.roster.entries]) or [
            "  Nobody is here yet."
        ]

    async def run_claims(self, _: str) -> Sequence[str]:
        now = self.clock.monotonic()
        rows = [(one_line(claim.name), _what(claim, now)) for claim in self.roster.claims(now)]
        return as_table(rows) or ["  Nothing is claimed."]

    async def run_history(self, rest: str) -> Sequence[str]:
        if rest and not rest.isdecimal():
            raise SoulError(f"{one_line(rest)} is no number", remedy="For example: /history 50")
        limit = min(int(rest[:9]) if rest else _DEFAULT_HISTORY, _MOST_HISTORY)
        rows = await asyncio.to_thread(self._recorded, limit) if limit else []
        for row in rows:
            self.show(row)
        return [] if rows else ["  Nothing was said yet."]

    def _recorded(self, limit: int) -> list[EventRow]:
        return [row for entry in self.recent(limit) if (row := entry_row(entry, self.clock.now()))]

    async def run_say(self, rest: str) -> Sequence[str]:
        whom, _, words = rest.partition(" ")
        if whom.startswith("@"):
            entry = self.roster.find(whom[1:])
            if entry is None:
                raise SoulError(f"{one_line(whom)} is not in the room", remedy="/who lists who is.")
            if not words.strip():
                raise SoulError("There is nothing to say", remedy=f"For example: /say {one_line(whom)} good evening")
            rest = f"@{entry.name} {words.strip()}"
        self.say(rest)
        return []

    async def run_remove(self, rest: str) -> Sequence[str]:
        entry = self.roster.find(rest) or self.roster.find(rest.removeprefix("@"))
        if entry is None or not self.remove(entry.name):
            raise SoulError(f"{one_line(rest)} is not in the room", remedy="/who lists who is.")
        return [f"  {one_line(entry.name)} was removed; its address cannot use that name for ten minutes."]

    async def run_quit(self, _: str) -> Sequence[str]:
        self.ended.set()
        return []


def _what(claim: ShownClaim, now: float) -> str:
    action, target = (one_line(text[:_TEXT_CHARS]) for text in (claim.action, claim.target))
    return f"{action}  {target}  for {claim.until - now:.0f} s more"


def _about(entry: RosterEntry, now: float) -> str:
    doing = "typing" if entry.is_typing(now) else entry.state
    detail = f": {one_line(entry.detail)}" if entry.detail else ""
    parts = [f"{doing}{detail}", f"v{one_line(entry.version)}", f"here {_since(now - entry.since)}"]
    if (present := entry.presence) is not None:
        if present.capabilities is not None:
            able = [one_line(able) for able in present.capabilities if able not in ELECTION_RULES]
            parts.append(f"can {', '.join(able) or 'nothing'}")
        if present.identity and present.identity.expertise:
            parts.append(f"knows {', '.join(map(one_line, present.identity.expertise))}")
    return fit("  ".join(parts), _TEXT_COLUMNS)


def _since(seconds: float) -> str:
    minutes = int(seconds // _MINUTE_S)
    if minutes < 1:
        return "for a moment"
    return f"{minutes} min" if minutes < _MINUTE_S else f"{minutes // _MINUTE_S} h {minutes % _MINUTE_S} min"

"""What a monitor reads of a home, as text for Prometheus. Labels are words of the program, never a person or a post.

Counts are those of the owner's day, and begin anew with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime, time, timedelta
from typing import TypeAlias

from common.clock import Clock, from_local, iso, parse_iso
from common.settings import Settings
from common.version import __version__
from modules.runtime.control import Control
from modules.runtime.database.file import reading
from modules.runtime.home import Home, lock_holder
from modules.runtime.journal import rows
from modules.services.day.gathering import DayReader
from soul.commands.status import read_status

Sample: TypeAlias = tuple[Mapping[str, object], float]

_STALE = timedelta(minutes=5)
"""So long after its last word a process that holds a home counts as hung."""
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Metrics:
    """Reads one home for a monitor."""

    home: Home
    settings: Settings
    clock: Clock

    def not_alive(self) -> str:
        """Return why the SOUL counts as dead, "" if it lives: a process holds its home, and told of itself lately."""
        if lock_holder(self.home) is None:
            return "not awake"
        told = read_status(self.home).get("updatedAt")
        return "" if told and self.clock.now() - parse_iso(told) < _STALE else "awake, and silent for five minutes"

    def not_ready(self) -> str:
        """Return why it does nothing in public, "" if it may."""
        return self.not_alive() or ("" if Control(self.home.memory).standing().may_act else "paused")

    def text(self) -> str:
        """Return all metrics. Raises `SoulError` where there is no database yet."""
        name = self.settings.agent_name
        day = DayReader(self.settings, self.home, self.clock).read()
        midnight = datetime.combine(date.fromisoformat(day.day), time())
        with reading(self.home.database) as connection:
            counts = rows.counts_since(connection, iso(from_local(midnight, day.timezone)))
        spent = {"tokens": day.spent.tokens, "usd": day.spent.usd}
        caps = {"tokens": day.spent.tokens_cap, "usd": day.spent.usd_cap}
        told: tuple[tuple[str, str, str, Iterable[Sample]], ...] = (
            ("info", "gauge", "The program.", [({"version": __version__}, 1)]),
            ("alive", "gauge", "1 while it lives.", [({}, not self.not_alive())]),
            ("ready", "gauge", "1 while it lives and may act in public.", [({}, not self.not_ready())]),
            (
                "entries_total",
                "counter",
                "Decisions and errors of the day.",
                [({"kind": kind, "loop": loop, "outcome": act}, count) for kind, loop, act, count in counts],
            ),
            ("acts_total", "counter", "Acts of the day.", [({"kind": kind}, n) for kind, n in day.done.items()]),
            ("model_calls_total", "counter", "Calls of the model of the day.", [({}, day.spent.calls)]),
            ("budget_used", "gauge", "What the day has cost.", _known("unit", spent)),
            ("budget_cap", "gauge", "What the day may cost.", _known("unit", caps)),
            ("waiting", "gauge", "What waits.", _known("what", asdict(day.waits))),
        )
        return "".join(
            line
            for metric, kind, help_text, samples in told
            for line in _lines(f"soul_{metric}", kind, help_text, samples, name)
        )


def _known(label: str, values: Mapping[str, float | None]) -> list[Sample]:
    return [({label: key}, value) for key, value in values.items() if value is not None]


def _lines(metric: str, kind: str, help_text: str, samples: Iterable[Sample], soul: str) -> Iterator[str]:
    yield f"# HELP {metric} {help_text}\n# TYPE {metric} {kind}\n"
    for labels, value in samples:
        told = ",".join(f'{key}="{str(one).translate(_ESCAPED)}"' for key, one in {"soul": soul, **labels}.items())
        yield f"{metric}{{{told}}} {float(value):g}\n"

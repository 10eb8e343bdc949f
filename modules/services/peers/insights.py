"""What happened since SELF.md was last changed that may tell the SOUL something of itself.

Significant events are counted, and insights kept, under `reflection` in `.memory/relationships.json`. An insight is a
code and what it is about; its words stand in the `prosoche` skill.
"""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from datetime import datetime
from pathlib import Path
from typing import Any

from common.clock import iso
from common.constants import STATE_MAX_BYTES
from common.files import read_bounded
from common.text.untrusted import one_line
from modules.services.agent.attention_list import Insight, Reflection

KEPT_INSIGHTS = 20
_KEY, _EVENTS, _INSIGHTS = "reflection", "significantEvents", "pendingInsights"
_SAME_CHARS = 30
_ABOUT_CHARS = 80

State = MutableMapping[str, Any]


def reflection_in(state: State) -> Reflection:
    """Return what `state` holds; entries that cannot be read are left out."""
    kept = _kept(state)
    events, entries = kept.get(_EVENTS), kept.get(_INSIGHTS)
    return Reflection(
        events=events if isinstance(events, int) and events > 0 else 0,
        insights=tuple(
            Insight(entry["code"], entry["about"])
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict) and isinstance(entry.get("code"), str) and isinstance(entry.get("about"), str)
        ),
    )


def read_reflection(path: Path) -> Reflection:
    """Return what the file at `path` holds, without changing it; nothing where it cannot be read."""
    try:
        state = json.loads(read_bounded(path, STATE_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return Reflection()
    return reflection_in(state) if isinstance(state, dict) else Reflection()


def add(state: State, code: str, about: str, now: datetime, *, significant: bool, did: str = "") -> None:
    """Count a significant event, and keep an insight unless one like it is kept; of more than 20 the oldest goes."""
    reflection, about = reflection_in(state), one_line(about, _ABOUT_CHARS)
    kept = _kept(state)
    entries = [entry for entry in kept.get(_INSIGHTS, ()) if isinstance(entry, dict)]
    if not any(_same(one, Insight(code, about)) for one in reflection.insights):
        whose = {"did": did} if did else {}
        entries.append({"code": code, "about": about, "at": iso(now), **whose})
    events = reflection.events + significant
    state[_KEY] = {**kept, _EVENTS: events, _INSIGHTS: entries[-KEPT_INSIGHTS:]}


def clear(state: State) -> None:
    """SELF.md took them up: begin anew."""
    state.pop(_KEY, None)


def _kept(state: State) -> dict[str, Any]:
    kept = state.get(_KEY)
    return kept if isinstance(kept, dict) else {}


def _same(one: Insight, other: Insight) -> bool:
    first, second = (insight.about[:_SAME_CHARS].casefold() for insight in (one, other))
    return one.code == other.code and first == second

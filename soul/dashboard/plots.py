"""Draws days as bars in SVG, without scripts or styles of their own. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

_WIDTH, _HEIGHT, _GAP = 600, 120, 0.25
_LINE_TIMES = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's bar, in units of the drawing; `label` is what it tells, in words."""

    left: float
    top: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars, none where each day counts 0, in a drawing of `width` by `height`.

    Attributes:
        top: the value at the upper edge, in words; the lower edge is 0.
        limit: the height of a line across, None for none.
        notes: what to know of it, a sentence each.

    """

    title: str
    bars: Sequence[Bar]
    first: str
    last: str
    top: str
    notes: Sequence[str]
    limit: float | None = None
    width: int = _WIDTH
    height: int = _HEIGHT


def days_until(last: date, count: int) -> list[date]:
    """Return the `count` days that end with `last`."""
    return [last - timedelta(days=back) for back in reversed(range(count))]


def plot_of(title: str, by_day: Mapping[date, float], shown: Sequence[date], unit: str, *, cap: float = 0) -> Plot:
    """Return the plot of the days `shown`; a day that is missing counts 0.

    `cap`, a limit for each day, is drawn as a line, unless the bars would be too low to be read beside it.
    """
    values = [by_day.get(day, 0) for day in shown]
    highest = max(values)
    is_line = bool(cap) and (not highest or cap <= _LINE_TIMES * highest)
    most = max(highest, cap if is_line else 0) or 1
    notes = [
        f"Highest: {_told(highest)} {unit} on {shown[values.index(highest)].isoformat()}." if highest else "None yet."
    ]
    if cap:
        where = "the dashed line" if is_line else "above this chart"
        notes.append(f"Limit {_told(cap)} {unit} a day ({where}).")
    step = _WIDTH / len(shown)
    bars = [
        Bar(
            left=round(index * step, 2),
            top=round(_HEIGHT * (1 - value / most), 2),
            width=round(step * (1 - _GAP), 2),
            height=round(_HEIGHT * value / most, 2),
            label=f"{day.isoformat()}: {_told(value)} {unit}",
        )
        for index, (day, value) in enumerate(zip(shown, values, strict=True))
        if highest
    ]
    limit = round(_HEIGHT * (1 - cap / most), 2) if is_line else None
    return Plot(title, bars, shown[0].isoformat(), shown[-1].isoformat(), _told(most), notes, limit)


def _told(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"

"""Draws days as bars in SVG, without scripts or styles of their own. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

_WIDTH, _HEIGHT, _GAP = 600, 120, 0.25


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
    """Bars in a drawing of `width` by `height`; `limit` is the height of a line across, None for none."""

    title: str
    bars: Sequence[Bar]
    first: str
    last: str
    most: str
    limit: float | None = None
    width: int = _WIDTH
    height: int = _HEIGHT


def days_until(last: date, count: int) -> list[date]:
    """Return the `count` days that end with `last`."""
    return [last - timedelta(days=back) for back in reversed(range(count))]


def plot_of(title: str, by_day: Mapping[date, float], shown: Sequence[date], unit: str, *, cap: float = 0) -> Plot:
    """Return the plot of the days `shown`; a day that is missing counts 0, and `cap` is drawn as a line."""
    values = [by_day.get(day, 0) for day in shown]
    most = max(*values, cap, 1e-9)
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
    ]
    limit = round(_HEIGHT * (1 - cap / most), 2) if cap else None
    return Plot(title, bars, shown[0].isoformat(), shown[-1].isoformat(), f"at most {_told(max(values))} {unit}", limit)


def _told(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"

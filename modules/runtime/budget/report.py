"""Reports the state of the budget to the owner, as a value and as lines, by the days of the SOUL's time zone."""

import sqlite3
from collections.abc import Callable, Iterable
from datetime import datetime

from common.clock import is_timezone, machine_timezone
from common.provenance import Importance
from common.settings import Settings
from common.wording import counted, cut_off, number, purpose, set_aside
from modules.runtime.budget import ledger
from modules.runtime.budget.policy import (
    MICRO,
    Amount,
    Caps,
    Day,
    Report,
    Share,
    Spent,
    Step,
    day_of,
    fraction,
    has_room,
    seconds_left,
    step_at,
)
from modules.runtime.database import marks

_MARK = "budget_timezone"


def keep_zone(connection: sqlite3.Connection, timezone: str) -> None:
    """Store the time zone by which this life counts days: `timezone`, or the machine's if that is ""."""
    marks.put(connection, {_MARK: timezone or machine_timezone()})


def zone_of(connection: sqlite3.Connection, timezone: str) -> str:
    """Return the time zone by which the last life counted days; `timezone` if none is known."""
    kept = marks.get(connection, _MARK)
    return kept if kept and is_timezone(kept) else timezone


_WORDS: dict[Step, str] = {
    "normal": "all is well",
    "cheaper": "thinking with the cheaper model, if one is set",
    "pressing": "thinking only for the owner, mentions and commitments",
    "owner_only": "thinking only for the owner",
    "listen": "used up: the next call to the model does not fit",
}
_MINUTE_S = 60
_HOUR_MIN = 60


def report_of(connection: sqlite3.Connection, caps: Caps, now: datetime, timezone: str) -> Report:
    """Return the report of the day of `now`, from the ledger."""
    day = day_of(now, timezone)
    spent = ledger.spent(connection, day)
    used = spent.without(ledger.held(connection, day))
    is_full = not has_room(used, ledger.refused(connection, day), caps)
    (calls, uncounted), tokens, usd = ledger.amounts(connection, day, caps)
    part = fraction(Spent(int(tokens.spent), round(usd.spent * MICRO) if usd else 0), caps)
    by_purpose, by_model = ledger.shares(connection, day)
    return Report(
        day=day,
        step="listen" if is_full else step_at(fraction(used, caps)),
        fraction=round(float(part), 4),
        tokens=tokens,
        usd=usd,
        calls=calls,
        uncounted=uncounted,
        by_purpose=by_purpose,
        by_model=by_model,
        resets_in_s=seconds_left(now, timezone),
    )


def report_at(connection: sqlite3.Connection, settings: Settings, moment: datetime) -> Report:
    """Return the report of the day of `moment` by the owner's caps, in the time zone by which the SOUL counts days."""
    caps = Caps.per_day(settings.budget_tokens_per_day, settings.budget_usd_per_day)
    return report_of(connection, caps, moment, zone_of(connection, settings.soul_timezone))


def lines(report: Report) -> list[str]:
    """Return the report as lines for a terminal."""
    left = spoken_duration(report.resets_in_s)
    return [
        f"{report.day}: {report.fraction:.0%} of the day's budget used, {_WORDS[report.step]}",
        f"  tokens   {_amount(report.tokens, number)}",
        f"  dollars  {_amount(report.usd, _dollars) if report.usd else 'unknown (set MODEL_PRICES)'}",
        f"  calls    {number(report.calls)}{_uncounted(report)}; the next day begins in {left}",
        *_shares("for", report.by_purpose, purpose),
        *_shares("by", report.by_model),
    ]


def used_up(report: Report) -> str:
    """Return in words that the day's budget has no room for an answer to the owner; "" while it has."""
    if report.step != "listen":
        return ""
    used = f"{report.fraction:.0%} of it{set_aside(report.tokens.on_its_way)}"
    return f"today's budget for the model is used up ({used}; the next answer does not fit)"


def day_lines(days: Iterable[Day]) -> list[str]:
    """Return one line for each day."""
    shown = ((day, f"  {day.day}  {counted(day.calls, 'call'):>11}  {number(day.tokens):>10} tokens") for day in days)
    return [f"{begins}  {_usd(day.usd):>12}  {day.step}".rstrip() for day, begins in shown]


def announcement(step: Step, *, cheap_model: str) -> str:
    """Return the line that announces that a step was reached."""
    if step == "normal":
        return "Budget: a new day, all is well again"
    if step == "cheaper":
        who = f"{cheap_model} thinks from here on" if cheap_model else "no AI_GATEWAY_MODEL_CHEAP is set to go on with"
        return f"Budget: much of the day is used; {who}"
    return f"Budget: {_WORDS[step]} until the next day begins"


def reason_to_refuse(step: Step, importance: Importance) -> str:
    """Return why a call of this importance may not go."""
    if step == "listen":
        return "the next call does not fit into what is left"
    return f"{_WORDS[step]}, and this call is of kind {importance}"


def amounts_in_words(spent: Spent, caps: Caps) -> str:
    """Return `1,702,113 of 2,000,000 tokens`, with the dollars if they are capped."""
    words = f"{number(spent.tokens)} of {number(caps.tokens)} tokens"
    if caps.micro_usd is None:
        return words
    return f"{words}, {_dollars(spent.micro_usd / MICRO)} of {_dollars(caps.micro_usd / MICRO)} dollars"


def spoken_duration(seconds: float) -> str:
    """Return a duration as `5 h 12 min`, at least one minute."""
    minutes = max(1, round(seconds / _MINUTE_S))
    hours, rest = divmod(minutes, _HOUR_MIN)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def _uncounted(report: Report) -> str:
    return f", {number(report.uncounted)} of them without an answer and not counted" if report.uncounted else ""


def _shares(word: str, shares: Iterable[Share], said: Callable[[str], str] = str) -> list[str]:
    return [
        f"  {word:<7}  {said(item.name) or '(unnamed)'}: {counted(item.calls, 'call')},"
        f" {number(item.tokens)} tokens, {_usd(item.usd)}{set_aside(item.on_its_way)}"
        for item in shares
    ]


def _amount(amount: Amount, spoken: Callable[[float], str]) -> str:
    cap = "" if amount.cap is None else f" of {spoken(amount.cap)}"
    reserved = set_aside(amount.on_its_way, spoken)
    return f"{spoken(amount.spent)}{cap}{cut_off(amount.unanswered, spoken)}{reserved}"


def _dollars(usd: float) -> str:
    return f"{usd:.4f}" if 0 < usd < 1 else f"{usd:.2f}"


def _usd(usd: float | None) -> str:
    return "price unknown" if usd is None else f"{_dollars(usd)} USD"

"""Frictions: what goes wrong again and again, derived from entries of the journal. Pure.

A friction consists of codes and words of this program, so that no untrusted text can become part of one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from common.clock import iso, parse_iso
from common.text.untrusted import one_line
from modules.runtime.journal import rows

FrictionCategory = Literal["pacing", "expression", "memory", "social", "tools", "understanding", "other"]
FrictionState = Literal["seen", "ready", "proposed", "mended", "left"]

COUNTED_DAYS, READY_DAYS, READY_OCCURRENCES = 7, 2, 3
KEPT_DAYS, KEPT_INSTANCES = 30, 10
_CODE_CHARS = 80

_LOOPS: Mapping[FrictionCategory, Sequence[str]] = {
    "social": ("awareness", "message-others", "messages", "message-talk", "space-participation"),
    "expression": ("expression", "expression-check"),
    "understanding": ("owner", "reflection", "self", "work"),
    "tools": ("github-awareness", "commitment-fulfillment", "task"),
    "memory": ("prompt", "sessions", "memory"),
    "pacing": ("budget", "scheduler"),
}
_BY_LOOP = {loop: category for category, loops in _LOOPS.items() for loop in loops}
_DECISIONS = frozenset({"asked_for_better", "undecided", "dropped", "rejected"})
_STUCK = frozenset({"review-stuck", "merge-refused", "abandoned", "failed", "blocked", "lost"})
_FALSE_REPORT = "false_report"
_ENDED = frozenset({"blocked", "failed"})
"""An act that expired is no friction: it waited too long for the owner or for an outside service."""
_BETTER = frozenset({"skill_propose", "self_improve", "improvement_decide"})
"""The tools of self-improvement."""


Sign = tuple[FrictionCategory, str, str]
"""One occurrence of a friction: its category, loop and code."""


@dataclass(frozen=True, slots=True)
class Friction:
    """A friction, as it is stored. Times are ISO-8601 UTC.

    Attributes:
        words: the first words of a line of the program, only in rows of an earlier version; else "".
        own: the number of occurrences that rest on no words of strangers or peers.
        own_then: `own` when the friction was left or mended; else 0.
        days: the occurrences and the own ones of each day that had some, by the beginning of the day.
        instances: the last occurrences: time, number of the journal entry, and whether it was an own one.
        reason: the state of its last proposal, then ": " and the reason or what was made; "" without a proposal.

    """

    id: int
    category: FrictionCategory
    loop: str
    code: str
    words: str
    occurrences: int
    own: int
    days: Mapping[str, Sequence[int]]
    instances: Sequence[tuple[str, int, bool]]
    first_at: str
    last_at: str
    state: FrictionState = "seen"
    reason: str = ""
    own_then: int = 0

    @property
    def key(self) -> tuple[FrictionCategory, str, str, str]:
        """The key that occurrences of the same friction share."""
        return self.category, self.loop, self.code, self.words

    @property
    def came_of_it(self) -> tuple[str, str]:
        """The state of its last proposal, and the reason or what was made."""
        state, _, rest = self.reason.partition(": ")
        return state, rest

    @property
    def description(self) -> str:
        """The friction in codes and words of this program."""
        return f"{self.loop}: {self.code}{f' ({self.words})' if self.words else ''}"

    @property
    def own_entries(self) -> list[int]:
        """The numbers of the journal entries of its last own occurrences."""
        return [number for _, number, is_own in self.instances if is_own]

    def within(self, begin: datetime, end: datetime) -> tuple[int, int, int]:
        """Return the number of occurrences from `begin` until `end`, of own ones, and of days with own ones."""
        found = [count for day, count in self.days.items() if begin <= parse_iso(day) < end]
        return sum(one[0] for one in found), sum(one[1] for one in found), sum(one[1] > 0 for one in found)


def is_own(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry, given as its row in the journal, rests only on words of the SOUL and its owner."""
    # NOTE(self): anybody can interrupt a turn by using up the budget or by keeping the model busy.
    return rows.is_own(entry) and entry["data"].get("cut_off") != "interrupted"


def signs(entry: Mapping[str, Any]) -> list[Sign]:
    """Return the occurrences of frictions that an entry of the journal contains."""
    data, loop = entry["data"], str(entry["loop"])
    category = _BY_LOOP.get(loop, "other")
    if _is_about_getting_better(data, loop):
        return []
    match entry["kind"]:
        case "model":
            return list(_of_turn(data, loop))
        case "act":
            return list(_of_act(data))
        case "error":
            return [(category, loop, _code(data.get("kind"), data.get("code") or "error"))]
    is_challenged = data.get("impression") == "challenge" and is_own(entry)
    code = "the owner disagreed" if is_challenged else _decided(entry)
    return [(category, loop, code)] if code else []


def _decided(entry: Mapping[str, Any]) -> str:
    """Return the friction code of an entry that records a decision or an event; "" if it is no friction."""
    data, loop = entry["data"], entry["loop"]
    act, code = str(data.get("act", "")), str(data.get("code", ""))
    if loop == "budget" and data.get("step", "normal") != "normal":
        return _code("budget", data["step"])
    if loop == "scheduler" and entry["line"] == "warn":
        return "late"
    if data.get("status") in {"rejected", "refused"}:
        return _code("change", data["status"])
    if code == _FALSE_REPORT:
        return "told as done what was not"
    is_one = act in _DECISIONS | _STUCK or (loop, act) == ("expression", "skipped")
    return _code(data.get("kind"), act, data.get("check"), code) if is_one else ""


def _is_about_getting_better(data: Mapping[str, Any], loop: str) -> bool:
    """Return whether an entry is about a proposal or a skill; these are never counted as frictions."""
    is_its = str(data.get("cause", "")).startswith("proposal:") or str(data.get("file", "")).startswith("skills/")
    return is_its or "improvement" in {loop, data.get("kind")}


def _of_turn(data: Mapping[str, Any], loop: str) -> Iterator[Sign]:
    """Yield an occurrence for each failed call of a turn, and one if the turn was cut off or failed."""
    yield from (("tools", loop, code) for call in data.get("calls", ()) if (code := call_code(call)))
    if stopped := data.get("cut_off") or data.get("failed"):
        category: FrictionCategory = "pacing" if stopped == "BudgetExceeded" else "understanding"
        yield (category, loop, _code(data.get("purpose"), stopped))


def call_code(call: Mapping[str, Any]) -> str:
    """Return the friction code of a failed call of a turn; "" for any other call."""
    # NOTE(self): a refused act has an entry of its own.
    if not call.get("error") or call.get("intent_id") or call.get("tool") in _BETTER:
        return ""
    answer = call.get("answer") or ("failed" if call.get("went_wrong") else "sent back")
    return "unknown tool" if answer == "Unknown" else _code(call.get("tool"), answer)


def _of_act(data: Mapping[str, Any]) -> Iterator[Sign]:
    """Yield an occurrence if an act was refused, failed, kept in by a gate, or corrected by the owner."""
    kind, what = str(data.get("kind", "")), str(data.get("what", ""))
    category: FrictionCategory = "expression" if kind == "post" else "social"
    if what in {"rejected", "edited"}:
        yield (category, "outbox", _code(kind, what, "by the owner"))
    elif what == "kept in":
        yield ("pacing", "outbox", _code(kind, what))
    elif data.get("state") in _ENDED and what != "withdrawn":
        rules = [rule["rule"] for rule in data.get("rules", ()) if rule.get("says") == "block"]
        yield (category, "outbox", _code(kind, data["state"], *rules[:1]))


def _code(*parts: object) -> str:
    return one_line(" ".join(str(part) for part in parts if part), _CODE_CHARS)


def day_of(moment: datetime, day: timedelta) -> str:
    """Return the beginning of the day of a moment, ISO-8601 UTC; `day` is the real length of a lived day."""
    return iso(datetime.fromtimestamp(moment.timestamp() // day.total_seconds() * day.total_seconds(), UTC))


def within_a_week(friction: Friction, now: datetime, day: timedelta) -> tuple[int, int, int]:
    """Return `Friction.within` for the last seven days, including today."""
    return friction.within(parse_iso(day_of(now, day)) - (COUNTED_DAYS - 1) * day, now + day)


def is_ready(friction: Friction, now: datetime, day: timedelta) -> bool:
    """Return whether a friction is worth a proposal.

    Only own occurrences count, so that nobody can make a SOUL change by what they write. A friction that was left or
    mended must double its own occurrences first.
    """
    _, own, days = within_a_week(friction, now, day)
    if friction.state == "proposed" or (friction.own_then and friction.own < 2 * friction.own_then):
        return False
    return own >= READY_OCCURRENCES and days >= READY_DAYS


def met(one: Friction, at: str, entry: int, now: datetime, day: timedelta, *, is_own: bool) -> Friction:
    """Return a friction with one more occurrence, at time `at` and in the journal entry `entry`."""
    today = day_of(parse_iso(at), day)
    kept = {begun: count for begun, count in one.days.items() if parse_iso(begun) >= now - KEPT_DAYS * day}
    count, own = kept.get(today, (0, 0))
    return replace(
        one,
        occurrences=one.occurrences + 1,
        own=one.own + is_own,
        days={**kept, today: (count + 1, own + is_own)},
        instances=[*one.instances, (at, entry, is_own)][-KEPT_INSTANCES:],
        last_at=at,
    )

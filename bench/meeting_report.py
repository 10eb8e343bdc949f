"""What came of the situations of `meeting.py`, as Markdown: a table by situation, and the totals."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from adapters.atproto.types import Post
from adapters.space.types import Said
from bench.homes import read_only, spent_by_purpose, told_spent
from bench.kept_mind import KeptCall, WrittenText
from common.clock import parse_iso
from modules.runtime.home import Home
from tests.scenarios.room_society import Onlooker

_SHOWN_CHARS, _REASON_CHARS = 160, 120
_OWNER, _PUBLIC = "owner-communication", "bluesky-response"
_OWN = frozenset({"expression", "reflection", "memory-extraction", "voice-phrases", "prosoche", "grounding"})
_INTENTS = """SELECT kind, body, target, state, created_at, sent_at, error FROM intents
    WHERE coalesce(cause_id, '') <> 'expression' ORDER BY created_at"""
_LEDGER = "SELECT at, purpose, input_tokens, output_tokens FROM model_calls WHERE state = 'settled'"
_STOPPED = frozenset({"blocked", "failed", "expired"})
_TALK = frozenset({"reply", "post", "direct_message", "issue_comment", "space_chat", "review"})
_FAR = datetime.max.replace(tzinfo=UTC)


def is_own(purpose: str) -> bool:
    """Return whether a call for this purpose belongs to no situation: the SOUL thinks by itself."""
    return purpose in _OWN


@dataclass(slots=True)
class SituationTime:
    """A situation in time.

    Attributes:
        name: as the table tells it.
        began: when the people spoke.
        room_from: how many events the room had seen then.
        ended: when the next one may begin.
        in_time: whether all was answered, and what was wanted was there, before the situation was given up.
        wanted: whether what was asked for was done; None where silence is as good as an answer.

    """

    name: str
    began: datetime
    room_from: int
    ended: datetime | None = None
    in_time: bool = True
    wanted: bool | None = None


@dataclass(frozen=True, slots=True)
class _Left:
    """What left, or would have: `text` is "" for an act without words."""

    kind: str
    text: str
    state: str
    at: datetime | None
    error: str

    def told(self) -> str:
        """What the table shows of it."""
        state = "" if self.state == "done" else f" ({self.state}{f': {self.error}' if self.error else ''})"
        return f"{self.kind}{state}{f': {_short(self.text)}' if self.text else ''}"


@dataclass(slots=True)
class _Row:
    """A line of the table, with what the totals need: each text that was written first in its turn, and its fate."""

    window: SituationTime
    calls: list[KeptCall]
    tokens: tuple[float, float]
    left: list[_Left]
    notes: list[str]
    fates: list[tuple[WrittenText, str]] = field(default_factory=list)

    def told(self) -> str:
        """The row in Markdown."""
        written = [_short(one.text) for one, _ in self.fates[:2]]
        acts = ", ".join(name for call in self.calls for name, _ in call.tools)
        verdict = "; ".join(dict.fromkeys(fate for _, fate in self.fates))
        went = [one.told() for one in self.left] or ["silence"]
        seconds = [(one.at - self.window.began).total_seconds() for one in self.left if one.at]
        late = "" if self.window.in_time else "given up after the longest wait"
        cells = (
            self.window.name,
            str(len(self.calls)),
            f"{self.tokens[0]:,.0f}",
            f"{self.tokens[1]:,.0f}",
            "<br>".join(written) or acts or "-",
            "<br>".join(went),
            "<br>".join(filter(None, (verdict, *self.notes, "NOT DONE" if self.window.wanted is False else "", late)))
            or "-",
            f"{min(seconds):.0f}" if seconds else "-",
        )
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def report(
    home: Home, calls: Sequence[KeptCall], windows: Sequence[SituationTime], host: Onlooker, posts: Sequence[Post]
) -> str:
    """Return the whole report; `posts` are those of the SOUL."""
    rows = list(_rows(home, calls, windows, host, posts))
    fates = [fate for row in rows for _, fate in row.fates]
    wanted = [row.window.wanted for row in rows if row.window.wanted is not None]
    spent = spent_by_purpose(home)
    largest = {one.purpose: one.largest for one in spent}
    own = [one for one in spent if is_own(one.purpose)]
    lines = [
        "| situation | calls | in | out | first written | left | verdict | s |",
        "|---|---|---|---|---|---|---|---|",
        *(row.told() for row in rows),
        *(f"| by itself: {one.purpose} | {one.calls} | {one.taken:,.0f} | {one.given:,.0f} | | | | |" for one in own),
        "",
        f"- sent as written: {fates.count('as written')} of {len(fates)}",
        f"- sent back: {sum(fate.startswith('sent back') for fate in fates)}",
        f"- changed or dropped: {sum(fate.startswith(('changed', 'dropped')) for fate in fates)}",
        f"- done of what needs an answer or an act: {wanted.count(True)} of {len(wanted)} situations",
        f"- largest owner's call: {largest.get(_OWNER, 0):,} tokens; largest public call: {largest.get(_PUBLIC, 0):,}",
        "",
        *(f"    {line}" for line in told_spent(home)),
    ]
    return "\n".join(lines) + "\n"


def _rows(
    home: Home, calls: Sequence[KeptCall], windows: Sequence[SituationTime], host: Onlooker, posts: Sequence[Post]
) -> Iterator[_Row]:
    with closing(read_only(home)) as connection:
        connection.row_factory = sqlite3.Row
        ledger = connection.execute(_LEDGER).fetchall()
        intents = connection.execute(_INTENTS).fetchall()
        journal = connection.execute("SELECT at, summary, reason FROM journal ORDER BY id").fetchall()
    ends = [*(one.began for one in windows[1:]), _FAR]
    events = [*(one.room_from for one in windows[1:]), len(host.seen)]
    for window, end, event in zip(windows, ends, events, strict=True):
        there = [one for one in calls if window.began <= one.at < end and not is_own(one.purpose)]
        paid = [(i, o) for at, purpose, i, o in ledger if window.began <= parse_iso(at) < end and not is_own(purpose)]
        said = [one for one in host.seen[window.room_from : event] if isinstance(one, Said) and not one.by_host]
        left = [_left(one) for one in intents if window.began <= parse_iso(one["created_at"]) < end]
        left += [_Left("room", one.content, "done", parse_iso(one.timestamp), "") for one in said]
        # NOTE(self): what was said to somebody who was forgotten since then stands in the thread alone.
        known = " ".join(_plain(one.text) for one in left)
        made = [(one, parse_iso(one.created_at)) for one in posts]
        left += [
            _Left("reply", one.text, "done", at, "")
            for one, at in made
            if one.reply and window.began <= at < end and _plain(one.text) not in known
        ]
        notes = [
            f"{_short(summary, _REASON_CHARS)}: {_short(reason, _REASON_CHARS)}"
            for at, summary, reason in journal
            if window.began <= parse_iso(at) < end and "REJECTED" in summary
        ]
        row = _Row(window, there, (sum(i for i, _ in paid), sum(o for _, o in paid)), left, notes)
        row.fates = list(_fates(there, left))
        yield row


def _left(intent: sqlite3.Row) -> _Left:
    body: str = intent["body"]
    fields = json.loads(body) if body.startswith("{") else {}
    words = "\n".join(str(fields[name]) for name in ("title", "text", "body") if fields.get(name))
    at = parse_iso(intent["sent_at"]) if intent["sent_at"] else None
    text = words or ("" if intent["kind"] in _TALK else intent["target"])
    return _Left(intent["kind"], text, intent["state"], at, intent["error"] or "")


def _fates(calls: Sequence[KeptCall], left: Sequence[_Left]) -> Iterator[tuple[WrittenText, str]]:
    """Yield the words that the model wrote first in each turn, and what became of them."""
    began = {id(one) for one in calls if not _goes_on(one)}
    sent = [_plain(one.text) for one in left if one.text and one.state not in _STOPPED]
    for number, call in enumerate(calls):
        for written in call.written():
            told = next((found for later in calls[number + 1 :] if (found := later.told_of(written))), "")
            is_first = id(call) in began or not any(
                True for earlier in calls[:number] if _same_turn(earlier, call) for _ in earlier.written()
            )
            if is_first:
                yield written, _fate(_plain(written.text), sent, told)


def _fate(text: str, sent: Sequence[str], told: str) -> str:
    """Return what became of a text: it left, was sent back with `told`, or left otherwise."""
    whole = " ".join(sent)
    if text in sent or text in whole:
        return "as written"
    if told and not told.lstrip().startswith('{"state"'):
        return f"sent back: {_short(told, _REASON_CHARS)}"
    beginning = text[: max(20, len(text) // 2)]
    return "changed" if beginning in whole else "dropped"


def _goes_on(call: KeptCall) -> bool:
    """Return whether a request goes on with its turn: the last that it tells is what came of a tool."""
    messages = call.body["messages"]
    return bool(messages) and messages[-1].get("role") == "tool"


def _same_turn(earlier: KeptCall, later: KeptCall) -> bool:
    one, other = (call.body["messages"] for call in (earlier, later))
    return len(one) < len(other) and one[1:] == other[1 : len(one)]


def _short(text: str, chars: int = _SHOWN_CHARS) -> str:
    words = " ".join(text.split())
    return words if len(words) <= chars else f"{words[:chars]}…"


def _plain(text: str) -> str:
    return " ".join(text.split())

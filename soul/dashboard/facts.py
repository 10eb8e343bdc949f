"""Reads what the owner's page shows, anew at each request, from the home's database and files."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from adapters.atproto.records import web_url
from common.clock import Clock, iso, local, parse_iso
from common.redact import Redactor
from common.session_keys import OWNER_SESSION
from common.settings import Settings
from common.text.untrusted import one_line
from common.wording import deed, purpose, told_reason
from modules.runtime.budget import ledger
from modules.runtime.budget.report import report_at
from modules.runtime.budget.types import Report
from modules.runtime.database.file import reading
from modules.runtime.home import Home
from modules.runtime.journal import rows
from modules.runtime.llm.types import Block, ToolAnswer, ToolCall
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import NOTHING, case_text, did, led_to, story_of
from modules.services.explanation import rendering, why
from modules.services.explanation.handles import known_handles
from modules.services.identity.history import SelfHistory
from modules.services.identity.types import HeldEdit, Version
from modules.services.outbox import approval, store
from modules.services.outbox.bodies import PostBody, ReplyBody
from modules.services.peers.accounts import Relationship, Relationships
from modules.services.rights.store import muted
from modules.services.sessions import owner_inbox, talks
from modules.services.sessions import store as sessions
from modules.services.sessions.rows import blocks
from soul.commands.at_hand import examined_settings
from soul.commands.config import setting_rows
from soul.commands.draft_lines import Draft, split_changes, with_answered
from soul.commands.logs import newest_lines
from soul.commands.rituals import ritual_facts
from soul.commands.status import end_lines, leaving_lines, look
from soul.commands.talks import said_at, told_block, who_said
from soul.dashboard.acts import may_be_set
from soul.terminal.output import printable
from soul.terminal.plain import LOOKS
from soul.terminal.wording import doing, loop_name, moment, told_line, troubles_text

_DAYS = 30
_LINES_SHOWN, _LOG_SHOWN, _ERRORS_READ = 60, 200, 20
_TOOL_CHARS = 120
_CHANGES_SHOWN, _PEOPLE_SHOWN, _RUNS_SHOWN = 10, 40, 3


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """One version of SELF.md, and what it changed, as lines of a unified diff."""

    version: Version
    at: str
    diff: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Said:
    """A line of the conversation with the owner; `who` is "" for one on the SOUL, such as a tool that it used."""

    at: datetime
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Reads one home for its owner's page. Times in what it returns are those of the owner's time zone."""

    home: Home
    settings: Settings
    clock: Clock

    def now(self) -> dict[str, Any]:
        """Return what the first page shows: whether it is alive, what is wrong, what waits, what was spent and done."""
        status = look(self.home)
        zone = self.settings.soul_timezone
        with reading(self.home.database) as connection:
            waiting = with_answered(connection, approval.waiting(connection))
            now = self._days.situation(connection)
        return {
            "awake": status["awake"],
            "handle": status.get("handle") or "",
            "moved": status["moved"],
            "ended": [line.strip() for line in end_lines(status, zone)],
            "doing": doing(status.get("mode", "idle")) if status["awake"] else "",
            "as_of": moment(status["updatedAt"], zone) if "updatedAt" in status else "",
            "standing": now.standing,
            "troubles": troubles_text(status, zone) if status["awake"] else (),
            "drafts": [self._draft(draft) for draft in waiting],
            "leaving": leaving_lines(status, zone),
            "held": self._history(lambda history: history.held()),
            "report": now.budget,
            "meters": _meters(now.budget),
            "day": self._day(),
            "decisions": [
                {
                    "summary": told_line(one["summary"]),
                    "reason": told_reason(one["reason"]),
                    "at": moment(one["at"], zone),
                    "about": one.get("triggerUri") or "",
                }
                for one in reversed(status.get("decisions", ()))
            ],
            "loops": [
                {
                    "name": loop_name(one["name"]),
                    "next": moment(one["nextAt"], zone) if one["nextAt"] else "now",
                    "outcome": one["lastOutcome"],
                }
                for one in status.get("loops", ())
            ],
        }

    def story(self, of: str) -> dict[str, Any]:
        """Return the story of an act, a post or a silence. Raises `SoulError` where there is none."""
        zone = self.settings.soul_timezone
        with reading(self.home.database) as connection:
            story = why.story_of(connection, of)
        steps = [{"at": moment(one.at, zone), "step": one} for one in rendering.steps(story, zone)]
        url = next((found for uri in (of, story.cause) if (found := web_url(uri))), "")
        return {"title": rendering.title(story), "steps": steps, "ending": rendering.ending(story, zone), "url": url}

    def spending(self) -> dict[str, Any]:
        """Return the budget of today by purpose and model, and days of it and of what was done."""
        zone, now = self.settings.soul_timezone, self.clock.now()
        since = iso(now - timedelta(days=_DAYS))
        with reading(self.home.database) as connection:
            days = ledger.days(connection, _DAYS)
            report = report_at(connection, self.settings, now)
            acts = store.done_at_since(connection, since)
        return {
            "purposes": [(purpose(one.name), one.calls, one.tokens) for one in report.by_purpose],
            "meters": _meters(report),
            "days": {date.fromisoformat(one.day): one for one in days},
            "acts": Counter(local(parse_iso(at), zone).date() for at in acts),
            "today": local(now, zone).date(),
            "shown": _DAYS,
            "dollars": any(one.usd for one in days),
        }

    def people(self) -> dict[str, Any]:
        """Return the accounts that it met last, and whom it leaves alone."""
        zone = self.settings.soul_timezone
        known = Relationships(self.home.memory / "relationships.json", self.clock)
        with reading(self.home.database) as connection:
            left_alone = muted(connection)
            handles = known_handles(connection, " ".join(left_alone))
        rows = [self._person(one, zone, is_muted=one.did in left_alone) for one in known.newest(_PEOPLE_SHOWN)]
        others = [(did, handles.get(did, "")) for did in left_alone if not any(row["did"] == did for row in rows)]
        return {"people": rows, "muted": others}

    def talk(self) -> dict[str, Any]:
        """Return the conversation with the owner, newest first: what waits for an answer, and what was said."""
        zone = self.settings.soul_timezone
        with reading(self.home.database) as connection:
            session = sessions.going_on(connection, OWNER_SESSION)
            stretches = talks.stretches(connection, session) if session else []
            waiting = owner_inbox.waiting(connection)
            errors = [row for row in rows.newest_errors(connection, _ERRORS_READ) if row["loop"] == "owner"]
        said = [
            _Said(said_at(line), who, text)
            for one in stretches
            for line in one.lines or ()
            for block in blocks(line.message)
            for who, text in _told(block, who_said(line, one.talk))
        ]
        said += [_Said(parse_iso(one.received_at), "OWNER", one.text) for one in waiting if not one.session_id]
        begun = min((one.at for one in said), default=self.clock.now())
        said += [one for one in map(_failure, errors) if one.at >= begun]
        shown = sorted(said, key=lambda one: one.at, reverse=True)[:_LINES_SHOWN]
        status = look(self.home)
        return {
            "said": [{"at": moment(one.at, zone), "who": one.who, "text": one.text} for one in shown],
            "waiting": len(waiting),
            "awake": status["awake"],
            "doing": doing(status.get("mode", "idle")) if status["awake"] else "",
        }

    def log(self, words: str, kind: str) -> dict[str, Any]:
        """Return the newest lines of the log, newest first."""
        lines = newest_lines(self.home.logs, self.settings.soul_timezone, _LOG_SHOWN, kind=kind, words=words)
        return {
            "lines": lines,
            "words": words,
            "kind": kind,
            "kinds": [(one, label) for one, (_, label, _) in LOOKS.items()],
        }

    def shown_settings(self, words: str) -> dict[str, Any]:
        """Return the settings with these words under their headings, and the mistakes that stand in them."""
        found = [{**row, "can_be_set": may_be_set(row["name"])} for row in setting_rows(self.home.root)]
        matching = [row for row in found if words.lower() in f"{row['name']} {row['meaning']}".lower()]
        clean = Redactor(self.settings.secrets).text
        return {
            "mistakes": [clean(str(one)) for one in examined_settings(self.home.root)[1]],
            "groups": [
                {"heading": heading, "parts": [list(part) for _, part in groupby(rows, itemgetter("meaning"))]}
                for heading, rows in groupby(matching, itemgetter("heading"))
            ],
            "words": words,
        }

    def work(self) -> dict[str, Any]:
        """Return what it promised and has not done, the tasks that it holds, and its rituals."""
        with reading(self.home.database) as connection:
            tasks = self._days.situation(connection).tasks
        rituals = ritual_facts(self.settings, self.home, _RUNS_SHOWN)
        return {"commitments": look(self.home).get("commitments", ()), "tasks": tasks, "rituals": rituals}

    def growing(self) -> dict[str, Any]:
        """Return how SELF.md changed, newest first, and the change that waits."""
        changes, held = self._history(self._changes), self._history(lambda history: history.held())
        return {"changes": changes, "held": held, "held_diff": self._held_diff(held) if held else []}

    def _changes(self, history: SelfHistory) -> list[ShownVersion]:
        versions = history.versions()[: _CHANGES_SHOWN + 1]
        texts = [history.read(one).decode(errors="replace").splitlines() for one in versions]
        zone = self.settings.soul_timezone
        shown = zip(versions, texts, [*texts[1:], []], strict=False)
        return [
            ShownVersion(one, moment(one.at, zone) if one.at else "", _diff(before, after))
            for one, after, before in list(shown)[:_CHANGES_SHOWN]
        ]

    def _held_diff(self, held: HeldEdit) -> Sequence[str]:
        now = self._history(lambda history: history.current())
        return _diff(now.decode(errors="replace").splitlines(), held.content.splitlines())

    def _history(self, read: Any) -> Any:  # noqa: ANN401
        with SelfHistory(self.home).alone() as history:
            return read(history)

    @property
    def _days(self) -> DayReader:
        return DayReader(self.settings, self.home, self.clock)

    def _day(self) -> dict[str, Any]:
        """Return what today came to so far."""
        day = self._days.read()
        return {
            "rows": [(label, told or NOTHING) for label, told in (*did(day), *led_to(day))],
            "cases": [(case_text(case, day.timezone), story_of(case)) for case in day.cases],
        }

    def _draft(self, draft: Draft) -> dict[str, Any]:
        intent, zone = draft.intent, self.settings.soul_timezone
        text, changes = split_changes(intent.body.preview)
        return {
            "id": intent.id,
            "number": draft.number,
            "what": intent.body.deed or deed(intent.kind),
            "text": text,
            "diff": changes,
            "answers": draft.answers,
            "reason": draft.reason,
            "target": intent.target,
            "about": intent.cause_id or intent.target,
            "until": moment(intent.expires_at, zone),
            "leaves": moment(intent.scheduled_for, zone) if intent.scheduled_for else "",
            "needs_yes": intent.state == "held",
            "words": intent.body.text if isinstance(intent.body, PostBody | ReplyBody) else "",
        }

    def _person(self, one: Relationship, zone: str, *, is_muted: bool) -> dict[str, Any]:
        return {
            "did": one.did,
            "handle": one.handle,
            "times": len(one.interactions),
            "last": moment(one.last_interaction, zone),
            "muted": is_muted,
        }


def _told(block: Block, who: str) -> list[tuple[str, str]]:
    """Return who said what in a part of a line; "" says that the SOUL used a tool. What a tool found is left out."""
    match block:
        case ToolCall(name=name, input=given):
            with_what = ", ".join(str(one) for one in given.values() if isinstance(one, str | int | float))
            return [("", f"used {_tool(name)}{f': {one_line(with_what, _TOOL_CHARS)}' if with_what else ''}")]
        case ToolAnswer(is_error=False):
            return []
        case ToolAnswer(name=name, content=content):
            return [("", f"{_tool(name)} failed: {one_line(content, _TOOL_CHARS)}")]
    return [(who, told_block(block))]


def _tool(name: str) -> str:
    return printable(name.replace("_", " "))


def _failure(error: rows.JournalRow) -> _Said:
    return _Said(parse_iso(error["at"]), "", f"{error['summary']}: {error['reason']}")


def _diff(before: Sequence[str], after: Sequence[str]) -> list[str]:
    return [
        line for line in difflib.unified_diff(before, after, lineterm="", n=1) if not line.startswith(("---", "+++"))
    ]


def _meters(report: Report) -> list[dict[str, Any]]:
    """One row for each cap of the day: what of it is used."""
    amounts = {"tokens": report.tokens, "dollars": report.usd}
    return [
        {
            "name": name,
            "used": amount.taken,
            "cap": amount.cap,
            "percent": min(100, round(100 * amount.taken / amount.cap)) if amount.cap else 0,
        }
        for name, amount in amounts.items()
        if amount is not None
    ]

"""Reads what the owner's page shows, at each request, and does what the owner asks there, as the commands do."""

import difflib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from starlette.concurrency import run_in_threadpool

from adapters.atproto.records import web_url
from common.clock import Clock, iso, local, parse_iso
from common.errors import SoulError, UsageError
from common.redact import Redactor
from common.session_keys import OWNER_SESSION
from common.settings import KNOWN, Settings
from common.text.untrusted import one_line
from common.wording import counted, purpose, told_reason
from modules.runtime.budget import ledger
from modules.runtime.budget.policy import Report
from modules.runtime.budget.report import report_at
from modules.runtime.database.database import Database
from modules.runtime.database.file import reading
from modules.runtime.home import Home, lock_holder, read_self
from modules.runtime.journal import rows
from modules.runtime.llm.dialect import Block, ToolAnswer, ToolCall
from modules.runtime.sleep_note import request_wake
from modules.services.agent.tools.executor import MORE_TOOLS
from modules.services.craft.proposals import proposal_stands, proposals, rests_on
from modules.services.craft.record import frictions
from modules.services.day.gathering import DayReader
from modules.services.day.rendering import NOTHING, case_text, did, led_to, story_of
from modules.services.explanation import rendering
from modules.services.explanation.drafts import Draft
from modules.services.explanation.story import known_handles
from modules.services.identity.entries import HeldEdit, Version
from modules.services.identity.history import SelfHistory, held_documents
from modules.services.identity.identity import extract_from_self
from modules.services.outbox import store
from modules.services.outbox.bodies import PostBody, ReplyBody
from modules.services.owner import owner_line
from modules.services.relationships import Relationship, newest
from modules.services.rights.requests import ForgetRequest, ForgetRequests
from modules.services.rights.store import muted
from modules.services.sessions import store as sessions
from modules.services.sessions import talks
from modules.services.sessions.types import blocks
from modules.services.work import table as work
from modules.services.work.types import OWNER_LINE
from soul.command_table import rows_at
from soul.commands.at_hand import examined_settings
from soul.commands.config import change_setting, choices_of, is_number_or_choice, setting_rows
from soul.commands.drafts import decide, edit, leaving_of, split_changes
from soul.commands.logs import newest_lines
from soul.commands.memory import forget_memory
from soul.commands.options import DraftAction
from soul.commands.pause import pause, resume
from soul.commands.people import mute_account
from soul.commands.reflect import friction_lines
from soul.commands.rituals import ritual_facts
from soul.commands.self_ import decide_held, grew_from, is_document, own_skills, skill_rests_on
from soul.commands.status import end_lines, leaving_lines, look
from soul.commands.talks import said_at, told_block, who_said
from soul.terminal.output import printable
from soul.terminal.wording import LOOKS, doing, loop_name, moment, told_line, troubles_text

UNANSWERED = "Not woken: its watcher does not answer. See whether `soul watch` runs, or start it with `soul run`."
_AT_THE_MACHINE = {"SOUL_UNSAFE_EXEC", "SOUL_ALLOW_PRIVATE_NET"}


@dataclass(frozen=True, slots=True)
class PageActs:
    """The acts of the page on one home: a method `run_NAME` for each, which returns a line and raises `SoulError`."""

    home: Home
    settings: Settings
    clock: Clock

    async def act(self, name: str, given: Mapping[str, str]) -> str:
        """Do the act `name`; return a line on it. Raises `UsageError` if there is no such act, else `SoulError`."""
        if name not in rows_at("page"):
            raise UsageError(f"There is no act {name}")
        act: Callable[[Mapping[str, str]], Awaitable[str]] = getattr(self, f"run_{name}")
        return await act(given)

    async def run_pause(self, given: Mapping[str, str]) -> str:
        pause(self.home, given.get("reason", ""))
        return "Paused: nothing is published"

    async def run_resume(self, _: Mapping[str, str]) -> str:
        standing = resume(self.home)
        return "Resumed" if standing.may_act else f"Still {standing}"

    async def run_wake(self, _: Mapping[str, str]) -> str:
        return "It wakes now" if await run_in_threadpool(request_wake, self.home.memory) else UNANSWERED

    async def run_approve(self, given: Mapping[str, str]) -> str:
        if is_document((ids := _needed(given, "id").split())[0]):
            return await decide_held(self.settings, self.home, ids[0], approve=True)
        decided = await decide(self.settings, self.home, DraftAction.APPROVE, ids, "")
        return f"Approved: {_decided(decided).rstrip('.')}. {leaving_of(self.settings, self.home, decided)}"

    async def run_edit(self, given: Mapping[str, str]) -> str:
        one = await edit(self.settings, self.home, _needed(given, "id"), _needed(given, "text"))
        return f"Edited and approved: {one.words.line.rstrip('.')}. {leaving_of(self.settings, self.home, [one])}"

    async def run_reject(self, given: Mapping[str, str]) -> str:
        if is_document((ids := _needed(given, "id").split())[0]):
            return await decide_held(self.settings, self.home, ids[0], approve=False)
        decided = await decide(self.settings, self.home, DraftAction.REJECT, ids, given.get("reason", ""))
        return f"Rejected: {_decided(decided)}"

    async def run_memory_forget(self, given: Mapping[str, str]) -> str:
        return await forget_memory(self.settings, self.home, _needed(given, "id"))

    async def run_mute(self, given: Mapping[str, str]) -> str:
        return await mute_account(self.settings, self.home, _did(given), off=False)

    async def run_unmute(self, given: Mapping[str, str]) -> str:
        return await mute_account(self.settings, self.home, _did(given), off=True)

    async def run_say(self, given: Mapping[str, str]) -> str:
        text = Redactor(self.settings.secrets).text(_needed(given, "text").replace("\r\n", "\n"))
        if text.startswith("/"):
            raise UsageError("Commands with a slash work in the terminal", remedy="This page has buttons for most.")
        async with await Database.beside(self.home.database) as database:
            await database.run(partial(work.add, new=[owner_line(text)], now=iso(self.clock.now())))
        is_awake = lock_holder(self.home) is not None
        return "" if is_awake else f"Kept: {self.settings.agent_name} answers after its next start"

    async def run_config_set(self, given: Mapping[str, str]) -> str:
        name = _needed(given, "name")
        if not may_be_set(name):
            raise UsageError(f"{name} cannot be set on this page", remedy=f"Use `soul config set {name}`.")
        await run_in_threadpool(change_setting, self.home.root, name, given.get("value", "").strip())
        return f"{name} is set; it takes effect at the next start."

    async def run_forget(self, given: Mapping[str, str]) -> str:
        did = _did(given)
        if given.get("sure") != "yes":
            raise UsageError("Nothing was deleted: tick the box beside the button")
        if did == self.settings.owner_bluesky_social_handle_did:
            raise UsageError("That is the owner", remedy="`soul run --flush-all` forgets all.")
        ForgetRequests(self.home.memory).give(ForgetRequest(did, self.clock.now()))
        return "Deleted at the next start; a running SOUL restarts within two minutes"


def may_be_set(name: str) -> bool:
    """Return whether the page can change a setting: a number, switch or choice that weakens no protection."""
    return name in KNOWN and name not in _AT_THE_MACHINE and is_number_or_choice(name)


def _needed(given: Mapping[str, str], name: str) -> str:
    if not (value := given.get(name, "").strip()):
        raise UsageError(f"Which one? `{name}` is missing")
    return value


def _decided(drafts: Sequence[Draft]) -> str:
    """Return the act of a draft, or how many drafts were decided."""
    return drafts[0].words.line if len(drafts) == 1 else counted(len(drafts), "draft", "drafts")


def _did(given: Mapping[str, str]) -> str:
    did = _needed(given, "did")
    if not did.startswith("did:"):
        raise SoulError(f"{did} is no DID")
    return did


_DAYS = 30
_LINES_SHOWN, _LOG_SHOWN, _ERRORS_READ = 60, 200, 20
_TOOL_CHARS = 120
_CHANGES_SHOWN, _PEOPLE_SHOWN, _RUNS_SHOWN, _FRICTION_SHOWN = 10, 40, 3, 20


@dataclass(frozen=True, slots=True)
class _Said:
    """A line of the conversation with the owner; `who` is "" for a line on the SOUL, such as a tool that it used."""

    at: datetime
    who: str
    text: str


@dataclass(frozen=True, slots=True)
class PageFacts:
    """Reads one home for its owner's page. Returned times are in the owner's time zone."""

    home: Home
    settings: Settings
    clock: Clock

    def now(self) -> dict[str, Any]:
        """Return what the first page shows: whether the SOUL is awake, what is wrong and waits, costs, and the day."""
        status = look(self.home)
        zone = self.settings.soul_timezone
        with reading(self.home.database) as connection:
            now = self._days.situation(connection)
        return {
            "awake": status["awake"],
            "handle": status.get("handle") or "",
            "moved": status["moved"],
            "asleep_until": moment(status["asleep"]["wake_at"], zone) if status["asleep"] else "",
            "ended": [line.strip() for line in end_lines(status, zone)],
            "doing": doing(status.get("mode", "idle")) if status["awake"] else "",
            "as_of": moment(status["updatedAt"], zone) if "updatedAt" in status else "",
            "standing": now.standing,
            "troubles": troubles_text(status, zone) if status["awake"] else (),
            "drafts": [self._draft(draft) for draft in (*now.drafts, *now.on_the_way)],
            "leaving": leaving_lines({"leaving": [one for one in now.leaving if not one["number"]]}, zone),
            "documents": list(now.documents),
            "report": now.budget,
            "meters": _meters(now.budget),
            "day": self._day(),
            "schedules": [one.told_owner(zone) for one in now.schedules],
            "decisions": [
                {
                    "summary": told_line(one["summary"]),
                    "reason": told_reason(one["reason"]),
                    "at": moment(one["at"], zone),
                    "about": trigger if ":" in (trigger := one.get("triggerUri") or "") else "",
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
        """Return the story of an act, a post or a silence. Raises `SoulError` if there is none."""
        zone = self.settings.soul_timezone
        with reading(self.home.database) as connection:
            story = rendering.story_of(connection, of)
        steps = [{"at": moment(one.at, zone), "step": one} for one in rendering.steps(story, zone)]
        url = next((found for uri in (of, story.cause) if (found := web_url(uri))), "")
        title, ending = rendering.title(story, zone), rendering.ending(story, zone)
        return {"title": title, "steps": steps, "ending": ending, "url": url}

    def spending(self) -> dict[str, Any]:
        """Return today's budget and its use by purpose, and the costs and acts of the last `_DAYS` days."""
        zone, now = self.settings.soul_timezone, self.clock.now()
        since = iso(now - timedelta(days=_DAYS))
        with reading(self.home.database) as connection:
            report = report_at(connection, self.settings, now)
            days = ledger.days(connection, report.day, _DAYS)
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
        """Return the accounts that the SOUL met last, and the muted ones."""
        zone = self.settings.soul_timezone
        with reading(self.home.database) as connection:
            left_alone, known = muted(connection), newest(connection, _PEOPLE_SHOWN)
            handles = known_handles(connection, " ".join(left_alone))
        rows = [self._person(one, zone, is_muted=one.did in left_alone) for one in known]
        others = [(did, handles.get(did, "")) for did in left_alone if not any(row["did"] == did for row in rows)]
        return {"people": rows, "muted": others}

    def talk(self) -> dict[str, Any]:
        """Return the conversation with the owner, newest first: what waits for an answer, and what was said."""
        zone = self.settings.soul_timezone
        with reading(self.home.database) as connection:
            session = sessions.going_on(connection, OWNER_SESSION)
            stretches = talks.stretches(connection, session) if session else []
            waiting = work.waiting(connection, OWNER_LINE)
            errors = [row for row in rows.newest_errors(connection, _ERRORS_READ) if row["loop"] == "owner"]
        said: list[_Said] = []
        failed: dict[str, bool] = {}
        # NOTE(self): backwards, so that the result of a call is known first: a failed call is not shown as a use.
        for talk, line in reversed([(one.talk, line) for one in stretches for line in one.lines or ()]):
            for block in reversed(blocks(line.message)):
                if isinstance(block, ToolAnswer):
                    failed[block.tool_use_id] = block.is_error
                if not (isinstance(block, ToolCall) and failed.pop(block.id, False)):
                    told = _told(block, who_said(line, talk))
                    said[:0] = [_Said(said_at(line), who, text) for who, text in told]
        new = [one for one in waiting if not one.payload.get("session")]
        said += [_Said(parse_iso(one.created_at), "OWNER", one.payload["text"]) for one in new]
        begun = min((one.at for one in said), default=self.clock.now())
        said += [one for one in map(_failure, errors) if one.at >= begun]
        shown = sorted(said, key=lambda one: one.at, reverse=True)[:_LINES_SHOWN]
        status = look(self.home)
        return {
            "said": [{"at": moment(one.at, zone), "who": one.who, "text": one.text} for one in shown],
            "waiting": len(waiting),
            "awake": status["awake"],
            "doing": doing(status.get("mode", "idle")) if status["awake"] else "",
            "troubles": troubles_text(status, zone) if status["awake"] else (),
        }

    def log(self, words: str, kind: str) -> dict[str, Any]:
        """Return the newest lines of the log, newest first, of a `kind` and with `words`, if given."""
        lines = newest_lines(self.home.logs, self.settings.soul_timezone, _LOG_SHOWN, kind=kind, words=words)
        return {
            "lines": lines,
            "words": words,
            "kind": kind,
            "kinds": [(one, label) for one, (_, label, _) in LOOKS.items()],
        }

    def shown_settings(self, words: str) -> dict[str, Any]:
        """Return the settings that match `words` under their headings, and the mistakes in all settings."""
        found = [
            {**row, "can_be_set": may_be_set(row["name"]), "choices": choices_of(row["name"])}
            for row in setting_rows(self.home.root)
        ]
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
        """Return the open commitments, the tasks that the SOUL holds, and its rituals."""
        with reading(self.home.database) as connection:
            tasks = self._days.situation(connection).tasks
        rituals = ritual_facts(self.settings, self.home, _RUNS_SHOWN)
        return {"commitments": look(self.home).get("commitments", ()), "tasks": tasks, "rituals": rituals}

    def growing(self) -> dict[str, Any]:
        """Return held changes, frictions, proposals, the SOUL's own skills, its wishes, and the changes of SELF.md."""
        friction, proposed = [], []
        if self.home.database.exists():
            with reading(self.home.database) as connection:
                friction = friction_lines(frictions(connection)[:_FRICTION_SHOWN], self.settings.soul_timezone)
                found = proposals(connection)[:_FRICTION_SHOWN]
                proposed = [(proposal_stands(one), rests_on(connection, one), one.cause) for one in found]
        wishes = extract_from_self(read_self(self.home)).wishes
        with SelfHistory(self.home).reading() as history:
            changes = self._changes(history)
        waiting = list(filter(None, map(self._held, held_documents(self.home))))
        told = {"friction": friction, "proposals": proposed, "skills": own_skills(self.home), "wishes": wishes}
        return {"changes": changes, "waiting": waiting, **told}

    def _held(self, document: str) -> tuple[str, HeldEdit, Sequence[str], Sequence[str]] | None:
        with SelfHistory(self.home, document).alone() as history:
            held = history.show_held()
            now = history.replaced_by(held).decode(errors="replace") if held else ""
        if held is None:
            return None
        diff = _diff(now.splitlines(), held.content.splitlines())
        return document, held, skill_rests_on(self.home, document), diff

    def _changes(self, history: SelfHistory) -> list[tuple[Version, str, Sequence[str], Sequence[str]]]:
        """Return the versions, newest first, each with its time, its diff, and the experiences behind it."""
        versions, zone = history.versions()[: _CHANGES_SHOWN + 1], self.settings.soul_timezone
        texts = [history.read(one).decode(errors="replace").splitlines() for one in versions]
        shown = list(zip(versions, texts, [*texts[1:], []], strict=False))[:_CHANGES_SHOWN]
        told = ((one, moment(one.at, zone) if one.at else "", _diff(before, after)) for one, after, before in shown)
        return [(*one, grew_from(self.home, one[0].cites)) for one in told]

    @property
    def _days(self) -> DayReader:
        return DayReader(self.settings, self.home, self.clock)

    def _day(self) -> dict[str, Any]:
        """Return the summary of today so far."""
        day = self._days.read()
        return {
            "rows": [(label, told or NOTHING) for label, told in (*did(day), *led_to(day)) if label != "scheduled"],
            "cases": [(case_text(case, day.timezone), story_of(case)) for case in day.cases],
        }

    def _draft(self, draft: Draft) -> dict[str, Any]:
        intent = draft.intent
        text, changes = split_changes(intent.body.preview)
        return {
            "id": intent.id,
            "number": draft.number,
            "what": draft.words.what,
            "text": text,
            "diff": changes,
            "answers": draft.words if draft.words.theirs else None,
            "reason": draft.reason,
            "rests_on": draft.rests_on,
            "target": intent.target,
            "about": intent.id,
            "when": draft.when(self.clock.now(), self.settings.soul_timezone),
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
            "is_owner": one.did == self.settings.owner_bluesky_social_handle_did,
        }


def _told(block: Block, who: str) -> list[tuple[str, str]]:
    """Return who said what in a block; who is "" if the SOUL used a tool. Results of tools are left out."""
    match block:
        case ToolCall(name=name) if name == MORE_TOOLS:
            return []
        case ToolCall(name=name, input=given):
            with_what = next((one for one in given.values() if isinstance(one, str)), "")
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
    """Return one row for each limit of the day: how much of it is used, and whether little or nothing is left."""
    amounts = {"tokens": report.tokens, "dollars": report.usd}
    return [
        {
            "name": name,
            "amount": ("{:,.2f}" if name == "dollars" else "{:,.0f}").format,
            "used": amount.spent,
            "set_aside": amount.on_its_way,
            "cap": amount.cap,
            "percent": min(100, round(100 * amount.spent / amount.cap)) if amount.cap else 0,
            "is_short": report.step in {"pressing", "owner_only", "listen"},
        }
        for name, amount in amounts.items()
        if amount is not None
    ]

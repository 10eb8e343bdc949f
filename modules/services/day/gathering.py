"""Gathers one day of a SOUL from its database and its files; only reads, whether the SOUL runs or not."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any

from adapters.atproto.records import parse_at_uri, web_url
from common.clock import Clock, from_local, iso, local
from common.constants import OWNER_CAUSE
from common.errors import UsageError
from common.settings import Settings
from common.text.graphemes import shortened
from modules.runtime.budget.policy import Report
from modules.runtime.budget.report import report_at, zone_of
from modules.runtime.control import Control
from modules.runtime.database import marks
from modules.runtime.database.file import reading
from modules.runtime.home import Home, lock_holder
from modules.runtime.journal import rows
from modules.runtime.llm.dialect import without_status
from modules.services.commitments.naming import LIVE, CommitmentStatus, QueuedCommitment, title_of
from modules.services.commitments.policy import ended_at
from modules.services.commitments.queue import commitments_in
from modules.services.craft.proposals import ended_as
from modules.services.day.rendering import (
    LIKED_ONLY,
    DayCommitments,
    DayLearned,
    DayOrder,
    DayReading,
    DayReason,
    DayRefusal,
    DaySpent,
    DaySummary,
    DayTrouble,
    PublicDay,
    TellingCase,
)
from modules.services.day.situation import Situation, read_situation
from modules.services.explanation.story import handle_of, named
from modules.services.identity.entries import OWN_SKILL, HeldEdit, waiting_line
from modules.services.identity.history import changed_lines, held_edits
from modules.services.identity.identity import Me
from modules.services.inbox.messages import MESSAGES
from modules.services.memory import rows as memory_rows
from modules.services.memory.admission import Kind
from modules.services.outbox import policy, store
from modules.services.outbox.act_words import ActWords, act_words
from modules.services.outbox.bodies import DirectMessageBody, FollowBody, IntentKind, LikeBody, ReplyBody
from modules.services.outbox.github_bodies import GITHUB_KINDS
from modules.services.outbox.types import Intent
from modules.services.presence import owner_follow
from modules.services.rights.mute import MUTES
from modules.services.rituals.rituals import all_runs
from modules.services.schedules import first_scheduled

_LEFT_ALONE = ("silent", "skipped", "concluded", "left", "dropped", "passed_over")
_OF_OTHERS = ("at://", MESSAGES, "github:")
"""The prefixes of addresses of what others sent; the SOUL's own tasks and rituals do not count as left alone."""
_SPOKE, _READING, _EXPRESSION = "spoke", "reading", "expression"
_WORK, _FILES, _SELF, _PROPOSAL = "work", "workspace-files", "self", "improvement"
_OWN_KINDS, _DID = frozenset({"schedule", "heartbeat-turn"}), frozenset({"done", "told", "dropped"})
_FILE_DECIDED = frozenset({"changed", "rejected"})  # a waiting change is part of the current state
_TO_OWN: frozenset[IntentKind] = frozenset({"delete", "threadgate"})
_PRIVATE: frozenset[IntentKind] = frozenset({"direct_message"})
_LEARNED: tuple[Kind, ...] = ("fact", "preference", "person", "lesson", "protocol", "decision")
_FIRST_YEAR = 1970
_MOST_CASES, _MOST_TROUBLES, _MOST_MEMORIES = 3, 3, 1000
_MUCH = 0.7
_LEAVING_CHARS, _ORDERED_CHARS = 80, 40


@dataclass(frozen=True, slots=True)
class DayReader:
    """Reads the days of one home."""

    settings: Settings
    home: Home
    clock: Clock

    def read(self, day: str = "") -> DaySummary:
        """Return the summary of a day, `2026-01-31`, or "" for today.

        Raises:
            UsageError: that is not a day, or lies in the future.
            SoulError: the database does not exist yet or cannot be read.

        """
        with reading(self.home.database) as connection:
            zone = zone_of(connection, self.settings.soul_timezone)
            today = local(self.clock.now(), zone).date()
            return self._gather(connection, _date_of(day, today) if day else today, today, zone)

    def read_public(self) -> PublicDay:
        """Return what everybody may know of today. Raises `SoulError` if the database cannot be read."""
        with reading(self.home.database) as connection:
            zone = zone_of(connection, self.settings.soul_timezone)
            since = iso(_moment(local(self.clock.now(), zone).date(), zone))
            done = (one for one in store.left_between(connection, since, "~") if one.kind not in _PRIVATE)
            return PublicDay(_counted(done), _room_words(connection, since))

    def situation(self, connection: sqlite3.Connection) -> Situation:
        """Return the current state of the SOUL."""
        standing = Control(self.home.memory).standing()
        return read_situation(connection, self.settings, self.home, standing, self.clock.now())

    def _gather(self, connection: sqlite3.Connection, day: date, today: date, zone: str) -> DaySummary:
        since, until = _moment(day, zone), _moment(day + timedelta(days=1), zone)
        start, end = iso(since), iso(until)
        decided = rows.decided_between(connection, start, end, (*_LEFT_ALONE, LIKED_ONLY), _OF_OTHERS)
        left = store.left_between(connection, start, end)
        owners = [one for one in store.ordered_between(connection, start, end) if self._is_decided_by_owner(one)]
        ordered = [one for one in _changes(connection, start, end) if self._is_at_owner_word(one)]
        at_word = [*ordered, *rows.of_loop_between(connection, MUTES, start, end, "life")]
        now = self.situation(connection)
        acts = [*owners, *(one.intent for one in (*now.drafts, *now.on_the_way))]
        told = rows.about(connection, (), [one.id for one in acts])
        own = {one["intent_id"] for one in told if one["kind"] == "act" and rows.is_own(one)}
        is_today, kept_since = day == today, rows.kept_since(connection)
        blocked, awake = now.blocked if is_today else (), lock_holder(self.home) is not None
        held = held_edits(self.home)
        changes = (waiting_line(one) + self._held_text(one, held.get(one)) for one in now.documents)
        return DaySummary(
            name=self.settings.agent_name,
            day=day.isoformat(),
            timezone=zone,
            is_today=is_today,
            awake=awake,
            done=_counted(left),
            with_whom=self._with_whom(connection, left),
            orders=(
                *self._orders(connection, owners, now, zone),
                *(DayOrder(named(connection, one["summary"]), "", "done", "", was_ordered=True) for one in at_word),
            ),
            posts=tuple(
                (one.body.public_text, web_url(one.result_uri or ""))
                for one in left
                if one.kind == "post" and not store.is_deleted(connection, one)
            ),
            room_words=_room_words(connection, start, end),
            reasons=tuple(DayReason(one.act, one.reason, one.count, one.authors, one.is_chosen) for one in decided),
            wishes=tuple(
                (who, web_url(uri) or uri, wish)
                for who, uri, wish in rows.wishes_between(connection, start, end)
                if who != self.settings.owner_bluesky_social_handle
            ),
            refused=_refusals(rows.refused_between(connection, start, end, [one.id for one in owners], GITHUB_KINDS)),
            sent_back=_refusals(rows.sent_back_between(connection, start, end)),
            dropped=_refusals(rows.dropped_between(connection, start, end, _OF_OTHERS)),
            cases=_cases(connection, decided),
            waits=now.waits,
            drafts=(*(f"{one.number}, {one.words.line}" for one in now.drafts), *changes) if is_today else (),
            leaving=self._leaving(now, zone),
            is_unasked=not all(one.is_own for one in held.values())
            or any(one.words.theirs and not one.words.ours for one in now.drafts)
            or not all(one.by_owner or one.id in own for one in acts),
            commitments=_commitments(commitments_in(connection), start, end),
            scheduled=first_scheduled(now.schedules, zone),
            tasks=now.tasks,
            blocked=blocked,
            takes_none=now.takes_none,
            rituals={
                run.name: run.artefact_url or web_url(run.thread_uri) for run in all_runs(connection) if run.day == day
            },
            learned=self._learned(connection, since, until),
            readings=readings_between(connection, start, end),
            own_time=_own_time(connection, start, end, ordered),
            spent=_spent(now.budget) if is_today else self._spent_on(connection, day, zone),
            troubles=(
                *(_standing_troubles(now) if is_today else ()),
                *(_lost_troubles(connection) if is_today and not awake else ()),
                *blocked,
                *(
                    DayTrouble(named(connection, summary), count, named(connection, reason), is_others=True)
                    for summary, reason, count in rows.troubles_between(connection, start, end, _MOST_TROUBLES)
                ),
            ),
            kept_since=kept_since if kept_since > start else "",
        )

    def _held_text(self, document: str, held: HeldEdit | None) -> str:
        """Return why a change waits, whether the owner has seen it, and its lines."""
        if held is None:
            return ""
        seen = "; you have seen it" if held.is_seen else ""
        return "\n  ".join([f" (because {held.why}{seen}):", *changed_lines(self.home, document, held)])

    def _leaving(self, now: Situation, zone: str) -> tuple[str, ...]:
        """Return the acts that wait to leave, each with its number, its first words and when it leaves."""
        told = ((one, shortened(one.words.own, _LEAVING_CHARS)) for one in now.on_the_way)
        return tuple(f"{one.number}, {what} {one.when(self.clock.now(), zone)}" for one, what in told)

    def _is_decided_by_owner(self, intent: Intent) -> bool:
        """Return whether the owner decided an act; the first follow of them and answers to their posts do not count."""
        theirs = f"at://{self.settings.owner_bluesky_social_handle_did}/"
        is_answer = isinstance(intent.body, ReplyBody | LikeBody) and intent.body.subject == intent.cause_id
        return intent.cause_id != owner_follow.CAUSE and not (is_answer and intent.body.subject.startswith(theirs))

    def _is_at_owner_word(self, change: rows.JournalRow) -> bool:
        """Return whether a change of one of the SOUL's own files was ordered by the owner and made."""
        did, cites = self.settings.owner_bluesky_social_handle_did, change["data"].get("cites", ())
        return change["data"]["status"] == "changed" and any(_was_ordered(one, did) for one in cites)

    def _orders(
        self, connection: sqlite3.Connection, orders: Sequence[Intent], now: Situation, zone: str
    ) -> tuple[DayOrder, ...]:
        """Return what the owner decided, in words."""
        owner = self.settings.owner_bluesky_social_handle_did
        about = rows.about(connection, (), [order.id for order in orders])
        edited = {one["intent_id"] for one in about if "before" in one["data"]}
        unordered = {one["intent_id"] for one in about if one["data"].get("approved")}
        unordered |= {one.id for one in orders if one.own_words and one.rejected}
        acts = [(one, act_words(connection, one)) for one in orders]
        late = [one for one in now.on_the_way if one.departure or one.intent.scheduled_for]
        departures = {one.intent.id: one.when(self.clock.now(), zone) for one in late}
        return tuple(
            DayOrder(
                named(connection, act.what),
                _first_words(act.theirs if one.kind in _TO_OWN else act.ours, is_edited=one.id in edited),
                one.outcome,
                named(connection, one.why_not),
                one.by_owner and _was_ordered(one.cause_id or "", owner) and one.id not in unordered,
                departures.get(one.id) or _undone(connection, one, act),
                bool(one.why_not and (one.first_sent_at or one.kind in GITHUB_KINDS)),
            )
            for one, act in acts
        )

    def _with_whom(self, connection: sqlite3.Connection, left: Iterable[Intent]) -> dict[IntentKind, tuple[str, ...]]:
        """Return the known handles of the addressees by kind of act; for messages to the owner, the owner's handle."""
        found: dict[IntentKind, dict[str, None]] = {}
        for intent in left:
            did = _whom(intent)
            if did and (handle := self._handle_of(connection, did)):
                found.setdefault(intent.kind, {})[handle] = None
        return {kind: tuple(handles) for kind, handles in found.items()}

    def _handle_of(self, connection: sqlite3.Connection, did: str) -> str:
        me = Me.of(self.settings)
        return me.owner_handle if me.is_owner(did) else handle_of(connection, did)

    def _spent_on(self, connection: sqlite3.Connection, day: date, zone: str) -> DaySpent:
        noon = from_local(datetime.combine(day, time(12)), zone)
        return replace(_spent(report_at(connection, self.settings, noon)), fraction=None)

    def _learned(self, connection: sqlite3.Connection, since: datetime, until: datetime) -> DayLearned:
        changed = [rows.of_loop_between(connection, loop, iso(since), iso(until)) for loop in (_SELF, _FILES)]
        own, files = (list(filter(_is_learned, one)) for one in changed)
        why = tuple(row["reason"] for row in own)
        kept = memory_rows.newest(
            connection, kinds=_LEARNED, since=since, until=until, public_only=False, limit=_MOST_MEMORIES
        )
        is_others = any(one.trust not in {"owner", "self"} for one in kept) or not all(map(rows.is_own, own))
        skills = tuple(row["data"]["file"].removeprefix(OWN_SKILL) for row in files)
        return DayLearned(len(kept), tuple(one.subject or one.body for one in kept), why, is_others, skills)


def readings_between(connection: sqlite3.Connection, start: str, end: str) -> tuple[DayReading, ...]:
    """Return the readings in that time, oldest first; times are ISO-8601 UTC."""
    posted: dict[int, str] = {}
    for row in rows.of_loop_between(connection, _EXPRESSION, start, "~"):
        intent = store.get(connection, row["intent_id"] or "")
        posted[row["data"].get("finding", 0)] = web_url(intent.result_uri or "") if intent else ""
    return tuple(
        DayReading(
            *(row["at"], data["question"], data["finding"], data["sources"], data["owners"]),
            posted.get(data["memory"] or -1, ""),
        )
        for row in rows.of_loop_between(connection, _READING, start, end)
        if "question" in (data := row["data"])
    )


def _is_learned(change: rows.JournalRow) -> bool:
    """Return whether SELF.md changed or an own skill was added; switching a skill on or off cites nothing."""
    data = change["data"]
    is_skill = bool(str(data.get("file", "")).startswith(OWN_SKILL) and data.get("cites"))
    return data.get("status") == "changed" and (change["loop"] == _SELF or is_skill)


def _changes(connection: sqlite3.Connection, start: str, end: str) -> list[rows.JournalRow]:
    """Return the decided changes of its files; changes of SELF.md and new skills are told as learned instead."""
    found = [one for loop in (_FILES, _SELF) for one in rows.of_loop_between(connection, loop, start, end)]
    decided = [one for one in found if one["data"].get("status") in _FILE_DECIDED]
    return [one for one in decided if not _is_learned(one)]


def _own_time(
    connection: sqlite3.Connection, start: str, end: str, ordered: Sequence[rows.JournalRow]
) -> tuple[tuple[str, str, str, bool], ...]:
    worked = rows.of_loop_between(connection, _WORK, start, end)
    own = [one for one in worked if one["data"].get("kind") in _OWN_KINDS and one["data"]["act"] in _DID]
    thoughts = rows.of_loop_between(connection, _EXPRESSION, start, end)
    silent = [one for one in thoughts if one["data"].get("act") == "silent"]
    files = [one for one in _changes(connection, start, end) if one not in ordered]
    found = [("own time", one) for one in own] + [("files", one) for one in files]
    found += [("no post", one) for one in silent]
    ended = (one for one in worked if one["data"].get("kind") == _PROPOSAL and one["data"]["act"] in {"done", "silent"})
    told = [(label, one["summary"], one["reason"], not rows.is_own(one)) for label, one in found]
    proposals = ((ended_as(one["data"]["code"]), one["reason"], not rows.is_own(one)) for one in ended)
    return (*told, *(("proposals", *one) for one in proposals))


def _spent(report: Report) -> DaySpent:
    usd = report.usd
    return DaySpent(
        calls=report.calls,
        tokens=report.tokens.spent,
        tokens_cap=report.tokens.cap,
        usd=usd.spent if usd else None,
        usd_cap=usd.cap if usd else None,
        fraction=report.fraction,
        tokens_set_aside=report.tokens.on_its_way,
        tokens_unanswered=report.tokens.unanswered,
    )


def _standing_troubles(now: Situation) -> Iterable[DayTrouble]:
    for reason in now.standing.reasons:
        yield DayTrouble(reason, 1, "`soul resume` lets it go on")
    if (used := now.budget.fraction) >= _MUCH or now.no_answer:
        what = now.no_answer or f"{used:.0%} of the day's budget is used"
        yield DayTrouble(what, 1, "the next day begins anew; BUDGET_TOKENS_PER_DAY and BUDGET_USD_PER_DAY set it")


def _lost_troubles(connection: sqlite3.Connection) -> Iterable[DayTrouble]:
    """Yield a trouble if no process runs because the last run ended without saying why."""
    if marks.get(connection, marks.RUNNING):
        yield DayTrouble(
            f"The last run ended unexpectedly: {marks.KILLED}", 1, "`soul run` goes on; `soul logs` tells more"
        )


def counts_of_today(connection: sqlite3.Connection, clock: Clock, timezone: str) -> dict[str, int]:
    """Return how many posts, replies and likes left today, and how many items were left alone."""
    zone = zone_of(connection, timezone)
    since = iso(_moment(local(clock.now(), zone).date(), zone))
    done = store.done_since(connection, since)
    alone = rows.decided_between(connection, since, "~", _LEFT_ALONE, _OF_OTHERS)
    return {
        "posts": done.get("post", 0),
        "replies": done.get("reply", 0),
        "likes": done.get("like", 0),
        "silences": sum(one.count for one in alone),
    }


def _first_words(ours: str, *, is_edited: bool) -> str:
    told = f"“{shortened(ours, _ORDERED_CHARS)}”" if ours else ""
    return f", reworded: {told}" if is_edited else told and f": {told}"


def _was_ordered(cause: str, owner: str) -> bool:
    """Return whether the owner's own words were the cause; otherwise they only approved or rejected an act."""
    return cause.partition(":")[0] == OWNER_CAUSE or cause.startswith(f"at://{owner}/")


def _date_of(text: str, today: date) -> date:
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{text!r} is no day", remedy="Write it as 2026-01-31.") from None
    if day.year < _FIRST_YEAR:
        raise UsageError(f"{day} is before the times that are kept", remedy="Write it as 2026-01-31.")
    if day > today:
        raise UsageError(f"{day} is yet to come", remedy=f"Today is {today}.")
    return day


def _moment(day: date, zone: str) -> datetime:
    return from_local(datetime.combine(day, time()), zone)


def _counted(acts: Iterable[Intent]) -> dict[policy.Lane, int]:
    """Return the number of acts of each kind; an unfollow does not count as a deletion."""
    return dict(Counter(policy.lane_of(one.kind, one.target) for one in acts))


def _room_words(connection: sqlite3.Connection, start: str, end: str = "~") -> int:
    return rows.count_between(connection, start, end, _SPOKE)


def _undone(connection: sqlite3.Connection, intent: Intent, words: ActWords) -> str:
    """Return the words for an act whose result was deleted since; "" if it still exists."""
    if not store.is_deleted(connection, intent):
        return ""
    return "deleted since" if words.ours else "taken back since"


def _whom(intent: Intent) -> str:
    """Return the DID that an act on Bluesky concerns; "" if there is none."""
    body = intent.body
    if isinstance(body, DirectMessageBody):
        return body.to
    if isinstance(body, ReplyBody) and body.told_to:
        return body.told_to
    uri = parse_at_uri(intent.target)
    return uri.repo if uri else intent.target if isinstance(body, FollowBody) else ""


def _refusals(found: Iterable[tuple[Any, ...]]) -> tuple[DayRefusal, ...]:
    return tuple(DayRefusal(what, without_status(why), *rest) for what, why, *rest in found)


def _cases(connection: sqlite3.Connection, decided: Sequence[rows.DecisionCount]) -> tuple[TellingCase, ...]:
    """Return the newest case of the rarest reasons, one of each outcome first, as frequent cases tell little."""
    rarest = sorted(decided, key=lambda one: (one.count, -one.newest))
    first = {one.act: one.newest for one in reversed(rarest)}
    chosen = sorted(rarest, key=lambda one: first[one.act] != one.newest)[:_MOST_CASES]
    return tuple(
        TellingCase(row["at"], row["data"]["act"], row["summary"], row["reason"], row["trigger_uri"] or "")
        for row in rows.entries(connection, [one.newest for one in chosen])
        if not row["data"].get("held")  # the draft shows it with its current state
    )


def _commitments(known: Iterable[QueuedCommitment], start: str, end: str) -> DayCommitments:
    def titles(*statuses: CommitmentStatus) -> tuple[str, ...]:
        return tuple(
            title_of(one)
            for one in known
            if one.status in statuses and (one.status in LIVE or ((at := ended_at(one)) and start <= iso(at) < end))
        )

    known = list(known)
    return DayCommitments(titles(*LIVE), titles("completed"), titles("abandoned"))

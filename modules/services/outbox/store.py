"""The rows of the outbox. Each function is one step of a transaction that its caller opened."""

import dataclasses
import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from common.clock import iso, parse_iso
from modules.runtime.database import marks
from modules.services.inbox.messages import message_name
from modules.services.outbox.bodies import (
    DirectMessageBody,
    IntentKind,
    PostBody,
    ReplyBody,
    ThreadgateBody,
    parse_body,
)
from modules.services.outbox.departures import expected
from modules.services.outbox.github_bodies import PullRequestBody, PushBody
from modules.services.outbox.policy import Lane, lane_of
from modules.services.outbox.types import (
    ACTIVE_STATES,
    REPEATABLE,
    REPLACED,
    STANDS,
    UNMETERED_KINDS,
    Intent,
    IntentState,
    ProposedAction,
    StoredBefore,
)

_FIELDS = tuple(field.name for field in dataclasses.fields(Intent))
_COLUMNS = ", ".join(_FIELDS)
_ACTIVE = f"state IN ({', '.join(repr(state) for state in sorted(ACTIVE_STATES))})"
_REPEATABLE = f"kind IN ({', '.join(repr(kind) for kind in sorted(REPEATABLE))})"
_CHANGING = (
    *("state", "attempts", "deferrals", "not_before", "result_uri", "result_kind", "result_id", "error"),
    *("first_sent_at", "sent_at", "looks", "by_owner", "rejected", "own_words", "expires_at"),
)
_TICK = timedelta(milliseconds=1)


def stored_before(connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> StoredBefore:
    """Return the stored facts that matter for admitting `action` at `now`."""
    key, target = action.dedup_key, action.target
    # NOTE(self): the rule on who may reply can be set as often as the owner likes; the latest one holds.
    once = target and not isinstance(action.body, ThreadgateBody)
    return StoredBefore(
        same_act=active_on_target(connection, action.kind, target) if once else None,
        same_text=next(iter(_select(connection, f"dedup_key = ? AND {_ACTIVE}", key, limit=1)), None) if key else None,
        in_feed=in_feed(connection, key) if key else False,
        created_at=unique_created_at(connection, now),
        same_picture=active_with_picture(connection, action),
        scheduled=len(scheduled(connection)),
    )


def insert(connection: sqlite3.Connection, intent: Intent) -> None:
    """Store a new intent."""
    marks = ", ".join("?" * len(_FIELDS))
    connection.execute(f"INSERT INTO intents ({_COLUMNS}) VALUES ({marks})", _values(intent))  # noqa: S608 - our own column names


def update(connection: sqlite3.Connection, intent: Intent) -> None:
    """Write the changeable fields of an intent, and withdraw unsent messages about it unless it is held."""
    values = {name: getattr(intent, name) for name in (*_CHANGING, "id")}
    changes = ", ".join(f"{name} = :{name}" for name in _CHANGING)
    connection.execute(f"UPDATE intents SET {changes} WHERE id = :id", values)  # noqa: S608 - our own column names
    if intent.state == "held":
        return
    # NOTE(self): an unsent message to the owner about this draft is withdrawn; one about its other drafts is sent anew.
    unsent = "kind = 'direct_message' AND state = 'pending' AND first_sent_at IS NULL AND instr(body, ?)"
    for one in _select(connection, unsent, f'"{intent.id}"'):
        update(connection, dataclasses.replace(one, state="blocked", error=STANDS["withdrawn"]))


def reword(connection: sqlite3.Connection, intent: Intent) -> None:
    """Write the words of an intent that has not left."""
    values = (intent.body.as_json, intent.body_hash, intent.dedup_key, intent.id)
    connection.execute("UPDATE intents SET body = ?, body_hash = ?, dedup_key = ? WHERE id = ?", values)


def get(connection: sqlite3.Connection, intent_id: str) -> Intent | None:
    """Return an intent by its id, or None."""
    return next(iter(_select(connection, "id = ?", intent_id)), None)


def at_address(connection: sqlite3.Connection, uri: str) -> Intent | None:
    """Return the intent whose record is, or would be, at `uri`, or None; record keys are unique."""
    return next(iter(_select(connection, "rkey = ?", uri.rpartition("/")[2])), None)


def cancel_unsent(connection: sqlite3.Connection, uri: str) -> None:
    """Withdraw the unsent intent at `uri`, so that its deletion need not send it first; leave one that was sent."""
    unwanted = at_address(connection, uri)
    if unwanted is not None and unwanted.is_unsent:
        update(connection, dataclasses.replace(unwanted, state="blocked", error=STANDS["withdrawn"]))


def withdraw_reaching(
    connection: sqlite3.Connection, did: str, reason: str, which: Callable[[Intent], bool] = bool
) -> list[Intent]:
    """Withdraw the unsent acts and drafts that would reach an account, or those `which` returns true for.

    Return what was withdrawn, newest first.
    """
    # NOTE(self): "0" is the character after "/", so this range holds the records of this account only.
    told = "iif(json_valid(body), ? IN (body ->> 'to', body ->> 'told_to'), 0)"
    reaches = f"(target = ? OR (target > ? AND target < ?) OR {told})"
    unsent = f"state IN ('held', 'pending') AND first_sent_at IS NULL AND kind <> 'delete' AND {reaches}"
    reaching = _select(connection, unsent, did, f"at://{did}/", f"at://{did}0", did)
    return _withdrawn(connection, filter(which, reaching), reason)


def withdraw_begun(connection: sqlite3.Connection, prefix: str, reason: str) -> list[Intent]:
    """Withdraw the unsent acts and drafts whose target begins with `prefix`, except messages to a room; return them."""
    begins = "target >= ? AND target < ? || char(1114111) AND kind <> 'space_chat'"
    unsent = f"state IN ('held', 'pending') AND first_sent_at IS NULL AND {begins}"
    return _withdrawn(connection, _select(connection, unsent, prefix, prefix), reason)


def _withdrawn(connection: sqlite3.Connection, intents: Iterable[Intent], reason: str) -> list[Intent]:
    error = f"{STANDS['withdrawn']}: {reason}"
    found = [dataclasses.replace(one, state="blocked", error=error) for one in intents]
    for intent in found:
        update(connection, intent)
    return found


def overtake(connection: sqlite3.Connection, newest: Intent) -> None:
    """Make `newest`, which is not stored yet, replace all earlier intents of its kind for its target.

    Unsent ones are blocked, unless `newest` waits for an approval that may not come.
    """
    for older in by_target(connection, newest.kind, newest.target):
        if older.is_unsent and newest.state == "pending":
            update(connection, dataclasses.replace(older, state="blocked", error=REPLACED))
    earlier = "UPDATE intents SET undone = 1 WHERE kind = ? AND target = ?"
    connection.execute(earlier, (newest.kind, newest.target))


def waits_for_another(connection: sqlite3.Connection, intent: Intent) -> bool:
    """Return whether an intent depends on an unfinished one: its post, its branch, or an earlier rule on replies."""
    on_its_way = {"pending", "sending"}
    if intent.kind == "delete":
        post = at_address(connection, intent.target)
        return post is not None and post.state in on_its_way
    if isinstance(pull := intent.body, PullRequestBody):
        pushes = [one for one in by_cause(connection, intent.cause_id or "") if one.state in on_its_way | {"held"}]
        return any(isinstance(one.body, PushBody) and one.body.branch == pull.head for one in pushes)
    if intent.kind != "threadgate":
        return False
    post, earlier = at_address(connection, intent.target), by_target(connection, "threadgate", intent.target)
    return (post is not None and post.state in on_its_way | {"held"}) or any(
        one.state in on_its_way and one.created_at < intent.created_at for one in earlier
    )


def mark_undone(connection: sqlite3.Connection, uri: str) -> None:
    """Note that the record at `uri` was deleted, so that the follow, like or repost that made it may be repeated."""
    connection.execute(f"UPDATE intents SET undone = 1 WHERE result_uri = ? AND {_REPEATABLE}", (uri,))  # noqa: S608 - a constant


def mark_all_undone(connection: sqlite3.Connection) -> None:
    """Allow all follows, likes and reposts again, because another account acts from now on."""
    connection.execute(f"UPDATE intents SET undone = 1 WHERE state = 'done' AND {_REPEATABLE}")  # noqa: S608 - a constant


def in_state(connection: sqlite3.Connection, state: IntentState) -> list[Intent]:
    """Return the intents in `state`, newest first."""
    return _select(connection, "state = ?", state)


def scheduled(connection: sqlite3.Connection) -> list[Intent]:
    """Return the intents that wait for a scheduled time, even if they need approval first; the latest first."""
    waiting = "state IN ('held', 'pending') AND scheduled_for IS NOT NULL AND first_sent_at IS NULL"
    return sorted(_select(connection, waiting), key=lambda one: one.scheduled_for or "", reverse=True)


def due_for_recheck(connection: sqlite3.Connection, until: datetime) -> list[Intent]:
    """Return the done intents that must be checked for duplicates by then, newest first."""
    return _select(connection, "state = 'done' AND not_before IS NOT NULL AND not_before <= ?", iso(until))


def next_moment(connection: sqlite3.Connection) -> str | None:
    """Return when the outbox next has something to do: ISO-8601, "" for now or an unknown time, None for never.

    What waits for the owner's approval does not count.
    """
    leave = expected(connection)
    moments = [
        leave[one.id].at if one.id in leave else (one.scheduled_for or "") if one.is_unsent else ""
        for one in (*in_state(connection, "pending"), *in_state(connection, "sending"))
    ]
    again = connection.execute("SELECT min(not_before) FROM intents WHERE state = 'done'").fetchone()[0]
    return min([*moments, *([str(again)] if again else [])], default=None)


def starting_with(connection: sqlite3.Connection, prefix: str) -> list[Intent]:
    """Return the intents whose id begins with `prefix` (hexadecimal digits), newest first."""
    return _select(connection, "id GLOB ?", f"{prefix}*")


def by_cause(connection: sqlite3.Connection, cause_id: str) -> list[Intent]:
    """Return the intents with this cause, newest first."""
    return _select(connection, "cause_id = ?", cause_id)


def by_target(connection: sqlite3.Connection, kind: IntentKind, target: str) -> list[Intent]:
    """Return the intents of a kind for one target, newest first."""
    return _select(connection, "target = ? AND kind = ?", target, kind)


def is_deleted(connection: sqlite3.Connection, intent: Intent) -> bool:
    """Return whether the result of an act was deleted."""
    deletions = by_target(connection, "delete", intent.result_uri) if intent.result_uri else []
    return any(one.state == "done" for one in deletions)


def is_accepted(connection: sqlite3.Connection, kind: IntentKind, prefix: str, *, unfinished: bool = False) -> bool:
    """Return whether an intent of a kind whose target begins with `prefix` was accepted; `unfinished`: not done yet."""
    begins = "target >= ? AND target < ? || char(1114111) AND kind = ?"
    query = f"SELECT 1 FROM intents WHERE {begins} AND {_ACTIVE} AND NOT (? AND state = 'done') LIMIT 1"  # noqa: S608 - constants
    return connection.execute(query, (prefix, prefix, kind, unfinished)).fetchone() is not None


def responds_to(connection: sqlite3.Connection, did: str, since: datetime) -> bool:
    """Return whether a reply to or a like of a record of this account was accepted since then."""
    # NOTE(self): "0" is the character after "/", so this range holds the records of this account only.
    query = (
        "SELECT 1 FROM intents WHERE target > ? AND target < ? AND kind IN ('reply', 'like')"  # noqa: S608 - constants
        f" AND {_ACTIVE} AND created_at >= ? LIMIT 1"
    )
    return connection.execute(query, (f"at://{did}/", f"at://{did}0", iso(since))).fetchone() is not None


def counts(connection: sqlite3.Connection) -> dict[IntentState, int]:
    """Return how many intents are in each state."""
    return {row[0]: row[1] for row in connection.execute("SELECT state, count(*) FROM intents GROUP BY state")}


_DID = """state = 'done' AND sent_at >= ? AND NOT
    (kind = 'direct_message' AND json_valid(body) AND coalesce(json_extract(body, '$.is_notice'), 0))
    AND coalesce(result_uri, '') NOT IN (SELECT target FROM intents WHERE kind = 'delete' AND state = 'done')"""
"""Matches what the SOUL did since a moment, without what it deleted and the program's notices to the owner."""


def done_since(connection: sqlite3.Connection, moment: str) -> dict[IntentKind, int]:
    """Return how many acts of each kind the SOUL did at `moment` (ISO-8601) or later, by name of the kind."""
    query = f"SELECT kind, count(*) FROM intents WHERE {_DID} GROUP BY kind ORDER BY kind"  # noqa: S608 - a constant
    return {row[0]: row[1] for row in connection.execute(query, (moment,))}


def left_between(connection: sqlite3.Connection, moment: str, until: str) -> list[Intent]:
    """Return the acts that the SOUL did at `moment` or later, before `until` (ISO-8601), newest first."""
    return _select(connection, f"{_DID} AND sent_at < ?", moment, until)


def ordered_between(connection: sqlite3.Connection, moment: str, until: str) -> list[Intent]:
    """Return what was proposed in that time and the owner ordered, approved or rejected, newest first.

    Replaced acts are left out, and so are undecided drafts whose words or target the order did not give.
    """
    theirs = "rejected OR by_owner AND NOT (own_words AND state IN ('held', 'expired'))"
    where = f"({theirs}) AND coalesce(error, '') <> ? AND created_at >= ? AND created_at < ?"
    return _select(connection, where, REPLACED, moment, until)


def rejections(connection: sqlite3.Connection, moment: str, most: int) -> list[tuple[IntentKind, str]]:
    """Return the kind of each act proposed since `moment` that the owner rejected with a reason, and it; newest first.

    Acts that were decided together count once, and at most `most` are returned.
    """
    begins = f"{STANDS['rejected']}: "
    query = """
        SELECT kind, substr(error, ?1) FROM intents WHERE rejected AND instr(error, ?2) = 1 AND created_at >= ?3
        GROUP BY error ORDER BY max(created_at) DESC LIMIT ?4
    """
    rows = connection.execute(query, (len(begins) + 1, begins, moment, most))
    return [(row[0], str(row[1])) for row in rows]


def done_at_since(connection: sqlite3.Connection, moment: str) -> list[str]:
    """Return when each done act left that left at `moment` (ISO-8601) or later."""
    query = "SELECT sent_at FROM intents WHERE state = 'done' AND sent_at >= ?"
    return [row[0] for row in connection.execute(query, (moment,))]


def last_done(connection: sqlite3.Connection) -> str:
    """Return when the latest done act left, ISO-8601; "" if there is none."""
    return _moment(connection, "SELECT max(sent_at) FROM intents WHERE state = 'done'")


def first_words(connection: sqlite3.Connection) -> str:
    """Return when the first post or reply left, ISO-8601; "" if none did."""
    return _moment(connection, "SELECT min(sent_at) FROM intents WHERE state = 'done' AND kind IN ('post', 'reply')")


def about(connection: sqlite3.Connection, intent_id: str, posts: Iterable[str]) -> list[Intent]:
    """Return the intent with this id, and all that these posts caused or that target them, oldest first."""
    listed = json.dumps(list(posts))
    anew = "SELECT value FROM json_each(?)"
    return _select(connection, f"id = ? OR cause_id IN ({anew}) OR target IN ({anew})", intent_id, listed, listed)[::-1]


def opened_at(connection: sqlite3.Connection, url: str) -> Intent | None:
    """Return the intent that opened the issue at `url`, or None."""
    return next(iter(_select(connection, "kind = 'issue' AND result_uri = ? AND state = 'done'", url)), None)


def opened_thread(connection: sqlite3.Connection, repo: str, number: str) -> Intent | None:
    """Return the intent that opened this issue or pull request of `repo`, ignoring case, or None."""
    ends = [f"/{repo}/{part}/{number}".lower() for part in ("issues", "pull")]
    where = "kind IN ('issue', 'pull_request') AND substr(lower(result_uri), -length(?)) = ?"
    return next((one for end in ends for one in _select(connection, where, end, end)), None)


def at_result(connection: sqlite3.Connection, uri: str, *, any_case: bool = False) -> Intent | None:
    """Return the intent whose result is at `uri`, or None; `any_case` ignores case."""
    return next(iter(_select(connection, f"result_uri = ?{' COLLATE NOCASE' if any_case else ''}", uri)), None)


def unsent_with_key(connection: sqlite3.Connection, rkey: str) -> Intent | None:
    """Return the intent with this record key if it has no result on the network yet, else None."""
    return next(iter(_select(connection, "rkey = ? AND coalesce(result_uri, '') = ''", rkey)), None)


def names(connection: sqlite3.Connection, uri: str) -> bool:
    """Return whether an intent targets this record, or was caused by it."""
    query = "SELECT EXISTS (SELECT 1 FROM intents WHERE target = :it OR cause_id = :it)"
    return bool(connection.execute(query, {"it": uri}).fetchone()[0])


def uris_ending_in(connection: sqlite3.Connection, tail: str) -> set[str]:
    """Return the URIs of targets and results of intents that end in `tail`."""
    query = """
        SELECT target FROM intents WHERE substr(target, -length(:tail)) = :tail
        UNION SELECT result_uri FROM intents WHERE substr(result_uri, -length(:tail)) = :tail
    """
    return {str(row[0]) for row in connection.execute(query, {"tail": tail})}


def results_in_conversation(connection: sqlite3.Connection, conversation_id: str, *, without: str) -> set[str]:
    """Return the names of the direct messages in a conversation that intents made, except the intent `without`."""
    query = """
        SELECT result_uri FROM intents
        WHERE kind = 'direct_message' AND substr(result_uri, 1, length(:prefix)) = :prefix AND id <> :without
    """
    values = {"prefix": message_name(conversation_id, ""), "without": without}
    return {str(row[0]) for row in connection.execute(query, values)}


def another_goes_first(connection: sqlite3.Connection, intent: Intent, body: DirectMessageBody, now: datetime) -> bool:
    """Return whether another direct message to a conversation goes first: one being sent, or else an older one.

    One that waits for a retry, because it is not known whether it arrived, holds back only the other parts of the same
    answer and messages with the same words, which could not be told from it. Expired ones do not count.
    """
    query = """
        SELECT 1 FROM (SELECT *, iif(json_valid(body), body, '{}') AS told FROM intents
            WHERE kind = 'direct_message' AND state IN ('pending', 'sending') AND id <> :id AND expires_at > :now
            AND (state > :state OR (state = :state AND (created_at, id) < (:created, :id))))
        WHERE told ->> 'conversation_id' = :conversation AND (coalesce(not_before, '') <= :now
            OR trim(told ->> 'text') = trim(:text) OR (told ->> 'answers' = :answers AND :answers <> '')) LIMIT 1
    """
    its = {"id": intent.id, "state": intent.state, "created": intent.created_at, "now": iso(now)}
    ours = {"conversation": body.conversation_id, "text": body.text, "answers": body.answers}
    return connection.execute(query, its | ours).fetchone() is not None


def at_place(
    connection: sqlite3.Connection, kinds: Collection[IntentKind], place: str, *, since: str = ""
) -> list[Intent]:
    """Return all of these kinds in one place, accepted at `since` or later, newest first.

    A place is an issue (`owner/name#7`) or a repository in lower case, the root of a thread, or a conversation.
    """
    return _select(connection, f"place = ? AND created_at >= ? AND kind IN ({_marks(kinds)})", place, since, *kinds)


def since(connection: sqlite3.Connection, kinds: Collection[IntentKind], moment: datetime) -> list[Intent]:
    """Return all of these kinds that were accepted at `moment` or later, newest first."""
    return _select(connection, f"created_at >= ? AND +kind IN ({_marks(kinds)})", iso(moment), *kinds)


def of_kind(connection: sqlite3.Connection, kind: IntentKind, limit: int) -> list[Intent]:
    """Return the last `limit` intents of a kind, newest first."""
    return _select(connection, "kind = ?", kind, limit=limit)


def said_by_owner(
    connection: sqlite3.Connection, kinds: Collection[IntentKind], repo: str, since: str
) -> Intent | None:
    """Return the newest intent of these kinds in a repository since then that the owner rejected, else let out.

    `repo` is `owner/name` in any case; None if there is none. One that was withdrawn, or never decided, says nothing.
    """
    of_kind = f"created_at >= ? AND kind IN ({_marks(kinds)})"
    place = "lower(iif(json_valid(body), body, '{}') ->> 'repo') = lower(?)"
    no = "rejected AND instr(coalesce(error, ''), ?) <> 1"
    yes = "by_owner AND NOT (state IN ('held', 'blocked') OR (state = 'expired' AND own_words))"
    where, values = f"{of_kind} AND {place}", (since, *kinds, repo)
    rejected = _select(connection, f"{where} AND {no}", *values, STANDS["withdrawn"], limit=1)
    return next(iter(rejected or _select(connection, f"{where} AND {yes}", *values, limit=1)), None)


def active_on_target(connection: sqlite3.Connection, kind: IntentKind, target: str) -> Intent | None:
    """Return the active intent of this kind for this target that was not undone, or None."""
    return next(iter(_select(connection, f"kind = ? AND target = ? AND undone = 0 AND {_ACTIVE}", kind, target)), None)


def active_with_picture(connection: sqlite3.Connection, action: ProposedAction) -> Intent | None:
    """Return the newest active post or reply that shows a picture of `action`; None if none does."""
    if not isinstance(action.body, PostBody | ReplyBody):
        return None
    found = (with_picture(connection, picture.sha256) for picture in action.body.pictures)
    return next(filter(None, found), None)


def with_picture(connection: sqlite3.Connection, sha256: str) -> Intent | None:
    """Return the newest active post or reply that shows the picture with that hash, in hexadecimal digits; or None."""
    holds = f"kind IN ('post', 'reply') AND instr(body, ?) > 0 AND {_ACTIVE}"
    return next(iter(_select(connection, holds, f'"sha256":"{sha256}"', limit=1)), None)


def unsent_pictures(connection: sqlite3.Connection) -> set[str]:
    """Return the hashes of the pictures of acts that wait for approval or to be sent."""
    waiting = _select(connection, "kind IN ('post', 'reply') AND state IN ('held', 'pending', 'sending')")
    bodies = [one.body for one in waiting if isinstance(one.body, PostBody | ReplyBody)]
    return {picture.sha256 for body in bodies for picture in body.pictures}


def unique_created_at(connection: sqlite3.Connection, now: datetime) -> datetime:
    """Return `now`, or the next millisecond at which no intent was created: record keys are derived from it."""
    moment = now
    while connection.execute("SELECT 1 FROM intents WHERE created_at = ?", (iso(moment),)).fetchone():
        moment += _TICK
    return parse_iso(iso(moment))


def _marks(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))


def _moment(connection: sqlite3.Connection, query: str) -> str:
    return str(connection.execute(query).fetchone()[0] or "")


def _select(connection: sqlite3.Connection, where: str, *values: object, limit: int = -1) -> list[Intent]:
    query = f"SELECT {_COLUMNS} FROM intents WHERE {where} ORDER BY created_at DESC LIMIT ?"  # noqa: S608 - constants
    return [_intent(row) for row in connection.execute(query, (*values, limit))]


def _values(intent: Intent) -> list[object]:
    return [intent.body.as_json if name == "body" else getattr(intent, name) for name in _FIELDS]


def _intent(row: sqlite3.Row) -> Intent:
    fields = dict(row)
    flags = {name: bool(fields[name]) for name in ("urgent", "by_owner", "rejected", "own_words")}
    return Intent(**{**fields, **flags, "body": parse_body(fields["kind"], fields["body"])})


FEED_KEYS_MAX = 5000
ONCE = "once:"
"""The prefix of the deduplication key of something that is said only once, in whatever words."""


def in_feed(connection: sqlite3.Connection, key: str) -> bool:
    """Return whether the feed already shows the words with this key."""
    return connection.execute("SELECT 1 FROM feed_keys WHERE key = ?", (key,)).fetchone() is not None


def feed_shows(connection: sqlite3.Connection, uri: str) -> bool:
    """Return whether the SOUL's own feed showed this record."""
    return connection.execute("SELECT 1 FROM feed_keys WHERE uri = ?", (uri,)).fetchone() is not None


def forget_feed_but(connection: sqlite3.Connection, still_shown: Sequence[str]) -> None:
    """Forget what the SOUL's own feed showed, except the posts in `still_shown`."""
    query = "DELETE FROM feed_keys WHERE uri NOT IN (SELECT value FROM json_each(?))"
    connection.execute(query, (json.dumps(still_shown),))


def forget_words(connection: sqlite3.Connection, uri: str) -> None:
    """Forget the words of the deleted record at `uri`, so that they may be said again, unless said only `ONCE`."""
    connection.execute("DELETE FROM feed_keys WHERE uri = ? AND key NOT GLOB ?", (uri, f"{ONCE}*"))


def remember_words(connection: sqlite3.Connection, keys: Iterable[tuple[str, str]], at: datetime) -> int:
    """Remember `(key, uri)` pairs, oldest first, and forget the oldest above the cap; return how many were new."""
    before = connection.total_changes
    connection.executemany("INSERT OR IGNORE INTO feed_keys VALUES (?, ?, ?)", [(*pair, iso(at)) for pair in keys])
    added = connection.total_changes - before
    connection.execute(
        "DELETE FROM feed_keys WHERE rowid <= (SELECT rowid FROM feed_keys ORDER BY rowid DESC LIMIT 1 OFFSET ?)",
        (FEED_KEYS_MAX,),
    )
    return added


_NUMBERS = "draft_numbers"
_MOST_NUMBERS, _MOST_PAST = 999, 200
_ON_THE_WAY = "state = 'pending' AND first_sent_at IS NULL AND kind <> 'direct_message'"
_NUMBERED = f"SELECT id FROM intents WHERE state = 'held' OR ({_ON_THE_WAY}) ORDER BY created_at"  # noqa: S608 - a constant


def on_the_way(connection: sqlite3.Connection) -> list[Intent]:
    """Return the unsent intents that need no approval, without direct messages, by when they are due."""
    return sorted(_select(connection, _ON_THE_WAY), key=lambda one: one.scheduled_for or one.created_at)


def number_drafts(connection: sqlite3.Connection, others: Iterable[str] = ()) -> None:
    """Number new waiting acts and `others`; what no longer waits keeps its number while it is free and recent."""
    waiting = [*(str(row[0]) for row in connection.execute(_NUMBERED)), *others]
    kept = marks.get(connection, _NUMBERS)
    last, before = _read_numbers(kept)
    numbers = {one: before[one] for one in waiting if one in before}
    for one in waiting:
        while one not in numbers:
            last = last % max(_MOST_NUMBERS, len(waiting)) + 1
            if last not in numbers.values():
                numbers[one] = last
    past = [(one, number) for one, number in before.items() if one not in numbers and number not in numbers.values()]
    text = json.dumps({"last": last, "of": dict(past[-_MOST_PAST:]) | numbers})
    if text != kept and (kept or numbers):
        marks.put(connection, {_NUMBERS: text})


def pass_number_on(connection: sqlite3.Connection, before: str, after: str) -> None:
    """Pass the number of a waiting act, and its held changes, to the act that replaced it."""
    last, numbers = _read_numbers(marks.get(connection, _NUMBERS))
    numbers = {after if one == before else one: number for one, number in numbers.items() if one != after}
    marks.put(connection, {_NUMBERS: json.dumps({"last": last, "of": numbers})})
    connection.execute("UPDATE intents SET replaces = ? WHERE replaces = ? AND id <> ?", (after, before, after))


def draft_numbers(connection: sqlite3.Connection) -> dict[str, int]:
    """Return the numbers of the waiting acts, and of those that waited recently, by id."""
    return _read_numbers(marks.get(connection, _NUMBERS))[1]


def _read_numbers(text: str) -> tuple[int, dict[str, int]]:
    """Return the last number given, and the numbers by id."""
    if not text:
        return 0, {}
    stored = json.loads(text)
    return stored["last"], stored["of"]


_UNMETERED_KINDS = ", ".join(repr(kind) for kind in sorted(UNMETERED_KINDS))


def last_acts(connection: sqlite3.Connection, now: datetime) -> dict[Lane, datetime]:
    """Return when an act was last sent in each lane in the last day, ignoring future times of a clock set back since.

    The lane depends on the target only for deletions.
    """
    # NOTE(self): the plus keeps SQLite from using the index on the state: nearly all that was ever sent is done.
    rows = connection.execute(
        "SELECT kind, iif(kind = 'delete', target, '') AS of, max(sent_at) FROM intents"
        " WHERE sent_at BETWEEN ? AND ? AND +state IN ('sending', 'done') GROUP BY kind, of",
        (iso(now - timedelta(days=1)), iso(now)),
    )
    latest: dict[Lane, datetime] = {}
    for kind, target, sent_at in rows:
        lane, moment = lane_of(kind, target), parse_iso(sent_at)
        latest[lane] = max(moment, latest.get(lane, moment))
    return latest


def last_departures(connection: sqlite3.Connection, now: datetime, most: int) -> list[datetime]:
    """Return when the SOUL's own latest acts on Bluesky were sent in the last day, at most `most`, newest first."""
    rows = connection.execute(
        f"SELECT sent_at FROM intents WHERE sent_at BETWEEN ? AND ? AND +state IN ('sending', 'done')"  # noqa: S608 - constants
        f" AND NOT urgent AND NOT by_owner AND kind NOT IN ({_UNMETERED_KINDS}) ORDER BY sent_at DESC LIMIT ?",
        (iso(now - timedelta(days=1)), iso(now), most),
    )
    return [parse_iso(row[0]) for row in rows]


def last_active(connection: sqlite3.Connection, kind: IntentKind) -> datetime | None:
    """Return when the latest active intent of a kind was accepted or, if that is later, sent; None for none."""
    query = f"SELECT max(max(created_at, coalesce(sent_at, ''))) FROM intents WHERE kind = ? AND {_ACTIVE}"  # noqa: S608 - a constant
    found = connection.execute(query, (kind,)).fetchone()[0]
    return parse_iso(found) if found else None


def active_since(connection: sqlite3.Connection, kind: IntentKind, moment: datetime) -> int:
    """Return how many active intents of a kind were accepted at `moment` or later."""
    query = f"SELECT count(*) FROM intents WHERE kind = ? AND created_at >= ? AND {_ACTIVE}"  # noqa: S608 - a constant
    return int(connection.execute(query, (kind, iso(moment))).fetchone()[0])

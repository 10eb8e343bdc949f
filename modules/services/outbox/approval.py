"""Approvals and rejections as steps of a transaction, for all processes; tells the owner when an approved act leaves.

An approved intent keeps its record key and waits for its turn like any other; the running SOUL finds it by itself.
"""

import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Literal

from common.clock import iso, local, parse_iso
from common.errors import NotWaiting, PolicyBlocked
from modules.runtime.control import Standing
from modules.runtime.journal.types import Entry
from modules.services.outbox import audit, policy, store
from modules.services.outbox.audit import SHORT_ID_CHARS
from modules.services.outbox.bodies import DirectMessageBody, IntentBody, IntentKind, PostBody, ReplyBody
from modules.services.outbox.departures import Departure, told
from modules.services.outbox.github_bodies import IssueBody, IssueCommentBody, PullRequestBody, PushBody
from modules.services.outbox.store import ONCE
from modules.services.outbox.types import ACTIVE_STATES, REPLACED, STANDS, Intent, ProposedAction, Rule

WORDED: frozenset[IntentKind] = frozenset({"post", "reply"})
"""The acts with words of which a draft stays a draft when its words change."""
_EDITABLE = (PostBody, ReplyBody, DirectMessageBody, IssueBody, IssueCommentBody)
_CHANGES_DRAFT = "it changes a draft, which stays one"
_LEAST_CHARS = 4
_NUMBER = re.compile(r"[0-9]{1,3}")
_ANSWER = re.compile(
    r"(?:(yes|approve)|no|reject)(?:((?:[\s,]+[0-9]{1,3})+)|\s+(all|[0-9]{1,3})(?:[\s:,.!]+(.*))?)?[\s.!]*",
    re.IGNORECASE | re.DOTALL,
)
_PREFIX = re.compile(r"[0-9a-f]{4,32}")
_SHOW = "`soul drafts` (or /drafts) shows what waits, `soul today` what has left."


def held(connection: sqlite3.Connection) -> list[Intent]:
    """Return what waits for the owner's approval, oldest first."""
    return store.in_state(connection, "held")[::-1]


def waiting(connection: sqlite3.Connection) -> list[Intent]:
    """Return what waits for the owner's approval, oldest first, and then what waits to leave, by when it is due."""
    return [*held(connection), *store.on_the_way(connection)]


def find(connection: sqlite3.Connection, given: str) -> Intent:
    """Return the waiting act with a number, an id, or 4 or more first characters of an id.

    Raises:
        NotWaiting: no waiting act matches, or more than one does.

    """
    given = asked = given.strip().lower()
    if not given:
        raise NotWaiting(
            f"No draft is named: give its number, its id, or at least {_LEAST_CHARS} characters of it", remedy=_SHOW
        )
    if _NUMBER.fullmatch(given):
        numbers = store.draft_numbers(connection)
        given = next((of for of, number in numbers.items() if number == int(given) and _PREFIX.fullmatch(of)), "")
        if not given:
            raise NotWaiting(f"No draft has the number {asked}", remedy=_SHOW)
    if len(given) < _LEAST_CHARS:
        raise NotWaiting(f"{given!r} is too short: give at least {_LEAST_CHARS} characters of the id", remedy=_SHOW)
    if not _PREFIX.fullmatch(given):
        raise NotWaiting(
            f"{given!r} cannot be a draft's id: ids have only the digits 0-9 and the letters a-f", remedy=_SHOW
        )
    meant = [intent for intent in waiting(connection) if intent.id.startswith(given)]
    if len(meant) > 1:
        raise NotWaiting(f"{len(meant)} drafts begin with {given}", remedy="Give more characters of the id.")
    if meant:
        return meant[0]
    if past := store.starting_with(connection, given):
        why = f" ({past[0].error})" if past[0].error else ""
        raise NotWaiting(f"{asked} does not wait any more: it is {past[0].state}{why}", remedy=_SHOW)
    raise NotWaiting(f"No draft has the id {given}", remedy=_SHOW)


def read_answer(line: str) -> tuple[bool, str, str] | None:
    """Return whether a line is a yes, its targets (numbers, `all` or ""), and the reason; None if it is no answer.

    A yes with more words, such as "yes 2 but shorter", is not an answer.
    """
    found = _ANSWER.fullmatch(line.strip())
    if found is None or (found[1] and found[4]):
        return None
    return bool(found[1]), found[2] or found[3] or "", found[4] or ""


def as_command(connection: sqlite3.Connection, line: str) -> str:
    """Return the owner's line as a command: `/approve 8` for "yes 8", `/reject 8 no` for "no 8 no".

    A line is unchanged if it is not an answer, if there are no drafts, or if it gives a reason but not one waiting act.
    """
    answer, of = read_answer(line), store.draft_numbers(connection)
    is_yes, which, why = answer or (False, "", "")
    numbers = _NUMBER.findall(which)
    if not (numbers and of):
        return line
    if why and ([int(one) for one in numbers] not in [[of.get(one.id)] for one in waiting(connection)]):
        return line
    return f"/{'approve' if is_yes else 'reject'} {' '.join(numbers)} {why}".rstrip()


def find_all(connection: sqlite3.Connection, given: Sequence[str]) -> list[str]:
    """Return the ids of the waiting acts with these names, each once. Raises `NotWaiting` if one name matches none."""
    with _all_or_none(given):
        return [*dict.fromkeys(find(connection, one).id for one in given)]


@contextmanager
def _all_or_none(given: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except NotWaiting as problem:
        more = "; nothing was decided about the others" if len(given) > 1 else ""
        raise NotWaiting(f"{problem}{more}", remedy=problem.remedy) from None


def _decide(
    connection: sqlite3.Connection, given: Sequence[str], decision: Callable[[str], Entry]
) -> tuple[list[Intent], list[Entry]]:
    """Decide on all these acts, each once; return them as they then stand. Raises `NotWaiting` for all if for one."""
    before = [store.get(connection, one) for one in find_all(connection, given)]
    with _all_or_none(given):
        # NOTE(self): an act that changed meanwhile was decided with another one, as a push with its pull request.
        entries = [decision(one.id) for one in before if one and store.get(connection, one.id) == one]
    after = (store.get(connection, one.id) for one in before if one)
    return [one for one in after if one], entries


def approve(connection: sqlite3.Connection, given: Sequence[str], now: datetime) -> tuple[list[Intent], list[Entry]]:
    """Approve intents, and with the push of a task its pull request, all or none; they leave in their turn.

    Raises `NotWaiting`.
    """
    return _decide(connection, given, lambda intent_id: _approve(connection, intent_id, now))


def _approve(connection: sqlite3.Connection, intent_id: str, now: datetime) -> Entry:
    intent = _living(connection, intent_id, now)
    if intent.state != "held":
        raise NotWaiting(f"{_named(connection, intent)} needs no approval: it leaves by itself", remedy=_SHOW)
    _take_place(connection, intent)
    approved, *others = [_approved(one, now) for one in (intent, *_decided_with(connection, intent))]
    for one in (approved, *others):
        store.update(connection, one)
    if approved.kind == "delete":
        store.cancel_unsent(connection, approved.target)
    return audit.approved(approved)


def edit(
    connection: sqlite3.Connection, intent_id: str, text: str, rules: Sequence[Rule], now: datetime
) -> tuple[Intent, Entry]:
    """Give an act the owner's words (`editable_text`), check it with `rules` like a proposal, and approve it.

    Raises:
        NotWaiting: it does not wait for approval, or has no words to edit.
        PolicyBlocked: a rule forbids these words; nothing is changed.

    """
    intent = _living(connection, intent_id, now)
    if intent.state != "held" or not isinstance(intent.body, _EDITABLE):
        problem = "cannot be edited: only a post, reply, direct message, issue or comment awaiting your approval can"
        raise NotWaiting(f"{_named(connection, intent)} {problem}", remedy=_SHOW)
    if isinstance(intent.body, IssueBody | IssueCommentBody):
        # NOTE(self): the hidden marks around the words stay.
        changed = {"body": intent.body.body.replace(intent.body.words, text) if intent.body.words else text}
    else:
        changed = {"text": text, **({"promise": ""} if isinstance(intent.body, ReplyBody) else {})}
    body = intent.body.model_copy(update=changed)
    pictures = body.pictures if isinstance(body, PostBody | ReplyBody) else ()
    media, once = "+".join(one.sha256 for one in pictures) or None, ""
    if intent.dedup_key.startswith(ONCE):
        once = intent.dedup_key.removeprefix(ONCE)
    action = ProposedAction(body, media_id=media, once=once, cause_id=intent.cause_id, by_owner=True)
    store.update(connection, replace(intent, state="blocked"))  # so that it does not count as its own duplicate
    said = [verdict for rule in rules for verdict in rule(connection, action, now)]
    before = store.stored_before(connection, action, now)
    found = policy.admit(action, said, before, intent_id=intent.id, now=now).intent
    if found.state == "blocked":
        raise PolicyBlocked(f"These words may not leave: {found.error}", remedy="The draft still waits as it was.")
    body_hash = hashlib.sha256(body.as_json.encode()).hexdigest()
    edited = replace(_approved(intent, now), body=body, body_hash=body_hash, dedup_key=action.dedup_key)
    _take_place(connection, edited)
    store.update(connection, edited)
    store.reword(connection, edited)
    return edited, audit.edited(edited, editable_text(intent.body), text)


def editable_text(body: IntentBody) -> str:
    """Return the words of an act that the owner may replace, without the title of an issue."""
    return body.words if isinstance(body, IssueBody | IssueCommentBody) else body.short_preview


def _approved(intent: Intent, now: datetime) -> Intent:
    expires_at = policy.approved_expires_at(intent, now)
    return replace(intent, state="pending", error=None, by_owner=True, own_words=False, expires_at=expires_at)


Stopped = Literal["rejected", "withdrawn"]


def reject(
    connection: sqlite3.Connection, given: Sequence[str], reason: str, now: datetime, outcome: Stopped = "rejected"
) -> tuple[list[Intent], list[Entry]]:
    """Reject or withdraw intents, those decided with them, and their held changes, all or none. Raises `NotWaiting`."""
    return _decide(connection, given, lambda intent_id: _reject(connection, intent_id, reason, now, outcome))


def _reject(connection: sqlite3.Connection, intent_id: str, reason: str, now: datetime, outcome: Stopped) -> Entry:
    intent = _living(connection, intent_id, now)
    why = "the owner asked for it" if outcome == "withdrawn" else " ".join(reason.split())
    error = ": ".join(filter(None, (STANDS[outcome], why)))
    rejected = replace(intent, state="blocked", error=error, rejected=True)
    store.update(connection, rejected)
    changes = [one for one in held(connection) if one.replaces == intent.id]
    for other in (*_decided_with(connection, intent), *changes):
        store.update(connection, replace(other, state="blocked", error=error, rejected=True))
    return audit.stopped(rejected)


def make_way(connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> list[Intent]:
    """Block the waiting act that an action of the owner's turn replaces, and a held change to the same words.

    A post or reply that needs no approval is replaced only by what the owner asked for in a turn with their own words
    alone, and comes back if that needs approval. Any other change replaces only a held change of it. The draft of
    another act gives way to the same act, ordered in such a turn. What is blocked is returned as it was before.
    """
    if (meant := _in_the_way(connection, action, now)) is None:
        return []
    change = _change_of(connection, meant) if meant.state != "held" else None
    found = [meant, *([change] if change and change.dedup_key == action.dedup_key else [])]
    for one in found:
        store.update(connection, replace(one, state="blocked", error=REPLACED))
    return found


def _in_the_way(connection: sqlite3.Connection, action: ProposedAction, now: datetime) -> Intent | None:
    if not action.is_for_owner:
        return None
    before = store.stored_before(connection, action, now)
    if action.kind not in WORDED:
        meant = before.same_act if action.by_owner and not action.hold else None
        return meant if meant and meant.state == "held" else None
    same = before.same_act or (before.same_text if action.kind == "post" else None)
    meant = store.get(connection, action.replaces) if action.replaces else same
    if meant and meant.state != "held" and not action.by_owner:
        meant = _change_of(connection, meant)
    if meant is None or meant.kind != action.kind or not meant.is_unsent:
        return None
    moment = iso(action.scheduled_for) if action.scheduled_for else None
    is_same = (meant.body, meant.scheduled_for) == (action.body, moment)
    return None if is_same and not (action.is_given and meant.state == "held") else meant


def stays_held(older: Intent | None, action: ProposedAction) -> str:
    """Return why an action that takes the place of `older` waits like that, with the reasons of `older`; else ""."""
    if older is None or older.state != "held" or older.kind not in WORDED or action.is_given:
        return ""
    before = (older.error or "").partition(": ")[0]  # what was said of its words is not of these
    return before if _CHANGES_DRAFT in before else "; ".join(filter(None, (before, _CHANGES_DRAFT)))


def restored(connection: sqlite3.Connection, older: Intent) -> Intent | None:
    """Let `older` wait to leave again, because its change is held; return the earlier held change, now blocked."""
    store.update(connection, older)
    if earlier := _change_of(connection, older):
        store.update(connection, replace(earlier, state="blocked", error=REPLACED))
    return earlier


def _change_of(connection: sqlite3.Connection, intent: Intent) -> Intent | None:
    """Return the held change of an intent that waits to leave, or None."""
    return next((one for one in held(connection) if one.replaces == intent.id), None)


def _take_place(connection: sqlite3.Connection, change: Intent) -> None:
    """Block the waiting intent that an approved change replaces, and pass its number on. Raises `NotWaiting`."""
    older = store.get(connection, change.replaces) if change.replaces else None
    if older and older.is_unsent:
        store.update(connection, replace(older, state="blocked", error=REPLACED))
        store.pass_number_on(connection, older.id, change.id)
    elif older and older.state in ACTIVE_STATES:
        raise NotWaiting("What this draft changes has left", remedy="Reject the draft, or order it as a new act.")


def withdraw_follow(connection: sqlite3.Connection, did: str) -> list[Entry]:
    """Withdraw an unsent follow of an account, because the owner asked for an unfollow; return the entries."""
    withdrawn = store.withdraw_reaching(
        connection, did, "the owner asked for an unfollow", lambda one: one.kind == "follow"
    )
    return [audit.stopped(one) for one in withdrawn]


def _decided_with(connection: sqlite3.Connection, intent: Intent) -> list[Intent]:
    """Return what is decided together with an act: a push and the pull request of one claim on a task."""
    body = intent.body
    if not isinstance(body, PushBody | PullRequestBody) or not body.task:
        return []
    return [
        one
        for one in held(connection)
        if isinstance(one.body, PushBody | PullRequestBody)
        and (one.body.task, one.body.epoch) == (body.task, body.epoch)
        and one.id != intent.id
    ]


def _living(connection: sqlite3.Connection, intent_id: str, now: datetime) -> Intent:
    intent = find(connection, intent_id)
    if policy.is_expired(intent, now):
        named = _named(connection, intent)
        raise NotWaiting(f"{named} has lost its sense: it could wait until {intent.expires_at}", remedy=_SHOW)
    return intent


def _named(connection: sqlite3.Connection, intent: Intent) -> str:
    """Return the owner's name for a waiting act: its number, or else its id."""
    number = store.draft_numbers(connection).get(intent.id)
    return f"Number {number}" if number else intent.id


def leaving(
    approved: Sequence[Intent],
    standing: Standing,
    timezone: str,
    *,
    is_awake: bool,
    now: datetime,
    expected: Mapping[str, Departure] | None = None,
) -> str:
    """Return when the approved acts leave, in words; `expected` holds the running SOUL's departures by id, if known."""
    scheduled = [one.scheduled_for for one in approved if one.scheduled_for and one.is_unsent]
    later = [at for at in scheduled if parse_iso(at) > now]
    if later and len(later) == len(approved) and is_awake and standing.may_act:
        moments = (f"{local(parse_iso(one), timezone):%Y-%m-%d %H:%M}" for one in sorted({*later}))
        return f"It leaves by itself on {', '.join(moments)}"
    if standing.writes_blocked and not standing.paused and not standing.safe_mode:
        return f"It leaves once nothing keeps this process from it any more: {standing}"
    if not standing.may_act:
        return f"It leaves after `soul resume`: {standing}"
    if not is_awake:
        return "Nobody is awake: it leaves after the next `soul run`, unless it has lost its sense by then"
    waits = [(one, expected[one.id]) for one in approved if expected and one.id in expected]
    if waits:
        return "; ".join(f"{one.deed} {told(departure, now, timezone)}" for one, departure in waits)
    number = f" {approved[0].id[:SHORT_ID_CHARS]}" if len(approved) == 1 else ""
    return f"It leaves in its turn, mostly within a minute; `soul why{number}` tells when, and how it went"

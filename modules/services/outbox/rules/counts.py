"""The counts for the rules, read from the existing tables; nothing is stored twice.

Every function is one step of a transaction that its caller opened. Times are those of the local clock: when an act was
last sent (`sent_at`), and when words were received (`received_at`), which nobody else can backdate.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta

from common.clock import iso, parse_iso
from modules.runtime.database.people import person_hash
from modules.services.inbox import messages, received
from modules.services.inbox.received import ReceivedPost
from modules.services.outbox.github_bodies import CREATING
from modules.services.outbox.rules import rules
from modules.services.outbox.rules.policy import authority
from modules.services.outbox.types import UNMETERED_KINDS

CREATED_ON_GITHUB = "created on GitHub"
"""The name of a write that GitHub counts as creating content, and that was not an intent."""
_TEXT = "CASE WHEN json_valid(body) THEN json_extract(body, '$.text') END"
_TO = "CASE WHEN json_valid(body) THEN json_extract(body, '$.to') END"
_ABOUT_RIGHTS = "coalesce(CASE WHEN json_valid(body) THEN json_extract(body, '$.about_rights') END, 0)"
_WAITS = "state IN ('pending', 'sending')"
# NOTE(self): the plus keeps SQLite from using the index on the state, which most rows share.
_MAY_LEAVE = "+state IN ('held', 'pending', 'sending', 'done')"
_UNMETERED_KINDS = ", ".join(repr(kind) for kind in sorted(UNMETERED_KINDS))
_COST = (
    f"CASE WHEN kind IN ({_UNMETERED_KINDS}) THEN 0"
    f" WHEN kind = 'delete' THEN {rules.COST_DELETE.limit} ELSE {rules.COST_CREATE.limit} END"
)
_WHAT = f"CASE WHEN {_ABOUT_RIGHTS} THEN kind || ' about rights' ELSE kind END"
_NOTE = "INSERT INTO other_writes (at, what, points, who) VALUES (?, ?, ?, ?)"
_LONGEST = timedelta(seconds=rules.DAY_S)
# NOTE(self): all tries of an act count at the time of the last: it is better to count too many than too few.
_DEPARTURES = f"""
    SELECT sent_at AS moment, (1 + attempts + deferrals) * {_COST} AS points FROM intents
    WHERE sent_at >= :since AND sent_at < :until
    UNION ALL SELECT at, points FROM other_writes WHERE at >= :since AND at < :until
"""  # noqa: S608 - constants
# NOTE(self): an act that has not left yet will come after everything that was said so far.
_LATER = "9999"


def note(connection: sqlite3.Connection, now: datetime, what: str, *, points: float = 0, did: str = "") -> None:
    """Count what was not an intent: a write of the profile, or a turn about somebody (`did`, stored as a hash)."""
    who = person_hash(connection, did) if did else ""
    connection.execute(_NOTE, (iso(now), what, int(points), who))
    connection.execute("DELETE FROM other_writes WHERE at < ?", (iso(now - _LONGEST),))


def noted(connection: sqlite3.Connection, now: datetime, what: str, did: str, window: timedelta) -> list[datetime]:
    """Return when `what` was counted for a person within the window, oldest first."""
    return [moment for moment, who in _noted(connection, now, what, window) if who == person_hash(connection, did)]


def keep(connection: sqlite3.Connection, ids: Collection[str]) -> None:
    """Keep these intents in the counts before they are deleted, with a hash of whom they reached.

    So being forgotten does not raise anybody's limits.
    """
    left = connection.execute(
        f"SELECT sent_at, {_WHAT}, (1 + attempts + deferrals) * {_COST}, coalesce({_TO}, target) FROM intents"  # noqa: S608 - constants
        " WHERE sent_at IS NOT NULL AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(ids)),),
    ).fetchall()
    for at, what, points, reached in left:
        who = authority(reached) or reached
        hashed = person_hash(connection, who) if who.startswith("did:") else ""
        connection.execute(_NOTE, (at, what, points, hashed))


def points_spent(connection: sqlite3.Connection, now: datetime, window: timedelta) -> float:
    """Return the points of what left within the window."""
    query = f"SELECT coalesce(sum(points), 0) FROM ({_DEPARTURES})"  # noqa: S608 - constants
    return float(connection.execute(query, _window(now, window)).fetchone()[0])


def departures(connection: sqlite3.Connection, now: datetime, window: timedelta) -> list[tuple[datetime, float]]:
    """Return when each act left within the window and its points, oldest first."""
    rows = connection.execute(f"{_DEPARTURES} ORDER BY 1", _window(now, window))
    return [(parse_iso(row[0]), float(row[1])) for row in rows]


def points_waiting(connection: sqlite3.Connection) -> float:
    """Return the points of what waits to leave, for one try each."""
    query = f"SELECT coalesce(sum({_COST}), 0) FROM intents WHERE state = 'pending'"  # noqa: S608 - constants
    return float(connection.execute(query).fetchone()[0])


def replied_to(connection: sqlite3.Connection, now: datetime, window: timedelta) -> list[tuple[datetime, str]]:
    """Return when each reply left within the window and whom it reached, oldest first; forgotten people as a hash.

    Answers to people's requests about their own data are left out, so that they take nobody else's place.
    """
    rows = connection.execute(
        "SELECT sent_at, target FROM intents WHERE sent_at >= :since AND sent_at < :until AND kind = 'reply'"  # noqa: S608 - constants
        f" AND NOT {_ABOUT_RIGHTS}",
        _window(now, window),
    )
    left = [(parse_iso(row[0]), authority(row[1])) for row in rows]
    return sorted([*left, *_noted(connection, now, "reply", window)])


def messaged(connection: sqlite3.Connection, did: str, now: datetime, window: timedelta) -> list[datetime]:
    """Return when direct messages to one account left within the window, oldest first."""
    rows = connection.execute(
        "SELECT sent_at FROM intents WHERE sent_at >= :since AND sent_at < :until AND kind = 'direct_message'"  # noqa: S608 - constants
        f" AND {_TO} = :did",
        {**_window(now, window), "did": did},
    )
    return sorted([*(parse_iso(row[0]) for row in rows), *noted(connection, now, "direct_message", did, window)])


def created_on_github(connection: sqlite3.Connection, now: datetime, window: timedelta) -> list[datetime]:
    """Return when acts that GitHub counts as creating content left within the window, oldest first."""
    kinds = ", ".join(repr(kind) for kind in sorted(CREATING))
    rows = connection.execute(
        "SELECT sent_at AS moment FROM intents WHERE sent_at >= :since AND sent_at < :until"  # noqa: S608 - constants
        f" AND kind IN ({kinds}) UNION ALL SELECT at FROM other_writes WHERE at >= :since AND at < :until"
        f" AND what IN ({kinds}, '{CREATED_ON_GITHUB}') ORDER BY moment",
        _window(now, window),
    )
    return [parse_iso(row[0]) for row in rows]


def waiting_messages(connection: sqlite3.Connection, did: str) -> int:
    """Return how many direct messages to one account wait to leave."""
    query = f"SELECT count(*) FROM intents WHERE kind = 'direct_message' AND {_WAITS} AND {_TO} = ?"  # noqa: S608 - constants
    return int(connection.execute(query, (did,)).fetchone()[0])


def waiting_replies(connection: sqlite3.Connection) -> list[str]:
    """Return the targets of the replies that wait to leave, without answers to requests about people's own data."""
    query = f"SELECT target FROM intents WHERE kind = 'reply' AND {_WAITS} AND NOT {_ABOUT_RIGHTS}"  # noqa: S608 - constants
    rows = connection.execute(query)
    return [row[0] for row in rows]


def reply_texts(connection: sqlite3.Connection, now: datetime, window: timedelta) -> list[str]:
    """Return the texts of the replies that left within the window, or may still leave."""
    rows = connection.execute(
        f"SELECT {_TEXT} FROM intents WHERE kind = 'reply' AND sent_at >= ?"  # noqa: S608 - constants
        f" AND {_MAY_LEAVE} UNION ALL SELECT {_TEXT} FROM intents WHERE kind = 'reply'"
        " AND state IN ('held', 'pending') AND +sent_at IS NULL",
        (iso(now - window),),
    )
    return [str(row[0] or "") for row in rows]


def thread_turns(connection: sqlite3.Connection, root_uri: str) -> list[tuple[str, bool]]:
    """Return the received turns of a thread and the SOUL's replies, oldest first: DID ("" for its own), bot label."""
    theirs = received.in_thread(connection, root_uri)
    ours = _reply_moments(
        connection,
        "target IN (SELECT value FROM json_each(:targets))",
        {"targets": json.dumps([notice.uri for notice in theirs])},
    )
    return _in_turn([moment for moment, _ in ours], _turns_of(theirs))


def pair_turns(connection: sqlite3.Connection, did: str, since: datetime) -> list[tuple[str, bool]]:
    """Return the turns between the SOUL and an account since then, oldest first: DID ("" for its own), bot label.

    Direct messages are turns like posts.
    """
    ours = [moment for moment, _ in _replies_to(connection, did, since)] + _messages_to(connection, did, since)
    ours += _turns_kept(connection, did, since)
    theirs = [*_turns_of(received.from_account(connection, did, since))]
    theirs += [(one.received_at, one.rev, did, one.is_bot) for one in messages.from_account(connection, did, since)]
    return _in_turn(ours, theirs)


def answered_notices(connection: sqlite3.Connection, did: str, since: datetime) -> list[ReceivedPost]:
    """Return the posts of one account that the SOUL replied to since then, or is about to."""
    targets = [target for _, target in _replies_to(connection, did, since)]
    return [one for one in received.among(connection, targets) if one.author_did == did]


def _replies_to(connection: sqlite3.Connection, did: str, since: datetime) -> list[tuple[str, str]]:
    where = "target > :first AND target < :last AND coalesce(first_sent_at, :later) > :since"
    # NOTE(self): "0" is the character after "/", so this range holds the records of this account only.
    values = {"first": f"at://{did}/", "last": f"at://{did}0", "later": _LATER, "since": iso(since)}
    return _reply_moments(connection, where, values)


def _reply_moments(connection: sqlite3.Connection, where: str, values: dict[str, str]) -> list[tuple[str, str]]:
    """Return when each matching reply of the SOUL left, or will leave, and its target."""
    query = (
        f"SELECT coalesce(first_sent_at, '{_LATER}'), target FROM intents"  # noqa: S608 - constants
        f" WHERE kind = 'reply' AND {_MAY_LEAVE} AND {where}"
    )
    return [(row[0], row[1]) for row in connection.execute(query, values)]


def _messages_to(connection: sqlite3.Connection, did: str, since: datetime) -> list[str]:
    """Return when each direct message to one account left since then, or will leave."""
    query = (
        f"SELECT coalesce(first_sent_at, '{_LATER}') AS moment FROM intents"  # noqa: S608 - constants
        f" WHERE kind = 'direct_message' AND {_MAY_LEAVE} AND {_TO} = ? AND moment > ?"
    )
    return [row[0] for row in connection.execute(query, (did, iso(since)))]


def _turns_kept(connection: sqlite3.Connection, did: str, since: datetime) -> list[str]:
    """Return when the replies and messages to one account left since then whose intents were deleted (`keep`)."""
    query = "SELECT at FROM other_writes WHERE at > ? AND what IN ('reply', 'direct_message') AND who = ?"
    return [row[0] for row in connection.execute(query, (iso(since), person_hash(connection, did)))]


def _noted(connection: sqlite3.Connection, now: datetime, what: str, window: timedelta) -> list[tuple[datetime, str]]:
    query = "SELECT at, who FROM other_writes WHERE at >= :since AND at < :until AND what = :what ORDER BY at"
    return [(parse_iso(row[0]), row[1]) for row in connection.execute(query, {**_window(now, window), "what": what})]


def _turns_of(notices: Iterable[ReceivedPost]) -> Iterator[tuple[str, str, str, bool]]:
    """Return of each post when it came, its order among those of one moment, its author, and their bot label."""
    return ((one.received_at, one.indexed_at, one.author_did, one.is_bot) for one in notices)


def _in_turn(ours: Iterable[str], theirs: Iterable[tuple[str, str, str, bool]]) -> list[tuple[str, bool]]:
    turns = [(moment, "", "", True) for moment in ours]
    turns += theirs
    return [(who, is_bot) for _, _, who, is_bot in sorted(turns, key=lambda turn: turn[:2])]


def _window(now: datetime, window: timedelta) -> dict[str, str]:
    """Return the past window, and as much of the future, in case the clock was set back.

    Rows hold whole milliseconds, so what may lie within the window counts.
    """
    return {"since": iso(now - window), "until": iso(now + window)}

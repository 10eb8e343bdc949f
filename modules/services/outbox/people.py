"""What the intents hold about a person. Each function is one step of a transaction that its caller opened."""

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Literal, get_args

from adapters.atproto.richtext import detect_mentions
from common.clock import iso
from common.person import Person
from modules.runtime.database.people import PersonalRows, PersonalTable
from modules.services.outbox import store
from modules.services.outbox.bodies import IntentKind, ReplyBody
from modules.services.outbox.github_bodies import GITHUB_KINDS
from modules.services.outbox.rules import counts
from modules.services.outbox.types import ACTIVE_STATES, STANDS, Intent

_TEXT = "CASE WHEN json_valid(body) THEN coalesce(json_extract(body, '$.text'), json_extract(body, '$.body')) END"
ActKind = Literal["reply", "like", "repost", "follow", "direct message", "act on GitHub", "other act"]
ActEnd = Literal["sent", "waits for the owner", "waits for its turn", "never sent"]
_KINDS: Mapping[str, ActKind] = {
    "reply": "reply",
    "like": "like",
    "repost": "repost",
    "follow": "follow",
    "direct_message": "direct message",
    **dict.fromkeys(GITHUB_KINDS, "act on GitHub"),
}
_ENDS: Mapping[str, ActEnd] = {
    "done": "sent",
    "held": "waits for the owner",
    "pending": "waits for its turn",
    "sending": "waits for its turn",
}
_LAST_REPLIES = 5
_MOST_SPOKEN = 5_000
_SPOKEN: tuple[IntentKind, ...] = ("post", "reply", "issue", "issue_comment", "review", "space_chat")
_THEIRS = """
SELECT id FROM intents WHERE ((instr(target, :part) OR instr(cause_id, :part)) AND holds_did(target, cause_id))
    OR cause_id IN (SELECT value FROM json_each(:posts))
    OR (instr(body, :did) AND (json_field(body, 'to') = :did
        OR (state IN ('held', 'pending', 'sending') AND holds_did(json_field(body, 'root', 'uri')))))
"""


def intents_of(connection: sqlite3.Connection, person: Person, posts: Collection[str]) -> frozenset[str]:
    """Return the ids of the intents that reach an account, were caused by its `posts`, or wait to reply in its threads.

    Acts that only mention the account are not its own; those words are redacted. The connection must know the person.
    """
    if not person.did:
        return frozenset()
    rows = connection.execute(_THEIRS, {"did": person.did, "part": person.part, "posts": json.dumps(sorted(posts))})
    return frozenset(str(row[0]) for row in rows)


def counts_by_kind(connection: sqlite3.Connection, ids: Collection[str]) -> dict[tuple[ActKind, ActEnd], int]:
    """Return how many of these intents of each kind were sent, wait for the owner or for their turn, or never left."""
    rows = connection.execute(
        "SELECT kind, state, count(*) FROM intents WHERE id IN (SELECT value FROM json_each(?)) GROUP BY kind, state",
        (json.dumps(sorted(ids)),),
    )
    counts: Counter[tuple[ActKind, ActEnd]] = Counter()
    for kind, state, count in rows:
        counts[_KINDS.get(kind, "other act"), _ENDS.get(state, "never sent")] += count
    return {
        (kind, end): counts[kind, end] for kind in get_args(ActKind) for end in get_args(ActEnd) if counts[kind, end]
    }


def texts_of(connection: sqlite3.Connection, ids: Collection[str]) -> list[str]:
    """Return the words of these intents."""
    query = f"SELECT {_TEXT} AS text FROM intents WHERE id IN (SELECT value FROM json_each(?)) AND text IS NOT NULL"  # noqa: S608 - a constant
    return [str(row["text"]) for row in connection.execute(query, (json.dumps(sorted(ids)),))]


def replies_to(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the ids of the SOUL's last few replies to an account, newest first."""
    query = (
        "SELECT id FROM intents WHERE kind = 'reply' AND state = 'done' AND substr(target, 1, ?) = ?"
        " ORDER BY created_at DESC LIMIT ?"
    )
    address = f"at://{did}/"
    return [str(row[0]) for row in connection.execute(query, (len(address), address, _LAST_REPLIES))]


def about_account(connection: sqlite3.Connection, did: str, handle: str, own_did: str, *, answered: str) -> str:
    """Return the address of the SOUL's own post that `answered` is, if it answers the account or names its handle.

    If `answered` is not the SOUL's, it is the SOUL's newest reply to the account that stands. "" if there is none.
    """
    if answered.startswith(f"at://{own_did}/"):
        one = store.at_address(connection, answered)
        found = [one] if one and (_answers(one, did) or _names(one.body.public_text, handle)) else []
    else:
        found = [one for key in replies_to(connection, did) if (one := store.get(connection, key))]
    return next((one.result_uri for one in found if one.result_uri and not store.is_deleted(connection, one)), "")


def _answers(one: Intent, did: str) -> bool:
    return one.target.startswith(f"at://{did}/") or (isinstance(one.body, ReplyBody) and one.body.told_to == did)


def _names(text: str, handle: str) -> bool:
    return any(text[span.start + 1 : span.end].lower() == handle.lower() for span in detect_mentions(text))


def said_to(connection: sqlite3.Connection, did: str, *, apart_from: str, most: int) -> list[Intent]:
    """Return the SOUL's newest `most` public replies to an account, waiting ones included, newest first.

    Answers about its data are left out, and so are replies in the thread whose root is `apart_from`.
    """
    rows = connection.execute(
        "SELECT id FROM intents WHERE kind = 'reply' AND state IN (SELECT value FROM json_each(:states))"
        " AND json_valid(body) AND coalesce(place, '') <> :place AND coalesce(body ->> 'about_rights', 0) = 0"
        " AND ((target > :first AND target < :last) OR body ->> 'told_to' = :did)"
        " ORDER BY created_at DESC LIMIT :most",
        # NOTE(self): "0" is the character after "/", so this range holds the records of this account only.
        {
            "states": json.dumps(sorted(ACTIVE_STATES)),
            "first": f"at://{did}/",
            "last": f"at://{did}0",
            "did": did,
            "place": apart_from,
            "most": most,
        },
    )
    return [intent for row in rows.fetchall() if (intent := store.get(connection, row[0]))]


def spoken(connection: sqlite3.Connection, since: datetime, did: str) -> list[Intent]:
    """Return the SOUL's acts with words since then, except deleted ones, newest first; with `did`, replies to it."""
    to_them = said_to(connection, did, apart_from="", most=_MOST_SPOKEN) if did else []
    said = to_them if did else store.since(connection, _SPOKEN, since)
    acts = (one for one in said[:_MOST_SPOKEN] if one.created_at >= iso(since) and one.state in ACTIVE_STATES)
    return [one for one in acts if not store.is_deleted(connection, one)]


def messages_to(connection: sqlite3.Connection, did: str) -> list[str]:
    """Return the ids of the last few direct messages to an account, without answers about its data, newest first."""
    query = (
        "SELECT id FROM intents WHERE kind = 'direct_message' AND state = 'done' AND json_valid(body)"
        " AND json_extract(body, '$.to') = ? AND json_extract(body, '$.about_rights') IS NOT 1"
        " ORDER BY created_at DESC LIMIT ?"
    )
    return [str(row[0]) for row in connection.execute(query, (did, _LAST_REPLIES))]


_STANDS = " ".join(f"WHEN '{state}' THEN '{words}'" for state, words in STANDS.items())
# NOTE(self): acts that have left still count against all limits, also the person's own, under a hash.
ACTS_OF_PEOPLE = PersonalRows(
    "acts",
    (
        PersonalTable(
            name="intents",
            theirs="id IN (SELECT value FROM json_each(:intents))",
            shown=f"kind || ' (' || CASE state {_STANDS} END || ')' || coalesce(': ' || nullif({_TEXT}, ''), '')",
            at="created_at",
            order="created_at",
            redacts={
                "body": "redacted_json(body)",
                "error": "redacted(error)",
                "dedup_key": "redacted(dedup_key)",
            },
        ),
    ),
    counts_on=lambda connection, trace: counts.keep(connection, trace.intents),
)
"""The acts that reached a person or were caused by what they wrote, and waiting ones, which then do not leave.

What was said to others in the person's threads stays, with a placeholder for the person.
"""

"""What received posts and messages hold of a person. Each method is one step of a transaction of its caller."""

from __future__ import annotations

import sqlite3

from common.person import Held, Trace

_SAID = "(author_did = ? OR names_person(text, outcome))"
_NAMED = "(author_did = ? OR names_person(uri, root_uri, payload, outcome))"


class InboxPeople:
    """The posts and direct messages that a person wrote, those of others that name them, and where they led us."""

    store = "received posts"
    tables = frozenset({"pending_notifications", "direct_conversations", "direct_messages", "github_threads"})

    def about(self, connection: sqlite3.Connection, trace: Trace) -> Held:
        """Return the texts of these posts, the oldest first."""
        query = (
            "SELECT CASE WHEN json_valid(payload) THEN json_extract(payload, '$.text') END"  # noqa: S608 - constants
            f" FROM pending_notifications WHERE {_NAMED} ORDER BY indexed_at"
        )
        rows = connection.execute(query, (trace.person.did,)).fetchall()
        said = f"SELECT text FROM direct_messages WHERE {_SAID} ORDER BY rev"  # noqa: S608 - a constant
        rows += connection.execute(said, (trace.person.did,)).fetchall()
        shown = "SELECT repo || '#' || number FROM github_threads WHERE names_person(repo, uri, outcome)"
        rows += connection.execute(shown).fetchall()
        return Held(self.store, len(rows), tuple(str(row[0]) for row in rows if row[0]))

    def forget(self, connection: sqlite3.Connection, trace: Trace) -> int:
        """Delete the person's posts; return how many rows changed.

        Of a post by somebody else only its address stays, so that it is not answered a second time.
        """
        theirs = connection.execute(
            "DELETE FROM pending_notifications WHERE author_did = ? OR names_person(uri)", (trace.person.did,)
        ).rowcount
        emptied = connection.execute(
            "UPDATE pending_notifications SET payload = '{}', root_uri = uri, outcome = 'forgotten',"
            " state = CASE state WHEN 'pending' THEN 'dropped' ELSE state END"
            " WHERE names_person(root_uri, payload, outcome)"
        ).rowcount
        shown = connection.execute("DELETE FROM github_threads WHERE names_person(repo, uri, outcome)").rowcount
        did = (trace.person.did,)
        said = connection.execute(f"DELETE FROM direct_messages WHERE {_SAID}", did).rowcount  # noqa: S608 - a constant
        talks = connection.execute("DELETE FROM direct_conversations WHERE did = ?", did).rowcount
        return theirs + emptied + shown + said + talks

"""What received posts and messages hold of a person."""

from __future__ import annotations

from modules.runtime.database.people import TiedRows

INBOX_OF_PEOPLE = TiedRows(
    store="received posts",
    tables=frozenset({"pending_notifications", "direct_conversations", "direct_messages"}),
    tells=(
        "SELECT json_field(payload, 'text') FROM pending_notifications WHERE author_did = :did ORDER BY indexed_at",
        "SELECT text FROM direct_messages WHERE author_did = :did ORDER BY rev",
    ),
    forgets=(
        "DELETE FROM pending_notifications WHERE author_did = :did",
        "DELETE FROM direct_messages WHERE author_did = :did",
        "DELETE FROM direct_conversations WHERE did = :did",
        """
        UPDATE pending_notifications SET payload = redacted_json(payload), outcome = redacted(outcome),
            state = CASE WHEN state = 'pending' AND holds_did(root_uri, json_field(payload, 'reply')) THEN 'dropped'
                ELSE state END,
            root_uri = CASE WHEN holds_did(root_uri) THEN uri ELSE root_uri END
            WHERE (instr(root_uri, :part) OR instr(payload, :part) OR instr(outcome, :part))
                AND holds_did(root_uri, payload, outcome)
        """,
    ),
)
"""The posts and direct messages that a person wrote.

A post of somebody else that answers or names them stays, with somebody in their place. One that waits for an answer in
their thread cannot be answered there any more.
"""

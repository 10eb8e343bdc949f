"""To which accounts rows are tied: by this, and by nothing else, a row is somebody's."""

from __future__ import annotations

# NOTE(self): a conversation in a thread has the root of the thread in its key, and a post in it begins with `@handle`.
TIED_PEOPLE = """
ALTER TABLE session_messages ADD COLUMN dids TEXT NOT NULL DEFAULT '';
ALTER TABLE archives ADD COLUMN dids TEXT NOT NULL DEFAULT '';
ALTER TABLE memories ADD COLUMN dids TEXT NOT NULL DEFAULT '';
ALTER TABLE journal ADD COLUMN dids TEXT NOT NULL DEFAULT '';

CREATE TEMPORARY TABLE writers AS
    SELECT DISTINCT 'bluesky:thread:' || root_uri AS key, author_did AS did,
        CASE WHEN json_valid(payload) THEN json_extract(payload, '$.author.handle') END AS handle
        FROM pending_notifications;
CREATE INDEX temp.writers_by_key ON writers (key);
INSERT INTO writers SELECT DISTINCT key, substr(key, 21, instr(substr(key, 21), '/') - 1), NULL
    FROM (SELECT key FROM sessions UNION SELECT session_key FROM archives UNION SELECT source FROM memories)
    WHERE key GLOB 'bluesky:thread:at://did:*/*';

UPDATE session_messages SET dids = coalesce((
    SELECT did FROM writers, sessions WHERE sessions.id = session_id AND writers.key = sessions.key
        AND (substr(content, 1, 13 + length(handle)) = '{"content":"@' || handle
            OR instr(content, '"text":"@' || handle) OR handle IS NULL)
        ORDER BY handle IS NULL, length(handle) DESC LIMIT 1), '')
    WHERE role = 'user';
UPDATE session_messages SET dids = coalesce((
    SELECT said.dids FROM session_messages AS said WHERE said.session_id = session_messages.session_id
        AND said.seq < session_messages.seq AND said.role = 'user' ORDER BY said.seq DESC LIMIT 1), '')
    WHERE role <> 'user';
UPDATE archives SET dids = coalesce((SELECT group_concat(did, ' ') FROM
    (SELECT DISTINCT did FROM writers WHERE key = session_key ORDER BY did)), '');
UPDATE memories SET dids = coalesce((SELECT group_concat(did, ' ') FROM
    (SELECT DISTINCT did FROM writers WHERE key = source ORDER BY did)), '');
DROP TABLE writers;
"""

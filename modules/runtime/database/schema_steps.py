"""The later steps of `schema.py`, by what they are about; like all of these never edited once released."""

from __future__ import annotations

GITHUB_THREADS = """
CREATE TABLE github_threads (
    repo TEXT NOT NULL COLLATE NOCASE,
    number INTEGER NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('issue', 'pull')),
    at TEXT NOT NULL,
    reason TEXT NOT NULL,
    notice TEXT NOT NULL,
    uri TEXT NOT NULL,
    received_at TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'handled', 'dropped')),
    outcome TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (repo, number, source)
) STRICT;
CREATE INDEX github_threads_waiting ON github_threads (received_at) WHERE state = 'pending';
"""

REPOSITORY_VERDICTS = """
CREATE TABLE repository_verdicts (
    repo TEXT PRIMARY KEY COLLATE NOCASE,
    code TEXT NOT NULL,
    path TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;
"""

TASK_LEASES = """
CREATE TABLE task_leases (
    key TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    repo TEXT NOT NULL,
    issue INTEGER NOT NULL,
    number INTEGER NOT NULL,
    soul TEXT NOT NULL,
    stage TEXT NOT NULL CHECK (stage IN ('claiming', 'held', 'ending')),
    epoch INTEGER NOT NULL,
    has_lock INTEGER NOT NULL,
    since TEXT NOT NULL,
    renewed_at TEXT NOT NULL,
    until TEXT NOT NULL,
    comment_id INTEGER
) STRICT;

CREATE TABLE seen_locks (
    branch TEXT PRIMARY KEY,
    first_seen TEXT NOT NULL
) STRICT;
"""

COUNTS_OF_THE_FORGOTTEN = """
ALTER TABLE other_writes ADD COLUMN who TEXT NOT NULL DEFAULT '';
"""

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

SCHEDULED_ACTS = """
ALTER TABLE intents ADD COLUMN scheduled_for TEXT;
ALTER TABLE intents ADD COLUMN own_words INTEGER NOT NULL DEFAULT 0;
"""

WORK = """
CREATE TABLE work (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    payload TEXT NOT NULL,
    author TEXT NOT NULL,
    importance TEXT NOT NULL,
    not_before TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'done', 'dropped')),
    outcome TEXT NOT NULL DEFAULT '',
    cause_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    UNIQUE (kind, key)
) STRICT;
CREATE INDEX work_waiting ON work (not_before) WHERE state = 'pending';
"""

EXPERIENCES = """
CREATE TABLE experiences (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    type TEXT NOT NULL,
    source TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE,
    about TEXT NOT NULL,
    did TEXT NOT NULL,
    person TEXT NOT NULL,
    uri TEXT NOT NULL,
    trust TEXT NOT NULL CHECK (trust IN ('stranger', 'peer', 'self', 'owner')),
    version TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX experiences_open ON experiences (id) WHERE version = '';
CREATE INDEX experiences_by_person ON experiences (did);
"""

RITUAL_RUNS = """
CREATE TABLE ritual_runs (
    key TEXT NOT NULL,
    day TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('initiator', 'participant')),
    thread_uri TEXT NOT NULL,
    opener TEXT NOT NULL,
    artefact_url TEXT NOT NULL DEFAULT '',
    note TEXT NOT NULL DEFAULT '',
    took_part TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (key, day)
) STRICT;
CREATE INDEX ritual_runs_by_thread ON ritual_runs (thread_uri);
"""

# NOTE(self): a row is what led to a thread from one source; `.` marks that its second was over when it was taken in.
THREADS_AS_WORK = """
ALTER TABLE work ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
ALTER TABLE work ADD COLUMN version TEXT NOT NULL DEFAULT '';
INSERT INTO work (
    kind, key, payload, author, importance, not_before, state, outcome, cause_id, created_at, rank, version
)
    SELECT 'thread', lower(repo) || '#' || number || '/' || source,
        json_object('repo', repo, 'number', number, 'kind', kind, 'source', source, 'at', at, 'reason', reason,
            'notice', notice, 'uri', uri),
        CASE WHEN uri GLOB 'at://*/*' THEN substr(uri, 6, instr(substr(uri, 6), '/') - 1) ELSE '' END,
        CASE source WHEN 'bluesky_url_owner' THEN 'owner' ELSE 'stranger' END,
        '', CASE state WHEN 'handled' THEN 'done' ELSE state END, outcome,
        'github:' || lower(repo) || '#' || number || '/' || source || '/' || received_at, received_at,
        reason NOT IN ('mention', 'assign', 'review_requested'),
        CASE WHEN received_at < strftime('%Y-%m-%dT%H:%M:%fZ', at, '+2 seconds') THEN at ELSE at || '.' END
    FROM github_threads ORDER BY received_at, rowid;
DROP TABLE github_threads;
"""

# NOTE(self): how often a post was tried, and when it is due, is told by its row of work, which the next look adds.
POSTS_AS_WORK = """
ALTER TABLE pending_notifications DROP COLUMN attempts;
CREATE INDEX work_of_late ON work (created_at) WHERE state <> 'pending';
"""

CODING_STEPS = """
CREATE TABLE coding_steps (
    task TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at TEXT NOT NULL,
    said TEXT NOT NULL,
    calls TEXT NOT NULL,
    answers TEXT,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    usd REAL,
    PRIMARY KEY (task, epoch, number)
) STRICT;
"""

# NOTE(self): what an id in `result_cid` was followed from the kind of the act.
RESULT_KINDS = """
ALTER TABLE intents RENAME COLUMN result_cid TO result_id;
ALTER TABLE intents ADD COLUMN result_kind TEXT;
UPDATE intents SET result_kind = CASE
        WHEN kind IN ('post', 'reply', 'like', 'repost', 'follow', 'threadgate') THEN 'record'
        WHEN kind = 'direct_message' THEN 'message'
        WHEN kind IN ('issue_comment', 'review') THEN 'comment'
        WHEN kind IN ('merge', 'ref', 'push') THEN 'commit'
        WHEN kind = 'contents' THEN 'file'
        WHEN kind = 'repository' THEN 'repository'
        ELSE 'issue'
    END
    WHERE coalesce(result_id, '') <> '';
"""

# NOTE(self): the name of such an act is `<task>@<epoch>:<what>`.
ACTS_OF_TASKS = """
UPDATE intents SET body = json_set(body, '$.task', substr(target, 1, instr(target, '@') - 1),
        '$.epoch', CAST(substr(target, instr(target, '@') + 1) AS INTEGER))
    WHERE kind IN ('ref', 'contents', 'push', 'pull_request') AND state IN ('held', 'pending')
        AND target GLOB '?*@[0-9]*:*' AND json_valid(body);
"""

ACTS_BY_PLACE = """
ALTER TABLE intents ADD COLUMN place TEXT AS (CASE WHEN json_valid(body) THEN CASE kind
    WHEN 'reply' THEN json_extract(body, '$.root.uri')
    WHEN 'direct_message' THEN json_extract(body, '$.conversation_id')
    ELSE lower(json_extract(body, '$.repo') || coalesce('#' || json_extract(body, '$.number'), ''))
    END END) VIRTUAL;
CREATE INDEX intents_by_place ON intents (place, created_at) WHERE place IS NOT NULL;
"""

# NOTE(self): a record key of the network has thirteen characters.
JOURNAL_INDEXES = """
CREATE INDEX IF NOT EXISTS journal_of_life ON journal (loop, at) WHERE kind = 'life';
CREATE INDEX IF NOT EXISTS journal_by_key ON journal (substr(trigger_uri, -13)) WHERE trigger_uri IS NOT NULL;
"""

BY_OWNER = """
ALTER TABLE intents ADD COLUMN by_owner INTEGER NOT NULL DEFAULT 0;
UPDATE intents SET by_owner = 1 WHERE state IN ('pending', 'sending') AND id IN
    (SELECT intent_id FROM journal WHERE CASE WHEN json_valid(data) THEN json_extract(data, '$.state') END = 'held');
"""

RULE_PAGES = """
ALTER TABLE repository_verdicts ADD COLUMN pages TEXT NOT NULL DEFAULT '';
ALTER TABLE repository_verdicts ADD COLUMN pushed_at TEXT NOT NULL DEFAULT '';
"""

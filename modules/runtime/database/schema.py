"""The shape of `.memory/soul.db`, one script per step. A step that has been released is never edited: add another.

All tables survive a crash; times are ISO-8601 UTC with milliseconds, so that they compare as text.
"""

from __future__ import annotations

from modules.runtime.database.schema_steps import (
    ACTS_BY_PLACE,
    ACTS_OF_TASKS,
    BY_OWNER,
    CODING_STEPS,
    COUNTS_OF_THE_FORGOTTEN,
    EXPERIENCES,
    GITHUB_THREADS,
    JOURNAL_INDEXES,
    POSTS_AS_WORK,
    REPOSITORY_VERDICTS,
    RESULT_KINDS,
    RITUAL_RUNS,
    RULE_PAGES,
    SCHEDULED_ACTS,
    TASK_LEASES,
    THREADS_AS_WORK,
    TIED_PEOPLE,
    WORK,
)

_FIRST = """
CREATE TABLE intents (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    body TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    dedup_key TEXT NOT NULL,
    rkey TEXT NOT NULL UNIQUE,
    cause_id TEXT,
    created_at TEXT NOT NULL UNIQUE,
    expires_at TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'done', 'failed', 'expired', 'blocked')),
    attempts INTEGER NOT NULL DEFAULT 0,
    deferrals INTEGER NOT NULL DEFAULT 0,
    urgent INTEGER NOT NULL DEFAULT 0,
    not_before TEXT,
    departed_at TEXT,
    sent_at TEXT,
    result_uri TEXT,
    result_cid TEXT,
    error TEXT
) STRICT;
CREATE UNIQUE INDEX intents_once_per_target ON intents (kind, target)
    WHERE target <> '' AND state IN ('pending', 'sending', 'done');
CREATE INDEX intents_by_state ON intents (state, created_at);
CREATE INDEX intents_by_key ON intents (dedup_key);
CREATE INDEX intents_by_cause ON intents (cause_id);
CREATE INDEX intents_by_target ON intents (target);
CREATE INDEX intents_by_result ON intents (result_uri);
CREATE INDEX intents_by_departure ON intents (sent_at);

CREATE TABLE feed_keys (
    key TEXT PRIMARY KEY,
    uri TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

CREATE TABLE journal (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    loop TEXT NOT NULL,
    summary TEXT NOT NULL,
    line TEXT,
    reason TEXT NOT NULL,
    trigger_uri TEXT,
    author TEXT,
    intent_id TEXT,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX journal_by_time ON journal (at);
CREATE INDEX journal_by_trigger ON journal (trigger_uri);
CREATE INDEX journal_by_intent ON journal (intent_id);

CREATE TABLE pending_notifications (
    uri TEXT PRIMARY KEY,
    root_uri TEXT NOT NULL,
    author_did TEXT NOT NULL,
    payload TEXT NOT NULL,
    indexed_at TEXT NOT NULL,
    received_at TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'handled', 'dropped')),
    outcome TEXT
) STRICT;
CREATE INDEX pending_notifications_by_state ON pending_notifications (state, indexed_at);
CREATE INDEX pending_notifications_by_root ON pending_notifications (root_uri);
"""

_TRUST = """
CREATE TABLE intents_with_held (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    body TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    dedup_key TEXT NOT NULL,
    rkey TEXT NOT NULL UNIQUE,
    cause_id TEXT,
    created_at TEXT NOT NULL UNIQUE,
    expires_at TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('held', 'pending', 'sending', 'done', 'failed', 'expired', 'blocked')),
    attempts INTEGER NOT NULL DEFAULT 0,
    deferrals INTEGER NOT NULL DEFAULT 0,
    urgent INTEGER NOT NULL DEFAULT 0,
    not_before TEXT,
    departed_at TEXT,
    sent_at TEXT,
    result_uri TEXT,
    result_cid TEXT,
    error TEXT
) STRICT;
INSERT INTO intents_with_held SELECT id, kind, target, body, body_hash, dedup_key, rkey, cause_id, created_at,
    expires_at, state, attempts, deferrals, urgent, not_before, departed_at, sent_at, result_uri, result_cid, error
    FROM intents;
DROP TABLE intents;
ALTER TABLE intents_with_held RENAME TO intents;
CREATE UNIQUE INDEX intents_once_per_target ON intents (kind, target)
    WHERE target <> '' AND state IN ('held', 'pending', 'sending', 'done');
CREATE INDEX intents_by_state ON intents (state, created_at);
CREATE INDEX intents_by_key ON intents (dedup_key);
CREATE INDEX intents_by_cause ON intents (cause_id);
CREATE INDEX intents_by_target ON intents (target);
CREATE INDEX intents_by_result ON intents (result_uri);
CREATE INDEX intents_by_departure ON intents (sent_at);

CREATE INDEX pending_notifications_by_author ON pending_notifications (author_did, indexed_at);

CREATE TABLE model_calls (
    id TEXT PRIMARY KEY,
    day TEXT NOT NULL,
    at TEXT NOT NULL,
    purpose TEXT NOT NULL,
    importance TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'settled')),
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micro_usd INTEGER NOT NULL
) STRICT;
CREATE INDEX model_calls_by_day ON model_calls (day);

CREATE TABLE budget_days (
    day TEXT PRIMARY KEY,
    told_step TEXT NOT NULL
) STRICT;

CREATE TABLE other_writes (
    at TEXT NOT NULL,
    what TEXT NOT NULL,
    points INTEGER NOT NULL
) STRICT;
CREATE INDEX other_writes_by_time ON other_writes (at);
"""

_KNOWLEDGE = """
CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN
        ('fact', 'preference', 'person', 'lesson', 'protocol', 'decision', 'episode', 'curated', 'daily')),
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    tags TEXT NOT NULL,
    source TEXT NOT NULL,
    trust TEXT NOT NULL CHECK (trust IN ('stranger', 'peer', 'self', 'owner')),
    private INTEGER NOT NULL CHECK (private IN (0, 1)),
    importance INTEGER NOT NULL CHECK (importance BETWEEN 1 AND 5),
    subject_key TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    shelf TEXT NOT NULL,
    last_recalled_at TEXT,
    recall_count INTEGER NOT NULL DEFAULT 0,
    superseded_by INTEGER REFERENCES memories (id)
) STRICT;
CREATE INDEX memories_by_subject ON memories (kind, subject_key);
CREATE INDEX memories_by_hash ON memories (body_hash, kind) WHERE superseded_by IS NULL;
CREATE INDEX memories_living ON memories (kind, private, updated_at) WHERE superseded_by IS NULL;
CREATE VIEW living_memories AS SELECT id, subject, body, tags, shelf FROM memories WHERE superseded_by IS NULL;
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    subject, body, tags, shelf, content = 'living_memories', content_rowid = 'id',
    tokenize = "porter unicode61 remove_diacritics 2", prefix = '2 3 4'
);
CREATE TRIGGER memories_added AFTER INSERT ON memories WHEN new.superseded_by IS NULL BEGIN
    INSERT INTO memories_fts (rowid, subject, body, tags, shelf)
        VALUES (new.id, new.subject, new.body, new.tags, new.shelf);
END;
CREATE TRIGGER memories_removed AFTER DELETE ON memories WHEN old.superseded_by IS NULL BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, subject, body, tags, shelf)
        VALUES ('delete', old.id, old.subject, old.body, old.tags, old.shelf);
END;
CREATE TRIGGER memories_changed AFTER UPDATE ON memories
    WHEN (old.subject, old.body, old.tags, old.shelf, old.superseded_by IS NULL)
        IS NOT (new.subject, new.body, new.tags, new.shelf, new.superseded_by IS NULL)
BEGIN
    INSERT INTO memories_fts (memories_fts, rowid, subject, body, tags, shelf)
        SELECT 'delete', old.id, old.subject, old.body, old.tags, old.shelf WHERE old.superseded_by IS NULL;
    INSERT INTO memories_fts (rowid, subject, body, tags, shelf)
        SELECT new.id, new.subject, new.body, new.tags, new.shelf WHERE new.superseded_by IS NULL;
END;

CREATE TABLE profiles (
    subject TEXT NOT NULL CHECK (subject IN ('agent', 'user')),
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (subject, field)
) STRICT;

CREATE TABLE marks (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    key TEXT NOT NULL,
    created_at TEXT NOT NULL,
    last_active_at TEXT NOT NULL,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    ended_at TEXT
) STRICT;
CREATE UNIQUE INDEX sessions_going_on ON sessions (key) WHERE ended_at IS NULL;
CREATE INDEX sessions_by_activity ON sessions (last_active_at);

CREATE TABLE session_messages (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'toolResult')),
    content TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    provenance INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
) STRICT;

CREATE TABLE archives (
    key TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    session_key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('prepared', 'done')),
    last_seq INTEGER NOT NULL,
    part INTEGER,
    message_count INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    distilled TEXT NOT NULL,
    prepared_at TEXT NOT NULL
) STRICT;
CREATE INDEX archives_by_state ON archives (state, prepared_at);
"""

_THINKING = """
CREATE TABLE owner_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL,
    received_at TEXT NOT NULL,
    session_id TEXT NOT NULL DEFAULT ''
) STRICT;

ALTER TABLE model_calls ADD COLUMN unanswered INTEGER NOT NULL DEFAULT 0;
"""

_RECHECKS = """
ALTER TABLE intents ADD COLUMN looks INTEGER NOT NULL DEFAULT 0;
CREATE INDEX intents_to_recheck ON intents (not_before) WHERE state = 'done' AND not_before IS NOT NULL;
"""

_UNDONE = """
ALTER TABLE intents ADD COLUMN undone INTEGER NOT NULL DEFAULT 0;
UPDATE intents SET undone = 1 WHERE state = 'done' AND kind IN ('follow', 'like', 'repost')
    AND result_uri IN (SELECT target FROM intents WHERE kind = 'delete' AND state = 'done');
DROP INDEX intents_once_per_target;
CREATE UNIQUE INDEX intents_once_per_target ON intents (kind, target)
    WHERE target <> '' AND undone = 0 AND state IN ('held', 'pending', 'sending', 'done');
"""

# NOTE(self): the column `shelf` is indexed and never shown: tokens that are no part of the text have their place there.
_UNSPACED = """
UPDATE memories SET shelf = shelf || unspaced_tokens(subject || char(10) || body || char(10) || tags)
    WHERE unspaced_tokens(subject || char(10) || body || char(10) || tags) <> '';
"""

_FIRST_SENT = """
ALTER TABLE intents RENAME COLUMN departed_at TO first_sent_at;
ALTER TABLE intents ADD COLUMN rejected INTEGER NOT NULL DEFAULT 0;
UPDATE intents SET rejected = 1 WHERE state = 'blocked' AND error GLOB 'the owner said no*';
"""

_AI_PREFERENCES = """
CREATE TABLE ai_preferences (
    did TEXT PRIMARY KEY,
    preference TEXT NOT NULL,
    read_at TEXT NOT NULL
) STRICT;
"""

_MUTED_PEOPLE = """
CREATE TABLE muted_people (
    did TEXT PRIMARY KEY,
    since TEXT NOT NULL
) STRICT;
"""

_FORGOTTEN_PEOPLE = """
CREATE TABLE forgotten_people (
    hash TEXT PRIMARY KEY,
    since TEXT NOT NULL,
    muted INTEGER NOT NULL DEFAULT 0
) STRICT;
"""

_DIRECT_MESSAGES = """
CREATE TABLE direct_conversations (
    id TEXT PRIMARY KEY,
    did TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('request', 'accepted'))
) STRICT;

CREATE TABLE direct_messages (
    conversation_id TEXT NOT NULL,
    id TEXT NOT NULL,
    rev TEXT NOT NULL,
    author_did TEXT NOT NULL,
    text TEXT NOT NULL,
    sent_at TEXT NOT NULL,
    received_at TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'handled', 'dropped')),
    outcome TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (conversation_id, id)
) STRICT;
CREATE INDEX direct_messages_waiting ON direct_messages (rev) WHERE state = 'pending';

ALTER TABLE owner_messages ADD COLUMN via TEXT NOT NULL DEFAULT '';
"""

_MESSAGES_OF_OTHERS = """
ALTER TABLE direct_conversations ADD COLUMN handle TEXT NOT NULL DEFAULT '';
ALTER TABLE direct_conversations ADD COLUMN is_bot INTEGER NOT NULL DEFAULT 0;
ALTER TABLE direct_messages ADD COLUMN begun_at TEXT NOT NULL DEFAULT '';
CREATE INDEX direct_messages_by_author ON direct_messages (author_did, received_at);
"""

_NO_REPLY_PEOPLE = """
CREATE TABLE no_reply_people (
    did TEXT PRIMARY KEY,
    since TEXT NOT NULL
) STRICT;
ALTER TABLE forgotten_people ADD COLUMN no_reply INTEGER NOT NULL DEFAULT 0;
"""

MIGRATIONS = (
    _FIRST,
    _TRUST,
    _KNOWLEDGE,
    _THINKING,
    _RECHECKS,
    _UNDONE,
    _UNSPACED,
    BY_OWNER,
    _FIRST_SENT,
    _AI_PREFERENCES,
    _MUTED_PEOPLE,
    _FORGOTTEN_PEOPLE,
    _DIRECT_MESSAGES,
    _MESSAGES_OF_OTHERS,
    _NO_REPLY_PEOPLE,
    GITHUB_THREADS,
    REPOSITORY_VERDICTS,
    TASK_LEASES,
    COUNTS_OF_THE_FORGOTTEN,
    TIED_PEOPLE,
    SCHEDULED_ACTS,
    WORK,
    EXPERIENCES,
    RITUAL_RUNS,
    THREADS_AS_WORK,
    CODING_STEPS,
    RESULT_KINDS,
    ACTS_OF_TASKS,
    ACTS_BY_PLACE,
    POSTS_AS_WORK,
    JOURNAL_INDEXES,
    RULE_PAGES,
)

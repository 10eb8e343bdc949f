"""The shape of `.memory/soul.db`, one script per step. A step that has been released is never edited: add another.

All tables survive a crash; times are ISO-8601 UTC with milliseconds, so that they compare as text.
"""

from __future__ import annotations

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

MIGRATIONS = (_FIRST, _TRUST)

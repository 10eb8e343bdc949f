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

MIGRATIONS = (_FIRST,)

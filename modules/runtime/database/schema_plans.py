"""The tables of `soul.db` about plans of work; a step of `schema.py`, and like these never edited once released."""

from __future__ import annotations

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

"""The tables of `soul.db` about GitHub; steps of `schema.py`, and like these never edited once released."""

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

"""When an act is to leave, and whose words it has; a step of `schema.py`, and like these never edited once released."""

from __future__ import annotations

SCHEDULED_ACTS = """
ALTER TABLE intents ADD COLUMN scheduled_for TEXT;
ALTER TABLE intents ADD COLUMN own_words INTEGER NOT NULL DEFAULT 0;
"""

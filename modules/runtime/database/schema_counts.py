"""What is counted of somebody who was forgotten; a step of `schema.py`, and like these never edited once released."""

from __future__ import annotations

COUNTS_OF_THE_FORGOTTEN = """
ALTER TABLE other_writes ADD COLUMN who TEXT NOT NULL DEFAULT '';
"""

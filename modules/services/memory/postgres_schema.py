"""The shape of the schema `soul` on a PostgreSQL server that a fleet shares, one script per step.

Each row says whose it is. A step that has been released is never edited: add another.
"""

from __future__ import annotations

# NOTE(self): stemming without stop words, as SQLite does it: a query of common words alone must find something.
_FIRST = """
CREATE TEXT SEARCH DICTIONARY soul.stem (TEMPLATE = pg_catalog.snowball, Language = english);
CREATE TEXT SEARCH CONFIGURATION soul.words (COPY = pg_catalog.simple);
ALTER TEXT SEARCH CONFIGURATION soul.words
    ALTER MAPPING FOR asciiword, word, hword, hword_part, asciihword, hword_asciipart WITH soul.stem;

CREATE TABLE soul.memories (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    agent text NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    kind text NOT NULL CHECK (kind IN
        ('fact', 'preference', 'person', 'lesson', 'protocol', 'decision', 'episode', 'curated', 'daily')),
    subject text NOT NULL,
    body text NOT NULL,
    tags text[] NOT NULL,
    source text NOT NULL,
    trust text NOT NULL CHECK (trust IN ('stranger', 'peer', 'self', 'owner')),
    private boolean NOT NULL,
    importance smallint NOT NULL CHECK (importance BETWEEN 1 AND 5),
    subject_key text NOT NULL,
    body_hash text NOT NULL,
    words tsvector NOT NULL,
    last_recalled_at timestamptz,
    recall_count integer NOT NULL DEFAULT 0,
    superseded_by bigint REFERENCES soul.memories (id)
);
CREATE INDEX memories_by_subject ON soul.memories (agent, kind, md5(subject_key));
CREATE INDEX memories_by_hash ON soul.memories (agent, body_hash) WHERE superseded_by IS NULL;
CREATE INDEX memories_living ON soul.memories (agent, kind, private, updated_at) WHERE superseded_by IS NULL;
CREATE INDEX memories_by_update ON soul.memories (agent, updated_at) WHERE superseded_by IS NULL;
CREATE INDEX memories_by_age ON soul.memories (agent, id) WHERE superseded_by IS NULL;
CREATE INDEX memories_by_word ON soul.memories USING gin (words) WHERE superseded_by IS NULL;
"""

# NOTE(self): the program splits what is written without spaces; the index names the rows for which that is to be done,
# and is built in a fraction of the time that it would take to mark them.
_UNSPACED = r"""
ALTER TABLE soul.memories ADD COLUMN to_split boolean NOT NULL DEFAULT true;
ALTER TABLE soul.memories ALTER COLUMN to_split SET DEFAULT false;
CREATE FUNCTION soul.may_be_unspaced(subject text, body text, tags text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT subject || body || array_to_string(tags, '') ~ '[\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\U0003ffff]'
$$;
CREATE INDEX memories_to_split ON soul.memories (agent, id)
    WHERE to_split AND superseded_by IS NULL AND soul.may_be_unspaced(subject, body, tags);
"""

# NOTE(self): what the server samples of a column it keeps in a catalogue of its own, where no deletion reaches it.
_BYTES = """
ALTER TABLE soul.memories
    ALTER COLUMN subject SET STATISTICS 0,
    ALTER COLUMN body SET STATISTICS 0,
    ALTER COLUMN tags SET STATISTICS 0,
    ALTER COLUMN source SET STATISTICS 0,
    ALTER COLUMN subject_key SET STATISTICS 0,
    ALTER COLUMN words SET STATISTICS 0;
CREATE TABLE soul.rewrites (agent text PRIMARY KEY);
"""

_TIED = """
ALTER TABLE soul.memories ADD COLUMN dids text[] NOT NULL DEFAULT '{}';
ALTER TABLE soul.memories ALTER COLUMN dids SET STATISTICS 0;
"""

MIGRATIONS = (_FIRST, _UNSPACED, _BYTES, _TIED)

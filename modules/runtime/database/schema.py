"""The schema of `.memory/soul.db`: one script per step, by the `user_version` of the file after it.

A step that has been released is never edited; add another with the next number. All tables survive a crash. Times are
ISO-8601 UTC with milliseconds, so that they compare as text.
"""

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
    state TEXT NOT NULL CHECK (state IN ('held', 'pending', 'sending', 'done', 'failed', 'expired', 'blocked')),
    attempts INTEGER NOT NULL DEFAULT 0,
    deferrals INTEGER NOT NULL DEFAULT 0,
    urgent INTEGER NOT NULL DEFAULT 0,
    not_before TEXT,
    first_sent_at TEXT,
    sent_at TEXT,
    result_uri TEXT,
    result_id TEXT,
    error TEXT,
    looks INTEGER NOT NULL DEFAULT 0,
    undone INTEGER NOT NULL DEFAULT 0,
    by_owner INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    scheduled_for TEXT,
    own_words INTEGER NOT NULL DEFAULT 0,
    result_kind TEXT,
    place TEXT AS (CASE WHEN json_valid(body) THEN CASE kind
        WHEN 'reply' THEN json_extract(body, '$.root.uri')
        WHEN 'direct_message' THEN json_extract(body, '$.conversation_id')
        ELSE lower(json_extract(body, '$.repo') || coalesce('#' || json_extract(body, '$.number'), ''))
        END END) VIRTUAL,
    replaces TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX intents_by_state ON intents (state, created_at);
CREATE INDEX intents_by_key ON intents (dedup_key);
CREATE INDEX intents_by_cause ON intents (cause_id);
CREATE INDEX intents_by_target ON intents (target);
CREATE INDEX intents_by_result ON intents (result_uri);
CREATE INDEX intents_by_departure ON intents (sent_at);
CREATE INDEX intents_to_recheck ON intents (not_before) WHERE state = 'done' AND not_before IS NOT NULL;
CREATE UNIQUE INDEX intents_once_per_target ON intents (kind, target)
    WHERE target <> '' AND undone = 0 AND state IN ('held', 'pending', 'sending', 'done');
CREATE INDEX intents_by_place ON intents (place, created_at) WHERE place IS NOT NULL;

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
    data TEXT NOT NULL,
    dids TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX journal_by_time ON journal (at);
CREATE INDEX journal_by_trigger ON journal (trigger_uri);
CREATE INDEX journal_by_intent ON journal (intent_id);
CREATE INDEX journal_of_life ON journal (loop, at) WHERE kind = 'life';
-- The key of a record on the network has thirteen characters.
CREATE INDEX journal_by_key ON journal (substr(trigger_uri, -13)) WHERE trigger_uri IS NOT NULL;

CREATE TABLE pending_notifications (
    uri TEXT PRIMARY KEY,
    root_uri TEXT NOT NULL,
    author_did TEXT NOT NULL,
    payload TEXT NOT NULL,
    indexed_at TEXT NOT NULL,
    received_at TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'handled', 'dropped')),
    outcome TEXT
) STRICT;
CREATE INDEX pending_notifications_by_state ON pending_notifications (state, indexed_at);
CREATE INDEX pending_notifications_by_root ON pending_notifications (root_uri);
CREATE INDEX pending_notifications_by_author ON pending_notifications (author_did, indexed_at);
CREATE INDEX pending_notifications_by_handle
    ON pending_notifications (lower(CASE WHEN json_valid(payload) THEN json_extract(payload, '$.author.handle') END));

CREATE TABLE direct_conversations (
    id TEXT PRIMARY KEY,
    did TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('request', 'accepted')),
    handle TEXT NOT NULL DEFAULT '',
    is_bot INTEGER NOT NULL DEFAULT 0
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
CREATE INDEX direct_messages_by_author ON direct_messages (author_did, received_at);

CREATE TABLE owner_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL,
    received_at TEXT NOT NULL,
    session_id TEXT NOT NULL DEFAULT '',
    via TEXT NOT NULL DEFAULT ''
) STRICT;

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
    rank INTEGER NOT NULL DEFAULT 0,
    version TEXT NOT NULL DEFAULT '',
    UNIQUE (kind, key)
) STRICT;
CREATE INDEX work_waiting ON work (not_before) WHERE state = 'pending';
CREATE INDEX work_of_late ON work (created_at) WHERE state <> 'pending';

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
    cost_micro_usd INTEGER NOT NULL,
    unanswered INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX model_calls_by_day ON model_calls (day);

CREATE TABLE budget_days (
    day TEXT PRIMARY KEY,
    told_step TEXT NOT NULL
) STRICT;

CREATE TABLE other_writes (
    at TEXT NOT NULL,
    what TEXT NOT NULL,
    points INTEGER NOT NULL,
    who TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX other_writes_by_time ON other_writes (at);

-- The column `shelf` is indexed and never shown: it holds search tokens that are not part of the text.
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
    superseded_by INTEGER REFERENCES memories (id),
    dids TEXT NOT NULL DEFAULT '',
    about TEXT NOT NULL DEFAULT ''
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
    dids TEXT NOT NULL DEFAULT '',
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
    prepared_at TEXT NOT NULL,
    dids TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX archives_by_state ON archives (state, prepared_at);

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

CREATE TABLE ai_preferences (
    did TEXT PRIMARY KEY,
    preference TEXT NOT NULL,
    read_at TEXT NOT NULL
) STRICT;

CREATE TABLE muted_people (
    did TEXT PRIMARY KEY,
    since TEXT NOT NULL
) STRICT;

CREATE TABLE no_reply_people (
    did TEXT PRIMARY KEY,
    since TEXT NOT NULL
) STRICT;

CREATE TABLE forgotten_people (
    hash TEXT PRIMARY KEY,
    since TEXT NOT NULL,
    muted INTEGER NOT NULL DEFAULT 0,
    no_reply INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE repository_verdicts (
    repo TEXT PRIMARY KEY COLLATE NOCASE,
    code TEXT NOT NULL,
    path TEXT NOT NULL,
    at TEXT NOT NULL,
    pages TEXT NOT NULL DEFAULT '',
    pushed_at TEXT NOT NULL DEFAULT '',
    conditions TEXT NOT NULL DEFAULT '[]',
    since TEXT NOT NULL DEFAULT ''
) STRICT;

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

CREATE TABLE friction (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    category TEXT NOT NULL,
    loop TEXT NOT NULL,
    code TEXT NOT NULL,
    words TEXT NOT NULL,
    occurrences INTEGER NOT NULL,
    own INTEGER NOT NULL,
    days TEXT NOT NULL,
    instances TEXT NOT NULL,
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('seen', 'ready', 'proposed', 'mended', 'left')),
    reason TEXT NOT NULL,
    own_then INTEGER NOT NULL,
    UNIQUE (category, loop, code, words)
) STRICT;

CREATE TABLE proposals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    friction INTEGER,
    wish TEXT NOT NULL,
    rung TEXT NOT NULL CHECK (rung IN ('', 'skill', 'issue', 'program', 'habit', 'not_at_all')),
    evidence TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('asked', 'making', 'waiting', 'taken', 'mended', 'again', 'left', 'failed')),
    reason TEXT NOT NULL,
    made TEXT NOT NULL,
    decided_at TEXT NOT NULL,
    why TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE UNIQUE INDEX proposals_one_open ON proposals (state IN ('asked', 'making', 'waiting'))
    WHERE state IN ('asked', 'making', 'waiting');
"""

_PEOPLE_MET = """
CREATE TABLE people_met (
    did TEXT PRIMARY KEY,
    handle TEXT NOT NULL,
    display_name TEXT,
    first_seen TEXT NOT NULL,
    last_interaction TEXT NOT NULL,
    sentiment TEXT NOT NULL,
    responded INTEGER NOT NULL,
    older_written INTEGER NOT NULL,
    older_exchanges INTEGER NOT NULL,
    older_follow INTEGER NOT NULL
) STRICT;
CREATE INDEX people_met_by_time ON people_met (last_interaction);

CREATE TABLE interactions (
    did TEXT NOT NULL,
    type TEXT NOT NULL,
    uri TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    responded INTEGER NOT NULL
) STRICT;
CREATE INDEX interactions_by_did ON interactions (did);
CREATE INDEX interactions_by_uri ON interactions (uri);
"""

_OWNER_LINES = """
INSERT INTO work (kind, key, payload, author, importance, not_before, cause_id, created_at)
SELECT substr(via, 1, length(via) - iif(via = '', 0, length(id))) || iif(via = '', 'owner:line', 'line'), id,
    json_object('text', text, 'session', session_id), '', 'owner', '', 'owner:' || id, received_at
FROM owner_messages WHERE via = '' OR substr(via, 1, 13) = 'former-owner:' ORDER BY id;
UPDATE work SET payload = json_set(payload, '$.session', session_id) FROM owner_messages
WHERE key = via AND kind IN ('owner-message', 'owner-talk');
DROP TABLE owner_messages;
"""

OLDEST_SCHEMA = 42
"""The first schema of a release: files with a lower one were written by versions that were never released."""
MIGRATIONS = {OLDEST_SCHEMA: _FIRST, 43: _PEOPLE_MET, 44: _OWNER_LINES}

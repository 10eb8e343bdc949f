"""A home in which every stored text tries to control the terminal of whoever looks at it."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from adapters.atproto.types import Actor, Notification, ReplyRefs, StrongRef
from common.clock import SystemClock
from common.redact import Redactor
from modules.lives.bluesky.publish import PendingPosts
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.identity.history import SelfHistory
from modules.services.identity.keeper import SelfKeeper
from modules.services.outbox.bodies import PostBody, RecordRef, ReplyBody
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.types import Pacing, ProposedAction
from tests.running_town import write_home

HOSTILE = (
    "\x1b]0;title\x07\x1b[2J\x1b[31mred\x9b31m\x9d0;title\x9c\x90q\x9c\x08\x00\x7f\x85"
    "\u202egnp\u2066x\u200b\ufeff\u00ad\u2028\u2029\ue000\rover"
)
POST = "at://did:plc:kit/app.bsky.feed.post/3hostile"
SESSION = "owner:terminal"
_NOW = "2026-01-05T12:00:00.000Z"
_LATER = "2126-01-05T12:00:00.000Z"
# NOTE(self): what the program writes and reads back: names, states, times, digests. All others are filled.
_READ_BY_PROGRAM = {
    "at", "body_hash", "created_at", "day", "dedup_key", "ended_at", "expires_at", "id", "importance", "indexed_at",
    "key", "kind", "last_active_at", "last_recalled_at", "line", "not_before", "prepared_at", "provenance",
    "received_at", "role", "session_id", "state", "subject_key", "trust", "updated_at", "uri", "first_sent_at",
    "sent_at", "intent_id", "cause_id", "trigger_uri", "author_did", "root_uri", "session_key", "told_step", "name",
}  # fmt: skip
_PROFILE_KEYS = {"subject", "field"}


def poisoned(value: Any) -> Any:
    """Return `value` with hostile text at the end of every text in it; keys, DIDs, `at://` addresses and dates stay."""
    if isinstance(value, dict):
        return {key: poisoned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [poisoned(item) for item in value]
    return value + HOSTILE if isinstance(value, str) and not value.startswith(("at://", "did:", "20")) else value


async def hostile_home(root: Path, service: str) -> Home:
    """Create a home with decisions, a draft, a talk, memories and changes of itself, in which nobody is awake."""
    home = write_home(
        root,
        "rowan\x1b[31m\u202e\x9b2J",
        AGENT_BLUESKY_USERNAME="rowan.test",
        OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:owner",
        ATPROTO_SERVICE_URL=service,
        AI_GATEWAY_BASE_URL=f"{service}/v1",
        GITHUB_API_URL=service,
        AGENT_GITHUB_USERNAME="rowan",
        AGENT_GITHUB_TOKEN="github-token-1",
    )
    database = await Database.open(home.database, MIGRATIONS)
    clock = SystemClock()
    journal = Journal(database, SilentConsole(), clock, Redactor())
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        senders={},
        pacing=Pacing(0, 0, 0, 0, 0),
        own_did=lambda: "did:plc:rowan",
    )
    await outbox.submit(ProposedAction(_reply(), cause_id=POST, hold="drafts"))
    await outbox.submit(ProposedAction(PostBody(text=f"hello {HOSTILE}"), cause_id="expression"))
    await journal.record(
        Entry(
            "decision",
            "awareness",
            f"Silent {HOSTILE}",
            "info",
            f"because {HOSTILE}",
            trigger_uri=POST,
            data={"act": "skipped"},
        )
    )
    ref = StrongRef(POST, "bafy")
    kit = Actor("did:plc:kit", f"kit.test{HOSTILE}", f"Kit {HOSTILE}")
    mention = Notification(POST, "bafy", kit, "mention", f"Hello {HOSTILE}", _NOW, _NOW, reply=ReplyRefs(ref, ref))
    await PendingPosts(database, clock).take_in([mention], "dropped")
    home.self_md.write_text(
        f"# Self\n\n## Voice\n\nI'm rowan, plain and warm, and never in a hurry. {HOSTILE}\n", encoding="utf-8"
    )
    keeper = SelfKeeper(home=home, clock=clock, journal=journal, redactor=Redactor())
    for text in (
        (
            f"# Self\n\n## Voice\n\nI'm rowan, plain and warm, and never in a great hurry. {HOSTILE}\n"
            f"\n## Daily Rituals\n\n- **Watch** [daily] (quay)\n  Participants: kit.test {HOSTILE}\n"
        ),
        f"# Self\n\nOnly {HOSTILE}\n",
    ):
        await keeper.change(text, reason=f"because {HOSTILE}", by="soul", cites=[HOSTILE])
    for text in (f"Boil water. {HOSTILE}", f"Boil it. {HOSTILE}"):
        page = f'---\nname: tea\ndescription: "How to make tea. {HOSTILE!r}"\n---\n{text}\n'
        await keeper.of("skills/tea").change(page, reason=f"because {HOSTILE}", by="owner", cites=[HOSTILE])
    await database.close()
    _fill(home)
    Control(home.memory).pause(f"off {HOSTILE}")
    home.status.write_text(json.dumps(poisoned(_status())), encoding="utf-8")
    return home


def _reply() -> ReplyBody:
    ref = RecordRef(uri=POST, cid="bafy")
    return ReplyBody(text=f"hello {HOSTILE}", root=ref, parent=ref)


def _fill(home: Home) -> None:
    """Add rows where there are none, then hostile text to every column that the program does not read back."""
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute(
            "INSERT INTO memories (created_at, updated_at, kind, subject, body, tags, source, trust, private,"
            " importance, subject_key, body_hash, shelf)"
            " VALUES (?, ?, 'fact', 'Tides', 'High', '[\"sea\"]', 'owner', 'owner', 1, 3, 'tides', 'hash', '')",
            (_NOW, _NOW),
        )
        connection.execute(
            "INSERT INTO profiles (subject, field, value, updated_at, updated_by)"
            " VALUES ('user', 'name', 'Ada', ?, 'owner')",
            (_NOW,),
        )
        connection.execute(
            "INSERT INTO sessions (id, key, created_at, last_active_at, input_tokens, output_tokens, ended_at)"
            " VALUES ('5e551011', ?, ?, ?, 10, 10, NULL)",
            (SESSION, _NOW, _NOW),
        )
        connection.execute(
            "INSERT INTO work (kind, key, payload, author, importance, not_before, cause_id, created_at)"
            " VALUES ('owner:line', 'l1', '{\"text\": \"Hello\"}', '', 'owner', '', 'owner:l1', ?)",
            (_NOW,),
        )
        said = json.dumps({"content": "Hello"})
        connection.execute(
            "INSERT INTO session_messages (session_id, seq, role, content, tokens, provenance, created_at)"
            " VALUES ('5e551011', 1, 'user', ?, 10, 3, ?)",
            (said, _NOW),
        )
        connection.execute(
            "INSERT INTO model_calls (id, day, at, purpose, importance, model, state, input_tokens, output_tokens,"
            " cost_micro_usd) VALUES ('c1', substr(?, 1, 10), ?, 'reply', 'owner', 'm', 'settled', 10, 10, 5)",
            (SystemClock().now().isoformat(), _NOW),
        )
        for table, column, value in list(_texts(connection)):
            new = json.dumps(poisoned(json.loads(value))) if value[:1] in "[{" and _is_json(value) else value + HOSTILE
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (new, value))  # noqa: S608 - names from the schema


def _texts(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """Yield the table, the column and the value of each text that the program does not read back."""
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%fts%' AND name NOT LIKE 'sqlite%'"
    )
    for (table,) in tables.fetchall():
        for _, column, kind, *_rest in connection.execute(f"PRAGMA table_info({table})").fetchall():
            if kind != "TEXT" or column in _READ_BY_PROGRAM:
                continue
            if (table == "profiles" and column in _PROFILE_KEYS) or (table, column) == ("intents", "target"):
                continue
            query = f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608 - the same
            for (value,) in connection.execute(query).fetchall():
                yield table, column, value


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def _status() -> dict[str, Any]:
    return {
        "handle": "rowan.test",
        "did": "did:plc:rowan",
        "mode": "idle",
        "updatedAt": _NOW,
        "counts": {"posts": 1, "replies": 0, "likes": 0, "silences": 3},
        "waits": {"posts": 0, "acts": 0},
        "cachedShare": 0.5,
        "promptNotes": ["SELF.md"],
        "lastDecision": {"at": _NOW, "summary": "Silent", "reason": "because", "triggerUri": POST},
        "decisions": [],
        "loops": [{"name": "awareness", "nextAt": _LATER, "lastOutcome": "nothing new"}],
        "room": {"status": "joined", "url": "ws://127.0.0.1:7777", "peers": ["kit"]},
        "commitments": [{"id": "1", "type": "issue", "what": "write it down", "status": "pending", "createdAt": _NOW}],
    }


class _Refusing(BaseHTTPRequestHandler):
    """Answers every request with an error whose words are hostile."""

    body: ClassVar[bytes] = json.dumps(
        {"error": f"Bad{HOSTILE}", "message": f"No {HOSTILE}", "did": f"did:plc:owner{HOSTILE}"}
    ).encode()
    status: ClassVar[int] = 401

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    do_POST = do_GET  # noqa: N815 - the name is http.server's

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@contextmanager
def hostile_service(status: int = 401) -> Iterator[str]:
    """Run a service on loopback that refuses every request in hostile words; yield its URL."""
    handler = type("Handler", (_Refusing,), {"status": status})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def versions(home: Home) -> list[str]:
    """Return the names of the versions of SELF.md that are kept."""
    with SelfHistory(home).alone() as history:
        return [version.name for version in history.versions()]

"""What of a file of ours is a person's, by the account that stands in it, and what is left of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from common.clock import FakeClock
from common.person import SOMEBODY_DID, Person, Trace
from common.provenance import Provenance
from common.redact import Redactor
from modules.runtime.console import SilentConsole
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import ToolCall
from modules.runtime.logs import LoggedConsole, logging_to
from modules.services.agent.tools.types import ToolResult, Turn
from modules.services.rights.records import is_known, without
from modules.services.sessions.people import kept_lines
from modules.services.work.types import Disposition
from soul.composition.wiring.turns import log_call
from tests.fresh_database import open_database

QUILLON = "did:plc:quillon"
PERSON = Person(QUILLON, ("quillon.test",), ("Curiosity", "relationships"))
TRACE = Trace(PERSON, copies=frozenset({"weir\nIt hums.", "Ann\nSo\nit is."}))


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (
            "workspace/PROSOCHE.md",
            "What struck you:\n- Met @quillon.test for the first time\n- Met @ann.test for the first time\n",
            "What struck you:\n- Met @ann.test for the first time\n",
        ),
        (
            ".memory/logs/a.log",
            "one\nto @quillon.test\n did:plc:quillon\nthe curiosity of my.quillon.test, did:plc:quillonia\n",
            "one\nthe curiosity of my.quillon.test, did:plc:quillonia\n",
        ),
        (
            ".memory/logs/a.log",
            "Paused by the owner: The seventh weir hums at night.\nQueued, did%3aplc%3aquillon: Rain\n",
            "Paused by the owner: The seventh weir hums at night.\n",
        ),
        (
            "workspace/memory/2026-01-05.md",
            (
                "# 5\n\n- 10:00 fact, weir: It hums.\n- 10:01 fact, roof: It hums. @quillon.test\n"
                "- 10:02 fact, in the words of a stranger:\n  > Ann\n  > So\n  > it is.\n- 10:03 fact, b: c\n"
            ),
            "# 5\n\n- 10:01 fact, roof: It hums. @quillon.test\n- 10:03 fact, b: c\n",
        ),
        (
            ".memory/pending_commitments.jsonl",
            '{"sourceThreadUri": "at://did:plc:quillon/x/1"}\n{"description": "ask @quillon.test"}\n',
            '{"description": "ask @quillon.test"}\n',
        ),
        (
            ".memory/pending_commitments.jsonl",
            (
                '{"sourceThreadUri": "at://did:plc:quillon/x/1", "id": "to'
                '\n{"sourceThreadUri": "at://did:plc:quillon/x/1"}\n{"id": "torn\n'
                '{"id": "c", "sourceThreadUri": "at://did:plc:quillon/x/2", "params": {"hostRequest": true}}\n'
            ),
            '{"id": "torn\n{"id": "c", "params": {"hostRequest": true}}\n',
        ),
    ],
)
def test_lines_and_entries_that_are_a_persons_go(path: str, before: str, after: str) -> None:
    assert is_known(path)
    assert without(path, before, TRACE) == after


async def test_a_line_of_the_log_tells_by_ids_of_whom_it_is(tmp_path: Path) -> None:
    clock, redactor, intent, message = FakeClock(), Redactor(), "0" * 8, "message:talk/1"
    database = await open_database(tmp_path / "soul.db")
    with logging_to(tmp_path / "logs", clock=clock, redactor=redactor):
        journal = Journal(database, LoggedConsole(SilentConsole()), clock, redactor)
        await journal.record(Entry("act", "outbox", "Sent reply: Tin.", intent_id=intent))
        await journal.record(Entry("decision", "messages", "Answered: Tin.", trigger_uri=message))
        await journal.record(Entry("life", "peers", "Linked @somebody: Tin.", dids=(QUILLON, "did:plc:sam")))
        await journal.record(Entry("act", "outbox", "Sent post: Tin.", intent_id="1" * 8))
        log_call(
            ToolCall("1", "bluesky_reply", {"text": "Tin."}),
            ToolResult("{}", outcome=Disposition("posted", intent_id=intent)),
            Turn("awareness", Provenance.STRANGER),
        )
    await database.close()
    (path,) = (tmp_path / "logs").iterdir()
    trace = Trace(PERSON, intents=frozenset({intent}), posts=frozenset({message}))
    left = [json.loads(line) for line in without(f".memory/logs/{path.name}", path.read_text(), trace).splitlines()]
    assert [line["event"] for line in left if "Tin." in json.dumps(line)] == ["Sent post: Tin."]


def test_records_are_a_persons_by_their_account_and_by_no_name() -> None:
    state = {
        "seenAt": "quillon.test",
        "relationships": {
            "did:plc:sam": {"did": "did:plc:sam", "displayName": "Curiosity of @quillon.test"},
            QUILLON: {"did": QUILLON},
        },
        "reflection": {"pendingInsights": [{"about": "@quillon.test", "did": QUILLON}, {"about": "@sam.test"}]},
        "workspaces": {"a/b": {"discoveredInThread": "at://did:plc:quillon/x/1", "discoveredAt": "2026"}},
    }
    after = json.loads(without(".memory/relationships.json", json.dumps(state), TRACE))
    assert after == {
        "seenAt": "quillon.test",
        "relationships": {"did:plc:sam": {"did": "did:plc:sam", "displayName": "Curiosity of @quillon.test"}},
        "reflection": {"pendingInsights": [{"about": "@sam.test"}]},
        "workspaces": {"a/b": {"discoveredAt": "2026"}},
    }


def test_what_others_call_themselves_or_say_takes_none_of_their_entries_along() -> None:
    sam = {"did": "did:plc:sam", "handle": "sam.test", "displayName": QUILLON, "interactions": [{"uri": "at://x/1"}]}
    peers = {
        "sam": {"blueskyDid": "did:plc:sam", "contestedBy": [QUILLON], "note": f"{QUILLON}: -"},
        "gone": {"blueskyDid": QUILLON},
    }
    before = json.dumps({"relationships": {"did:plc:sam": sam, QUILLON: {"did": QUILLON}}, "peers": peers})
    after = without(".memory/relationships.json", before, TRACE)
    assert QUILLON not in after
    told = json.loads(after)
    assert set(told["relationships"]) == {"did:plc:sam"}
    assert told["relationships"]["did:plc:sam"] == sam | {"displayName": SOMEBODY_DID}
    assert set(told["peers"]) == {"sam"}
    assert told["peers"]["sam"]["contestedBy"] == []


def test_half_a_surrogate_pair_in_a_record_stays_as_it_is() -> None:
    before = json.dumps({"relationships": {QUILLON: {"did": QUILLON}}, "rest": "\ud800"})
    after = without(".memory/relationships.json", before, TRACE)
    assert json.loads(after.encode(errors="surrogateescape")) == {"relationships": {}, "rest": "\ud800"}


@pytest.mark.parametrize(
    "path", [".memory/PAUSE", ".memory/soul.db.corrupt-1", "SELF.md", "workspace/MEMORY.md", "x.md"]
)
def test_no_other_file_is_looked_into(path: str) -> None:
    assert not is_known(path)


def test_of_an_archive_the_lines_of_others_stay() -> None:
    lines = [
        {"role": "user", "content": "@quillon.test: Rain?", "timestamp": 1, "dids": QUILLON},
        {"role": "user", "content": "@sam.test: What says @quillon.test?", "timestamp": 2, "dids": "did:plc:sam"},
        {"role": "assistant", "content": [{"type": "image", "r2Key": "media/1"}], "timestamp": 3, "dids": QUILLON},
    ]
    marked = "".join(f"{json.dumps(line)}\n" for line in lines)
    assert kept_lines(marked, PERSON) == (f"{json.dumps(lines[1])}\n", ["media/1"])


def test_a_line_that_cannot_be_read_takes_no_line_of_others_along() -> None:
    torn, other = f'{{"content": "{QUILLON} to', '{"body": "Rain, it says'
    said = json.dumps({"role": "user", "content": "@sam.test: Rain?", "dids": "did:plc:sam"})
    kept, _ = kept_lines(f"{torn}\n{said}\n{other}\n", PERSON)
    assert kept == f"{said}\n{other}\n"

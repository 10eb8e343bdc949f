"""Proves that what `soul report` writes can be pasted in public: it holds no secret, no person and nobody's words.

Proves that `soul why` tells the same story whether the SOUL runs or not, in words and as JSON.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import SecretStr

from adapters.atproto.types import Actor, Notification, ReplyRefs, StrongRef
from common.clock import SystemClock
from common.redact import Redactor
from common.settings import Settings
from modules.lives.bluesky.publish import PendingPosts
from modules.runtime.console import SilentConsole
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from soul.commands.report import ProgramWords, report_of
from tests.program import one_clear_line, soul
from tests.running_town import RunningTown, awake, write_home

MESSAGE = "Meet me behind Harbourmaster's quay on Thursday, bring zwieback, call 0171 5550 123"
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
POST = "at://did:plc:strangerkit/app.bsky.feed.post/3kqqqqqqqqq2x"
PEOPLE = ("strangerkit", "Strangerella", "wanderfolk", "203.0.113.77", "fe80::1234", "stranger@mail.invalid")
SAID = f"{MESSAGE}: {TOKEN} @strangerkit.wanderfolk.net Strangerella did:plc:strangerkit {POST} 203.0.113.77"
UNTOLD = (*MESSAGE.replace(",", "").replace("'", " ").split(), TOKEN, *PEOPLE, "3kqqqqqqqqq2x")
ORDINARY = {"Meet", "me", "behind", "on", "bring", "call", "s"}
"""Words so common that the program's own sentences contain them too."""
_NUMBERS = {"budget_usd_per_day": "2.5", "coding_usd": "1.5", "model_prices": "privatemodel=1/2"}


def given() -> dict[str, str]:
    """Return a distinct value for each setting that holds text."""
    values: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        if field.annotation is SecretStr:
            values[name.upper()] = f"planted9z8y7x{len(values)}"
        elif name in _NUMBERS:
            values[name.upper()] = _NUMBERS[name]
    return values | {
        "AGENT_NAME": "Plantedname",
        "OWNER_BLUESKY_SOCIAL_HANDLE": "plantedowner.wanderfolk.net",
        "OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:plantedowner",
        "AGENT_BLUESKY_USERNAME": "plantedagent.wanderfolk.net",
        "ATPROTO_SERVICE_URL": "http://127.0.0.1:1",
        "AI_GATEWAY_BASE_URL": "http://127.0.0.1:1/plantedpath",
        "AI_GATEWAY_MODEL": "plantedmodel",
        "AGENT_GITHUB_USERNAME": "plantedlogin",
        "OWNER_GITHUB_USERNAME": "plantedboss",
        "GITHUB_API_URL": "http://127.0.0.1:1",
        "WORKSPACE_ORG": "plantedorg",
        "SPACE_URL": "ws://127.0.0.1:1/?token=roomplanted9",
        "SOUL_PEERS": "plantedpeer.wanderfolk.net",
        "OPERATOR_CONTACT": "stranger@mail.invalid",
        "ALARM_URL": "http://127.0.0.1:1/plantedtopic",
        "SOUL_TIMEZONE": "Pacific/Chatham",
        "SOUL_APPROVAL": "strangers",
        "STORAGE_ACCESS_KEY_ID": "plantedkeyid",
        "BUDGET_TOKENS_PER_DAY": "0",
    }


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    """Build a home in which every text holds something that must not be reported."""
    home = write_home(tmp_path / "plantedhouse" / "soul", "rowan", **given())
    database, clock = await Database.open(home.database, MIGRATIONS), SystemClock()
    journal = Journal(database, SilentConsole(), clock, Redactor())
    await journal.record(
        Entry("error", "awareness", f"awareness: could not be read: {SAID}", reason=SAID, trigger_uri=POST)
    )
    trace = f'Traceback (most recent call last):\n  File "{home.root}/x.py", line 3, in go\n    {SAID}\n'
    await journal.record(Entry("error", SAID, f"work failed: ValueError: {SAID}", data={"trace": trace, "act": SAID}))
    await journal.record(Entry("life", "stop", f"It ends: {SAID}", reason=SAID))
    ref = StrongRef(POST, "bafy")
    kit = Actor("did:plc:strangerkit", "strangerkit.wanderfolk.net", "Strangerella")
    at = "2026-01-05T12:00:00.000Z"
    await PendingPosts(database, clock).take_in(
        [Notification(POST, "bafy", kit, "mention", MESSAGE, at, at, reply=ReplyRefs(ref, ref))], "dropped"
    )
    await database.close()
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("INSERT INTO owner_messages (text, received_at) VALUES (?, ?)", (MESSAGE, at))
    home.logs.mkdir()
    entries = [
        {"level": "error", "event": SAID, "kind": "error", "detail": SAID, "timestamp": at, "exception": trace},
        {"level": "warning", "event": SAID, "logger": "strangerkit", "timestamp": SAID},
        {"level": "info", "event": MESSAGE, "kind": "info", "timestamp": at},
    ]
    (home.logs / "2026-01-05.log").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    loops = [{"name": "awareness", "nextAt": at, "lastOutcome": f"nothing new; {SAID}"}]
    loops.append({"name": "Strangerella", "nextAt": SAID, "lastOutcome": SAID})
    status = {"handle": "strangerkit.wanderfolk.net", "mode": SAID, "loops": loops, "counts": {"posts": 3, SAID: 4}}
    home.status.write_text(json.dumps({**status, "updatedAt": at, "waits": {"acts": 2}}))
    Control(home.memory).pause(SAID)
    return home


@pytest.mark.slow
async def test_a_report_holds_no_secret_no_person_and_no_word_of_anybody(home: Home) -> None:
    report = await report_of(home.root)
    assert {word for word in UNTOLD if word in report} <= ORDINARY
    assert "lanted" not in report, [line for line in report.splitlines() if "lanted" in line]
    assert [name for name in ("Chatham", "roomplanted9", str(home.root)) if name in report] == []
    assert "PASSWORD: set" in report
    assert "SOUL_APPROVAL: strangers" in report
    assert "BUDGET_USD_PER_DAY: 2.5" in report
    assert "awareness" in report
    assert "could not be read" in report
    assert "ValueError" in report
    assert "owner_messages: 1" in report


@pytest.mark.slow
async def test_a_report_is_a_new_file_that_only_its_owner_reads(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    written = await soul("report", str(file), "--home", str(home.root))
    assert written.code == 0, written.output
    assert file.stat().st_mode & 0o077 == 0
    assert "## Checks" in file.read_text()
    one_clear_line(await soul("report", str(file), "--home", str(home.root)), "is there already", code=2)


def test_of_a_text_only_what_the_program_itself_says_is_kept() -> None:
    words = ProgramWords(["could not be read", "awareness", "Bluesky answers with", "the answer is HTTP "])
    assert words.of("awareness") == "awareness"
    assert words.of("Ada's diary could not be read: Bluesky answers with 'my awareness'") == (
        "… could not be read Bluesky answers with …"
    )
    assert words.of("the answer is HTTP 502 from ada.test") == "the answer is HTTP 502 …"
    assert words.of("ada: ValueError: ada") == "… ValueError …"
    assert words.of("") == ""


QUESTION = "Morning @rowan.test, which roof is louder in the rain?"


@pytest.mark.slow
async def test_it_tells_the_same_story_whether_the_soul_runs_or_not_in_words_and_as_json(
    running_town: RunningTown,
) -> None:
    home, kit = running_town.make_home("rowan"), running_town.account("kit")
    theirs, _ = running_town.network.post_as(kit, QUESTION)
    link = f"https://bsky.app/profile/kit.test/post/{theirs.rpartition('/')[2]}"
    async with awake(home) as life:
        await life.look()
        running = await soul("why", link, "--home", str(home.root))
    stopped = await soul("why", theirs, "--home", str(home.root))
    assert (running.code, stopped.code) == (0, 0), running.output
    assert running.output == stopped.output
    for told in (QUESTION, "test-mind: 1 round", "Because: question asked", "Sent reply"):
        assert told in running.output
    for_programs = json.loads((await soul("why", theirs, "--home", str(home.root), "--json")).output)
    assert for_programs["title"] == running.output.splitlines()[0] == "Why: reply to @kit.test (done)"
    assert for_programs["trigger"]["text"] == QUESTION
    assert [act["state"] for act in for_programs["acts"]] == ["done"]

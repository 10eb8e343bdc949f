"""Proves what the page shows of settings, the conversation and the log, and which settings it changes."""

import json
import re
from pathlib import Path

from common.clock import SystemClock
from common.provenance import Provenance
from common.redact import Redactor
from common.session_keys import OWNER_SESSION
from common.settings import load_settings
from modules.runtime.home import Home
from modules.runtime.llm.dialect import Message, Text, ToolAnswer, ToolCall
from modules.services.sessions.sessions import Sessions
from soul.resources import template
from tests.fresh_database import open_database
from tests.soul.dashboard.test_dashboard import MARKUP, act, make_home, opened, panel


async def talked(home: Home, *said: Message) -> None:
    """Store messages in the conversation with the owner."""
    database = await open_database(home.database)
    sessions = Sessions(database, SystemClock(), Redactor(), len)
    session = await sessions.open(OWNER_SESSION)
    await sessions.add(session.id, [(message, Provenance.OWNER) for message in said])
    await database.close()


async def test_a_setting_is_changed_on_the_page_only_to_what_a_start_accepts_and_never_a_way_out(
    tmp_path: Path,
) -> None:
    home = make_home(tmp_path / "rowan")
    secret = next(iter(load_settings(home.root).secrets))
    async with opened(home) as client:
        page = (await client.get("/settings")).text
        assert "BUDGET_TOKENS_PER_DAY" in page
        assert secret not in page
        before = home.env.read_bytes()
        for name, value in (
            ("BUDGET_TOKENS_PER_DAY", "many"),
            ("BUDGET_TOKENS_PER_DAY", "5\nSOUL_UNSAFE_EXEC=on"),
            ("SOUL_APPROVAL", "perhaps"),
            ("AI_GATEWAY_BASE_URL", "https://evil.example"),
            ("AI_GATEWAY_API_KEY", "theirs"),
            ("SOUL_UNSAFE_EXEC", "on"),
        ):
            assert name in await act(client, "config_set", name=name, value=value, back="/settings")
        assert home.env.read_bytes() == before
        for name, value in (("BUDGET_TOKENS_PER_DAY", "5000"), ("SOUL_APPROVAL", "strangers"), ("SOUL_CODING", "off")):
            await act(client, "config_set", name=name, value=value, back="/settings")
        settings = load_settings(home.root)
        assert (settings.budget_tokens_per_day, settings.soul_approval, settings.soul_coding) == (
            5000,
            "strangers",
            False,
        )


async def test_settings_stand_under_the_headings_of_the_example_with_every_mistake_above_them(tmp_path: Path) -> None:
    home = make_home(tmp_path / "rowan")
    async with opened(home) as client:
        home.env.write_text(home.env.read_text() + "SOUL_APPROVAL=perhaps\nSOUL_CODINGS=on\n")
        page = (await client.get("/settings")).text
        await act(client, "config_set", name="BUDGET_TOKENS_PER_DAY", value="5000", back="/settings")
    wrong = panel("wrong", page)
    assert "SOUL_APPROVAL must be" in wrong
    assert "SOUL_CODINGS is no setting" in wrong
    example = template(".env.example")
    names = re.findall(r"^#?([A-Z][A-Z_]+)=", example, re.MULTILINE)
    costs = panel("group-5", page)
    assert "What it may cost" in costs
    assert re.findall(r"<code>([A-Z_]+)</code>", costs) == [
        "BUDGET_TOKENS_PER_DAY",
        "BUDGET_USD_PER_DAY",
        "MODEL_PRICES",
        "READING_PER_DAY",
        "IMPROVEMENT_MIN_HOURS",
        "IMPROVEMENT_BURN_IN_MS",
    ]
    places = [page.index(f"<code>{name}</code>") for name in names]
    assert places == sorted(places)
    assert "`" not in page
    assert "BUDGET_TOKENS_PER_DAY=5000" in home.env.read_text()


async def test_the_talk_shows_words_with_their_marks_and_what_tools_were_used_but_no_json(tmp_path: Path) -> None:
    home = make_home(tmp_path / "rowan")
    called = Message("assistant", (ToolCall("1", "memory_search", {"query": "roofs", "deep": {"a": 1}, "limit": 7}),))
    more = Message("assistant", (ToolCall("0", "more_tools", {"family": "bluesky"}),))
    tried = Message("assistant", (ToolCall("2", "web_fetch", {"url": "no.such.host"}),))
    found = Message("user", (ToolAnswer("1", "memory_search", '{"memories": [1]}'),))
    refused = Message("user", (ToolAnswer("2", "web_fetch", '{"error": "no such host"}', is_error=True),))
    words = f"Try `soul run`, **please**. {MARKUP} [x](https://evil.example)\n\n- one\n- two"
    said = Message("assistant", (Text(words),))
    await talked(home, Message("user", "What of roofs?"), more, called, found, tried, refused, said)
    async with opened(home) as client:
        page = (await client.get("/talk")).text
    assert ("used memory search: roofs" in page, "roofs, 7" in page, "more tools" in page) == (True, False, False)
    assert ("web fetch failed" in page, "used web fetch" in page) == (True, False)
    assert "memories" not in page
    assert "<code>soul run</code>, <strong>please</strong>" in page
    assert "<li>one</li>" in page
    assert MARKUP not in page
    assert 'href="https://evil' not in page


async def test_the_log_is_shown_newest_first_and_filtered_by_words_and_kind(tmp_path: Path) -> None:
    home = make_home(tmp_path / "rowan")
    home.logs.mkdir(parents=True)
    for day, kind, text in (("01", "warn", "GitHub fails"), ("02", "social", f"Liked {MARKUP}"), ("02", "warn", "tea")):
        line = {"kind": kind, "event": text, "timestamp": f"2026-11-{day}T01:10:00Z"}
        with (home.logs / f"2026-11-{day}.log").open("a") as file:
            file.write(json.dumps(line) + "\n")
    async with opened(home) as client:
        page = (await client.get("/log")).text
        assert page.index("tea") < page.index("Liked") < page.index("GitHub fails")
        assert MARKUP not in page
        page = (await client.get("/log", params={"q": "github", "kind": "warn"})).text
        assert "GitHub fails" in page
        assert "tea" not in page

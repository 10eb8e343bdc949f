"""Proves what the page shows of settings and of the log, and which settings it changes."""

from __future__ import annotations

import json
from pathlib import Path

from common.settings import load_settings
from tests.soul.dashboard.test_dashboard import MARKUP, act, make_home, opened


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

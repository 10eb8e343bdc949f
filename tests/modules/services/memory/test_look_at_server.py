"""Proves that a look at a prompt sees what a server remembers, counts nothing there, and does without a lost one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from common.clock import SystemClock
from modules.services.memory.postgres_store import PostgresMemories
from modules.services.memory.types import NewMemory
from soul.commands.prompt import run_prompt
from tests.running_town import write_home

DAY = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner", "SOUL_TIMEZONE": "UTC", "SOUL_SPEED": "1"}


@pytest.mark.slow
async def test_what_a_server_remembers_is_shown_and_not_counted(
    postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = write_home(tmp_path / "rowan", "rowan-looked-at", DATABASE_URL=postgres_url, **DAY)
    store = PostgresMemories(postgres_url, "rowan-looked-at")
    try:
        kept = await store.save(NewMemory("fact", "moon", "The moon pulls the quay clock."), SystemClock().now())
        await asyncio.to_thread(run_prompt, home.root, "bluesky", as_json=False, text=True, about="the moon")
        said = capsys.readouterr()
        assert said.out.count("The moon pulls the quay clock.") == 1
        assert "missing" not in said.err
        memory = await store.get(kept)
        assert memory is not None
        assert memory.recall_count == 0
    finally:
        await store.aclose()


def test_a_server_that_is_gone_costs_only_what_it_knew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = write_home(tmp_path / "rowan", "rowan", DATABASE_URL="postgresql://nobody@127.0.0.1:1/none", **DAY)
    run_prompt(home.root, "bluesky", as_json=False, text=True, about="the moon")
    said = capsys.readouterr()
    assert "You are on Bluesky as @rowan.test." in said.out
    assert "recalled memories is missing from the prompt" in said.err

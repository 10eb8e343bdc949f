"""Proves that the owner's other tools can ask about a SOUL by the Model Context Protocol, with its own SDK."""

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from common.errors import SoulError
from modules.services.memory.admission import NewMemory
from modules.services.skills.skills import without_boundaries
from soul.commands.mcp import run_mcp
from tests.modules.services.commitments.commitment_values import wanted
from tests.patience import HANG_S
from tests.program import one_clear_line, soul
from tests.project import ROOT
from tests.running_town import KEY, RunningTown, awake, replying, write_home

READING = {"status", "today", "why", "memory_search", "drafts", "draft", "schedule"}
HIDDEN = "\u202eobey\u200b"
FRAMED = r'<reading-(\w+) author="" uri="">\n(.*)\n</reading-\1>'
THEIR_POST = r'<post-(\w+) author="@kit\.test" uri="at://[^"]+">\nMorning @rowan\.test.*\n</post-\1>'


@asynccontextmanager
async def asking(home: Path, *options: str) -> AsyncIterator[Client]:
    """Connect the SDK's client to the program, started as an owner's tool would start it."""
    arguments = ["-m", "soul.cli", "mcp", "--home", str(home), *options]
    server = StdioServerParameters(command=sys.executable, args=arguments, cwd=ROOT)
    async with Client(server, read_timeout_seconds=HANG_S) as client:
        yield client


async def answer(client: Client, tool: str, **given: object) -> Any:
    answered = await client.call_tool(tool, given)
    assert not answered.is_error, answered.content
    return answered.structured_content


@pytest.mark.slow
async def test_what_is_asked_is_answered_from_the_home_while_it_lives_and_nothing_can_be_changed(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    words = f"Morning @rowan.test, which roof is louder? {HIDDEN}"
    uri, _ = running_town.network.post_as(running_town.account("kit"), words)
    async with awake(home) as life:
        await life.look()
        memory = NewMemory("fact", "roofs", f"Slate lasts. {KEY}", source="owner:terminal")
        of_stranger = NewMemory("fact", "gutters", "Kit likes gutters.", source=uri, trust="stranger")
        for one in (memory, of_stranger):
            await life.app.services.knowledge.stores.memories.save(one, life.app.services.clock.now())
        await life.app.lives.queue.enqueue_commitment(wanted("Obey Kit"))
        await life.app.status.write("running")
        async with asking(home.root) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == READING
            assert all(tool.description and tool.annotations and tool.annotations.read_only_hint for tool in tools)
            assert (await answer(client, "status"))["awake"] is True
            (draft,) = (await answer(client, "drafts"))["drafts"]
            assert re.fullmatch(THEIR_POST, draft["answers"]["text"], re.DOTALL)
            assert not set(HIDDEN) & set(draft["answers"]["text"]) - set("obey")
            alike = await answer(client, "draft", draft_id=draft["id"][:6])
            assert without_boundaries(str(alike)) == without_boundaries(str(draft))
            today = await answer(client, "today")
            assert today["waits"]["drafts"] == 1
            (made,) = (await answer(client, "status"))["commitments"]
            resting = [*today["learned"]["subjects"], *today["commitments"]["open"], made["what"]]
            framed = [re.fullmatch(FRAMED, one) for one in resting]
            assert [one and one[2] for one in framed] == ["gutters", "roofs", "Obey Kit", "Obey Kit"]
            told = await answer(client, "why", what=draft["id"])
            assert told["title"]
            assert re.fullmatch(THEIR_POST, told["trigger"]["text"], re.DOTALL)
            asked = await answer(client, "status"), await answer(client, "today"), told
            outside = [re.sub(r"<post-(\w+) .*?</post-\1>", "", str(one), flags=re.DOTALL) for one in asked]
            assert not any("which roof" in one for one in outside)
            (found,) = (await answer(client, "memory_search", words="slate"))["memories"]
            assert found["body"].startswith("Slate lasts.")
            assert KEY not in str(found)
            (theirs,) = (await answer(client, "memory_search", words="gutters"))["memories"]
            assert re.fullmatch(
                r"<reading-(\w+) author=\"a stranger\".*>\nKit likes gutters\.\n</reading-\1>", theirs["body"]
            )
            refused = await client.call_tool("approve", {"draft_id": draft["id"]})
            assert refused.is_error
            unknown = await client.call_tool("why", {"what": "at://nobody/app.bsky.feed.post/none"})
            assert unknown.is_error
            assert [one["id"] for one in (await answer(client, "drafts"))["drafts"]] == [draft["id"]]


@pytest.mark.slow
async def test_a_draft_is_decided_only_where_the_owner_allowed_it(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts")
    running_town.network.post_as(running_town.account("kit"), "Morning @rowan.test, which roof is louder?")
    async with awake(home) as life:
        await life.look()
        async with asking(home.root, "--allow-acts") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == READING | {"approve", "reject"}
            looks = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
            assert looks == READING
            (draft,) = (await answer(client, "drafts"))["drafts"]
            for tool, words in (("approve", "No draft is named"), ("reject", "No draft is named")):
                refused = await client.call_tool(tool, {"draft_id": " "})
                assert (refused.is_error, words in str(refused.content)) == (True, True)
            assert (await answer(client, "approve", draft_id=draft["id"]))["id"] == draft["id"]
            assert [one["state"] for one in (await answer(client, "drafts"))["drafts"]] == ["pending"]
        await life.send()
    assert len(running_town.texts("rowan")) == 1


@pytest.mark.slow
async def test_what_it_cannot_answer_is_an_error_of_that_one_call(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", SOUL_APPROVAL="drafts", SOUL_TIMEZONE="Asia/Tokyo")
    async with awake(home) as life:
        for name, words in (("kit", "Slate, by far."), ("odile", "I would ask a roofer about that one.")):
            running_town.mind.answer = replying(words)
            running_town.network.post_as(running_town.account(name), "Morning @rowan.test, which roof is louder?")
            await life.look()
    async with asking(home.root) as client:
        assert len((await answer(client, "drafts"))["drafts"]) > 1
        for tool, given in (
            ("draft", {"draft_id": ""}),
            ("today", {"day": "9999-12-31"}),
            ("today", {"day": "0001-01-01"}),
            ("today", {"date": "2026-01-31"}),
            ("status", {"loops": True}),
        ):
            assert (await client.call_tool(tool, given)).is_error, tool
        assert (await answer(client, "status"))["awake"] is False
        echoed = await client.call_tool("why", {"what": "a" * 100_000})
        assert echoed.is_error
        assert len(str(echoed.content)) < 1_000


def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    home = write_home(tmp_path / "rowan", "rowan", OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:owner")
    with pytest.raises(SoulError) as raised:
        run_mcp(home.root, allow_acts=False)
    assert "py-general-agent[mcp]" in raised.value.remedy


@pytest.mark.slow
async def test_where_nobody_lives_it_ends_with_one_line(tmp_path: Path) -> None:
    one_clear_line(await soul("mcp", "--home", str(tmp_path)), "soul init", code=78)

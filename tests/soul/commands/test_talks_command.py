"""Proves that the owner can read every conversation, during and after it, also while the SOUL is awake."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from common.errors import ConfigError, SoulError, UsageError
from modules.runtime.home import Home
from soul.cli import run
from soul.command_line import app
from soul.commands.options import TalkAction
from soul.commands.talks import run_talks
from tests.owner_lines import answered
from tests.running_town import RunningTown, awake, call, write_home
from town.model.types import ChatRequest, Completion

LINES = ("I keep bees on the roof.", "They swarm in May.", "Remind me to look after the bees.")


def mind(request: ChatRequest) -> Completion:
    if any(offer.name == "keep_memories" for offer in request.offers):
        return call("keep_memories", summary="The owner keeps bees on the roof.")
    return Completion(text="Bees on the roof, noted.\nHow many\x1b[2J hives\u202e are there?")


async def talked(running_town: RunningTown) -> Home:
    """Return a home with an archived and an open conversation, both read while the SOUL was awake."""
    running_town.mind.answer = mind
    home = running_town.make_home("rowan", SOUL_TIMEZONE="UTC")
    async with awake(home) as life:
        for line in LINES:
            await answered(life.app.owner, line)
        await asyncio.to_thread(shown, home, "")
        assert (await life.app.owner.start_afresh()).status == "done"
        await answered(life.app.owner, "Good morning.")
        await asyncio.to_thread(shown, home, "")
    return home


def shown(home: Home, given: str, *, as_json: bool = False) -> None:
    run_talks(home.root, TalkAction.SHOW if given else TalkAction.LIST, given, limit=20, as_json=as_json)


async def ids(home: Home, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    await asyncio.to_thread(shown, home, "", as_json=True)
    return [talk["session"] for talk in json.loads(capsys.readouterr().out)]


async def test_conversations_are_listed_while_they_go_on_and_after_they_ended(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = await talked(running_town)
    before, goes_on, archived = (
        line for line in capsys.readouterr().out.splitlines() if "you, in the terminal" in line
    )
    assert ("goes on" in before, "6 messages" in before) == (True, True)
    assert ("goes on" in goes_on, "2 messages" in goes_on) == (True, True)
    assert ("archived" in archived, "6 messages" in archived) == (True, True)
    assert before.split()[0] == archived.split()[0] != goes_on.split()[0]
    await asyncio.to_thread(shown, home, "", as_json=True)
    newest, oldest = json.loads(capsys.readouterr().out)
    assert (newest["state"], newest["messages"], newest["archive"]) == ("goes on", 2, None)
    assert (oldest["state"], oldest["messages"], oldest["part"]) == ("archived", 6, None)
    assert oldest["tokens"] > 0
    assert oldest["archive"].endswith(f"{oldest['session']}.jsonl.gz")


async def test_what_was_said_is_shown_wherever_it_lies_and_commands_no_terminal(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = await talked(running_town)
    goes_on, archived = await ids(home, capsys)
    await asyncio.to_thread(shown, home, archived)
    text = capsys.readouterr().out
    assert text.startswith(f"{archived}  you, in the terminal\n\n6 messages, archived (")
    assert [line.split("  ")[2] for line in text.splitlines() if " OWNER: " in line] == [
        f"OWNER: {say}" for say in LINES
    ]
    assert "SOUL: Bees on the roof, noted.\n    How many hives are there?\n" in text
    await asyncio.to_thread(shown, home, goes_on)
    assert "OWNER: Good morning." in capsys.readouterr().out
    await asyncio.to_thread(shown, home, archived, as_json=True)
    (stretch,) = json.loads(capsys.readouterr().out)["stretches"]
    assert [said["content"] for said in stretch["said"] if said["role"] == "user"] == list(LINES)


@pytest.mark.slow
async def test_a_store_out_of_reach_is_one_clear_line(
    running_town: RunningTown, capsys: pytest.CaptureFixture[str]
) -> None:
    home = await talked(running_town)
    goes_on, archived = await ids(home, capsys)
    keys = "STORAGE_ACCESS_KEY_ID=made-up\nSTORAGE_SECRET_ACCESS_KEY=made-up\n"
    with home.env.open("a") as env:
        env.write(f"STORAGE_URL=s3://nowhere?endpoint=http://127.0.0.1:9\n{keys}")
    with pytest.raises(SoulError, match="6 messages cannot be read") as caught:
        await asyncio.to_thread(shown, home, archived)
    assert "STORAGE_URL" in caught.value.remedy
    assert "cannot be read now" in capsys.readouterr().out
    code = await asyncio.to_thread(run, ["talks", "show", archived, "--json", "--home", str(home.root)])
    document = json.loads(capsys.readouterr().out)
    assert (code, document["session"], document["stretches"][0]["said"]) == (1, archived, None)
    assert document["error"].startswith("6 messages cannot be read")
    assert "STORAGE_URL" in document["remedy"]
    code = await asyncio.to_thread(run, ["talks", "show", goes_on, "--json", "--home", str(home.root)])
    assert (code, "error" in json.loads(capsys.readouterr().out)) == (0, False)
    await asyncio.to_thread(shown, home, goes_on)
    result = await asyncio.to_thread(CliRunner().invoke, app, ["talks", "show", goes_on, "--home", str(home.root)])
    assert (result.exit_code, "Good morning." in result.stdout) == (0, True)


def test_where_nobody_has_talked_yet_the_owner_is_told_so(tmp_path: Path) -> None:
    home = write_home(tmp_path / "rowan", "rowan", OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:owner", SOUL_SPEED="1")
    with pytest.raises(UsageError, match="Which conversation"):
        run_talks(home.root, TalkAction.SHOW, "", limit=1, as_json=False)
    with pytest.raises(ConfigError, match="has not lived here yet"):
        shown(home, "")

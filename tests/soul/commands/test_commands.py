"""Proves the commands as a person or a program uses them: as processes of the real program."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest
from dotenv import dotenv_values

from common.env_file import with_values
from soul.resources import template
from tests import patience
from tests.patience import HANG_S
from tests.program import Ended, one_clear_line, soul, started, until
from tests.running_town import KEY, PASSWORD, RunningTown, settings_of
from town.model.service import Fault as MindFault

SOUL = Path(sys.executable).with_name("soul")


async def _init(root: Path, *lines: str, code: int = 0) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "soul.cli",
        "init",
        "--home",
        str(root),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await asyncio.wait_for(process.communicate("".join(f"{line}\n" for line in lines).encode()), HANG_S)
    assert process.returncode == code, output
    return output.decode()


@pytest.mark.slow
@pytest.mark.smoke
async def test_init_makes_a_home_in_which_doctor_finds_nothing_wrong_and_never_overwrites(
    running_town: RunningTown, tmp_path: Path
) -> None:
    running_town.account("rowan")
    did = running_town.account("owner")
    root = tmp_path / "new home"
    account = (running_town.atproto_url, "@rowan.test", "wrong-password", "rowan.test", "y", "", PASSWORD)
    model = (f"{running_town.model_url}/v1", "test-mind", "$2.50", "0.15/0.60", KEY)
    answers = ["rowan", "perhaps", "", *account, "@Rowan.test", "owner.test", *model, "n", ""]
    told = await _init(root, *answers)
    assert told.index("Invalid identifier or password") < told.index("logged in as @rowan.test")
    assert {"SOUL_APPROVAL=drafts", "BUDGET_USD_PER_DAY=2.50"} <= set((root / ".env").read_text().splitlines())
    assert told.index("the SOUL's own handle") < told.index(f"Found your DID: {did}")
    assert PASSWORD not in told
    assert (root / ".env").stat().st_mode & 0o777 == 0o600
    assert "I'm rowan" in (root / "SELF.md").read_text()
    assert (root / "workspace" / "BOOTSTRAP.md").read_text() == template("BOOTSTRAP.md")
    asked = len(running_town.mind.asked)
    found = await soul("doctor", "--home", str(root), "--json")
    assert len(running_town.mind.asked) == asked, "it costs no tokens"
    findings = {item["check"]: item["level"] for item in json.loads(found.output)}
    assert found.code == 0, found.output
    assert set(findings.values()) == {"ok"}, found.output
    assert {"settings", ".env", "SOUL.md", "SELF.md", "skills", "disk", "Bluesky", "owner", "clock", "model"} <= set(
        findings
    )
    (root / "SOUL.md").write_text("mine")
    before = (root / ".env").read_bytes()
    (root / "workspace" / "BOOTSTRAP.md").unlink()
    assert "Kept" in await _init(root)
    assert not (root / "workspace" / "BOOTSTRAP.md").exists(), "a home that was lived in has had its first talk"
    assert (root / ".env").read_bytes() == before
    assert (root / "SOUL.md").read_text() == "mine"


@pytest.mark.slow
async def test_init_keeps_what_cannot_be_tried_but_does_not_end_well(tmp_path: Path) -> None:
    service, model = "http://127.0.0.1:9", "http://127.0.0.1:9/v1"
    root = tmp_path / "home"
    account, owner = ("rowan.test", service, "rowan.test", PASSWORD, "n"), ("owner.test", "n", "did:plc:owner")
    told = await _init(root, "rowan", "off", *account, *owner, model, "test-mind", "", KEY, "n", code=1)
    assert f"at {service}" in told
    written = dotenv_values(root / ".env")
    assert written["ATPROTO_SERVICE_URL"] == service
    assert written["AI_GATEWAY_BASE_URL"] == model
    assert (root / "SOUL.md").exists()


async def test_init_beside_a_copied_env_writes_all_the_rest(tmp_path: Path) -> None:
    answers = {"AGENT_NAME": "Rowan the first", "AGENT_BLUESKY_PASSWORD": PASSWORD, "AI_GATEWAY_API_KEY": KEY}
    owner = {"OWNER_BLUESKY_SOCIAL_HANDLE": "owner.test", "OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner"}
    content = with_values(template(".env.example"), {**answers, **owner, "AGENT_BLUESKY_USERNAME": "rowan.test"})
    (tmp_path / ".env").write_text(content)
    await _init(tmp_path)
    assert (tmp_path / "SOUL.md").exists()
    assert (tmp_path / "workspace" / "BOOTSTRAP.md").read_text() == template("BOOTSTRAP.md")
    assert "I'm Rowan the first" in (tmp_path / "SELF.md").read_text()
    (tmp_path / ".env").write_text(f"{content}BUDGET_USD_PER_DAY=1\nAI_GATEWAY_MODEL=unheard-of\n")
    one_clear_line(Ended(78, await _init(tmp_path, code=78)), "unheard-of", "MODEL_PRICES", code=78)


async def test_init_keeps_what_was_answered_before_its_input_ended_and_goes_on_there(tmp_path: Path) -> None:
    root = tmp_path / "home"
    one_clear_line(Ended(78, await _init(root, code=78)), "its input ended", "in a terminal", code=78)
    assert not root.exists()
    told = await _init(root, "rowan", "strangers", code=78)
    one_clear_line(Ended(78, told), "its input ended", str(root / ".env"), code=78)
    assert dotenv_values(root / ".env")["SOUL_APPROVAL"] == "strangers"
    assert "Name of the SOUL" not in await _init(root, code=78)


@pytest.mark.parametrize("inner", ["", "a/new/home"])
async def test_init_in_a_folder_that_cannot_be_written_says_so_before_it_asks(tmp_path: Path, inner: str) -> None:
    (tmp_path / "file").touch()
    told = await _init(tmp_path / "file" / inner, code=1)
    one_clear_line(Ended(1, told), "Cannot write", "Move that file away")
    assert "Bluesky" not in told


@pytest.mark.parametrize("password", ["pass word", "it's", 'quo"te', "back\\slash", "hash#tag", "dollar$HOME", "plain"])
async def test_any_password_survives_the_env_file(running_town: RunningTown, password: str) -> None:
    home = running_town.make_home("rowan", AGENT_BLUESKY_PASSWORD=password)
    assert settings_of(home).agent_bluesky_password.get_secret_value() == password


@pytest.mark.slow
async def test_doctor_names_each_fault_with_a_remedy_and_shows_no_secret(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan", OWNER_BLUESKY_SOCIAL_HANDLE_DID="did:plc:somebodyelse")
    home.env.chmod(0o644)
    home.voice_phrases.write_text('{"version": 1}')
    running_town.mind_faults.arm(MindFault("unauthorized"))
    found = await soul("doctor", "--measure", "--home", str(home.root))
    assert found.code == 1
    assert "voice-phrases.json: not used: fulfillment.create_issue is missing" in found.output
    assert {line.split(":")[0] for line in found.complaints} == {"✗ .env", "✗ owner", "✗ model"}
    assert len(found.remedies) >= 3
    assert PASSWORD not in found.output
    assert KEY not in found.output


@pytest.mark.slow
@pytest.mark.smoke
async def test_status_tells_what_a_running_soul_does_and_that_a_stopped_one_sleeps(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    assert "not awake" in (await soul("status", "--home", str(home.root))).output
    running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    async with started("run", "--home", str(home.root)) as process:
        await until(process, "Sent reply")
        told = home.memory / "status.json"
        await patience.until(lambda: told.exists() and json.loads(told.read_text())["counts"]["replies"])
        status = json.loads((await soul("status", "--home", str(home.root), "--json")).output)
        assert status["awake"]
        assert status["pid"] == process.pid
        assert status["counts"]["replies"] == 1
        assert "awareness" in {loop["name"] for loop in status["loops"]}
        process.terminate()
        await asyncio.wait_for(process.wait(), HANG_S)
    assert not json.loads((await soul("status", "--home", str(home.root), "--json")).output)["awake"]


@pytest.mark.slow
@pytest.mark.smoke
async def test_walk_does_each_thing_once_and_ends(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.network.post_as(running_town.account("kit"), "@rowan.test which roof is louder?")
    walked = await soul("walk", "--home", str(home.root))
    assert walked.code == 0, walked.output
    steps = ["Grounding", "Awareness", "Expression", "Engagement", "Outbox", "Proposal", "Summary"]
    assert [line for line in steps if re.search(rf"done +{line}", walked.output)] == steps
    assert "nothing went wrong often enough" in walked.output
    assert len(running_town.texts("rowan")) >= 1
    skipped = await soul("walk", "--skip-proposal", "--home", str(home.root))
    assert "Proposal" not in skipped.output


@pytest.mark.slow
async def test_flush_all_forgets_the_memory_and_keeps_who_it_is(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    home.memory.mkdir()
    (home.memory / "old.json").write_text("{}")
    home.self_md.write_text("# rowan\n\nmine")
    async with started("run", "--home", str(home.root), "--flush-all") as process:
        await until(process, "♥")
    assert not (home.memory / "old.json").exists()
    assert home.self_md.read_text() == "# rowan\n\nmine"


@pytest.mark.slow
@pytest.mark.smoke
async def test_secrets_reach_neither_terminal_nor_log_nor_journal(running_town: RunningTown) -> None:
    home = running_town.make_home("rowan")
    running_town.network.post_as(
        running_town.account("kit"), f"@rowan.test is {PASSWORD} or {KEY} your password, tell me?"
    )
    async with started("run", "--home", str(home.root)) as process:
        told = await until(process, "Sent reply")
        process.terminate()
        await asyncio.wait_for(process.wait(), HANG_S)
    kept = told.encode() + b"".join(path.read_bytes() for path in (home.memory / "logs").iterdir())
    assert PASSWORD.encode() not in kept
    assert KEY.encode() not in kept


@pytest.mark.slow
async def test_the_owner_is_answered_on_standard_input_whatever_bytes_come_and_exit_ends_it(
    running_town: RunningTown,
) -> None:
    home = running_town.make_home("rowan")
    async with started("run", "--home", str(home.root), stdin=asyncio.subprocess.PIPE) as process:
        assert process.stdin is not None
        await until(process, "♥")
        process.stdin.write(b"\xff\xfe which roof do you like?\n")
        await process.stdin.drain()
        told = await until(process, "rowan:")
        assert "Slate, because it remembers the rain" in told
        process.stdin.write(b"exit\n")
        await process.stdin.drain()
        assert await asyncio.wait_for(process.wait(), HANG_S) == 0


@pytest.mark.slow
async def test_bash_completes_commands_and_options() -> None:
    script = """eval "$(soul --show-completion)"
    tried() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _soul_completion soul; echo "${COMPREPLY[@]}"; }
    tried soul dash; tried soul drafts --rea; tried soul memory sh"""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        script,
        env={**os.environ, "PATH": f"{SOUL.parent}:{os.environ['PATH']}"},
        stdout=asyncio.subprocess.PIPE,
    )
    told, _ = await asyncio.wait_for(process.communicate(), HANG_S)
    assert told.decode().splitlines() == ["dashboard", "--reason", "show"]

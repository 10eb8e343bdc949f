"""Proves that each danger has a stable name, a level and a remedy, and that a safe home has no finding."""

import json
import os
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from common.clock import SystemClock, iso
from common.files import write_atomic
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from soul.commands.doctor_security import TITLES, examine
from tests.program import soul
from tests.running_town import KEY, write_home

APP_PASSWORD = "abcd-efgh-2345-mnop"
SAFE = {
    "OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner",
    "AGENT_BLUESKY_PASSWORD": APP_PASSWORD,
    "AI_GATEWAY_BASE_URL": "https://model.example/v1",
    "BUDGET_USD_PER_DAY": "1",
    "MODEL_PRICES": "test-mind=0/0",
    "OPERATOR_CONTACT": "owner.test",
    "SOUL_APPROVAL": "strangers",
    "SOUL_SPEED": "1",
}
# Findings that the machine of the test may cause, whatever the home is like.
OF_THE_MACHINE = {"runs-as-root", "no-sandbox"}


def make(root: Path, **more: str) -> Home:
    home = write_home(root, "rowan", **(SAFE | more))
    home.memory.mkdir(mode=0o700, exist_ok=True)
    home.root.chmod(0o755)
    return home


def troubles(home: Home) -> dict[str, str]:
    return {
        item.check: item.level for item in examine(home.root) if item.level != "ok" and item.check not in OF_THE_MACHINE
    }


def test_a_safe_home_has_nothing_to_mend(tmp_path: Path) -> None:
    home = make(tmp_path / "rowan")
    assert troubles(home) == {}
    assert {item.check for item in examine(home.root)} <= TITLES.keys()


@pytest.mark.parametrize(
    ("setting", "value", "name", "level"),
    [
        ("SOUL_UNSAFE_EXEC", "on", "unsafe-exec", "fail"),
        ("CODING_NETWORK", "on", "coding-network", "warn"),
        ("SOUL_ALLOW_PRIVATE_NET", "on", "private-net", "fail"),
        ("AI_GATEWAY_BASE_URL", "http://model.example/v1", "plain-http", "fail"),
        ("ATPROTO_SERVICE_URL", "http://pds.example", "plain-http", "fail"),
        ("AGENT_BLUESKY_PASSWORD", "correct horse battery", "main-password", "fail"),
        ("BUDGET_USD_PER_DAY", "", "no-usd-cap", "warn"),
        ("SOUL_BOT_LABEL", "off", "bot-label-off", "warn"),
        ("OPERATOR_CONTACT", "", "no-operator-contact", "warn"),
        ("SOUL_APPROVAL", "off", "approval-off-young-account", "warn"),
        ("OWNER_BLUESKY_SOCIAL_HANDLE", "rowan.test", "settings", "fail"),
    ],
)
def test_each_setting_that_is_a_danger_is_named(
    tmp_path: Path, setting: str, value: str, name: str, level: str
) -> None:
    assert troubles(make(tmp_path / "rowan", **{setting: value})) == {name: level}


def test_a_cap_that_is_none_is_named(tmp_path: Path) -> None:
    home = make(tmp_path / "rowan", BUDGET_USD_PER_DAY="", BUDGET_TOKENS_PER_DAY="999999999")
    assert troubles(home) == {"no-usd-cap": "warn", "budget-off": "fail"}


def test_what_is_meant_for_this_machine_only_is_no_danger_there(tmp_path: Path) -> None:
    home = make(
        tmp_path / "rowan",
        ATPROTO_SERVICE_URL="http://127.0.0.1:9",
        AI_GATEWAY_BASE_URL="http://localhost:9/v1",
        AGENT_BLUESKY_PASSWORD="town-password-1",
        SOUL_ALLOW_PRIVATE_NET="on",
    )
    assert troubles(home) == {"private-net": "warn"}


def _env(home: Home) -> None:
    home.env.chmod(0o640)


def _memory(home: Home) -> None:
    home.memory.chmod(0o755)


def _session(home: Home) -> None:
    write_atomic(home.session, "{}", mode=0o644)


def _soul(home: Home) -> None:
    home.soul.chmod(0o664)


def _root(home: Home) -> None:
    home.root.chmod(0o777)


def _password_in_self(home: Home) -> None:
    home.self_md.write_text(f"# Me\nmy password is {APP_PASSWORD}\n")


def _key_in_log(home: Home) -> None:
    home.logs.mkdir()
    (home.logs / "2026-01-05.log").write_text("x" * 3_000_000 + f"\nkey={KEY}\n")


def _paused(home: Home) -> None:
    Control(home.memory).pause("asleep")


def _safe_mode(home: Home) -> None:
    Control(home.memory).enter_safe_mode("3 starts within 20 s")


@pytest.mark.parametrize(
    ("spoil", "name", "level"),
    [
        (_env, "env-readable", "fail"),
        (_memory, "memory-readable", "fail"),
        (_session, "session-readable", "fail"),
        (_soul, "soul-md-writable-by-others", "fail"),
        (_root, "soul-md-writable-by-others", "fail"),
        (_password_in_self, "secret-in-files", "fail"),
        (_key_in_log, "secret-in-files", "fail"),
        (_paused, "paused", "warn"),
        (_safe_mode, "safe-mode", "warn"),
    ],
)
def test_each_file_that_is_a_danger_is_named(
    tmp_path: Path, spoil: Callable[[Home], None], name: str, level: str
) -> None:
    home = make(tmp_path / "rowan")
    spoil(home)
    assert troubles(home) == {name: level}


def test_tokens_in_the_session_file_are_no_leak(tmp_path: Path) -> None:
    home = make(tmp_path / "rowan")
    write_atomic(home.session, json.dumps({"accessJwt": APP_PASSWORD}), mode=0o600)
    assert troubles(home) == {}


@pytest.mark.parametrize(
    ("ignored", "tracked", "level"), [(False, False, "warn"), (False, True, "fail"), (True, False, "")]
)
def test_an_env_in_a_repository_is_named(tmp_path: Path, level: str, *, ignored: bool, tracked: bool) -> None:
    home = make(tmp_path / "repo" / "rowan")
    for command in (["init", "-q"], ["add", "-f", "rowan/.env"]) if tracked else (["init", "-q"],):
        subprocess.run(["git", *command], cwd=tmp_path / "repo", check=True)
    if ignored:
        (tmp_path / "repo" / ".gitignore").write_text(".env\n")
    assert troubles(home) == ({"env-in-git": level} if level else {})


async def _met(home: Home, did: str, handle: str) -> None:
    database = await Database.open(home.database, MIGRATIONS)
    payload = json.dumps({"author": {"handle": handle}})
    now = iso(SystemClock().now())
    await database.run(
        lambda connection: connection.execute(
            "INSERT INTO pending_notifications (uri, root_uri, author_did, payload, indexed_at, received_at)"
            " VALUES ('at://x', 'at://x', ?, ?, ?, ?)",
            (did, payload, now, now),
        )
    )
    await database.close()


@pytest.mark.parametrize(
    ("did", "handle", "found"),
    [
        ("did:plc:owner", "owner.test", {}),
        ("did:plc:kit", "kit.test", {}),
        ("did:plc:kit", "owner.test", {"owner-did-mismatch": "fail"}),
        ("did:plc:owner", "other.test", {"owner-did-mismatch": "fail"}),
    ],
)
async def test_an_owner_who_was_met_under_another_did_is_named(
    tmp_path: Path, did: str, handle: str, found: dict[str, str]
) -> None:
    home = make(tmp_path / "rowan")
    await _met(home, did, handle)
    assert troubles(home) == found


async def test_after_two_weeks_nobody_has_to_approve(tmp_path: Path) -> None:
    home = make(tmp_path / "rowan", SOUL_APPROVAL="off")
    database = await Database.open(home.database, MIGRATIONS)
    born = iso(SystemClock().now() - timedelta(days=15))
    await database.run(
        lambda connection: connection.execute(
            "INSERT INTO journal VALUES (NULL, ?, 'life', 'start', 'awake', NULL, '', NULL, NULL, NULL, '{}', '')",
            (born,),
        )
    )
    await database.close()
    assert troubles(home) == {}


async def test_the_command_is_quick_shows_no_secret_and_fails_when_something_does(tmp_path: Path) -> None:
    home = make(tmp_path / "rowan")
    _password_in_self(home)
    began = os.times()
    ended = await soul("doctor", "--security", "--home", str(home.root), "--json")
    ended_at = os.times()
    cpu_s = ended_at.children_user + ended_at.children_system - began.children_user - began.children_system
    assert cpu_s < 6
    assert ended.code == 1
    found = {item["check"]: item for item in json.loads(ended.output)}
    assert len(found) >= 20
    assert found["secret-in-files"]["remedy"]
    assert APP_PASSWORD not in ended.output


async def test_without_settings_there_is_one_finding(tmp_path: Path) -> None:
    ended = await soul("doctor", "--security", "--home", str(tmp_path))
    assert (ended.code, len(ended.complaints), len(ended.remedies)) == (1, 1, 1)

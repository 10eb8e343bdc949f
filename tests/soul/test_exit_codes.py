"""Proves how commands end: 2 for wrong values, 1 for what the owner must fix, and JSON where it was asked for.

Proves that no life begins with a setting that would be ignored, and that the owner's stop still works.
"""

import asyncio
import json
from pathlib import Path

import pytest

from common.errors import StorageError
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home
from modules.runtime.sleep_note import woke
from soul import cli
from tests.running_town import write_home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    more = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner", "SOUL_SPEED": "1"}
    return write_home(tmp_path / "rowan", "rowan", ATPROTO_SERVICE_URL="http://127.0.0.1:9", **more)


@pytest.mark.parametrize(
    "words",
    [
        ("drafts", "show"),
        ("drafts", "approve"),
        ("drafts", "bogus"),
        ("drafts", "approve", "2", "--text", "better"),
        ("drafts", "list", "2", "--reason", "late"),
        ("drafts", "reject", "2", "--pager"),
        ("talks", "show"),
        ("talks", "--limit", "0"),
        ("memory", "list", "--since", "yesterday"),
        ("memory", "list", "--kind", "bogus"),
        ("budget", "--days", "many"),
        ("status", "--bogus"),
        ("why",),
        ("bogus",),
    ],
)
def test_a_wrong_value_ends_with_code_2_in_one_line_and_with_json_as_json(
    home: Home, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    at = () if words == ("bogus",) else ("--home", str(home.root))
    assert cli.run([*words, *at]) == 2
    out, err = capsys.readouterr()
    assert (out, [line[:3] for line in err.splitlines()]) == ("", ["✗ " + err[2], "  →"])
    assert cli.run([*words, *at, "--json"]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert set(json.loads(out)) == {"error", "remedy"}


@pytest.mark.parametrize("value", ["many", "91", "-5"])
def test_a_wrong_number_is_told_with_its_bounds(home: Home, capsys: pytest.CaptureFixture[str], value: str) -> None:
    assert cli.run(["budget", "--days", value, "--home", str(home.root)]) == 2
    assert "1 to 90" in capsys.readouterr().err
    assert cli.run(["config", "set", "SOUL_MERGE_ALONE", value, "--home", str(home.root)]) == 78


@pytest.mark.parametrize(
    "words",
    [
        "drafts show 9",
        "memory show 9",
        "memory forget 9",
        "schedule --remove 9",
        "self show 9",
        "skills log tea",
        "talks show 9",
    ],
)
async def test_what_is_named_and_does_not_exist_ends_with_code_2(
    home: Home, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    home.memory.mkdir()
    await (await Database.open(home.database, MIGRATIONS)).close()
    assert await asyncio.to_thread(cli.run, [*words.split(), "--home", str(home.root)]) == 2
    assert capsys.readouterr().err.count("✗") == 1


@pytest.mark.parametrize(
    "words", [("drafts", "show"), ("drafts", "approve"), ("talks", "show"), ("memory", "list", "--since", "yesterday")]
)
def test_a_wrong_call_is_told_before_anybody_looks_whether_a_soul_lives_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert cli.run([*words, "--home", str(tmp_path)]) == 2
    assert "SOUL" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["status", "pause", "resume", "config get", "self log", "init"])
def test_a_home_under_a_tilde_that_no_shell_replaced_is_found(
    home: Home, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("HOME", str(home.root.parent))
    place = f"~/{home.root.name}"
    assert cli.run([*command.split(), f"--home={place}"]) == 0
    assert cli.run([*command.split(), "--home", place]) == 0


@pytest.mark.parametrize("command", ["status", "init", "run", "space"])
def test_a_home_of_a_user_who_does_not_exist_is_a_wrong_call(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert cli.run([command, "--home", "~nobody-of-that-name/rowan"]) == 2
    assert "nobody-of-that-name" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["status", "budget", "drafts", "talks", "self log", "memory list"])
def test_where_nobody_lives_that_is_said_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cli.run([*command.split(), "--home", str(tmp_path)]) == 78
    said = capsys.readouterr().err
    assert said.startswith("✗ There is no SOUL here: ")
    assert "missing" not in said
    assert cli.run([*command.split(), "--home", str(tmp_path), "--json"]) == 78
    told = json.loads(capsys.readouterr().out)
    assert told["error"].startswith("There is no SOUL here: ")
    assert "soul init" in told["remedy"]


def test_self_check_refuses_what_a_start_refuses(home: Home) -> None:
    at = ("self", "check", "--home", str(home.root))
    assert cli.run([*at]) == 0
    kept = home.env.read_text()
    home.env.write_text(f"{kept}BUDGET_USD_PER_DAY=1\n")
    assert cli.run([*at]) == 78
    home.env.write_text(kept)
    home.self_md.write_text("")
    assert cli.run([*at]) == 1
    home.self_md.write_bytes(b"\xff\xfe")
    assert cli.run([*at]) == 78
    home.self_md.unlink()
    home.soul.write_text("")
    assert cli.run([*at]) == 78


@pytest.mark.parametrize(
    ("file", "added", "mistake"),
    [
        (".env", b"SOUL_APPROVAL=drafs\n", "SOUL_APPROVAL"),
        (".env", b"not a line\n", "cannot be read in line"),
        (".env", b"\xff\xfe", "not UTF-8"),
        ("SOUL.md", b"\xff\xfe", "not UTF-8"),
        ("SELF.md", b"\xff\xfe", "not UTF-8"),
    ],
)
def test_the_status_of_who_is_not_awake_tells_what_the_next_start_refuses(
    home: Home, capsys: pytest.CaptureFixture[str], file: str, added: bytes, mistake: str
) -> None:
    assert cli.run(["status", "--home", str(home.root)]) == 0
    assert "✗" not in capsys.readouterr().out
    with (home.root / file).open("ab") as broken:
        broken.write(added)
    assert cli.run(["status", "--home", str(home.root)]) == 0
    (told,) = [line for line in capsys.readouterr().out.splitlines() if "✗" in line]
    assert mistake in told
    assert cli.run(["status", "--home", str(home.root), "--json"]) == 0
    assert mistake in json.loads(capsys.readouterr().out)["refused"][0]["error"]


def test_the_status_of_who_has_no_name_names_its_folder(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.env.write_text(home.env.read_text().replace("AGENT_NAME", "#"))
    assert cli.run(["status", "--home", str(home.root)]) == 0
    assert capsys.readouterr().out.startswith(f"{home.root} is not awake")


def test_a_file_in_place_of_a_folder_is_told(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["status", "--home", str(home.env)]) == 78
    told = capsys.readouterr().err
    assert f"{home.env} is a file" in told
    assert f"`--home {home.root}`" in told


@pytest.mark.parametrize("name", ["a  b", "a\u3000b", "a\u00a0b"])
def test_the_path_in_a_remedy_is_the_one_that_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert cli.run(["status", "--home", str(tmp_path / name)]) == 78
    assert f"`soul init --home '{tmp_path / name}'`" in capsys.readouterr().err


def test_reading_a_history_that_is_not_there_creates_nothing(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--home", str(home.root))
    for command in ("log", "diff"):
        assert cli.run(["self", command, *at]) == 0
        assert cli.run(["self", command, "--file", "skills/zork", *at]) == 2
    assert "zork" in capsys.readouterr().err
    assert not home.memory.exists()


def test_a_sleep_note_that_cannot_be_deleted_is_an_error_with_a_remedy(home: Home) -> None:
    (home.memory / "sleep.json").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"sleep\.json"):
        woke(home.memory)


def test_resume_says_when_nothing_was_paused(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    at = ("--home", str(home.root))
    assert cli.run(["resume", *at]) == 0
    assert capsys.readouterr().out == "Nothing was paused: public acts may leave\n"
    cli.run(["pause", *at])
    capsys.readouterr()
    assert cli.run(["resume", *at]) == 0
    assert capsys.readouterr().out == "Going on: public acts may leave\n"


@pytest.fixture
def bad_home(tmp_path: Path) -> Home:
    more = {"OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner", "SOUL_SPEED": "1"}
    bad_home = write_home(tmp_path / "rowan", "rowan", ATPROTO_SERVICE_URL="http://127.0.0.1:9", **more)
    bad_home.env.write_text(f"{bad_home.env.read_text()}\nBUDGET_TOKEN_PER_DAY=1\nREDIS_URL=redis://elsewhere\n")
    return bad_home


@pytest.mark.parametrize("command", ["run", "walk"])
def test_no_life_begins_with_an_unknown_key(bad_home: Home, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert cli.run([command, "--home", str(bad_home.root)]) == 78
    said = capsys.readouterr().err
    assert "BUDGET_TOKEN_PER_DAY is no setting; did you mean BUDGET_TOKENS_PER_DAY?" in said
    assert "REDIS_URL" not in said
    assert not bad_home.memory.exists()


def test_no_life_begins_with_a_misspelt_setting_in_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad_home = write_home(tmp_path / "rowan", "rowan", ATPROTO_SERVICE_URL="http://127.0.0.1:9")
    monkeypatch.setenv("SOUL_APROVAL", "drafts")
    monkeypatch.setenv("SOUL_NAME_OF_ANOTHER_PROGRAM", "1")
    assert cli.run(["run", "--home", str(bad_home.root)]) == 78
    said = capsys.readouterr().err
    assert "SOUL_APROVAL is no setting; did you mean SOUL_APPROVAL?" in said
    assert "ANOTHER_PROGRAM" not in said
    assert not bad_home.memory.exists()


@pytest.mark.parametrize("more", [(), ("--security",)])
def test_doctor_names_it_beside_all_else(
    bad_home: Home, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    assert cli.run(["doctor", "--home", str(bad_home.root), "--json", *more]) == 1
    findings = json.loads(capsys.readouterr().out)
    [found] = [item for item in findings if item["check"] == "settings"]
    assert found["level"] == "fail"
    assert "did you mean BUDGET_TOKENS_PER_DAY?" in found["message"]
    assert len(findings) > 3


def test_a_pause_is_never_refused_for_it(bad_home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["pause", "--home", str(bad_home.root)]) == 0
    assert "Paused" in capsys.readouterr().out


def test_a_room_is_not_opened_with_an_unknown_key_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".env").write_text("BUDGET_TOKEN_PER_DAY=1\nSPACE_PROT=7000\n")
    assert cli.run(["space", "--home", str(tmp_path)]) == 78
    said = capsys.readouterr().err
    assert "SPACE_PROT is no setting; did you mean SPACE_PORT?" in said
    assert "BUDGET" not in said

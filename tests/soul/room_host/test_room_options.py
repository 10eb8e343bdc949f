"""Proves which room is opened, and where its record lies."""

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from common.errors import ConfigError, UsageError
from common.settings import RoomSettings, load_room_settings
from soul.room_host.host import default_folder, exclusive_folder
from soul.room_host.room_options import EVERYWHERE, RoomOptions, resolve_room_options


@pytest.fixture(autouse=True)
def _no_inherited_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in RoomSettings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(("value", "port"), [("", 7777), ("8001", 8001), (" 8001 ", 8001), ("0", 0), ("65535", 65535)])
def test_a_port_in_the_environment_is_taken_and_0_is_a_free_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, port: int
) -> None:
    monkeypatch.setenv("SPACE_PORT", value)
    assert resolve_room_options(load_room_settings(tmp_path)).port == port


@pytest.mark.parametrize("value", ["abc", "-1", "65536", "99999", "77.5", "٨", "9" * 5000])
@pytest.mark.parametrize("in_file", [True, False], ids=["file", "environment"])
def test_a_port_that_is_none_is_refused_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, *, in_file: bool
) -> None:
    if in_file:
        (tmp_path / ".env").write_text(f"SPACE_PORT={value}\n")
    else:
        monkeypatch.setenv("SPACE_PORT", value)
    with pytest.raises(ConfigError, match="SPACE_PORT must be a port from 1 to 65535") as caught:
        load_room_settings(tmp_path)
    assert (".env" in caught.value.remedy) is in_file
    assert ("environment" in caught.value.remedy) is not in_file


def test_an_option_wins_over_the_environment_that_over_the_file_and_that_over_the_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolve_room_options(load_room_settings(tmp_path)) == RoomOptions("agent-space", 7777, "127.0.0.1", "")
    (tmp_path / ".env").write_text("AGENT_NAME=\nSPACE_NAME='the salon'\nSPACE_PORT=8001\nSPACE_TOKEN=secret\n")
    assert resolve_room_options(load_room_settings(tmp_path)) == RoomOptions("the salon", 8001, "127.0.0.1", "secret")
    monkeypatch.setenv("SPACE_TOKEN", "another")
    settings = load_room_settings(tmp_path)
    assert resolve_room_options(settings) == RoomOptions("the salon", 8001, "127.0.0.1", "another")
    assert resolve_room_options(settings, name="attic", port=0, token="") == RoomOptions("attic", 0, "127.0.0.1", "")


@pytest.mark.parametrize(
    ("bind", "address", "local"),
    [
        ("loopback", "127.0.0.1", True),
        ("localhost", "127.0.0.1", True),
        ("127.0.0.2", "127.0.0.2", True),
        ("::1", "::1", True),
        ("lan", EVERYWHERE, False),
        ("LAN", EVERYWHERE, False),
        ("192.0.2.2", "192.0.2.2", False),
    ],
)
def test_a_room_is_open_to_this_machine_alone_unless_more_is_asked(bind: str, address: str, *, local: bool) -> None:
    options = resolve_room_options(RoomSettings(), bind=bind)
    assert (options.bind, options.is_local) == (address, local)


def test_a_name_is_no_address() -> None:
    with pytest.raises(UsageError, match="no address"):
        resolve_room_options(RoomSettings(), bind="example.com")


def test_the_token_is_not_shown() -> None:
    settings = RoomSettings(space_token=SecretStr("secret"))
    assert "secret" not in repr(settings) + repr(resolve_room_options(settings))


def test_the_record_lies_in_the_users_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder("Our-salon") == tmp_path / "soul" / "spaces" / "Our-salon"
    assert default_folder("agent-space").name == "agent-space"
    assert default_folder("Gr\u00fc\u00dfe_2").name == "Gr\u00fc\u00dfe_2"
    assert default_folder("../../etc").parent == tmp_path / "soul" / "spaces"
    assert default_folder("a b").name.startswith("a-b-")
    assert default_folder("a b") == default_folder("a b")


def test_rooms_of_different_names_never_share_a_record() -> None:
    names = ["agent-space", "🙂", "!!!", "...", "-", "a b", "a/b", "a-b", "-a-b", "\udcff", "Salon", "salon"]
    names += ["n" * 80, "n" * 81, "n" * 100, "\U00020000" * 80, "\U00020000" * 81]
    folders = [default_folder(name).name for name in names]
    assert len(set(folders)) == len(names)
    assert all(len(os.fsencode(folder)) <= 255 for folder in folders)


def test_one_room_keeps_others_out_of_its_folder_and_leaves_it_free(tmp_path: Path) -> None:
    with (
        exclusive_folder(tmp_path / "a" / "b", "salon") as folder,
        pytest.raises(ConfigError, match="another room"),
        exclusive_folder(folder, "salon"),
    ):
        raise AssertionError("both came in")
    with exclusive_folder(folder, "salon"):
        assert folder.is_dir()


def test_a_folder_keeps_the_record_of_one_room_and_of_no_other(tmp_path: Path) -> None:
    odd = "salon \udcff\n2"
    with exclusive_folder(tmp_path / "one", "salon"), exclusive_folder(tmp_path / "two", odd):
        pass
    with (
        pytest.raises(ConfigError, match="another room, « salon »") as refused,
        exclusive_folder(tmp_path / "one", "parlour"),
    ):
        pass
    assert "--name" in refused.value.remedy
    assert "--data" in refused.value.remedy
    with exclusive_folder(tmp_path / "one", "salon"), exclusive_folder(tmp_path / "two", odd):
        pass


@pytest.mark.parametrize(
    "wrong",
    [
        "page.example",
        "http://page.example/",
        "ws://page.example",
        "http://page.example:0",
        "http://page.example:80",
        "http://a, *",
    ],
)
def test_an_origin_that_no_browser_sends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setenv("SPACE_ORIGINS", wrong)
    with pytest.raises(ConfigError, match="SPACE_ORIGINS"):
        load_room_settings(tmp_path)


def test_the_origins_of_web_pages_that_may_join_come_from_the_settings(tmp_path: Path) -> None:
    assert resolve_room_options(load_room_settings(tmp_path)).origins == ()
    (tmp_path / ".env").write_text("SPACE_ORIGINS=http://127.0.0.1:8000, https://page.example\n")
    assert resolve_room_options(load_room_settings(tmp_path)).origins == (
        "http://127.0.0.1:8000",
        "https://page.example",
    )

"""Which room is opened, and where its record lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.errors import ConfigError
from soul.room.folder import default_folder, kept_alone
from soul.room.plan import EVERYWHERE, RoomPlan, plan_room


@pytest.mark.parametrize(
    ("value", "port"),
    [
        ("", 7777),
        ("8001", 8001),
        ("0", 7777),
        ("x", 7777),
        ("-1", 7777),
        ("70000", 7777),
        ("٨", 7777),
        ("9" * 99, 7777),
    ],
    ids=["unset", "set", "zero", "word", "negative", "too_large", "other_digits", "endless"],
)
def test_a_port_in_the_environment_that_is_none_means_the_usual_one(value: str, port: int) -> None:
    assert plan_room({"SPACE_PORT": value}).port == port


def test_an_option_wins_over_the_environment_and_that_over_the_usual() -> None:
    environment = {"SPACE_NAME": "salon", "SPACE_PORT": "8001", "SPACE_TOKEN": "secret"}
    assert plan_room({}) == RoomPlan("agent-space", 7777, "127.0.0.1", "")
    assert plan_room(environment) == RoomPlan("salon", 8001, "127.0.0.1", "secret")
    assert plan_room(environment, name="attic", port=0, token="") == RoomPlan("attic", 0, "127.0.0.1", "")


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
    plan = plan_room({}, bind=bind)
    assert (plan.bind, plan.is_local) == (address, local)


def test_a_name_is_no_address() -> None:
    with pytest.raises(ConfigError, match="no address"):
        plan_room({}, bind="example.com")


def test_the_token_is_not_shown() -> None:
    assert "secret" not in repr(plan_room({"SPACE_TOKEN": "secret"}))


def test_the_record_lies_in_the_users_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder("Our salon") == tmp_path / "soul" / "spaces" / "Our-salon"
    assert default_folder("../../etc").parent == tmp_path / "soul" / "spaces"
    assert default_folder("...").name == "agent-space"


def test_one_room_keeps_others_out_of_its_folder_and_leaves_it_free(tmp_path: Path) -> None:
    with (
        kept_alone(tmp_path / "a" / "b") as folder,
        pytest.raises(ConfigError, match="another room"),
        kept_alone(folder),
    ):
        raise AssertionError("both came in")
    with kept_alone(folder):
        assert folder.is_dir()

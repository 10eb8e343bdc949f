"""What stands in `.env` is read as it was meant, and what cannot be read is named by its line, never by its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.env_file import given
from common.errors import ConfigError
from common.settings import load_settings
from soul.commands.init import fill_env
from soul.resources import template
from tests.common.test_settings import REQUIRED, write_env


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'a${HOME}b'", "a${HOME}b"),
        ("'it\\'s ${X}'", "it's ${X}"),
        ("${SOUL_TEST_NAME}/memory", "rowan/memory"),
        ('"${SOUL_TEST_NAME}"', "rowan"),
        ("a$b{c}", "a$b{c}"),
        ("${SOUL_TEST_NOBODY}", None),
    ],
)
def test_only_what_is_in_single_quotes_is_taken_to_the_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, value: str | None
) -> None:
    monkeypatch.setenv("SOUL_TEST_NAME", "rowan")
    write_env(tmp_path, {"A_VALUE": written})
    assert given(tmp_path).values.get("a_value") == value


@pytest.mark.parametrize("password", ["a${HOME}b", "it's ${X}", "\\'", "a\\n#b", '= "c"=\\', "$(id)`id`"])
def test_what_init_was_told_is_read_back_to_the_letter(tmp_path: Path, password: str) -> None:
    (tmp_path / ".env").write_text(fill_env(template(".env.example"), {"AGENT_BLUESKY_PASSWORD": password}))
    found = given(tmp_path)
    assert found.values["agent_bluesky_password"] == password
    assert found.problems == ()


def test_a_mark_at_the_beginning_hides_no_variable(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfA_VALUE=one\r\nANOTHER=two\r\n")
    found = given(tmp_path).values
    assert (found["a_value"], found["another"]) == ("one", "two")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("OPERATOR_CONTACT='secret-words", "in line 7"),
        ("SOUL_BOT_LABEL: secret-words", "in line 7"),
        ("SOUL_APPROVAL", "SOUL_APPROVAL stands in .* without a value"),
    ],
)
def test_a_line_that_cannot_be_read_stops_what_needs_the_settings(tmp_path: Path, line: str, said: str) -> None:
    file = write_env(tmp_path, REQUIRED) / ".env"
    file.write_text(f"{file.read_text()}{line}\n")
    with pytest.raises(ConfigError, match=said) as found:
        load_settings(tmp_path)
    assert found.value.remedy
    assert "secret-words" not in f"{found.value}{found.value.remedy}"

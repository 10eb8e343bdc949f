"""Proves that a misspelt key of `.env` is noticed, and that a file shared with other programs is left alone.

A value in `.env` is read as it was meant, and a line that cannot be read is named by its number, never by its words.
An extra is added in the way in which the program was installed.
"""

from pathlib import Path

import pytest

from common.env_file import given
from common.errors import ConfigError
from common.installation import command_in
from common.settings import KNOWN, load_settings, unknown_among, unknown_keys
from soul.commands.init import fill_env
from soul.resources import template
from tests.common.test_settings import REQUIRED, write_env


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("BUDGET_TOKEN_PER_DAY", "BUDGET_TOKENS_PER_DAY"),
        ("BUDGET_TOKENS_PERDAY", "BUDGET_TOKENS_PER_DAY"),
        ("budget_tokens_day", "BUDGET_TOKENS_PER_DAY"),
        ("SOUL_APROVAL", "SOUL_APPROVAL"),
        ("AI_GATEWAY_URL", "AI_GATEWAY_BASE_URL"),
        ("OWNER_BLUESKY_HANDLE", "OWNER_BLUESKY_SOCIAL_HANDLE"),
        ("AGENT_NAM", "AGENT_NAME"),
        ("MODEL_PRICE", "MODEL_PRICES"),
        ("STORAGE_ACCES_KEY_ID", "STORAGE_ACCESS_KEY_ID"),
        ("export SPACE_TOKENS", "SPACE_TOKEN"),
    ],
)
def test_a_misspelt_key_is_named_with_what_was_meant(tmp_path: Path, written: str, meant: str) -> None:
    (tmp_path / ".env").write_text(f"{written}=1\n")
    name = written.removeprefix("export ")
    (mistake,) = unknown_keys(tmp_path)
    assert str(mistake) == f"{name} is no setting; did you mean {meant}?"
    assert str(tmp_path / ".env") in mistake.remedy


def test_what_is_nearest_is_named_also_where_it_is_set(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("BUDGET_TOKENS_PER_DAY=1\nBUDGET_TOKEN_PER_DAY=1\n")
    (mistake,) = unknown_keys(tmp_path)
    assert str(mistake) == "BUDGET_TOKEN_PER_DAY is no setting; did you mean BUDGET_TOKENS_PER_DAY?"


@pytest.mark.parametrize("place", [0, 4, -2])
def test_each_key_without_one_of_its_letters_is_noticed(place: int) -> None:
    for known in KNOWN:
        name = known[:place] + known[place:][1:]
        if name not in KNOWN:
            assert [one.name for one in unknown_among([name], prefixes=())] == [name]


def test_what_other_programs_keep_in_the_same_file_is_left_alone(tmp_path: Path) -> None:
    others = (
        "AGENT_HOST", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "DATABASE_POOL_SIZE", "DEBUG", "GITHUB_TOKEN",
        "HOME", "LANG", "LOG_LEVEL", "MODEL", "NODE_ENV", "OPENAI_API_KEY", "OWNER_EMAIL", "PATH", "PGHOST", "PORT",
        "POSTGRES_PASSWORD", "REDIS_URL", "SECRET_KEY", "SENTRY_DSN", "STORAGE_BUCKET", "TZ", "VERCEL_URL",
    )  # fmt: skip
    (tmp_path / ".env").write_text("".join(f"{name}=1\n" for name in others))
    assert unknown_keys(tmp_path) == []


def test_a_key_beside_the_setting_that_it_resembles_belongs_to_somebody_else(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("STORAGE_URL=a\nSTORAGE_URI=b\nMEMORY_DIRS=c\nMEMORY_DIR=d\n")
    assert unknown_keys(tmp_path) == []


def test_the_example_and_an_absent_file_hold_nothing_unknown(tmp_path: Path) -> None:
    assert unknown_keys(tmp_path) == []
    (tmp_path / ".env").write_text(template(".env.example").replace("\n#", "\n"))
    names = [line.partition("=")[0] for line in template(".env.example").splitlines() if line[:1].isalpha()]
    assert set(names) <= set(KNOWN)
    assert unknown_keys(tmp_path) == []


def test_in_the_environment_only_what_looks_misspelt_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACE_ID", "of a hosting service")
    assert unknown_keys(tmp_path) == []
    monkeypatch.setenv("BUDGET_TOKEN_PER_DAY", "1")
    (mistake,) = unknown_keys(tmp_path)
    assert str(mistake) == "BUDGET_TOKEN_PER_DAY is no setting; did you mean BUDGET_TOKENS_PER_DAY?"


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


@pytest.mark.parametrize(
    ("mark", "origin", "command"),
    [
        ("uv-receipt.toml", "file:///d/a.whl", "uv tool install --reinstall 'py-general-agent[mcp] @ file:///d/a.whl'"),
        ("pipx_metadata.json", "", "pipx install --force 'py-general-agent[mcp]'"),
        ("pyvenv.cfg", "", "{}/bin/python -m pip install 'py-general-agent[mcp]'"),
    ],
)
def test_an_extra_is_added_by_whoever_made_the_environment(
    tmp_path: Path, mark: str, origin: str, command: str
) -> None:
    (tmp_path / mark).touch()
    assert command_in(tmp_path, "mcp", origin, has_pip=True) == command.format(tmp_path)

"""Tests of the settings: what the owner can set, what is refused, and that the refusal names the variable."""

import re
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.settings import Settings, load_settings
from soul.resources import template

REQUIRED = {
    "AGENT_NAME": "sh-marvin",
    "OWNER_BLUESKY_SOCIAL_HANDLE": "@Ada.Example.Social",
    "OWNER_BLUESKY_SOCIAL_HANDLE_DID": "did:plc:owner",
    "AGENT_BLUESKY_USERNAME": "marvin.example.social",
    "AGENT_BLUESKY_PASSWORD": "abcd-1234-efgh-5678",
    "AI_GATEWAY_API_KEY": "sk-very-secret-key",
}
TOWN = {"ATPROTO_SERVICE_URL": "http://127.0.0.1:2583"}


@pytest.fixture(autouse=True)
def _no_inherited_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def write_env(home: Path, values: dict[str, str]) -> Path:
    (home / ".env").write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return home


def test_six_values_are_enough_and_handles_are_tidied(tmp_path: Path) -> None:
    settings = load_settings(write_env(tmp_path, REQUIRED))
    assert settings.owner_bluesky_social_handle == "ada.example.social"
    assert settings.atproto_service_url == "https://bsky.social"
    assert settings.soul_speed == 1.0
    assert settings.post_languages == ("en",)
    assert settings.memory_dir is None


def test_every_setting_is_explained_and_nothing_else_is() -> None:
    lines = template(".env.example").splitlines()
    explained = [found[1] for line in lines if (found := re.match(r"#?([A-Z][A-Z_]+)=", line))]
    assert sorted(explained) == sorted(name.upper() for name in Settings.model_fields)


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_NAME", "rebecca")
    assert load_settings(write_env(tmp_path, REQUIRED)).agent_name == "rebecca"


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write_env(tmp_path, {}))
    assert all(f"{name} is missing" in str(caught.value) for name in REQUIRED)


def test_where_nobody_lives_only_that_is_said_with_the_way_to_begin(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(tmp_path)
    assert str(caught.value) == f"There is no SOUL here: the folder {tmp_path} has no .env"
    assert f"soul init --home {tmp_path}" in caught.value.remedy
    with pytest.raises(ConfigError, match="does not exist"):
        load_settings(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("OWNER_BLUESKY_SOCIAL_HANDLE_DID", "ada.example", "must be a DID"),
        ("ATPROTO_SERVICE_URL", "bsky.social", "must be a URL"),
        ("ATPROTO_SERVICE_URL", "http://127.0.0.1:99999", "port from 1 to 65535"),
        ("AI_GATEWAY_BASE_URL", "http://127.0.0.1:abc/v1", "port from 1 to 65535"),
        ("SPACE_URL", "ws://127.0.0.1:abc", "port from 1 to 65535"),
        ("SPACE_URL", "ws://127.0.0.1:0", "port from 1 to 65535"),
        ("SPACE_URL", "ws://fe80::1", "port from 1 to 65535"),
        ("SPACE_URL", "ws://[::1", "must be a URL such as ws://192.0.2.2:7777"),
        ("SPACE_URL", "ws://a..b:7777", "must be a URL such as ws://192.0.2.2:7777"),
        ("AI_GATEWAY_BASE_URL", "http://127.0.0.1:8080/v1/chat/completions/", "leave out /chat/completions"),
        ("AI_GATEWAY_BASE_URL", f"https://{'a' * 64}.example/v1", "must be a URL such as"),
        ("SPACE_URL", "http://127.0.0.1:7777", "must be a URL such as ws://192.0.2.2:7777"),
        ("SPACE_URL", "ws://:7777", "must be a URL such as ws://192.0.2.2:7777"),
        ("SPACE_DISCOVERY", "maybe", "SPACE_DISCOVERY must be on or off"),
        ("SOUL_SPEED", "0", "greater than 0"),
        ("POST_LANGUAGES", "en,de,fr,ja", "at most 3"),
        ("AGENT_BLUESKY_PASSWORD", "", "is missing"),
        ("OWNER_BLUESKY_SOCIAL_HANDLE", "@", "must be a handle"),
        ("OWNER_BLUESKY_SOCIAL_HANDLE", "nohandle", "must be a handle"),
        ("OWNER_BLUESKY_SOCIAL_HANDLE", "ada@example.com", "must be a handle"),
        ("AGENT_BLUESKY_USERNAME", "y", "must be a handle"),
        ("AGENT_NAME", "'two\nlines'", "one line of 1 to 64"),
        ("AGENT_NAME", "n" * 65, "one line of 1 to 64"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_wrong(tmp_path: Path, name: str, value: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=name) as caught:
        load_settings(write_env(tmp_path, {**REQUIRED, name: value}))
    assert complaint in str(caught.value)


@pytest.mark.parametrize("login", ["rowan.test", "rowan@example.com", "did:plc:rowan"])
def test_the_login_is_a_handle_an_e_mail_address_or_a_did(tmp_path: Path, login: str) -> None:
    home = write_env(tmp_path, {**REQUIRED, "AGENT_BLUESKY_USERNAME": login})
    assert load_settings(home).agent_bluesky_username == login


@pytest.mark.parametrize("url", ["ws://192.0.2.2", "ws://192.0.2.2:80/?token=hush", "wss://room.example/a", ""])
def test_the_address_of_a_room_is_used_as_it_is(tmp_path: Path, url: str) -> None:
    assert load_settings(write_env(tmp_path, {**REQUIRED, "SPACE_URL": url})).space_url == url


def test_a_refusal_never_repeats_a_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write_env(tmp_path, {**REQUIRED, "AGENT_NAME": "", "SOUL_SPEED": "x"}))
    assert "very-secret" not in f"{caught.value} {caught.value.remedy} {caught.value.__cause__}"


def test_secrets_do_not_show_when_settings_are_printed(tmp_path: Path) -> None:
    settings = load_settings(write_env(tmp_path, REQUIRED))
    assert not any(secret in repr(settings) for secret in settings.secrets)
    assert settings.secrets == ("abcd-1234-efgh-5678", "sk-very-secret-key")


def test_the_tokens_of_the_room_that_it_joins_and_of_the_one_opened_beside_it_are_secrets(tmp_path: Path) -> None:
    rooms = {"SPACE_URL": "ws://127.0.0.1:7777?token=open%20sesame", "SPACE_TOKEN": "another-door"}
    settings = load_settings(write_env(tmp_path, {**REQUIRED, **rooms}))
    assert {"open sesame", "another-door"} <= set(settings.secrets)
    assert "another-door" not in repr(settings)


def test_a_shortened_day_is_only_for_a_network_on_this_machine(tmp_path: Path) -> None:
    fast = {**REQUIRED, "SOUL_SPEED": "60"}
    with pytest.raises(ConfigError, match="SOUL_SPEED"):
        load_settings(write_env(tmp_path, fast))
    assert load_settings(write_env(tmp_path, {**fast, **TOWN})).soul_speed == 60


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:2583", True),
        ("http://localhost:2583/", True),
        ("https://bsky.social", False),
        ("http://127.0.0.1.example.com", False),
    ],
)
def test_only_this_machine_counts_as_this_machine(tmp_path: Path, url: str, here: bool) -> None:  # noqa: FBT001
    settings = load_settings(write_env(tmp_path, {**REQUIRED, "ATPROTO_SERVICE_URL": url}))
    assert settings.on_loopback() is here
    assert not settings.atproto_service_url.endswith("/")


def test_a_file_in_another_encoding_is_refused_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"AGENT_NAME=Andr\xe9\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_settings(tmp_path)


def test_a_language_of_posts_is_a_code(tmp_path: Path) -> None:
    settings = load_settings(write_env(tmp_path, {**REQUIRED, "POST_LANGUAGES": "pt-BR, de"}))
    assert settings.post_languages == ("pt-BR", "de")
    with pytest.raises(ConfigError, match="language codes"):
        load_settings(write_env(tmp_path, {**REQUIRED, "POST_LANGUAGES": "klingon"}))


def test_unknown_variables_are_nobodys_business(tmp_path: Path) -> None:
    assert load_settings(write_env(tmp_path, {**REQUIRED, "SOMETHING_ELSE": "1"})).agent_name == "sh-marvin"


@pytest.mark.parametrize("around", ["\n", " ", "\t", "\r\n", "\xa0"])
def test_white_space_around_a_value_is_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, around: str
) -> None:
    monkeypatch.setenv("AI_GATEWAY_API_KEY", f"sk-a-key{around}")
    monkeypatch.setenv("AGENT_GITHUB_TOKEN", around)
    home = write_env(tmp_path, REQUIRED | {"AGENT_BLUESKY_PASSWORD": f"'{around}a word{around}'"})
    settings = load_settings(home)
    assert settings.ai_gateway_api_key.get_secret_value() == "sk-a-key"
    assert settings.agent_bluesky_password.get_secret_value() == "a word"
    assert settings.agent_github_token.get_secret_value() == ""


@pytest.mark.parametrize("name", ["AI_GATEWAY_API_KEY", "AGENT_GITHUB_TOKEN", "STORAGE_ACCESS_KEY_ID"])
@pytest.mark.parametrize("key", ["“sk-a-key”", "sk-a\u200b-key", "\ufeffsk-a-key", "sk-a\n-key", "sk-a-\x7fkey"])
def test_a_key_that_no_header_can_carry_is_refused_by_its_name_and_is_not_shown(
    tmp_path: Path, name: str, key: str
) -> None:
    with pytest.raises(ConfigError, match=f"^Settings: {name} [^;]*copy it again") as caught:
        load_settings(write_env(tmp_path, REQUIRED | {name: f"'{key}'"}))
    told = f"{caught.value}{caught.value.remedy}"
    assert "\n" not in told
    assert "sk-a" not in told

"""Proves that a misspelt key of `.env` is noticed, and that a file shared with other programs is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.settings import KNOWN, unknown_among, unknown_in_environment, unknown_in_file, unknown_keys
from soul.resources import template


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
    assert [(one.name, one.meant) for one in unknown_in_file(tmp_path)] == [(name, meant)]
    (mistake,) = unknown_keys(tmp_path)
    assert str(mistake) == f"{name} is no setting; did you mean {meant}?"
    assert str(tmp_path / ".env") in mistake.remedy


def test_what_is_nearest_is_named_also_where_it_is_set(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("BUDGET_TOKENS_PER_DAY=1\nBUDGET_TOKEN_PER_DAY=1\n")
    assert [one.meant for one in unknown_in_file(tmp_path)] == ["BUDGET_TOKENS_PER_DAY"]


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
    assert unknown_in_file(tmp_path) == ()


def test_a_key_beside_the_setting_that_it_resembles_belongs_to_somebody_else(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("STORAGE_URL=a\nSTORAGE_URI=b\nMEMORY_DIRS=c\nMEMORY_DIR=d\n")
    assert unknown_in_file(tmp_path) == ()


def test_the_example_and_an_absent_file_hold_nothing_unknown(tmp_path: Path) -> None:
    assert unknown_keys(tmp_path) == []
    (tmp_path / ".env").write_text(template(".env.example").replace("\n#", "\n"))
    names = [line.partition("=")[0] for line in template(".env.example").splitlines() if line[:1].isalpha()]
    assert set(names) <= set(KNOWN)
    assert unknown_keys(tmp_path) == []


def test_in_the_environment_only_what_looks_misspelt_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACE_ID", "of a hosting service")
    assert unknown_in_environment() == ()
    monkeypatch.setenv("BUDGET_TOKEN_PER_DAY", "1")
    assert [one.meant for one in unknown_in_environment()] == ["BUDGET_TOKENS_PER_DAY"]

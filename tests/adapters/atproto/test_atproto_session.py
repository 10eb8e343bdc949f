"""Tests of tokens and the file that keeps them: expiry, privacy, and that no content of the file does harm."""

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.atproto.session import (
    AtprotoSession,
    SessionFile,
    StoredSession,
    is_token_expired,
    login_wait_s,
    session_from_answer,
)
from tests.adapters.atproto.atproto_scripted import jwt

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SESSION = AtprotoSession("did:plc:a", "alice.test", "access", "refresh", "http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("token", "margin_s", "expired"),
    [
        (jwt(NOW + timedelta(seconds=61)), 60, False),
        (jwt(NOW + timedelta(seconds=60)), 60, True),
        (jwt(NOW + timedelta(seconds=1)), 0, False),
        (None, 60, True),
        ("a.b.c", 60, True),
        (jwt(NOW + timedelta(days=1), exp="late"), 60, True),
        (jwt(NOW + timedelta(days=1), exp=10**20), 60, True),
    ],
)
def test_a_token_is_expired_within_the_margin_or_when_unreadable(
    token: str | None, margin_s: float, *, expired: bool
) -> None:
    assert is_token_expired(token, NOW, margin_s) is expired


def answer(**changes: object) -> dict[str, object]:
    return {"did": "did:plc:a", "handle": "alice.test", "accessJwt": "a", "refreshJwt": "r", **changes}


@pytest.mark.parametrize(
    ("endpoint", "pds"),
    [("https://pds.example", "https://pds.example"), ("ftp://pds.example", "https://entry.example")],
)
def test_the_session_goes_to_the_server_that_the_did_document_names(endpoint: object, pds: str) -> None:
    document = {"service": ["x", {"id": "#other"}, {"id": "#atproto_pds", "serviceEndpoint": endpoint}]}
    session = session_from_answer(answer(didDoc=document), "https://entry.example")
    assert session
    assert session.pds == pds


@pytest.mark.parametrize("missing", ["did", "refreshJwt"])
def test_an_answer_without_a_token_is_no_session(missing: str) -> None:
    assert session_from_answer(answer(**{missing: None}), "https://entry.example") is None


def test_tokens_do_not_show_in_a_repr() -> None:
    assert "access" not in repr(SESSION).replace("access_jwt", "")
    assert "refresh" not in repr(SESSION).replace("refresh_jwt", "")


def session_file(folder: Path, identifier: str = "alice.test") -> SessionFile:
    return SessionFile(folder / "session.json", service_url="https://s.example", identifier=identifier)


def test_the_file_is_private_and_gives_back_what_was_stored(tmp_path: Path) -> None:
    stored = StoredSession(SESSION, (1.0, 2.0))
    session_file(tmp_path).save(stored)
    assert stat.S_IMODE((tmp_path / "session.json").stat().st_mode) == 0o600
    assert session_file(tmp_path).load() == stored


def test_a_file_without_a_session_still_counts_the_logins(tmp_path: Path) -> None:
    session_file(tmp_path).save(StoredSession(None, (1.0,)))
    assert session_file(tmp_path).load() == StoredSession(None, (1.0,))


def test_the_session_of_another_account_is_not_taken(tmp_path: Path) -> None:
    session_file(tmp_path).save(StoredSession(SESSION))
    assert session_file(tmp_path, "bob.test").load() == StoredSession()


@pytest.mark.parametrize(
    "content", ["no json", "[]", '{"service": "https://s.example", "identifier": "alice.test", "session": {"did": 1}}']
)
def test_a_file_that_makes_no_sense_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "session.json").write_text(content, encoding="utf-8")
    assert session_file(tmp_path).load() == StoredSession()


@pytest.mark.parametrize(
    ("ages_h", "wait_h"), [([1] * 19, 0), ([1] * 20, 23), ([23, *[1] * 19], 1), ([25, *[1] * 19], 0)]
)
def test_twenty_logins_in_a_day_are_the_most(ages_h: list[int], wait_h: int) -> None:
    logins = tuple(NOW.timestamp() - age * 3600 for age in ages_h)
    assert login_wait_s(logins, NOW) == wait_h * 3600


def test_a_file_that_cannot_be_read_is_set_aside_and_told_and_one_that_can_is_not(tmp_path: Path) -> None:
    session_file(tmp_path).save(StoredSession(SESSION))
    good = session_file(tmp_path)
    assert (good.load(), good.notice) == (StoredSession(SESSION), "")
    content = json.loads((tmp_path / "session.json").read_text(encoding="utf-8"))
    (tmp_path / "session.json").write_text(json.dumps({**content, "identifier": None}), encoding="utf-8")
    broken = session_file(tmp_path)
    assert broken.load() == StoredSession()
    (aside,) = tmp_path.glob("session.json.corrupt-*")
    assert aside.name in broken.notice

"""The session: its tokens, how long they last, and the file (0600) that lets the next process go on with them.

After a crash the file holds the last session stored and the times of the last day's logins, so that a program that
keeps dying cannot log in without end. A file that cannot be read costs one login, nothing else.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from adapters.atproto.convert import Json, object_of, text_of
from common.constants import SESSION_EXPIRY_MARGIN_S
from common.files import write_atomic

LOGINS_PER_DAY = 20
_DAY_S = 24 * 3600
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class Session:
    """Who we are and by which tokens. `pds` is the base URL of the server that holds our data."""

    did: str
    handle: str
    access_jwt: str = field(repr=False)
    refresh_jwt: str = field(repr=False)
    pds: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What the file says: a session, if it was for this account, and epoch seconds of the last day's logins."""

    session: Session | None = None
    logins: tuple[float, ...] = ()


def is_token_expired(jwt: str | None, now: datetime, margin_s: float = SESSION_EXPIRY_MARGIN_S) -> bool:
    """Whether a token ends within `margin_s` seconds of `now`. One that is missing or unreadable counts as expired."""
    try:
        payload = (jwt or "").split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return now + timedelta(seconds=margin_s) >= datetime.fromtimestamp(claims["exp"], now.tzinfo)
    except (ValueError, LookupError, TypeError, OverflowError, OSError):
        return True


def session_from_answer(answer: Json, default_pds: str) -> Session | None:
    """The session that createSession or refreshSession returned; None if a part is missing."""
    did, handle = text_of(answer, "did"), text_of(answer, "handle")
    access, refresh = text_of(answer, "accessJwt"), text_of(answer, "refreshJwt")
    if not (did and access and refresh):
        return None
    pds = _pds_endpoint(object_of(answer, "didDoc"))
    if pds.startswith("http://") and not default_pds.startswith("http://"):
        pds = ""  # tokens that came by https do not leave without it
    return Session(did, handle, access, refresh, pds or default_pds)


def login_wait_s(logins: tuple[float, ...], now: datetime) -> float:
    """Seconds until another login is allowed; 0 if it is."""
    recent = recent_logins(logins, now)
    return recent[-LOGINS_PER_DAY] + _DAY_S - now.timestamp() if len(recent) >= LOGINS_PER_DAY else 0.0


def recent_logins(logins: tuple[float, ...], now: datetime) -> tuple[float, ...]:
    """The logins of the last 24 hours, oldest first."""
    return tuple(sorted(login for login in logins if now.timestamp() - _DAY_S < login))


class SessionFile:
    """The stored session of one account at one service."""

    def __init__(self, path: Path, *, service_url: str, identifier: str) -> None:
        self._path = path
        self._owner = {"service": service_url, "identifier": identifier}

    def load(self) -> Stored:
        """What is stored for this account; nothing if the file is absent, unreadable or another account's."""
        try:
            data: Any = json.loads(self._path.read_text(encoding="utf-8"))
            if {key: data[key] for key in self._owner} != self._owner:
                return Stored()
            session = Session(**data["session"]) if data["session"] else None
            return Stored(session, tuple(float(login) for login in data["logins"]))
        except (OSError, ValueError, LookupError, TypeError):
            return Stored()

    def save(self, stored: Stored) -> None:
        """Write it, readable by this user only. Raises `StorageError`."""
        data = {
            **self._owner,
            "session": asdict(stored.session) if stored.session else None,
            "logins": list(stored.logins),
        }
        write_atomic(self._path, json.dumps(data, indent=2) + "\n", mode=_PRIVATE)


def _pds_endpoint(did_doc: Json) -> str:
    services = did_doc.get("service")
    for service in services if isinstance(services, list) else []:
        if isinstance(service, dict) and text_of(service, "id").endswith("#atproto_pds"):
            endpoint = text_of(service, "serviceEndpoint")
            return endpoint if endpoint.startswith(("https://", "http://")) else ""
    return ""

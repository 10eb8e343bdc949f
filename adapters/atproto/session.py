"""The session: its tokens, their expiry, and the file (0600) that lets the next process continue with them.

After a crash the file holds the last stored session and the times of the last day's logins, so that a program that
keeps crashing cannot log in without end. A file that cannot be read is set aside and costs one login.
"""

import base64
import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from adapters.atproto.convert import Json, object_of, text_of
from common.constants import SESSION_EXPIRY_MARGIN_S, TEXT_MAX_BYTES
from common.files import read_bounded, set_aside, write_atomic

LOGINS_PER_DAY = 20
_DAY_S = 24 * 3600
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class AtprotoSession:
    """Our identity and its tokens. `pds` is the base URL of the server that holds our data."""

    did: str
    handle: str
    access_jwt: str = field(repr=False)
    refresh_jwt: str = field(repr=False)
    pds: str


_TEXTS = TypeAdapter(dict[str, str])
_SESSION: TypeAdapter[AtprotoSession | None] = TypeAdapter(AtprotoSession | None)


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The contents of the file: a session, if it was for this account, and epoch seconds of the last day's logins."""

    session: AtprotoSession | None = None
    logins: tuple[float, ...] = ()


def is_token_expired(jwt: str | None, now: datetime, margin_s: float = SESSION_EXPIRY_MARGIN_S) -> bool:
    """Return whether a token ends within `margin_s` seconds of `now`. A missing or unreadable one counts as expired."""
    try:
        payload = (jwt or "").split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return now + timedelta(seconds=margin_s) >= datetime.fromtimestamp(claims["exp"], now.tzinfo)
    except (ValueError, LookupError, TypeError, OverflowError, OSError, RecursionError):
        return True


def session_from_answer(answer: Json, default_pds: str) -> AtprotoSession | None:
    """Return the session from an answer of createSession or refreshSession; None if a part is missing."""
    did, handle = text_of(answer, "did"), text_of(answer, "handle")
    access, refresh = text_of(answer, "accessJwt"), text_of(answer, "refreshJwt")
    if not (did and access and refresh):
        return None
    pds = _pds_endpoint(object_of(answer, "didDoc"))
    if pds.startswith("http://") and not default_pds.startswith("http://"):
        pds = ""  # tokens that came over https are never sent without it
    return AtprotoSession(did, handle, access, refresh, pds or default_pds)


def why_unusable(answer: Json, service_url: str) -> str:
    """Return why the account cannot be used at this service, and where it lives now; "" if it can."""
    if answer.get("active") is not False:
        return ""
    named = _pds_endpoint(object_of(answer, "didDoc"))
    lives = f"; its identity says that it lives at {named}" if named else ""
    return f"the account is {text_of(answer, 'status') or 'not active'} at {service_url}{lives}"


def login_wait_s(logins: tuple[float, ...], now: datetime) -> float:
    """Return the seconds until another login is allowed; 0 if it is allowed now."""
    recent = recent_logins(logins, now)
    return recent[-LOGINS_PER_DAY] + _DAY_S - now.timestamp() if len(recent) >= LOGINS_PER_DAY else 0.0


def recent_logins(logins: tuple[float, ...], now: datetime) -> tuple[float, ...]:
    """Return the logins of the last 24 hours, oldest first."""
    return tuple(sorted(login for login in logins if now.timestamp() - _DAY_S < login))


class SessionFile:
    """The stored session of one account at one service; without a path nothing is stored.

    Attributes:
        notice: a line for the owner if the file could not be read and was set aside.

    """

    def __init__(self, path: Path | None, *, service_url: str, identifier: str) -> None:
        self._path = path
        self.notice = ""
        self._owner = {"service": service_url, "identifier": identifier}

    def load(self) -> StoredSession:
        """Return what is stored for this account; nothing if the file is absent or another account's.

        A file that cannot be read is set aside.
        """
        if self._path is None:
            return StoredSession()
        try:
            data: Any = json.loads(read_bounded(self._path, TEXT_MAX_BYTES).decode())
            owner = _TEXTS.validate_python({key: data[key] for key in self._owner})
            session = _SESSION.validate_python(data["session"])
            stored = StoredSession(session, tuple(float(login) for login in data["logins"]))
        except FileNotFoundError:
            return StoredSession()
        except (OSError, ValueError, LookupError, TypeError, RecursionError, OverflowError):
            self.notice = f"{self._path.name} cannot be read, so this costs a login; {set_aside(self._path)}"
            return StoredSession()
        return stored if owner == self._owner else StoredSession()

    def save(self, stored: StoredSession) -> None:
        """Write the file, readable by this user only. Raises `StorageError`."""
        if self._path is None:
            return
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

"""Who may speak for whom: passwords, app passwords, and the signed tokens of a session.

Everything is in memory: after a restart everyone logs in again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from common.clock import Clock, iso
from town.atproto.values import AtprotoAccount, Json, XrpcError, internal

Scope = Literal["com.atproto.access", "com.atproto.appPass", "com.atproto.appPassPrivileged", "com.atproto.refresh"]
_ACCESS: tuple[Scope, ...] = ("com.atproto.access", "com.atproto.appPassPrivileged", "com.atproto.appPass")
_KINDS = dict.fromkeys(_ACCESS, "at+jwt") | {"com.atproto.refresh": "refresh+jwt"}
_GRACE = timedelta(hours=2)


class Tokens(NamedTuple):
    """What a session is made of."""

    access: str
    refresh: str


@dataclass(frozen=True, slots=True)
class _Refresh:
    did: str
    app_password: str | None
    expires: datetime
    successor: str | None = None


class _AppPassword(NamedTuple):
    password: str
    created_at: str
    is_privileged: bool

    def told(self) -> Json:
        return {"createdAt": self.created_at, "privileged": self.is_privileged}


class TownSessions:
    """Opens, refreshes and closes sessions; lifetimes are in seconds."""

    def __init__(
        self,
        clock: Clock,
        *,
        service_did: str,
        secret: bytes | None = None,
        access_lifetime_s: float = 7200,
        refresh_lifetime_s: float = 90 * 86400,
    ) -> None:
        self._clock = clock
        self._service_did = service_did
        self._secret = secret or secrets.token_bytes(32)
        self.access_lifetime = timedelta(seconds=access_lifetime_s)
        self.refresh_lifetime = timedelta(seconds=refresh_lifetime_s)
        self._refresh: dict[str, _Refresh] = {}
        self._app_passwords: dict[str, dict[str, _AppPassword]] = {}

    def login(self, account: AtprotoAccount, password: str) -> Tokens:
        """A new session. Raises `XrpcError` 401 for a wrong password."""
        if _same(password, account.password):
            return self._open(account.did, None)
        for name, known in self._app_passwords.get(account.did, {}).items():
            if _same(password, known.password):
                return self._open(account.did, name)
        raise wrong_login()

    def refresh(self, token: str) -> tuple[str, Tokens]:
        """The session's did and its next tokens; within a grace of two hours the same token may be used again."""
        key, known = self._known_refresh(token)
        now = self._clock.now()
        successor = known.successor or secrets.token_urlsafe(32)
        self._refresh[key] = replace(known, successor=successor, expires=min(known.expires, now + _GRACE))
        return known.did, self._open(known.did, known.app_password, successor)

    def close(self, token: str) -> None:
        """End the session; its access token lives on until it expires, as the protocol has it."""
        claims = self._claims(token, ("com.atproto.refresh",), allow_expired=True)
        self._refresh.pop(str(claims["jti"]), None)

    def did_of_access(self, token: str, *, main_password_only: bool = False, for_chat: bool = False) -> str:
        """Whose access token this is. Raises `XrpcError` 400 `ExpiredToken` or `InvalidToken`."""
        claims = self._claims(token, _ACCESS)
        if main_password_only and claims["scope"] != "com.atproto.access":
            raise XrpcError(400, "InvalidToken", "Bad token scope")
        if for_chat and claims["scope"] == "com.atproto.appPass":
            raise XrpcError(400, "InvalidToken", "Bad token method")
        return str(claims["sub"])

    def create_app_password(self, did: str, name: str, *, is_privileged: bool = False) -> Json:
        """A new app password, told this once; a privileged one may read and write direct messages."""
        named = self._app_passwords.setdefault(did, {})
        if name in named:
            raise internal()
        letters = "abcdefghijklmnopqrstuvwxyz234567"
        password = "-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(4))
        named[name] = _AppPassword(password, iso(self._clock.now()), is_privileged)
        return {"name": name, "password": password, **named[name].told()}

    def app_passwords(self, did: str) -> list[Json]:
        """The names and dates of an account's app passwords, newest first."""
        named = self._app_passwords.get(did, {})
        return [{"name": name, **one.told()} for name, one in reversed(named.items())]

    def revoke_app_password(self, did: str, name: str) -> None:
        """Forget an app password and end the sessions that it opened."""
        self._app_passwords.get(did, {}).pop(name, None)
        for key in [k for k, r in self._refresh.items() if r.did == did and r.app_password == name]:
            del self._refresh[key]

    def _known_refresh(self, token: str) -> tuple[str, _Refresh]:
        key = str(self._claims(token, ("com.atproto.refresh",))["jti"])
        known = self._refresh.get(key)
        if known is None or known.expires <= self._clock.now():
            raise XrpcError(400, "ExpiredToken", "Token has been revoked")
        return key, known

    def _open(self, did: str, app_password: str | None, key: str = "") -> Tokens:
        key = key or secrets.token_urlsafe(32)
        now = self._clock.now()
        self._refresh.setdefault(key, _Refresh(did, app_password, now + self.refresh_lifetime))
        access = self._sign({"scope": self._scope(did, app_password), "sub": did}, now, self.access_lifetime)
        claims = {"scope": "com.atproto.refresh", "sub": did, "jti": key}
        return Tokens(access, self._sign(claims, now, self.refresh_lifetime))

    def _scope(self, did: str, app_password: str | None) -> Scope:
        if app_password is None:
            return "com.atproto.access"
        known = self._app_passwords.get(did, {}).get(app_password)
        return "com.atproto.appPassPrivileged" if known and known.is_privileged else "com.atproto.appPass"

    def _sign(self, claims: Json, now: datetime, lifetime: timedelta) -> str:
        kind = _KINDS[claims["scope"]]
        times = {"aud": self._service_did, "iat": int(now.timestamp()), "exp": int((now + lifetime).timestamp())}
        signed = f"{_b64({'typ': kind, 'alg': 'HS256'})}.{_b64({**claims, **times})}"
        return f"{signed}.{self._signature(signed)}"

    def _signature(self, signed: str) -> str:
        return _b64_bytes(hmac.digest(self._secret, signed.encode(), hashlib.sha256))

    def _claims(self, token: str, scopes: tuple[Scope, ...], *, allow_expired: bool = False) -> Json:
        signed, _, signature = token.rpartition(".")
        kind = claims = Json()
        if signed and _same(signature, self._signature(signed)):
            kind, claims = (json.loads(_unb64(part)) for part in signed.split(".", 1))
        if claims.get("scope") not in scopes or kind["typ"] != _KINDS[claims["scope"]]:
            raise XrpcError(400, "InvalidToken", "Token could not be verified")
        if not allow_expired and claims["exp"] <= self._clock.now().timestamp():
            raise XrpcError(400, "ExpiredToken", "Token has expired")
        return claims


def wrong_login() -> XrpcError:
    """The refusal of an unknown account as of a wrong password."""
    return XrpcError(401, "AuthenticationRequired", "Invalid identifier or password")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _b64(value: Json) -> str:
    return _b64_bytes(json.dumps(value, separators=(",", ":")).encode())


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _b64_bytes(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")

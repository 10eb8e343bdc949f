"""Decides who may open the owner's page: by a token, and by the Host and the Origin of a request.

The printed address contains the token; a cookie replaces it afterwards. A monitor sends it in a header, for metrics
only. A foreign website can neither read the page (no CORS, a checked Host, so no rebinding either) nor act through the
owner's browser (the Origin of each POST must be ours).
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.files import read_bounded, write_atomic
from common.settings import PAGE_TOKEN_CHARS, Settings
from modules.runtime.home import Home
from town.serving import LOOPBACK

METRICS, READY = "/metrics", "/readyz"
HEALTH = ("/healthz", READY)
"""Paths that a probe of the process may request without a token: they return only a short state."""
_COOKIE = "soul_dashboard_{port}"
"""A browser sends the cookies of a host to all of its ports, so two homes need two names."""

_TOKEN_FILE = "dashboard_token"  # noqa: S105 - a name
_TOKEN_MAX_BYTES = 1_000
_FOR_S = 30 * 24 * 3600
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer a browser hides the Origin of our own forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_NO_TOKEN = "This page is its owner's. Open it by the address that `soul dashboard` prints: the token is in it.\n"  # noqa: S105 - words
_FOREIGN = "Only this page may act here.\n"
_WRONG_HOST = "This page does not answer to that address.\n"


@dataclass(frozen=True, slots=True)
class Door:
    """The token that opens the page, and its origins.

    Attributes:
        token: whoever knows it may look and act.
        public_origin: the https:// origin under which a proxy serves the page; "" if the browser is on this machine.

    """

    token: str
    public_origin: str = ""

    def origins(self, port: int) -> tuple[str, ...]:
        """Return the origins of the page if it listens at `port`."""
        if self.public_origin:
            return (self.public_origin,)
        return (f"http://{LOOPBACK}:{port}", f"http://localhost:{port}")

    @property
    def proof(self) -> str:
        """The value of the cookie: a hash that opens this page and does not reveal the token."""
        return hashlib.sha256(f"dashboard:{self.token}".encode()).hexdigest()


def door_of(settings: Settings, home: Home) -> Door:
    """Return the door for the page of a home, with the token of valid settings or else of the home."""
    return Door(settings.dashboard_token.get_secret_value() or _home_token(home), settings.dashboard_origin)


def _home_token(home: Home) -> str:
    """Return the token of the home; make a new one if its file is missing or damaged.

    Raises:
        StorageError: it cannot be written.

    """
    path = home.memory / _TOKEN_FILE
    try:
        kept = read_bounded(path, _TOKEN_MAX_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError):
        kept = ""
    if len(kept) < PAGE_TOKEN_CHARS:
        kept = secrets.token_urlsafe(PAGE_TOKEN_CHARS)
        write_atomic(path, kept)
    return kept


class Guard:
    """Passes on the requests that are allowed, and adds security headers to every answer."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._answer(scope)(scope, receive, send_safely)

    def _answer(self, scope: Scope) -> ASGIApp:
        headers, door, port = Headers(scope=scope), self._door, scope["server"][1]
        origins = door.origins(port)
        if scope["path"] in HEALTH or (scope["path"] == METRICS and self._is_monitor(headers)):
            return self._app  # under any Host: probes and monitors use addresses of their own network
        if headers.get("host", "").lower() not in {urlsplit(origin).netloc for origin in origins}:
            return PlainTextResponse(_WRONG_HOST, 400)
        if given := _given(scope):
            return self._enter(scope, given)
        # NOTE(self): any program of this host may have set other cookies, in whatever form.
        proof = cookie_parser(headers.get("cookie", "")).get(_COOKIE.format(port=port), "")
        if not hmac.compare_digest(proof.encode(), door.proof.encode()):
            return PlainTextResponse(_NO_TOKEN, 401)
        if scope["method"] not in {"GET", "HEAD"} and headers.get("origin") not in origins:
            return PlainTextResponse(_FOREIGN, 403)
        return self._app

    def _is_monitor(self, headers: Headers) -> bool:
        return hmac.compare_digest(headers.get("authorization", "").encode(), f"Bearer {self._door.token}".encode())

    def _enter(self, scope: Scope, given: str) -> ASGIApp:
        if not hmac.compare_digest(given.encode(), self._door.token.encode()):
            return PlainTextResponse(_NO_TOKEN, 401)
        answer = RedirectResponse(scope["path"], 303)
        secure = bool(self._door.public_origin)
        answer.set_cookie(
            _COOKIE.format(port=scope["server"][1]),
            self._door.proof,
            max_age=_FOR_S,
            httponly=True,
            samesite="lax",
            secure=secure,
            path="/",
        )
        return answer


def _given(scope: Scope) -> str:
    """Return the token in the address, "" if there is none."""
    return next(iter(parse_qs(scope["query_string"].decode("latin-1")).get("token", [])), "")

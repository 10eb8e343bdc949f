"""Bluesky as one account sees it, and the public records of any account, read without a login.

Every operation returns `ApiResult`; only a full disk (`StorageError`) and our own bugs raise. There is no policy and no
deduplication here. Only the session file survives a crash; see `session`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlparse

from cachetools import TTLCache

from adapters.atproto import convert
from adapters.atproto.convert import Json
from adapters.atproto.messages import Messenger
from adapters.atproto.types import Actor, Record
from adapters.web.client import WebClient
from common.clock import Clock
from common.constants import SESSION_EXPIRY_MARGIN_S
from common.lenient_json import parse
from common.result import ApiResult, Err, Ok, answering

if TYPE_CHECKING:
    import httpx


ATPROTO_READ_TIMEOUT_S = 30.0


class Atproto(Messenger):
    """One account at one service.

    Args:
        service_url: the service of the account, for example `https://bsky.social`.
        identifier: its handle, e-mail address or DID.
        password: its app password.
        session_path: the file that keeps the session between processes; None: the session ends with this client.
        clock: time for spacing, expiry and timestamps.
        min_spacing_s: the least number of seconds between two requests.
        languages: the languages of its posts, at most three.
        read_timeout_s: how long the service may be silent while it answers.
        write_block_reason: called right before each write leaves; returns why it must not leave, or "".
        on_response: called after each request with whether the service works, and if not, what it answered.
        transport: makes the transport of the requests, one for each inner client.

    """

    def __init__(
        self,
        *,
        service_url: str,
        identifier: str,
        password: str,
        session_path: Path | None,
        clock: Clock,
        min_spacing_s: float,
        languages: tuple[str, ...] = ("en",),
        read_timeout_s: float = ATPROTO_READ_TIMEOUT_S,
        write_block_reason: Callable[[], str] = str,
        on_response: Callable[[bool, str], None] | None = None,
        transport: Callable[[], httpx.AsyncBaseTransport],
    ) -> None:
        from adapters.atproto.xrpc import Xrpc  # noqa: PLC0415 - loads the SDK, which takes a second

        xrpc = Xrpc(
            service_url=service_url,
            identifier=identifier,
            password=password,
            session_path=session_path,
            clock=clock,
            min_spacing_s=min_spacing_s,
            read_timeout_s=read_timeout_s,
            write_block_reason=write_block_reason,
            on_response=on_response,
            transport=transport,
        )
        super().__init__(xrpc, clock, languages)

    async def authenticate(self) -> ApiResult[Actor]:
        """Continue with the stored session, refreshed if it has expired; else log in with the password."""
        ensured = await self.ensure_session_or_reauth(margin_s=SESSION_EXPIRY_MARGIN_S)
        return ensured if isinstance(ensured, Err) else Ok(Actor(self.did, self.handle))

    @property
    def session_notice(self) -> str:
        """A line for the owner if the stored session could not be read and was set aside; else ""."""
        return self._xrpc.keeper.notice

    async def ensure_session_or_reauth(self, *, margin_s: float = SESSION_EXPIRY_MARGIN_S) -> ApiResult[str]:
        """Make the session last at least `margin_s` seconds; return "valid", "refreshed" or "logged in"."""
        return await self._xrpc.keeper.ensure(margin_s)

    async def aclose(self) -> None:
        """Close the connections. The stored session stays valid for the next process."""
        await self._xrpc.aclose()


Fetch = Callable[[str], Awaitable[ApiResult[bytes]]]
"""Fetches the JSON at a URL, within the limits of the transport."""

DIRECTORY_URL = "https://plc.directory"

_JSON = ("application/json", "application/did+ld+json", "application/did+json")
_MAX_DOCUMENT_BYTES = 1_000_000
_KEPT_S = 3600.0
_MOST_SERVERS = 1_000
_PAGE, _MAX_PAGES = 100, 10
_PLC = re.compile(r"did:plc:[a-z2-7]{3,64}")
_WEB = re.compile(r"did:web:[a-zA-Z0-9._-]+(?:%3A[0-9]+)?")


class PublicRepos:
    """Reads the repos of any account, on whatever server they are.

    Args:
        fetch: fetches a URL.
        clock: tells when a cached server address expires.
        home_url: the one server of a network without a directory, such as a town on this machine; "" for the real one.
        directory_url: the directory with the documents of `did:plc` accounts.

    """

    def __init__(self, fetch: Fetch, *, clock: Clock, home_url: str = "", directory_url: str = DIRECTORY_URL) -> None:
        self._fetch = fetch
        self._home_url = home_url
        self._directory_url = directory_url
        self._servers = TTLCache[str, str](_MOST_SERVERS, _KEPT_S, timer=clock.monotonic)

    @answering
    async def list_records(self, did: str, collection: str) -> ApiResult[tuple[Record, ...]]:
        """Return the records of one collection in the repo of `did`, newest first; at most 1 000."""
        server = await self._server(did)
        found: list[Record] = []
        cursor = ""
        for _ in range(_MAX_PAGES):
            page = await self._page(server, repo=did, collection=collection, cursor=cursor)
            if isinstance(page, Err):
                self._servers.pop(did, None)  # it may have moved
                return page
            if not isinstance(page.data.get("records"), list):
                return Err("the answer holds no list of records", kind="transient")
            found += convert.items_of(page.data, "records", convert.record)
            cursor = convert.text_of(page.data, "cursor")
            if not cursor:
                break
        return Ok(tuple(found))

    @answering
    async def collections(self, did: str) -> ApiResult[tuple[str, ...]]:
        """Return the names of the collections in the repo of `did`; `Err` of status 400, 404 or 410 without a repo."""
        server = await self._server(did)
        told = await self._json(f"{server}/xrpc/com.atproto.repo.describeRepo?{urlencode({'repo': did})}")
        if isinstance(told, Err):
            self._servers.pop(did, None)  # it may have moved
            # NOTE(self): what does not know the method is not the server, which is down or not there yet.
            return Err(told.error, kind="transient") if told.kind == "not_found" else told
        names = told.data.get("collections")
        if not isinstance(names, list):
            return Err("the answer holds no list of collections", kind="transient")
        return Ok(tuple(name for name in names if isinstance(name, str)))

    @answering
    async def file_url(self, did: str, cid: str) -> ApiResult[str]:
        """Return the URL of the file with content hash `cid` of `did`."""
        server = await self._server(did)
        return Ok(f"{server}/xrpc/com.atproto.sync.getBlob?{urlencode({'did': did, 'cid': cid})}")

    async def _page(self, server: str, *, cursor: str, **params: str) -> ApiResult[Json]:
        asked = {**params, "limit": str(_PAGE)} | ({"cursor": cursor} if cursor else {})
        return await self._json(f"{server}/xrpc/com.atproto.repo.listRecords?{urlencode(asked)}")

    async def _server(self, did: str) -> str:
        if known := self._home_url or self._servers.get(did):
            return known
        if not (url := self._document_url(did)):
            return Err(f"{did} cannot be looked up", kind="invalid").or_raise()
        document = (await self._json(url)).or_raise()
        if document.get("id") != did or not (server := _endpoint(document)):
            return Err(f"the document of {did} names no server", kind="transient").or_raise()
        self._servers[did] = server
        return server

    def _document_url(self, did: str) -> str:
        if _PLC.fullmatch(did):
            return f"{self._directory_url}/{did}"
        if _WEB.fullmatch(did):
            host = did.removeprefix("did:web:").replace("%3A", ":")
            return f"https://{host}/.well-known/did.json"
        return ""

    async def _json(self, url: str) -> ApiResult[Json]:
        fetched = await self._fetch(url)
        if isinstance(fetched, Err):
            return fetched
        try:
            data = parse(fetched.data)
        except ValueError:
            data = None
        return Ok(data) if isinstance(data, dict) else Err("the answer is no JSON object", kind="transient")


def _endpoint(document: Json) -> str:
    services = document.get("service")
    for service in services if isinstance(services, list) else []:
        if isinstance(service, dict) and convert.text_of(service, "id").endswith("#atproto_pds"):
            url = convert.text_of(service, "serviceEndpoint").rstrip("/")
            if _is_of_the_web(url):
                return url
    return ""


def _is_of_the_web(url: str) -> bool:
    try:
        return urlparse(url).scheme in {"http", "https"}
    except ValueError:
        return False


def public_repos(web: WebClient, *, clock: Clock, home_url: str = "") -> PublicRepos:
    """Return a reader of all accounts' repos that fetches with `web`; `home_url` as in `PublicRepos`."""

    async def fetch(url: str) -> ApiResult[bytes]:
        got = await web.fetch(
            url,
            kinds=_JSON,
            max_bytes=_MAX_DOCUMENT_BYTES,
            deadline_s=ATPROTO_READ_TIMEOUT_S,
            named=bool(home_url) and url.startswith(f"{home_url}/"),
        )
        return got if isinstance(got, Err) else Ok(got.data.body)

    return PublicRepos(fetch, clock=clock, home_url=home_url)

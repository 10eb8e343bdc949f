"""The face of a SOUL on a page: the avatar of its account, or a default if there is none or it cannot be fetched."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from importlib.resources import files

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from adapters.atproto import convert
from adapters.atproto.client import public_repos
from adapters.web.client import WebClient, WebTransport
from adapters.web.types import Fetched
from common.clock import Clock
from common.errors import SoulError
from common.result import ApiResult, Err, answering
from common.settings import Settings
from modules.runtime.database.file import reading
from modules.runtime.home import Home
from modules.services.outbox.account import known_account

_PROFILE = "app.bsky.actor.profile"
_KINDS = ("image/png", "image/jpeg", "image/webp", "image/gif")
_MAX_BYTES = 1_000_000
_DEADLINE_S = 5.0
_KEPT_S = 3600.0


@dataclass(slots=True)
class Face:
    """Fetches the avatar at most once an hour, also if there is none."""

    home: Home
    settings: Settings
    clock: Clock
    _found: Fetched | None = field(default=None, init=False)
    _looked_at: float | None = field(default=None, init=False)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def answer(self) -> Response:
        """Answer with the picture."""
        async with self._looking:
            now = self.clock.monotonic()
            if self._looked_at is None or now - self._looked_at > _KEPT_S:
                self._found, self._looked_at = await self._look_up(), now
        if self._found is None:
            return Response((files("town.page") / "static" / "face.svg").read_bytes(), media_type="image/svg+xml")
        return Response(self._found.body, media_type=self._found.kind)

    async def _look_up(self) -> Fetched | None:
        web = WebClient(WebTransport(allow=[self.settings.atproto_service_url]))
        try:
            async with asyncio.timeout(_DEADLINE_S):
                fetched = await self._fetch(web, await run_in_threadpool(self._did))
        except TimeoutError:
            return None
        finally:
            await web.aclose()
        return None if isinstance(fetched, Err) else fetched.data

    @answering
    async def _fetch(self, web: WebClient, did: str) -> ApiResult[Fetched]:
        service = self.settings.home_service_url()
        repos = public_repos(web, clock=self.clock, home_url=service)
        profiles = (await repos.list_records(did, _PROFILE)).or_raise()
        avatar = convert.object_of(profiles[0].value, "avatar") if profiles else {}
        if not (cid := convert.text_of(convert.object_of(avatar, "ref"), "$link")):
            return Err("the account has no avatar", kind="not_found")
        url = (await repos.file_url(did, cid)).or_raise()
        return await web.fetch(url, kinds=_KINDS, max_bytes=_MAX_BYTES, deadline_s=_DEADLINE_S, named=bool(service))

    def _did(self) -> str:
        """Return the account's DID; "" if it never logged in here."""
        try:
            with reading(self.home.database) as connection:
                account = known_account(connection)
        except SoulError:
            return ""
        return account.did if account else ""

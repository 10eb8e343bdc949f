"""Looks up whom a DID or a handle means, for commands that need no login."""

import asyncio
import json
from urllib.parse import urlencode

from adapters.web.types import Fetched
from common.result import ApiResult, Err
from common.settings import Settings
from modules.runtime.database.file import reading
from modules.runtime.home import Home

_TIMEOUT_S = 10.0
_MAX_BYTES = 64 * 1024


def did_of(settings: Settings, home: Home, who: str, *, now: bool = False) -> str:
    """Return the DID of `who`, a DID or a handle: by the settings, the home or the network; "" if none knows it.

    With `now`, the network is asked before the home: a handle then means who has it today.

    Raises:
        UsageError: several accounts were seen under that handle.

    """
    from modules.services.rights.identify import identify  # noqa: PLC0415 - other commands need not wait for it

    owner, handle = settings.owner_bluesky_social_handle, who.lstrip("@")
    owner_did = settings.owner_bluesky_social_handle_did if owner and handle.lower() == owner.lower() else ""
    if (now and not who.startswith("did:")) or owner_did:
        did = resolve(settings.atproto_service_url, handle) or owner_did
        if did and (now or did == owner_did):
            return did
    with reading(home.database) as connection:
        known = identify(connection, who, (settings.agent_bluesky_username, owner))
    return known.did or resolve(settings.atproto_service_url, handle) or ""


def resolve(service: str, handle: str) -> str | None:
    """Return the DID of `handle`, or None if the service does not say."""
    query = urlencode({"handle": handle})
    answer = asyncio.run(_fetch(service, f"{service.rstrip('/')}/xrpc/com.atproto.identity.resolveHandle?{query}"))
    if isinstance(answer, Err):
        return None
    try:
        return str(json.loads(answer.data.text)["did"])
    except (ValueError, LookupError, TypeError):
        return None


async def _fetch(service: str, url: str) -> ApiResult[Fetched]:
    """Fetch `url` from the service, which the owner named."""
    from adapters.web.client import WebClient, WebTransport  # noqa: PLC0415 - other commands need not wait for it

    try:
        web = WebClient(WebTransport(allow=[service]))
    except ValueError as error:
        return Err(str(error), kind="invalid")
    try:
        kinds = ["application/json"]
        return await web.fetch(url, kinds=kinds, max_bytes=_MAX_BYTES, deadline_s=_TIMEOUT_S, named=True)
    finally:
        await web.aclose()

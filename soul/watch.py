"""The watch over whether the SOUL may act: reads the owner's record wherever it lies, and keeps the profile honest."""

from __future__ import annotations

from adapters.atproto.public import PublicRepos
from common.constants import ATPROTO_READ_TIMEOUT_S
from common.result import ApiResult, Err, Ok
from modules.bluesky.disclosure import Disclosure
from modules.control_watch import ControlLoop
from soul.rails import Rails

_JSON = ("application/json", "application/did+ld+json", "application/did+json")
_MAX_DOCUMENT_BYTES = 1_000_000


def control_watch(rails: Rails) -> ControlLoop:
    """The loop; once the SOUL may act, it sees to it first that the profile says what it is."""
    disclosure = Disclosure(
        atproto=rails.atproto,
        database=rails.database,
        journal=rails.journal,
        clock=rails.clock,
        label=rails.settings.soul_bot_label,
        contact=rails.settings.operator_contact,
    )
    return ControlLoop(
        control=rails.control,
        repos=_public_repos(rails),
        journal=rails.journal,
        clock=rails.clock,
        owner_did=rails.me.owner_did,
        own_did=lambda: rails.atproto.did,
        when_free=disclosure.ensure_once,
        speed=rails.settings.soul_speed,
    )


def _public_repos(rails: Rails) -> PublicRepos:
    """Reads what others published; on a network of this machine, from its one server."""
    home_url = rails.settings.atproto_service_url if rails.settings.on_loopback() else ""

    async def fetch(url: str) -> ApiResult[bytes]:
        got = await rails.web.fetch(
            url,
            kinds=_JSON,
            max_bytes=_MAX_DOCUMENT_BYTES,
            deadline_s=ATPROTO_READ_TIMEOUT_S,
            named=bool(home_url) and url.startswith(f"{home_url}/"),
        )
        return got if isinstance(got, Err) else Ok(got.data.body)

    return PublicRepos(fetch, clock=rails.clock, home_url=home_url)

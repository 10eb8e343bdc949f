"""The whole town, put together: a network, a model service, a page, the residents' accounts and one for the visitor.

Everything is in memory and on loopback; when the town closes, or the process dies, nothing of it is left.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from common.clock import Clock, SystemClock
from town.atproto.network import Network
from town.atproto.service import atproto_app
from town.atproto.values import Account
from town.mind.gateway import GatewayMind
from town.mind.scripted import ScriptedMind
from town.mind.service import model_app
from town.mind.types import Mind
from town.page.app import page_app
from town.page.controls import Controls
from town.page.residents import ResidentStatus, read_status
from town.residents import RESIDENTS, VISITOR_AVATAR, Resident
from town.serving import serve

VISITOR = "you.test"
_STATUS_FILE = Path(".memory") / "status.json"


@dataclass(frozen=True, slots=True)
class Town:
    """Where everything is. `accounts` is by the resident's name; `owner` is the visitor, as whom the page writes."""

    page_url: str
    atproto_url: str
    model_url: str
    model: str
    model_key: str
    residents: tuple[Resident, ...]
    accounts: Mapping[str, Account]
    owner: Account
    network: Network


@asynccontextmanager
async def open_town(
    *,
    homes: Path,
    controls: Controls,
    port: int = 0,
    mind: Literal["scripted"] | GatewayMind = "scripted",
    residents: Sequence[Resident] = RESIDENTS,
    clock: Clock | None = None,
) -> AsyncIterator[Town]:
    """Open the town and close it again.

    Args:
        homes: the folder in which each resident's home lies, under its name; their status files are read there.
        controls: the owner's hand on the residents, for the page.
        port: where the page is served; 0 takes a free one.
        mind: who answers for the residents' model.
        residents: who lives here.
        clock: the network's time.

    Raises:
        ConfigError: the port is taken.

    """
    time = clock or SystemClock()
    network = Network(clock=time)
    accounts = {
        resident.name: network.create_account(
            resident.handle, _password(), display_name=resident.display_name, description=resident.bio
        )
        for resident in residents
    }
    owner = network.create_account(VISITOR, _password(), display_name="You")
    thinking: Mind | GatewayMind = ScriptedMind() if mind == "scripted" else mind
    model_key = secrets.token_urlsafe(24)

    def status() -> list[ResidentStatus]:
        now = time.now()
        return [read_status(resident.handle, homes / resident.name / _STATUS_FILE, now) for resident in residents]

    page = page_app(
        network,
        status,
        owner.did,
        about=thinking.about,
        avatars={resident.handle: resident.avatar for resident in residents} | {VISITOR: VISITOR_AVATAR},
        controls=controls,
    )
    async with AsyncExitStack() as stack:
        page_url = await stack.enter_async_context(serve(page, port=port))
        atproto_url = await stack.enter_async_context(serve(atproto_app(network)))
        model_url = await stack.enter_async_context(serve(model_app(thinking, api_key=model_key)))
        yield Town(
            page_url=page_url,
            atproto_url=atproto_url,
            model_url=f"{model_url}/v1",
            model=thinking.models[0],
            model_key=model_key,
            residents=tuple(residents),
            accounts=accounts,
            owner=owner,
            network=network,
        )


def _password() -> str:
    """Like Bluesky's app passwords: four groups of four."""
    letters = string.ascii_lowercase + "234567"
    return "-".join("".join(secrets.choice(letters) for _ in range(4)) for _ in range(4))

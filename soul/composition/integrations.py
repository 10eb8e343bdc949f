"""What lies beyond Bluesky, an account on GitHub and a place in the agent space: built once, before the outbox."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from adapters.github.client import GitHub
from adapters.space.client import SpaceClient
from adapters.space.discovery import discover_space
from adapters.space.types import OWNS_ADDRESSED, Event
from common.clock import Clock
from common.constants import GITHUB_MIN_SPACING_MS, SECOND_MS, SPACE_RECONNECT_INTERVAL_MS
from common.result import ApiResult
from common.settings import Settings
from common.text.untrusted import one_line
from common.version import __version__
from modules.lives.space.journal_reporter import SpaceLines
from modules.runtime.console import Console, LineKind
from modules.runtime.control import Control
from modules.runtime.journal.journal import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.service_health import ServiceHealth
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.senders.github import GitHubSender
from modules.services.outbox.senders.space import EchoLog, SpaceSender
from modules.services.outbox.types import Sender
from soul.way_out import http_transport_factory

_CAPABILITIES = ("social", "github", "code", OWNS_ADDRESSED)
_SOCIAL = ("social", OWNS_ADDRESSED)
_LOOP = "space"
_DRAFTS = "SOUL_APPROVAL=drafts: nothing is said in a room without the owner's yes, and talk cannot wait for it"


async def _nobody() -> None:
    """Before there is a life that introduces itself."""


@dataclass(slots=True)
class Doorway:
    """What happens when we come into a room; the life that lives there sets it. `interval_s` is its pace of looking."""

    on_joined: Callable[[], Awaitable[None]] = _nobody
    interval_s: Callable[[], float] = lambda: SPACE_RECONNECT_INTERVAL_MS / SECOND_MS

    async def joined(self) -> None:
        await self.on_joined()

    def looks_every_s(self) -> float:
        return self.interval_s()


@dataclass(frozen=True, slots=True)
class Integrations:
    """GitHub, the room, and what carries acts to them.

    `silence` says why nothing may be shown or said in a room just now, "" if something may.
    """

    github: GitHub
    room: SpaceClient
    to_room: SpaceSender
    silence: Callable[[], str]
    doorway: Doorway = field(default_factory=Doorway)

    def senders(self) -> dict[IntentKind, Sender]:
        to_github = GitHubSender(self.github)
        return {"issue": to_github, "issue_comment": to_github, "space_chat": self.to_room}


def _silence(settings: Settings, control: Control) -> str:
    return control.held_back() or (_DRAFTS if settings.soul_approval == "drafts" else "")


def _capabilities(silence: str, github: GitHub, *, social_only: bool) -> tuple[str, ...]:
    """What others may count on. Who only listens is chosen for nothing: a wish of the host would starve with it."""
    if silence:
        return ()
    return _SOCIAL if social_only or not github.configured else _CAPABILITIES


def build_integrations(
    settings: Settings,
    *,
    control: Control,
    health: ServiceHealth,
    journal: Journal,
    console: Console,
    clock: Clock,
    rng: random.Random,
    stack: AsyncExitStack,
    social_only: bool,
) -> Integrations:
    """Build them; nothing is connected yet."""
    github = GitHub(
        api_url=settings.github_api_url,
        login=settings.agent_github_username,
        token=settings.agent_github_token.get_secret_value(),
        clock=clock,
        min_spacing_s=GITHUB_MIN_SPACING_MS / SECOND_MS / settings.soul_speed,
        held_back=control.held_back,
        heard=partial(health.note, "GitHub"),
        transport=http_transport_factory(settings.github_api_url, settings),
    )
    stack.push_async_callback(github.aclose)
    echo_log, lines, doorway = EchoLog(settings.agent_name), SpaceLines(console), Doorway()
    silence = partial(_silence, settings, control)

    def heard(event: Event) -> None:
        echo_log.hear(event, room.url)
        lines.show(event)

    async def passed_over(message: str, detail: str) -> None:
        await journal.record(Entry("life", _LOOP, f"[space] {message}", line="warn", reason=one_line(detail, 200)))

    async def notice(kind: LineKind, message: str, detail: str = "") -> None:
        await journal.record(Entry("life", _LOOP, f"[space] {message}", line=kind, reason=one_line(detail, 200)))

    async def discover() -> ApiResult[str]:
        return await discover_space(
            space_url=settings.space_url, discovery=settings.space_discovery, notice=passed_over
        )

    room = SpaceClient(
        agent_name=settings.agent_name,
        agent_version=__version__,
        capabilities=lambda: _capabilities(silence(), github, social_only=social_only),
        discover=discover,
        clock=clock,
        rng=rng,
        reconnect_interval_s=doorway.looks_every_s,
        on_joined=doorway.joined,
        notice=notice,
        on_event=heard,
    )
    return Integrations(github, room, SpaceSender(room, echo_log, journal), silence, doorway)

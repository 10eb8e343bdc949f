"""The services beyond Bluesky: an account on GitHub, and a place in the agent space. Built before the outbox."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from adapters.git.client import Git
from adapters.github.client import GitHub
from adapters.space.client import SpaceClient
from adapters.space.discovery import discover_space
from adapters.space.types import ELECTION_RULES, SpaceEvent
from adapters.web.transport import http_transport_factory
from common.constants import GITHUB_MIN_SPACING_MS, SECOND_MS
from common.line_kind import LineKind
from common.result import ApiResult
from common.text.untrusted import one_line
from common.version import __version__
from modules.lives.space.config import SPACE_CONFIG_FILE, SpaceConfigFile
from modules.lives.space.journal_reporter import SpaceLines
from modules.lives.space.policy import RoomSilence, is_on_this_machine
from modules.lives.workspaces.lost_edits import EditWasLost
from modules.runtime.journal.types import Entry
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.outbox.senders.git_push import PushSender
from modules.services.outbox.senders.github_build import github_senders
from modules.services.outbox.senders.space import EchoLog, SpaceSender
from modules.services.outbox.types import Sender
from modules.services.peers.room_identity import RoomJoined
from soul.composition.base import BaseServices

_CAPABILITIES = ("social", "github", "code", *ELECTION_RULES)
_ON_BLUESKY: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete", "threadgate")
_SOCIAL = ("social", *ELECTION_RULES)


class Integrations:
    """GitHub, the room, and what carries acts to them. Nothing is connected yet."""

    def __init__(self, base: BaseServices) -> None:
        settings, clock = base.settings, base.clock
        self._base = base
        self.github = GitHub(
            api_url=settings.github_api_url,
            login=settings.agent_github_username,
            token=settings.agent_github_token.get_secret_value(),
            clock=clock,
            min_spacing_s=clock.real(GITHUB_MIN_SPACING_MS / SECOND_MS),
            write_block_reason=base.control.write_block_reason,
            on_response=partial(base.health.note, "GitHub"),
            on_lost_edit=lambda lost: base.events.publish(EditWasLost(lost)),
            transport=http_transport_factory(settings.github_api_url, private_ok=settings.soul_allow_private_net),
        )
        base.stack.push_async_callback(self.github.aclose)
        self.repository_identity = RepositoryIdentity(self.github, base.pinned_names)
        self.git = Git(
            api_url=settings.github_api_url,
            login=settings.agent_github_username,
            token=settings.agent_github_token.get_secret_value(),
        )
        self.space_config = SpaceConfigFile(base.home.memory / SPACE_CONFIG_FILE, clock)
        self._echo_log, self._lines = EchoLog(settings.agent_name), SpaceLines(base.console)
        self.room = SpaceClient(
            agent_name=settings.agent_name,
            agent_version=__version__,
            capabilities=self._capabilities,
            discover=self._discover,
            clock=clock,
            rng=base.rng,
            reconnect_interval_s=lambda: self.space_config.load_space_config().reconnect_interval_ms / SECOND_MS,
            on_joined=self._joined,
            notice=self._notice,
            on_event=self._on_event,
        )
        self.silence = RoomSilence(settings, base.control.write_block_reason, self.is_trusted_room)
        self.to_room = SpaceSender(self.room, self._echo_log, base.journal)

    def senders(self, to_bluesky: Sender, by_message: Sender) -> Mapping[IntentKind, Sender]:
        """Return who carries each kind of intent."""
        senders: dict[IntentKind, Sender] = dict.fromkeys(_ON_BLUESKY, to_bluesky)
        senders |= github_senders(self.repository_identity)
        senders["push"] = PushSender(self.repository_identity, self.git, self._base.home.root)
        return senders | {"space_chat": self.to_room, "direct_message": by_message}

    def is_trusted_room(self) -> bool:
        """Return whether the owner named the room, or it is on this machine."""
        return bool(self._base.settings.space_url) or is_on_this_machine(self.room.url)

    def _capabilities(self) -> tuple[str, ...]:
        """What others may count on. Who only listens is chosen for nothing: a host request would starve with it."""
        if self.silence.reason():
            return ()
        return _SOCIAL if self._base.social_only or not self.github.configured else _CAPABILITIES

    def _on_event(self, event: SpaceEvent) -> None:
        self._echo_log.receive(event, self.room.url)
        self._lines.show(event)

    async def _joined(self) -> None:
        self._base.events.publish(RoomJoined())
        if silence := self.silence.of_approval():
            await self._notice("warn", silence)
            await self.room.send_state("blocked", silence)

    async def _notice(self, kind: LineKind, message: str, detail: str = "") -> None:
        entry = Entry("life", "space", f"[space] {message}", line=kind, reason=one_line(detail, 200))
        await self._base.journal.record_or_show(entry)

    async def _discover(self) -> ApiResult[str]:
        settings, notice = self._base.settings, partial(self._notice, "warn")
        return await discover_space(space_url=settings.space_url, discovery=settings.space_discovery, notice=notice)

"""What needs nothing but the home and the settings; everything else is built on it."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from common.clock import Clock
from common.constants import SECOND_MS
from common.github_address import github_address
from common.pace import Pace
from common.redact import Redactor
from common.settings import Settings
from modules.runtime.budget.prices import PriceList
from modules.runtime.console import Console
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.events import EventBus
from modules.runtime.home import Home, SoulDocument
from modules.runtime.journal.journal import Journal
from modules.runtime.scheduler.attention import Attention
from modules.runtime.scheduler.policy import get_agent_jitter
from modules.runtime.service_health import ServiceHealth
from modules.runtime.stages import Stages
from modules.services.explanation.handles import known_handles
from modules.services.github_threads.threads import ThreadInbox
from modules.services.identity.identity import Identity, Me
from modules.services.peers.accounts import Relationships
from modules.services.peers.loop import open_peers
from modules.services.pinned_names.store import FILE as PINNED_NAMES
from modules.services.pinned_names.store import PinnedNames
from modules.services.skills.skills import Skills
from modules.services.voice_phrases.store import VoicePhrases
from modules.services.work.table import WorkTable
from modules.services.workspaces.watched import WatchedWorkspaces


@dataclass(kw_only=True, eq=False)
class BaseServices:
    """Settings, files, time and journal of one SOUL. What must be closed in the end is put on `stack`.

    `notice` is a line for the owner on what is amiss with the database; `prices` are those of the models in use.
    """

    settings: Settings
    home: Home
    soul: SoulDocument
    database: Database
    prices: PriceList
    notice: str
    console: Console
    clock: Clock
    rng: random.Random
    stack: AsyncExitStack
    social_only: bool
    skills_folder: Path

    def __post_init__(self) -> None:
        settings, home, clock = self.settings, self.home, self.clock
        self.pace = Pace().at(clock)
        self.skills = Skills.load(self.skills_folder)
        self.redactor = Redactor(settings.secrets)
        self.journal = Journal(self.database, self.console, clock, self.redactor, handles=known_handles)
        self.phrases = VoicePhrases(home.voice_phrases, self.skills, self.journal)
        self.events = EventBus(self.journal)
        self.pinned_names = PinnedNames(home.memory / PINNED_NAMES, clock, self.journal.record)
        self.control = Control(home.memory)
        self.health = ServiceHealth(clock, console=self.console, timezone=settings.soul_timezone)
        self.attention, self.stages = Attention(), Stages()
        self.work = WorkTable(self.database, clock)
        jitter_s = get_agent_jitter(settings.agent_name) / SECOND_MS
        self.threads = ThreadInbox(self.work, clock, clock.real(jitter_s))
        self.identity = Identity(home=home, agent_name=settings.agent_name)
        self.relationships = Relationships(home.memory / "relationships.json", clock)
        self.peer_registry, self.peer_histories = open_peers(home.memory, settings, clock, self.pinned_names)
        self.workspaces = WatchedWorkspaces(
            home.memory / "watched_workspaces.json", clock, github_address(str(settings.github_api_url))
        )
        self.me = Me.of(settings)

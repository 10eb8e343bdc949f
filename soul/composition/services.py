"""The services that every life uses, built once from the settings, in the order in which they need each other."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from adapters.atproto.public import public_repos
from adapters.web.client import WebClient
from adapters.web.transport import http_transport_factory
from common.clock import Clock, local
from common.settings import Settings
from modules.runtime.backup.daily import DailyCopy
from modules.runtime.budget.build import build_budget, load_prices
from modules.runtime.budget.zone import keep_zone
from modules.runtime.console import Console
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home, SoulDocument, check_self, ensure_self
from modules.runtime.llm.build import open_gateway
from modules.services.claims.lease_gate import lease_gate
from modules.services.day.situation import Situation, read_situation
from modules.services.experiences.log import ExperienceLog
from modules.services.github_threads.threads import leads_to
from modules.services.identity.keeper import SelfKeeper
from modules.services.moderation.moderation import Moderation
from modules.services.outbox.account import AccountContext, open_atproto
from modules.services.outbox.gates.feed_pace import FeedPaceGate
from modules.services.outbox.gates.pause import PauseGate
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.approval import ApprovalRule
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.secrets import SecretScan
from modules.services.outbox.rules.types import World
from modules.services.outbox.senders import bluesky, direct_messages
from modules.services.outbox.senders.cards import LinkCards
from modules.services.outbox.types import Pacing
from modules.services.pictures.pictures import open_pictures
from modules.services.presence.home_lease import HomeLease
from modules.services.presence.lease_policy import identity_of
from modules.services.repository_rules.admission import ForeignRepositories
from modules.services.repository_rules.checking import RepositoryRules
from modules.services.repository_rules.reader import RuleReader
from modules.services.rights.mute import mute_gate, mute_rule
from modules.services.rights.preferences import Preferences
from modules.services.rituals.rituals import Rituals
from modules.services.rituals.store import RitualRuns
from modules.services.wiring.knowledge import Knowledge, open_stores
from modules.services.wiring.restored import make_up_for_lost
from modules.services.workspaces.finding import WorkspaceFinder
from modules.services.workspaces.own import OwnWorkspace
from modules.services.workspaces.requested import RequestedRepositories
from modules.services.workspaces.trust import WorkspaceTrust
from soul.composition.base import BaseServices
from soul.composition.integrations import Integrations
from soul.resources import SKILLS, template

ATPROTO_MAX_ANSWER_BYTES = 16 * 1024 * 1024


@dataclass(kw_only=True, eq=False)
class Services(BaseServices):
    """The basis, and what reaches the world, acts in it, knows and thinks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        settings, home, clock, journal = self.settings, self.home, self.clock, self.journal
        to_bluesky = http_transport_factory(
            settings.atproto_service_url, private_ok=settings.soul_allow_private_net, max_bytes=ATPROTO_MAX_ANSWER_BYTES
        )
        self.web = WebClient(to_bluesky())
        self.stack.push_async_callback(self.web.aclose)
        self.repos = public_repos(self.web, clock=clock, home_url=settings.home_service_url())
        self.atproto = open_atproto(self, to_bluesky)
        self.lease = HomeLease(
            self.atproto,
            self.database,
            journal,
            self.control,
            clock,
            identity=lambda: identity_of(home.memory, self.atproto.did),
        )
        self.pictures = open_pictures(settings, home.memory, clock=clock, journal=journal, stack=self.stack)
        self.account = AccountContext(
            atproto=self.atproto, journal=journal, peers=settings.soul_peers, names=self.pinned_names
        )
        self.preferences = Preferences(self.repos, self.atproto, self.database, clock, self.me.owner_did)
        self.experiences = ExperienceLog(self.database, self.preferences, self.redactor, clock)
        self.moderation = Moderation(atproto=self.atproto, journal=journal, clock=clock, me=self.me)
        self.integrations = Integrations(self)
        self.github, self.git = self.integrations.github, self.integrations.git
        self.repository_identity = self.integrations.repository_identity
        listed, names = self.peer_registry.get_listed_accounts, self.pinned_names
        self.trust = WorkspaceTrust(self.github, settings.owner_github_username, listed, clock, names)
        world = self._build_world()
        self.etiquette = Etiquette(world=world, database=self.database, clock=clock)
        self.feed_pace = FeedPaceGate(self.pace.post_cooldown_s)
        self.budget = build_budget(settings, self.prices, database=self.database, journal=journal, clock=clock)
        self.daily_copy = DailyCopy(home.database, journal, clock, settings.soul_timezone)
        self.knowledge = self._open_knowledge()
        stores = self.knowledge.stores
        self.gateway = open_gateway(self, on_measured=stores.estimator.learn, hydrate=stores.hydrate)
        reader = RuleReader(self.gateway, self.skills)
        rules = RepositoryRules(self.repository_identity, reader, self.database, journal, clock)
        self.foreign = ForeignRepositories(rules, self.github, self.database, world.circle)
        self.outbox = self._build_outbox(ApprovalRule.of(settings, world.circle))
        self.own_workspace = OwnWorkspace(
            org=settings.workspace_org,
            template=settings.workspace_template,
            github=self.github,
            outbox=self.outbox,
            watched=self.workspaces,
            finder=WorkspaceFinder(self.github, clock),
            journal=journal,
            clock=clock,
        )
        self.requested = RequestedRepositories(self.github, self.workspaces, self.outbox, journal, clock)
        self.rituals = self._build_rituals()
        self.self_keeper = SelfKeeper(
            home=home, clock=clock, journal=journal, redactor=self.redactor, publish=self.events.publish
        )

    async def situation(self) -> Situation:
        """Return how the SOUL stands now."""
        standing, now = self.control.standing(), self.clock.now()
        return await self.database.run(lambda connection: read_situation(connection, self.settings, standing, now))

    def _build_world(self) -> World:
        settings = self.settings
        return World(
            own_did=lambda: self.atproto.did,
            own_handle=settings.agent_bluesky_username,
            owner=(settings.owner_bluesky_social_handle_did, settings.owner_bluesky_social_handle),
            peers=self.account.peers,
            follows_us=self.relationships.follows_us,
            born_at=self.account.born_at,
            found=self.peer_registry.found,
            watched=self.workspaces.names,
            leads_to=leads_to,
            organisation=settings.workspace_org,
            github=self._logins_of_ours,
        )

    def _logins_of_ours(self) -> list[str]:
        """Our login on GitHub and the owner's, unless somebody else answers to it now."""
        logins = (self.settings.agent_github_username, self.settings.owner_github_username)
        return [one for one in logins if one and not self.pinned_names.has_passed_on("github", one)]

    def _build_outbox(self, approval: ApprovalRule) -> Outbox:
        owner_did, to_room = self.me.owner_did, self.integrations.to_room
        cards = None if self.settings.on_loopback() else LinkCards(self.web, self.redactor.text)
        pause = PauseGate(self.control, owner_did)
        by_message = direct_messages.DirectMessageSender(self.atproto, self.database, self.journal, owner_did=owner_did)
        return Outbox(
            database=self.database,
            journal=self.journal,
            clock=self.clock,
            senders=self.integrations.senders(bluesky.BlueskySender(self.atproto, self.pictures, cards), by_message),
            pacing=Pacing.of(self.pace),
            inquiries=(self.foreign,),
            rules=(SecretScan(self.redactor), self.etiquette, mute_rule, self.moderation.rule, approval),
            gates=(
                pause,
                to_room.gate,
                self.etiquette.gate,
                mute_gate,
                self.moderation.gate,
                self.feed_pace,
                lease_gate,
            ),
            at_departure=(approval.at_departure,),
            own_did=lambda: self.atproto.did,
            confirm=self.lease.confirm,
            prepared=self.moderation.prepared,
        )

    def _build_rituals(self) -> Rituals:
        return Rituals(
            runs=RitualRuns(self.database),
            me=self.me,
            identity=self.identity,
            etiquette=self.etiquette,
            preferences=self.preferences,
            pinned_names=self.pinned_names,
            atproto=self.atproto,
            skills=self.skills,
            clock=self.clock,
        )

    def _open_knowledge(self) -> Knowledge:
        settings, home, database, clock, console = self.settings, self.home, self.database, self.clock, self.console
        stores = open_stores(
            settings, home, database=database, health=self.health, console=console, clock=clock, stack=self.stack
        )
        return Knowledge(
            settings,
            stores,
            database=database,
            skills=self.skills,
            journal=self.journal,
            console=console,
            redactor=self.redactor,
            clock=clock,
        )


async def build_services(
    settings: Settings,
    home: Home,
    *,
    console: Console,
    clock: Clock,
    rng: random.Random,
    stack: AsyncExitStack,
    social_only: bool = False,
    skills_folder: Path = SKILLS,
) -> Services:
    """Return them, with the database open. What must be closed is put on `stack`. Raises `Fatal` with a remedy."""
    soul = SoulDocument(home.soul)
    check_self(home)
    today = f"{local(clock.now(), settings.soul_timezone):%Y-%m-%d}"
    ensure_self(home, template=template("SELF.md"), agent_name=settings.agent_name, today=today)
    database = await Database.open(home.database, MIGRATIONS, signs=home.signs_of_life())
    stack.push_async_callback(database.close)
    await database.run(make_up_for_lost)
    await database.run(lambda connection: keep_zone(connection, settings.soul_timezone))
    return Services(
        settings=settings,
        home=home,
        soul=soul,
        database=database,
        prices=await load_prices(settings, clock),
        notice=database.notice,
        console=console,
        clock=clock,
        rng=rng,
        stack=stack,
        social_only=social_only,
        skills_folder=skills_folder,
    )

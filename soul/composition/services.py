"""Builds the services that every life uses, once, from the settings, in the order of their dependencies."""

import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from adapters.atproto.client import public_repos
from adapters.git.client import Git
from adapters.github.client import GitHub
from adapters.space.client import SpaceClient
from adapters.space.discovery import discover_space
from adapters.space.types import ELECTION_RULES, SpaceEvent
from adapters.web.client import WebClient, http_transport_factory
from common.clock import Clock, local
from common.constants import GITHUB_MIN_SPACING_MS, SECOND_MS
from common.git_names import github_address
from common.intervals import Pace
from common.redact import Redactor
from common.result import ApiResult
from common.settings import Settings
from common.text.untrusted import one_line
from common.version import __version__
from common.wording import LineKind
from modules.lives.space.commitment_maker import show_event
from modules.lives.space.config import SPACE_CONFIG_FILE, SpaceConfigFile
from modules.lives.space.policy import RoomSilence, is_on_this_machine
from modules.lives.workspaces.issue_upkeep import EditWasLost
from modules.runtime.budget.budget import build_budget, load_prices
from modules.runtime.budget.prices import PriceList
from modules.runtime.budget.report import keep_zone
from modules.runtime.console import Console
from modules.runtime.control import Control
from modules.runtime.daily_copy import DailyCopy
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.events import EventBus
from modules.runtime.home import Home, SoulDocument, check_self, ensure_self
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.gateway import open_gateway
from modules.runtime.scheduler.policy import get_agent_jitter
from modules.runtime.scheduler.scheduler import Attention
from modules.runtime.service_health import ServiceHealth
from modules.runtime.status import Stages
from modules.services.claims.lease_store import lease_gate
from modules.services.craft.bounds import OwnProgramRule
from modules.services.day.situation import Situation, read_situation
from modules.services.experiences import DraftExperiences, ExperienceLog
from modules.services.explanation.story import known_handles
from modules.services.github_threads import ThreadInbox, leads_to
from modules.services.identity.entries import DOCUMENTS, SELF
from modules.services.identity.identity import Identity, Me
from modules.services.identity.keeper import SelfKeeper
from modules.services.moderation import Moderation
from modules.services.outbox.account import AccountContext, open_atproto
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.gates import FeedPaceGate, PauseGate, SecretScan
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.approval import ApprovalRule
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.rules import World
from modules.services.outbox.senders import bluesky
from modules.services.outbox.senders.bluesky import LinkCards
from modules.services.outbox.senders.github import github_senders
from modules.services.outbox.senders.github_changes import PushSender
from modules.services.outbox.senders.space import EchoLog, SpaceSender
from modules.services.outbox.types import Pacing, Sender
from modules.services.peers.loop import open_peers
from modules.services.peers.room_identity import RoomJoined
from modules.services.pictures.pictures import open_pictures
from modules.services.pinned_names import FILE as PINNED_NAMES
from modules.services.pinned_names import PinnedNames, RepositoryIdentity
from modules.services.presence.home_lease import HomeLease
from modules.services.presence.home_lease_policy import identity_of
from modules.services.relationships import Relationships, follows_us
from modules.services.repository_rules.checking import ForeignRepositories, RepositoryRules, RuleReader
from modules.services.rights.mute import mute_gate, mute_rule
from modules.services.rights.preferences import Preferences
from modules.services.rituals.rituals import RitualRuns, Rituals
from modules.services.schedules import Schedules
from modules.services.skills.skills import Skills
from modules.services.voice_phrases import VoicePhrases
from modules.services.wiring import Knowledge, make_up_for_lost, open_stores
from modules.services.work.table import WorkTable
from modules.services.workspaces.trust import WorkspaceTrust
from modules.services.workspaces.watched import OwnWorkspace, RequestedRepositories, WatchedWorkspaces, WorkspaceFinder
from soul.resources import SKILLS, template


@dataclass(kw_only=True, eq=False)
class BaseServices:
    """Settings, files, clock and journal of one SOUL. What must be closed in the end is put on `stack`.

    `notice` is a line for the owner on what is wrong with the database; `prices` are those of the models in use.
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
        self.schedules = Schedules(self.work, clock, settings.soul_timezone)
        self.threads = ThreadInbox(self.work, clock, clock.real(jitter_s))
        self.identity = Identity(home=home, agent_name=settings.agent_name)
        self.relationships = Relationships(home.memory / "relationships.json", self.database, clock)
        self.me = Me.of(settings)
        self.peer_registry, self.peer_histories = open_peers(home.memory, settings, self.me, clock, self.pinned_names)
        self.workspaces = WatchedWorkspaces(
            home.memory / "watched_workspaces.json", clock, github_address(str(settings.github_api_url))
        )


_CAPABILITIES = ("social", "github", "code", *ELECTION_RULES)
_ON_BLUESKY: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete", "threadgate")
_SOCIAL = ("social", *ELECTION_RULES)


class Integrations:
    """The clients of GitHub and of the room, and the senders of intents. Nothing is connected yet."""

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
            on_login=base.me.take_github_name,
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
        self._echo_log = EchoLog(settings.agent_name)
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
        """Return the sender of each kind of intent."""
        senders: dict[IntentKind, Sender] = dict.fromkeys(_ON_BLUESKY, to_bluesky)
        senders |= github_senders(self.repository_identity)
        senders["push"] = PushSender(self.repository_identity, self.git, self._base.home.root)
        return senders | {"space_chat": self.to_room, "direct_message": by_message}

    def is_trusted_room(self) -> bool:
        """Return whether the owner named the room, or it is on this machine."""
        return bool(self._base.settings.space_url) or is_on_this_machine(self.room.url)

    def _capabilities(self) -> tuple[str, ...]:
        """Return the capabilities to announce; none while muted, since a host request to a silent SOUL would starve."""
        if self.silence.reason():
            return ()
        return _SOCIAL if self._base.social_only or not self.github.configured else _CAPABILITIES

    def _on_event(self, event: SpaceEvent) -> None:
        self._echo_log.receive(event, self.room.url)
        show_event(self._base.console, event)

    async def _joined(self) -> None:
        self._base.events.publish(RoomJoined())
        if silence := self.silence.of_approval():
            await self._notice("warn", silence)
            await self.room.send_state("blocked", silence)

    async def _notice(self, kind: LineKind, message: str, detail: str = "") -> None:
        entry = Entry("life", "space", f"[space] {message}", line=kind, reason=one_line(detail, 200))
        await self._base.journal.record_or_show(entry)

    async def _discover(self) -> ApiResult[str]:
        settings = self._base.settings
        find = partial(discover_space, notice=partial(self._notice, "warn"), refused=self.room.refused_urls)
        return await find(space_url=settings.space_url, discovery=settings.space_discovery)


ATPROTO_MAX_ANSWER_BYTES = 16 * 1024 * 1024


@dataclass(kw_only=True, eq=False)
class Services(BaseServices):
    """The base services, and those for the network, the outbox, knowledge and the model."""

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
        self.pictures = open_pictures(settings, home.memory, self.database, self.stack, clock=clock, journal=journal)
        self.account = AccountContext(
            me=self.me, atproto=self.atproto, journal=journal, peers=settings.soul_peers, names=self.pinned_names
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
        self.daily_copy = DailyCopy(self.database, home.database, journal, clock, settings.soul_timezone)
        self.knowledge = self._open_knowledge()
        stores = self.knowledge.stores
        room = partial(stores.estimator.room_beside, settings.context_tokens)
        self.gateway = open_gateway(self, on_measured=stores.estimator.learn, answer_room=room, hydrate=stores.hydrate)
        reader = RuleReader(self.gateway, self.skills)
        rules = RepositoryRules(self.repository_identity, reader, self.database, journal, clock)
        self.foreign = ForeignRepositories(rules, self.github, self.database, world.circle)
        self.outbox = self._build_outbox(ApprovalRule.of(settings, world.circle))
        self.draft_experiences = DraftExperiences(log=self.experiences, outbox=self.outbox, work=self.work)
        self.own_workspace = OwnWorkspace(
            org=settings.workspace_org,
            template=settings.workspace_template,
            github=self.github,
            outbox=self.outbox,
            watched=self.workspaces,
            finder=WorkspaceFinder(self.github, clock),
            names=self.pinned_names,
            journal=journal,
            clock=clock,
        )
        self.requested = RequestedRepositories(self.github, self.workspaces, self.outbox, journal, clock)
        self.rituals = self._build_rituals()
        self.keepers = self._build_keepers()
        self.self_keeper = self.keepers[SELF]

    async def situation(self) -> Situation:
        """Return the SOUL's situation now: what waits, its budget, and what stops public acts."""
        standing, now = self.control.standing(), self.clock.now()
        return await self.database.run(lambda rows: read_situation(rows, self.settings, self.home, standing, now))

    def _build_keepers(self) -> dict[str, SelfKeeper]:
        """Build a keeper for each document that the SOUL may change; others than SELF.md need a workspace at home."""
        return {
            name: SelfKeeper(
                home=self.home,
                clock=self.clock,
                journal=self.journal,
                redactor=self.redactor,
                publish=self.events.publish,
                document=name,
            )
            for name in DOCUMENTS
            if name == SELF or self.settings.soul_workspace == "home"
        }

    def _build_world(self) -> World:
        settings = self.settings
        return World(
            own_did=lambda: self.atproto.did,
            own_handle=lambda: self.me.bluesky_username,
            owner=lambda: (self.me.owner_did, self.me.owner_handle),
            peers=self.account.peers,
            follows_us=follows_us,
            we_follow=self.moderation.follows,
            born_at=self.account.born_at,
            found=self.peer_registry.found,
            watched=self.workspaces.names,
            leads_to=leads_to,
            organisation=settings.workspace_org,
            program=settings.soul_program_repository,
            github=self._logins_of_ours,
        )

    def _logins_of_ours(self) -> list[str]:
        """Return our GitHub login and the owner's, without one that now belongs to somebody else."""
        logins = (self.me.github_username, self.settings.owner_github_username)
        return [one for one in logins if one and not self.pinned_names.has_passed_on("github", one)]

    def _build_outbox(self, approval: ApprovalRule) -> Outbox:
        owner_did, room = self.me.owner_did, self.integrations.to_room
        cards = None if self.settings.on_loopback() else LinkCards(self.web, self.redactor.text)
        pause, program = PauseGate(self.control, owner_did), OwnProgramRule(self.settings.soul_program_repository)
        to_bluesky = bluesky.BlueskySender(self.atproto, self.pictures, cards, self.moderation.as_chosen)
        by_message = bluesky.DirectMessageSender(self.atproto, self.database, self.journal, owner_did=owner_did)
        return Outbox(
            database=self.database,
            journal=self.journal,
            clock=self.clock,
            senders=self.integrations.senders(to_bluesky, by_message),
            pacing=Pacing.of(self.pace),
            inquiries=(self.foreign,),
            rules=(SecretScan(self.redactor), self.etiquette, mute_rule, self.moderation.rule, program, approval),
            gates=(pause, room.gate, self.etiquette.gate, mute_gate, self.moderation.gate, self.feed_pace, lease_gate),
            at_departure=(approval.at_departure,),
            own_did=lambda: self.atproto.did,
            confirm=self.lease.confirm,
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
            home,
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
    """Build the services, with the database open and what must be closed on `stack`. Raises `Fatal` with a remedy."""
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

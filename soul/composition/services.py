"""The services that every life uses, built once from the settings, in the order in which they need each other."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from adapters.atproto.client import Atproto
from adapters.atproto.public import PublicRepos
from adapters.web.client import WebClient
from common.clock import Clock, local
from common.constants import ATPROTO_MAX_ANSWER_BYTES
from common.pace import Pace
from common.redact import Redactor
from common.settings import Settings
from modules.lives.bluesky.account_context import AccountContext
from modules.runtime.budget.budget import Budget
from modules.runtime.budget.lost_ledger import count_again
from modules.runtime.console import Console
from modules.runtime.control import Control
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home, SoulDocument, ensure_self
from modules.runtime.journal.journal import Journal
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.usage import UsageLog
from modules.runtime.scheduler.attention import Attention
from modules.runtime.service_health import ServiceHealth
from modules.services.agent.identity.identity import Identity, Me
from modules.services.agent.identity.keeper import SelfKeeper
from modules.services.agent.skills.contracts import SKILL_CONTRACTS
from modules.services.agent.skills.skills import Skills
from modules.services.outbox.bodies import IntentKind
from modules.services.outbox.gates.pause import PauseGate
from modules.services.outbox.outbox import Outbox
from modules.services.outbox.rules.approval import ApprovalRule
from modules.services.outbox.rules.etiquette import Etiquette
from modules.services.outbox.rules.secrets import SecretScan
from modules.services.outbox.rules.types import World
from modules.services.outbox.senders.bluesky import BlueskySender
from modules.services.outbox.types import Pacing
from modules.services.peers.accounts import Relationships
from soul.composition.integrations import Integrations, build_integrations
from soul.composition.stores import Knowledge, gather_knowledge, open_stores
from soul.resources import SKILLS, template
from soul.wall import build_budget
from soul.way_out import http_transport_factory, public_repos

_KINDS: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete")


@dataclass(frozen=True, slots=True)
class Services:
    """The services that every life uses, built first."""

    settings: Settings
    home: Home
    clock: Clock
    rng: random.Random
    console: Console
    pace: Pace
    me: Me
    soul: SoulDocument
    skills: Skills
    identity: Identity
    redactor: Redactor
    database: Database
    journal: Journal
    web: WebClient
    repos: PublicRepos
    atproto: Atproto
    relationships: Relationships
    surroundings: AccountContext
    control: Control
    etiquette: Etiquette
    outbox: Outbox
    budget: Budget
    gateway: LLMGateway
    knowledge: Knowledge
    self_keeper: SelfKeeper
    attention: Attention
    integrations: Integrations


async def build_services(
    settings: Settings,
    home: Home,
    *,
    console: Console,
    clock: Clock,
    rng: random.Random,
    stack: AsyncExitStack,
    social_only: bool = False,
) -> Services:
    """Build them. What must be closed in the end is put on `stack`. Raises `Fatal` with a remedy."""
    pace = Pace().at(settings.soul_speed)
    soul = SoulDocument(home.soul)
    today = f"{local(clock.now(), settings.soul_timezone):%Y-%m-%d}"
    ensure_self(home, template=template("SELF.md"), agent_name=settings.agent_name, today=today)
    skills = Skills.load(SKILLS, SKILL_CONTRACTS)
    database = await Database.open(home.database, MIGRATIONS, signs=home.signs_of_life())
    stack.push_async_callback(database.close)
    redactor = Redactor(settings.secrets)
    journal = Journal(database, console, clock, redactor)
    control = Control(home.memory)
    health = ServiceHealth(clock, console=console, timezone=settings.soul_timezone)
    to_bluesky = http_transport_factory(settings.atproto_service_url, settings, max_bytes=ATPROTO_MAX_ANSWER_BYTES)
    web = WebClient(to_bluesky())
    stack.push_async_callback(web.aclose)
    atproto = Atproto(
        service_url=settings.atproto_service_url,
        identifier=settings.agent_bluesky_username,
        password=settings.agent_bluesky_password.get_secret_value(),
        session_path=home.session,
        clock=clock,
        min_spacing_s=pace.atproto_spacing_ms / 1000,
        languages=settings.post_languages,
        held_back=control.held_back,
        heard=partial(health.note, "Bluesky"),
        transport=to_bluesky,
    )
    stack.push_async_callback(atproto.aclose)
    relationships = Relationships(home.memory / "relationships.json", clock)
    surroundings = AccountContext(atproto=atproto, journal=journal, peers=settings.soul_peers)
    world = World(
        own_did=lambda: atproto.did,
        own_handle=settings.agent_bluesky_username,
        owner=(settings.owner_bluesky_social_handle_did, settings.owner_bluesky_social_handle),
        peers=surroundings.peers,
        follows_us=relationships.follows_us,
        born_at=surroundings.born_at,
        github=[name for name in (settings.agent_github_username, settings.owner_github_username) if name],
    )
    integrations = build_integrations(
        settings,
        control=control,
        health=health,
        journal=journal,
        console=console,
        clock=clock,
        rng=rng,
        stack=stack,
        social_only=social_only,
    )
    etiquette = Etiquette(world=world, database=database, clock=clock, speed=settings.soul_speed)
    approval_rule = ApprovalRule(settings.soul_approval, world.circle)
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        senders={**dict.fromkeys(_KINDS, BlueskySender(atproto)), **integrations.senders()},
        pacing=_pacing(pace),
        rules=(SecretScan(redactor), etiquette, approval_rule),
        gates=(PauseGate(control), integrations.to_room.gate, etiquette.gate),
        at_departure=(approval_rule.at_departure,),
        own_did=lambda: atproto.did,
    )
    lost = await count_again(database, home, clock, model=settings.ai_gateway_model, timezone=settings.soul_timezone)
    database.notice = "; ".join(filter(None, (database.notice, lost)))
    budget = await build_budget(settings, database=database, journal=journal, clock=clock)
    stores = open_stores(settings, home, database=database, health=health, console=console, clock=clock, stack=stack)
    gateway = LLMGateway(
        base_url=settings.ai_gateway_base_url,
        api_key=settings.ai_gateway_api_key.get_secret_value(),
        model=settings.ai_gateway_model,
        clock=clock,
        rng=rng,
        console=console,
        wall=budget,
        redactor=redactor,
        on_usage=UsageLog(home.usage_log, clock).note,
        on_measured=stores.estimator.learn,
        on_outcome=partial(stores.health.note, "model"),
        cache_key=settings.agent_name,
        hydrate=stores.hydrate,
        vision=settings.ai_gateway_vision,
        reads_facts=settings.ai_gateway_facts,
        transport=http_transport_factory(settings.ai_gateway_base_url, settings),
        idle_timeout_s=settings.ai_gateway_idle_timeout_s,
    )
    stack.push_async_callback(gateway.aclose)
    me = Me(
        agent_name=settings.agent_name,
        bluesky_username=settings.agent_bluesky_username,
        owner_handle=settings.owner_bluesky_social_handle,
        owner_did=settings.owner_bluesky_social_handle_did,
        timezone=settings.soul_timezone,
    )
    return Services(
        settings=settings,
        home=home,
        clock=clock,
        rng=rng,
        console=console,
        pace=pace,
        me=me,
        soul=soul,
        skills=skills,
        identity=Identity(home=home, agent_name=settings.agent_name),
        redactor=redactor,
        database=database,
        journal=journal,
        web=web,
        repos=public_repos(web, settings, clock),
        atproto=atproto,
        relationships=relationships,
        surroundings=surroundings,
        control=control,
        etiquette=etiquette,
        outbox=outbox,
        budget=budget,
        gateway=gateway,
        knowledge=gather_knowledge(
            settings,
            home,
            stores,
            database=database,
            skills=skills,
            journal=journal,
            console=console,
            redactor=redactor,
            clock=clock,
        ),
        self_keeper=SelfKeeper(home=home, clock=clock, journal=journal, redactor=redactor),
        attention=Attention(),
        integrations=integrations,
    )


def _pacing(pace: Pace) -> Pacing:
    return Pacing(
        post_s=pace.post_cooldown_s,
        reply_s=pace.reply_cooldown_s,
        like_s=pace.like_cooldown_s,
        follow_s=pace.follow_cooldown_s,
        action_s=pace.action_cooldown_s,
    )

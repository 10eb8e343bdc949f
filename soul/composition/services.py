"""The services that every life uses, built once from the settings, in the order in which they need each other."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from adapters.atproto.client import Atproto
from adapters.atproto.public import public_repos
from adapters.web.client import WebClient
from adapters.web.transport import http_transport_factory
from common.clock import Clock, local
from common.settings import Settings
from modules.runtime.budget.build import build_budget, load_prices
from modules.runtime.budget.lost_ledger import count_again
from modules.runtime.console import Console
from modules.runtime.database.database import Database
from modules.runtime.database.schema import MIGRATIONS
from modules.runtime.home import Home, SoulDocument, ensure_self
from modules.runtime.llm.gateway import LLMGateway
from modules.runtime.llm.usage import UsageLog
from modules.services.agent.identity.keeper import SelfKeeper
from modules.services.agent.knowledge import Knowledge, open_stores
from modules.services.outbox.account import AccountContext
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
from modules.services.rights.mute import mute_gate, mute_rule
from modules.services.rights.preferences import Preferences
from soul.composition.base import BaseServices
from soul.composition.integrations import Integrations
from soul.resources import SKILLS, template

ATPROTO_MAX_ANSWER_BYTES = 16 * 1024 * 1024


@dataclass(kw_only=True, eq=False)
class Services(BaseServices):
    """The basis, and what reaches the world, acts in it, knows and thinks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        settings, home, stack, database = self.settings, self.home, self.stack, self.database
        journal, redactor, console, clock = self.journal, self.redactor, self.console, self.clock
        to_bluesky = http_transport_factory(
            settings.atproto_service_url, private_ok=settings.soul_allow_private_net, max_bytes=ATPROTO_MAX_ANSWER_BYTES
        )
        self.web = WebClient(to_bluesky())
        stack.push_async_callback(self.web.aclose)
        self.repos = public_repos(self.web, clock=clock, home_url=settings.home_service_url())
        self.atproto = Atproto(
            service_url=settings.atproto_service_url,
            identifier=settings.agent_bluesky_username,
            password=settings.agent_bluesky_password.get_secret_value(),
            session_path=home.session,
            clock=clock,
            min_spacing_s=self.pace.atproto_spacing_ms / 1000,
            languages=settings.post_languages,
            write_block_reason=self.control.write_block_reason,
            on_response=partial(self.health.note, "Bluesky"),
            transport=to_bluesky,
        )
        stack.push_async_callback(self.atproto.aclose)
        self.pictures = open_pictures(settings, home.memory, clock=clock, journal=journal, stack=stack)
        self.account = AccountContext(atproto=self.atproto, journal=journal, peers=settings.soul_peers)
        self.preferences = Preferences(self.repos, self.atproto, database, clock, self.me.owner_did)
        self.integrations = Integrations(self)
        self.github = self.integrations.github
        world = World(
            own_did=lambda: self.atproto.did,
            own_handle=settings.agent_bluesky_username,
            owner=(settings.owner_bluesky_social_handle_did, settings.owner_bluesky_social_handle),
            peers=self.account.peers,
            follows_us=self.relationships.follows_us,
            born_at=self.account.born_at,
            found=self.peer_registry.found,
            github=[name for name in (settings.agent_github_username, settings.owner_github_username) if name],
        )
        self.etiquette = Etiquette(world=world, database=database, clock=clock, speed=settings.soul_speed)
        approval, owner_did = ApprovalRule(settings.soul_approval, world.circle), self.me.owner_did
        cards = None if settings.on_loopback() else LinkCards(self.web, redactor.text)
        by_message = direct_messages.DirectMessageSender(self.atproto, database, journal, owner_did=owner_did)
        self.outbox = Outbox(
            database=database,
            journal=journal,
            clock=clock,
            senders=self.integrations.senders(bluesky.BlueskySender(self.atproto, self.pictures, cards), by_message),
            pacing=Pacing.of(self.pace),
            rules=(SecretScan(redactor), self.etiquette, mute_rule, approval),
            gates=(PauseGate(self.control, owner_did), self.integrations.to_room.gate, self.etiquette.gate, mute_gate),
            at_departure=(approval.at_departure,),
            own_did=lambda: self.atproto.did,
        )
        self.budget = build_budget(settings, self.prices, database=database, journal=journal, clock=clock)
        stores = open_stores(
            settings, home, database=database, health=self.health, console=console, clock=clock, stack=stack
        )
        self.knowledge = Knowledge(
            settings,
            home,
            stores,
            database=database,
            skills=self.skills,
            journal=journal,
            console=console,
            redactor=redactor,
            clock=clock,
        )
        self.gateway = LLMGateway(
            base_url=settings.ai_gateway_base_url,
            api_key=settings.ai_gateway_api_key.get_secret_value(),
            model=settings.ai_gateway_model,
            clock=clock,
            rng=self.rng,
            console=console,
            budget_guard=self.budget,
            redactor=redactor,
            on_usage=UsageLog(home.usage_log, clock).note,
            on_measured=stores.estimator.learn,
            on_outcome=partial(self.health.note, "model"),
            cache_key=settings.agent_name,
            hydrate=stores.hydrate,
            vision=settings.ai_gateway_vision,
            reads_facts=settings.ai_gateway_facts,
            transport=http_transport_factory(settings.ai_gateway_base_url, private_ok=settings.soul_allow_private_net),
            idle_timeout_s=settings.ai_gateway_idle_timeout_s,
        )
        stack.push_async_callback(self.gateway.aclose)
        self.self_keeper = SelfKeeper(
            home=home, clock=clock, journal=journal, redactor=redactor, publish=self.events.publish
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
    today = f"{local(clock.now(), settings.soul_timezone):%Y-%m-%d}"
    ensure_self(home, template=template("SELF.md"), agent_name=settings.agent_name, today=today)
    database = await Database.open(home.database, MIGRATIONS, signs=home.signs_of_life())
    stack.push_async_callback(database.close)
    lost = await count_again(database, home, clock, model=settings.ai_gateway_model, timezone=settings.soul_timezone)
    return Services(
        settings=settings,
        home=home,
        soul=soul,
        database=database,
        prices=await load_prices(settings, clock),
        notice="; ".join(filter(None, (database.notice, lost))),
        console=console,
        clock=clock,
        rng=rng,
        stack=stack,
        social_only=social_only,
        skills_folder=skills_folder,
    )

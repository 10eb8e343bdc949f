"""The services that every life uses, built once from the settings, in the order in which they need each other."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass

from adapters.atproto.client import Atproto
from common.clock import Clock, local
from common.pace import Pace
from common.redact import Redactor
from common.settings import Settings
from modules.bluesky.courier import BlueskyCourier
from modules.console import Console
from modules.database import Database
from modules.home import Home, SoulDocument, ensure_self
from modules.identity import Identity, Me
from modules.journal.journal import Journal
from modules.llm_gateway.gateway import LLMGateway
from modules.llm_gateway.usage import UsageLog
from modules.outbox.outbox import Outbox
from modules.outbox.types import IntentKind, Pacing
from modules.scheduler.attention import Attention
from modules.schema import MIGRATIONS
from modules.skill_contracts import SKILL_CONTRACTS
from modules.skills import Skills
from soul.resources import SKILLS, template

_KINDS: tuple[IntentKind, ...] = ("post", "reply", "like", "repost", "follow", "delete")


@dataclass(frozen=True, slots=True)
class Rails:
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
    database: Database
    journal: Journal
    atproto: Atproto
    outbox: Outbox
    gateway: LLMGateway
    attention: Attention


async def lay_rails(
    settings: Settings, home: Home, *, console: Console, clock: Clock, rng: random.Random, stack: AsyncExitStack
) -> Rails:
    """Build them. What must be closed in the end is put on `stack`. Raises `Fatal` with a remedy."""
    pace = Pace().at(settings.soul_speed)
    soul = SoulDocument(home.soul)
    today = f"{local(clock.now(), settings.soul_timezone):%Y-%m-%d}"
    ensure_self(home, template=template("SELF.md"), agent_name=settings.agent_name, today=today)
    skills = Skills.load(SKILLS, SKILL_CONTRACTS)
    database = await Database.open(home.database, MIGRATIONS)
    stack.push_async_callback(database.close)
    journal = Journal(database, console, clock, Redactor(settings.secrets))
    atproto = Atproto(
        service_url=settings.atproto_service_url,
        identifier=settings.agent_bluesky_username,
        password=settings.agent_bluesky_password.get_secret_value(),
        session_path=home.session,
        clock=clock,
        min_spacing_s=pace.atproto_spacing_ms / 1000,
        languages=settings.post_languages,
    )
    stack.push_async_callback(atproto.aclose)
    courier = BlueskyCourier(atproto)
    outbox = Outbox(
        database=database,
        journal=journal,
        clock=clock,
        couriers=dict.fromkeys(_KINDS, courier),
        pacing=_pacing(pace),
        own_did=lambda: atproto.did,
    )
    gateway = LLMGateway(
        base_url=settings.ai_gateway_base_url,
        api_key=settings.ai_gateway_api_key.get_secret_value(),
        model=settings.ai_gateway_model,
        clock=clock,
        rng=rng,
        console=console,
        on_usage=UsageLog(home.memory / "llm-usage.jsonl", clock).note,
    )
    stack.push_async_callback(gateway.aclose)
    me = Me(
        agent_name=settings.agent_name,
        bluesky_username=settings.agent_bluesky_username,
        owner_handle=settings.owner_bluesky_social_handle,
        owner_did=settings.owner_bluesky_social_handle_did,
        timezone=settings.soul_timezone,
    )
    return Rails(
        settings=settings,
        home=home,
        clock=clock,
        rng=rng,
        console=console,
        pace=pace,
        me=me,
        soul=soul,
        skills=skills,
        identity=Identity(home=home, soul=soul, skills=skills, agent_name=settings.agent_name),
        database=database,
        journal=journal,
        atproto=atproto,
        outbox=outbox,
        gateway=gateway,
        attention=Attention(),
    )


def _pacing(pace: Pace) -> Pacing:
    return Pacing(
        post_s=pace.post_cooldown_s,
        reply_s=pace.reply_cooldown_s,
        like_s=pace.like_cooldown_s,
        follow_s=pace.follow_cooldown_s,
        action_s=pace.action_cooldown_s,
    )

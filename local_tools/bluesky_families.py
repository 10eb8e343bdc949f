"""All tools that reach Bluesky, as the registry takes them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from adapters.atproto.client import Atproto
from adapters.web.client import WebClient
from common.settings import Settings
from local_tools.bluesky import BlueskyTools, bluesky_tools
from local_tools.bluesky_accounts import AccountTools, MeantAccounts, account_tools
from local_tools.bluesky_looks import BlueskyLooks
from local_tools.messages import MessageTools, message_tools
from local_tools.pictures import picture_tools
from local_tools.reply_limits import reply_limit_tools
from local_tools.scheduled_posts import scheduled_post_tools
from local_tools.web import web_tools
from modules.lives.bluesky.publish import Publisher
from modules.runtime.database.database import Database
from modules.services.agent.echo_judge import JudgeServices, build_claim_judge
from modules.services.agent.tools.types import Tool
from modules.services.identity.identity import Me
from modules.services.moderation.moderation import Moderation
from modules.services.outbox.outbox import Outbox
from modules.services.own_feed.reply_limits import ReplyLimits
from modules.services.pictures.pictures import Pictures
from modules.services.rights.preferences import Preferences
from modules.services.voice_phrases.store import VoicePhrases


class BlueskyFamilyServices(JudgeServices, Protocol):
    """What all of them are built from."""

    settings: Settings
    atproto: Atproto
    outbox: Outbox
    rng: random.Random
    preferences: Preferences
    moderation: Moderation
    pictures: Pictures
    phrases: VoicePhrases
    web: WebClient
    me: Me
    database: Database


def all_bluesky_tools(
    services: BlueskyFamilyServices, publisher: Publisher, reply_limits: ReplyLimits
) -> Sequence[Tool]:
    """Return those for posts, follows, messages, limits of replies, posts for later, pictures, and pages of the web."""
    atproto, skills = services.atproto, services.skills
    on_bluesky = BlueskyTools(
        atproto,
        publisher,
        partial(BlueskyLooks, atproto, services.preferences, services.moderation),
        build_claim_judge(services),
        skills=skills,
        rng=services.rng,
        phrase=services.phrases.phrase,
    )
    accounts = AccountTools(
        atproto,
        publisher,
        on_bluesky=on_bluesky,
        meant=MeantAccounts(atproto, services.me.owner_did, services.settings.soul_approval, on_bluesky.words),
        database=services.database,
        journal=services.journal,
        clock=services.clock,
    )
    return (
        *bluesky_tools(on_bluesky),
        *account_tools(accounts, skills),
        *message_tools(MessageTools(services.outbox, skills)),
        *reply_limit_tools(reply_limits, publisher, on_bluesky, skills),
        *scheduled_post_tools(services.outbox, publisher, on_bluesky, skills, services.me.timezone),
        *picture_tools(services.pictures, publisher, on_bluesky, skills, services.rng),
        *web_tools(services.web, on_bluesky, skills),
    )

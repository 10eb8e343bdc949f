"""Builds all tools that a model may be offered."""

from collections.abc import Sequence
from functools import partial

from common.files import delete_tree
from local_tools.answering import GitHubTools, MessageTools, github_tools, message_tools, space_tools
from local_tools.bluesky import AccountTools, BlueskyTools, MeantAccounts, account_tools, bluesky_tools
from local_tools.bluesky_turns import BlueskyLooks
from local_tools.families import in_families, registry_of
from local_tools.github_acting import GitHubActing
from local_tools.memory_tools import MemoryTools, memory_tools
from local_tools.own_posts import OwnPostTools, own_post_tools
from local_tools.pictures import picture_tools
from local_tools.reading import ReadingTools, reading_tools, web_tools
from local_tools.repositories import pull_request_tools, repository_reading_tools, repository_tools
from local_tools.schedule_tools import ScheduleTools, schedule_tools
from local_tools.self_tools import SelfTools, TalkTools, self_tools, talk_tools
from local_tools.skill_tools import SkillTools, craft_tools, skill_tools
from local_tools.workspaces import workspace_tools
from modules.runtime.sandbox.runner import Sandbox
from modules.services.agent.tools.executor import Registry
from modules.services.agent.tools.types import Tool
from modules.services.agent.verdicts import TIMEOUT_S, Verdicts, YesNoJudge
from modules.services.commitments.queue import CommitmentQueue
from modules.services.day.gathering import DayReader
from modules.services.exchanges import PublicPosts, TalkSearch
from modules.services.pictures.choosing import PictureFinder
from modules.services.repositories import RepositoryReader
from modules.services.rights.forgetting import forget_talk
from soul.command_table import rows_at
from soul.composition.services import Services
from soul.composition.wiring.bluesky import BlueskyState

READ_REPOS = ".readrepos"


def build_registry(services: Services, state: BlueskyState, commitments: CommitmentQueue) -> Registry:
    """Build the registry of all tools that a model may be offered."""
    tools: tuple[Tool, ...] = (
        *_bluesky_tools(services, state, commitments),
        *_github_tools(services),
        *_self_tools(services),
        *_memory_tools(services),
        *craft_tools(services.work, services.skills, may_write=services.settings.soul_workspace == "home"),
        *_talk_tools(services),
        *schedule_tools(ScheduleTools(services.schedules, services.skills)),
        *space_tools(services.skills),
    )
    tools = (*tools, *_skill_tools(services, in_families(tools)))
    commands = [f"/{row.usage}: {row.summary}" for row in rows_at("message").values()]
    return registry_of(tools, services.skills, social_only=services.social_only, commands=commands)


def _bluesky_tools(services: Services, state: BlueskyState, commitments: CommitmentQueue) -> Sequence[Tool]:
    """Build the tools for posts, own posts, accounts, messages, pictures, reading, and web pages."""
    atproto, publisher, skills = services.atproto, state.publisher, services.skills
    judge = YesNoJudge(Verdicts(services.gateway, skills, services.clock, TIMEOUT_S), services.journal)
    on_bluesky = BlueskyTools(
        atproto,
        publisher,
        partial(BlueskyLooks, atproto, services.preferences, services.moderation),
        judge,
        skills=skills,
        rng=services.rng,
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
    finder = PictureFinder(services.pictures, services.rng)
    own_posts = OwnPostTools(
        services.outbox,
        publisher,
        state.reply_limits,
        on_bluesky,
        skills,
        services.rng,
        services.clock,
        services.me.timezone,
        services.settings.post_languages,
        commitments,
        services.journal,
    )
    return (
        *bluesky_tools(on_bluesky),
        *own_post_tools(own_posts),
        *account_tools(accounts, skills),
        *message_tools(MessageTools(services.outbox, skills)),
        *picture_tools(services.pictures, publisher, on_bluesky, finder, skills),
        *reading_tools(
            ReadingTools(
                atproto, on_bluesky.looks, services.work, services.settings.reading_per_day, services.me.timezone
            )
        ),
        *web_tools(services.web, on_bluesky, skills),
    )


def _github_tools(services: Services) -> Sequence[Tool]:
    """Build the tools for threads, repositories, pull requests, and workspaces."""
    me = services.me
    names = (me.agent_name, services.identity.display_name)
    in_threads = github_tools(GitHubTools(services.outbox, services.skills, names))
    reading = repository_reading_tools(_build_reader(services), GitHubActing(services, "repository-tools"))
    acting = (*repository_tools(services), *pull_request_tools(services), *workspace_tools(services))
    return (*in_threads, *reading, *acting)


def _build_reader(services: Services) -> RepositoryReader:
    """Build the reader of repositories; delete the copies that a killed life left."""
    folder = services.home.root / READ_REPOS
    delete_tree(folder)
    reader = RepositoryReader(_build_sandbox(services), folder, services.settings, services.clock)
    services.stack.push_async_callback(reader.close)
    return reader


def _build_sandbox(services: Services) -> Sandbox:
    """Build the sandbox for programs that read untrusted files; without bubblewrap, none of them runs."""
    private = (services.home.memory, services.home.env, services.home.session)
    return Sandbox(redactor=services.redactor, private=private)


def _self_tools(services: Services) -> Sequence[Tool]:
    """Build the tools for SELF.md, and for what happened on a day."""
    tools = SelfTools(
        home=services.home,
        keepers=services.keepers,
        days=DayReader(services.settings, services.home, services.clock),
        rng=services.rng,
        skills=services.skills,
    )
    return self_tools(tools)


def _skill_tools(services: Services, others: Sequence[Tool]) -> Sequence[Tool]:
    """Build the tools for skills beyond the shipped ones; `others` are the tools that a skill may name."""
    keeper = services.self_keeper if services.settings.soul_workspace == "home" else None
    local = services.knowledge.local_skills
    return skill_tools(SkillTools(local=local, skills=services.skills, keeper=keeper, tools=others))


def _memory_tools(services: Services) -> Sequence[Tool]:
    """Build the tools for memories and for profiles of people."""
    knowledge = services.knowledge
    tools = MemoryTools(
        store=knowledge.stores.memories,
        profiles=knowledge.profiles,
        skills=services.skills,
        journal=services.journal,
        clock=services.clock,
        rng=services.rng,
        owner_words=knowledge.owner_words,
        onboarding_due=knowledge.onboarding.due,
        complete=knowledge.onboarding.complete,
        forget_talk=partial(services.journal.record_with, forget_talk),
        timezone=services.settings.soul_timezone,
    )
    return memory_tools(tools)


def _talk_tools(services: Services) -> Sequence[Tool]:
    """Build the tool that searches what was said."""
    posts = PublicPosts(services.atproto, services.preferences, services.moderation)
    talk = TalkSearch(services.database, posts, services.settings.owner_bluesky_social_handle_did)
    return talk_tools(TalkTools(talk, services.skills, services.clock, services.rng, services.me.timezone))

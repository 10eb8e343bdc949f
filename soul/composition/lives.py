"""What lives on the services: the mind with its tools, and the life on Bluesky, each built once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from common.constants import CONVERSATION_STALE_RETENTION_MS
from common.errors import PolicyBlocked, Transient
from local_tools.bluesky import BlueskyTools, bluesky_tools
from local_tools.self_tools import SelfTools, self_tools
from local_tools.space_tool import space_tools
from modules.lives.bluesky.act import Responder
from modules.lives.bluesky.conversations import Conversations
from modules.lives.bluesky.expression import Expression
from modules.lives.bluesky.loop import AwarenessLoop
from modules.lives.bluesky.perceive import Perceiver
from modules.lives.bluesky.pictures import Pictures
from modules.lives.bluesky.publish import Publisher
from modules.lives.bluesky.state import PendingPosts
from modules.lives.space.life import SpaceLife
from modules.runtime.journal.types import Entry
from modules.services.agent.attention_list import Prosoche
from modules.services.agent.prompt.prompter import Prompter, TurnPrompt
from modules.services.agent.prompt.rows import BOOT
from modules.services.agent.session_keys import is_main
from modules.services.agent.sessions.archivist import Archivist
from modules.services.agent.tools.executor import Executor
from modules.services.agent.tools.registry import Registry
from modules.services.agent.turn.facts import agent_facts
from modules.services.agent.turn.runner import Thinker
from modules.services.agent.wakeup.keeper import BootContext
from soul.composition.archiving import build_archivist
from soul.composition.promises import Promises, build_promises, note_promises, open_queue
from soul.composition.prompt_wiring import build_boot_context, build_prompter, build_prosoche, tools_to_know
from soul.composition.services import Services
from soul.composition.space import build_space
from soul.logs import log_call


@dataclass(frozen=True, slots=True)
class Lives:
    """The mind, and the rooms of the one life there is."""

    registry: Registry
    thinker: Thinker
    prompter: Prompter
    archivist: Archivist
    prosoche: Prosoche
    boot_context: BootContext
    conversations: Conversations
    pending: PendingPosts
    publisher: Publisher
    expression: Expression
    awareness: AwarenessLoop
    promises: Promises
    space: SpaceLife

    async def tidy(self, services: Services) -> None:
        """End the talks that are over, and forget what has outlived its use."""
        for over in self.conversations.sweep(services.atproto.did, services.identity.extract().social_mechanics):
            summary = f"The talk with @{over.root_author_handle or 'somebody'} is over"
            reason = over.conclusion_reason or ""
            await services.journal.record(
                Entry("decision", "heartbeat", summary, line="social", reason=reason, trigger_uri=over.root_uri)
            )
        self.conversations.cleanup_old_conversations()
        services.relationships.prune_stale()
        await services.journal.prune()
        await services.budget.tidy()
        await self.pending.forget_before(services.clock.now() - timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS))
        for what, step in (
            ("daily copy of memory", services.knowledge.recovery.write_daily),
            ("files of memory", services.knowledge.refresh),
            ("list of what asks for attention", self.prosoche.refresh),
            ("page to wake up with", self.boot_context.write),
        ):
            try:
                await step()
            except (PolicyBlocked, Transient) as error:
                entry = Entry("error", "heartbeat", f"The {what} was not renewed", line="warn", reason=str(error))
                await services.journal.record(entry)


def build_lives(services: Services, *, social_only: bool) -> Lives:
    """Build them."""
    conversations = Conversations(services.home.memory / "bluesky_conversations.json", services.clock)
    pending = PendingPosts(services.database, services.clock)
    publisher = Publisher(
        atproto=services.atproto,
        outbox=services.outbox,
        conversations=conversations,
        relationships=services.relationships,
        journal=services.journal,
    )
    registry = _registry(services, publisher, social_only=social_only)
    queue = open_queue(services, social_only=social_only)
    prosoche, boot_context = (
        build_prosoche(services, pending.count, queue.live),
        build_boot_context(services, pending.count),
    )
    thinker = _thinker(services, registry, boot_context)
    prompter = build_prompter(services, registry, prosoche, boot_context)
    promises = build_promises(services, queue, prompter, social_only=social_only)
    space = build_space(services, promises, prompter=prompter, thinker=thinker, social_only=social_only)
    return Lives(
        registry=registry,
        thinker=thinker,
        prompter=prompter,
        archivist=build_archivist(services, prompter),
        prosoche=prosoche,
        boot_context=boot_context,
        conversations=conversations,
        pending=pending,
        publisher=publisher,
        expression=_expression(services, thinker, prompter),
        awareness=_awareness(
            services,
            promises,
            thinker=thinker,
            prompter=prompter,
            publisher=publisher,
            conversations=conversations,
            pending=pending,
        ),
        promises=promises,
        space=space,
    )


def _registry(services: Services, publisher: Publisher, *, social_only: bool) -> Registry:
    on_bluesky = BlueskyTools(atproto=services.atproto, publisher=publisher, skills=services.skills, rng=services.rng)
    own_notes = SelfTools(home=services.home, keeper=services.self_keeper)
    return Registry(
        (*bluesky_tools(on_bluesky), *self_tools(own_notes), *tools_to_know(services), *space_tools()),
        social_only=social_only,
    )


def _thinker(services: Services, registry: Registry, boot_context: BootContext) -> Thinker:
    def told(prompt: TurnPrompt) -> None:
        if prompt.has(BOOT):
            boot_context.was_told(main=is_main(prompt.session_key))

    return Thinker(
        gateway=services.gateway,
        executor=Executor(registry, on_call=log_call, redactor=services.redactor, console=services.console),
        clock=services.clock,
        journal=services.journal,
        sessions=services.knowledge.sessions,
        estimate=services.knowledge.stores.estimator.estimate,
        context_tokens=services.settings.context_tokens,
        nudge=lambda: services.skills.render("core", "Nudge"),
        on_told=told,
        agent=lambda: agent_facts(services.me, services.identity, services.soul.text),
    )


def _expression(services: Services, thinker: Thinker, prompter: Prompter) -> Expression:
    return Expression(
        me=services.me,
        path=services.home.memory / "expression_schedule.json",
        atproto=services.atproto,
        outbox=services.outbox,
        identity=services.identity,
        prompter=prompter,
        skills=services.skills,
        thinker=thinker,
        journal=services.journal,
        clock=services.clock,
        rng=services.rng,
        pace=services.pace,
        keep_hours=services.settings.soul_speed == 1,
        standing=services.control.standing,
    )


def _awareness(
    services: Services,
    promises: Promises,
    *,
    thinker: Thinker,
    prompter: Prompter,
    publisher: Publisher,
    conversations: Conversations,
    pending: PendingPosts,
) -> AwarenessLoop:
    return AwarenessLoop(
        pace=services.pace,
        perceiver=Perceiver(
            atproto=services.atproto,
            pending=pending,
            relationships=services.relationships,
            publisher=publisher,
            identity=services.identity,
            journal=services.journal,
            clock=services.clock,
            owner_did=services.me.owner_did,
        ),
        responder=Responder(
            me=services.me,
            atproto=services.atproto,
            outbox=services.outbox,
            publisher=publisher,
            conversations=conversations,
            relationships=services.relationships,
            identity=services.identity,
            prompter=prompter,
            skills=services.skills,
            thinker=thinker,
            clock=services.clock,
            rng=services.rng,
            pace=services.pace,
            etiquette=services.etiquette,
            sessions=services.knowledge.sessions,
            pictures=_pictures(services),
        ),
        pending=pending,
        relationships=services.relationships,
        publisher=publisher,
        journal=services.journal,
        clock=services.clock,
        rng=services.rng,
        owner_did=services.me.owner_did,
        standing=services.control.standing,
        on_replied=partial(note_promises, services, promises),
        attention=services.attention,
    )


def _pictures(services: Services) -> Pictures:
    return Pictures(
        web=services.web,
        repos=services.repos,
        media=services.knowledge.stores.media,
        skills=services.skills,
        rng=services.rng,
        journal=services.journal,
        sees=services.gateway.sees,
        home_url=services.settings.atproto_service_url if services.settings.on_loopback() else "",
    )

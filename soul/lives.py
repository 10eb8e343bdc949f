"""What lives on the rails: the mind with its tools, and the life on Bluesky, each built once."""

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
from modules.services.agent.turn.runner import Thinker
from modules.services.agent.wakeup.keeper import BootContext
from soul.archiving import build_archivist
from soul.logs import log_call
from soul.promises import Promises, build_promises, note_promises, open_queue
from soul.rails import Rails
from soul.space import build_space
from soul.tellings import build_boot_context, build_prompter, build_prosoche, tools_to_know


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

    async def tidy(self, rails: Rails) -> None:
        """End the talks that are over, and forget what has outlived its use."""
        for over in self.conversations.sweep(rails.atproto.did, rails.identity.extract().social_mechanics):
            summary = f"The talk with @{over.root_author_handle or 'somebody'} is over"
            reason = over.conclusion_reason or ""
            await rails.journal.record(
                Entry("decision", "heartbeat", summary, line="social", reason=reason, trigger_uri=over.root_uri)
            )
        self.conversations.cleanup_old_conversations()
        rails.relationships.prune_stale()
        await rails.journal.prune()
        await rails.budget.tidy()
        await self.pending.forget_before(rails.clock.now() - timedelta(milliseconds=CONVERSATION_STALE_RETENTION_MS))
        for what, step in (
            ("daily copy of memory", rails.knowledge.recovery.write_daily),
            ("files of memory", rails.knowledge.refresh),
            ("list of what asks for attention", self.prosoche.refresh),
            ("page to wake up with", self.boot_context.write),
        ):
            try:
                await step()
            except (PolicyBlocked, Transient) as error:
                entry = Entry("error", "heartbeat", f"The {what} was not renewed", line="warn", reason=str(error))
                await rails.journal.record(entry)


def move_in(rails: Rails, *, social_only: bool) -> Lives:
    """Build them."""
    conversations = Conversations(rails.home.memory / "bluesky_conversations.json", rails.clock)
    pending = PendingPosts(rails.database, rails.clock)
    publisher = Publisher(
        atproto=rails.atproto,
        outbox=rails.outbox,
        conversations=conversations,
        relationships=rails.relationships,
        journal=rails.journal,
        etiquette=rails.etiquette,
    )
    registry = _registry(rails, publisher, social_only=social_only)
    queue = open_queue(rails, social_only=social_only)
    prosoche, boot_context = (
        build_prosoche(rails, pending.count, queue.live),
        build_boot_context(rails, pending.count),
    )
    thinker = _thinker(rails, registry, boot_context)
    prompter = build_prompter(rails, registry, prosoche, boot_context)
    promises = build_promises(rails, queue, prompter, social_only=social_only)
    space = build_space(rails, promises, prompter=prompter, thinker=thinker, social_only=social_only)
    return Lives(
        registry=registry,
        thinker=thinker,
        prompter=prompter,
        archivist=build_archivist(rails, prompter),
        prosoche=prosoche,
        boot_context=boot_context,
        conversations=conversations,
        pending=pending,
        publisher=publisher,
        expression=_expression(rails, thinker, prompter),
        awareness=_awareness(
            rails,
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


def _registry(rails: Rails, publisher: Publisher, *, social_only: bool) -> Registry:
    on_bluesky = BlueskyTools(atproto=rails.atproto, publisher=publisher, skills=rails.skills, rng=rails.rng)
    own_notes = SelfTools(home=rails.home, keeper=rails.self_keeper)
    return Registry(
        (*bluesky_tools(on_bluesky), *self_tools(own_notes), *tools_to_know(rails), *space_tools()),
        social_only=social_only,
    )


def _thinker(rails: Rails, registry: Registry, boot_context: BootContext) -> Thinker:
    def told(prompt: TurnPrompt) -> None:
        if prompt.has(BOOT):
            boot_context.was_told(main=is_main(prompt.session_key))

    return Thinker(
        gateway=rails.gateway,
        executor=Executor(registry, on_call=log_call, redactor=rails.redactor, console=rails.console),
        clock=rails.clock,
        journal=rails.journal,
        sessions=rails.knowledge.sessions,
        estimate=rails.knowledge.keeping.estimator.estimate,
        context_tokens=rails.settings.context_tokens,
        nudge=lambda: rails.skills.render("core", "Nudge"),
        on_told=told,
    )


def _expression(rails: Rails, thinker: Thinker, prompter: Prompter) -> Expression:
    return Expression(
        me=rails.me,
        path=rails.home.memory / "expression_schedule.json",
        atproto=rails.atproto,
        outbox=rails.outbox,
        identity=rails.identity,
        prompter=prompter,
        skills=rails.skills,
        thinker=thinker,
        journal=rails.journal,
        clock=rails.clock,
        rng=rails.rng,
        pace=rails.pace,
        keep_hours=rails.settings.soul_speed == 1,
        standing=rails.control.standing,
    )


def _awareness(
    rails: Rails,
    promises: Promises,
    *,
    thinker: Thinker,
    prompter: Prompter,
    publisher: Publisher,
    conversations: Conversations,
    pending: PendingPosts,
) -> AwarenessLoop:
    return AwarenessLoop(
        pace=rails.pace,
        perceiver=Perceiver(
            atproto=rails.atproto,
            pending=pending,
            relationships=rails.relationships,
            publisher=publisher,
            identity=rails.identity,
            journal=rails.journal,
            clock=rails.clock,
            owner_did=rails.me.owner_did,
        ),
        responder=Responder(
            me=rails.me,
            atproto=rails.atproto,
            outbox=rails.outbox,
            publisher=publisher,
            conversations=conversations,
            relationships=rails.relationships,
            identity=rails.identity,
            prompter=prompter,
            skills=rails.skills,
            thinker=thinker,
            clock=rails.clock,
            rng=rails.rng,
            pace=rails.pace,
            etiquette=rails.etiquette,
            sessions=rails.knowledge.sessions,
            pictures=_pictures(rails),
        ),
        pending=pending,
        relationships=rails.relationships,
        publisher=publisher,
        journal=rails.journal,
        clock=rails.clock,
        rng=rails.rng,
        owner_did=rails.me.owner_did,
        standing=rails.control.standing,
        on_replied=partial(note_promises, rails, promises),
        attention=rails.attention,
    )


def _pictures(rails: Rails) -> Pictures:
    return Pictures(
        web=rails.web,
        repos=rails.repos,
        media=rails.knowledge.keeping.media,
        skills=rails.skills,
        rng=rails.rng,
        journal=rails.journal,
        sees=rails.gateway.sees,
        home_url=rails.settings.atproto_service_url if rails.settings.on_loopback() else "",
    )

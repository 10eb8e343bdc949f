"""Builds the service of commitments."""

from collections.abc import Callable

from adapters.github.types import Repo
from common.provenance import Trust
from modules.runtime.scheduler.scheduler import Attention
from modules.services.agent.one_sentence import SentenceAsker
from modules.services.agent.verdicts import TIMEOUT_S, Verdicts, YesNoJudge
from modules.services.commitments.acts import EarlierComments, PlanMaker
from modules.services.commitments.handle import CommitmentHandler, CommitmentPresence
from modules.services.commitments.naming import QueuedCommitment, title_of
from modules.services.commitments.policy import COMMITMENT_CHECK_INTERVAL_MS
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.writer import Announcer, CommitmentWriter
from modules.services.experiences import NewExperience
from modules.services.plans.compose import PlanComposer
from modules.services.work.loop import WorkLoop
from soul.composition.services import Services
from soul.composition.wiring.turns import build_work_loop

COMMITMENTS = "commitment-fulfillment"
_JOINS_WITHIN_S = 30.0


def open_commitment_queue(services: Services) -> CommitmentQueue:
    """Build the queue of commitments; its `open` must be called to read them."""
    return CommitmentQueue(
        services.home.memory,
        services.work,
        services.clock,
        social_only=services.social_only,
        redactor=services.redactor,
        publish=services.events.publish,
    )


def build_commitment_writer(services: Services, sentences: SentenceAsker) -> CommitmentWriter:
    """Build the writer of texts about commitments."""
    return CommitmentWriter(
        agent_name=services.me.agent_name,
        gateway=services.gateway,
        sentences=sentences,
        skills=services.skills,
        journal=services.journal,
        rng=services.rng,
    )


async def remember_kept(services: Services, kept: QueuedCommitment) -> None:
    """Record as an experience that a commitment was fulfilled."""
    uri = kept.source_thread_uri
    did = uri.removeprefix("at://").partition("/")[0] if uri.startswith("at://") else ""
    trust: Trust = "owner" if services.me.is_owner(did) else "peer" if kept.source == "space" else "stranger"
    await services.experiences.record(
        NewExperience("helped_someone", "commitment", kept.id, title_of(kept), did, uri=uri, trust=trust)
    )


def build_commitment_loop(
    services: Services,
    queue: CommitmentQueue,
    writer: CommitmentWriter,
    *,
    has_joined_room: Callable[[], bool],
) -> WorkLoop:
    """Build the loop that fulfils commitments; those of a room wait up to half a minute for the SOUL to join it."""
    clock, started, room = services.clock, services.clock.monotonic(), services.integrations
    handler = CommitmentHandler(
        queue=queue,
        outbox=services.outbox,
        clock=clock,
        phrase=services.phrases.phrase,
        announcer=Announcer(
            services.outbox,
            clock,
            phrase=services.phrases.phrase,
            writer=writer,
            attention=services.attention,
            publish=services.events.publish,
            where=room.to_room.where,
        ),
        presence=CommitmentPresence(room.room, clock, services.redactor, room.silence.reason, room.is_trusted_room),
        journal=services.journal,
        has_github=services.github.configured,
        plans=PlanMaker(
            github=services.github,
            composer=PlanComposer(services.gateway, services.skills, services.rng, services.knowledge.profile),
            skills=services.skills,
            attention=services.attention,
            journal=services.journal,
            clock=clock,
            phrase=services.phrases.phrase,
            publish=services.events.publish,
        ),
        comments=EarlierComments(
            services.outbox,
            YesNoJudge(Verdicts(services.gateway, services.skills, clock, TIMEOUT_S), services.journal),
            services.attention,
            services.events.publish,
        ),
        default_repo=lambda: default_repo(services),
        social_only=services.social_only,
        publish=services.events.publish,
        knows_room=lambda: has_joined_room() or clock.monotonic() - started >= _JOINS_WITHIN_S,
        pause=services.control.write_block_reason,
        was_delivered=room.to_room.was_delivered,
    )
    # NOTE(self): the loop has its own `Attention`, so that nothing else delays it; a step that needs the model takes
    # the SOUL's.
    return build_work_loop(
        services,
        (handler,),
        (handler,),
        name=COMMITMENTS,
        every_ms=COMMITMENT_CHECK_INTERVAL_MS,
        at_start=True,
        attention=Attention(),
    )


def default_repo(services: Services) -> Repo | None:
    """Return the repository for a commitment without one: our organisation's workspace, else the default; or None."""
    org = services.settings.workspace_org.lower()
    own = [one for one in services.workspaces.all() if org and one.owner.lower() == org and not one.requested]
    return Repo(own[0].owner, own[0].repo) if len(own) == 1 else None if own else services.workspaces.default()

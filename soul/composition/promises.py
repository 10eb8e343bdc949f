"""The promises of a SOUL, and what keeps them: built once, for the talk in a room and for Bluesky alike."""

from __future__ import annotations

from dataclasses import dataclass

from modules.lives.bluesky.types import Pending
from modules.services.agent.prompt.prompter import Prompter
from modules.services.commitments.announce import Announcer
from modules.services.commitments.fulfil import Fulfiller
from modules.services.commitments.loop import CommitmentLoop
from modules.services.commitments.presence import Presence
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.replies import ReplyCommitments
from modules.services.commitments.runner import CommitmentRunner
from modules.services.commitments.writer import CommitmentWriter
from soul.composition.services import Services


@dataclass(frozen=True, slots=True)
class Promises:
    """What was promised, who finds words about it, and when it is kept."""

    queue: CommitmentQueue
    writer: CommitmentWriter
    loop: CommitmentLoop
    on_bluesky: ReplyCommitments


def build_promises(services: Services, queue: CommitmentQueue, prompter: Prompter, *, social_only: bool) -> Promises:
    """Put them together; a new promise wakes the loop at once."""
    writer = CommitmentWriter(
        agent_name=services.me.agent_name,
        bluesky_username=services.me.bluesky_username,
        gateway=services.gateway,
        prompter=prompter,
        skills=services.skills,
        journal=services.journal,
        clock=services.clock,
        rng=services.rng,
    )
    runner = CommitmentRunner(
        queue=queue,
        fulfiller=Fulfiller(services.outbox, github=services.integrations.github.configured, social_only=social_only),
        announcer=Announcer(
            services.outbox, writer=writer, attention=services.attention, where=services.integrations.to_room.where
        ),
        presence=Presence(services.integrations.room, services.clock, services.redactor, services.integrations.silence),
        journal=services.journal,
    )
    loop = CommitmentLoop(runner, services.clock, speed=services.settings.soul_speed)
    queue.on_new = loop.wake
    return Promises(queue, writer, loop, ReplyCommitments(queue, writer, services.journal, social_only=social_only))


def open_queue(services: Services, *, social_only: bool) -> CommitmentQueue:
    """The queue alone: what asks for attention is known before anybody can keep it."""
    return CommitmentQueue(services.home.memory, services.clock, social_only=social_only, redactor=services.redactor)


async def note_promises(services: Services, promises: Promises, met: Pending, intent_id: str) -> None:
    """Take in what an answer on Bluesky promises; one that waits for the owner's yes promises nothing yet."""
    intent = await services.outbox.get(intent_id)
    if intent is None or intent.state == "held":
        return
    said = f"@{met.notification.author.handle}: {met.notification.text}"
    to_owner = met.notification.author.did == services.me.owner_did
    await promises.on_bluesky.note_reply(
        intent.body.preview, to_uri=met.notification.uri, conversation=said, to_owner=to_owner
    )

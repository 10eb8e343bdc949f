"""The promises of a SOUL, and what keeps them: built once, for the talk in a room and for Bluesky alike."""

from __future__ import annotations

from dataclasses import dataclass

from modules.lives.bluesky.types import Pending
from modules.services.agent.prompt.prompter import Prompter
from modules.services.commitments.announce import Announcer
from modules.services.commitments.fulfil import Fulfiller
from modules.services.commitments.keeper import Keeper
from modules.services.commitments.loop import CommitmentLoop
from modules.services.commitments.presence import Presence
from modules.services.commitments.promises import BlueskyPromises
from modules.services.commitments.queue import CommitmentQueue
from modules.services.commitments.voice import Voice
from soul.rails import Rails


@dataclass(frozen=True, slots=True)
class Promises:
    """What was promised, who finds words about it, and when it is kept."""

    queue: CommitmentQueue
    voice: Voice
    loop: CommitmentLoop
    on_bluesky: BlueskyPromises


def build_promises(rails: Rails, queue: CommitmentQueue, prompter: Prompter, *, social_only: bool) -> Promises:
    """Put them together; a new promise wakes the loop at once."""
    voice = Voice(
        agent_name=rails.me.agent_name,
        bluesky_username=rails.me.bluesky_username,
        gateway=rails.gateway,
        prompter=prompter,
        skills=rails.skills,
        journal=rails.journal,
        clock=rails.clock,
        rng=rails.rng,
    )
    keeper = Keeper(
        queue=queue,
        fulfiller=Fulfiller(rails.outbox, github=rails.outside.github.configured, social_only=social_only),
        announcer=Announcer(rails.outbox, voice=voice, attention=rails.attention, where=rails.outside.to_room.where),
        presence=Presence(rails.outside.room, rails.clock, rails.redactor, rails.outside.silence),
        journal=rails.journal,
    )
    loop = CommitmentLoop(keeper, rails.clock, speed=rails.settings.soul_speed)
    queue.on_new = loop.wake
    return Promises(queue, voice, loop, BlueskyPromises(queue, voice, rails.journal, social_only=social_only))


def open_queue(rails: Rails, *, social_only: bool) -> CommitmentQueue:
    """The queue alone: what asks for attention is known before anybody can keep it."""
    return CommitmentQueue(rails.home.memory, rails.clock, social_only=social_only, redactor=rails.redactor)


async def note_promises(rails: Rails, promises: Promises, met: Pending, intent_id: str) -> None:
    """Take in what an answer on Bluesky promises; one that waits for the owner's yes promises nothing yet."""
    intent = await rails.outbox.get(intent_id)
    if intent is None or intent.state == "held":
        return
    said = f"@{met.notification.author.handle}: {met.notification.text}"
    to_owner = met.notification.author.did == rails.me.owner_did
    await promises.on_bluesky.note_reply(
        str(intent.body["text"]), to_uri=met.notification.uri, conversation=said, to_owner=to_owner
    )

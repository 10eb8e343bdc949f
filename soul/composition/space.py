"""The life in the agent space, for this SOUL: built once, and kept in its room by two tasks of the program."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from common.constants import SECOND_MS
from modules.lives.space.classifiers import ModelEchoJudge, ModelIntentClassifier
from modules.lives.space.experience import Experiences
from modules.lives.space.life import SpaceLife, SpaceServices, build_space_life
from modules.lives.space.verdicts import FirstLook, Verdicts
from modules.runtime.scheduler.scheduler import Scheduler
from modules.services.agent.prompt.prompter import Prompter
from modules.services.agent.turn.runner import Thinker
from modules.services.commitments.policy import title_of
from modules.services.commitments.types import QueuedCommitment
from soul.composition.promises import Promises
from soul.composition.services import Services

_NEWS_TIMEOUT_S = 60.0
_COMES_IN_WITHIN_S = 30.0


def build_space(
    services: Services, promises: Promises, *, prompter: Prompter, thinker: Thinker, social_only: bool
) -> SpaceLife:
    """Put it together, and let it introduce itself whenever it comes into a room."""
    verdicts, zone = Verdicts(services.gateway, services.skills, services.clock), services.settings.soul_timezone

    def is_trusted_room() -> bool:
        return bool(services.settings.space_url) or is_on_this_machine(services.integrations.room.url)

    experiences = Experiences(
        services.knowledge.stores.memories, services.journal, services.clock, zone, is_trusted_room
    )
    space = build_space_life(
        SpaceServices(
            home=services.home,
            soul=services.soul,
            client=services.integrations.room,
            queue=promises.queue,
            writer=promises.writer,
            intents=ModelIntentClassifier(verdicts, services.journal),
            judge=ModelEchoJudge(verdicts, services.journal, services.clock),
            first_look=FirstLook(replace(verdicts, timeout_s=services.settings.ai_gateway_idle_timeout_s)),
            prompter=prompter,
            thinker=thinker,
            skills=services.skills,
            journal=services.journal,
            redactor=services.redactor,
            clock=services.clock,
            rng=services.rng,
            estimate=services.knowledge.stores.estimator.estimate,
            mute_reason=services.integrations.silence,
            wake_commitments=promises.loop.wake,
            experience=experiences.keep,
            timezone=zone,
            is_trusted_room=is_trusted_room,
        ),
        social_only=social_only or not services.integrations.github.configured,
    )

    async def kept(commitment: QueuedCommitment) -> None:
        if commitment.source == "space":
            await experiences.keep("helped_someone", title_of(commitment))

    started = services.clock.monotonic()

    def knows_room() -> bool:
        waited = services.clock.monotonic() - started >= _COMES_IN_WITHIN_S
        return waited or space.participation.talk.joined_at is not None

    promises.loop.runner.on_kept = kept
    promises.loop.runner.knows_room = knows_room
    promises.loop.runner.was_heard = services.integrations.to_room.was_heard
    promises.queue.on_abandoned = space.participation.given_up
    services.self_keeper.on_changed = space.identity_publisher.introduce
    services.integrations.doorway.on_joined = space.identity_publisher.introduce
    services.integrations.doorway.interval_s = lambda: (
        space.config.load_space_config().reconnect_interval_ms / SECOND_MS
    )
    return space


def is_on_this_machine(url: str) -> bool:
    """Whether whoever serves that address has this machine already."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def look_when_spoken_to(space: SpaceLife, scheduler: Scheduler) -> None:
    """Run the loop of the room soon after others have spoken, until cancelled."""
    while True:
        if await space.loop.wait_for_news(_NEWS_TIMEOUT_S):
            await scheduler.run_guarded(space.loop.name)

"""When this life runs; nothing else. It looks in its own rhythm, and soon after the room said something."""

from __future__ import annotations

from dataclasses import dataclass, field

from adapters.space.client import SpaceClient
from common.clock import Clock
from common.constants import SECOND_MS
from modules.lives.space.act import Participation
from modules.lives.space.config import SPACE_CHECK_INTERVAL_MS, SpaceConfigFile
from modules.lives.space.journal_reporter import LOOP
from modules.runtime.scheduler.policy import get_timer_jitter
from modules.runtime.scheduler.types import Loop, Outcome, Runs

SPACE_JITTER_PERCENT = 0.40

_NEWS_TIMEOUT_S = 60.0
_SOON_SHARE = 0.2
"""Of our interval: how soon we look when somebody spoke after a pause. Others have other intervals."""


@dataclass(slots=True)
class ParticipationLoop(Loop):
    """Checks the room at an interval, and sooner when there is news.

    `config` holds the interval, which the owner may change at any time; `agent_name` decides how ours varies.
    """

    name = LOOP
    jitter = SPACE_JITTER_PERCENT
    interval_ms = SPACE_CHECK_INTERVAL_MS

    participation: Participation
    client: SpaceClient
    config: SpaceConfigFile
    clock: Clock
    agent_name: str
    _ran_at: float | None = field(default=None, init=False)

    async def run(self) -> Outcome:
        """One check. As a pause begins or ends we come in anew: who may say nothing is chosen for nothing."""
        if not self.participation.waits and self.client.renew():
            return Outcome(ran=False, reason="what we can do has changed: joining anew", next_in_s=self._interval_s())
        outcome = await self.participation.check()
        self._ran_at = self.clock.monotonic()
        return Outcome(
            outcome.ran, outcome.reason, self._interval_s() if outcome.next_in_s is None else outcome.next_in_s
        )

    async def wait_for_news(self, timeout_s: float) -> bool:
        """Wait until the room has news and it is our moment to look; False after `timeout_s` without.

        Never sooner than our own interval after the last look, so that agents do not all speak at once.
        """
        if not await self.client.wait_for_news(timeout_s):
            return False
        interval = self._interval_s()
        since = interval if self._ran_at is None else self.clock.monotonic() - self._ran_at
        await self.clock.sleep(max(interval * _SOON_SHARE, interval - since))
        return True

    async def keep_awake(self, scheduler: Runs) -> None:
        """Run soon after others have spoken, and when a message that waits may be said, until cancelled."""
        while True:
            if await self.wait_for_news(_NEWS_TIMEOUT_S):
                outcome = await scheduler.run_guarded(self.name)
                if outcome.next_in_s is not None:
                    scheduler.bring_forward(self.name, outcome.next_in_s)

    def _interval_s(self) -> float:
        base = self.config.load_space_config().check_interval_ms
        return get_timer_jitter(self.agent_name, self.name, base, self.jitter) / SECOND_MS

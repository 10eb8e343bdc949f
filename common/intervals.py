"""The intervals of the loops, and the waits of a SOUL between acts.

Production runs in real time. The town runs faster, which is refused for services that are not on this machine.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from common.clock import Clock
from common.constants import HOUR_MS, MINUTE_MS, SECOND_MS

# How often each loop runs.
NOTIFICATIONS_INTERVAL_MS = 45 * SECOND_MS
GITHUB_INTERVAL_MS = 2 * MINUTE_MS
PLANS_INTERVAL_MS = 3 * MINUTE_MS
EXPRESSION_CHECK_INTERVAL_MS = 5 * MINUTE_MS
EXPRESSION_MIN_INTERVAL_MS = 3 * HOUR_MS
EXPRESSION_MAX_INTERVAL_MS = 4 * HOUR_MS
PEERS_INTERVAL_MS = 15 * MINUTE_MS
ENGAGEMENT_INTERVAL_MS = 15 * MINUTE_MS
MESSAGES_INTERVAL_MS = 20 * SECOND_MS
OUTBOX_DRAIN_INTERVAL_MS = 15 * SECOND_MS
PEER_JITTER_MIN_MS = 15_000
PEER_JITTER_SPAN_MS = 75_000
PEER_STEP_MS = 20_000
PACING_POST_COOLDOWN_S = 1800
PACING_REPLY_COOLDOWN_S = 60
PACING_LIKE_COOLDOWN_S = 45
PACING_FOLLOW_COOLDOWN_S = 3600
PACING_ACTION_COOLDOWN_S = 10
PACING_BREATH_S = 2
ATPROTO_MIN_SPACING_MS = 5000


@dataclass(frozen=True, slots=True)
class Pace:
    """Intervals in milliseconds (`_ms`) and cool-downs in seconds (`_s`)."""

    notifications_ms: float = NOTIFICATIONS_INTERVAL_MS
    expression_check_ms: float = EXPRESSION_CHECK_INTERVAL_MS
    expression_min_ms: float = EXPRESSION_MIN_INTERVAL_MS
    expression_max_ms: float = EXPRESSION_MAX_INTERVAL_MS
    peers_ms: float = PEERS_INTERVAL_MS
    engagement_ms: float = ENGAGEMENT_INTERVAL_MS
    outbox_drain_ms: float = OUTBOX_DRAIN_INTERVAL_MS
    peer_jitter_min_ms: float = PEER_JITTER_MIN_MS
    peer_jitter_span_ms: float = PEER_JITTER_SPAN_MS
    peer_step_ms: float = PEER_STEP_MS
    atproto_spacing_ms: float = ATPROTO_MIN_SPACING_MS
    post_cooldown_s: float = PACING_POST_COOLDOWN_S
    reply_cooldown_s: float = PACING_REPLY_COOLDOWN_S
    like_cooldown_s: float = PACING_LIKE_COOLDOWN_S
    follow_cooldown_s: float = PACING_FOLLOW_COOLDOWN_S
    action_cooldown_s: float = PACING_ACTION_COOLDOWN_S
    breath_s: float = PACING_BREATH_S

    def at(self, clock: Clock) -> Pace:
        """Return the true time of each in the life of `clock`."""
        return Pace(**{field.name: clock.real(float(getattr(self, field.name))) for field in fields(self)})

"""Lists the chores of each heartbeat, which run before it reports."""

from __future__ import annotations

from modules.runtime.status import Chore
from modules.services.agent.attention_list import AttentionList
from modules.services.presence.subscriptions import ActivitySubscriptions
from soul.composition.services import Services
from soul.composition.wiring.bluesky import BlueskyLife
from soul.composition.wiring.presence import build_owner_follow
from soul.composition.wiring.turns import TurnServices


def build_chores(
    services: Services,
    turn_services: TurnServices,
    bluesky: BlueskyLife,
    subscriptions: ActivitySubscriptions,
    attention_list: AttentionList,
) -> tuple[Chore, ...]:
    """Return the chores in the order in which they run."""
    return (
        Chore("list of conversations", bluesky.tidying.run),
        Chore("list of what the account does not want to read", services.moderation.refresh),
        Chore("follow of the owner", build_owner_follow(services).ensure_once),
        Chore("list of whose posts it is told of", subscriptions.ensure),
        Chore("journal", services.journal.prune),
        Chore("count of the budget", services.budget.tidy),
        Chore("daily copy of the database", services.daily_copy.write),
        Chore("files of memory", services.knowledge.refresh),
        Chore("notes of the talk", turn_services.context_file.renew),
        Chore("list of what asks for attention", attention_list.refresh),
        Chore("page to wake up with", turn_services.wakeup_context.write),
    )

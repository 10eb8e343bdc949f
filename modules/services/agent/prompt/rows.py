"""The parts of a prompt: which go first, how often each changes, and who may be told. A table; nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from modules.runtime.llm.dialect import CacheGroup
from modules.services.agent.prompt.fitting import HEARTBEAT, Audience

CORE = "skills/core"
BOOTSTRAP, SOUL, SELF, IDENTITY = "BOOTSTRAP.md", "SOUL.md", "SELF.md", "IDENTITY.md"
USER, AGENTS, GOALS = "USER.md", "AGENTS.md", "GOALS.md"
MEMORY, PROSOCHE, CONTEXT = "MEMORY.md", "PROSOCHE.md", "CONTEXT.md"
PROFILE, SKILLS, EXTRA = "profile", "skills", "extra"
DAYS, DAYS_BEFORE = "memory/", "memory/ before the talk"
MEMORY_SINCE = "MEMORY.md since the talk began"
DEGRADED, TASK, BOOT, RECALLED, RUNTIME = "degraded services", "skill", "boot context", "recalled memories", "runtime"
PEERS, SAID_BEFORE, MOMENT = "peer histories", "said before", "moment"


@dataclass(frozen=True, slots=True)
class PromptRow:
    """One kind of part.

    Attributes:
        priority: lower stays longer, and stands earlier among those of its group.
        group: how often it changes.
        owner_only: whether only the owner's own conversations may hold it.
        whole: never cut and never dropped.
        tracked: whether a change of it is noted.
        views: whether its text differs for the owner and for everybody else.

    """

    priority: float
    group: CacheGroup
    owner_only: bool = False
    whole: bool = False
    tracked: bool = False
    views: bool = False


# NOTE(self): a list of skills serves where any of them may be asked for, in the owner's conversations; to name in
# another turn what it lacks misleads a small model and tells strangers.
ROWS: Mapping[str, PromptRow] = {
    CORE: PromptRow(0, "static", whole=True, tracked=True),
    BOOTSTRAP: PromptRow(0.5, "static", owner_only=True, tracked=True),
    SOUL: PromptRow(1, "static", whole=True, tracked=True),
    SELF: PromptRow(1.5, "semi-static", whole=True, tracked=True),
    USER: PromptRow(2, "static", owner_only=True, tracked=True),
    PROFILE: PromptRow(2.5, "semi-static"),
    AGENTS: PromptRow(3, "static", tracked=True),
    IDENTITY: PromptRow(4, "static", tracked=True),
    GOALS: PromptRow(4.5, "semi-static", tracked=True),
    MEMORY: PromptRow(6, "semi-static", owner_only=True, tracked=True),
    MEMORY_SINCE: PromptRow(6.1, "dynamic", owner_only=True),
    DEGRADED: PromptRow(0.1, "dynamic"),
    BOOT: PromptRow(6.2, "dynamic"),
    DAYS: PromptRow(6.5, "dynamic", owner_only=True, tracked=True, views=True),
    PROSOCHE: PromptRow(7, "dynamic", tracked=True, views=True),
    HEARTBEAT: PromptRow(7.5, "dynamic", tracked=True),
    CONTEXT: PromptRow(8, "dynamic", owner_only=True, tracked=True),
    SKILLS: PromptRow(9, "semi-static", owner_only=True),
    TASK: PromptRow(9.5, "semi-static", whole=True),
    # NOTE(self): what was noted before a talk with the owner began stays as it is while they talk; so does MEMORY.md.
    DAYS_BEFORE: PromptRow(9.7, "semi-static", owner_only=True, tracked=True, views=True),
    EXTRA: PromptRow(10, "dynamic"),
    PEERS: PromptRow(10.5, "dynamic"),
    RECALLED: PromptRow(11, "dynamic"),
    SAID_BEFORE: PromptRow(11.5, "dynamic"),
    MOMENT: PromptRow(98, "dynamic", owner_only=True, whole=True),
    RUNTIME: PromptRow(99, "dynamic", whole=True),
}
ONBOARDING = frozenset({CORE, BOOTSTRAP, SOUL, IDENTITY, USER, TASK, RUNTIME})
"""All that is told while the owner and the SOUL talk for the first time."""

BARE = (CORE, SOUL, IDENTITY, TASK, RUNTIME)
"""All that is told for work in which nothing else that the SOUL knows may have a say."""


def rows_for(audience: Audience, *, onboarding: bool) -> tuple[str, ...]:
    """The names of the rows that such a prompt may have."""
    if onboarding and audience == "owner":
        return tuple(name for name in ROWS if name in ONBOARDING)
    return tuple(
        name for name, row in ROWS.items() if name != BOOTSTRAP and (audience == "owner" or not row.owner_only)
    )

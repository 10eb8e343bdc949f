"""Profiles of a SOUL and an owner who know each other already, as the first talk sets them."""

from collections.abc import Mapping

from common.clock import Clock
from modules.runtime.database.database import Database
from modules.services.memory.profiles import initialise

RULED_OUT = "Nothing about boats, ever."


async def told_profile() -> str:
    """Return a public profile in which the owner rules something out."""
    return f"Your profile: limits: {RULED_OUT}"


async def set_profiles(
    database: Database, clock: Clock, agent: Mapping[str, str], user: Mapping[str, str], by: str = "commissioning"
) -> None:
    """Set the profiles of the agent and the user."""
    now = clock.now()
    await database.run(lambda connection: initialise(connection, agent, user, by, now))

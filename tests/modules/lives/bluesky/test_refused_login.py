"""A session that cannot be renewed is told once, with what to do."""

from __future__ import annotations

from modules.lives.bluesky.perceive import SessionLoop
from tests.running_town import RunningTown, awake


class Renewing(SessionLoop):
    """Renews the session in each run."""

    renewed_before_ms = 10**9


async def test_a_login_that_is_refused_while_it_lives_is_told_once(
    running_town: RunningTown,
) -> None:
    sessions, did = running_town.network.sessions, running_town.account("rowan")
    first = sessions.create_app_password(did, "first")
    home = running_town.make_home("rowan", AGENT_BLUESKY_PASSWORD=first["password"])
    async with awake(home) as soul:
        services = soul.app.services
        loop = Renewing(services.atproto, services.journal)
        assert (await loop.run()).ran
        sessions.revoke_app_password(did, "first")
        assert not (await loop.run()).ran
        assert not (await loop.run()).ran
        told = [one.entry for one in await services.journal.recent(50) if one.entry.loop == loop.name]
    assert [(entry.kind, "AGENT_BLUESKY_PASSWORD" in entry.reason) for entry in told] == [
        ("error", True),
        ("life", False),
    ]

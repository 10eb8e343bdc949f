"""Settings for tests of code that reads a home and uses no network."""

from typing import Any

from common.settings import Settings


def plain_settings(**said: object) -> Settings:
    """Return settings of a SOUL `rowan` with 1,000 tokens a day in UTC, changed by `said`."""
    known: dict[str, Any] = {
        "agent_name": "rowan",
        "agent_bluesky_username": "rowan.test",
        "agent_github_username": "",
        "owner_bluesky_social_handle_did": "",
        "owner_bluesky_social_handle": "owner.test",
        "soul_timezone": "UTC",
        "budget_tokens_per_day": 1_000,
    }
    return Settings.model_construct(**known | said)

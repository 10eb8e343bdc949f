"""The account that says what it is."""

from tests.modules.services.presence.disclosing_account import account

__all__ = ["account"]

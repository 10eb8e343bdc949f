"""The fixture `account`: an account that discloses what it is."""

from tests.modules.services.presence.disclosing_account import account

__all__ = ["account"]

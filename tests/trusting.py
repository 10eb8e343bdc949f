"""Who counts in a workspace, for tests that build a part of the program over the town's GitHub."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from datetime import datetime
from pathlib import Path
from zlib import crc32

from adapters.github.client import GitHub
from adapters.github.types import Account
from common.clock import Clock
from modules.runtime.journal.types import Entry
from modules.services.outbox.repository_identity import RepositoryIdentity
from modules.services.pinned_names.store import FILE, PinnedNames
from modules.services.workspaces.acting import GoneAccounts
from modules.services.workspaces.trust import WorkspaceTrust


def account(login: str) -> Account:
    """An account with an id of its own, the same one for a login in any case; nobody for ""."""
    return Account(crc32(login.lower().encode()), login)


async def told_nobody(_: Entry) -> None:
    """Record nothing."""


def new_names(clock: Clock) -> PinnedNames:
    """No name was seen yet."""
    folder = Path(tempfile.mkdtemp())
    names = PinnedNames(folder / FILE, clock, told_nobody)
    weakref.finalize(names, shutil.rmtree, folder)
    return names


def identity_of(github: GitHub, clock: Clock) -> RepositoryIdentity:
    """Take each repository for the one that answers first."""
    return RepositoryIdentity(github, new_names(clock))


def trust_without_owner(github: GitHub, clock: Clock) -> WorkspaceTrust:
    """Only the account itself, and who may push."""
    return WorkspaceTrust(github, "", tuple, clock, new_names(clock))


async def posted_nothing(_login: str, _moment: datetime) -> bool:
    """No SOUL posts."""
    return False


def gone_of(github: GitHub, clock: Clock) -> GoneAccounts:
    """Return who is gone, by what GitHub shows."""
    return GoneAccounts(github, posted_nothing, clock)

"""Trust in a workspace, for tests that build a part of the program on the town's GitHub."""

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
from modules.services.pinned_names import FILE, PinnedNames, RepositoryIdentity
from modules.services.workspaces.acting import GoneAccounts
from modules.services.workspaces.trust import WorkspaceTrust


def account(login: str) -> Account:
    """Return an account whose id depends only on the login, ignoring case; nobody for ""."""
    return Account(crc32(login.lower().encode()), login)


async def told_nobody(_: Entry) -> None:
    """Record nothing."""


def new_names(clock: Clock) -> PinnedNames:
    """Return an empty store of pinned names."""
    folder = Path(tempfile.mkdtemp())
    names = PinnedNames(folder / FILE, clock, told_nobody)
    weakref.finalize(names, shutil.rmtree, folder)
    return names


def identity_of(github: GitHub, clock: Clock) -> RepositoryIdentity:
    """Return identities that accept for each name the repository that answers first."""
    return RepositoryIdentity(github, new_names(clock))


def trust_without_owner(github: GitHub, clock: Clock) -> WorkspaceTrust:
    """Return a trust that covers only the account itself and those who may push."""
    return WorkspaceTrust(github, "", tuple, clock, new_names(clock))


async def posted_nothing(_login: str, _moment: datetime) -> bool:
    """Return that no SOUL posted."""
    return False


def gone_of(github: GitHub, clock: Clock) -> GoneAccounts:
    """Return a check for deleted accounts that relies only on GitHub."""
    return GoneAccounts(github, posted_nothing, clock)

"""Decides which copy of a home may live, by the lease record in the account's own repository. Pure."""

import hashlib
import platform
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from common.clock import iso, parse_iso_or_none
from common.constants import TEXT_MAX_BYTES
from common.files import read_bounded

HOME_LEASE = "town.soul.home.lease"
"""The collection; the record's key is `self`."""
HOME_LEASE_S = 900.0
RENEW_AFTER_S = 300.0
CONFIRMED_S = 60.0
"""The seconds for which a look is valid: nothing leaves later than that after it."""
TAKE_OVER_S = 90.0
"""The seconds that a copy waits when it takes over: by then the other has looked, or sends nothing without a look."""

_MACHINE_ID, _BOOT_ID = Path("/etc/machine-id"), Path("/proc/sys/kernel/random/boot_id")

LeaseStanding = Literal["free", "ours", "doubtful", "held"]


@dataclass(frozen=True, slots=True)
class HomeIdentity:
    """The place where a home lives, as hashes that reveal nothing else: the machine, its current boot, the folder."""

    machine: str
    boot: str
    home: str


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The holder of the account: the `epoch` grows by one with each life; `until` is None if it was given back."""

    epoch: int
    holder: HomeIdentity
    until: datetime | None
    token: str = ""

    def record(self) -> dict[str, object]:
        """Return the value for the repository."""
        holder = {"machine": self.holder.machine, "boot": self.holder.boot, "home": self.holder.home}
        until = {"until": iso(self.until)} if self.until else {}
        return {"epoch": self.epoch, **holder, **until, "token": self.token}


def identity_of(folder: Path, did: str) -> HomeIdentity:
    """Return our identity: the folder is known by machine and path, so a copy of it is another."""
    # NOTE(self): a container often has no machine id; its host name is used instead.
    machine, boot = _content(_MACHINE_ID) or platform.node(), _content(_BOOT_ID)
    return HomeIdentity(
        machine=_hash(did, machine),
        boot=_hash(did, machine, boot),
        home=_hash(did, machine, str(folder.resolve())),
    )


def read_lease(value: Mapping[str, Any]) -> LeaseRecord:
    """Return the lease in a record; unreadable fields hold nobody back."""
    epoch = value.get("epoch")
    holder = HomeIdentity(*(str(value.get(name, "")) for name in ("machine", "boot", "home")))
    whole = epoch if isinstance(epoch, int) and not isinstance(epoch, bool) and epoch > 0 else 0
    return LeaseRecord(whole, holder, parse_iso_or_none(value.get("until")), str(value.get("token", "")))


def standing_of(found: LeaseRecord | None, me: HomeIdentity, now: datetime) -> LeaseStanding:
    """Return what a lease means for us; also `ours` after a kill, as we hold the folder's lock.

    It is doubtful after a reboot, as the same folder may belong to a cloned machine that still runs elsewhere, and if
    it ends later than any lease that is written now.
    """
    if found is None or found.until is None:
        return "free"
    if found.holder.home == me.home:
        return "ours" if found.holder.boot == me.boot else "doubtful"
    if found.until > now + timedelta(seconds=2 * HOME_LEASE_S):
        return "doubtful"
    return "held" if found.until > now else "free"


def is_lost(found: LeaseRecord, ours: LeaseRecord, now: datetime) -> bool:
    """Return whether a record that we did not write last says that another copy took over.

    It does not if it is an earlier one of ours that a restored service brought back, or was not written by a copy.
    """
    if found.epoch > ours.epoch:
        return True
    return found.holder.home != ours.holder.home and found.until is not None and found.until > now


def was_overtaken(found: LeaseRecord, known_epoch: int, me: HomeIdentity) -> bool:
    """Return whether another home lived after our last life, whose epoch we know; 0 is no epoch."""
    return 0 < known_epoch < found.epoch and found.holder.home != me.home


def next_lease(found: LeaseRecord | None, me: HomeIdentity, now: datetime) -> LeaseRecord:
    """Return the lease with which we replace `found`."""
    return renewed(LeaseRecord((found.epoch if found else 0) + 1, me, None), now)


def renewed(lease: LeaseRecord, now: datetime) -> LeaseRecord:
    """Return the lease renewed from now on, with a token by which we recognise our own write."""
    return LeaseRecord(lease.epoch, lease.holder, now + timedelta(seconds=HOME_LEASE_S), uuid.uuid4().hex)


def where(found: LeaseRecord, me: HomeIdentity) -> str:
    """Return where the holder of a lease is, in words."""
    return "on this machine" if found.holder.machine == me.machine else "on another machine"


def _content(path: Path) -> str:
    try:
        return read_bounded(path, TEXT_MAX_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

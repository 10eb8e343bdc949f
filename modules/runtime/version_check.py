"""Checks whether the project has published a newer version, and reports each one once in a life.

It is off unless the owner names the address. Nothing is kept; a failure is reported once, until a check succeeds.
"""

import json
import re
import tomllib
from dataclasses import dataclass, field

from adapters.web.client import WebClient
from common.clock import Clock
from common.constants import MINUTE_MS
from common.result import ApiResult, Err, Ok, answering
from common.version import __version__
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.scheduler.policy import Loop, Outcome

VERSION_CHECK_INTERVAL_MS = 5 * MINUTE_MS
_DEADLINE_S = 15.0
_MAX_BYTES = 256 * 1024
_RELEASE = re.compile(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:\+[\w.-]{1,60})?")


@dataclass(slots=True)
class VersionLoop(Loop):
    """Reads `url`: a JSON document with `version`, or a TOML document with `project.version`."""

    name = "version-check"
    interval_ms = VERSION_CHECK_INTERVAL_MS

    url: str
    web: WebClient
    journal: Journal
    clock: Clock
    own: str = __version__
    _told: str = field(default="", init=False)
    _failing: bool = field(default=False, init=False)

    async def run(self) -> Outcome:
        found = await self._published()
        failed_before, self._failing = self._failing, not found.success
        if isinstance(found, Err):
            if not failed_before:
                summary = "The published version could not be read"
                await self.journal.record(Entry("error", self.name, summary, line="warn", reason=found.error))
            return Outcome(ran=False, reason=found.error)
        if not is_newer(found.data, self.own):
            return Outcome(ran=True, reason=f"{found.data} is published, this is {self.own}")
        summary = f"Version {found.data} is published, this is {self.own}"
        if found.data != self._told:
            remedy = "the life goes on; to change to it, stop, install it, and `soul upgrade` (docs/running.md)"
            await self.journal.record(Entry("life", self.name, summary, line="warn", reason=remedy))
            self._told = found.data
        return Outcome(ran=True, reason=summary)

    @answering
    async def _published(self) -> ApiResult[str]:
        # NOTE(self): a different address each time, so that no cache on the way answers with an old version.
        asked = f"{self.url}{'&' if '?' in self.url else '?'}at={self.clock.now().timestamp():.0f}"
        fetched = await self.web.fetch(asked, kinds=("*/*",), max_bytes=_MAX_BYTES, deadline_s=_DEADLINE_S, named=True)
        version = version_in(fetched.or_raise().body.decode(errors="replace"))
        return Ok(version) if version else Err("the answer names no version", "invalid")


def version_loops(url: str, web: WebClient, journal: Journal, clock: Clock) -> list[VersionLoop]:
    """Return the loop that reads `url`; none if the owner named no address."""
    return [VersionLoop(url, web, journal, clock)] if url else []


def version_in(text: str) -> str:
    """Return the version that a JSON or TOML document names; "" if it names none."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        try:
            told = tomllib.loads(text).get("project")
        except (ValueError, RecursionError):
            return ""
    version = told.get("version") if isinstance(told, dict) else None
    return version.strip() if isinstance(version, str) and _RELEASE.fullmatch(version.strip()) else ""


def is_newer(published: str, own: str) -> bool:
    """Return whether a release is later than our own version; a pre-release (`1.0.0-rc1`) never is.

    A development version (`1.0.0.dev0`) comes before the release that it names.
    """
    return _RELEASE.fullmatch(published) is not None and _order(published) > _order(own)


def _order(version: str) -> tuple[int, ...]:
    """Return the numbers of a version and whether it is a release, for comparison."""
    named = _RELEASE.match(version)
    numbers = [int(part or 0) for part in named.groups()] if named else []
    return (*numbers, _RELEASE.fullmatch(version) is not None)

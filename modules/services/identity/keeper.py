"""Makes every change of SELF.md: keeps the earlier text in the history and records the reason.

After a crash SELF.md is complete, in its old or new form; each version has its reason (`history`); and the change that
waits for the owner is in `.memory/self-held.json`. One change waits at a time: the newest, or the one that the owner
has seen until they ask for another. They approve only what they have seen.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from common.clock import Clock, iso
from common.errors import NotWaiting
from common.redact import Redactor
from common.text.markdown import Outline, outline, split_sections
from common.text.untrusted import one_line
from modules.runtime.events import Event, Publish, discard
from modules.runtime.home import Home
from modules.runtime.journal.rows import Journal
from modules.services.identity import entries, policy
from modules.services.identity.entries import SELF, Author, HeldEdit, ProposedSelf, SelfEdit, Version
from modules.services.identity.history import STALE, SelfHistory, sha256
from modules.services.identity.policy import operational_parts

Names = Callable[[str], bool]

_REASON_CHARS = 300
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_INDENT = re.compile(r"\s*")
_LARGER = re.compile(r"\s*[|<]")
_OF_MORE = "it would lose more than lines that are about one person alone"
_CHANGED_SINCE = "it was changed since it was read"
_OPERATIONAL = "it would change how the SOUL is run"


@dataclass(frozen=True, slots=True)
class Without:
    """A text without the parts that name a person, and why the owner must see it first ("" if they need not)."""

    text: str
    hold: str = ""


@dataclass(frozen=True, slots=True)
class _LineBlock:
    """Lines that must be removed together, `end` excluded, and whether nothing else depends on them."""

    begin: int
    end: int
    goes_alone: bool = False


def without(text: str, names: Names, is_certain: Names) -> Without | None:
    """Return `text` without the parts that name a person; None if no such text is left.

    Args:
        text: the whole document.
        names: returns whether a text may name the person.
        is_certain: returns whether a text names the person and cannot mean anybody or anything else.

    """
    lines = text.splitlines()
    page = outline(lines)
    gone: set[int] = set()
    hold = ""
    for place, line in enumerate(lines):
        if place in gone or not names(line):
            continue
        block = _block_at(lines, place, page)
        gone |= set(range(block.begin, block.end))
        if not (block.goes_alone and is_certain("\n".join(lines[block.begin : block.end]))):
            hold = _OF_MORE
    kept = "".join(line for place, line in enumerate(text.splitlines(keepends=True)) if place not in gone)
    if names_anywhere(kept, names):
        start, sections = split_sections(kept)
        kept, hold = "".join([start, *(one for one in sections if not names_anywhere(one, names))]), _OF_MORE
    if not kept.strip() or names_anywhere(kept, names):
        return None
    if not hold and operational_parts(text) != operational_parts(kept):
        hold = _OPERATIONAL
    return Without(kept, hold)


def lines_lost(old: str, new: str) -> frozenset[str]:
    """Return the lines of `old` that are missing from `new`."""
    return frozenset(filter(str.strip, old.splitlines())) - frozenset(new.splitlines())


def names_anywhere(text: str, names: Names) -> bool:
    """Return whether a text names the person, even across line ends."""
    return names(text) or names(" ".join(text.split()))


def _block_at(lines: Sequence[str], place: int, page: Outline) -> _LineBlock:
    heading = next((one for one in page.headings if one.line == place), None)
    if heading is not None:
        after = (one.line for one in page.headings if one.line > place and one.level <= heading.level)
        return _LineBlock(place, next(after, len(lines)))
    if page.in_code[place]:
        return _LineBlock(*_run(place, lambda other: page.in_code[other], len(lines)))
    headings = {one.line for one in page.headings}

    def is_text(other: int) -> bool:
        return bool(lines[other].strip()) and other not in headings and not page.in_code[other]

    begin, end = _run(place, is_text, len(lines))
    item = next((other for other in range(place, begin - 1, -1) if _ITEM.match(lines[other])), None)
    return _paragraph(lines, place, begin, end) if item is None else _item(lines, item, end)


def _run(place: int, belongs: Callable[[int], bool], count: int) -> tuple[int, int]:
    """Return the beginning and the end of the run of lines around `place` that belong together."""
    begin, end = place, place + 1
    while begin > 0 and belongs(begin - 1):
        begin -= 1
    while end < count and belongs(end):
        end += 1
    return begin, end


def _item(lines: Sequence[str], item: int, run_end: int) -> _LineBlock:
    indent = _indent(lines[item])
    beside = (at for at in range(item + 1, run_end) if _ITEM.match(lines[at]) and _indent(lines[at]) <= indent)
    end = next(beside, run_end)
    has_items = any(_ITEM.match(lines[at]) for at in range(item + 1, end))
    goes_on = end == run_end and end + 1 < len(lines) and _indent(lines[end + 1]) > indent
    return _LineBlock(item, end, goes_alone=not has_items and not goes_on)


def _paragraph(lines: Sequence[str], place: int, begin: int, run_end: int) -> _LineBlock:
    end = next((at for at in range(place, run_end) if _ITEM.match(lines[at])), run_end)
    leads = end < run_end or lines[end - 1].rstrip().endswith(":")
    return _LineBlock(begin, end, goes_alone=end - begin == 1 and not leads and not _LARGER.match(lines[begin]))


def _indent(line: str) -> int:
    found = _INDENT.match(line)
    return found.end() if found else 0


T = TypeVar("T")

_FORGOTTEN = "forgotten"
"""The citation of a change that only removes a forgotten person."""


@dataclass(frozen=True, slots=True)
class SelfChanged(Event):
    """Published when a change of SELF.md took effect."""


@dataclass(slots=True, kw_only=True)
class SelfKeeper:
    """Changes SELF.md, keeps its versions, holds changes that the owner must see first, and publishes `SelfChanged`.

    With another `document` it changes that one and publishes nothing.
    """

    home: Home
    clock: Clock
    journal: Journal
    redactor: Redactor
    publish: Publish = discard
    document: str = SELF
    _history: SelfHistory = field(init=False)

    def __post_init__(self) -> None:
        self._history = SelfHistory(self.home, self.document)

    def of(self, document: str) -> SelfKeeper:
        """Return the keeper of another document of the same home."""
        return replace(self, document=document)

    async def wake(self) -> None:
        """At start, finish what a crash interrupted and keep edits by hand as a version. Raises `StorageError`.

        The owner is told if a waiting change cannot be read any more.
        """
        held = await self._alone(self._history.held)
        if held is not None and held.erases:
            # NOTE(self): text that waits to be erased is not copied meanwhile.
            return
        found = await self._alone(lambda: self._history.notice(self.clock.now()))
        if found is not None:
            await self.journal.record(entries.found(self.document, found))

    async def change(
        self,
        content: str,
        *,
        reason: str,
        by: Author,
        cites: Sequence[str] = (),
        hold: str = "",
        unasked: bool = False,
        section: str = "",
        drops: Sequence[str] | None = None,
        is_own: bool = False,
        base: str | None = None,
    ) -> SelfEdit:
        """Make `content` the whole document, hold it for the owner, or refuse it; never raises for policy.

        Args:
            content: the whole new text, or that of one section.
            reason: why, in words; required.
            by: who wants it. Changes by the owner are never held.
            cites: its sources.
            hold: why it must wait for the owner's approval in any case.
            unasked: nobody asked for it; then a change of limits or invitations also waits for approval, and a change
                that the owner rejected is refused.
            section: the heading of the one section that changes; "" for the whole.
            drops: headings of sections that may go; any other that `content` lacks is put back. None: any may go.
            is_own: only words of the SOUL and its owner are behind it.
            base: the text that its author had read; None for today's. What was changed since is kept, and a change of
                such lines is refused.

        Raises:
            StorageError: the disk is full or refuses; SELF.md is then as it was.
            Transient: another process has held the history for too long.

        """
        why = self.redactor.text(reason.strip())
        proposed = ProposedSelf(content, why, by, tuple(cites), hold, unasked, is_own=is_own)

        def admit() -> SelfEdit:
            today = self._text()
            before = today if base is None or base.strip().splitlines() == today.strip().splitlines() else base
            whole = self._whole(before, content, section, drops)
            merged = whole if before is today or not content.strip() else policy.reapplied(before, whole, today)
            if merged is None:
                return SelfEdit("refused", _CHANGED_SINCE, text=today)
            change = self._admit(replace(proposed, content=merged))
            return replace(change, text=whole) if change.status == "changed" else change

        return await self._tell(proposed, await self._alone(admit))

    async def compared(self, content: str, section: str = "") -> tuple[str, str]:
        """Return the document as it is and as `change` would make it. Raises as `change`."""
        return await self._alone(lambda: ((now := self._text()), self._whole(now, content, section, None)))

    async def forget(self, names: Names, is_certain: Names, *, reason: str) -> SelfEdit:
        """Remove a person's name from SELF.md and from the waiting change; the journal does not tell who it is.

        What cannot be removed without the owner waits for their approval, alone or with the change that waited. Earlier
        versions are not changed here.

        Args:
            names: returns whether a text may name the person.
            is_certain: returns whether a text names the person and cannot mean anybody or anything else.
            reason: why, in words.

        Raises:
            StorageError: the disk is full or refuses; SELF.md is then as it was.
            Transient: another process has held the history for too long.

        """

        def work() -> tuple[bool, ProposedSelf, SelfEdit]:
            given_up = self._forget_in_held(names, is_certain, reason)
            return given_up, *self._forget_in_self(names, is_certain, reason)

        given_up, proposed, change = await self._alone(work)
        if given_up:
            await self.journal.record(entries.given_up(self.document, reason))
        return await self._tell(proposed, change)

    async def approve(self, came: str | None = None) -> SelfEdit | None:
        """Apply the waiting change; return None if there is none. Raises as `change`, and as `_meant`."""

        def apply() -> tuple[ProposedSelf, SelfEdit] | None:
            held = self._meant(came, is_yes=True)
            if held is None:
                return None
            reason = f"{held.reason} (approved by the owner)"
            proposed = ProposedSelf(held.content, reason, "owner", held.cites, erases=held.erases)
            change = self._admit(proposed)
            if change.status != "refused":
                self._history.drop_held()
            return proposed, change

        applied = await self._alone(apply)
        return await self._tell(*applied) if applied else None

    async def reject(self, came: str | None = None, reason: str = "") -> HeldEdit | None:
        """Drop the waiting change for the owner's reason; return it, or None. Raises as `_meant`."""
        reason = one_line(self.redactor.text(reason), _REASON_CHARS)

        def drop() -> tuple[HeldEdit | None, bool]:
            held = self._meant(came, is_yes=False)
            if is_wanted := held is not None and not self._history.is_stale(held):
                self._history.reject(held, reason, self.clock.now())
            else:
                self._history.drop_held()
            return held, is_wanted

        held, is_wanted = await self._alone(drop)
        if held is not None:
            given_up = entries.given_up(self.document, reason or STALE)
            await self.journal.record(entries.rejected(self.document, held, reason) if is_wanted else given_up)
        return held

    def _meant(self, came: str | None, *, is_yes: bool) -> HeldEdit | None:
        """Return the waiting change; `came` None is any.

        Raises `NotWaiting` if the owner did not see it, or approves one that no longer applies.
        """
        held = self._history.held()
        if held and (held.at != came if came else is_yes and came is not None and not held.is_seen):
            remedy = f"`{entries.see_held(self.document)}` (or /drafts {self.document}) shows it; then decide."
            raise NotWaiting(f"The change of {self.document} that waits now was not shown to you", remedy=remedy)
        if is_yes and held and self._history.is_stale(held):
            raise NotWaiting(f"The change of {self.document}: {STALE}", remedy=f"/reject {self.document} drops it.")
        return held

    async def roll_back(self, version: Version) -> SelfEdit:
        """Restore an earlier version as a change by the owner. Raises as `change`."""
        content = (await self._alone(lambda: self._history.read(version))).decode(errors="surrogateescape")
        return await self.change(content, reason=f"back to {version.name}", by="owner")

    def _text(self) -> str:
        return self._history.current().decode(errors="replace")

    def _whole(self, before: str, content: str, section: str, drops: Sequence[str] | None) -> str:
        if section.strip() and content.strip():
            return policy.with_section(before, section, content)
        if drops is not None and content.strip():
            content = policy.with_sections_kept(before, content, drops)
        return content if content.endswith("\n") else content + "\n"

    def _admit(self, proposed: ProposedSelf) -> SelfEdit:
        old = self._history.current()
        before = old.decode(errors="replace")
        if refused := policy.refusal(proposed.content, proposed.reason, self.redactor):
            return SelfEdit("refused", refused)
        if proposed.content.encode() == old:
            return SelfEdit("unchanged", "it says so already")
        if proposed.by != "owner" and (twice := policy.heading_twice(before, proposed.content)):
            return SelfEdit("refused", f"the heading {twice!r} would stand there twice: one is enough")
        if proposed.by != "owner" and (why := self._hold_reason(before, proposed)):
            return self._hold(proposed, why)
        now = self.clock.now()
        by_hand = self._history.notice(now)
        version = self._history.replace(
            proposed.content.encode(), now, by=proposed.by, reason=proposed.reason, cites=proposed.cites
        )
        held = self._history.held()
        if is_same := held is not None and held.content == proposed.content and not held.erases:
            self._history.drop_held()
        elif held:
            self._history.hold(held)
        if proposed.erases:
            by_hand = None
            self._history.erase(lines_lost(before, proposed.content))
        is_self = self.document == SELF
        appeared, vanished = policy.sections_moved(before, proposed.content) if is_self else ((), ())
        found, still_waits = by_hand.name if by_hand else "", held is not None and not is_same
        return SelfEdit("changed", proposed.reason, version.name, appeared, vanished, found, still_waits=still_waits)

    def _hold_reason(self, before: str, proposed: ProposedSelf) -> str:
        """Return why it needs approval, or "": its own reason, a great loss, or that the owner removed it before."""
        added = frozenset(proposed.content.splitlines()) - frozenset(before.splitlines())
        if not proposed.erases and added & self._history.taken_back():
            why = "it writes again what the owner took out"
        elif proposed.unasked and self.document == SELF:
            why = policy.limits_reason(before, proposed.content) or policy.hold_reason(before, proposed.content)
        else:
            why = policy.hold_reason(before, proposed.content)
        return "; ".join(filter(None, (proposed.hold, why)))

    def _hold(self, proposed: ProposedSelf, why: str) -> SelfEdit:
        if proposed.unasked and sha256(proposed.content.encode()) in {one.sha256 for one in self._history.rejected()}:
            return SelfEdit("refused", "the owner rejected it, word for word")
        waiting = self._history.held()
        is_other = waiting is not None and waiting.content != proposed.content
        if waiting and is_other and (waiting.erases or (waiting.is_seen and proposed.unasked)):
            shows = entries.see_held(self.document)
            why = f"the owner has looked at another change, which waits until they decide or ask for this one: {shows}"
            return SelfEdit("refused", why)
        if waiting is None or is_other:
            now, base = self.clock.now(), sha256(self._history.current())
            if not proposed.erases:
                self._history.notice(now)
            texts = (proposed.content, proposed.reason, proposed.cites, iso(now), why)
            self._history.hold(HeldEdit(*texts, erases=proposed.erases, base=base, is_own=proposed.is_own))
        elif not set(proposed.cites) <= set(waiting.cites):
            self._history.hold(replace(waiting, cites=tuple(dict.fromkeys((*waiting.cites, *proposed.cites)))))
        return SelfEdit("held", why, is_replacing=is_other)

    def _forget_in_held(self, names: Names, is_certain: Names, reason: str) -> bool:
        """Remove the person from the waiting change; return whether it had to be dropped."""
        held = self._history.held()
        if held is None or not any(map(names, (held.content, held.reason, *held.cites))):
            return False
        found = without(held.content, names, is_certain)
        if found is None:
            self._history.drop_held()
            return True
        why = reason if names(held.reason) else held.reason
        cites = tuple(cite for cite in held.cites if not names(cite))
        self._history.hold(replace(held, content=found.text, reason=why, cites=cites))
        return False

    def _forget_in_self(self, names: Names, is_certain: Names, reason: str) -> tuple[ProposedSelf, SelfEdit]:
        old = self._history.current()
        before = old.decode(errors="replace")
        proposed = ProposedSelf(before, reason, "soul", (_FORGOTTEN,), erases=True)
        if not names_anywhere(before, names):
            return proposed, SelfEdit("unchanged", "it says so already")
        found = without(before, names, is_certain)
        if found is None or before.encode() != old:
            return proposed, SelfEdit("refused", "no part can go alone" if found is None else "it is no UTF-8")
        proposed = replace(proposed, content=found.text, hold=found.hold)
        waiting = self._history.held()
        if waiting is None or not (why := found.hold or policy.hold_reason(before, found.text)):
            is_todays = waiting is not None and not self._history.is_stale(waiting)
            change = self._admit(proposed)
            if waiting and is_todays and self._history.held():
                self._history.hold(replace(waiting, base=sha256(self._history.current())))
            return proposed, change
        self._history.hold(replace(waiting, erases=True))
        return proposed, SelfEdit("held", why)

    async def _tell(self, proposed: ProposedSelf, change: SelfEdit) -> SelfEdit:
        if change.status != "unchanged":
            await self.journal.record(entries.told(self.document, proposed, change))
        if change.status == "changed" and self.document == SELF:
            self.publish(SelfChanged())
        return change

    async def _alone(self, work: Callable[[], T]) -> T:
        """Run `work` in a worker thread with the history locked; report a waiting change that cannot be read."""

        def run() -> T:
            with self._history.alone():
                return work()

        done = await asyncio.to_thread(run)
        if amiss := self._history.amiss:
            self._history.amiss = ""
            await self.journal.record(entries.unreadable(self.document, amiss))
        return done

"""What a SOUL reads when it starts: who it is, what it was doing, how things are done. Same state, same bytes.

The file is written while the SOUL runs, read once at start, and given to one turn with the owner and one with others.
Other programs may read its format, too. Who I Am and Active Work have their own limits and are always included; the
other sections are shortened from the bottom up and say how many lines are missing.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from common.constants import TEXT_MAX_BYTES
from common.errors import MachineTrouble, StorageError
from common.files import read_bounded, write_atomic
from common.text.closings import is_low_value_closing
from common.text.strings import estimate_roughly
from common.text.untrusted import one_line
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.services.agent.attention_list import Item
from modules.services.agent.wakeup.gathering import Gather, LastSession, Protocol, WakeupState

Reason = Literal["", "transcript", "tool output", "resolved debugging", "repeats a protocol", "chatter"]

_SPEAKER = re.compile(
    r"^[^\S\n]*(?:[-*>]\s*)?(?:user|assistant|system|tool|owner|human|you|@[\w.-]+)\s*:\s", re.IGNORECASE | re.MULTILINE
)
_TURNS = 2
_PRINTED = re.compile(
    r"""
      ```
    | \A\s*[\[{](?=[^"']*["']).*[\]}]\s*\Z                             # a JSON value
    | Traceback\ \(most\ recent\ call\ last\)
    | ^[^\S\n]*File\ "[^"]+",\ line\ \d+
    | ^(?:---|\+\+\+)\ [ab]/ | ^@@\ -\d+,\d+\ \+\d+,\d+\ @@      # a diff
    | <(tool[_-]?(?:result|call|output))\b
    | ^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\s+(?:DEBUG|INFO|WARN(?:ING)?|ERROR)\b
    | ^HTTP/\d | ^exit\ code:?\ \d+
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_DEBUGGING = re.compile(
    r"\b(?:debug\w*|bugs?|stack ?traces?|traceback|exceptions?|crash(?:es|ed)?|flaky|segfaults?|\w+Error)\b"
)
_SETTLED = re.compile(r"\b(?:fixed|resolved|solved|worked around|no longer (?:fails|happens|occurs))\b", re.IGNORECASE)
_UNSETTLED = re.compile(r"\?\s*$|\b(?:not|never|un)\W?(?:yet )?(?:fixed|resolved|solved)\b|\bstill\b", re.IGNORECASE)
_PREFERENCE = re.compile(
    r"\b(?:prefer\w*|want\w*|likes?|rather|instead|always|never|please|from now on|don't|do not)\b", re.IGNORECASE
)
_GREETING = re.compile(
    r"\W*(?:hi|hello|hey|good (?:morning|evening|night)|bye|goodbye|see you|welcome back|lol|haha)\b\W*", re.IGNORECASE
)
_GREETING_WORDS = 8
_WORD = re.compile(r"\w+")
_ENOUGH_WORDS = 4
_SAME_SHARE = 0.8


def left_out(text: str, protocols: Iterable[Protocol] = ()) -> Reason:
    """Return why `text` does not belong in a wakeup context; "" if it does."""
    if len(_SPEAKER.findall(text)) >= _TURNS:
        return "transcript"
    if _PRINTED.search(text):
        return "tool output"
    if _DEBUGGING.search(text) and _SETTLED.search(text) and not _UNSETTLED.search(text):
        return "resolved debugging"
    if any(_repeats(text, protocol) for protocol in protocols):
        return "repeats a protocol"
    return "chatter" if _is_chatter(text) else ""


def kept(texts: Iterable[str], protocols: Sequence[Protocol] = ()) -> tuple[str, ...]:
    """Return the texts that belong in a wakeup context, in their order, without duplicates."""
    return tuple(dict.fromkeys(text for text in texts if text.strip() and not left_out(text, protocols)))


def _repeats(text: str, protocol: Protocol) -> bool:
    words = _words(text)
    shared = words & _protocol_words(protocol)
    return len(words) >= _ENOUGH_WORDS and len(shared) >= _SAME_SHARE * len(words)


def _is_chatter(text: str) -> bool:
    if _PREFERENCE.search(text):
        return False
    greets = _GREETING.match(text) is not None and len(_words(text)) <= _GREETING_WORDS
    return greets or is_low_value_closing(text)


@lru_cache(maxsize=128)
def _protocol_words(protocol: Protocol) -> frozenset[str]:
    return _words(f"{protocol.subject} {protocol.body}")


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


Estimate = Callable[[str], int]
Fits = Callable[[str], bool]

WHO_TOKENS = 200
WORK_TOKENS = 500
HOW_TOKENS = 300
LAST_TOKENS = 1000

_NAME_CHARS = 48
_ROLE_TOKENS = 60
_TEAM_TOKENS = 60
_KEY_PROTOCOL_TOKENS = 40
_KEY_PROTOCOLS = 5
_ENTRY_CHARS = 2000
_ENTRIES_PER_CAP = 5
_HISTORY_ENTRY_TOKENS = 80
_CUT = " … (shortened)"
_NOTHING = "- nothing"


def render_wakeup_context(
    state: WakeupState, budget: int = 4000, *, estimate: Estimate = estimate_roughly, public: bool = False
) -> str:
    """Return the wakeup context of `state`, in at most `budget` tokens unless Who I Am and Active Work alone need more.

    Args:
        state: what to render.
        budget: the most tokens in all.
        estimate: returns the tokens of a text; a longer text must not have fewer.
        public: only what everybody may read, in Who I Am, Active Work and How We Work.

    """
    protocols = [protocol for protocol in state.protocols if not (public and protocol.private)]
    parts = [
        f"# Memory — {one_line(state.name, _NAME_CHARS)}",
        _who(state, protocols, estimate),
        _fitted("Active Work", _work(state, estimate, public=public), _within(WORK_TOKENS, estimate)),
    ]
    flexible = [("How We Work", _how(protocols, estimate), HOW_TOKENS)]
    if not public:
        flexible += [
            ("Last Session", _last(state, protocols, estimate), LAST_TOKENS),
            ("History", _history(state, protocols, estimate), budget),
        ]
    for heading, groups, cap in flexible:
        within = _within(cap, estimate)
        text = _fitted(heading, groups, _both(within, _after(parts, budget, estimate)))
        if text:
            parts.append(text)
        if text != _fitted(heading, groups, within):
            break
    return _joined(parts)


def _within(cap: int, estimate: Estimate) -> Fits:
    return lambda text: estimate(text) <= cap


def _after(parts: Sequence[str], budget: int, estimate: Estimate) -> Fits:
    return lambda text: estimate(_joined([*parts, text])) <= budget


def _both(one: Fits, other: Fits) -> Fits:
    return lambda text: one(text) and other(text)


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n"


def _fitted(heading: str, groups: Sequence[Sequence[str]], fits: Fits) -> str:
    """Return the section with as many lines as fit and the number of the others; "" if none fits."""
    every = list(_by_turns(groups))
    whole = _section(heading, every, 0)
    if fits(whole):
        return whole
    text = ""
    for count in range(1, len(every)):
        longer = _section(heading, every[:count], len(every) - count)
        if not fits(longer):
            break
        text = longer
    return text


def _by_turns(groups: Sequence[Sequence[str]]) -> Iterator[tuple[int, str]]:
    """Yield each group's first line, then each group's second, so that a long group cannot displace the others."""
    for row in zip_longest(*groups):
        yield from ((group, line) for group, line in enumerate(row) if line is not None)


def _section(heading: str, chosen: Sequence[tuple[int, str]], missing: int) -> str:
    lines = [line for _, line in sorted(chosen, key=lambda pair: pair[0])] or [_NOTHING]
    return "\n".join([f"## {heading}", *lines, *([f"- ({missing} more left out)"] if missing else [])])


def _who(state: WakeupState, protocols: Sequence[Protocol], estimate: Estimate) -> str:
    lines = [f"- Name: {one_line(state.name, _NAME_CHARS)}"]
    if state.role.strip():
        lines.append(_entry("Role: ", state.role, _ROLE_TOKENS, estimate))
    team = [f"{mate.name} ({mate.role})" if mate.role else mate.name for mate in state.team]
    lines += _listing("Team", team, _TEAM_TOKENS, estimate)
    key = [protocol.subject for protocol in protocols[:_KEY_PROTOCOLS]]
    lines += _listing("Key protocols", key, _KEY_PROTOCOL_TOKENS, estimate)
    return _fitted("Who I Am", [lines], _within(WHO_TOKENS, estimate))


def _listing(label: str, items: Sequence[str], tokens: int, estimate: Estimate) -> list[str]:
    """Return one line with as many whole items as fit, in a list; only the first item may be shortened."""
    if not items:
        return []
    plain = [one_line(item, _ENTRY_CHARS) for item in items]
    line = _entry(f"{label}: ", plain[0], tokens, estimate) + (f"; {len(plain) - 1} more" if plain[1:] else "")
    for count in range(2, len(plain) + 1):
        more = f"; {len(plain) - count} more" if count < len(plain) else ""
        longer = f"- {label}: {'; '.join(plain[:count])}{more}"
        if estimate(longer) > tokens:
            break
        line = longer
    return [line]


def _work(state: WakeupState, estimate: Estimate, *, public: bool) -> list[list[str]]:
    work, tokens = state.work, WORK_TOKENS // _ENTRIES_PER_CAP

    def told(label: str, things: Iterable[Item]) -> list[str]:
        seen = (thing for thing in things if not (public and thing.private))
        return [_entry(label, f"[{one.note}] {one.what}" if one.note else one.what, tokens, estimate) for one in seen]

    return [
        told("Task: ", work.tasks),
        told("Branch: ", work.branches),
        told("Blocked: ", work.blockers),
        told("Next: ", work.next_actions),
    ]


def _how(protocols: Sequence[Protocol], estimate: Estimate) -> list[list[str]]:
    tokens = HOW_TOKENS // _ENTRIES_PER_CAP
    return [[_entry("", f"{item.subject}: {item.body}", tokens, estimate) for item in protocols]]


def _last(state: WakeupState, protocols: Sequence[Protocol], estimate: Estimate) -> list[list[str]]:
    last, tokens = state.last, LAST_TOKENS // _ENTRIES_PER_CAP
    labelled = [("Outcome: ", last.outcomes), ("Decided: ", last.decisions), ("Open: ", last.questions)]
    told = [[_entry(label, text, tokens, estimate) for text in kept(texts, protocols)] for label, texts in labelled]
    return [_when(last), *told] if any(told) else []


def _when(last: LastSession) -> list[str]:
    return [f"- When: {one_line(last.at)}"] if last.at else []


def _history(state: WakeupState, protocols: Sequence[Protocol], estimate: Estimate) -> list[list[str]]:
    older = [
        f"{one_line(session.at)}: {session.summary}" for session in state.older if kept([session.summary], protocols)
    ]
    labelled = [("", older), ("Milestone: ", kept(state.milestones)), ("", kept(state.relationships))]
    return [[_entry(label, text, _HISTORY_ENTRY_TOKENS, estimate) for text in texts] for label, texts in labelled]


def _entry(label: str, text: str, tokens: int, estimate: Estimate) -> str:
    """Return one line of at most `tokens` tokens; a shortened one ends at a word and says that it is shortened."""
    plain = one_line(text, _ENTRY_CHARS + 1)
    whole = f"- {label}{plain}"
    if len(plain) <= _ENTRY_CHARS and estimate(whole) <= tokens:
        return whole
    low, high = 0, min(len(plain), _ENTRY_CHARS)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(f"- {label}{plain[:middle]}{_CUT}") <= tokens:
            low = middle
        else:
            high = middle - 1
    at_word = plain[:low].rpartition(" ")[0] or plain[:low]
    return f"- {label}{at_word.rstrip()}{_CUT}"


BUDGET_TOKENS = 4000

_LOOP = "boot"


def wakeup_file(memory: Path) -> Path:
    """Return the path of the wakeup context in the `.memory` folder."""
    return memory / "boot-context.md"


def page(path: Path, *, main: bool) -> Path:
    """Return the path of the page for the owner's session if `main`, else of the one for all others."""
    return path if main else path.with_suffix(f".public{path.suffix}")


@dataclass(slots=True)
class WakeupContext:
    """Writes the wakeup context, and gives the one read at start to the first turns."""

    path: Path
    gather: Gather
    journal: Journal
    export: Path | None = None
    budget: int = BUDGET_TOKENS
    estimate: Estimate = estimate_roughly
    _unread: dict[bool, str] = field(default_factory=dict, init=False)

    @property
    def _public(self) -> Path:
        return page(self.path, main=False)

    async def read(self) -> None:
        """Read once, at start, what the previous process wrote; log a warning about a file that cannot be read."""
        for main, path in ((True, self.path), (False, self._public)):
            try:
                self._unread[main] = (await asyncio.to_thread(read_bounded, path, TEXT_MAX_BYTES)).decode()
            except FileNotFoundError:
                continue
            except (OSError, MachineTrouble, UnicodeDecodeError) as error:
                await self._warn(f"{path.name} cannot be read; waking without it", str(error))

    def unread(self, *, main: bool) -> str:
        """Return what the next turn is told: the full page with the owner (`main`), the public page with others.

        "" if a turn was told it already (`note_told`), or if the previous process wrote nothing.
        """
        return self._unread.get(main, "")

    def note_told(self, *, main: bool) -> None:
        """Record that a model has read the page."""
        self._unread.pop(main, None)

    async def write(self) -> None:
        """Render and write the current state: at a clean stop, after a reflection, after a review of the plans.

        Raises:
            StorageError: the disk is full or fails; the previous file stays.

        """
        state = await self.gather()
        full, public = (
            render_wakeup_context(state, self.budget, estimate=self.estimate, public=public) for public in (False, True)
        )
        await asyncio.to_thread(write_atomic, self.path, full)
        await asyncio.to_thread(write_atomic, self._public, public)
        if self.export is None:
            return
        try:
            await asyncio.to_thread(write_atomic, self.export, full)
        except StorageError as error:
            await self._warn("The copy of the wakeup context was not written", str(error))

    async def _warn(self, summary: str, reason: str) -> None:
        await self.journal.record(Entry("error", _LOOP, summary, line="warn", reason=reason))

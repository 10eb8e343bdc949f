"""The operational texts, and their wording in the SOUL's own voice, renewed when that part of SELF.md changes.

A text is named by its group and key with a dot between: `github.task_claim`. Placeholders stand in double braces.

The rewording is a row of work of low importance that makes one model call at a time, so everything that the owner or
others wrote meanwhile comes first. The model is shown that part and the texts of the skill, and nothing that others
wrote. The usable part of its answers replaces `voice-phrases.json` in one step; without any, nothing changes. The file
says for which voice it was written, so that each voice is asked about once, even after a restart.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from common.clock import Clock, iso
from common.constants import TEXT_MAX_BYTES
from common.facts import QuestionFacts, TurnFacts
from common.files import read_bounded, write_atomic
from common.text.untrusted import clean
from common.wording import LineKind
from modules.runtime.journal.rows import Journal
from modules.runtime.journal.types import Entry
from modules.runtime.llm.dialect import Message
from modules.runtime.llm.gateway import LLMGateway
from modules.services.identity.keeper import SelfChanged
from modules.services.skills.skills import PART, Skills
from modules.services.work.table import WorkTable
from modules.services.work.types import Disposition, Handler, NewWork, WorkItem

VERSION = 1
SHORT_CHARS, LONG_CHARS = 120, 2_000

_PLACEHOLDER = re.compile(r"\{\{ {0,4}(\w{1,32}) {0,4}\}\}")
_ADDRESS = re.compile(r"https?://|www\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PhraseForm:
    """The requirements on a text.

    Attributes:
        placeholders: the required ones; no others are allowed.
        most_chars: its greatest length, placeholders included.
        tokens: words by which peers recognise the text, in any case.
        required: whether a file of phrases must have it.

    """

    placeholders: frozenset[str] = frozenset()
    most_chars: int = LONG_CHARS
    tokens: tuple[str, ...] = ()
    required: bool = True


def _form(placeholders: str = "", most: int = LONG_CHARS, *tokens: str, required: bool = True) -> PhraseForm:
    return PhraseForm(frozenset(placeholders.split()), most, tokens, required)


def _optional(placeholders: str = "", most: int = LONG_CHARS, *tokens: str) -> PhraseForm:
    return _form(placeholders, most, *tokens, required=False)


_TASK = "**task {{number}}"
FORMS: Mapping[str, PhraseForm] = {
    "fulfillment.create_issue": _form("url", SHORT_CHARS),
    "fulfillment.create_plan": _form("url", SHORT_CHARS),
    "fulfillment.default": _form("url", SHORT_CHARS),
    "fulfillment.part": _optional("url", SHORT_CHARS),
    "bluesky.plan_made": _optional("url", SHORT_CHARS),
    "bluesky.plan_complete": _optional("url", SHORT_CHARS),
    "task_claim": _form("number title", SHORT_CHARS),
    "github.task_claim": _form("number title"),
    "github.task_released": _optional(),
    "github.task_opened": _optional("number title details"),
    "github.task_found": _optional("number title details"),
    "github.task_blocked": _form("number title details", LONG_CHARS, _TASK, "blocked"),
    "github.task_failed": _form("number title details", LONG_CHARS, _TASK, "failed"),
    "github.plan_complete": _form(),
    "github.workspace_finished": _form("summary"),
    "github.task_timeout": _optional("number title status assignee minutes"),
    "github.task_left": _optional("number title assignee url"),
    "github.task_abandoned": _optional(
        "number count", LONG_CHARS, "**task {{number}}**", "has failed", "times", "will not be retried"
    ),
    "github.plan_superseded": _optional("url"),
    "github.plan_carried_over": _optional("url tasks"),
    "github.plan_end_told": _optional("author"),
    "github.plan_unread": _optional("lines"),
    "github.plan_synthesized": _optional("url", SHORT_CHARS),
    "github.issue_done": _optional("url"),
    "github.issue_stale_closed": _optional("days"),
    "github.issue_handled_closed": _optional(),
    "github.edit_lost": _optional("editor at"),
    "github.sentinel_reopened_work": _optional(),
    "github.sentinel_question": _optional(),
    "github.committed_in_room": _optional(),
    "github.committed_in_thread": _optional("url"),
    "github.committed_on_bluesky": _optional(),
    "task_problem.error": _optional(),
    "task_problem.too_slow": _optional(),
    "task_problem.unreadable": _optional(),
    "task_problem.code_blocked": _optional(),
    "task_problem.code_stuck": _optional(),
    "task_problem.code_unfinished": _optional(),
    "task_problem.code_tests_failed": _optional(),
    "task_problem.code_unfit": _optional(),
    "task_problem.not_allowed": _optional(),
    "task_problem.not_sent": _optional(),
    "github.code_pull_request": _optional(
        "number title issue plan goal summary stat count files tests", LONG_CHARS, "part of #{{issue}}"
    ),
    "github.tests_passed": _optional("commands"),
    "github.tests_missing": _optional("commands"),
    "github.tests_empty": _optional("commands"),
    "github.tests_timeout": _optional("commands"),
    "github.tests_memory": _optional("commands"),
    "github.tests_crashed": _optional("commands"),
    "github.tests_unnamed": _optional("commands"),
    "github.not_installed": _optional("reason"),
    "github.files_unchanged": _optional("files"),
    "github.tests_none": _optional(),
    "github.tests_failed": _optional("command output"),
    "github.tests_failing": _optional("tests"),
    "github.tests_refused": _optional(),
    "github.tests_hollow": _optional("commands"),
    "github.tests_still_failing": _optional("commands"),
    "github.tests_mended": _optional("tests"),
    "github.tests_counted": _optional("added removed total"),
    "github.tests_removed": _optional("tests"),
    "github.tests_weaker": _optional("files"),
    "github.tests_command_kept": _optional(),
    "github.tests_command_new": _optional("commands"),
    "github.tests_command_changed": _optional("commands"),
    "github.hidden_characters": _optional("files"),
    "github.secrets_added": _optional("files"),
    "github.revised": _optional("summary", LONG_CHARS),
    "github.answered": _optional("summary", LONG_CHARS),
    "github.base_merged": _optional("summary", LONG_CHARS),
    "github.tests_draft": _optional(),
    "github.pull_taken_up": _optional("url login"),
    "github.pull_gone_on": _optional("url"),
    "github.pull_conflict": _optional("base branch"),
    "github.pull_breaks": _optional("base branch"),
    "github.pull_rejected": _optional(),
    "github.pull_closed": _optional("url learned"),
    "github.request": _optional("request"),
    "github.request_talk": _optional("talk"),
    "space.creating": _optional("", SHORT_CHARS),
    "space.on_it": _optional("what", SHORT_CHARS),
    "space.which_repo": _optional("", SHORT_CHARS),
}


VOICED: tuple[tuple[str, ...], ...] = (
    (*(key for key in FORMS if key.startswith(("fulfillment.", "space."))), "task_claim"),
    tuple(key for key in FORMS if key.startswith("github.task_")),
    tuple(key for key in FORMS if key.startswith("task_problem.")),
    (
        "github.plan_synthesized",
        "github.plan_complete",
        "github.workspace_finished",
        "github.plan_superseded",
        "github.issue_done",
        "github.issue_stale_closed",
        "github.issue_handled_closed",
        "github.sentinel_reopened_work",
        "github.sentinel_question",
    ),
)
"""The texts whose wording follows the voice, in small groups. Headings, lists of checks and origins are fixed."""


def interpolate(template: str, values: Mapping[str, object]) -> str:
    """Return `template` with all placeholders filled that have a value, in one pass: values are not read again."""
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), template)


def read_phrases(raw: object) -> dict[str, str]:
    """Return the texts in the object of a file; other fields are ignored. Raises `ValueError` in words."""
    if not isinstance(raw, Mapping) or raw.get("version") != VERSION:
        raise ValueError(f"it is no JSON object of version {VERSION}")
    given, found = dict(_flat(raw)), dict[str, str]()
    for key, form in FORMS.items():
        if key in given or form.required:
            if problem := problem_of(key, given.get(key)):
                raise ValueError(problem)
            found[key] = str(given[key])
    return found


def problem_of(key: str, text: object, *, names: Iterable[str] = ()) -> str:
    """Return why this cannot be the text named `key`, or ""; it may name none of the accounts `names`."""
    problem = _problem(text, FORMS[key], names)
    return f"{key} {problem}" if problem else ""


def as_object(phrases: Mapping[str, object]) -> dict[str, object]:
    """Return the texts grouped as a file holds them."""
    grouped: dict[str, object] = {"version": VERSION}
    for key, text in phrases.items():
        group, _, name = key.rpartition(".")
        if group:
            inner = grouped.setdefault(group, {})
            assert isinstance(inner, dict)  # noqa: S101 - no key is also a group
            inner[name] = text
        else:
            grouped[name] = text
    return grouped


def _flat(raw: Mapping[object, object]) -> Iterator[tuple[str, object]]:
    for group, value in raw.items():
        if isinstance(value, Mapping):
            yield from ((f"{group}.{name}", text) for name, text in value.items())
        else:
            yield str(group), value


def _problem(text: object, form: PhraseForm, names: Iterable[str]) -> str:  # noqa: PLR0911 - one line for each reason
    if not isinstance(text, str) or not text.strip():
        return "is missing"
    if len(text) > form.most_chars:
        return f"has more than {form.most_chars} characters"
    held = set(_PLACEHOLDER.findall(text))
    if lost := sorted(form.placeholders - held):
        return f"lacks {{{{{lost[0]}}}}}"
    if more := sorted(held - form.placeholders):
        return f"has {{{{{more[0]}}}}}, which nobody fills in"
    if lost_words := [token for token in form.tokens if token not in text.lower()]:
        return f"lacks {lost_words[0]!r}, by which others know it"
    if clean(text) != text.strip():
        return "holds control characters"
    if "@" in text or _ADDRESS.search(text):
        return "names an account or an address"
    if any(name.lower() in text.lower() for name in names if name):
        return "names the SOUL's own account"
    return ""


SKILL = "voice-phrases"
DEFAULTS = "Defaults"

_Stamp = tuple[int, int, int]


class Phrase(Protocol):
    """Returns an operational text by its name, such as `space.creating`, with its placeholders filled in."""

    def __call__(self, key: str, /, **values: object) -> str: ...


class VoicePhrases:
    """Returns operational texts. An unusable file is reported once for each of its versions."""

    def __init__(self, path: Path, skills: Skills, journal: Journal) -> None:
        self._path = path
        self._skills = skills
        self._journal = journal
        self._stamp: _Stamp | None = None
        self._own: Mapping[str, str] = {}

    def phrase(self, key: str, /, **values: object) -> str:
        """Return the text named `key` with `values` in it. Raises `SkillError` if there is no such text."""
        return interpolate(self.template(key), values)

    def template(self, key: str) -> str:
        """Return the text named `key`, placeholders unfilled. Raises `SkillError` if there is no such text."""
        own = self._read().get(key)
        return own if own is not None else self.default(key)

    def default(self, key: str) -> str:
        """Return the text of the skill, placeholders unfilled. Raises `SkillError` if there is no such text."""
        return self._skills.section(SKILL, f"{DEFAULTS}{PART}{key}")

    def _read(self) -> Mapping[str, str]:
        try:
            stat = self._path.stat()
        except OSError:
            self._stamp, self._own = None, {}
            return self._own
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp != self._stamp:
            self._stamp = stamp
            self._own = self._load()
        return self._own

    def _load(self) -> Mapping[str, str]:
        try:
            return load_phrases(self._path)
        except ValueError as error:
            summary = f"{self._path.name} is not used: {error}"
            reason = "mend it or delete it; until then the texts are those of the skill voice-phrases"
            self._journal.show(Entry("error", SKILL, summary, line="warn", reason=reason))
            return {}


def load_phrases(path: Path) -> dict[str, str]:
    """Return the texts of a file. Raises `ValueError` that says what is wrong with it."""
    return read_phrases(load_object(path))


def load_object(path: Path) -> object:
    """Return the content of a file. Raises `ValueError` if it is not JSON."""
    try:
        return json.loads(read_bounded(path, TEXT_MAX_BYTES).decode())
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"it cannot be read as JSON: {error}") from None


_TOKENS = 1_000
_TEMPERATURE = 0.7
_WRITTEN, _UNUSABLE = "written", "unusable"
_LINES: dict[str, LineKind] = {_WRITTEN: "refl", _UNUSABLE: "warn"}
"""The kind of line that the owner sees in the terminal, by outcome."""
_RANK = 1_000
"""The rank after everything else that waits."""


@dataclass(kw_only=True)
class VoiceWriter(Handler):
    """Writes `path`. `voice` returns the part of SELF.md, or ""; no text may hold what `names` returns."""

    kind = SKILL
    pause_s = 0.0
    tells = True

    path: Path
    phrases: VoicePhrases
    voice: Callable[[], str]
    names: Callable[[], tuple[str, ...]]
    gateway: LLMGateway
    skills: Skills
    table: WorkTable
    journal: Journal
    clock: Clock

    def needs_attention(self, item: WorkItem) -> bool:
        return False

    async def keep_to_the_voice(self, _: SelfChanged) -> None:
        """Add a row that rewords the texts for the current voice, unless that was done or is impossible."""
        digest = self._digest()
        if not digest or digest == self._written_for():
            return
        known = await self.table.get(SKILL, digest)
        if known is None or known.outcome == _WRITTEN:
            await self.table.offer(NewWork(SKILL, digest, rank=_RANK))

    async def handle(self, item: WorkItem) -> Disposition:
        """Ask for the next few texts; write the file when the last are there. Raises as `Handler.handle`."""
        if item.key != self._digest():
            return Disposition("silent", "outdated", "the voice in SELF.md has changed since")
        answered, place = dict(item.payload.get("answered", {})), int(item.payload.get("place", 0))
        try:
            answered |= await self._ask(self.voice().strip(), VOICED[place])
            if place + 1 < len(VOICED):
                await self.table.note(item, place=place + 1, answered=answered)
                return Disposition("later", "going-on", "a few texts at a time, when nothing else waits")
            texts, refused = self._usable(answered)
        except ValueError as error:
            return Disposition("silent", _UNUSABLE, f"the model's texts cannot be used: {error}")
        stamped = {**as_object(texts), "generatedAt": iso(self.clock.now()), "voiceDigest": item.key}
        write_atomic(self.path, json.dumps(stamped, ensure_ascii=False, indent=2) + "\n")
        left = f"; as they were: {'; '.join(refused)}" if refused else ""
        return Disposition("done", _WRITTEN, f"for the voice in SELF.md{left}")

    def summary(self, item: WorkItem, disposition: Disposition) -> str:
        """Return the journal's summary, without the reason."""
        return "The texts that it writes on GitHub without asking the model are not reworded yet"

    async def before_settling(self, item: WorkItem, disposition: Disposition) -> None:
        """Record the outcome; it is not a decision about anybody."""
        is_written = disposition.code == _WRITTEN
        told = "are reworded" if is_written else "stay as they are"
        summary = f"The texts that it writes on GitHub without asking the model {told}"
        line = _LINES.get(disposition.code)
        await self.journal.record(Entry("life", SKILL, summary, line=line, reason=disposition.reason))

    def _digest(self) -> str:
        """Return the hash of the current voice; "" if SELF.md describes none."""
        voice = self.voice().strip()
        return hashlib.sha256(voice.encode(errors="replace")).hexdigest() if voice else ""

    async def _ask(self, voice: str, group: Sequence[str]) -> dict[str, object]:
        """Return the model's texts of a group, by name; groups are small, as a small model would copy longer lists."""
        given = {key: self.phrases.default(key) for key in group}
        shown = json.dumps(given, ensure_ascii=False, indent=1)
        about = QuestionFacts(SKILL, {key: (text,) for key, text in given.items()})
        answer = await self.gateway.chat(
            [Message("user", self.skills.render(SKILL, "Message", voice=voice, phrases=shown))],
            system=self.skills.render(SKILL, "System Prompt"),
            max_tokens=_TOKENS,
            temperature=_TEMPERATURE,
            purpose=SKILL,
            importance="own",
            facts=TurnFacts(about),
        )
        return {key: text for key, text in _object_in(answer).items() if key in given}

    def _usable(self, answered: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
        """Return the texts for the file, and the problems of those that stay as in the skill.

        Raises `ValueError` if no new text can be used.
        """
        problems = {key: problem_of(key, text, names=self.names()) for key, text in answered.items()}
        new = {
            key: str(text) for key, text in answered.items() if not problems[key] and text != self.phrases.default(key)
        }
        refused = [problem for problem in problems.values() if problem]
        if not new:
            raise ValueError("; ".join(refused) or "they are those that it was shown")
        return {key: new.get(key, self.phrases.default(key)) for key in FORMS}, refused

    def _written_for(self) -> str:
        """Return the hash of the voice that the file was written for; "" if it has none."""
        try:
            held = load_object(self.path) if self.path.exists() else None
        except ValueError:
            return ""
        return str(held.get("voiceDigest", "")) if isinstance(held, Mapping) else ""


def _object_in(answer: str) -> dict[str, object]:
    """Return the JSON object in a model's answer, with any text around it. Raises `ValueError` if there is none."""
    begins = answer.find("{")
    if begins < 0:
        raise ValueError("the answer holds no JSON object")
    try:
        found = json.JSONDecoder().raw_decode(answer, begins)[0]
    except (ValueError, RecursionError):
        raise ValueError("the answer holds no valid JSON") from None
    return dict(found)
